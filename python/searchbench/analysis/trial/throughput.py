"""How much was offered and how much was answered: achieved share, Little's law, utilisation.

One definition for every reader: the audit, the steps of a sweep and a promise all ask whether a
system kept up with its load.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.stats import within
from searchbench.analysis.trial.elsewhere import whole
from searchbench.analysis.trial.measured import Trace
from searchbench.record import Trial
from searchbench.record.trial import Load

SLICES = 200  # of the window, to see how the queue sways
BATCHES = 20  # slices of the window, to see a trend
FOR_A_TREND = 10 * BATCHES  # requests; with fewer a trend is unknown
LITTLE_TOLERANCE = 0.02  # of the clients' time, which may be unaccounted for
FIRST = 50  # requests of a drive, of which it is taken how long a reply takes without a queue
FILLS = 3.0  # times that, after which as many are in flight as ever will be
LEVELLED = 0.5  # of an even growth; a queue that grows by less at its end has levelled
KEEPS_UP = 0.99  # of what was offered; below, a system does not keep up
FAILED = 1 - KEEPS_UP  # of the requests; above, it does not either, however soon it says so


def throughput(trace: Trace) -> Estimate:
    """Requests answered well per second, of those due within the window.

    Its interval speaks of this trial alone; replicates say more.
    """
    return within.rate(trace.due[trace.outcome == 0], trace.window)


@dataclass(frozen=True, slots=True)
class Achieved:
    """Replies of any kind that came within the window, over the requests due in it.

    What is lacking is what the queue grew by. ``grew``: by slice of the window, requests due less
    replies that came. ``well``: the same share of replies that ended well alone: an error in time
    is no answer, though nobody waits for it any more.
    """

    share: float
    well: float
    requests: int
    grew: NDArray[np.float64]

    def of_this_window(self) -> Interval:
        """How far the share may be off because a steady queue is longer at one end than the other.

        A sweep asks whether this window was kept up with, so the arrivals are taken as they were.
        """
        return self._interval(1.96 * math.sqrt(2 * self._sway()))

    def in_the_long_run(self) -> Interval:
        """The same, and the chance of the arrivals beside it; its upper end may exceed 1.

        A promise asks whether this rate can be kept up with for ever, and another window of it
        would have other arrivals.
        """
        return self._interval(
            within.Z * math.sqrt(2 * self._sway() + within.long_run(self.grew)[0])
        )

    def per_request(self) -> float:
        """The variance of what the queue grows by, for each request that is due.

        In an overload, which leaves no worker idle: of arrivals and of services (their squared
        coefficients of variation). A queue that ends now and then sways by less.
        """
        return within.long_run(self.grew)[0] / self.requests

    def _sway(self) -> float:
        """Variance of the queue's length about its own trend."""
        queue = np.cumsum(self.grew)
        at = np.arange(queue.size) - (queue.size - 1) / 2
        sway = queue - queue.mean() - at * float((at * queue).sum() / (at * at).sum())
        return float(sway.var())

    def _interval(self, half: float) -> Interval:
        half /= self.requests
        low = max(0.0, self.share - half)
        return Interval(low, self.share + half, within.LEVEL, "sway of the queue")


