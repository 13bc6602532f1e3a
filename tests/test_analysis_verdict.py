"""The verdict: its sentences where many systems meet, and its table in a terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from records import Array, Server, Study, by_query, lognormal
from searchbench.analysis.compare import systems
from searchbench.analysis.compare.verdict import clip, decide
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import (
    Comparison,
    Curve,
    Estimate,
    Interval,
    TreatmentResult,
    Verdict,
)
from searchbench.analysis.words import most_frequent
from searchbench.record import open_record
from searchbench.record.trial import Load


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("tantivy clients=8", "tantivy clients=8"),
        ("postgresql match=phrase clients=8", "postgresql phrase clients=8"),
        ("lucene match=any merged=true parts=10", "lucene any merged=true parts=10"),
        ("memory=90MB layout=4 parts on 2 disks", "90MB 4 parts on 2 disks"),
        ("cores=half a core searcher=shared clients=2", "half a core shared clients=2"),
        ("elasticsearch-two match=phrase clients=8", "elasticsearch-t…hrase clients=8"),
    ],
)
def test_a_label_that_is_too_long_keeps_what_tells_it_apart(label: str, shown: str) -> None:
    assert clip(label, 31) == shown


def many(tmp_path: Path, noise: float) -> Verdict:
    """Five systems, each 1.5 times as slow as the one before, at two settings and two questions."""
    study = Study(blocks=4, block_noise=noise)
    for mode in ("any", "all"):
        for clients in (1, 2):
            for place, system in enumerate(("a", "b", "c", "d", "e")):
                study.add(
                    f"{system}-{mode}-{clients}",
                    system=system,
                    server=lognormal(0.002 * 1.5**place, 0.02),
                    clients=clients,
                    seconds=3,
                    levels={"system": system, "queries.match": mode, "load.clients": clients},
                )
    return judge(open_record(study.write(tmp_path / "r"))).verdict


def test_many_systems_are_told_in_one_sentence_and_each_question_by_itself(tmp_path: Path) -> None:
    verdict = many(tmp_path, noise=0.0)
    assert "Of 5 systems a is the best by throughput" in verdict.decision
    assert verdict.decision.count("settings") == 1
    found = re.search(
        r"ratios it is ([0-9.]+) times \(95 % interval [0-9.–]+\) as good as b, ([0-9.]+) times",
        verdict.decision,
    )
    assert found is not None, verdict.decision
    assert float(found[1]) == pytest.approx(1.5, rel=0.1)
    assert float(found[2]) == pytest.approx(2.25, rel=0.1)
    assert "Asked match=any: " in verdict.decision
    assert "Asked match=all: " in verdict.decision
    assert verdict.best is None, "there is no best across questions"
    assert [line[-1] for line in verdict.lines].count("in the lead") == 2
    assert "leads with" in verdict.decision
    assert "not shown to be better than 4 of the 9 others" in verdict.decision


def test_where_nothing_is_resolved_no_system_is_called_the_best(tmp_path: Path) -> None:
    study = Study(blocks=2, block_noise=0.5, seed=3)
    for system in "abcd":
        for clients in (1, 2):
            study.add(
                f"{system}-{clients}",
                system=system,
                server=lognormal(0.003),
                clients=clients,
                seconds=1.5,
                levels={"system": system, "load.clients": clients},
            )
    verdict = judge(open_record(study.write(tmp_path / "r"))).verdict
    assert "Not resolved: which of 4 systems is the best" in verdict.decision
    assert "Of 4 systems" not in verdict.decision


NONE = Curve("", (), ())


def rated(name: str, rate: float, **levels: Any) -> TreatmentResult:
    """A treatment whose system is the first word of its name."""
    figures = {"throughput": Estimate(rate, "queries/s", 5)}
    system = name.split()[0]
    levels = {"system": system, **levels}
    return TreatmentResult(name, name, system, levels, figures, NONE, NONE, ())


def compared(
    a: TreatmentResult, b: TreatmentResult, *, clear: bool = True, measured: int | None = 400
) -> Comparison:
    """``b`` against ``a`` by their figures over 400 queries; resolved if ``clear``."""
    ratio = b.figures["throughput"].value / a.figures["throughput"].value
    verdict: Literal["faster", "slower", "not resolved"] = "faster" if ratio > 1 else "slower"
    span = Interval(ratio * 0.99, ratio * 1.01, 0.95, "t over blocks, on logs")
    return Comparison(
        a.treatment, b.treatment, "throughput", verdict if clear else "not resolved",
        Estimate(ratio, "ratio", 5, span), 0.001, 1.02, 400, 0,
        "" if clear else "the interval includes 1, that is, no difference", measured,
    )  # fmt: skip


def decided(treatments: Sequence[TreatmentResult], found: Sequence[Comparison]) -> Verdict:
    loads = {t.treatment: Load(kind="closed", clients=4) for t in treatments}
    return decide(treatments, found, loads, "throughput", None, "totals")


def ranks(verdict: Verdict) -> dict[str, str]:
    return {line[0]: line[-1] for line in verdict.lines}


def test_the_best_is_better_than_every_rival_and_all_say_so() -> None:
    a, b, c = (rated(name, rate) for name, rate in (("a", 300), ("b", 200), ("c", 100)))
    verdict = decided([c, b, a], [compared(*pair) for pair in combinations((c, b, a), 2)])
    assert verdict.best == "a"
    assert "a is the best with 300 queries per second" in verdict.decision
    assert ranks(verdict) == {"a": "the best", "b": "1.5x faster", "c": "3x faster"}


def test_one_win_does_not_make_the_best_where_another_is_not_told_apart() -> None:
    a, b, c = (rated(name, rate) for name, rate in (("a", 300), ("b", 299), ("c", 100)))
    found = [compared(a, b, clear=False), compared(a, c), compared(b, c)]
    verdict = decided([a, b, c], found)
    assert verdict.best is None
    assert verdict.resolved
    assert "a leads with 300 queries per second, not told apart from b" in verdict.decision
    assert (
        "a is better than 1 of the 2 treatments that it was compared with; it answers 3 times"
        in verdict.decision
    )
    assert "the best" not in verdict.decision
    assert ranks(verdict) == {"a": "in the lead", "b": "not resolved", "c": "3x faster"}


def test_a_rival_without_a_comparison_or_a_result_keeps_a_leader_from_being_the_best() -> None:
    a, b, c = (rated(name, rate) for name, rate in (("a", 300), ("b", 200), ("c", 100)))
    verdict = decided([a, b, c], [compared(a, b), compared(b, c)])
    assert verdict.best is None
    assert "a leads with 300 queries per second, not compared with c" in verdict.decision
    assert ranks(verdict)["c"] == "(3x, untested)"
    failed = TreatmentResult("d", "d", "d", {"system": "d"}, {}, NONE, NONE, ())
    lost = Comparison("a", "d", "throughput", "not comparable", None, None, 1.0, 400, 0, "it died")
    verdict = decided([a, b, failed], [compared(a, b), lost])
    assert verdict.best is None
    assert "not comparable with d" in verdict.decision
    assert ranks(verdict)["d"] == "no valid trial", "it is not left out of the table"


def test_nobody_is_in_the_lead_of_whom_nothing_was_compared_with() -> None:
    a, b = rated("a", 300), rated("b", 200)
    lost = Comparison("a", "b", "throughput", "not comparable", None, None, 1.0, 400, 0, "why not")
    assert ranks(decided([a, b], [lost])) == {"a": "-", "b": "not comparable"}
    failed = TreatmentResult("b", "b", "b", {"system": "b"}, {}, NONE, NONE, ())
    assert ranks(decided([a, failed], [lost])) == {"a": "-", "b": "no valid trial"}
    c = rated("c", 100)
    verdict = decided([a, failed, c], [lost])
    assert "leads" not in verdict.decision


def test_reasons_are_counted_by_their_kind_and_not_by_their_figures() -> None:
    said = ["foreign CPU: 28 % of core 0", "steal: 9 %", "foreign CPU: 35 % of core 1"]
    assert most_frequent(said) == ("foreign CPU, e.g. 28 % of core 0", 2)
    assert most_frequent(["it died"] * 3) == ("it died", 3)


def test_who_wins_over_the_queries_that_agree_leads_whatever_its_figure_over_all() -> None:
    a, b = rated("a", 300), rated("b", 200)
    found = compared(rated("a", 200), rated("b", 300))
    verdict = decided([a, b], [found])
    assert verdict.best == "b"
    assert "b answers 1.5 times" in verdict.decision
    assert ranks(verdict) == {"b": "the best", "a": "1.5x faster"}


def test_who_has_more_comparable_opponents_does_not_win_by_that() -> None:
    fast, second = rated("fast", 10_000), rated("second", 1_000)
    slow = [rated(name, 10) for name in ("x", "y", "z")]
    found = [compared(second, fast), *(compared(t, second) for t in slow)]
    verdict = decided([*slow, second, fast], found)
    assert "fast leads by throughput" in verdict.decision
    assert "it is not compared with x, y and z" in verdict.decision
    assert "10 times (95 % interval 9.9–10.1) as good as second." in verdict.decision
    assert "the best" not in verdict.decision


def test_systems_that_no_comparison_connects_are_not_ranked() -> None:
    group = [rated(name, rate) for name, rate in (("a", 30), ("b", 20), ("c", 10))]
    other = [rated("d", 3000), rated("e", 1000)]
    found = [compared(*pair) for own in (group, other) for pair in combinations(own, 2)]
    verdict = decided([*group, *other], found)
    assert "Of 3 systems that can be compared a leads by throughput" in verdict.decision
    assert "not compared with d and e" in verdict.decision
    assert verdict.best is None


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (False, "Of 4 systems a is the best by throughput at all otherwise equal settings"),
        (True, "Of 4 systems a leads by throughput: it is better in 5 of 6 comparisons at"),
    ],
)
def test_of_many_systems_the_best_wins_at_every_setting(lost: bool, said: str) -> None:
    treatments, found = [], []
    for clients in (1, 2):
        own = [
            rated(f"{name} {clients}", rate * clients, clients=clients)
            for name, rate in (("a", 80), ("b", 40), ("c", 20), ("d", 10))
        ]
        treatments += own
        for x, y in combinations(own, 2):
            far = lost and clients == 2 and {x.system, y.system} == {"a", "d"}
            found.append(compared(x, y, clear=not far))
    decision = decided(treatments, found).decision
    assert said in decision
    assert ("in one or more of them it is not told apart from d" in decision) is lost


def test_who_lacks_a_setting_at_which_the_others_met_only_leads() -> None:
    treatments, found = [], []
    for clients in (1, 2):
        own = [
            rated(f"{name} {clients}", rate * clients, clients=clients)
            for name, rate in (("a", 80), ("b", 40), ("c", 20), ("d", 10))
            if name != "a" or clients == 1
        ]
        treatments += own
        found += [compared(x, y) for x, y in combinations(own, 2)]
    verdict = decided(treatments, found)
    assert "a leads by throughput" in verdict.decision
    assert "but it was compared at only 1 of 2 otherwise equal settings" in verdict.decision
    assert verdict.best is None
    # A rival that lacks one takes nothing from who was compared at all.
    both = [t for t in treatments if t.system != "d" or t.levels["clients"] == 1]
    quick = [rated(f"a {clients}", 800 * clients, clients=clients) for clients in (1, 2)]
    found = [
        compared(x, y)
        for x, y in combinations([*(t for t in both if t.system != "a"), *quick], 2)
        if x.levels["clients"] == y.levels["clients"]
    ]
    verdict = decided([*(t for t in both if t.system != "a"), *quick], found)
    assert "a is the best by throughput" in verdict.decision


def test_the_queries_measured_on_both_sides_stand_beside_the_ratio() -> None:
    a, b = rated("a", 300), rated("b", 100)
    for measured, said in (
        (400, "over all 400 queries, on each of which both return the same totals, all of them"),
        (380, "return the same totals, at least 380 of them measured on both sides"),
        (36, "over only 36 queries measured on both sides, of all 400 queries, on each of which"),
        (None, "over all queries of each, as it is not known on which both return the same"),
    ):
        verdict = decided([a, b], [compared(b, a, measured=measured)])
        assert said in verdict.decision
        assert verdict.best == ("a" if measured in (400, 380) else None)
    c = rated("c", 50)
    found = [compared(b, a), compared(c, a, measured=36), compared(c, b)]
    verdict = decided([a, b, c], found)
    assert "compared over too few queries with c" in verdict.decision
    assert verdict.decision.count("over only 36 queries measured on both sides") == 1
    assert verdict.best is None


def test_where_totals_are_required_it_stands_there_on_how_many_the_first_hits_differ() -> None:
    a, b = rated("a", 300), rated("b", 100)
    for same, empty, said in (
        (31, 0, "(of these, the first hits are the same on 31)"),
        (0, 13, "(13 of these find nothing on either side; of the 387 that find something, the "
                "first hits were seen to be the same on none)"),
        (387, 13, "of the 387 that find something, the first hits are the same on all)"),
        (400, 0, "(and the same first hits)"),
        (0, 400, "(all of these find nothing on either side)"),
    ):  # fmt: skip
        found = replace(compared(b, a), same_top_k=same, empty=empty)
        assert said in decided([a, b], [found]).decision


def test_the_fewest_queries_that_a_block_measured_on_both_sides_are_in_the_comparison(
    tmp_path: Path,
) -> None:
    study = Study(blocks=3, queries=200)
    for system, median_s in (("tantivy", 0.002), ("sqlite", 0.02)):
        server = by_query(median_s, {}, 0.05)  # each is asked everything before the window
        study.add(system, system=system, server=server, clients=1, seconds=7.0, warmup_s=5.0)
    found = judge(open_record(study.write(tmp_path / "r")))
    assert found.verdict.resolved
    assert found.verdict.best is None
    for c in found.comparisons:
        assert c.queries_used == 200
        assert c.queries_measured is not None
        assert 80 < c.queries_measured < 120
    assert f"over only {found.comparisons[0].queries_measured} queries" in found.verdict.decision


@pytest.mark.parametrize(("share", "resolved"), [(0.0, True), (0.0004, True), (0.004, False)])
def test_a_tail_that_failed_requests_may_hide_is_not_resolved(
    share: float, resolved: bool, tmp_path: Path
) -> None:
    study = Study(blocks=3, queries=40)
    study.add("answers", server=lognormal(0.008), seconds=12, warmup_s=1)
    server = lognormal(0.004)
    study.add("fails", system="sqlite", server=server, seconds=12, warmup_s=1, error_share=share)
    found = judge(open_record(study.write(tmp_path / "r")))
    c = next(c for c in found.comparisons if c.metric == "service_p99")
    assert (c.verdict == "faster") is resolved
    assert ("could make the whole difference" in c.reason) is not resolved
    assert (c.failed[0], c.failed[1] > 0) == (0, share > 0)
    assert ("failed requests" in c.reason) is (share > 0)
    assert ("Failed requests are in none of these figures: 0." in found.verdict.decision) is (
        share > 0
    )
    assert found.verdict.best == "fails"  # by throughput, where they are too few to make it


def test_a_rate_that_failed_requests_may_make_is_not_resolved(tmp_path: Path) -> None:
    def dear(factor: float) -> Server:
        def server(due: Array, query: Array, rng: np.random.Generator) -> Array:
            cheap = 0.004 * np.exp(0.2 * rng.standard_normal(due.size))
            return np.where(rng.random(due.size) < 0.009, factor * cheap, cheap)

        return server

    study = Study(blocks=3, queries=40)
    study.add("answers", server=dear(100), seconds=12, warmup_s=1)
    study.add("fails", system="sqlite", server=dear(1), seconds=12, warmup_s=1, error_share=0.009)
    found = judge(open_record(study.write(tmp_path / "r")))
    c = next(c for c in found.comparisons if c.metric == "throughput")
    assert c.verdict == "not resolved"
    assert found.verdict.best is None
    assert "what sqlite failed to answer could make the whole difference" in found.verdict.decision


def test_what_all_ratios_have_in_common_is_said_once() -> None:
    a, b, c = (rated(name, rate) for name, rate in (("a", 300), ("b", 200), ("c", 100)))
    pairs = list(combinations((c, b, a), 2))
    decision = decided([c, b, a], [compared(*pair) for pair in pairs]).decision
    assert decision.startswith(
        "At otherwise equal settings b answers 2 times (95 % interval 1.98–2.02) as many queries "
        "per second as c."
    )
    assert decision.count("queries") == decision.count("queries per second") + 1
    assert "All ratios are over all 400 queries, on each of which both return" in decision
    fewer = [compared(*pair, measured=380 - i) for i, pair in enumerate(pairs)]
    decision = decided([c, b, a], fewer).decision
    assert "Where they rest on the fewest queries, ratios are over all 400" in decision
    assert "at least 378 of them" in decision


def test_of_a_difference_in_an_unknown_state_who_is_better_is_said_and_not_how_much() -> None:
    a, b = rated("a", 3000), rated("b", 100)
    verdict = decided([a, b], [replace(compared(b, a), state="unknown", state_floor=10.0)])
    assert "Whether both were steady is unknown: the difference is larger than" in verdict.decision
    assert ranks(verdict) == {"a": "the best", "b": "~30x faster"}
    steady = decided([a, b], [replace(compared(b, a), state="steady")])
    assert "unknown" not in steady.decision.replace("not known", "")


def test_of_several_settings_the_range_is_that_of_the_intervals() -> None:
    treatments = [
        rated(f"{name} {n}", rate * n, clients=n)
        for n in (1, 2)
        for name, rate in (("a", 80 + 10 * n), ("b", 40))
    ]
    a1, b1, a2, b2 = treatments
    found = [compared(b1, a1), compared(b2, a2)]
    said = decided(treatments, found).decision
    assert "a answers 2.23 to 2.52 times (the range of the 95 % intervals) as many" in said
    bare = [replace(c, ratio=replace(c.ratio, interval=None)) for c in found if c.ratio]
    assert "At otherwise equal settings a is better than b by" in decided(treatments, bare).decision
    found[1] = compared(b2, a2, clear=False)
    said = decided(treatments, found).decision
    assert (
        "At 1 of 2 otherwise equal settings a answers 2.25 times (95 % interval 2.23–2.27)" in said
    )


def test_no_mean_is_given_where_other_states_could_make_a_ratio() -> None:
    one, *rest = (rated(name, rate) for name, rate in (("a", 80), ("b", 40), ("c", 20), ("d", 10)))
    found = [compared(*pair) for pair in combinations((one, *rest), 2)]
    assert decided([one, *rest], found).decision.count(" as good as ") == 3
    cold = replace(found[0], verdict="not resolved", state="not steady", state_floor=math.inf)
    said = decided([one, *rest], [cold, *found[1:]]).decision
    assert "In the geometric mean of the ratios it is 4 times (95 % interval 3.96–4.04) as" in said
    assert "as good as b" not in said


def test_what_rests_on_one_query_is_not_called_the_best() -> None:
    a, b, c = (rated(name, rate) for name, rate in (("a", 300), ("b", 200), ("c", 100)))
    pairs = combinations((c, b, a), 2)
    found = [replace(compared(*pair, measured=1), queries_used=1) for pair in pairs]
    verdict = decided([c, b, a], found)
    assert verdict.best is None
    assert "a leads with 300 queries per second, compared on one query alone with" in (
        verdict.decision
    )
    assert "the best" not in verdict.decision
    two = decided([b, a], [replace(compared(b, a, measured=1), queries_used=1)])
    assert two.best is None
    assert "a only leads: it was compared on one query alone with b." in two.decision
    assert "only leads" not in decided([b, a], [compared(b, a)]).decision


def test_the_best_subject_wins_against_every_rival_at_every_load() -> None:
    """As in a sweep: a beats c, and b is told apart from neither."""
    a, b, c = (rated(name, rate) for name, rate in (("a", 300), ("b", 299), ("c", 290)))
    open_ones = {
        ("a", "b"): [compared(a, b, clear=False)],
        ("b", "c"): [compared(b, c, clear=False)],
    }
    assert systems.best("abc", open_ones | {("a", "c"): [compared(a, c)]}) is None
    all_won = {("a", "b"): [compared(a, b)], ("a", "c"): [compared(a, c)]}
    assert systems.best("abc", all_won) == "a"
    once_not = {("a", "c"): [compared(a, c), compared(a, c, clear=False)]}
    assert systems.best("abc", all_won | once_not) is None
    assert systems.best("abcd", all_won) is None, "never compared with d"
    assert systems.best("a", {}) is None
