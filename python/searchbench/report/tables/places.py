"""A table of what every place was to be, what the kernel says that it is, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from searchbench.record import Trial
from searchbench.record.trial import Lever
from searchbench.report.document.blocks import Cell, Table
from searchbench.report.document.text import line
from searchbench.report.tables.cells import NONE, named, number, table, text

_Row = tuple[str, Sequence[Lever]]  # a treatment's label, and one lever in all of its trials


def levers(trials: Sequence[Trial], labels: Mapping[str, str]) -> Table | None:
    """A row for each lever of each treatment, in the order of the plan; None where there is none.

    What is read back and what came of it are of the first trial in which the lever did not take,
    else of the first of all.
    """
    of: dict[tuple[str, str], list[Lever]] = {}
    for trial in sorted(trials, key=lambda t: list(labels).index(t.treatment)):
        for lever in trial.place:
            of.setdefault((labels[trial.treatment], lever.name), []).append(lever)
    if not of:
        return None
    rows = [(label, found) for (label, _), found in of.items()]
    return table(
        rows,
        text("Treatment", lambda row: named(row[0]), 1.5),
        text("Lever", lambda row: Cell(line(row[1][0].name)), 2.0),
        text("Asked for", lambda row: Cell(line(_telling(row).asked)), 0.9),
        text("The system says", lambda row: _said(_telling(row).read_back), 1.4),
        text("What was seen", lambda row: _seen(_telling(row)), 2.4),
        number("Took", _took, 0.6),
    )


def _telling(row: _Row) -> Lever:
    return next((lever for lever in row[1] if lever.problem), row[1][0])


def _said(words: str) -> Cell:
    return Cell(line(words)) if words else NONE


def _seen(lever: Lever) -> Cell:
    return Cell(line(lever.problem), tone="bad") if lever.problem else _said(lever.effect)


def _took(row: _Row) -> Cell:
    took = sum(not lever.problem for lever in row[1])
    return Cell(f"{took} of {len(row[1])}", tone="" if took == len(row[1]) else "bad")
