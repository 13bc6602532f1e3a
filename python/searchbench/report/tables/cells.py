"""Tables from rows, and their cells: an estimate, a number, a label, an absence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.words import of_job, told
from searchbench.report.document.blocks import Cell, Column, Span, Table
from searchbench.report.document.text import line, short
from searchbench.report.tables import numbers

NONE = Cell("–", tone="quiet")
NAME = 90  # letters of a name in a table; the details have it whole
Made = tuple[Column, Callable[[Any], Cell]]

# What the names of figures mean to a reader; a name not here is shown with its dashes as spaces.
TITLES = {
    "throughput": "Throughput",
    "error_share": "Errors",
    "cpu_s_per_query": "CPU per query",
    "requests_per_query": "Requests per distinct query",
    "server_cores": "Cores in use",
    "client_cpu_share": "Client CPU",
    "peak_memory_bytes": "Peak memory",
    "read_bytes": "Read from disk",
    "write_bytes": "Written to disk",
    "jvm_compilers_s": "JVM: compiling",
    "jvm_collectors_s": "JVM: garbage collection",
    "index_bytes": "Index",
    "ingest_s": "Ingest",
    "ingest_documents_per_s": "Ingest speed",
}


def text(
    title: str, cell: Callable[[Any], Cell], weight: float = 1.0, *, when: bool = True
) -> list[Made]:
    """A column: its heading, and what makes its cell of a row. Not ``when`` false: no column."""
    return [(Column(title, weight=weight), cell)] if when else []


def number(
    title: str, cell: Callable[[Any], Cell], weight: float = 1.0, *, when: bool = True
) -> list[Made]:
    """Like ``text``, set flush right."""
    return [(Column(title, number=True, weight=weight), cell)] if when else []


def table(rows: Iterable[Any], *columns: list[Made], source: str = "") -> Table:
    """A row of cells for each of ``rows``; ``source``: the file that has them all."""
    made = [one for several in columns for one in several]
    cells = tuple(tuple(cell(row) for _, cell in made) for row in rows)
    return Table(tuple(column for column, _ in made), cells, source)


def title_of(name: str) -> str:
    """The name of a figure as a heading: service_p99 is "Service p99"."""
    if name in TITLES:
        return TITLES[name]
    if job := of_job(name):
        return f"Time of {job}"
    head, _, tail = name.partition("_p")
    if head in ("service", "response", "host", "backlog") and tail.isdigit():
        digits = tail[:2] + ("." + tail[2:] if len(tail) > 2 else "")
        return f"{head.capitalize()} p{digits}"
    words = line(name).replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def named(label: str) -> Cell:
    """The name of a treatment; cut if it would fill the table."""
    whole = line(label)
    cut = short(whole, NAME)
    return Cell(cut, "" if cut == whole else whole)


def known(value: float | None, said: Callable[[Any], str]) -> Cell:
    """A number as ``said`` for people, with all its digits behind it; "–" where it is absent."""
    return NONE if value is None else Cell(said(value), repr(value))


def share(value: float | None) -> Cell:
    """A share as per cent."""
    return known(value, numbers.percent)


def of_estimate(
    estimate: Estimate | None, span: Span | None = None, *, most: float = math.inf
) -> Cell:
    """An estimate with its interval below; one that ends above ``most``, the greatest that is
    possible, is not known.
    """
    if estimate is None:
        return NONE
    value, unit, below = estimate.value, estimate.unit, ""
    if estimate.interval:
        below = numbers.between(estimate.interval, unit, value)
        if estimate.interval.high > most:
            below = numbers.NOT_KNOWN
    said = numbers.human(value, unit)
    if below == said:
        below = ""  # it rounds to the value itself; the exact one has it all
    if unit == "share":
        said = numbers.percent(value)
    return Cell(said, numbers.exact(estimate), below, span)


def bars(estimates: Sequence[Estimate | None]) -> Callable[[Estimate | None], Span | None]:
    """Where an estimate stands on a scale from nought to the greatest end of an interval of all."""

    def span(e: Estimate) -> Interval | None:
        return e.interval if e.interval and (told(e.interval) or e.unit == "share") else None

    top = max((i.high if (i := span(e)) else e.value for e in estimates if e), default=0)

    def placed(e: Estimate | None) -> Span | None:
        if e is None or top <= 0:
            return None
        ends = (max(0.0, i.low / top), i.high / top) if (i := span(e)) else ()
        return Span(max(0.0, e.value / top), *ends)

    return placed
