"""Sums over the process trees of the system under test, from /proc.

The trees are looked up twice a second and not at each sample. A kernel that lists the children of a
thread makes that cheap; of others all processes of the machine must be read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import psutil

from searchbench.lab.probe.files import Kept, once
from searchbench.lab.probe.kernel import TICKS_PER_S
from searchbench.lab.probe.threads import Threads

Roots = Callable[[], Sequence[psutil.Process]]
_TREE_S = 0.5
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# The kernel walks all pages of a process for its proportional set size: some 10 ms a gigabyte, in
# which the process cannot map others. So it is asked for at most so large a share of the time.
_WALKING_SHARE = 0.002
_LISTS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")  # noqa: PTH110


class Server:
    """``roots`` says of which trees, each time; none while nothing is deployed."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._threads = Threads()
        self._of: Sequence[psutil.Process] = ()
        self._tree: tuple[int, ...] = ()
        self._kept = Kept()
        self._looked_s = -_TREE_S
        self._walks_s = 0.0

    def sample(self) -> dict[str, Any]:
        """One row of the server's columns; empty where it is not there, or not seen.

        What a child that has ended had used is on its parent's account, so that sums never fall.
        Every half second it has the threads too.
        """
        roots, now_s = tuple(self._roots()), time.monotonic()
        threads = now_s - self._looked_s >= _TREE_S
        if threads or roots != self._of:
            same = roots == self._of
            self._of, self._looked_s = roots, now_s
            # While it is read, the list may lack one that is there: who was there stays until it is
            # seen to have ended.
            self._grow(_tree_of(roots) | ({*self._tree} if same else set()))
            threads = True
        try:
            return self._sums(threads=threads)
        except OSError:  # one has ended since
            self._grow(ids(roots))
        with suppress(OSError):
            return self._sums(threads=threads)
        return {}

    def _grow(self, tree: set[int]) -> None:
        """From now on it is these; descriptors of what is no more in it are closed."""
        if {*self._tree} - tree:
            self._kept.close()
        self._tree = tuple(sorted(tree))

    def _sums(self, *, threads: bool) -> dict[str, Any]:
        if not self._tree or any(root.pid not in self._tree for root in self._of):
            return {}
        ticks = pages = count = faults = 0
        moved: list[tuple[int, int] | None] = []
        for pid in self._tree:
            # proc(5), from the third field on; times with those of children that have ended.
            stat = self._kept.read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
            ticks += sum(map(int, stat[11:15]))
            faults += int(stat[9]) + int(stat[10])
            count += int(stat[17])
            pages += int(stat[21])
            moved.append(self._moved(pid))
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
            if len(self._tree) > 1 and (pss := self._proportional()) is not None:
                found["server_pss_bytes"] = pss
        return found

    def _proportional(self) -> int | None:
        """The sum of the proportional set sizes: pages that processes share count once, in parts.

        None where it is not time yet, where we may not know it, or the kernel does not tell.
        """
        began_s = time.monotonic()
        if began_s < self._walks_s:
            return None
        kilobytes = 0
        try:
            for pid in self._tree:
                rollup = once(f"/proc/{pid}/smaps_rollup")
                kilobytes += int(rollup.partition(b"\nPss:")[2].split()[0])
        except (PermissionError, FileNotFoundError, IndexError):
            return None
        finally:
            now_s = time.monotonic()
            self._walks_s = now_s + (now_s - began_s) / _WALKING_SHARE
        return kilobytes << 10

    def _moved(self, pid: int) -> tuple[int, int] | None:
        """Bytes that a process read from disks and wrote to them; None where we may not know."""
        try:
            rows = dict(row.split(b": ") for row in self._kept.read(f"/proc/{pid}/io").splitlines())
        except PermissionError:
            return None
        return int(rows[b"read_bytes"]), int(rows[b"write_bytes"])


def _tree_of(roots: Sequence[psutil.Process]) -> set[int]:
    """As ``ids``, by the lists of children that the kernel has, where it has them."""
    found: set[int] = set()
    left = [root.pid for root in roots if root.is_running()]
    while left:
        pid = left.pop()
        found.add(pid)
        try:
            tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 -- names alone
        except OSError:  # it has ended
            found.discard(pid)
            continue
        for task in tasks:
            try:
                children = once(f"/proc/{pid}/task/{task}/children")
            except FileNotFoundError:
                if not _LISTS_CHILDREN:
                    return ids(roots)
                continue
            except OSError:
                continue
            left += [child for child in map(int, children.split()) if child not in found]
    return found


def ids(roots: Sequence[psutil.Process]) -> set[int]:
    """The processes of these trees that are there."""
    found = set()
    for root in roots:
        with suppress(psutil.Error, OSError):
            found |= {p.pid for p in (root, *root.children(recursive=True))}
    return found
