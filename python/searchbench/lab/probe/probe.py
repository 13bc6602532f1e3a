"""What the machine and the server do through all phases of a trial: sampled, never averaged here.

About ten samples a second cost under 1 % of a core. Counters are cumulative as the kernel
gives them, so a reader can take any two and subtract. What a kernel does not have is null.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from searchbench.lab.probe import kernel
from searchbench.lab.probe.others import processes, used
from searchbench.lab.probe.server import Roots, Server, ids
from searchbench.record import PROBE

# Some kernels interrupt a core to learn its frequency: once in so many samples.
_FREQUENCY_EVERY = 10
# Rows are kept as they are until there are so many; then as columns, which take a fifth.
_ROWS = 2_000


class Probe:
    """A context that samples until it is left. ``servers``: the roots of process trees, each time.

    ``attached``: they ran already, so a CPU limit of their own groups is none that was asked for.
    ``others``: after a drive, CPU seconds in it of processes that are neither theirs nor ours, by
    name. ``failure``: why it ended before it was left; else empty.
    """

    def __init__(self, servers: Roots, interval_s: float = 0.1, *, attached: bool = False) -> None:
        self.others: dict[str, float] = {}
        self.failure = ""
        self._servers = servers
        self._interval_s = interval_s
        self._server = Server(servers)
        self._attached = attached
        self._grouped: set[int] = set()
        # By file, how often its group was stopped: at its first sample, and at its last.
        self._stopped: dict[Path, tuple[int, int]] = {}
        self._look_for_limits(kernel.limit_files())
        self._rows: list[dict[str, Any]] = []
        self._tables: list[pa.Table] = []
        self._count = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="probe", daemon=True)

    def __enter__(self) -> Self:
        """Take the first sample and go on in a thread of its own."""
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the last sample, if it could go on until now."""
        self._stop.set()
        self._thread.join()
        if not self.failure:
            self._sample()

    @contextmanager
    def drive(self) -> Iterator[None]:
        """What is within is a drive: it has a sample at each end, and ``others`` are of it."""
        ours = {os.getpid()} | ids(self._servers())
        before = processes()
        self._sample()
        try:
            yield
        finally:
            self._sample()
            self.others = used(before, processes(), ours | ids(self._servers()))

    def mark(self) -> None:
        """Take a sample now: something begins or ends that is shorter than an interval."""
        self._sample()

    def table(self, zero_unix_ns: int) -> pa.Table:
        """The samples so far, on a clock whose zero is ``zero_unix_ns``."""
        with self._lock:
            self._pack()
            whole = pa.concat_tables([PROBE.empty_table(), *self._tables])
        at = pc.subtract(whole.column("t"), pa.scalar(zero_unix_ns, pa.int64()))
        return whole.set_column(0, PROBE.field("t"), at)

    def _loop(self) -> None:
        while not self._stop.wait(self._interval_s):
            try:
                self._sample()
            except Exception as error:
                self.failure = f"{type(error).__name__}: {error}"
                return

    def _sample(self) -> None:
        with self._lock:
            own, stopped = os.times(), self._throttled()
            row = {
                "t": time.time_ns(),
                **self._server.sample(),
                **kernel.sample(),
                "client_cpu_s": own.user + own.system,
                "throttled": stopped,
            }
            if self._count % _FREQUENCY_EVERY == 0:
                row["core_mhz"] = kernel.mhz()
            self._count += 1
            self._rows.append(row)
            if len(self._rows) >= _ROWS:
                self._pack()

    def _throttled(self) -> int | None:
        """How often groups were stopped at their limits since each was first seen."""
        if self._attached:
            for pid in {process.pid for process in self._servers()} - self._grouped:
                self._grouped.add(pid)
                self._look_for_limits(kernel.limit_files(pid))
        for path, (first, last) in self._stopped.items():
            now = kernel.throttled(path)
            self._stopped[path] = first, last if now is None else now
        grown = [last - first for first, last in self._stopped.values()]
        return sum(grown) if grown else None

    def _look_for_limits(self, files: Iterable[Path]) -> None:
        for path in files:
            first = kernel.throttled(path)
            if first is not None:
                self._stopped.setdefault(path, (first, first))

    def _pack(self) -> None:
        if self._rows:
            self._tables.append(pa.Table.from_pylist(self._rows, schema=PROBE))
            self._rows = []
