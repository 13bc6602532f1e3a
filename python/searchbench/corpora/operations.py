"""Operations on a corpus, each a corpus again: decimate, duplicate, split into parts.

All stream: they hold one document at a time, whatever the size of the corpus.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Literal, Protocol, get_args, runtime_checkable

from searchbench.corpora.corpus import Corpus, Document, Intake, Schema, intake_of
from searchbench.errors import CorpusError

Rule = Literal["round-robin", "hash", "contiguous"]

_COPY = re.compile(r"#[0-9]+\Z")


@runtime_checkable
class Sliceable(Protocol):
    """A corpus that can begin anywhere without reading what comes before."""

    def __len__(self) -> int:
        """The number of documents."""

    def between(self, start: int, stop: int) -> Iterator[Document]:
        """The documents from place ``start`` (from 0) up to, not including, ``stop``."""


class _Wrapped:
    """What every operation has: the corpus below it, and its schema."""

    corpus: Corpus

    @property
    def schema(self) -> Schema:
        """The schema of the corpus below: operations leave it as it is."""
        return self.corpus.schema

    @property
    def intake(self) -> Intake | None:
        """What became of the rows of the files below, in the last whole reading."""
        return intake_of(self.corpus)


@dataclass(frozen=True)
class Decimated(_Wrapped):
    """Every k-th document, beginning with the first."""

    corpus: Corpus
    k: int

    @property
    def name(self) -> str:
        """Such as ``debian /4``."""
        return f"{self.corpus.name} /{self.k}"

    def documents(self) -> Iterator[Document]:
        """The documents at the places 0, k, 2k, ..."""
        return islice(self.corpus.documents(), 0, None, self.k)


@dataclass(frozen=True)
class Duplicated(_Wrapped):
    """The corpus k times, copy after copy; the ids of copy n end in ``#n``, from 2 on.

    Copy after copy, and not each document k times in a row, because neighbours that are equal
    would make posting lists shorter than any real corpus does.
    """

    corpus: Corpus
    k: int

    @property
    def name(self) -> str:
        """Such as ``debian ×2``."""
        return f"{self.corpus.name} ×{self.k}"

    def documents(self) -> Iterator[Document]:
        """All copies; CorpusError where an id already ends like that of a copy."""
        for document in self.corpus.documents():
            if _COPY.search(document.id):
                raise CorpusError(
                    f"{self.corpus.name} cannot be duplicated: the id {document.id!r} ends like "
                    "a copy's (#2), so that ids could be there twice; give it another id, or "
                    "duplicate once with a larger number."
                )
            yield document
        for copy in range(2, self.k + 1):
            end = f"#{copy}"
            for document in self.corpus.documents():
                yield Document(document.id + end, document.values)


@dataclass(frozen=True)
class Part(_Wrapped):
    """Part ``part`` (from 1) of ``parts``; together the parts are the corpus, each document once.

    round-robin  the documents at the places part - 1, part - 1 + parts, ...
    hash         blake2b of the id in UTF-8, 8 bytes little-endian, modulo ``parts``
    contiguous   the places from n * (part - 1) // parts to n * part // parts of n documents
    """

    corpus: Corpus
    part: int
    parts: int
    rule: Rule = "round-robin"
    _length: list[int] = field(default_factory=list, compare=False, repr=False)

    @property
    def name(self) -> str:
        """Such as ``debian 1/4 (hash)``."""
        return f"{self.corpus.name} {self.part}/{self.parts} ({self.rule})"

    def documents(self) -> Iterator[Document]:
        """The documents of this part, in the order of the corpus."""
        if self.rule == "round-robin":
            return islice(self.corpus.documents(), self.part - 1, None, self.parts)
        if self.rule == "hash":
            return self._hashed()
        total = self._count()
        start = total * (self.part - 1) // self.parts
        stop = total * self.part // self.parts
        if isinstance(self.corpus, Sliceable):
            return self.corpus.between(start, stop)
        return islice(self.corpus.documents(), start, stop)

    def _hashed(self) -> Iterator[Document]:
        mine = self.part - 1
        for document in self.corpus.documents():
            if part_of(document.id, self.parts) == mine:
                yield document

    def _count(self) -> int:
        """The number of documents: known, or counted once by reading."""
        if isinstance(self.corpus, Sliceable):
            return len(self.corpus)
        if not self._length:
            self._length.append(sum(1 for _ in self.corpus.documents()))
        return self._length[0]


def part_of(key: str, parts: int) -> int:
    """Which of ``parts`` (from 0) the id ``key`` belongs to by the rule ``hash``."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little") % parts


def decimate(corpus: Corpus, k: int) -> Corpus:
    """Every k-th document; the corpus itself for k = 1. CorpusError for k < 1."""
    _positive("decimate", k)
    return corpus if k == 1 else Decimated(corpus, k)


def duplicate(corpus: Corpus, k: int) -> Corpus:
    """The corpus k times with new ids; itself for k = 1. CorpusError for k < 1."""
    _positive("duplicate", k)
    return corpus if k == 1 else Duplicated(corpus, k)


def split(corpus: Corpus, parts: int, rule: Rule = "round-robin") -> tuple[Corpus, ...]:
    """All parts; CorpusError for parts < 1 or an unknown rule."""
    _positive("parts", parts)
    return tuple(part(corpus, n, parts, rule) for n in range(1, parts + 1))


def part(corpus: Corpus, part: int, parts: int, rule: str = "round-robin") -> Corpus:
    """One part, from 1; CorpusError where there is no such part or rule."""
    _positive("parts", parts)
    if not 1 <= part <= parts:
        raise CorpusError(f"There is no part {part} of {parts}; parts count from 1.")
    known: tuple[Rule, ...] = get_args(Rule)
    for each in known:
        if each == rule:
            return corpus if parts == 1 else Part(corpus, part, parts, each)
    raise CorpusError(f"There is no rule {rule!r} to split by; there are {', '.join(known)}.")


def _positive(what: str, k: int) -> None:
    if k < 1:
        raise CorpusError(f"{what} = {k} makes no corpus; give a whole number from 1.")
