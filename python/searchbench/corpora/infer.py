"""Guesses a schema from the first rows, by a rule that is written down and shown to the user.

For each column, over the values that are there (text is judged by what it reads as):

    all true or false                    boolean
    all integers within 64 bits          integer; but keyword if one has a leading zero
    all numbers                          float
    all ISO 8601 dates ("2024-05-31..")  date
    lists                                keywords
    text with the separator in a tenth   keywords, if every piece has at most 40 characters
    other text                           keyword, if every value has at most 64 characters, and
                                         none has a space or each is there twice on average;
                                         else text

A column with no values, with objects, or with values of several kinds is left out, and the
note says so. A name that is not made of letters, digits and underscores is mended ("Unit
Price" becomes unit_price). The column of the id is no field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from searchbench.corpora.conform import FLOAT, INTEGER, Misfit, _integer
from searchbench.corpora.corpus import RESERVED, Field, FieldType, Schema

SAMPLE_ROWS = 1000
PIECE_CHARACTERS = 40
KEYWORD_CHARACTERS = 64

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?")
_LEADING_ZERO = re.compile(r"[+-]?0[0-9]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Inference:
    """What was guessed: the schema, the column of each field, and a note for each column."""

    schema: Schema
    columns: Mapping[str, str]
    notes: Mapping[str, str]
    rows: int


def infer(
    rows: Sequence[Mapping[str, Any]], id_column: str | None, separator: str | None
) -> Inference:
    """The guess from these rows. ``separator`` None: text is never cut into keywords."""
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    fields: list[Field] = []
    columns: dict[str, str] = {}
    notes: dict[str, str] = {}
    for column in names:
        if column == id_column:
            notes[column] = "the id"
            continue
        values = [value for row in rows if (value := row.get(column)) is not None]
        kind, why = _kind(values, separator)
        name = field_name(column)
        if kind is not None and name.lower() in (other.lower() for other in columns):
            kind, why = None, f"left out: another column is the field {name!r} already"
        notes[column] = why
        if kind is not None:
            fields.append(Field(name, kind))
            columns[name] = column
    return Inference(Schema(tuple(fields)), columns, notes, len(rows))


def field_name(column: str) -> str:
    """A column's name as a field's: itself if it can be, else mended."""
    if is_field_name(column):
        return column
    name = re.sub(r"[^a-z0-9]+", "_", column.lower()).strip("_") or "column"
    if not name[0].isalpha() or name in RESERVED:
        name = f"column_{name}"
    return name


def is_field_name(name: str) -> bool:
    """Whether a declared field may have this name."""
    return bool(_NAME.fullmatch(name)) and name.lower() not in RESERVED


def _kind(values: list[Any], separator: str | None) -> tuple[FieldType | None, str]:
    if not values:
        return None, "left out: no value in the first rows"
    kinds = {_class(value) for value in values}
    if "object" in kinds:
        return None, "left out: it holds objects"
    if kinds == {"list"}:
        return FieldType.KEYWORDS, "keywords: lists"
    if kinds == {"boolean"}:
        return FieldType.BOOLEAN, "boolean: true or false"
    if kinds == {"date"}:
        return FieldType.DATE, "date"
    if kinds == {"integer"}:
        return FieldType.INTEGER, "integer"
    if kinds <= {"integer", "float"}:
        return FieldType.FLOAT, "float: numbers"
    if kinds <= {"integer", "zeros"}:
        return FieldType.KEYWORD, "keyword: digits with leading zeros"
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) == len(values):
        return _of_text(texts, separator)
    return None, f"left out: values of several kinds ({', '.join(sorted(kinds))}); declare it"


def _of_text(texts: list[str], separator: str | None) -> tuple[FieldType, str]:
    if separator and sum(separator in text for text in texts) * 10 >= len(texts):
        longest = max(len(piece) for text in texts for piece in text.split(separator))
        if longest <= PIECE_CHARACTERS:
            return FieldType.KEYWORDS, f"keywords: cut at {separator!r}"
    longest = max(map(len, texts))
    if longest > KEYWORD_CHARACTERS:
        return FieldType.TEXT, f"text: up to {longest} characters"
    if len(set(texts)) * 2 <= len(texts):
        return FieldType.KEYWORD, f"keyword: {len(set(texts))} distinct of {len(texts)}"
    if not any(re.search(r"\s", text) for text in texts):
        return FieldType.KEYWORD, "keyword: no spaces"
    return FieldType.TEXT, "text: words that seldom repeat as a whole"


def _class(value: Any) -> str:
    if isinstance(value, str):
        return _class_of_text(value.strip())
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, (float, Decimal)):
        return "float"
    if isinstance(value, date):
        return "date"
    return "list" if isinstance(value, list) else "object"


def _class_of_text(text: str) -> str:
    if text.lower() in ("true", "false"):
        return "boolean"
    if _LEADING_ZERO.match(text) and INTEGER.fullmatch(text):
        return "zeros"
    if INTEGER.fullmatch(text) and "." not in text:
        try:
            _integer(text)
        except Misfit:
            return "text"
        return "integer"
    if FLOAT.fullmatch(text):
        return "float"
    return "date" if _DATE.fullmatch(text) else "text"
