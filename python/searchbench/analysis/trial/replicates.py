"""From trials to treatments: what one trial says, and what its replicates say together.

Longer than most files, by a little: every kind of trial has its way here, and they are read side by
side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis import remedies
from searchbench.analysis.agreement import agreement
from searchbench.analysis.judgement import (
    Curve,
    Estimate,
    Finding,
    Step,
    TreatmentResult,
    TrialResult,
)
from searchbench.analysis.roles import faults, reading, truth, worked
from searchbench.analysis.stats.intervals import mean_interval
from searchbench.analysis.sweep import promises, steps
from searchbench.analysis.trial import (
    alone,
    bottleneck,
    by_class,
    cache,
    coverage,
    elsewhere,
    firsts,
    jobs,
    jvm,
    latency,
    machine,
    operations,
    pool,
    replies,
    served,
    shaped,
    steadiness,
    throughput,
    unsteady,
    validity,
    warmup,
)
from searchbench.analysis.trial.elsewhere import whole
from searchbench.analysis.trial.measured import (
    Measured,
    Samples,
    Trace,
    measured_of,
    whole_trace,
)
from searchbench.analysis.trial.pooled import of_figure, pooled_quantile
from searchbench.record import Record, Trial
from searchbench.study.plan import Treatment

Nanoseconds = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Judged:
    """A trial as judged, with its ascending durations for pooling (empty if it was not valid).

    ``by_class``: the same by class of queries, service and response.
    """

    result: TrialResult
    service_ns: Nanoseconds
    response_ns: Nanoseconds
    step: Step | None = None
    pool: pool.Pool | None = None
    sent: coverage.Sent | None = None
    held_back: bottleneck.Seen = bottleneck.UNKNOWN
    by_class: Mapping[str, tuple[Nanoseconds, Nanoseconds]] = field(default_factory=dict)


def judge_trial(
    record: Record,
    trial: Trial,
    samples: Samples,
    *,
    subject: str | None = None,
    asked: NDArray[np.uint32] | None = None,
) -> Judged:
    """Audit one trial and take its figures. A failed trial has its finding and no figures.

    ``subject``: of a step of a sweep or of a search, whose step it is; it is audited as a step.
    None: it is a trial by itself. ``asked``: the queries that the steps before it asked.
    """
    empty = np.empty(0, dtype=np.int64)
    blank = TrialResult(
        trial=trial.trial,
        treatment=trial.treatment,
        block=trial.block,
        control=trial.control,
        status="failed",
        reason="",
        figures={},
        outcomes={},
        findings=(),
        untimed=trial.operation.untimed if trial.operation is not None else 0,
        sitting=record.sittings.get(trial.trial, 0),
        taken_of_jobs=jobs.taken(trial),
    )
    if trial.status != "ok":
        finding = validity.failed_finding(trial)
        reason = f"failed {finding.number}: {finding.meaning}"
        step = steps.failed_step(trial, subject, finding) if subject is not None else None
        return Judged(replace(blank, reason=reason, findings=(finding,)), empty, empty, step)
    if trial.drive is None and trial.jobs:
        return _of_jobs(record, trial, blank)
    trace = samples.trace(trial.trial)
    if trial.asked:
        return _of_first_asks(record, trial, samples, trace, blank)
    counts = validity.outcomes(trial, trace)
    if found := operations.failed(trial, counts):
        why = operations.in_short(trial, counts)
        result = replace(blank, status="valid", outcomes=counts, findings=found, failed=why)
        return Judged(result, empty, empty)
    at_limit = trial.warmup is not None and trial.warmup.at_limit
    over_stages = shaped.of_trial(trial, trace, record.plan.judging.promises)
    # What a fault made of the rest of the window is a result; the audit is of what was before it.
    before = faults.until_it(trial, trace)
    undisturbed = faults.undisturbed(trial, trace)
    within = shaped.within(trial, undisturbed)
    warm = warmup.find(within, trial.load.kind == "closed", at_limit=at_limit)
    swept = subject is not None and record.plan.judging.measure == "sweep"
    # Of a step, replies that count as answered alone: there errors are a result.
    loaded = agreement.under_load(record, trial, answered=subject is not None)
    differ, _, looked, _ = loaded
    otherwise = _answers_under_load(trial, loaded)
    planned = next((t for t in record.plan.treatments if t.id == trial.treatment), None)
    more = (
        served.findings(record, trial, before), replies.findings(record, trial, before), otherwise,
        truth.findings(record, trial), reading.findings(record, trial),
        faults.findings(record, trial, before),
    )  # fmt: skip
    audit = validity.audit(trial, undisturbed, warm, planned, trace)
    findings = jobs.added(_audited(audit, [*chain(*more)]), trial)
    counts = validity.outcomes(trial, trace)
    measured = measured_of(trace, trial.load.timeout_s)
    rate, step, tested = throughput.throughput(trace), None, warm.steadiness
    connections = pool.pool_of(record, trial, before)
    first_asks, sent = steadiness.first_asks(trace), coverage.sent_by(trial, trace)
    of_warmup = warmup.milestones(trace, warm) | cache.unasked(trial, trace, planned)
    if subject is not None:
        findings = steps.rated(findings, trial, sum(counts.values()), swept=swept)
    judging = record.plan.judging
    findings = remedies.fitted(findings, judging)
    if subject is not None:
        step = steps.step_of(record, trial, subject, trace, counts, findings, (differ, looked))
        rate = step.answered or rate
        first_asks = steps.first_asks(trace, asked)
        if step.falls_behind:
            tested = steps.overloaded(trace)
            if not {f.kind for f in findings} & {*steps.OF_WARM_UP}:
                late = remedies.fitted(unsteady.overloaded(trial, trace, tested), judging)
                findings = validity.gravest_first((*findings, *late))
        kept = promises.of_state(step.promises, tested)
        step = replace(step, steadiness=tested.answer, findings=findings, promises=kept)
    # A little lateness, which is a warning, costs clients a few percent and holds no server back.
    grave = [f.kind for f in findings if f.kind != validity.LATE or f.severity == "invalid"]
    held_back = bottleneck.of_trial(trial, trace, grave)
    seen_by_class, classes = by_class.of_window(trace), trace.classes
    window_s, window = undisturbed.window_s, undisturbed.window
    del trace, before, undisturbed, within  # they are large
    samples.keep(trial.trial, measured)
    service, response = np.sort(measured.service_ns), np.sort(measured.response_ns)
    figures = _figures(trial, measured, counts, service, response, rate) | of_warmup
    figures |= alone.figures(trial) | elsewhere.figures(trial) | jobs.figures(trial)
    after, of_all = faults.other_answers(record, trial)  # whatever was asked since may be such
    shares = [n / of for n, of in ((differ, looked), (after, of_all)) if of]
    if shares:
        figures[replies.OTHERWISE] = Estimate(max(shares), "share", max(looked, of_all))
    if first_asks is not None:
        figures["first_asks"] = first_asks
    bad = [f for f in findings if f.severity == "invalid"]
    result = replace(
        blank,
        status="invalid" if bad else "valid",
        reason="; ".join(f"{f.kind}: {f.number}" for f in bad),
        figures=figures,
        outcomes=counts,
        findings=findings,
        warmup=warm.curve,
        steady_from_s=warm.steady_from_s,
        steadiness=tested,
        shaped=over_stages,
        classes=seen_by_class,
        taken=machine.taken(trial, window_s),
        worked=worked.of_trial(record, trial, window),
        compiling=any(f.kind == jvm.BUSY for f in findings),
    )
    durations = (empty, empty) if bad else (service, response)
    pooled = {} if bad or classes is None else by_class.durations(measured, classes)
    return Judged(result, *durations, step, connections, sent, held_back, pooled)


def _of_first_asks(
    record: Record, trial: Trial, samples: Samples, trace: Trace, blank: TrialResult
) -> Judged:
    """A trial that was cold for each query: ``trace`` has the first asks alone.

    It has no warm-up and no steadiness: each request was the first after an eviction.
    """
    whole = whole_trace(record, trial)
    measured = measured_of(trace, trial.load.timeout_s)
    loaded = agreement.under_load(record, trial, answered=False)
    counts = validity.outcomes(trial, trace)
    audit = validity.audit_first_asks(trial, trace, whole)
    more = (*firsts.findings(trial), *replies.findings(record, trial, trace),
            *_answers_under_load(trial, loaded))  # fmt: skip
    found = jobs.added((*audit, *more), trial)
    findings = validity.gravest_first(remedies.fitted(found, record.plan.judging))
    samples.keep(trial.trial, measured)
    service, response = np.sort(measured.service_ns), np.sort(measured.response_ns)
    figures = _figures(trial, measured, counts, service, response, throughput.throughput(trace))
    # The time between queries, in which the system was started, is nobody's.
    figures = {k: v for k, v in figures.items() if k not in ("server_cores", "cpu_s_per_query")}
    bad = [f for f in findings if f.severity == "invalid"]
    result = replace(
        blank,
        status="invalid" if bad else "valid",
        reason="; ".join(f"{f.kind}: {f.number}" for f in bad),
        figures=figures | firsts.figures(whole, trial.asked) | jobs.figures(trial),
        outcomes=counts,
        findings=findings,
        cold=firsts.state(trial),
        classes=by_class.of_window(trace),
        taken=machine.taken(trial, whole.window_s),
    )
    empty = np.empty(0, dtype=np.int64)
    durations = (empty, empty) if bad else (service, response)
    held_back = bottleneck.Seen("unknown", "the system was at rest between queries")
    pooled = {} if bad or trace.classes is None else by_class.durations(measured, trace.classes)
    return Judged(
        result, *durations, sent=coverage.sent_by(trial, trace), held_back=held_back,
        by_class=pooled,
    )  # fmt: skip


def _audited(audit: Sequence[Finding], more: Sequence[Finding]) -> tuple[Finding, ...]:
    """All findings of a trial. Where clients were not served, Little's law has nothing to add."""
    told = any(f.kind == served.UNSERVED for f in more)
    return (*(f for f in audit if not (told and f.kind == "Little's law")), *more)


