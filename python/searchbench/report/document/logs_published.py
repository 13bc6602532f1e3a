"""A section of the page of a log: what was published of such a log, beside what this one has."""

from __future__ import annotations

from searchbench.analysis.logs.model import LogJudgement, Statement
from searchbench.report.document.blocks import Cell, Section, Text
from searchbench.report.document.text import line
from searchbench.report.tables.cells import table, text

_HOW = (
    "Numbers are the same if they are as close as the published one was given, shares within half "
    "a percent, bands within a quarter of a decade. Words and sizes of indexes are compared by the "
    "p95 of their searches, whose intervals (95 % for all together, as if searches did not depend "
    "on each other) must not touch."
)


def section(of: LogJudgement) -> Section | None:
    """A table of the statements; None where none was given."""
    if of.published is None:
        return None
    said = of.published.statements
    counted = [(v, sum(s.verdict == v for s in said)) for v in dict.fromkeys(
        s.verdict for s in said)]  # fmt: skip
    summary = ", ".join(f"{n} {verdict}" for verdict, n in counted)
    made = table(
        said,
        text("Statement", lambda s: Cell(line(s.what)), 1.2),
        text("Published", lambda s: Cell(line(s.published)), 1.2),
        text("Here", lambda s: Cell(line(s.here)), 2.4),
        text("Verdict", _verdict, 2.0),
    )
    first = Text(f"{line(of.published.title)}. Of {len(said)} statements: {summary}.")
    return Section("published", "What was published", (first, made, Text(_HOW, "quiet")),
                   "Published")  # fmt: skip


def _verdict(of: Statement) -> Cell:
    tone = {"the same": "good", "differs": "bad"}.get(of.verdict, "quiet")
    return Cell(of.verdict, below=line(of.why), tone=tone)  # type: ignore[arg-type]
