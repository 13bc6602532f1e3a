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
from searchbench.analysis.words import listed, plural, words

OTHER_ROWS, NOT_COMPARED = APART = ("they return other rows", "they are not compared")
NAMED = 4  # numbers of rows; of more, the first and the last

Verdicts = Mapping[tuple[str, str], Comparison]


@dataclass(frozen=True, slots=True)
class Level:
    """Two methods at one number of rows.

    ``less``: whose time is less, by the ``logs`` of their ratio in each block; empty where they are
    not compared, for the reason ``why``. ``sure``: the study resolves that. ``shown``: who is
    faster by each figure of the study that is resolved. ``median``: whether the times are medians.
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

    @property
    def faster(self) -> str:
        """Who is shown to be; empty: neither."""
        return self.less if self.sure else ""

    def against(self, method: str) -> str:
        """By which figure the other one is faster, a clause; empty: by none."""
        found = ((by, who) for by, who in self.shown if who != method)
        return next((f"{who} is faster by {words(by)}" for by, who in found), "")


def levels(
    a: MethodCurve, b: MethodCurve, verdicts: Verdicts | None, rates: Verdicts
) -> list[Level]:
    """At each number of rows that either was asked for, in ascending order.

    ``verdicts``: the comparisons of the study by its metric; None: there are none to heed.
    ``rates``: those by throughput, which is to agree.
    """
    of_a, of_b = ({p.rows: p for p in curve.points} for curve in (a, b))
    names = (a.method, b.method)
    return [
        _level(rows, names, (of_a.get(rows), of_b.get(rows)), verdicts, rates)
        for rows in sorted(of_a.keys() | of_b.keys())
    ]


def _level(
    rows: int,
    names: tuple[str, str],
    both: tuple[Point | None, Point | None],
    verdicts: Verdicts | None,
    rates: Verdicts,
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
    if verdicts is None:
        return Level(rows, less, True, logs, median=median, untimed=untimed)
    found = _of_pair(p, q, verdicts)
    # The times are of all queries, so all of them must have been answered alike.
    if found is not None and found.queries_left_out:
        return Level(rows, why=OTHER_ROWS)
    if found is None or found.verdict == "not comparable":
        return Level(rows, why=NOT_COMPARED)
    shown = tuple(
        (c.metric, names[(c.verdict == "faster") == (c.b == q.treatment)])
        for c in (found, _of_pair(p, q, rates))
        if c is not None and c.verdict in ("faster", "slower")
    )
    # By another metric of the study, the other one may be the faster.
    return Level(rows, less, (found.metric, less) in shown, logs, shown, median, untimed=untimed)


def _of_pair(p: Point, q: Point, compared: Verdicts) -> Comparison | None:
    pair = (p.treatment, q.treatment)
    return compared.get(pair) or compared.get(pair[::-1])


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
