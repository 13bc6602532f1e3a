"""Slow spells within warm-ups: replies came, but nearly all of them too late.

A trial is judged by its window. A server that is slow for 3 s of every 150 s breaks a promise of
p99 at any rate, and a search whose spells happen to fall into warm-ups sees none in a window. So
the warm-ups of trials that did not break the promise are looked at too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.capacity import lag
from searchbench.analysis.capacity.stalls import WAITING
from searchbench.analysis.trial.measured import Trace

NEARLY = 0.9  # of the requests of a slice; in a queue near the limit some are in time
LEAST_S, LIMITS = 1.0, 10.0  # length of a spell: so long, and so many times the limit
_SLICE_NS = 250_000_000


def before_window(limit_ns: float, trace: Trace) -> tuple[float, ...]:
    """How long each spell of a warm-up was, in seconds, in which requests took ``limit_ns`` or
    longer, or had no reply.

    What is late from the first request on is none: connections are made and caches filled then, and
    a queue may be left from the trial before. Nor is what the client may have made: it sent a
    request late by the limit itself, in the spell or as long before it.
    """
    before = (trace.due >= 0) & (trace.due < trace.window[0])
    slices = trace.window[0] // _SLICE_NS
    if not slices or not before.any():
        return ()
    due, done = trace.due[before], trace.done[before]
    late = (done < 0) | (done - due >= limit_ns)
    at = np.minimum(due // _SLICE_NS, slices - 1)
    asked = np.bincount(at, minlength=slices)
    missed = np.bincount(at[late], minlength=slices)
    slow = (asked > 0) & (missed >= NEARLY * asked)
    if slow.all():
        return ()
    by_client = np.bincount(at[lag.own(trace)[before] >= limit_ns], minlength=slices) > 0
    begin = int(np.argmin(slow))
    return tuple(
        (b - a) * _SLICE_NS / 1e9
        for a, b in ((begin + a, begin + b) for a, b in _runs(slow[begin:]))
        if (b - a) * _SLICE_NS >= max(LEAST_S * 1e9, LIMITS * limit_ns)
        and asked[a:b].sum() >= WAITING
        and not by_client[max(0, 2 * a - b) : b].any()
    )


def _runs(slow: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Where each run of slow slices begins and ends."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], slow.astype(np.int8), [0]))))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
