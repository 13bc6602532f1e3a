"""Why two systems answer a query differently, where the record can tell.

error             one of them refused or failed
partial           one of them answered from a part of its index only
truncation        a total is only a bound, or there is no total
analysis          other totals, and the text is cut into other terms
operator          other totals from the same terms: the operators mean different things
analysis or operator    other totals, and the record has no terms to tell which
facets or groups  the same documents match, counted differently
part statistics   one engine, with other parts: each part scores by its own frequencies
scoring           the same documents match, ranked differently
tie               only hits of equal score swapped; counts as the same
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from searchbench.record import Trial

ERROR = "error"
PARTIAL = "partial"
TRUNCATION = "truncation"
ANALYSIS = "analysis"
OPERATOR = "operator"
ANALYSIS_OR_OPERATOR = "analysis or operator"
EXTRAS = "facets or groups"
PARTS = "part statistics"
SCORING = "scoring"
TIE = "tie"

# Parameters that say how an index is cut up and whose statistics are used for scoring.
PART_PARAMETERS = frozenset({"parts", "part_kind", "levels", "shards", "statistics", "merge"})


class Namer:
    """Names causes for one pair of trials; ``queries`` by number, as in the query set."""

    def __init__(
        self,
        a: Trial,
        b: Trial,
        queries: Mapping[int, Mapping[str, Any]],
    ) -> None:
        self._queries = queries
        self._terms_a, self._terms_b = _terms(a, queries), _terms(b, queries)
        self._only_parts_differ = _only_parts_differ(a, b)

    def name(
        self,
        query: int,
        *,
        totals_same: bool,
        totals_known: bool,
        partial: bool,
        extras_same: bool,
        ties_only: bool,
    ) -> str:
        """The cause for one query whose answers are not identical."""
        if partial:
            return PARTIAL
        if not totals_known:
            return TRUNCATION
        if not totals_same:
            return self._of_totals(query)
        if not extras_same:
            return EXTRAS
        if ties_only:
            return TIE
        return PARTS if self._only_parts_differ else SCORING

    def _of_totals(self, query: int) -> str:
        a, b = self._terms_a.get(query), self._terms_b.get(query)
        if a is not None and b is not None:
            return OPERATOR if a == b else ANALYSIS
        algebra = self._queries.get(query, {}).get("algebra") or {}
        matched = algebra.get("match") or {}
        simple = isinstance(matched, Mapping) and matched.get("mode") in ("any", "all")
        # Any and all of plain terms mean one thing only, and the conformance suite holds every
        # engine to it; so what differs must be the terms.
        return ANALYSIS if simple and not algebra.get("filters") else ANALYSIS_OR_OPERATOR


def _terms(trial: Trial, queries: Mapping[int, Mapping[str, Any]]) -> dict[int, tuple[str, ...]]:
    """Terms of each query as the trial's engine sees them; empty if it was not asked.

    ``terms`` of trial.json holds only the queries whose terms it sees otherwise than declared.
    """
    if trial.terms is None:
        return {}
    other = trial.terms.other
    found = {}
    for query, about in queries.items():
        declared = declared_terms((about.get("algebra") or {}).get("match"))
        found[query] = tuple(other.get(str(query), declared))
    return found


def declared_terms(match: Any) -> tuple[str, ...]:
    """All terms of a match in its JSON form, at any depth, in order."""
    if not isinstance(match, Mapping):
        return ()
    if "terms" in match:
        return tuple(str(term) for term in match["terms"])
    parts = [p for key in ("must", "should", "must_not") for p in match.get(key) or ()]
    return tuple(term for part in parts for term in declared_terms(part))


def _only_parts_differ(a: Trial, b: Trial) -> bool:
    if (a.engine, a.version) != (b.engine, b.version):
        return False
    x, y = a.parameters, b.parameters
    differing = {name for name in {*x, *y} if x.get(name) != y.get(name)}
    return bool(differing & PART_PARAMETERS)
