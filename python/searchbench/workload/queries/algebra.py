"""The query algebra: what every engine is asked, before any engine's dialect.

    Query = match + filters + sort + facets + group_by + offset/limit + fields + snippets
    Match = Terms (any | all | phrase | prefix | fuzzy) | Boolean (must, should, must_not)

Terms are words after the declared analysis (lower case, split at everything that is not a
letter or digit); ``fields`` empty means every text field of the schema. Terms over several
fields mean: a document has the term if any of the fields has it ("all" may be met by
different fields; a phrase must be met within one field).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    """How a run of terms is to be found."""

    ANY = "any"
    ALL = "all"
    PHRASE = "phrase"
    PREFIX = "prefix"
    FUZZY = "fuzzy"


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms to be found in named fields.

    PREFIX: every term is a prefix, and all must be met. FUZZY: every term within ``distance``
    edits (Levenshtein, 1 or 2; a transposition counts as one), and all must be met.
    """

    mode: Mode
    terms: tuple[str, ...]
    fields: tuple[str, ...] = ()
    distance: int = 1


@dataclass(frozen=True, slots=True)
class Boolean:
    """All of ``must``, at least one of ``should`` if ``must`` is empty, none of ``must_not``."""

    must: tuple[Match, ...] = ()
    should: tuple[Match, ...] = ()
    must_not: tuple[Match, ...] = ()


Match = Terms | Boolean


def declared_terms(match: Match | None) -> tuple[str, ...]:
    """All terms of a match, at any depth, in order."""
    if match is None:
        return ()
    if isinstance(match, Terms):
        return match.terms
    parts = (*match.must, *match.should, *match.must_not)
    return tuple(term for part in parts for term in declared_terms(part))


@dataclass(frozen=True, slots=True)
class Range:
    """``field`` between two bounds; None is unbounded. Dates are milliseconds since 1970 UTC."""

    field: str
    low: int | float | str | None = None
    high: int | float | str | None = None
    include_low: bool = True
    include_high: bool = True


@dataclass(frozen=True, slots=True)
class In:
    """``field`` (keyword, keywords, integer, boolean) holds one of ``values``."""

    field: str
    values: tuple[str | int | bool, ...]


@dataclass(frozen=True, slots=True)
class NotIn:
    """``field`` holds none of ``values``; a document without the field passes."""

    field: str
    values: tuple[str | int | bool, ...]


Filter = Range | In | NotIn


@dataclass(frozen=True, slots=True)
class Sort:
    """One sort key; the field "_score" is relevance. Missing values come last."""

    field: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Facet:
    """The ``limit`` most frequent values of a keyword(s) field with their counts, ties by value."""

    field: str
    limit: int = 10


@dataclass(frozen=True, slots=True)
class Query:
    """One question. ``match`` None matches every document; no ``sort`` means by relevance.

    ``snippets``: stored text fields of which each hit shall show pieces around the found words.
    """

    match: Match | None = None
    filters: tuple[Filter, ...] = ()
    sort: tuple[Sort, ...] = ()
    facets: tuple[Facet, ...] = ()
    group_by: str | None = None
    offset: int = 0
    limit: int = 10
    fields: tuple[str, ...] = ()
    snippets: tuple[str, ...] = ()
