"""The server's own count of how often its cache was hit, before and after a drive.

    Groonga (`groonga -s`)         /d/status: n_queries are lookups since the start, one for each
                                   select, cache_hit_rate the hits among them in percent
    Droonga                        /statistics/cache of the HTTP front
    OpenSearch, Elasticsearch      /_stats: the request cache, and of filters the query cache;
                                   both count once for each shard
    MariaDB, MySQL to 5.7          Qcache_hits and Com_select, where the query cache is on. MariaDB
                                   counts a hit as a select too, MySQL does not.
    any HTTP                       a header of the replies that were kept, such as X-Cache: HIT

Groonga takes nothing from its cache that it answered in the second in which its database last
changed, or before: a warm-up begins a second after the last document has been put in.

groonga-httpd counts in each of its workers by itself and says not which one answers, so its
counter is not taken. Reading changes none of the counters.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from searchbench.engines import mysql_form
from searchbench.engines.engine import Request
from searchbench.engines.http_form import HttpReply, get, split
from searchbench.lab.wire.exchange import Endpoint, Refused, ask
from searchbench.record.trial import Note
from searchbench.workload.draw import CachePlan, hit_rate

# A point beside the noise: what models and caches are apart from each other.
TOLERANCE = 0.01
SPREADS = 3
_PATIENCE_S = 5.0
# So many more or fewer lookups than requests are others' requests, or are not looked up.
_LOOKUPS = 0.05
_HEADERS = ("x-cache", "x-cache-status", "x-proxy-cache", "cf-cache-status", "cache-status")
_DROONGA = "x-droonga-cached"
_KINDS = (
    "groonga -s, Droonga, OpenSearch, Elasticsearch, MySQL or MariaDB with its query cache on, or "
    "a header such as X-Cache"
)


@dataclass(frozen=True, slots=True)
class Counters:
    """``hits`` among ``lookups``, cumulative or of one drive; ``source``: who counted.

    ``other``: another cache of the same server, which counts when the first is not asked.
    ``single``: a request is one lookup, not one for each shard.
    """

    hits: int
    lookups: int
    source: str
    other: Counters | None = None
    single: bool = True

    @property
    def rate(self) -> float:
        """The share of hits, 0..1; nan where nothing was looked up."""
        return self.hits / self.lookups if self.lookups else math.nan

    def as_json(self) -> dict[str, Any]:
        """As it stands on record."""
        return {"hits": self.hits, "lookups": self.lookups, "source": self.source}


@dataclass(frozen=True, slots=True)
class Uncounted:
    """No count, and why: a clause that fits after "could not be verified: "."""

    reason: str


def read(endpoint: Endpoint) -> Counters | None:
    """What the server has counted until now, added up over all endpoints of the system.

    None where one of them tells nothing that is understood here.
    """
    found = []
    for target in (endpoint.target, *endpoint.others):
        one = _read_one(replace(endpoint, target=target, others=()))
        if one is None:
            return None
        found.append(one)
    return _added(found)


def between(before: Counters | None, after: Counters | None) -> Counters | Uncounted:
    """What was counted from one reading to the other: ``rate`` is the hit rate of the drive."""
    if before is None or after is None:
        return Uncounted(f"the server tells no count that is understood here ({_KINDS})")
    hits, lookups = after.hits - before.hits, after.lookups - before.lookups
    if hits < 0 or lookups < 0:
        return Uncounted(
            f"{after.source} went back from {before.lookups:,} to {after.lookups:,} lookups: it "
            "was started anew, or its counters were set back"
        )
    if lookups:
        return Counters(hits, lookups, after.source, single=after.single)
    if before.other is not None and after.other is not None:
        found = between(before.other, after.other)
        if isinstance(found, Counters):
            return found
    return Uncounted(f"{after.source} did not look into it once: these requests are not cached")


def of_facts(extra: Mapping[str, Any]) -> Counters | None:
    """The count among the facts that an engine told of itself (``Facts.extra``)."""

    def known(hits: str, others: str, source: str, *, misses: bool) -> Counters | None:
        counted, beside = extra.get(hits), extra.get(others)
        if not isinstance(counted, int) or not isinstance(beside, int):
            return None
        total = beside + counted if misses else beside
        return Counters(counted, total, source, single=not misses)

    if "queries_since_start" in extra:
        if extra.get("parameters", {}).get("server") == "httpd":
            return None
        return _percent(extra["cache_hit_rate_percent"], extra["queries_since_start"])
    filters = known("query_cache_hits", "query_cache_misses", "the query cache", misses=True)
    found = known("request_cache_hits", "request_cache_misses", "the request cache", misses=True)
    if found is not None:
        return replace(found, other=filters)
    return known("cache_hits", "cache_gets", "Droonga's front", misses=False)


def of_replies(replies: Iterable[bytes]) -> Counters | None:
    """The count by a header of HTTP replies that were kept; None where none of them has it.

    A share of the replies is a sample: its noise is that of so many lookups. Droonga's front
    marks hits alone, so without a single hit there is nothing to be seen.
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
    return Counters(hits, total, f"the header {named} of {total:,} replies") if named else None


