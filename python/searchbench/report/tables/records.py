"""The tables of two records: their speeds side by side, and what else differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from searchbench.analysis.compare import decision
from searchbench.analysis.compare.records import WITHIN
from searchbench.analysis.judgement import ClassLine, Estimate, RecordLine, SetupDifference
from searchbench.report.document.blocks import Cell, Table
from searchbench.report.document.text import line, short
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import NONE, named, number, of_estimate, table, text

_VALUE = 160  # letters of a setting


def lines(found: Sequence[RecordLine]) -> Table:
    """A row a treatment, by one metric; the ratio with the noise that it was held against."""
    tones: dict[str, Literal["good", "bad"]] = {"faster": "good", "slower": "bad"}

    def verdict(of: RecordLine) -> Cell:
        reason = line(
            of.reason.replace(WITHIN, "in these two runs; whether the change did it is unknown")
        )
        return Cell(of.verdict, below=reason, tone=tones.get(of.verdict, ""))

    def runs(of: RecordLine) -> Cell:
        if of.ratio is None:
            return NONE
        differ = "how much they differ is not known"
        each = [
            f"{which} differ by {numbers.digits(100 * sd, 2)} %"
            for which, sd in zip(("first", "second"), of.run_sds, strict=True)
            if sd is not None
        ]
        if each:
            differ = ", ".join(each)
        return Cell(f"{of.runs[0]} and {of.runs[1]}", below=differ)

    def floor(of: RecordLine) -> Cell:
        if of.run_sd is not None or of.floor <= 1 or of.ratio is None:
            return NONE
        return Cell(f"±{numbers.digits(100 * (of.floor - 1), 2)} %", repr(of.floor))

    return table(
        found,
        text("Treatment", lambda of: named(of.label), 2),
        number("First", lambda of: _rough(of.value_a), 1.3),
        number("Second", lambda of: _rough(of.value_b), 1.3),
        number(
            _direction(found), lambda of: _rough(of.ratio and replace(of.ratio, unit="ratio")), 1.3
        ),
        text("Verdict", verdict, 2),
        text("Runs", runs, 1.3),
        number("Noise floor", floor, when=any(floor(of) is not NONE for of in found)),
    )


def _rough(estimate: Estimate | None) -> Cell:
    """An estimate; where its interval is not one of 95 %, the cell says so."""
    cell = of_estimate(estimate)
    if estimate is None or not decision.is_rough(estimate) or not cell.below:
        return cell
    return replace(cell, below=f"{cell.below}, rough")


def _direction(found: Sequence[RecordLine]) -> str:
    """What a ratio is of, and which way: of times it is one of speeds, upside down."""
    kinds = {decision.as_good(of.metric) for of in found}
    of_what = (
        {"as fast": "Speed", "as much": "Rate"}.get(kinds.pop(), "") if len(kinds) == 1 else ""
    )
    return f"{of_what}, second over first" if of_what else "Second over first, more is better"


def by_class(found: Sequence[ClassLine]) -> Table:
    """The same with a row for each class."""
    made = lines([one.line for one in found])
    rows = tuple((named(one.name), *cells) for one, cells in zip(found, made.rows, strict=True))
    (column, _), *_ = text("Class", lambda row: row[0], 1.6)
    return Table((column, *made.columns), rows, "")


def setup(found: Sequence[SetupDifference]) -> Table:
    """What two records do not have in common."""

    def value(said: str) -> Cell:
        cut = short(said, _VALUE)
        return Cell(cut, "" if cut == line(said) else line(said))

    return table(
        found,
        text("What", lambda d: Cell(line(d.what).replace("_", " "), below=line(d.of)), 1.3),
        text("First", lambda d: value(d.a), 2),
        text("Second", lambda d: value(d.b), 2),
    )
