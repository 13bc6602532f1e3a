"""What held a treatment back: which part of the machine had nothing left, with the evidence.

Each trial is looked at by itself, over its measured window, and the treatment has what most of its
trials have. A part is named only if its own figure says so; where none does, none is named, and
where the figures are not on record it is unknown. What other processes of the machine did is not
the server's: cores are idle only if nobody used them, and a disk holds back who reads from it.

Two laws carry it. Utilisation: a part that was busy all the time limits the rate. Little's law:
the mean number of requests that a part holds is the rate times the time that each spends there. So
the disk's own count of requests in flight, by those in service at the server, is the share of the
service time that was spent on the disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from searchbench.analysis.judgement import Bottleneck, TrialResult
from searchbench.analysis.trial import elsewhere
from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.words import percent
from searchbench.record import Trial
from searchbench.record.trial import DeviceTotals, ServerTotals

BUSY = 0.90  # of the time: no more is to be had
MOST = 0.50  # of the service time
IDLE = 0.70  # of the server's cores: below, something else than the processor keeps them waiting
SEVERAL = 1.5  # cores: from here on more than one thread was at work
OWN = 0.50  # of what a disk moved: from here on it was busy for the server
OVER = 1.10  # of a limit of writes: from here on they are not those that are held to it
PAGE_BYTES = 4096
_GENERATOR = ("client saturated", "client starved", "generator lag")
_ON_OTHERS = (
    "loop",
    "dm-",
    "md",
    "zd",
)  # devices that lie on others, which have their requests too
NEARLY = 0.80
# By a control group; its periods last a tenth of a second, so that is one in ten of them.
STOPPED_PER_S = 1.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One trial: ``part`` of ``judgement.Bottleneck``, and the figure that says so."""

    part: str
    number: str


UNKNOWN = Seen("unknown", "the trial was not driven")


def of_trial(trial: Trial, trace: Trace, findings: Sequence[str]) -> Seen:
    """What held one trial back. ``findings``: the kinds that its audit has."""
    seconds = trace.window_s
    if seconds <= 0:
        return Seen("unknown", "no measured window")
    if trial.fault is not None:  # what was used is on record of the whole window alone
        return Seen("unknown", "the window has a fault in it, during which nothing could be used")
    return next(_all(trial, trace, seconds, findings))


def of_span(
    trial: Trial,
    server: ServerTotals,
    devices: Sequence[DeviceTotals],
    seconds: float,
    *,
    own: bool = False,
) -> Seen:
    """What held a job back, which is one thing that the server does at its own pace.

    ``devices``: within the time of the job; ``own``: they are the system's alone, else they are all
    of the machine.
    """
    cores = len(trial.service.cpus) or trial.host_window.cores or 0
    if server.cpu_s is None or not cores or seconds <= 0:
        return Seen("unknown", "the server's processes are not seen from here")
    used = server.cpu_s / seconds / cores
    of = f"{percent(used)} of {cores} {'core' if cores == 1 else 'cores'}"
    if used >= BUSY:
        return Seen("processor", of)
    if (limited := _limited(trial, devices, seconds)) is not None:
        return Seen("disk", limited[1])
    worst, aside, part = (
        max(devices, key=lambda d: d.busy_s, default=None),
        "",
        1.0 if own else None,
    )
    if worst is not None and worst.busy_s >= BUSY * seconds:
        moved = worst.written_bytes + worst.read_bytes
        aside = f"{_busy(worst, seconds)}, at {moved / seconds / 1e6:,.1f} MB/s"
        if not own and None not in (server.read_bytes, server.write_bytes):
            part = _part((server.read_bytes or 0.0) + (server.write_bytes or 0.0), moved)
        if part is not None and part >= OWN:
            return Seen("disk", f"{aside}{_of_server(part)}")
    share_of_one, in_use = server.busiest_thread_share, server.cpu_s / seconds
    if share_of_one is not None and share_of_one >= BUSY:
        number = f"{server.busiest_thread} ran {percent(share_of_one)} of the time, the server used"
        if in_use >= SEVERAL:
            return Seen("unknown", f"{number} {of}; {_AS_BUSY}")
        return Seen("one thread", f"{number} {of}")
    if BUSY <= in_use < SEVERAL:
        return Seen("one thread", f"the server used {in_use:.2f} cores of {cores}")
    if aside and part is None:
        return Seen("unknown", f"{aside}; {_NOT_KNOWN}")
    if late := _late(trial, devices, seconds):
        return Seen("unknown", f"the server used {of}; {late}")
    return Seen("none", f"the server used {of}{f'; {aside}{_of_server(part)}' if aside else ''}")


