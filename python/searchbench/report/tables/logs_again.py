"""Tables of a cut beside its log, and of a record beside a log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from searchbench.analysis.logs.against import Answer, Line
from searchbench.analysis.logs.cut import Bound
from searchbench.analysis.logs.remarks import seconds
from searchbench.analysis.logs.said import of_bound, of_interval
from searchbench.report.document.blocks import Cell, Table
from searchbench.report.tables.cells import NONE, known, named, number, table, text
from searchbench.report.tables.numbers import count, digits, quantile_name

_TONES: Mapping[Answer, Literal["good", "bad", "quiet"]] = {
    "the same": "good", "faster": "bad", "slower": "bad", "not resolved": "quiet",
    "too few": "quiet",
}  # fmt: skip


def bounds(rows: Sequence[Bound]) -> Table:
    """A row a property: in the log, in the cut, how far apart, and what is allowed."""
    shown = {id(bound): of_bound(bound) for bound in rows}

    def cell(at: int) -> Any:
        return lambda bound: Cell(shown[id(bound)][at])

    return table(
        rows,
        text("Property", lambda b: named(b.name), 3.0),
        number("Whole log", lambda b: Cell(shown[id(b)][0], repr(b.whole))),
        number("Cut", lambda b: Cell(shown[id(b)][1], repr(b.cut))),
        number("Apart", cell(2)),
        number("Allowed", cell(3)),
        text("", lambda b: Cell("within", tone="good") if b.reached
             else Cell("not reached", tone="bad")),
    )  # fmt: skip


def against(rows: Sequence[Line], resolution_s: float) -> Table:
    """A row a class and quantile. ``resolution_s``: of the log's times."""

    def time(each: Line, value: float, resolution: float | None) -> Cell:
        return NONE if math.isnan(value) else Cell(seconds(value, resolution), f"{value!r} s")

    def ratio(each: Line) -> Cell:
        if each.interval is None:
            return NONE if each.ratio is None else Cell(f"{digits(each.ratio)}×")
        span = of_interval(each.interval)
        said = "–" if each.ratio is None else f"{digits(each.ratio)}×"
        exact = f"{each.interval.low!r} to {each.interval.high!r} ({each.interval.method})"
        return Cell(said, exact, span)

    return table(
        rows,
        text("Class", lambda r: named(r.of_class), 3.0),
        text("", lambda r: Cell(quantile_name(r.quantile))),
        number("In the log", lambda r: known(r.n[0], count)),
        number("Measured", lambda r: known(r.n[1], count)),
        number("Log", lambda r: time(r, r.log_s, resolution_s)),
        number("Laboratory", lambda r: time(r, r.lab_s, None)),
        number("Laboratory / log", ratio),
        text("", lambda r: Cell(r.answer, tone=_TONES[r.answer])),
    )


def files(rows: Sequence[Mapping[str, Any]]) -> Table:
    """A row a file whose searches were written."""
    return table(
        rows,
        text("File", lambda s: named(str(s["name"])), 2.0),
        text("Format", lambda s: Cell(str(s["format"]) or "not read")),
        number("Lines", lambda s: known(s["lines"], count)),
        number("Entries", lambda s: known(s["entries"], count)),
        number("Not read", lambda s: known(s["unread"], count)),
    )
