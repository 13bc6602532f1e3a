"""What a verdict must not rest on (another state, one build), and what would change it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benches.judge_verdicts import resolved

from records import Study, by_query, good_answer, lognormal, warming
from searchbench.analysis.compare import builds, pairs, state
from searchbench.analysis.judge import judge, to_json
from searchbench.analysis.judgement import (
    Comparison,
    Curve,
    Estimate,
    Interval,
    Judgement,
    Steadiness,
    TreatmentResult,
    TrialResult,
)
from searchbench.analysis.stats.intervals import Noise
from searchbench.record import open_record
from searchbench.report.document import assemble
from searchbench.report.document.blocks import Details, Facts
from searchbench.terminal.answer import show

EVEN = 0.05  # scatter of service times at which a trial of seconds is shown to be steady


def judged(path: Path, study: Study) -> tuple[Judgement, Comparison]:
    """The judgement, and the comparison by throughput of its first two treatments."""
    found = judge(open_record(study.write(path)))
    return found, next(c for c in found.comparisons if c.metric == "throughput")


def pair(slower: float = 2.0, *, blocks: int = 5, **study: Any) -> Study:
    made = Study(blocks=blocks, **study)
    made.add("a", server=lognormal(0.004, EVEN))
    made.add("b", system="sqlite", server=lognormal(0.004 * slower, EVEN))
    return made


# The same state


def test_steady_systems_are_compared(tmp_path: Path) -> None:
    found, c = judged(tmp_path / "r", pair())
    assert (c.state, c.verdict) == ("steady", "slower")
    assert 1 <= c.state_floor < 1.02, "what drift steady windows leave"
    assert found.verdict.best == "a"
    assert "steady" not in found.verdict.decision


def test_a_system_that_is_not_steady_is_no_better_and_no_worse(tmp_path: Path) -> None:
    study = Study(blocks=4)
    study.add("a", server=lognormal(0.004, EVEN))
    study.add("b", system="sqlite", server=warming(lognormal(0.01, EVEN), 2.0, 6.0))
    found, c = judged(tmp_path / "r", study)
    assert c.ratio is not None, "it is shown"
    assert (c.state, c.verdict) == ("not steady", "not resolved")
    assert "sqlite was not steady in 4 of 4 trials" in found.verdict.decision
    assert found.verdict.best is None
    assert found.verdict.lines[1][-1] == "not resolved"
    assert c.would_change[0].startswith("A longer warm-up")


def test_first_asks_against_later_ones_are_not_resolved(tmp_path: Path) -> None:
    study = Study(blocks=3, queries=200)
    study.add("a", server=by_query(0.002, {}, EVEN), clients=1, seconds=6.0)
    study.add("b", system="sqlite", server=by_query(0.02, {}, EVEN), clients=1, seconds=6.0)
    _, c = judged(tmp_path / "r", study)
    assert (c.state, c.verdict) == ("other first asks", "not resolved")
    assert "of the requests to sqlite were the first of their query" in c.reason
    assert "asks every query" in c.would_change[0]


@pytest.mark.parametrize(("slower", "verdict"), [(1.2, "not resolved"), (15.0, "slower")])
def test_an_unknown_state_resolves_only_what_no_warm_up_makes(
    tmp_path: Path, slower: float, verdict: str
) -> None:
    study = Study(blocks=3, queries=5)
    for name, times in (("tantivy", 1.0), ("sqlite", slower)):
        study.add(name, system=name, server=lognormal(0.02 * times, 0.8), clients=1, seconds=9.0,
                  warmup_s=5.0)  # fmt: skip
    found, c = judged(tmp_path / "r", study)
    assert (c.state, c.verdict) == ("unknown", verdict)
    assert 1.2 < c.state_floor <= 10
    said = "steady is unknown" if verdict == "not resolved" else "how large is not sure"
    assert said in found.verdict.decision


@pytest.mark.parametrize("tau_s", [1.0, 5.0, 20.0, 60.0])
@pytest.mark.parametrize(("median_s", "scatter"), [(0.02, 0.3), (0.0025, 0.3), (0.0025, 0.05)])
def test_who_is_only_cold_is_not_called_slower(
    tmp_path: Path, tau_s: float, median_s: float, scatter: float
) -> None:
    """Equal systems, one of them at 40 % of its speed at the start: half a second of warm-up."""
    steady = lognormal(median_s, scatter)
    study = Study(blocks=3)
    study.add("a", server=steady, clients=2, seconds=2.0, warmup_s=0.5)
    study.add(
        "b",
        system="lucene",
        server=lambda due, query, rng: steady(due, query, rng) / (1 - 0.6 * np.exp(-due / tau_s)),
        clients=2,
        seconds=2.0,
        warmup_s=0.5,
    )
    found, c = judged(tmp_path / "r", study)
    assert c.ratio is not None
    assert c.ratio.value < 0.95
    assert c.verdict == "not resolved"
    assert found.verdict.best is None


def treatment(*answers: str, ahead: tuple[float, float] = (-0.01, 0.01)) -> TreatmentResult:
    """Trials with these answers, whose pace in 10 s ahead lies between two logs."""
    low, high = map(math.expm1, ahead)
    middle = math.expm1(sum(ahead) / 2)
    changes = {"ahead": Estimate(middle, "share", 100, Interval(low, high, 0.98, "by hand"))}
    trials = tuple(
        TrialResult(
            f"t{i}", "t", i, False, "valid", "", {}, {}, (),
            steadiness=Steadiness(answer, "service time", 100, 10.0, changes),  # type: ignore[arg-type]
        )
        for i, answer in enumerate(answers)
    )  # fmt: skip
    none = Curve("", (), ())
    return TreatmentResult("t", "t", "t", {}, {}, none, none, trials)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (("steady",) * 3, "steady"),
        (("steady", "steady", "unknown"), "steady"),
        (("steady", "steady", "not steady"), "steady"),  # one of three may be chance
        (("steady", "not steady", "not steady"), "not steady"),
        (("not steady", "unknown"), "not steady"),
        (("unknown",) * 3, "unknown"),
        ((), "unknown"),
    ],
)
def test_the_state_of_a_treatment_is_that_of_its_trials(
    answers: tuple[str, ...], said: str
) -> None:
    assert state.of(treatment(*answers, ahead=(-0.3, 0.2))).answer == said


def test_replicates_together_show_what_none_of_them_shows_alone() -> None:
    assert state.of(treatment("unknown", ahead=(-0.06, 0.06))).answer == "unknown"
    assert state.of(treatment(*["unknown"] * 4, ahead=(-0.06, 0.06))).answer == "steady"


def test_a_pace_is_followed_for_a_minute_and_to_ten_times() -> None:
    slow = state.of(treatment("unknown", ahead=(-0.10, 0.02)))
    steady = state.of(treatment("steady"))
    assert slow.falls == pytest.approx(0.6)
    better = state.floor(("slow", slow), ("steady", steady), math.log(1.5))
    assert better.ratio == pytest.approx(math.exp(0.6)), "the slow one might catch up"
    worse = state.floor(("slow", slow), ("steady", steady), -math.log(1.5))
    assert worse.ratio == pytest.approx(math.exp(0.12)), "or fall back"
    nothing = state.of(treatment("unknown", ahead=(-9.0, 9.0)))
    assert state.floor(("x", nothing), ("y", steady), 1.0).ratio == pytest.approx(10)


# An index that was built once


def test_a_difference_that_two_builds_could_make_is_not_resolved(tmp_path: Path) -> None:
    small = pair(1.04, judging={"ingest": "once"}, trial_noise=0.002)
    found, c = judged(tmp_path / "once", small)
    assert c.verdict == "not resolved"
    assert c.build_floor == pytest.approx(1.057, abs=0.001)
    assert "below 5.7 % a difference may be that of two builds" in found.verdict.decision
    assert any("per-block" in said for said in c.would_change[:1])
    _, c = judged(tmp_path / "each", pair(1.04, trial_noise=0.002))
    assert (c.verdict, c.build_floor) == ("slower", 1.0)
    found, c = judged(tmp_path / "large", pair(1.5, judging={"ingest": "once"}))
    assert c.verdict == "slower"
    assert "An index was built only once" in found.verdict.decision


def test_who_shares_an_index_does_not_differ_by_builds(tmp_path: Path) -> None:
    study = Study(blocks=3, judging={"ingest": "once"})
    for clients in (1, 4):
        study.add(f"c{clients}", server=lognormal(0.004, EVEN), clients=clients,
                  levels={"load.clients": clients})  # fmt: skip
    found, c = judged(tmp_path / "r", study)
    assert c.build_floor == 1.0
    assert "built" not in found.verdict.decision


@pytest.mark.parametrize(("extra", "said"), [
    ({"attached": "127.0.0.1:1"}, True),  # who knows how it was filled
    ({"ingest": None}, False),  # no index
    ({}, False),  # one in each block
])  # fmt: skip
def test_only_what_has_one_build_is_said_to_have_one(
    tmp_path: Path, extra: dict[str, Any], said: bool
) -> None:
    study = Study(blocks=2)
    study.add("a", server=lognormal(0.004, EVEN), extra=extra)
    study.add("b", system="sqlite", server=lognormal(0.02, EVEN), extra=extra)
    found, _ = judged(tmp_path / "r", study)
    assert ("An index was built only once, or used as" in found.verdict.decision) is said


def test_an_index_counts_as_built_once_by_what_is_on_record() -> None:
    each = {"a": {0: "a0", 1: "a1"}, "b": {0: "b0", 1: "b1"}}
    assert not builds.once("a", "b", each)
    assert builds.once("a", "b", each | {"b": {0: "b0", 1: "b0"}})
    assert not builds.once("a", "b", {"a": {0: "x", 1: "x"}, "b": {0: "x", 1: "x"}})
    assert not builds.once("a", "b", {}), "nothing was put in"


# False wins and power, on simulated studies (benches/judge_verdicts.py has more)


def test_builds_that_have_no_replicate_do_not_win(monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"sds": (0.005, 0.005), "blocks": 5, "once": True}
    assert resolved(100, build_sd=0.01, **one) <= 0.05
    assert resolved(100, build_sd=0.02, **one) <= 0.12
    noisy = {"sds": (0.02, 0.02), "blocks": 3, "once": True, "build_sd": 0.02}
    assert resolved(400, **noisy) <= 0.05, "the noise of the trials comes on top"
    monkeypatch.setattr(builds, "floor", lambda *_: 1.0)  # as it was
    assert resolved(100, build_sd=0.01, **one) > 0.3


def test_five_percent_at_one_percent_of_noise_is_found_in_five_blocks() -> None:
    assert resolved(60, sds=(0.01, 0.01), blocks=5, faster=0.05) >= 0.8


# What would change it


def test_a_difference_within_the_noise_asks_for_blocks_and_says_how_many(tmp_path: Path) -> None:
    found, c = judged(tmp_path / "r", pair(1.03, blocks=3, trial_noise=0.03, control=None))
    assert c.verdict == "not resolved"
    assert c.blocks_needed is not None
    least, _ = c.blocks_needed
    assert least > 3
    assert c.would_change[0].startswith("More blocks: ")
    assert "in place of 3" in c.would_change[0]
    assert found.verdict.would_change[0].startswith("More blocks: ")


def test_a_floor_that_blocks_do_not_lower_asks_for_a_quieter_machine(tmp_path: Path) -> None:
    _, c = judged(tmp_path / "r", pair(1.01, blocks=5, trial_noise=0.04, block_noise=0.0))
    assert c.ratio is not None
    assert max(c.ratio.value, 1 / c.ratio.value) < c.floor
    assert c.would_change[0].startswith("Longer trials, or a quieter machine: ")


def test_answers_that_differ_and_trials_that_failed_are_named_first(tmp_path: Path) -> None:
    study = Study(blocks=2)
    study.add("a")
    study.add("b", system="sqlite", answer=lambda q: good_answer(q) | {"total": 99})
    _, c = judged(tmp_path / "r", study)
    assert c.would_change[0] == "Answers that agree: 40 of 40 queries are left out."
    study = Study(blocks=2)
    study.add("a")
    study.add("b", system="sqlite", fails_at="deploy")
    _, c = judged(tmp_path / "failed", study)
    assert c.would_change[0].startswith("Valid trials of sqlite: failed")


def test_the_page_the_json_and_the_terminal_say_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = open_record(pair(1.01, trial_noise=0.03).write(tmp_path / "r"))
    found = judge(record)
    plain = json.loads(json.dumps(to_json(found), allow_nan=False))
    (answer, *_) = assemble.document(record, found).sections
    inner = [b for d in answer.blocks if isinstance(d, Details) for b in d.blocks]
    (why,) = (b for b in inner if isinstance(b, Details) and b.title.startswith("Why?"))
    (facts,) = why.blocks
    assert isinstance(facts, Facts)
    said = plain["comparisons"][0]["would_change"]
    assert said
    assert facts.pairs[0] == (
        "tantivy against sqlite: not resolved",
        " ".join(f"{i}. {one}" for i, one in enumerate(said, start=1)),
    )
    show(found)
    assert "What would change it:\n- " in capsys.readouterr().out


def test_no_number_of_blocks_is_advised_below_the_floor_that_they_would_have() -> None:
    """Blocks make the mean surer, and the floor of the A/A control no lower."""
    noise = Noise(2 * 0.01**2, 8)
    expected = math.exp(1.96 * math.sqrt(noise.variance))
    for size, advised in ((expected * 0.995, False), (expected * 1.005, True)):
        logs = [math.log(size) + off for off in (-0.03, 0.03, -0.03, 0.03, 0.0)]
        span = Interval(0.98, 1.08, 0.95, "t")
        comparison = Comparison(
            "a",
            "b",
            "throughput",
            "not resolved",
            Estimate(size, "ratio", 5, span),
            None,
            1.01,
            40,
            0,
        )
        found = pairs._decide(comparison, logs, noise, 0.2, 1, "", "")
        assert (found.blocks_needed is not None) is advised, found.reason
        assert ("no less than the difference" in found.reason) is not advised


def test_a_server_that_becomes_slower_is_not_told_to_warm_up(tmp_path: Path) -> None:
    study = Study(blocks=2)
    study.add("a", server=lognormal(0.004, EVEN))
    study.add(
        "leaks", system="sqlite",
        server=lambda due, q, rng: 0.004 * (1 + 0.05 * due) * lognormal(1.0, EVEN)(due, q, rng),
    )  # fmt: skip
    found, c = judged(tmp_path / "r", study)
    assert c.state == "not steady"
    assert not any("warm-up" in change and "no warm-up" not in change for change in c.would_change)
    said = [f for f in found.findings if f.kind == "not steady"]
    assert all(f.remedy.startswith("It becomes slower") for f in said)
