"""Which answers came from a cache of the server, and was that wanted? Judged from the record.

Where a share of hits was wanted, the draws are computed anew from their plan, so a better model
judges old records too. A deviation is more than ``SPREADS`` standard deviations of what so many
lookups can tell, and a point: models and real caches are that far apart. Where nobody asked for a
cache, its answers are not the search's: that is remarked, and weighs in comparisons
(``compare.state``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np

from searchbench.analysis.judgement import Estimate, TreatmentResult
from searchbench.analysis.trial.measured import Trace
from searchbench.record.trial import Cache, CacheCount, Trial
from searchbench.study.plan import Treatment
from searchbench.workload.draw import CachePlan, Distribution, Policy, hit_rate, plan_of

TOLERANCE = 0.01
SPREADS = 3
# Lookups that differ from the requests by more than this share: others ask this server too, or not
# every request is looked up.
LOOKUPS = 0.05

# Of the answers from a cache: from here on the throughput is off by 5 % at the least.
SHARE = 0.05
FIGURE = "from_cache"  # of a trial: the share of its answers that came from a cache, unasked
# Levers of caches of whole answers, which are off where a study says nothing of them; the third is
# on then (the front of Droonga), so that a study has asked for it only if it varies it.
_LEVERS, _VARIED = ("cache_limit", "request_cache"), "cache"
_OFF = {
    "groonga": "Turn it off (`cache_limit` 0)",
    "droonga": "Turn it off (`droonga-http-server --cache-size 0`)",
    "mariadb": "Turn it off (`query_cache_type` OFF, `query_cache_size` 0)",
    "opensearch": "Turn it off (`request_cache=false` in each request)",
    "elasticsearch": "Turn it off (`request_cache=false` in each request)",
}

Row = tuple[str, Literal["warning", "note"], str, str, str]


def cache_hits(trial: Trial, trace: Trace) -> Iterator[Row]:
    """Of a trial whose requests were drawn for a share of hits, what ``judged`` finds."""
    load = trial.load
    in_flight = load.clients if load.kind == "closed" else load.connections
    if trial.cache is not None:
        counted = trial.cache.counted
        since = 0 if counted is None else counted.since
        sent = np.count_nonzero(np.maximum(trace.due, trace.done) >= since)
        yield from judged(trial.cache, in_flight or 1, int(sent))


def answered(trial: Trial, trace: Trace) -> float | None:
    """The share of the requests that a cache of whole answers answered, at the least.

    None where no count is known. Where lookups are more than the requests others ask this server
    too, and may have had as many of the hits.
    """
    counted = trial.cache.counted if trial.cache is not None else None
    if counted is None or not counted.whole:
        return None
    hits, of = counted.hits, counted.asked or counted.lookups
    if counted.single and not counted.sampled:
        ours = int(np.count_nonzero(np.maximum(trace.due, trace.done) >= counted.since))
        if of > (1 + LOOKUPS) * ours:
            hits, of = max(0, hits - (of - ours)), ours
        elif of < (1 - LOOKUPS) * ours:
            of = ours  # the others were not looked up
    return min(1.0, hits / of) if of else None


def asked_for(trial: Trial, planned: Treatment | None) -> bool:
    """Whether answers from a cache are a part of what was to be measured.

    That is so where a share of hits was wanted, where the study turns a cache of answers on, and
    of a replay, which repeats requests as production did.
    """
    if trial.load.kind == "replay" or (trial.cache and trial.cache.wanted_hit is not None):
        return True
    if planned is None:
        return False
    varied = (v for name, v in planned.levels.items() if name.rpartition(".")[2] == _VARIED)
    return any(planned.parameters.get(name) for name in _LEVERS) or any(varied)


def unasked(trial: Trial, trace: Trace, planned: Treatment | None) -> dict[str, Estimate]:
    """The figure of the answers that came from a cache for which nobody asked; else empty."""
    share = None if asked_for(trial, planned) else answered(trial, trace)
    return {} if share is None else {FIGURE: Estimate(share, "share", int(trace.due.size))}


def from_cache(trial: Trial, trace: Trace, planned: Treatment | None) -> Iterator[Row]:
    """That the cache of a server answered, and not its search."""
    share = answered(trial, trace)
    if share is None or share <= SHARE or trial.cache is None or trial.cache.counted is None:
        return
    counted = trial.cache.counted
    if trial.cache.wanted_hit is not None:
        return  # which is judged by itself
    of = counted.asked or counted.lookups
    what = "lookups" if counted.single else "searches of shards"
    by = f"by {counted.source}" + ("" if counted.since else ", warm-up included")
    number = f"{percent(share)} ({counted.hits:,} of {of:,} {what}, {by})"
    if asked_for(trial, planned):
        why = "a replay repeats requests as its log does"
        if trial.load.kind != "replay":
            why = "the study turns it on"
        yield (
            "answers from a cache",
            "note",
            number,
            f"This share of the answers came from the server's cache of answers; {why}, so its "
            "speed is a "
            "part of what was measured.",
            "None, if that is what is asked; with the cache off the search alone is measured.",
        )
        return
    off, size = _OFF.get(trial.engine, "Turn it off"), trial.cache.cache_entries
    holds = f" ({size:,})" if size else ""
    yield (
        "answers from a cache",
        "warning",
        number,
        f"This share of the answers came from the server's cache of answers: {_means(share)}.",
        f"{off}, or ask more distinct requests than it holds{holds}, or name the share of hits "
        "that is wanted (`--cache-hit`).",
    )


def sentence(treatments: Iterable[TreatmentResult]) -> str:
    """For the verdict: whose answers came from a cache unasked; empty where none did."""
    found: dict[str, list[float]] = {}
    for t in treatments:
        own = (x.figures[FIGURE].value for x in t.trials if x.counts and FIGURE in x.figures)
        found.setdefault(t.system, []).extend(share for share in own if share > SHARE)
    said = []
    for system, shares in ((system, own) for system, own in found.items() if own):
        low, high = percent(min(shares)), percent(max(shares))
        span = low if low == high else f"Between {low} and {high}"
        mean = sum(shares) / len(shares)
        said.append(f"{span} of the answers of {system} came from its cache: {_means(mean)}.")
    return " ".join(said)


def percent(share: float) -> str:
    """A share as per cent, never rounded up to all; near to all with one digit more."""
    digits = 1000 if share < 0.99 else 10_000
    return f"{math.floor(digits * share + 1e-9) / (digits / 100):g} %"


def _means(share: float) -> str:
    if share > 0.5:
        return "this is the cache's speed, not the search's"
    return "the figures mix the cache's speed with the search's"


def judged(cache: Cache, in_flight: int, requests: int) -> Iterator[Row]:
    """What there is to be said of a drive's hit rate; nothing where it is as was wanted.

    ``in_flight``: requests at the same time, at most. ``requests``: how many were sent while it
    was counted. A row is kind, severity, number, meaning and remedy of a finding.
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
            f"{plan.cache_entries:,} entries that is full; check that it has that many.",
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
            "Not one request was a hit: the cache is off, the order was cyclic, the documents "
            "change, or something in each request makes it look new to the cache.",
            "Start the server with a cache, let it rest for a second after the last change, and "
            "draw the requests independently.",
        )
    entries = _entries_like(plan, counted.hits / counted.lookups)
    cause = (
        f"A cache of about {entries:,} entries would be hit this often, but the requests were "
        f"drawn for one of {plan.cache_entries:,}; or it forgets by age (Droonga's after 60 s), "
        "lost all "
        "when documents changed, or was not full yet."
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
