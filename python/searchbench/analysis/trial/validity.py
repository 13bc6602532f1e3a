"""The audit: may this trial be believed? Each finding has its number, meaning and remedy.

The thresholds are constants here, and docs/methodology/audit.md gives the reason of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Literal, cast

import numpy as np

from searchbench.analysis.judgement import Finding
from searchbench.analysis.trial import throughput
from searchbench.analysis.trial.by_system import not_measured
from searchbench.analysis.trial.cache import cache_hits, from_cache
from searchbench.analysis.trial.jvm import jvm
from searchbench.analysis.trial.kinds import NOT_MEASURED
from searchbench.analysis.trial.latency import minimum_samples
from searchbench.analysis.trial.machine import disturbances
from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.trial.placed import read_at_start
from searchbench.analysis.trial.silence import stalls
from searchbench.analysis.trial.steadiness import first_asks
from searchbench.analysis.trial.unsteady import unsteady
from searchbench.analysis.trial.warmup import Warmup
from searchbench.analysis.words import percent
from searchbench.record import Trial
from searchbench.record.trial import Load
from searchbench.study.plan import Treatment

ENDS_UNKNOWN = 0.01  # share of requests without an end, beyond which the law says nothing
ERRORS_INVALID = 0.01
LAG_P50_OPEN = 0.05
LAG_P99_OPEN = 0.10
LAG_MEAN_CLOSED = 0.05
LAG_MEAN_CLOSED_WARNING = 0.02
GROWTH = 0.01
FIRST_ASKS = 0.20
BY_OTHERS = {"foreign CPU", "steal"}
LATE = "generator lag"
FATAL = ("refused", "reset", "timed_out", "truncated")
DEAD_AT_LEAST = 10  # failed requests in a row, to the end, before a server is called dead

LEAST = {"p50": minimum_samples(0.5), "p99": minimum_samples(0.99)}

Severity = Literal["invalid", "warning", "note"]
Row = tuple[str, Severity, str, str, str]  # a finding without its trial


def audit(
    trial: Trial,
    trace: Trace,
    warm: Warmup,
    planned: Treatment | None = None,
    whole: Trace | None = None,
) -> tuple[Finding, ...]:
    """Every finding of one trial that was driven, the gravest first. ``planned``: its treatment.

    ``whole``: all of its window, where ``trace`` has only a part of it; the machine and the
    server's own counts were totalled over that.
    """
    checks = (_lab_notes, _outcomes, _dead, _little, _lag, _offered, _unsupported, _first_asks)
    totalled = trace if whole is None else whole
    rows = chain(
        *(check(trial, trace) for check in (*checks, stalls)),
        *(check(trial, totalled) for check in (disturbances, jvm, cache_hits)),
        from_cache(trial, totalled, planned),
        unsteady(trace, warm),
        read_at_start(trial),
    )
    return gravest_first(
        Finding(kind, severity, trial.trial, number, meaning, remedy)
        for kind, severity, number, meaning, remedy in rows
    )


def audit_first_asks(trial: Trial, trace: Trace, whole: Trace) -> tuple[Finding, ...]:
    """Every finding of a trial that was cold for each query: of its first asks, and the machine.

    ``whole``: all of its requests, on the clock on which the machine was watched.
    """
    checks = (_lab_notes, _outcomes, _dead, _lag, _unsupported)
    rows = chain(
        *(check(trial, trace) for check in checks), disturbances(trial, whole), read_at_start(trial)
    )
    return gravest_first(
        Finding(kind, severity, trial.trial, number, meaning, remedy)
        for kind, severity, number, meaning, remedy in rows
    )


def spoilt(found: Iterable[Finding]) -> bool:
    """Whether a trial is invalid for what others on the machine did, so that it may be measured
    once more. The load generator may have been late besides. By itself that does not count: it is
    judged against the times of the trial, and to measure quick trials once more until they are slow
    would choose by the result.
    """
    kinds = {f.kind for f in found if f.severity == "invalid"}
    return bool(kinds & BY_OTHERS) and kinds <= BY_OTHERS | {LATE}


def gravest_first(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Invalid, warning, note; else in their order."""
    return tuple(sorted(found, key=lambda f: ("invalid", "warning", "note").index(f.severity)))


