"""The order in which a log is asked, and by which client.

Everything is fixed before the first request is sent, so that two systems are asked the same in
the same order.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Order = Literal["logged", "shuffled", "drawn"]


class Sequence(NamedTuple):
    """What is sent: ``sequence`` uint32, indices of distinct queries in the order to be sent;
    ``client_starts`` uint32 of length clients + 1: client c asks
    ``sequence[client_starts[c]:client_starts[c + 1]]``."""

    sequence: NDArray[np.uint32]
    client_starts: NDArray[np.uint32]


def arrange(
    log: NDArray[np.uint32],
    order: Order,
    *,
    clients: int = 1,
    seed: int = 0,
    length: int | None = None,
) -> Sequence:
    """``log`` in an order, split contiguously over ``clients`` as evenly as it goes.

    "logged": as it is; "shuffled": permuted by the seed; "drawn": drawn from it by the seed,
    with replacement. ``length`` None is that of the log, but at least one query for each
    client; a longer sequence repeats the log ("shuffled": each time permuted anew), a shorter
    one is its beginning. ValueError for an empty log or no clients.
    """
    if len(log) == 0 or clients < 1:
        raise ValueError("a sequence needs a log and at least one client")
    size = max(len(log), clients) if length is None else length
    rng = np.random.default_rng([seed, 0x6F726465])
    if order == "drawn":
        sequence = log[rng.integers(0, len(log), size)]
    elif order == "shuffled":
        passes = -(-size // len(log))
        sequence = np.concatenate([rng.permutation(log) for _ in range(passes)] or [log])[:size]
    else:
        sequence = np.resize(log, size)
    return Sequence(sequence.astype(np.uint32), split(size, clients))


def split(length: int, clients: int) -> NDArray[np.uint32]:
    """Starts of contiguous runs whose lengths differ by at most one, the longer ones first."""
    share, over = divmod(length, clients)
    lengths = np.full(clients, share, dtype=np.uint32)
    lengths[:over] += 1
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
