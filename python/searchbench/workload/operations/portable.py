"""A method that is a query of the algebra: what it asks, and which rows its answer has.

Every engine's answer is read as one object, whatever its own replies look like, so that ``rows_at``
says for all of them what is compared:

    total    how many documents match
    hits     each with its ``id`` and those of its fields that the query's ``fields`` name
    facets   by field, each value with its count
    groups   each value with its count
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson

from searchbench.errors import QueryError
from searchbench.spec import nearest
from searchbench.workload.operations.paths import Path, RowsAt, read_rows_at
from searchbench.workload.queries.algebra import Query
from searchbench.workload.queries.forms import from_json

PARTS = ("total", "hits", "facets", "groups")
_COUNTED = ("value", "count")


def query_of(text: str) -> Query:
    """The query of a text whose placeholders are filled; QueryError with all that is wrong."""
    return from_json(orjson.loads(text))


def rows_lie_at(query: Query, given: Sequence[str]) -> tuple[RowsAt, ...]:
    """What of the answer is compared: what is given, else the ids, or the total where there are
    no hits. QueryError where the query does not return it.
    """
    usual = "hits: id" if query.limit else "total"
    found = tuple(read_rows_at(each) for each in given or (usual,))
    for each in found:
        for reason in _lacking(query, each):
            raise QueryError(reason)
    return found


def _lacking(query: Query, at: RowsAt) -> Iterator[str]:
    part, *inner = at.path.steps
    if part not in PARTS:
        yield (f"`rows_at` {at.path.text!r}: the answer to a query has {', '.join(PARTS)}; "
               f"{nearest(part, PARTS)}")  # fmt: skip
    elif part == "hits":
        yield from _of_hits(query, at)
    elif part == "facets":
        asked = [facet.field for facet in query.facets]
        if not inner or inner[0] not in asked:
            have = f"it has {', '.join(asked)}" if asked else "it has none"
            yield (f"`rows_at` {at.path.text!r}: the query asks for no such facet, {have}; add the "
                   "field to its `facets`, with a `limit` that all values fit in")  # fmt: skip
        yield from _named(at.columns, _COUNTED, at.path.text)
    elif part == "groups":
        if query.group_by is None:
            yield "`rows_at` 'groups': the query has no groups; give it `group_by`"
        yield from _named(at.columns, _COUNTED, at.path.text)


def _of_hits(query: Query, at: RowsAt) -> Iterator[str]:
    if not query.limit:
        yield ("`rows_at` 'hits': the query has `limit` 0, so it returns no hits; give it a limit "
               "that all rows fit in, or compare `total`")  # fmt: skip
    if at.path.steps == ("hits",) and not at.columns:
        yield "`rows_at` 'hits': say which columns a row has, as in 'hits: id'"
    for column in at.columns if at.path.steps == ("hits",) else ():
        name = column.steps[0]
        if name != "id" and name not in query.fields:
            yield (f"`rows_at` 'hits': the query does not return {name}; add it to the query's "
                   f'`fields`, as in "fields": ["{name}"]')  # fmt: skip


def _named(columns: Sequence[Path], known: Sequence[str], of: str) -> Iterator[str]:
    if not columns:
        yield f"`rows_at` {of!r}: say which columns a row has, as in '{of}: value, count'"
    for column in columns:
        if column.steps[0] not in known:
            yield f"`rows_at` {of!r}: a row has {' and '.join(known)}, and no {column.steps[0]}"