def cache_size(endpoint: Endpoint) -> int | None:
    """How many answers the cache of one endpoint holds; None where the server does not say."""
    reply = _http(endpoint, "/d/cache_limit")
    body = None if reply is None else _json(reply)
    if isinstance(body, list) and len(body) == 2 and isinstance(body[1], int):
        return body[1]
    return None


def judge(
    plan: CachePlan,
    counted: Counters | Uncounted,
    *,
    cold: bool = False,
    in_flight: int = 1,
    requests: int | None = None,
) -> Note | None:
    """What is to be said of a drive's hit rate; None where it is as was wanted.

    ``cold``: the cache was empty before. ``in_flight``: so many requests at the same time.
    ``requests``: how many were sent. A deviation is more than three standard deviations of what
    so many lookups can tell, and a point.
    """
    wanted = f"{plan.wanted_hit:.1%} were wanted"
    if isinstance(counted, Uncounted):
        return Note(
            "cache hits not verified",
            wanted,
            f"How often the server's cache was hit could not be verified: {counted.reason}.",
            f"By calculation it is {plan.expected_hit:.1%} for a cache of "
            f"{plan.cache_entries:,} entries that is full; see that it has so many.",
        )
    n, rate = counted.lookups, counted.rate
    expected = plan.wanted_hit - plan.expected_hit + plan.expected_over(n, cold=cold)
    allowed = SPREADS * plan.spread(n) + TOLERANCE
    if abs(rate - expected) <= allowed:
        return None
    start = f", {expected:.1%} from an empty cache on" if cold else ""
    cause, remedy = _cause(plan, counted, expected - rate, in_flight, requests)
    return Note(
        "cache hits",
        f"{rate:.1%} of {n:,} lookups, by {counted.source}; {wanted}{start} "
        f"(± {allowed:.1%})",
        "The latencies are those of another mixture of cached and computed answers than was asked "
        f"for. {cause}",
        remedy,
    )  # fmt: skip


def _cause(
    plan: CachePlan,
    counted: Counters,
    lacking: float,
    in_flight: int,
    requests: int | None,
) -> tuple[str, str]:
    """What the deviation is likely to come from, and what to do."""
    if requests and counted.single and abs(counted.lookups - requests) > _LOOKUPS * requests:
        return (
            f"{requests:,} requests were sent and {counted.lookups:,} lookups counted, so others "
            "ask this server too, or not every request is looked up.",
            "Keep others away while it is measured; ask only what can be cached.",
        )
    if counted.hits == 0:
        return (
            "Not one was a hit: the cache is off, the order was cyclic, the documents change, or "
            "something in each request makes it another one to the cache.",
            "Start the server with a cache, let it rest for a second after the last change, and "
            "draw the requests independently.",
        )
    entries = _entries_like(plan, counted.rate)
    cause = (
        f"A cache of about {entries:,} entries would be hit so often, and the draws are for "
        f"{plan.cache_entries:,}; or it forgets by age (Droonga's after 60 s), lost all when "
        "documents changed, or was not full yet."
    )
    remedy = (
        "Say how many entries it really has (--cache-entries), and warm it up with "
        f"{plan.warmup_requests:,} requests."
    )
    lost = plan.overlap(in_flight)
    if lacking > 0 and lost > TOLERANCE:
        cause += (
            f" Up to {lost:.1%} may be lost because {in_flight:,} requests were in flight "
            "together: until one that misses has been answered, the same one misses again."
        )
        remedy += " With fewer clients less of it is lost."
    return cause, remedy


