"""What the jobs of a trial say: how long each took, what it left, what held it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np
from msgspec import structs

from searchbench.analysis.judgement import (
    Curve,
    Estimate,
    Finding,
    Interval,
    JobResult,
    TrialResult,
)
from searchbench.analysis.stats.intervals import geometric_estimate
from searchbench.analysis.trial import bottleneck, machine
from searchbench.analysis.trial.bottleneck import Seen
from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.trial.rows import Severity
from searchbench.record import Trial
from searchbench.record.trial import JobDone
from searchbench.study.plan import Treatment

_GRAVITY = ("invalid", "warning", "note")
_UNITS: Mapping[str, str] = {
    "seconds": "s", "documents_per_s": "documents/s", "cpu_s": "s",
    "peak_memory_bytes": "bytes", "write_bytes": "bytes", "device_bytes": "bytes",
    "request_p50_s": "s", "request_p99_s": "s", "request_max_s": "s",
}  # fmt: skip


def figures(trial: Trial) -> dict[str, Estimate]:
    """The time of each job, by the name of its metric."""
    return {f"{job.name}_s": Estimate(job.seconds, "s", 1) for job in trial.jobs}


def findings(trial: Trial) -> Iterator[Finding]:
    """What disturbed a job, and what the lab has to say."""
    for note in trial.notes:
        if note.meaning:
            severity = cast("Severity", note.severity or "warning")
            yield Finding(note.kind, severity, trial.trial, note.number, note.meaning, note.remedy)
    yield from disturbed(trial)


def added(found: Sequence[Finding], trial: Trial) -> tuple[Finding, ...]:
    """The findings of a driven trial, with those of its jobs: each kind once, the graver."""
    of_jobs = {f.kind: f for f in disturbed(trial)}
    kept = []
    for f in found:
        other = of_jobs.get(f.kind)
        if other is None or _GRAVITY.index(f.severity) <= _GRAVITY.index(other.severity):
            of_jobs.pop(f.kind, None)
            kept.append(f)
    return (*kept, *of_jobs.values())


def disturbed(trial: Trial) -> Iterator[Finding]:
    """What disturbed a job, each kind once: where it did so most."""
    worst: dict[str, Finding] = {}
    for job in trial.jobs:
        for kind, severity, number, meaning, remedy in machine.foreign(
            _alone(trial, job), _window(job)
        ):
            found = Finding(kind, severity, trial.trial, f"{job.name}: {number}", meaning, remedy)
            kept = worst.setdefault(kind, found)
            if _GRAVITY.index(severity) < _GRAVITY.index(kept.severity):
                worst[kind] = found
    yield from worst.values()


def taken(trial: Trial) -> dict[str, float]:
    """By the metric of each job, the share of its time in which others may have had a core."""
    here = structs.replace(trial, elsewhere=[])  # what hosts say is of the drive
    return {f"{job.name}_s": machine.taken(_alone(here, job), job.seconds) for job in trial.jobs}


def _alone(trial: Trial, job: JobDone) -> Trial:
    """As if it had been the drive: the same cores, the same counters."""
    return structs.replace(trial, server=job.server, host_window=job.host, drive=None)


def results(
    planned: Treatment, trials: Sequence[Trial], judged: Sequence[TrialResult]
) -> Iterator[JobResult]:
    """Each job of a treatment, over its valid trials that are no controls."""
    used = {t.trial for t in judged if t.counts}
    valid = [t for t in trials if t.trial in used]
    for name, levels in planned.jobs.items():
        done = [(t, job) for t in valid for job in t.jobs if job.name == name]
        if not done:
            continue
        rows = [_row(job) for _, job in done]
        found: dict[str, Estimate] = {}
        for key, unit in _UNITS.items():
            values = [value for row in rows if (value := row[key]) is not None]
            if values and len(values) == len(rows):
                found[key] = _over_trials(values, unit)
        held = [(result, held_back(t, job)) for t, job in done for result in judged
                if result.trial == t.trial]  # fmt: skip
        first = done[0][1]
        yield JobResult(
            job=name,
            treatment=planned.id,
            label=planned.label or planned.id,
            levels=levels,
            trials=len(done),
            documents=first.documents,
            figures=found,
            files=_ranges([job.files for _, job in done]),
            lengths=_ranges([job.lengths for _, job in done]),
            running=_ranges([job.running for _, job in done]),
            bottleneck=bottleneck.of_treatment(held),
            durable=first.durable,
            compared=tuple(first.compared),
            progress=_progress(first),
        )


def _over_trials(values: Sequence[float], unit: str) -> Estimate:
    """Times with the interval of their mean; bytes, which are counted, from least to greatest."""
    if unit != "bytes" and (figure := geometric_estimate(values, unit)) is not None:
        return figure
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return Estimate(mean, unit, n)
    return Estimate(mean, unit, n, Interval(min(values), max(values), 1.0, "least to greatest"))


def _row(job: JobDone) -> dict[str, float | None]:
    own = [d.written_bytes for d in job.devices if d.name in job.own_devices]
    documents, seconds = job.documents, job.seconds
    return {
        "seconds": seconds,
        "documents_per_s": documents / seconds if documents and seconds > 0 else None,
        "cpu_s": job.server.cpu_s,
        "peak_memory_bytes": job.server.peak_memory_bytes,
        "write_bytes": job.server.write_bytes,
        "device_bytes": sum(own) if job.own_devices and job.still is not None else None,
        "request_p50_s": job.request_p50_s,
        "request_p99_s": job.request_p99_s,
        "request_max_s": job.request_max_s,
    }


def held_back(trial: Trial, job: JobDone) -> Seen:
    """What had nothing left while it was done."""
    alone = structs.replace(trial, host_window=job.host)
    own = [d for d in job.host.devices if d.name in job.own_devices]
    devices = own or [d for d in job.host.devices if not d.name.startswith("loop")]
    return bottleneck.of_span(alone, job.server, devices, job.seconds, own=bool(own))


def _ranges(each: Sequence[Mapping[str, int]]) -> dict[str, tuple[int, int]]:
    """By kind the least and the greatest; what one lacks is 0 there."""
    kinds = dict.fromkeys(kind for one in each for kind in one)
    return {
        kind: (min(one.get(kind, 0) for one in each), max(one.get(kind, 0) for one in each))
        for kind in kinds
    }


def _progress(job: JobDone) -> Curve | None:
    if len(job.progress) < 2:
        return None
    x, y = zip(*job.progress, strict=True)
    return Curve(job.name, (0.0, *((at - job.start) / 1e9 for at in x)), (0.0, *map(float, y)))


def _window(job: JobDone) -> Trace:
    """A trace without requests, whose window is the time of the job."""
    none = np.empty(0, np.int64)
    return Trace(
        none.astype(np.uint32), none.astype(np.uint8), none, none, none, none, (job.start, job.end)
    )
