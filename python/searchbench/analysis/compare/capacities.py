"""Two searches for capacity: did the limit move, under each promise?"""

from __future__ import annotations

import math
from typing import Literal

from searchbench.analysis.capacity.verdict import above, interval
from searchbench.analysis.compare.sweeps import Draft, Matched, answers_of, in_common
from searchbench.analysis.judgement import Capacity, Estimate, Interval, Judgement, RecordLine
from searchbench.record import Record

ONCE = (
    "Each record has one search, so how much the machine differs from one hour to the next is not "
    "known."
)
METHOD = "the intervals of both searches"


def match(a: tuple[Record, Judgement], b: tuple[Record, Judgement]) -> Matched:
    """Match the capacities of two records by subject and promise, and compare them."""
    sides: list[dict[str, dict[str, Capacity]]] = [{}, {}]
    for side, (_, judged) in zip(sides, (a, b), strict=True):
        for one in judged.capacity:
            side.setdefault(one.subject, {})[one.promise] = one
    drafts: list[Draft] = []
    changed: dict[str, tuple[int, int]] = {}
    taken: list[set[tuple[str, str]]] = [set(), set()]
    for x_name, y_name in in_common((sides[0], sides[1])):
        barrier, differ = answers_of(a[0], b[0], x_name, y_name)
        if differ is not None:
            changed[x_name if x_name == y_name else f"{x_name} and {y_name}"] = differ
        for promise, x in sides[0][x_name].items():
            y = sides[1][y_name].get(promise)
            if y is not None:
                taken[0].add((x_name, promise))
                taken[1].add((y_name, promise))
                drafts.append((_line(x, y, barrier), None))
    only = [
        tuple(
            f"{name} {promise}"
            for name, own in side.items()
            for promise in own
            if (name, promise) not in used
        )
        for side, used in zip(sides, taken, strict=True)
    ]
    once = all(c.searches == 1 for _, judged in (a, b) for c in judged.capacity)
    note = ONCE if once and drafts else ""
    return Matched(tuple(drafts), changed, (only[0], only[1]), note)


def _line(x: Capacity, y: Capacity, barrier: str) -> RecordLine:
    verdict: Literal["faster", "slower", "not resolved", "not comparable"] = "not resolved"
    reason = f"{interval(x)} and {interval(y)}"
    if barrier:
        verdict, reason = "not comparable", barrier
    elif above(y, x):
        verdict = "faster"
    elif above(x, y):
        verdict = "slower"
    else:
        reason += ": the intervals overlap"
    return RecordLine(
        label=x.subject,
        levels=x.levels,
        metric=f"capacity at {x.promise}",
        verdict=verdict,
        value_a=_estimate(x),
        value_b=_estimate(y),
        ratio=None if barrier else _ratio(x, y),
        p_value=None,
        floor=1.0,
        reason=reason,
    )


def _estimate(one: Capacity) -> Estimate | None:
    """The middle of an interval; None where a side is open."""
    if one.holds is None or one.fails is None:
        return None
    span = Interval(one.holds, one.fails, 0.95, "posterior of all trials")
    return Estimate(math.sqrt(one.holds * one.fails), "queries/s", len(one.trials), span)


def _ratio(x: Capacity, y: Capacity) -> Estimate | None:
    """y over x, as far apart as both intervals allow; of open sides as far as is known."""
    a, b = _estimate(x), _estimate(y)
    if a is not None and b is not None and a.interval is not None and b.interval is not None:
        span = Interval(b.interval.low / a.interval.high, b.interval.high / a.interval.low, 0.95,
                        METHOD)  # fmt: skip
        return Estimate(b.value / a.value, "ratio", min(a.n, b.n), span)
    if above(y, x):  # at least so much more
        return Estimate((y.holds or 0.0) / (x.fails or 1.0), "ratio", len(y.trials))
    if above(x, y):  # at most so much is left
        return Estimate((y.fails or 0.0) / (x.holds or 1.0), "ratio", len(y.trials))
    return None
