"""Two steps of closed loops in two records: what is answered differently wins nothing there.

The lesser of two ratios counts: over all requests, and over those that both answer alike. So what
became slower is a loss, whatever it answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.compare.run import Run
from searchbench.analysis.judgement import Estimate
from searchbench.analysis.sweep import points as at
from searchbench.analysis.sweep.mixed import Mixed
from searchbench.analysis.sweep.points import Point


def mixes(
    first: tuple[Run, Point], second: tuple[Run, Point], same: NDArray[np.int64] | None
) -> list[Mixed]:
    """All requests that both measured, and those of them that both answer alike, if others are
    known and any of them was measured. All are those of a class, where the runs are of one.
    """
    (run, a), (other, b) = first, second
    of_each = run.loads[a.treatment], other.loads[b.treatment]
    samples = run.samples, other.samples
    found = [Mixed(a, b, of_each, samples, run.members)]
    if same is not None and run.members is not None:
        same = np.intersect1d(same, run.members)
    if same is not None and same.size:
        found.append(Mixed(a, b, of_each, samples, same))
    return [one for one in found if one.queries] or found[:1]


def asked(mixed: Mixed) -> int:
    """How many requests either measured, of those that the mix may have."""
    return mixed.asked if mixed.counted is None else min(mixed.asked, int(mixed.counted.size))


def lesser(
    a: Point, b: Point, metric: str, mixes: Sequence[Mixed]
) -> tuple[Mixed | None, Estimate | None, float | None]:
    """The lesser ratio of all mixes: other answers win nothing, and lose what they lose."""
    if not mixes:
        return None, *at.better(a, b, metric)
    each = [(mixed, *mixed.better(metric)) for mixed in mixes]
    known = [one for one in each if one[1] is not None]
    return min(known, key=lambda one: one[1].value if one[1] else math.inf, default=each[0])
