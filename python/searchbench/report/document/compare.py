"""Which treatment is better, and is it resolved: the sections of a page about trials."""

from __future__ import annotations

from functools import partial

from searchbench.analysis.judgement import Scale
from searchbench.report.document import agreement, details, latency, notices, resources, warmup
from searchbench.report.document.blocks import Block, Details, Section, Text
from searchbench.report.document.chosen import scales_of, shown_comparisons
from searchbench.report.document.content import Content, Kind, figure
from searchbench.report.document.text import fit, short
from searchbench.report.figures import study as figures
from searchbench.report.tables import numbers
from searchbench.report.tables import study as tables
from searchbench.report.tables.cells import title_of


def answer(content: Content) -> Section:
    """The verdict, its evidence, and what speaks against it, before anything else."""
    judged = content.judgement
    blocks: list[Block] = [
        notices.resolved_badge(judged),
        Text(fit(judged.verdict.decision), "lead"),
        *notices.warnings(judged),
    ]
    if judged.treatments:
        open_loop = bool(content.loads & {"open", "replay"})
        blocks.append(tables.overview(judged, judged.metric, open_loop=open_loop))
        blocks.append(Text(notices.reading(judged), "quiet"))
    compared = shown_comparisons(judged, judged.metric)
    best = {c.b for c in compared}
    title = "What is compared"
    if len(best) == 1:
        title = f"{short(content.labels.get(id_ := next(iter(best)), id_), 60)} against every other"
    blocks += figure(
        "differences",
        title,
        f"Ratios by {title_of(judged.metric).lower()}, paired by block, with their intervals; "
        "above 1× is better. Shaded: the noise floor. Grey: not resolved.",
        partial(figures.differences, compared, content.labels),
    )
    if judged.comparisons:
        table = tables.comparisons(judged.comparisons, content.labels)
        title = f"All {numbers.counted(len(table.rows), 'comparison')}"
        note = "Ratios above 1: the first is better"
        blocks.append(Details(title, (table,), note, open=len(table.rows) <= 6))
    blocks += notices.analysis(judged)
    return Section("answer", "The answer", tuple(blocks), "Answer")


def throughput(content: Content) -> Section:
    """Throughput, then latencies, against each factor that has numbers as levels."""
    blocks: list[Block] = []
    groups: dict[tuple[str, str], list[Scale]] = {}
    for scale in scales_of(content.judgement):
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
    if not blocks:
        blocks.append(
            Text("No factor of this study has several numbers as levels, so there is no curve.")
        )
    return Section("throughput", "Throughput against each factor", tuple(blocks), "Throughput")


def _method(content: Content) -> str:
    systems = {t.system for t in content.judgement.treatments}
    running = [name for name in content.attached if name in systems]
    if not running:
        return "Each treatment was started anew for every measurement."
    if len(running) == len(systems):
        return "The systems ran already; each treatment was measured anew in every block."
    names = ", ".join(short(name, 60) for name in running)
    return (
        "Each treatment was started anew for every measurement, except of the systems that ran "
        f"already ({names})."
    )


def _counts(content: Content) -> list[str]:
    return [
        numbers.counted(len(content.judgement.treatments), "treatment"),
        numbers.counted(len(content.record.trials), "trial"),
    ]


KIND = Kind(
    parts=(
        answer,
        throughput,
        latency.of_treatments,
        warmup.section,
        agreement.section,
        resources.section,
        resources.machine,
        notices.findings,
        details.section,
    ),
    method=_method,
    counts=_counts,
    untitled="A study without a question",
)