def _of_jobs(record: Record, trial: Trial, blank: TrialResult) -> Judged:
    """A trial that was not driven: its jobs are all that it has."""
    found = validity.gravest_first(remedies.fitted(jobs.findings(trial), record.plan.judging))
    worst = next((f for f in found if f.severity == "invalid"), None)
    result = replace(
        blank,
        status="invalid" if worst else "valid",
        reason=f"{worst.kind}: {worst.number}" if worst else "",
        figures=jobs.figures(trial),
        findings=found,
    )
    empty = np.empty(0, dtype=np.int64)
    return Judged(result, empty, empty)


def with_pools(judged: Sequence[tuple[Treatment, list[Judged]]]) -> None:
    """Add to the trials whose connections were all busy, in place, that these may be the limit.

    Trials at other rates show it, so it is said once all are judged.
    """
    pools: dict[Any, list[pool.Pool]] = {}
    for planned, each in judged:
        own = pools.setdefault(pool.group(planned.system, planned.levels), [])
        own += [j.pool for j in each if j.pool is not None and _shows_service(j.result)]
    for planned, each in judged:
        own = pools[pool.group(planned.system, planned.levels)]
        for i, j in enumerate(each):
            if j.pool is None or not j.pool.full:
                continue
            found = pool.finding(j.result.trial, j.pool, own)
            if found is not None:
                each[i] = _with(j, found)


