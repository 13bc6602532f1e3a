"""A record in, a judgement out: the order of judging, and nothing else.

Audit each trial → take figures of the valid ones → how far answers agree → compare where they
do → scale → say it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from searchbench.analysis import findings
from searchbench.analysis.agreement.answers import AnswerBook
from searchbench.analysis.capacity import found as capacities
from searchbench.analysis.capacity import search
from searchbench.analysis.capacity import verdict as of_capacity
from searchbench.analysis.compare import pairs, scaling, verdict
from searchbench.analysis.judgement import Agreement, Judgement, RecordComparison
from searchbench.analysis.sweep import verdict as of_sweep
from searchbench.analysis.trial import driven, replicates
from searchbench.analysis.trial.measured import Samples
from searchbench.record import Record, Trial, open_record
from searchbench.record.trial import Load
from searchbench.study.plan import Treatment


def judge(record: Record | Path | str) -> Judgement:
    """Judge a record or the folder of one, be it whole or interrupted.

    RecordError where it is none, or its files are damaged.
    """
    record = record if isinstance(record, Record) else open_record(record)
    if record.plan.judging.measure == "trials":
        return _judge_trials(record)
    return _judge_steps(record)


def _judge_trials(record: Record) -> Judgement:
    """Treatments that were each started anew and measured once a block."""
    plan, samples = record.plan, Samples(record)
    judging, trials = plan.judging, driven.by_treatment(record)
    treatments = []
    for planned in plan.treatments:
        own = trials.get(planned.id, [])
        judged = [replicates.judge_trial(record, trial, samples) for trial in own]
        treatments.append(replicates.judge_treatment(planned, judged))
    treatments, shared = findings.hoist(treatments)

    loads = driven.loads(record)
    wanted = metric_of(judging.metric, list(loads.values()))
    answers = AnswerBook(record, treatments)
    metrics = sorted({m for load in loads.values() for m in pairs.metrics_for(load, wanted)})
    floors = pairs.noise_floors(treatments, metrics)
    found = pairs.comparisons(treatments, loads, samples, answers, floors, wanted)
    agreed = answers.shown()
    scales = scaling.scales(treatments, metrics)
    noise_floor = floors.get(wanted)
    own_findings = findings.of_trials(record, treatments, bool(floors), agreed, answers)
    return Judgement(
        question=judging.question or plan.question,
        analysis=judging.analysis,
        verdict=verdict.decide(
            treatments, found, loads, wanted, noise_floor, judging.agreement.require, scales
        ),
        treatments=tuple(treatments),
        comparisons=found,
        noise_floor=noise_floor,
        agreement=agreed,
        findings=findings.in_order([*own_findings, *shared], treatments),
        excluded=tuple((e.levels, e.reason) for e in plan.excluded),
        scaling={
            factor: tuple(s.curve for s in scales if (s.factor, s.metric) == (factor, "throughput"))
            for factor in dict.fromkeys(s.factor for s in scales if s.metric == "throughput")
        },
        resources={
            t.treatment: replicates.resources(trials.get(t.treatment, []), t) for t in treatments
        },
        scales=scales,
        metric=wanted,
    )


def _judge_steps(record: Record) -> Judgement:
    """A sweep or a search for capacity: its steps, what they sustain, and which sustains more.

    Steps of one subject are not compared for their answers: these were captured once, before all.
    """
    plan, samples = record.plan, Samples(record)
    judging, subjects = plan.judging, driven.subjects(record)
    trials = driven.by_treatment(record)
    treatments, steps = [], []
    for planned in plan.treatments:
        own = trials.get(planned.id, [])
        if judging.measure == "capacity" and not _has_a_rate(planned, own):
            continue
        subject = subjects[planned.id]
        judged = [replicates.judge_trial(record, t, samples, subject=subject) for t in own]
        treatments.append(replicates.judge_treatment(planned, judged))
        steps += [j.step for j in judged if j.step is not None]
    order = {t.trial: i for i, t in enumerate(record.trials)}
    steps.sort(key=lambda step: order[step.trial])
    treatments, shared = findings.hoist(treatments)
    answers = AnswerBook(record, treatments)
    agreed = _of_subjects(answers, subjects)
    if judging.measure == "capacity":
        capacity = capacities.capacities(record)
        result = of_capacity.sustained(capacity, subjects, steps, agreed)
    else:
        result = of_sweep.sustained(treatments, subjects, steps, agreed)
    own_findings = [*findings.incomplete(record), *findings.disagreeing(agreed), *shared]
    loads = driven.loads(record)
    return Judgement(
        question=judging.question or plan.question,
        analysis=judging.analysis,
        verdict=result.verdict,
        treatments=tuple(treatments),
        comparisons=result.comparisons,
        noise_floor=None,
        agreement=agreed,
        findings=findings.in_order(own_findings, treatments),
        excluded=tuple((e.levels, e.reason) for e in plan.excluded),
        resources={
            t.treatment: replicates.resources(trials.get(t.treatment, []), t) for t in treatments
        },
        metric=metric_of(judging.metric, [loads[t.treatment] for t in treatments]),
        measure=judging.measure,
        steps=tuple(steps),
        capacity=result.capacity,
        void=result.void,
    )


def _has_a_rate(planned: Treatment, own: Sequence[Trial]) -> bool:
    """Whether a treatment of a search is a rate, and not a template or the first look."""
    if own:
        return not all(search.is_first_look(t) for t in own)
    return "rate_per_s" in planned.load


def _of_subjects(answers: AnswerBook, subjects: dict[str, str]) -> tuple[Agreement, ...]:
    """How far subjects return the same, each by the first of its treatments that was driven."""
    first: dict[str, str] = {}
    for t in answers.treatments:
        if answers.trials.get(t.treatment):
            first.setdefault(subjects[t.treatment], t.treatment)
    readable = [t for t in first.values() if (a := answers.of(t)) is not None and a.readable]
    for one, other in combinations(readable, 2):
        answers.pair(one, other)
    return answers.shown()


def agreements(record: Record) -> tuple[Agreement, ...]:
    """How far the treatments of a record return the same; needs no timing, so no samples."""
    treatments = [replicates.judge_treatment(planned, []) for planned in record.plan.treatments]
    answers = AnswerBook(record, treatments)
    answering = [t.treatment for t in treatments if answers.of(t.treatment) is not None]
    for a, b in combinations(answering, 2):
        answers.pair(a, b)
    return answers.shown()


def metric_of(stated: str, loads: Sequence[Load]) -> str:
    """What the verdict goes by: as stated, else throughput of closed loops, else response_p99.

    Where no load is a closed loop, throughput is what was offered and decides nothing; then it
    is response_p99 too.
    """
    closed = [load.kind == "closed" for load in loads]
    if stated and (stated != "throughput" or any(closed)):
        return stated
    return "throughput" if all(closed) else "response_p99"


def to_json(judged: Judgement | RecordComparison) -> dict[str, Any]:
    """Plain dicts, lists, strings, numbers, null; field names as in judgement.py.

    What is not a finite number becomes null. Mapping keys become strings.
    """
    plain: dict[str, Any] = _plain(judged)
    return plain


def steps_json(judged: Judgement) -> list[dict[str, Any]]:
    """One object for each load step, in the order they were driven; fields as in ``Step``."""
    return [_plain(step) for step in judged.steps]


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