def outcomes(trial: Trial, trace: Trace) -> dict[str, int]:
    """How many measured requests ended in which way, by name; only those that happened."""
    counts = np.bincount(trace.outcome[trace.measured()], minlength=1)
    names = trial.outcomes
    return {
        names[i] if i < len(names) else f"outcome {i}": int(n) for i, n in enumerate(counts) if n
    }


def _lab_notes(trial: Trial, trace: Trace) -> Iterator[Row]:
    for note in trial.notes:
        # The analysis compares the answers under load itself, from the replies on record.
        if not note.meaning or note.kind == "answers under load":
            continue
        severity: Severity = "invalid" if note.kind == "server ended" else "warning"
        if note.severity in ("invalid", "warning", "note"):
            severity = cast("Severity", note.severity)
        number = note.number
        if note.kind == "server ended":
            last_ns = _last_answer_ns(trace)
            when = "answers came on" if last_ns is None else _instant(last_ns, trace)
            number = "; ".join(part for part in (when, number) if part)
        yield note.kind, severity, number, note.meaning, note.remedy


def _outcomes(trial: Trial, trace: Trace) -> Iterator[Row]:
    counts = outcomes(trial, trace)
    n = sum(counts.values())
    if not counts.get("ok"):
        yield (
            "no answers",
            "invalid",
            f"0 of {n} requests",
            "No measured request was answered well, so there is nothing to report."
            + server_said(trial, counts),
            "Look at the trial's outcomes and at the server's log; a longer window if 0 of 0.",
        )
        return
    partial = counts.get("partial", 0)
    if partial:
        yield (
            "partial results",
            "invalid" if partial > ERRORS_INVALID * n else "warning",
            f"{partial:,} of {n:,} ({percent(partial / n)})",
            "The server answered from only a part of the index, which is faster than the whole.",
            "Raise the server's own time limit, or lower the load until all parts answer.",
        )
    failed = {k: v for k, v in counts.items() if k not in ("ok", "partial")}
    bad = sum(failed.values())
    if bad:
        kinds = ", ".join(f"{v:,} {k.replace('_', ' ')}" for k, v in failed.items())
        yield (
            "errors",
            "invalid" if bad > ERRORS_INVALID * n else "warning",
            f"{bad:,} of {n:,} ({percent(bad / n)}): {kinds}",
            "Failed requests are left out of the latencies, so these look better than they were."
            + server_said(trial, failed),
            "Find the cause in the server's log; lower the load if it is overload.",
        )
    ok = counts["ok"]
    lacking = [(label, n) for label, n in LEAST.items() if ok < n]
    if lacking:
        label, least = lacking[0]
        yield (
            "too few samples",
            "warning" if label == "p50" else "note",
            f"{ok} samples",
            f"{label} needs {least} samples to be known at all; it is not shown.",
            "A longer window, or more clients.",
        )


def server_said(trial: Trial, outcomes: Iterable[str]) -> str:
    """The server's own sentences on requests that ended so; empty where none is on record."""
    words = dict.fromkeys(trial.said[name] for name in outcomes if name in trial.said)
    return f" The server said: {'; '.join(words)}" if words else ""


def _dead(trial: Trial, trace: Trace) -> Iterator[Row]:
    last_ok_ns = _last_answer_ns(trace)
    if last_ok_ns is None or last_ok_ns < 0:
        return
    after = trace.due > last_ok_ns
    n = int(np.count_nonzero(after))
    # A few unfinished requests at the end are no death: they were merely in flight.
    fatal = [i for i, name in enumerate(trial.outcomes) if name in FATAL]
    lost = int(np.count_nonzero(after & np.isin(trace.outcome, fatal)))
    if lost < DEAD_AT_LEAST or lost < 0.9 * n:
        return
    yield (
        "server died",
        "invalid",
        _instant(last_ok_ns, trace),
        f"After that instant all {n:,} requests failed: the server stopped answering.",
        "Read the server's log of this trial.",
    )


