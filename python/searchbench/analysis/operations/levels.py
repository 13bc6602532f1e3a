"""What is known of two methods at each number of rows: which is faster, or why that is not known.

A sentence that reaches over several numbers of rows is about each of them: also about one at which
a method fails, the two are not compared, or another figure of the study says the opposite.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Comparison
from searchbench.analysis.operations.model import MethodCurve, Point
from searchbench.analysis.stats.intervals import ALPHA
from searchbench.analysis.words import listed, plural, words

OTHER_ROWS, NOT_COMPARED = APART = ("they return other rows", "they are not compared")
OPEN = "is not resolved"
_STATES = {
    "unknown": "is open, as it is not known whether both were steady there",
    "not steady": "is open, as one of them was not steady there",
}
NAMED = 4  # numbers of rows; of more, the first and the last

# What speaks of a median time, and of a mean one, the nearest first. A closed loop's throughput is
# that of the mean times; where a mean is all that there is, requests were too few for a median.
MEDIAN = ("service_p50", "response_p50")
MEAN = ("service_mean", "response_mean", *MEDIAN, "throughput")

Verdicts = Mapping[tuple[str, str, str], Comparison]  # by both treatments and the metric


@dataclass(frozen=True, slots=True)
class Level:
    """Two methods at one number of rows.

    ``less``: whose time is less, by the ``logs`` of their ratio in each block; empty where they are
    not compared, for the reason ``why``. ``sure``: the study resolves that. ``shown``: who is
    faster by each figure of the study that is resolved. ``doubt``: a clause that says why it is not
    resolved, where that is more than noise. ``median``: whether the times are medians.
    ``untimed``: the methods that have set-up or clean-up, which is in no time.
    """

    rows: int
    less: str = ""
    sure: bool = False
    logs: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    shown: tuple[tuple[str, str], ...] = ()
    median: tuple[bool, bool] = (True, True)
    why: str = ""
    untimed: tuple[str, ...] = ()
    doubt: str = ""

    @property
    def faster(self) -> str:
        """Who is shown to be; empty: neither."""
        return self.less if self.sure else ""

    def against(self, method: str) -> str:
        """By which figure the other one is faster, a clause; empty: by none."""
        found = ((by, who) for by, who in self.shown if who != method)
        return next((f"{who} is faster by {words(by)}" for by, who in found), "")


def levels(a: MethodCurve, b: MethodCurve, verdicts: Verdicts, metric: str) -> list[Level]:
    """At each number of rows that either was asked for, in ascending order.

    ``metric``: that of the study; neither it nor throughput may say the opposite of a time.
    """
    of_a, of_b = ({p.rows: p for p in curve.points} for curve in (a, b))
    names = (a.method, b.method)
    return [
        _level(rows, names, (of_a.get(rows), of_b.get(rows)), verdicts, metric)
        for rows in sorted(of_a.keys() | of_b.keys())
    ]


def _level(
    rows: int,
    names: tuple[str, str],
    both: tuple[Point | None, Point | None],
    verdicts: Verdicts,
    metric: str,
) -> Level:
    if fail := [name for name, x in zip(names, both, strict=True) if x is not None and x.failed]:
        return Level(rows, why=f"{listed(fail)} {plural(len(fail), 'fails', 'fail')}")
    p, q = both
    if p is None or q is None:
        return Level(rows, why=f"{names[p is not None]} was not measured")
    if none := [name for name, x in zip(names, (p, q), strict=True) if not x.by_block]:
        return Level(rows, why=f"{listed(none)} {plural(len(none), 'has', 'have')} no valid trial")
    if not (blocks := sorted(p.by_block.keys() & q.by_block.keys())):
        return Level(rows, why=NOT_COMPARED)
    logs = np.log([p.by_block[k] / q.by_block[k] for k in blocks])
    less = names[0] if logs.mean() < 0 else names[1]
    median = (p.median, q.median)
    untimed = tuple(name for name, x in zip(names, (p, q), strict=True) if x.untimed)
    found = _of_time(p, q, verdicts, MEDIAN if all(median) else MEAN)
    # The times are of all queries, so all of them must have been answered alike.
    if found is not None and found.queries_left_out:
        return Level(rows, why=OTHER_ROWS)
    if found is None or found.verdict == "not comparable":
        return Level(rows, why=NOT_COMPARED)
    shown = tuple(
        (c.metric, names[(c.verdict == "faster") == (c.b == q.treatment)])
        for name in dict.fromkeys((found.metric, metric, "throughput"))
        if (c := _of_pair(p, q, name, verdicts)) is not None and c.verdict in ("faster", "slower")
    )
    sure = (found.metric, less) in shown
    doubt = "" if sure else _doubt(found)
    return Level(rows, less, sure, logs, shown, median, untimed=untimed, doubt=doubt)


def _doubt(c: Comparison) -> str:
    """Why a difference that chance may not have made is open all the same; empty: it may have."""
    if c.p_value is None:
        return "is not known, as there are too few operations or blocks"
    if c.p_value >= ALPHA:
        return ""
    size = max(c.ratio.value, 1 / c.ratio.value) if c.ratio else 1.0
    return _STATES.get(c.state, OPEN) if size <= c.state_floor else OPEN


def by_pair(compared: Iterable[Comparison]) -> Verdicts:
    """The comparisons of a study."""
    return {(c.a, c.b, c.metric): c for c in compared}


def _of_time(p: Point, q: Point, verdicts: Verdicts, metrics: Sequence[str]) -> Comparison | None:
    """The comparison that speaks of a time: the first of which something is known."""
    found = [c for name in metrics if (c := _of_pair(p, q, name, verdicts)) is not None]
    known = (c for c in found if c.p_value is not None or c.verdict in ("faster", "slower"))
    return next(known, found[0] if found else None)


def _of_pair(p: Point, q: Point, metric: str, verdicts: Verdicts) -> Comparison | None:
    a, b = p.treatment, q.treatment
    return verdicts.get((a, b, metric)) or verdicts.get((b, a, metric))


def by(found: Iterable[Level]) -> str:
    """What is compared: "median time"."""
    found = list(found)
    median = {kind for level in found for kind in level.median}
    names = [name for name, kind in (("median", True), ("mean", False)) if kind in median]
    untimed = dict.fromkeys(name for level in found for name in level.untimed)
    without = f", without the set-up and clean-up of {listed([*untimed])}" if untimed else ""
    return f"{' or '.join(names)} time{without}"


def clauses(found: Iterable[tuple[int, str]]) -> str:
    """What holds at some numbers of rows, behind a sentence: "; at 100 rows list fails"."""
    at: dict[str, list[int]] = {}
    for rows, what in found:
        at.setdefault(what, []).append(rows)
    return "".join(f"; {at_rows(rows)} {what}" for what, rows in at.items())


def at_rows(rows: Sequence[int]) -> str:
    """ "at 1 and 10 rows"; of many the first and the last."""
    if len(rows) > NAMED:
        return f"at {len(rows)} sizes from {rows[0]:,} to {rows[-1]:,} rows"
    return f"at {listed([f'{n:,}' for n in rows])} {plural(rows[-1], 'row', 'rows')}"
