"""Memory, cores and shares of CPU: each lever on the real kernel, and each with its effect gone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from placing import home, made, needs
from searchbench.errors import LabError
from searchbench.lab.place import cold, control, group, mounts, zfs
from searchbench.lab.place.cores import dealt
from searchbench.lab.place.group import Group
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.place.places import Confines
from searchbench.lab.place.storages import Storages
from searchbench.lab.system.seat import in_child
from searchbench.places import Cores, Place
from searchbench.record.trial import Lever

__all__ = ["home", "made"]

CORES = tuple(sorted(os.sched_getaffinity(0)))
MEGABYTE = 1_000_000
READS = """
import sys
file = open(sys.argv[1], "rb", 0)
while file.read(1 << 20):
    pass
print("read", flush=True)
input()
"""
HOARDS = "import sys; x = bytearray(int(sys.argv[1])); x[::4096] = b'x' * len(x[::4096])"


def confines(place: Place, folder: Path, made: Ledger) -> Confines:
    """A place around an index in ``folder``, with a file of 40 MB in it."""
    work = folder / "searchbench-work-of-a-test"
    storages = Storages(place, work / "index", work, made, zfs.Daemon(made, work))
    storages.data.mkdir(parents=True, exist_ok=True)
    (storages.data / "index").write_bytes(os.urandom(40 * MEGABYTE))
    return Confines(place, Cores(CORES[:1], CORES[1:]), storages, made)


def reader(found: Confines, *, joins: bool = True) -> subprocess.Popen[str]:
    """A process in that place that has read the index."""
    process = subprocess.Popen(
        [sys.executable, "-c", READS, str(found._storages.data / "index")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        preexec_fn=in_child(found.cpus, found.joins if joins else ()),
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "read\n"
    return process


def lever(found: Confines, name: str) -> Lever:
    return next(v for v in found.levers if v.name.endswith(f".{name}"))


def ended(process: subprocess.Popen[str]) -> None:
    process.communicate("\n", timeout=20)


def test_a_cap_holds_for_the_pages_of_files_too(home: Path, made: Ledger) -> None:
    needs("memory")
    found = confines(Place(name="small", memory_bytes=24 * MEGABYTE), home, made)
    found.settle()
    process = reader(found)
    try:
        found.loaded({"": [process.pid]})
        found.driven()
        seen = lever(found, "memory")
        assert seen.problem == ""
        assert seen.asked == "24MB"
        assert seen.figures["peak_bytes"] <= 24 * MEGABYTE + (1 << 20)
        assert seen.figures["peak_bytes"] > 0.95 * 24 * MEGABYTE
        assert 5 * MEGABYTE < seen.figures["resident_bytes"] < 24 * MEGABYTE
    finally:
        ended(process)
    assert found.leave() == []


def test_pages_that_the_kernel_forces_on_a_group_are_no_cap_that_failed() -> None:
    at_cap = group.Memory(169_996_288, 170_000_384, 36_605_952, 0, 0)
    assert not at_cap.over_cap
    assert at_cap._replace(peak_bytes=172_000_000).over_cap


def test_a_process_outside_of_the_group_is_noticed(home: Path, made: Ledger) -> None:
    needs("memory")
    found = confines(Place(name="small", memory_bytes=24 * MEGABYTE), home, made)
    found.settle()
    process = reader(found, joins=False)
    try:
        with pytest.raises(LabError, match="is not in the control group of place small") as raised:
            found.loaded({"": [process.pid]})
        assert raised.value.stage == "place"
    finally:
        ended(process)
    found.leave()


def test_pages_that_evade_the_cap_are_noticed(
    home: Path, made: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("memory")
    found = confines(Place(name="small", memory_bytes=24 * MEGABYTE), home, made)
    nothing = cold.Evicted(1, 0, 0)
    monkeypatch.setattr(Storages, "evict", lambda self: nothing)  # it is in memory already
    found.settle()
    process = reader(found)
    try:
        found.loaded({"": [process.pid]})
        with pytest.raises(LabError, match="not charged to its control group, so the cap does not"):
            found.driven()
    finally:
        ended(process)
    found.leave()


SHARES = (
    """
