"""A record in, a judgement out: the order of judging, and nothing else.

Audit each trial → take figures of the valid ones → how far answers agree → compare where they
do → scale → say it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from searchbench.analysis import (
    answer,
    clocks,
    findings,
    first_look,
    held,
    overload,
    remedies,
)
from searchbench.analysis.agreement.answers import AnswerBook
from searchbench.analysis.capacity import search
from searchbench.analysis.capacity import verdict as of_capacity
from searchbench.analysis.compare import builds, by_class, order, pairs, scaling, verdict, why
from searchbench.analysis.compare import jobs as jobs_of
from searchbench.analysis.compare.same_work import SameWork, same_work
from searchbench.analysis.judgement import Agreement, Judgement, RecordComparison, Step, Verdict
from searchbench.analysis.operations import crossing
from searchbench.analysis.operations import results as of_operations
from searchbench.analysis.roles import limits
from searchbench.analysis.roles import results as of_roles
from searchbench.analysis.roles.compared import said_beside, with_verdicts
from searchbench.analysis.sweep import steps as steps_of
from searchbench.analysis.sweep import verdict as of_sweep
from searchbench.analysis.sweep.compared import Evidence
from searchbench.analysis.trial import cache, coverage, driven, jobs, replicates
from searchbench.analysis.trial.measured import Samples
from searchbench.analysis.words import of_job
from searchbench.record import Record, Trial, open_record
from searchbench.record.trial import Load
from searchbench.study.plan import Judging, Treatment


def judge(record: Record | Path | str) -> Judgement:
    """Judge a record or the folder of one, be it whole or interrupted.

    RecordError where it is none, or its files are damaged.
    """
    record = record if isinstance(record, Record) else open_record(record)
    plan, samples = record.plan, Samples(record)
    judging, trials = plan.judging, driven.by_treatment(record)
    subjects = driven.subjects(record) if judging.measure != "trials" else {}
    asked = steps_of.asked_before(record, subjects) if judging.measure == "sweep" else {}
    judged: list[tuple[Treatment, list[replicates.Judged]]] = []
    for planned in plan.treatments:
        own, subject = trials.get(planned.id, []), subjects.get(planned.id)
        if judging.measure != "capacity" or _has_a_rate(planned, own):
            each = [
                replicates.judge_trial(
                    record, t, samples, subject=subject, asked=asked.get(t.trial)
                )
                for t in own
            ]
            judged.append((planned, each))
    replicates.with_pools(judged)
    treatments, shared = findings.hoist(
        [
            replicates.judge_treatment(planned, each, trials.get(planned.id, []))
            for planned, each in judged
        ]
    )
    drawn = {t.treatment: t.queries.digest for t in record.trials if t.operation is not None}
    treatments = [replace(t, draws=drawn.get(t.treatment, "")) for t in treatments]
    loads = driven.loads(record)
    part = remedies.fitted([*coverage.finding(_part_of_log(judged, subjects))], judging)
    found = Judgement(
        question=judging.question or plan.question,
        analysis=judging.analysis,
        verdict=Verdict("", False, None),  # decided below, by the kind of study
        treatments=tuple(treatments),
        comparisons=(),
        noise_floor=None,
        agreement=(),
        findings=(
            *held.findings(record),
            *clocks.findings(record),
            *part,
            *shared,
        ),
        excluded=tuple((e.levels, e.reason) for e in plan.excluded),
        resources={
            t.treatment: replicates.resources(trials.get(t.treatment, []), t) for t in treatments
        },
        metric=metric_of(judging.metric, [loads[t.treatment] for t in treatments]),
        measure=judging.measure,
        first_look=judging.first_look,
        jobs=tuple(
            result
            for planned, each in judged
            for result in jobs.results(
                planned, trials.get(planned.id, []), [j.result for j in each]
            )
        ),
        driven=judging.driven,
        operations=of_operations.results(record, treatments, trials),
        roles=of_roles.results(record, treatments, trials),
        overloads=overload.results(treatments),
    )
    if judging.measure == "trials":
        answered = _of_trials(record, found, loads, samples)
    else:
        order = {t.trial: i for i, t in enumerate(record.trials)}
        driven_steps = [j.step for _, each in judged for j in each if j.step is not None]
        driven_steps.sort(key=lambda step: order[step.trial])
        answered = _of_steps(record, found, subjects, driven_steps, loads, samples)
    doubts = (cache.sentence(answered.treatments), coverage.sentence(part))
    answered = _with_doubts(answered, [remedies.spelt(said, judging) for said in doubts if said])
    return first_look.undecided(answered) if found.first_look else answered


def _part_of_log(
    judged: Sequence[tuple[Treatment, Sequence[replicates.Judged]]], subjects: Mapping[str, str]
) -> coverage.Part | None:
    """The least that a configuration, with all its steps and blocks, was sent of its log."""
    sent: dict[str, list[coverage.Sent]] = {}
    of: dict[str, Treatment] = {}
    for planned, each in judged:
        name = subjects.get(planned.id, planned.id)
        of.setdefault(name, planned)
        sent.setdefault(name, []).extend(j.sent for j in each if j.sent is not None)
    return coverage.least(sent, of)


def _with_doubts(found: Judgement, doubts: Sequence[str]) -> Judgement:
    """The verdict says whose answers came from a cache, and that only a part was asked."""
    verdict = found.verdict
    if not doubts:
        return found
    decision = " ".join(part for part in (verdict.decision, *doubts) if part)
    points = (*doubts, *verdict.points)[: answer.MOST]
    return replace(found, verdict=replace(verdict, decision=decision, points=points))


def _of_trials(
    record: Record, found: Judgement, loads: Mapping[str, Load], samples: Samples
) -> Judgement:
    """Treatments that were each started anew and measured once a block."""
    treatments, wanted = found.treatments, found.metric
    answers = AnswerBook(record, treatments)
    judging = record.plan.judging
    metrics = sorted({m for load in loads.values() for m in pairs.metrics_for(load, wanted)})
    of_jobs = jobs_of.metrics(judging)
    metrics = [*of_jobs, *(m for m in metrics if judging.driven and m not in of_jobs)]
    floors = pairs.noise_floors(treatments, metrics)
    built, by_id = builds.of(record), {t.treatment: t for t in treatments}
    places = order.places(record.plan.trials)
    drafts = pairs.drafts(
        treatments, loads, samples, answers, floors, wanted, built, judging, places=places,
        also=[(one.idle, one.treatment) for one in found.roles.beside if one.idle]
        if found.roles is not None
        else (),
    )  # fmt: skip
    compared = tuple(
        why.explained(c, by_id[c.a], by_id[c.b], found.findings) for c in pairs.decided(drafts)
    )
    classes = by_class.of_record(record, treatments) if judging.driven else None
    of_classes = by_class.comparisons(
        classes, treatments, loads, samples, answers, wanted, built, drafts.p_values, places
    )
    if found.first_look:
        compared = first_look.unresolved(compared)
        of_classes = first_look.unresolved_classes(of_classes)
    # Where nothing was driven, no comparison looked at them.
    agreed = answers.shown() if judging.driven else answers.of_all([*by_id])
    scales = scaling.scales(treatments, metrics, compared)
    noise_floor = floors.get(wanted)
    own = findings.of_trials(record, treatments, bool(floors), agreed, answers)
    operations = crossing.judged(found.operations, compared, wanted, first_look=found.first_look)
    roles = found.roles
    if roles is not None:
        roles = replace(roles, beside=with_verdicts(roles.beside, compared))
    first = [
        *crossing.said(operations, compared, wanted),
        *(said_beside(roles.beside, wanted) if roles else ()),
    ]
    return replace(
        found,
        verdict=verdict.decide(
            treatments,
            compared,
            loads,
            wanted,
            noise_floor,
            judging.agreement.require,
            scales,
            of_classes,
            first,
        ),
        comparisons=compared,
        class_comparisons=of_classes,
        roles=roles,
        operations=operations,
        noise_floor=noise_floor,
        agreement=agreed,
        findings=findings.in_order([*own, *found.findings], treatments),
        scaling={
            factor: tuple(s.curve for s in scales if (s.factor, s.metric) == (factor, "throughput"))
            for factor in dict.fromkeys(s.factor for s in scales if s.metric == "throughput")
        },
        scales=scales,
    )


def _of_steps(
    record: Record,
    found: Judgement,
    subjects: Mapping[str, str],
    steps: Sequence[Step],
    loads: Mapping[str, Load],
    samples: Samples,
) -> Judgement:
    """A sweep or a search for capacity: its steps, what they sustain, and which sustains more.

    Steps of one subject are not compared for their answers: these were captured once for all of a
    block, before these.
    """
    treatments = found.treatments
    answers = AnswerBook(record, treatments, loaded=True)
    first = _first_driven(answers, subjects)
    read = [t for t in first.values() if (of := answers.of(t)) is not None and of.readable]
    agreed = answers.of_all(read)
    own = [
        *findings.incomplete(record), *findings.replaced(record, subjects),
        *findings.unstable(answers, subjects), *findings.disagreeing(agreed), *found.findings,
    ]  # fmt: skip
    if found.measure == "capacity":
        own += search.unwarmed(record)
    found = replace(
        found,
        agreement=agreed,
        findings=findings.in_order(own, treatments),
        steps=first_look.untold(steps) if found.first_look else tuple(steps),
        capacity=search.capacities(record) if found.measure == "capacity" else (),
    )
    judging = record.plan.judging

    known: dict[tuple[str, str], SameWork] = {}

    def work(a: str, b: str) -> SameWork:
        if (a, b) not in known:
            x, y = first.get(a, ""), first.get(b, "")
            mine, other = (answers.of(t) if t else None for t in (x, y))
            known[a, b] = same_work(mine, other, lambda: answers.pair(x, y))
        return known[a, b]

    if found.measure == "capacity":
        answered = of_capacity.sustained(found, work, samples, partial(limits.beside_idle, record))
        return _spelt(answered, judging)
    by_id = {t.treatment: t for t in treatments}
    started = frozenset(t.treatment for t in record.trials if t.attached is None)
    evidence = Evidence(
        by_id, loads, samples, work, builds.of(record), started,
        order={t.trial: i for i, t in enumerate(record.trials)},
    )  # fmt: skip
    classes = by_class.of_record(record, treatments)
    return _spelt(of_sweep.sustained(found, subjects, evidence, classes), judging)


def _spelt(found: Judgement, judging: Judging) -> Judgement:
    """The same with options in its verdict as whoever asked can give them."""
    verdict = found.verdict
    decision, headline, *points = (
        remedies.spelt(text, judging)
        for text in (verdict.decision, verdict.headline, *verdict.points)
    )
    worded = replace(verdict, decision=decision, headline=headline, points=tuple(points))
    return replace(found, verdict=worded)


def _has_a_rate(planned: Treatment, own: Sequence[Trial]) -> bool:
    """Whether a treatment of a search is a rate, and not a template or the opening loop."""
    if own:
        return not all(search.is_opening_loop(t) for t in own)
    return "rate_per_s" in planned.load


def _first_driven(answers: AnswerBook, subjects: Mapping[str, str]) -> dict[str, str]:
    """By subject the first of its treatments that has replies on record."""
    first: dict[str, str] = {}
    for t in answers.treatments:
        if answers.trials.get(t.treatment) and answers.of(t.treatment) is not None:
            first.setdefault(subjects[t.treatment], t.treatment)
    return first


def agreements(record: Record) -> tuple[Agreement, ...]:
    """How far the treatments of a record return the same; needs no timing, so no samples."""
    treatments = [replicates.judge_treatment(planned, []) for planned in record.plan.treatments]
    answers = AnswerBook(record, treatments)
    return answers.of_all([t.treatment for t in treatments])


def metric_of(stated: str, loads: Sequence[Load]) -> str:
    """What the verdict goes by: as stated, else throughput of closed loops, else response_p99.

    Where no load is a closed loop, throughput is what was offered and decides nothing; then it
    is response_p99 too.
    """
    if of_job(stated):
        return stated
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
    options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    return orjson.loads(orjson.dumps(value, option=options))
