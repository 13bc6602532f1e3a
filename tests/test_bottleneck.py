"""What held a treatment back is what was used up, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from placing import home, needs
from records import Study, lognormal
from searchbench.analysis.judge import judge
from searchbench.analysis.trial import bottleneck
from searchbench.analysis.trial.bottleneck import Seen
from searchbench.analysis.trial.measured import Trace, read_trace
from searchbench.analysis.trial.placed import explained, read_at_start
from searchbench.measure.run import run as measure
from searchbench.record import open_record
from searchbench.record.roles import FaultDone, RoleRun
from searchbench.record.trial import (
    CoreTotals,
    DeviceTotals,
    HostTotals,
    Ingest,
    Lever,
    ServerTotals,
    Service,
    Trial,
)

__all__ = ["home"]

SECONDS = 10
INDEX_BYTES = 100_000_000


def traced(in_service: float, each_s: float = 0.01) -> Trace:
    """Requests over the window, so many in service on average."""
    n = int(in_service * SECONDS / each_s)
    sent = np.linspace(0, SECONDS * 1e9 - 1, n).astype(np.int64)
    return Trace(
        query=np.zeros(n, np.uint32),
        outcome=np.zeros(n, np.uint8),
        due=sent,
        free=sent,
        sent=sent,
        done=sent + int(each_s * 1e9),
        window=(0, SECONDS * 1_000_000_000),
    )


def core(cpu: int, busy: float) -> CoreTotals:
    """One that was busy for this share of the time."""
    return CoreTotals(cpu=cpu, busy_s=busy * SECONDS, interrupts_s=0.0, steal_s=0.0,
                      idle_s=(1 - busy) * SECONDS)  # fmt: skip


def trial(cores: int = 2, **server: Any) -> Trial:
    """One that used a fifth of its cores, and nothing else; nobody else used them."""
    known = {"cpu_s": 0.2 * cores * SECONDS, "read_bytes": 0.0} | server
    busy = (known["cpu_s"] or 0.0) / cores / SECONDS
    each = [*(core(cpu, busy) for cpu in range(cores)), core(cores, 0.5)]
    return Trial(
        trial="b01-t01",
        treatment="t01",
        service=Service(cpus=list(range(cores))),
        server=ServerTotals(**known),
        host_window=HostTotals(cores=cores + 1, seconds=SECONDS, by_core=each,
                               client_cpu_s=0.5 * SECONDS),
        ingest=Ingest(index_bytes=INDEX_BYTES),
    )  # fmt: skip


def used(one: Trial, *busy: float) -> Trial:
    """The same, whose cores were busy for these shares of the time."""
    each = [core(cpu, share) for cpu, share in enumerate(busy)]
    host = structs.replace(one.host_window, by_core=each, cores=len(each))
    return structs.replace(one, host_window=host)


def attached(one: Trial) -> Trial:
    """The same of a system that ran already, which may be on any core."""
    return structs.replace(one, attached="http://127.0.0.1:1", service=Service())


def disk(name: str = "vda", **counts: float) -> DeviceTotals:
    blank = dict.fromkeys(DeviceTotals.__struct_fields__[1:], 0.0)
    return DeviceTotals(name=name, **blank | counts)


def reading(*devices: DeviceTotals, read_bytes: float | None = None, **server: Any) -> Trial:
    """One whose server read all that was read of these devices, or as much as is given."""
    most = max((d.read_bytes for d in devices), default=0.0) or 1e6
    one = trial(**{"read_bytes": most if read_bytes is None else read_bytes} | server)
    return structs.replace(one, host_window=structs.replace(one.host_window, devices=list(devices)))


def found(one: Trial, in_service: float = 1.0, findings: tuple[str, ...] = ()) -> Seen:
    return bottleneck.of_trial(one, traced(in_service), findings)


def test_a_server_that_waits_for_requests_is_held_back_by_nothing() -> None:
    assert found(trial()).part == "none"
    assert "20 % of 2 cores" in found(trial()).number


def test_cores_that_are_used_up_are_named_and_those_that_are_not_quite_are_not() -> None:
    assert found(trial(cpu_s=0.95 * 2 * SECONDS)).part == "processor"
    assert found(trial(cpu_s=0.85 * 2 * SECONDS)).part == "none"


def test_one_thread_holds_back_a_server_with_several_cores() -> None:
    busy = {"busiest_thread_share": 0.97, "busiest_thread": "merger"}
    assert found(trial(cpu_s=1.2 * SECONDS, **busy), in_service=4.0).part == "one thread"
    assert "merger ran 97 %" in found(trial(cpu_s=1.2 * SECONDS, **busy), in_service=4.0).number
    alone = trial(cores=1, cpu_s=0.97 * SECONDS, **busy)
    assert found(alone).part == "processor", "with one core there is no other thread to wait for"


def test_one_client_shows_nothing_of_a_second_thread() -> None:
    """A process a connection: a second client would be answered as often."""
    busy: dict[str, Any] = {"busiest_thread_share": 0.94, "busiest_thread": "postgres"}
    seen = found(trial(cores=8, cpu_s=0.95 * SECONDS, **busy), in_service=0.97)
    assert seen.part == "none"
    assert "with 1.0 requests in service; postgres ran 94 % of the time" in seen.number
    behind = attached(used(trial(cores=8, cpu_s=0.95 * SECONDS, **busy), *[0.4] * 8))
    assert found(behind, in_service=0.97).part == "unknown", "a proxy, with the system behind it"


@pytest.mark.parametrize("busiest", [0.25, 0.97])
@pytest.mark.parametrize("in_service", [1.0, 16.0])
def test_a_server_at_the_limit_of_its_control_group_waits_for_no_lock(
    busiest: float, in_service: float
) -> None:
    """One core's worth of eight, whose threads the kernel stops in every period."""
    one = trial(cores=8, cpu_s=1.0 * SECONDS, busiest_thread_share=busiest, busiest_thread="w")
    host = structs.replace(one.host_window, throttled=10.0 * SECONDS)
    assert found(one, in_service).part in ("waits", "none", "one thread")
    seen = found(structs.replace(one, host_window=host), in_service)
    assert seen.part == "unknown"
    assert "may have used all the CPU time that it was allowed" in seen.number


