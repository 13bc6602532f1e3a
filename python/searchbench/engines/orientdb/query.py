"""The query algebra in OrientDB's SQL. What is searched for stands in Lucene's own query syntax.

    SELECT id, $score AS s FROM Docs WHERE SEARCH_CLASS(:q) = true AND v_price > :p0 LIMIT 10

with q = "+(v_title:red v_body:red) +(v_title:fox v_body:fox)". Terms are letters and digits alone,
so none of them can become syntax; all other values are parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from searchbench.corpora.corpus import FieldType, Schema
from searchbench.engines.column_form import escaped, unescaped
from searchbench.engines.features import bounds, each, keys, scored, sought
from searchbench.workload.queries.algebra import (
    Filter,
    In,
    Match,
    Mode,
    NotIn,
    Query,
    Range,
    Terms,
)

CLASS = "Docs"
INDEX = "docs_text"
ID, PLACE = "id", "o"  # properties of our own; PLACE: of the document in the corpus
SCORE, TOTAL, VALUE, COUNT = "s", "t", "v", "n"
# Not `*:*`: in the index there is also a document of OrientDB's own, which that would count.
_EVERY = f"_CLASS:{CLASS}^0"
_NONE = "(+*:* -*:*)"


def own(name: str) -> str:
    """The property of a field, one to one."""
    return f"v_{escaped(name, capitals=False)}"


def field(name: str) -> str:
    """The field of a property."""
    return unescaped(name.removeprefix("v_"))


class Asked:
    """One query as statements; ``parameters`` by the names that they have in them."""

    def __init__(self, query: Query, schema: Schema) -> None:
        self.query, self.schema = query, schema
        self.parameters: dict[str, Any] = {}
        self._where = self._conditions()

    @property
    def total_comes_with_hits(self) -> bool:
        """Does Lucene itself know the total, and is there a hit that can bring it?"""
        query = self.query
        searched = query.match is not None and bool(self._text())
        return searched and not query.filters and not query.offset and query.limit > 0

    def hits(self) -> str:
        """The statement of a page of hits; with the total, where that comes with them."""
        query = self.query
        shown = [ID, *([f"$score AS {SCORE}"] if scored(query) and query.match else ())]
        shown += [own(name) for name in query.fields]
        if self.total_comes_with_hits:
            shown.append(f"${INDEX}_totalHits AS {TOTAL}")
        order, missing = self._order()
        said = f"SELECT {', '.join([*shown, *missing])} FROM {CLASS}{self._where}"
        if order:
            said += f" ORDER BY {', '.join(order)}"
        return f"{said} SKIP {query.offset} LIMIT {query.limit}"

    def total(self) -> str:
        """The statement that counts all that match."""
        return f"SELECT count(*) AS {COUNT} FROM {CLASS}{self._where}"

    def counted(self, name: str, limit: int) -> str:
        """The statement of the most frequent values of a field, ties by value."""
        column = own(name)
        source = CLASS + self._and(f"{column} IS NOT NULL")
        if self.schema[name].type is FieldType.KEYWORDS:
            source = f"(SELECT {column} FROM {source} UNWIND {column})"
        return (
            f"SELECT {column} AS {VALUE}, count(*) AS {COUNT} FROM {source} GROUP BY {column} "
            f"ORDER BY {COUNT} DESC, {VALUE} ASC LIMIT {limit}"
        )

    def _text(self) -> list[str]:
        return [f.name for f in self.schema.of_type(FieldType.TEXT)]

    def _conditions(self) -> str:
        query = self.query
        wanted = []
        if query.match is not None:
            if self._text():
                self.parameters["q"] = _match(query.match, self._text())
                wanted.append("SEARCH_CLASS(:q) = true")
            else:
                wanted.append("1 = 2")
        wanted += [self._filter(part) for part in query.filters]
        return f" WHERE {' AND '.join(wanted)}" if wanted else ""

    def _and(self, condition: str) -> str:
        return f"{self._where} AND {condition}" if self._where else f" WHERE {condition}"

    def _given(self, value: Any) -> str:
        name = f"p{len(self.parameters)}"
        self.parameters[name] = value
        return f":{name}"

    def _filter(self, part: Filter) -> str:
        name = own(part.field)
        if isinstance(part, Range):
            within = [f"{name} {sign} {self._given(bound)}" for sign, bound in bounds(part)]
            return " AND ".join(within) or f"{name} IS NOT NULL"
        if self.schema[part.field].type is FieldType.KEYWORDS:
            # One by one: in a list, a text such as "#12:3" is taken for the number of a record.
            among = " OR ".join(f"{name} CONTAINS {self._given(v)}" for v in part.values)
        else:
            among = f"{name} IN {self._given(list(part.values))}"
        if isinstance(part, NotIn):
            return f"({name} IS NULL OR NOT ({among}))"
        assert isinstance(part, In)
        return f"({among})"

    def _order(self) -> tuple[list[str], list[str]]:
        """Sort keys, and what must be shown for them: which documents have no value.

        By relevance alone nothing is sorted: Lucene gives the hits in that order.
        """
        if not self.query.sort:
            return ([] if self.query.match is not None else [f"{PLACE} ASC"]), []
        order, missing = [], []
        for place, key in enumerate(keys(self.query)):
            way = "DESC" if key.descending else "ASC"
            if key.field == "_score":
                order += [f"{SCORE} {way}"] if self.query.match is not None else []
                continue
            missing.append(f"ifnull({own(key.field)}, 1, 0) AS m{place}")
            order += [f"m{place} ASC", f"{own(key.field)} {way}"]
        return [*order, f"{PLACE} ASC"], missing


def _match(part: Match, text: Sequence[str]) -> str:
    """In Lucene's syntax; ``text``: the fields that are meant where none is named."""
    if isinstance(part, Terms):
        return _terms(part, [own(name) for name in part.fields or text])
    must, should, must_not = each(part, lambda m: _match(m, text))
    wanted = [f"+{m}" for m in must] + should
    return f"({' '.join([*(wanted or [f'+{_EVERY}']), *(f'-{m}' for m in must_not)])})"


def _terms(part: Terms, fields: Sequence[str]) -> str:
    found = sought(part)
    if not found or not fields:
        return _NONE
    if part.mode is Mode.PHRASE:
        words = " ".join(found)
        return "(" + " ".join(f'{name}:"{words}"' for name in fields) + ")"
    end = "*" if part.mode is Mode.PREFIX else ""
    each_term = [" ".join(f"{name}:{term}{end}" for name in fields) for term in found]
    if part.mode is Mode.ANY:
        return f"({' '.join(each_term)})"
    return f"({' '.join(f'+({one})' for one in each_term)})"
