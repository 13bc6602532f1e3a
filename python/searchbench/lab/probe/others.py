"""Who else used the processor while a trial was driven: names and CPU seconds, nothing more."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from searchbench.lab.probe.kernel import TICKS_PER_S
from searchbench.record.trial import KERNEL

_OF_THE_KERNEL = 0x0020_0000  # PF_KTHREAD, of include/linux/sched.h
_NAMED = 5
_LEAST_S = 0.05  # CPU time is counted in ticks of 10 ms


class Process(NamedTuple):
    """``began`` tells apart processes of the same id; ``cpu_s`` has that of ended children."""

    name: str
    parent: int
    began: int
    cpu_s: float


def processes() -> dict[int, Process]:
    """All processes of this machine that are seen from here, by id."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            stat = (place / "stat").read_text(errors="replace")
        except OSError:
            continue  # it has ended
        name, _, rest = stat.partition("(")[2].rpartition(")")
        fields = rest.split()  # from the third of proc(5) on
        kernel = int(fields[6]) & _OF_THE_KERNEL
        cpu_s = sum(map(int, fields[11:15])) / TICKS_PER_S
        found[int(place.name)] = Process(
            KERNEL if kernel else name, int(fields[1]), int(fields[19]), cpu_s
        )
    return found


def used(
    before: Mapping[int, Process], after: Mapping[int, Process], ours: Collection[int]
) -> dict[str, float]:
    """CPU seconds by name, the greatest first, of the processes that are not in ``ours``.

    The busiest few, and the kernel's own threads together under their name. What a process used
    that has ended is on the account of the one that waited for it.
    """
    began = {pid: p for pid, p in before.items() if pid in after and after[pid].began == p.began}
    grown = {pid: p.cpu_s - (began[pid].cpu_s if pid in began else 0.0) for pid, p in after.items()}
    for pid, gone in before.items():
        if pid in began:
            continue
        waited = gone.parent
        while waited in before and waited not in began:
            waited = before[waited].parent
        if waited in grown:
            grown[waited] -= gone.cpu_s  # used before, and now on the account of who waited
    by_name: dict[str, float] = {}
    for pid, cpu_s in grown.items():
        if pid not in ours and cpu_s > 0:
            by_name[after[pid].name] = by_name.get(after[pid].name, 0.0) + cpu_s
    most = [n for n in sorted(by_name, key=by_name.__getitem__)[::-1] if by_name[n] >= _LEAST_S]
    named = [name for name in most if name != KERNEL][:_NAMED]
    return {name: round(by_name[name], 2) for name in most if name in (*named, KERNEL)}
