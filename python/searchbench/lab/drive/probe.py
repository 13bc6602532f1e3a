"""What the machine and the server do while a trial is driven: sampled, never averaged here.

About ten samples a second cost under 1 % of a core. Counters are cumulative as the kernel
gives them, so a reader can take any two and subtract. What a kernel does not have is null.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

from searchbench.lab.drive.jvm import JvmThreads
from searchbench.lab.drive.others import TICKS_PER_S, Process, processes, used
from searchbench.record import PROBE

_PRESSURES = ("cpu", "io", "memory")
_CORES = os.sysconf("SC_NPROCESSORS_CONF")
# Some kernels interrupt a core to learn its frequency: once in so many samples.
_FREQUENCY_EVERY = 10


@dataclass
class Probe:
    """A context that samples until it is left. ``servers``: the roots of process trees.

    ``others``: afterwards, CPU seconds of processes that are neither theirs nor ours, by name.
    """

    servers: Sequence[psutil.Process]
    interval_s: float = 0.1
    others: dict[str, float] = field(default_factory=dict)
    _rows: list[dict[str, Any]] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _limits: list[Path] = field(default_factory=lambda: list(_limit_files()))
    _ours: set[int] = field(default_factory=lambda: {os.getpid()})
    _before: dict[int, Process] = field(default_factory=dict)
    _jvm: JvmThreads = field(default_factory=JvmThreads)

    def __enter__(self) -> Probe:
        """Take the first sample and go on in a thread of its own."""
        self._ours |= _ids(self.servers)
        self._before = processes()
        self._sample()
        self._thread = threading.Thread(target=self._loop, name="probe", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the last sample."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._sample()
        self.others = used(self._before, processes(), self._ours | _ids(self.servers))

    def table(self, started_unix_ns: int) -> pa.Table:
        """The samples on the clock of a drive that began at ``started_unix_ns``."""
        rows = [{**row, "t": row["t"] - started_unix_ns} for row in self._rows]
        return pa.Table.from_pylist(rows, schema=PROBE)

    def _loop(self) -> None:
        while not self._stop.wait(self.interval_s):
            self._sample()

    def _sample(self) -> None:
        seen = {"t": time.time_ns(), **_server(self.servers, self._jvm), **_cores()}
        own, cpu = os.times(), psutil.cpu_times()
        limited = [n for path in self._limits if (n := _throttled(path)) is not None]
        host: dict[str, Any] = {
            "client_cpu_s": own.user + own.system,
            "host_user_s": cpu.user,
            "host_system_s": cpu.system,
            "host_steal_s": getattr(cpu, "steal", 0.0),
            "host_iowait_s": getattr(cpu, "iowait", 0.0),
            "host_idle_s": cpu.idle,
            "throttled": sum(limited) if limited else None,
        }
        for name in _PRESSURES:
            host[f"pressure_{name}"], host[f"stalled_{name}_s"] = _pressure(name)
        if len(self._rows) % _FREQUENCY_EVERY == 0:
            host["core_mhz"] = [_mhz(cpu) for cpu in range(_CORES)]
        self._rows.append({**seen, **host})


def _ids(roots: Sequence[psutil.Process]) -> set[int]:
    """The processes of these trees that are there."""
    found = set()
    for root in roots:
        with suppress(psutil.Error, OSError):
            found |= {p.pid for p in (root, *root.children(recursive=True))}
    return found


def _server(roots: Sequence[psutil.Process], jvm: JvmThreads) -> dict[str, Any]:
    """Sums over the service's process trees; nulls once one of them is gone.

    What a child that has ended had used is on its parent's account, so that sums never fall.
    """
    cpu_s = 0.0
    rss = read = written = threads = faults = 0
    try:
        tree = [p for root in roots for p in (root, *root.children(recursive=True))]
        for process in tree:
            with process.oneshot():
                times = process.cpu_times()
                cpu_s += sum(times[:4])  # user, system, and those of children that have ended
                rss += process.memory_info().rss
                threads += process.num_threads()
                io = process.io_counters()
                read += io.read_bytes
                written += io.write_bytes
                faults += _major_faults(process.pid)
                jvm.look(process.pid)
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess, OSError):
        return {}
    return {
        "server_cpu_s": cpu_s,
        "server_rss_bytes": rss,
        "server_read_bytes": read,
        "server_write_bytes": written,
        "server_threads": threads,
        "server_major_faults": faults,
        **jvm.seconds(),
    }


def _major_faults(pid: int) -> int:
    """Major faults of a process and of its children that have ended (proc(5): majflt, cmajflt)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[9]) + int(fields[10])


def _cores() -> dict[str, list[float | None]]:
    """Cumulative seconds of each core, from /proc/stat; empty where there is none."""
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return {}
    rows: dict[int, list[float]] = {}
    for name, *ticks in (line.split() for line in lines if line.startswith("cpu")):
        if name != "cpu" and int(name[3:]) < _CORES:
            rows[int(name[3:])] = [int(n) / TICKS_PER_S for n in ticks[:8]]
    found: dict[str, list[float | None]] = {
        f"core_{name}_s": [None] * _CORES for name in ("busy", "interrupts", "steal", "idle")
    }
    for cpu, (user, nice, system, idle, iowait, irq, softirq, steal) in rows.items():
        found["core_busy_s"][cpu] = user + nice + system
        found["core_interrupts_s"][cpu] = irq + softirq
        found["core_steal_s"][cpu] = steal
        found["core_idle_s"][cpu] = idle + iowait
    return found


def _mhz(cpu: int) -> float | None:
    """A core's frequency as it is now; None where it cannot be read."""
    try:
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq")
        return int(path.read_text()) / 1e3
    except (OSError, ValueError):
        return None


def _limit_files() -> Iterator[Path]:
    """The statistics of our own control group and of those above it that may have a CPU limit."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for _, controllers, group in (line.split(":", 2) for line in lines):
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = Path("/sys/fs/cgroup", "cpu" if controllers else "")
        own = top / group.lstrip("/")
        for folder in (own, *own.parents):
            path = folder / "cpu.stat"
            if folder.is_relative_to(top) and _throttled(path) is not None:
                yield path


def _throttled(path: Path) -> int | None:
    """How often a control group was stopped at its limit; None where it has none."""
    try:
        rows = dict(line.split() for line in path.read_text().splitlines())
        return int(rows["nr_throttled"])
    except (OSError, KeyError, ValueError):
        return None


def _pressure(name: str) -> tuple[float | None, float | None]:
    """Of pressure stall information, ``some``: avg10 in percent, total in seconds."""
    try:
        first = Path(f"/proc/pressure/{name}").read_text().split("\n", 1)[0]
    except OSError:
        return None, None
    told = dict(part.split("=") for part in first.split()[1:])
    return float(told["avg10"]), int(told["total"]) / 1e6
