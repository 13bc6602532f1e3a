"""What a system used where parts of it ran on hosts that are other machines, reached by ssh.

A trial's ``server`` is what its processes on this machine did; each host has its own account. What
is said of the system is the sum, or unknown if a part of it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from searchbench.analysis.judgement import Estimate
from searchbench.analysis.words import percent
from searchbench.record.elsewhere import Elsewhere
from searchbench.record.trial import ServerTotals, Trial


def whole(trial: Trial) -> ServerTotals:
    """What the system used on all machines together; as on record where there is but this one.

    The peak of its memory is the sum of the peaks of each machine, which need not have been at one
    moment; on hosts that are reached by ssh, what processes share counts several times. What is
    seen on this machine alone (single threads, a JVM) is not known of the whole.
    """
    if not trial.elsewhere:
        return trial.server
    own = replace(trial.server, peak_rss_bytes=trial.server.peak_memory_bytes)
    if not trial.service.cpus:  # the server is on a host: nothing of the system is here
        own = replace(own, peak_rss_bytes=0, read_bytes=0.0, write_bytes=0.0, major_faults=0.0)

    def added(name: str) -> float | None:
        values = [getattr(own, name), *(getattr(one, name) for one in trial.elsewhere)]
        known = [float(value) for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None

    peak = added("peak_rss_bytes")
    return ServerTotals(
        cpu_s=added("cpu_s"),
        peak_rss_bytes=None if peak is None else round(peak),
        read_bytes=added("read_bytes"),
        write_bytes=added("write_bytes"),
        major_faults=added("major_faults"),
    )


def used_share(one: Elsewhere) -> float | None:
    """The share of that machine's core time that the system used; None: not known."""
    if one.cpu_s is None or not one.cores or one.seconds <= 0:
        return None
    return one.cpu_s / one.seconds / one.cores


def others_s(one: Elsewhere, trial: Trial) -> float | None:
    """CPU seconds of that machine that were not the system's; None: not known.

    Several hosts of a study may be one machine, whose counters then have the processes of all.
    """
    own = [each.cpu_s for each in trial.elsewhere if each.boot_id == one.boot_id]
    if one.busy_s is None or None in own:
        return None
    return max(0.0, one.busy_s - sum(cpu_s or 0.0 for cpu_s in own))


def said(ones: Sequence[Elsewhere]) -> str:
    """How much of its cores the system used on each, as a clause."""
    shares = [(one, used_share(one)) for one in ones]
    return ", ".join(
        f"on {one.host} " + ("it is not known how much" if share is None else
                             f"{percent(share)} of {one.cores} cores")
        for one, share in shares
    )  # fmt: skip


def figures(trial: Trial) -> dict[str, Estimate]:
    """Of each host what is known of it, by names that tables of numbers have."""
    found = {}
    for one in trial.elsewhere:
        share = used_share(one)
        if share is not None:
            cores = Estimate(share * one.cores, "cores", 1)
            found[f"cores_in_use_at_{one.host}"] = cores
        if one.peak_rss_bytes is not None:
            found[f"peak_rss_at_{one.host}"] = Estimate(one.peak_rss_bytes, "bytes", 1)
    return found
