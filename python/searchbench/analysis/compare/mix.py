"""Two trials over one mix of queries, so that neither is flattered by what it was asked."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.stats import within
from searchbench.analysis.stats.distributions import beta
from searchbench.analysis.trial import latency
from searchbench.analysis.trial.measured import Measured
from searchbench.record.trial import Load

Floats = NDArray[np.float64]
CONTRADICTS = 0.10  # of the counted throughput, by which the latencies' own may differ from it


def timed(metric: str) -> bool:
    """Whether a metric is known of each request, and so over a mix of queries."""
    return metric.partition("_")[0] in ("throughput", "service", "response")


def adds_up(measured: Measured, load: Load) -> bool:
    """Whether the latencies of a closed loop give no more throughput than was counted.

    Over all requests, so that the mix is no reason. The greatest latency over the window is how
    much a client's first and last request may account for; what is more was spent in requests
    that are in no latency: they were due before the window and outlasted it, or failed.
    """
    if not measured.query.size:
        return True
    response = measured.response_ns / 1e9
    by_times = (load.clients or 1) / (float(response.mean()) + (load.think_s or 0.0))
    counted = measured.query.size / measured.window_s
    allowed = CONTRADICTS + (float(response.max()) + (load.think_s or 0.0)) / measured.window_s
    return by_times <= (1 + allowed) * counted


class Mix:
    """The agreeing queries that two trials both measured, and the share that each has of the mix.

    In a window of seconds the faster system comes further in the log, so each side has asked a mix
    of its own, and slow queries may stand on one side only. Here a query weighs on both sides by
    the mean of its shares of both; queries that one side did not come to are left out.
    ``agreeing``: None where answers were not compared, so that every query counts. ``queries``: how
    many are in the mix; ``asked``: how many one side or the other measured.
    """

    def __init__(self, a: Measured, b: Measured, agreeing: NDArray[np.int64] | None) -> None:
        counts = [np.bincount(m.query).astype(np.float64) for m in (a, b)]
        n = min(count.size for count in counts)  # from there on one side has measured nothing
        self._in = np.full(n, agreeing is None)
        if agreeing is not None:
            self._in[agreeing[agreeing < n]] = True
        self._in &= (counts[0][:n] > 0) & (counts[1][:n] > 0)
        self.queries = int(np.count_nonzero(self._in))
        self.asked = int(np.union1d(a.query, b.query).size)
        x, y = (count[:n] * self._in for count in counts)
        self._share = (x / max(1.0, x.sum()) + y / max(1.0, y.sum())) / 2

    def value(self, measured: Measured, load: Load, metric: str) -> float | None:
        """A ``timed`` metric of one of the two over the mix, in 1/s or s; None: not known.

        Throughput is that of a closed loop: a client's cycle is response + think time, and
        Little's law is solved for the rate, if that ``adds_up``. A quantile is the nearest-rank
        one of weighted samples.
        """
        _, weight, times = self._weighed(measured, metric)
        if not times.size:
            return None
        if metric == "throughput" and not (load.kind == "closed" and adds_up(measured, load)):
            return None
        mean = float((weight * times).sum())  # no `@`: BLAS would wake threads that spin
        if metric == "throughput":
            return (load.clients or 1) / (mean + (load.think_s or 0.0))
        name = metric.partition("_")[2]
        if name in ("mean", "max"):
            return mean if name == "mean" else float(times.max())
        q = latency.quantile_of(name)
        if times.size < latency.minimum_samples(q):
            return None
        return _quantiles(times, weight, [q])[0]

    def estimate(self, measured: Measured, load: Load, metric: str) -> Estimate | None:
        """``value`` of throughput or of a quantile, with its interval from slices of the window.

        As in ``stats.within``, but that a time is held against the mean of its own query: both
        sides answer one mix, so which queries are in it is no chance. One that was asked once is
        held against all that were.
        """
        value = self.value(measured, load, metric)
        if value is None:
            return None
        rows, weight, times = self._weighed(measured, metric)
        if metric == "throughput":
            found = Estimate(value, "queries/s", int(times.size))
            clients = load.clients or 1
            error, cycle = within.T * _error(measured, rows, weight, times), clients / value
            if times.size < 10 * within.SLICES or error >= cycle:
                return found
            low, high, method = clients / (cycle + error), clients / (cycle - error), "batch means"
        else:
            found = Estimate(value, "s", int(times.size))
            q = latency.quantile_of(metric.partition("_")[2])
            error = _error(measured, rows, weight, (times > value).astype(np.float64))
            worth = q * (1 - q) / max(error**2, q * (1 - q) * float((weight**2).sum()))
            worth *= (within.Z / within.T) ** 2
            above, below = (1 - q) * worth, q * worth
            low, high = _quantiles(times, weight, [
                min(q - within.T * error, 1 - beta(0.5 + within.LEVEL / 2, above + 1, below)),
                max(q + within.T * error, 1 - beta(0.5 - within.LEVEL / 2, above, below + 1)),
            ])  # fmt: skip
            method = "the wider of Woodruff's and binomial"
        method = f"{method}, {within.SLICES} slices, over one mix"
        return Estimate(value, found.unit, found.n, Interval(low, high, within.LEVEL, method))

    def _weighed(self, measured: Measured, metric: str) -> tuple[NDArray[np.bool_], Floats, Floats]:
        """Which requests are in the mix; their weights, 1 together; and their times in s."""
        query = measured.query
        rows = query < self._in.size
        rows[rows] = self._in[query[rows]]
        query = query[rows]
        weight = (self._share / np.maximum(1, np.bincount(query, minlength=self._in.size)))[query]
        kind = metric.partition("_")[0]
        times = (measured.service_ns if kind == "service" else measured.response_ns)[rows] / 1e9
        return rows, weight, times


def _quantiles(times: Floats, weight: Floats, qs: Sequence[float]) -> list[float]:
    order = np.argsort(times)
    at = np.searchsorted(np.cumsum(weight[order]), np.array(qs) - 1e-9)
    found: list[float] = times[order[np.minimum(at, times.size - 1)]].tolist()
    return found


def _error(measured: Measured, rows: NDArray[np.bool_], weight: Floats, y: Floats) -> float:
    """Standard error of the weighted mean of ``y``: slices of the window are independent."""
    query, part = measured.query[rows], measured.part[rows]
    asked = np.bincount(query)[query]
    once = asked == 1
    centre = (np.bincount(query, y) / np.maximum(1, np.bincount(query)))[query]
    if once.any():
        centre[once] = np.average(y[once], weights=weight[once])
    # Of n times their own mean takes away one degree of freedom.
    rest = weight * (y - centre) * np.sqrt(asked / np.maximum(1, asked - 1))
    by_part = np.bincount(part, rest, minlength=within.SLICES)
    return math.sqrt(within.SLICES / (within.SLICES - 1) * float((by_part**2).sum()))
