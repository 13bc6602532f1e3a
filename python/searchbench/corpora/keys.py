"""The keys of a corpus, to draw from: by column, in the order in which documents are put in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.corpora.cars import Cars
from searchbench.corpora.corpus import Corpus, Field, FieldType
from searchbench.corpora.table import GeneratedTable


def key_columns(corpus: Corpus) -> dict[str, NDArray[Any]]:
    """The values of each column of the key; of a corpus without a table its ids, under "id".

    Integers are int64 (8 bytes a row), keywords str as objects. Generated rows are not made for
    it; files are read once. CorpusError as of ``documents``.
    """
    if isinstance(corpus, GeneratedTable | Cars):
        return dict(corpus.key_columns())
    table = corpus.schema.table
    key = table.key if table else (Field("id", FieldType.KEYWORD),)
    found: list[list[Any]] = [[] for _ in key]
    for document in corpus.documents():
        values = [document.id] if len(key) == 1 else [document.values[each.name] for each in key]
        for column, value in zip(found, values, strict=True):
            column.append(value)
    return {
        each.name: _array([int(v) for v in column] if each.type is FieldType.INTEGER else column)
        for each, column in zip(key, found, strict=True)
    }


def _array(values: list[Any]) -> NDArray[Any]:
    whole = values and isinstance(values[0], int)
    return np.array(values, np.int64 if whole else object)
