"""Tables of a log: groups of searches, queries, minutes, caches, files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePath

from searchbench.analysis.logs.model import Asked, LogJudgement, Moment, Row
from searchbench.analysis.logs.remarks import hits_of_all, seconds
from searchbench.analysis.logs.repeats import Repeats
from searchbench.analysis.logs.tenths import Tenth, limits
from searchbench.report.document.blocks import Cell, Table
from searchbench.report.document.text import line, short
from searchbench.report.tables.cells import NONE, known, number, share, table, text
from searchbench.report.tables.numbers import count, digits

_BRIEF = 60  # letters of a query beside figures that are read
_NAME, _WHOLE = 160, 400  # letters of a query or a class, and of what stands behind a cut one


def moment(at_s: int) -> str:
    """A time for people, to the minute."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M")


def groups(title: str, rows: Sequence[Row], of: LogJudgement) -> Table:
    """A row a group."""

    def time(name: str) -> Callable[[Row], Cell]:
        def cell(row: Row) -> Cell:
            value = row.max_s if name == "max" else row.quantiles_s.get(name)
            if value is None:
                return NONE
            return Cell(seconds(value, row.resolution_s or of.resolution_s), f"{value!r} s")

        return cell

    timed = any(row.quantiles_s for row in rows)
    return table(
        rows,
        text(title, lambda r: _named(r.name), 3.0),
        number("Searches", lambda r: known(r.n, count)),
        number("Share", lambda r: share(r.share)),
        number("Of all time", lambda r: share(r.share_of_time), when=timed),
        *(number(name, time(name), when=timed) for name in ("p50", "p95", "p99")),
        number("Longest", time("max"), when=timed),
        number("No hits", _no_hits, when=any(r.zero is not None for r in rows)),
        number("Failed", lambda r: share(r.errors), when=any(r.errors for r in rows)),
        number("In part", lambda r: share(r.partial), when=any(r.partial for r in rows)),
        number("From cache", lambda r: share(r.cached), when=any(r.cached for r in rows)),
        number("CPU ms", lambda r: known(r.cpu_ms, digits), when=any(r.cpu_ms for r in rows)),
        number("Reads", lambda r: known(r.ios, digits), when=any(r.ios for r in rows)),
    )


def _no_hits(row: Row) -> Cell:
    """The share, with of how many searches it is, where the log has the hits of a part."""
    found = share(row.zero)
    if row.zero is None or hits_of_all(row):
        return found
    return replace(found, below=f"of {count(row.hits_known)}")


def tenths_of(rows: Sequence[Tenth], resolution_s: float | None) -> Table:
    """A row a tenth of a decade of times."""

    def span(one: Tenth) -> Cell:
        if one.below:
            return Cell(f"below {seconds(resolution_s)}")
        return Cell(f"{seconds(one.low_s)} to {seconds(one.high_s)}")

    return table(
        rows,
        text("Time", span),
        number("Searches", lambda t: known(round(t.n), count)),
        number("Share", lambda t: share(t.share)),
        number("Share within", lambda t: share(t.within)),
    )


def within(title: str, rows: Sequence[Row]) -> Table:
    """A row a group: the share of its searches that surely took no longer than some times."""
    spreads = [row.times for row in rows if row.times is not None and row.times.count]

    def of(limit: float) -> Callable[[Row], Cell]:
        return lambda r: share(r.times.share_within(limit) if r.times and r.times.count else None)

    return table(
        rows,
        text(title, lambda r: Cell(short(r.name, _NAME) or "(none)"), 3.0),
        number("Searches", lambda r: known(r.n, count)),
        *(number(f"≤ {seconds(limit)}", of(limit)) for limit in limits(spreads)),
    )


