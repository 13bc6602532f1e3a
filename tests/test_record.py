"""The record: whole or not there, refused if it is of another time, readable without us."""

from __future__ import annotations

import errno
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import records
from searchbench import record
from searchbench.analysis.judge import judge
from searchbench.errors import RecordError
from searchbench.record.lock import alone
from searchbench.record.trial import Load, Note, Window
from searchbench.report import write_report
from searchbench.study import plan as plans

RAW = np.dtype(
    [
        *((n, "<i8") for n in ("due", "free", "connect", "sent", "first_byte", "done")),
        ("request", "<u4"),
        ("bytes", "<u4"),
        ("host_low", "<u4"),
        ("connection", "<u2"),
        ("outcome", "u1"),
        ("host_high", "u1"),
    ]
)


def writer(
    path: Path, study: str = 'question = "?"', seed: int = 1, draw_seed: int | None = None
) -> record.Writer:
    trials = (plans.Trial("b01-t01", 1, "t01"), plans.Trial("b01-t02", 1, "t02"))
    plan = plans.Plan(question="?", seed=seed, trials=trials, draw_seed=draw_seed)
    return record.Writer(path, study_text=study, plan=plan, host={"cores": 2}, version="0.1.0")


def trial(name: str, **fields: Any) -> record.Trial:
    return record.Trial(trial=name, treatment=name[-3:], **fields)


def samples() -> pa.Table:
    raw = np.zeros(3, RAW)
    raw["due"] = [0, 10, 20]
    raw["connect"] = [-1, -1, 12]
    raw["done"] = [5, -1, 40]
    raw["request"] = [1, 0, 1]
    raw["host_low"] = [7, 0xFFFFFFFF, 0]
    raw["host_high"] = [1, 0xFF, 0]
    return record.samples_table(raw, np.array([30, 31], np.uint32))


def test_samples_keep_what_happened_and_null_what_did_not() -> None:
    table = samples()
    assert table.schema.equals(record.SAMPLES)
    assert table.column("query").to_pylist() == [31, 30, 31]
    assert table.column("connect").to_pylist() == [None, None, 12]
    assert table.column("done").to_pylist() == [5, None, 40]
    assert table.column("host").to_pylist() == [7 + (1 << 32), None, 0]


def test_a_trial_is_there_once_its_json_is(tmp_path: Path) -> None:
    w = writer(tmp_path / "r")
    assert not w.has("b01-t01")
    w.trial(trial("b01-t01"), samples=samples())
    assert w.has("b01-t01")
    opened = record.open_record(tmp_path / "r")
    assert opened.trials[0].status == "ok"
    assert opened.samples("b01-t01").num_rows == 3
    assert opened.replies("b01-t01").num_rows == 0


def test_samples_that_come_in_pieces_read_as_one(tmp_path: Path) -> None:
    w = writer(tmp_path / "r")
    pieces = (samples().slice(start, 1) for start in range(3))
    w.trial(trial("b01-t01"), samples=pieces)
    assert record.open_record(tmp_path / "r").samples("b01-t01").equals(samples())


def test_trials_come_in_the_order_of_the_plan(tmp_path: Path) -> None:
    w = writer(tmp_path / "r")
    w.trial(trial("b01-t02"))
    w.trial(trial("b01-t01"))
    names = [t.trial for t in record.open_record(tmp_path / "r").trials]
    assert names == ["b01-t01", "b01-t02"]


def test_a_failed_trial_is_on_record_and_is_tried_again(tmp_path: Path) -> None:
    w = writer(tmp_path / "r")
    w.trial(trial("b01-t01", status="failed", stage="deploy", reason="no"))
    assert not w.has("b01-t01")
    assert record.open_record(tmp_path / "r").trials[0].reason == "no"
    w.trial(trial("b01-t01"), samples=samples())
    assert writer(tmp_path / "r").has("b01-t01")


def test_what_a_killed_run_left_half_written_is_not_a_trial(tmp_path: Path) -> None:
    w = writer(tmp_path / "r")
    folder = tmp_path / "r/trials/b01-t01"
    folder.mkdir()
    (folder / ".samples.parquet").write_bytes(b"PAR1")
    (folder / ".trial.json").write_text('{"status":')
    assert not w.has("b01-t01")
    assert record.open_record(tmp_path / "r").trials == []


