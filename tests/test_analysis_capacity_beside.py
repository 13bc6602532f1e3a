"""The capacity of readers beside a writer, in virtual time: servers whose limits are known."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from queues import Serve, fixed
from searchbench.analysis.capacity.bracket import bracket
from searchbench.analysis.capacity.pace import Seen
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement
from searchbench.analysis.roles.model import CapacityBeside
from searchbench.record import Record
from searchbench.report.document.assemble import document
from searchbench.report.document.blocks import Table
from searchbench.report.sheets import write_sheets
from searchbench.workload.roles import resolve, whole_cycles_s
from searches import WARMUP_S, Lab, search

PROMISE = "p99 < 10ms"
IDLE, BUSY = "meanwhile nothing", "meanwhile writing"
ONE, TWO = fixed(1, 0.002), fixed(2, 0.002)


def writer(per_s: float, **keys: Any) -> dict[str, Any]:
    return resolve({"does": "write", "documents_per_s": per_s, **keys})


def searched(
    path: Path, idle: Serve, busy: Serve, *, keeps: float = 1.0, blocks: int = 1,
    table: Mapping[str, Any] | None = None, first: str = IDLE,
) -> Record:  # fmt: skip
    """Two searches: without a writer, and beside one that keeps to a share of its clock."""
    beside = {first: (writer(0), 1.0), BUSY: (table or writer(50), keeps)}
    servers = {first: idle, BUSY: busy}
    lab = Lab(path, servers, (PROMISE,), effort=0.3, look_per_s=250, blocks=blocks, beside=beside)
    return lab.run()


def beside_of(judged: Judgement) -> CapacityBeside:
    assert judged.roles is not None
    (found,) = judged.roles.capacity
    return found


def test_another_writer_is_another_load(tmp_path: Path) -> None:
    def one(name: str, table: Mapping[str, Any], serve: Serve, seed: int = 1) -> Record:
        lab = Lab(tmp_path / name, {"s": serve}, (PROMISE,), effort=0.3, look_per_s=250,
                  beside={"s": (table, 1.0)}, seed=seed)  # fmt: skip
        return lab.run()

    first, busier = one("a", writer(50), TWO), one("b", writer(500), ONE)
    for table, why in ((busier, "documents_per_s of role writer 50 and 500"),
                       (one("c", writer(0), TWO), "role writer write and none")):  # fmt: skip
        found = compare_records(first, table, 0.05, (), ())
        (line,) = found.comparisons
        assert line.verdict == "not comparable"
        assert line.reason == f"the load is not the same ({why})"
        assert (found.regressed, found.beyond_threshold) == (None, False)
    same = compare_records(first, one("d", writer(50), TWO, 2), 0.05, (), ())
    assert same.comparisons[0].verdict != "not comparable"


def test_a_writer_that_takes_one_of_two_workers_halves_the_capacity(tmp_path: Path) -> None:
    record = searched(tmp_path / "r", TWO, ONE)
    judged = judge(record)
    found = beside_of(judged)
    assert (found.subject, found.idle, found.unresolved) == (BUSY, IDLE, "")
    assert found.ratio is not None
    span = found.ratio.interval
    assert span is not None
    idle, busy = (c for c in judged.capacity)
    assert (found.holds, found.fails) == (busy.holds, busy.fails)
    assert (found.idle_holds, found.idle_fails) == (idle.holds, idle.fails)
    # Two workers are busier at the same wait, so a little less than a half is left.
    assert 0.35 < found.ratio.value < 0.5
    assert span.low < found.ratio.value < span.high
    assert span.method == "the intervals of both searches"
    (pace,) = found.paces
    assert pace.asked_per_s == pytest.approx(50, rel=0.1)
    assert pace.acknowledged_per_s == pytest.approx(50, rel=0.1)
    assert not pace.short
    assert f"the capacity of the readers of {BUSY} is" in judged.verdict.decision
    assert "fewer writes" not in judged.verdict.decision


def test_a_writer_that_costs_nothing_is_not_resolved(tmp_path: Path) -> None:
    judged = judge(searched(tmp_path / "r", ONE, ONE))
    found = beside_of(judged)
    assert found.unresolved
    assert found.ratio is not None
    span = found.ratio.interval
    assert span is not None
    assert span.low < 1 < span.high
    assert "but they are not told apart" in judged.verdict.decision
    assert judged.verdict.best is None


def test_with_three_searches_of_each_the_ratio_is_paired_by_block(tmp_path: Path) -> None:
    judged = judge(searched(tmp_path / "r", TWO, ONE, blocks=3))
    ratio = beside_of(judged).ratio
    assert ratio is not None
    assert ratio.interval is not None
    assert (ratio.n, ratio.interval.method) == (3, "t over blocks, on logs")
    assert 0.35 < ratio.interval.low < ratio.value < ratio.interval.high < 0.5
    idle, _ = judged.capacity
    assert sorted(idle.blocks) == [1, 2, 3]


def test_a_writer_that_fell_behind_is_said_beside_the_capacity(tmp_path: Path) -> None:
    record = searched(tmp_path / "r", TWO, ONE, keeps=0.5)
    judged = judge(record)
    (pace,) = beside_of(judged).paces
    assert pace.short
    assert pace.asked_per_s == pytest.approx(50, rel=0.1)
    assert pace.acknowledged_per_s == pytest.approx(25, rel=0.1)
    assert pace.behind_s is not None
    assert pace.behind_s > 1
    said = judged.verdict.decision
    assert f"{BUSY} (" in said
    assert "took fewer writes than it was asked to" in said
    assert "So this is the capacity beside that many writes." in said
    write_sheets(judged, tmp_path)
    with (tmp_path / "capacity_beside.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["subject"], row["idle"], row["short"]) == (BUSY, IDLE, "True")
    assert float(row["acknowledged_per_s"]) == pace.acknowledged_per_s
    page = document(record, judged)
    section = next(s for s in page.sections if s.id == "roles")
    table = next(b for b in section.blocks if isinstance(b, Table))
    cells = {c.name: cell for c, cell in zip(table.columns, table.rows[0], strict=True)}
    assert cells["Acknowledged"].tone == "bad"
    assert cells["Asked"].text.endswith("documents/s")
    assert "on its own copy of the index" in page.method


def test_every_trial_has_the_warm_up_of_the_study_and_whole_periods(tmp_path: Path) -> None:
    table = resolve({"does": "write", "every_s": 4.0, "batch": 5})
    record = searched(tmp_path / "r", TWO, ONE, table=table)
    for trial in record.trials:
        assert (trial.load.warmup_s or 0.0) >= WARMUP_S
        if trial.subject == BUSY and trial.load.kind == "open":
            assert trial.load.seconds is not None
            assert trial.load.seconds % 4.0 == pytest.approx(0.0, abs=1e-6)


def test_windows_are_whole_periods_also_of_idle_roles() -> None:
    publisher = resolve({"does": "publish", "every_s": 5.0, "idle": True})
    both = {"writer": writer(10), "publisher": publisher}
    assert [whole_cycles_s(both, s) for s in (0.3, 5.0, 5.1, 12.0)] == [5.0, 5.0, 10.0, 15.0]
    assert whole_cycles_s({"writer": writer(10)}, 0.3) == 0.3
    assert whole_cycles_s({}, 7.0) == 7.0


def test_a_configuration_without_an_idle_one_has_no_ratio(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "r", {BUSY: ONE}, (PROMISE,), effort=0.3, look_per_s=450,
              beside={BUSY: (writer(50), 1.0)})  # fmt: skip
    judged = judge(lab.run())
    found = beside_of(judged)
    assert (found.idle, found.ratio) == ("", None)
    assert found.paces
    assert "times that of" not in judged.verdict.decision


def test_a_promise_kept_while_the_writer_died_says_nothing_and_a_broken_one_does() -> None:
    found = search(ONE, PROMISE, 400.0, effort=0.3)
    died = [replace(d, judged=replace(d.judged, alone="the writer died")) for d in found.driven]
    kept = [d for d in died if d.seems_kept]
    assert kept
    assert all(d.judged.says_nothing for d in kept)
    assert not any(d.judged.says_nothing for d in died if not d.seems_kept)
    seen = bracket(Seen(died), 0.3)
    assert seen.holds is None
    assert "did not go on as it should (the writer died)" in seen.sentence
    nothing = bracket(Seen(kept), 0.3)
    assert nothing.sentence.startswith("Nothing is known about the capacity of readers with roles")