def levelled(found: Achieved, trace: Trace) -> bool:
    """Whether the queue grew and no longer did in the last third of the window: by less than half
    of what it adds there if it grows evenly.

    As where answers take longer and longer until they take as long as they will. The queue of a
    server that gets too much grows to the end. It seems to have levelled in about 1 window of 10
    where its growth is 2.5 times what chance may make (95 %), and hardly ever beyond that. Not of a
    replay, whose rate may fall in the end; nor where requests fail, which ends their waiting.
    """
    failed = float((trace.outcome[trace.measured()] != 0).mean())
    late, whole = found.grew[-(found.grew.size // 3) :], float(found.grew.sum())
    even = whole * late.size / found.grew.size
    return not trace.replay and failed <= FAILED and whole > 0 and late.sum() < LEVELLED * even


def achieved(trace: Trace) -> Achieved | None:
    """None where no request was due within the window."""
    edges = np.linspace(*trace.window, SLICES + 1)
    due = np.histogram(trace.due, edges)[0]
    replied = trace.done >= 0
    came = np.histogram(trace.done[replied], edges)[0]
    well = np.histogram(trace.done[replied & (trace.outcome == 0)], edges)[0]
    n = int(due.sum())
    if not n:
        return None
    grew = (due - came).astype(np.float64)
    share, well_share = float(came.sum()) / n, float(well.sum()) / n
    more = _more_come(trace) if trace.replay else _filled(trace)
    if share < 1 and (filled := min(more / n, 1 - share)) > 0:
        well_share += filled * well_share / share if share else 0.0
        share += filled
    return Achieved(share, well_share, n, grew)


def _filled(trace: Trace) -> float:
    """By how many requests in flight the window begins with fewer than it must have later, because
    none was when the drive began; 0 where the warm-up was long enough for them.

    By the first requests, which nobody stood before: as many as are due within a reply's time are
    in flight, and that is no queue that grows (Little's law). Where later ones were surely faster,
    the first ones were not the usual ones, as those of a start are not.
    """
    start, end = trace.window
    order = np.argsort(trace.due, kind="stable")
    first = order[:FIRST]
    replied = trace.done[first] >= 0
    if not np.count_nonzero(replied) * 2 > first.size:
        return 0.0
    took = (trace.done - trace.due)[first][replied]
    if start - trace.due[first[0]] >= FILLS * float(np.median(took)):
        return 0.0
    per_ns = np.count_nonzero((trace.due >= start) & (trace.due < end)) / (end - start)
    begun = (trace.due < start) & ((trace.done >= start) | (trace.done < 0))
    usual = min(float(took.mean()), _fastest(trace, order[FIRST:]))
    return max(0.0, per_ns * usual - np.count_nonzero(begun))


def _more_come(trace: Trace) -> float:
    """By how many more requests are in flight at the end of a replay's window than at its beginning
    because more come then: as many as are due within a reply's time (Little's law), as short as
    that ever was. That is no queue that grows.
    """
    start, end = trace.window
    order = np.argsort(trace.due, kind="stable")
    usual = _fastest(trace, order)
    if not math.isfinite(usual):
        return 0.0
    due = np.count_nonzero((trace.due >= end - usual) & (trace.due < end))
    begun = (trace.due < start) & ((trace.done >= start) | (trace.done < 0))
    return max(0.0, float(due - np.count_nonzero(begun)))


def _fastest(trace: Trace, order: NDArray[np.int64]) -> float:
    """How long replies took at most, on average (ns), when they were fastest: the least upper end
    (three standard errors) of ``FIRST`` requests one after the other; infinite where there is none.
    """
    many = order.size // FIRST * FIRST
    at = order[:many].reshape(-1, FIRST)
    at = at[(trace.done[at] >= 0).all(axis=1)]
    if not at.size:
        return math.inf
    took = (trace.done - trace.due)[at].astype(np.float64)
    upper = took.mean(axis=1) + 3 * took.std(axis=1, ddof=1) / math.sqrt(FIRST)
    return float(upper.min())


def unsent(trial: Trial, trace: Trace) -> int:
    """Requests due by the window's end that never got a connection.

    A drive that was cut short after its window has left out some that were due then; so has one
    whose system was gone after the time that is judged.
    """
    if trial.drive is None or not trial.drive.unsent:
        return 0
    if not trial.drive.cut_short and trial.fault is None:
        return trial.drive.unsent
    return int(np.count_nonzero((trace.sent < 0) & (trace.due < trace.window[1])))


def offered(trace: Trace) -> Estimate:
    """Requests due within the window, per second."""
    return within.rate(trace.due, trace.window)


def answered(trace: Trace) -> Estimate:
    """Replies that came well within the window, per second."""
    return within.rate(trace.done[(trace.outcome == 0) & (trace.done >= 0)], trace.window)


def little_of(load: Load, trace: Trace) -> float | None:
    """``little`` of a closed loop as it was driven; None of other loads, and without requests."""
    if load.kind != "closed" or not trace.due.size:
        return None
    return little(trace, load.clients or 1, load.think_s or 0.0, load.timeout_s or math.inf)


def little(trace: Trace, clients: int, think_s: float, timeout_s: float = math.inf) -> float:
    """Clients accounted for, as a share of those there are: 1 where no sample is missing.

    In a closed loop an identity: a client is due when its last reply has come, so whatever the
    generator itself lost is within the response times. Little's law N = X (R + Z) over a finite
    window holds exactly when each request's share of the window is counted and no more:
    N = Σ |[due − Z, done] ∩ window| / |window| (Little 2011, Little's Law as viewed on its 50th
    anniversary). So a window that holds few requests is not accused for its edges. A request that
    never ended lasts until it was given up, at most to the end of the window.
    """
    start, end = trace.window
    if end <= start or clients <= 0:
        return 1.0
    begun = np.maximum(trace.due - int(think_s * 1e9), start)
    ended = np.minimum(np.where(trace.done < 0, _end_of_failed(trace, timeout_s), trace.done), end)
    # Each client's last cycle ends in a think time whose next request was never begun.
    busy = float(np.maximum(ended - begun, 0).sum(dtype=np.float64))
    tail = _last_think(trace, clients, think_s)
    return (busy + tail) / ((end - start) * clients)


def _end_of_failed(trace: Trace, timeout_s: float) -> Any:
    """When a request ended that has no ``done``: not on record, so taken from its kind.

    One that was never sent (a refused connection) took no time; one that was sent lasts until its
    timeout or the end of the window, which is too long for one that was reset.
    """
    given_up = trace.sent + min(timeout_s * 1e9, 2.0**62)
    return np.where(trace.sent >= 0, np.minimum(given_up, trace.window[1]), trace.due)


def _last_think(trace: Trace, clients: int, think_s: float) -> float:
    """Think time at the end of the window that no later request accounts for, in ns."""
    if think_s <= 0 or not trace.due.size:
        return 0.0
    end = trace.window[1]
    later = int(np.count_nonzero(trace.due >= end))
    waiting = int(np.count_nonzero((trace.due < end) & ((trace.done >= end) | (trace.done < 0))))
    thinking = max(0, clients - waiting - later)
    if not thinking:
        return 0.0
    # The clients that think at the end are those whose last reply came less than Z before.
    last = np.sort(trace.done[(trace.done >= 0) & (trace.done < end)])[-thinking:]
    return float(np.minimum(end - last, think_s * 1e9).sum(dtype=np.float64))


def slope(due_ns: Any, values_ns: Any, window: tuple[int, int]) -> float | None:
    """Seconds by which the median of ``values_ns`` grows each second of the window.

    Theil-Sen slope over 20 slices: a stall in some slices does not move it, overload does. None
    (unknown) with fewer than ``FOR_A_TREND`` values, or where all are in one slice.
    """
    if due_ns.size < FOR_A_TREND:
        return None
    edges = np.linspace(*window, BATCHES + 1)
    order = np.argsort(due_ns, kind="stable")
    cuts = np.searchsorted(due_ns[order], edges)
    slices = [
        (i, float(np.median(values_ns[order[a:b]])))
        for i, (a, b) in enumerate(pairwise(cuts))
        if b > a
    ]
    width = float(edges[1] - edges[0])
    slopes = [
        (y2 - y1) / ((x2 - x1) * width)
        for k, (x1, y1) in enumerate(slices)
        for x2, y2 in slices[k + 1 :]
    ]
    return float(np.median(slopes)) if slopes else None


def utilisation(trial: Trial, window_s: float) -> Estimate | None:
    """Cores that the system kept busy over the window, on all machines (1.0: one whole core)."""
    cpu_s = whole(trial).cpu_s
    if cpu_s is None or window_s <= 0:
        return None
    return Estimate(cpu_s / window_s, "cores", 1)
