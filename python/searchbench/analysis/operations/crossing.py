"""Where two methods are equally fast: the rows at which the ratio of their times is 1.

The log of the ratio is paired by block at every number of rows that both were measured at. The
interval of a crossing is from the nearest number of rows at which the study resolves that the one
method is faster to the nearest at which it resolves that the other is. The verdicts of a study hold
all together, each with the noise of its own number of rows, so no crossing is said by chance more
often than a verdict is. Where in its interval it lies is interpolated, and not known. Methods that
are not compared, as they return other rows, do not cross; nor does anything in a first look.
Nothing is said beyond the rows that were measured; and a sentence reaches only as far as the one
method is shown to be faster at each of them. What is known of the others stands behind it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, takewhile

from searchbench.analysis import answer
from searchbench.analysis.answer import Rank, Said
from searchbench.analysis.judgement import Comparison, Interval
from searchbench.analysis.operations.levels import (
    APART,
    Level,
    Verdicts,
    at_rows,
    by,
    by_pair,
    clauses,
    levels,
)
from searchbench.analysis.operations.model import Crossover, MethodCurve, OperationResult
from searchbench.analysis.stats.intervals import LEVEL
from searchbench.analysis.words import digits, listed

FEW = 3
METHOD = "from level to level, at which the study resolves who is faster"


def judged(
    operations: Sequence[OperationResult],
    compared: Sequence[Comparison],
    metric: str,
    *,
    first_look: bool,
) -> tuple[OperationResult, ...]:
    """The operations with what crosses by the verdicts of the study; nothing in a first look.

    ``metric``: that of the study.
    """
    of = by_pair(compared)
    return tuple(
        replace(each, crossovers=() if first_look else crossovers(each.methods, of, metric))
        for each in operations
    )


def said(
    operations: Sequence[OperationResult], compared: Sequence[Comparison], metric: str
) -> list[Said]:
    """``sentences`` for a verdict: who varies the number of rows asks this first. Of many crossings
    their number is the headline.
    """
    told = sentences(operations, by_pair(compared), metric)
    if len(told) <= FEW:
        return [*answer.said(told, Rank.ANSWER, Rank.MORE)]
    found = [c for each in operations for c in each.crossovers]
    sure = sum(c.interval is not None for c in found)
    many = f"Of {len(found)} crossings that the times of the methods show, {sure} are resolved."
    first = [many] if sure > FEW else []
    return [*answer.said(first, Rank.ANSWER), *answer.said(told, Rank.MORE, Rank.MORE)]


def sentences(operations: Sequence[OperationResult], verdicts: Verdicts, metric: str) -> list[str]:
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
            told += [f"{name}{one}." for one in _of_no_crossing(each, verdicts, metric)]
    return told


def _of_no_crossing(of: OperationResult, verdicts: Verdicts, metric: str) -> Iterator[str]:
    """What two methods show that have no resolved crossing, a clause; nothing where they are not
    compared though both answer, as they return other rows.
    """
    each = [(a, level) for a, b in _pairs(of.methods) for level in levels(a, b, verdicts, metric)]
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
    curves: Sequence[MethodCurve], verdicts: Verdicts, metric: str
) -> tuple[Crossover, ...]:
    """Every crossing of every two methods of the same crossing of levels.

    ``verdicts``: the comparisons of the study, whose metric is ``metric``.
    """
    return tuple(
        found for a, b in _pairs(curves) for found in _of_two(a, b, levels(a, b, verdicts, metric))
    )


def _of_two(a: MethodCurve, b: MethodCurve, each: Sequence[Level]) -> list[Crossover]:
    known = [level for level in each if level.less]
    at = [math.log(level.rows) for level in known]
    means = [float(level.logs.mean()) for level in known]
    crossing: list[Crossover] = []
    for i, (left, right) in enumerate(pairwise(means)):
        if left == 0 or left * right >= 0:
            continue
        rows = math.exp(at[i] + (at[i + 1] - at[i]) * left / (left - right))
        below, above = (b.method, a.method) if left > 0 else (a.method, b.method)
        interval, why = _interval(known, i)
        found = Crossover(below, above, a.held, rows, interval, why)
        once = [c for c in crossing if interval and (c.interval, c.above) == (interval, above)]
        for told in once:  # they changed places once, and what lies between the two ends is open
            crossing.remove(told)
            found = replace(found, rows=math.sqrt(told.rows * rows))
        crossing.append(found)
    return [c if c.interval is None else _as_far_as_known(c, c.interval, each) for c in crossing]


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


def _interval(levels: Sequence[Level], i: int) -> tuple[Interval | None, str]:
    """The levels around the crossing after the ``i``-th at which either is surely faster; or why
    there are none.
    """
    if all(level.logs.size < 2 for level in levels):
        return None, "each was measured in one block, which says nothing about the scatter"
    low = _end(levels, levels[i].less, i, -1)
    high = _end(levels, levels[i + 1].less, i + 1, 1)
    if low is None or high is None:
        side, at = ("below", levels[i]) if low is None else ("above", levels[i + 1])
        return None, f"the difference {side} it {at.doubt or 'is within the noise'}"
    return Interval(float(low), float(high), LEVEL, METHOD), ""


def _end(levels: Sequence[Level], method: str, start: int, step: int) -> int | None:
    """From ``start`` outwards, the first rows at which ``method`` is surely faster; None: none, or
    the other method surely is before that.

    How a method's time goes between two levels is not known: it may be a line in the rows, or a
    plan that changes at some number of them. So the interval ends where something was measured.
    """
    for level in levels[start::step]:
        if level.faster:
            return level.rows if level.faster == method else None
    return None
