"""Overload and return: as a study says it, and on a host whose queue can be reckoned exactly."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from searchbench.analysis import overload
from searchbench.analysis.judge import judge, to_json
from searchbench.analysis.judgement import Judgement, OverloadSeen
from searchbench.errors import StudyError
from searchbench.measure.run import run as measure
from searchbench.record import Record, Trial
from searchbench.report.document.assemble import document
from searchbench.report.write import write_report
from searchbench.study.planner import make_plan
from searchbench.study.read import parse_study
from searchbench.terminal.answer import disturbed
from searchbench.workload.load_table import problems, resolve_told
from searchbench.workload.loads import open_load
from searchbench.workload.shape import Peak, shape_of

DELAY_S, CAPACITY = 0.002, 500
STUDY = """
question = "What does an overload do?"
replicates = 2
[control]
aa = false
[corpus]
family = "generated"
documents = 100
[queries]
distinct = 20
[systems.null]
workers = 1
delay_us = 2000
[load]
capacity_per_s = 500
judged_stage = 2
slo = "p90 < 200ms"
[factors]
overload = [
  { name = "1.5 times", set = { "load.stages" = [[1, 0.5], [4, 0.5], [2, 1.5], [7, 0.5]] } },
  { name = "forever", set = { "load.stages" = [[1, 0.5], [4, 0.5], [2, 3.0], [3, 0.5]] } },
]
"""


def test_an_overload_is_what_lies_between_two_stages_at_one_rate() -> None:
    def peaks(*stages: Any) -> tuple[Peak, ...]:
        return shape_of(stages).peaks

    assert peaks([60, 100], [30, 400], [60, 100]) == (Peak(0, 2),)
    assert peaks([5, 100], [60, 100], [5, 100, 400], [30, 400], [5, 400, 100], [60, 100]) == (
        Peak(1, 5),
    )
    assert peaks([9, 100], [3, 150], [9, 100], [3, 200], [9, 100]) == (Peak(0, 2), Peak(2, 4))
    assert peaks([60, 100], [30, 400], [60, 50]) == ()
    assert peaks([60, 100], [30, 50], [60, 100]) == ()
    assert peaks([60, 100], [30, 400], [30, 90, 100], [60, 100]) == ()
    assert peaks([60, 100], [30, 400]) == ()


def test_rates_are_shares_of_a_capacity_that_is_given() -> None:
    table = {"stages": [[5, 0.5], [5, 1.5], [9, 0.5]], "capacity_per_s": 400, "judged_stage": 1}
    told = resolve_told(table)
    assert (told["rate_per_s"], told["seconds"]) == (200.0, 5.0)
    assert resolve_told(told) == told, "nothing is multiplied twice"
    assert not list(problems(told))
    load = open_load(told, Path())
    due = load.due_ns(1)
    assert due is not None
    assert len(due) == pytest.approx(5 * 200 + 5 * 600 + 9 * 200, rel=0.1)
    said = dict(problems({"stages": [[5, 200]], "capacity_per_s": 400}))
    assert "with `capacity_per_s` rates are shares of it" in said["stages"]
    said = dict(problems({"rate_per_s": 5, "capacity_per_s": 400}))
    assert "the rates of `stages` are shares" in said["capacity_per_s"]


def test_a_promise_goes_with_stages_and_not_with_one_rate() -> None:
    promises = make_plan(parse_study(STUDY, "study.toml", Path())).judging.promises
    assert promises == ("p90 < 200ms",)
    plain = STUDY.partition("[load]")[0] + '[load]\nrate_per_s = 5\nslo = "p99 < 50ms"\n'
    with pytest.raises(StudyError, match="for `stages`, or for a search"):
        parse_study(plain, "study.toml", Path())


@pytest.fixture(scope="module")
def measured(tmp_path_factory: Any) -> tuple[Record, Judgement]:
    folder = tmp_path_factory.mktemp("overload")
    path = folder / "study.toml"
    path.write_text(STUDY)
    record = measure(path, folder / "record", work=folder / "work")
    judged = judge(record)
    # What else runs on the machine may spoil a trial; what is held to the truth is in all of them.
    all_valid = tuple(
        replace(t, trials=tuple(replace(x, status="valid") for x in t.trials))
        for t in judged.treatments
    )
    return record, replace(judged, treatments=all_valid, overloads=overload.results(all_valid))


def reckoned_s(record: Record, trial: Trial, end_s: float, limit_s: float) -> float:
    """From the end of the overload until a request waits less than the limit, by the queue of one
    worker that serves in order (Lindley's recursion over the due times)."""
    due = np.sort(record.samples(trial.trial, ["due"]).column(0).to_numpy()) / 1e9
    free, late = 0.0, end_s
    for at in due:
        free = max(free, float(at)) + DELAY_S
        if at >= end_s:
            if free - at < limit_s:
                break
            late = float(at)
    return late - end_s


def seen(judged: Judgement, name: str) -> list[OverloadSeen]:
    (t,) = [t for t in judged.treatments if t.levels["overload"] == name]
    return [one for x in t.trials if x.shaped for one in x.shaped.overloads]


@pytest.mark.timed
def test_seconds_until_normal_are_those_of_the_queue(measured: tuple[Record, Judgement]) -> None:
    record, judged = measured
    trials = [t for t in record.trials if t.levels["overload"] == "1.5 times"]
    assert len(trials) == 2
    for trial, one in zip(trials, seen(judged, "1.5 times"), strict=True):
        assert one.why == ""
        assert one.times == pytest.approx(1.5)
        truth = reckoned_s(record, trial, 7.0, one.limit_s)
        assert 1.0 < truth < 4.0, "about (750 - 500) * 2 / (500 - 250) = 2 s"
        assert one.normal_s == pytest.approx(truth, rel=0.2, abs=2 * one.resolution_s)
        # A queue answers what it can, and in time only until it is as long as the limit.
        assert one.answered_per_s == pytest.approx(CAPACITY, rel=0.05)
        assert one.in_time_per_s < 0.5 * one.offered_per_s
        assert one.failed == 0


@pytest.mark.timed
def test_what_does_not_drain_in_time_is_said_not_to(measured: tuple[Record, Judgement]) -> None:
    _, judged = measured
    (found,) = [r for r in judged.overloads if r.levels["overload"] == "forever"]
    assert found.not_within
    assert found.not_within + found.unknown == found.trials == 2
    plain = next(r for r in to_json(judged)["overloads"] if r["levels"]["overload"] == "forever")
    assert plain["figures"]["normal_s"]["value"] is None
    assert any("not normal again within the 3 s after it" in said for said in disturbed(judged))


@pytest.mark.timed
def test_the_terminal_and_the_page_say_it_with_an_interval(
    measured: tuple[Record, Judgement],
) -> None:
    record, judged = measured
    (found,) = [r for r in judged.overloads if r.levels["overload"] == "1.5 times"]
    took = found.figures["normal_s"]
    assert took.n == 2
    assert took.interval is not None
    assert took.interval.low <= took.value <= took.interval.high
    (said,) = [each for each in disturbed(judged) if "(1.5 times the capacity)" in each]
    assert "Answers were normal" in said
    (section,) = [s for s in document(record, judged).sections if s.id == "shape"]
    text = str(section)
    for wanted in ("Until normal", "2 s, 750/s", "1.5 times the capacity", "not within 3 s"):
        assert wanted in text
    report = write_report(record, judged, record.path / "report")
    assert "that were answered in time" in (record.path / "report" / "report.html").read_text()
    (sheet,) = [path for path in report.csv if path.stem == "overloads"]
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = {(row["label"], row["figure"]): row for row in csv.DictReader(file)}
    row = rows[found.label, "normal_s"]
    assert (row["value"], row["low"]) == (repr(took.value), repr(took.interval.low))
    assert (row["overload"], row["trials"], row["times"]) == ("1", "2", "1.5")
    assert (row["promise"], row["limit_s"], row["not_within"]) == ("p90 < 200ms", "0.2", "0")
    (other,) = [r for r in judged.overloads if r is not found]
    assert rows[other.label, "normal_s"]["value"] == "inf"
    assert rows[other.label, "normal_s"]["not_within"] == "2"


def test_the_judged_stage_is_the_one_before_and_is_not_spoilt_by_what_follows(
    measured: tuple[Record, Judgement],
) -> None:
    record, judged = measured
    for trial in record.trials:
        assert trial.window is not None
        assert (trial.window.start, trial.window.end) == (10**9, 5 * 10**9)
        assert trial.load.capacity_per_s == 500
    for t in judged.treatments:
        for x in t.trials:
            kinds = {f.kind for f in x.findings if f.severity == "invalid"}
            assert not kinds & {"overload", "errors", "behind at the end"}
