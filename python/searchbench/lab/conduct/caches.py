"""How often a server's cache was hit, and requests drawn so that it answers a wanted share.

It is the server's own count, read just before the window and after the drive. An engine's own
folder says how its server is asked and what the answer means (``engines.engine.CountsHits``). Here
the endpoints of a system are asked, added up and subtracted. Where the engine is unknown or does
not count, a header of the HTTP replies that were kept may tell, such as X-Cache: HIT. Whether the
hit rate is as it was wanted, and what it means where none was, the analysis judges.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import get_args

from msgspec import structs

from searchbench.engines.answer import CacheCounters, CacheState
from searchbench.engines.engine import CountsHits, Engine
from searchbench.errors import LabError, QueryError
from searchbench.lab.conduct.session import Session
from searchbench.lab.drive.workload import VerbatimRequests
from searchbench.lab.system.running import Running
from searchbench.lab.wire.exchange import Endpoint, Refused, ask
from searchbench.record.trial import Cache, CacheCount
from searchbench.workload.draw import CachePlan, Distribution, plan

LAWS: tuple[Distribution, ...] = get_args(Distribution)
_PATIENCE_S = 5.0
_PATIENCE_DRIVEN_S = 0.5  # while a load is driven, whose progress waits for it
_HEADERS = ("x-cache", "x-cache-status", "x-proxy-cache", "cf-cache-status", "cache-status")
_DROONGA = "x-droonga-cached"
_KINDS = (
    "groonga -s, Droonga, OpenSearch, Elasticsearch, MySQL or MariaDB with its query cache on, or "
    "a header such as X-Cache"
)


def plan_of(session: Session, others: Iterable[Session]) -> CachePlan | None:
    """The draws for a session that was opened; None where no share of hits is wanted.

    The same draws for all systems: LabError where their caches are not alike. QueryError where the
    share cannot be had.
    """
    table = session.opened.treatment.load
    hit, workload = table.get("cache_hit"), session.opened.workload
    if hit is None:
        return None
    if not isinstance(workload, VerbatimRequests):
        raise QueryError("cache_hit draws verbatim requests; a study's queries are asked as logged")
    law, exponent = law_of(str(table.get("cache_law") or "uniform"))
    if workload.asked.groups:
        raise QueryError(
            "`cache_hit` (--cache-hit) draws the requests, and this file says by its "
            "groups how they are drawn; leave one of the two out"
        )
    entries = table.get("cache_entries")
    if entries is None:
        running = session.there()
        entries = read(running.endpoint, running.known).entries
        name = session.opened.treatment.system
        if entries is None:
            raise LabError(
                f"{name} does not say how many answers its cache holds, or its endpoints differ "
                "in it: set `cache_entries` (--cache-entries)"
            )
        for other in others:
            if other.cache is not None and other.cache.cache_entries != entries:
                raise LabError(
                    f"the caches are not alike ({other.opened.treatment.system} "
                    f"{other.cache.cache_entries}, {name} {entries}), so the same requests "
                    "hit them differently; make them alike, or give --cache-entries"
                )
    available = workload.asked.distinct
    return plan(int(entries), float(hit), law, available=available, exponent=exponent)


def law_of(text: str) -> tuple[Distribution, float | None]:
    """The popularity of requests: uniform, zipf, or zipf:0.8 with an exponent; QueryError."""
    name, _, steepness = text.partition(":")
    chosen = next((known for known in LAWS if known == name), None)
    try:
        exponent = float(steepness) if steepness else None
    except ValueError:
        chosen, exponent = None, None
    if chosen is None:
        raise QueryError(
            f"--cache-law {text!r}: use {' or '.join(LAWS)}, or zipf:0.8 with an exponent"
        )
    return chosen, exponent


def read(endpoint: Endpoint, engine: Engine | None, timeout_s: float = _PATIENCE_S) -> CacheState:
    """What the server says of its cache, over all endpoints of the system.

    Counters are added up; there are none where one endpoint has none. ``entries`` is that of each
    endpoint, where all hold the same number.
    """
    if engine is None or not isinstance(engine, CountsHits):
        return CacheState()
    each = (replace(endpoint, target=p, others=()) for p in endpoint.addresses)
    states = [_read_one(one, engine, timeout_s) for one in each]
    sizes = {state.entries for state in states}
    known = [state.counters for state in states if state.counters is not None]
    return CacheState(
        _added(known) if len(known) == len(states) else None,
        sizes.pop() if len(sizes) == 1 else None,
    )


class Counting:
    """The server's counts around the window of one drive, which begins once this is made."""

    def __init__(self, running: Running) -> None:
        self._running, self._since_ns, self._tried = running, 0, False
        self._before = read(running.endpoint, running.known)

    def window_begins(self, elapsed_ns: int) -> None:
        """Read anew, once, at the end of the warm-up, so that what was asked there is left out.

        Not of a cache that is off. Where there is no answer in time the whole drive counts.
        """
        if self._tried or self._before.counters is None or self._before.entries == 0:
            return
        self._tried = True
        found = read(self._running.endpoint, self._running.known, _PATIENCE_DRIVEN_S)
        if found.counters is not None:
            self._before, self._since_ns = found, elapsed_ns

    def on_record(self, drawn: CachePlan | None, replies: Iterable[bytes]) -> Cache | None:
        """The count once the drive has ended, or else by a header of the ``replies``.

        With how requests were ``drawn``. None where they were not, and no cache of whole answers
        is known of.
        """
        found = between(self._before, read(self._running.endpoint, self._running.known))
        if isinstance(found, CacheCount):
            found = structs.replace(found, since=self._since_ns)
        elif self._running.endpoint.wire == "http":
            found = of_replies(replies) or found
        if drawn is not None:
            return kept(drawn, found)
        if isinstance(found, str) or not found.whole:
            return None
        return Cache(cache_entries=self._before.entries, counted=found)


