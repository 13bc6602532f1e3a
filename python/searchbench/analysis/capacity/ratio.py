"""Two limits as a ratio: between two records, or of the readers beside roles and without any."""

from __future__ import annotations

import math

from searchbench.analysis.capacity.verdict import above, rough
from searchbench.analysis.judgement import Capacity, Estimate, Interval

ROUGH = 0.7  # how often an interval of a search of little effort holds the truth, about


def middle(one: Capacity) -> Estimate | None:
    """The middle of an interval; None where a side is open."""
    if one.holds is None or one.fails is None:
        return None
    level = ROUGH if rough(one) else 0.95
    span = Interval(one.holds, one.fails, level, "posterior of all trials")
    return Estimate(math.sqrt(one.holds * one.fails), "queries/s", len(one.trials), span)


def ratio_of(x: Capacity, y: Capacity) -> Estimate | None:
    """y over x, as far apart as both intervals allow; of open sides as far as is known."""
    a, b = middle(x), middle(y)
    if a is not None and b is not None and a.interval is not None and b.interval is not None:
        low, high = b.interval.low / a.interval.high, b.interval.high / a.interval.low
        level = min(a.interval.level, b.interval.level)
        span = Interval(low, high, level, "the intervals of both searches")
        return Estimate(b.value / a.value, "ratio", min(a.n, b.n), span)
    if above(y, x):  # at least so much more
        return Estimate((y.holds or 0.0) / (x.fails or 1.0), "ratio", len(y.trials))
    if above(x, y):  # at most so much is left
        return Estimate((y.fails or 0.0) / (x.holds or 1.0), "ratio", len(y.trials))
    return None
