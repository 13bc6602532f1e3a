"""The table of one pair by the measures of the Sphinx comparison study, under its names."""

from __future__ import annotations

from searchbench.analysis.judgement import GroupAgreement
from searchbench.report.document.blocks import Cell, Column, Table
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import NONE

MATCHES = {
    "Total results match": "total_results_match",
    "Total found match": "total_found_match",
    "Top 10 match": "top_10_match",
    "Document set match": "document_set_match",
    "Document groups match": "document_groups_match",
}


def measures(groups: GroupAgreement) -> Table:
    """A row a measure: how many, of how many, and as per cent."""
    columns = (
        Column("Measure", weight=2),
        Column("Count", weight=3),
        Column("Share", number=True),
    )
    rows = [_counted(title, *getattr(groups, name)) for title, name in MATCHES.items()]
    rows.append(_counted("Document mismatch", *groups.document_mismatch, unit="document"))
    most, median = groups.max_mismatch, groups.median_mismatch
    rows.append(
        (Cell("Max mismatch"), Cell(f"{numbers.counted(most, 'document')} of a query"), NONE)
    )
    rows.append((
        Cell("Median mismatch"),
        Cell(f"{median:,g} {'document' if median == 1 else 'documents'}, of queries that have any"),
        NONE,
    ))  # fmt: skip
    sizes = [(size, n) for size, n in groups.distribution.items() if n]
    sizes += [("above 10", groups.above_10)] if groups.above_10 else []
    spread = ", ".join(f"{size}: {numbers.count(n)}" for size, n in sizes)
    distribution = Cell("Mismatch distribution", below="mismatches of a query: queries")
    rows.append((distribution, Cell(spread or "none"), NONE))
    rows.append(_tau(groups))
    if groups.score_difference_mean is not None and groups.score_difference_max is not None:
        mean, worst = groups.score_difference_mean, groups.score_difference_max
        text = f"mean {_score(mean)}, greatest {_score(worst)}, of "
        text += numbers.counted(groups.score_documents, "document")
        rows.append((Cell("Score difference"), Cell(text, f"{mean!r}, {worst!r}"), NONE))
    return Table(columns, tuple(rows))


def _counted(title: str, count: int, of: int, unit: str = "query") -> tuple[Cell, Cell, Cell]:
    many = "queries" if unit == "query" else f"{unit}s"
    if not of:
        return Cell(title), Cell(f"no {many} to count"), NONE
    share = count / of
    good = share == (1 if unit == "query" else 0)
    text = f"{numbers.count(count)} of {numbers.counted(of, unit, many)}"
    return (
        Cell(title),
        Cell(text),
        Cell(numbers.percent(share), repr(share), tone="" if good else "bad"),
    )


def _tau(groups: GroupAgreement) -> tuple[Cell, Cell, Cell]:
    title = Cell("Kendall's tau-b")
    if groups.kendall_tau is None:
        return title, Cell("no query has two documents of both in an order"), NONE
    text = f"mean {groups.kendall_tau:.4f}".replace("-", "−")
    over = numbers.counted(groups.kendall_queries, "query", "queries")
    return title, Cell(f"{text}, over {over}", repr(groups.kendall_tau)), NONE


def _score(value: float) -> str:
    return "0" if value == 0 else f"{value:.3g}"
