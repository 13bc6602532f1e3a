"""Does a query fit a schema: every name there, every type able to do what is asked of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from searchbench.corpora.corpus import Schema
from searchbench.errors import QueryError
from searchbench.spec import nearest, show
from searchbench.workload.queries.algebra import Boolean, Match, Query, Range

# The types of field that can do what is asked of them; every type can be returned.
_ABLE: Mapping[str, set[str]] = {
    "a range": {"integer", "float", "date", "keyword"},
    "a list of values": {"keyword", "keywords", "integer", "boolean"},
    "sorting": {"keyword", "integer", "float", "date", "boolean"},
    "facets": {"keyword", "keywords"},
    "grouping": {"keyword", "keywords", "integer", "boolean"},
    "snippets": {"text"},
    "searching for terms": {"text"},
}


def validate(query: Query, schema: Schema) -> None:
    """Nothing if ``query`` fits ``schema``, else QueryError with every reason."""
    reasons = list(dict.fromkeys(_problems(query, schema)))
    if reasons:
        raise QueryError("; ".join(reasons))


def _problems(query: Query, schema: Schema) -> Iterator[str]:
    types = {field.name: str(field.type) for field in schema.fields}
    if query.match is not None:
        yield from _match(query.match, types)
    for part in query.filters:
        if isinstance(part, Range):
            yield from _field(part.field, types, "a range")
            yield from _values(part.field, (part.low, part.high), types)
        else:
            yield from _field(part.field, types, "a list of values")
            yield from _values(part.field, part.values, types)
    asked = [(key.field, "sorting") for key in query.sort if key.field != "_score"]
    asked += [(facet.field, "facets") for facet in query.facets]
    asked += [(query.group_by, "grouping")] if query.group_by is not None else []
    for name, what in asked:
        yield from _field(name, types, what)
    for name in query.fields:
        yield from _field(name, types, "returning")
    for name in query.snippets:
        yield from _field(name, types, "snippets")
        if types.get(name) == "text" and not schema[name].stored:
            yield f"`{name}` is not stored, so there are no snippets of it"


def _match(match: Match, types: dict[str, str]) -> Iterator[str]:
    if isinstance(match, Boolean):
        for part in (*match.must, *match.should, *match.must_not):
            yield from _match(part, types)
        return
    if not match.fields and "text" not in types.values():
        yield (
            "the corpus has no text field to search in; name one in [corpus], "
            'for example fields = { title = "text" }'
        )
    for name in match.fields:
        yield from _field(name, types, "searching for terms")


def _field(name: str, types: dict[str, str], what: str) -> Iterator[str]:
    able = _ABLE.get(what, set(types.values()))
    if name not in types:
        yield f"the corpus has no field `{name}`; {nearest(name, types)}"
    elif types[name] not in able:
        fit = [n for n, t in types.items() if t in able]
        there = f"fields that can: {', '.join(fit)}" if fit else "no field of the corpus can"
        yield f"`{name}` is of type {types[name]}, which does not do for {what}; {there}"


def _values(name: str, values: Iterable[object], types: dict[str, str]) -> Iterator[str]:
    """A filter's values have to be of the field's own type: engines differ on anything else."""
    kind = types.get(name)
    for value in values:
        if isinstance(value, bool):
            able = {"boolean"}
        elif isinstance(value, str):
            able = {"keyword", "keywords", "text"}
        else:
            able = {"integer", "float", "date"}
        if kind is not None and value is not None and kind not in able:
            yield f"`{name}` is of type {kind}, so {show(value)} cannot be compared with it"
