"""The measures of the Sphinx comparison study: worked by hand, their identities, and a slow twin.

A query is written as its groups from the top, each a weight and its documents: ``"9ab 5c"``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from records import Study, good_answer
from searchbench.analysis.agreement import groups
from searchbench.analysis.agreement.agreement import compare, read_answers
from searchbench.analysis.judgement import GroupAgreement
from searchbench.record import Trial, open_record

Listed = list[tuple[str, float]]


def hits(*queries: str | Listed) -> groups.Hits:
    lists = [_listed(q) if isinstance(q, str) else q for q in queries]
    return groups.Hits(
        np.array([len(row) for row in lists], dtype=np.int64),
        np.array([ord(name) for row in lists for name, _ in row], dtype=np.int64),
        np.array([score for row in lists for _, score in row], dtype=np.float64),
    )


def _listed(text: str) -> Listed:
    return [(name, float(group[0])) for group in text.split() for name in group[1:]]


def measured(a: list[Any], b: list[Any], *, alike: bool = True) -> GroupAgreement:
    return groups.measure(hits(*a), hits(*b), found_same=len(a), scores_alike=alike)


def test_each_measure_worked_by_hand() -> None:
    first = ["9ab 5cd 1ef", "9ab 5cd 1ef", "7abc", "9a 5bc 1d", "9a 1b"]
    second = [
        "9ba 5dc 1ge",  # only ties swapped, and a document exchanged in the lowest group
        "9ac 5bd 1ef",  # b and c have changed places across groups: the set is the same
        "7abx",  # one group only: not counted in groups
        "9a 5bx 1d",  # c is lost from the second group
        "9a",  # a document less: its only group is its lowest, so a is not found above it
    ]
    found = measured(first, second)
    assert found.total_results_match == (4, 5)
    assert found.top_10_match == (1, 5)
    assert found.document_set_match == (1, 5)
    assert found.document_groups_match == (1, 4)
    # Lacked: f, none, c, c, b; of 6 + 6 + 3 + 4 + 2 documents.
    assert found.document_mismatch == (4, 21)
    # Not in the same group above the lowest: none, b and c, (not counted), c, a.
    assert found.distribution == {"1": 2, "2": 1} | {str(n): 0 for n in range(3, 11)}
    assert (found.max_mismatch, found.median_mismatch, found.above_10) == (2, 1.0, 0)


def test_a_document_more_in_a_group_of_the_second_differs_without_a_mismatch() -> None:
    found = measured(["9ab 1cd"], ["9abc 1d"])
    assert found.document_groups_match == (0, 1)
    assert (found.max_mismatch, found.median_mismatch) == (0, 0.0)


def test_groups_are_held_against_each_other_by_rank_so_weights_need_no_common_scale() -> None:
    assert measured(["9ab 5c 1d"], ["3ba 2c 1d"]).document_groups_match == (1, 1)
    # A group more at the top moves all that follow.
    assert measured(["9ab 5c 1d"], ["9x 5ab 4c 1d"]).max_mismatch == 3


def test_the_first_ten_are_a_set_and_the_rest_is_no_matter() -> None:
    ten = [(chr(97 + i), 9.0 - i) for i in range(12)]
    turned = ten[9::-1] + ten[10:]
    assert measured([ten], [turned]).top_10_match == (1, 1)
    exchanged = [*ten[:9], ten[10], ten[9], ten[11]]
    found = measured([ten], [exchanged])
    assert (found.top_10_match, found.document_set_match) == ((0, 1), (1, 1))


def test_mismatches_above_ten_are_counted_apart() -> None:
    names = [chr(200 + i) for i in range(41)]
    first = [(n, 5.0) for n in names[:20]] + [("z", 1.0)]
    second = [(n, 5.0) for n in names[20:40]] + [("z", 1.0)]
    eleven = [(n, 5.0) for n in [*names[11:20], *names[20:31]]] + [("z", 1.0)]
    ten = [(n, 5.0) for n in [*names[10:20], *names[20:30]]] + [("z", 1.0)]
    found = measured([first, first, first, first], [second, eleven, ten, first])
    assert (found.above_10, found.distribution["10"]) == (2, 1)
    assert (found.max_mismatch, found.median_mismatch) == (20, 11.0)


def test_hits_without_weights_or_in_another_order_make_no_groups() -> None:
    rising: Listed = [("a", 1.0), ("b", 2.0), ("c", 2.0)]
    bare: Listed = [("a", float("nan")), ("b", float("nan"))]
    for odd in (rising, bare):
        found = measured([odd, "2a 1b"], [odd, "2a 1b"])
        assert found.document_groups_match == (1, 1)
        assert found.document_set_match == (2, 2)
        assert found.kendall_tau == 1.0


def test_scores_are_compared_only_where_they_should_be_equal() -> None:
    first: Listed = [("a", 3.0), ("b", 2.0), ("c", 1.0)]
    second: Listed = [("a", 3.0), ("b", 2.25), ("d", 1.0)]
    found = measured([first], [second])
    assert (found.score_difference_mean, found.score_difference_max) == (0.125, 0.25)
    assert found.score_documents == 2
    other = measured([first], [second], alike=False)
    assert (other.score_difference_mean, other.score_difference_max) == (None, None)
    assert other.score_documents == 0


@pytest.mark.parametrize(
    ("b", "alike"),
    [
        ({"engine": "x", "parameters": {"parts": 4, "ranker": "bm25"}}, True),
        ({"engine": "x", "parameters": {"parts": 1, "ranker": "none"}}, False),
        ({"engine": "y", "parameters": {"parts": 1, "ranker": "bm25"}}, False),
    ],
)
def test_one_engine_that_scores_one_way_should_give_equal_scores(
    b: dict[str, Any], alike: bool
) -> None:
    a = Trial(trial="a", treatment="a", engine="x", parameters={"parts": 1, "ranker": "bm25"})
    assert groups.same_scoring(a, Trial(trial="b", treatment="b", **b)) is alike


def test_a_document_listed_twice_counts_once_where_it_first_stands() -> None:
    found = measured(["9a 5ab 1c"], ["9a 5b 1c"])
    assert found.total_results_match == (0, 1)
    assert found.document_set_match == found.document_groups_match == (1, 1)
    assert found.document_mismatch == (0, 3)
    assert found.kendall_tau == 1.0


def test_no_queries_and_no_hits_are_no_trouble() -> None:
    assert measured([], []).document_set_match == (0, 0)
    found = measured([""], [""])
    assert (found.document_set_match, found.document_groups_match) == ((1, 1), (0, 0))
    assert measured(["9a 1b"], [""]).document_mismatch == (2, 2)
    assert measured([""], ["9a 1b"]).document_set_match == (0, 1)


def test_the_whole_lists_are_looked_at_not_only_the_first_k(tmp_path: Path) -> None:
    def deep(query: int) -> dict[str, Any]:
        answer = good_answer(query, k=20)
        return answer | {"ids": [*answer["ids"][:19], "other"]}

    study = Study(blocks=1, control=None, queries=8)
    study.add("a", seconds=1.5, answer=lambda q: good_answer(q, k=20))
    study.add("b", seconds=1.5, answer=deep)
    record = open_record(study.write(tmp_path / "record"))
    a, b = (read_answers(record, t) for t in record.trials)
    found = compare(a, b, require="set", k=10).agreement
    assert found.top_k_set_match == 1
    assert found.groups is not None
    assert found.groups.document_set_match == (0, 8)
    assert found.groups.document_mismatch == (8, 160)
    assert found.groups.top_10_match == (8, 8)
    assert found.groups.total_found_match == (8, 8)


QUERY = st.lists(
    st.tuples(st.sampled_from("abcdefghijklmnop"), st.integers(0, 4)),
    max_size=14,
    unique_by=lambda hit: hit[0],
).map(lambda row: sorted(((n, float(w)) for n, w in row), key=lambda hit: -hit[1]))
PAIRS = st.lists(st.tuples(QUERY, QUERY), max_size=8)


@settings(max_examples=200, deadline=None)
@given(st.lists(QUERY, max_size=8))
def test_a_system_matches_itself_everywhere(queries: list[Listed]) -> None:
    found = measured(queries, queries)
    for name in ("total_results", "total_found", "top_10", "document_set", "document_groups"):
        matching, of = getattr(found, f"{name}_match")
        assert matching == of
    assert found.document_mismatch == (0, sum(map(len, queries)))
    assert (found.max_mismatch, found.median_mismatch, found.above_10) == (0, 0.0, 0)
    assert set(found.distribution.values()) == {0}
    assert found.kendall_tau in (None, 1.0)
    assert found.score_difference_max in (None, 0.0)


@settings(max_examples=200, deadline=None)
@given(PAIRS)
def test_every_measure_is_that_of_the_slow_twin(pairs: list[tuple[Listed, Listed]]) -> None:
    found = measured([a for a, _ in pairs], [b for _, b in pairs])
    slow = slowly(pairs)
    assert replace(found, kendall_tau=None) == replace(slow, kendall_tau=None)
    assert found.kendall_tau == pytest.approx(slow.kendall_tau, abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(PAIRS)
def test_how_the_queries_are_sliced_changes_nothing(pairs: list[tuple[Listed, Listed]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    whole = measured(first, second)
    with mock.patch.object(groups, "SLICE", 7):
        assert measured(first, second) == whole


def slowly(pairs: list[tuple[Listed, Listed]]) -> GroupAgreement:
    """The definitions as they read, one query after another."""
    counted, groups_same, mismatches, taus, apart = 0, 0, [], [], []
    lacked = 0
    for a, b in pairs:
        lacked += len({n for n, _ in a} - {n for n, _ in b})
        grouped_a, grouped_b = _grouped(a), _grouped(b)
        if len(grouped_a) > 1:
            counted += 1
            above_a, above_b = grouped_a[:-1], grouped_b[:-1]
            groups_same += above_a == above_b
            empty: set[str] = set()
            others = [*above_b, *[empty] * len(above_a)]
            lost = sum(len(x - y) for x, y in zip(above_a, others, strict=False))
            mismatches += [lost] if lost else []
        score_a, score_b = dict(a), dict(b)
        both = sorted(score_a.keys() & score_b.keys())
        apart += [abs(score_a[n] - score_b[n]) for n in both]
        x, y = [score_a[n] for n in both], [score_b[n] for n in both]
        if len(set(x)) > 1 and len(set(y)) > 1:
            taus.append(float(kendalltau(x, y).statistic))
    sets = [({n for n, _ in a}, {n for n, _ in b}) for a, b in pairs]
    tops = [({n for n, _ in a[:10]}, {n for n, _ in b[:10]}) for a, b in pairs]
    n = len(pairs)
    return GroupAgreement(
        total_results_match=(sum(len(a) == len(b) for a, b in pairs), n),
        total_found_match=(n, n),
        top_10_match=(sum(a == b for a, b in tops), n),
        document_set_match=(sum(a == b for a, b in sets), n),
        document_groups_match=(groups_same, counted),
        document_mismatch=(lacked, sum(len(a) for a, _ in pairs)),
        max_mismatch=max(mismatches, default=0),
        median_mismatch=float(np.median(mismatches)) if mismatches else 0.0,
        distribution={str(i): mismatches.count(i) for i in range(1, 11)},
        above_10=sum(m > 10 for m in mismatches),
        kendall_tau=float(np.mean(taus)) if taus else None,
        kendall_queries=len(taus),
        score_difference_mean=float(np.mean(apart)) if apart else None,
        score_difference_max=max(apart, default=None),
        score_documents=len(apart),
    )


def _grouped(listed: Listed) -> list[set[str]]:
    weights = sorted({w for _, w in listed}, reverse=True)
    return [{n for n, w in listed if w == weight} for weight in weights]
