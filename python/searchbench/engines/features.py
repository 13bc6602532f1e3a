"""What a query needs of an engine, by the names of ``Capabilities.cannot``; refusing it if not."""

from __future__ import annotations

from collections.abc import Iterable

from searchbench.engines.engine import Capabilities
from searchbench.errors import Unsupported
from searchbench.workload.queries.algebra import Match, Mode, Query, Terms


def refuse(can: Capabilities, query: Query) -> None:
    """Unsupported, with the declared reason, where ``query`` needs what the engine cannot.

    The lab asks this before every ``compile``, so an engine need not.
    """
    for feature in features(query):
        if feature in can.cannot:
            raise Unsupported(f"{can.title} cannot do {feature}: {can.cannot[feature]}")


def features(query: Query) -> Iterable[str]:
    """What ``query`` needs, in the order of its parts."""
    if query.match is not None:
        yield from _of_match(query.match)
    if query.filters:
        yield "filters"
    if any(s.field != "_score" for s in query.sort):
        yield "sort"
    if query.facets:
        yield "facets"
    if query.group_by is not None:
        yield "group_by"
    if query.fields:
        yield "fields"
    if query.snippets:
        yield "snippets"


def _of_match(match: Match) -> Iterable[str]:
    if isinstance(match, Terms):
        if match.mode in (Mode.PREFIX, Mode.FUZZY, Mode.PHRASE):
            yield str(match.mode)
        return
    yield "boolean"
    for part in (*match.must, *match.should, *match.must_not):
        yield from _of_match(part)