def of_treatment(trials: Sequence[tuple[TrialResult, Seen]]) -> Bottleneck | None:
    """What more than half of the valid trials say, else unknown; None where none is valid."""
    seen = [one for result, one in trials if result.counts]
    if not seen:
        return None
    counts = Counter(one.part for one in seen).most_common()
    part, most = counts[0]
    if 2 * most <= len(seen):
        several = " in some trials, ".join(part for part, _ in counts)
        return Bottleneck("unknown", f"{several} in others", most, len(seen))
    number = next(one.number for one in seen if one.part == part)
    return Bottleneck(part, number, most, len(seen))


def _used(trial: Trial, seconds: float) -> float | None:
    """The share of its cores that the server on this machine used; None: not known, or elsewhere
    too.
    """
    cores = len(trial.service.cpus) or trial.host_window.cores or 0
    if trial.elsewhere or trial.server.cpu_s is None or not cores:
        return None
    return trial.server.cpu_s / seconds / cores


def _all(trial: Trial, trace: Trace, seconds: float, findings: Sequence[str]) -> Iterator[Seen]:
    """Everything that had nothing left, the surest first; ends with "none" or "unknown"."""
    # A limit that was used up says more than that the generator lost its core at times.
    limited = _limited(trial, trial.host_window.devices, seconds)
    # Nor is it what held a server back that has used up its cores, and so starved the generator.
    full = _used(trial, seconds)
    for kind in findings:
        behind = limited is not None or (kind == "client starved" and (full or 0.0) >= BUSY)
        if kind in _GENERATOR and (kind == "client saturated" or not behind):
            yield Seen("client", kind)
    if trial.elsewhere:
        yield from _of_hosts(trial, seconds)
        return
    server, cores = trial.server, len(trial.service.cpus) or trial.host_window.cores or 0
    if server.cpu_s is None or not cores:
        yield Seen("unknown", "the server's processes are not seen from here")
        return
    used = server.cpu_s / seconds / cores
    of = f"{percent(used)} of {cores} {'core' if cores == 1 else 'cores'}"
    if used >= BUSY:
        yield Seen("processor", of)
    yield from _shares(trial)
    inside = _in_service(trace, seconds)
    disk = _disk(trial, seconds, inside)
    if disk is not None and disk.part in ("disk", "memory"):
        yield disk
    stopped_per_s = (trial.host_window.throttled or 0.0) / seconds
    if stopped_per_s >= STOPPED_PER_S:
        yield Seen("unknown", f"the server used {of}, and a control group of the server or of "
                   f"searchbench was stopped {stopped_per_s:.2g} times a second at its CPU limit: "
                   "the server may have used all the CPU time that it was allowed")  # fmt: skip
    share, alone = server.busiest_thread_share, ""
    # Where requests in service are worked on, each by a thread of its own, none waits for one.
    at_work = inside >= SEVERAL and server.cpu_s / seconds >= IDLE * inside
    if cores > 1 and share is not None and share >= BUSY and not at_work:
        number = f"{server.busiest_thread} ran {percent(share)} of the time, the server used {of}"
        if server.cpu_s / seconds >= SEVERAL:
            yield Seen("unknown", f"{number}; {_AS_BUSY}")
        if inside >= SEVERAL:
            yield Seen("one thread", number)
        # As of one client: the server may have another thread for a second request.
        alone = f"; {server.busiest_thread} ran {percent(share)} of the time"
    if disk is not None and disk.part == "unknown":
        yield disk
    aside = f"{alone}; {disk.number}" if disk is not None else alone
    waiting = used < IDLE and inside >= cores
    said = (
        f"{inside:.1f} requests in service, and the server used {of}"
        if waiting
        else f"the server used {of}, with {inside:.1f} requests in service"
    )
    if why := _used_by_others(trial, seconds, IDLE if waiting else BUSY, sure=waiting):
        yield Seen("unknown", f"{said}; {why}")
    if late := _late(trial, trial.host_window.devices, seconds):
        yield Seen("unknown", f"{said}; {late}")
    yield Seen("waits" if waiting else "none", f"{said}{aside}")


def _of_hosts(trial: Trial, seconds: float) -> Iterator[Seen]:
    """Of a system on several machines: one whose cores it used up, if there is one; else unknown.

    Of the hosts no single thread and no disk is known, so that nothing else can be excluded.
    """
    for one in trial.elsewhere:
        share = elsewhere.used_share(one)
        if share is not None and share >= BUSY:
            yield Seen("processor", f"on host {one.host} {percent(share)} of {one.cores} cores")
    own, cores = trial.server.cpu_s, len(trial.service.cpus)
    here = "" if own is None or not cores else (
        f"here {percent(own / seconds / cores)} of {cores} {'core' if cores == 1 else 'cores'}, "
    )  # fmt: skip
    if own is not None and cores and own / seconds / cores >= BUSY:
        yield Seen("processor", f"{here}{elsewhere.said(trial.elsewhere)}")
    yield Seen("unknown", f"the system used {here}{elsewhere.said(trial.elsewhere)}; threads and "
               "disks of hosts that are reached by ssh are not watched")  # fmt: skip


