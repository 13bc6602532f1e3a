"""A trace with the client's own lateness taken out: each reply as early as it may have come.

A request that was sent late is answered late, and may delay others. But no reply is later by more
than the greatest delay of the requests that were sent since the system was last idle, and before
that reply: with all of these sent earlier by that much, it would have come earlier by just as much,
and to send some of them earlier by less only adds to the queue before it. A request that waited for
the connection of another was delayed by that other's delay, and by its own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.trial.measured import Trace

Ints = NDArray[np.int64]
_LAST = np.iinfo(np.int64).max


def own(trace: Trace) -> Ints:
    """By how much the client sent each request late by its own doing, ns; 0 if it was not sent."""
    lag = trace.sent - np.maximum(trace.due, trace.free)
    return np.where(trace.sent >= 0, np.maximum(lag, 0), 0)


def taken_out(trace: Trace) -> Trace:
    """The same requests, each reply earlier by all that the client may have delayed it."""
    order = np.argsort(np.where(trace.sent >= 0, trace.sent, trace.due), kind="stable")
    lag, sent, free, done = (
        own(trace)[order],
        trace.sent[order],
        trace.free[order],
        trace.done[order],
    )
    never = np.where(sent >= 0, _LAST, 0)  # not answered: for all we know under way to the end
    ended = np.maximum.accumulate(np.where(done >= 0, done, never))
    idle = np.concatenate([[True], sent[1:] > ended[:-1]])[: order.size]
    waited = (free > trace.due[order]) & np.isin(free, done[done >= 0])
    if waited.any():
        delay = _by_chains(lag, idle, waited, free, done)
    else:
        apart = np.cumsum(idle) * (int(lag.max(initial=0)) + 1)
        delay = np.maximum.accumulate(lag + apart) - apart
    before = np.searchsorted(np.maximum.accumulate(sent), done, side="right") - 1
    earlier = trace.done.copy()
    earlier[order] = np.where(done >= 0, np.maximum(done - delay[before], 0), done)
    return replace(trace, done=earlier)


def _by_chains(
    lag: Ints, idle: NDArray[np.bool_], waited: NDArray[np.bool_], free: Ints, done: Ints
) -> Ints:
    """The delays where connections were waited for, in the order sent (a server takes the oldest
    first: else those of a long queue would add up without end)."""
    of_reply: dict[int, int] = {}  # the delay of the reply of each instant
    delays, most = [], 0
    columns = (c.tolist() for c in (lag, idle, waited, free, done))
    for late, fresh, after, at, end in zip(*columns, strict=True):
        own_delay = late + (of_reply.get(at, 0) if after else 0)
        most = own_delay if fresh else max(most, own_delay)
        delays.append(most)
        of_reply[end] = max(most, of_reply.get(end, 0))
    return np.array(delays, np.int64)
