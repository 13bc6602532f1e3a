"""Counts of a log → what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from searchbench.analysis.logs.bands import Bands, bands
from searchbench.analysis.logs.clock import Clock, clock_of
from searchbench.analysis.logs.groups import Groups
from searchbench.analysis.logs.minutes import Minutes
from searchbench.analysis.logs.model import Asked, LogJudgement, Row, Stepping
from searchbench.analysis.logs.remarks import remarks
from searchbench.analysis.logs.repeats import repeats
from searchbench.analysis.logs.spread import Spread, finest
from searchbench.logs.counts import Counts

_MOST = 50  # rows of a kind
_ASKED = 20  # queries of a list
_WORST = 10  # minutes
_SAME_STEP = 0.98  # how closely two servers show the step of one kind of clock
_WITHIN = (0.001, 0.01, 0.1, 0.5, 1.0, 10.0)
_BY = ("server", "index", "class", "user")
WITH_ERRORS = frozenset((
    "sphinxql", "access", "postgresql", "postgresql-csv", "postgresql-json", "groonga", "solr",
))  # fmt: skip
"""Formats that say which searches failed. Of those with named fields the user's columns decide."""
WITHOUT_ERRORS = frozenset(("sphinx", "mysql-slow", "mysql-general", "slowlog", "slowlog-json"))
"""Formats that never say it."""


def judge_log(
    counts: Counts,
    *,
    zone: str = "",
    sizes: Mapping[str, int] | None = None,
    new: Mapping[str, list[str]] | None = None,
) -> LogJudgement:
    """What counts say. ``sizes``: bytes of indexes by name; ``new``: met in this increment only."""
    resolution = resolution_ns(counts)
    groups = Groups.of(counts, resolution)
    servers = groups.rows_of("server")
    whole = groups.total(servers)
    clocks = _clocks(groups, servers)
    coarsest = max(clocks.values(), key=lambda clock: clock.step_ns, default=None)
    times = _known(groups.spread(servers), coarsest)
    minutes = Minutes.of(counts)
    first, last = minutes.span or (None, None)
    step = minutes.step_s()
    found = bands(times)
    dropped = counts.tables["dropped"]
    queries = counts.numbers("queries", "n")
    judged = LogJudgement(
        first,
        last,
        zone,
        groups.row("all", servers, whole) if whole["n"] else None,
        times,
        times.resolution_ns / 1e9 if whole["timed"] else None,
        times.below_resolution(),
        {s: times.share_within(s) for s in _WITHIN} if whole["timed"] else {},
        minutes.mean_rate,
        minutes.busiest,
        {kind: groups.by(kind, whole, _MOST) for kind in _BY},
        groups.sizes(dict(sizes or {}), whole),
        groups.words(whole),
        groups.total(groups.rows_of("part"))["n"],
        groups.total(groups.rows_of("other"))["n"],
        found,
        _in_bands(groups, found, times, coarsest),
        minutes.over(step),
        step,
        minutes.worst(_WORST),
        _asked(counts, "n"),
        _asked(counts, "sum_ns"),
        _asked(counts, "zero"),
        repeats(
            queries,
            int(counts.numbers("dropped", "dropped").sum()),
            int(counts.numbers("dropped", "below").sum()),
            dropped.column("registers")[0].as_py(),
            counts.numbers("queries", "errors"),
        ),
        _hits(counts),
        tuple(counts.sources),
        (),
        {kind: tuple(names) for kind, names in (new or {}).items()},
        tuple(Stepping(name, c.step_ns / 1e9, c.sure) for name, c in clocks.items()),
        minutes.worst_hour(),
    )
    judged = _without_errors(judged)
    return replace(judged, remarks=tuple(remarks(judged)))


def _without_errors(of: LogJudgement) -> LogJudgement:
    """No share of failed searches where no error is seen and a log would not have said so, nor
    where one of several logs never says so: what failed there is in no share.
    """

    def read(server: str | None) -> set[str]:
        return {
            str(s["format"]) for s in of.sources if s["entries"] and server in (None, s["server"])
        }

    def unknown(row: Row, server: str | None) -> bool:
        formats = read(server)
        return bool(formats & WITHOUT_ERRORS) or (not row.errors and not formats <= WITH_ERRORS)

    def known(rows: tuple[Row, ...], *, servers: bool = False) -> tuple[Row, ...]:
        return tuple(
            replace(row, errors=None) if unknown(row, row.name if servers else None) else row
            for row in rows
        )

    return replace(
        of,
        all=known((of.all,))[0] if of.all else None,
        by={kind: known(rows, servers=kind == "server") for kind, rows in of.by.items()},
        sizes=known(of.sizes),
        words=known(of.words),
    )


