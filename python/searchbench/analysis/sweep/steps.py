"""From one trial of a sweep to its step: what was really driven, and how it was answered.

In a sweep a server that errs or falls behind is the answer that was asked for. So what makes
another trial invalid is sorted here: faults of the client and the machine make a step void, faults
of the server are results, and stay as warnings. But for two, which make it void: replies that are
not those asked for count as answered, so their rate and times are of other work; and a server that
died within the step has no rate there, because after that instant none could be measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Estimate, Finding, Steadiness, Step
from searchbench.analysis.stats import within
from searchbench.analysis.sweep import promises
from searchbench.analysis.trial import by_class, machine, serving, steadiness, throughput
from searchbench.analysis.trial.kinds import ENDED, OTHERWISE
from searchbench.analysis.trial.measured import NEVER, Trace
from searchbench.analysis.trial.replies import REDIRECTS, SIZES
from searchbench.analysis.trial.validity import GROWTH, gravest_first
from searchbench.record import Record, Trial

SURELY_LACKS = 2.5  # half intervals of 95 %: a queue that sways about a limit has trends by chance
RUN_WAIT_VOID = 0.20  # of the time ready but without a core: a fifth of its promptness is gone
MINUTE_NS = 60_000_000_000
# What the audit of a study calls invalid, and what is a result here: kind → what to do about it.
OF_THE_SERVER: Mapping[str, str] = {
    "errors": "See its log for the cause; fewer clients or a lower rate if it is overload.",
    "partial results": "Raise its own time limit, or lower the load until all parts answer.",
    "server died": "Its log may say why.",
    "server ended": "Its log may say why.",
    OTHERWISE: "Lower the load until the answers agree, or raise its limits.",
    "no answers": "See its log, and what it answers to one request alone.",
    REDIRECTS: "Ask where it points to, or log in (headers).",
    "overload": "Nothing to do: this is what was to be found. How long the latencies are depends "
    "on how long the window was.",
}
# Of a search beside roles: at rates that are too high the writer may starve, which is a result. A
# rate that keeps its promise meanwhile is left out by the search itself (capacity/promise.py).
OF_THE_WRITER = ("the writer died", "writes refused")
_FAILING = {"server died", "errors", "no answers"}
_PIN = "Keep the server off the load generator's core (--cpus, taskset), or use --realtime."
_NAMES = {"overload": "not kept up"}
OF_WARM_UP = (
    "never steady", "warm-up not reached", "warm-up limit", "not steady", "steadiness unknown",
)  # fmt: skip

Ints = NDArray[np.int64]
Queries = NDArray[np.uint32]


def rated(
    findings: Sequence[Finding], trial: Trial, requests: int, *, swept: bool = True
) -> tuple[Finding, ...]:
    """The audit's findings as they weigh in a sweep, the gravest first.

    ``requests``: due within the window; without one nothing is known about the server.
    ``swept``: False in a search for capacity, whose promise a server that died breaks.
    """
    kinds = {f.kind for f in findings}
    # One process of several may end, as workers do that are replaced, and hardly a request fails.
    failing = {f.kind for f in findings if f.severity == "invalid"} & _FAILING
    found = []
    for f in findings:
        if f.kind in OF_THE_SERVER and (requests or f.kind != "no answers"):
            stays = f.kind == OTHERWISE or (swept and f.kind in ENDED and bool(failing))
            severity: Any = "warning" if f.severity == "invalid" and not stays else f.severity
            if f.kind == "overload":  # it answers what was asked
                severity = "note"
            f = replace(f, kind=_NAMES.get(f.kind, f.kind), severity=severity,
                        remedy=OF_THE_SERVER[f.kind])  # fmt: skip
        elif f.kind == "client starved":
            void = _run_wait(trial) > RUN_WAIT_VOID
            f = replace(f, severity="invalid" if void else f.severity, remedy=f"{_PIN} {f.remedy}")
        elif f.kind in OF_WARM_UP and "overload" in kinds:
            continue  # a queue that grows is never steady; one finding says so
        elif f.kind in OF_THE_WRITER and not swept:
            f = replace(f, severity="warning")
        elif f.kind == "first asks" and not trial.beside:
            continue  # the steps before this one asked the same queries
        found.append(f)
    return gravest_first(found)


def step_of(
    record: Record,
    trial: Trial,
    subject: str,
    trace: Trace,
    counts: Mapping[str, int],
    findings: Sequence[Finding],
    others: promises.Others = (0, 0),
) -> Step:
    """The step of a trial that was driven. ``counts``: its outcomes; ``findings``: as ``rated``;
    ``others``: other answers among the replies sampled under load, and how many were sampled."""
    window, closed = trace.window, trial.load.kind == "closed"
    columns = record.samples(trial.trial, ["connection", "connect"])
    connection = columns.column("connection").to_numpy()
    connect = columns.column("connect").fill_null(NEVER).to_numpy()  # old records lack it
    inside = trace.measured()
    due = trace.due[inside]
    good = inside & (trace.outcome == 0) & (trace.done >= 0) & (trace.sent >= 0)
    n = int(due.size)
    found = None if closed else throughput.achieved(trace)
    backlog = None if closed else _backlog(trace, connect, inside)
    response_growth = throughput.slope(trace.due[good], trace.done[good] - trace.due[good], window)
    heading = _heading(trial, subject)
    asked: int | None = heading["clients_asked"]
    share = throughput.little_of(trial.load, trace)
    cores = throughput.utilisation(trial, trace.window_s)
    bad = [f for f in findings if f.severity == "invalid"]
    unsent = throughput.unsent(trial, trace)
    died = any(f.kind in ENDED for f in bad)
    if died:
        found = None
    achieved = _achieved(found) if found is not None else None
    error_share = within.share(trace.outcome[inside] != 0, due, window)
    response = within.quantiles((trace.done - trace.due)[good], trace.due[good], window)
    rises = _rises(response_growth, response, trace.window_s)
    behind = _falls_behind(unsent, found, response_growth, rises) if found is not None else None
    levelled = bool(behind and found and not unsent and throughput.levelled(found, trace))
    behind = None if levelled else behind
    judging = record.plan.judging
    texts = judging.promises if judging.measure == "sweep" else ()
    void = ", ".join(dict.fromkeys(f.kind for f in bad))
    return Step(
        **heading,
        status="void" if bad else "valid",
        reason="; ".join(f"{f.kind}: {f.number}" for f in bad),
        promises=promises.of_step(texts, trial, trace, void, others, _of_other_size(findings)),
        window_s=trace.window_s,
        clients=_clients(trial, trace, connection),
        clients_by_littles_law=share * asked if share is not None and asked else None,
        littles_law_share=share,
        requests=n,
        outcomes=dict(counts),
        error_share=error_share,
        offered=throughput.offered(trace),
        answered=None if died else throughput.answered(trace),
        achieved=achieved,
        falls_behind=behind,
        keeps_up=_keeps_up(behind, levelled, achieved, error_share) if achieved else None,
        service=within.quantiles((trace.done - trace.sent)[good], trace.due[good], window),
        response=response,
        connect=_opened(trace, connect, inside),
        lag=_lag(trace, inside),
        backlog=within.quantiles(backlog) if backlog is not None else {},
        backlog_growth=throughput.slope(due, backlog, window) if backlog is not None else None,
        response_growth=response_growth,
        **_client(trial, int(trace.due.size)),
        steal_share=machine.steal_share(trial, trace.window_s),
        server_cores=cores.value if cores else None,
        worst_minute=_worst_minute(trace, good),
        findings=tuple(findings),
        classes=by_class.of_window(trace),
    )


def _of_other_size(findings: Sequence[Finding]) -> str:
    """How many replies had another size under load than alone; empty: not more than may be."""
    return next((f.number.partition(", typically")[0] for f in findings if f.kind == SIZES), "")


def asked_before(record: Record, subjects: Mapping[str, str]) -> dict[str, Queries]:
    """By trial, the queries that the steps of its subject asked before it in the same block."""
    found: dict[str, Queries] = {}
    asked: dict[tuple[str, int, str | None], Queries] = {}
    for trial in (trial for trial in record.trials if trial.status == "ok"):
        of = subjects[trial.treatment], trial.block, trial.queries.digest
        found[trial.trial] = asked.get(of, np.empty(0, np.uint32))
        own = record.samples(trial.trial, ["query"]).column(0).to_numpy()
        asked[of] = np.union1d(found[trial.trial], own)
    return found


def first_asks(trace: Trace, asked: Queries | None) -> Estimate | None:
    """The share of measured requests that were the first of their query in all steps so far."""
    new = ~np.isin(trace.query, () if asked is None else asked)
    n = int(np.count_nonzero(trace.measured()))
    names = ("query", "outcome", "due", "free", "sent", "done")
    found = steadiness.first_asks(replace(trace, **{x: getattr(trace, x)[new] for x in names}))
    return Estimate(found.value * found.n / n if found else 0.0, "share", n) if n else None


def overloaded(trace: Trace) -> Steadiness:
    """Whether a server that falls behind was steady: by how long it worked on each request.

    Response times grow there, however steady the server is.
    """
    done = (trace.outcome == 0) & (trace.done >= 0)
    began = trace.due.copy()
    began[done] = serving.began(trace.due[done], trace.done[done])
    outcome = np.where(done & (began < trace.done), 0, 1).astype(np.uint8)
    return steadiness.steadiness(replace(trace, sent=began, outcome=outcome), True)


def failed_step(trial: Trial, subject: str, finding: Finding) -> Step:
    """The step of a trial that was not driven to its end."""
    return Step(
        **_heading(trial, subject),
        status="failed",
        reason=f"failed {finding.number}: {finding.meaning}",
        findings=(finding,),
    )


def _heading(trial: Trial, subject: str) -> dict[str, Any]:
    load = trial.load
    return {
        "system": trial.system,
        "subject": subject,
        "trial": trial.trial,
        "treatment": trial.treatment,
        "block": trial.block,
        "label": trial.label or trial.treatment,
        "kind": load.kind,
        "levels": trial.levels,
        "clients_asked": (load.clients or 1) if load.kind == "closed" else None,
        "rate_asked_per_s": load.rate_per_s,
        "speed_asked": load.speed,
    }


def _clients(trial: Trial, trace: Trace, connection: NDArray[np.uint16]) -> int:
    """Distinct clients that got a reply within the window; of an open loop connections under way.

    A closed client has a connection to each endpoint that its requests name, so of several
    endpoints it may have several; how many clients began at all is the loop's own count.
    """
    start, end = trace.window
    if trial.load.kind == "closed":
        came = (trace.done >= start) & (trace.done < end)
        connections = int(np.unique(connection[came]).size)
        began = trial.drive.clients if trial.drive is not None else None
        return min(connections, began) if began else connections
    under_way = (trace.due < end) & ((trace.done >= start) | (trace.done < 0))
    return int(np.unique(connection[under_way & (trace.free >= 0)]).size)


def _achieved(found: throughput.Achieved) -> Estimate:
    """The share that was answered well. How many requests of this window failed is no chance."""
    span, failed = found.of_this_window(), found.share - found.well
    low, high = max(0.0, span.low - failed), max(0.0, span.high - failed)
    return Estimate(found.well, "share", found.requests, replace(span, low=low, high=high))


def _rises(growth: float | None, response: Mapping[str, Estimate], window_s: float) -> bool:
    """Whether the median response of the whole window is less than it grew by, as in a queue that
    began nearly empty.
    """
    median = response.get("p50")
    return growth is not None and median is not None and growth * window_s > median.value


def _falls_behind(
    unsent: int, found: throughput.Achieved, growth: float | None, rises: bool
) -> bool | None:
    """Whether requests waited longer and longer for a reply of any kind; None: not clear.

    Where the median response ``rises``, a lack of less than 1 % counts too, if it is sure: a queue
    that grows by 0.5 % of the rate has no end either.
    """
    span, kept = found.of_this_window(), found.share >= throughput.KEEPS_UP
    lack, sway = 1 - found.share, span.high - found.share
    if kept and rises and lack > sway:
        return True if lack > SURELY_LACKS * sway else None
    # Too few requests for a trend: the share alone has to be sure.
    grows = span.low < throughput.KEEPS_UP if growth is None else growth > GROWTH
    if unsent or span.high < throughput.KEEPS_UP or (not kept and growth is not None and grows):
        return True
    return False if kept and not grows else None


def _keeps_up(
    behind: bool | None, levelled: bool, achieved: Estimate, error_share: Estimate | None
) -> bool | None:
    """Whether the rate was answered: neither fell it behind, nor did more than 1 % fail.

    ``levelled``: what lacks is a queue that grew no longer in the end.
    """
    failed = error_share is not None and error_share.value > throughput.FAILED
    most = achieved.interval.high if achieved.interval is not None else 1.0
    if behind or failed or (most < throughput.KEEPS_UP and not levelled):
        return False
    return True if behind is False and achieved.value >= throughput.KEEPS_UP else None


def _backlog(trace: Trace, connect: Ints, inside: NDArray[np.bool_]) -> Ints:
    """How long each request of the window waited for a free connection, in ns.

    Opening one is not waiting; what never got one waited until the end of the window.
    """
    ready = np.where(connect >= 0, connect, trace.free)
    ready = np.where(ready >= 0, ready, trace.window[1])
    waited: Ints = np.maximum(0, ready - trace.due)[inside]
    return waited


def _opened(trace: Trace, connect: Ints, inside: NDArray[np.bool_]) -> dict[str, Estimate]:
    """How long it took to open connections."""
    opened = inside & (connect >= 0) & (trace.free >= 0)
    return within.quantiles((trace.free - connect)[opened], trace.due[opened], trace.window)


def _lag(trace: Trace, inside: NDArray[np.bool_]) -> dict[str, Estimate]:
    sent = inside & (trace.sent >= 0)
    late = trace.sent[sent] - np.maximum(trace.due, trace.free)[sent]
    return within.quantiles(np.maximum(0, late))


def _run_wait(trial: Trial) -> float:
    """The share of its time that the busiest measuring thread was ready and had no core."""
    if trial.drive is None:
        return 0.0
    waited = max((t.run_wait_ns or 0 for t in trial.drive.threads), default=0)
    return waited / max(1, trial.drive.elapsed_ns)


def _client(trial: Trial, sent: int) -> dict[str, Any]:
    drive = trial.drive
    if drive is None or drive.elapsed_ns <= 0 or not drive.threads:
        return {}
    busy = [t.user_ns + t.system_ns for t in drive.threads]
    return {
        "client_cpu_s_per_request": sum(busy) / 1e9 / sent if sent else None,
        "client_cpu_share": max(busy) / drive.elapsed_ns,
        "run_wait_share": _run_wait(trial),
    }


def _worst_minute(trace: Trace, good: NDArray[np.bool_]) -> dict[str, float]:
    """The minute of the window with the greatest p99 of response; of two minutes or more."""
    start, end = trace.window
    if end - start < 2 * MINUTE_NS:
        return {}
    worst: dict[str, float] = {}
    response, due = (trace.done - trace.due)[good], trace.due[good]
    for at in range(start, end - MINUTE_NS + 1, MINUTE_NS):
        own = response[(due >= at) & (due < at + MINUTE_NS)]
        p99 = within.quantiles(own).get("p99")
        if p99 is not None and p99.value > worst.get("response_p99", -1.0):
            since = (at - start) / 1e9
            worst = {"from_s": since, "response_p99": p99.value, "requests": float(own.size)}
    return worst
