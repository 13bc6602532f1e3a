"""Writers whose rate changes: they write what their stages, their log or chance say, and the page
shows it beside what the readers met.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from searchbench.analysis.judge import judge
from searchbench.analysis.roles import stages as of_stages
from searchbench.analysis.roles.accepted import Written, written
from searchbench.analysis.roles.stages import Readers
from searchbench.analysis.trial.measured import Trace
from searchbench.errors import StudyError
from searchbench.lab.drive.changes import _marked
from searchbench.measure.run import run as measure
from searchbench.record import Record, Trial
from searchbench.record.roles import RoleRun
from searchbench.report.write import write_report
from searchbench.workload import changes
from searchbench.workload.loads import OpenLoop, Window

NS = 1_000_000_000
STAGES = [[1, 40], [1, 0], [1, 40, 160], [1, 160]]
STUDY = """
question = "Is what a writer writes what its stages say?"
replicates = 1
[control]
aa = false
[corpus]
family = "generated"
documents = 2000
[queries]
distinct = 20
[roles.writer]
does = "write"
documents = 700
batch = 2
marker_every_s = 0.2
PACE
[load]
clients = 1
seconds = 3
warmup_s = 1
"""
NULL = "[systems.null]\npublish_ms = 20\n"
SQLITE = "[systems.sqlite]\n"


def run(text: str, pace: str, folder: Path) -> Record:
    (folder / "times.txt").write_text("".join(f"{100 + at / 10}\n" for at in range(20)))
    path = folder / "study.toml"
    path.write_text(text.replace("PACE", pace))
    return measure(path, folder / "record", work=folder / "work")


@pytest.fixture(scope="module")
def shaped(tmp_path_factory: Any) -> Record:
    """A writer with stages, on a host of ours and on a real engine."""
    folder = tmp_path_factory.mktemp("shaped")
    return run(STUDY + NULL + SQLITE, f"stages = {STAGES}", folder)


def writer(trial: Trial) -> RoleRun:
    return next(run for run in trial.beside if run.does == "write")


def table(**more: Any) -> dict[str, Any]:
    return {"batch": 1, "marker_every_s": 1.0, **more}


def in_stages(due: Any) -> list[int]:
    edges = np.array([0, 1, 2, 3, 4]) * NS
    return [int(n) for n in np.histogram(due, edges)[0]]


def test_stages_are_documents_a_second_whatever_the_batch() -> None:
    one = changes.due_ns(table(stages=STAGES), 0, 4 * NS)
    four = changes.due_ns(table(stages=STAGES, batch=4), 0, 4 * NS)
    assert one is not None
    assert four is not None
    assert in_stages(one) == [40, 0, 100, 160]
    assert in_stages(four) == [10, 0, 25, 40]


def test_random_arrivals_have_the_rate_and_are_not_those_of_the_readers() -> None:
    keys = table(documents_per_s=500, arrivals="poisson")
    due = changes.due_ns(keys, 0, 20 * NS, seed=3)
    assert due is not None
    assert abs(len(due) - 10_000) < 5 * 100
    gaps = np.diff(due) / NS * 500
    assert 0.9 < float(gaps.std()) < 1.1  # exponential: as wide as its mean
    again = changes.due_ns(keys, 0, 20 * NS, seed=3)
    other = changes.due_ns(keys, 0, 20 * NS, seed=4)
    assert np.array_equal(due, again)
    assert not np.array_equal(due[:100], other[:100] if other is not None else [])
    readers = OpenLoop(500).due_ns(Window(seconds=20), 3)
    assert len(np.intersect1d(due, readers)) < 10
    most = changes.most_due(keys, 0, 20 * NS)
    assert most is not None
    assert len(due) <= most < 1.1 * len(due)


def test_random_arrivals_follow_stages() -> None:
    stages = [[1, 4000], [1, 0], [1, 4000, 16000], [1, 16000]]
    due = changes.due_ns(table(stages=stages, arrivals="poisson"), 0, 4 * NS, seed=1)
    found = in_stages(due)
    assert found[1] == 0
    for number, mean in zip(found, [4000, 0, 10_000, 16_000], strict=True):
        assert abs(number - mean) <= 5 * mean**0.5


def test_times_of_a_file_begin_with_the_drive_and_are_cut_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"t": 50}\n{"t": 51}\n{"t": 51}\n{"t": 58}\n')
    keys = table(times="t.jsonl", speed=2)
    due = changes.due_ns(keys, 0, 4 * NS, base=tmp_path)
    assert due is not None
    assert due.tolist() == [0, NS // 2, NS // 2, 4 * NS][:3]
    (tmp_path / "t.jsonl").write_text('{"t": 50}\n{"t": 49}\n')
    with pytest.raises(StudyError, match="goes back in time at query 2"):
        changes.due_ns(keys, 0, 4 * NS, base=tmp_path)


def test_a_marker_is_not_moved_into_a_pause_and_a_log_keeps_its_times() -> None:
    keys = table(stages=[[1, 10], [8, 0], [1, 10]], marker_every_s=0.5)
    due = changes.due_ns(keys, 0, 10 * NS)
    assert due is not None
    for seed in range(40):
        _, moved = _marked(keys, ["insert"] * len(due), due, "body", seed)
        assert moved is not None
        assert not ((moved >= NS) & (moved < 9 * NS)).any()
        assert (np.diff(moved) >= 0).all()
    logged = table(times="t.txt", marker_every_s=0.5)
    numbers, kept = _marked(logged, ["insert"] * len(due), due, "body", 1)
    assert kept is not None
    assert kept.tolist() == due.tolist()
    assert numbers


def made(due: list[int], sent: list[int], done: list[int], taken: list[int]) -> Written:
    at = np.arange(len(due))
    ints = [np.array(each, np.int64) * NS // 10 for each in (due, due, sent, done)]
    well = np.array(taken) > 0
    documents = np.full(len(due), 2)
    words = np.array([None] * len(due), object)
    return Written(at, *ints, well, ~well, ~well, documents, np.array(taken), words, words, words)


def test_a_stage_has_what_was_due_in_it_and_the_answers_that_came_in_it() -> None:
    keys = {"stages": [[1, 6], [1, 2]], "batch": 2}
    # In tenths of a second: the third is sent in the second stage, and one is not answered well.
    wrote = made([0, 3, 6, 12], [0, 3, 11, 16], [1, 4, 12, 17], [2, 2, 2, 0])
    took = np.concatenate([np.full(50, NS // 100), np.full(50, NS // 10)])
    beside = Readers(np.arange(100) * NS // 50, took)
    first, second = of_stages.of_trial(RoleRun(name="w", number=1, does="write", keys=keys),
                                       wrote, beside)  # fmt: skip
    assert (first.offered, first.acknowledged) == (6, 4)
    assert (second.offered, second.acknowledged) == (2, 2)
    assert (first.behind_s, second.behind_s) == (0.5, 0.4)
    assert (first.readers_p50_s, second.readers_p50_s) == (0.01, 0.1)


def test_a_stage_in_which_readers_failed_does_not_look_fast() -> None:
    keys = {"stages": [[1, 6], [1, 2]], "batch": 2}
    due = np.arange(2_000) * NS // 1_000
    lost = (np.arange(2_000) >= 1_000) & (np.arange(2_000) % 50 == 0)  # 2 of 100, in the second
    trace = Trace(
        query=np.zeros(2_000, np.uint32), outcome=lost.astype(np.uint8), due=due, free=due,
        sent=due, done=np.where(lost, -1, due + NS // 1_000), window=(0, 2 * NS),
    )  # fmt: skip
    wrote = made([0, 12], [0, 12], [1, 13], [2, 2])
    first, second = of_stages.of_trial(RoleRun(name="w", number=1, does="write", keys=keys),
                                       wrote, of_stages.readers(trace))  # fmt: skip
    assert (first.readers_p50_s, first.readers_p99_s) == (0.001, 0.001)
    assert (second.readers_p50_s, second.readers_p99_s) == (0.001, None)


@pytest.mark.slow
@pytest.mark.parametrize("system", ["null", "sqlite"])
def test_a_writer_with_stages_wrote_what_they_say_and_it_adds_up(
    shaped: Record, system: str
) -> None:
    (trial,) = (t for t in shaped.trials if t.system == system)
    own = writer(trial)
    assert trial.status == "ok", trial.reason
    found = written(shaped, trial, own)
    assert in_stages(found.due) == [20, 0, 50, 80]
    applied = own.applied
    assert applied is not None
    assert applied.before is not None
    assert applied.after == applied.before + int(found.taken.sum())
    assert int(found.taken.sum()) == 300
    judged = judge(shaped)
    assert judged.roles is not None
    (result,) = (r for r in judged.roles.results if r.levels.get("system", r.label) == system)
    assert [stage.acknowledged for stage in result.stages] == [40, 0, 100, 160]
    over = judged.roles.over_time[result.treatment].written
    assert over is not None
    assert over.offered.y == (40, 40, 0, 0, 40, 160, 160, 160)


@pytest.mark.slow
def test_the_page_and_the_sheets_have_the_stages_of_a_writer(
    shaped: Record, tmp_path: Path
) -> None:
    write_report(shaped, judge(shaped), tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "What was written, stage by stage." in page
    assert "what the writer was asked for (dashed)" in page
    with (tmp_path / "role_stages.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["label"].startswith("sqlite")]
    assert [float(row["acknowledged"]) for row in rows] == [40, 0, 100, 160]


@pytest.mark.slow
def test_a_log_of_writes_is_replayed_and_its_end_is_said(tmp_path: Path) -> None:
    pace = 'times = "times.txt"'
    record = run(STUDY + SQLITE, pace, tmp_path)
    (trial,) = record.trials
    own = writer(trial)
    due = record.of_role(trial.trial, "writer")["due"]
    assert pc.max(due).as_py() == 1_900_000_000
    assert own.planned == 20
    assert own.applied is not None
    assert own.applied.before is not None
    assert own.applied.after == own.applied.before + 40
    write_report(record, judge(record), tmp_path / "page")
    page = (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    assert "the file of times came to an end at 1.90 s of 4 s" in page
