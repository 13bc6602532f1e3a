"""The probe's counters, and what they amount to within a window."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from searchbench.lab.probe import kernel, others, totals
from searchbench.lab.probe.files import Kept
from searchbench.lab.probe.others import Process
from searchbench.lab.probe.probe import Probe
from searchbench.lab.probe.server import _tree_of, ids
from searchbench.lab.probe.threads import Threads
from searchbench.record import PROBE
from searchbench.record.trial import Window

SECOND = 1_000_000_000
# A process with threads that are named as HotSpot names them; its compiler has burnt 0.2 s.
JVM = """
import ctypes, threading, time
def live(name):
    ctypes.CDLL(None).prctl(15, name.encode())
    while name[0] == "C" and time.thread_time() < 0.2: pass
    ready.wait()
    time.sleep(60)
ready = threading.Barrier(4)
for name in ("C2 CompilerThread0", "VM Thread", "http"):
    threading.Thread(target=live, args=(name,), daemon=True).start()
ready.wait()
print(flush=True)
time.sleep(60)
"""

# Two processes that share 64 MB, or one alone: both have touched all of it.
SHARED = """
import mmap, os, sys, time
pages = mmap.mmap(-1, 64 << 20)
pages.write(bytes(64 << 20))
ready = os.pipe()
if sys.argv[1] == "2" and os.fork() == 0:
    sum(pages[at] for at in range(0, 64 << 20, mmap.PAGESIZE))
    os.write(ready[1], b"1")
    time.sleep(60)
