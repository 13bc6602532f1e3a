"""What the translators of the query algebra share, whatever language they write.

What a query needs, by the names of ``Capabilities.cannot``, and refusing it if not; then its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from searchbench.engines.engine import Capabilities
from searchbench.errors import Unsupported
from searchbench.workload.queries.algebra import Boolean, Match, Mode, Query, Range, Sort, Terms
from searchbench.workload.queries.analysis import is_term

_T = TypeVar("_T")


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


def sought(part: Terms) -> list[str]:
    """The terms to look for; none where no document can match.

    What is not a term of the declared analysis is in no document, and never becomes syntax.
    """
    known = [term for term in part.terms if is_term(term)]
    return known if part.mode is Mode.ANY or len(known) == len(part.terms) else []


def leaves(part: Match | None) -> Iterator[Terms]:
    """What a document may be found by, at any depth: nothing that must not match."""
    if isinstance(part, Terms):
        yield part
    elif part is not None:
        for inner in (*part.must, *part.should):
            yield from leaves(inner)


def each(part: Boolean, do: Callable[[Match], _T]) -> tuple[list[_T], list[_T], list[_T]]:
    """What ``do`` makes of all that must match, of what should, and of what must not."""
    return [*map(do, part.must)], [*map(do, part.should)], [*map(do, part.must_not)]


def bounds(part: Range) -> list[tuple[str, int | float | str]]:
    """The bounds that there are, each after its sign: ``>``, ``>=``, ``<`` or ``<=``."""
    both = ((">", part.low, part.include_low), ("<", part.high, part.include_high))
    return [(sign + "=" * inclusive, bound) for sign, bound, inclusive in both if bound is not None]


def keys(query: Query) -> tuple[Sort, ...]:
    """What hits are sorted by: relevance if nothing is said."""
    return query.sort or (Sort("_score", descending=True),)


def scored(query: Query) -> bool:
    """Do hits have a score? Sorted by fields alone they have none."""
    return any(key.field == "_score" for key in keys(query))


def joined(parts: Sequence[str], sign: str) -> str:
    """One as it is, several in parentheses with ``sign`` between them; "" for none."""
    return f"({f' {sign} '.join(parts)})" if len(parts) > 1 else "".join(parts)


def _of_match(match: Match) -> Iterable[str]:
    if isinstance(match, Terms):
        if match.mode in (Mode.PREFIX, Mode.FUZZY, Mode.PHRASE):
            yield str(match.mode)
        return
    yield "boolean"
    for part in (*match.must, *match.should, *match.must_not):
        yield from _of_match(part)
