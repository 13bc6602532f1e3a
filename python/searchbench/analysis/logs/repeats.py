"""Repetition: how often the same was asked, and what a cache of N answers would have saved.

The counts say how often each query was asked, not in which order. So two caches are computed: one
that holds the N that are asked most (no cache that keeps the same N does better), and
one that throws out what was not asked for longest (LRU), by Che's approximation: as if the order
were random. Neither is a bound: where each is asked several times in a row, an LRU cache saves far
more than either. Same words on the same index count as the same query; pages, filters and updates
of the index are not in most logs, so less may be saved, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_AT_ONCE = 1 << 18  # queries
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Cache:
    """What a cache of ``entries`` answers would have saved, as a share of all requests."""

    entries: int
    best: float
    lru: float


@dataclass(frozen=True, slots=True)
class Repeats:
    """``distinct`` is exact unless ``estimated``; ``short``: by how much a count may be too low."""

    requests: int
    distinct: float
    estimated: bool
    short: int
    repeated: float
    caches: tuple[Cache, ...]


def repeats(
    n: NDArray[np.uint64],
    dropped: int,
    short: int,
    registers: bytes,
    failed: NDArray[np.uint64] | None = None,
) -> Repeats | None:
    """From how often each query was asked, and how often it ``failed``: that is an answer which no
    cache keeps. ``dropped``: requests of queries that were not kept.
    """
    requests = int(n.sum()) + dropped
    if not requests:
        return None
    distinct = estimate(registers) if dropped else float(len(n))
    # Queries alike in how often they were asked are alike in all that follows.
    times, queries = _answered(n, failed)
    return Repeats(
        requests,
        distinct,
        dropped > 0,
        short,
        max(0.0, 1 - distinct / requests),
        tuple(
            Cache(
                size, _best(times, queries, size) / requests, _lru(times, queries, size) / requests
            )
            for size in SIZES
            if size < distinct
        ),
    )


def _answered(
    n: NDArray[np.uint64], failed: NDArray[np.uint64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How often queries were answered, and how many queries that often. Some at a time: copies of
    all would be as large as the record.
    """
    parts = []
    for at in range(0, len(n), _AT_ONCE):
        answered = n[at : at + _AT_ONCE].astype(np.int64)
        if failed is not None:
            answered -= failed[at : at + _AT_ONCE].astype(np.int64)
        parts.append(np.unique(answered[answered > 0], return_counts=True))
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    times, which = np.unique(np.concatenate([one for one, _ in parts]), return_inverse=True)
    queries = np.zeros(len(times), np.int64)
    np.add.at(queries, which, np.concatenate([many for _, many in parts]))
    return times, queries


def _best(times: NDArray[np.int64], queries: NDArray[np.int64], size: int) -> float:
    """Requests that the ``size`` queries asked most would have saved: all but the first of each."""
    often, many = times[::-1], queries[::-1]
    before = np.concatenate(([0], np.cumsum(many)[:-1]))
    held = np.clip(size - before, 0, many)
    return float((held * (often - 1)).sum())


def _lru(times: NDArray[np.int64], queries: NDArray[np.int64], size: int) -> float:
    """Che (2002): an answer stays for T requests, where T makes the cache just full."""
    if not len(times):
        return 0.0
    share = times / float((times * queries).sum())
    low, high = 0.0, 1.0
    while float((queries * -np.expm1(-share * high)).sum()) < size and high < 1e18:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        full = float((queries * -np.expm1(-share * middle)).sum())
        low, high = (middle, high) if full < size else (low, middle)
    return float((queries * (times - 1) * -np.expm1(-share * high)).sum())


def estimate(registers: bytes) -> float:
    """How many distinct queries there were, from the registers (HyperLogLog; 0.8 %)."""
    held = np.frombuffer(registers, np.uint8).astype(float)
    m = len(held)
    raw = 0.7213 / (1 + 1.079 / m) * m * m / float(np.exp2(-held).sum())
    empty = int((held == 0).sum())
    return float(m * np.log(m / empty)) if raw < 2.5 * m and empty else raw
