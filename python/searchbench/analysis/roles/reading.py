"""What further readers met: roles that read beside the readers of the study, trial by trial.

They are audited as the readers are: that of the load generator's own lateness makes their figures
of a trial be left out, and answers under load are held against those that were asked alone. A
request that failed took forever; without these, a role that fails would look fast.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.agreement import agreement
from searchbench.analysis.judgement import Estimate, Finding, Interval
from searchbench.analysis.roles import faults, meanwhile
from searchbench.analysis.roles.accepted import behind_s, written
from searchbench.analysis.roles.model import RoleResult, Row
from searchbench.analysis.trial import latency, throughput, validity
from searchbench.analysis.trial.measured import INSTANTS, NEVER, Trace
from searchbench.analysis.trial.pooled import FOREVER_NS, over_replicates, pooled_quantile
from searchbench.analysis.words import digits, percent, plural
from searchbench.record import Record, Trial
from searchbench.record.roles import RoleRun
from searchbench.record.trial import Load
from searchbench.workload.reading import replays_log

Nanoseconds = NDArray[np.int64]
QUANTILES = ("p50", "p90", "p99")
LAG = "a role's lag"
_UNIT = "requests/s"
_WAITED = 0.05  # of its requests; above, its connections are said to be too few


@dataclass(frozen=True, slots=True)
class Read:
    """One role in the window of one trial. ``service_ns``, ``response_ns``: ascending, of all
    requests that were due in it; of one that failed the greatest number there is. ``offered``,
    ``answered``: a second; the first is None of clients, who ask as they are answered.
    ``behind_s``: how late the last request was begun, by its clock. ``late``: the generator made
    requests late, so that these are not the system's times.
    """

    requests: int
    failed: int
    offered: Estimate | None
    answered: Estimate
    service_ns: Nanoseconds
    response_ns: Nanoseconds
    behind_s: float | None
    late: bool


def trace_of(record: Record, trial: Trial, run: RoleRun) -> Trace:
    """Every request of a role, with the window of its trial as it was before any fault."""
    table = record.of_role(trial.trial, run.name)
    instants = {name: table[name].fill_null(NEVER).to_numpy() for name in INSTANTS}
    assert trial.window is not None
    whole = Trace(
        query=table["query"].to_numpy().astype(np.uint32, copy=False),
        outcome=table["outcome"].to_numpy().astype(np.uint8, copy=False),
        window=(trial.window.start, trial.window.end),
        replay=run.keys.get("times") is not None or replays_log(run.keys),
        **instants,
    )
    return faults.until_it(trial, whole)


def of_trial(record: Record, trial: Trial, run: RoleRun) -> Read | None:
    """Its figures in one trial; None of one that was idle or did not go on."""
    if run.drive is None or trial.window is None:
        return None
    trace = trace_of(record, trial, run)
    kept, clocked = trace.measured(), run.keys.get("clients") is None
    well = (trace.outcome == 0) & (trace.done != NEVER) & (trace.sent != NEVER)
    behind = None
    if clocked and kept.any():
        sent = np.where(trace.sent != NEVER, trace.sent, -1)[kept]
        unfinished = [i for i, name in enumerate(trial.outcomes) if name == "unfinished"]
        waits = (sent < 0) & np.isin(trace.outcome[kept], unfinished)
        behind = behind_s(trace.due[kept], sent, waits, trace.window[1])
    return Read(
        requests=int(np.count_nonzero(kept)),
        failed=int(np.count_nonzero(kept & ~well)),
        offered=replace(throughput.offered(trace), unit=_UNIT) if clocked else None,
        answered=replace(throughput.answered(trace), unit=_UNIT),
        service_ns=np.sort(np.where(well, trace.done - trace.sent, FOREVER_NS)[kept]),
        response_ns=np.sort(np.where(well, trace.done - trace.due, FOREVER_NS)[kept]),
        behind_s=behind,
        late=any(severity == "invalid" for _, severity, *_ in _lag(run, trace)),
    )


def figures(reads: Sequence[Read]) -> dict[str, Estimate]:
    """The figures of a role over the trials of a treatment: quantiles of all requests together."""
    used = [read for read in reads if not read.late and read.requests]
    if not used:
        return {}
    n, failed = sum(read.requests for read in used), sum(read.failed for read in used)
    found = {"requests": Estimate(float(n), "requests", len(used))}
    offered = [read.offered for read in used if read.offered is not None]
    if offered:
        found["offered_per_s"] = over_replicates(offered)
    found["answered_per_s"] = over_replicates([read.answered for read in used])
    for kind in ("service", "response"):
        each = [getattr(read, f"{kind}_ns") for read in used]
        pooled = np.sort(np.concatenate(each), kind="stable")
        for name in QUANTILES:
            q = latency.LANDMARKS[name]
            if (whole := pooled_quantile(each, pooled, q)) is not None:
                found[f"{kind}_{name}"] = _forever(whole)
    found["error_share"] = Estimate(failed / n, "share", n)
    behind = [read.behind_s for read in used if read.behind_s is not None]
    if behind:
        found["behind_s"] = Estimate(float(np.mean(behind)), "s", len(behind))
    return found


def _forever(found: Estimate) -> Estimate:
    """The same with what took forever as infinite."""

    def of(seconds: float) -> float:
        return math.inf if seconds >= FOREVER_NS / 2e9 else seconds

    span = found.interval
    if span is not None:
        span = Interval(of(span.low), of(span.high), span.level, span.method)
    return replace(found, value=of(found.value), interval=span)


def load_in_words(keys: Mapping[str, object]) -> str:
    """How a role asks: "2 clients", "20/s", "every 10 s"."""
    if (clients := keys.get("clients")) is not None:
        return f"{clients} {'client' if clients == 1 else 'clients'}"
    if (rate := keys.get("rate_per_s")) is not None:
        return f"{digits(float(str(rate)))}/s"
    if (every := keys.get("every_s")) is not None:
        return f"every {digits(float(str(every)))} s"
    if keys.get("stages") is not None:
        return "stages"
    return "replay"


def sentence(r: RoleResult) -> str:
    """What a role met in one treatment."""
    said = [f"answered {digits(r.figures['answered_per_s'].value)}/s"]
    said += [
        f"{title} {took(r.figures[name].value)}"
        for title, name in (("p50", "response_p50"), ("p99", "response_p99"))
        if name in r.figures
    ]
    if failed := r.figures["error_share"].value:
        said.append(f"{percent(failed)} failed")
    if r.left_out:
        n = r.left_out
        out = f"{n} {plural(n, 'trial', 'trials')} left out"
        said.append(f"{out}, because the load generator was late")
    return f"{r.role} ({r.load}), {r.label}: {', '.join(said)}."


def took(seconds: float) -> str:
    """A time of a role's requests; that of one that failed is forever."""
    return "forever" if math.isinf(seconds) else f"{digits(1e3 * seconds)} ms"


