"""How often a server's cache was hit over a drive: its own count before and after, or a header.

An engine's own folder says how its server is asked and what the answer means
(``engines.engine.CountsHits``). Here the endpoints of a system are asked, added up and subtracted.
Where the engine is unknown or does not count, a header of the HTTP replies that were kept may tell,
such as X-Cache: HIT. Whether the hit rate is as it was wanted, the analysis judges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from searchbench.engines.engine import CacheCounters, CacheState, CountsHits, Engine
from searchbench.lab.wire.exchange import Endpoint, Refused, ask
from searchbench.record.trial import Cache, CacheCount
from searchbench.workload.draw import CachePlan

_PATIENCE_S = 5.0
_HEADERS = ("x-cache", "x-cache-status", "x-proxy-cache", "cf-cache-status", "cache-status")
_DROONGA = "x-droonga-cached"
_KINDS = (
    "groonga -s, Droonga, OpenSearch, Elasticsearch, MySQL or MariaDB with its query cache on, or "
    "a header such as X-Cache"
)


@dataclass(frozen=True, slots=True)
class Counted:
    """``hits`` among ``lookups`` during one drive; the rest as in ``record.trial.CacheCount``."""

    hits: int
    lookups: int
    source: str
    single: bool = True
    sampled: bool = False

    @property
    def rate(self) -> float:
        """The share of hits, 0..1; nan where nothing was looked up."""
        return self.hits / self.lookups if self.lookups else math.nan


@dataclass(frozen=True, slots=True)
class Uncounted:
    """No count, and why: a clause that fits after "could not be verified: "."""

    reason: str


def read(endpoint: Endpoint, engine: Engine | None) -> CacheState:
    """What the server says of its cache, over all endpoints of the system.

    Counters are added up; there are none where one endpoint has none. ``entries`` is that of each
    endpoint, where all hold the same number.
    """
    if engine is None or not isinstance(engine, CountsHits):
        return CacheState()
    places = (endpoint.target, *endpoint.others)
    states = [_read_one(replace(endpoint, target=p, others=()), engine) for p in places]
    sizes = {state.entries for state in states}
    known = [state.counters for state in states if state.counters is not None]
    return CacheState(
        _added(known) if len(known) == len(states) else None,
        sizes.pop() if len(sizes) == 1 else None,
    )


def between(before: CacheState, after: CacheState) -> Counted | Uncounted:
    """What was counted from one reading to the other: ``rate`` is the hit rate of the drive."""
    if before.counters is None or after.counters is None:
        return Uncounted(f"the server gives no count that is understood here ({_KINDS})")
    return _difference(before.counters, after.counters)


def of_replies(replies: Iterable[bytes]) -> Counted | None:
    """The count by a header of HTTP replies that were kept; None where none of them has it.

    Droonga's front marks hits alone, so without a single hit there is nothing to be seen.
    """
    hits = total = 0
    named = ""
    for reply in replies:
        head = _headers(reply)
        total += 1
        if _DROONGA in head:
            named = _DROONGA
            hits += head[_DROONGA].lower() == "yes"
            continue
        name = next((n for n in _HEADERS if n in head), None)
        if name is not None:
            named = name
            hits += "hit" in head[name].lower()
    if not named:
        return None
    return Counted(hits, total, f"the header {named} of {total:,} replies", sampled=True)


def on_record(plan: CachePlan, counted: Counted | Uncounted) -> Cache:
    """How the requests were drawn and what was counted, as a trial keeps them."""
    if isinstance(counted, Uncounted):
        return Cache(**plan.as_json(), uncounted=counted.reason)
    count = CacheCount(
        hits=counted.hits,
        lookups=counted.lookups,
        source=counted.source,
        single=counted.single,
        sampled=counted.sampled,
    )
    return Cache(**plan.as_json(), counted=count)


def _read_one(endpoint: Endpoint, engine: CountsHits) -> CacheState:
    # Not the load's own answers, so what makes those whole says nothing of these.
    plain = replace(endpoint, whole=())
    try:
        (reply,) = ask(plain, [engine.cache_request()], timeout_s=_PATIENCE_S)
        return engine.cache_state(reply)
    except (Refused, ValueError, KeyError, TypeError, IndexError):
        return CacheState()


def _difference(before: CacheCounters, after: CacheCounters) -> Counted | Uncounted:
    hits, lookups = after.hits - before.hits, after.lookups - before.lookups
    if hits < 0 or lookups < 0:
        return Uncounted(
            f"{after.source} went back from {before.lookups:,} to {after.lookups:,} lookups: it "
            "was started anew, or its counters were set back"
        )
    if lookups:
        return Counted(hits, lookups, after.source, after.single)
    if before.other is not None and after.other is not None:
        found = _difference(before.other, after.other)
        if isinstance(found, Counted):
            return found
    return Uncounted(f"{after.source} did not look into it once: these requests are not cached")


def _headers(reply: bytes) -> dict[str, str]:
    """Names in lower case; the body is not looked at, of which a kept reply may lack a part."""
    lines = reply.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines)
    return {name.strip().lower(): value.strip() for name, _colon, value in pairs}


def _added(found: list[CacheCounters]) -> CacheCounters:
    first, *more = found
    for one in more:
        other = None
        if first.other is not None and one.other is not None:
            other = _added([first.other, one.other])
        hits, lookups = first.hits + one.hits, first.lookups + one.lookups
        first = replace(first, hits=hits, lookups=lookups, other=other)
    return first
