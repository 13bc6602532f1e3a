"""Does a query fit a schema: every name there, every type able to do what is asked of it.

The schema is anything with ``fields`` that have ``name``, ``type`` and ``stored``; its types are
those of a corpus, by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from searchbench.errors import QueryError
from searchbench.spec import nearest, show
from searchbench.workload.queries.algebra import Boolean, Match, Query, Range, Terms


class FieldLike(Protocol):
    """A field of a schema."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def type(self) -> str:
        """Its type, by name."""

    @property
    def stored(self) -> bool:
        """Do engines keep its value?"""


class SchemaLike(Protocol):
    """A schema: fields in order."""

    @property
    def fields(self) -> Sequence[FieldLike]:
        """The fields."""


_RANGED = {"integer", "float", "date", "keyword"}
_LISTED = {"keyword", "keywords", "integer", "boolean"}
_SORTED = {"keyword", "integer", "float", "date", "boolean"}
_COUNTED = {"keyword", "keywords"}
_GROUPED = {"keyword", "keywords", "integer", "boolean"}


def validate(query: Query, schema: SchemaLike) -> None:
    """Nothing if ``query`` fits ``schema``, else QueryError with every reason."""
    reasons = list(dict.fromkeys(problems(query, schema)))
    if reasons:
        raise QueryError("; ".join(reasons))


def problems(query: Query, schema: SchemaLike) -> Iterator[str]:
    """Every reason why ``query`` does not fit ``schema``, one sentence each."""
    types = {field.name: str(field.type) for field in schema.fields}
    if query.match is not None:
        yield from _match(query.match, types)
    for part in query.filters:
        if isinstance(part, Range):
            yield from _field(part.field, types, _RANGED, "a range")
            for bound in (part.low, part.high):
                if bound is not None:
                    yield from _value(part.field, bound, types)
        else:
            yield from _field(part.field, types, _LISTED, "a list of values")
            for value in part.values:
                yield from _value(part.field, value, types)
    for key in query.sort:
        if key.field != "_score":
            yield from _field(key.field, types, _SORTED, "sorting")
    for facet in query.facets:
        yield from _field(facet.field, types, _COUNTED, "facets")
    if query.group_by is not None:
        yield from _field(query.group_by, types, _GROUPED, "grouping")
    for name in query.fields:
        yield from _field(name, types, set(types.values()), "returning")
    unstored = {field.name for field in schema.fields if not field.stored}
    for name in query.snippets:
        yield from _field(name, types, {"text"}, "snippets")
        if name in unstored and types[name] == "text":
            yield f"`{name}` is not stored, so there are no snippets of it"


def _match(match: Match, types: dict[str, str]) -> Iterator[str]:
    if isinstance(match, Boolean):
        for part in (*match.must, *match.should, *match.must_not):
            yield from _match(part, types)
        return
    if isinstance(match, Terms) and not match.fields and "text" not in types.values():
        yield (
            "the corpus has no text field to search in; name one in [corpus], "
            'for example fields = { title = "text" }'
        )
    for name in match.fields:
        yield from _field(name, types, {"text"}, "searching for terms")


def _field(name: str, types: dict[str, str], able: set[str], what: str) -> Iterator[str]:
    if name not in types:
        yield f"the corpus has no field `{name}`; {nearest(name, types)}"
    elif types[name] not in able:
        fit = [n for n, t in types.items() if t in able]
        there = f"fields that can: {', '.join(fit)}" if fit else "no field of the corpus can"
        yield f"`{name}` is of type {types[name]}, which does not do for {what}; {there}"


def _value(name: str, value: object, types: dict[str, str]) -> Iterator[str]:
    """A filter's value has to be of the field's own type: engines differ on anything else."""
    kind = types.get(name)
    if isinstance(value, bool):
        good = kind in (None, "boolean")
    elif isinstance(value, str):
        good = kind in (None, "keyword", "keywords", "text")
    elif isinstance(value, int):
        good = kind in (None, "integer", "float", "date")
    else:
        good = kind in (None, "float", "integer", "date")
    if not good:
        yield f"`{name}` is of type {kind}, so {show(value)} cannot be compared with it"