def findings(record: Record, trial: Trial) -> Iterator[Finding]:
    """What of the roles that read in one trial is wrong, or must be known."""
    for run in trial.beside:
        if run.does == "read" and run.drive is not None and not run.failed:
            for kind, severity, number, meaning, remedy in _rows(record, trial, run):
                yield Finding(kind, severity, trial.trial, number, meaning, remedy)


def _rows(record: Record, trial: Trial, run: RoleRun) -> Iterator[Row]:
    if trial.window is None:
        return
    trace = trace_of(record, trial, run)
    yield from _answered(trial, run, trace)
    yield from _waited(run, trace)
    for _, severity, number, meaning, remedy in _lag(run, trace):
        out = (f" Its figures of this trial are left out of those of {run.name}."
               if severity == "invalid" else "")  # fmt: skip
        yield LAG, "warning", f"{run.name}: {number}", f"{meaning}{out}", remedy
    if run.unsupported:
        distinct = run.queries.distinct if run.queries is not None else None
        of = f" of {distinct}" if distinct else ""
        yield (
            "unsupported", "note", f"{run.name}: {len(run.unsupported)}{of} queries",
            "This engine cannot express them; they were not asked: "
            + "; ".join(sorted({row.reason for row in run.unsupported})[:3]), "",
        )  # fmt: skip
    differ, unread, looked, _ = agreement.under_load(record, trial, role=run.name)
    if differ:
        errors = f" (errors or unreadable: {unread:,})" if unread else ""
        wrong = differ > validity.ERRORS_INVALID * looked
        yield (
            "other answers under load", "invalid" if wrong else "warning",
            f"{run.name}: {differ:,} of {looked:,} sampled replies{errors}",
            f"Under load the server gave {run.name} other answers than when asked alone, so its "
            "times are not those of the right answers, and the readers were not measured beside "
            "what the study asks about.",
            "Lower the load until the answers agree, or raise the server's own limits.",
        )  # fmt: skip
    writer = next((r for r in trial.beside if r.does == "write" and r.drive is not None), None)
    if writer is not None:
        yield from meanwhile.findings(record, trial, written(record, trial, writer), run.name)


