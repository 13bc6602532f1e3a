"""Generated triples: articles that belong to categories, with the shape of a publication's data.

The publication (`studies/`, OrientDB and ZFS, 2014) imported the article categories of the
Italian DBpedia: 1,390,193 triples, 942,949 names. It does not say how many of the names are
categories, nor how categories are spread; those figures are ours:

    CATEGORIES        124,000 of the names, so an article has 1.7 categories on average
    of an article     1 and a geometric number: where in the stream an article begins is drawn
    of a category     Zipf-Mandelbrot over the categories that are known so far; the largest
                      holds about 2 in a thousand triples
    new categories    come evenly through the stream (after the first 64 triples, each of which
                      brings one)

As many triples as the publication has give exactly as many names. More go on in the same way.

Triples are made a block at a time from the seed and the block's number, of raw bits; nothing
depends on the machine. Memory: one block, and the names of the categories so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from searchbench.corpora.laws import Bits, Integers, Zipf, raw, spell, unit
from searchbench.corpora.ntriples import Triple

TRIPLES = 1_390_193
NAMES = 942_949
CATEGORIES = 124_000
ARTICLES = NAMES - CATEGORIES
MOST_TRIPLES = 10_000_000
"""Beyond it there are no more words for names: see ``_ARTICLE_WORDS``."""

RESOURCE = "http://example.org/resource/"
PREDICATE = "http://purl.org/dc/terms/subject"

_SIZES = Zipf(0.9, 50.0)
_BEGINNING = 64
_BLOCK = 4096
_BLOCKS = -(-TRIPLES // _BLOCK)
_NAMED = 1024  # names of categories that are made at once
_BEGINS, _BELONGS, _ARTICLES, _CATEGORIES = range(4)
# A name is one word that nothing else has, after up to two that many have. By rank: the words of
# one and two syllables are common to all; the rest, of three, are split between both kinds.
_COMMON = Zipf(1.0, 2.7)
_COMMON_WORDS = 20_000
_ARTICLE_WORDS = 1_000_000
_CATEGORY_WORDS = 7_000_000


def articles_in(count: int) -> int:
    """How many articles begin in the first ``count`` triples, at the ends of blocks exactly."""
    return -(-count * ARTICLES // TRIPLES)


def known(index: Integers) -> Integers:
    """How many categories are known after the triple of each index, counted from 0."""
    later = (index - (_BEGINNING - 1)) * (CATEGORIES - _BEGINNING) // (TRIPLES - _BEGINNING)
    return np.where(index < _BEGINNING, index + 1, _BEGINNING + later)


@dataclass(frozen=True, slots=True)
class Linked:
    """The endless stream of one seed, up to ``MOST_TRIPLES``."""

    seed: int
    _names: dict[int, list[str]] = field(default_factory=dict, compare=False, repr=False)

    def triples(self) -> Iterator[Triple]:
        """All triples; those of an article follow each other, and are all different."""
        block = 0
        while True:
            yield from self._block(block)
            block += 1

    def _block(self, block: int) -> Iterator[Triple]:
        turn, place = divmod(block, _BLOCKS)
        first = turn * TRIPLES + place * _BLOCK
        stop = turn * TRIPLES + min((place + 1) * _BLOCK, TRIPLES)
        count = stop - first
        before, beginning = articles_in(first), articles_in(stop) - articles_in(first)
        # The first triple of a block begins an article, and so many others, drawn by lot.
        drawn = raw(self.seed, block, _BEGINS, count=count)[1:]
        others = np.sort(np.argsort(drawn, kind="stable")[: beginning - 1]) + 1
        begins = [0, *others.tolist(), count]
        index = np.arange(first, stop, dtype=np.int64)
        sofar = known(index)
        ranks = _SIZES.ranks(
            unit(raw(self.seed, block, _BELONGS, count=count)), sofar.astype(float)
        )
        fresh = sofar != known(index - 1)
        belongs = np.where(fresh, sofar, ranks).tolist()
        most = sofar.tolist()
        named = self._articles(block, before, beginning)
        for name, start, end in zip(named, begins, begins[1:], strict=False):
            subject = RESOURCE + name
            taken: set[int] = set()
            for at in range(start, end):
                category = belongs[at]
                while category in taken:
                    category = category % most[at] + 1
                taken.add(category)
                yield Triple(subject, PREDICATE, RESOURCE + self._category(category))

    def _articles(self, block: int, before: int, count: int) -> list[str]:
        own = _words(_ARTICLE_WORDS + before, count)
        return _joined(own, raw(self.seed, block, _ARTICLES, count=3 * count))

    def _category(self, number: int) -> str:
        """The name of a category, by its number from 1."""
        part, place = divmod(number - 1, _NAMED)
        if part not in self._names:
            own = _words(_CATEGORY_WORDS + part * _NAMED, _NAMED)
            drawn = raw(self.seed, part, _CATEGORIES, count=3 * _NAMED)
            self._names[part] = [f"Category:{name}" for name in _joined(own, drawn)]
        return self._names[part][place]


def _words(first: int, count: int) -> list[str]:
    """The words of so many ranks from ``first``."""
    table, _lengths = spell(first, first + count)
    letters = table.ravel()
    text: str = letters[letters != 0].tobytes().decode("ascii")
    return text.split()


@cache
def _common() -> list[str]:
    return _words(1, _COMMON_WORDS)


def _joined(own: list[str], drawn: Bits) -> list[str]:
    """Names: a word of its own after none (1 in 4), one (2 in 4) or two (1 in 4) common ones."""
    common = _common()
    count = len(own)
    coins = (drawn[:count] >> np.uint64(62)).tolist()  # two coins each: 0 to 3
    ranks = (_COMMON.ranks(unit(drawn[count:]), float(_COMMON_WORDS)) - 1).tolist()
    names = []
    for place, word in enumerate(own):
        many = (0, 1, 1, 2)[coins[place]]
        before = [common[rank] for rank in ranks[2 * place : 2 * place + many]]
        names.append("_".join([*before, word]).capitalize())
    return names
