"""How often each query is asked, in which order, and by which client.

Everything is fixed before the first request is sent, so that two systems are asked the same in
the same order.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchbench.errors import QueryError

Repetition = Literal["each", "uniform", "zipf"]
Order = Literal["stretches", "logged", "shuffled", "drawn"]

# So many lines stay together, what one user asks after another among them; and a drive of 500
# requests still has them from 50 places of the log.
STRETCH = 10
_GOLDEN = (5**0.5 - 1) / 2


def repeat(
    distinct: int, logged: int, repetition: Repetition, exponent: float, seed: int
) -> NDArray[np.uint32]:
    """A log, uint32 of length ``logged``, over queries 0..distinct-1, shuffled by the seed.

    "each": every query equally often (the remainder, if any, to the first). "uniform" and
    "zipf": every query once, so that exactly ``distinct`` are there, and the rest drawn, with
    equal chances or with chances falling as rank ** -exponent, rank 1 being query 0.
    QueryError where the log is shorter than the number of distinct queries.
    """
    if logged < distinct:
        raise QueryError(f"a log of {logged} cannot hold {distinct} distinct queries")
    rng = np.random.default_rng([seed, 0x6C6F67])
    once = np.arange(distinct, dtype=np.uint32)
    if repetition == "each":
        log = np.resize(once, logged)
    else:
        ranks = np.arange(1, distinct + 1, dtype=np.float64)
        weights = ranks ** -(exponent if repetition == "zipf" else 0.0)
        cumulative = np.cumsum(weights)
        draws = rng.random(logged - distinct) * cumulative[-1]
        rest = np.searchsorted(cumulative, draws, side="right").clip(max=distinct - 1)
        log = np.concatenate([once, rest.astype(np.uint32)])
    rng.shuffle(log)
    return log


def by_first_appearance(log: NDArray[np.uint32]) -> tuple[NDArray[np.intp], NDArray[np.uint32]]:
    """Renumber a log so that first appearances are in order.

    Returns (the old number of each new one, the log in new numbers).
    """
    old, first, inverse = np.unique(log, return_index=True, return_inverse=True)
    order = np.argsort(first)
    new_of = np.empty_like(order)
    new_of[order] = np.arange(len(order))
    return old[order].astype(np.intp), new_of[inverse].astype(np.uint32)


def lines(length: int, order: Order, seed: int) -> NDArray[np.int64]:
    """Which lines of a log are sent one after another: int64, each of 0..length-1 once.

    "logged": as it is, from a line on that the seed draws, and round. "stretches": ``STRETCH``
    lines in a row, then as many from elsewhere: how ever many are sent, they are spread evenly
    over the log (by multiples of the golden ratio, from one on that the seed draws). A log of one
    stretch is sent as it is; so are all for the other orders, which do not rest on it.
    """
    at = np.arange(length)
    rng = np.random.default_rng([seed, 0x6C696E65])
    if order == "logged":
        return np.roll(at, -int(rng.integers(max(1, length))))
    count = -(-length // STRETCH)
    if order != "stretches" or count < 2:
        return at
    places = (rng.random() + _GOLDEN * np.arange(count)) % 1
    turn = np.argsort(np.argsort(places))  # which stretch is sent when
    starts = split(length, count).astype(np.int64)
    sizes = np.diff(starts)[turn]
    found: NDArray[np.int64] = at + np.repeat(starts[turn] - (np.cumsum(sizes) - sizes), sizes)
    return found


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

    "logged" and "stretches": as it is (see ``lines``); "shuffled": permuted by the seed; "drawn":
    drawn from it by the seed, with replacement. ``length`` None is that of the log, but at least
    one query for each client; a longer sequence repeats the log ("shuffled": each time permuted
    anew), a shorter one is its beginning. ValueError for an empty log or no clients.
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
