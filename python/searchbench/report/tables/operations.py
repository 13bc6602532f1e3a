"""Operations as tables: a row a method, a column a number of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from searchbench.analysis.operations.model import MethodCurve, Point
from searchbench.report.document.blocks import Cell, Table
from searchbench.report.document.text import short
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import NONE, named, number, of_estimate, table, text


def times(methods: Sequence[MethodCurve]) -> Table:
    """How long one operation takes."""
    return _by_rows(methods, _time)


def sent(methods: Sequence[MethodCurve]) -> Table:
    """Statements, bytes both ways and server CPU."""
    return _by_rows(methods, _sent)


def costs(methods: Sequence[MethodCurve]) -> Table | None:
    """What a further row costs; None where nothing is known of it."""
    known = [m for m in methods if m.slope is not None]
    if not known:
        return None
    return table(
        known,
        text("Method", lambda m: named(m.method), 2),
        number("For each row", _per_row),
        number("Fixed", lambda m: Cell(numbers.human(max(0.0, m.slope.fixed), "s"))),
        text("A line", _line, 1.4),
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
    return of_estimate(p.seconds)


def _sent(p: Point) -> Cell:
    if p.failed:
        return Cell(numbers.counted(p.statements, "statement"), "", tone="quiet")
    received = numbers.human(p.received_bytes, "bytes") if p.received_bytes else "–"
    cpu = f", CPU {numbers.human(p.cpu_s.value, 's')}" if p.cpu_s is not None else ""
    below = f"{numbers.human(p.sent_bytes, 'bytes')} out, {received} in{cpu}"
    return Cell(numbers.counted(p.statements, "statement"), "", below)


def _per_row(m: Any) -> Cell:
    return of_estimate(m.slope.per_row) if m.slope.linear else NONE


def _line(m: Any) -> Cell:
    worst = numbers.percent(m.slope.worst)
    return Cell("yes" if m.slope.linear else "no", "", f"off by up to {worst}")


def _between(low: int, high: int) -> str:
    return f"{low:,} and {high:,} rows"
