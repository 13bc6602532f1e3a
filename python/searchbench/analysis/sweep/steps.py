"""From one trial of a load run to its load step: what was really driven, and how it was answered.

In a load run a server that errs or falls behind is the answer that was asked for. So what makes a
study's trial invalid is sorted here: faults of the client and the machine make a step void,
faults of the server are results, and stay as warnings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from searchbench.analysis.judgement import Estimate, Finding, Interval, Level, Step
from searchbench.analysis.stats import within
from searchbench.analysis.trial import throughput as capacity
from searchbench.analysis.trial.measured import NEVER, Trace
from searchbench.analysis.trial.validity import ACHIEVED, GROWTH
from searchbench.record import Record

RUN_WAIT_VOID = 0.20  # of the time ready but without a core: a fifth of its promptness is gone
MINUTE_NS = 60_000_000_000
# What the audit of a study calls invalid, and what is a result here: kind → what to do about it.
OF_THE_SERVER: Mapping[str, str] = {
    "errors": "See its log for the cause; fewer clients or a lower rate if it is overload.",
    "partial results": "Raise its own time limit, or lower the load until all parts answer.",
    "server died": "Read its log; memory is the usual reason.",
    "server ended": "Read its log.",
    "other answers under load": "Lower the load until the answers agree, or raise its limits.",
    "no answers": "See its log, and what it answers to one request alone.",
    "overload": "None: that is what was to be found. How long its latencies are depends on how "
    "long the window was.",
}
_PIN = "Keep the server off the client's core (--cpus, taskset), or say --realtime."
_NAMES = {"overload": "not kept up"}

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Columns:
    """What a step needs beyond the trace. ``connect``: all -1 where it is not on record."""

    connection: NDArray[np.uint16]
    connect: Ints


def rated(
    findings: Sequence[Finding], trial: Mapping[str, Any], requests: int
) -> tuple[Finding, ...]:
    """The audit's findings as they weigh in a load run, the gravest first.

    ``requests``: due within the window; without one there is nothing to say about the server.
    """
    kinds = {f.kind for f in findings}
    found = []
    for f in findings:
        if f.kind in OF_THE_SERVER and (requests or f.kind != "no answers"):
            severity: Any = "warning" if f.severity == "invalid" else f.severity
            if f.kind == "overload":  # the answer to what was asked, and nothing to be warned of
                severity = "note"
            f = replace(f, kind=_NAMES.get(f.kind, f.kind), severity=severity,
                        remedy=OF_THE_SERVER[f.kind])  # fmt: skip
        elif f.kind == "client starved":
            void = _run_wait(trial) > RUN_WAIT_VOID
            f = replace(f, severity="invalid" if void else f.severity, remedy=f"{_PIN} {f.remedy}")
        elif f.kind in ("never steady", "warm-up not reached") and "overload" in kinds:
            continue  # a queue that grows is never steady, and that is said already
        found.append(f)
    rank = {"invalid": 0, "warning": 1, "note": 2}
    return tuple(sorted(found, key=lambda f: rank[f.severity]))


def step_of(
    record: Record,
    trial: Mapping[str, Any],
    trace: Trace,
    counts: Mapping[str, int],
    findings: Sequence[Finding],
) -> Step:
    """The load step of a trial that was driven. ``counts``: its outcomes; ``findings``: rated."""
    load, window = trial["load"], trace.window
    kind = _kind(load)
    columns = _columns(record, str(trial["trial"]), trace)
    inside = trace.measured()
    due = trace.due[inside]
    good = inside & (trace.outcome == 0) & (trace.done >= 0) & (trace.sent >= 0)
    n = int(due.size)
    came = within.rate(trace.done[(trace.outcome == 0) & (trace.done >= 0)], window)
    achieved = _achieved(trace) if kind != "closed" else None
    backlog = _backlog(trace, columns, inside) if kind != "closed" else None
    response_growth = capacity.slope(trace.due[good], trace.done[good] - trace.due[good], window)
    asked = int(load.get("clients") or 1) if kind == "closed" else None
    share = _little(trial, trace, asked)
    bad = [f for f in findings if f.severity == "invalid"]
    return Step(
        **_heading(trial),
        status="void" if bad else "valid",
        reason="; ".join(f"{f.kind}: {f.number}" for f in bad),
        window_s=trace.window_s,
        clients_asked=asked,
        clients=_clients(trial, trace, columns),
        clients_by_littles_law=share * asked if share is not None and asked else None,
        littles_law_share=share,
        rate_asked_per_s=_number(load.get("rate_per_s")),
        requests=n,
        outcomes=dict(counts),
        error_share=within.share(trace.outcome[inside] != 0, due, window),
        offered=within.rate(trace.due, window),
        answered=came,
        achieved=achieved,
        keeps_up=_keeps_up(trial, achieved, response_growth, n) if achieved else None,
        service=within.quantiles((trace.done - trace.sent)[good], trace.due[good], window),
        response=within.quantiles((trace.done - trace.due)[good], trace.due[good], window),
        connect=_connect(trace, columns, inside),
        lag=_lag(trace, inside),
        backlog=within.quantiles(backlog) if backlog is not None else {},
        backlog_growth=capacity.slope(due, backlog, window) if backlog is not None else None,
        response_growth=response_growth,
        **_client(trial, int(trace.due.size)),
        steal_share=_steal(trial, trace.window_s),
        server_cores=_cores(trial, trace.window_s),
        worst_minute=_worst_minute(trace, good),
        findings=tuple(findings),
    )


def failed_step(trial: Mapping[str, Any], finding: Finding) -> Step:
    """The load step of a trial that was not driven to its end."""
    load = trial.get("load") or {}
    return Step(
        **_heading(trial),
        status="failed",
        reason=f"failed {finding.number}: {finding.meaning}",
        clients_asked=int(load.get("clients") or 1) if _kind(load) == "closed" else None,
        rate_asked_per_s=_number(load.get("rate_per_s")),
        findings=(finding,),
    )


def _heading(trial: Mapping[str, Any]) -> dict[str, Any]:
    levels: dict[str, Level] = dict(trial.get("levels") or {})
    return {
        "system": str(trial.get("system", "")),
        "trial": str(trial["trial"]),
        "treatment": str(trial["treatment"]),
        "block": int(trial.get("block", 0)),
        "label": str(trial.get("label") or trial["treatment"]),
        "kind": _kind(trial.get("load") or {}),
        "levels": levels,
    }


def _kind(load: Mapping[str, Any]) -> Literal["closed", "open", "replay"]:
    kind = load.get("kind")
    return cast("Literal['closed', 'open', 'replay']", kind) if kind else "closed"


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _columns(record: Record, trial: str, trace: Trace) -> _Columns:
    """Connections and connects; a record of before there was ``connect`` has none."""
    there = set(pq.read_schema(record.samples_path(trial)).names) if trace.due.size else set()
    connect = np.full(trace.due.size, NEVER, dtype=np.int64)
    if "connect" in there:
        connect = record.samples(trial, ["connect"]).column(0).fill_null(NEVER).to_numpy()
    connection = record.samples(trial, ["connection"]).column(0).to_numpy()
    return _Columns(connection, connect)


def _clients(trial: Mapping[str, Any], trace: Trace, columns: _Columns) -> int:
    """Distinct clients that had a request under way within the window.

    A closed client has a connection to each endpoint that its requests name, so of several
    endpoints it may have several; how many clients began at all is the loop's own count.
    """
    start, end = trace.window
    under_way = (trace.due < end) & ((trace.done >= start) | (trace.done < 0))
    under_way &= trace.free >= 0
    connections = int(np.unique(columns.connection[under_way]).size)
    began = (trial.get("drive") or {}).get("clients")
    if _kind(trial["load"]) == "closed" and isinstance(began, int) and began:
        return min(connections, began)
    return connections


def _little(trial: Mapping[str, Any], trace: Trace, clients: int | None) -> float | None:
    if clients is None or not trace.due.size:
        return None
    load = trial["load"]
    think_s, timeout_s = float(load.get("think_s") or 0.0), load.get("timeout_s")
    return capacity.little(trace, clients, think_s, float(timeout_s or math.inf))


def _achieved(trace: Trace) -> Estimate | None:
    """Replies that came in the window over requests due in it.

    What is lacking is what the queue grew by. A queue that stands sways: two of its ends differ
    by that, which is the interval.
    """
    start, end = trace.window
    edges = np.linspace(start, end, 10 * within.SLICES + 1)
    of = np.histogram(trace.due, edges)[0]
    ended = np.histogram(trace.done[trace.done >= 0], edges)[0]
    n = int(of.sum())
    if not n:
        return None
    value = float(ended.sum()) / n
    queue = np.cumsum(of - ended).astype(np.float64)
    at = np.arange(queue.size) - (queue.size - 1) / 2
    sway = queue - queue.mean() - at * float((at @ queue) / (at @ at))
    half = 1.96 * math.sqrt(2 * float(sway.var())) / n
    span = Interval(max(0.0, value - half), value + half, within.LEVEL, "sway of the queue")
    return Estimate(value, "share", n, span)


def _keeps_up(
    trial: Mapping[str, Any], achieved: Estimate, growth: float, requests: int
) -> bool | None:
    unsent = int((trial.get("drive") or {}).get("unsent") or 0)
    span = achieved.interval
    if unsent or (achieved.value < ACHIEVED and growth > GROWTH):
        return False
    if span is not None and span.high < ACHIEVED:
        return False
    return True if achieved.value >= ACHIEVED and growth <= GROWTH and requests else None


def _backlog(trace: Trace, columns: _Columns, inside: NDArray[np.bool_]) -> Ints:
    """How long each request of the window waited for a free connection, in ns.

    Opening one is no waiting; what never got one waited until the end of the window.
    """
    ready = np.where(columns.connect >= 0, columns.connect, trace.free)
    ready = np.where(ready >= 0, ready, trace.window[1])
    waited: Ints = np.maximum(0, ready - trace.due)[inside]
    return waited


def _connect(trace: Trace, columns: _Columns, inside: NDArray[np.bool_]) -> dict[str, Estimate]:
    opened = inside & (columns.connect >= 0) & (trace.free >= 0)
    return within.quantiles((trace.free - columns.connect)[opened], trace.due[opened], trace.window)


def _lag(trace: Trace, inside: NDArray[np.bool_]) -> dict[str, Estimate]:
    sent = inside & (trace.sent >= 0)
    late = trace.sent[sent] - np.maximum(trace.due, trace.free)[sent]
    return within.quantiles(np.maximum(0, late))


def _threads(trial: Mapping[str, Any]) -> tuple[float, Sequence[Mapping[str, Any]]]:
    drive = trial.get("drive") or {}
    return float(drive.get("elapsed_ns") or 0), drive.get("threads") or []


def _run_wait(trial: Mapping[str, Any]) -> float:
    elapsed, threads = _threads(trial)
    return max((t.get("run_wait_ns") or 0 for t in threads), default=0) / max(1.0, elapsed)


def _client(trial: Mapping[str, Any], sent: int) -> dict[str, Any]:
    elapsed, threads = _threads(trial)
    busy = [(t.get("user_ns") or 0) + (t.get("system_ns") or 0) for t in threads]
    known = bool(elapsed > 0 and busy)
    return {
        "client_cpu_s_per_request": sum(busy) / 1e9 / sent if known and sent else None,
        "client_cpu_share": max(busy) / elapsed if known else None,
        "run_wait_share": _run_wait(trial) if known else None,
    }


def _steal(trial: Mapping[str, Any], window_s: float) -> float | None:
    host = trial.get("host_window") or {}
    total = float(host.get("cores") or 0) * window_s
    return float(host.get("steal_s") or 0.0) / total if total > 0 else None


def _cores(trial: Mapping[str, Any], window_s: float) -> float | None:
    found = capacity.utilisation(trial, window_s)
    return found.value if found else None


def _worst_minute(trace: Trace, good: NDArray[np.bool_]) -> dict[str, float]:
    """The minute of the window with the greatest p99 of response; of two minutes or more."""
    start, end = trace.window
    if end - start < 2 * MINUTE_NS:
        return {}
    worst: dict[str, float] = {}
    response, due = (trace.done - trace.due)[good], trace.due[good]
    for at in range(start, end - MINUTE_NS + 1, MINUTE_NS):
        own = response[(due >= at) & (due < at + MINUTE_NS)]
        p99 = within.values(within.quantiles(own), "p99")
        if p99 is not None and p99 > worst.get("response_p99", -1.0):
            worst = {
                "from_s": (at - start) / 1e9,
                "response_p99": p99,
                "requests": float(own.size),
            }
    return worst