def test_threads_that_are_each_busy_with_a_request_of_their_own_are_not_one_thread() -> None:
    """A process a connection, and four clients: eight would be answered twice as many."""
    busy: dict[str, Any] = {"busiest_thread_share": 0.94, "busiest_thread": "postgres"}
    four = trial(cores=8, cpu_s=3.72 * SECONDS, **busy)
    assert found(four, in_service=3.9).part == "none"
    assert found(four, in_service=64.0).part == "unknown", "all four may be as busy"
    two = trial(cores=8, cpu_s=1.0 * SECONDS, **busy)
    assert found(two, in_service=2.0).part == "one thread", "the other client's always waits"


@pytest.mark.parametrize(("workers", "cores", "clients"), [(2, 4, 8), (4, 8, 16), (6, 8, 32)])
def test_a_pool_whose_threads_are_all_busy_is_not_held_back_by_one_of_them(
    workers: int, cores: int, clients: int
) -> None:
    busy: dict[str, Any] = {"busiest_thread_share": 0.98, "busiest_thread": "worker"}
    pool = trial(cores=cores, cpu_s=0.98 * workers * SECONDS, **busy)
    seen = found(pool, in_service=float(clients))
    assert seen.part == "unknown"
    assert "worker ran 98 % of the time, the server used" in seen.number
    assert "other threads ran too, and whether they waited for it, or were as busy" in seen.number
    alone = trial(cores=cores, cpu_s=1.1 * SECONDS, **busy)
    assert found(alone, in_service=float(clients)).part == "one thread"


@pytest.mark.parametrize(
    ("used", "busiest", "part"),
    [(1.0, 0.97, "one thread"), (1.0, 0.3, "one thread"), (3.76, 0.95, "unknown"),
     (6.4, 0.8, "none")],
)  # fmt: skip
def test_a_job_of_many_threads_is_not_held_back_by_one(
    used: float, busiest: float, part: str
) -> None:
    server = ServerTotals(cpu_s=used * SECONDS, busiest_thread_share=busiest, busiest_thread="w")
    assert bottleneck.of_span(trial(cores=8), server, [], SECONDS).part == part


@pytest.mark.parametrize(
    ("key", "count"), [("write_iops", "writes"), ("write_per_s", "written_bytes")]
)
def test_whether_a_limit_that_late_writes_exceed_held_back_is_unknown(key: str, count: str) -> None:
    lever = Lever(name=f"storages.slow.{key}", asked="80", device="loop3")

    def seen(per_s: int, busy_s: float = 0.0) -> tuple[str, str]:
        device = disk("loop3", busy_s=busy_s, **{count: float(per_s * SECONDS)})
        one = structs.replace(reading(device, read_bytes=0.0), place=[lever])
        span = bottleneck.of_span(one, one.server, [device], SECONDS, own=True)
        return found(one).part, span.part

    assert seen(79) == ("disk", "disk")
    assert seen(300) == ("unknown", "unknown"), "those that are synced may have waited for it"
    assert seen(300, 0.95 * SECONDS) == ("unknown", "disk"), "a job is held back by a busy device"


