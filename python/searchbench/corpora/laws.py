"""The laws of generated text: Zipf-Mandelbrot, Heaps, and plain distributions, from raw bits;
and its words, known from their rank alone.

Everything is made of the raw 64-bit output of PCG64, whose streams NumPy keeps the same from
version to version, which it does not promise for its distributions.

Sources: Mandelbrot (1953), frequency of the word of rank r proportional to (r + q) ** -s;
Heaps (1978), distinct words among n: k * n ** beta; Manning, Raghavan and Schütze (2008),
"Introduction to Information Retrieval", 5.1, for k = 44, beta = 0.49 on RCV1.

Words are invented: pronounceable and distinct. A word is consonants and vowels in turn, with
consonants at its end or not, so that no two numbers spell the same word. Frequent words are
short: the first 960 ranks have one syllable, the next 115,200 two, the rest three. Within a
length the order is scrambled, so that neighbours in rank do not look alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bits = NDArray[np.uint64]

SLOPE_AT_START = 0.15
MOST_WORDS_BEFORE = 1_000_000


def raw(seed: int, *place: int, count: int) -> Bits:
    """``count`` random 64-bit numbers that belong to this seed and place alone."""
    source = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=place))
    return source.random_raw(count)


def unit(numbers: Bits) -> Floats:
    """Uniform in [0, 1), with 53 bits."""
    return (numbers >> np.uint64(11)).astype(np.float64) * 2.0**-53


def normal(numbers: Bits) -> Floats:
    """Standard normal, one a number (Box and Muller 1958), from its upper and lower halves."""
    upper = ((numbers >> np.uint64(32)) + 1.0) * 2.0**-32
    lower = (numbers & np.uint64(0xFFFFFFFF)) * 2.0**-32
    bell: Floats = np.sqrt(-2.0 * np.log(upper)) * np.cos(2.0 * math.pi * lower)
    return bell


@dataclass(frozen=True, slots=True)
class Zipf:
    """Ranks from 1 in proportion to (rank + shift) ** -exponent, up to a last one.

    Drawn by the inverse of the integral of (x + shift - 1/2) ** -exponent over [rank, rank + 1),
    within 1 % of the sum's own terms for shift 2.7, and within 9 % (rank 1) for shift 0.
    """

    exponent: float
    shift: float = 0.0

    def ranks(self, uniform: Floats, last: Floats | float) -> Integers:
        """One rank for each number of [0, 1); ``last`` is the largest possible, from 1."""
        shift = self.shift - 0.5
        low = 1.0 + shift
        high = np.asarray(last) + (1.0 + shift)
        power = 1.0 - self.exponent
        if abs(power) < 1e-9:
            place = low * np.exp(uniform * np.log(high / low))
        else:
            start = low**power
            place = (start + uniform * (high**power - start)) ** (1.0 / power)
        found = (place - shift).astype(np.int64)
        return np.clip(found, 1, np.asarray(last).astype(np.int64))


@dataclass(frozen=True, slots=True)
class Heaps:
    """Distinct words among n: k * n ** beta.

    No text obeys it from the first word (k words would be distinct among the first). So the
    text is taken to begin after ``before`` words, where a new word comes ``SLOPE_AT_START`` of
    the time; the vocabulary up to there is drawn from at once. A text much longer than
    ``before`` shows the law.
    """

    k: float
    beta: float

    @property
    def before(self) -> float:
        """Words thought to come before the text: where k * beta * n ** (beta - 1) is 0.15."""
        return float((self.k * self.beta / SLOPE_AT_START) ** (1.0 / (1.0 - self.beta)))

    @property
    def possible(self) -> bool:
        """False where it says more distinct words than words for any text of a usual length."""
        exponent = math.log(self.k * self.beta / SLOPE_AT_START) / (1.0 - self.beta)
        return exponent <= math.log(MOST_WORDS_BEFORE)

    def vocabulary(self, words: Floats | float) -> Floats:
        """How many words are known after ``words`` words of text; a whole number, from 1."""
        return np.maximum(np.floor(self.k * (np.asarray(words) + self.before) ** self.beta), 1.0)

    def first_use(self, ranks: Integers) -> Floats:
        """After how many words of text the word of each rank becomes known."""
        return (ranks / self.k) ** (1.0 / self.beta) - self.before


_SINGLE = ("b", "c", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w")
_ONSETS = (*_SINGLE, "br", "pl", "st", "tr")
_NUCLEI = ("a", "e", "i", "o", "u", "ea")
_CODAS = np.array(("", "n", "r", "s", "t", "l", "m", "nd"), "S")

WIDTH = 16
"""Bytes of a row in the table: at most 14 letters, and room for a full stop and a space."""

_SYLLABLES = np.array([onset + nucleus for onset in _ONSETS for nucleus in _NUCLEI], "S")
_SIZES = tuple(len(_CODAS) * len(_SYLLABLES) ** syllables for syllables in (1, 2, 3))
# Prime to 2, 3 and 5, the only primes in the sizes, so that multiplying permutes each length.
_STRIDES = (577, 71_257, 8_543_291)

LARGEST = sum(_SIZES)
"""How many words there are: 13,940,160."""


def spell(first: int, stop: int) -> tuple[NDArray[np.uint8], Integers]:
    """The words of the ranks from ``first`` (1 is the most frequent) up to ``stop``.

    Returns (n, WIDTH) bytes, each row a word, a space and zeros; and (n,) lengths in letters.
    """
    ranks = np.arange(first - 1, stop - 1, dtype=np.int64)
    words = np.zeros(len(ranks), f"S{WIDTH}")
    start = 0
    for syllables, (size, stride) in enumerate(zip(_SIZES, _STRIDES, strict=True), 1):
        chosen = (ranks >= start) & (ranks < start + size)
        number, coda = np.divmod((ranks[chosen] - start) * stride % size, len(_CODAS))
        spelt = np.zeros(len(number), "S")
        for _ in range(syllables):
            number, syllable = np.divmod(number, len(_SYLLABLES))
            spelt = np.strings.add(spelt, _SYLLABLES[syllable])
        words[chosen] = np.strings.add(spelt, _CODAS[coda])
        start += size
    ended = np.strings.add(words, b" ").astype(words.dtype)
    return ended.view(np.uint8).reshape(-1, WIDTH), np.strings.str_len(words)


def word(rank: int) -> str:
    """The word of one rank, from 1."""
    table, lengths = spell(rank, rank + 1)
    return bytes(table[0, : lengths[0]]).decode("ascii")
