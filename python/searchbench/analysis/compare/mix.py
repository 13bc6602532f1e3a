"""Two trials over one mix of queries, so that neither is flattered by what it was asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.stats import within
from searchbench.analysis.stats.distributions import beta
from searchbench.analysis.trial import latency
from searchbench.analysis.trial.measured import Measured
from searchbench.record.trial import Load

MINGLED = (
    "some clients asked other queries than the rest, and whether clients or queries make the "
    'difference is unknown: longer windows or `order = "shuffled"` would show it'
)

Floats = NDArray[np.float64]
CONTRADICTS = 0.10  # of the counted throughput, by which the latencies' own may differ from it
FEW = 20  # requests of a client: the mean of fewer is too much by chance to stand in a denominator
CONFOUNDED = 0.05  # by which a rate may differ from the one that lets clients keep their shares


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

    In a closed loop each client has a part of the log of its own, so who asks is confounded with
    what is asked: if a server answers some clients sooner, their queries look cheap and have a
    greater share. So for throughput a query is weighed among those of the same client only.
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
        self._alone = self._clients_alone(a, b)

    def value(self, measured: Measured, load: Load, metric: str) -> float | None:
        """A ``timed`` metric of one of the two over the mix, in 1/s or s; None: not known.

        Throughput is that of a closed loop, if ``follows``: a client's cycle is response + think
        time, and its rate one over that. A quantile is the nearest-rank one of weighted samples.
        """
        if metric == "throughput":
            found = self._followed(measured, load)
            return None if found is None else found.rate
        _, weight, times = self._weighed(measured, metric)
        if not times.size:
            return None
        name = metric.partition("_")[2]
        if name in ("mean", "max"):
            # No `@`: BLAS would wake threads that spin.
            return float((weight * times).sum()) if name == "mean" else float(times.max())
        q = latency.quantile_of(name)
        if times.size < latency.minimum_samples(q):
            return None
        return _quantiles(times, weight, [q])[0]

    def by_times(self, measured: Measured, load: Load) -> float | None:
        """The throughput over the mix that the latencies give, whether or not they ``adds_up``."""
        found = self._of_system(measured, load)
        return None if found is None else found.rate

    def follows(self, measured: Measured, load: Load) -> bool:
        """Whether a throughput over the mix is that of the system: the latencies ``adds_up``.

        Where clients have no cycles of their own, the mix may show whom the server favours and not
        what was asked: then it must make no difference, in either direction, that clients do not
        make who keep their shares of the requests.
        """
        return not self.queries or self._followed(measured, load) is not None

    def estimate(self, measured: Measured, load: Load, metric: str) -> Estimate | None:
        """``value`` of throughput or of a quantile, with its interval from slices of the window.

        As in ``stats.within``, but that a time is held against the mean of its own query (of
        throughput: by the same client): both sides answer one mix, so which queries are in it is no
        chance. One that was asked once is held against all that were.
        """
        closed = self._followed(measured, load) if metric == "throughput" else None
        value = closed.rate if closed else self.value(measured, load, metric)
        if value is None:
            return None
        rows, weight, times = self._weighed(measured, metric)
        query, part = measured.query[rows], measured.part[rows]
        if closed is not None:
            found = Estimate(value, "queries/s", int(times.size))
            error = within.T * _error(part, query, closed.group, closed.effect, times)
            if times.size < 10 * within.SLICES or error >= 1:
                return found
            low, high, method = value / (1 + error), value / (1 - error), "batch means"
        else:
            found = Estimate(value, "s", int(times.size))
            q = latency.quantile_of(metric.partition("_")[2])
            one = np.zeros(query.size, np.int64)
            error = _error(part, query, one, weight, (times > value).astype(np.float64))
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

    def _clients_alone(self, a: Measured, b: Measured) -> NDArray[np.bool_] | None:
        """By client, whether it measured enough of the mix on both sides to have a cycle of its
        own; None: who asked what is not known of both.
        """
        counts = []
        for m in (a, b):
            if m.client is None:
                return None
            had = int(m.client.max()) + 1 if m.client.size else 0  # none: it answered nothing
            counts.append(np.bincount(m.client[self._rows(m)], minlength=had))
        n = max(count.size for count in counts)
        # The other side may have had fewer clients.
        x, y = (np.pad(count, (0, n - count.size), constant_values=FEW) for count in counts)
        return (x >= FEW) & (y >= FEW)

    def _followed(self, measured: Measured, load: Load) -> _Closed | None:
        """As ``_closed``, where it ``follows``."""
        return self._of_system(measured, load) if adds_up(measured, load) else None

    def _of_system(self, measured: Measured, load: Load) -> _Closed | None:
        """As ``_closed``, where the mix shows what was asked and not whom the server favours."""
        if load.kind != "closed":
            return None
        found = self._closed(measured, load)
        if found is None or abs(math.log(found.rate / found.kept)) > CONFOUNDED:
            return None
        return found

    def _closed(self, measured: Measured, load: Load) -> _Closed | None:
        """The rate of a closed loop: of each client one over its mean cycle over its own queries of
        the mix, added up. Clients with few requests are one group, with one mean for all.
        """
        rows, weight, times = self._weighed(measured, "throughput")
        if not times.size:
            return None
        clients, think_s = load.clients or 1, load.think_s or 0.0
        client = np.zeros(measured.query.size, np.uint16)
        number, of = np.zeros(int(client.max()) + 1, np.int64), np.array([float(clients)])
        if self._alone is not None and measured.client is not None:
            # Group 0: all that are not alone.
            client, alone = measured.client, self._alone
            number = np.zeros(max(alone.size, int(client.max()) + 1), np.int64)
            number[: alone.size][alone] = 1 + np.arange(np.count_nonzero(alone))
            of = np.ones(int(number.max()) + 1)
            # Those that only the other side has are no clients of this one.
            of[0] = clients - np.count_nonzero(alone[: int(client.max()) + 1])
        cycles = measured.response_ns / 1e9 + think_s
        every, group = number[client], number[client[rows]]
        total = np.bincount(group, weight, of.size)
        there = total > 0
        total[~there], of[~there] = 1.0, 0.0  # of clients, not of their requests, which differ
        cycle = np.bincount(group, weight * times, of.size) / total + think_s
        rates = of / np.where(there, cycle, 1.0)
        rate = float(rates.sum())
        effect = weight * (rates / rate / np.where(there, cycle * total, 1.0))[group]
        kept = rates.copy()
        if there[0] and clients > 1:
            few = every == 0
            kept[0] = of[0] / float(cycles[few].mean())
            if self._alone is not None and measured.client is not None:
                kept[0] /= _longer(client, cycles, rows, weight, few)
        # What clients would do that asked nothing of the mix is not known: as much as the others,
        # or nothing at all.
        return _Closed(rate * clients / float(of.sum()), float(kept.sum()), group, effect)

    def _rows(self, measured: Measured) -> NDArray[np.bool_]:
        """Which requests are in the mix."""
        rows: NDArray[np.bool_] = measured.query < self._in.size
        rows[rows] = self._in[measured.query[rows]]
        return rows

    def _weighed(self, measured: Measured, metric: str) -> tuple[NDArray[np.bool_], Floats, Floats]:
        """Which requests are in the mix; their weights, 1 together; and their times in s."""
        rows = self._rows(measured)
        query = measured.query[rows]
        weight = (self._share / np.maximum(1, np.bincount(query, minlength=self._in.size)))[query]
        kind = metric.partition("_")[0]
        times = (measured.service_ns if kind == "service" else measured.response_ns)[rows] / 1e9
        return rows, weight, times


def _quantiles(times: Floats, weight: Floats, qs: Sequence[float]) -> list[float]:
    order = np.argsort(times)
    at = np.searchsorted(np.cumsum(weight[order]), np.array(qs) - 1e-9)
    found: list[float] = times[order[np.minimum(at, times.size - 1)]].tolist()
    return found


@dataclass(frozen=True, slots=True)
class _Closed:
    """``rate``: in 1/s; ``kept``: the same if each client of the group with few requests keeps its
    share of them, and clients without any of the mix do nothing. By request of the mix ``group``:
    whose cycle it is part of; ``effect``: by how much the log of the rate falls if it takes a
    second longer.
    """

    rate: float
    kept: float
    group: NDArray[np.int64]
    effect: Floats


def _longer(
    client: NDArray[np.uint16],
    cycles: Floats,
    rows: NDArray[np.bool_],
    weight: Floats,
    few: NDArray[np.bool_],
) -> float:
    """By what factor a client's mean cycle is longer over the mix than over its own requests: the
    mean of ``few`` clients by their shares of the requests. ``weight``: of those in the mix.
    """
    n = int(client.max()) + 1
    mine, theirs = client[few], client[rows]
    asked = np.bincount(mine, minlength=n)
    spent = np.bincount(mine, cycles[few], n)
    within_mix = np.bincount(theirs, weight, n)
    there = (asked > 0) & (within_mix > 0)
    over = np.bincount(theirs, weight * cycles[rows], n)[there] / within_mix[there]
    return float(np.average(over * asked[there] / spent[there], weights=asked[there]))


def _error(
    part: NDArray[np.uint8],
    query: NDArray[np.uint32],
    group: NDArray[np.int64],
    weight: Floats,
    y: Floats,
) -> float:
    """Standard error of the sum of ``weight`` · ``y``: slices of the window are independent."""
    cell: NDArray[np.int64] = query.astype(np.int64)
    if group.any():
        cell = np.unique(group * (int(query.max()) + 1) + cell, return_inverse=True)[1]
    asked = np.bincount(cell)[cell]
    once = asked == 1
    centre = (np.bincount(cell, y) / np.maximum(1, np.bincount(cell)))[cell]
    if once.any():
        of, own = group[once], weight[once]
        centre[once] = (np.bincount(of, own * y[once]) / np.maximum(np.bincount(of, own), 1e-300))[
            of
        ]
    # Of n times their own mean takes away one degree of freedom.
    rest = weight * (y - centre) * np.sqrt(asked / np.maximum(1, asked - 1))
    by_part = np.bincount(part, rest, minlength=within.SLICES)
    return math.sqrt(within.SLICES / (within.SLICES - 1) * float((by_part**2).sum()))
