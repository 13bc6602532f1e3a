"""What a corpus is: a schema and a stream of documents that fit it; and its digest.

A document's values are canonical, so that every engine is given the same:

    text, keyword   str
    keywords        list[str], in the order given
    integer         int, -2**63 .. 2**63-1
    float           float, finite
    date            int, milliseconds since 1970-01-01 UTC
    boolean         bool

A field that a document lacks is absent from ``values``, never None.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable

import orjson

from searchbench.errors import CorpusError

RESERVED = ("id", "_score")
"""Names that no field may have: the document's own identifier, and relevance as a sort key."""


class FieldType(StrEnum):
    """The types that a field can have. TEXT is analysed; the others are matched whole."""

    TEXT = "text"
    KEYWORD = "keyword"
    KEYWORDS = "keywords"
    INTEGER = "integer"
    FLOAT = "float"
    DATE = "date"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class Field:
    """One named field. ``stored``: engines keep its value, so that it can be returned."""

    name: str
    type: FieldType
    stored: bool = True


@dataclass(frozen=True, slots=True)
class Index:
    """A secondary index that a table declares, over one column or several."""

    columns: tuple[str, ...]
    unique: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """How a database is to hold a corpus: a plain table with columns named as its fields are.

    ``key``: the columns of the primary key, INTEGER or KEYWORD. Those of several are fields too; a
    single one is not, as it is the document's id. A document's id is the text of its key, with a
    comma between columns. Other engines than SQL databases index every field, whatever is declared.
    """

    name: str
    key: tuple[Field, ...]
    indexes: tuple[Index, ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a corpus, in order. Every document also has an ``id``, a unique string.

    ``table``: None where an engine may lay documents out as it likes.
    """

    fields: tuple[Field, ...]
    table: Table | None = None

    def __getitem__(self, name: str) -> Field:
        """The field of that name; KeyError."""
        for each in self.fields:
            if each.name == name:
                return each
        raise KeyError(name)

    def of_type(self, *types: FieldType) -> tuple[Field, ...]:
        """The fields of these types, in order."""
        return tuple(each for each in self.fields if each.type in types)

    @property
    def columns(self) -> tuple[Field, ...]:
        """The key of the table, where that is not among the fields, and the fields."""
        key = self.table.key if self.table else ()
        return (*(each for each in key if each not in self.fields), *self.fields)

    def declared(self) -> dict[str, Any]:
        """What the digest of a corpus begins with: ``to_json`` and, if there is one, the table."""
        if self.table is None:
            return self.to_json()
        key = [[each.name, each.type.value] for each in self.table.key]
        indexes = [[list(each.columns), each.unique] for each in self.table.indexes]
        table = {"name": self.table.name, "key": key, "indexes": indexes}
        return {**self.to_json(), "table": table}

    def to_json(self) -> dict[str, Any]:
        """``{"fields": [{"name", "type", "stored"}]}``, as in the framed protocol."""
        return {
            "fields": [
                {"name": each.name, "type": each.type.value, "stored": each.stored}
                for each in self.fields
            ]
        }


class Document(NamedTuple):
    """One document: a unique id and canonical values by field name."""

    id: str
    values: dict[str, Any]


class Corpus(Protocol):
    """A schema and documents that fit it; may be read again and again, the same each time."""

    @property
    def name(self) -> str:
        "A short name, for the report's tables."

    @property
    def schema(self) -> Schema:
        """The fields of its documents."""

    def documents(self) -> Iterator[Document]:
        """All documents, streamed in constant memory, always in the same order."""


@runtime_checkable
class Repeats(Protocol):
    """A corpus that can be repeated in a way of its own, as where ids go on."""

    def repeated(self, times: int) -> Corpus:
        """All documents so many times."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that does not fit. ``line`` counts from 1 (in Parquet: the row)."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        """``file:line: reason``, the form editors can jump to."""
        return f"{self.file}:{self.line}: {self.reason}"


@dataclass(slots=True)
class Intake:
    """What became of the rows in one reading: rows == accepted + refused.

    ``first`` holds the first few refused ones. ``ignored`` counts rows by a column that they
    hold and the schema does not. ``unseen`` are fields of the schema that no document has.
    """

    rows: int = 0
    accepted: int = 0
    refused: int = 0
    first: list[BadRow] = field(default_factory=list)
    ignored: dict[str, int] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """What was read. ``text_bytes``: UTF-8 bytes of the text fields alone.

    ``intake`` is None for corpora that are not read from a user's rows.
    """

    name: str
    digest: str
    documents: int
    text_bytes: int
    intake: Intake | None = None


def digest(corpus: Corpus, write: Callable[[Document], object] | None = None) -> Summary:
    """Reads the corpus once and says what it holds; CorpusError as its documents raise it.

    sha256 over JSON lines: the schema, then each document as ``{"id":..,"v":{..}}`` with the
    keys sorted. The name of the corpus does not enter. ``write`` is given each document.
    """
    sha = hashlib.sha256(orjson.dumps(corpus.schema.declared(), option=_CANONICAL))
    texts = tuple(each.name for each in corpus.schema.of_type(FieldType.TEXT))
    documents = text_bytes = 0
    for document in corpus.documents():
        key, values = document
        try:
            sha.update(orjson.dumps({"id": key, "v": values}, option=_CANONICAL))
        except orjson.JSONEncodeError as error:
            raise CorpusError(
                f"Document {key!r} cannot be written as JSON ({error}): its values are not "
                "canonical."
            ) from error
        if write:
            write(document)
        documents += 1
        for name in texts:
            if text := values.get(name):
                text_bytes += len(text) if text.isascii() else len(text.encode())
    return Summary(corpus.name, sha.hexdigest(), documents, text_bytes, intake_of(corpus))


def intake_of(corpus: Corpus) -> Intake | None:
    """What became of the rows in the last whole reading of the files below ``corpus``."""
    intake = getattr(corpus, "intake", None)
    return intake if isinstance(intake, Intake) else None


_CANONICAL = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
