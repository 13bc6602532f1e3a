"""Reads and writes as the kernel counts them: known ones come out exactly, and nobody else's."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from placing import child, home, made, needs
from searchbench.analysis.judge import judge, to_json
from searchbench.errors import LabError, StudyError
from searchbench.lab.place import abilities, ledger, zfs
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.place.storages import Storages
from searchbench.lab.probe import sizes
from searchbench.lab.probe.sizes import Tracer
from searchbench.lab.system.deploy import complete
from searchbench.measure.run import run as measure
from searchbench.places import Place, Storage
from searchbench.record import IO, open_record
from searchbench.report.document.assemble import document
from searchbench.report.document.blocks import Table
from searchbench.study.planner import make_plan
from searchbench.study.read import parse_study

__all__ = ["home", "made"]

# The kernel attaches and detaches what traces slowly where others work beside it.
pytestmark = [pytest.mark.slow, pytest.mark.timed]

# Files are written as a system would write them, by a child of it too; the device's in one piece.
FIRST = """
import os, sys
file = os.open(sys.argv[1] + "/data", os.O_CREAT | os.O_RDWR)
for n in range(10):
    os.pwrite(file, bytes(4096), n * 4096)
os.write(file, bytes(5000))
os.writev(file, [bytes(1000), bytes(24)])
os.fsync(file)
os.fsync(file)
if os.fork() == 0:
    os.pwrite(file, bytes(65536), 0)
    os._exit(0)
os.wait()
"""
SECOND = """
import mmap, os, sys
file = os.open(sys.argv[1] + "/data", os.O_RDWR)
for n in range(3):
    os.pread(file, 100, n)
