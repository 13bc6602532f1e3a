"""The kernel's own counters of the machine, as it gives them: read, never averaged.

Everything is cumulative unless its name is that of a state (free bytes, tasks that run, requests in
flight), so that a reader can take any two samples and subtract. What a kernel does not have is
absent, and null in the table. The fields are those of proc(5) and of the kernel's documentation of
iostats.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from searchbench.lab.probe.files import Kept

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
CORES = os.sysconf("SC_NPROCESSORS_CONF")
_SECTOR_BYTES = 512  # of diskstats, whatever the device has
_PRESSURES = ("cpu", "io", "memory")
_MEMORY = {
    "MemFree": "memory_free_bytes",
    "MemAvailable": "memory_available_bytes",
    "Cached": "memory_cached_bytes",
    "Dirty": "memory_dirty_bytes",
    "Writeback": "memory_writeback_bytes",
}
_PAGES = {
    "pgfault": "host_faults",
    "pgmajfault": "host_major_faults",
    "pswpin": "pages_swapped_in",
    "pswpout": "pages_swapped_out",
}


def _rows_of(names: Mapping[str, str], between: str) -> re.Pattern[str]:
    """Finds the rows of these names among the hundreds of a file."""
    return re.compile(rf"^({'|'.join(names)}){between} *(\d+)", re.MULTILINE)


_OF_MEMORY, _OF_PAGES = _rows_of(_MEMORY, ":"), _rows_of(_PAGES, " ")
_kept = Kept()


def sample() -> dict[str, Any]:
    """One row of the machine's columns, without the frequency of its cores."""
    return {**_stat(), **_memory(), **_faults(), **_pressures(), **_io()}


def mhz() -> list[float | None]:
    """The frequency of each core as it is now; None where it cannot be read."""
    return [_mhz(cpu) for cpu in range(CORES)]


def _stat() -> dict[str, Any]:
    """/proc/stat: seconds by kind, of the machine and of each core, and the run queue."""
    cores: dict[int, list[float]] = {}
    found: dict[str, Any] = {}
    for line in _lines("/proc/stat"):
        name, *values = line.split()
        if name == "cpu":
            user, nice, system, idle, iowait, irq, softirq, steal = _seconds(values)
            found |= {
                "host_user_s": user,
                "host_nice_s": nice,
                "host_system_s": system,
                "host_idle_s": idle,
                "host_iowait_s": iowait,
                "host_irq_s": irq,
                "host_softirq_s": softirq,
                "host_steal_s": steal,
            }
        elif name.startswith("cpu"):
            cores[int(name[3:])] = _seconds(values)
        elif name in ("ctxt", "procs_running", "procs_blocked"):
            key = {"ctxt": "switches", "procs_running": "running", "procs_blocked": "blocked"}[name]
            found[key] = int(values[0])
    return found | _by_core(cores)


def _by_core(cores: Mapping[int, list[float]]) -> dict[str, list[float | None]]:
    """An entry for each core at the place of its number; None where there is no such core."""
    kinds = ("busy", "interrupts", "steal", "idle", "nice", "iowait", "softirq")
    found: dict[str, list[float | None]] = {f"core_{kind}_s": [None] * CORES for kind in kinds}
    for cpu, (user, nice, system, idle, iowait, irq, softirq, steal) in cores.items():
        if cpu < CORES:
            of = (user + nice + system, irq + softirq, steal, idle + iowait, nice, iowait, softirq)
            for kind, seconds in zip(kinds, of, strict=True):
                found[f"core_{kind}_s"][cpu] = seconds
    return found if cores else {}


def _memory() -> dict[str, int]:
    rows = _OF_MEMORY.findall(_text("/proc/meminfo"))
    return {_MEMORY[name]: int(value) * 1024 for name, value in rows}


def _faults() -> dict[str, int]:
    rows = _OF_PAGES.findall(_text("/proc/vmstat"))
    return {_PAGES[name]: int(value) for name, value in rows}


def _pressures() -> dict[str, float]:
    """Of pressure stall information, ``some``: avg10 in percent, total in seconds."""
    found = {}
    for name in _PRESSURES:
        for first in _lines(f"/proc/pressure/{name}")[:1]:
            told = dict(part.split("=") for part in first.split()[1:])
            found[f"pressure_{name}"] = float(told["avg10"])
            found[f"stalled_{name}_s"] = int(told["total"]) / 1e6
    return found


def _io() -> dict[str, list[dict[str, Any]]]:
    return {"devices": list(devices()), "links": list(links())}


def devices() -> Iterator[dict[str, Any]]:
    """Block devices that were ever asked for anything; a partition is in its disk's counts too."""
    for line in _lines("/proc/diskstats"):
        fields = line.split()
        if fields[3] == fields[7] == "0":
            continue
        reads, _, sectors_read, read_ms, writes, _, sectors_written, write_ms = map(
            int, fields[3:11]
        )
        in_flight, busy_ms, waited_ms = map(int, fields[11:14])
        yield {
            "name": fields[2],
            "reads": reads,
            "read_bytes": sectors_read * _SECTOR_BYTES,
            "read_s": read_ms / 1e3,
            "writes": writes,
            "written_bytes": sectors_written * _SECTOR_BYTES,
            "write_s": write_ms / 1e3,
            "in_flight": in_flight,
            "busy_s": busy_ms / 1e3,
            "waited_s": waited_ms / 1e3,
        }


def links() -> Iterator[dict[str, Any]]:
    """Network interfaces that ever carried anything."""
    for line in _lines("/proc/net/dev")[2:]:
        name, _, counts = line.partition(":")
        fields = list(map(int, counts.split()))
        if fields[0] or fields[8]:
            yield {
                "name": name.strip(),
                "received_bytes": fields[0],
                "received": fields[1],
                "sent_bytes": fields[8],
                "sent": fields[9],
                "dropped": fields[3] + fields[11],
            }


def limit_files(
    process: int | str = "self",
    proc: Path = Path("/proc"),
    groups: Path = Path("/sys/fs/cgroup"),
) -> Iterator[Path]:
    """The statistics of a process's control group and of those above it that may have a CPU limit.

    None of a process that has ended, or whose group cannot be seen from here.
    """
    whole = _lines(str(proc / str(process) / "cgroup"))
    for _, controllers, group in (line.split(":", 2) for line in whole):
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = groups / "cpu" if controllers else groups
        own = top / group.lstrip("/")
        for folder in (own, *own.parents):
            path = folder / "cpu.stat"
            if folder.is_relative_to(top) and throttled(path) is not None:
                yield path


def throttled(path: Path) -> int | None:
    """How often a control group was stopped at its limit; None where it has none."""
    try:
        rows = dict(line.split() for line in _lines(str(path)))
        return int(rows["nr_throttled"])
    except (KeyError, ValueError):
        return None


def _seconds(ticks: list[str]) -> list[float]:
    """Ticks of the first eight kinds as seconds; kinds that an old kernel lacks are 0."""
    return [int(n) / TICKS_PER_S for n in [*ticks[:8], *["0"] * (8 - len(ticks))]]


def _mhz(cpu: int) -> float | None:
    try:
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq")
        return int(path.read_text()) / 1e3
    except (OSError, ValueError):
        return None


def _lines(path: str) -> list[str]:
    """The lines of a file of the kernel; none where it has no such file."""
    return _text(path).splitlines()


def _text(path: str) -> str:
    """A file of the kernel; "" where it has no such file."""
    try:
        return _kept.read(path).decode(errors="replace")
    except OSError:
        return ""
