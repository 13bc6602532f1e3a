"""Which treatment is better, and is it resolved: the sections of a page about trials."""

from __future__ import annotations

import math
from functools import partial

from searchbench.analysis.compare import pairs, standing
from searchbench.analysis.judgement import Comparison, Judgement, Scale
from searchbench.report.document import notices, operations
from searchbench.report.document.blocks import Badge, Block, Section, Text
from searchbench.report.document.content import Content, figure
from searchbench.report.document.text import line, short
from searchbench.report.figures import study as figures
from searchbench.report.tables import numbers
from searchbench.report.tables import study as tables
from searchbench.report.tables.cells import title_of

_FEW = 6  # rows of the table of comparisons up to which it is shown open
_MOST = 24  # comparisons that are drawn where no treatment has met all others


def answer(content: Content) -> Section:
    """The verdict, its evidence, and what speaks against it, before anything else."""
    judged = content.judgement
    # Warnings are a line each: the table of results is to be seen without much turning of pages.
    blocks: list[Block] = [
        _badge(judged),
        *notices.in_short(judged.verdict),
        *notices.warnings(judged),
    ]
    side_by_side = operations.answered(content)
    if side_by_side:
        blocks += side_by_side
    elif judged.treatments:
        open_loop = bool(content.loads & {"open", "replay"})
        blocks.append(tables.overview(judged, judged.metric, open_loop=open_loop))
        blocks.append(Text(_reading(judged), "quiet"))
    compared = shown_comparisons(judged, judged.metric)
    best = {c.b for c in compared}
    title = "What is compared"
    if len(best) == 1:
        title = f"{short(content.labels.get(id_ := best.pop(), id_), 60)} against every other"
    blocks += (
        []
        if side_by_side
        else figure(
            "differences",
            title,
            f"Ratios by {title_of(judged.metric).lower()}, paired by block, with their intervals; "
            "above 1× is better. Shaded: the noise floor. Grey: not resolved.",
            partial(figures.differences, compared, content.labels),
        )
    )
    if judged.comparisons:
        blocks.append(notices.compared(content, open_to=_FEW))
    blocks += notices.in_full(judged.verdict)
    blocks += notices.analysis(judged)
    return Section("answer", "The answer", tuple(blocks), "Answer")


def _badge(judgement: Judgement) -> Badge:
    """Resolved or not and why, and how many trials could not be used."""
    unusable = [t for r in judgement.treatments for t in r.trials if t.status != "valid"]
    aside = f" {numbers.counted(len(unusable), 'trial')} could not be used." if unusable else ""
    if not judgement.verdict.resolved:
        return Badge("Not resolved", "unsure", _why_not(judgement) + aside)
    best = judgement.verdict.best
    label = next((t.label for t in judgement.treatments if t.treatment == best), "")
    if not judgement.noise_floor:
        aside = (
            " There is no valid A/A control: it is not known what the machine alone would make."
            + aside
        )
    if label:
        others = _other_hits(judgement, str(best))
        whole = f"{short(label, 60)} is better than every other.{others}{aside}"
        return Badge("Resolved", "good", whole)
    text, explanation = _without_best(judgement)
    return Badge(text, "good" if text == "Resolved" else "unsure", explanation + aside)


_NONE = "nothing is shown to be better than all others"
# By what keeps the faster one from being the better one (``standing``): the badge, and why.
_FASTER = {
    "never seen to return the same first hits as": (
        "Faster, but not shown to return the same first hits",
        "On no query that finds something were the first hits of both seen to be the same, so it "
        "is not known whether they did the same work.",
    ),
    standing.OTHER_RANKING: (
        "Faster, but not shown to rank hits alike",
        "Where both return every match, the hits are the same even if one system does not rank at "
        "all. On no query where a difference could show were both seen to rank hits alike, so it "
        "is not known whether they did the same work.",
    ),
    "compared over too few queries with": (
        "Faster, but over few queries",
        "It is not shown that most of the queries on which they agree were measured on both sides.",
    ),
    "compared on one query alone with": (
        "Faster, but on one query alone",
        "A difference is resolved on one query alone.",
    ),
    standing.ALIKE_ON_FEW: (
        "Faster, but over few queries",
        "Both answer fewer than 90 % of the queries alike, and how fast the others are compared is "
        "not known.",
    ),
    standing.NOT_KNOWN_ALIKE: (
        "Faster, but not known to answer the same",
        "The replies were not read, so whether both answer the same is not known.",
    ),
}


