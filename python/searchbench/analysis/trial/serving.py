"""When the server began with each request of an open loop, as far as due and done tell.

Response times hold the wait behind others, whose noise hides how fast the server is; the gaps
between replies hold no wait, but say nothing of a server that works on several requests at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

OVERTAKES = 0.001  # share of requests that may end before the model has them begin

Ints = NDArray[np.int64]


def began(due: NDArray[Any], done: NDArray[Any]) -> Ints:
    """When each request began (ns), in any order; ``due`` and ``done`` as many, all answered.

    First come, first served by c workers: a request begins when it is due, or when all but c - 1 of
    those before it are done, whichever is later. c is the fewest for which a request ends after it
    began, but for one in a thousand. One worker: the gap between replies; as many as there are
    requests in flight: the response time.
    """
    order, ends = np.argsort(due, kind="stable"), np.sort(done)
    arrived, ended = due[order], done[order]
    in_flight = np.arange(1, due.size + 1) - np.searchsorted(ends, arrived, side="right")
    least, most = 1, max(1, int(in_flight.max(initial=1)))
    while least < most:
        workers = (least + most) // 2
        early = np.count_nonzero(_starts(arrived, ends, workers) >= ended)
        least, most = (workers + 1, most) if early > OVERTAKES * due.size else (least, workers)
    found = np.empty(due.size, np.int64)
    found[order] = _starts(arrived, ends, least)
    return found


def _starts(arrived: NDArray[Any], ends: NDArray[Any], workers: int) -> Ints:
    """``arrived`` and ``ends`` ascending."""
    starts: Ints = arrived.astype(np.int64)
    starts[workers:] = np.maximum(starts[workers:], ends[: max(0, ends.size - workers)])
    return starts
