"""Schemas of the user's rows: which values fit a type, and how fields are declared or guessed.

One rule for every format of the user's files.

A value may come typed (JSON, Parquet) or as text (CSV; JSON that holds numbers as strings).

    text       a string, as it is
    keyword    a string, as it is; an integer becomes its digits
    keywords   a list of these; one string is split at ``separator`` if there is one (pieces
               are trimmed, empty ones left out), else it is a list of one
    integer    within 64 bits; 3.0 and "3.0" are 3, and 3.5 does not fit
    float      finite; an integer that no float holds exactly does not fit
    date       ISO 8601 text (no zone: UTC), a date or a datetime; a number, or text of digits
               only, counts ``date_unit`` since 1970 UTC. Kept to the millisecond, floored
    boolean    true or false; "true", "yes", "t", "1" and "false", "no", "f", "0" in any case; 1, 0

None, and in text files an empty cell, mean that the document lacks the field. Spaces around
numbers, dates and booleans do not matter. Whatever else there is does not fit, with a reason.

Fields that are not declared are guessed from the first rows, and a note of each is shown to the
user. For each column, over the values that are there (text is judged by what it reads as):

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

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Literal

from searchbench.corpora.corpus import RESERVED, Field, FieldType, Schema
from searchbench.errors import CorpusError
from searchbench.spec import show as as_toml

DateUnit = Literal["s", "ms"]

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_INTEGER = re.compile(r"[+-]?[0-9]+(?:\.0*)?")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DIGITS = re.compile(r"[+-]?[0-9]+")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BOOLEANS = dict.fromkeys(("true", "yes", "t", "1"), True) | dict.fromkeys(
    ("false", "no", "f", "0"), False
)
_SHOWN = 40

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?")
_LEADING_ZERO = re.compile(r"[+-]?0[0-9]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PIECE_CHARACTERS = 40
_KEYWORD_CHARACTERS = 64


class Misfit(ValueError):  # noqa: N818 -- a reason, not a failure
    """Why a value or a row does not fit; only within this package."""


class Conformer:
    """Rows of one schema, checked. ``columns``: the row's name of a field, if it is another."""

    def __init__(
        self,
        schema: Schema,
        separator: str | None = None,
        date_unit: DateUnit = "ms",
        columns: Mapping[str, str] | None = None,
    ) -> None:
        columns = columns or {}
        self._fields = tuple(
            (
                field.name,
                columns.get(field.name, field.name),
                _converter(field.type, separator, date_unit),
            )
            for field in schema.fields
        )

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The canonical values in the order of the schema; Misfit with every reason against it."""
        values: dict[str, Any] = {}
        reasons: list[str] = []
        for name, column, convert in self._fields:
            raw = row.get(column)
            if raw is None:
                continue
            try:
                values[name] = convert(raw)
            except Misfit as misfit:
                reasons.append(f"{column}: {misfit}")
        if reasons:
            raise Misfit("; ".join(reasons))
        return values


def identifier(raw: object) -> str:
    """A document's id: a string that is not empty, or an integer; Misfit."""
    if isinstance(raw, str) and raw:
        return raw
    if isinstance(raw, int) and not isinstance(raw, bool):
        return str(raw)
    raise Misfit("the id is missing" if raw is None or raw == "" else f"{show(raw)} is not an id")


def show(raw: object) -> str:
    """A value as a person may read it: short, and quoted if it is a string."""
    own = raw is None or isinstance(raw, bool | list | dict)  # which Python writes in its own way
    text = json.dumps(raw, default=str, ensure_ascii=False) if own else repr(raw)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _converter(kind: FieldType, separator: str | None, date_unit: DateUnit) -> Callable[[Any], Any]:
    if kind is FieldType.KEYWORDS:
        return lambda raw: _keywords(raw, separator)
    if kind is FieldType.DATE:
        return lambda raw: _date(raw, date_unit)
    return {
        FieldType.TEXT: _text,
        FieldType.KEYWORD: _keyword,
        FieldType.INTEGER: _integer,
        FieldType.FLOAT: _float,
        FieldType.BOOLEAN: _boolean,
    }[kind]


def _text(raw: Any) -> str:
    if isinstance(raw, str):
        return raw
    raise Misfit(f"{show(raw)} is {_kind(raw)}, not text")


def _keyword(raw: Any) -> str:
    if isinstance(raw, str):
        return raw
    if isinstance(raw, int) and not isinstance(raw, bool):
        return str(raw)
    raise Misfit(f"{show(raw)} is {_kind(raw)}, not a keyword")