def served(of: LogJudgement) -> Table:
    """What was asked beside what agents and shards did for it, and these by their index."""
    found = [(of.all, "As asked: searches"), (of.served, "As served: parts")]
    rows = [replace(row, name=name) for row, name in found if row is not None]
    if len(of.served_by) > 1:
        rows += [replace(row, name=f"of these on {row.name or '(none)'}") for row in of.served_by]

    def time(name: str) -> Callable[[Row], Cell]:
        return lambda r: known(r.quantiles_s.get(name), lambda v: seconds(v, of.resolution_s))

    return table(
        rows,
        text("", lambda r: _named(r.name), 3.0),
        number("Entries", lambda r: known(r.n, count)),
        *(number(name, time(name)) for name in ("p50", "p95", "p99")),
        number("Longest", lambda r: known(r.max_s, lambda v: seconds(v, of.resolution_s))),
        number("CPU ms", lambda r: known(r.cpu_ms, digits), when=any(r.cpu_ms for r in rows)),
        number("Reads", lambda r: known(r.ios, digits), when=any(r.ios for r in rows)),
    )


def over(rows: Sequence[Moment], step_s: int) -> Table:
    """A row a stretch of the log's time."""

    def time(value: float | None) -> Cell:
        return known(value, seconds)

    timed = any(m.mean_s is not None for m in rows)
    return table(
        rows,
        text("From", lambda m: Cell(moment(m.at_s)), 1.4),
        number("Searches", lambda m: known(m.n, count)),
        number("A second", lambda m: known(m.n / step_s, digits)),
        number("Mean", lambda m: time(m.mean_s), when=timed),
        number("p95 of the worst minute, at most", lambda m: time(m.p95_at_most_s), when=timed),
        number("Longest", lambda m: time(m.max_s), when=timed),
        number("No hits", lambda m: known(m.zero, count), when=any(m.zero for m in rows)),
        number("Failed", lambda m: known(m.errors, count), when=any(m.errors for m in rows)),
    )


def _named(name: str, most: int = _NAME) -> Cell:
    whole = line(name) or "(none)"
    cut = short(whole, most)
    return Cell(cut, "" if cut == whole else short(whole, _WHOLE))


def asked(rows: Sequence[Asked], *, timed: bool) -> Table:
    """A row a query. Where indexes differ in number, of how many each was asked."""
    return table(
        rows,
        text("Query", lambda a: _named(a.text), 4.0),
        number("Times", lambda a: known(a.n, count)),
        number("In all", lambda a: Cell(seconds(a.total_s), repr(a.total_s)), when=timed),
        number("Longest", lambda a: Cell(seconds(a.max_s), repr(a.max_s)), when=timed),
        number("Indexes", lambda a: known(a.indexes, count), when=any(a.indexes > 1 for a in rows)),
        number("No hits", lambda a: known(a.zero, count)),
        number("Failed", lambda a: known(a.errors, count), when=any(a.errors for a in rows)),
        text("First", lambda a: NONE if a.first_s is None else Cell(moment(a.first_s))),
    )


def minutes(rows: Sequence[Moment]) -> Table:
    """A row a minute, with the search that took longest in it."""
    return table(
        rows,
        text("Minute", lambda m: Cell(moment(m.at_s)), 1.2),
        number("Searches", lambda m: known(m.n, count)),
        number("In all", lambda m: known(_waited(m), seconds)),
        number("Mean", lambda m: Cell(seconds(m.mean_s))),
        number("p95 at most", lambda m: Cell(seconds(m.p95_at_most_s))),
        number("Longest", lambda m: Cell(seconds(m.max_s))),
        text("The longest was", lambda m: _named(m.slowest, _BRIEF), 3.0),
    )


def _waited(of: Moment) -> float | None:
    """How long the searches of a minute took together, as far as the log has their times."""
    return None if of.mean_s is None else of.mean_s * of.timed


def caches(of: Repeats) -> Table:
    """A row a size of cache."""
    return table(
        of.caches,
        number("Answers kept", lambda c: known(c.entries, count)),
        number("Saved by LRU, in random order", lambda c: share(c.lru)),
        number("Saved by those asked most", lambda c: share(c.best)),
    )


def files(rows: Sequence[Mapping[str, object]]) -> Table:
    """A row a file that was read."""
    return table(
        rows,
        text("File", lambda s: _named(PurePath(str(s["path"])).name), 2.0),
        text("Format", lambda s: Cell(str(s["format"]) or "not read")),
        text("Server", lambda s: _named(str(s["server"]))),
        number("Lines", lambda s: known(s["lines"], count)),
        number("Entries", lambda s: known(s["entries"], count)),
        number("Not read", lambda s: known(s["unread"], count)),
    )
