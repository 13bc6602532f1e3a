"""Was the server's cache hit as often as was wanted? Judged from what a trial has on record.

The draws are computed anew from their plan, so a better model judges old records too. A deviation
is more than ``SPREADS`` standard deviations of what so many lookups can tell, and a point: models
and real caches are that far apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from searchbench.analysis.trial.measured import Trace
from searchbench.record.trial import Cache, CacheCount, Trial
from searchbench.workload.draw import CachePlan, Distribution, Policy, hit_rate, plan_of

TOLERANCE = 0.01
SPREADS = 3
# Lookups that differ from the requests by more than this share: others ask this server too, or not
# every request is looked up.
LOOKUPS = 0.05

Row = tuple[str, Literal["warning"], str, str, str]


def cache_hits(trial: Trial, trace: Trace) -> Iterator[Row]:
    """Of a trial whose requests were drawn for a share of hits, what ``judged`` finds."""
    load = trial.load
    in_flight = load.clients if load.kind == "closed" else load.connections
    if trial.cache is not None:
        yield from judged(trial.cache, in_flight or 1, len(trace.due))


def judged(cache: Cache, in_flight: int, requests: int) -> Iterator[Row]:
    """What there is to be said of a drive's hit rate; nothing where it is as was wanted.

    ``in_flight``: requests at the same time, at most. ``requests``: how many were sent, warm-up
    included. A row is kind, severity, number, meaning and remedy of a finding.
    """
    plan = _plan(cache)
    if plan is None:
        return
    if cache.counted is None:
        why = f": {cache.uncounted}" if cache.uncounted else ""
        yield (
            "cache hits not verified",
            "warning",
            f"{plan.wanted_hit:.1%} were wanted",
            f"How often the server's cache was hit could not be verified{why}.",
            f"By calculation it is {plan.expected_hit:.1%} for a cache of "
            f"{plan.cache_entries:,} entries that is full; see that it has so many.",
        )
        return
    counted = cache.counted
    rate = counted.hits / counted.lookups if counted.lookups else 0.0
    allowed = SPREADS * plan.spread(counted.lookups) + TOLERANCE
    lacking = plan.wanted_hit - rate
    if abs(lacking) <= allowed:
        return
    cause, remedy = _cause(plan, counted, lacking, in_flight, requests)
    yield (
        "cache hits",
        "warning",
        f"{rate:.1%} of {counted.lookups:,} lookups, by {counted.source}; "
        f"{plan.wanted_hit:.1%} were wanted (± {allowed:.1%})",
        "The latencies are those of another mixture of cached and computed answers than was asked "
        f"for. {cause}",
        remedy,
    )


def _plan(cache: Cache) -> CachePlan | None:
    """None where the record lacks what the draws depend on."""
    distribution: dict[str, Distribution] = {"uniform": "uniform", "zipf": "zipf"}
    policy: dict[str, Policy] = {"lru": "lru", "fifo": "fifo", "random": "random"}
    if (
        cache.cache_entries is None
        or cache.wanted_hit is None
        or cache.distinct is None
        or cache.distribution not in distribution
    ):
        return None
    return plan_of(
        cache.cache_entries,
        cache.wanted_hit,
        distribution[cache.distribution],
        distinct=cache.distinct,
        exponent=cache.exponent or 0.0,
        policy=policy.get(cache.policy, "lru"),
    )


def _cause(
    plan: CachePlan, counted: CacheCount, lacking: float, in_flight: int, requests: int
) -> tuple[str, str]:
    """What the deviation is likely to come from, and what to do."""
    whole = counted.single and not counted.sampled
    if whole and requests and abs(counted.lookups - requests) > LOOKUPS * requests:
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
    entries = _entries_like(plan, counted.hits / counted.lookups)
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