def _shows_service(result: TrialResult) -> bool:
    """Whether its service times are those of a system that is neither disturbed nor cold."""
    bad = {f.kind for f in result.findings if f.severity == "invalid"}
    cold = result.steadiness is not None and result.steadiness.answer == "not steady"
    return not cold and bad <= {"generator lag"}  # which is no part of service times


def _with(judged: Judged, found: Finding) -> Judged:
    """The same with a finding that says what to do where the rate was not kept up."""
    findings = validity.gravest_first(
        replace(f, remedy=found.remedy) if f.kind in pool.NOT_KEPT_UP else f
        for f in (*judged.result.findings, found)
    )
    step = judged.step and replace(judged.step, findings=findings)
    return replace(judged, result=replace(judged.result, findings=findings), step=step)


def _without_ended(trials: Sequence[Trial], judged: Sequence[Judged]) -> Sequence[Judged]:
    """The trials of a treatment, without figures where its method ended the server in any of them:
    the times of the others would be those of the trials that the server happened to survive.
    """
    ended = [t.trial for t in trials if t.status == "ok" and operations.ended_by(t) is not None]
    if not ended:
        return judged
    empty, by_id, found = np.empty(0, dtype=np.int64), {t.trial: t for t in trials}, []
    for j in judged:
        if j.result.status == "failed" or j.result.trial in ended:
            found.append(j)
            continue
        aside = operations.set_aside(by_id[j.result.trial], ended)
        findings = validity.gravest_first((*j.result.findings, aside))
        bare = replace(
            j.result, figures={}, findings=findings, warmup=None, steady_from_s=None,
            steadiness=None, shaped=None, classes=(),
        )  # fmt: skip
        found.append(Judged(bare, empty, empty))
    return found