def _used_by_others(trial: Trial, seconds: float, most: float, *, sure: bool) -> str:
    """Why nothing follows from the server's own CPU time, a clause; empty: its cores had time left.

    ``most``: of the time of the cores that the server may use, from which on they are not idle.
    ``sure``: if it is not on record, that is a reason too. Of an attached system only processes
    that were found are known, and others of the machine may be its own, behind a proxy for one.
    """
    idle = _idle(trial, seconds)
    if idle is None:
        return "whether its cores were idle is not on record" if sure else ""
    if 1 - idle >= most:
        whose = ", which may be the system's own" if trial.attached is not None else ""
        return (
            f"its cores were in use {percent(1 - idle)} of the time in all, the rest by other "
            f"processes{whose}"
        )
    others = _others(trial, seconds) if trial.attached is not None else 0.0
    if others >= BUSY:
        return (
            f"other processes of the machine used {others:.2f} cores, which may be the system's own"
        )
    return ""


def _idle(trial: Trial, seconds: float) -> float | None:
    """The share of the time in which the cores that the server may use were idle; None: unknown.

    Where only the sum over the machine is on record it is the least that it can have been.
    """
    host, own = trial.host_window, set(trial.service.cpus)
    threads = trial.drive.threads if trial.drive is not None else []
    client = {t.cpu for t in threads if t.cpu is not None and t.host is None}
    free = [core for core in host.by_core if core.cpu not in client] or host.by_core
    rows = [core for core in host.by_core if core.cpu in own] if own else free
    if rows and len(rows) >= len(own):
        return min(1.0, sum(core.idle_s for core in rows) / (len(rows) * seconds))
    if host.idle_s is None or not host.cores:
        return None
    n = len(own) or host.cores
    idle_s = host.idle_s + (host.iowait_s or 0.0) - (host.cores - n) * seconds
    return min(1.0, max(0.0, idle_s / (n * seconds)))


def _others(trial: Trial, seconds: float) -> float:
    """How many cores of the machine neither the server's known processes used nor the generator."""
    host = trial.host_window
    busy_s = sum(core.busy_s for core in host.by_core) if host.by_core else host.busy_s or 0.0
    return (busy_s - (trial.server.cpu_s or 0.0) - (host.client_cpu_s or 0.0)) / seconds


def _shares(trial: Trial) -> Iterator[Seen]:
    """A share of CPU that was used up, of a place or of one of the hosts."""
    for lever in trial.place:
        owner, _, key = lever.name.rpartition(".")
        used = lever.figures.get("used_share")
        if key == "cpu_share" and used is not None and used >= BUSY * float(lever.asked):
            yield Seen("processor", f"{owner} used {percent(used)} of each core that it has, and "
                       f"its share is {percent(float(lever.asked))}")  # fmt: skip


# By the last word of a lever: what of a device it limits, and how that is said.
_LIMITS: Mapping[str, tuple[str, float, str]] = {
    "read_iops": ("reads", 1, "reads/s"),
    "write_iops": ("writes", 1, "writes/s"),
    "read_per_s": ("read_bytes", 1e6, "MB/s read"),
    "write_per_s": ("written_bytes", 1e6, "MB/s written"),
}


def _limited(
    trial: Trial, devices: Sequence[DeviceTotals], seconds: float
) -> tuple[DeviceTotals, str] | None:
    """The device whose limit was used up, and which limit; None where none surely was.

    The kernel holds such requests back before the device, whose own counts show no wait.
    """
    return next(((d, said) for d, said, sure in _used_up(trial, devices, seconds) if sure), None)


def _late(trial: Trial, devices: Sequence[DeviceTotals], seconds: float) -> str:
    """Which limit of writes was exceeded, a clause; empty: none.

    Writes that the kernel does later are not held to it in control groups of version 1, but the
    device counts them too. So it is not known whether those that are were held back.
    """
    over = (said for _, said, sure in _used_up(trial, devices, seconds) if not sure)
    return "".join(f"{said}: whether it held writes back is not on record" for said in [*over][:1])


def _used_up(
    trial: Trial, devices: Sequence[DeviceTotals], seconds: float
) -> Iterator[tuple[DeviceTotals, str, bool]]:
    """Each limit that was reached: its device, the rate beside it, and is it what held back?"""
    by_name = {d.name: d for d in devices}
    for lever in trial.place:
        device, key = by_name.get(lever.device), lever.name.rpartition(".")[2]
        if device is None or key not in _LIMITS:
            continue
        what, unit, said = _LIMITS[key]
        rate, most = getattr(device, what) / seconds, float(lever.asked)
        if rate >= BUSY * most:
            words = f"{rate / unit:,.1f} {said}, and {lever.name} is {most / unit:,.1f}"
            yield device, words, not (key.startswith("write") and rate > OVER * most)


