"""How often each distinct query is asked: a log of a length with exactly so many distinct."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from searchbench.errors import QueryError

Repetition = Literal["each", "uniform", "zipf"]


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
