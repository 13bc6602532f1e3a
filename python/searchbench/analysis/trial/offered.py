"""What was offered within a window, and what of it was achieved: one definition for every reader.

The audit, the steps of a sweep and a promise all ask whether a system kept up with its load.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.stats import within
from searchbench.analysis.trial.measured import Trace

SLICES = 200
KEEPS_UP = 0.99  # of what was offered; below, a system does not keep up


@dataclass(frozen=True, slots=True)
class Achieved:
    """Replies of any kind that came within the window, over the requests due in it.

    What is lacking is what the queue grew by. ``grew``: by slice of the window, requests due less
    replies that came.
    """

    share: float
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

    def _sway(self) -> float:
        """Variance of the queue's length about its own trend."""
        queue = np.cumsum(self.grew)
        at = np.arange(queue.size) - (queue.size - 1) / 2
        sway = queue - queue.mean() - at * float((at @ queue) / (at @ at))
        return float(sway.var())

    def _interval(self, half: float) -> Interval:
        half /= self.requests
        low = max(0.0, self.share - half)
        return Interval(low, self.share + half, within.LEVEL, "sway of the queue")


def achieved(trace: Trace) -> Achieved | None:
    """None where no request was due within the window."""
    edges = np.linspace(*trace.window, SLICES + 1)
    due = np.histogram(trace.due, edges)[0]
    came = np.histogram(trace.done[trace.done >= 0], edges)[0]
    n = int(due.sum())
    if not n:
        return None
    return Achieved(float(came.sum()) / n, n, (due - came).astype(np.float64))


def offered(trace: Trace) -> Estimate:
    """Requests due within the window, per second."""
    return within.rate(trace.due, trace.window)


def answered(trace: Trace) -> Estimate:
    """Replies that came well within the window, per second."""
    return within.rate(trace.done[(trace.outcome == 0) & (trace.done >= 0)], trace.window)