def _keywords(raw: Any, separator: str | None) -> list[str]:
    if isinstance(raw, list):
        return [_keyword(each) for each in raw]
    if isinstance(raw, str) and separator:
        return [piece for each in raw.split(separator) if (piece := each.strip())]
    return [_keyword(raw)]


def _integer(raw: Any) -> int:
    if isinstance(raw, bool):
        raise Misfit(f"{raw} is a boolean, not an integer")
    if isinstance(raw, str) and _INTEGER.fullmatch(text := raw.strip()):
        head = text.split(".")[0]
        if len(head) > 20:  # Python refuses to read thousands of digits
            raise Misfit(f"{show(raw)} is beyond 64 bits")
        raw = int(head)
    elif (isinstance(raw, float) and raw.is_integer()) or (
        isinstance(raw, Decimal) and raw.is_finite() and raw == raw.to_integral_value()
    ):
        raw = int(raw)
    if not isinstance(raw, int):
        raise Misfit(f"{show(raw)} is not an integer")
    if not _LOWEST <= raw <= _HIGHEST:
        raise Misfit(f"{show(raw)} is beyond 64 bits")
    return raw


def _float(raw: Any) -> float:
    if isinstance(raw, bool):
        raise Misfit(f"{raw} is a boolean, not a number")
    if isinstance(raw, float):
        value = raw
    elif isinstance(raw, int):
        try:
            value = float(raw)
        except OverflowError:
            value = math.inf
        if value != raw:
            raise Misfit(f"{show(raw)} cannot be held exactly as a float")
    elif isinstance(raw, Decimal) or (isinstance(raw, str) and _FLOAT.fullmatch(raw.strip())):
        value = float(raw)
    else:
        raise Misfit(f"{show(raw)} is not a number")
    if not math.isfinite(value):
        raise Misfit(f"{show(raw)} is not finite")
    return value


def _date(raw: Any, unit: DateUnit) -> int:
    if isinstance(raw, str):
        text = raw.strip()
        if _DIGITS.fullmatch(text):
            return _date(_integer(text), unit)
        try:
            raw = datetime.fromisoformat(text)
        except ValueError:
            raise Misfit(f"{show(raw)} is not an ISO 8601 date") from None
    if isinstance(raw, datetime):
        moment = raw if raw.tzinfo else raw.replace(tzinfo=UTC)
        since = moment - _EPOCH
        return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    if isinstance(raw, date):
        return (raw - _EPOCH.date()).days * 86_400_000
    if isinstance(raw, int) and not isinstance(raw, bool):
        return _integer(raw * 1000 if unit == "s" else raw)
    if isinstance(raw, float) and math.isfinite(raw):
        return _integer(math.floor(raw * 1000 if unit == "s" else raw))
    raise Misfit(f"{show(raw)} is not a date")


def _boolean(raw: Any) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and (known := _BOOLEANS.get(raw.strip().lower())) is not None:
        return known
    if isinstance(raw, int) and raw in (0, 1):
        return raw == 1
    raise Misfit(f"{show(raw)} is not true or false")


def _kind(raw: object) -> str:
    names = {bool: "a boolean", int: "an integer", float: "a number", list: "a list"}
    return names.get(type(raw), "an object" if isinstance(raw, dict) else type(raw).__name__)