os.fdatasync(file)
direct = os.open(sys.argv[1] + "/direct", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
for n in range(5):
    os.pwrite(direct, mmap.mmap(-1, 131072), n * 131072)
"""


def stored(home: Path, made: Ledger, kind: str) -> Storages:
    asked = Storage(name="disk", kind=kind, size_bytes=320 << 20)
    work = home / "searchbench-work-of-a-test"
    work.mkdir()
    place = Place(name="here", storages={"data": asked})
    found = Storages(place, work / "index", work, made, zfs.Daemon(made, work))
    found.make()
    found.data.mkdir(parents=True)
    return found


def traced(home: Path, made: Ledger, kind: str) -> list[dict[str, Any]]:
    """What is counted of both programs, each in a phase of its own, on a storage of that kind."""
    tracer = Tracer(made, home / "run")
    tracer.start()
    tracer.enters("place", {})
    found = stored(home, made, kind)
    for phase, program in (("ingest", FIRST), ("drive", SECOND)):
        tracer.enters(phase, found.own)
        # What is no system of ours is not counted: a program that we merely run.
        subprocess.run([sys.executable, "-c", FIRST, str(home)], check=True)
        argv = [sys.executable, "-c", program, str(found.data)]
        complete(argv, run=home / "run", log="log", stage=phase)
    table = tracer.stop()
    assert found.remove() == []
    assert table is not None
    assert table.schema == IO
    return table.to_pylist()


def of_storage(rows: list[dict[str, Any]], source: str) -> dict[tuple[str, str], Any]:
    """By phase and call, count, bytes and sizes."""
    return {
        (row["phase"], row["call"]): (
            row["count"],
            row["bytes"],
            row["sizes"] and {size["from"]: size["count"] for size in row["sizes"]},
        )
        for row in rows
        if row["storage"] == "disk" and row["source"] == source
    }


KNOWN = {
    ("ingest", "pwrite64"): (11, 10 * 4096 + 65536, {4096: 10, 65536: 1}),
    ("ingest", "write"): (1, 5000, {4096: 1}),
    ("ingest", "writev"): (1, 1024, {1024: 1}),
    ("ingest", "fsync"): (2, None, None),
    ("drive", "pread64"): (3, 300, {64: 3}),
    ("drive", "fdatasync"): (1, None, None),
    ("drive", "pwrite64"): (5, 5 * 131072, {131072: 5}),
}


@pytest.mark.parametrize("kind", ["ext4", "btrfs", "ram"])
def test_known_reads_and_writes_come_out_exactly(kind: str, home: Path, made: Ledger) -> None:
    needs("io_sizes", kind)
    rows = traced(home, made, kind)
    assert of_storage(rows, "system") == KNOWN
    assert {r["filesystem"] for r in rows if r["storage"] and r["source"] == "system"} == {kind}
    device = of_storage(rows, "device")
    if kind == "ram":
        assert device == {}
    if kind == "ext4":  # direct writes reach the device as they were made
        count, size, by_size = device["drive", "write"]
        assert by_size[131072] == 5
        assert size >= 5 * 131072
        assert count == sum(by_size.values())


def test_with_zfs_the_calls_of_the_system_are_those_on_its_mount(home: Path, made: Ledger) -> None:
    needs("io_sizes", "zfs")
    seen = of_storage(traced(home, made, "zfs"), "system")
    known = {key: value for key, value in KNOWN.items() if key != ("drive", "pwrite64")}
    assert {key: value for key, value in seen.items() if key in known} == known


def test_what_traces_ends_with_us_however_we_end(home: Path) -> None:
    needs("io_sizes")
    code = """
import sys, time
from pathlib import Path
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.probe.sizes import Tracer
ledger = Ledger()
tracer = Tracer(ledger, Path(sys.argv[1]))
tracer.start()
print("started", flush=True)
time.sleep(600)
"""
    ours = child(code, str(home / "run"), folder=home)
    assert ours.stdout is not None
    assert ours.stdout.readline() == b"started\n"
    (tracer,) = [p for p in psutil.Process(ours.pid).children() if p.name() == "bpftrace"]
    ours.send_signal(signal.SIGKILL)
    ours.communicate()
    give_up = time.monotonic() + 20
    while tracer.is_running() and tracer.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < give_up
        time.sleep(0.02)
    done = ledger.clean()
    assert done.left == ()
    assert list(ledger.folder().glob("*.jsonl")) == []


def test_a_tracer_that_cannot_start_says_why(
    home: Path, made: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("io_sizes")
    monkeypatch.setattr(sizes, "CALLS", ("read", "nosuchcall"))
    with pytest.raises(LabError, match=r"bpftrace does not trace: .*nosuchcall"):
        Tracer(made, home / "run").start()
    assert not [p for p in psutil.Process().children() if p.name() == "bpftrace"]


def test_a_tracer_that_ended_early_is_an_error_and_no_empty_table(home: Path, made: Ledger) -> None:
    needs("io_sizes")
    tracer = Tracer(made, home / "run")
    tracer.start()
    (process,) = [p for p in psutil.Process().children() if p.name() == "bpftrace"]
    process.kill()
    with pytest.raises(LabError, match="bpftrace ended early"):
        tracer.stop()


STUDY = """
question = "How does it write?"
replicates = 2
[corpus]
files = "documents.jsonl"
fields = { text = "text" }
[queries]
file = "queries.txt"
[load]
clients = 1
seconds = 0.3
warmup_s = 0.1
[systems.sqlite]
[places.here]
storage = "disk"
[storages.disk]
filesystem = "ext4"
size = "100MB"
"""


def test_a_traced_trial_is_on_record_and_counts_for_nothing(home: Path) -> None:
    needs("io_sizes", "ext4")
    words = [f"w{n:x}" for n in range(97)]
    with (home / "documents.jsonl").open("w") as file:
        for n in range(2000):
            text = " ".join(words[(n * k) % 97] for k in range(1, 30))
            file.write(json.dumps({"id": str(n), "text": text}) + "\n")
    (home / "queries.txt").write_text("\n".join(words[:20]) + "\n")
    study = parse_study("io_sizes = true\n" + STUDY, "study.toml", home)
    record = measure(study, home / "record", work=home / "work")
    (traced,) = record.traced
    assert (traced.trial, traced.status, traced.reason) == ("io-t01", "ok", "")
    assert "io-t01" not in [t.trial for t in record.trials]
    judged = judge(record)
    assert "io-t01" not in json.dumps(to_json(judged))
    found = of_storage(record.sizes("io-t01").to_pylist(), "system")
    # SQLite's pages are of 4 KiB, and each transaction ends with a sync.
    _, size, by_size = found["ingest", "pwrite64"]
    assert by_size[4096] > 20
    assert size > 4096 * by_size[4096]
    assert found["ingest", "fsync"][0] + found.get(("ingest", "fdatasync"), (0,))[0] > 0
    page = document(record, judged)
    (section,) = [s for s in page.sections if s.id == "io-sizes"]
    (table,) = [b for b in section.blocks if isinstance(b, Table)]
    assert any(row[0].text == "pwrite64" for row in table.rows)
    # The same judgement without it.
    for path in sorted((home / "record" / "trials" / "io-t01").iterdir()):
        path.unlink()
    (home / "record" / "trials" / "io-t01").rmdir()
    assert to_json(judge(open_record(home / "record"))) == to_json(judged)


def parsed(text: str) -> Any:
    return make_plan(parse_study(text, "study.toml", Path.cwd()))


def test_the_plan_traces_each_treatment_once_after_all_blocks(tmp_path: Path) -> None:
    text = STUDY + '[factors]\n"load.clients" = [1, 2]\n'
    text = text.replace("clients = 1\n", "").replace('"documents.jsonl"', f'"{tmp_path}/d.jsonl"')
    text = text.replace('"queries.txt"', f'"{tmp_path}/q.txt"')
    (tmp_path / "d.jsonl").write_text('{"id": "1", "text": "a"}\n')
    (tmp_path / "q.txt").write_text("a\n")
    without, plan = parsed(text), parsed("io_sizes = true\n" + text)
    assert [(t.id, t.block) for t in plan.traced] == [("io-t01", 3), ("io-t02", 3)]
    assert plan.trials == without.trials
    assert without.traced == ()
    assert plan.estimated_s > without.estimated_s + 2 * 0.4


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("clients = 1", "clients = [1, 2]"), "this is a sweep"),
        (("[systems.sqlite]", '[systems.sqlite]\nattach = "frames://127.0.0.1:1"'),
         "sqlite runs already"),
    ],
)  # fmt: skip
def test_what_is_not_started_for_a_trial_is_not_traced(change: tuple[str, str], why: str) -> None:
    text = STUDY.replace(*change).partition("[places")[0]
    with pytest.raises(StudyError, match=f"study.toml:1:.*`io_sizes` .*{why}"):
        parse_study("io_sizes = true\n" + text, "study.toml", Path.cwd())


def test_without_bpftrace_nothing_is_traced_the_page_says_why_and_the_rest_goes_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "documents.jsonl").write_text('{"id": "1", "text": "a"}\n')
    (home / "queries.txt").write_text("a\n")
    text = STUDY.partition("[places")[0]
    study = parse_study("io_sizes = true\n" + text, "study.toml", home)
    monkeypatch.setattr(abilities, "program", lambda name: None)
    why = "bpftrace is not installed; apt-get install bpftrace"
    plan = make_plan(study)
    assert abilities.lacking(plan) == []
    assert abilities.untraced(plan) == [f"reads and writes will not be traced: {why}"]
    record = measure(study, home / "record", work=home / "work")
    assert {t.status for t in record.trials} == {"ok"}
    (traced,) = record.traced
    assert (traced.status, traced.stage, traced.reason) == ("failed", "trace", why)
    (section,) = [s for s in document(record, judge(record)).sections if s.id == "io-sizes"]
    assert f"sqlite: was not traced: {why}" in str(section.blocks)


def test_a_tracer_keeps_nobody_from_removing_a_storage(home: Path, made: Ledger) -> None:
    needs("io_sizes", "zfs")
    found = stored(home, made, "zfs")
    (home / "run").mkdir()
    tracer = Tracer(made, home / "run")
    tracer.start()
    try:
        assert found.remove() == []
    finally:
        tracer.stop()


def test_a_full_table_is_no_result(
    home: Path, made: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("io_sizes", "ram")
    monkeypatch.setattr(sizes, "_KEYS", 5)
    with pytest.raises(LabError, match="a table of bpftrace is full"):
        traced(home, made, "ram")
