"""The JSON form of a query: the payload of FORMATS.md, both ways.

``to_json(query)`` gives every key, but ``snippets`` only where some are asked; ``from_json`` takes
a payload whose absent keys have their defaults, and names everything that is wrong with it at
once. ``from_json(to_json(q)) == q``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

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

_KEYS = (
    *("match", "filters", "sort", "facets", "group_by", "offset", "limit", "fields", "snippets"),
)
# Nothing a person writes nests deeper; the bound keeps a hostile line from exhausting the stack.
_DEEPEST = 32


def to_json(query: Query) -> dict[str, Any]:
    """The payload as plain dicts and lists, in the order of FORMATS.md."""
    payload: dict[str, Any] = {
        "match": None if query.match is None else match_to_json(query.match),
        "filters": [filter_to_json(f) for f in query.filters],
        "sort": [{"field": s.field, "descending": s.descending} for s in query.sort],
        "facets": [{"field": f.field, "limit": f.limit} for f in query.facets],
        "group_by": query.group_by,
        "offset": query.offset,
        "limit": query.limit,
        "fields": list(query.fields),
    }
    if query.snippets:  # a library host that has none need not know the key
        payload["snippets"] = list(query.snippets)
    return payload


def match_to_json(match: Match) -> dict[str, Any]:
    """One match: ``{"mode", "terms", "fields", "distance"}`` or ``{"must", ..}``."""
    if isinstance(match, Terms):
        return {
            "mode": str(match.mode),
            "terms": list(match.terms),
            "fields": list(match.fields),
            "distance": match.distance,
        }
    return {
        "must": [match_to_json(m) for m in match.must],
        "should": [match_to_json(m) for m in match.should],
        "must_not": [match_to_json(m) for m in match.must_not],
    }


def filter_to_json(part: Filter) -> dict[str, Any]:
    """One filter: ``{"range": ..}``, ``{"in": ..}`` or ``{"not_in": ..}``."""
    if isinstance(part, Range):
        return {"range": asdict(part)}
    kind = "in" if isinstance(part, In) else "not_in"
    return {kind: {"field": part.field, "values": list(part.values)}}


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
        match = table.get("match")
        return Query(
            match=None if match is None else self.match(match),
            filters=self.filters(table.get("filters", [])),
            sort=self.sort(table.get("sort", [])),
            facets=self.facets(table.get("facets", [])),
            group_by=self.group_by(table.get("group_by")),
            offset=self._count(table.get("offset", 0), "offset", 0),
            limit=self._count(table.get("limit", 10), "limit", 0),
            fields=self._texts(table.get("fields", []), "fields"),
            snippets=self._texts(table.get("snippets", []), "snippets"),
        )

    def match(self, value: object, where: str = "match", depth: int = 0) -> Match:
        """A match, at any depth."""
        if depth > _DEEPEST:
            self.reasons.append(f"`match` nests deeper than {_DEEPEST} levels")
            return Boolean()
        if isinstance(value, Mapping) and not {"mode", "terms"} & value.keys():
            table = self._table(value, where, ("must", "should", "must_not"))
            parts = {
                key: tuple(
                    self.match(m, f"{where}.{key}[{i}]", depth + 1)
                    for i, m in enumerate(self._list(table.get(key, []), f"{where}.{key}"))
                )
                for key in ("must", "should", "must_not")
            }
            if not any(parts.values()):
                self.reasons.append(
                    f"`{where}` is empty; give `mode` and `terms`, or `must`, `should`, `must_not`"
                )
            return Boolean(**parts)
        return self._terms(value, where)

    def _terms(self, value: object, where: str) -> Terms:
        table = self._table(value, where, ("mode", "terms", "fields", "distance"))
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
        found = (
            self._filter(part, f"filters[{i}]")
            for i, part in enumerate(self._list(value, "filters"))
        )
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
        names = ("field", "low", "high", "include_low", "include_high")
        inner = self._table(body, where, names)
        name = self._name(inner.get("field"), f"{where}.field")
        before = len(self.reasons)
        low, high = inner.get("low"), inner.get("high")
        for side, bound in (("low", low), ("high", high)):
            good = bound is None or (
                isinstance(bound, str | int | float)
                and bound is not True
                and bound is not False
                and bound == bound
            )
            if not good:
                self.reasons.append(
                    f"`{where}.{side}` must be a number or a text, not {show(bound)}"
                )
        include = [inner.get(f"include_{side}", True) for side in ("low", "high")]
        for side, flag in zip(("low", "high"), include, strict=True):
            if not isinstance(flag, bool):
                self.reasons.append(
                    f"`{where}.include_{side}` must be true or false, not {show(flag)}"
                )
        if low is None and high is None:
            self.reasons.append(f"`{where}` has neither `low` nor `high`")
        if len(self.reasons) > before:
            return None
        return Range(name, low, high, include[0], include[1])

    def sort(self, value: object) -> tuple[Sort, ...]:
        """A list of sort keys."""
        keys = []
        for i, part in enumerate(self._list(value, "sort")):
            where = f"sort[{i}]"
            name: object
            descending: object
            if isinstance(part, str):
                name, descending = part.removeprefix("-"), part.startswith("-")
            else:
                table = self._table(part, where, ("field", "descending"))
                name, descending = table.get("field"), table.get("descending", False)
            if not isinstance(descending, bool):
                self.reasons.append(f"`{where}.descending` must be true or false")
                descending = False
            keys.append(Sort(self._name(name, f"{where}.field"), descending))
        return tuple(keys)

    def facets(self, value: object) -> tuple[Facet, ...]:
        """A list of facets."""
        facets = []
        for i, part in enumerate(self._list(value, "facets")):
            where = f"facets[{i}]"
            table = (
                {"field": part}
                if isinstance(part, str)
                else self._table(part, where, ("field", "limit"))
            )
            name = self._name(table.get("field"), f"{where}.field")
            facets.append(Facet(name, self._count(table.get("limit", 10), f"{where}.limit", 1)))
        return tuple(facets)

    def group_by(self, value: object) -> str | None:
        """The name of a field or None."""
        return None if value is None else self._name(value, "group_by")

    def _table(self, value: object, where: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            quoted = where if where == "the query" else f"`{where}`"
            self.reasons.append(f"{quoted} must be a table, not {show(value)}")
            return {}
        self.reasons += [
            f"unknown key `{key}` in {'the query' if where == 'the query' else f'`{where}`'}; "
            f"{nearest(str(key), keys)}"
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
        self.reasons.append(f"`{where}` must be a list of texts, not {show(value)}")
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