def _answered(trial: Trial, run: RoleRun, trace: Trace) -> Iterator[Row]:
    """That requests of a role failed: a result, but for one to which nothing was answered."""
    counts = validity.outcomes(trial, trace)
    n = sum(counts.values())
    failed = n - counts.get("ok", 0)
    if not n:
        yield (
            "nothing asked", "warning", run.name,
            "None of its requests was due in the window, so the readers were measured without "
            "this role.",
            "A longer window, or a role that asks more often.",
        )  # fmt: skip
        return
    if not failed:
        return
    kinds = ", ".join(f"{count:,} {name}" for name, count in counts.items() if name != "ok")
    number = f"{run.name}: {failed:,} of {n:,} requests ({percent(failed / n)}): {kinds}"
    if failed == n:
        yield (
            "a role got no answers", "invalid", number,
            f"No request of {run.name} was answered well, so the readers were not measured beside "
            "what the study asks about.",
            "Look at the server's log beside this trial's samples.",
        )  # fmt: skip
    elif failed > validity.ERRORS_INVALID * n:
        yield (
            "errors of a role", "warning", number,
            f"These requests of {run.name} failed. Its quantiles count them as taking forever.",
            "That is a result. If it is not what you ask about, lower its load, or give it a "
            "longer `timeout_s`.",
        )  # fmt: skip


def _waited(run: RoleRun, trace: Trace) -> Iterator[Row]:
    """That its own connections were too few; with one each so often, that is what was asked for."""
    if run.keys.get("clients") is not None or run.keys.get("every_s") is not None:
        return
    kept = trace.measured() & (trace.sent != NEVER)
    n, waited = int(np.count_nonzero(kept)), trace.free[kept] > trace.due[kept]
    share = np.count_nonzero(waited) / n if n else 0.0
    if share > _WAITED:
        connections = int(str(run.keys["connections"]))
        yield (
            "a role's connections", "warning",
            f"{run.name}: {percent(share)} of {n:,} requests waited for one of its {connections}",
            "All connections of this role were busy then, so its response times include a wait "
            "that more connections might avoid.",
            "Give it more `connections`, or ask less often.",
        )  # fmt: skip


def _lag(run: RoleRun, trace: Trace) -> Iterator[Row]:
    """The same audit as that of the readers."""
    clients = run.keys.get("clients")
    load = Load(kind="open")
    if clients is not None:
        load = Load(clients=clients, think_s=float(run.keys.get("think_s") or 0.0))
    yield from validity.lag(load, trace)
