"""What a trial's place explains of what its machine did, so that what was asked for is no surprise.

A system that has a cap of its memory reads from its disk, and one with a share of CPU time is
stopped when that is used up. The study asked for both; so the finding is a note, and names the
lever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from searchbench.analysis.trial.rows import Row
from searchbench.analysis.words import listed, percent
from searchbench.record import Trial
from searchbench.record.trial import KERNEL, Lever

_READS = ("memory", "cold")
_RATES = ("read_iops", "write_iops", "read_per_s", "write_per_s", "latency_ms", "like")
# By the kind of a finding: the last words of the levers that lead to it.
_LEADS: Mapping[str, tuple[str, ...]] = {
    "reads from disk": _READS,
    "major faults": _READS,
    "pressure on disk": (*_READS, *_RATES),
    "pressure on memory": ("memory",),
    "CPU limit": ("cpu_share",),
}

NEAR = 0.95  # of a limit of memory, from which on it may have been felt
_READ_AGAIN = 0.1  # of its files' pages, from which on the first queries meet much in memory


def read_at_start(trial: Trial) -> Iterator[Row]:
    """How much of its files a system that starts cold has in memory before it is asked."""
    for lever in trial.place:
        if not lever.name.endswith(".cold") or lever.problem:
            continue
        pages, started = (lever.figures.get(name, 0) for name in ("pages", "started"))
        if pages and started >= _READ_AGAIN * pages:
            yield (
                "read at the start",
                "note",
                f"{percent(started / pages)} of {pages:,.0f} pages",
                "So much of its files was in memory again when the first query came: the system "
                "read it while it started, or the kernel read ahead of what the system asked for. "
                "The first queries are that much less cold.",
                "Nothing, if the question is how it answers after a restart; to read no more than "
                "is asked for, lower `read_ahead_kb` in /sys/block/DEVICE/queue.",
            )


def _served_by_kernel(trial: Trial) -> bool:
    """Whether the kernel's threads took most of what others took, with storages of the study."""
    others = trial.host_window.others
    kernel_s = others.get(KERNEL, 0.0)
    made = any(x.name.startswith("storages.") for x in trial.place)
    return made and kernel_s > sum(others.values()) / 2


def _binds(lever: Lever) -> bool:
    """Whether a lever can have led to anything: a limit of memory that was never near did not."""
    used, most = (lever.figures.get(name) for name in ("peak_bytes", "limit_bytes"))
    if not lever.name.endswith(".memory") or used is None or not most:
        return True
    return used >= NEAR * most or bool(lever.figures.get("met"))


def explained(trial: Trial, row: Row) -> Row:
    """The finding as a note where the trial's place leads to it; else as it is."""
    kind, severity, number, meaning, remedy = row
    if kind == "foreign CPU" and severity == "warning" and _served_by_kernel(trial):
        return (
            kind,
            severity,
            number,
            f"{meaning} Most of it was the kernel's own threads, which serve the storages that the "
            "study made of files: a device would take less of the processor.",
            f"A machine with a core to spare for them. {remedy}",
        )
    wanted = _LEADS.get(kind, ())
    levers = [
        x for x in trial.place
        if x.name.rpartition(".")[2] in wanted and not x.problem and _binds(x)
    ]  # fmt: skip
    if severity == "invalid" or not levers:
        return row
    said = listed([f"{x.name} = {x.asked}" for x in levers])
    names = listed([x.name for x in levers])
    return (
        kind,
        "note",
        number,
        f"{meaning} The study asks for that with {said}.",
        f"Nothing, if that is the question; otherwise change {names}.",
    )
