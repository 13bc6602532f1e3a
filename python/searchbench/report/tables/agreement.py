"""The tables about agreement: all pairs, one pair by its measures, one query side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from searchbench.analysis.judgement import Agreement, Difference, GroupAgreement
from searchbench.report.document.blocks import Cell, Table
from searchbench.report.document.text import line, short
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import NAME, NONE, known, number, share, table, text


def agreement(found: Sequence[Agreement], labels: Mapping[str, str]) -> Table:
    """A row a pair: the shares of queries on which both return the same."""

    def pair(a: Agreement) -> Cell:
        first, second = a.label_a or labels.get(a.a, a.a), a.label_b or labels.get(a.b, a.b)
        return Cell(short(first, NAME), below="and " + short(second, NAME))

    def order(a: Agreement) -> Cell:
        none = f"{numbers.count(a.without_order)} have no order" if a.without_order else ""
        return replace(_hits_same(a.top_k_order_match), below=none)

    def causes(a: Agreement) -> Cell:
        most = sorted(a.causes.items(), key=lambda item: -item[1])
        return Cell(", ".join(f"{line(c)} {n:,}" for c, n in most) or "none")

    # The least alike first, by what a reader sees at once: totals or first hits.
    likeness = [
        min(a.totals_match, 1.0 if a.top_k_set_match is None else a.top_k_set_match) for a in found
    ]
    telling = tuple(sorted(range(len(found)), key=lambda i: likeness[i]))
    made = table(
        found,
        text("Pair", pair, 2.6),
        number("Queries", lambda a: Cell(numbers.count(a.queries))),
        number("Same total", lambda a: _whole(a.totals_match)),
        number("Without hits", lambda a: Cell(numbers.count(a.without_hits))),
        number(
            f"Same top {max((a.k for a in found), default=10)}",
            lambda a: _hits_same(a.top_k_set_match),
        ),
        number("Same order", order),
        number("RBO by rank", lambda a: known(a.rbo_mean, "{:.3f}".format)),
        number("Cannot express", lambda a: _both(a.unsupported_a, a.unsupported_b), 1.2),
        number("Errors", lambda a: _both(a.errors_a, a.errors_b)),
        text("Causes of difference", causes, 2),
        source="agreement.csv",
    )
    return replace(made, telling=telling, printed_first="the least alike")


MATCHES = {
    "Total results match": "total_results_match",
    "Total found match": "total_found_match",
    "Top 10 match": "top_10_match",
    "Document set match": "document_set_match",
    "Document groups match": "document_groups_match",
}


def measures(groups: GroupAgreement) -> Table:
    """One pair by the measures of the Sphinx comparison study, under its names.

    A row a measure: how many, of how many, and as per cent.
    """
    rows = [_matching(title, *getattr(groups, name)) for title, name in MATCHES.items()]
    rows.append(_matching("Document mismatch", *groups.document_mismatch, unit="document"))
    most, median = groups.max_mismatch, groups.median_mismatch
    medians = f"{median:,g} {'document' if median == 1 else 'documents'}"
    sizes = [*groups.distribution.items(), ("above 10", groups.above_10)]
    spread = ", ".join(f"{size}: {numbers.count(n)}" for size, n in sizes if n)
    distribution = Cell("Mismatch distribution", below="mismatches of a query: queries")
    tau = Cell("no query has two documents of both in an order")
    if groups.kendall_tau is not None:
        mean = f"mean {groups.kendall_tau:.4f}".replace("-", "−")
        over = numbers.counted(groups.kendall_queries, "query", "queries")
        tau = Cell(f"{mean}, over {over}", repr(groups.kendall_tau))
    rows += [
        (Cell("Max mismatch"), Cell(f"{numbers.counted(most, 'document')} of a query"), NONE),
        (Cell("Median mismatch"), Cell(f"{medians}, of queries that have any"), NONE),
        (distribution, Cell(spread or "none"), NONE),
        (Cell("Kendall's tau-b"), tau, NONE),
    ]
    if groups.score_difference_mean is not None and groups.score_difference_max is not None:
        ends = groups.score_difference_mean, groups.score_difference_max
        mean, worst = (f"{value:.3g}" for value in ends)
        of = numbers.counted(groups.score_documents, "document")
        said = Cell(f"mean {mean}, greatest {worst}, of {of}", f"{ends[0]!r}, {ends[1]!r}")
        rows.append((Cell("Score difference"), said, NONE))
    return table(
        rows,
        text("Measure", lambda row: row[0], 2),
        text("Count", lambda row: row[1], 3),
        number("Share", lambda row: row[2]),
    )


def side_by_side(difference: Difference, a: str, b: str) -> Table:
    """The hits of one query from two systems, rank by rank; a hit the other lacks is marked."""
    hits_a, hits_b = difference.hits_a, difference.hits_b
    total_a, total_b = difference.total_a, difference.total_b
    rows = [(Cell("total"), *_total(total_a, total_b), *_total(total_b, total_a))]
    for i in range(max(len(hits_a), len(hits_b))):
        left = _hit(hits_a, i, dict(hits_b), difference.titles)
        right = _hit(hits_b, i, dict(hits_a), difference.titles)
        rows.append((Cell(str(i + 1)), *left, *right))
    return table(
        rows,
        number("Rank", lambda row: row[0], 0.4),
        text(short(a, NAME), lambda row: row[1], 2),
        number("Score", lambda row: row[2], 0.7),
        text(short(b, NAME), lambda row: row[3], 2),
        number("Score", lambda row: row[4], 0.7),
    )


def _whole(matching: float) -> Cell:
    return replace(share(matching), tone="" if matching >= 1 else "bad")


def _hits_same(matching: float | None) -> Cell:
    """A share of the queries that list hits; "–" where none does."""
    return NONE if matching is None else _whole(matching)


def _both(a: int, b: int) -> Cell:
    return Cell("none") if not a and not b else Cell(f"{a:,} and {b:,}", tone="bad")


def _matching(title: str, count: int, of: int, unit: str = "query") -> tuple[Cell, Cell, Cell]:
    many = "queries" if unit == "query" else f"{unit}s"
    if not of:
        return Cell(title), Cell(f"no {many} to count"), NONE
    good = count == (of if unit == "query" else 0)
    said = f"{numbers.count(count)} of {numbers.counted(of, unit, many)}"
    return Cell(title), Cell(said), replace(share(count / of), tone="" if good else "bad")


def _total(this: int | None, other: int | None) -> tuple[Cell, Cell]:
    said = "not reported" if this is None else numbers.counted(this, "match", "matches")
    return Cell(said, tone="" if this == other else "bad"), Cell("")


def _hit(
    hits: Sequence[tuple[str, float | None]],
    rank: int,
    others: Mapping[str, Any],
    titles: Mapping[str, str],
) -> tuple[Cell, Cell]:
    """The id with its title below it, and the score."""
    if rank >= len(hits):
        return Cell(""), Cell("")
    name, score = hits[rank]
    title = short(titles.get(name, ""), 120)
    cell = Cell(short(name, 120), below=title, tone="" if name in others else "bad")
    return cell, known(score, "{:.4g}".format)
