"""Operations as tables.

A row a method and a column a number of rows; or, where one question is asked, a row an operation
and a column a method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from searchbench.analysis.compare.pairs import of
from searchbench.analysis.judgement import Comparison
from searchbench.analysis.operations.model import MethodCurve, OperationResult, Point
from searchbench.analysis.operations.rows import IN_BLOCK
from searchbench.report.document.blocks import Cell, Table
from searchbench.report.document.text import line, short
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import NONE, Made, named, number, of_estimate, table, text


def times(methods: Sequence[MethodCurve]) -> Table:
    """How long one operation takes."""
    return _by_rows(methods, _time)


def sent(methods: Sequence[MethodCurve]) -> Table:
    """Statements, bytes both ways and server CPU."""
    return _by_rows(methods, _sent)


def statements(methods: Sequence[MethodCurve]) -> Table | None:
    """Where the time of an operation goes: a row a statement; None where it is not on record."""
    every = sorted({p.rows for m in methods for p in m.points if p.parts})
    rows = [
        (m, at_line, said)
        for m in methods
        for at_line, said in dict.fromkeys((x.line, x.text) for p in m.points for x in p.parts)
    ]
    if not rows:
        return None

    def at(size: int, row: tuple[MethodCurve, int, str]) -> Cell:
        method, at_line, _ = row
        point = next((p for p in method.points if p.rows == size), None)
        found = next((x for x in point.parts if x.line == at_line), None) if point else None
        if found is None:
            return NONE
        times = f"sent {found.statements:,} times, " if found.statements > 1 else ""
        below = f"{times}{numbers.percent(found.share)} of the operation"
        return replace(of_estimate(found.seconds), below=below)

    return table(
        rows,
        text("Method", lambda r: named(r[0].method), 1.4),
        text("Statement", lambda r: Cell(short(r[2], 80), r[2] if len(r[2]) > 80 else "",
                                         f"line {r[1]}" if r[1] else ""), 3),
        *(number(numbers.counted(rows_, "row"), partial(at, rows_), 1.3) for rows_ in every),
    )  # fmt: skip


def costs(methods: Sequence[MethodCurve]) -> Table | None:
    """What a further row costs; None where nothing is known of it."""
    known = [m for m in methods if m.slope is not None]
    if not known:
        return None
    return table(
        known,
        text("Method", lambda m: named(m.method), 2),
        number("For each row", _per_row),
        number("Fixed", _fixed),
        text("Straight line", _line, 1.4),
        number("Exponent", lambda m: of_estimate(m.slope.exponent)),
        text("between", lambda m: Cell(_between(*m.slope.between))),
    )


def _by_rows(methods: Sequence[MethodCurve], cell: Callable[[Point], Cell]) -> Table:
    every = sorted({p.rows for m in methods for p in m.points})

    def at(rows: int, m: MethodCurve) -> Cell:
        return next((cell(p) for p in m.points if p.rows == rows), NONE)

    return table(
        methods,
        text("Method", lambda m: named(m.method), 2),
        *(number(numbers.counted(rows, "row"), partial(at, rows), 1.2) for rows in every),
    )


def _time(p: Point) -> Cell:
    if p.failed:
        return Cell("fails", p.failed, short(p.failed, 40), tone="bad")
    return _sometimes(of_estimate(p.seconds), p)


def _sometimes(cell: Cell, p: Point) -> Cell:
    """The cell of a time, with in how many trials the method failed."""
    if not p.failed_in:
        return cell
    said = short(f"fails {p.failed_in}", 60)
    return replace(cell, below=f"{cell.below}; {said}" if cell.below else said, tone="bad")


def _sent(p: Point) -> Cell:
    if p.failed:
        return Cell(numbers.counted(p.statements, "statement"), "", tone="quiet")
    received = numbers.human(p.received_bytes, "bytes") if p.received_bytes else "–"
    cpu = f", CPU {numbers.human(p.cpu_s.value, 's')}" if p.cpu_s is not None else ""
    below = f"{numbers.human(p.sent_bytes, 'bytes')} out, {received} in{cpu}"
    return Cell(numbers.counted(p.statements, "statement"), "", below)


def _per_row(m: Any) -> Cell:
    return of_estimate(m.slope.per_row) if m.slope.linear else NONE


def _fixed(m: Any) -> Cell:
    fixed = m.slope.fixed
    return Cell(numbers.human(fixed, "s")) if m.slope.linear and fixed >= 0 else NONE


def _line(m: Any) -> Cell:
    worst = numbers.percent(m.slope.worst)
    return Cell(f"within {worst}") if m.slope.linear else Cell("no", "", f"off by up to {worst}")


def _between(low: int, high: int) -> str:
    return f"{low:,} and {high:,} rows"


Compared = Mapping[frozenset[str], Comparison]
"""The comparisons by the study's metric, by the two treatments of each."""
Way = tuple[str, str]
"""A method, and the system that it asks."""
Row = tuple[OperationResult, str]
"""An operation, at these levels of what else varies."""


