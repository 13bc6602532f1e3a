"""Two steps of closed loops in two records: what is answered differently wins nothing there.

The lesser of two ratios counts: over all requests, and over those that both answer alike. So what
became slower is a loss, whatever it answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.compare import whole
from searchbench.analysis.compare.run import Run
from searchbench.analysis.judgement import Estimate
from searchbench.analysis.stats import within
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


def counted(
    first: tuple[Run, Point], second: tuple[Run, Point]
) -> tuple[Estimate | None, float | None]:
    """The ratio of what was counted (``whole.rates``), block by block, and the p that it is 1.

    The intervals of the rates are those of the steps, from slices of their windows.
    """
    (run, a), (other, b) = first, second
    of_each = run.loads[a.treatment], other.loads[b.treatment]
    mine, theirs = ({s.block: s for s in p.steps} for p in (a, b))
    both = sorted(mine.keys() & theirs.keys())
    steps = {k: (mine[k], theirs[k]) for k in both} or {0: (a.steps[0], b.steps[0])}
    found: tuple[dict[int, Estimate], dict[int, Estimate]] = {}, {}
    for block, (x, y) in steps.items():
        rates = whole.rates(run.samples.measured(x.trial), other.samples.measured(y.trial), of_each)
        for into, step, rate in zip(found, (x, y), rates, strict=True):
            own = step.answered
            if own is None or not own.value or not rate:
                continue
            by, span = rate / own.value, own.interval
            wide = span and replace(span, low=by * span.low, high=by * span.high)
            into[block] = replace(own, value=rate, interval=wide)
    used = [block for block in found[0] if block in found[1]]
    if not used:
        return None, None
    return at.paired(*found) or within.ratio(found[0][used[0]], found[1][used[0]])
