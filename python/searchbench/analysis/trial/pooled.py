"""Figures of several trials of one treatment as one: never an average of quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.stats.intervals import geometric_estimate, mean_interval


def over_replicates(each: Sequence[Estimate]) -> Estimate:
    """A figure of each trial as one, with the interval of its mean; at least one."""
    values, unit = [e.value for e in each], each[0].unit
    if found := geometric_estimate(values, unit):
        return found
    span = mean_interval(values)
    if span is not None:  # what cannot be less than nothing is not said to be perhaps less
        span = replace(span, low=max(0.0, span.low))
    return Estimate(float(np.mean(values)), unit, len(values), span)


def wider(pooled: Estimate, replicates: Estimate | None) -> Estimate:
    """A figure of all samples together with the wider interval of its own and that of trials."""
    inner = pooled.interval
    if inner is None or replicates is None or replicates.interval is None:
        return pooled
    outer = replicates.interval
    low, high = min(inner.low, outer.low), max(inner.high, outer.high)
    method = f"the wider of order statistics and {outer.method}"
    return replace(pooled, interval=Interval(low, high, inner.level, method))
