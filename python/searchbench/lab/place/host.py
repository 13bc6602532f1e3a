"""What machine this is, and whether it is fit to measure on."""

from __future__ import annotations

import os
import platform
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from searchbench import _core
from searchbench.errors import LabError
from searchbench.places import Cores
from searchbench.record.trial import Note

_SYS = Path("/sys")
_PROC = Path("/proc")
_HALT_POLL = "module/haltpoll/parameters/guest_halt_poll_ns"
_LOOK_S = 0.2
_BUSY_CORES = 0.3


def fingerprint() -> dict[str, Any]:
    """The machine as host.json keeps it. What cannot be known is absent, never guessed."""
    memory = psutil.virtual_memory()
    facts: dict[str, Any] = {
        "cpu": _cpuinfo("model name") or platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "cores_online": os.cpu_count(),
        "memory_bytes": memory.total,
        "swap_bytes": psutil.swap_memory().total,
        "system": platform.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "distribution": _distribution(),
        "python": platform.python_version(),
        "searchbench": _core.version,
        "build": _core.profile,
        "clocksource": _read(_SYS / "devices/system/clocksource/clocksource0/current_clocksource"),
        "governor": _read(_SYS / "devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "turbo_off": _read(_SYS / "devices/system/cpu/intel_pstate/no_turbo"),
        "smt": _read(_SYS / "devices/system/cpu/smt/control"),
        "halt_poll_ns": _halt_poll_ns(),
        "virtual": "hypervisor" in _cpuinfo("flags").split(),
        "transparent_hugepages": _read(_SYS / "kernel/mm/transparent_hugepage/enabled"),
        "tcp_congestion_control": _read(_PROC / "sys/net/ipv4/tcp_congestion_control"),
        "open_files_limit": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "boot_id": _read(_PROC / "sys/kernel/random/boot_id"),
    }
    return {key: value for key, value in facts.items() if value not in (None, "")}


def notes() -> Iterator[Note]:
    """What makes this machine less fit to measure on, as it is now; looks for 0.2 s."""
    cores = len(os.sched_getaffinity(0))
    # Not the load average: it remembers what we did ourselves a minute ago.
    busy = psutil.cpu_percent(interval=_LOOK_S) / 100
    if busy * cores > _BUSY_CORES:
        yield Note(
            kind="busy machine",
            number=f"{busy * cores:.2f} of {cores} cores busy before the trial began",
            meaning="other programs run at the same time and slow down what is measured",
            remedy="stop them, or run the study when the machine is idle",
        )
    governor = _read(_SYS / "devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if governor not in (None, "performance"):
        yield Note(
            kind="clock frequency",
            number=f"governor {governor}",
            meaning="the processor changes its frequency while it is measured",
            remedy="cpupower frequency-set -g performance",
        )
    if _halt_poll_ns() == 0:
        yield Note(
            kind="halted cores",
            number="guest_halt_poll_ns 0",
            meaning="this virtual machine halts a core as soon as it has nothing to do, and waking "
            "it may take longer than a short request; a closed loop of few clients then measures "
            "the waking",
            remedy=f"echo 200000 > {_SYS / _HALT_POLL}, which is Linux's own default",
            severity="note",
        )
    if cores < 2:
        yield Note(
            kind="one core",
            number="1 core",
            meaning="load generator and server take turns on one core, so the times of one contain "
            "waiting for the other",
            remedy="measure on a machine with two cores or more",
        )


def shared() -> bool:
    """Whether the user says that others work on this machine too (SEARCHBENCH_SHARED_MACHINE=1)."""
    return os.environ.get("SEARCHBENCH_SHARED_MACHINE", "") not in ("", "0")


def placement() -> Cores:
    """How this machine's cores are shared out: with two or more, the server's are apart.

    The client takes the last core; its loop needs one whole core to be sharp, and a server
    that is pushed off a core by its own client is measured wrong. So it keeps that core's other
    hyper-threads too, where there is another core.
    """
    cores = tuple(sorted(os.sched_getaffinity(0)))
    if len(cores) < 2:
        return Cores(server_cpus=cores)
    client, others = cores[-1:], cores[:-1]
    beside = tuple(cpu for cpu in others if cpu in _siblings(client[0]))
    server = [cpu for cpu in others if cpu not in beside] or others
    of_core = {cpu: [x for x in _siblings(cpu) if x in server] for cpu in server}
    first = sorted(server, key=lambda cpu: (of_core[cpu].index(cpu), cpu))
    return Cores(tuple(first), client, beside)


def _siblings(cpu: int) -> list[int]:
    """All hyper-threads of the core that this one is of, in their order; itself where unknown."""
    text = _read(_SYS / f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") or ""
    found = {cpu}
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        found |= set(range(int(low), int(high or low) + 1))
    return sorted(found)


def require_release_build() -> None:
    """LabError if the measuring core is a debug build."""
    if _core.profile != "release":
        raise LabError(
            "the measuring core is a debug build, which is slow; build it with `uv sync`", "host"
        )


def _halt_poll_ns() -> int | None:
    """For how long a core of a virtual machine looks for work before it halts.

    None where no guest decides that.
    """
    driver = _read(_SYS / "devices/system/cpu/cpuidle/current_driver")
    found = _read(_SYS / _HALT_POLL) if driver == "haltpoll" else None
    return int(found) if found else None


def _cpuinfo(key: str) -> str:
    """What /proc/cpuinfo says of the first core; empty where it says nothing."""
    lines = (_read(_PROC / "cpuinfo") or "").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")


def _distribution() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return sys.platform


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
