"""Two points of closed loops over one mix of requests (``compare.mix``), as studies are compared.

Who answers faster comes further in the list within the same time, so each side has asked a mix of
its own: over all requests the one that is slower at every one of them may look faster.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.compare.mix import Mix
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
Ratio = tuple[Estimate | None, float | None]


class Mixed:
    """Two points over the requests that both measured, step by step of the same block.

    ``loads``, ``samples``: of the first and the second. ``agreeing``: the numbers of the requests
    that count; None where answers were not compared, so that all do. The numbers of both must be of
    one list (``one_list``). ``queries``: how many are in the mix of the step with the fewest;
    ``asked``: how many distinct ones either side measured there.
    """

    def __init__(
        self,
        a: Point,
        b: Point,
        loads: tuple[Load, Load],
        samples: tuple[Samples, Samples],
        agreeing: NDArray[np.int64] | None,
    ) -> None:
        self._points = a, b
        mine, other = ({s.block: s for s in p.steps} for p in (a, b))
        both = sorted(mine.keys() & other.keys())
        steps = {k: (mine[k], other[k]) for k in both} or {0: (a.steps[0], b.steps[0])}
        self._values: dict[str, tuple[dict[int, Estimate], dict[int, Estimate]]] = {}
        counts = []
        for block, pair in steps.items():
            x, y = (s.measured(step.trial) for s, step in zip(samples, pair, strict=True))
            mix = Mix(x, y, agreeing)
            counts.append((mix.queries, mix.asked))
            for metric in at.metrics(a, b):
                name = "throughput" if metric == "answered" else metric
                own = [mix.estimate(m, load, name) for m, load in zip((x, y), loads, strict=True)]
                found = self._values.setdefault(metric, ({}, {}))
                if own[0] is not None and own[1] is not None:
                    found[0][block], found[1][block] = own[0], own[1]
        self.queries, self.asked = min(counts)

    def better(self, metric: str) -> Ratio:
        """As ``points.better``, over the mix."""
        mine, other = self._values[metric]
        ratio, p = at.paired(mine, other) or self._of_one(metric)
        return (intervals.inverse(ratio) if ratio and metric != "answered" else ratio), p

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
