"""Exact quantiles of durations, how sure they are, and when there are too few to say.

A quantile here is the nearest-rank one: the smallest sample with at least a share q of all
samples at or below it. It is always a time that really happened; nothing is interpolated.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Curve, Estimate, Interval
from searchbench.analysis.stats.distributions import binomial

LEVEL = 0.95
LANDMARKS = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}
# From p0 to p99.99, evenly spaced in −log10(1 − q), with the usual landmarks.
TAIL = sorted({round(1 - 10 ** (-step / 12), 8) for step in range(49)} | {*LANDMARKS.values()})
METHOD = "order statistics, exact binomial"

Nanoseconds = NDArray[np.int64]


def quantile_of(name: str) -> float:
    """The quantile a name such as ``p50``, ``p99`` or ``p999`` stands for: 0.5, 0.99, 0.999."""
    digits = name.removeprefix("p")
    return int(digits) / float(10 ** len(digits))


def minimum_samples(q: float, level: float = LEVEL) -> int:
    """Samples needed before any two order statistics enclose the q-quantile surely enough.

    The widest such interval is from the least to the greatest of n samples; it misses with
    probability q^n (all below) + (1−q)^n (all above), so n is the least with
    1 − q^n − (1−q)^n ≥ level: 6 for the median, 299 for p99, 2,995 for p99.9 at 95 %
    (David and Nagaraja, Order Statistics, 2003, 7.1).
    """
    extreme = max(q, 1 - q)
    if not 0 < extreme < 1:
        return 1
    n = max(1, math.floor(math.log(1 - level) / math.log(extreme)))
    while 1 - q**n - (1 - q) ** n < level:
        n += 1
    return n


@lru_cache(maxsize=65_536)
def interval_ranks(n: int, q: float, level: float = LEVEL) -> tuple[int, int] | None:
    """Ranks (from 0) of the order statistics that enclose the q-quantile of n samples.

    The number of samples below the quantile is binomial(n, q), whatever the distribution.
    Each tail is given (1 − level)/2; where one side has no rank left to give, the whole
    of 1 − level goes to the other. None below ``minimum_samples``.
    """
    if n < minimum_samples(q, level):
        return None
    alpha = 1 - level
    low = binomial(alpha / 2, n, q)  # P(below ≤ low − 1) < alpha / 2
    high = binomial(1 - alpha / 2, n, q) + 1  # P(below ≤ high − 1) ≥ 1 − alpha / 2
    if high > n:
        high = n
        # P(rank `low` ≤ quantile ≤ rank n) = P(low ≤ below ≤ n − 1), ranks from 1
        low = binomial(alpha - q**n, n, q)
    elif low < 1:
        low = 1
        high = binomial(level + (1 - q) ** n, n, q) + 1
    return max(low, 1) - 1, min(high, n) - 1


def rank(n: int, q: float) -> int:
    """The rank (from 0) of the nearest-rank q-quantile of n samples."""
    # Without the rounding, 0.07 · 100 is 7.000000000000001 and its ceiling 8.
    return min(n - 1, max(0, math.ceil(round(q * n, 9)) - 1))


def quantile(ordered_ns: Nanoseconds, q: float) -> Estimate | None:
    """The q-quantile of ascending durations, in seconds; None where there are too few."""
    n = int(ordered_ns.size)
    ranks = interval_ranks(n, q) if 0 < q < 1 else None
    if ranks is None:
        return None
    low, high = (float(ordered_ns[i]) / 1e9 for i in ranks)
    return Estimate(float(ordered_ns[rank(n, q)]) / 1e9, "s", n, Interval(low, high, LEVEL, METHOD))


def curve(label: str, ordered_ns: Nanoseconds) -> Curve:
    """Quantiles of ascending durations over ``TAIL``, in seconds, with their intervals.

    Where there are too few samples for a quantile it is absent. The least (q = 0) is itself.
    """
    n = int(ordered_ns.size)
    rows: list[tuple[float, float, float, float]] = []
    for q in TAIL:
        if q == 0.0 and n:
            least = float(ordered_ns[0]) / 1e9
            rows.append((0.0, least, least, least))
            continue
        found = quantile(ordered_ns, q)
        if found is not None and found.interval is not None:
            rows.append((q, found.value, found.interval.low, found.interval.high))
    x, y, low, high = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Curve(label, x, y, low, high)
