"""One query that two systems answer differently, on a terminal: what only one of them lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from searchbench.analysis.judgement import Difference

_SHOWN = 3  # hits of a kind


def difference(found: Difference, a: str, b: str) -> Iterator[str]:
    """Its lines: the query, the cause and the totals; then hits, with their titles if known."""
    yield f"  {found.text}: {found.cause}; totals {found.total_a} and {found.total_b}"
    left, right = [i for i, _ in found.hits_a], [i for i, _ in found.hits_b]
    for who, own, other in ((a, left, right), (b, right, left)):
        if only := [i for i in own if i not in other]:
            yield f"    listed by {who} alone: {_named(only, found.titles)}"
    if left != right and sorted(left) == sorted(right):
        rank, x, y = next(
            (n, x, y) for n, (x, y) in enumerate(zip(left, right, strict=True), 1) if x != y
        )
        both = f"{_name(x, found.titles)} and {_name(y, found.titles)}"
        yield f"    the same hits in another order, from rank {rank} on: {both}"


def _named(ids: Sequence[str], titles: Mapping[str, str]) -> str:
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return ", ".join(_name(i, titles) for i in ids[:_SHOWN]) + more


def _name(hit: str, titles: Mapping[str, str]) -> str:
    """An id, with the title behind it where there is one; nothing that a terminal would obey."""
    text = f"{hit} ({titles[hit]})" if hit in titles else hit
    return "".join(letter for letter in text if letter.isprintable())