def _entries_like(plan: CachePlan, rate: float) -> int:
    """How many entries a cache would have that these draws hit about so often."""
    low, high = 1, plan.distinct
    while high - low > 1:
        middle = (low + high) // 2
        below = hit_rate(plan.weights, middle, plan.policy) < rate
        low, high = (middle, high) if below else (low, middle)
    return min((low, high), key=lambda n: abs(hit_rate(plan.weights, n, plan.policy) - rate))


def _read_one(endpoint: Endpoint) -> Counters | None:
    if endpoint.wire == "mysql":
        return _mysql(endpoint)
    if endpoint.wire != "http":
        return None
    readers: tuple[tuple[str, Callable[[HttpReply, Any], Counters | None]], ...] = (
        ("/d/status", _groonga),
        ("/statistics/cache", _droonga),
        ("/_stats/request_cache,query_cache", _opensearch),
    )
    for path, reader in readers:
        reply = _http(endpoint, path)
        body = None if reply is None else _json(reply)
        if reply is None or body is None:
            continue
        try:
            found = reader(reply, body)
        except (KeyError, TypeError, ValueError, IndexError):
            continue
        if found is not None:
            return found
    return None


def _groonga(reply: HttpReply, body: Any) -> Counters | None:
    if not reply.headers.get("server", "").startswith("Groonga"):
        return None
    status = body[1] if isinstance(body, list) else body["body"]
    return _percent(status["cache_hit_rate"], status["n_queries"])


def _droonga(reply: HttpReply, body: Any) -> Counters:
    return Counters(int(body["nHits"]), int(body["nGets"]), "Droonga's front")


def _opensearch(reply: HttpReply, body: Any) -> Counters:
    total = body["_all"]["total"]
    whole, filters = (
        Counters(
            total[name]["hit_count"],
            total[name]["hit_count"] + total[name]["miss_count"],
            f"the {name.replace('_', ' ')}",
            single=False,
        )
        for name in ("request_cache", "query_cache")
    )
    return replace(whole, other=filters)


def _mysql(endpoint: Endpoint) -> Counters | None:
    # SHOW is no select, so that asking does not count.
    asked = Request(
        (
            mysql_form.query("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', "
                             "'query_cache_type', 'query_cache_size')"),
            mysql_form.query("SHOW GLOBAL STATUS WHERE Variable_name IN ('Qcache_hits', "
                             "'Com_select')"),
        )
    )  # fmt: skip
    try:
        results = mysql_form.split(ask(endpoint, [asked], timeout_s=_PATIENCE_S)[0])
        known = {str(r["Variable_name"]): r["Value"] or "" for one in results for r in one.dicts()}
        if known["query_cache_type"] == "OFF" or known["query_cache_size"] == "0":
            return None
        hits, selects = int(known["Qcache_hits"]), int(known["Com_select"])
        if "mariadb" not in known["version"].lower():
            selects += hits
    except (Refused, ValueError, KeyError):
        return None
    return Counters(hits, selects, "Qcache_hits")


def _percent(percent: float, lookups: int) -> Counters:
    return Counters(round(percent * lookups / 100), lookups, "Groonga's status")


def _http(endpoint: Endpoint, path: str) -> HttpReply | None:
    """The reply to a GET; None where there is none."""
    if endpoint.wire != "http":
        return None
    request = get(path)
    if endpoint.login is not None:
        word = base64.b64encode(":".join(endpoint.login[:2]).encode())
        request = request.removesuffix(b"\r\n") + b"Authorization: Basic " + word + b"\r\n\r\n"
    plain = replace(endpoint, login=None, whole=())
    try:
        (reply,) = split(ask(plain, [Request((request,))], timeout_s=_PATIENCE_S)[0])
    except (Refused, ValueError):
        return None
    return reply


def _json(reply: HttpReply) -> Any:
    try:
        return orjson.loads(reply.body) if reply.status == 200 else None
    except orjson.JSONDecodeError:
        return None


def _headers(reply: bytes) -> dict[str, str]:
    """Names in lower case; the body is not looked at, of which a kept reply may lack a part."""
    lines = reply.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines)
    return {name.strip().lower(): value.strip() for name, _colon, value in pairs}


def _added(found: list[Counters]) -> Counters:
    first, *more = found
    for one in more:
        other = None
        if first.other is not None and one.other is not None:
            other = _added([first.other, one.other])
        hits, lookups = first.hits + one.hits, first.lookups + one.lookups
        first = replace(first, hits=hits, lookups=lookups, other=other)
    return first
