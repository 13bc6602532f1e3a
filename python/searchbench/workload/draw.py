"""How many distinct requests to draw, and how, so that a cache is hit with a chosen probability.

Requests are drawn independently of each other (the independent reference model). A cache of C
answers in front of N distinct requests is then hit with a probability that can be computed:

- Drawn with equal chances it is C / N, exactly, for every cache that is full and does not know
  the future: LRU, FIFO and random replacement alike.
- Drawn with unequal chances p_i it is Che's approximation (Che, Tung and Wang, "Hierarchical web
  caching systems", doi 10.1109/JSAC.2002.801752; why it is so good: Fricker, Robert and Roberts,
  "A versatile and accurate approximation for LRU cache performance", arXiv 1202.3974). A request
  stays for a time t, the same for all, counted in requests, that fills the cache:

      LRU           q_i = 1 - exp(-p_i t)       sum of q_i = C       hit = sum of p_i q_i
      FIFO, random  q_i = p_i t / (1 + p_i t)   the same sums

  (the second row: Martina, Garetto and Leonardi, "A unified approach to the performance analysis
  of caching systems", arXiv 1307.6702). From 10 entries on it is within a point of simulated
  caches; smaller ones, where it can be ten off, are not promised anything.

Never in cyclic order: LRU and FIFO are then never hit, however close C is to N.

What a cache does besides is not in this: entries that end by age lose at most C / (age * rate) of
the hits (100 entries of 60 s at 1,000 requests a second: 0.2 points), and for requests that are
answered at the same time see ``CachePlan.overlap``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from searchbench.errors import QueryError

Distribution = Literal["uniform", "zipf"]
Policy = Literal["lru", "fifo", "random"]
Chances = NDArray[np.float64]

_USUAL_EXPONENT = 1.0
_GREATEST_EXPONENT = 10.0
_FEWEST_ENTRIES = 10
_MOST_DISTINCT = 10_000_000
# An offer that misses what was wanted by more than this is none.
_TOLERANCE = 0.01
# Popular requests come in bursts of hits: the measured rate scatters more than independent hits
# would, by a factor of 1.0 to 1.3 in simulations over C, N and s.
_SPREAD_UNEQUAL = 1.3
# Ranks up to here are summed one by one, those beyond in bins of this relative width: the sums
# are then right to about 1e-7.
_SINGLE_RANKS = 4096
_BIN = 0.002


@dataclass(frozen=True, eq=False)
class CachePlan:
    """Draw from ``distinct`` requests with chances ``weights`` (they fall, and add up to 1).

    ``expected_hit``: the probability of a hit once the cache is full, 0..1. ``fill_requests``:
    how many requests fill an empty cache, on average. ``warmup_requests``: after so many it is
    full and in its steady state but for once in about 700 times.
    """

    cache_entries: int
    wanted_hit: float
    distribution: Distribution
    exponent: float
    policy: Policy
    distinct: int
    weights: Chances = field(repr=False)
    expected_hit: float
    fill_requests: float
    warmup_requests: int

    def spread(self, requests: int) -> float:
        """Standard deviation of the hit rate that is measured over so many requests, 0..1."""
        each = math.sqrt(self.expected_hit * (1 - self.expected_hit) / max(1, requests))
        return each if self.distribution == "uniform" else each * _SPREAD_UNEQUAL

    def overlap(self, in_flight: int) -> float:
        """How much of the hit rate can be lost, at most, with so many requests in flight.

        A request that misses enters the cache when it has been answered; until then the same
        one misses again. Each of the others in flight can do that about 1 / (1 - hit) times in
        the time of one miss, since hits are soon over.
        """
        kept = 1 - _stay(self.weights, self.cache_entries, self.policy)[1]
        again = float((self.weights**2 * kept).sum()) / (1 - self.expected_hit)
        return min(self.expected_hit, max(0, in_flight - 1) * again)

    def as_json(self) -> dict[str, Any]:
        """What belongs on record; the weights follow from it."""
        kept = (key.name for key in fields(self) if key.name != "weights")
        return {name: getattr(self, name) for name in kept}


def plan(
    cache_entries: int,
    hit: float,
    distribution: Distribution = "uniform",
    *,
    available: int | None = None,
    exponent: float | None = None,
    policy: Policy = "lru",
) -> CachePlan:
    """How to draw so that a cache of ``cache_entries`` answers is hit with probability ``hit``.

    It is the number of distinct requests that is found: with equal chances, or ("zipf") with
    chances that fall as rank ** -``exponent`` (1 if not said). ``available``: how many there are.
    QueryError, with what would do, where it cannot be had.
    """
    if cache_entries < 1:
        raise QueryError(
            "the cache has no entries, so it is never hit; start the server with a cache, or "
            "give the number of answers that it keeps"
        )
    if not 0 < hit < 1:
        raise QueryError(_no_probability(hit))
    least = max(cache_entries, math.ceil(cache_entries / hit))
    if least >= _MOST_DISTINCT:
        raise QueryError(
            f"this takes {least:,} distinct requests or more, and at most {_MOST_DISTINCT:,} are "
            "drawn from; use a smaller cache or a higher rate"
        )
    if distribution == "uniform":
        if exponent:
            raise QueryError("uniform draws have no exponent; use zipf, or leave the exponent out")
        exponent = 0.0
        count = max(cache_entries + 1, round(cache_entries / hit))
    elif cache_entries < _FEWEST_ENTRIES:
        raise QueryError(
            f"what unequal draws do to a cache of {cache_entries} entries cannot be predicted; "
            f"use one of {_FEWEST_ENTRIES} or more, or equal chances"
        )
    else:
        exponent = _USUAL_EXPONENT if exponent is None else exponent
        if not 0 <= exponent <= _GREATEST_EXPONENT:
            raise QueryError(f"an exponent of {exponent:g} is not between 0 and "
                             f"{_GREATEST_EXPONENT:g}")  # fmt: skip
        count = _count_of(cache_entries, hit, exponent, policy)
    if available is not None and count > available:
        other = ""
        if distribution == "zipf" and available > cache_entries / hit:
            # Rounded down: the greater the exponent, the more requests it takes.
            fitting = math.floor(1000 * _exponent_of(cache_entries, hit, available, policy)) / 1000
            other = f", or draw with the exponent {fitting:g} (zipf:{fitting:g})"
        raise QueryError(
            f"a hit rate of {hit:g} on a cache of {cache_entries:,} entries takes {count:,} "
            f"distinct requests, and there are {available:,}: make more (`searchbench queries "
            f"extract FILE --distinct --limit {count} --template '/path?query={{term}}'`){other}"
        )
    made = plan_of(
        cache_entries, hit, distribution, distinct=count, exponent=exponent, policy=policy
    )
    if abs(made.expected_hit - hit) > min(_TOLERANCE, min(hit, 1 - hit) / 2):
        raise QueryError(
            f"a cache of {cache_entries:,} entries is too small for a hit rate of {hit:g}: "
            f"{count:,} distinct requests give {made.expected_hit:.3g}, and no number of them "
            "comes nearer; use a larger cache or another rate"
        )
    return made


def plan_of(
    cache_entries: int,
    wanted_hit: float,
    distribution: Distribution,
    *,
    distinct: int,
    exponent: float,
    policy: Policy = "lru",
) -> CachePlan:
    """The plan of draws whose numbers are chosen, or on record, with what follows from them."""
    weights = np.arange(1, distinct + 1, dtype=np.float64) ** -exponent
    weights /= weights.sum()
    full, seen = _stay(weights, cache_entries, "lru")
    # How fast new requests come when the cache is just full, and how much that time scatters.
    new_per_request = 1 - float((weights * seen).sum())
    scatter = math.sqrt(float((seen * (1 - seen)).sum())) / new_per_request
    expected = cache_entries / distinct
    settled = 0.0
    if exponent == 0:
        full = float((distinct / (distinct - np.arange(cache_entries))).sum())
    else:
        stay, stays = _stay(weights, cache_entries, policy)
        expected = float((weights * stays).sum())
        # LRU holds what was asked last, so it is in its steady state as soon as it is full.
        settled = 0.0 if policy == "lru" else 3 * stay
    warmup = math.ceil(full + 3 * scatter + settled)
    return CachePlan(
        cache_entries,
        wanted_hit,
        distribution,
        exponent,
        policy,
        distinct,
        weights,
        expected,
        full,
        warmup,
    )


def hit_rate(weights: Chances, cache_entries: int, policy: Policy = "lru") -> float:
    """The probability of a hit where requests come independently with these chances, 0..1.

    ``weights`` need not add up to 1: how often each was asked will do.
    """
    chances = np.asarray(weights, np.float64) / np.sum(weights)
    if cache_entries >= np.count_nonzero(chances):
        return 1.0
    _, stays = _stay(chances, cache_entries, policy)
    return float((chances * stays).sum())


def draw(plan: CachePlan, length: int, seed: int) -> NDArray[np.uint32]:
    """``length`` independent draws of 0..distinct-1, 0 being the most frequent; uint32.

    A longer sequence of the same seed begins as the shorter one.
    """
    rng = np.random.default_rng([seed, 0x6361636865])
    cumulative = np.cumsum(plan.weights)
    marks = rng.random(length) * cumulative[-1]
    found: NDArray[np.intp] = np.searchsorted(cumulative, marks, side="right")
    return np.minimum(found, plan.distinct - 1).astype(np.uint32)


def _no_probability(hit: float) -> str:
    if hit == 1:
        return (
            "a hit rate of 1 is a cache that holds every request: ask fewer distinct requests than "
            "it has entries, after a warm-up; below that, give for example 0.9"
        )
    if hit == 0:
        return (
            "a hit rate of 0 is a server without its cache: start it without one, or ask no "
            "request twice; above that, give for example 0.1"
        )
    percent = f"; {hit:g} % is {hit / 100:g}" if 1 < hit < 100 else ""
    return f"a hit rate of {hit:g} is not a probability between 0 and 1{percent}"


def _count_of(entries: int, hit: float, exponent: float, policy: Policy) -> int:
    """The number of requests whose hit rate comes nearest; the rate falls as it grows."""

    def rate(count: int) -> float:
        return _rate(count, exponent, entries, policy)

    least, most = entries + 1, _MOST_DISTINCT
    if rate(most) > hit:
        raise QueryError(
            f"with the exponent {exponent:g} a cache of {entries:,} entries is hit with "
            f"probability {rate(most):.3g} even by {most:,} distinct requests, so {hit:g} cannot "
            "be reached; use a smaller exponent, or equal chances, which need "
            f"{round(entries / hit):,}"
        )
    if rate(least) <= hit:
        return least
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if rate(middle) > hit else (least, middle)
    return least if rate(least) - hit < hit - rate(most) else most


def _exponent_of(entries: int, hit: float, count: int, policy: Policy) -> float:
    """The exponent at which ``count`` requests have this hit rate; the rate grows with it."""
    low, high = 0.0, _GREATEST_EXPONENT
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _rate(count, middle, entries, policy) < hit else (low, middle)
    return (low + high) / 2


def _rate(count: int, exponent: float, entries: int, policy: Policy) -> float:
    chances, many = _grouped(count, exponent)
    _, stays = _stay(chances, entries, policy, many)
    return float((chances * stays * many).sum())


def _grouped(count: int, exponent: float) -> tuple[Chances, Chances]:
    """Chances of ranks 1..count, and how many ranks have each: the tail in bins."""
    single = min(count, _SINGLE_RANKS)
    ranks = np.arange(1, single + 1, dtype=np.float64)
    many = np.ones(single)
    if count > single:
        bins = math.ceil(math.log(count / single) / _BIN)
        edges = np.unique(np.rint(np.geomspace(single, count, bins + 1)))
        widths = np.diff(edges)
        # The ranks edge+1 .. edge+width have this middle.
        ranks = np.concatenate([ranks, edges[:-1] + (widths + 1) / 2])
        many = np.concatenate([many, widths])
    chances = ranks**-exponent
    return chances / (chances * many).sum(), many


def _stay(
    chances: Chances, entries: int, policy: Policy, many: Chances | float = 1.0
) -> tuple[float, Chances]:  # fmt: skip
    """How long a request stays, counted in requests, and with what probability each is there.

    ``many``: how many requests have each of the chances. Newton's method from the left: the sum
    is concave and grows, so no step goes beyond.
    """

    def there(t: float) -> Chances:
        return -np.expm1(-chances * t) if policy == "lru" else chances * t / (1 + chances * t)

    t = float(entries)
    for _ in range(1000):
        held = there(t)
        lacking = entries - float((held * many).sum())
        slope = float((many * chances * (1 - held) ** (1 if policy == "lru" else 2)).sum())
        if lacking <= 1e-9 * entries or slope <= 0:
            break
        t += lacking / slope
    return t, there(t)
