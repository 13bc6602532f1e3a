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

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Protocol


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
