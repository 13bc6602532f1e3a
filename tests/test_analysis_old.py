"""Records of format 1: they open, and judge as they did when they were written.

``records_v1/expected.json`` holds the figures of the version that wrote them.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from searchbench.analysis.capacity import posterior
from searchbench.analysis.judge import agreements, judge, to_json
from searchbench.analysis.judgement import Judgement
from searchbench.errors import RecordError
from searchbench.record import open_record

OLD = Path(__file__).parent / "records_v1"
EXPECTED: dict[str, Any] = json.loads((OLD / "expected.json").read_text("utf-8"))
# Judged otherwise today: windows of a second do not show whether a system was steady.
STRICTER = {"comparisons", "best", "resolved"}
LATER = {
    "steadiness unknown",
    "not steady",
    "first asks",
    "foreign CPU unknown",
}  # found by later judges alone


def judged(name: str) -> tuple[Judgement, dict[str, Any]]:
    found = judge(open_record(OLD / name))
    return found, to_json(found)


def same(found: Any, expected: Any, where: str = "") -> None:
    """Equal, but for the last bits of numbers; every key that is expected is there."""
    if isinstance(expected, dict):
        assert isinstance(found, dict), where
        for key, value in expected.items():
            same(found.get(key), value, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            same(one, other, f"{where}[{i}]")
    elif isinstance(expected, float):
        assert isinstance(found, float | int), where
        assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12), (where, found, expected)
    else:
        assert found == expected, where


def compared(found: dict[str, Any]) -> dict[str, Any]:
    """The parts of a judgement that were kept."""
    return {
        "treatments": {t["treatment"]: t["figures"] for t in found["treatments"]},
        "comparisons": found["comparisons"],
        "best": found["verdict"]["best"],
        "resolved": found["verdict"]["resolved"],
        "noise_floor": found["noise_floor"],
        "statuses": {x["trial"]: x["status"] for t in found["treatments"] for x in t["trials"]},
        "findings": sorted(
            [f["kind"], f["severity"], f["trial"], f["number"]]
            for f in found["findings"]
            if f["kind"] not in LATER
        ),
        "steps": [
            s
            | {
                "lag": s["lag"].get("p99"),
                "findings": [f for f in s["findings"] if f["kind"] not in LATER],
            }
            for s in found["steps"]
        ],
    }


@pytest.mark.parametrize("name", ["study", "sweep", "capacity"])
def test_an_old_record_has_the_figures_that_it_had(name: str) -> None:
    _, plain = judged(name)
    expected = {k: v for k, v in EXPECTED[name].items() if k not in {"capacity", *STRICTER}}
    found = compared(plain)
    for label, figures in expected.get("treatments", {}).items():
        for figure, before in figures.items():
            if "_p" in figure and before["interval"]:  # how trials differ is in it today
                now = found["treatments"][label][figure]
                inner, outer = before.pop("interval"), now["interval"]
                assert outer["low"] <= inner["low"] * 1.001, (label, figure)
                assert outer["high"] >= inner["high"] * 0.999, (label, figure)
    same(found, expected)
    for one, other in zip(plain["comparisons"], EXPECTED[name]["comparisons"], strict=True):
        kept = {"a", "b", "metric", "queries_used", "queries_left_out"}
        same(one, {k: v for k, v in other.items() if k in kept})
        ratios = [c["ratio"] and c["ratio"]["value"] for c in (one, other)]
        if one["metric"] == "throughput" and None not in ratios:
            # Clients keep their own mixes today.
            assert ratios[0] == pytest.approx(ratios[1], rel=0.001)
        elif name == "study" and None not in ratios:
            # Times are over one mix of queries today, as throughput was.
            assert ratios[0] == pytest.approx(ratios[1], rel=0.01)
        else:
            same(*ratios)


@pytest.mark.parametrize("name", ["study", "sweep", "capacity"])
def test_an_old_record_says_once_that_it_does_not_know_who_else_was_there(name: str) -> None:
    found, _ = judged(name)
    (said,) = (f for f in found.findings if f.kind == "foreign CPU unknown")
    assert said.severity == "note"
    assert "does not have the generator's CPU time" in said.number


def test_an_old_study_is_judged_as_trials_and_agrees_as_far_as_it_did() -> None:
    found, _ = judged("study")
    assert found.measure == "trials"
    assert found.verdict.best is None, "half a second of warm-up, a second of window"
    assert {c.state for c in found.comparisons if c.ratio} == {"unknown"}
    assert "over the 9 of 10 queries" in found.verdict.decision
    (pair,) = agreements(open_record(OLD / "study"))
    assert (pair.agreeing, pair.queries) == (9, 10)


def test_an_old_load_run_is_a_sweep_of_its_system() -> None:
    found, _ = judged("sweep")
    assert found.measure == "sweep"
    assert {s.subject for s in found.steps} == {"new"}
    assert "More than 4 clients bring no more throughput" in found.verdict.decision


def test_an_old_search_is_judged_anew_and_finds_what_it_found() -> None:
    found, _ = judged("capacity")
    assert found.measure == "capacity"
    (one,) = found.capacity
    assert (one.subject, one.promise, one.searches) == ("new", "p90 < 20ms", 1)
    (expected,) = EXPECTED["capacity"]["capacity"]
    # How sure it is, and so how wide, is of today's judge, which allows for more scatter of speeds:
    # the interval has all of the old one, and a few percent more.
    assert 0.97 * expected["holds"] < (one.holds or 0.0) <= expected["holds"]
    assert expected["fails"] <= (one.fails or math.inf) < 1.02 * expected["fails"]
    assert one.chance_inside is not None
    assert one.chance_inside >= 0.95 - 1e-9
    assert [t.verdict for t in one.trials] == [t["verdict"] for t in expected["trials"]]
    for mine, theirs in zip(one.trials, expected["trials"], strict=True):
        assert mine.rate_per_s == pytest.approx(theirs["rate_per_s"], rel=1e-5)
        assert mine.excess == pytest.approx(theirs["excess"])
        assert mine.achieved == pytest.approx(theirs["achieved"])
    assert one.sentence.startswith(
        "The limit is between 240.5/s and 258.4/s (95 %, 6 trials). This interval is 7.4 % wide, "
    )
    assert found.verdict.decision.startswith(f"p90 < 20ms: {one.sentence}")


def test_what_an_old_record_says_of_its_capacity_is_not_believed(tmp_path: Path) -> None:
    shutil.copytree(OLD / "capacity", tmp_path / "r")
    plan = json.loads((tmp_path / "r/plan.json").read_text())
    plan["judging"]["capacity"]["new"] |= {"holds_per_s": 1.0, "fails_per_s": 2.0}
    (tmp_path / "r/plan.json").write_text(json.dumps(plan))
    (one,) = judge(open_record(tmp_path / "r")).capacity
    assert one.holds == pytest.approx(240.5, rel=0.001)


def test_another_judge_finds_another_interval_in_an_old_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = judged("capacity")[0].capacity[0]
    monkeypatch.setattr(posterior, "SWAY", 0.5)
    monkeypatch.setattr(posterior, "SPEEDS", (0.2,) * len(posterior.SPEEDS))
    after = judged("capacity")[0].capacity[0]
    assert before.holds is not None
    assert before.fails is not None
    assert after.holds is not None
    assert after.fails is not None
    assert after.fails / after.holds - 1 > 2 * (before.fails / before.holds - 1)
    assert after.sentence != before.sentence


def test_a_record_of_a_later_format_says_which_version_reads_it(tmp_path: Path) -> None:
    shutil.copytree(OLD / "study", tmp_path / "r")
    about = json.loads((tmp_path / "r/record.json").read_text())
    (tmp_path / "r/record.json").write_text(json.dumps(about | {"format": 3}))
    with pytest.raises(RecordError, match=r"format 3, .* reads formats 1 to 2; read it with"):
        open_record(tmp_path / "r")


def test_a_trial_that_is_not_whole_is_named(tmp_path: Path) -> None:
    shutil.copytree(OLD / "study", tmp_path / "r")
    trial = next((tmp_path / "r").glob("trials/*/trial.json"))
    for garbage in ('{"format": 1, "trial": 7}', '{"format": 2}', "[]", "no JSON"):
        trial.write_text(garbage)
        with pytest.raises(RecordError, match="damaged"):
            judge(open_record(tmp_path / "r"))


def test_a_plan_or_a_record_that_is_garbage_is_named(tmp_path: Path) -> None:
    shutil.copytree(OLD / "study", tmp_path / "r")
    (tmp_path / "r/plan.json").write_text('{"format": 2, "question": 7}')
    with pytest.raises(RecordError, match=r"plan\.json is not whole"):
        judge(open_record(tmp_path / "r"))
    (tmp_path / "r/record.json").write_text("[]")
    with pytest.raises(RecordError, match=r"record\.json"):
        open_record(tmp_path / "r")