def test_a_limit_of_a_storage_that_is_used_up_is_the_disk_though_its_device_shows_no_wait() -> None:
    def limited(key: str, most: int, **counts: float) -> Seen:
        seen = disk("loop3", **counts)
        lever = Lever(name=f"storages.slow.{key}", asked=str(most), device="loop3")
        return found(structs.replace(reading(seen), place=[lever]), 8.0)

    reads = {"reads": 195.0 * SECONDS, "read_bytes": 1e6, "busy_s": 0.1, "read_s": 0.1}
    used_up = limited("read_iops", 200, **reads)
    assert used_up.part == "disk"
    assert used_up.number == "195.0 reads/s, and storages.slow.read_iops is 200.0"
    assert limited("read_iops", 400, **reads).part == "waits", "half of it was left"
    assert limited("write_iops", 200, **reads).part == "waits", "it did not write"
    again = limited("read_iops", 200, **reads | {"read_bytes": 2.0 * INDEX_BYTES})
    assert again.part == "memory"
    written = limited("write_per_s", 10**7, written_bytes=9.9e6 * SECONDS)
    assert written.number == "9.9 MB/s written, and storages.slow.write_per_s is 10.0"


def test_idle_cores_while_requests_wait_are_a_lock_or_a_wait() -> None:
    assert found(trial(), in_service=8.0).part == "waits"
    assert found(trial(cpu_s=0.8 * 2 * SECONDS), in_service=8.0).part == "none", "not idle enough"


def test_what_is_idle_because_of_a_fault_does_not_wait_for_a_lock() -> None:
    """Frozen for half of the window: its clients waited, and it used no processor meanwhile."""
    frozen = FaultDone(fault="freeze", of="server", begun=2 * 10**9, again=7 * 10**9)
    half = trial(cpu_s=0.5 * 2 * SECONDS)
    assert found(half, in_service=4.0).part == "waits"
    run = RoleRun(name="pause", number=1, does="fault", fault=frozen)
    assert found(structs.replace(half, beside=[run]), in_service=4.0).part == "unknown"


def test_cores_that_other_processes_used_up_were_not_idle() -> None:
    behind = used(attached(trial(cores=4, cpu_s=0.2)), 0.99, 0.99, 0.99, 0.99)
    seen = found(behind, in_service=8.0)
    assert seen.part == "unknown", "a proxy listens, and the system itself is behind it"
    assert "in use 99 % of the time in all" in seen.number
    assert "may be the system's own" in seen.number
    assert found(behind, in_service=1.0).part == "unknown", "something was used up"
    idle = used(attached(trial(cores=4, cpu_s=0.2)), 0.1, 0.1, 0.1, 0.1)
    assert found(idle, in_service=8.0).part == "waits"
    started = used(trial(), 0.95, 0.95, 0.0)
    assert found(started, in_service=8.0).part == "unknown"
    assert found(used(trial(), 0.2, 0.2, 0.99), in_service=8.0).part == "waits", "the generator's"


def test_one_core_that_others_of_the_machine_used_may_be_that_of_an_attached_system() -> None:
    one = used(attached(trial(cores=4, cpu_s=0.2)), 0.99, 0.3, 0.3, 0.0)
    seen = found(one, in_service=8.0)
    assert seen.part == "unknown"
    assert "other processes of the machine used 1.07 cores" in seen.number


def test_whether_cores_were_idle_is_unknown_where_it_is_not_on_record() -> None:
    bare = structs.replace(trial(), host_window=HostTotals(cores=3, seconds=SECONDS))
    assert found(bare, in_service=8.0).part == "unknown"
    assert found(bare, in_service=1.0).part == "none", "the server itself waited for requests"
    for idle_s, part in ((2.8, "waits"), (1.5, "unknown")):
        whole = structs.replace(bare.host_window, idle_s=idle_s * SECONDS, iowait_s=0.0)
        seen = found(structs.replace(bare, host_window=whole), in_service=8.0)
        assert seen.part == part, "of three cores two are the server's, the third may be the idle"


