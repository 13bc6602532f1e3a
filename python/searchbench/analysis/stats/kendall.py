"""Kendall's tau with ties (tau-b), for many queries at once.

Pairs in opposite orders are counted bit by bit: in a block of hits whose higher bits are equal,
each 0 that stands behind a 1 is one such pair; then the block is parted into its 0s and its 1s.
That is n log n for each query, and some twenty array operations a bit for all of them together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def tau_b(row: Ints, x: Ints, y: Ints, rows: int) -> Floats:
    """Tau-b of x and y for each of so many ``rows``; the items of a row in any order.

    ``x``, ``y``: ranks from 0, equal where tied. NaN where a row has fewer than two items or one
    side ties them all: then there is no order to agree with.
    """
    span = int(max(x.max(initial=0), y.max(initial=0))) + 1
    key = np.sort((row * span + x) * span + y)
    row, x, y = key // (span * span), key // span % span, key % span
    items = np.bincount(row, minlength=rows)
    pairs = items * (items - 1) / 2
    opposite, y_sorted = _opposite(row, y, items)
    tied_x = _tied(row * span + x, row, rows)
    tied_y = _tied(row * span + y_sorted, row, rows)
    tied_both = _tied(key, row, rows)
    agreeing_less_opposite = pairs - tied_x - tied_y + tied_both - 2 * opposite
    with np.errstate(invalid="ignore", divide="ignore"):
        tau: Floats = agreeing_less_opposite / np.sqrt((pairs - tied_x) * (pairs - tied_y))
    # The root is rounded, so a perfect tau may come out as 1 + 2e-16.
    return np.clip(tau, -1.0, 1.0)


def _opposite(row: Ints, y: Ints, items: Ints) -> tuple[Floats, Ints]:
    """For each row, how many items stand behind one of greater y; and y sorted within rows."""
    ends = np.cumsum(items)
    # Where the block of each item begins and ends.
    start, end = np.repeat(ends - items, items), np.repeat(ends, items)
    here = np.arange(y.size)
    count = np.zeros(y.size)
    for bit in reversed(range(int(y.max(initial=0)).bit_length())):
        one = (y >> bit) & 1
        before = np.concatenate(([0], np.cumsum(one)))
        ahead = before[:-1] - before[start]  # 1s of the same block that stand before this item
        count += np.where(one == 0, ahead, 0)
        middle = end - (before[end] - before[start])  # where the 1s of the block will begin
        to = np.where(one == 1, middle + ahead, here - ahead)
        y = _moved(y, to)
        start, end = (
            _moved(np.where(one == 1, middle, start), to),
            _moved(np.where(one == 1, end, middle), to),
        )
    # Items move within their row only, so what was counted in a place belongs to its row.
    return np.bincount(row, weights=count, minlength=items.size).astype(np.float64), y


def _moved(values: Ints, to: Ints) -> Ints:
    out = np.empty_like(values)
    out[to] = values
    return out


def _tied(key: Ints, row: Ints, rows: int) -> NDArray[Any]:
    """For each row, the pairs of equal keys; equal keys stand together."""
    if not key.size:
        return np.zeros(rows)
    first = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
    run = np.diff(np.append(first, key.size))
    return np.bincount(row[first], weights=run * (run - 1) / 2, minlength=rows)
