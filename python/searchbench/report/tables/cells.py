"""Cells of tables: an estimate, a figure without interval, a label, an absence with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from searchbench.analysis.judgement import Estimate
from searchbench.report.document.blocks import Cell, Span
from searchbench.report.document.text import line, short
from searchbench.report.tables import numbers

NONE = Cell("–", tone="quiet")
NAME = 90  # letters of a name in a table; the details have it whole

# What the names of figures mean to a reader; a name not here is shown with its dashes as spaces.
TITLES = {
    "throughput": "Throughput",
    "offered": "Offered load",
    "error_share": "Errors",
    "server_cpu_s": "Server CPU",
    "server_cpu_per_query": "CPU per query",
    "cpu_per_query_s": "CPU per query",
    "server_cpu_s_per_query": "CPU per query",
    "server_cores": "Cores in use",
    "cpu_s_per_query": "CPU per query",
    "client_cpu_share": "Client CPU",
    "client_cpu_per_query_s": "Client CPU per query",
    "peak_rss_bytes": "Peak memory",
    "read_bytes": "Read from disk",
    "write_bytes": "Written to disk",
    "read_bytes_per_s": "Read from disk",
    "write_bytes_per_s": "Written to disk",
    "read_bytes_per_query": "Read per query",
    "write_bytes_per_query": "Written per query",
    "index_bytes": "Index",
    "index_share": "Index to text",
    "index_bytes_per_text_byte": "Index to text",
    "ingest_s": "Ingest",
    "settle_s": "Settle",
    "ingest_documents_per_s": "Ingest speed",
    "documents_per_s": "Ingest speed",
    "ingest_bytes_per_s": "Ingest speed, text",
    "ingest_text_bytes_per_s": "Ingest speed, text",
}


def title_of(name: str) -> str:
    """The name of a figure as a heading: service_p99 is "Service p99"."""
    if name in TITLES:
        return TITLES[name]
    head, _, tail = name.partition("_p")
    if head in ("service", "response", "host", "backlog") and tail.isdigit():
        digits = tail[:2] + ("." + tail[2:] if len(tail) > 2 else "")
        return f"{head.capitalize()} p{digits}"
    words = line(name).replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def unit_of(name: str) -> str:
    """The unit of a bare number, from the ending of its name."""
    endings = (
        ("bytes_per_s", "bytes/s"),
        ("_per_s", "1/s"),
        ("_bytes", "bytes"),
        ("bytes_per_query", "bytes"),
        ("_share", "share"),
        ("_s", "s"),
        ("_s_per_query", "s"),
        ("_ratio", "ratio"),
    )
    return next((unit for ending, unit in endings if name.endswith(ending)), "")


def named(label: str) -> Cell:
    """The name of a treatment; cut if it would fill the table."""
    whole = line(label)
    cut = short(whole, NAME)
    return Cell(cut, "" if cut == whole else whole)


def of_estimate(estimate: Estimate | None, span: Span | None = None) -> Cell:
    """An estimate with its interval below."""
    if estimate is None:
        return NONE
    below = ""
    if estimate.interval:
        below = numbers.between(estimate.interval, estimate.unit, estimate.value)
    text = numbers.human(estimate.value, estimate.unit)
    if below == text:
        below = ""  # it rounds to the value itself; the exact one has it all
    if estimate.unit == "share":
        text = numbers.percent(estimate.value)
    return Cell(text, numbers.exact(estimate), below, span)


def of_value(name: str, value: Any) -> Cell:
    """Whatever a mapping holds: an estimate, a number (its unit from its name), or text."""
    if value is None:
        return NONE
    if isinstance(value, Estimate):
        return of_estimate(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Cell(line(str(value)))
    unit = unit_of(name)
    if not unit and isinstance(value, int):
        return Cell(numbers.count(value))
    text = numbers.percent(value) if unit == "share" else numbers.human(value, unit)
    return Cell(text, f"{value!r} {unit}".strip())


def spans(estimates: Sequence[Estimate | None]) -> list[Span | None]:
    """Where estimates stand on a common scale from nought to the largest end of an interval."""
    top = max((e.interval.high if e.interval else e.value for e in estimates if e), default=0)
    if top <= 0:
        return [None] * len(estimates)
    placed: list[Span | None] = []
    for e in estimates:
        if e is None:
            placed.append(None)
        elif e.interval:
            low, high = max(0.0, e.interval.low / top), e.interval.high / top
            placed.append(Span(max(0.0, e.value / top), low, high))
        else:
            placed.append(Span(max(0.0, e.value / top)))
    return placed


def quantile_at(curve_x: Iterable[float], quantile: float) -> int | None:
    """The index of ``quantile`` on a curve; None where it is absent for want of samples."""
    for i, x in enumerate(curve_x):
        if abs(x - quantile) < 1e-9:
            return i
    return None