@pytest.mark.parametrize(
    ("counts", "in_service", "part"),
    [
        ({"reads": 1e4, "read_s": 6.0, "busy_s": 6.0}, 1.0, "disk"),  # by its latency
        ({"reads": 1e5, "read_s": 40.0, "busy_s": 9.9}, 100.0, "disk"),  # by its rate
        ({"reads": 100, "read_s": 0.1, "busy_s": 0.1}, 1.0, "none"),
    ],
)
def test_a_disk_holds_back_by_its_rate_or_by_its_latency(
    counts: dict[str, float], in_service: float, part: str
) -> None:
    read = disk(read_bytes=0.2 * INDEX_BYTES, waited_s=counts["read_s"], **counts)
    assert found(reading(read), in_service).part == part


def test_pages_that_are_read_again_are_a_matter_of_memory() -> None:
    counts = {"reads": 1e5, "read_s": 9.0, "busy_s": 9.0, "waited_s": 9.0}
    once, again = (disk(read_bytes=n * INDEX_BYTES, **counts) for n in (0.9, 4.0))
    assert found(reading(once)).part == "disk"
    assert found(reading(again)).part == "memory"
    assert "4.0 times the index" in found(reading(again)).number


def test_a_disk_that_others_use_does_not_hold_back_a_server_that_reads_nothing() -> None:
    busy = disk(reads=1e5, read_s=9.0, busy_s=9.9, waited_s=9.0, read_bytes=1e9)
    assert found(reading(busy, read_bytes=0.0)).part == "none"
    few = found(reading(busy, read_bytes=4096.0))
    assert few.part == "none", "a backup of somebody else has the disk"
    assert (
        "vda was busy 99 % of the time, and 0.00041 % of its bytes were the server's" in few.number
    )
    waits = found(reading(busy, read_bytes=4096.0), in_service=8.0)
    assert waits.part == "waits"
    assert "vda was busy" in waits.number


def test_a_disk_that_is_busy_with_writes_does_not_hold_back_who_hardly_reads_from_it() -> None:
    """A backup of somebody else is written; one page of all that was read was the server's."""
    busy = disk(writes=5e4, written_bytes=5e9, write_s=300.0, busy_s=9.9, reads=1, read_s=0.001,
                read_bytes=4096.0)  # fmt: skip
    seen = found(reading(busy, read_bytes=4096.0))
    assert seen.part == "none"
    assert "vda was busy 99 % of the time, mostly with writes" in seen.number
    behind = disk(writes=5e4, written_bytes=5e9, write_s=300.0, busy_s=9.9, reads=900, read_s=9.0,
                  read_bytes=1e8)  # fmt: skip
    assert found(reading(behind, read_bytes=1e8)).part == "disk", "its reads wait behind the writes"


def test_a_busy_disk_does_not_hold_back_requests_that_are_worked_on() -> None:
    """Of eight requests in service six and a half have a core, and one and a half a read."""
    fast = disk(busy_s=9.2, reads=1.5e5, read_bytes=6e7, read_s=15.0)
    seen = found(reading(fast, cores=8, cpu_s=6.4 * SECONDS), in_service=8.0)
    assert seen.part == "none"
    assert "vda was busy 92 % of the time, with 1.5 reads" in seen.number
    assert found(reading(fast, cores=8, cpu_s=1.0 * SECONDS), in_service=8.0).part == "disk"


def test_a_server_that_waits_for_its_own_reads_of_a_disk_that_others_use_is_held_back() -> None:
    busy = disk(reads=1e5, read_s=90.0, busy_s=9.9, waited_s=90.0, read_bytes=1e9)
    seen = found(reading(busy, read_bytes=1e8), in_service=1.0)
    assert seen.part == "disk", "nine seconds of ten, on its tenth of the reads"
    assert "and 10 % of its bytes were the server's" in seen.number
    assert "times the index" not in seen.number, "others read the rest"


def test_reads_that_are_not_known_to_be_the_servers_name_neither_the_disk_nor_memory() -> None:
    busy = disk(reads=1e5, read_s=9.0, busy_s=9.9, waited_s=9.0, read_bytes=1e9)
    blind = reading(busy)
    for faults, part in ((None, "unknown"), (50.0, "unknown"), (0.0, "none")):
        server = structs.replace(blind.server, read_bytes=None, major_faults=faults)
        assert found(structs.replace(blind, server=server)).part == part
    seen = found(reading(busy, read_bytes=0.0, major_faults=2e5))
    assert seen.part == "memory", "pages of a mapped file"