def judge_treatment(
    planned: Treatment, judged: Sequence[Judged], trials: Sequence[Trial] = ()
) -> TreatmentResult:
    """One treatment from all of its ``trials``; only valid ones that are no control count.

    Quantiles come from the samples of all replicates together, never from averages. Their
    interval is the wider of two: order statistics (samples as if independent) and, over
    replicates, t on the logs (machine noise between trials). Of a single trial it is that of the
    trial. A curve's band is the wider of order statistics and the range of the replicates.
    """
    judged = _without_ended(trials, judged)
    used = [j for j in judged if j.result.counts]
    each: dict[str, list[Estimate]] = {}
    for j in used:
        for name, figure in j.result.figures.items():
            each.setdefault(name, []).append(figure)
    figures = {name: of_figure(name, own) for name, own in sorted(each.items())}
    for name in warmup.MILESTONES:
        if (some := warmup.over_trials(each.get(name, ()), len(used))) is not None:
            figures[name] = some
    curves: dict[str, Curve] = {}
    for kind in ("service", "response"):
        parts = [j.service_ns if kind == "service" else j.response_ns for j in used]
        # Stable sorting of ascending runs is a merge: linear, where a fresh sort is not.
        pooled = np.sort(np.concatenate([np.empty(0, dtype=np.int64), *parts]), kind="stable")
        curves[kind] = _with_range(latency.curve(kind, pooled), parts)
        for name, q in latency.LANDMARKS.items():
            if found := pooled_quantile(parts, pooled, q):
                own = each.get(f"{kind}_{name}", [])
                figures[f"{kind}_{name}"] = own[0] if len(own) == len(used) == 1 else found
    return TreatmentResult(
        treatment=planned.id,
        label=planned.label or planned.id,
        system=planned.system,
        levels=planned.levels,
        figures=figures,
        service=curves["service"],
        response=curves["response"],
        trials=tuple(j.result for j in judged),
        bottleneck=bottleneck.of_treatment([(j.result, j.held_back) for j in judged]),
        classes=by_class.over_trials([j.result.classes for j in used], [j.by_class for j in used]),
        failed=operations.over_trials(trials, [j.result for j in judged], log=False),
    )


