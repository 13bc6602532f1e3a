"""Natural-looking text of any size from a seed, and fields with declared distributions.

Words follow Zipf-Mandelbrot, the vocabulary grows by Heaps' law, lengths of bodies are
lognormal, and a word that a document has used comes again in it (``burst``). The text has no
grammar and no meaning; it has the statistics that an index feels.

Documents are made a block at a time from the seed and the block's number, so that any
document can be made without those before it, and a corpus of N documents begins a corpus of
more. Memory: one block, and 24 bytes a word of the vocabulary (1.5 million words for 10 GB).

Heaps' law is kept by planting: the word of rank r is new at the r-th word's due place in the
text, and is drawn by Zipf from the next document on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.corpora.drawn import DEFAULT_FIELDS, Drawn, drawn_fields
from searchbench.corpora.laws import (
    LARGEST,
    WIDTH,
    Bits,
    Heaps,
    Integers,
    Zipf,
    normal,
    raw,
    spell,
    unit,
)
from searchbench.errors import CorpusError

_TITLE_WORDS = 5.0
_TITLE_SIGMA = 0.35
_TITLE_LONGEST = 12
_SENTENCE_WORDS = 14
_LONGEST_MEDIANS = 50
"""No body is longer than this many medians."""

_BLOCK_DOCUMENTS = 1024
_BLOCK_WORDS = 1 << 18
_LENGTHS, _WORDS, _SHAPES = range(3)


class Vocabulary:
    """The spelt words of the ranks up to some number; grows by itself."""

    def __init__(self) -> None:
        self.table: NDArray[np.uint8] = np.zeros((1, WIDTH), np.uint8)  # rank 0 is no word
        self.lengths: Integers = np.zeros(1, np.int64)

    def upto(self, rank: int) -> None:
        """Spells what is missing up to ``rank``."""
        known = len(self.lengths) - 1
        if rank > known:
            target = min(max(rank, known + known // 4, 8192), LARGEST)
            table, lengths = spell(known + 1, target + 1)
            self.table = np.concatenate((self.table, table))
            self.lengths = np.concatenate((self.lengths, lengths))


@dataclass(frozen=True)
class GeneratedCorpus:
    """Generated documents; made by ``open_generated``."""

    name: str
    count: int
    seed: int
    words: float
    words_sigma: float
    zipf: Zipf
    heaps: Heaps
    burst: float
    drawn: tuple[Drawn, ...]
    _vocabulary: Vocabulary = field(default_factory=Vocabulary, compare=False, repr=False)

    @property
    def schema(self) -> Schema:
        """title and body, then the declared fields."""
        text = (Field("title", FieldType.TEXT), Field("body", FieldType.TEXT))
        return Schema(text + tuple(each.field for each in self.drawn))

    @property
    def mean_words(self) -> float:
        """Words of a title and a body, on average (of lognormals: median * exp(sigma**2 / 2))."""
        return _TITLE_WORDS * math.exp(_TITLE_SIGMA**2 / 2) + self.words * math.exp(
            self.words_sigma**2 / 2
        )

    @property
    def block_documents(self) -> int:
        """Documents of a block: fewer where they are long, so that a block stays small."""
        return max(1, min(_BLOCK_DOCUMENTS, int(_BLOCK_WORDS / self.mean_words)))

    def documents(self) -> Iterator[Document]:
        """All documents, in order; ids count from 0."""
        return self.between(0, self.count)

    def between(self, start: int, stop: int) -> Iterator[Document]:
        """The documents from place ``start`` up to ``stop``, made without those before."""
        stop = min(stop, self.count)
        size = self.block_documents
        for block in range(start // size, -(-stop // size)):
            first = block * size
            yield from self._block(block)[max(0, start - first) : stop - first]

    def _block(self, block: int) -> list[Document]:
        size = self.block_documents
        titles, bodies = self._lengths(block)
        sizes = titles + bodies
        ends = np.cumsum(sizes)
        starts = ends - sizes
        body_starts = starts + titles
        total = int(ends[-1])
        inside = np.arange(total) - np.repeat(starts, sizes)  # each word's place in its document
        shapes = raw(self.seed, block, _SHAPES, count=total)
        ranks = self._ranks(block, starts, ends, inside, shapes)
        text, offsets = self._text(
            ranks, body_starts, ends, inside >= np.repeat(titles, sizes), shapes
        )
        opened = offsets[starts].tolist()
        parted = offsets[body_starts].tolist()
        closed = offsets[ends].tolist()
        columns = [each.draw(self.seed, block, size) for each in self.drawn]
        names = [each.field.name for each in self.drawn]
        documents = []
        first = block * size
        for place in range(size):
            values: dict[str, Any] = {
                "title": text[opened[place] : parted[place] - 1],
                "body": text[parted[place] : closed[place] - 1],
            }
            for name, column in zip(names, columns, strict=True):
                if (value := column[place]) is not None:
                    values[name] = value
            documents.append(Document(str(first + place), values))
        return documents

    def _lengths(self, block: int) -> tuple[Integers, Integers]:
        size = self.block_documents
        drawn = normal(raw(self.seed, block, _LENGTHS, count=2 * size))
        titles = np.rint(_TITLE_WORDS * np.exp(_TITLE_SIGMA * drawn[:size]))
        bodies = np.rint(self.words * np.exp(self.words_sigma * drawn[size:]))
        return (
            np.clip(titles, 1, _TITLE_LONGEST).astype(np.int64),
            np.clip(bodies, 1, self.words * _LONGEST_MEDIANS).astype(np.int64),
        )

    def _ranks(
        self, block: int, starts: Integers, ends: Integers, inside: Integers, shapes: Bits
    ) -> Integers:
        """The rank of each word of a block: drawn, repeated within the document, or planted."""
        # A block's words are spread over the words that it has on average, so that blocks
        # tile the text without knowing the lengths of those before.
        total = len(shapes)
        span = self.block_documents * self.mean_words
        before = block * span
        known = self.heaps.vocabulary(before + starts / total * span)
        last = np.repeat(known, ends - starts)
        ranks = self.zipf.ranks(unit(raw(self.seed, block, _WORDS, count=total)), last)
        lowest = int(self.heaps.vocabulary(before)) + 1
        highest = int(self.heaps.vocabulary(before + span))
        planted = np.zeros(total, np.bool_)
        fresh = np.arange(lowest, highest + 1, dtype=np.int64)[:total]
        if len(fresh):
            due = (self.heaps.first_use(fresh) - before) / span * total
            count = np.arange(len(fresh))
            places = np.maximum.accumulate(due.astype(np.int64) - count) + count
            places = np.clip(places, count, total - len(fresh) + count)
            ranks[places] = fresh
            planted[places] = True
        if self.burst:
            chance = (shapes >> np.uint64(32)) * 2.0**-32
            again = np.flatnonzero((chance < self.burst) & ~planted & (inside > 0))
            back = (chance[again] / self.burst * inside[again]).astype(np.int64)
            ranks[again] = ranks[again - inside[again] + back]
        return ranks

    def _text(
        self, ranks: Integers, body_starts: Integers, ends: Integers, in_body: Any, shapes: Bits
    ) -> tuple[str, Integers]:
        """The text of a block, and (words + 1,) offsets of each word in it."""
        vocabulary = self._vocabulary
        vocabulary.upto(int(ranks.max()))
        letters = vocabulary.table[ranks]
        lengths = vocabulary.lengths[ranks]
        stops = (shapes & np.uint64(0xFFFFFFFF)) < np.uint64(2**32 // _SENTENCE_WORDS)
        stops &= in_body
        stops[ends - 1] = True
        closing = np.flatnonzero(stops)
        letters[closing, lengths[closing]] = ord(".")
        letters[closing, lengths[closing] + 1] = ord(" ")
        opening = np.unique(np.concatenate(([0], body_starts, closing[:-1] + 1)))
        letters[opening, 0] -= ord("a") - ord("A")
        offsets = np.zeros(len(ranks) + 1, np.int64)
        np.cumsum(lengths + 1 + stops, out=offsets[1:])
        flat = letters.ravel()
        return flat[flat != 0].tobytes().decode("ascii"), offsets


def open_generated(
    *,
    documents: int = 10_000,
    seed: int = 1,
    words: float = 120.0,
    words_sigma: float = 0.8,
    zipf_exponent: float = 1.0,
    zipf_shift: float = 2.7,
    heaps_k: float = 44.0,
    heaps_beta: float = 0.49,
    burst: float = 0.2,
    fields: Mapping[str, object] | None = None,
    name: str = "",
) -> GeneratedCorpus:
    """A generated corpus; the keys of ``SPEC_KEYS`` say what each means.

    CorpusError where the laws contradict each other or a field is wrong.
    """
    heaps = Heaps(heaps_k, heaps_beta)
    if not heaps.possible:
        raise CorpusError(
            f"heaps_k = {heaps_k:g} with heaps_beta = {heaps_beta:g} asks for more distinct words "
            "than a text has; English is near 44 and 0.49."
        )
    corpus = GeneratedCorpus(
        name or "generated",
        documents,
        seed,
        float(words),
        float(words_sigma),
        Zipf(zipf_exponent, zipf_shift),
        heaps,
        burst,
        drawn_fields(DEFAULT_FIELDS if fields is None else fields),
    )
    blocks = -(-documents // corpus.block_documents)
    needed = float(heaps.vocabulary(blocks * corpus.block_documents * corpus.mean_words))
    if needed > LARGEST:
        raise CorpusError(
            f"This corpus would have {needed:,.0f} distinct words, and {LARGEST:,} can be spelt; "
            "use a smaller heaps_beta, or fewer documents."
        )
    return corpus
