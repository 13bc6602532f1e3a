"""Where two methods are equally fast: the rows at which the ratio of their times is 1.

The log of the ratio is paired by block at every number of rows that both were measured at. Its
95 % band (t over blocks, with the scatter of all levels together, as few blocks say little each) is
drawn in straight lines on log rows; the interval of a crossing is where that band holds 0. Nothing
is said beyond the rows that were measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from searchbench.analysis.judgement import Interval
from searchbench.analysis.operations.model import Crossover, MethodCurve
from searchbench.analysis.stats.distributions import student
from searchbench.analysis.stats.intervals import LEVEL

METHOD = "t over blocks, band held against 1"


def crossovers(curves: Sequence[MethodCurve]) -> tuple[Crossover, ...]:
    """Every crossing of every two methods of the same crossing of levels."""
    found: list[Crossover] = []
    for i, a in enumerate(curves):
        for b in curves[i + 1 :]:
            if a.held == b.held and a.method != b.method:
                found += _of_two(a, b)
    return tuple(found)


def _of_two(a: MethodCurve, b: MethodCurve) -> list[Crossover]:
    levels, means, spread, counts = [], [], [], []
    other = {p.rows: p for p in b.points}
    for p in a.points:
        q = other.get(p.rows)
        blocks = sorted(set(p.by_block) & set(q.by_block)) if q is not None else []
        if q is None or not blocks:
            continue
        logs = np.array([math.log(p.by_block[k] / q.by_block[k]) for k in blocks])
        levels.append(math.log(p.rows))
        means.append(float(logs.mean()))
        spread.append(float(((logs - logs.mean()) ** 2).sum()))
        counts.append(len(blocks))
    if len(levels) < 2:
        return []
    df = sum(counts) - len(counts)
    half = [math.inf] * len(levels)
    if df > 0:
        sd = math.sqrt(sum(spread) / df)
        half = [student(0.5 + LEVEL / 2, df) * sd / math.sqrt(n) for n in counts]
    found = []
    for i, (left, right) in enumerate(pairwise(means)):
        if left == 0 or left * right >= 0:
            continue
        at = levels[i] + (levels[i + 1] - levels[i]) * left / (left - right)
        below, above = (b.method, a.method) if left > 0 else (a.method, b.method)
        interval, why = _interval(levels, means, half, i, at)
        found.append(Crossover(below, above, a.held, math.exp(at), interval, why))
    return found


def _interval(
    levels: Sequence[float], means: Sequence[float], half: Sequence[float], i: int, at: float
) -> tuple[Interval | None, str]:
    """The rows around ``at`` (on logs) at which the band holds 0; or why they have no end."""
    if not math.isfinite(half[i]):
        return None, "each was measured in one block, which says nothing about the scatter"
    sign = 1.0 if means[i] > 0 else -1.0
    low = _end(levels, [sign * m - h for m, h in zip(means, half, strict=True)], i, at, -1)
    high = _end(levels, [-sign * m - h for m, h in zip(means, half, strict=True)], i + 1, at, 1)
    if low is None or high is None:
        side = "below" if low is None else "above"
        return None, f"the difference {side} it is within the noise"
    return Interval(math.exp(low), math.exp(high), LEVEL, METHOD), ""


def _end(
    levels: Sequence[float], clear: Sequence[float], start: int, at: float, step: int
) -> float | None:
    """From ``start`` outwards, where the bound ``clear`` rises above 0; None: nowhere."""
    inner_x, inner = at, None
    j = start
    while 0 <= j < len(levels):
        if clear[j] > 0:
            if inner is None:  # between the crossing, where the bound is below 0, and this level
                other = clear[j - step]
                inner_x, inner = levels[j - step], other
            if inner >= 0:
                return inner_x
            share = clear[j] / (clear[j] - inner)
            found = levels[j] + (inner_x - levels[j]) * share
            return min(found, at) if step < 0 else max(found, at)
        inner_x, inner = levels[j], clear[j]
        j += step
    return None
