"""The measures of the Sphinx comparison study: results, found, top 10, sets, groups, mismatches.

All hits on record are looked at, not only the first k. docs/methodology/agreement.md defines each
measure. Beside them Kendall's tau, and by how much scores differ that should be equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.agreement.ranking import TIE, tau_b
from searchbench.analysis.judgement import GroupAgreement
from searchbench.record import Trial

TOP = 10
SLICE = 100_000  # hits of both sides
LISTED = 10  # mismatches counted one by one in the distribution

# Parameters that say how a hit is scored; with all of them equal, one engine's scores should be.
SCORING_PARAMETERS = frozenset(
    {
        *("scoring", "ranker", "rank", "similarity", "normalization", "weights"),
        *("storage", "mode", "match_mode"),
    }
)

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Hits:
    """Hits of many queries, flat, in the order of query and rank.

    ``length``: hits of each query. ``document``: a number for each, the same in both lists.
    ``score``: NaN where a hit has no score.
    """

    length: Ints
    document: Ints
    score: Floats


def measure(a: Hits, b: Hits, *, found_same: int, scores_alike: bool) -> GroupAgreement:
    """``b`` held against ``a``, the first; both have the same queries in the same order.

    ``found_same``: queries of which both report the same exact total. ``scores_alike``: whether
    the scores should be equal (``same_scoring``).
    """
    queries = a.length.size
    slices = [_compare(x, y) for x, y in zip(_slices(a, b), _slices(b, a), strict=True)]
    found = {name: np.concatenate([part[name] for part in slices]) for name in slices[0]}

    def counted(matches: Bools) -> int:
        return int(np.count_nonzero(matches))

    in_groups = found["counted"]
    mismatches = found["lost"][in_groups & (found["lost"] > 0)]
    tau = found["tau"][np.isfinite(found["tau"])]
    apart = found["apart"][np.isfinite(found["apart"]) & scores_alike]
    return GroupAgreement(
        total_results_match=(counted(a.length == b.length), queries),
        total_found_match=(found_same, queries),
        top_10_match=(counted(found["top_same"]), queries),
        document_set_match=(counted((found["only_a"] == 0) & (found["only_b"] == 0)), queries),
        document_groups_match=(counted(found["groups_same"] & in_groups), counted(in_groups)),
        document_mismatch=(int(found["only_a"].sum()), int(found["documents"].sum())),
        max_mismatch=int(mismatches.max(initial=0)),
        median_mismatch=float(np.median(mismatches)) if mismatches.size else 0.0,
        distribution={str(n): counted(mismatches == n) for n in range(1, LISTED + 1)},
        above_10=counted(mismatches > LISTED),
        kendall_tau=float(tau.mean()) if tau.size else None,
        kendall_queries=int(tau.size),
        score_difference_mean=float(apart.mean()) if apart.size else None,
        score_difference_max=float(apart.max()) if apart.size else None,
        score_documents=int(apart.size),
    )


def _compare(a: Hits, b: Hits) -> dict[str, NDArray[Any]]:
    """By query: ``top_same``, ``groups_same``, ``counted`` (it has groups to compare), documents
    of one list only and of the first, ``lost`` (mismatches), ``tau`` (NaN: no order). ``apart``: by
    shared document, how far its scores are apart.
    """
    queries = a.length.size
    documents = int(max(a.document.max(initial=0), b.document.max(initial=0))) + 1
    first, second = _Side.of(a, documents), _Side.of(b, documents)
    i, j = _shared(first, second)
    row = first.row[i]

    def by_row(rows: Ints) -> Ints:
        return np.bincount(rows, minlength=queries).astype(np.int64)

    shared = by_row(row)
    top_a, top_b = first.place < TOP, second.place < TOP
    top_shared = by_row(row[top_a[i] & top_b[j]])
    same_group = first.upper[i] & second.upper[j] & (first.group[i] == second.group[j])
    kept = by_row(row[same_group])
    lost = by_row(first.row[first.upper]) - kept
    return {
        "top_same": (by_row(first.row[top_a]) == top_shared)
        & (by_row(second.row[top_b]) == top_shared),
        "groups_same": (lost == 0) & (by_row(second.row[second.upper]) == kept),
        "counted": first.weighed & second.weighed & (first.groups > 1),
        "only_a": by_row(first.row) - shared,
        "only_b": by_row(second.row) - shared,
        "documents": by_row(first.row),
        "lost": lost,
        "tau": tau_b(row, first.group[i], second.group[j], queries),
        "apart": np.abs(first.score[i] - second.score[j]),
    }


def _slices(hits: Hits, other: Hits) -> Iterator[Hits]:
    """``hits`` by runs of queries that stay in the processor's cache; ``other`` is cut alike."""
    ends = np.concatenate(([0], np.cumsum(hits.length)))
    load = np.concatenate(([0], np.cumsum(hits.length + other.length)))
    begin, queries = 0, hits.length.size
    while begin < queries or begin == 0:
        end = int(np.searchsorted(load, load[begin] + SLICE, side="right")) - 1
        end = min(max(begin + 1, end), queries)
        within = slice(int(ends[begin]), int(ends[end]))
        yield Hits(hits.length[begin:end], hits.document[within], hits.score[within])
        begin = max(end, 1)