def test_a_job_is_held_back_by_a_disk_only_if_it_was_busy_with_what_the_job_moved() -> None:
    busy = disk(read_bytes=4e8, reads=1e4, busy_s=9.9)
    for own, moved, part in (
        (False, 4096.0, "none"),
        (False, 3e8, "disk"),
        (False, None, "unknown"),
        (True, 4096.0, "disk"),
    ):
        server = ServerTotals(cpu_s=1.0, read_bytes=moved, write_bytes=moved and 0.0)
        seen = bottleneck.of_span(trial(), server, [busy], SECONDS, own=own)
        assert seen.part == part, (own, moved)
        assert "vda was busy 99 % of the time" in seen.number


def test_of_a_loop_device_and_the_disk_below_it_the_disk_is_named() -> None:
    same = {"reads": 1e4, "read_s": 9.0, "busy_s": 9.5, "waited_s": 9.0}
    seen = found(reading(disk("loop3", **same), disk("vda", **same)))
    assert seen.number.startswith("vda")
    assert found(reading(disk("loop3", **same))).number.startswith("loop3"), "if it lies in memory"
    quick = same | {"read_s": 1.0, "waited_s": 1.0, "busy_s": 1.0}
    held = found(reading(disk("loop3", **same), disk("vda", **quick)))
    assert held.number.startswith("loop3"), "it is the upper one that is slow: a limit on it, say"


def test_a_generator_with_nothing_left_is_named_before_all_else() -> None:
    full = trial(cpu_s=2.0 * SECONDS)
    assert found(full, findings=("client saturated",)).part == "client"
    assert found(full, findings=("client starved",)).part == "processor", "the server starved it"
    some = trial(cpu_s=1.0 * SECONDS)
    assert found(some, findings=("client starved",)).part == "client"


def test_a_limit_that_is_used_up_is_named_before_a_generator_that_lost_its_core_at_times() -> None:
    lever = Lever(name="storages.slow.read_iops", asked="200", device="loop3")
    used = disk("loop3", reads=199 * SECONDS, read_bytes=0.2 * INDEX_BYTES, busy_s=0.1)
    slow = structs.replace(reading(used), place=[lever])
    for kind, part in (("client starved", "disk"), ("client saturated", "client")):
        assert bottleneck.of_trial(slow, traced(4.0), [kind]).part == part
    unused = structs.replace(slow, place=[structs.replace(lever, asked="900")])
    assert bottleneck.of_trial(unused, traced(4.0), ["client starved"]).part == "client"


def test_what_is_not_on_record_is_unknown() -> None:
    assert found(trial(cpu_s=None)).part == "unknown"
    old = structs.replace(trial(), service=Service(), host_window=HostTotals())
    assert found(old).part == "unknown"


def result(trial: str, status: str = "valid") -> Any:
    class Result:
        counts = status == "valid"

    return Result()


def test_a_treatment_has_what_most_of_its_valid_trials_have() -> None:
    disk, none = Seen("disk", "busy 95 %"), Seen("none", "idle")
    said = bottleneck.of_treatment([(result("a"), disk), (result("b"), none), (result("c"), disk)])
    assert said is not None
    assert (said.part, said.number, said.trials, said.of) == ("disk", "busy 95 %", 2, 3)
    tie = bottleneck.of_treatment([(result("a"), disk), (result("b"), none)])
    assert tie is not None
    assert (tie.part, tie.trials, tie.of) == ("unknown", 1, 2)
    other = Seen("network", "9 of 10")
    few = bottleneck.of_treatment(
        [(result(name), seen) for name, seen in zip("abcd", (disk, disk, none, other), strict=True)]
    )
    assert few is not None
    assert few.part == "unknown", "two of four are not most"
    assert bottleneck.of_treatment([(result("a", "invalid"), disk)]) is None


@pytest.mark.parametrize(("used", "part"), [(0.147, "processor"), (0.137, "processor"),
                                            (0.12, "waits")])  # fmt: skip
def test_a_share_of_cpu_that_is_used_up_is_the_processor(used: float, part: str) -> None:
    levers = [
        Lever(name=f"hosts.{host}.cpu_share", asked=asked, figures={"used_share": share})
        for host, asked, share in (("north", "0.3", 0.15), ("south", "0.15", used))
    ]
    shared = structs.replace(trial(), place=levers)
    found = bottleneck.of_trial(shared, traced(4.0), [])
    assert found.part == part
    assert ("hosts.south used" in found.number) == (part == "processor")


