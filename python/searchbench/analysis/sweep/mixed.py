"""Two points of closed loops over one mix of requests (``compare.mix``), as studies are compared.

Who answers faster comes further in the list within the same time, so each side has asked a mix of
its own: over all requests the one that is slower at every one of them may look faster. The points
may be of one record or of two.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.compare.mix import MINGLED, Mix, adds_up
from searchbench.analysis.judgement import Estimate
from searchbench.analysis.stats import intervals, within
from searchbench.analysis.sweep import points as at
from searchbench.analysis.sweep.points import Point
from searchbench.analysis.trial.measured import Samples
from searchbench.record.trial import Load

MAY_DIFFER = "the requests of both are not one list, so what each was asked may differ"
NONE_ON_BOTH = (
    "no request on which both return the same was measured on both sides, because in the same time "
    "they came to different ones; longer windows, or requests in shuffled order, help"
)
TOO_FEW = "too few samples for it in one of the steps"
Ratio = tuple[Estimate | None, float | None]


class Mixed:
    """Two points over the requests that both measured, step by step of the same block.

    ``loads``, ``samples``: of the first and the second. ``agreeing``: the numbers of the requests
    that count; None where all do, whatever was answered. The numbers of both must be of one list
    (``one_list``). A block in which no request was measured on both sides is left out.
    ``queries``: how many are in the mix, in the used block with the fewest; 0 if no block has any.
    ``asked``: how many distinct ones either side measured in that block.
    """

    def __init__(
        self,
        a: Point,
        b: Point,
        loads: tuple[Load, Load],
        samples: tuple[Samples, Samples],
        agreeing: NDArray[np.int64] | None,
    ) -> None:
        self._points, self.counted = (a, b), agreeing
        mine, other = ({s.block: s for s in p.steps} for p in (a, b))
        both = sorted(mine.keys() & other.keys())
        steps = {k: (mine[k], other[k]) for k in both} or {0: (a.steps[0], b.steps[0])}
        self._values: dict[str, tuple[dict[int, Estimate], dict[int, Estimate]]] = {
            metric: ({}, {}) for metric in at.metrics(a, b)
        }
        self._lacking: set[int] = set()  # which sides' latencies do not add up
        self._mingled = False
        counts = []
        for block, pair in steps.items():
            x, y = (s.measured(step.trial) for s, step in zip(samples, pair, strict=True))
            sides, mix = ((x, loads[0]), (y, loads[1])), Mix(x, y, agreeing)
            counts.append((mix.queries, mix.asked))
            self._lacking |= {i for i, side in enumerate(sides) if not adds_up(*side)}
            self._mingled |= not all(mix.follows(*side) for side in sides)
            for metric, found in self._values.items():
                name = "throughput" if metric == "answered" else metric
                own = [mix.estimate(*side, name) for side in sides]
                if own[0] is not None and own[1] is not None:
                    found[0][block], found[1][block] = own[0], own[1]
        used = [one for one in counts if one[0]]
        self._left_out, self._blocks = len(counts) - len(used), len(counts)
        self.queries, self.asked = min(
            used or counts, key=lambda one: one[0] / (max(1, one[1]) if agreeing is None else 1)
        )

    def values(self, metric: str) -> tuple[dict[int, Estimate], dict[int, Estimate]]:
        """A metric of either side, by block."""
        return self._values[metric]

    def better(self, metric: str) -> Ratio:
        """As ``points.better``, over the mix."""
        mine, other = self._values[metric]
        ratio, p = at.paired(mine, other) or self._of_one(metric)
        return (intervals.inverse(ratio) if ratio and metric != "answered" else ratio), p

    @property
    def uncounted(self) -> bool:
        """Whether latencies do not give the throughput that was counted, or who asked is mingled
        with what was asked.
        """
        return bool(self._lacking or self._mingled)

    def unknown(self, metric: str, names: tuple[str, str]) -> str:
        """Why there is no ratio by a metric; ``names``: of the first and the second."""
        if metric != "answered" or not (self._lacking or self._mingled):
            return TOO_FEW
        if not self._lacking:
            return MINGLED
        return (
            f"the latencies of {' and of '.join(names[i] for i in sorted(self._lacking))} give "
            "more throughput than was counted: some requests are in no latency, as they failed or "
            "outlasted the window"
        )

    @property
    def left_out(self) -> str:
        """In how many blocks no request was measured on both sides; empty: in none."""
        if not self._left_out:
            return ""
        many = f"{self._left_out} of {self._blocks} blocks"
        return f"in {many}, which count for nothing, no request was measured on both sides"

    def _of_one(self, metric: str) -> Ratio:
        """The ratio of the only two steps that have a value, the second over the first."""
        mine, other = self._values[metric]
        if not mine:
            return None, None
        (block, x), *_ = mine.items()
        ratio, p = within.ratio(x, other[block])
        again, _ = at.against(*self._points, metric)
        if all(len(point.steps) == 1 for point in self._points) or not (again and again.interval):
            return ratio, p
        if ratio.interval is None:
            return ratio, p
        # One of them was driven more often: it is not surer than that shows.
        low, high = (end / again.value * ratio.value for end in
                     (again.interval.low, again.interval.high))  # fmt: skip
        span = at.wider(replace(again.interval, low=low, high=high), ratio.interval)
        return replace(ratio, interval=span), at.p_of(span, ratio.value)


def one_list(a: Point, b: Point, samples: tuple[Samples, Samples]) -> bool:
    """Whether the requests of both are from one list, as far as the record knows."""
    x, y = (s.asked(p.steps[0].trial) for s, p in zip(samples, (a, b), strict=True))
    return bool(x) and x == y
