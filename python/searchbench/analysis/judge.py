"""A record in, a judgement out: the order of judging, and nothing else.

Audit each trial → take figures of the valid ones → how far answers agree → compare where they
do → scale → say it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from searchbench.analysis.agreement.answers import AnswerBook, Judging, judging_of
from searchbench.analysis.compare import pairs, scaling, verdict
from searchbench.analysis.judgement import Agreement, Finding, Judgement, TreatmentResult
from searchbench.analysis.plain import steps_json as steps_json
from searchbench.analysis.plain import to_json as to_json
from searchbench.analysis.sweep import verdict as bearing
from searchbench.analysis.trial import replicates
from searchbench.analysis.trial.measured import Samples
from searchbench.record import Record

HALF = 0.5  # of the queries must agree before a ratio goes unremarked


def judge(record: Record) -> Judgement:
    """Judge a record, be it whole or interrupted. RecordError where its files are damaged."""
    judging = judging_of(record)
    if judging.kind == "load":
        return _judge_load(record, judging)
    samples = Samples(record)
    trials: dict[str, list[dict[str, Any]]] = {}
    for trial in record.trials:
        trials.setdefault(str(trial["treatment"]), []).append(trial)
    described = described_treatments(record, trials)
    treatments = []
    for about in described:
        own = trials.get(str(about["id"]), [])
        judged = [replicates.judge_trial(record, trial, samples) for trial in own]
        treatments.append(replicates.judge_treatment(about, judged))
    treatments, shared = _hoist(treatments)

    loads = {str(about["id"]): about["load"] for about in described}
    wanted = metric_of(judging.metric, list(loads.values()))
    answers = AnswerBook(record, treatments, trials, judging)
    metrics = sorted({m for load in loads.values() for m in pairs.metrics_for(load, wanted)})
    floors = pairs.noise_floors(treatments, metrics)
    found = pairs.comparisons(
        treatments, loads, samples, answers.pair, floors, wanted, answers.distinct
    )
    agreed = answers.shown()
    scales = scaling.scales(treatments, metrics)
    noise_floor = pairs.floor_estimate(floors, wanted)
    own_findings = _study_findings(record, treatments, bool(floors), agreed, answers)
    by_trial = [f for t in treatments for trial in t.trials for f in trial.findings]
    rank = {"invalid": 0, "warning": 1, "note": 2}
    return Judgement(
        question=judging.question,
        analysis=judging.analysis,
        verdict=verdict.decide(
            treatments, found, loads, wanted, noise_floor, judging.require, scales
        ),
        treatments=tuple(treatments),
        comparisons=found,
        noise_floor=noise_floor,
        agreement=agreed,
        findings=(
            *sorted((*own_findings, *shared), key=lambda f: rank[f.severity]),
            *sorted(by_trial, key=lambda f: rank[f.severity]),
        ),
        excluded=tuple(
            (dict(e.get("levels") or {}), str(e.get("reason", "")))
            for e in record.plan.get("excluded") or []
        ),
        scaling=scaling.throughput_by_factor(scales),
        resources={
            t.treatment: replicates.resources(trials.get(t.treatment, []), t) for t in treatments
        },
        scales=scales,
        metric=wanted,
    )


def _judge_load(record: Record, judging: Judging) -> Judgement:
    """A load run: its steps, what the systems bear, and which bears more.

    Steps of one system are not compared for their answers: these were captured once, before all.
    """
    samples = Samples(record)
    trials: dict[str, list[dict[str, Any]]] = {}
    for trial in record.trials:
        trials.setdefault(str(trial["treatment"]), []).append(trial)
    described = described_treatments(record, trials)
    treatments, steps = [], []
    for about in described:
        own = trials.get(str(about["id"]), [])
        judged = [replicates.judge_trial(record, t, samples, of_load=True) for t in own]
        treatments.append(replicates.judge_treatment(about, judged))
        steps += [j.step for j in judged if j.step is not None]
    order = {str(t["trial"]): i for i, t in enumerate(record.trials)}
    steps.sort(key=lambda step: order[step.trial])
    treatments, shared = _hoist(treatments)
    answers = AnswerBook(record, treatments, trials, judging)
    first = {t.system: t.treatment for t in reversed(treatments)}
    first = {name: first[name] for name in dict.fromkeys(t.system for t in treatments)}
    told = [t for t in first.values() if (found := answers.of(t)) is not None and found.told]
    for a, b in combinations(told, 2):
        answers.pair(a, b)
    agreed = answers.shown()
    borne = bearing.bear(record.plan.get("judging") or {}, treatments, steps, agreed)
    own_findings = [*_incomplete(record), *_disagreeing(agreed), *shared]
    by_trial = [f for t in treatments for trial in t.trials for f in trial.findings]
    rank = {"invalid": 0, "warning": 1, "note": 2}
    return Judgement(
        question=judging.question,
        analysis=judging.analysis,
        verdict=borne.verdict,
        treatments=tuple(treatments),
        comparisons=borne.comparisons,
        noise_floor=None,
        agreement=agreed,
        findings=(
            *sorted(own_findings, key=lambda f: rank[f.severity]),
            *sorted(by_trial, key=lambda f: rank[f.severity]),
        ),
        excluded=(),
        resources={
            t.treatment: replicates.resources(trials.get(t.treatment, []), t) for t in treatments
        },
        metric=metric_of(judging.metric, [about["load"] for about in described]),
        kind="load",
        steps=tuple(steps),
        capacity=borne.capacity,
        void=borne.void,
    )


def agreements(record: Record) -> tuple[Agreement, ...]:
    """How far the treatments of a record return the same; needs no timing, so no samples."""
    judging = judging_of(record)
    trials: dict[str, list[dict[str, Any]]] = {}
    for trial in record.trials:
        trials.setdefault(str(trial["treatment"]), []).append(trial)
    treatments = [
        replicates.judge_treatment(about, []) for about in described_treatments(record, trials)
    ]
    answers = AnswerBook(record, treatments, trials, judging)
    answering = [t.treatment for t in treatments if answers.of(t.treatment) is not None]
    for a, b in combinations(answering, 2):
        answers.pair(a, b)
    return answers.shown()


def metric_of(stated: str, loads: Sequence[Mapping[str, Any]]) -> str:
    """What the verdict goes by: as stated, else throughput of closed loops, else response_p99.

    Where no load is a closed loop, throughput is what was offered and decides nothing; then it
    is response_p99 too.
    """
    closed = [load.get("kind") == "closed" for load in loads]
    if stated and (stated != "throughput" or any(closed)):
        return stated
    return "throughput" if all(closed) else "response_p99"


def described_treatments(
    record: Record, trials: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """The plan's treatments, in its order, with the load as it was really driven."""
    described = []
    for planned in record.plan.get("treatments") or []:
        own = trials.get(str(planned["id"]), [])
        driven = next((t for t in own if t.get("load")), None)
        load = driven["load"] if driven else planned.get("load") or {}
        described.append({**planned, "load": load})
    return described


