"""What the translators of the query algebra do alike, whatever language they write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from searchbench.workload.queries.algebra import Boolean, Match, Mode, Query, Range, Sort, Terms
from searchbench.workload.queries.analysis import is_term

_T = TypeVar("_T")


def sought(part: Terms) -> list[str]:
    """The terms to look for; none where no document can match.

    What is not a term of the declared analysis is in no document, and never becomes syntax.
    """
    known = [term for term in part.terms if is_term(term)]
    return known if part.mode is Mode.ANY or len(known) == len(part.terms) else []


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
