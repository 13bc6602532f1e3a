"""Whole records with a known truth, judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import records
from records import Study, by_query, exponential, good_answer, lognormal, single_queue
from searchbench.analysis.frames import frames, tables
from searchbench.analysis.judge import judge, to_json
from searchbench.analysis.judgement import Comparison, Judgement, TrialResult
from searchbench.record import open_record


def judged(path: Path) -> Judgement:
    return judge(open_record(path))


def by_metric(judgement: Judgement, metric: str = "throughput") -> Comparison:
    return next(c for c in judgement.comparisons if c.metric == metric)


def test_a_threefold_difference_is_found_with_its_interval_and_the_queries_left_out(
    tmp_path: Path,
) -> None:
    found = judged(records.two_systems(tmp_path / "r", ratio=3.1))
    c = by_metric(found)
    assert (c.a, c.b, c.verdict) == ("sqlite", "tantivy", "faster")
    assert c.ratio is not None
    assert c.ratio.interval is not None
    assert c.ratio.interval.low <= 3.1 <= c.ratio.interval.high
    assert (c.queries_used, c.queries_left_out) == (38, 2)
    assert found.verdict.best == "tantivy"
    assert "tantivy answers 3.0" in found.verdict.decision or "3.1" in found.verdict.decision
    assert "2 queries were left out" in found.verdict.decision
    assert "noise floor of the A/A control is" in found.verdict.decision


def test_latencies_of_the_faster_system_count_as_faster_too(tmp_path: Path) -> None:
    found = judged(records.two_systems(tmp_path / "r", ratio=2.0))
    for metric in ("service_p50", "service_p99"):
        c = by_metric(found, metric)
        assert c.verdict == "faster"
        assert c.ratio is not None
        assert c.ratio.value == pytest.approx(2.0, rel=0.06)


def test_a_difference_below_the_noise_of_the_control_is_never_a_win(tmp_path: Path) -> None:
    study = Study(blocks=8, trial_noise=0.04, block_noise=0.0, seed=3)
    study.add("a", server=lognormal(0.004))
    study.add("b", system="sqlite", server=lognormal(0.004 / 1.01))
    found = judged(study.write(tmp_path / "r"))
    assert found.noise_floor is not None
    assert found.noise_floor.value > 1.01
    assert by_metric(found).verdict == "not resolved"
    assert found.verdict.best is None
    assert not found.verdict.resolved
    assert "Not resolved" in found.verdict.decision


def test_twins_of_one_system_are_hardly_ever_told_apart(tmp_path: Path) -> None:
    wins = 0
    for seed in range(12):
        study = Study(blocks=4, trial_noise=0.02, seed=seed, queries=8)
        study.add("a", server=lognormal(0.01), seconds=2.0)
        study.add("b", server=lognormal(0.01), seconds=2.0)
        wins += judged(study.write(tmp_path / str(seed))).verdict.resolved
    assert wins <= 1


def test_leaving_out_the_queries_that_differ_changes_the_ratio(tmp_path: Path) -> None:
    """b is fast only on query 0, which it answers wrongly."""
    study = Study(blocks=4, queries=5)
    study.add("a", server=by_query(0.002, {0: 40.0}))
    study.add(
        "b",
        system="sqlite",
        server=by_query(0.002, {}),
        answer=lambda q: good_answer(q) | ({"total": 1} if q == 0 else {}),
    )
    study.judging = {"agreement": {"require": "totals", "k": 10}}
    strict = by_metric(judged(study.write(tmp_path / "strict")))
    assert strict.ratio is not None
    assert strict.ratio.value == pytest.approx(1.0, rel=0.03)
    assert strict.verdict == "not resolved"
    study.judging = {"agreement": {"require": "none", "k": 10}}
    loose = by_metric(judged(study.write(tmp_path / "loose")))
    assert loose.ratio is not None
    assert loose.ratio.value == pytest.approx((4 + 40) / 5, rel=0.1)
    assert loose.queries_left_out == 0


def test_a_system_that_comes_less_far_in_the_log_is_compared_over_the_same_mix(
    tmp_path: Path,
) -> None:
    """b is 10 times as slow and so never comes to the expensive queries at the end of the log."""
    slow = dict.fromkeys(range(100, 200), 20.0)
    study = Study(blocks=3, queries=200)
    study.add("a", server=by_query(0.002, slow), clients=1, seconds=9.0)
    study.add("b", system="sqlite", server=by_query(0.02, slow), clients=1, seconds=2.9)
    found = judged(study.write(tmp_path / "r"))
    figures = [t.figures["throughput"].value for t in found.treatments]
    assert figures[0] / figures[1] < 2, "at face value"
    c = by_metric(found)
    assert c.ratio is not None
    assert c.ratio.value == pytest.approx(0.1, rel=0.1)
    assert "measured on both sides" in c.reason


def test_where_nothing_agrees_no_ratio_is_given(tmp_path: Path) -> None:
    study = Study(blocks=3)
    study.add("a")
    study.add("b", system="sqlite", answer=lambda q: good_answer(q) | {"total": 99})
    found = judged(study.write(tmp_path / "r"))
    assert {c.verdict for c in found.comparisons} == {"not comparable"}
    assert all(c.ratio is None for c in found.comparisons)
    assert "Not comparable" in found.verdict.decision
    assert "analysis" in by_metric(found).reason


@pytest.mark.parametrize("empty", [7, 8, 39, 40])
def test_agreement_on_nothing_found_is_said_and_alone_gives_no_ratio(
    tmp_path: Path, empty: int
) -> None:
    def answer(q: int) -> dict[str, Any]:
        return good_answer(q) | ({"total": 0, "ids": [], "scores": []} if q < empty else {})

    study = Study(blocks=3, queries=40)
    study.add("a", server=lognormal(0.004), answer=answer)
    study.add("b", system="sqlite", server=lognormal(0.002), answer=answer)
    found = judged(study.write(tmp_path / "r"))
    assert [f.number for f in found.findings if f.kind == "nothing found"] == (
        [f"{empty} of 40 queries of tantivy and sqlite"] if empty >= 8 else []
    )
    if empty < 40:
        assert f"{empty} of these find nothing on either side" in found.verdict.decision
        assert found.verdict.best == "b"
    else:
        assert found.verdict.best is None
        assert not found.verdict.resolved
        assert "both find nothing on any of the 40 queries" in found.verdict.decision


def test_the_level_of_agreement_that_the_study_requires_decides(tmp_path: Path) -> None:
    study = Study(blocks=2)
    study.add("a")
    study.add(
        "b",
        system="sqlite",
        answer=lambda q: good_answer(q) | ({"ids": good_answer(q)["ids"][::-1]} if q < 10 else {}),
    )
    for require, left_out in (("totals", 0), ("set", 0), ("order", 10)):
        study.judging = {"agreement": {"require": require, "k": 10}}
        assert by_metric(judged(study.write(tmp_path / require))).queries_left_out == left_out


def test_an_invalid_trial_is_shown_and_not_used(tmp_path: Path) -> None:
    found = judged(records.showcase(tmp_path / "r"))
    dead = next(t for t in found.treatments if t.treatment == "sqlite-4")
    assert [t.status for t in dead.trials] == ["invalid"] * 4
    assert all("server died" in t.reason for t in dead.trials)
    assert dead.figures == {}
    assert dead.service.x == ()
    failed = next(t for t in found.treatments if t.treatment == "sqlite-8")
    assert {t.status for t in failed.trials} == {"failed"}
    assert "deploy" in failed.trials[0].reason
    for c in found.comparisons:
        if {"sqlite-4", "sqlite-8"} & {c.a, c.b}:
            assert c.verdict == "not comparable"
            assert "is valid" in c.reason
    assert "4 invalid and 4 failed" in found.verdict.decision


def test_one_invalid_replicate_leaves_the_others_in_use(tmp_path: Path) -> None:
    path = records.two_systems(tmp_path / "r", blocks=4)
    trial = next((path / "trials").glob("*-b1-tantivy")) / "trial.json"
    about = json.loads(trial.read_text())
    about["host_window"]["by_core"][0]["steal_s"] = 5.0
    trial.write_text(json.dumps(about))
    found = judged(path)
    c = by_metric(found)
    assert c.ratio is not None
    assert c.ratio.n == 3
    assert c.verdict == "faster"


def test_below_two_blocks_nothing_is_resolved_and_it_says_why(tmp_path: Path) -> None:
    found = judged(records.two_systems(tmp_path / "r", blocks=1))
    c = by_metric(found)
    assert c.verdict == "not resolved"
    assert c.ratio is not None
    assert c.ratio.interval is None
    assert "at least 2" in c.reason


def test_an_interrupted_study_is_judged_as_far_as_it_goes(tmp_path: Path) -> None:
    study = Study(blocks=4, run_only=7)
    study.add("a")
    study.add("b", system="sqlite", server=lognormal(0.02))
    found = judged(study.write(tmp_path / "r"))
    assert any(f.kind == "incomplete" and f.number == "7 of 12 trials" for f in found.findings)
    assert by_metric(found).ratio is not None


@pytest.mark.parametrize("run_only", [0, 1])
def test_a_record_with_next_to_nothing_is_judged_without_an_exception(
    tmp_path: Path, run_only: int
) -> None:
    study = Study(blocks=2, run_only=run_only)
    study.add("a")
    study.add("b", system="sqlite")
    found = judged(study.write(tmp_path / "r"))
    assert found.verdict.decision
    assert not found.verdict.resolved
    json.dumps(to_json(found))


def test_a_stalling_server_has_its_computed_response_times(tmp_path: Path) -> None:
    found = judged(records.stalling_study(tmp_path / "r"))
    figures = found.treatments[0].figures
    for name, truth in (("p50", 0.005), ("p90", 0.305), ("p99", 0.485)):
        assert figures[f"response_{name}"].value == pytest.approx(truth, rel=0.01)
    assert figures["response_max"].value == pytest.approx(0.505, rel=0.001)
    assert found.metric == "response_p99"


def test_a_single_queue_has_the_response_times_of_the_theory(tmp_path: Path) -> None:
    """M/M/1 at half its capacity: response times are exponential with mean 1/(mu − lambda)."""
    study = Study(blocks=3, trial_noise=0.0, block_noise=0.0)
    study.add("q", server=single_queue(0.002), rate_per_s=250, seconds=60.0)
    figures = judged(study.write(tmp_path / "r")).treatments[0].figures
    mean = 1 / (500 - 250)
    assert figures["response_mean"].value == pytest.approx(mean, rel=0.05)
    assert figures["response_p50"].value == pytest.approx(0.6931 * mean, rel=0.05)
    assert figures["response_p99"].value == pytest.approx(4.605 * mean, rel=0.1)


def test_throughput_of_a_closed_loop_is_clients_by_cycle_time(tmp_path: Path) -> None:
    study = Study(blocks=3, trial_noise=0.0, block_noise=0.0)
    study.add("t", server=exponential(0.01), think_s=0.03, clients=20, seconds=20.0)
    found = judged(study.write(tmp_path / "r")).treatments[0].figures["throughput"]
    assert found.value == pytest.approx(20 / 0.04, rel=0.02)


def test_scaling_finds_the_law_and_the_level_that_serves_best(tmp_path: Path) -> None:
    found = judged(records.scaling_study(tmp_path / "r"))
    curve = found.scaling["load.clients"][0]
    assert curve.x == (1, 2, 4, 8, 16)
    assert all(a <= b <= c for a, b, c in zip(curve.low, curve.y, curve.high, strict=True))
    scale = next(s for s in found.scales if s.metric == "throughput")
    assert (scale.best, scale.best_not_resolved_from) == (8, ())
    assert "The best level of clients is 8" in found.verdict.decision
    assert scale.fit is not None
    assert scale.fit.parameters["sigma"] == pytest.approx(0.05, abs=0.03)
    assert scale.fit.parameters["kappa"] == pytest.approx(0.01, abs=0.003)
    assert scale.fit.peak == pytest.approx(9.7, abs=1.0)


def test_without_a_control_it_is_said_that_the_noise_is_unknown(tmp_path: Path) -> None:
    study = Study(blocks=3, control=None)
    study.add("a")
    study.add("b", system="sqlite", server=lognormal(0.02))
    found = judged(study.write(tmp_path / "r"))
    assert found.noise_floor is None
    (said,) = (f for f in found.findings if f.kind == "no A/A control")
    assert (said.number, said.remedy) == (
        "it was off", "Turn it on ([control] aa = true) and measure again."
    )  # fmt: skip
    assert "no valid A/A control" in found.verdict.decision


def test_where_no_twin_is_valid_it_is_not_said_that_the_control_was_off(tmp_path: Path) -> None:
    study = Study(blocks=3)
    study.add("a", error_share=0.3)
    study.add("b", system="sqlite", server=lognormal(0.02))
    found = judged(study.write(tmp_path / "r"))
    (said,) = (f for f in found.findings if f.kind == "no A/A control")
    assert said.number == "0 of 3 pairs are valid"
    assert said.remedy.startswith("See why the twins")


def test_what_the_lab_notes_in_every_trial_is_said_once(tmp_path: Path) -> None:
    note = {"kind": "busy machine", "number": "load 3", "meaning": "others run", "remedy": "stop"}
    study = Study(blocks=3)
    study.add("a", extra={"notes": [note]})
    study.add("b", extra={"notes": [note]})
    found = [f for f in judged(study.write(tmp_path / "r")).findings if f.kind == "busy machine"]
    assert [f.trial for f in found] == [""]


def test_other_documents_are_compared_but_it_is_said_that_answers_are_not(tmp_path: Path) -> None:
    study = Study(blocks=3)
    for i, (size, digest) in enumerate((("small", "one"), ("large", "two")), start=1):
        server = lognormal(0.004 * i, 0.05)
        study.add(size, levels={"corpus.size": i}, corpus={"digest": digest}, server=server)
    found = judged(study.write(tmp_path / "r"))
    c = by_metric(found)
    assert c.verdict == "slower"
    assert "answers are not compared" in c.reason
    assert found.agreement == ()


def test_answers_that_change_between_replicates_are_a_finding(tmp_path: Path) -> None:
    calls: list[int] = []

    def wavering(query: int) -> dict[str, Any]:
        calls.append(query)
        answer = good_answer(query)
        return answer | {"ids": answer["ids"][::-1]} if len(calls) > 40 and query == 1 else answer

    study = Study(blocks=2, control=None, under_load=0)
    study.add("a", answer=wavering)
    found = judged(study.write(tmp_path / "r")).findings
    numbers = [f.number for f in found if f.kind == "answers changed"]
    assert numbers == ["1 of 40 queries of tantivy in 1 of 2 trials"]


def test_fewer_hits_under_load_than_when_asked_alone_make_a_trial_invalid(tmp_path: Path) -> None:
    seen: dict[int, int] = {}

    def overloaded(query: int) -> dict[str, Any]:
        seen[query] = seen.get(query, 0) + 1
        return good_answer(query) | ({"total": 0, "ids": []} if seen[query] > 1 else {})

    study = Study(blocks=1, control=None)
    study.add("a", answer=overloaded)
    trial = judged(study.write(tmp_path / "r")).treatments[0].trials[0]
    assert trial.status == "invalid"
    assert "other answers under load" in trial.reason


def under_load(
    tmp_path: Path, first: dict[str, Any], later: dict[str, Any], changed: int = 200
) -> TrialResult:
    """40 queries asked alone, then 200 replies under load, of which the first few are others."""
    asked: list[int] = []

    def answer(query: int) -> dict[str, Any]:
        asked.append(query)
        return good_answer(query) | first | (later if 40 < len(asked) <= 40 + changed else {})

    study = Study(blocks=1, control=None, under_load=200)
    study.add("a", answer=answer)
    return judged(study.write(tmp_path / "r")).treatments[0].trials[0]


def other_answers(trial: TrialResult) -> list[str]:
    return [f.number for f in trial.findings if f.kind == "other answers under load"]


UNREADABLE = {"total": None, "ids": [], "scores": [], "error": "the reply cannot be read: no JSON"}


@pytest.mark.parametrize(("changed", "status"), [(190, "invalid"), (1, "valid")])
def test_replies_under_load_that_cannot_be_read_are_changed_answers(
    tmp_path: Path, changed: int, status: str
) -> None:
    trial = under_load(tmp_path, {}, UNREADABLE, changed)
    assert trial.status == status
    assert other_answers(trial) == [
        f"{changed} of 200 sampled replies (errors or unreadable: {changed})"
    ]


STRANGERS = [f"stranger-{i}" for i in range(10)]


@pytest.mark.parametrize(
    ("scores", "found"),
    [
        ([10.0 - i for i in range(10)], ["200 of 200 sampled replies"]),  # no two of them tie
        ([10.0] * 5 + [1.0] * 5, ["200 of 200 sampled replies"]),  # exchanged above the cut, too
        ([1.0] * 10, []),  # no order: any ten of all that match
    ],
)
def test_other_documents_under_load_are_changed_answers_unless_they_may_tie(
    tmp_path: Path, scores: list[float], found: list[str]
) -> None:
    trial = under_load(tmp_path, {"scores": scores}, {"ids": STRANGERS})
    assert other_answers(trial) == found
    by_totals = [f.number for f in trial.findings if f.kind == "only totals compared under load"]
    assert by_totals == ([] if found else ["200 of 200 sampled replies"])


@pytest.mark.parametrize("what", ["facets", "groups"])
def test_other_facets_or_groups_under_load_are_changed_answers(tmp_path: Path, what: str) -> None:
    alone, loaded = ({what: f'{{"color": [["red", {n}]]}}'} for n in (2, 1))
    trial = under_load(tmp_path, alone, loaded)
    assert other_answers(trial) == ["200 of 200 sampled replies"]
    assert trial.status == "invalid"
    assert other_answers(under_load(tmp_path / "same", alone, alone)) == []


def test_documents_that_swap_at_a_tied_cut_under_load_are_the_same_answer(tmp_path: Path) -> None:
    tied = {"scores": [10.0 - i for i in range(5)] + [1.0] * 5, "ids": STRANGERS}
    swapped = {"ids": [*STRANGERS[:9], "beyond the cut"]}
    assert other_answers(under_load(tmp_path, tied, swapped)) == []


def test_the_table_fits_a_terminal_and_all_is_json(tmp_path: Path) -> None:
    for number, make in enumerate((records.showcase, records.two_systems, records.stalling_study)):
        found = judged(make(tmp_path / str(number)))
        verdict = found.verdict
        widths = [
            max(len(row[i]) for row in (verdict.header, *verdict.lines))
            for i in range(len(verdict.header))
        ]
        assert sum(widths) + 2 * (len(widths) - 1) <= 80
        again = json.loads(json.dumps(to_json(found), allow_nan=False))
        assert again["verdict"]["decision"] == verdict.decision
        assert set(again) >= {"treatments", "comparisons", "agreement", "findings", "noise_floor"}


def test_frames_hold_every_sample_with_its_treatment(tmp_path: Path) -> None:
    record = open_record(records.two_systems(tmp_path / "r", blocks=2))
    found = judge(record)
    made = tables(record, found)
    n = sum(record.samples(t.trial).num_rows for t in record.trials)
    assert made["samples"].num_rows == n
    assert set(made["samples"].column("treatment").to_pylist()) == {"sqlite", "tantivy"}
    assert made["trials"].num_rows == 6
    assert made["treatments"].column("throughput").to_pylist() == [
        t.figures["throughput"].value for t in found.treatments
    ]
    pandas = frames(record, found)
    assert tables(str(record.path))["samples"].equals(made["samples"])
    assert len(pandas["comparisons"]) == len(found.comparisons)
    assert int(pandas["samples"]["measured"].sum()) > 0
