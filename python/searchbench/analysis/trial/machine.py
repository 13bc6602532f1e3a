"""What else happened on the machine while a trial was measured: is the trial's time its own?

The server's cores and the generator's are judged each for themselves, so that a machine with many
cores does not dilute what is taken from one. docs/methodology/audit.md gives the reason of each
threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from searchbench.analysis.trial import elsewhere, placed
from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.trial.rows import Row, Severity
from searchbench.analysis.words import percent, plural
from searchbench.record import Trial
from searchbench.record.elsewhere import Elsewhere
from searchbench.record.trial import KERNEL, CoreTotals

CLIENT_CPU = 0.90
RUN_WAIT = 0.05
STEAL_WARNING, STEAL_INVALID = 0.01, 0.05
FOREIGN_WARNING, FOREIGN_INVALID = 0.05, 0.20
# CPU time is counted in ticks of 10 ms, and several counters are subtracted: less than this is 0.
TICK_S = 0.01
TICKS_S = 5 * TICK_S
STALLED_IO, STALLED_MEMORY, STALLED_CPU = 0.05, 0.01, 0.25
READ_BYTES = 1 << 20
PAGE_BYTES = 4096
FAULTS = 10
SHARE_OF_REQUESTS = 0.01  # from here on what slows single requests is in the p99
SLOWED = 0.90  # least frequency by the greatest

_SHARED = "If others always work here, SEARCHBENCH_SHARED_MACHINE=1 makes this a warning."


@dataclass(frozen=True, slots=True)
class Side:
    """Cores of the server, of the generator, or of both together; CPU seconds in the window.

    ``own_s``: CPU time of the server and the generator on them; None where it is not known.
    ``idle_s``: waiting for disks too. ``interrupts_s``: 0 where it is not on record.
    """

    cores: str
    seconds: float
    busy_s: float
    idle_s: float
    interrupts_s: float
    steal_s: float
    own_s: float | None

    def foreign_s(self) -> float:
        """CPU time of others, at least: 0 below what the kernel's ticks can show.

        By two counts, of which the smaller is believed: busy time is sampled at ticks, and time
        that was not idle holds whatever the kernel counts nowhere.
        """
        not_idle_s = self.seconds - self.idle_s - self.steal_s - self.interrupts_s
        found = min(self.busy_s, not_idle_s) - (self.own_s or 0.0)
        return found if found > TICKS_S else 0.0


def disturbances(trial: Trial, trace: Trace) -> Iterator[Row]:
    """What disturbed the server or the generator in the window, and what cannot be known of it."""
    for check in (_client, _foreign, _on_hosts, _steal, _stalls, _disk, _faults, _clock):
        for row in check(trial, trace):
            yield placed.explained(trial, row)


def foreign(trial: Trial, trace: Trace) -> Iterator[Row]:
    """What others and other machines took of the cores in the window of the trace."""
    for check in (_foreign, _on_hosts, _steal):
        yield from check(trial, trace)


def steal_share(trial: Trial, window_s: float) -> float | None:
    """The share of its core time that the server or the generator lost to other machines.

    The worse of both; of records without single cores that of the whole machine.
    """
    return max((s.steal_s / s.seconds for s in _stolen(trial, window_s)), default=None)


def _stolen(trial: Trial, window_s: float) -> list[Side]:
    sides = _sides(trial, window_s) or _whole(trial, window_s)
    return [side for side in sides if side.seconds > 0]


def taken(trial: Trial, window_s: float) -> float:
    """The share of the window in which others may have had a core that the trial needed.

    Foreign CPU and steal, also where they are less than a warning, on the server's cores or on the
    generator's, whichever lost more. It may all have been on one core, so it is counted as that of
    one. Foreign CPU of a system that ran already may be that system's own, and what the kernel's
    threads did may have been for the trial; both are left out. Of hosts that are other machines the
    kernel's threads are not known, so there only what is a warning counts.
    """
    sides = _sides(trial, window_s) or _whole(trial, window_s)
    known = trial.attached is None and not _unknown(trial)
    together_s = _together(sides).foreign_s()
    kernel_s = _of_kernel(trial, window_s)
    lost = []
    for side in sides:
        foreign_s = max(0.0, min(side.foreign_s(), together_s) - kernel_s) if known else 0.0
        lost.append(foreign_s + side.steal_s)
    lost += [window_s * _taken_on(one, trial) for one in trial.elsewhere if not one.this_machine]
    return min(1.0, max(lost, default=0.0) / window_s) if window_s > 0 else 0.0


def _taken_on(one: Elsewhere, trial: Trial) -> float:
    """The same of a host that is another machine, as a share of the time that it was watched."""
    core_s = one.seconds * one.cores
    counts = ((elsewhere.others_s(one, trial), FOREIGN_WARNING), (one.steal_s, STEAL_WARNING))
    found = [
        seconds
        for seconds, least in counts
        if seconds is not None and seconds > TICKS_S and seconds >= least * core_s
    ]
    return sum(found) / one.seconds if one.seconds > 0 else 0.0


def _sides(trial: Trial, window_s: float) -> list[Side]:
    """The server's and the generator's cores, or all where these are not apart; none: unknown."""
    host, by_core = trial.host_window, trial.host_window.by_core
    server, client = set(trial.service.cpus), set(_client_cpus(trial))
    server_s, client_s = trial.server.cpu_s, host.client_cpu_s
    # Hosts that ssh reaches on this very machine have all of its cores.
    near = [one.cpu_s for one in trial.elsewhere if one.this_machine]
    server_s = None if server_s is None or None in near else server_s + sum(s or 0.0 for s in near)
    apart = bool(server and client) and not server & client and not near
    if apart and by_core:
        named = (("the server's", server, server_s), ("the generator's", client, client_s))
        return [
            _side(f"{whose} {_cores(own)}", own, window_s, own_s)
            for whose, cpus, own_s in named
            if (own := [core for core in by_core if core.cpu in cpus])
        ]
    both_s = None if server_s is None or client_s is None else server_s + client_s
    if by_core:
        return [_side("all cores", by_core, window_s, both_s)]
    return (
        _whole(trial, window_s, both_s) if not apart or len(server | client) == host.cores else []
    )


def _side(name: str, cores: Sequence[CoreTotals], window_s: float, own_s: float | None) -> Side:
    return Side(
        name,
        len(cores) * window_s,
        sum(core.busy_s for core in cores),
        sum(core.idle_s for core in cores),
        sum(core.interrupts_s for core in cores),
        sum(core.steal_s for core in cores),
        own_s,
    )


def _whole(trial: Trial, window_s: float, own_s: float | None = None) -> list[Side]:
    """The machine of a record that does not have its single cores."""
    host = trial.host_window
    idle_s = (host.idle_s or 0.0) + (host.iowait_s or 0.0)
    busy_s, steal_s = host.busy_s or 0.0, host.steal_s or 0.0
    seconds = (host.cores or 0) * window_s
    return [Side("all cores", seconds, busy_s, idle_s, 0.0, steal_s, own_s)]


def _foreign(trial: Trial, trace: Trace) -> Iterator[Row]:
    kind, unknown, host = "foreign CPU", _unknown(trial), trial.host_window
    if host.shared:
        yield (
            "shared machine",
            "note",
            "SEARCHBENCH_SHARED_MACHINE",
            "The user says that others work on this machine too, so neither foreign CPU nor steal "
            "makes a trial invalid, however much there is.",
            "If this machine is yours alone, unset the variable.",
        )
    sides = [] if unknown else [s for s in _sides(trial, trace.window_s) if s.seconds > 0]
    # What threads of ours used on cores of the other side is nobody else's.
    together_s = _together(sides).foreign_s() if sides else 0.0

    def share(side: Side, kernel_s: float = 0.0) -> float:
        return max(0.0, min(side.foreign_s(), together_s) - kernel_s) / side.seconds

    worst = max(sides, key=share, default=None)
    if worst is not None and share(worst) >= FOREIGN_WARNING:
        ours = trial.attached is None
        grave = ours and share(worst, _of_kernel(trial, trace.window_s)) >= FOREIGN_INVALID
        yield (
            kind,
            "invalid" if grave and not host.shared else "warning",
            f"{percent(share(worst))} of {worst.cores}, "
            f"{share(worst) * worst.seconds:.2f} CPU seconds{_busiest(host.others)}",
            "Other processes ran on the cores of the server or of the generator in the window, so "
            "these times are not the system's alone"
            + ("." if ours else ", unless those processes belong to the attached system."),
            "Stop what else runs here, or pin it to other cores; then measure again."
            + ("" if host.shared else f" {_SHARED}" if grave else ""),
        )
    elif worst is None or not host.by_core:
        yield (
            f"{kind} unknown",
            "note",
            unknown or "the record does not have the CPU time of each core",
            "It is unknown whether other processes took CPU time in the window.",
            "Look at the server's machine while it is measured, or measure again.",
        )
    elif share(worst) + (of := max(s.interrupts_s / s.seconds for s in sides)) >= FOREIGN_WARNING:
        yield (
            "interrupts",
            "note",
            f"{percent(of)} of the cores of the server or of the generator",
            "The kernel served interrupts. Those of the trial's own requests are among them; "
            "whether there were others is unknown.",
            "Keep other traffic off this machine's network and disks.",
        )


def _of_kernel(trial: Trial, window_s: float) -> float:
    """CPU seconds of the kernel's threads in the window. What they did (writing to disks, say) may
    have been for the trial. They are known of the whole drive only, so the window gets its part.
    """
    drive_s = trial.drive.elapsed_ns / 1e9 if trial.drive is not None else 0.0
    part = min(1.0, window_s / drive_s) if drive_s else 1.0
    return part * trial.host_window.others.get(KERNEL, 0.0)


def _on_hosts(trial: Trial, trace: Trace) -> Iterator[Row]:
    """What others took on hosts that are other machines, of which less is known than of this."""
    remedy = "Stop what else runs on that machine; then measure again."
    for one in trial.elsewhere:
        core_s = one.seconds * one.cores
        if one.this_machine or core_s <= 0:
            continue
        others, stolen = elsewhere.others_s(one, trial), one.steal_s
        if others is None or stolen is None:
            yield (
                "host not watched",
                "note",
                one.host,
                "What the system used there, and whether others took CPU time, is not known: the "
                "counters of that machine did not come in time.",
                "Use a quieter network, and look at that machine while it is measured.",
            )
            continue
        if others > TICKS_S and others >= FOREIGN_WARNING * core_s:
            yield (
                "foreign CPU on a host",
                "warning",
                f"{percent(others / core_s)} of {one.cores} cores of {one.host}, {others:.2f} CPU "
                "seconds",
                "Other processes ran on that machine in the window, so these times may not be the "
                "system's alone.",
                remedy,
            )
        if stolen > TICKS_S and stolen >= STEAL_WARNING * core_s:
            yield (
                "steal on a host",
                "warning",
                f"{percent(stolen / core_s)} of {one.cores} cores of {one.host}",
                "That host is a virtual machine, and its hypervisor gave its time to others.",
                "Use a machine of your own, or one whose cores are not shared.",
            )


def _busiest(others: Mapping[str, float]) -> str:
    """The processes that used most in the whole drive, which need not be on these cores."""
    named = ", ".join(f"{name} {cpu_s:.1f} s" for name, cpu_s in list(others.items())[:3])
    return f" (busiest others on any core in the whole drive: {named})" if named else ""


def _unknown(trial: Trial) -> str:
    """Why the CPU time of others cannot be known at all; empty where it may be."""
    if trial.drive is not None and trial.drive.machines:
        return "the load came from other machines, which are not watched"
    if trial.server.cpu_s is None:
        return "the server's processes are not seen from here"
    if trial.host_window.client_cpu_s is None:
        return "the record does not have the generator's CPU time"
    return ""


def _together(sides: Sequence[Side]) -> Side:
    rows = [(s.seconds, s.busy_s, s.idle_s, s.interrupts_s, s.steal_s, s.own_s) for s in sides]
    return Side("", *(sum(value or 0.0 for value in column) for column in zip(*rows, strict=True)))


def cores_used(trial: Trial) -> set[int]:
    """The cores of the server and of the generator; empty: they may be any."""
    return {*trial.service.cpus, *_client_cpus(trial)} if trial.service.cpus else set()


def _client_cpus(trial: Trial) -> list[int]:
    threads = trial.drive.threads if trial.drive is not None else []
    return [t.cpu for t in threads if t.cpu is not None and t.host is None]


def _client(trial: Trial, trace: Trace) -> Iterator[Row]:
    drive = trial.drive
    if drive is None or drive.elapsed_ns <= 0 or not drive.threads:
        return
    cpu = max(t.user_ns + t.system_ns for t in drive.threads) / drive.elapsed_ns
    waited = max(t.run_wait_ns or 0 for t in drive.threads) / drive.elapsed_ns
    if trial.load.idle == "block" and cpu > CLIENT_CPU:
        yield (
            "client saturated",
            "invalid",
            f"{percent(cpu)} of a core",
            "The generator had no time left: this measures the generator, not the server.",
            "More generator threads on cores of their own.",
        )
    if waited > RUN_WAIT:
        yield (
            "client starved",
            "warning",
            f"{percent(waited)} of the time",
            "The generator was ready but waited for a core that others used; times may be long.",
            "Pin the server away from the generator's core, or stop what else runs here.",
        )


def _steal(trial: Trial, trace: Trace) -> Iterator[Row]:
    share = steal_share(trial, trace.window_s) or 0.0
    if share > STEAL_WARNING:
        # A counter shows whole ticks, and the one that fills may have begun long before the window:
        # of each core, one tick may be of another time. In a short window that is a large share.
        surely = max(
            side.steal_s / side.seconds - TICK_S / trace.window_s
            for side in _stolen(trial, trace.window_s)
        )
        # Others that share the machine below this one share it too.
        grave = surely > STEAL_INVALID
        yield (
            "steal",
            "invalid" if grave and not trial.host_window.shared else "warning",
            percent(share),
            "During the window, the hypervisor gave time of the trial's cores to other virtual "
            "machines.",
            "Measure at a quieter hour or on a machine of your own; more replicates help."
            + (f" {_SHARED}" if grave and not trial.host_window.shared else ""),
        )


def _stalls(trial: Trial, trace: Trace) -> Iterator[Row]:
    """Pressure stall information: the share of the window in which some task had to wait."""
    host = trial.host_window
    stalled: tuple[tuple[str, float | None, float, Severity, str, str], ...] = (
        (
            "disk", host.stalled_io_s, STALLED_IO, "warning",
            "Some process of this machine waited for a disk; if it was the server, its times "
            "include that.",
            "Warm up until the index is in memory, and stop what else uses the disks.",
        ),
        (
            "memory", host.stalled_memory_s, STALLED_MEMORY, "warning",
            "Some process of this machine waited for memory to be freed.",
            "Give the server less memory or the machine more, and stop what else needs it.",
        ),
        (
            "cores", host.stalled_cpu_s, STALLED_CPU, "note",
            "Some process was ready and had no core. The server's own threads count too, where "
            "they are more than its cores.",
            "Nothing, unless foreign CPU or a starved client is found as well.",
        ),
    )  # fmt: skip
    for what, seconds, least, severity, meaning, remedy in stalled:
        share = (seconds or 0.0) / trace.window_s if trace.window_s > 0 else 0.0
        if share >= least:
            yield f"pressure on {what}", severity, f"{percent(share)} of the time", meaning, remedy


def _disk(trial: Trial, trace: Trace) -> Iterator[Row]:
    read, host = elsewhere.whole(trial).read_bytes, trial.host_window
    n = int(np.count_nonzero(trace.measured()))
    if read is None or read < max(READ_BYTES, SHARE_OF_REQUESTS * n * PAGE_BYTES):
        return
    index = trial.ingest.index_bytes if trial.ingest is not None else None
    # Of other machines it is not on record how much memory they have.
    memory = None if trial.elsewhere else host.memory_bytes
    larger = index is not None and memory is not None and index > memory
    yield (
        "reads from disk",
        "note" if larger else "warning",
        f"{read / 1e6:,.1f} MB, {read / 1e3 / max(1, n):,.1f} kB a request",
        "The server read from a disk in the window: "
        + (
            "the index is larger than the memory."
            if larger
            else "not everything that it needed was in memory."
        ),
        "Warm up longer, or give it more memory, unless a cold system is what is measured.",
    )


def _faults(trial: Trial, trace: Trace) -> Iterator[Row]:
    faults, n = elsewhere.whole(trial).major_faults, int(np.count_nonzero(trace.measured()))
    if faults is not None and faults >= max(FAULTS, SHARE_OF_REQUESTS * n):
        yield (
            "major faults",
            "warning",
            f"{faults:,.0f}, {faults / max(1, n):.2g} a request",
            "The server waited for pages of memory that had to be read from a disk.",
            "Warm up longer, give the machine more memory, and make sure that it does not swap.",
        )


def _clock(trial: Trial, trace: Trace) -> Iterator[Row]:
    """What held the cores back: a lower frequency, a CPU limit of a control group."""
    host = trial.host_window
    used = cores_used(trial)
    seen = [
        (core.mhz_least / core.mhz_most, core)
        for core in host.by_core
        if core.mhz_least is not None and core.mhz_most and (not used or core.cpu in used)
    ]
    ratio, core = min(seen, key=lambda s: s[0], default=(1.0, None))
    if core is not None and ratio < SLOWED:
        yield (
            "CPU frequency",
            "warning",
            f"core {core.cpu} between {core.mhz_least:,.0f} and {core.mhz_most:,.0f} MHz",
            "A core that was used changed its frequency in the window, so equal work took "
            "unequal time.",
            "cpupower frequency-set -g performance; turn turbo off; check the cooling.",
        )
    if host.throttled:
        times = max(1, round(host.throttled))
        yield (
            "CPU limit",
            "warning",
            f"throttled {times:,} {plural(times, 'time', 'times')} in the window",
            "A control group of searchbench or of the attached system had used up its share of CPU "
            "time, and its processes were stopped until the next period.",
            "Raise that limit (cpu.max), or measure without it.",
        )


def _cores(cores: Sequence[CoreTotals]) -> str:
    if len(cores) > 4:
        return f"{len(cores)} cores"
    word = "core" if len(cores) == 1 else "cores"
    return f"{word} {', '.join(str(core.cpu) for core in cores)}"
