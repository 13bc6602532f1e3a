"""The query algebra evaluated the slow and obvious way: what every engine must return."""

from __future__ import annotations

from collections import Counter
from typing import Any

from searchbench.corpora.corpus import Document, FieldType, Schema
from searchbench.workload.queries.algebra import (
    Boolean,
    Filter,
    In,
    Match,
    Mode,
    NotIn,
    Query,
    Range,
    Terms,
)
from searchbench.workload.queries.analysis import terms


class Reference:
    """Documents in memory; every answer by looking at all of them."""

    def __init__(self, schema: Schema, documents: list[Document]) -> None:
        self.schema = schema
        self.documents = documents
        self.text = tuple(f.name for f in schema.of_type(FieldType.TEXT))
        self.words = [
            {name: terms(str(d.values.get(name, ""))) for name in self.text} for d in documents
        ]

    def matching(self, query: Query) -> list[int]:
        """Positions of the documents that match, in order of ingest."""
        return [
            i
            for i, document in enumerate(self.documents)
            if (query.match is None or self._matches(query.match, i))
            and all(_passes(part, document) for part in query.filters)
        ]

    def ids(self, query: Query) -> list[str]:
        """Ids of the documents that match."""
        return [self.documents[i].id for i in self.matching(query)]

    def sorted_ids(self, query: Query) -> list[str]:
        """Ids in the query's order, cut to its page; missing values last, ties by ingest."""
        order = self.matching(query)
        for key in reversed(query.sort):
            present = [i for i in order if key.field in self.documents[i].values]
            absent = [i for i in order if key.field not in self.documents[i].values]

            def value(i: int, name: str = key.field) -> Any:
                return self.documents[i].values[name]

            order = sorted(present, key=value, reverse=False)
            if key.descending:
                # A stable descending order: equal values keep the order they had.
                order = sorted(present, key=value, reverse=True)
            order = order + absent
        page = order[query.offset : query.offset + query.limit]
        return [self.documents[i].id for i in page]

    def counts(self, query: Query, field: str) -> list[tuple[str, int]]:
        """Values of a field over the matching documents, most frequent first, ties by value."""
        counter: Counter[str] = Counter()
        for i in self.matching(query):
            value = self.documents[i].values.get(field)
            if value is not None:
                counter.update(set(value) if isinstance(value, list) else [value])
        return sorted(counter.items(), key=lambda pair: (-pair[1], pair[0]))

    def _matches(self, match: Match, i: int) -> bool:
        if isinstance(match, Boolean):
            if any(self._matches(m, i) for m in match.must_not):
                return False
            if match.must:
                return all(self._matches(m, i) for m in match.must)
            return not match.should or any(self._matches(m, i) for m in match.should)
        fields = match.fields or self.text
        words = [self.words[i][name] for name in fields]
        if match.mode is Mode.PHRASE:
            return any(_has_run(w, match.terms) for w in words)
        found = (any(_has(w, term, match) for w in words) for term in match.terms)
        return any(found) if match.mode is Mode.ANY else all(found)


def _has(words: tuple[str, ...], term: str, match: Terms) -> bool:
    if match.mode is Mode.PREFIX:
        return any(w.startswith(term) for w in words)
    if match.mode is Mode.FUZZY:
        return any(distance(w, term) <= match.distance for w in words)
    return term in words


def _has_run(words: tuple[str, ...], run: tuple[str, ...]) -> bool:
    return any(words[i : i + len(run)] == run for i in range(len(words) - len(run) + 1))


def distance(a: str, b: str) -> int:
    """Optimal string alignment: Levenshtein where a transposition of neighbours costs one."""
    rows = [list(range(len(b) + 1))]
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(rows[-1][j] + 1, row[j - 1] + 1, rows[-1][j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]


def _passes(part: Filter, document: Document) -> bool:
    value = document.values.get(part.field)
    held = value if isinstance(value, list) else [] if value is None else [value]
    if isinstance(part, In):
        return any(v in part.values for v in held)
    if isinstance(part, NotIn):
        return not any(v in part.values for v in held)
    assert isinstance(part, Range)
    return any(_within(part, v) for v in held)


def _within(part: Range, value: Any) -> bool:
    above = part.low is None or (value >= part.low if part.include_low else value > part.low)
    below = part.high is None or (value <= part.high if part.include_high else value < part.high)
    return bool(above and below)
