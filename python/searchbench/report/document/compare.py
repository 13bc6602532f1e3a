"""Which treatment is better, and is it resolved: the sections of a page about trials."""

from __future__ import annotations

from functools import partial

from searchbench.analysis.compare import pairs
from searchbench.analysis.judgement import Comparison, Judgement, Scale
from searchbench.report.document import notices
from searchbench.report.document.blocks import Badge, Block, Section, Text
from searchbench.report.document.content import Content, figure
from searchbench.report.document.text import fit, short
from searchbench.report.figures import study as figures
from searchbench.report.tables import numbers
from searchbench.report.tables import study as tables
from searchbench.report.tables.cells import title_of

_FEW = 6  # rows of the table of comparisons up to which it is shown open
_MOST = 24  # comparisons that are drawn where no treatment has met all others


def answer(content: Content) -> Section:
    """The verdict, its evidence, and what speaks against it, before anything else."""
    judged = content.judgement
    blocks: list[Block] = [
        _badge(judged),
        Text(fit(judged.verdict.decision), "lead"),
        *notices.warnings(judged),
    ]
    if judged.treatments:
        open_loop = bool(content.loads & {"open", "replay"})
        blocks.append(tables.overview(judged, judged.metric, open_loop=open_loop))
        blocks.append(Text(_reading(judged), "quiet"))
    compared = shown_comparisons(judged, judged.metric)
    best = {c.b for c in compared}
    title = "What is compared"
    if len(best) == 1:
        title = f"{short(content.labels.get(id_ := best.pop(), id_), 60)} against every other"
    blocks += figure(
        "differences",
        title,
        f"Ratios by {title_of(judged.metric).lower()}, paired by block, with their intervals; "
        "above 1× is better. Shaded: the noise floor. Grey: not resolved.",
        partial(figures.differences, compared, content.labels),
    )
    if judged.comparisons:
        blocks.append(notices.compared(content, open_to=_FEW))
    blocks += notices.analysis(judged)
    return Section("answer", "The answer", tuple(blocks), "Answer")


def _badge(judgement: Judgement) -> Badge:
    """Resolved or not, and how many trials could not be used."""
    unusable = [t for r in judgement.treatments for t in r.trials if t.status != "valid"]
    aside = f" {numbers.counted(len(unusable), 'trial')} could not be used." if unusable else ""
    if judgement.verdict.resolved:
        text = "At least one difference is larger than the noise of this machine." + aside
        return Badge("Resolved", "good", text)
    text = "No difference is larger than that between two runs of the same system."
    if not judgement.comparisons:
        text = "There is nothing to compare it with."
    return Badge("Not resolved", "unsure", text + aside)


def _reading(judgement: Judgement) -> str:
    """How to read the table of treatments."""
    text = "Small print: 95 % intervals over the valid trials. Hover or touch for exact values."
    if judgement.noise_floor:
        share = judgement.noise_floor.value
        change = share - 1 if share >= 1 else share
        text += (
            f" Noise floor from the A/A control: ±{numbers.digits(100 * change, 2)} %; "
            "smaller differences are never called a win."
        )
    return text


def shown_comparisons(judgement: Judgement, metric: str) -> list[Comparison]:
    """By the deciding metric: the best against every other if it has met all, else all pairs."""
    found = [c for c in judgement.comparisons if c.metric == metric and c.ratio is not None]
    order = [t.treatment for t in tables.ranked(judgement, metric)]
    first = judgement.verdict.best or next(iter(order), "")
    met = [pairs.of(first, c) for c in found if first in (c.a, c.b)]
    if len(met) >= len(order) - 1 or len(met) == len(found):
        return sorted(met, key=lambda c: order.index(c.a))
    return found[:_MOST]


def throughput(content: Content) -> Section:
    """Throughput, then latencies, against each factor that has numbers as levels."""
    blocks: list[Block] = []
    groups: dict[tuple[str, str], list[Scale]] = {}
    for scale in sorted(content.judgement.scales, key=lambda s: s.metric != "throughput"):
        groups.setdefault((scale.factor, scale.metric), []).append(scale)
    for i, ((factor, metric), found) in enumerate(groups.items()):
        blocks += figure(
            f"scaling-{i}",
            f"{title_of(metric)} against {short(factor, 60)}",
            "Points: over the valid trials; bands: the interval.",
            partial(figures.scaling, found),
        )
    if content.judgement.scales:
        blocks.append(tables.scales(content.judgement.scales))
    else:
        text = "No factor of this study has several numbers as levels, so there is no curve."
        blocks.append(Text(text))
    return Section("throughput", "Throughput against each factor", tuple(blocks), "Throughput")
