"""Counts of a log → what is said of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from searchbench.analysis.logs.asked import asked
from searchbench.analysis.logs.bands import bands
from searchbench.analysis.logs.clock import Clock, clock_of
from searchbench.analysis.logs.finer import finer, share_within
from searchbench.analysis.logs.groups import Groups
from searchbench.analysis.logs.headline import headline
from searchbench.analysis.logs.minutes import Minutes
from searchbench.analysis.logs.model import Beside, LogJudgement, Row, Stepping
from searchbench.analysis.logs.over import in_bands
from searchbench.analysis.logs.published import beside
from searchbench.analysis.logs.remarks import remarks
from searchbench.analysis.logs.repeats import repeats
from searchbench.analysis.logs.spread import Spread, finest
from searchbench.logs.counts import OTHERS, Counts
from searchbench.logs.within import Within
from searchbench.study.published import Published

_MOST = 50  # rows of a kind
_WORST = 10  # minutes
_ENOUGH = 100  # times of a server, to see how finely it writes them
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
    zones: Sequence[tuple[str, str]] = (),
    sizes: Mapping[str, int] | None = None,
    new: Mapping[str, list[str]] | None = None,
    published: Published | None = None,
    within: Within | None = None,
) -> LogJudgement:
    """What counts say. ``zones``: those of single servers, by name; ``sizes``: bytes of indexes by
    name; ``new``: met in this increment only; ``published``: what somebody said of such a log;
    ``within``: of which time they are; None: of all.
    """
    resolution = resolution_ns(counts)
    groups = Groups.of(counts, resolution, resolutions_ns(counts))
    servers = groups.rows_of("server")
    whole = groups.total(servers)
    clocks = _clocks(groups, servers)
    coarsest = max(clocks.values(), key=lambda clock: clock.step_ns, default=None)
    times = _known(groups.spread(servers), coarsest)
    groups = replace(groups, clock=coarsest, clocks=clocks)
    each = {groups.names[i]: groups.known(i) for i in servers}
    parts = groups.rows_of("part")
    of_parts = groups.total(parts)
    minutes = Minutes.of(counts)
    first, last = minutes.span or (None, None)
    step = minutes.step_s()
    found = bands(times)
    dropped = counts.tables["dropped"]
    queries = counts.numbers("queries", "n")
    most, longest, without_hits = asked(counts, ("n", "sum_ns", "zero"))
    judged = LogJudgement(
        first,
        last,
        zone,
        groups.row("all", servers, whole) if whole["n"] else None,
        times,
        times.resolution_ns / 1e9 if whole["timed"] else None,
        times.below_resolution(),
        {s: share_within(list(each.values()), s) for s in _WITHIN} if whole["timed"] else {},
        minutes.mean_rate,
        minutes.busiest,
        {kind: groups.by(kind, whole, _MOST) for kind in _BY},
        groups.sizes(dict(sizes or {}), whole),
        groups.words(whole),
        of_parts["n"],
        groups.total(groups.rows_of("other"))["n"],
        found,
        in_bands(counts, groups, found, times, coarsest),
        minutes.over(step),
        step,
        minutes.worst(_WORST),
        most,
        longest,
        without_hits,
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
        zones=dict(zones),
        holes=tuple(minutes.holes()),
        served=groups.row("all parts", parts, of_parts) if of_parts["n"] else None,
        served_by=groups.by("part", of_parts, _MOST),
        finer=finer(each),
        during=within,
        crowded=tuple(
            kind
            for kind in (*_BY, "part", "other")
            if any(groups.names[i] == OTHERS for i in groups.rows_of(kind))
        ),
    )
    judged = _without_errors(judged)
    if published is not None:
        said = beside(published, judged, groups, dict(sizes or {}))
        judged = replace(judged, published=Beside(published.title, said))
    return replace(judged, remarks=tuple(remarks(judged)), headline=headline(judged))


def _without_errors(of: LogJudgement) -> LogJudgement:
    """No share of failed searches where no error is seen and a log would not have said so, nor
    where one of several logs never says so: what failed there is in no share.
    """

    def read(server: str | None) -> set[str]:
        return {
            str(s["format"]) for s in of.sources if s["entries"] and server in (None, s["server"])
        }

    def unknown(row: Row, server: str | None) -> bool:
        formats = read(server) or read(None)  # one that is named in the lines is no file's
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
        served=known((of.served,))[0] if of.served else None,
        served_by=known(of.served_by),
    )


def resolution_ns(counts: Counts) -> int:
    """The finest difference of times that the logs can write, in nanoseconds: of several servers
    that of the coarsest."""
    values = counts.numbers("resolutions", "resolution_ns").tolist()
    n: Counter[int] = Counter()
    for value, times in zip(values, counts.numbers("resolutions", "n").tolist(), strict=True):
        n[value] += times
    return finest(n, {str(s["format"]) for s in counts.sources if s["entries"]})


def resolutions_ns(counts: Counts) -> dict[str, int]:
    """The same by server, of those that have enough times; empty where it was counted before
    servers were told apart.
    """
    if "server" not in counts.tables["resolutions"].column_names:
        return {}
    found: dict[str, Counter[int]] = {}
    for server, value, times in zip(
        counts.texts("resolutions", "server"),
        counts.numbers("resolutions", "resolution_ns").tolist(),
        counts.numbers("resolutions", "n").tolist(),
        strict=True,
    ):
        found.setdefault(server, Counter())[value] += times
    if "" in found:
        return {}
    often = {server: n for server, n in found.items() if n.total() >= _ENOUGH}
    return {server: finest(n, _formats_of(counts, server)) for server, n in often.items()}


def _formats_of(counts: Counts, server: str) -> set[str]:
    """The formats of a server's logs; of all where its name is in their lines."""
    read = [s for s in counts.sources if s["entries"]]
    return {str(s["format"]) for s in read if s["server"] == server} or {
        str(s["format"]) for s in read
    }


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


def _hits(counts: Counts) -> tuple[tuple[str, int], ...]:
    n = counts.numbers("hits", "n")
    found = []
    for i, count in enumerate(n):
        if count:
            low, high = (0, 0) if i == 0 else (2 ** (i - 1), 2**i - 1)
            found.append((f"{low:,}" if low == high else f"{low:,}–{high:,}", int(count)))
    return tuple(found)


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
