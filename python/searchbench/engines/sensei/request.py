"""What Sensei is asked, before it is written in one of its two languages (JSON or BQL).

A reply does not repeat the request, and is read without it; but Sensei sends the list of selected
columns back. So what the reader has to know (how many facet values, which field groups, which
fields are returned) is in that list, in words that are no column's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from searchbench.corpora.corpus import Field, FieldType, Schema
from searchbench.engines.features import keys, scored
from searchbench.engines.sensei import columns
from searchbench.errors import Unsupported
from searchbench.workload.queries.algebra import Filter, In, NotIn, Query, Range, Sort

SCORE, UID, SOURCE = "_score", "_uid", "_srcdata"
_LEAST, _MOST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Within:
    """A column between two bounds, None where there is none."""

    column: str
    low: str | None
    high: str | None
    include_low: bool
    include_high: bool

    @property
    def empty(self) -> bool:
        """Is there nothing between the bounds? BQL makes that an error."""
        if self.low is None or self.high is None:
            return False
        closed = self.include_low and self.include_high
        return self.low > self.high or (self.low == self.high and not closed)

    @property
    def exact(self) -> bool:
        """Could a bound be read as part of the range's syntax? Then it needs another filter."""
        return any(b is not None and _odd(b) for b in (self.low, self.high))


@dataclass(frozen=True, slots=True)
class Among:
    """A column that holds one of ``values``, if there are any, and none of ``excluded``."""

    column: str
    values: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


Predicate = Within | Among


@dataclass(frozen=True, slots=True)
class Asked:
    """All of a query but its words. ``nothing``: a filter that no document can pass."""

    predicates: tuple[Predicate, ...]
    nothing: bool
    sort: tuple[tuple[str, bool], ...]
    facets: dict[str, int]
    select: tuple[str, ...]


def asked(query: Query, schema: Schema) -> Asked:
    """The predicates, sort keys (column, descending), facets (column, how many) and columns."""
    found = [_predicates(part, schema[part.field]) for part in query.filters]
    select = [UID, SOURCE, *([SCORE] if scored(query) else ())]
    facets: dict[str, int] = {}
    wanted = [("facet", f.field, f.limit) for f in query.facets]
    if query.group_by is not None:
        wanted.append(("group", query.group_by, query.limit))
    for word, name, limit in wanted:
        field = schema[name]
        if field.type is FieldType.TEXT:
            raise Unsupported(
                f"SenseiDB cannot do facets of text: never: a text ({name!r}) is not one value"
            )
        column = columns.column(field)
        facets[column] = max(facets.get(column, 1), limit)
        select.append(f"{word}:{column}:{limit}")
    select += [f"field:{columns.column(schema[name])}" for name in query.fields]
    return Asked(
        predicates=_joined(p for some in found if some is not None for p in some),
        nothing=None in found,
        sort=tuple(_sort(keys(query), schema)),
        facets=facets,
        select=tuple(select),
    )


def _joined(predicates: Iterable[Predicate]) -> tuple[Predicate, ...]:
    """The same, with the values and the excluded values of a column in one predicate."""
    found: list[Predicate] = []
    for part in predicates:
        for at, other in enumerate(found):
            if (
                isinstance(part, Among)
                and isinstance(other, Among)
                and part.column == other.column
                and not (part.values and other.values)
            ):
                excluded = other.excluded + part.excluded
                found[at] = Among(part.column, other.values + part.values, excluded)
                break
        else:
            found.append(part)
    return tuple(found)


def told(select: Iterable[str]) -> dict[str, dict[str, int]]:
    """The words of a reply's list of columns: kind → column → limit (0 for a returned field)."""
    found: dict[str, dict[str, int]] = {"facet": {}, "group": {}, "field": {}}
    for word in select:
        kind, _colon, rest = word.partition(":")
        if kind in found and rest:
            column, _colon, limit = rest.partition(":")
            found[kind][column] = int(limit or 0)
    return found


def _sort(keys: Iterable[Sort], schema: Schema) -> Iterable[tuple[str, bool]]:
    for key in keys:
        if key.field == SCORE:
            if not key.descending:
                raise Unsupported(
                    "SenseiDB cannot sort by ascending relevance: upstream must: it always sorts "
                    "scores in descending order"
                )
            yield SCORE, True
            continue
        field = schema[key.field]
        if field.type in (FieldType.TEXT, FieldType.KEYWORDS):
            raise Unsupported(
                f"SenseiDB cannot sort by {key.field!r}: upstream must: it sorts only by columns "
                "with one value"
            )
        yield columns.here(field), True
        yield columns.column(field), key.descending
    yield UID, False


def _predicates(part: Filter, field: Field) -> tuple[Predicate, ...] | None:
    """None of them where every document passes; None where no document can."""
    column = columns.column(field)
    if isinstance(part, In | NotIn):
        values = tuple(v for v in (_held(field, v) for v in part.values) if v is not None)
        if not values:
            return None if isinstance(part, In) else ()
        return (Among(column, values) if isinstance(part, In) else Among(column, (), values),)
    assert isinstance(part, Range)
    if part.low is None and part.high is None and field.type is not FieldType.KEYWORDS:
        return (Among(columns.here(field), ("1",)),)
    if field.type in columns.NUMBERS:
        within = _numbers(part, field)
    else:
        low, high = (None if b is None else _text(field, b) for b in (part.low, part.high))
        within = Within(column, low, high, part.include_low, part.include_high)
    return None if within is None or within.empty else (within,)


def _numbers(part: Range, field: Field) -> Within | None:
    """Bounds that a number of the field's type can have."""
    low, high = part.low, part.high
    include_low, include_high = part.include_low, part.include_high
    if isinstance(low, str) or isinstance(high, str):
        raise Unsupported(f"never: {part.field!r} holds numbers, so its bounds cannot be texts")
    if field.type is not FieldType.FLOAT:
        if low is not None:
            if low > _MOST:
                return None
            whole = _LEAST if low < _LEAST else math.ceil(low)
            low, include_low = whole, include_low or low != whole
        if high is not None:
            if high < _LEAST:
                return None
            whole = _MOST if high > _MOST else math.floor(high)
            high, include_high = whole, include_high or high != whole
    return Within(
        columns.column(field),
        None if low is None else columns.number(field.type, low),
        None if high is None else columns.number(field.type, high),
        include_low,
        include_high,
    )


def _held(field: Field, held: Any) -> str | None:
    """``held`` as its column has it; None where no document can hold it."""
    if field.type in columns.NUMBERS:
        return columns.number(field.type, held)
    return _text(field, held)


def _text(field: Field, held: Any) -> str:
    if field.type is FieldType.BOOLEAN and isinstance(held, bool):
        return "true" if held else "false"
    return columns.word(str(held))


def _odd(bound: str) -> bool:
    return bound != bound.rstrip() or any(
        syntax in bound for syntax in ("[", "]", "(", ")", " TO ")
    )
