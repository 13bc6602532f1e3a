"""Where two methods are equally fast: the rows at which the ratio of their times is 1.

The log of the ratio is paired by block at every number of rows that both were measured at. A number
of rows has the noise of its own blocks and no other's: one that is noisier than the rest would
else seem to cross. The interval of a crossing is from the nearest number of rows at which the one
method is faster to the nearest at which the other is (t over blocks, 95 % for all levels of all
pairs together); where between them it lies is interpolated, and not known. An end is only where the
study resolves a difference, so each method must have been found faster on its side. Methods that
are not compared, as they return other rows, do not cross; nor does anything in a first look.
Nothing is said beyond the rows that were measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from searchbench.analysis import answer
from searchbench.analysis.answer import Rank, Said
from searchbench.analysis.judgement import Comparison, Interval
from searchbench.analysis.operations.model import Crossover, MethodCurve, OperationResult
from searchbench.analysis.stats.distributions import student
from searchbench.analysis.stats.intervals import LEVEL
from searchbench.analysis.words import digits

FEW = 3
METHOD = "t over the blocks of each level, all levels together, from level to level"

Verdicts = Mapping[tuple[str, str], Comparison]


def judged(
    operations: Sequence[OperationResult],
    compared: Sequence[Comparison],
    metric: str,
    *,
    first_look: bool,
) -> tuple[OperationResult, ...]:
    """The operations with what crosses by the verdicts of the study; nothing in a first look."""
    of = _by_pair(compared, metric)
    return tuple(
        replace(each, crossovers=() if first_look else crossovers(each.methods, of))
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
    told = sentences(operations, _by_pair(compared, metric))
    return [*answer.said(told, Rank.ANSWER if len(told) <= FEW else Rank.MORE, Rank.MORE)]


def sentences(operations: Sequence[OperationResult], verdicts: Verdicts) -> list[str]:
    """From how many rows on one method is faster than another; of two methods that are compared at
    every number of rows also that they are not seen to change places, or whether they do is open.
    """
    several, told = len(operations) > 1, list[str]()
    for each in operations:
        sure = [c for c in each.crossovers if c.interval is not None]
        name = f"{each.name}: " if several else ""
        told += [f"{name}{sentence(c)}." for c in sure]
        methods = list(dict.fromkeys(m.method for m in each.methods))
        if not sure and each.by_rows and len(methods) == 2:
            a, b = methods
            told += [f"{name}{clause}." for clause in _of_no_crossing(each, a, b, verdicts)]
    return told


def _of_no_crossing(of: OperationResult, a: str, b: str, verdicts: Verdicts) -> Iterator[str]:
    """What two methods show that have no resolved crossing, a clause; nothing where they are not
    compared, as they return other rows.
    """
    points = {(m.held, p.rows, m.method): p for m in of.methods for p in m.points}
    both = [
        (p, points[k, n, b]) for (k, n, m), p in points.items() if m == a and (k, n, b) in points
    ]
    found = [
        (p, q, verdicts.get((p.treatment, q.treatment)) or verdicts.get((q.treatment, p.treatment)))
        for p, q in both
        if p.seconds is not None and q.seconds is not None
    ]
    rows = sorted({p.rows for p, _, _ in found})
    if len(rows) < 2 or any(c is None or c.verdict == "not comparable" for _, _, c in found):
        return
    between = f"between {rows[0]:,} and {rows[-1]:,} rows"
    if of.crossovers:
        yield f"Whether {a} and {b} change places {between} is not resolved"
        return
    longer = {p.seconds.value > q.seconds.value for p, q, _ in found if p.seconds and q.seconds}
    if len(longer) == 1:
        slower, faster = (a, b) if longer == {True} else (b, a)
        sure = sum(c is not None and c.verdict in ("faster", "slower") for _, _, c in found)
        if not sure:
            yield f"Which of {a} and {b} is faster is not resolved at any number of rows {between}"
            return
        yield (
            f"{slower} took longer than {faster} at each number of rows {between}, which is "
            f"resolved at {sure} of {len(found)}; nothing shows that they change places there"
        )


def sentence(c: Crossover) -> str:
    """A resolved crossing, a clause."""
    assert c.interval is not None
    low, high = digits(c.interval.low), digits(c.interval.high)
    where = f"{c.held}: " if c.held else ""
    return (
        f"{where}{c.above} is faster than {c.below} from about {digits(c.rows)} rows on "
        f"(between {low} and {high})"
    )


def crossovers(
    curves: Sequence[MethodCurve], verdicts: Verdicts | None = None
) -> tuple[Crossover, ...]:
    """Every crossing of every two methods of the same crossing of levels.

    ``verdicts``: the comparisons of the study, by their treatments; None: there are none to heed.
    """
    pairs = [
        (a, b)
        for i, a in enumerate(curves)
        for b in curves[i + 1 :]
        if a.held == b.held and a.method != b.method
    ]
    tests = sum(len({p.rows for p in a.points} & {p.rows for p in b.points}) for a, b in pairs)
    return tuple(found for a, b in pairs for found in _of_two(a, b, tests, verdicts))


def _of_two(
    a: MethodCurve, b: MethodCurve, tests: int, verdicts: Verdicts | None
) -> list[Crossover]:
    levels, means, half, sure = [], [], [], []
    other = {p.rows: p for p in b.points}
    for p in a.points:
        q = other.get(p.rows)
        blocks = sorted(set(p.by_block) & set(q.by_block)) if q is not None else []
        if q is None or not blocks:
            continue
        logs = np.array([math.log(p.by_block[k] / q.by_block[k]) for k in blocks])
        resolved = True
        if verdicts is not None:
            pair = (p.treatment, q.treatment)
            found = verdicts.get(pair) or verdicts.get(pair[::-1])
            # The times are of all queries, so all of them must have been answered alike.
            if found is None or found.verdict == "not comparable" or found.queries_left_out:
                continue
            # By another metric of the study, the other one may be the faster.
            wanted = ("faster", "slower") if found.b == q.treatment else ("slower", "faster")
            resolved = found.verdict == wanted[bool(logs.mean() < 0)]
        levels.append(math.log(p.rows))
        means.append(float(logs.mean()))
        n = len(blocks)
        wide = math.inf
        if n > 1:
            one_sided = 1 - (1 - LEVEL) / (2 * tests)
            wide = student(one_sided, n - 1) * float(logs.std(ddof=1)) / math.sqrt(n)
        half.append(wide)
        sure.append(resolved)
    if len(levels) < 2:
        return []
    crossing = []
    for i, (left, right) in enumerate(pairwise(means)):
        if left == 0 or left * right >= 0:
            continue
        at = levels[i] + (levels[i + 1] - levels[i]) * left / (left - right)
        below, above = (b.method, a.method) if left > 0 else (a.method, b.method)
        interval, why = _interval(levels, means, half, sure, i)
        crossing.append(Crossover(below, above, a.held, math.exp(at), interval, why))
    return crossing


def _interval(
    levels: Sequence[float],
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
    low, high = _end(levels, below, i, -1), _end(levels, above, i + 1, 1)
    if low is None or high is None:
        side = "below" if low is None else "above"
        return None, f"the difference {side} it is within the noise"
    return Interval(math.exp(low), math.exp(high), LEVEL, METHOD), ""


def _end(levels: Sequence[float], clear: Sequence[float], start: int, step: int) -> float | None:
    """From ``start`` outwards, the first level at which the bound ``clear`` is above 0; None: none.

    How a method's time goes between two levels is not known: it may be a line in the rows, or a
    plan that changes at some number of them. So the interval ends where something was measured.
    """
    j = start
    while 0 <= j < len(levels):
        if clear[j] > 0:
            return levels[j]
        j += step
    return None
