"""Whether a search found the limit of its connections rather than that of the system.

A request that is due while all connections are busy waits for one, and response times count that
wait. So the promise is broken at a rate that the pool cannot carry, whatever the system can do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from searchbench.analysis.capacity.pace import Seen
from searchbench.analysis.capacity.promise import Judged, seems_kept
from searchbench.analysis.trial import pool
from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.words import per_s, plural
from searchbench.record import Record, Trial
from searchbench.workload.load_table import Condition

Promises = tuple[tuple[Condition, ...], ...]
ABOUT = 1.1  # of the upper end: trials up to there decide where it is


def with_pool(
    found: Sequence[Judged], promises: Promises, record: Record, trial: Trial, trace: Trace
) -> list[Judged]:
    """The same with how busy the connections were, and whether waits for them broke the promise."""
    busy = pool.pool_of(record, trial, trace)
    if busy is None or not busy.waited:
        return [replace(one, pool=busy) for one in found]
    at_once = pool.without_waits(trace, pool.ready(record, trial, trace))
    return [
        replace(one, pool=busy, by_waits=not one.seems_kept and seems_kept(conditions, at_once))
        for one, conditions in zip(found, promises, strict=True)
    ]


def doubt(seen: Seen, holds: float | None, fails: float | None) -> str:
    """Why an upper end is not the system's, where waits for connections decide it; else empty.

    Empty too where requests queue in the server: then its limit is what was found.
    """
    broken = [d for d in seen.used if not d.judged.seems_kept]
    top = math.inf if fails is None else ABOUT * fails
    deciding = [d for d in broken if d.rate_per_s <= top] or broken
    waiting = [d.rate_per_s for d in deciding if d.judged.by_waits]
    if not waiting:
        return ""
    pools = [d.judged.pool for d in seen.used if d.judged.pool is not None]
    fullest = max(pools, key=lambda p: p.share)
    which, why = pool.limit(fullest, pools)
    if which == "server":
        return ""
    if which == "connections" and len(waiting) < len(deciding):
        which, why = "unknown", "other trials near it broke the promise without such waits too"
    n = fullest.connections
    they = "the one connection" if n == 1 else f"all {n:,} connections"
    said = [
        f"{_whose(n, sure=which == 'connections')}: "
        + (
            "what the system sustains is not known."
            if holds is None
            else f"the system sustains at least {per_s(holds)} (95 %), and where it fails is not "
            "known."
        ),
        f"From {per_s(min(waiting))} on {they} {plural(n, 'was', 'were')} busy at times, and "
        "without the waits for a free one the promise would have been kept.",
        "The service time was about as long as where connections were free."
        if which == "connections"
        else f"Whether the system could do more is unknown: {why}.",
        f"The rate is at most {fullest.most} whatever the system can do.",
        f"Search again with more `connections` (`--connections {fullest.more(4)}`).",
    ]
    return " ".join(said)


def _whose(n: int, *, sure: bool) -> str:
    """Whose limit was found, as a sentence begins."""
    if n == 1:
        which = f"The load generator's one connection {'is' if sure else 'may be'}"
    else:
        which = f"The load generator's {n:,} connections {'are' if sure else 'may be'}"
    return f"{which} the limit here"
