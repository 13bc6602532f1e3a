"""Operations on a corpus, each a corpus again: decimate, duplicate, split into parts.

All stream: they hold one document at a time, whatever the size of the corpus.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import islice

from searchbench.corpora import RULES
from searchbench.corpora.corpus import Corpus, Document, Intake, Schema, intake_of
from searchbench.corpora.generated import GeneratedCorpus
from searchbench.errors import CorpusError

_COPY = re.compile(r"#[0-9]+\Z")


@dataclass(frozen=True)
class _Derived:
    """A corpus whose documents come from another one's, with the schema of that."""

    corpus: Corpus
    name: str
    documents: Callable[[], Iterator[Document]]

    @property
    def schema(self) -> Schema:
        """The schema of the corpus below: operations leave it as it is."""
        return self.corpus.schema

    @property
    def intake(self) -> Intake | None:
        """What became of the rows of the files below, in the last whole reading."""
        return intake_of(self.corpus)


def decimated(corpus: Corpus, k: int) -> Corpus:
    """Every k-th document, at the places 0, k, 2k, ...; named such as ``debian /4``."""
    return _Derived(corpus, f"{corpus.name} /{k}", lambda: islice(corpus.documents(), 0, None, k))


def duplicated(corpus: Corpus, k: int) -> Corpus:
    """The corpus k times, copy after copy; the ids of copy n end in ``#n``, from 2 on.

    Copy after copy, and not each document k times in a row, because neighbours that are equal
    would make posting lists shorter than any real corpus does. Named such as ``debian ×2``.
    CorpusError, once read, where an id already ends like that of a copy.
    """

    def documents() -> Iterator[Document]:
        for document in corpus.documents():
            if _COPY.search(document.id):
                raise CorpusError(
                    f"{corpus.name} cannot be duplicated: the id {document.id!r} ends like "
                    "a copy's (#2), so that ids could occur twice; give it another id, or "
                    "duplicate once with a larger number."
                )
            yield document
        for copy in range(2, k + 1):
            end = f"#{copy}"
            for document in corpus.documents():
                yield Document(document.id + end, document.values)

    return _Derived(corpus, f"{corpus.name} ×{k}", documents)


def part(corpus: Corpus, part: int, parts: int, rule: str = RULES[0]) -> Corpus:
    """Part ``part`` (from 1) of ``parts``; together the parts are the corpus, each document once.

    round-robin  the documents at the places part - 1, part - 1 + parts, ...
    hash         blake2b of the id in UTF-8, 8 bytes little-endian, modulo ``parts``
    contiguous   the places from n * (part - 1) // parts to n * part // parts of n documents

    In the order of the corpus; named such as ``debian 1/4 (hash)``.
    """

    @cache
    def total() -> int:
        """The number of documents: known, or counted once by reading."""
        if isinstance(corpus, GeneratedCorpus):
            return corpus.count
        return sum(1 for _ in corpus.documents())

    def contiguous() -> Iterator[Document]:
        start, stop = total() * (part - 1) // parts, total() * part // parts
        if isinstance(corpus, GeneratedCorpus):
            return corpus.between(start, stop)
        return islice(corpus.documents(), start, stop)

    def hashed() -> Iterator[Document]:
        for document in corpus.documents():
            digest = blake2b(document.id.encode(), digest_size=8).digest()
            if int.from_bytes(digest, "little") % parts == part - 1:
                yield document

    def round_robin() -> Iterator[Document]:
        return islice(corpus.documents(), part - 1, None, parts)

    documents = {"round-robin": round_robin, "hash": hashed, "contiguous": contiguous}[rule]
    return _Derived(corpus, f"{corpus.name} {part}/{parts} ({rule})", documents)
