"""A clock that is slow through a whole trial does not show in it: only beside other trials, and one
that is slow through a whole record only beside another record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from searchbench.analysis.judgement import Finding
from searchbench.analysis.trial.machine import SLOWED, cores_used
from searchbench.analysis.words import listed
from searchbench.record import Record, Trial

BUSY = 0.5  # of the window: a core that has less to do may be slow because of that


def findings(record: Record) -> Iterator[Finding]:
    """That a core was slower throughout some trials than in others, in which it was busy too."""
    seen = {trial.trial: _greatest(trial) for trial in record.trials if trial.status == "ok"}
    most = _of_record(record)
    slow = {
        name: min((mhz / most[cpu], cpu, mhz) for cpu, mhz in by_core.items())
        for name, by_core in seen.items()
        if any(mhz < SLOWED * most[cpu] for cpu, mhz in by_core.items())
    }
    if not slow:
        return
    _, cpu, mhz = min(slow.values())
    yield Finding(
        "CPU frequency",
        "warning",
        "",
        f"core {cpu} reached at most {mhz:,.0f} MHz, and {most[cpu]:,.0f} MHz in another trial; "
        f"trials with a slow core: {listed([*slow])}",
        "A core that was busy was slower throughout these trials than in others, so equal work "
        "took longer in them.",
        "cpupower frequency-set -g performance; turn turbo off; check the cooling.",
    )


def slower(before: Sequence[Record], after: Sequence[Record]) -> dict[int, str]:
    """By side (0: before, 1: after), the core whose clock was slower throughout all of its runs
    than in any of the other's, in words. Empty: none was, or it is not on record.
    """
    both = [[_of_record(record) for record in side] for side in (before, after)]
    found: dict[int, str] = {}
    for cpu in sorted(set[int].intersection(*(set(own) for side in both for own in side))):
        sides = [[own[cpu] for own in side] for side in both]
        for side, other in ((0, 1), (1, 0)):
            if max(sides[side]) < SLOWED * min(sides[other]):
                first, second = (f"{max(own):,.0f} MHz" for own in sides)
                told = f"core {cpu} reached at most {first} in the first and {second} in the second"
                found.setdefault(side, told)
    return found


def _of_record(record: Record) -> dict[int, float]:
    """The greatest frequency of each core in any of its trials, in MHz."""
    most: dict[int, float] = {}
    for trial in record.trials:
        for cpu, mhz in _greatest(trial).items() if trial.status == "ok" else ():
            most[cpu] = max(mhz, most.get(cpu, 0.0))
    return most


def _greatest(trial: Trial) -> dict[int, float]:
    """The greatest frequency of each core that was used and busy, in MHz, where it is on record."""
    used = cores_used(trial)
    found: dict[int, float] = {}
    for core in trial.host_window.by_core:
        whole_s = core.busy_s + core.idle_s + core.interrupts_s + core.steal_s
        busy = whole_s > 0 and core.busy_s >= BUSY * whole_s
        if core.mhz_most and busy and (not used or core.cpu in used):
            found[core.cpu] = core.mhz_most
    return found