def resources(trials: Sequence[Trial], result: TreatmentResult) -> dict[str, Estimate]:
    """What a treatment cost: server CPU, memory, disk, ingest; over its valid trials.

    An index that several trials used was ingested once and counts once.
    """
    builds: set[str] = set()
    valid = {t.trial for t in result.trials if t.counts}
    values: dict[str, list[float]] = {}
    for trial in (trial for trial in trials if trial.trial in valid):
        server = whole(trial)
        row: dict[str, float | None] = {
            "peak_memory_bytes": server.peak_memory_bytes,
            "read_bytes": server.read_bytes,
            "write_bytes": server.write_bytes,
            "jvm_compilers_s": server.jvm_compilers_s,
            "jvm_collectors_s": server.jvm_collectors_s,
        }
        if (ingest := trial.ingest) is not None:
            row["index_bytes"] = ingest.index_bytes
            build = ingest.reused or trial.trial
            if build not in builds and ingest.seconds:
                builds.add(build)
                ingest_s = ingest.seconds + (ingest.settle_seconds or 0.0)
                row["ingest_s"] = ingest_s
                row["ingest_documents_per_s"] = (ingest.documents or 0) / ingest_s
        if trial.drive is not None and trial.drive.elapsed_ns:
            busy = [t.user_ns + t.system_ns for t in trial.drive.threads]
            row["client_cpu_share"] = max(busy, default=0) / trial.drive.elapsed_ns
        for name, value in row.items():
            if value is not None:
                values.setdefault(name, []).append(float(value))
    found = {}
    for name, own in values.items():
        span = mean_interval(own)
        if span is not None:  # what cannot be less than nothing is not said to be perhaps less
            span = replace(span, low=max(0.0, span.low))
        found[name] = Estimate(float(np.mean(own)), _unit(name), len(own), span)
    for name in ("server_cores", "cpu_s_per_query"):
        if name in result.figures:
            found[name] = result.figures[name]
    return found


def _figures(
    trial: Trial,
    measured: Measured,
    counts: Mapping[str, int],
    service: Nanoseconds,
    response: Nanoseconds,
    rate: Estimate,
) -> dict[str, Estimate]:
    n = sum(counts.values())
    found: dict[str, Estimate | None] = {
        "throughput": rate,
        "error_share": Estimate(1 - counts.get("ok", 0) / n, "share", n) if n else None,
    }
    for kind, ordered in (("service", service), ("response", response)):
        for name, q in latency.LANDMARKS.items():
            found[f"{kind}_{name}"] = latency.quantile(ordered, q)
        if size := int(ordered.size):
            found[f"{kind}_max"] = Estimate(float(ordered[-1]) / 1e9, "s", size)
            found[f"{kind}_mean"] = Estimate(float(ordered.mean()) / 1e9, "s", size)
    found["server_cores"] = throughput.utilisation(trial, measured.window_s)
    if answered := int(measured.query.size):
        distinct = np.count_nonzero(np.bincount(measured.query))
        found["requests_per_query"] = Estimate(answered / distinct, "requests", answered)
        if (cpu_s := whole(trial).cpu_s) is not None:
            found["cpu_s_per_query"] = Estimate(cpu_s / answered, "s", answered)
    return {name: estimate for name, estimate in found.items() if estimate is not None}


def _answers_under_load(trial: Trial, found: agreement.UnderLoad) -> Iterator[Finding]:
    """That replies were others than those captured before, or that little is known of them."""
    if found.differ:
        unread = f" (errors or unreadable: {found.unread:,})" if found.unread else ""
        yield Finding(
            "other answers under load",
            "invalid" if found.differ > validity.ERRORS_INVALID * found.looked else "warning",
            trial.trial,
            f"{found.differ:,} of {found.looked:,} sampled replies{unread}",
            "Under load the server gave other answers than when asked alone, so these times are "
            "not those of the answers that were compared.",
            "Lower the load until the answers agree, or raise the server's own limits.",
        )
    if found.unordered > found.looked:
        yield Finding(
            "only totals compared under load",
            "note",
            trial.trial,
            f"{found.unordered:,} of {found.looked + found.unordered:,} sampled replies",
            "Their totals are the same as when asked alone, but other documents are listed, and "
            "the scores do not tell which should come first. So only the totals show that the "
            "server found the same under load.",
            "Ask for an order in which no two hits are equal.",
        )


def _with_range(curve: Curve, parts: Sequence[Nanoseconds]) -> Curve:
    low, high = list(curve.low), list(curve.high)
    for i, q in enumerate(curve.x):
        own = [float(p[latency.rank(p.size, q)]) / 1e9 for p in parts if p.size]
        low[i] = min(low[i], *own)
        high[i] = max(high[i], *own)
    return replace(curve, low=tuple(low), high=tuple(high))


def _unit(name: str) -> str:
    if name.endswith("_per_s"):
        return "documents/s"
    return {"bytes": "bytes", "s": "s", "share": "share"}.get(name.rsplit("_", 1)[-1], "")
