"""Invented words: pronounceable, distinct, and known from their rank alone.

A word is consonants and vowels in turn, with consonants at its end or not, so that no two
numbers spell the same word. Frequent words are short: the first 960 ranks have one syllable,
the next 115,200 two, the rest three. Within a length the order is scrambled, so that
neighbours in rank do not look alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SINGLE = ("b", "c", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w")
ONSETS = (*_SINGLE, "br", "pl", "st", "tr")
NUCLEI = ("a", "e", "i", "o", "u", "ea")
CODAS = ("", "n", "r", "s", "t", "l", "m", "nd")

WIDTH = 16
"""Bytes of a row in the table: at most 14 letters, and room for a full stop and a space."""

_OPEN = len(ONSETS) * len(NUCLEI)
_LAST = _OPEN * len(CODAS)
_SIZES = (_LAST, _LAST * _OPEN, _LAST * _OPEN * _OPEN)
# Prime to 2, 3 and 5, the only primes in the sizes, so that multiplying permutes each length.
_STRIDES = (577, 71_257, 8_543_291)

LARGEST = sum(_SIZES)
"""How many words there are: 13,940,160."""


def spell(first: int, stop: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The words of the ranks from ``first`` (1 is the most frequent) up to ``stop``.

    Returns (n, WIDTH) bytes, each row a word, a space and zeros; and (n,) lengths in letters.
    """
    ranks = np.arange(first - 1, stop - 1, dtype=np.int64)
    table = np.zeros((len(ranks), WIDTH), np.uint8)
    lengths = np.zeros(len(ranks), np.int64)
    start = 0
    for syllables, (size, stride) in enumerate(zip(_SIZES, _STRIDES, strict=True), 1):
        chosen = np.flatnonzero((ranks >= start) & (ranks < start + size))
        if len(chosen):
            number = (ranks[chosen] - start) * stride % size
            _spell(table, lengths, chosen, number, syllables)
        start += size
    table[np.arange(len(ranks)), lengths] = ord(" ")
    return table, lengths


def word(rank: int) -> str:
    """The word of one rank, from 1."""
    table, lengths = spell(rank, rank + 1)
    return bytes(table[0, : lengths[0]]).decode("ascii")


def _spell(
    table: NDArray[np.uint8],
    lengths: NDArray[np.int64],
    chosen: NDArray[np.int64],
    number: NDArray[np.int64],
    syllables: int,
) -> None:
    number, coda = np.divmod(number, len(CODAS))
    for _ in range(syllables):
        number, syllable = np.divmod(number, _OPEN)
        onset, nucleus = np.divmod(syllable, len(NUCLEI))
        _append(table, lengths, chosen, onset, ONSETS)
        _append(table, lengths, chosen, nucleus, NUCLEI)
    _append(table, lengths, chosen, coda, CODAS)


def _append(
    table: NDArray[np.uint8],
    lengths: NDArray[np.int64],
    chosen: NDArray[np.int64],
    which: NDArray[np.int64],
    pieces: tuple[str, ...],
) -> None:
    sizes = np.array([len(piece) for piece in pieces])
    for place in range(sizes.max()):
        letters = np.array([ord(piece[place]) if place < len(piece) else 0 for piece in pieces])
        table[chosen, lengths[chosen] + place] = letters[which]
    lengths[chosen] += sizes[which]