def _other_hits(judgement: Judgement, best: str) -> str:
    """That the best returns other first hits than a rival on most queries, though as many hits."""
    found = [
        (c.same_top_k, c.queries_used - c.empty)
        for c in judgement.comparisons
        if c.metric == judgement.metric and best in (c.a, c.b) and c.same_top_k is not None
    ]
    same, of = min(found, key=lambda one: one[0] / max(1, one[1]), default=(0, 0))
    if same >= of / 2:
        return ""
    return (
        f" But of {numbers.counted(of, 'query', 'queries')} that find something, the first hits "
        f"are the same on only {same}: see under Agreement whether they rank as you want."
    )


def _without_best(judgement: Judgement) -> tuple[str, str]:
    """The badge where differences are resolved and nothing is the best, and why that is so."""
    own = [c for c in judgement.comparisons if c.metric == judgement.metric]
    resolved = [c for c in own if c.verdict in ("faster", "slower")]
    doubts = {standing.doubt(c if c.verdict == "faster" else pairs.of(c.a, c)) for c in resolved}
    if len(doubts) == 1 and (found := _FASTER.get(min(doubts))):
        if len(resolved) == len(own):
            return found
        return "Partly resolved", f"{found[1]} So {_NONE}."
    if len(resolved) == len(own) and doubts == {""} and not judgement.verdict.doubts:
        return (
            "Resolved",
            "Every difference is resolved. Not all were asked the same, so nothing is called "
            "better than all others.",
        )
    return (
        "Partly resolved",
        f"At least one difference is resolved, but {_NONE}.",
    )


def _why_not(judgement: Judgement) -> str:
    """Why no difference is resolved: only where it is so, because none is beyond the noise."""
    own = [c for c in judgement.comparisons if c.metric == judgement.metric]
    sizes = [(abs(math.log(c.ratio.value)), c) for c in own if c.ratio and c.ratio.value > 0]
    if not own:
        return "There is nothing to compare it with."
    if not sizes:
        return f"No two treatments can be compared{_because(own[0])}."
    if not judgement.noise_floor:
        return (
            "There is no A/A control: it is not known how much two trials of one treatment differ."
        )
    size, greatest = max(sizes, key=lambda one: one[0])
    if size > math.log(greatest.floor):
        return (
            "A difference is larger than that between two trials of one treatment, but it is not "
            f"sure{_because(greatest)}."
        )
    which = "" if len(sizes) == len(own) else " that could be compared"
    return f"No difference{which} is larger than that between two trials of one treatment."


def _because(c: Comparison) -> str:
    return f": {line(c.reason)}" if c.reason else ""


def _reading(judgement: Judgement) -> str:
    """How to read the table of treatments."""
    text = (
        "Small print: 95 % intervals over the valid trials; not known where one spans more than "
        "two powers of ten. Hover or touch for exact values."
    )
    if judgement.noise_floor and judgement.noise_floor.n:
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


def throughput(content: Content) -> Section | None:
    """Throughput or times, then latencies, against each factor that has numbers as levels."""
    if not content.judgement.scales:
        return None
    blocks: list[Block] = []
    groups: dict[tuple[str, str], list[Scale]] = {}
    for scale in sorted(content.judgement.scales, key=lambda s: s.metric != "throughput"):
        groups.setdefault((scale.factor, scale.metric), []).append(scale)
    for i, ((factor, metric), found) in enumerate(groups.items()):
        blocks += figure(
            f"scaling-{i}",
            f"{title_of(metric)} against {short(factor, 60)}",
            "Points: over the valid trials; bands: the interval, cut off where it is wide.",
            partial(figures.scaling, found),
        )
    blocks.append(tables.scales(content.judgement.scales))
    if not content.judgement.driven:
        return Section("factors", "Times against each factor", tuple(blocks), "Factors")
    return Section("throughput", "Throughput against each factor", tuple(blocks), "Throughput")
