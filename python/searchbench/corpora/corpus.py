"""What a corpus is: a schema and a stream of documents that fit it.

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

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

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
class Schema:
    """The fields of a corpus, in order. Every document also has an ``id``, a unique string."""

    fields: tuple[Field, ...]

    def __getitem__(self, name: str) -> Field:
        """The field of that name; KeyError."""
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(name)

    def of_type(self, *types: FieldType) -> tuple[Field, ...]:
        """The fields of these types, in order."""
        return tuple(field for field in self.fields if field.type in types)

    def to_json(self) -> dict[str, Any]:
        """``{"fields": [{"name", "type", "stored"}]}``, as in the framed protocol."""
        return {
            "fields": [
                {"name": field.name, "type": field.type.value, "stored": field.stored}
                for field in self.fields
            ]
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Schema:
        """The schema that ``to_json`` wrote; CorpusError where it is not one."""
        try:
            return cls(
                tuple(
                    Field(
                        str(each["name"]), FieldType(each["type"]), bool(each.get("stored", True))
                    )
                    for each in value["fields"]
                )
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CorpusError(
                f"This is not a schema ({error!r}); expected "
                '{"fields": [{"name": .., "type": .., "stored": ..}]}.'
            ) from error


class Document(NamedTuple):
    """One document: a unique id and canonical values by field name."""

    id: str
    values: dict[str, Any]


class Corpus(Protocol):
    """A schema and documents that fit it; may be read again and again, the same each time."""

    @property
    def name(self) -> str:
        """A short name for tables."""

    @property
    def schema(self) -> Schema:
        """The fields of its documents."""

    def documents(self) -> Iterator[Document]:
        """All documents, streamed in constant memory, always in the same order."""


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
    first: list[BadRow] = dataclasses.field(default_factory=list)
    ignored: dict[str, int] = dataclasses.field(default_factory=dict)
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


class Digester:
    """Counts and digests documents as they pass, in constant memory.

    sha256 over JSON lines: the schema, then each document as ``{"id":..,"v":{..}}`` with the
    keys sorted. The name of the corpus does not enter.
    """

    def __init__(self, schema: Schema) -> None:
        self._sha = hashlib.sha256(orjson.dumps(schema.to_json(), option=_CANONICAL))
        self._text = tuple(field.name for field in schema.of_type(FieldType.TEXT))
        self.documents = 0
        self.text_bytes = 0

    def add(self, document: Document) -> None:
        """One more document; CorpusError where a value cannot be written as JSON."""
        values = document.values
        self._sha.update(dump({"id": document.id, "v": values}, document.id))
        self.documents += 1
        for name in self._text:
            text = values.get(name)
            if text:
                self.text_bytes += len(text) if text.isascii() else len(text.encode())

    def hexdigest(self) -> str:
        """The digest so far."""
        return self._sha.hexdigest()


def digest(corpus: Corpus) -> Summary:
    """Reads the corpus once and says what it holds; CorpusError as its documents raise it."""
    digester = Digester(corpus.schema)
    for document in corpus.documents():
        digester.add(document)
    return Summary(
        corpus.name,
        digester.hexdigest(),
        digester.documents,
        digester.text_bytes,
        intake_of(corpus),
    )


def intake_of(corpus: Corpus) -> Intake | None:
    """What became of the rows in the last whole reading of the files below ``corpus``."""
    intake = getattr(corpus, "intake", None)
    return intake if isinstance(intake, Intake) else None


def dump(row: Mapping[str, Any], place: str) -> bytes:
    """One canonical JSON line; CorpusError that names ``place`` where a value cannot be one."""
    try:
        return orjson.dumps(row, option=_CANONICAL)
    except orjson.JSONEncodeError as error:
        raise CorpusError(
            f"Document {place!r} cannot be written as JSON ({error}): its values are not canonical."
        ) from error


_CANONICAL = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
