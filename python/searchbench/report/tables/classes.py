"""Tables by class of queries: what each met, who is faster for which, how far answers agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from searchbench.analysis.judgement import Agreement, ClassComparison, ClassSeen
from searchbench.report.document.blocks import Cell, Table
from searchbench.report.document.text import line, short
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import (
    NAME,
    NONE,
    named,
    number,
    of_estimate,
    share,
    table,
    text,
)
from searchbench.report.tables.study import comparisons

Row = tuple[str, ClassSeen]  # a treatment or a step, and what a class met in it


def seen(found: Sequence[Row], what: str) -> Table:
    """A row for each class of each treatment or step; ``what``: how that column is headed."""
    failing = any(
        (e := one.figures.get("error_share")) is not None and e.value > 0 for _, one in found
    )

    def figure(name: str, row: Row) -> Cell:
        estimate = row[1].figures.get(name)
        return NONE if estimate is None else of_estimate(estimate)

    return table(
        found,
        text(what, lambda r: named(r[0]), 2),
        text("Class", lambda r: named(r[1].name), 2),
        number("Of all requests", lambda r: _share(r[1])),
        number("Answered", partial(figure, "throughput")),
        *(
            number(f"{kind.capitalize()} {q}", partial(figure, f"{kind}_{q}"))
            for kind in ("response", "service")
            for q in ("p50", "p99")
        ),
        number("Errors", partial(figure, "error_share"), when=failing),
        source="classes.csv",
    )


def compared(found: Sequence[ClassComparison], labels: Mapping[str, str]) -> Table:
    """A row for each comparison over one class, as those over all queries are shown."""
    made = comparisons([one.compared for one in found], labels)
    rows = tuple((named(one.name), *cells) for one, cells in zip(found, made.rows, strict=True))
    (column, _), *_ = text("Class", lambda row: row[0], 1.6)
    return Table((column, *made.columns), rows, "")


def agreement(found: Sequence[Agreement]) -> Table:
    """A row for each pair and class: on how many of its queries both answer alike."""
    rows = [(a, name, counts) for a in found for name, counts in a.by_class.items()]
    return table(
        rows,
        text("Pair", lambda r: _pair(r[0]), 2.4),
        text("Class", lambda r: named(r[1]), 2),
        number("Queries", lambda r: Cell(numbers.count(r[2][1]))),
        number("Answered alike", lambda r: share(r[2][0] / r[2][1]) if r[2][1] else NONE),
    )


def _pair(found: Agreement) -> Cell:
    second = short(found.label_b or found.b, NAME)
    return Cell(short(line(found.label_a or found.a), NAME), below=f"and {second}")


def _share(found: ClassSeen) -> Cell:
    estimate = found.figures.get("share")
    if estimate is None:
        return NONE
    count = numbers.counted(found.requests, "request")
    return Cell(numbers.percent(estimate.value), numbers.exact(estimate), count)