import sys, mmap
shared = mmap.mmap(-1, int(sys.argv[2]))
shared.write(b"x" * len(shared))
"""
    + READS
)


def test_memory_that_processes_share_does_not_hide_pages_that_evade_the_cap(
    home: Path, made: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("memory")
    found = confines(Place(name="small", memory_bytes=200 * MEGABYTE), home, made)
    nothing = cold.Evicted(1, 0, 0)
    monkeypatch.setattr(Storages, "evict", lambda self: nothing)  # the index is in memory already
    found.settle()
    process = subprocess.Popen(
        [sys.executable, "-c", SHARES, str(found._storages.data / "index"), str(60 * MEGABYTE)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        preexec_fn=in_child(found.cpus, found.joins),
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "read\n"
    try:
        found.loaded({"": [process.pid]})
        with pytest.raises(LabError, match="not charged to its control group, so the cap does not"):
            found.driven()
        assert lever(found, "memory").figures["cached_bytes"] < 20 * MEGABYTE
    finally:
        ended(process)
    found.leave()


def test_a_cap_that_the_kernel_does_not_take_is_noticed(
    home: Path, made: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("memory")
    monkeypatch.setattr(Group, "cap_memory", lambda self, limit_bytes: None)
    found = confines(Place(name="small", memory_bytes=24 * MEGABYTE), home, made)
    with pytest.raises(LabError, match=r"places\.small\.memory did not take effect: 24MB was"):
        found.settle()
    found.leave()


def test_the_kernel_ending_a_process_for_memory_is_a_reason_with_the_cap(
    home: Path, made: Ledger
) -> None:
    needs("memory")
    found = confines(Place(name="tiny", memory_bytes=16 * MEGABYTE), home, made)
    found.settle()
    done = subprocess.run(
        [sys.executable, "-c", HOARDS, str(64 * MEGABYTE)],
        preexec_fn=in_child((), found.joins), capture_output=True,
    )  # fmt: skip
    assert done.returncode == -9
    assert "the kernel killed a process of the system" in found.killed()
    with pytest.raises(LabError, match=r"place tiny has: `memory` = 16MB; give it more") as raised:
        found.driven()
    assert raised.value.stage == "drive"
    assert found.leave() == []


def test_a_share_of_cpu_is_what_a_busy_loop_gets(home: Path, made: Ledger) -> None:
    needs("cpu_share")
    found = confines(Place(name="slow", cpu_share=0.3), home, made)
    found.settle()
    seen = lever(found, "cpu_share")
    # Less where others want the core too.
    assert 0.05 < seen.figures["measured_share"] < 0.33
    found.loaded({})
    busy = subprocess.Popen(
        ["sh", "-c", "while :; do :; done"], preexec_fn=in_child(found.cpus, found.joins)
    )
    time.sleep(0.5)
    busy.kill()
    busy.wait()
    found.driven()
    seen = lever(found, "cpu_share")
    assert 0.05 < seen.figures["used_share"] < 0.33
    assert seen.figures["throttled"] > 10
    found.leave()


@pytest.mark.parametrize("share", [0.03, 0.007])
def test_a_small_share_of_one_core_is_kept_too(share: float, home: Path, made: Ledger) -> None:
    needs("cpu_share")
    found = confines(Place(name="slow", cpu_share=share), home, made)
    found.settle()
    seen = lever(found, "cpu_share")
    assert float(seen.read_back) == pytest.approx(share, abs=0.001)
    assert 0 < seen.figures["measured_share"] < 1.1 * share + 0.01
    found.leave()


@pytest.mark.timed
def test_what_one_thread_gets_of_a_share_of_several_cores_is_seen(home: Path, made: Ledger) -> None:
    needs("cpu_share")
    if len(CORES) < 2:
        pytest.skip("hardware: one core")
    found = confines(Place(name="slow", cpu_share=0.5, cores=2), home, made)
    found.settle()
    seen = lever(found, "cpu_share")
    assert seen.figures["measured_share"] < 0.56
    # Where others want the core too, no loop has what it may have.
    if seen.figures["measured_share"] > 0.48:
        assert seen.figures["alone_share"] > seen.figures["measured_share"]
    assert "and one loop alone" in seen.effect
    found.leave()


def test_a_share_that_is_not_kept_is_noticed(
    home: Path, made: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("cpu_share")
    monkeypatch.setattr(Group, "share_cpu", lambda self, cores: None)
    found = confines(Place(name="slow", cpu_share=0.3), home, made)
    with pytest.raises(LabError, match=r"places\.slow\.cpu_share did not take effect: 0\.3 was"):
        found.settle()
    found.leave()
    monkeypatch.setattr(Group, "shared_cpu", lambda self: 0.04)
    found = confines(Place(name="slow", cpu_share=0.04), home, made)
    with pytest.raises(LabError, match=r"a busy loop had .* of each core: more than its share"):
        found.settle()
    found.leave()


def test_threads_keep_to_their_cores(home: Path, made: Ledger) -> None:
    found = confines(Place(name="one", cores=1), home, made)
    found.settle()
    process = reader(found)
    try:
        found.loaded({"": [process.pid]})
        seen = lever(found, "cores")
        assert seen.read_back == seen.asked == f"core {CORES[0]}"
        found.driven()
    finally:
        ended(process)
    found.leave()


def test_a_thread_on_another_core_is_noticed(home: Path, made: Ledger) -> None:
    if len(CORES) < 2:
        pytest.skip("hardware: one core")
    found = confines(Place(name="one", cores=1), home, made)
    found.settle()
    process = reader(found)
    try:
        os.sched_setaffinity(process.pid, CORES)
        with pytest.raises(LabError, match=r"places\.one\.cores did not take effect: core .* was"):
            found.loaded({"": [process.pid]})
    finally:
        ended(process)
    found.leave()


def test_time_on_another_core_is_noticed(home: Path, made: Ledger) -> None:
    needs("cpu_share")
    if len(CORES) < 2:
        pytest.skip("hardware: one core")
    found = confines(Place(name="one", cores=1), home, made)
    found.settle()
    process = reader(found)
    try:
        found.loaded({"": [process.pid]})
        if not found.levers or not found._group or not found._group.cpu().by_core_s:
            pytest.skip("kernel: its control groups do not count time by core")
        astray = subprocess.Popen(
            ["sh", "-c", "while :; do :; done"], preexec_fn=in_child(CORES[1:2], found.joins)
        )
        time.sleep(0.2)
        astray.kill()
        astray.wait()
        with pytest.raises(LabError, match="of its time on other cores"):
            found.driven()
    finally:
        ended(process)
    found.leave()


def test_cores_are_dealt_from_those_that_are_not_the_load_generators_first() -> None:
    cores = Cores((0, 1, 2), (3,))
    assert dealt(None, cores) == (0, 1, 2)
    assert dealt(Place(name="p"), cores) == (0, 1, 2)
    assert dealt(Place(name="p", cores=2), cores) == (0, 1)
    assert dealt(Place(name="p", cores=4), cores) == (0, 1, 2, 3)
    assert dealt(Place(name="p", cores=(3, 1)), cores) == (1, 3)
    threads = Cores((0, 1, 4, 5), (7,), (6,))
    assert dealt(None, threads) == (0, 1, 4, 5)
    assert [dealt(Place(name="p", cores=n), threads) for n in (2, 5, 6)] == [
        (0, 1), (0, 1, 4, 5, 6), (0, 1, 4, 5, 6, 7),
    ]  # fmt: skip
    with pytest.raises(
        LabError, match="`cores` = 5, but this machine lets us use only cores 0, 1, 2, 3"
    ):
        dealt(Place(name="p", cores=5), cores)
    with pytest.raises(LabError, match="`cores` has core 64"):
        dealt(Place(name="p", cores=(0, 64)), cores)


def test_files_leave_memory_and_that_is_proven(home: Path, made: Ledger) -> None:
    found = confines(Place(name="cold", cold="trial"), home, made)
    data = found._storages.data
    assert cold.resident_bytes([data]) > 30 * MEGABYTE
    found.settle()
    seen = lever(found, "cold")
    assert seen.figures["before"] > seen.figures["after"] == 0
    assert seen.figures["pages"] == -(-40 * MEGABYTE // cold.PAGE_BYTES)
    assert cold.resident_bytes([data]) == 0
    found.leave()


def test_files_that_stay_in_memory_are_noticed(
    home: Path, made: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = confines(Place(name="cold", cold="trial"), home, made)
    monkeypatch.setattr(cold, "_advise", lambda path: None)
    monkeypatch.setattr(cold, "_DROP", home / "nowhere/drop_caches")
    with pytest.raises(LabError, match=r"places\.cold\.cold did not take effect: trial was asked"):
        found.settle()
    found.leave()


V2 = {
    "cgroup.controllers": "cpu io memory\n",
    "cgroup.subtree_control": "cpu io memory\n",
    "cgroup.procs": "",
}


def test_groups_of_version_2_are_made_below_the_nearest_that_hands_controllers_on(
    home: Path, made: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel here may have version 1 alone, so its files are told, not asked for."""
    top = home / "cgroup"
    own = top / "user/session"
    own.mkdir(parents=True)
    for name, text in V2.items():
        (top / name).write_text(text)
        (top / "user" / name).write_text("memory\n" if "subtree" in name else text)
    (own / "cgroup.procs").write_text("")
    mount = mounts.Mounted(str(top), "cgroup2", "cgroup2", "0:1", ("rw",))
    monkeypatch.setattr(mounts, "mounted", lambda: [mount])
    monkeypatch.setattr(control, "_own", lambda: {"": "/user/session"})
    assert control.hierarchies(["memory"]) == {"memory": control.Hierarchy(top / "user", 2)}
    assert control.hierarchies(["memory", "cpuacct", "blkio"]) == dict.fromkeys(
        ["memory", "cpuacct", "blkio"], control.Hierarchy(top, 2)
    )
    one = Group(made, ["memory", "cpu", "blkio"])
    one.make()
    folder = one.joins[0].parent
    for name in ("memory.max", "memory.swap.max", "cpu.max", "io.max"):
        (folder / name).write_text("")
    one.cap_memory(5_000_000)
    one.share_cpu(0.5)
    one.limit_rate("7:3", "read_iops", 79)
    assert (folder / "memory.max").read_text() == "5000000"
    assert (folder / "memory.swap.max").read_text() == "0"
    assert (folder / "cpu.max").read_text() == f"{group.PERIOD_US // 2} {group.PERIOD_US}"
    assert one.shared_cpu() == 0.5
    (folder / "io.max").write_text("7:3 rbps=max wbps=max riops=79 wiops=max\n")
    assert one.rate("7:3", "read_iops") == 79
    assert one.rate("7:3", "write_iops") is None
    assert one.late_writes_limited()
    (folder / "memory.events").write_text("low 0\nmax 12\noom 1\noom_kill 1\n")
    (folder / "memory.stat").write_text("anon 1\nfile 4096\n")
    (folder / "memory.peak").write_text("4999000\n")
    assert one.memory() == group.Memory(5_000_000, 4_999_000, 4096, 12, 1)
    for path in folder.iterdir():
        path.unlink()
    assert one.remove() == []
    monkeypatch.undo()


def test_a_machine_without_control_groups_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "mounted", list)
    assert control.hierarchies(["memory"]) == (
        "this machine has no control groups with the controller memory"
    )
