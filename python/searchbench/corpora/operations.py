"""Operations on a corpus, each a corpus again: decimate, duplicate, split into parts.

All stream: they hold one document at a time, whatever the size of the corpus.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import islice

from searchbench.corpora import RULES
from searchbench.corpora.corpus import Corpus, Document, Intake, Schema, intake_of
from searchbench.corpora.generated import GeneratedCorpus
from searchbench.errors import CorpusError

_COPY = re.compile(r"#[0-9]+\Z")


@dataclass(frozen=True)
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

    part: int
    parts: int
    rule: str = RULES[0]

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
        start = self._total * (self.part - 1) // self.parts
        stop = self._total * self.part // self.parts
        if isinstance(self.corpus, GeneratedCorpus):
            return self.corpus.between(start, stop)
        return islice(self.corpus.documents(), start, stop)

    def _hashed(self) -> Iterator[Document]:
        for document in self.corpus.documents():
            digest = blake2b(document.id.encode(), digest_size=8).digest()
            if int.from_bytes(digest, "little") % self.parts == self.part - 1:
                yield document

    @cached_property
    def _total(self) -> int:
        """The number of documents: known, or counted once by reading."""
        if isinstance(self.corpus, GeneratedCorpus):
            return self.corpus.count
        return sum(1 for _ in self.corpus.documents())