def kept(drawn: CachePlan, found: CacheCount | str) -> Cache:
    """How the requests were drawn and what was counted, as a trial keeps them."""
    if isinstance(found, str):
        return Cache(**drawn.as_json(), uncounted=found)
    return Cache(**drawn.as_json(), counted=found)


def between(before: CacheState, after: CacheState) -> CacheCount | str:
    """What was counted from one reading to the other.

    Where there is no count, why: a clause that fits after "could not be verified: ".
    """
    if before.counters is None or after.counters is None:
        return f"the server gives no count that is understood here ({_KINDS})"
    return _difference(before.counters, after.counters)


def of_replies(replies: Iterable[bytes]) -> CacheCount | None:
    """The count by a header of HTTP replies that were kept; None where none of them has it.

    Droonga's front marks hits alone, so without a single hit there is nothing to be seen.
    """
    hits = total = 0
    named = ""
    for reply in replies:
        head = _headers(reply)
        total += 1
        name = next((n for n in (_DROONGA, *_HEADERS) if n in head), None)
        if name is not None:
            named, said = name, head[name].lower()
            hits += said == "yes" if name == _DROONGA else "hit" in said
    if not named:
        return None
    source = f"the header {named} of {total:,} replies"
    return CacheCount(hits=hits, lookups=total, source=source, sampled=True)


def _read_one(endpoint: Endpoint, engine: CountsHits, timeout_s: float) -> CacheState:
    # Not the load's own answers, so what makes those whole says nothing of these.
    plain = replace(endpoint, whole=())
    try:
        (reply,) = ask(plain, [engine.cache_request()], timeout_s=timeout_s)
        return engine.cache_state(reply)
    except (Refused, ValueError, KeyError, TypeError, IndexError):
        return CacheState()


def _difference(before: CacheCounters, after: CacheCounters) -> CacheCount | str:
    hits, lookups, who = after.hits - before.hits, after.lookups - before.lookups, after.source
    if hits < 0 or lookups < 0:
        return (
            f"{who} went back from {before.lookups:,} to {after.lookups:,} lookups: it "
            "was started anew, or its counters were set back"
        )
    if lookups:
        asked = _sum(after.asked, before.asked, -1)
        return CacheCount(
            hits=hits, lookups=lookups, source=who, single=after.single, whole=after.whole,
            asked=asked,
        )  # fmt: skip
    if before.other is not None and after.other is not None:
        found = _difference(before.other, after.other)
        if isinstance(found, CacheCount):
            return found
    return f"{who} did not look into it once: these requests are not cached"


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
        asked = _sum(first.asked, one.asked)
        first = replace(first, hits=hits, lookups=lookups, other=other, asked=asked)
    return first


def _sum(a: int | None, b: int | None, sign: int = 1) -> int | None:
    return None if a is None or b is None else a + sign * b
