"""The CPU time of a server's threads: which is the busiest, and what a JVM's own cost.

HotSpot names its threads, and the kernel keeps a name and the CPU time of each. So every JVM says
what it spends on compiling and on collecting garbage, whatever runs on it, without being asked.
"""

from __future__ import annotations

import os
from typing import Any

from searchbench.lab.probe.files import once
from searchbench.lab.probe.kernel import TICKS_PER_S

# The kernel keeps 15 letters of a name. The VM thread is the collector of the serial GC.
_ROLES = {
    "jvm_compilers_s": ("C1 CompilerThre", "C2 CompilerThre"),
    "jvm_collectors_s": ("GC Thread#", "G1 ", "VM Thread"),
}
_BUSIEST = 8


class Threads:
    """CPU time of the threads of the processes looked at; what has ended keeps its time."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[int, str], tuple[str, float]] = {}
        self._before: dict[tuple[int, str], float] = {}

    def begin(self) -> None:
        """A look at all processes begins."""
        self._before = {thread: used_s for thread, (_, used_s) in self._seconds.items()}

    def look(self, pid: int) -> None:
        """Read the threads of a process; OSError where it has gone."""
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 -- names alone, in a hurry
            try:
                stat = once(f"/proc/{pid}/task/{task}/stat").decode(errors="replace")
            except (FileNotFoundError, ProcessLookupError):
                continue  # this thread has just ended
            head, _, tail = stat.rpartition(")")
            fields = tail.split()
            # proc(5): utime and stime are the fields 14 and 15.
            used_s = (int(fields[11]) + int(fields[12])) / TICKS_PER_S
            self._seconds[pid, task] = head.partition("(")[2], used_s

    def jvm(self) -> dict[str, float]:
        """Sums so far by role; empty where no process was a JVM, which always has compilers."""
        sums: dict[str, float] = {}
        for name, used_s in self._seconds.values():
            for role, names in _ROLES.items():
                if name.startswith(names):
                    sums[role] = sums.get(role, 0.0) + used_s
        return dict.fromkeys(_ROLES, 0.0) | sums if "jvm_compilers_s" in sums else {}

    def busiest(self) -> list[dict[str, Any]]:
        """The few that used most CPU time since the look began, with all that they ever used."""

        def grown(one: tuple[tuple[int, str], tuple[str, float]]) -> float:
            return one[1][1] - self._before.get(one[0], 0.0)

        most = sorted(self._seconds.items(), key=grown, reverse=True)[:_BUSIEST]
        return [
            {"pid": pid, "thread": int(thread), "name": name, "cpu_s": used_s}
            for (pid, thread), (name, used_s) in most
        ]
