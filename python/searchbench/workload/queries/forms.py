"""The forms of a query: JSON, the payload of FORMATS.md, both ways; a line for people and tables.

``to_json(query)`` gives every key, but ``snippets`` only where some are asked; ``from_json`` takes
a payload whose absent keys have their defaults, and names everything that is wrong with it at
once. ``from_json(to_json(q)) == q``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import msgspec

from searchbench.errors import QueryError
from searchbench.spec import nearest, show
from searchbench.workload.queries.algebra import (
    Boolean,
    Facet,
    Filter,
    In,
    Match,
    Mode,
    NotIn,
    Query,
    Range,
    Sort,
    Terms,
)
from searchbench.workload.queries.analysis import is_term

_KEYS = tuple(key.name for key in fields(Query))
_TERMS_KEYS = tuple(key.name for key in fields(Terms))
_BOOLEAN_KEYS = tuple(key.name for key in fields(Boolean))
_RANGE_KEYS = tuple(key.name for key in fields(Range))
_KINDS = {Range: "range", In: "in", NotIn: "not_in"}
# Nothing a person writes nests deeper; the bound keeps a hostile line from exhausting the stack.
_DEEPEST = 32
_JOIN = {Mode.ANY: " OR ", Mode.ALL: " AND ", Mode.PREFIX: " AND ", Mode.FUZZY: " AND "}


def to_json(query: Query) -> dict[str, Any]:
    """The payload as plain dicts and tuples, in the order of FORMATS.md."""
    payload: dict[str, Any] = msgspec.to_builtins(query)
    payload["filters"] = tuple(
        {_KINDS[type(part)]: told}
        for part, told in zip(query.filters, payload["filters"], strict=True)
    )
    if not query.snippets:  # a library host that has none need not know the key
        del payload["snippets"]
    return payload


def from_json(payload: object) -> Query:
    """The query of a payload; QueryError with every reason where it is not one."""
    reader = Reader()
    query = reader.query(payload)
    reader.finish()
    return query


class Reader:
    """Reads the JSON form and collects what is wrong with it in ``reasons``.

    Shorthands that a person may write are taken too: a sort key as a text (``"-size"`` is
    descending), a facet as the name of its field.
    """

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def finish(self) -> None:
        """Raise QueryError if anything was wrong."""
        if self.reasons:
            raise QueryError("; ".join(self.reasons))

    def query(self, payload: object) -> Query:
        """A whole query."""
        table = self._table(payload, "the query", _KEYS)
        match, group_by = table.get("match"), table.get("group_by")
        return Query(
            match=None if match is None else self._match(match, "match", 0),
            filters=self.filters(table.get("filters", [])),
            sort=self.sort(table.get("sort", [])),
            facets=self.facets(table.get("facets", [])),
            group_by=None if group_by is None else self._name(group_by, "group_by"),
            offset=self._count(table.get("offset", 0), "offset", 0),
            limit=self._count(table.get("limit", 10), "limit", 0),
            fields=self._texts(table.get("fields", []), "fields"),
            snippets=self._texts(table.get("snippets", []), "snippets"),
        )

    def _match(self, value: object, where: str, depth: int) -> Match:
        if depth > _DEEPEST:
            self.reasons.append(f"`match` nests deeper than {_DEEPEST} levels")
            return Boolean()
        if isinstance(value, Mapping) and not {"mode", "terms"} & value.keys():
            table = self._table(value, where, _BOOLEAN_KEYS)
            parts = {
                key: tuple(
                    self._match(m, f"{where}.{key}[{i}]", depth + 1)
                    for i, m in enumerate(self._list(table.get(key, []), f"{where}.{key}"))
                )
                for key in _BOOLEAN_KEYS
            }
            if not any(parts.values()):
                self.reasons.append(
                    f"`{where}` is empty; give `mode` and `terms`, or `must`, `should`, `must_not`"
                )
            return Boolean(**parts)
        return self._terms(value, where)

    def _terms(self, value: object, where: str) -> Terms:
        table = self._table(value, where, _TERMS_KEYS)
        words = self._texts(table.get("terms", []), f"{where}.terms")
        if not words and isinstance(value, Mapping):
            self.reasons.append(f"`{where}` has no terms")
        self.reasons += [
            f"`{where}.terms`: {show(w)} is not one term of the declared analysis "
            "(letters and digits, lower case)"
            for w in words
            if not is_term(w)
        ]
        mode = self.mode(table.get("mode", "all"), f"{where}.mode")
        distance = table.get("distance", 1)
        if isinstance(distance, bool) or distance not in (1, 2):
            self.reasons.append(f"`{where}.distance` must be 1 or 2, not {show(distance)}")
            distance = 1
        return Terms(mode, words, self._texts(table.get("fields", []), f"{where}.fields"), distance)

    def mode(self, value: object, where: str = "match") -> Mode:
        """A mode by its name."""
        try:
            return Mode(value)  # type: ignore[arg-type]  # any object may be asked for
        except ValueError:
            names = ", ".join(f"`{m}`" for m in Mode)
            hint = nearest(value, list(Mode)) if isinstance(value, str) else f"there are {names}"
            self.reasons.append(f"`{where}` {show(value)} is not a mode; {hint}")
            return Mode.ALL

    def filters(self, value: object) -> tuple[Filter, ...]:
        """A list of filters."""
        parts = enumerate(self._list(value, "filters"))
        found = [self._filter(part, f"filters[{i}]") for i, part in parts]
        return tuple(f for f in found if f is not None)

    def _filter(self, value: object, where: str) -> Filter | None:
        table = self._table(value, where, ("range", "in", "not_in"))
        if len(table) != 1:
            if isinstance(value, Mapping):
                self.reasons.append(f"`{where}` must have one of `range`, `in`, `not_in`")
            return None
        [(kind, body)] = table.items()
        where = f"{where}.{kind}"
        if kind == "range":
            return self._range(body, where)
        inner = self._table(body, where, ("field", "values"))
        name = self._name(inner.get("field"), f"{where}.field")
        values = self._list(inner.get("values"), f"{where}.values")
        if not all(isinstance(v, str | int) for v in values):
            self.reasons.append(f"`{where}.values` must be texts, integers or booleans")
            return None
        return (In if kind == "in" else NotIn)(name, tuple(values))

    def _range(self, body: object, where: str) -> Range | None:
        inner = self._table(body, where, _RANGE_KEYS)
        name = self._name(inner.get("field"), f"{where}.field")
        before = len(self.reasons)
        self.reasons += [
            f"`{where}.{side}` must be a number or a text, not {show(inner[side])}"
            for side in ("low", "high")
            if not _is_bound(inner.get(side))
        ]
        self.reasons += [
            f"`{where}.{side}` must be true or false, not {show(inner[side])}"
            for side in ("include_low", "include_high")
            if not isinstance(inner.get(side, True), bool)
        ]
        if inner.get("low") is None and inner.get("high") is None:
            self.reasons.append(f"`{where}` has neither `low` nor `high`")
        return None if len(self.reasons) > before else Range(**{**inner, "field": name})

    def sort(self, value: object) -> tuple[Sort, ...]:
        """A list of sort keys."""
        keys = []
        for i, part in enumerate(self._list(value, "sort")):
            where = f"sort[{i}]"
            if isinstance(part, str):
                part = {"field": part.removeprefix("-"), "descending": part.startswith("-")}
            table = self._table(part, where, ("field", "descending"))
            descending = table.get("descending", False)
            if not isinstance(descending, bool):
                self.reasons.append(f"`{where}.descending` must be true or false")
            keys.append(Sort(self._name(table.get("field"), f"{where}.field"), descending))
        return tuple(keys)

    def facets(self, value: object) -> tuple[Facet, ...]:
        """A list of facets."""
        facets = []
        for i, part in enumerate(self._list(value, "facets")):
            where = f"facets[{i}]"
            part = {"field": part} if isinstance(part, str) else part
            table = self._table(part, where, ("field", "limit"))
            name = self._name(table.get("field"), f"{where}.field")
            facets.append(Facet(name, self._count(table.get("limit", 10), f"{where}.limit", 1)))
        return tuple(facets)

    def _table(self, value: object, where: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
        said = where if where == "the query" else f"`{where}`"
        if not isinstance(value, Mapping):
            self.reasons.append(f"{said} must be a table, not {show(value)}")
            return {}
        self.reasons += [
            f"unknown key `{key}` in {said}; {nearest(str(key), keys)}"
            for key in value
            if key not in keys
        ]
        return {key: value[key] for key in keys if key in value}

    def _list(self, value: object, where: str) -> list[Any]:
        if isinstance(value, list | tuple):
            return list(value)
        self.reasons.append(f"`{where}` must be a list, not {show(value)}")
        return []

    def _texts(self, value: object, where: str) -> tuple[str, ...]:
        parts = self._list(value, where)
        if all(isinstance(part, str) for part in parts):
            return tuple(parts)
        self.reasons.append(f"`{where}` must be a list of strings, not {show(value)}")
        return ()

    def _name(self, value: object, where: str) -> str:
        if isinstance(value, str) and value:
            return value
        self.reasons.append(f"`{where}` must be the name of a field, not {show(value)}")
        return ""

    def _count(self, value: object, where: str, least: int) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value >= least:
            return value
        self.reasons.append(f"`{where}` must be an integer of at least {least}, not {show(value)}")
        return least


def _is_bound(value: object) -> bool:
    """Whether a range may begin or end there; NaN is equal to nothing."""
    if isinstance(value, bool):
        return False
    return value is None or (isinstance(value, str | int | float) and value == value)


def to_text(query: Query) -> str:
    """One line, not meant to be read back.

    For example ``linux OR kernel | section in (net, web) | sort size desc | limit 20``.
    """
    parts = ["everything" if query.match is None else _match_text(query.match)]
    parts += [_filter_text(f) for f in query.filters]
    if query.sort:
        keys = (f"{s.field} desc" if s.descending else s.field for s in query.sort)
        parts.append("sort " + ", ".join(keys))
    if query.facets:
        parts.append("facets " + ", ".join(f"{f.field} ({f.limit})" for f in query.facets))
    if query.group_by is not None:
        parts.append(f"group by {query.group_by}")
    if query.offset:
        parts.append(f"offset {query.offset}")
    if query.limit != 10:
        parts.append(f"limit {query.limit}")
    if query.fields:
        parts.append("fields " + ", ".join(query.fields))
    if query.snippets:
        parts.append("snippets of " + ", ".join(query.snippets))
    return " | ".join(parts)


def _match_text(match: Match) -> str:
    if isinstance(match, Terms):
        return _terms_text(match)
    parts = []
    if match.must:
        parts.append(" AND ".join(_nested(m) for m in match.must))
    if match.should:
        joined = " OR ".join(_nested(m) for m in match.should)
        # Beside must, should only adds to the score.
        parts.append(f"MAYBE ({joined})" if match.must else joined)
    if match.must_not:
        parts.append(" ".join(f"NOT {_nested(m)}" for m in match.must_not))
    return " ".join(parts)


def _nested(match: Match) -> str:
    if isinstance(match, Boolean) or (len(match.terms) > 1 and match.mode is not Mode.PHRASE):
        return f"({_match_text(match)})"
    return _match_text(match)


def _terms_text(match: Terms) -> str:
    if match.mode is Mode.PHRASE:
        text = '"' + " ".join(match.terms) + '"'
    else:
        end = {Mode.PREFIX: "*", Mode.FUZZY: f"~{match.distance}"}.get(match.mode, "")
        text = _JOIN[match.mode].join(term + end for term in match.terms)
    return f"{','.join(match.fields)}:({text})" if match.fields else text


def _filter_text(part: Filter) -> str:
    if isinstance(part, Range):
        low = "" if part.low is None else f"{part.low} {'<=' if part.include_low else '<'} "
        high = "" if part.high is None else f" {'<=' if part.include_high else '<'} {part.high}"
        return f"{low}{part.field}{high}"
    word = type(part).__name__
    values = ", ".join(str(v) for v in part.values)
    return f"{part.field} {'in' if word == 'In' else 'not in'} ({values})"