def _last_answer_ns(trace: Trace) -> int | None:
    """When the last request was due that was answered well, if others were due after it; else None.

    -1 where none was answered.
    """
    last_ns = int(trace.due[trace.outcome == 0].max(initial=-1))
    return last_ns if last_ns < trace.due.max(initial=-1) else None


def _instant(last_ns: int, trace: Trace) -> str:
    """Until when a server answered that then ended: "after 3.2 s of 10 s" of the window."""
    start, _ = trace.window
    if last_ns < 0:
        return "no request was answered well"
    if last_ns < start:
        return f"in the warm-up, {(start - last_ns) / 1e9:.1f} s before the window"
    return f"after {(last_ns - start) / 1e9:.1f} s of {trace.window_s:.3g} s"


def _little(trial: Trial, trace: Trace) -> Iterator[Row]:
    share = throughput.little_of(trial.load, trace)
    if share is None or (trial.operation is not None and trial.operation.untimed):
        return  # set-up and clean-up are on no record
    clients = trial.load.clients or 1
    measured = trace.measured()
    if np.count_nonzero(trace.done[measured] < 0) > ENDS_UNKNOWN * np.count_nonzero(measured):
        return  # when they ended is not on record; that they failed is a finding of its own
    if abs(share - 1) > throughput.LITTLE_TOLERANCE:
        yield (
            "Little's law",
            "invalid",
            f"{share * clients:.2f} of {clients} clients",
            "The times of all requests in the window do not add up to the clients that ran: "
            "samples were lost, or clients ended before the window did.",
            "Repeat the queries until the window ends; if they already are, the load generator "
            "has a fault.",
        )


def _lag(trial: Trial, trace: Trace) -> Iterator[Row]:
    yield from lag(trial.load, trace)


def lag(load: Load, trace: Trace) -> Iterator[Row]:
    """That the generator was late: beyond the limits "invalid", else where it is half of them."""
    kept = trace.measured() & (trace.outcome == 0) & (trace.sent >= 0)
    if np.count_nonzero(kept) < LEAST["p50"]:
        return
    late = np.maximum(0, trace.sent[kept] - np.maximum(trace.due, trace.free)[kept])
    response = trace.done[kept] - trace.due[kept]
    lag_p50, lag_p99 = (float(v) for v in np.quantile(late, (0.5, 0.99)))
    p50, p99 = (float(v) for v in np.quantile(response, (0.5, 0.99)))
    number, meaning = "", ""
    severity: Severity = "warning"
    if load.kind == "closed":
        think_ns = (load.think_s or 0.0) * 1e9
        share = float(late.mean()) / max(1.0, float(response.mean()) + think_ns)
        if share > LAG_MEAN_CLOSED_WARNING:
            severity = "invalid" if share > LAG_MEAN_CLOSED else "warning"
            number = f"{percent(share)} of each client's time"
            meaning = (
                "Requests were sent late by the generator, so throughput is understated by that."
            )
        elif lag_p99 > LAG_P99_OPEN * p99:
            number = f"p99 {_time(lag_p99)} of a response p99 of {_time(p99)}"
            meaning = (
                "Some requests were sent late by the generator; the tail of the response time "
                "is partly ours. Service time is not affected."
            )
    else:
        bounds = (("p50", lag_p50, p50, LAG_P50_OPEN), ("p99", lag_p99, p99, LAG_P99_OPEN))
        for label, ours, theirs, limit in bounds:
            if ours > limit * theirs / 2:
                severity = "invalid" if ours > limit * theirs else "warning"
                number = f"{label} {_time(ours)}, {percent(ours / theirs)} of the response {label}"
                meaning = (
                    "The load generator, not the server, made these requests late, and response "
                    "time includes that."
                )
                break
    remedy = "Give the generator a core of its own, and stop what else uses the machine"
    remedy += "." if load.idle == "spin" else "; the idle policy spin wakes it soonest."
    if number:
        yield "generator lag", severity, number, meaning, remedy