_AS_BUSY = (
    "other threads ran too, and whether they waited for it, or were as busy, is not on record"
)
_NOT_KNOWN = "how much of that was the server's is not on record"


def _disk(trial: Trial, seconds: float, inside: float) -> Seen | None:
    """The device that held requests back most, if one did; memory, where more of it would help.

    Unknown, where a device had no time left and it is not known with whose reads; none, where they
    were those of others.
    """
    limited = _limited(trial, trial.host_window.devices, seconds)
    if limited is not None:
        return _or_memory(trial, *limited)
    worst = _slowest(trial.host_window.devices)
    if worst is None:
        return None
    own = _read_by_server(trial.server)
    part = 1.0 if own is None else _part(own, worst.read_bytes)
    busy, held = worst.busy_s / seconds, part * worst.read_s / seconds
    slow = inside > 0 and held >= MOST * inside
    if (busy < BUSY and not slow) or not (part and worst.reads):
        return None
    if not slow and worst.read_s < MOST * worst.busy_s:  # what kept it busy were writes
        return Seen("none", f"{_busy(worst, seconds)}, mostly with writes")
    # Many devices serve several requests at once, and are busy long before they have nothing left.
    if not slow and (trial.server.cpu_s or 0.0) / seconds >= MOST * inside:
        return Seen(
            "none", f"{_busy(worst, seconds)}, with {held:.1f} reads of the server in flight"
        )
    each_ms = 1e3 * worst.read_s / worst.reads
    number = (
        f"{_busy(worst, seconds)}: {worst.reads / seconds:,.0f} reads/s of "
        f"{worst.read_bytes / worst.reads / 1024:,.0f} KiB, {each_ms:.2f} ms each"
    )
    if own is None:
        return Seen("unknown", f"{number}; {_NOT_KNOWN}")
    if not slow and part < OWN:
        return Seen("none", f"{_busy(worst, seconds)}{_of_server(part)}")
    return _or_memory(trial, worst, f"{number}{_of_server(part)}")


def _busy(device: DeviceTotals, seconds: float) -> str:
    return f"{device.name} was busy {percent(min(1.0, device.busy_s / seconds))} of the time"


def _read_by_server(server: ServerTotals) -> float | None:
    """What the server itself read from disks; None: not on record.

    A page fault reads at least a page, and more where the kernel reads ahead, so that faults alone
    tell it only where there is none of them.
    """
    faulted = None if server.major_faults is None else PAGE_BYTES * server.major_faults
    if server.read_bytes is None:
        return None if faulted else faulted
    return max(server.read_bytes, faulted or 0.0)


def _part(own: float, of: float) -> float:
    """The share of what a device moved that can be the server's."""
    return min(1.0, own / of) if of > 0 else float(own > 0)


def _of_server(part: float | None) -> str:
    """How much of that was the server's; empty: about all."""
    if part is None or part >= BUSY:
        return ""
    return f", and {percent(part)} of its bytes were the server's"


def _or_memory(trial: Trial, device: DeviceTotals, number: str) -> Seen:
    """Memory, where the server read pages more than once; else the disk."""
    if (again := _read_again(trial, device)) > 1:
        return Seen("memory", f"{number}; it read {again:.1f} times the index in the window")
    return Seen("disk", number)


def _slowest(devices: Sequence[DeviceTotals]) -> DeviceTotals | None:
    """The device with most waiting; the one below it, where that has nearly all of it."""
    worst = max(devices, key=lambda d: d.read_s, default=None)
    if worst is None:
        return None
    below = [
        d
        for d in devices
        if not d.name.startswith(_ON_OTHERS) and d.read_s >= NEARLY * worst.read_s
    ]
    return max(below, key=lambda d: d.read_s, default=worst)


def _read_again(trial: Trial, device: DeviceTotals) -> float:
    """How many times over the server read the whole index from this device: above 1, it read pages
    more than once. A device's own count is an upper limit, since others may read from it too.
    """
    index = trial.ingest.index_bytes if trial.ingest is not None else None
    own = _read_by_server(trial.server)
    return min(own or 0.0, device.read_bytes) / index if index else 0.0


def _in_service(trace: Trace, seconds: float) -> float:
    """The mean number of requests between sent and answered, over the window (Little's law)."""
    ended = trace.measured() & (trace.sent >= 0) & (trace.done >= 0)
    return float(np.sum(trace.done[ended] - trace.sent[ended])) / 1e9 / seconds