def side_by_side(operations: Sequence[OperationResult], compared: Compared) -> Table:
    """A row an operation, a column a method: its time, and what the study made of the difference.

    A row for each crossing of the other levels, such as the number of clients.
    """

    def cell(way: Way, row: Row) -> Cell:
        found = _point(row, way)
        made = _against(row, found, compared)
        return made if found is None else _sometimes(made, found)

    return _each(operations, cell, text("Rows", _same_rows))


def sent_side_by_side(operations: Sequence[OperationResult]) -> Table:
    """The same with the server's CPU, and bytes both ways."""

    def cell(way: Way, row: Row) -> Cell:
        found = _point(row, way)
        if found is None or found.failed:
            return NONE
        several = f"{found.statements} statements, " if found.statements > 1 else ""
        received = numbers.human(found.received_bytes, "bytes") if found.received_bytes else "–"
        below = f"{several}{numbers.human(found.sent_bytes, 'bytes')}, {received}"
        return replace(of_estimate(found.cpu_s), below=below)

    return _each(operations, cell)


def _each(
    operations: Sequence[OperationResult], cell: Callable[[Way, Row], Cell], *more: list[Made]
) -> Table:
    rows = [(o, at) for o in operations for at in dict.fromkeys(m.others for m in o.methods)]
    ways = dict.fromkeys((m.method, m.system) for o in operations for m in o.methods)
    return table(
        rows,
        text("Operation", lambda row: named(row[0].name), 1.6),
        text("At", lambda row: Cell(line(row[1])), when=len({at for _, at in rows}) > 1),
        *(number(_way(*way), partial(cell, way)) for way in ways),
        *more,
    )


def _first(row: Row) -> Point | None:
    """What the others are held against: the first method that answers."""
    o, others = row
    own = (m.points[0] for m in o.methods if m.others == others)
    return next((p for p in own if p.seconds is not None), None)


def _way(method: str, system: str) -> str:
    return line(f"{method}, {system}" if system else method)


def _point(row: Row, way: Way) -> Point | None:
    o, others = row
    own = (m for m in o.methods if (m.method, m.system) == way and m.others == others)
    return next((m.points[0] for m in own), None)


def _against(row: Row, p: Point | None, compared: Compared) -> Cell:
    first = _first(row)
    if p is None:
        return NONE
    if p.seconds is None and not p.failed:
        return Cell("no valid trial", tone="quiet")
    if p.seconds is None:
        return Cell("fails", p.failed, short(p.failed, 40), tone="bad")
    time = Cell(numbers.human(p.seconds.value, p.seconds.unit), numbers.exact(p.seconds))
    if first is None or p is first:
        below = of_estimate(p.seconds).below
        return replace(time, below=below.replace(numbers.NOT_KNOWN, "interval not known"))
    found = compared.get(frozenset((p.treatment, first.treatment)))
    return time if found is None else replace(time, **_verdict(of(p.treatment, found)))


def _verdict(c: Comparison) -> dict[str, Any]:
    if c.verdict == "not comparable":
        return {"below": "not compared", "tone": "quiet"}
    if c.verdict == "not resolved" or c.ratio is None:
        return {"below": "not resolved"}
    ratio, faster = c.ratio.value, c.verdict == "faster"
    times = numbers.digits(ratio if faster else 1 / ratio, 2)
    return {"below": f"{times}× {c.verdict}", "tone": "good" if faster else "bad"}


def _same_rows(row: Row) -> Cell:
    o, others = row
    labels = {m.label: _way(m.method, m.system) for m in o.methods if m.others == others}
    of = dict.fromkeys(d.b.partition(IN_BLOCK)[0] for d in o.differing)
    other = [labels[name] for name in of if name in labels]
    if other:
        return Cell("differ", "", "; ".join(other), tone="bad")
    answered = sum(m.points[0].seconds is not None for m in o.methods if m.others == others)
    return Cell("the same") if answered > 1 and o.compared > 1 else NONE
