"""A method that is a query of the algebra, made ready for one engine; its answer read as rows.

The engine's translator makes the bytes, and reads the reply as hits, as it does for a study of
queries. What of these is compared becomes the same lines of text as the rows of statements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from searchbench.corpora.corpus import Schema
from searchbench.corpora.validate import validate
from searchbench.engines.answer import Hits
from searchbench.engines.engine import Engine, Parameters, Request
from searchbench.engines.features import refuse
from searchbench.workload.operations.paths import NoRows, RowsAt
from searchbench.workload.operations.portable import query_of
from searchbench.workload.queries.algebra import Query

Taken = Callable[[Sequence[bytes]], Hits]
"""Makes of the lines of all rows the answer of an operation."""


class _Decodes(Protocol):
    def decode(self, reply: bytes) -> Hits: ...


def request_of(text: str, engine: Engine, schema: Schema, params: Parameters) -> Request:
    """The bytes of a query; QueryError where it does not fit the corpus, Unsupported with the
    reason where the engine cannot be asked it.
    """
    query = query_of(text)
    validate(query, schema)
    refuse(engine.can, query)
    return replace(engine.compile(query, schema, params), operation=True)


@dataclass(frozen=True)
class QueryReader:
    """Reads the answer to a query. ``asked``: of the first draw; all draws ask for the same parts.

    ``places``: what of the answer is compared.
    """

    engine: _Decodes
    asked: Query
    places: Sequence[RowsAt]
    taken: Taken

    def decode(self, reply: bytes) -> Hits:
        """The rows that are compared; the engine's words where it refused."""
        hits = self.engine.decode(reply)
        if hits.error is not None:
            return Hits(total=None, error=hits.error)
        if not hits.total_exact and any(at.path.steps[0] == "total" for at in self.places):
            return Hits(total=None, error="the system gives only a bound of the total, which "
                        "cannot be compared")  # fmt: skip
        answer = _as_object(hits, self.asked)
        try:
            lines = [line for at in self.places for line in at.lines(answer)]
        except NoRows as missing:
            return Hits(total=None, error=str(missing))
        return replace(self.taken(lines), partial=hits.partial, warnings=hits.warnings)


def _as_object(hits: Hits, asked: Query) -> dict[str, Any]:
    """An answer as ``rows_at`` sees it. A field that a hit has not is null."""
    none = dict.fromkeys(asked.fields)
    return {
        "total": hits.total,
        "hits": [{**none, **hit.fields, "id": hit.id} for hit in hits.hits],
        "facets": {
            facet.field: _counted(hits.facets.get(facet.field, ())) for facet in asked.facets
        },
        "groups": _counted(hits.groups),
    }


def _counted(pairs: Sequence[tuple[Any, int]]) -> list[dict[str, Any]]:
    return [{"value": value, "count": count} for value, count in pairs]
