"""Whether the pool of connections of an open loop, and not the system, was the limit of a trial.

A request that is due while all connections are busy waits for one, so N of them carry at most
N / service time. Where a server works on fewer requests than there are connections, the others
queue inside it: then its service time is longer than where connections are free, and it is the
server that is the limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Finding
from searchbench.analysis.trial.measured import NEVER, Trace
from searchbench.analysis.words import per_s
from searchbench.record import Record, Trial
from searchbench.study.plan import Level

KIND = "connections busy"
WAITED = 0.10  # of the requests, from which on their waits matter
BUSY = 0.95  # of the connections, on average, from which on all are busy
CALM = (0.5, 0.75)  # up to which some are free; a server near its limit may have the latter busy
SAME = 1.10  # a service time that is longer by less is as long, by what machines vary
LONGER = 1.25  # and from here on, beyond two standard errors, requests queue in the server
LEAST = 20  # replies that show a service time
MOST = 65_535  # connections
NOT_KEPT_UP = ("overload", "not kept up")  # findings that a full pool may be the reason of
OF_THE_LOAD = ("load.rate_per_s", "load.speed", "load.connections", "load.probe")

Limit = Literal["connections", "unknown", "server"]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pool:
    """How busy the connections of a trial's window were.

    ``connections``: all of them; ``given``: for each endpoint, as the option says it. ``waited``:
    the share of the requests due that waited for one; ``busy``: how many were busy, on average.
    ``p50_s``, ``mean_s``: service times of those ``answered`` well, and ``error``, the standard
    error of the mean as a share of it; ``held_s``: the mean time for which a request had its
    connection, however it ended.
    """

    connections: int
    given: int
    waited: float
    busy: float
    answered: int
    p50_s: float
    mean_s: float
    held_s: float
    due_per_s: float
    error: float = 0.0

    @property
    def share(self) -> float:
        """The share of the connections that were busy, on average."""
        return self.busy / self.connections

    @property
    def full(self) -> bool:
        """All connections were busy, and requests waited for one."""
        return self.waited >= WAITED and self.share >= BUSY

    @property
    def most(self) -> str:
        """In words the greatest rate that so many connections carry."""
        time = f"{self.held_s:.3g} s" if self.held_s >= 0.1 else f"{1e3 * self.held_s:.3g} ms"
        return f"{self.connections:,} / {time} = {per_s(self.connections / self.held_s)}"

    def more(self, least: int = 2) -> int:
        """Connections that would do for the rate that was due, at least so many times as many."""
        needed = max(1.0, 1.3 * self.due_per_s * self.held_s / self.connections)
        return min(MOST, self.given * max(least, 1 << math.ceil(math.log2(needed))))


def pool_of(record: Record, trial: Trial, trace: Trace) -> Pool | None:
    """None of a closed loop, and where nothing was answered well."""
    given, inside = trial.load.connections, trace.measured()
    answered = inside & (trace.outcome == 0) & (trace.done >= 0) & (trace.sent >= 0)
    if trial.load.kind == "closed" or not given or not answered.any():
        return None
    got = ready(record, trial, trace)
    service = (trace.done - trace.sent)[answered] / 1e9
    start, end = trace.window
    # One that was sent and never answered had its connection until it was given up.
    timeout_s = trial.load.timeout_s
    given_up = trace.sent + int(timeout_s * 1e9) if timeout_s else np.maximum(trace.sent, end)
    until = np.where(trace.done >= 0, trace.done, given_up)
    sent = (trace.sent >= 0) & (got >= 0)
    since = np.maximum(got, trace.due)  # it may have been free for long
    within = np.maximum(np.minimum(until, end) - np.maximum(since, start), 0)
    opened = trial.drive.connects if trial.drive is not None else 0
    return Pool(
        connections=max(given, opened),  # several endpoints have a pool each
        given=given,
        waited=float((waited(trace, got) & inside).sum() / inside.sum()),
        busy=float(within[sent].sum(dtype=np.float64) / (end - start)),
        answered=service.size,
        p50_s=float(np.median(service)),
        mean_s=float(service.mean()),
        held_s=float((until - since)[sent & inside].mean()) / 1e9,
        due_per_s=float(inside.sum() / trace.window_s),
        error=float(service.std() / service.mean()) / math.sqrt(service.size),
    )


def ready(record: Record, trial: Trial, trace: Trace) -> Ints:
    """When each request got a connection, ns; to open one is no wait for it. -1: never."""
    column = record.samples(trial.trial, ["connect"]).column(0)
    connect: Ints = column.fill_null(NEVER).to_numpy()
    return np.where(connect >= 0, connect, trace.free)


def waited(trace: Trace, got: Ints) -> NDArray[np.bool_]:
    """Which requests waited for a connection, or never got one."""
    return (got > trace.due) | (got < 0)


def limit(full: Pool, others: Sequence[Pool]) -> tuple[Limit, str]:
    """What limited a trial with all connections busy, and why that is unknown where it is.

    ``others``: of the same system at other rates; it may be among them.
    """
    known = [o for o in others if o.answered >= LEAST]
    calm = next((own for at in CALM if (own := [o for o in known if o.share <= at])), [])
    if not calm:
        return "unknown", "no valid trial on record had connections free"
    least = max(calm, key=lambda o: o.answered)
    grew = max(full.p50_s / least.p50_s, full.mean_s / least.mean_s)
    if grew >= LONGER * (1 + 2 * least.error):
        return "server", ""
    if grew >= SAME:
        longer = f"{100 * (grew - 1):.0f} %"
        return "unknown", f"the service time was {longer} longer than where connections were free"
    return "connections", ""


def finding(trial: str, full: Pool, others: Sequence[Pool]) -> Finding | None:
    """That all connections were busy; None where the server made them so."""
    which, why = limit(full, others)
    if which == "server":
        return None
    n, more = full.connections, full.more()
    meaning = (
        f"The connections are the limit: the rate is at most {full.most} whatever the system can "
        "do. The service time was about as long as where connections were free."
    )
    remedy = f"Give more `connections` (`--connections {more}`)"
    if which == "unknown":
        meaning = (
            f"The connections may be the limit: with this service time the rate is at most "
            f"{full.most}. Whether the system could answer more is unknown: {why}."
        )
        remedy += ", or drive a lower rate too" if why.startswith("no valid") else ""
    who = f"all {n:,} connections were" if n > 1 else "the only connection was"
    number = f"{who} busy, and {100 * full.waited:.0f} % of the requests waited for one"
    return Finding("connections busy", "warning", trial, number, meaning, f"{remedy}.")


def group(system: str, levels: Mapping[str, Level]) -> tuple[str, tuple[tuple[str, Level], ...]]:
    """What trials have in common that differ in their rate or connections alone."""
    return system, tuple(sorted((k, v) for k, v in levels.items() if k not in OF_THE_LOAD))


def without_waits(trace: Trace, got: Ints) -> Trace:
    """The same requests, each due when it got its connection; what never got one is left out."""
    late = waited(trace, got)
    return replace(trace, due=np.where(late & (got >= 0), got, np.where(late, -1, trace.due)))