def declared(fields: Mapping[str, object]) -> tuple[Schema, dict[str, str]]:
    """The schema that the user wrote, and the column of each field; CorpusError."""
    made: list[Field] = []
    columns: dict[str, str] = {}
    for name, value in fields.items():
        table: Mapping[str, Any] = value if isinstance(value, Mapping) else {"type": value}
        unknown = sorted(set(table) - {"type", "stored", "column"})
        if unknown:
            raise CorpusError(
                f"The field {name!r} has a key {unknown[0]!r}; type, stored and column are known."
            )
        if not isinstance(table.get("stored", True), bool):
            raise CorpusError(
                f"The field {name!r} has stored = {as_toml(table['stored'])}; true or false is "
                "expected."
            )
        if not is_field_name(name):
            raise CorpusError(
                f"A field cannot be named {name!r}: use letters, digits and underscores, "
                "and not id; `column` says which column it is read from."
            )
        if name.lower() in (other.lower() for other in columns):
            raise CorpusError(f"Two fields are named {name!r}, but for upper and lower case.")
        try:
            kind = FieldType(str(table.get("type")))
        except ValueError as error:
            raise CorpusError(
                f"The field {name!r} has the type {as_toml(table.get('type'))}; "
                f"the types are {', '.join(FieldType)}.{near(str(table.get('type')), FieldType)}"
            ) from error
        made.append(Field(name, kind, table.get("stored", True)))
        columns[name] = str(table.get("column", name))
    if not made:
        raise CorpusError(
            "The corpus declares no fields; name at least one, or leave `fields` out."
        )
    return Schema(tuple(made)), columns


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
    fields: list[Field] = []
    columns: dict[str, str] = {}
    notes: dict[str, str] = {}
    for column in dict.fromkeys(name for row in rows for name in row):
        if column == id_column:
            notes[column] = "the id"
            continue
        values = [value for row in rows if (value := row.get(column)) is not None]
        kind, why = _guess(values, separator)
        name = field_name_of(column)
        if kind is not None and name.lower() in (other.lower() for other in columns):
            kind, why = None, f"left out: another column is the field {name!r} already"
        notes[column] = why
        if kind is not None:
            fields.append(Field(name, kind))
            columns[name] = column
    return Inference(Schema(tuple(fields)), columns, notes, len(rows))


def field_name_of(column: str) -> str:
    """The name of the field of a column that is not declared."""
    if is_field_name(column):
        return column
    name = re.sub(r"[^a-z0-9]+", "_", column.lower()).strip("_") or "column"
    return f"column_{name}" if not name[0].isalpha() or name in RESERVED else name


def near(name: str, names: Iterable[str]) -> str:
    """The name that was meant, as a further sentence; empty where none is alike."""
    close = get_close_matches(name, map(str, names), 1)
    return f" Did you mean {close[0]}?" if close else ""


def is_field_name(name: str) -> bool:
    """Whether a declared field may have this name."""
    return bool(_NAME.fullmatch(name)) and name.lower() not in RESERVED


def _guess(values: list[Any], separator: str | None) -> tuple[FieldType | None, str]:
    if not values:
        return None, "left out: no value in the first rows"
    kinds = {class_of(value) for value in values}
    if "object" in kinds:
        return None, "left out: it holds objects"
    if len(kinds) == 1 and (known := _ALONE.get(min(kinds))):
        return known
    if kinds <= {"integer", "float"}:
        return FieldType.FLOAT, "float: numbers"
    if kinds <= {"integer", "zeros"}:
        return FieldType.KEYWORD, "keyword: digits with leading zeros"
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) == len(values):
        return _of_text(texts, separator)
    return None, f"left out: values of several kinds ({', '.join(sorted(kinds))}); declare it"


_ALONE: Mapping[str, tuple[FieldType, str]] = {
    "list": (FieldType.KEYWORDS, "keywords: lists"),
    "boolean": (FieldType.BOOLEAN, "boolean: true or false"),
    "date": (FieldType.DATE, "date"),
    "integer": (FieldType.INTEGER, "integer"),
}


def _of_text(texts: list[str], separator: str | None) -> tuple[FieldType, str]:
    if separator and sum(separator in text for text in texts) * 10 >= len(texts):
        longest = max(len(piece) for text in texts for piece in text.split(separator))
        if longest <= _PIECE_CHARACTERS:
            return FieldType.KEYWORDS, f"keywords: cut at {separator!r}"
    longest = max(map(len, texts))
    if longest > _KEYWORD_CHARACTERS:
        return FieldType.TEXT, f"text: up to {longest} characters"
    if len(set(texts)) * 2 <= len(texts):
        return FieldType.KEYWORD, f"keyword: {len(set(texts))} distinct of {len(texts)}"
    if not any(re.search(r"\s", text) for text in texts):
        return FieldType.KEYWORD, "keyword: no spaces"
    return FieldType.TEXT, "text: words that seldom repeat as a whole"


def class_of(value: Any) -> str:
    """What a value reads as: integer, zeros (digits after a leading zero), float, boolean, ..."""
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
    if _LEADING_ZERO.match(text) and _INTEGER.fullmatch(text):
        return "zeros"
    if _INTEGER.fullmatch(text) and "." not in text:
        try:
            _integer(text)
        except Misfit:
            return "text"
        return "integer"
    if _FLOAT.fullmatch(text):
        return "float"
    return "date" if _DATE.fullmatch(text) else "text"
