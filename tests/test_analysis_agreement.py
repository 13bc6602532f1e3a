"""Agreement: totals, sets, order, ties, RBO, and the causes of differences."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from records import OUTCOMES, Study, good_answer
from searchbench.analysis.agreement import agreement, ranking
from searchbench.analysis.agreement.agreement import Pair
from searchbench.cli.verify import _differ
from searchbench.record import Trial, open_record
from searchbench.report.tables import agreement as tables
from searchbench.study.plan import Require

Change = Callable[[int, dict[str, Any]], Mapping[str, Any]]


def agree(
    tmp_path: Path,
    change: Change,
    require: Require = "totals",
    first: Change = lambda q, a: {},
    **b: Any,
) -> Pair:
    """Compare good answers with changed ones, 40 queries. ``first``: changes of the former."""
    study = Study(blocks=1, control=None, queries=40)
    study.add("a", seconds=1.5, answer=lambda q: good_answer(q) | dict(first(q, good_answer(q))))
    study.add(
        "b", seconds=1.5, answer=lambda q: good_answer(q) | dict(change(q, good_answer(q))), **b
    )
    record = open_record(study.write(tmp_path / "record"))
    first, second = (agreement.read_answers(record, t) for t in by_treatment(record.trials))
    rows = record.queries("beef")
    return agreement.compare(first, second, require=require, k=10, queries=rows)


def by_treatment(trials: list[Trial]) -> list[Trial]:
    return sorted(trials, key=lambda t: t.treatment)


def rbo_by_definition(s: list[int], t: list[int], p: float) -> float:
    """Equation 32 of Webber, Moffat and Zobel (2010), written down as it stands."""
    short, long = sorted((s, t), key=len)
    n, m = len(short), len(long)
    if not m:
        return 1.0
    if not n:
        return 0.0

    def x(d: int) -> int:
        return len(set(short[:d]) & set(long[:d]))

    total = sum(x(d) / d * p**d for d in range(1, m + 1))
    total += sum(x(n) * (d - n) / (n * d) * p**d for d in range(n + 1, m + 1))
    return (1 - p) / p * total + ((x(m) - x(n)) / m + x(n) / n) * p**m


def lists_of(rows: list[list[int]], k: int, scores: list[list[float]] | None = None) -> Any:
    offsets = np.concatenate(([0], np.cumsum([len(r) for r in rows])))
    flat = np.array([v for row in rows for v in row], dtype=np.int32)
    given = scores or [[float(-i) for i in range(len(r))] for r in rows]
    return ranking.Lists(
        ranking.as_matrix(flat, offsets, k, -1),
        ranking.as_matrix(np.array([v for r in given for v in r], dtype=float), offsets, k, np.nan),
        np.diff(offsets),
        np.array([len(r) == k for r in rows]),
    )


def test_rbo_is_that_of_the_paper_also_for_lists_of_unequal_length() -> None:
    rng = np.random.default_rng(2)
    a = [rng.permutation(15)[: rng.integers(0, 11)].tolist() for _ in range(200)]
    b = [rng.permutation(15)[: rng.integers(0, 11)].tolist() for _ in range(200)]
    found = ranking.match(lists_of(a, 10), lists_of(b, 10)).rbo
    expected = [rbo_by_definition(x, y, 0.9) for x, y in zip(a, b, strict=True)]
    assert found == pytest.approx(expected, abs=1e-12)


def test_order_with_ties_is_the_same_exactly_if_no_pair_is_strictly_reversed() -> None:
    rng = np.random.default_rng(9)
    rows: dict[str, list[Any]] = {"a": [], "b": [], "score_a": [], "score_b": []}
    expected = []
    for _ in range(400):
        b = rng.permutation(6).tolist() if rng.random() < 0.5 else [1, 0, 2, 3, 4, 5]
        s, t = (sorted(rng.integers(1, 4, 6).astype(float).tolist(), reverse=True) for _ in "ab")
        for name, value in zip(rows, (list(range(6)), b, s, t), strict=True):
            rows[name].append(value)
        place = {document: t[i] for i, document in enumerate(b)}
        reversed_pairs = [
            (i, j)
            for i, j in itertools.combinations(range(6), 2)
            if (s[i] - s[j]) * (place[i] - place[j]) < 0
        ]
        ordered = len(set(s)) > 1 and len(set(t)) > 1
        expected.append(ordered and not reversed_pairs)
    a_lists = lists_of(rows["a"], 6, rows["score_a"])
    b_lists = lists_of(rows["b"], 6, rows["score_b"])
    assert ranking.match(a_lists, b_lists).order_same.tolist() == expected
    assert 0 < sum(expected) < 400


def test_the_same_answers_agree_in_everything(tmp_path: Path) -> None:
    found = agree(tmp_path, lambda q, a: {}, "order").agreement
    assert (found.totals_match, found.top_k_set_match, found.top_k_order_match) == (1, 1, 1)
    assert found.rbo_mean == 1
    assert found.causes == {}
    assert found.agreeing == 40


def test_other_totals_of_plain_terms_are_put_down_to_analysis(tmp_path: Path) -> None:
    pair = agree(tmp_path, lambda q, a: {"total": a["total"] + 1} if q < 4 else {})
    assert pair.agreement.totals_match == 0.9
    assert pair.agreement.causes == {agreement.ANALYSIS: 4}
    assert pair.agreeing.tolist() == list(range(4, 40))
    example = pair.agreement.examples[0]
    assert (example.query, example.total_a, example.total_b) == (0, 20, 21)
    assert example.hits_a[0] == ("d0-0", 10.0)


def test_terms_on_record_tell_analysis_from_operators(tmp_path: Path) -> None:
    def sees(other: dict[str, list[str]]) -> dict[str, Any]:
        return {"terms": {"asked": 4, "other": other}}

    study = Study(blocks=1, control=None, queries=4)
    study.add("a", seconds=1.5, extra=sees({}))
    study.add(
        "b",
        seconds=1.5,
        answer=lambda q: good_answer(q) | {"total": 7},
        extra=sees({"1": ["word1", "commons"]}),
    )
    record = open_record(study.write(tmp_path / "record"))
    a, b = (agreement.read_answers(record, t) for t in by_treatment(record.trials))
    found = agreement.compare(a, b, require="totals", k=10, queries=record.queries("beef"))
    assert found.agreement.causes == {
        agreement.OPERATOR: 3,
        agreement.ANALYSIS: 1,
    }


def test_hits_tied_with_the_cut_may_swap(tmp_path: Path) -> None:
    tied = {"scores": [10.0] * 5 + [1.0] * 5}

    def swap(q: int, a: dict[str, Any]) -> Mapping[str, Any]:
        return {**tied, "ids": [*a["ids"][:9], "stranger"]} if q % 2 else tied

    study_answers = agree(tmp_path, swap, "set").agreement
    # a's own last score is not tied, so there the swap is a real difference ...
    assert study_answers.top_k_set_match == 0.5
    both = Study(blocks=1, control=None)
    both.add("a", seconds=1.5, answer=lambda q: good_answer(q) | tied)
    both.add("b", seconds=1.5, answer=lambda q: good_answer(q) | swap(q, good_answer(q)))
    record = open_record(both.write(tmp_path / "both"))
    a, b = (agreement.read_answers(record, t) for t in by_treatment(record.trials))
    found = agreement.compare(a, b, require="order", k=10).agreement
    # ... and where both are tied at the cut, it is none.
    assert found.top_k_set_match == found.top_k_order_match == 1
    assert found.causes == {agreement.TIE: 20}
    assert found.agreeing == 40


def test_hits_above_the_cut_may_not_be_missing(tmp_path: Path) -> None:
    tied = {"scores": [10.0] + [1.0] * 9}
    study = Study(blocks=1, control=None)
    study.add("a", seconds=1.5, answer=lambda q: good_answer(q) | tied)
    study.add(
        "b",
        seconds=1.5,
        answer=lambda q: good_answer(q) | tied | {"ids": ["other", *good_answer(q)["ids"][1:]]},
    )
    record = open_record(study.write(tmp_path / "record"))
    a, b = (agreement.read_answers(record, t) for t in by_treatment(record.trials))
    assert agreement.compare(a, b, require="set", k=10).agreement.top_k_set_match == 0


FLAT = {"scores": [1.0] * 10}


def strangers(q: int, a: dict[str, Any]) -> Mapping[str, Any]:
    return {"ids": [f"stranger{q}-{i}" for i in range(10)]}


@pytest.mark.parametrize("require", ["set", "order"])
def test_lists_of_one_score_are_undecidable_and_never_the_same(
    tmp_path: Path, require: Require
) -> None:
    pair = agree(
        tmp_path, lambda q, a: {**FLAT, **strangers(q, a)}, require, first=lambda q, a: FLAT
    )
    found = pair.agreement
    assert (found.top_k_set_match, found.top_k_order_match) == (0, 0)
    assert (found.agreeing, found.differing, found.without_order) == (0, 0, 40)
    assert found.causes == {agreement.UNDECIDED: 40}


def test_identical_lists_of_one_score_are_the_same_set_and_have_no_order(tmp_path: Path) -> None:
    found = agree(tmp_path, lambda q, a: FLAT, "order", first=lambda q, a: FLAT).agreement
    assert (found.top_k_set_match, found.top_k_order_match) == (1, 0)
    assert (found.agreeing, found.differing, found.without_order) == (0, 0, 40)
    assert found.causes == {agreement.UNDECIDED: 40}


def test_where_all_hits_are_listed_one_score_hides_no_other_documents(tmp_path: Path) -> None:
    flat = {**FLAT, "total": 10}
    pair = agree(tmp_path, lambda q, a: {**flat, **strangers(q, a)}, "set", first=lambda q, a: flat)
    assert (pair.agreement.differing, pair.agreement.without_order) == (40, 0)


def test_a_list_of_one_hit_of_many_has_no_order_either() -> None:
    one, other = lists_of([[1], [1]], 1, [[2.0]] * 2), lists_of([[1], [7]], 1, [[2.0]] * 2)
    found = ranking.match(one, other)
    assert found.set_same.tolist() == found.order_same.tolist() == [True, False]
    assert found.undecided.tolist() == [False, True]


def test_where_totals_are_required_it_is_known_how_many_top_k_are_the_same(tmp_path: Path) -> None:
    def change(q: int, a: dict[str, Any]) -> Mapping[str, Any]:
        return {"total": 7} if q < 10 else strangers(q, a) if q < 30 else {}

    found = agree(tmp_path, change).agreement
    assert (found.agreeing, found.same_top_k, found.differing) == (30, 10, 10)


def test_queries_on_which_both_find_nothing_are_counted(tmp_path: Path) -> None:
    def nothing(q: int, a: dict[str, Any]) -> Mapping[str, Any]:
        return {"total": 0, "ids": [], "scores": []} if q < 30 else {"total": 7} if q > 35 else {}

    found = agree(tmp_path, nothing, first=lambda q, a: nothing(min(q, 35), a)).agreement
    assert (found.agreeing, found.empty) == (36, 30)


def test_queries_that_find_nothing_are_no_agreement_on_first_hits(tmp_path: Path) -> None:
    none = {"total": 0, "ids": [], "scores": []}

    def other(q: int, a: dict[str, Any]) -> Mapping[str, Any]:
        return none if q < 13 else strangers(q, a) if q < 38 else {}

    pair = agree(tmp_path, other, first=lambda q, a: none if q < 13 else {}).agreement
    assert (pair.agreeing, pair.empty, pair.without_hits, pair.same_top_k) == (40, 13, 13, 2)
    assert pair.top_k_set_match == pair.top_k_order_match == pytest.approx(2 / 27)
    assert pair.rbo_mean == pytest.approx(2 / 27)
    (cells,) = tables.agreement([pair], {}).rows
    assert [cell.text for cell in cells[1:5]] == ["40", "100 %", "13", "7.4 %"]


def test_where_no_query_lists_a_hit_the_agreement_on_first_hits_is_unknown(tmp_path: Path) -> None:
    none = {"total": 0, "ids": [], "scores": []}
    pair = agree(tmp_path, lambda q, a: none, first=lambda q, a: none).agreement
    assert (pair.totals_match, pair.same_top_k, pair.without_hits) == (1, 0, 40)
    assert (pair.top_k_set_match, pair.top_k_order_match, pair.rbo_mean) == (None, None, None)


def complete(q: int, a: dict[str, Any]) -> dict[str, Any]:
    """All that match the first queries: three documents."""
    return {"total": 3, "ids": a["ids"][:3], "scores": a["scores"][:3]} if q < 20 else {}


def test_lists_of_all_that_match_are_no_evidence_of_ranking(tmp_path: Path) -> None:
    """The one side gives one score to all: the same three documents, and strangers of more."""

    def flat(q: int, a: dict[str, Any]) -> Mapping[str, Any]:
        made = complete(q, a) or strangers(q, a)
        return made | {"scores": [1.0] * len(made["ids"])}

    never = agree(tmp_path / "a", flat, first=complete).agreement
    assert (never.agreeing, never.same_top_k, never.ranked_alike) == (40, 20, (0, 20))
    alike = agree(tmp_path / "b", complete, first=complete).agreement
    assert alike.ranked_alike == (20, 20)

    def neither(q: int, a: dict[str, Any]) -> Mapping[str, Any]:
        made = complete(q, a)
        return made | {"scores": [1.0] * len(made.get("ids", a["ids"]))}

    assert agree(tmp_path / "c", flat, first=neither).agreement.ranked_alike == (0, 0)

    # Two hits in the same order as often as tosses of a coin make it, and always.
    for lot, ranked in ((True, (0, 40)), (False, (40, 40))):

        def two(q: int, a: dict[str, Any], lot: bool = lot) -> Mapping[str, Any]:
            ids = a["ids"][:2]
            return {"total": 2, "ids": ids[::-1] if lot and q % 2 else ids, "scores": [2.0, 1.0]}

        found = agree(tmp_path / f"e{lot}", two, first=lambda q, a: two(q, a, lot=False)).agreement
        assert found.ranked_alike == ranked

    def one_hit(q: int, a: dict[str, Any]) -> Mapping[str, Any]:
        return {"total": 1, "ids": a["ids"][:1], "scores": [1.0]}

    assert agree(tmp_path / "d", one_hit, first=one_hit).agreement.ranked_alike == (0, 0)


@pytest.mark.parametrize(("same", "ranked"), [(4, 0), (20, 20), (0, 0)])
def test_ten_of_eleven_are_the_same_ten_by_chance_too(
    tmp_path: Path, same: int, ranked: int
) -> None:
    """Forty lists of ten of eleven matches: 3.6 are the same if one side ranks by lot."""

    def by_lot(q: int, a: dict[str, Any]) -> Mapping[str, Any]:
        ids = a["ids"][:10]
        other = ids if q < same else [*ids[:9], "the eleventh"]
        return {"total": 11, "ids": other, "scores": [20.0 - i for i in range(10)]}

    def first(q: int, a: dict[str, Any]) -> Mapping[str, Any]:
        return {"total": 11, "ids": a["ids"][:10], "scores": [10.0 - i for i in range(10)]}

    found = agree(tmp_path, by_lot, first=first).agreement
    assert found.ranked_alike == (ranked, 40)


def test_hits_that_are_missing_are_not_put_down_to_scoring(tmp_path: Path) -> None:
    found = agree(tmp_path, lambda q, a: {"ids": [], "scores": []}, "set").agreement
    assert found.causes == {agreement.NO_HITS: 40}
    assert (found.agreeing, found.differing) == (0, 40)


def test_a_document_that_is_listed_twice_is_a_difference() -> None:
    twice = lists_of([[1, 1, 2], [1, 2, 2]], 3, [[3.0, 2.0, 1.0], [3.0, 1.0, 1.0]])
    once = lists_of([[1, 2, 3], [1, 2, 3]], 3, [[3.0, 2.0, 1.0], [3.0, 1.0, 1.0]])
    for found in (ranking.match(twice, once), ranking.match(once, twice)):
        assert not found.set_same.any()
        assert not found.undecided.any()
        assert np.all(found.rbo < 1)


def test_other_order_of_the_same_documents_is_scoring(tmp_path: Path) -> None:
    def turned(q: int, a: dict[str, Any]) -> Mapping[str, Any]:
        return {"ids": a["ids"][::-1]}

    found = agree(tmp_path, turned, "order").agreement
    assert found.causes == {agreement.SCORING: 40}
    assert found.top_k_set_match == 1
    assert found.top_k_order_match == 0
    assert found.agreeing == 0
    assert (found.rbo_mean or 0) < 0.9


def test_one_engine_with_other_parts_differs_by_part_statistics(tmp_path: Path) -> None:
    found = agree(tmp_path, lambda q, a: {"ids": a["ids"][::-1]}, parameters={"parts": 4}).agreement
    assert found.causes == {agreement.PARTS: 40}


def test_a_total_that_is_only_a_bound_is_truncation_even_if_equal(tmp_path: Path) -> None:
    pair = agree(tmp_path, lambda q, a: {"total_exact": False} if q == 5 else {})
    assert pair.agreement.causes == {agreement.TRUNCATION: 1}
    assert 5 not in pair.agreeing


def test_an_answer_from_a_part_of_the_index_is_partial_even_if_equal(tmp_path: Path) -> None:
    partial = OUTCOMES.index("partial")
    pair = agree(tmp_path, lambda q, a: {"outcome": partial} if q == 5 else {})
    assert pair.agreement.causes == {agreement.PARTIAL: 1}
    assert 5 not in pair.agreeing


def test_facets_must_be_the_same_but_not_their_spelling(tmp_path: Path) -> None:
    study = Study(blocks=1, control=None, queries=4)
    one, other = '{"a": [["x", 2]], "b": []}', '{ "b": [], "a": [["x", 2]] }'
    study.add("a", seconds=1.5, answer=lambda q: good_answer(q) | {"facets": one})
    study.add(
        "b",
        seconds=1.5,
        answer=lambda q: (
            good_answer(q) | {"facets": json.dumps({"a": [["x", 3]], "b": []}) if q == 2 else other}
        ),
    )
    record = open_record(study.write(tmp_path / "record"))
    a, b = (agreement.read_answers(record, t) for t in by_treatment(record.trials))
    pair = agreement.compare(a, b, require="totals", k=10)
    assert pair.agreement.causes == {agreement.EXTRAS: 1}
    assert pair.agreeing.tolist() == [0, 1, 3]


def test_errors_and_unsupported_queries_are_left_out_and_counted(tmp_path: Path) -> None:
    broken = {"outcome": 2, "error": "syntax", "total": None, "ids": [], "scores": []}
    pair = agree(
        tmp_path, lambda q, a: broken if q < 2 else {}, unsupported=((7, "upstream must"),)
    )
    found = pair.agreement
    assert (found.errors_a, found.errors_b) == (0, 2)
    assert (found.unsupported_a, found.unsupported_b) == (0, 1)
    assert found.queries == 37
    assert found.causes == {agreement.ERROR: 2}
    assert not {0, 1, 7} & set(pair.agreeing.tolist())


def test_scores_that_are_absent_leave_order_strict(tmp_path: Path) -> None:
    found = agree(tmp_path, lambda q, a: {"ids": a["ids"][::-1], "scores": None}, "order").agreement
    assert found.top_k_order_match == 0
    assert found.examples[0].hits_b[0][1] is None


TOP = {"scores": [9.0] + [1.0] * 9}


def others_below(n: int) -> Change:
    """The last ``n`` of ten hits are other documents."""
    return lambda q, a: {**TOP, "ids": [*a["ids"][: 10 - n], *(f"other{i}" for i in range(n))]}


@pytest.mark.parametrize(("n", "same"), [(4, 40), (5, 40), (6, 0), (9, 0)])
def test_a_tie_excuses_no_more_than_half_of_a_list(tmp_path: Path, n: int, same: int) -> None:
    found = agree(tmp_path, others_below(n), "set", first=lambda q, a: TOP).agreement
    assert (found.agreeing, found.same_top_k, found.differing) == (same, same, 0)
    assert found.without_order == 40 - same


def test_a_tie_excuses_no_document_of_another_score(tmp_path: Path) -> None:
    """Five of the first ten are the same documents with the same scores, so both have one scale."""
    top = [10.0, 9.0, 8.0, 7.0, 6.0]

    def last(score: float) -> Change:
        return lambda q, a: {**others_below(5)(q, a), "scores": top + [score] * 5}

    for score, differing in ((3.5, 0), (1.5, 40)):
        found = agree(
            tmp_path / str(score), last(score), "set",
            first=lambda q, a: {"scores": top + [3.5] * 5},
        ).agreement  # fmt: skip
        assert (found.differing, found.without_order) == (differing, 0)


def test_a_tie_excuses_no_more_documents_than_match(tmp_path: Path) -> None:
    few = {"total": 11}
    for n, differing in ((1, 0), (2, 40)):
        found = agree(
            tmp_path / str(n), lambda q, a, n=n: {**others_below(n)(q, a), **few}, "set",
            first=lambda q, a: {**TOP, **few},
        ).agreement  # fmt: skip
        assert (found.differing, found.without_order) == (differing, 0)
    flat = agree(
        tmp_path / "flat", lambda q, a: {**FLAT, **strangers(q, a), **few}, "set",
        first=lambda q, a: {**FLAT, **few},
    ).agreement  # fmt: skip
    assert (flat.differing, flat.without_order) == (40, 0)


def test_whole_numbers_that_are_near_are_no_tie(tmp_path: Path) -> None:
    times = {"scores": [1_700_000_000.0 - 60 * i for i in range(10)]}
    found = agree(
        tmp_path, lambda q, a: {**times, "ids": a["ids"][::-1]}, "order", first=lambda q, a: times
    ).agreement
    assert found.top_k_order_match == 0
    assert found.differing == 40


@pytest.mark.parametrize(
    ("alike", "by_chance", "more"),
    [(1, 1e-6, True), (1, 0.5, False), (15, 15.0, False), (30, 15.0, True), (0, 0.0, False),
     (2000, 1000.0, True), (1000, 1000.0, False)],
)  # fmt: skip
def test_lists_in_one_order_are_held_against_chance_however_many(
    alike: int, by_chance: float, more: bool
) -> None:
    assert agreement._more_than(alike, by_chance) is more


def test_verify_counts_what_differs_in_any_way_and_nothing_that_cannot_be_decided(
    tmp_path: Path,
) -> None:
    facets = agree(tmp_path / "f", lambda q, a: {"facets": '{"a": [["x", 1]]}'}).agreement
    assert (facets.totals_match, _differ(facets)) == (1, True)
    fails = agree(
        tmp_path / "e", lambda q, a: {"error": "no"} if q < 16 else {}
    ).agreement  # fmt: skip
    assert (fails.totals_match, _differ(fails)) == (1, True), "one side alone answers 16 of 40"
    totals = agree(tmp_path / "t", lambda q, a: {"total": a["total"] + 1}, "set").agreement
    assert (totals.top_k_set_match, _differ(totals)) == (1, True)

    def flat(q: int, a: dict[str, Any]) -> Mapping[str, Any]:
        return {"scores": [1.0] * len(a["scores"])}

    undecided = agree(tmp_path / "u", flat, "order", first=flat).agreement
    assert (undecided.top_k_order_match, _differ(undecided)) == (0, False)
    assert not _differ(agree(tmp_path / "s", lambda q, a: {}).agreement)
