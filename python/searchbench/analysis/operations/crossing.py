"""Where two methods are equally fast: the rows at which the ratio of their times is 1.

The log of the ratio is paired by block at every number of rows that both were measured at. A number
of rows has the noise of its own blocks and no other's: one that is noisier than the rest would
else seem to cross. The interval of a crossing is from the nearest number of rows at which the one
method is faster to the nearest at which the other is (t over blocks, 95 % for all levels of all
pairs together); where between them it lies is interpolated, and not known. An end is only where the
study resolves a difference, so each method must have been found faster on its side. Methods that
are not compared, as they return other rows, do not cross; nor does anything in a first look.
Nothing is said beyond the rows that were measured; and a sentence reaches only as far as the one
method is shown to be faster at each of them. What is known of the others stands behind it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, takewhile

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis import answer
from searchbench.analysis.answer import Rank, Said
from searchbench.analysis.judgement import Comparison, Interval
from searchbench.analysis.operations.levels import (
    APART,
    Level,
    Verdicts,
    at_rows,
    by,
    clauses,
    levels,
)
from searchbench.analysis.operations.model import Crossover, MethodCurve, OperationResult
from searchbench.analysis.stats.distributions import student
from searchbench.analysis.stats.intervals import LEVEL
from searchbench.analysis.words import digits, listed

FEW = 3
METHOD = "t over the blocks of each level, all levels together, from level to level"


def judged(
    operations: Sequence[OperationResult],
    compared: Sequence[Comparison],
    metric: str,
    *,
    first_look: bool,
) -> tuple[OperationResult, ...]:
    """The operations with what crosses by the verdicts of the study; nothing in a first look."""
    of, rates = _by_pair(compared, metric), _by_pair(compared, "throughput")
    return tuple(
        replace(each, crossovers=() if first_look else crossovers(each.methods, of, rates))
        for each in operations
    )


def _by_pair(compared: Sequence[Comparison], metric: str) -> Verdicts:
    return {(c.a, c.b): c for c in compared if c.metric == metric}


def said(
    operations: Sequence[OperationResult], compared: Sequence[Comparison], metric: str
) -> list[Said]:
    """``sentences`` for a verdict: who varies the number of rows asks this first. Many crossings
    are no headline.
    """
    of, rates = _by_pair(compared, metric), _by_pair(compared, "throughput")
    told = sentences(operations, of, rates)
    return [*answer.said(told, Rank.ANSWER if len(told) <= FEW else Rank.MORE, Rank.MORE)]


def sentences(
    operations: Sequence[OperationResult], verdicts: Verdicts, rates: Verdicts | None = None
) -> list[str]:
    """From how many rows on one method is faster than another; of two methods that are compared
    wherever both answer also that they are not seen to change places, or whether they do is open.
    """
    several, told = len(operations) > 1, list[str]()
    for each in operations:
        sure = [c for c in each.crossovers if c.interval is not None]
        name = f"{each.name}: " if several else ""
        told += [f"{name}{sentence(c)}." for c in sure]
        methods = list(dict.fromkeys(m.method for m in each.methods))
        if not sure and each.by_rows and len(methods) == 2:
            told += [f"{name}{one}." for one in _of_no_crossing(each, verdicts, rates or {})]
    return told


def _of_no_crossing(of: OperationResult, verdicts: Verdicts, rates: Verdicts) -> Iterator[str]:
    """What two methods show that have no resolved crossing, a clause; nothing where they are not
    compared though both answer, as they return other rows.
    """
    each = [(a, level) for a, b in _pairs(of.methods) for level in levels(a, b, verdicts, rates)]
    found = [level for _, level in each if level.less]
    rows = sorted({level.rows for level in found})
    if len(rows) < 2 or any(level.why in APART for _, level in each):
        return
    names = list(dict.fromkeys(m.method for m in of.methods))
    several = len({a.held for a, _ in each}) > 1
    gone = clauses(
        (level.rows, f"{level.why} ({a.held})" if several else level.why)
        for a, level in each
        if level.why
    )
    between = f"between {rows[0]:,} and {rows[-1]:,} rows"
    if of.crossovers:
        yield f"Whether {listed(names)} change places {between} is not resolved{gone}"
        return
    if len({level.less for level in found}) != 1:
        return
    faster = found[0].less
    (slower,) = {*names} - {faster}
    sure = sum(level.sure for level in found)
    if not sure:
        which = f"Which of {listed(names)} is faster"
        yield f"{which} is not resolved at any number of rows {between}{gone}"
        return
    whole = not any(rows[0] < level.rows < rows[-1] for _, level in each if level.why)
    where = f"at each number of rows {between}" if whole else at_rows(rows)
    against = clauses((level.rows, said) for level in found if (said := level.against(faster)))
    yield (
        f"{slower} took longer than {faster} ({by(found)}) {where}, which is resolved at "
        f"{sure} of {len(found)}"
        f"{against or '; nothing shows that they change places there'}{gone}"
    )


def sentence(c: Crossover) -> str:
    """A resolved crossing, a clause."""
    assert c.interval is not None
    low, high = digits(c.interval.low), digits(c.interval.high)
    where = f"{c.held}: " if c.held else ""
    end = f", up to {c.until:,} rows" if c.until else ""
    return (
        f"{where}{c.above} is faster than {c.below} ({c.by}) from about {digits(c.rows)} rows on "
        f"(between {low} and {high}){end}{c.but}"
    )


def _pairs(curves: Sequence[MethodCurve]) -> list[tuple[MethodCurve, MethodCurve]]:
    """Every two methods of the same crossing of levels."""
    return [(a, b) for a, b in combinations(curves, 2) if a.held == b.held and a.method != b.method]


def crossovers(
    curves: Sequence[MethodCurve], verdicts: Verdicts | None = None, rates: Verdicts | None = None
) -> tuple[Crossover, ...]:
    """Every crossing of every two methods of the same crossing of levels.

    ``verdicts``: the comparisons of the study, by their treatments; None: there are none to heed.
    ``rates``: those by throughput.
    """
    pairs = _pairs(curves)
    tests = sum(len({p.rows for p in a.points} & {p.rows for p in b.points}) for a, b in pairs)
    return tuple(
        found
        for a, b in pairs
        for found in _of_two(a, b, tests, levels(a, b, verdicts, rates or {}))
    )


def _of_two(a: MethodCurve, b: MethodCurve, tests: int, each: Sequence[Level]) -> list[Crossover]:
    known = [level for level in each if level.less]
    if len(known) < 2:
        return []
    at = [math.log(level.rows) for level in known]
    means = [float(level.logs.mean()) for level in known]
    half = [_half(level.logs, tests) for level in known]
    sure = [level.sure for level in known]
    crossing = []
    for i, (left, right) in enumerate(pairwise(means)):
        if left == 0 or left * right >= 0:
            continue
        rows = math.exp(at[i] + (at[i + 1] - at[i]) * left / (left - right))
        below, above = (b.method, a.method) if left > 0 else (a.method, b.method)
        interval, why = _interval(known, means, half, sure, i)
        found = Crossover(below, above, a.held, rows, interval, why)
        crossing.append(found if interval is None else _as_far_as_known(found, interval, each))
    return crossing


def _half(logs: NDArray[np.float64], tests: int) -> float:
    """Half of the interval of the mean of one level; infinite of one block."""
    n = logs.size
    if n < 2:
        return math.inf
    one_sided = 1 - (1 - LEVEL) / (2 * tests)
    return student(one_sided, n - 1) * float(logs.std(ddof=1)) / math.sqrt(n)


def _as_far_as_known(c: Crossover, within: Interval, each: Sequence[Level]) -> Crossover:
    """With where its sentence ends, and what is otherwise than that would have it, or not known.

    Within the interval it is not said who is faster, so there an open difference is no exception.
    """
    shown = takewhile(lambda x: x.faster == c.above, (x for x in each if x.rows >= within.high))
    until = max(level.rows for level in shown)

    def but(level: Level) -> str:
        expected = c.below if level.rows < c.rows else c.above
        against = level.against(level.faster or expected)
        if level.faster and (level.faster != expected or level.rows > until):
            return " but ".join(filter(None, [f"{level.faster} is faster", against]))
        if level.why or against or level.faster:
            return level.why or against
        return "" if within.low < level.rows < within.high else "it is not resolved"

    told = clauses((level.rows, said) for level in each if (said := but(level)))
    reached = by(level for level in each if level.less and level.rows <= until)
    return replace(c, by=reached, until=until, but=told)


def _interval(
    levels: Sequence[Level],
    means: Sequence[float],
    half: Sequence[float],
    sure: Sequence[bool],
    i: int,
) -> tuple[Interval | None, str]:
    """The levels around the crossing after the ``i``-th at which either is surely faster; or why
    there are none.
    """
    if not any(map(math.isfinite, half)):
        return None, "each was measured in one block, which says nothing about the scatter"
    sign = 1.0 if means[i] > 0 else -1.0
    below, above = (
        [turn * m - h if s else -math.inf for m, h, s in zip(means, half, sure, strict=True)]
        for turn in (sign, -sign)
    )
    low, high = _end(levels, below, above, i, -1), _end(levels, above, below, i + 1, 1)
    if low is None or high is None:
        side = "below" if low is None else "above"
        return None, f"the difference {side} it is within the noise"
    return Interval(float(low), float(high), LEVEL, METHOD), ""


def _end(
    levels: Sequence[Level],
    clear: Sequence[float],
    opposite: Sequence[float],
    start: int,
    step: int,
) -> int | None:
    """From ``start`` outwards, the first rows at which the bound ``clear`` is above 0; None: none,
    or the other method is surely faster before that.

    How a method's time goes between two levels is not known: it may be a line in the rows, or a
    plan that changes at some number of them. So the interval ends where something was measured.
    """
    j = start
    while 0 <= j < len(levels) and opposite[j] <= 0:
        if clear[j] > 0:
            return levels[j].rows
        j += step
    return None
