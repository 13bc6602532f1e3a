"""Where two answers differ: the first rows that one of them has and the other has not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

SHOWN = 3
BEYOND = -1
"""The place of a difference beyond the rows that are known."""


@dataclass(frozen=True, slots=True)
class Differing:
    """``place``: of the first row that differs, from 0, or ``BEYOND``. ``only_a``, ``only_b``: the
    first rows that only one answer has. ``order``: both have the same rows, and these are those of
    the places that differ.
    """

    place: int
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    order: bool = False


def first_differing(
    a: Sequence[str], b: Sequence[str], counts: tuple[int, int], *, ordered: bool
) -> Differing:
    """Of two answers that are not the same, of which so many rows are known; sorted unless
    ``ordered``. ``counts``: how many rows each has.
    """
    shared = min(len(a), len(b))
    place = next((i for i in range(shared) if a[i] != b[i]), shared)
    if place == len(a) == len(b):
        return Differing(BEYOND)
    whole = (len(a), len(b)) == counts
    if ordered and not whole:  # a row that the other has not yet may come later
        where = [i for i in range(shared) if a[i] != b[i]][:SHOWN]
        return Differing(place, tuple(a[i] for i in where), tuple(b[i] for i in where), order=True)
    if not whole:
        a, b = _both_known(a, b, counts)
    only_a, only_b = _only(a, b), _only(b, a)
    if only_a or only_b:
        return Differing(place, only_a, only_b)
    if not ordered:
        return Differing(BEYOND)
    where = [i for i in range(shared) if a[i] != b[i]][:SHOWN]
    return Differing(place, tuple(a[i] for i in where), tuple(b[i] for i in where), order=True)


def told(a: str, b: str, found: Differing, shorten: int) -> str:
    """The rows as a part of a sentence; "" where the difference is beyond those known."""
    of_a, of_b = (_quoted(rows, shorten) for rows in (found.only_a, found.only_b))
    if found.order:
        return f"at the first places that differ, {a} returns {of_a}, and {b} {of_b}"
    parts = [f"only {who} returns {rows}" for who, rows in ((a, of_a), (b, of_b)) if rows]
    return "; ".join(parts)


def _only(of: Sequence[str], but: Sequence[str]) -> tuple[str, ...]:
    """The first rows of one answer that another has not, or not so often."""
    left, found = Counter(but), list[str]()
    for row in of:
        if left[row]:
            left[row] -= 1
            continue
        found.append(row)
        if len(found) == SHOWN:
            break
    return tuple(found)


def _both_known(
    a: Sequence[str], b: Sequence[str], counts: tuple[int, int]
) -> tuple[Sequence[str], Sequence[str]]:
    """Of sorted answers whose last rows are not known, those up to where both are."""
    ends = [rows[-1] for rows, n in ((a, counts[0]), (b, counts[1])) if rows and len(rows) < n]
    if not ends:
        return a, b
    end = min(ends)
    return [r for r in a if r < end], [r for r in b if r < end]


def _quoted(rows: Sequence[str], most: int) -> str:
    return ", ".join(f"“{r if len(r) <= most else r[: most - 3] + '...'}”" for r in rows)
