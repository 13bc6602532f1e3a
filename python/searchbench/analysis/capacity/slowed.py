"""Spells within a window in which the server was slower than in the rest of it.

While a queue stands, replies a second are the server's own speed. Where they come for seconds a
tenth more slowly than in the rest of the window, and as many requests were due, the server slowed
down. A promise that was broken then says less about the rate than about how often that happens,
which one window does not tell.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.capacity import lag
from searchbench.analysis.trial.measured import Trace

SLOWER = 0.9  # of the replies a second that come in the rest of the window, and of those due
LEAST_S = 5.0  # neither it nor the rest is shorter: one long request may hold up others for seconds
REPLIES, FEWEST = 20, 10  # a slice has so many on average, and a window so many slices
SURELY = 5.0  # standard errors: the slowest of very many spells is looked at
OFTEN, LIKE = 3, 0.5  # so many in a window, each at least so long beside the longest: it is usual
_SLICE_NS = 250_000_000
Floats = NDArray[np.float64]


def longest_s(limit_ns: float, trace: Trace) -> float:
    """How long the longest such spell of the window was, in seconds; 0 where there was none.

    0 also where there were so many that a window tells how often they come, and where the client
    itself sent a request late by ``limit_ns`` in the spell.
    """
    begin, end = trace.window
    answered = (trace.done >= begin) & (trace.done < end)
    asked = (trace.due >= begin) & (trace.due < end)
    slices = min((end - begin) // _SLICE_NS, int(np.count_nonzero(answered)) // REPLIES)
    if slices < FEWEST:
        return 0.0
    edges = np.linspace(begin, end, slices + 1)
    came = np.histogram(trace.done[answered], edges)[0].astype(np.float64)
    due = np.histogram(trace.due[asked], edges)[0].astype(np.float64)
    late = trace.due[asked & (lag.own(trace) >= limit_ns)]
    by_client = np.histogram(late, edges)[0] > 0
    start, stop = _largest_sum((1 + SLOWER) / 2 * came.mean() - came)
    length_s = (stop - start) * (end - begin) / slices / 1e9
    rest_s = (end - begin) / 1e9 - length_s
    if stop - start < 2 or min(length_s, rest_s) < LEAST_S or by_client[start:stop].any():
        return 0.0
    inside, outside = came[start:stop], np.delete(came, np.s_[start:stop])
    replies = float(inside.sum())
    at_least = SLOWER * min(float(outside.mean()) * inside.size, float(due[start:stop].sum()))
    scatter = max(1.0, float(inside.var(ddof=1)) / max(1.0, float(inside.mean())))
    if at_least - replies < SURELY * math.sqrt(scatter * at_least):
        return 0.0
    halfway = (float(inside.mean()) + float(outside.mean())) / 2
    return 0.0 if _times(came, halfway, math.ceil(LIKE * inside.size)) >= OFTEN else length_s


def _times(came: Floats, below: float, slices: int) -> int:
    """How often so many slices in a row have fewer replies than ``below`` on average."""
    means = np.convolve(came, np.full(slices, 1 / slices), "valid")
    return int(np.count_nonzero(np.diff((means < below).astype(np.int8), prepend=0) == 1))


def _largest_sum(values: Floats) -> tuple[int, int]:
    """The run of values with the largest sum, as a slice (Kadane; Bentley, 1984)."""
    best, where, running, start = -np.inf, (0, 0), 0.0, 0
    for i, value in enumerate(values.tolist()):
        if running <= 0:
            running, start = 0.0, i
        running += value
        if running > best:
            best, where = running, (start, i + 1)
    return where