def same_scoring(a: Trial, b: Trial) -> bool:
    """Whether two trials should score a document alike: one engine, and scored the same way."""
    x, y = a.parameters, b.parameters
    return a.engine == b.engine and all(x.get(name) == y.get(name) for name in SCORING_PARAMETERS)


@dataclass(frozen=True, slots=True)
class _Side:
    """One side's hits in the order of ``key`` (query, document), each document once.

    ``row``: the query. ``place`` and ``group``: rank, and number of the group of equal weight,
    from 0 at the top. ``upper``: not in the lowest group. By query: ``groups``, how many there
    are; ``weighed``, whether each hit has a weight and none is above the hit before it.
    """

    key: Ints
    row: Ints
    place: Ints
    group: Ints
    upper: Bools
    score: Floats
    groups: Ints
    weighed: Bools

    @classmethod
    def of(cls, hits: Hits, documents: int) -> _Side:
        length, score = hits.length, hits.score
        queries, n = length.size, score.size
        row = np.repeat(np.arange(queries), length)
        begins = np.cumsum(length) - length
        place = np.arange(n) - np.repeat(begins, length)
        tied, rises = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        with np.errstate(invalid="ignore"):
            near = TIE * np.maximum(np.abs(score[1:]), np.abs(score[:-1]))
            step = score[1:] - score[:-1]
            tied[1:] = (place[1:] > 0) & (np.abs(step) <= near)
            rises[1:] = (place[1:] > 0) & (step > near)
        starts = np.cumsum(~tied)  # groups begun so far, those of earlier queries too
        earlier = np.concatenate(([0], starts))[begins]
        group = starts - 1 - np.repeat(earlier, length)
        groups = np.concatenate(([0], starts))[begins + length] - earlier
        bad = rises | ~np.isfinite(score)
        # A document listed twice counts where it first stands.
        key, at = np.unique(row * documents + hits.document, return_index=True)
        return cls(
            key=key,
            row=row[at],
            place=place[at],
            group=group[at],
            upper=(group < np.repeat(groups, length) - 1)[at],
            score=score[at],
            groups=groups,
            weighed=np.bincount(row[bad], minlength=queries) == 0,
        )


def _shared(a: _Side, b: _Side) -> tuple[Ints, Ints]:
    """Where the documents that both have stand in a and in b."""
    if not b.key.size:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    at = np.minimum(np.searchsorted(b.key, a.key), b.key.size - 1)
    both = b.key[at] == a.key
    return np.flatnonzero(both), at[both]
