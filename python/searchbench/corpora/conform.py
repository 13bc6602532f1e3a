"""Whether a raw row fits a schema: the one rule for every format of the user's files.

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
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Literal

from searchbench.corpora.corpus import FieldType, Schema

DateUnit = Literal["s", "ms"]

LOWEST, HIGHEST = -(2**63), 2**63 - 1
INTEGER = re.compile(r"[+-]?[0-9]+(?:\.0*)?")
FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
DIGITS = re.compile(r"[+-]?[0-9]+")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BOOLEANS = dict.fromkeys(("true", "yes", "t", "1"), True) | dict.fromkeys(
    ("false", "no", "f", "0"), False
)
_SHOWN = 40


class Misfit(ValueError):  # noqa: N818 -- a reason, not a failure
    """Why one value does not fit; only within this package."""


def conform(
    row: Mapping[str, Any],
    schema: Schema,
    separator: str | None = None,
    date_unit: DateUnit = "ms",
) -> dict[str, Any] | list[str]:
    """The canonical values of ``row`` in the order of the schema, or every reason against it."""
    return Conformer(schema, separator, date_unit)(row)


class Conformer:
    """``conform`` for many rows of one schema. ``columns``: the row's name of a field, if other."""

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

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Any] | list[str]:
        """The canonical values, or every reason."""
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
        return reasons or values


def identifier(raw: object) -> str:
    """A document's id: a string that is not empty, or an integer; Misfit."""
    if isinstance(raw, str) and raw:
        return raw
    if isinstance(raw, int) and not isinstance(raw, bool):
        return str(raw)
    raise Misfit("the id is missing" if raw is None or raw == "" else f"{show(raw)} is not an id")


def show(raw: object) -> str:
    """A value as a person may read it: short, and quoted if it is a string."""
    text = repr(raw)
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
    if isinstance(raw, str) and INTEGER.fullmatch(text := raw.strip()):
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
    if not LOWEST <= raw <= HIGHEST:
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
    elif isinstance(raw, Decimal) or (isinstance(raw, str) and FLOAT.fullmatch(raw.strip())):
        value = float(raw)
    else:
        raise Misfit(f"{show(raw)} is not a number")
    if not math.isfinite(value):
        raise Misfit(f"{show(raw)} is not finite")
    return value


def _date(raw: Any, unit: DateUnit) -> int:
    if isinstance(raw, str):
        text = raw.strip()
        if DIGITS.fullmatch(text):
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
