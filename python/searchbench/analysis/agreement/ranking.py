"""Two ranked lists for each of many queries: overlap, order, ties, rank-biased overlap, tau.

All queries are compared at once, in slices that stay in the processor's cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

P = 0.9  # of RBO: how far down a reader goes; the first 10 ranks carry 86 % of the weight
TIE = 1e-6  # relative; scores are float32 sums, whose order of adding moves the last bits
SLICE_CELLS = 100_000
UNKNOWN = np.iinfo(np.int64).max

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Lists:
    """Ranked lists of many queries. ``ids``: int32 [queries, k], a number for each document, padded
    with -1. ``scores``: float64 [queries, k], NaN where a hit has no score. ``length``: int64.
    ``cut``: whether a query has more hits than are in its list; ``beyond``: how many more, int64,
    ``UNKNOWN`` where that is not on record (None: of all).
    """

    ids: NDArray[np.int32]
    scores: Floats
    length: Ints
    cut: Bools
    beyond: Ints | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """For each query: ``same`` (identical lists), ``set_same`` and ``order_same`` (ties may swap),
    ``undecided``, ``rbo`` (by rank alone: a tie that swaps lowers it) and how many documents are in
    both (``shared``).

    ``undecided``: a list has no order, as all its hits have one score; where more match than it
    holds, its top k could have been others. Its order is never the same as another's, its set
    only if both hold the same documents. So it is where a tie at the cut would have to excuse more
    than half of a list. A tie excuses no more documents than match beyond the other list, and
    none of another score where most of what both hold has the same scores in both.
    """

    same: Bools
    set_same: Bools
    order_same: Bools
    undecided: Bools
    rbo: Floats
    shared: Ints


def match(a: Lists, b: Lists) -> Match:
    """Compare the lists query by query; a and b have the same shape."""
    n, k = a.ids.shape
    same = (a.length == b.length) & np.all(a.ids == b.ids, axis=1)
    unordered = without_order(a) | without_order(b)
    set_same, order_same, undecided = same.copy(), same & ~unordered, same & unordered
    rbo, shared = np.ones(n), a.length.copy()
    rest = np.flatnonzero(~same)
    step = max(1, SLICE_CELLS // max(1, k))
    for begin in range(0, rest.size, step):
        rows = rest[begin : begin + step]
        found = _match_slice(_take(a, rows), _take(b, rows), unordered[rows])
        set_same[rows], order_same[rows], undecided[rows], rbo[rows], shared[rows] = found
    return Match(same, set_same, order_same, undecided, rbo, shared)


def _tie(x: Floats, y: Floats) -> Bools:
    """Whether two scores are equal; without a score, never: a hit's place says all there is.

    Whole numbers are no sums that are rounded (times, counts): a tie is only what is equal.
    """
    with np.errstate(invalid="ignore"):
        near = np.abs(x - y) <= TIE * np.maximum(np.abs(x), np.abs(y))
        whole = (x == np.floor(x)) & (y == np.floor(y))
        result: Bools = np.where(whole, x == y, near)
    return result


def without_order(lists: Lists) -> Bools:
    """Whether a list has several hits and one score for all: none is said to be the better one."""
    beyond = np.arange(1, lists.ids.shape[1]) >= lists.length[:, None]
    tied = _tie(lists.scores[:, :-1], lists.scores[:, 1:])
    result: Bools = (lists.length > 1) & np.all(tied | beyond, axis=1)
    return result


def _tie_groups(scores: Floats) -> Ints:
    """The number of the group of tied neighbours of each hit, from 0 at the top."""
    groups = np.zeros(scores.shape, dtype=np.int64)
    np.cumsum(~_tie(scores[:, :-1], scores[:, 1:]), axis=1, out=groups[:, 1:])
    return groups


def _rbo_extrapolated(overlap: Floats, s: Ints, length: Ints, p: float = P) -> Floats:
    """Rank-biased overlap, extrapolated (Webber, Moffat and Zobel 2010, eq. 32).

    ``overlap`` [queries, k]: X_d, the number of documents that the first d ranks of both lists
    share, d from 1; ``s`` and ``length``: lengths of the shorter and the longer list. Two empty
    lists have 1, an empty one and another 0.
    """
    k = overlap.shape[1]
    d = np.arange(1, k + 1, dtype=np.float64)
    inside = d <= length[:, None]
    weight = p**d
    first = np.sum(np.where(inside, overlap / d * weight, 0.0), axis=1)
    rows = np.arange(overlap.shape[0])
    x_s = np.where(s > 0, overlap[rows, np.maximum(s, 1) - 1], 0.0)
    x_l = np.where(length > 0, overlap[rows, np.maximum(length, 1) - 1], 0.0)
    safe_s, safe_l = np.maximum(s, 1), np.maximum(length, 1)
    beyond = inside & (d > s[:, None])
    uneven = x_s[:, None] * (d - s[:, None]) / (safe_s[:, None] * d) * weight
    second = np.sum(np.where(beyond, uneven, 0.0), axis=1)
    last = ((x_l - x_s) / safe_l + x_s / safe_s) * p**length
    value = (1 - p) / p * (first + second) + last
    return np.where(length == 0, 1.0, np.where(s == 0, 0.0, value))


def _take(lists: Lists, rows: Ints) -> Lists:
    beyond = None if lists.beyond is None else lists.beyond[rows]
    return Lists(lists.ids[rows], lists.scores[rows], lists.length[rows], lists.cut[rows], beyond)


def _may_be_beyond(others: Ints, lists: Lists) -> Bools:
    """Whether so many other documents may match beyond these lists."""
    if lists.beyond is None:
        return np.ones(others.size, dtype=bool)
    result: Bools = others <= lists.beyond
    return result


def _match_slice(a: Lists, b: Lists, unordered: Bools) -> tuple[Bools, Bools, Bools, Floats, Ints]:
    """``set_same``, ``order_same``, ``undecided``, ``rbo`` and ``shared`` of lists that are not
    identical.
    """
    n, k = a.ids.shape
    query, i, j, once = _shared(a, b)
    overlap = np.zeros((n, k))
    np.add.at(overlap, (query, np.maximum(i, j)), 1.0)
    np.cumsum(overlap, axis=1, out=overlap)
    rbo = _rbo_extrapolated(overlap, np.minimum(a.length, b.length), np.maximum(a.length, b.length))

    group_a, group_b = _tie_groups(a.scores), _tie_groups(b.scores)
    in_b, in_a = np.zeros((n, k), dtype=bool), np.zeros((n, k), dtype=bool)
    in_b[query, i] = True
    in_a[query, j] = True
    alike = _same_last_score(a, b)
    unordered = unordered | ((a.length == 1) & alike)  # nor is there an order in one hit of many
    of_one_length = (a.length == b.length) & once
    others = a.length - np.bincount(query, minlength=n)
    equal = of_one_length & (others == 0)
    may_tie = of_one_length & _may_be_beyond(others, a) & _may_be_beyond(others, b)
    tied = _only_at_cut(a, group_a, in_b, alike) & _only_at_cut(b, group_b, in_a, alike)
    # Where both score alike what both have, documents of another score are tied with nothing there.
    equal_scores = _tie(a.scores[query, i], b.scores[query, j])
    one_scale = 2 * np.bincount(query, weights=equal_scores, minlength=n) > a.length - others
    excused = may_tie & tied & ~unordered & ~equal & (alike | ~one_scale)
    most = 2 * others > a.length
    set_same = equal | (excused & ~most)
    undecided = (may_tie & unordered & (equal | a.cut | b.cut)) | (excused & most)

    # Documents in both lists, as pairs of tie groups: an order differs if there are two of them
    # that the one ranks strictly this way and the other strictly that way.
    order = np.lexsort((group_b[query, j], group_a[query, i], query))
    q, ga, gb = query[order], group_a[query, i][order], group_b[query, j][order]
    order_same = set_same & ~unordered & ~_discordant(q, ga, gb, n, k)
    return set_same, order_same, undecided, rbo, a.length - others


def _shared(a: Lists, b: Lists) -> tuple[Ints, Ints, Ints, Bools]:
    """The documents that both lists have: query, place in a, place in b; by query.

    A document that is listed twice counts where it first stands. And by query, whether neither
    list has such a document.
    """
    n, span = a.length.size, int(max(a.ids.max(initial=0), b.ids.max(initial=0))) + 1
    (key_a, place_a), (key_b, place_b) = (_first_places(lists, span) for lists in (a, b))
    once = np.bincount(key_a // span, minlength=n) == a.length
    once &= np.bincount(key_b // span, minlength=n) == b.length
    if not key_b.size:
        return key_b, place_b, place_b, once
    at = np.minimum(np.searchsorted(key_b, key_a), key_b.size - 1)
    both = key_b[at] == key_a
    return key_a[both] // span, place_a[both], place_b[at[both]], once


def _first_places(lists: Lists, span: int) -> tuple[Ints, Ints]:
    """Each document of each query once, ascending as query * span + document, and its place."""
    query, place = np.nonzero(lists.ids >= 0)
    key, first = np.unique(query * span + lists.ids[query, place], return_index=True)
    return key, place[first]


def _only_at_cut(lists: Lists, groups: Ints, shared: Bools, alike: Bools) -> Bools:
    """Whether every document that only this list has is tied at its cut.

    A last hit on its own shows no tie: whether the next one, beyond the cut, has its score is not
    on record. It is believed only if the other list ends at the same score (``alike``).
    """
    k = groups.shape[1]
    present = np.arange(k) < lists.length[:, None]
    last = groups[np.arange(groups.shape[0]), np.maximum(lists.length, 1) - 1]
    in_last = (groups == last[:, None]) & present
    tie_seen = alike | (np.count_nonzero(in_last, axis=1) > 1)
    excused = in_last & np.isfinite(lists.scores) & (lists.cut & tie_seen)[:, None]
    result: Bools = np.all(~(present & ~shared) | excused, axis=1)
    return result


def _same_last_score(a: Lists, b: Lists) -> Bools:
    rows = np.arange(a.length.size)
    x, y = (lists.scores[rows, np.maximum(lists.length, 1) - 1] for lists in (a, b))
    return _tie(x, y)


def _discordant(query: Ints, ga: Ints, gb: Ints, n: int, k: int) -> Bools:
    """For each query, whether two documents are in strictly opposite orders.

    Rows are sorted by query, ga, gb. There is such a pair exactly if some gb is less than the
    greatest gb of a strictly smaller ga of the same query.
    """
    wrong = np.zeros(n, dtype=bool)
    if not query.size:
        return wrong
    # One running maximum for all queries: each query's groups are lifted above the last one's.
    lifted = gb + query * (k + 1)
    running = np.maximum.accumulate(lifted)
    first = np.empty(query.size, dtype=bool)  # the first row of each (query, ga)
    first[0] = True
    first[1:] = (query[1:] != query[:-1]) | (ga[1:] != ga[:-1])
    at_first = np.flatnonzero(first)[np.cumsum(first) - 1]
    # Lifting makes the maximum of earlier queries smaller than any value of this one.
    before = np.where(at_first > 0, running[np.maximum(at_first, 1) - 1], -1)
    wrong[query[lifted < before]] = True
    return wrong


def as_matrix(values: NDArray[Any], offsets: Ints, k: int, fill: Any) -> NDArray[Any]:
    """Ragged lists (flat values and their offsets) as rows of k, padded with ``fill``."""
    length = np.minimum(np.diff(offsets), k)
    matrix = np.full((length.size, k), fill, dtype=values.dtype)
    column = np.arange(k)
    present = column < length[:, None]
    matrix[present] = values[(offsets[:-1, None] + column)[present]]
    return matrix


def tau_b(row: Ints, x: Ints, y: Ints, rows: int) -> Floats:
    """Kendall's tau with ties (tau-b) of x and y, for each of so many ``rows``.

    The items of a row come in any order. ``x``, ``y``: ranks from 0, equal where tied. NaN where a
    row has fewer than two items or one side ties them all: there is no order to agree with.

    Pairs in opposite orders are counted bit by bit: in a block of hits whose higher bits are equal,
    each 0 that stands behind a 1 is one such pair; then the block is parted into its 0s and its 1s.
    That is n log n for each query, and some twenty array operations a bit for all of them together.
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