if sys.argv[1] == "2": os.read(ready[0], 1)
print(flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_memory_that_processes_share_counts_once(processes: int) -> None:
    parent = subprocess.Popen([sys.executable, "-c", SHARED, str(processes)],
                              stdout=subprocess.PIPE)  # fmt: skip
    root = psutil.Process(parent.pid)
    try:
        assert parent.stdout is not None
        parent.stdout.readline()
        with Probe(lambda: [root], interval_s=0.05) as seen:
            time.sleep(0.5)
        table = seen.table(0)
    finally:
        for each in [*root.children(), root]:
            each.kill()
        parent.communicate()
    found = totals.server_totals(table, Window(start=0, end=table.column("t")[-1].as_py()))
    shared = 64 << 20
    assert found.peak_rss_bytes is not None
    assert found.peak_memory_bytes is not None
    assert found.peak_rss_bytes > processes * shared
    assert shared < found.peak_memory_bytes < 1.6 * shared
    assert (found.peak_pss_bytes is None) == (processes == 1)


def test_what_a_child_used_is_not_lost_when_it_ends() -> None:
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    code = f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', {burn!r}]); "
    parent = subprocess.Popen([sys.executable, "-c", code + "print(flush=True); time.sleep(60)"],
                              stdout=subprocess.PIPE)  # fmt: skip
    try:
        with Probe(lambda: [psutil.Process(parent.pid)], interval_s=0.05) as seen:
            assert parent.stdout is not None
            parent.stdout.readline()
            time.sleep(0.1)
        table = seen.table(0)
    finally:
        parent.kill()
        parent.communicate()
    used = [s for s in table.column("server_cpu_s").to_pylist() if s is not None]
    assert all(later > sooner - 1e-9 for sooner, later in pairwise(used))  # sums of ticks
    assert used[-1] - used[0] > 0.25
    faults = [n for n in table.column("server_major_faults").to_pylist() if n is not None]
    assert faults == sorted(faults)


def test_every_column_of_the_probe_is_filled_or_null_where_the_kernel_has_nothing() -> None:
    with Probe(lambda: [psutil.Process()]) as seen:
        pass
    table = seen.table(0)
    assert table.schema == PROBE
    cores = table.column("core_busy_s").to_pylist()
    assert all(sum(s is not None for s in row) == psutil.cpu_count() for row in cores)
    for row in table.select(["host_nice_s", "running", "memory_cached_bytes", "host_faults"]):
        assert row.null_count == 0
    links = {link["name"]: link for link in table.column("links")[0].as_py()}
    assert links["lo"]["sent_bytes"] == links["lo"]["received_bytes"]
    for name in ("cpu", "io", "memory"):
        there = Path(f"/proc/pressure/{name}").exists()
        assert (table.column(f"stalled_{name}_s").null_count == 0) is there


def test_each_core_has_what_it_grew_by_within_the_window() -> None:
    rows = [
        {
            "t": t * SECOND,
            "core_busy_s": [100 + 0.5 * t, None, 7.0],
            "core_interrupts_s": [0.1 * t, None, 0.0],
            "core_steal_s": [0.0, None, 0.25 * t],
            "core_idle_s": [0.4 * t, None, 0.75 * t],
            "core_mhz": [3000.0 - 100 * t, None, None] if t % 2 == 0 else None,
        }
        for t in range(9)
    ]
    table = pa.Table.from_pylist(rows, schema=PROBE)
    first, third = totals._by_core(table, Window(int(1.5 * SECOND), 6 * SECOND))
    assert (first.cpu, third.cpu) == (0, 2), "core 1 is not there"
    assert first.busy_s == pytest.approx(2.25)
    assert first.interrupts_s == pytest.approx(0.45)
    assert third.steal_s == pytest.approx(1.125)
    assert (first.mhz_least, first.mhz_most) == (2400.0, 2800.0)
    assert third.mhz_most is None
    none = pa.Table.from_pylist([{"t": 0}, {"t": SECOND}], schema=PROBE)
    assert totals._by_core(none, Window(0, SECOND)) == []


def test_the_times_that_control_groups_were_stopped_are_read(tmp_path: Path) -> None:
    stat = tmp_path / "cpu.stat"
    stat.write_text("usage_usec 12\nnr_periods 40\nnr_throttled 7\nthrottled_usec 100\n")
    assert kernel.throttled(stat) == 7
    stat.write_text("usage_usec 12\n")
    assert kernel.throttled(stat) is None, "the root has no limit"
    assert kernel.throttled(tmp_path / "none") is None


def test_the_groups_of_a_process_are_its_own_and_those_above(tmp_path: Path) -> None:
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    for pid, group in (("self", "/ours"), ("7", "/system.slice/mariadb.service")):
        (proc / pid).mkdir(parents=True)
        (proc / pid / "cgroup").write_text(f"0::{group}\n")
    limited = groups / "system.slice" / "mariadb.service"
    limited.mkdir(parents=True)
    for folder in (limited, limited.parent):
        (folder / "cpu.stat").write_text("nr_throttled 3\n")
    own = list(kernel.limit_files(7, proc, groups))
    assert own == [limited / "cpu.stat", limited.parent / "cpu.stat"]
    assert list(kernel.limit_files("self", proc, groups)) == []
    assert list(kernel.limit_files(8, proc, groups)) == []


def test_a_limit_of_a_system_that_ran_already_is_seen_and_begins_at_nought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat, pid = tmp_path / "cpu.stat", psutil.Process().pid
    stat.write_text("nr_throttled 70\n")
    monkeypatch.setattr(
        kernel, "limit_files", lambda process="self": [stat] if process == pid else []
    )
    for attached in (True, False):
        with Probe(lambda: [psutil.Process()], interval_s=10.0, attached=attached) as machine:
            stat.write_text("nr_throttled 75\n")
            machine.mark()
        stopped = machine.table(0).column("throttled").to_pylist()
        assert stopped == ([0, 5, 5] if attached else [None] * 3)
        stat.write_text("nr_throttled 70\n")


def test_who_else_ran_is_named_without_the_server_and_ourselves() -> None:
    before = {1: Process("init", 0, 1, 9.0), 5: Process("make", 1, 7, 2.0),
              6: Process("cc1", 5, 8, 1.5), 7: Process("server", 1, 9, 3.0),
              8: Process("cron", 1, 9, 5.0), 9: Process("[kernel]", 2, 1, 4.0)}  # fmt: skip
    after = {1: Process("init", 0, 1, 9.0), 5: Process("make", 1, 7, 2.1 + 2.5),
             7: Process("server", 1, 9, 8.0), 8: Process("other", 1, 40, 0.5),
             9: Process("[kernel]", 2, 1, 4.2), 10: Process("cc1", 5, 41, 0.25)}  # fmt: skip
    # cc1 had used 1.5 s before and 1 s more until it ended, which make then has on its account.
    assert others.used(before, after, {7}) == {
        "make": 1.1, "other": 0.5, "cc1": 0.25, "[kernel]": 0.2
    }  # fmt: skip


def test_the_processes_of_this_machine_are_seen_with_their_parents() -> None:
    mine = others.processes()[psutil.Process().pid]
    assert mine.parent == psutil.Process().ppid()
    assert mine.cpu_s == pytest.approx(sum(psutil.Process().cpu_times()[:4]), abs=1.0)


def test_the_threads_of_a_jvm_say_what_compiling_and_collecting_took() -> None:
    found = Threads()
    found.look(os.getpid())
    assert found.jvm() == {}, "this process is no JVM"
    server = subprocess.Popen([sys.executable, "-c", JVM], stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        found.begin()
        found.look(server.pid)
        seconds = found.jvm()
        assert seconds["jvm_compilers_s"] == pytest.approx(0.2, abs=0.05)
        assert seconds["jvm_collectors_s"] < 0.05
        busiest = found.busiest()[0]
        assert (busiest["pid"], busiest["name"]) == (server.pid, "C2 CompilerThre")
    finally:
        server.kill()
        server.communicate()
    with pytest.raises(OSError, match="No such file"):
        found.look(server.pid)
    assert found.jvm() == seconds, "what has ended keeps its time"


def test_what_a_phase_used_counts_each_process_from_its_own_zero() -> None:
    used_s = [None, 0.2, 1.0, 1.5, None, 0.1, 0.4, 0.4]  # ingested by one, driven by another
    rows = [{"t": t * SECOND, "server_cpu_s": s} for t, s in enumerate(used_s)]
    table = pa.Table.from_pylist(rows, schema=PROBE)

    def of(start: float, end: float, *, started: bool = True) -> float | None:
        window = Window(int(start * SECOND), int(end * SECOND))
        return totals.spent(table, window, started=started).cpu_s

    assert of(0, 3) == pytest.approx(1.5), "all that the first one used"
    assert of(3.5, 7) == pytest.approx(0.4), "all that the second one used"
    assert of(0, 7) == pytest.approx(1.9)
    assert of(0, 3, started=False) == pytest.approx(1.3), "a system that ran before had used some"
    assert of(3.5, 4.5) is None, "nothing ran"


def test_a_device_has_what_it_grew_by_and_one_that_came_is_counted_from_then_on() -> None:
    def disk(name: str, reads: int, busy_s: float) -> dict[str, object]:
        counts = dict.fromkeys(("writes", "written_bytes", "in_flight"), 0)
        times = dict.fromkeys(("read_s", "write_s", "waited_s"), 0.0)
        return {"name": name, "reads": reads, "read_bytes": 4096 * reads, "busy_s": busy_s,
                **counts, **times}  # fmt: skip

    rows = [
        {"t": t * SECOND, "devices": [disk("vda", 10 * t, 0.5 * t), disk("vdb", 7, 1.0)]
         + ([disk("loop0", 100 * t, 0.1 * t)] if t >= 4 else [])}
        for t in range(9)
    ]  # fmt: skip
    table = pa.Table.from_pylist(rows, schema=PROBE)
    vda, loop = totals._devices(table, Window(int(1.5 * SECOND), 6 * SECOND))
    assert (vda.name, vda.reads, vda.read_bytes) == ("vda", 45, 45 * 4096)
    assert vda.busy_s == pytest.approx(2.25)
    assert (loop.name, loop.reads) == ("loop0", 200), "from the fourth second on"


def test_the_busiest_thread_of_a_window_is_named_with_its_share() -> None:
    rows = [
        {"t": t * SECOND,
         "server_busiest": [
             {"pid": 9, "thread": 9, "name": "main", "cpu_s": 50.0 + 0.2 * t},
             {"pid": 9, "thread": 12, "name": "worker", "cpu_s": 0.95 * t},
             *([{"pid": 9, "thread": 13, "name": "moment", "cpu_s": 1.0 * t}] if t == 3 else []),
         ]}
        for t in range(9)
    ]  # fmt: skip
    table = pa.Table.from_pylist(rows, schema=PROBE)
    found = totals.server_totals(table, Window(2 * SECOND, 8 * SECOND))
    assert found.busiest_thread == "worker"
    assert found.busiest_thread_share == pytest.approx(0.95)


def test_a_drive_has_a_sample_at_each_end_and_the_probe_goes_on_after_it() -> None:
    began = time.time_ns()
    with Probe(list, interval_s=10.0) as machine:
        with machine.drive():
            time.sleep(0.01)
        driven = machine.table(began)
    whole = machine.table(began)
    assert driven.num_rows == 3, "the first, and both ends of the drive"
    assert whole.num_rows == 4
    assert whole.column("t").to_pylist() == sorted(whole.column("t").to_pylist())
    assert whole.column("server_cpu_s").null_count == 4, "no server runs"


def test_a_probe_that_ends_early_says_why() -> None:
    asked = iter([[], []])
    with Probe(lambda: next(asked), interval_s=0.01) as machine:
        deadline = time.monotonic() + 10
        while not machine.failure and time.monotonic() < deadline:
            time.sleep(0.01)
    assert machine.failure.startswith("StopIteration")


def test_a_kept_file_is_read_anew_whole_and_not_of_another_process(tmp_path: Path) -> None:
    kept, path = Kept(most=1), tmp_path / "counts"
    for text in ("1", "2" * 50_000, "3"):
        path.write_text(text)
        assert kept.read(str(path)) == text.encode()
    with subprocess.Popen(["sleep", "60"]) as child:
        other = Kept()
        assert other.read(f"/proc/{child.pid}/stat").startswith(f"{child.pid} ".encode())
        child.kill()
    with pytest.raises(ProcessLookupError):
        other.read(f"/proc/{child.pid}/stat")
    second = tmp_path / "second"  # beyond ``most``: opened each time, and closed again
    second.write_text("a")
    before = len([*Path("/proc/self/fd").iterdir()])
    assert [kept.read(str(second)) for _ in range(3)] == [b"a"] * 3
    assert len([*Path("/proc/self/fd").iterdir()]) == before
    kept.close()
    assert len([*Path("/proc/self/fd").iterdir()]) == before - 1


def test_the_lists_of_the_kernel_have_the_same_tree_as_all_processes_of_the_machine() -> None:
    nested = "sh -c 'sleep 60 & sleep 60 & wait' & sleep 60 & wait"
    with subprocess.Popen(["sh", "-c", nested], start_new_session=True) as shell:
        root = psutil.Process(shell.pid)
        give_up = time.monotonic() + 10
        while len(tree := ids([root])) < 5 and time.monotonic() < give_up:
            time.sleep(0.01)
        try:
            assert len(tree) == 5
            assert _tree_of([root]) == tree
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
    assert _tree_of([root]) == set()
