"""Sensei's JSON API: Lucene's queries, values as selections of facets, ranges as filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from searchbench.corpora.corpus import Schema
from searchbench.engines.sensei import columns
from searchbench.engines.sensei.request import Among, Asked, Within
from searchbench.workload.queries.algebra import Match, Mode, Query, Terms
from searchbench.workload.queries.analysis import is_term

_EVERY: dict[str, Any] = {"match_all": {}}
_NOTHING: dict[str, Any] = {"term": {"none": "none"}}  # every column's name has a _


def request(query: Query, text: Sequence[str], schema: Schema, asked: Asked) -> dict[str, Any]:
    """The body of the request; ``text``: the fields that are meant where none is named."""
    wanted = _EVERY if query.match is None else match(query.match, text, schema)
    if asked.nothing:
        wanted = {"bool": {"must": [wanted, _NOTHING]}}
    selections, filters = [], []
    selected = set()
    for part in asked.predicates:
        # One column has one selection, a second would take its place; and a selection of a column
        # of values is no range.
        if isinstance(part, Within):
            filters.append(_range(part))
        elif part.column in selected:
            filters.append(_terms_of(part))
        else:
            selected.add(part.column)
            selections.append(_terms_of(part))
    body: dict[str, Any] = {
        "query": wanted,
        "from": query.offset,
        "size": query.limit,
        "sort": [{name: "desc" if falling else "asc"} for name, falling in asked.sort],
        "fetchStoredValue": True,
        "meta": {"select_list": list(asked.select)},
    }
    if selections:
        body["selections"] = selections
    if filters:
        body["filter"] = {"and": filters}
    if asked.facets:
        body["facets"] = {
            name: {"max": most, "minCount": 1, "expand": False, "order": "hits"}
            for name, most in asked.facets.items()
        }
    return body


def match(part: Match, text: Sequence[str], schema: Schema) -> dict[str, Any]:
    """A query of Lucene's in Sensei's JSON."""
    if isinstance(part, Terms):
        names = [columns.column(schema[name]) for name in part.fields or text]
        return _terms(part, names)
    must, should, must_not = (
        [match(m, text, schema) for m in parts] for parts in (part.must, part.should, part.must_not)
    )
    if not must and not should:
        must = [_EVERY]
    found = {"must": must, "should": should, "must_not": must_not}
    return {"bool": {occur: parts for occur, parts in found.items() if parts}}


def _terms(part: Terms, names: Sequence[str]) -> dict[str, Any]:
    # What is not a term of the declared analysis is in no document.
    known = [t for t in part.terms if is_term(t)]
    if not known or (part.mode is not Mode.ANY and len(known) < len(part.terms)):
        return _NOTHING
    if part.mode is Mode.PHRASE:
        phrase = {"value": " ".join(known), "type": "phrase"}
        return _one_of([{"text": {name: phrase}} for name in names])
    each = [_one_of([_word(part, name, term) for name in names]) for term in known]
    return _one_of(each) if part.mode is Mode.ANY else _all_of(each)


def _word(part: Terms, name: str, term: str) -> dict[str, Any]:
    return {"prefix" if part.mode is Mode.PREFIX else "term": {name: term}}


def _one_of(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return parts[0] if len(parts) == 1 else {"bool": {"should": list(parts)}}


def _all_of(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return parts[0] if len(parts) == 1 else {"bool": {"must": list(parts)}}


def _terms_of(part: Among) -> dict[str, Any]:
    values, excludes = ([written(v) for v in side] for side in (part.values, part.excluded))
    return {"terms": {part.column: {"values": values, "excludes": excludes, "operator": "or"}}}


def _range(part: Within) -> dict[str, Any]:
    spec: dict[str, Any] = {
        side: written(bound)
        for side, bound in (("from", part.low), ("to", part.high))
        if bound is not None
    }
    spec |= {"include_lower": part.include_low, "include_upper": part.include_high}
    if part.exact:
        # Lucene's own range over the terms: its bounds are not part of a syntax.
        spec |= {"_noOptimize": True, "_type": "string"}
    return {"range": {part.column: spec}}


def written(value: str) -> str:
    """A value in which a $ is not the beginning of a variable."""
    return value.replace("$", "$$")
