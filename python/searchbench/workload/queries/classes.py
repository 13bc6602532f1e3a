"""Classes of queries by their shape: what kinds of questions a set holds, when nobody said it.

    words     how many words are searched for: "1 word", "2 words", .. as `searchbench logs` counts
    match     how they are to be found: "any", "all", "phrase", "prefix", "fuzzy", "boolean"
    filters   the fields that are filtered by: "no filter", "filter: price, section"
    sort      the order of the hits: "by relevance", "by date"
    shape     all of these together but the words, and facets, groups and snippets

A class that somebody gave (a key of the line, a name of the file) is not of this file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from searchbench.workload.queries.algebra import Boolean, Query, declared_terms

LONGEST = 4_000  # characters of a name

# The greatest number of words of each band; all above are one.
_BANDS = ((5, ""), (10, "6-10 words"), (20, "11-20 words"), (50, "21-50 words"))


def by_words(n: int) -> str:
    """The class of a search for so many words."""
    if n < 1:
        return "no word"
    if n == 1:
        return "1 word"
    return next((name or f"{n} words" for top, name in _BANDS if n <= top), "more than 50 words")


def of_query(query: Query, by: str) -> str:
    """The class of a query; ``by``: one of ``BY``."""
    return _OF[by](query)


def _words(query: Query) -> str:
    return by_words(len(declared_terms(query.match)))


def _match(query: Query) -> str:
    if query.match is None:
        return "no word"
    return "boolean" if isinstance(query.match, Boolean) else str(query.match.mode)


def _filters(query: Query) -> str:
    fields = sorted({one.field for one in query.filters})
    return f"filter: {', '.join(fields)}" if fields else "no filter"


def _sort(query: Query) -> str:
    names = ["relevance" if key.field == "_score" else key.field for key in query.sort]
    return f"by {', '.join(names) or 'relevance'}"


def _shape(query: Query) -> str:
    parts = [_match(query)]
    if query.filters:
        parts.append(_filters(query))
    if query.sort:
        parts.append(_sort(query))
    parts += ["facets"] * bool(query.facets) + ["groups"] * bool(query.group_by)
    parts += ["snippets"] * bool(query.snippets)
    return ", ".join(parts)


_OF: Mapping[str, Callable[[Query], str]] = {
    "words": _words, "match": _match, "filters": _filters, "sort": _sort, "shape": _shape,
}  # fmt: skip
BY = tuple(_OF)


def wrong(name: object) -> str:
    """Why this is no name of a class, as the end of a sentence; empty if it is one."""
    if not isinstance(name, str) or not name.strip():
        return "must be a name"
    if len(name) > LONGEST:
        return f"must be a name of at most {LONGEST} characters"
    if '"' in name or any(ord(letter) < 32 for letter in name):
        return "must be a name without quotation marks and without control characters"
    return ""
