"""The answer as it is read first: one headline, then a few points. All of it follows in full.

What a verdict says is a list of sentences with a rank. The headline is the first of the lowest
rank, and the points are those that a reader needs next. A doubt about the headline goes before
what is merely more, so that no doubt is left out while something harmless is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

MOST = 5  # points below a headline
ENOUGH = 3  # from so many points on, an aside is left to the answer in full
# The end of a sentence: a period before a capital, but not one within a pair of brackets.
_END = re.compile(r"(?<=[.?])\s+(?=[A-Z])(?![^()]*\))")


class Rank(IntEnum):
    """How much a sentence matters to who reads only the first of them."""

    ANSWER = 0
    DOUBT = 1  # what keeps the answer from being relied on
    MORE = 2
    ASIDE = 3


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence of an answer."""

    text: str
    rank: Rank = Rank.MORE


def said(texts: Iterable[str], first: Rank, rest: Rank | None = None) -> Iterator[Said]:
    """``texts`` that are not empty: the first with one rank, the others with another."""
    for i, text in enumerate(text for text in texts if text):
        yield Said(text, first if i == 0 or rest is None else rest)


def sentences(texts: Iterable[str]) -> list[str]:
    """Each sentence of ``texts`` by itself."""
    return [part for text in texts for part in _END.split(text)]


def in_short(found: Sequence[Said]) -> tuple[str, tuple[str, ...]]:
    """The headline, and at most ``MOST`` points in the order in which they were said."""
    if not found:
        return "", ()
    head = min(range(len(found)), key=lambda i: (found[i].rank, i))
    rest = sorted((s.rank, i) for i, s in enumerate(found) if i != head)
    kept = [i for n, (rank, i) in enumerate(rest[:MOST]) if rank < Rank.ASIDE or n < ENOUGH]
    return found[head].text, tuple(found[i].text for i in sorted(kept))
