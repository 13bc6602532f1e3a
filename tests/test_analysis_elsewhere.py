"""Of a system on several machines: sums of all, unknown if a part is, and no core of this one."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from searchbench.analysis.trial import bottleneck, elsewhere, machine
from searchbench.analysis.trial.measured import Trace
from searchbench.record.elsewhere import Elsewhere
from searchbench.record.trial import CoreTotals, HostTotals, ServerTotals, Service, Trial

NORTH = Elsewhere(
    host="north", ssh="north", address="10.0.0.8", hostname="n", boot_id="b", cores=4,
    memory_bytes=8_000_000_000, processes=1, seconds=10.0, cpu_s=8.0, peak_rss_bytes=1e8,
    read_bytes=0.0, write_bytes=0.0, major_faults=0.0, busy_s=8.5, steal_s=0.0,
)  # fmt: skip
SOUTH = replace(NORTH, host="south", boot_id="c", cpu_s=38.0, busy_s=38.1, peak_rss_bytes=2e8)
CORES = [CoreTotals(cpu=n, busy_s=2.0, interrupts_s=0.0, steal_s=0.0, idle_s=8.0) for n in (0, 1)]


TIMES = np.arange(1000, dtype=np.int64) * 10_000_000
# Ten seconds, in which each of a thousand requests took 1 ms.
TRACE = Trace(
    query=np.zeros(1000, np.uint32), outcome=np.zeros(1000, np.uint8), due=TIMES, free=TIMES,
    sent=TIMES, done=TIMES + 1_000_000, window=(0, 10_000_000_000),
)  # fmt: skip


def trial(*hosts: Elsewhere, cpus: list[int] | None = None, cpu_s: float = 1.0) -> Trial:
    return Trial(
        trial="b1", treatment="t01", elsewhere=list(hosts),
        server=ServerTotals(cpu_s=cpu_s, peak_rss_bytes=50_000_000, read_bytes=0.0,
                            write_bytes=0.0, major_faults=0.0),
        service=Service(cpus=[0] if cpus is None else cpus),
        host_window=HostTotals(by_core=CORES, cores=2, seconds=10.0, client_cpu_s=3.0),
    )  # fmt: skip


def test_the_whole_is_the_sum_of_all_machines() -> None:
    whole = elsewhere.whole(trial(NORTH, SOUTH))
    assert whole.cpu_s == 47.0
    assert whole.peak_rss_bytes == 350_000_000
    assert elsewhere.whole(trial()) == trial().server, "of one machine it is what is on record"


def test_of_a_server_that_is_not_here_nothing_of_this_machine_counts() -> None:
    far = trial(NORTH, cpus=[], cpu_s=0.0)
    far.server = ServerTotals(cpu_s=0.0)
    assert elsewhere.whole(far).peak_rss_bytes == 100_000_000


@pytest.mark.parametrize("name", ["cpu_s", "peak_rss_bytes"])
def test_what_is_not_known_of_a_part_is_not_known_of_the_whole(name: str) -> None:
    whole = elsewhere.whole(trial(NORTH, replace(SOUTH, **{name: None})))
    assert getattr(whole, name) is None


def test_a_host_whose_cores_were_used_up_is_named_and_else_it_is_unknown() -> None:
    found = bottleneck.of_trial(trial(NORTH, SOUTH), TRACE, ())
    assert (found.part, found.number) == ("processor", "on host south 95 % of 4 cores")
    unsure = bottleneck.of_trial(trial(NORTH), TRACE, ())
    assert unsure.part == "unknown"
    assert unsure.number.startswith("the system used here 10 % of 1 core, on north 20 % of 4 cores")


def kinds(*hosts: Elsewhere) -> dict[str, str]:
    return {kind: number for kind, _, number, *_ in machine.disturbances(trial(*hosts), TRACE)}


def test_what_others_took_on_a_host_is_a_finding_of_that_host() -> None:
    assert not {"foreign CPU on a host", "host not watched"} & kinds(NORTH).keys()
    busy = kinds(replace(NORTH, busy_s=18.0, steal_s=2.0))
    assert busy["foreign CPU on a host"].startswith("25 % of 4 cores of north, 10.00 CPU seconds")
    assert busy["steal on a host"].startswith("5 % of 4 cores of north")
    both = replace(NORTH, cpu_s=9.0, busy_s=17.5), replace(NORTH, host="two", busy_s=17.5)
    assert "foreign CPU on a host" not in kinds(*both), "two hosts of one machine"
    assert kinds(replace(NORTH, cpu_s=None))["host not watched"] == "north"


def test_what_others_took_on_a_host_may_have_made_its_system_slower() -> None:
    """As of one core: 16 s of others and 2 s of steal in ten seconds are all of one."""
    assert machine.taken(trial(NORTH), 10.0) == 0.0
    assert machine.taken(trial(replace(NORTH, busy_s=12.0)), 10.0) == pytest.approx(0.4)
    assert machine.taken(trial(replace(NORTH, steal_s=1.0)), 10.0) == pytest.approx(0.1)
    assert machine.taken(trial(replace(NORTH, busy_s=24.0, steal_s=2.0)), 10.0) == 1.0
    little = replace(NORTH, busy_s=8.0 + 0.04 * 40)
    assert machine.taken(trial(little), 10.0) == 0.0, "it may have been the kernel's threads"
    assert machine.taken(trial(replace(NORTH, busy_s=None)), 10.0) == 0.0


def test_what_a_host_read_from_its_disk_is_found() -> None:
    found = kinds(NORTH, replace(SOUTH, read_bytes=1e9, major_faults=1e4))
    assert found["reads from disk"].startswith("1,000.0 MB")
    assert found["major faults"].startswith("10,000")
    assert not {"reads from disk", "major faults"} & kinds(NORTH, SOUTH).keys()
    unknown = kinds(NORTH, replace(SOUTH, read_bytes=None))
    assert "reads from disk" not in unknown


def test_of_a_host_that_is_this_machine_its_time_is_not_that_of_others() -> None:
    """Both cores were busy for 2 s; 3 s are the generator's, 1 s the server's."""
    here = replace(NORTH, this_machine=True, cpu_s=3.0)
    whole = [CoreTotals(cpu=n, busy_s=4.0, interrupts_s=0.0, steal_s=0.0, idle_s=6.0)
             for n in (0, 1)]  # fmt: skip

    def found(*hosts: Elsewhere) -> set[str]:
        one = trial(*hosts)
        one.host_window = HostTotals(by_core=whole, cores=2, seconds=10.0, client_cpu_s=4.0)
        return {kind for kind, *_ in machine.disturbances(one, TRACE)}

    assert "foreign CPU" in found(), "8 s busy, of which 5 s are known"
    assert "foreign CPU" not in found(here)
