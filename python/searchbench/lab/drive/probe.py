"""What the machine and the server do while a trial is driven: sampled, never averaged here.

About ten samples a second cost under 1 % of a core. Counters are cumulative as the kernel
gives them, so a reader can take any two and subtract.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

from searchbench.record import PROBE

_PRESSURES = ("cpu", "io", "memory")


@dataclass
class Probe:
    """A context that samples until it is left. ``servers``: the roots of process trees."""

    servers: Sequence[psutil.Process]
    interval_s: float = 0.1
    _rows: list[dict[str, Any]] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Probe:
        """Take the first sample and go on in a thread of its own."""
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

    def table(self, started_unix_ns: int) -> pa.Table:
        """The samples on the clock of a drive that began at ``started_unix_ns``."""
        rows = [{**row, "t": row["t"] - started_unix_ns} for row in self._rows]
        return pa.Table.from_pylist(rows, schema=PROBE)

    def _loop(self) -> None:
        while not self._stop.wait(self.interval_s):
            self._sample()

    def _sample(self) -> None:
        seen = {"t": time.time_ns(), **_server(self.servers)}
        own, cpu = os.times(), psutil.cpu_times()
        pressures = {f"pressure_{name}": _pressure(name) for name in _PRESSURES}
        host = {
            "client_cpu_s": own.user + own.system,
            "host_user_s": cpu.user,
            "host_system_s": cpu.system,
            "host_steal_s": getattr(cpu, "steal", 0.0),
            "host_iowait_s": getattr(cpu, "iowait", 0.0),
            "host_idle_s": cpu.idle,
        }
        self._rows.append({**seen, **host, **pressures})


def _server(roots: Sequence[psutil.Process]) -> dict[str, Any]:
    """Sums over the service's process trees; nulls once one of them is gone."""
    cpu_s = 0.0
    rss = read = written = threads = 0
    try:
        tree = [p for root in roots for p in (root, *root.children(recursive=True))]
        for process in tree:
            with process.oneshot():
                times = process.cpu_times()
                cpu_s += times.user + times.system
                rss += process.memory_info().rss
                threads += process.num_threads()
                io = process.io_counters()
                read += io.read_bytes
                written += io.write_bytes
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return {}
    return {
        "server_cpu_s": cpu_s,
        "server_rss_bytes": rss,
        "server_read_bytes": read,
        "server_write_bytes": written,
        "server_threads": threads,
    }


def _pressure(name: str) -> float | None:
    """``some avg10`` of pressure stall information, percent; None where the kernel has none."""
    try:
        line = Path(f"/proc/pressure/{name}").read_text().split("\n", 1)[0]
    except OSError:
        return None
    return next((float(part[6:]) for part in line.split() if part.startswith("avg10=")), None)