def _hoist(
    treatments: Sequence[TreatmentResult],
) -> tuple[list[TreatmentResult], list[Finding]]:
    """A remark alike in more than half of the trials is one of the study, and said once."""
    driven = [t for r in treatments for t in r.trials if t.status != "failed"]
    counts: dict[tuple[str, str], list[Finding]] = {}
    for trial in driven:
        for f in trial.findings:
            if f.severity != "invalid":
                counts.setdefault((f.kind, f.severity), []).append(f)
    common = {key: found for key, found in counts.items() if len(found) > max(1, len(driven) // 2)}
    shared = []
    for found in common.values():
        same = len({f.number for f in found}) == 1
        number = found[0].number if same else f"e.g. {found[0].number}"
        number = f"{number} ({len(found)} of {len(driven)} trials)"
        shared.append(replace(found[0], trial="", number=number))
    changed = []
    for result in treatments:
        trials = tuple(
            replace(t, findings=tuple(f for f in t.findings if (f.kind, f.severity) not in common))
            for t in result.trials
        )
        changed.append(replace(result, trials=trials))
    return changed, shared


def _study_findings(
    record: Record,
    treatments: Sequence[TreatmentResult],
    controlled: bool,
    agreed: Sequence[Agreement],
    answers: AnswerBook,
) -> list[Finding]:
    found = _incomplete(record)
    there = len(record.trials)
    if not controlled and there:
        found.append(
            Finding(
                "no A/A control",
                "warning",
                "",
                "0 pairs",
                "No valid pair of a treatment and its own twin: the noise floor is unknown, and "
                "differences count as soon as their interval leaves out 1.",
                "Leave the control on, and see why its trials are not valid.",
            )
        )
    for treatment in treatments:
        valid = [t for t in treatment.trials if t.status == "valid" and not t.control]
        if treatment.trials and len(valid) < 2:
            found.append(
                Finding(
                    "too few replicates",
                    "warning",
                    "",
                    f"{len(valid)} valid of {treatment.label}",
                    "Below two valid trials nothing can be said of how sure its figures are.",
                    "More replicates; five resolve most differences above the noise floor.",
                )
            )
    for label, number in answers.unstable():
        found.append(
            Finding(
                "answers changed",
                "warning",
                "",
                f"{number} queries of {label}",
                "Replicates of one treatment answered differently, so its index or its ranking is "
                "not the same each time.",
                "Settle the index fully (merge, commit) before measuring.",
            )
        )
    return found + _disagreeing(agreed)


def _incomplete(record: Record) -> list[Finding]:
    found = []
    planned, there = len(record.plan.get("trials") or []), len(record.trials)
    if there < planned:
        found.append(
            Finding(
                "incomplete",
                "warning",
                "",
                f"{there} of {planned} trials",
                "The study was interrupted; what is judged is what is there.",
                "Run the same command again: it continues where it stopped.",
            )
        )
    return found


def _disagreeing(agreed: Sequence[Agreement]) -> list[Finding]:
    found = []
    for pair in agreed:
        if pair.queries and pair.agreeing < HALF * pair.queries:
            why = ", ".join(f"{cause} {n}" for cause, n in pair.causes.items())
            found.append(
                Finding(
                    "little agreement",
                    "warning",
                    "",
                    f"{pair.agreeing} of {pair.queries} queries",
                    f"{pair.label_a} and {pair.label_b} return the same {pair.require} on less "
                    f"than half of the queries ({why}); a ratio over the rest says little.",
                    "See the examples under Agreement and align analysis and operators first.",
                )
            )
    return found