def _offered(trial: Trial, trace: Trace) -> Iterator[Row]:
    found = throughput.achieved(trace) if trial.load.kind != "closed" else None
    if found is None:
        return
    kept = trace.measured() & (trace.done >= 0)
    # Seconds by which the median response grows each second of the window.
    growth = throughput.slope(trace.due[kept], trace.done[kept] - trace.due[kept], trace.window)
    unsent = throughput.unsent(trial, trace)
    behind = found.share < throughput.KEEPS_UP
    grows = growth is not None and growth > GROWTH and not throughput.levelled(found, trace)
    if unsent or (behind and grows):
        number = f"{percent(found.share)} of the offered load" + (
            f", {unsent:,} requests never sent" if unsent else ""
        )
        yield (
            "overload",
            "invalid",
            number,
            f"Requests came faster than they were answered{_grew(growth)}: the latencies depend on "
            "the length of the window.",
            "Offer less; the throughput of a closed loop says about how much is sustained.",
        )
    elif behind and growth is None:
        yield (
            "behind at the end",
            "warning",
            f"{percent(found.share)} of the offered load",
            "The window ended while requests waited. Whether the queue grew all through it is "
            f"unknown: {np.count_nonzero(kept)} requests are too few to tell. If it did, the "
            "latencies depend on the length of the window.",
            f"A longer window: {throughput.FOR_A_TREND} requests are the least to see a trend.",
        )
    elif behind:
        yield (
            "behind at the end",
            "note",
            f"{percent(found.share)} of the offered load",
            "The window ended while requests waited, but the queue did not grow throughout.",
            "A longer window, if the load was meant to be constant.",
        )


def _grew(growth: float | None) -> str:
    """How fast the response grew, in s per s; nothing where it did not or is unknown."""
    if growth is None or growth <= 0:
        return ""
    return f" and the queue grew all through the window (by {growth * 1e3:.0f} ms a second)"


def _unsupported(trial: Trial, trace: Trace) -> Iterator[Row]:
    rows = trial.unsupported
    if rows:
        distinct = trial.queries.distinct
        reasons = sorted({row.reason for row in rows})
        yield (
            "unsupported",
            "note",
            f"{len(rows)} of {distinct} queries" if distinct else f"{len(rows)} queries",
            "This engine cannot express them; they were not asked: " + "; ".join(reasons[:3]),
            "Only the queries that both systems answer are compared.",
        )


def _first_asks(trial: Trial, trace: Trace) -> Iterator[Row]:
    found = first_asks(trace)
    if found is not None and found.value > FIRST_ASKS:
        yield (
            "first asks",
            "note",
            f"{percent(found.value)} of {found.n:,} requests",
            "These requests were the first of their query in this drive. In a slow system more "
            "requests are the first of their query than in a fast one, so a ratio compares cold "
            "queries with warm ones.",
            "Warm up until every query was asked, or draw fewer distinct queries.",
        )


def failed_finding(trial: Trial) -> Finding:
    """The finding of a trial that never came to be driven, or not to its end."""
    stage = trial.stage or "unknown stage"
    found = Finding(
        "failed",
        "invalid",
        trial.trial,
        f"in {stage}",
        trial.reason or "no reason was recorded",
        "Fix what the reason names and run again: a failed trial is tried again. A changed "
        "setting makes another study, which needs another --record. The server's log is beside "
        "its trial.json.",
    )
    return replace(found, kind=NOT_MEASURED) if not_measured(trial) else found


def _time(ns: float) -> str:
    return f"{ns / 1e6:.3g} ms" if ns >= 1e5 else f"{ns / 1e3:.3g} µs"