def test_another_study_does_not_continue_a_record(tmp_path: Path) -> None:
    writer(tmp_path / "r")
    # Nothing is lost where nothing was measured yet: who mends a study that could not begin.
    assert writer(tmp_path / "r", seed=3).record.plan.seed == 3
    writer(tmp_path / "r", seed=1).trial(
        trial("b01-t01", status="failed", stage="deploy", reason="no")
    )
    with pytest.raises(RecordError, match="another study"):
        writer(tmp_path / "r", seed=2)


def test_other_words_on_the_command_line_are_not_another_study(tmp_path: Path) -> None:
    def begun(*command: str, effort: float = 1.0) -> record.Record:
        judging = plans.Judging(measure="sweep", command=command, effort=effort)
        plan = plans.Plan(question="?", seed=1, judging=judging)
        about: dict[str, Any] = {"study_text": "", "host": {}, "version": "0.1.0"}
        return record.Writer(tmp_path / "r", plan=plan, **about).record

    begun("load", "x", "--json")
    assert begun("load", "x").plan.judging.command == ("load", "x", "--json"), "as it was begun"
    (tmp_path / "r/trials/b01-t01").mkdir()
    with pytest.raises(RecordError, match="another study"):
        begun("load", "x", effort=0.5)


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(RecordError, match="not empty"):
        writer(tmp_path)
    assert (tmp_path / "precious.txt").read_text() == "mine"


def test_a_record_of_another_format_is_refused_with_a_sentence(tmp_path: Path) -> None:
    writer(tmp_path / "r")
    about = json.loads((tmp_path / "r/record.json").read_text())
    (tmp_path / "r/record.json").write_text(json.dumps({**about, "format": 99}))
    with pytest.raises(RecordError, match=r"format 99.*reads formats 1 to 2"):
        record.open_record(tmp_path / "r")


def test_a_folder_that_is_no_record_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="not a record"):
        record.open_record(tmp_path)


def test_a_damaged_table_is_said_to_be_damaged(tmp_path: Path) -> None:
    w = writer(tmp_path / "r")
    w.trial(trial("b01-t01"), samples=samples())
    opened = record.open_record(tmp_path / "r")
    opened.samples_path("b01-t01").write_bytes(b"PAR1 but not really")
    with pytest.raises(RecordError, match="damaged"):
        opened.samples("b01-t01")


def test_samples_of_before_connect_was_recorded_have_none(tmp_path: Path) -> None:
    w = writer(tmp_path / "r")
    w.trial(trial("b01-t01"), samples=samples().drop_columns(["connect"]))
    opened = record.open_record(tmp_path / "r")
    assert opened.samples("b01-t01").schema.equals(record.SAMPLES)
    for columns in (["connect"], ["done", "connect", "due"], None):
        table = opened.samples("b01-t01", columns)
        assert table.column_names == (columns or record.SAMPLES.names)
        assert table.column("connect").to_pylist() == [None] * 3


def test_samples_without_a_column_that_always_was_are_not_ours(tmp_path: Path) -> None:
    w = writer(tmp_path / "r")
    w.trial(trial("b01-t01"), samples=samples().drop_columns(["done"]))
    with pytest.raises(RecordError, match="no column done"):
        record.open_record(tmp_path / "r").samples("b01-t01", ["due", "done"])


