"""A corpus as the requests that put it into an engine: how many documents each has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from searchbench.corpora.corpus import Corpus, Document

if TYPE_CHECKING:
    from searchbench.engines.engine import Engine, Parameters, Request

BATCH_DOCUMENTS = 1000
"""Documents of a request, where a study does not say how many."""
BATCH_BYTES = 4 << 20
"""About how many characters of text such a request has at most."""
MOST_BYTES = 32 << 20
"""The same of a request whose number of documents a study says; servers take some 100 MB."""


def requests_of(
    engine: Engine, corpus: Corpus, params: Parameters, documents: int = 0
) -> Iterator[tuple[Request, int]]:
    """The requests that put ``corpus`` in, each with how many documents it has.

    ``documents``: of each, at most; 0: BATCH_DOCUMENTS.
    """
    start = 0
    for batch in batched(corpus.documents(), documents):
        yield engine.batch(batch, start, corpus.schema, params), len(batch)
        start += len(batch)


def batched(documents: Iterable[Document], most: int = 0) -> Iterator[list[Document]]:
    """Batches of at most ``most`` documents (0: BATCH_DOCUMENTS), and fewer where they are long."""
    characters = MOST_BYTES if most else BATCH_BYTES
    most = most or BATCH_DOCUMENTS
    batch: list[Document] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += sum(len(v) for v in document.values.values() if isinstance(v, str))
        if len(batch) >= most or size >= characters:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
