"""Two trials over one mix of queries, so that neither is flattered by what it was asked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.trial import latency
from searchbench.analysis.trial.measured import Measured
from searchbench.record.trial import Load

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
    ``queries``: how many are in it.
    """

    def __init__(self, a: Measured, b: Measured, agreeing: NDArray[np.int64]) -> None:
        counts = [np.bincount(m.query).astype(np.float64) for m in (a, b)]
        n = min(count.size for count in counts)  # from there on one side has measured nothing
        self._in = np.zeros(n, dtype=bool)
        self._in[agreeing[agreeing < n]] = True
        self._in &= (counts[0][:n] > 0) & (counts[1][:n] > 0)
        self.queries = int(np.count_nonzero(self._in))
        x, y = (count[:n] * self._in for count in counts)
        self._share = (x / max(1.0, x.sum()) + y / max(1.0, y.sum())) / 2

    def value(self, measured: Measured, load: Load, metric: str) -> float | None:
        """A ``timed`` metric of one of the two over the mix, in 1/s or s; None: not known.

        Throughput is that of a closed loop: a client's cycle is response + think time, and
        Little's law is solved for the rate, if that ``adds_up``. A quantile is the nearest-rank
        one of weighted samples.
        """
        query = measured.query
        chosen = query < self._in.size
        chosen[chosen] = self._in[query[chosen]]
        query = query[chosen]
        if not query.size:
            return None
        if metric == "throughput" and not (load.kind == "closed" and adds_up(measured, load)):
            return None
        weight = (self._share / np.maximum(1, np.bincount(query, minlength=self._in.size)))[query]
        kind, _, name = metric.partition("_")
        times = (measured.service_ns if kind == "service" else measured.response_ns)[chosen] / 1e9
        mean = float((weight * times).sum())  # no `@`: BLAS would wake threads that spin
        if metric == "throughput":
            return (load.clients or 1) / (mean + (load.think_s or 0.0))
        if name in ("mean", "max"):
            return mean if name == "mean" else float(times.max())
        q = latency.quantile_of(name)
        if times.size < latency.minimum_samples(q):
            return None
        order = np.argsort(times)
        at = np.searchsorted(np.cumsum(weight[order]), q - 1e-9)
        return float(times[order[min(int(at), times.size - 1)]])
