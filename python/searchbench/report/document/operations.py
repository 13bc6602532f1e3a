"""Operations: the curve of each method, where methods cross, where they fail, who disagrees."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from searchbench.analysis.operations.crossing import sentence
from searchbench.analysis.operations.model import (
    Crossover,
    MethodCurve,
    OperationResult,
    RowDifference,
)
from searchbench.report.document.blocks import Block, Points, Section, Text
from searchbench.report.document.content import Content, figure
from searchbench.report.document.text import line, short
from searchbench.report.figures import operations as figures
from searchbench.report.tables import numbers
from searchbench.report.tables import operations as tables
from searchbench.workload.operations.differing import BEYOND, Differing, told

_HOW = (
    "Each method answers the same operation with its own statements. The time is that of one "
    "operation on one connection, without set-up and clean-up. Where a method fails at a size, "
    "the table has the server's message."
)
_SAME = {"order": "the same rows in the same order", "count": "as many rows"}
_ROW = 160
_MOST_CROSSINGS = 40


def section(content: Content) -> Section | None:
    """All operations in their order; None where there are none."""
    found = content.judgement.operations
    if not found:
        return None
    blocks: list[Block] = [Text(_HOW, "quiet")]
    single = _single(content)
    if single:
        blocks += _sent(single)
    for operation in (operation for operation in found if operation not in single):
        if len(found) > 1:
            blocks.append(Text(f"{line(operation.name)}.", "lead"))
        blocks += _agreement(operation)
        for held in dict.fromkeys(m.held for m in operation.methods):
            blocks += _held(operation, held)
    return Section("operations", "Operations", tuple(blocks))


def answered(content: Content) -> list[Block]:
    """The operations that ask one question each, a row each; nothing where there is none."""
    judged, single = content.judgement, _single(content)
    if not single:
        return []
    blocks = list[Block]()
    differing = [(o, d) for o in single for d in o.differing]
    if differing:
        blocks.append(Text("Not all methods return the same; those that do not are compared with "
                           "none of the others:", "lead"))  # fmt: skip
        told = (f"{line(o.name)}: {_difference(d)}" for o, d in differing)
        blocks.append(Points(tuple(told)))
    elif any(o.compared > 1 for o in single):
        same = "In each operation all methods returned the same rows (compared by their digest)."
        blocks.append(Text(same))
    compared = {frozenset((c.a, c.b)): c for c in judged.comparisons if c.metric == judged.metric}
    blocks.append(tables.side_by_side(single, compared))
    points = [p for o in single for m in o.methods for p in m.points if p.seconds is not None]
    kinds = {"median" if p.median else "mean" for p in points} or {"median"}
    what = "The median time of one operation"
    if "mean" in kinds:
        what = "The mean time of one operation" if len(kinds) == 1 else (
            f"{what}, or the mean where a trial has too few for a median"
        )  # fmt: skip
    blocks.append(Text(f"{what}. Below it, the ratio to the first method of the row that answers; "
                       "for that first method, the interval of its own time.",
                       "quiet"))  # fmt: skip
    return blocks


def _sent(single: list[OperationResult]) -> list[Block]:
    blocks: list[Block] = [
        Text(
            "The server's CPU for one operation; below it the bytes of what is sent and received."
        ),
        tables.sent_side_by_side(single),
    ]
    failures = [
        f"{line(o.name)}, {line(m.label)}: {short(p.failed or p.failed_in, 2 * _ROW)}"
        for o in single
        for m in o.methods
        for p in m.points
        if p.failed or p.failed_in
    ]
    if failures:
        blocks += [Text("Where a method fails:"), Points(tuple(failures))]
    return blocks


def _single(content: Content) -> list[OperationResult]:
    """Those that ask one question, whatever the number of rows."""
    return [o for o in content.judgement.operations if not o.by_rows]


def _agreement(of: OperationResult) -> list[Block]:
    what = _SAME.get(of.answer, "the same rows")
    if not of.differing:
        if of.compared < 2:
            return [Text("There is nothing to compare: at most one answer is on record.")]
        counted = numbers.counted(of.compared, "treatment")
        return [Text(f"Methods that were asked the same returned {what} ({counted} compared, all "
                     "rows by their digest).")]  # fmt: skip
    first = "Not all methods return the same, so their times are not compared:"
    return [Text(first, "lead"), Points(tuple(_difference(d) for d in of.differing))]


def _difference(d: RowDifference) -> str:
    counts = ", ".join(
        f"{line(name)} returns {numbers.counted(n, 'row')}"
        for name, n in zip((d.a, d.b), d.counts, strict=True)
    )
    where = f"asked for {numbers.counted(d.rows, 'row')}, draw {d.draw + 1}: " if d.rows else ""
    if d.place == BEYOND:
        return f"{where}{counts}; the first row that differs is beyond those on record."
    shown = told(line(d.a), line(d.b), Differing(d.place, d.only_a, d.only_b, d.order), _ROW)
    return f"{where}{counts}. The first row that differs is row {d.place + 1}: {line(shown)}."


def _held(of: OperationResult, held: str) -> list[Block]:
    methods = [m for m in of.methods if m.held == held]
    blocks: list[Block] = [Text(f"{line(held)}.", "lead")] if held else []
    blocks += figure(
        f"operation-{of.name}-{held or 'all'}".replace(" ", "-").replace(",", ""),
        f"Time of {of.name} by the rows asked for{': ' * bool(held)}{held}",
        "Both axes are logarithmic. Bands: intervals over blocks. A line ends where a method "
        "fails.",
        partial(figures.curves, methods),
    )
    blocks.append(tables.times(methods))
    if (costs := tables.costs(methods)) is not None:
        blocks += [Text("What a further row costs, and the exponent of the last step."), costs]
    if (taken := tables.statements(methods)) is not None:
        blocks += [
            Text("Where the time of an operation goes, by statement; what lies between is the "
                 "client's time."),
            taken,
        ]  # fmt: skip
    blocks.append(Text("What is sent and received, and the CPU of the server, for one operation."))
    blocks.append(tables.sent(methods))
    failures = [said for m in methods for said in _failures(m)]
    if failures:
        blocks += [Text("Where a method fails:"), Points(tuple(failures))]
    crossing = [c for c in of.crossovers if c.held == held]
    sure = [c for c in crossing if c.interval is not None]
    if sure:
        blocks += [Text("Where one becomes faster than the other:"),
                   Points(tuple(map(_crossing, sure[:_MOST_CROSSINGS])))]  # fmt: skip
    if unsure := len(crossing) - len(sure):
        blocks.append(Text(f"{numbers.counted(unsure, 'further crossing')} of curves "
                           f"{'is' if unsure == 1 else 'are'} not resolved.", "quiet"))  # fmt: skip
    return blocks


def _failures(m: MethodCurve) -> list[str]:
    return [
        f"{line(m.method)} at {numbers.counted(p.rows, 'row')}"
        f"{': ' if p.failed else ', '}{short(p.failed or p.failed_in, 2 * _ROW)}"
        for p in m.points
        if p.failed or p.failed_in
    ]


def _crossing(c: Crossover) -> str:
    return f"{line(sentence(replace(c, held='')))}."