SLOW = """
question = "What holds SQLite back?"
replicates = 1
[control]
aa = false
[corpus]
family = "generated"
documents = 8000
[queries]
distinct = 12
words = 2
[load]
clients = 2
seconds = 1.5
warmup_s = 0.5
[systems.sqlite]
[places.small]
storage = "slow"
memory = "14MB"
[storages.slow]
filesystem = "ext4"
size = "200MB"
read_iops = 200
"""


@pytest.mark.slow
def test_a_real_system_whose_memory_is_too_small_is_held_back_by_the_limit_of_its_storage(
    home: Path,
) -> None:
    needs("memory", "ext4")
    (home / "study.toml").write_text(SLOW)
    record = measure(home / "study.toml", home / "record", work=home / "work")
    (trial,) = record.trials
    assert (trial.status, trial.reason) == ("ok", "")
    assert trial.ingest is not None
    assert (trial.ingest.index_bytes or 0) > 14_000_000, "a cap below the index"
    seen = bottleneck.of_trial(trial, read_trace(record, trial), [])
    assert seen.part in ("memory", "disk")
    assert "storages.slow.read_iops is 200" in seen.number


@pytest.mark.parametrize(("started", "said"), [(0, False), (99, False), (100, True), (400, True)])
def test_what_a_cold_system_reads_at_its_start_is_said(started: int, said: bool) -> None:
    lever = Lever(name="places.p.cold", asked="trial", figures={"pages": 1000, "started": started})
    found = list(read_at_start(Trial(trial="t", treatment="t01", place=[lever])))
    assert [(kind, severity) for kind, severity, *_ in found] == (
        [("read at the start", "note")] if said else []
    )
    assert all(f"{started / 10:.0f} % of 1,000 pages" in row[2] for row in found)


@pytest.mark.parametrize(
    ("others", "storage", "said"),
    [({"[kernel]": 8.0, "cron": 1.0}, True, True), ({"[kernel]": 8.0, "cron": 9.0}, True, False),
     ({"[kernel]": 8.0}, False, False)],
)  # fmt: skip
def test_kernel_threads_that_serve_a_storage_are_no_mystery(
    others: dict[str, float], storage: bool, said: bool
) -> None:
    levers = [Lever(name="storages.slow.read_iops", asked="200")] if storage else []
    trial = Trial(trial="t", treatment="t01", place=levers, host_window=HostTotals(others=others))
    row = "foreign CPU", "warning", "9 %", "Other processes ran.", "Stop what else runs here."
    found = explained(trial, row)
    assert found[:3] == row[:3]
    assert ("serve the storages" in found[3]) is said
    assert found[4].endswith(row[4])


@pytest.mark.parametrize(
    ("peak", "met", "severity"), [(5e8, 0, "warning"), (5e8, 3, "note"), (9.9e8, 0, "note")]
)
def test_a_limit_of_memory_that_was_never_near_explains_nothing(
    peak: float, met: int, severity: str
) -> None:
    figures = {"peak_bytes": peak, "limit_bytes": 1e9, "met": float(met)}
    lever = Lever(name="places.server.memory", asked="1GB", figures=figures)
    trial = Trial(trial="t", treatment="t01", place=[lever])
    row = "pressure on disk", "warning", "30 %", "Some process waited for a disk.", "Look at it."
    assert explained(trial, row)[1] == severity


def test_a_little_lateness_of_the_generator_does_not_hold_a_full_server_back(
    tmp_path: Path,
) -> None:
    seconds = 8.0
    cores = [{"cpu": n, "busy_s": 0.99 * seconds, "interrupts_s": 0.0, "steal_s": 0.0,
              "idle_s": 0.01 * seconds} for n in range(2)]  # fmt: skip
    run = Study(blocks=3, seed=3, control=None)
    run.add("a", server=lognormal(0.010, 0.1), clients=8, seconds=seconds, lag_ns=300_000,
            extra={"service": {"cpus": [0, 1]}, "server": {"cpu_s": 1.98 * seconds},
                   "host_window": {"cores": 2, "by_core": cores}})  # fmt: skip
    judged = judge(open_record(run.write(tmp_path / "r")))
    (found,) = judged.treatments
    assert {f.severity for f in judged.findings if f.kind == "generator lag"} == {"warning"}
    assert found.bottleneck is not None
    assert found.bottleneck.part == "processor"
