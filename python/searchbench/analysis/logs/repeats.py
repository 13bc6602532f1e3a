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
    """From how often each query was asked, and how often it ``failed``: no cache keeps a failure,
    but an answer that it has serves those who would have got one. ``dropped``: requests of queries
    that were not kept.
    """
    requests = int(n.sum()) + dropped
    if not requests:
        return None
    distinct = estimate(registers) if dropped else float(len(n))
    # Queries alike in how often they were asked are alike in all that follows.
    alike = _alike(n, failed)
    return Repeats(
        requests,
        distinct,
        dropped > 0,
        short,
        max(0.0, 1 - distinct / requests),
        tuple(
            Cache(size, _best(alike, size) / requests, _lru(alike, size) / requests)
            for size in SIZES
            if size < distinct
        ),
    )


@dataclass(frozen=True, slots=True)
class _Alike:
    """``many`` queries that were asked ``n`` times each, and answered ``answered`` times: arrays of
    one length.
    """

    n: NDArray[np.int64]
    answered: NDArray[np.int64]
    many: NDArray[np.int64]


def _alike(n: NDArray[np.uint64], failed: NDArray[np.uint64] | None) -> _Alike:
    """Queries that were answered, by how often. Some at a time: copies of all would be as large as
    the record.
    """
    parts = []
    for at in range(0, len(n), _AT_ONCE):
        asked = n[at : at + _AT_ONCE].astype(np.int64)
        answered = asked
        if failed is not None:
            answered = asked - failed[at : at + _AT_ONCE].astype(np.int64)
        both = np.stack([asked, answered], axis=1)[answered > 0]
        if (both[:, 0] == both[:, 1]).all():
            times, many = np.unique(both[:, 0], return_counts=True)
            parts.append(np.stack([times, times, many], axis=1))
        else:
            kinds, many = np.unique(both, axis=0, return_counts=True)
            parts.append(np.column_stack([kinds, many]))
    if not parts:
        return _Alike(*(np.zeros(0, np.int64) for _ in range(3)))
    all_ = np.concatenate(parts)
    kinds, which = np.unique(all_[:, :2], axis=0, return_inverse=True)
    many = np.zeros(len(kinds), np.int64)
    np.add.at(many, which.reshape(-1), all_[:, 2])
    return _Alike(kinds[:, 0], kinds[:, 1], many)


def _saved(of: _Alike) -> NDArray[np.float64]:
    """Requests of each that a cache saves which keeps its answer: all but those up to the first
    that is answered. In random order ``failed / (answered + 1)`` fail before that.
    """
    saved: NDArray[np.float64] = of.n - 1 - (of.n - of.answered) / (of.answered + 1)
    return saved


def _best(of: _Alike, size: int) -> float:
    """Requests that the ``size`` answers that are wanted most would have saved."""
    saved = _saved(of)
    order = np.argsort(-saved, kind="stable")
    many = of.many[order]
    before = np.concatenate(([0], np.cumsum(many)[:-1]))
    held = np.clip(size - before, 0, many)
    return float((held * saved[order]).sum())


def _lru(of: _Alike, size: int) -> float:
    """Che (2002): an answer stays for T requests, where T makes the cache just full.

    A query of which a share s is answered is in the cache when it is asked if it was asked within
    T, with chance q, and was in the cache then, or was answered: h = q (h + (1 - h) s).
    """
    if not len(of.n):
        return 0.0
    share = of.n / float((of.n * of.many).sum())
    answered = of.answered / of.n

    def held(within: float) -> NDArray[np.float64]:
        asked = -np.expm1(-share * within)
        return np.asarray(asked * answered / (1 - asked + asked * answered), np.float64)

    low, high = 0.0, 1.0
    while float((of.many * held(high)).sum()) < size and high < 1e18:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        full = float((of.many * held(middle)).sum())
        low, high = (middle, high) if full < size else (low, middle)
    return float((of.many * _saved(of) * held(high)).sum())


def estimate(registers: bytes) -> float:
    """How many distinct queries there were, from the registers (HyperLogLog; 0.8 %)."""
    held = np.frombuffer(registers, np.uint8).astype(float)
    m = len(held)
    raw = 0.7213 / (1 + 1.079 / m) * m * m / float(np.exp2(-held).sum())
    empty = int((held == 0).sum())
    return float(m * np.log(m / empty)) if raw < 2.5 * m and empty else raw
