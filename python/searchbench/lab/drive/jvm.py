"""What a JVM spends on compiling and on collecting garbage: the CPU time of its own threads.

HotSpot names its threads, and the kernel keeps a name and the CPU time of each. So every JVM says
it, whatever runs on it, without being asked; and it is known at the beginning of the measured
window, where a server can be asked only before the warm-up.
"""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# The kernel keeps 15 letters of a name. The VM thread is the collector of the serial GC.
_ROLES = {
    "jvm_compilers_s": ("C1 CompilerThre", "C2 CompilerThre"),
    "jvm_collectors_s": ("GC Thread#", "G1 ", "VM Thread"),
}


class JvmThreads:
    """CPU time of those threads in the processes looked at; what has ended keeps its time."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[int, str], tuple[str, float]] = {}
        self._others: set[tuple[int, str]] = set()

    def look(self, pid: int) -> None:
        """Read the threads of a process; OSError where it has gone."""
        for task in Path(f"/proc/{pid}/task").iterdir():
            thread = task.name
            if (pid, thread) in self._others:
                continue
            try:
                stat = (task / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue  # this thread has just ended
            head, _, tail = stat.rpartition(")")
            name, fields = head.partition("(")[2], tail.split()
            role = next((role for role, names in _ROLES.items() if name.startswith(names)), None)
            if role is None:
                self._others.add((pid, thread))
            else:
                # proc(5): utime and stime are the fields 14 and 15.
                used_s = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
                self._seconds[pid, thread] = role, used_s

    def seconds(self) -> dict[str, float]:
        """Sums so far by role; empty where no process was a JVM, which always has compilers."""
        roles = {role for role, _ in self._seconds.values()}
        if "jvm_compilers_s" not in roles:
            return {}
        return {
            role: sum(used_s for of, used_s in self._seconds.values() if of == role)
            for role in _ROLES
        }