def resolution_ns(counts: Counts) -> int:
    """The finest difference of times that the logs can write, in nanoseconds."""
    values = counts.numbers("resolutions", "resolution_ns").tolist()
    n = dict(zip(values, counts.numbers("resolutions", "n").tolist(), strict=True))
    return finest(n, {str(s["format"]) for s in counts.sources if s["entries"]})


def _clocks(groups: Groups, servers: list[int]) -> dict[str, Clock]:
    """By server the clock that steps further than its log writes; "": one of all servers.

    What is not sure of one server is said only where all show the same. Servers with less than a
    hundredth of the times are not asked.
    """
    own = {groups.names[i]: groups.spread([i]) for i in servers}
    total = sum(times.count for times in own.values())
    asked = {name: times for name, times in own.items() if times.count * 100 >= total}
    found = {name: clock for name, times in asked.items() if (clock := clock_of(times))}
    steps = [clock.step_ns for clock in found.values()]
    if found and len(found) == len(asked) and min(steps) >= _SAME_STEP * max(steps):
        return {"": max(found.values(), key=lambda clock: (clock.sure, clock.step_ns))}
    found = {name: clock for name, clock in found.items() if clock.sure}
    if not found and len(own) > 1 and (clock := clock_of(groups.spread(servers))):
        return {"": clock}
    return found


def _known(times: Spread, clock: Clock | None) -> Spread:
    return times if clock is None else clock.seen(times)


def _asked(counts: Counts, by: str) -> tuple[Asked, ...]:
    """The queries with the most of a column; those with none of it are left out."""
    values = counts.numbers("queries", by)
    most = min(_ASKED, len(values))
    if not most:
        return ()
    least = np.partition(values, len(values) - most)[-most]
    more = np.flatnonzero(values > least)
    # Rows are in the order of their hashes.
    equal = np.flatnonzero((values == least) & (values > 0))[: most - len(more)]
    at = sorted((*more.tolist(), *equal.tolist()), key=lambda i: (-int(values[i]), i))
    table = counts.tables["queries"].take(np.array(at, np.int64)).to_pydict()
    return tuple(
        Asked(
            table["text"][i].decode("utf-8", errors="replace"),
            table["n"][i],
            table["sum_ns"][i] / 1e9,
            table["max_ns"][i] / 1e9,
            table["zero"][i],
            table["errors"][i],
            table["first"][i] * 60 if table["first"][i] < 2**32 - 1 else None,
        )
        for i in range(len(at))
    )


def _hits(counts: Counts) -> tuple[tuple[str, int], ...]:
    n = counts.numbers("hits", "n")
    found = []
    for i, count in enumerate(n):
        if count:
            low, high = (0, 0) if i == 0 else (2 ** (i - 1), 2**i - 1)
            found.append((f"{low:,}" if low == high else f"{low:,}–{high:,}", int(count)))
    return tuple(found)


def _in_bands(
    groups: Groups, found: Bands, times: Spread, clock: Clock | None
) -> tuple[tuple[str, ...], ...]:
    """Of each band what is over-represented in it: at least half as often again, and 5 % of it."""
    said = []
    for band in found.bands:
        # An edge comes out of a logarithm, and may be a hair off what lies on it.
        low, high = band.low_s * 1e9 * (1 - 1e-9), band.high_s * 1e9 * (1 - 1e-9)
        inside = float(times.n[(times.low >= low) & (times.low < high)].sum())
        over: list[tuple[float, str]] = []
        for kind in ("class", "index", "words"):
            for i in groups.rows_of(kind):
                own = _known(groups.spread([i]), clock)
                here = float(own.n[(own.low >= low) & (own.low < high)].sum())
                expected = own.count / max(1, times.count) * inside
                if here >= 0.05 * inside and here >= 1.5 * expected and here > 20:
                    name = f"{groups.names[i]} words" if kind == "words" else groups.names[i]
                    told = f"{100 * here / inside:.0f} % of it, {here / expected:.1f}× its share"
                    over.append((here / inside, f"{name or '(none)'}: {told}"))
        said.append(tuple(text for _, text in sorted(over, reverse=True)[:3]))
    return tuple(said)


def rows_as_json(rows: tuple[Row, ...]) -> list[dict[str, Any]]:
    """Rows with their quantiles beside the other figures."""
    return [
        {
            "name": row.name, "n": row.n, "share": row.share, "share_of_time": row.share_of_time,
            **{f"{q}_s": v for q, v in row.quantiles_s.items()}, "max_s": row.max_s,
            "zero": row.zero, "mean_hits": row.mean_hits, "errors": row.errors,
            "partial": row.partial, "cached": row.cached, "cpu_ms": row.cpu_ms, "ios": row.ios,
        }
        for row in rows
    ]  # fmt: skip
