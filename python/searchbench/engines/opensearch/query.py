"""The query algebra in the Query DSL that OpenSearch and Elasticsearch share, and field names.

A term is asked for as it is (``term``): our terms are those of the declared analysis, so nothing
is analysed again, and nothing in a term can become syntax.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from searchbench.corpora.corpus import FieldType, Schema
from searchbench.engines.features import bounds, each, keys
from searchbench.workload.queries.algebra import (
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

ORDER = "%order"  # the place of a document in the corpus; no field's name can become this
GROUPS = "%groups"  # the aggregation of group_by; no facet's name can become this
_SIGNS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
_NONE: dict[str, Any] = {"match_none": {}}
_EVERY: dict[str, Any] = {"match_all": {}}
# A shard that keeps all its values counts exactly. Its queue is no longer than its values are.
_ALL_VALUES = 2**31 - 1
_ESCAPED = re.compile(r"%([0-9a-f]+);")


def own(name: str) -> str:
    """The field's name in the index, one to one.

    A dot would make an object of it, a star a pattern, a leading underline a field of the
    engine's own; brackets are not allowed in the name of an aggregation.
    """
    plain = "".join(c if c.isalnum() or c in "_- " else _escaped(c) for c in name)
    if plain[:1] in ("_", " ", "-", "") or plain.endswith(" "):
        first, rest = plain[:1], plain[1:]
        plain = (_escaped(first) if first else "%;") + rest
        if plain.endswith(" "):
            plain = plain[:-1] + _escaped(" ")
    return plain


def field(name: str) -> str:
    """The field whose name in the index this is."""
    return "" if name == "%;" else _ESCAPED.sub(lambda m: chr(int(m[1], 16)), name)


def body(query: Query, schema: Schema, *, ties: bool) -> dict[str, Any]:
    """The body of a search. ``ties``: break them by the place in the corpus, a sort key more."""
    text = [f.name for f in schema.of_type(FieldType.TEXT)]
    asked: dict[str, Any] = {
        "query": _question(query, text),
        "from": query.offset,
        "size": query.limit,
        "track_total_hits": True,
        "_source": [own(name) for name in query.fields] or False,
    }
    if query.sort or ties:
        asked["sort"] = [*map(_sort_key, keys(query)), *([{ORDER: "asc"}] if ties else ())]
    counted = {own(facet.field): _counted(facet.field, facet.limit) for facet in query.facets}
    if query.group_by is not None and query.limit:
        counted[GROUPS] = _counted(query.group_by, query.limit)
    if counted:
        asked["aggs"] = counted
    if query.snippets:
        asked["highlight"] = {"fields": {own(name): {} for name in query.snippets}}
    return asked


def _match(part: Match, text: Sequence[str]) -> dict[str, Any]:
    """A scoring query; ``text``: the fields that are meant where none is named."""
    if isinstance(part, Terms):
        return _terms(part, [own(name) for name in part.fields or text])
    must, should, must_not = each(part, lambda m: _match(m, text))
    if not must and not should:
        must = [_EVERY]
    return _bool(must=must, should=should, must_not=must_not, least=0 if must else 1)


def _question(query: Query, text: Sequence[str]) -> dict[str, Any]:
    wanted = _EVERY if query.match is None else _match(query.match, text)
    if not query.filters:
        return wanted
    return {
        "bool": {
            "must": [wanted],
            "filter": [_filter(f) for f in query.filters if not isinstance(f, NotIn)],
            "must_not": [_one_of(f) for f in query.filters if isinstance(f, NotIn)],
        }
    }


def _terms(part: Terms, fields: Sequence[str]) -> dict[str, Any]:
    if not part.terms or not fields:
        return _NONE
    if part.mode is Mode.PHRASE:
        return _phrase(part.terms, fields)
    if part.mode is Mode.ANY:
        return _any([_term(part, name, term) for term in part.terms for name in fields])
    each = [_any([_term(part, name, term) for name in fields]) for term in part.terms]
    return each[0] if len(each) == 1 else _bool(must=each)


def _term(part: Terms, name: str, term: str) -> dict[str, Any]:
    sought: dict[str, Any] = {"value": term}
    if part.mode not in (Mode.PREFIX, Mode.FUZZY):
        return {"term": {name: sought}}
    if part.mode is Mode.FUZZY:
        sought |= {"fuzziness": part.distance, "transpositions": True}
    # Any other rewrite of a fuzzy term takes the fifty nearest, and totals are too small.
    return {str(part.mode): {name: {**sought, "rewrite": "constant_score"}}}


def _phrase(terms: Sequence[str], fields: Sequence[str]) -> dict[str, Any]:
    # The whitespace analyzer gives the terms back as they are, if they are terms.
    if not all(is_term(term) for term in terms):
        return _NONE
    words = {"query": " ".join(terms), "analyzer": "whitespace"}
    return _any([{"match_phrase": {name: words}} for name in fields])


def _any(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return parts[0] if len(parts) == 1 else _bool(should=parts, least=1)


def _bool(
    *,
    must: Sequence[dict[str, Any]] = (),
    should: Sequence[dict[str, Any]] = (),
    must_not: Sequence[dict[str, Any]] = (),
    least: int | None = None,
) -> dict[str, Any]:
    occurring = {"must": must, "should": should, "must_not": must_not}
    found: dict[str, Any] = {name: list(parts) for name, parts in occurring.items() if parts}
    if should and least is not None:
        found["minimum_should_match"] = least
    return {"bool": found}


def _filter(part: Filter) -> dict[str, Any]:
    if isinstance(part, Range):
        within = {_SIGNS[sign]: bound for sign, bound in bounds(part)}
        name = own(part.field)
        return {"range": {name: within}} if within else {"exists": {"field": name}}
    assert isinstance(part, In)
    return _one_of(part)


def _one_of(part: In | NotIn) -> dict[str, Any]:
    return {"terms": {own(part.field): list(part.values)}}


def _sort_key(key: Sort) -> dict[str, Any]:
    order = "desc" if key.descending else "asc"
    if key.field == "_score":
        return {"_score": order}
    return {own(key.field): {"order": order, "missing": "_last"}}


def _counted(name: str, limit: int) -> dict[str, Any]:
    """The most frequent values, ties by value; counted exactly over all shards."""
    return {
        "terms": {
            "field": own(name),
            "size": limit,
            "shard_size": _ALL_VALUES,
            "order": [{"_count": "desc"}, {"_key": "asc"}],
        }
    }


def _escaped(char: str) -> str:
    return f"%{ord(char):x};"
