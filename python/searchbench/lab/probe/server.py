"""Sums over the process trees of the system under test, from /proc.

The trees are looked up twice a second and not at each sample: to find the children of one process
all processes of the machine must be read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from searchbench.lab.probe.kernel import TICKS_PER_S
from searchbench.lab.probe.threads import Threads

Roots = Callable[[], Sequence[psutil.Process]]
_TREE_S = 0.5
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Server:
    """``roots`` says of which trees, each time; none while nothing is deployed."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._threads = Threads()
        self._of: Sequence[psutil.Process] = ()
        self._tree: tuple[int, ...] = ()
        self._looked_s = -_TREE_S

    def sample(self) -> dict[str, Any]:
        """One row of the server's columns; empty where it is not there, or not seen.

        What a child that has ended had used is on its parent's account, so that sums never fall.
        Every half second it has the threads too.
        """
        roots, now_s = tuple(self._roots()), time.monotonic()
        threads = now_s - self._looked_s >= _TREE_S
        if threads or roots != self._of:
            self._of, self._looked_s = roots, now_s
            self._tree = tuple(sorted(ids(roots)))
            threads = True
        try:
            return self._sums(threads=threads)
        except OSError:  # one has ended since
            self._tree = tuple(sorted(ids(roots)))
        with suppress(OSError):
            return self._sums(threads=threads)
        return {}

    def _sums(self, *, threads: bool) -> dict[str, Any]:
        if not self._tree or any(not root.is_running() for root in self._of):
            return {}
        ticks = pages = count = faults = 0
        moved: list[tuple[int, int] | None] = []
        for pid in self._tree:
            # proc(5), from the third field on; times with those of children that have ended.
            stat = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
            ticks += sum(map(int, stat[11:15]))
            faults += int(stat[9]) + int(stat[10])
            count += int(stat[17])
            pages += int(stat[21])
            moved.append(_moved(pid))
        found: dict[str, Any] = {
            "server_cpu_s": ticks / TICKS_PER_S,
            "server_rss_bytes": pages * _PAGE_BYTES,
            "server_threads": count,
            "server_major_faults": faults,
        }
        if known := [one for one in moved if one is not None and None not in moved]:
            found["server_read_bytes"] = sum(read for read, _ in known)
            found["server_write_bytes"] = sum(written for _, written in known)
        if threads:
            self._threads.begin()
            for pid in self._tree:
                self._threads.look(pid)
            found |= {"server_busiest": self._threads.busiest(), **self._threads.jvm()}
        return found


def ids(roots: Sequence[psutil.Process]) -> set[int]:
    """The processes of these trees that are there."""
    found = set()
    for root in roots:
        with suppress(psutil.Error, OSError):
            found |= {p.pid for p in (root, *root.children(recursive=True))}
    return found


def _moved(pid: int) -> tuple[int, int] | None:
    """Bytes that a process read from disks and wrote to them; None where we may not know."""
    try:
        rows = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    except PermissionError:
        return None
    return int(rows["read_bytes"]), int(rows["write_bytes"])
