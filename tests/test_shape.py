"""Loads with several rates: as a study says them, when requests are due, what the page shows."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from searchbench.analysis.judge import judge
from searchbench.analysis.trial import shaped
from searchbench.analysis.trial.measured import Trace
from searchbench.measure.run import run as measure
from searchbench.record.trial import Load, Trial
from searchbench.report.document.assemble import document
from searchbench.study.planner import make_plan
from searchbench.study.quick import read_quick
from searchbench.study.read import parse_study
from searchbench.workload.load_table import problems, resolve_told
from searchbench.workload.loads import open_load
from searchbench.workload.shape import shape_of

SPIKE = [[60, 100], [30, 400], [60, 100]]
RAMP = [[10, 0, 200], [5, 200], [10, 200, 50], [3, 0], [20, 50]]


def load(stages: Any, **more: Any) -> Any:
    return open_load(resolve_told({"stages": stages, **more}), Path())


def test_the_window_is_the_longest_stage_at_one_rate_or_the_one_that_is_named() -> None:
    for stages, judged, window in (
        (SPIKE, None, (0, 60)),
        (SPIKE, 2, (60, 90)),
        (RAMP, None, (28, 48)),
        (RAMP, 2, (10, 15)),
    ):
        found = load(stages, **({"judged_stage": judged} if judged else {}))
        start, end = found.window.bounds_ns(np.empty(0, np.int64))
        assert (start / 1e9, end / 1e9) == window
        assert found.stop_ns == round(sum(stage[0] for stage in stages) * 1e9)
        assert found.loop.rate_per_s == shape_of(stages, judged).window.first


@pytest.mark.parametrize("arrivals", ["poisson", "constant"])
@pytest.mark.parametrize("stages", [SPIKE, RAMP, [[2, 5000]]])
def test_each_stage_has_as_many_requests_as_its_rates_say(stages: Any, arrivals: str) -> None:
    due = load(stages, arrivals=arrivals).due_ns(3)
    assert (np.diff(due) >= 0).all()
    shape = shape_of(stages)
    assert due[0] >= 0
    assert due[-1] < shape.starts[-1] * 1e9
    for stage, (start, end) in zip(shape.stages, pairwise(shape.starts), strict=True):
        seen = int(((due >= start * 1e9) & (due < end * 1e9)).sum())
        near = 1.5 if arrivals == "constant" else 5 * np.sqrt(stage.requests)
        assert abs(seen - stage.requests) <= near


def test_a_ramp_is_as_fast_at_each_moment_as_it_says() -> None:
    due = load([[100, 0, 1000], [10, 5]], arrivals="constant").due_ns(1) / 1e9
    for at in (10, 50, 90):
        rate = ((due >= at - 1) & (due < at + 1)).sum() / 2
        assert rate == pytest.approx(10 * at, rel=0.02)


def test_the_same_seed_gives_the_same_times_and_one_stage_is_a_plain_open_loop() -> None:
    assert (load(SPIKE).due_ns(1) == load(SPIKE).due_ns(1)).all()
    assert len(load(SPIKE).due_ns(1)) != len(load(SPIKE).due_ns(2))
    plain = open_load(
        resolve_told({"rate_per_s": 50, "seconds": 2, "warmup_s": 0, "arrivals": "constant"}),
        Path(),
    )
    assert (load([[2, 50]], arrivals="constant").due_ns(1) == plain.due_ns(1)).all()


@pytest.mark.parametrize(
    ("wrong", "key", "sentence"),
    [
        ({"stages": []}, "stages", "1 to 100"),
        ({"stages": [[60]]}, "stages", "stage 1 must be [SECONDS, RATE]"),
        ({"stages": [[60, 1], [1, "a"]]}, "stages", "stage 2 must be"),
        ({"stages": [[0, 1]]}, "stages", "stage 1 must last"),
        ({"stages": [[1, -1]]}, "stages", "rates from 0"),
        ({"stages": [[1, 2, 3]]}, "stages", "none at one rate"),
        ({"stages": [[1, 0]]}, "stages", "none at one rate above 0"),
        ({"stages": SPIKE, "judged_stage": 4}, "judged_stage", "(1, 2, 3), not 4"),
        ({"stages": RAMP, "judged_stage": 1}, "judged_stage", "(2, 5), not 1"),
        ({"stages": SPIKE, "seconds": 5}, "seconds", "leave `seconds` out"),
        ({"stages": SPIKE, "rate_per_s": 5}, "rate_per_s", "leave `rate_per_s` out"),
        ({"stages": SPIKE, "warmup_limit_s": 5}, "warmup_limit_s", "leave `warmup_limit_s` out"),
        ({"stages": SPIKE, "clients": 5}, "clients", "a closed loop"),
        ({"judged_stage": 1, "rate_per_s": 5}, "judged_stage", "there are none"),
        ({"stages": SPIKE, "find_capacity": True, "slo": "p99 < 1s"}, "stages", "chooses"),
    ],
)
def test_what_stages_cannot_be_is_said_at_its_key(
    wrong: dict[str, Any], key: str, sentence: str
) -> None:
    said = dict(problems(wrong))
    assert sentence in said[key]


def test_a_table_with_what_follows_from_its_stages_is_right() -> None:
    told = resolve_told({"stages": SPIKE, "judged_stage": 2})
    assert (told["rate_per_s"], told["seconds"], told["warmup_s"]) == (400.0, 30.0, 60.0)
    assert not list(problems(told))
    assert resolve_told(told) == told


def test_each_stage_is_seen_by_the_requests_that_were_due_in_it() -> None:
    """Ten a second that take 1 ms, then twenty that take 3 ms, every fifth of which fails."""
    due = np.concatenate((np.arange(0, 10, 0.1), np.arange(10, 15, 0.05))) * 1e9
    due = due.astype(np.int64)
    late = due >= 10e9
    done = due + np.where(late, 3_000_000, 1_000_000)
    outcome = np.where(late & (np.arange(len(due)) % 5 == 0), 2, 0).astype(np.uint8)
    query = np.zeros(len(due), np.uint32)
    trace = Trace(query, outcome, due, due, due, done, (0, 10_000_000_000))
    trial = Trial(trial="t", treatment="t01", block=1, load=Load(stages=[[10, 10], [5, 20]]))
    found = shaped.of_trial(trial, trace)
    assert found is not None
    first, second = found.stages
    assert (first.judged, first.requests, first.answered) == (True, 100, 100)
    assert (second.judged, second.requests, second.answered) == (False, 100, 80)
    assert (first.came, second.came) == (100, 80)
    assert first.p50_s == first.p99_s == pytest.approx(0.001)
    assert second.p50_s == pytest.approx(0.003)
    assert second.p99_s == math.inf, "a fifth had no good answer"
    assert (found.offered.x, found.offered.y) == ((0, 10, 10, 15), (10, 10, 20, 20))
    # What is judged does not see the other stage.
    assert shaped.within(trial, trace).due.max() < 10e9
    assert shaped.of_trial(Trial(trial="t", treatment="t01", block=1), trace) is None


def test_what_waits_in_a_queue_is_answered_a_second_where_it_comes() -> None:
    """Ten a second are all that is served: of 40 a second for 5 s, all but 50 come later."""
    due = np.concatenate((np.arange(0, 10, 0.1), np.arange(10, 15, 0.025), np.arange(15, 40, 0.1)))
    free = 0.0
    done = []
    for at in due:
        free = max(free, float(at)) + 0.1
        done.append(free)
    due_ns, done_ns = ((np.array(x) * 1e9).astype(np.int64) for x in (due, done))
    query, well = np.zeros(len(due), np.uint32), np.zeros(len(due), np.uint8)
    trace = Trace(query, well, due_ns, due_ns, due_ns, done_ns, (0, 10_000_000_000))
    stages = [[10, 10], [5, 40], [25, 10]]
    trial = Trial(trial="t", treatment="t01", block=1, load=Load(stages=stages))
    found = shaped.of_trial(trial, trace)
    assert found is not None
    second = found.stages[1]
    assert (second.requests, second.answered) == (200, 200)
    assert second.came == pytest.approx(50, abs=1)


STUDY = """question = "What does a spike do?"
replicates = 1
[corpus]
family = "generated"
documents = 200
[queries]
distinct = 20
[systems.tantivy]
[load]
stages = [[0.5, 100], [1.5, 200], [0.5, 800], [0.5, 800, 100]]
[control]
aa = false
"""


def test_a_study_with_stages_judges_one_and_shows_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHBENCH_LEDGERS", str(tmp_path / "ledgers"))
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    (planned,) = make_plan(parse_study(STUDY, "study.toml", tmp_path)).treatments
    assert planned.load["rate_per_s"] == 200
    assert read_quick(path).load["stages"] == planned.load["stages"]
    record = measure(path, tmp_path / "record", work=tmp_path / "work")
    (trial,) = record.trials
    assert trial.status == "ok", trial.reason
    assert trial.window is not None
    assert (trial.window.start, trial.window.end) == (500_000_000, 2_000_000_000)
    due = record.samples(trial.trial, ["due"]).column(0).to_numpy()
    assert 2_500_000_000 < due.max() < 3_000_000_000
    (treatment,) = judge(record).treatments
    seen = treatment.trials[0].shaped
    assert seen is not None
    assert [stage.judged for stage in seen.stages] == [False, True, False, False]
    assert sum(stage.requests for stage in seen.stages) == len(due)
    throughput = treatment.trials[0].figures["throughput"].value
    assert throughput == pytest.approx(seen.stages[1].answered / 1.5, rel=0.1)
    page = document(record, judge(record))
    (section,) = [s for s in page.sections if s.id == "shape"]
    text = str(section)
    assert "2: 0.5 to 2 s, judged" in text
    assert "4: 2.5 to 3 s, shown" in text
    assert "load-shape" in text