def test_a_full_disk_is_one_sentence_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = writer(tmp_path / "r")

    def full(*_args: object, **_kwargs: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("searchbench.record.samples.pq.ParquetWriter", full)
    with pytest.raises(RecordError, match=r"disk is full.*continues"):
        w.trial(trial("b01-t01"), samples=samples())
    assert not w.has("b01-t01")


def test_any_reader_of_parquet_reads_it_without_us(tmp_path: Path) -> None:
    w = writer(tmp_path / "r")
    w.trial(trial("b01-t01"), samples=samples())
    path = tmp_path / "r/trials/b01-t01/samples.parquet"
    table = pq.read_table(path)
    assert table.schema.names == record.SAMPLES.names
    assert table.column("done").to_pylist() == [5, None, 40]


def test_a_trial_reads_as_it_was_written(tmp_path: Path) -> None:
    told = trial(
        "b01-t01", levels={"load.clients": 2, "on": True}, window=Window(5, 9),
        load=Load(kind="open", rate_per_s=755.25, promise=1, full=True), notes=[Note(kind="a")],
    )  # fmt: skip
    writer(tmp_path / "r").trial(told)
    assert record.open_record(tmp_path / "r").trials == [told]


def test_a_run_that_goes_on_keeps_what_it_drew_and_one_that_is_told_a_draw_takes_no_other(
    tmp_path: Path,
) -> None:
    drawn = writer(tmp_path / "a").record.plan.draw_seed
    assert drawn is not None
    assert writer(tmp_path / "b").record.plan.draw_seed != drawn, "another run, another draw"
    (tmp_path / "a/trials/b01-t01").mkdir()
    assert writer(tmp_path / "a").record.plan.draws == drawn
    assert writer(tmp_path / "a", draw_seed=drawn).record.plan.draws == drawn
    with pytest.raises(RecordError, match="another study"):
        writer(tmp_path / "a", draw_seed=(drawn + 1) % 2**32)
    assert writer(tmp_path / "c", draw_seed=0).record.plan.draws == 0


def test_a_record_from_before_runs_drew_for_themselves_has_the_draw_of_its_seed(
    tmp_path: Path,
) -> None:
    kept = writer(tmp_path / "r", seed=7)
    kept.grow(msgspec.structs.replace(kept.record.plan, draw_seed=None))
    (tmp_path / "r/trials/b01-t01").mkdir()
    assert writer(tmp_path / "r", seed=7).record.plan.draws == 7


def test_a_search_that_appended_to_its_plan_is_continued_and_another_is_not(tmp_path: Path) -> None:
    judging = plans.Judging(measure="capacity", promises=("p99 < 50ms",))
    template = plans.Treatment(
        id="t01", label="a", system="a", engine="null", levels={}, settings={}
    )
    begun = plans.Plan(question="?", seed=1, treatments=(template,), judging=judging)
    about: dict[str, Any] = {"study_text": "", "host": {}, "version": "0.1.0"}
    w = record.Writer(tmp_path / "r", plan=begun, **about)
    grown = msgspec.structs.replace(
        w.record.plan,
        treatments=(template, msgspec.structs.replace(template, id="t02")),
        trials=(plans.Trial("b01-t02", 1, "t02"),),
    )
    w.grow(grown)
    assert record.Writer(tmp_path / "r", plan=begun, **about).record.plan == grown
    (tmp_path / "r/trials/b01-t02").mkdir()
    promised = msgspec.structs.replace(judging, promises=("p99 < 10ms",))
    with pytest.raises(RecordError, match="another study"):
        record.Writer(
            tmp_path / "r", plan=msgspec.structs.replace(begun, judging=promised), **about
        )


def test_who_measures_into_a_record_is_named_and_leaves_no_trace(tmp_path: Path) -> None:
    place = tmp_path / "records/r"
    with alone(place), pytest.raises(RecordError) as refused, alone(place):
        pass
    assert str(refused.value).startswith(
        f"{place}: another command measures into this record: process {os.getpid()} since "
    )
    assert not (tmp_path / "records").exists()
    with alone(place):
        writer(place)
    assert sorted(each.name for each in place.iterdir()) == [
        "host.json", "plan.json", "queries", "record.json", "study.toml", "trials",
    ]  # fmt: skip


def test_a_lock_that_was_left_behind_or_cannot_be_had_stops_nobody(tmp_path: Path) -> None:
    place = tmp_path / "r"
    place.mkdir()
    (place / ".lock").write_text("1 elsewhere 2026-01-31T12:00:00+00:00\n")
    with alone(place):
        writer(place)
    (tmp_path / "file").touch()
    with alone(tmp_path / "file/r"), pytest.raises(RecordError, match="cannot be written"):
        writer(tmp_path / "file/r")


def test_only_one_of_many_has_the_lock_at_a_time(tmp_path: Path) -> None:
    inside = threading.Semaphore()
    had = 0

    def take() -> None:
        nonlocal had
        for _ in range(50):
            try:
                with alone(tmp_path / "r"):
                    assert inside.acquire(blocking=False), "two at a time"
                    had += 1
                    inside.release()
            except RecordError:
                pass

    with ThreadPoolExecutor(4) as several:
        for done in [several.submit(take) for _ in range(4)]:
            done.result()
    assert had


@pytest.mark.parametrize("lost", ["study.toml", "trials", "plan.json", "host.json"])
def test_what_a_record_lost_is_named(tmp_path: Path, lost: str) -> None:
    """And nothing else is blamed, neither an interruption nor the folder of the report."""
    path = records.two_systems(tmp_path / "r", blocks=1)
    (path / lost).rename(tmp_path / "lost")

    def reported() -> None:
        opened = record.open_record(path)
        write_report(opened, judge(opened), tmp_path / "page")

    with pytest.raises(RecordError) as error:
        reported()
    assert str(error.value) == f"{path / lost}: is missing; the record is not whole"
