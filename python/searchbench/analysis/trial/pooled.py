"""Figures of several trials of one treatment as one: never an average of quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.stats.distributions import (
    beta,
    chi_square,
    noncentral_student,
    normal,
    student,
)
from searchbench.analysis.stats.intervals import geometric_estimate, mean_interval
from searchbench.analysis.trial import latency
from searchbench.analysis.trial.latency import Nanoseconds

FOREVER_NS = np.iinfo(np.int64).max
_UPPER = 0.5 + latency.LEVEL / 2
_ALIKE = 0.9  # of trials that do not differ have a smaller scatter of their shares
_YEARS = 20.0  # the logarithm of as many seconds


def over_replicates(each: Sequence[Estimate]) -> Estimate:
    """A figure of each trial as one, with the interval of its mean; at least one.

    The mean is geometric, but that of shares arithmetic: so many failed of all that were asked, and
    a trial without a failure makes no share greater.
    """
    values, unit = [e.value for e in each], each[0].unit
    if unit != "share" and (found := geometric_estimate(values, unit)):
        return found
    span = mean_interval(values)
    if span is not None:  # what cannot be less than nothing is not said to be perhaps less
        high = min(1.0, span.high) if unit == "share" and max(values) <= 1 else span.high
        span = replace(span, low=max(0.0, span.low), high=high)
    return Estimate(float(np.mean(values)), unit, len(values), span)


def of_figure(name: str, each: Sequence[Estimate]) -> Estimate:
    """The figure ``name`` of each trial as one: as ``over_replicates``, but the greatest of maxima,
    without an interval, as nobody knows how great the next one is.
    """
    if len(each) > 1 and name.endswith(("_max", "_max_s")):
        return replace(max(each, key=lambda e: e.value), n=len(each), interval=None)
    return over_replicates(each)


def pooled_quantile(parts: Sequence[Nanoseconds], pooled: Nanoseconds, q: float) -> Estimate | None:
    """The q-quantile of all trials together, in seconds; None where there are too few samples.

    Its interval is the widest of three: order statistics over all samples; the t-interval over the
    trials' own quantiles, which is that of a usual trial; and that of the share of each trial's
    samples beyond the quantile, as slow trials decide those of all (Woodruff 1952, with trials as
    clusters; Korn and Graubard 1998). If trials differ so much that their samples are worth fewer
    independent ones than the quantile needs, the upper end is that of a tolerance limit in place of
    the latter: as far as such a share of further trials reaches. There is no interval if how trials
    differ is not known.

    ``parts``: the ascending durations of each trial, ``pooled`` those of all; the greatest number
    there is stands for a request that took forever.
    """
    found = latency.quantile(pooled, q)
    there = [part for part in parts if part.size]
    if found is None or found.interval is None or len(there) < 2:
        return found
    # A trial that has too few for an interval still tells how trials differ, if one of its own is
    # the quantile.
    own = [part[latency.rank(part.size, q)] for part in there if part.size * (1 - q) >= 1 - 1e-9]
    if len(own) < 2:
        return replace(found, interval=None)
    low, high = found.interval.low, found.interval.high
    if (ends := ends_of_share(there, pooled, q)) is not None:
        first, last = (float(pooled[latency.rank(pooled.size, end)]) / 1e9 for end in ends)
        low, high = min(low, first), max(high, last)
    elif max(own) < FOREVER_NS:
        high = max(high, _tolerated(np.array(own) / 1e9, q))
    if max(own) == FOREVER_NS:
        low, high = min(low, float(min(own)) / 1e9), FOREVER_NS / 1e9
    elif span := over_replicates([Estimate(float(ns) / 1e9, "s", 1) for ns in own]).interval:
        low, high = min(low, span.low), max(high, span.high)
    share = "Woodruff's" if ends is not None else "a tolerance limit"
    method = f"the widest of order statistics, and over replicates t on logs and {share}"
    return replace(found, interval=Interval(low, high, latency.LEVEL, method))


def _tolerated(own: NDArray[np.float64], q: float) -> float:
    """At most so much is the q-quantile of a share ``q`` of further trials, whose logarithms are
    normal: so is that of all their samples together. (Upper tolerance limit, one-sided, from the
    noncentral t; Hahn and Meeker 1991, 4.6.) No more than the t-interval needs for the median.
    """
    logs, k = np.log(np.maximum(own, 1e-9)), own.size
    factor = noncentral_student(_UPPER, k - 1, normal(q) * math.sqrt(k)) / math.sqrt(k)
    # Two trials that are very unlike tell nothing, in a number that can be written.
    return math.exp(min(_YEARS, float(logs.mean()) + factor * float(logs.std(ddof=1))))


def ends_of_share(
    parts: Sequence[Nanoseconds], pooled: Nanoseconds, q: float
) -> tuple[float, float] | None:
    """Between which quantiles of all samples the q-quantile of many more trials is, by the share of
    each trial that is beyond it; None where the samples are worth too few.
    """
    n, k, at = pooled.size, len(parts), pooled[latency.rank(pooled.size, q)]
    sizes = np.array([part.size for part in parts], np.float64)
    above = sizes - [np.searchsorted(part, at, "right") for part in parts]
    p = float(above.sum()) / n
    if not 0 < p < 1:
        return q, q
    # The variance of a ratio of sums (Cochran 1977, 6.3), beside that of independent samples.
    variance = k / (k - 1) * float(((above - p * sizes) ** 2).sum()) / n**2
    effect = variance * n / (p * (1 - p))
    if effect > chi_square(_ALIKE, k - 1) / (k - 1):  # trials differ: it is known by k of them
        effect *= (student(_UPPER, k - 1) / normal(_UPPER)) ** 2
    worth = n / max(1.0, effect)
    if worth < latency.minimum_samples(q):
        return None
    low = 1 - beta(_UPPER, p * worth + 1, (1 - p) * worth)
    return low, 1 - beta(1 - _UPPER, p * worth, (1 - p) * worth + 1)
