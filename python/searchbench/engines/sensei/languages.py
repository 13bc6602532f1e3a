"""What is asked, in Sensei's two languages: its JSON API, and BQL in the manner of SQL.

JSON has Lucene's queries, values as selections of facets, and ranges as filters. The text search
of BQL is Lucene's query syntax. BQL writes no line breaks in texts; such a text is a variable,
whose value goes beside the statement. A column that is named in two conditions would keep the last
one only; what stands in an OR is a filter of its own. Ranges are allowed of range facets alone,
which columns have beside the facet of their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from searchbench.corpora.corpus import Schema
from searchbench.engines.features import bounds, each, sought
from searchbench.engines.sensei import columns
from searchbench.engines.sensei.request import SOURCE, Among, Asked, Within
from searchbench.errors import Unsupported
from searchbench.workload.queries.algebra import Match, Mode, Query, Range, Terms

_JSON_EVERY: dict[str, Any] = {"match_all": {}}
_JSON_NOTHING: dict[str, Any] = {"term": {"none": "none"}}  # every column's name has a _
_BQL_EVERY = "*:*"
_BQL_NOTHING = "none:none"


def in_json(query: Query, text: Sequence[str], schema: Schema, asked: Asked) -> dict[str, Any]:
    """The body of the request; ``text``: the fields that are meant where none is named."""
    wanted = _JSON_EVERY if query.match is None else _json_match(query.match, text, schema)
    if asked.nothing:
        wanted = {"bool": {"must": [wanted, _JSON_NOTHING]}}
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


def _json_match(part: Match, text: Sequence[str], schema: Schema) -> dict[str, Any]:
    """A query of Lucene's in Sensei's JSON."""
    if isinstance(part, Terms):
        names = [columns.column(schema[name]) for name in part.fields or text]
        return _json_terms(part, names)
    must, should, must_not = each(part, lambda m: _json_match(m, text, schema))
    if not must and not should:
        must = [_JSON_EVERY]
    found = {"must": must, "should": should, "must_not": must_not}
    return {"bool": {occur: parts for occur, parts in found.items() if parts}}


def _json_terms(part: Terms, names: Sequence[str]) -> dict[str, Any]:
    if not (known := sought(part)):
        return _JSON_NOTHING
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
    values, excludes = ([_written(v) for v in side] for side in (part.values, part.excluded))
    return {"terms": {part.column: {"values": values, "excludes": excludes, "operator": "or"}}}


def _range(part: Within) -> dict[str, Any]:
    spec: dict[str, Any] = {
        side: _written(bound)
        for side, bound in (("from", part.low), ("to", part.high))
        if bound is not None
    }
    spec |= {"include_lower": part.include_low, "include_upper": part.include_high}
    if part.exact:
        # Lucene's own range over the terms: its bounds are not part of a syntax.
        spec |= {"_noOptimize": True, "_type": "string"}
    return {"range": {part.column: spec}}


def _written(value: str) -> str:
    """A value in which a $ is not the beginning of a variable."""
    return value.replace("$", "$$")


def in_bql(query: Query, text: Sequence[str], schema: Schema, asked: Asked) -> dict[str, Any]:
    """The body of the request; ``text``: the fields that are meant where none is named."""
    statement = _Statement()
    conditions = []
    wanted = None if query.match is None else _bql_match(query.match, text, schema)
    if asked.nothing:
        wanted = _BQL_NOTHING if wanted is None else f"+({wanted}) +{_BQL_NOTHING}"
    if wanted is not None:
        conditions.append(f"QUERY IS {_quoted(wanted)}")
    named = set()
    for part in asked.predicates:
        condition = statement.condition(part)
        if part.column in named:
            condition = f"(({condition}) OR ({condition}))"
        named.add(part.column)
        conditions.append(condition)
    selected = ", ".join(n if n == SOURCE else _quoted(n) for n in asked.select)
    words = [f"SELECT {selected}", "FROM docs"]
    if conditions:
        words.append(f"WHERE {' AND '.join(conditions)}")
    words.append(
        "ORDER BY " + ", ".join(f"{n} {'DESC' if falling else 'ASC'}" for n, falling in asked.sort)
    )
    words.append(f"LIMIT {query.offset}, {query.limit}")
    if asked.facets:
        facets = [f"{name}(false, 1, {most}, hits)" for name, most in asked.facets.items()]
        words.append(f"BROWSE BY {', '.join(facets)}")
    body: dict[str, Any] = {"bql": " ".join(words)}
    if statement.variables:
        body["templateMapping"] = statement.variables
    return body


def _bql_match(part: Match, text: Sequence[str], schema: Schema) -> str:
    """A query in Lucene's syntax: terms are letters and digits, so nothing needs escaping."""
    if isinstance(part, Terms):
        return _bql_terms(part, [columns.column(schema[name]) for name in part.fields or text])
    must, should, must_not = each(part, lambda m: _bql_match(m, text, schema))
    if not must and not should:
        must = [_BQL_EVERY]
    return " ".join(
        [*(f"+({m})" for m in must), *(f"({m})" for m in should), *(f"-({m})" for m in must_not)]
    )


def _bql_terms(part: Terms, names: Sequence[str]) -> str:
    if not (known := sought(part)):
        return _BQL_NOTHING
    if part.mode is Mode.PHRASE:
        return " ".join(f'{name}:"{" ".join(known)}"' for name in names)
    end = "*" if part.mode is Mode.PREFIX else ""
    each = [" ".join(f"{name}:{term}{end}" for name in names) for term in known]
    return " ".join(each) if part.mode is Mode.ANY else " ".join(f"+({one})" for one in each)


class _Statement:
    """Conditions, and the variables that they need."""

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}

    def condition(self, part: Within | Among) -> str:
        if isinstance(part, Among):
            values, excluded = (
                f"({', '.join(self._value(v) for v in side)})"
                for side in (part.values, part.excluded)
            )
            if not part.values:
                return f"{part.column} NOT IN {excluded}"
            but = f" EXCEPT {excluded}" if part.excluded else ""
            return f"{part.column} IN {values}{but}"
        if part.exact:
            raise Unsupported(
                "SenseiDB cannot do this range in BQL: upstream must: BQL takes a bracket in a "
                'bound, or a space at its end, for syntax; set protocol = "json"'
            )
        if part.column.startswith(columns.SEVERAL):
            raise Unsupported(
                "SenseiDB cannot do a range over a field of several values in BQL: upstream must: "
                'its range facets take one value; set protocol = "json"'
            )
        name = columns.ranged(part.column)
        given = bounds(Range(name, part.low, part.high, part.include_low, part.include_high))
        # BQL compares the bounds; a variable would be compared by its name.
        if any(_broken(str(bound)) for _sign, bound in given):
            raise Unsupported(
                "SenseiDB cannot do this range in BQL: upstream must: strings in BQL cannot "
                'contain line breaks; set protocol = "json"'
            )
        return " AND ".join(f"{name} {sign} {_quoted(_written(str(b)))}" for sign, b in given)

    def _value(self, value: str) -> str:
        if not _broken(value):
            return _quoted(_written(value))
        name = f"value{len(self.variables):04d}"  # of one length: none begins another
        self.variables[name] = _written(value)
        return f"${name}"


def _broken(text: str) -> bool:
    return "\n" in text or "\r" in text


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
