"""A record in, a judgement out: the order of judging, and nothing else.

Audit each trial → take figures of the valid ones → how far answers agree → compare where they
do → scale → say it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, cast

from searchbench.analysis import agreement, causes, pairs, replicates, scaling, verdict
from searchbench.analysis.judgement import Agreement, Finding, Judgement, TreatmentResult
from searchbench.analysis.measured import Samples
from searchbench.analysis.plain import to_json as to_json
from searchbench.record import Record

HALF = 0.5  # of the queries must agree before a ratio goes unremarked


def judge(record: Record) -> Judgement:
    """Judge a record, be it whole or interrupted. RecordError where its files are damaged."""
    judging = judging_of(record)
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
    answers = _AnswerBook(record, treatments, trials, judging)
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


def agreements(record: Record) -> tuple[Agreement, ...]:
    """How far the treatments of a record return the same; needs no timing, so no samples."""
    judging = judging_of(record)
    trials: dict[str, list[dict[str, Any]]] = {}
    for trial in record.trials:
        trials.setdefault(str(trial["treatment"]), []).append(trial)
    treatments = [
        replicates.judge_treatment(about, []) for about in described_treatments(record, trials)
    ]
    answers = _AnswerBook(record, treatments, trials, judging)
    answering = [t.treatment for t in treatments if answers.of(t.treatment) is not None]
    for a, b in combinations(answering, 2):
        answers.pair(a, b)
    return answers.shown()


@dataclass(frozen=True, slots=True)
class Judging:
    """How a study wants to be judged. ``metric`` empty: by its loads."""

    question: str
    analysis: str
    metric: str
    require: agreement.Level
    k: int


def judging_of(record: Record) -> Judging:
    """The table ``judging`` of plan.json, with defaults for what it lacks."""
    table = record.plan.get("judging") or {}
    agree = table.get("agreement") or {}
    require = str(agree.get("require") or "totals")
    return Judging(
        question=str(table.get("question") or record.plan.get("question") or ""),
        analysis=str(table.get("analysis") or ""),
        metric=str(table.get("metric") or ""),
        require=cast(
            "agreement.Level",
            require if require in ("totals", "set", "order", "none") else "totals",
        ),
        k=int(agree.get("k") or 10),
    )


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


@dataclass
class _AnswerBook:
    """The captured answers of each treatment, and how pairs of them agree; each read once."""

    record: Record
    treatments: Sequence[TreatmentResult]
    trials: Mapping[str, Sequence[Mapping[str, Any]]]
    judging: Judging
    _answers: dict[str, agreement.Answers | None] = field(default_factory=dict)
    _pairs: dict[tuple[str, ...], agreement.Pair] = field(default_factory=dict)
    _asked: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def trial_of(self, treatment: str, last: bool = False) -> Mapping[str, Any] | None:
        """The first (or last) trial of a treatment that answered and is no control.

        An invalid trial too: what makes a trial's times invalid does not touch what was
        returned to it before it was timed.
        """
        own = [
            t
            for t in self.trials.get(treatment, [])
            if t.get("status") == "ok" and not t.get("control")
        ]
        return own[-1 if last else 0] if own else None

    def of(self, treatment: str) -> agreement.Answers | None:
        """The answers of a treatment; None where none of its trials is valid."""
        if treatment not in self._answers:
            trial = self.trial_of(treatment)
            self._answers[treatment] = (
                agreement.read_answers(self.record, trial) if trial is not None else None
            )
        return self._answers[treatment]

    def distinct(self, treatment: str) -> int:
        """How many distinct queries the treatment's query set has."""
        trial = self.trial_of(treatment)
        if trial is None:
            return 0
        stated = (trial.get("queries") or {}).get("distinct")
        answers = self.of(treatment)
        return int(stated or (answers.query.size if answers is not None else 0))

    def pair(self, a: str, b: str) -> agreement.Pair | None:
        """How two treatments agree; None where documents or queries are not the same."""
        x, y = self.of(a), self.of(b)
        if x is None or y is None or not same_question(x.about, y.about):
            return None
        key = (_class(x), _class(y))
        if key not in self._pairs:
            self._pairs[key] = agreement.compare(
                x,
                y,
                require=self.judging.require,
                k=self.judging.k,
                queries=self.queries(x.about),
            )
        return self._pairs[key]

    def queries(self, trial: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The query set of a trial, read once."""
        digest = str((trial.get("queries") or {}).get("digest", ""))
        if digest not in self._asked:
            self._asked[digest] = self.record.queries(digest) if digest else []
        return self._asked[digest]

    def shown(self) -> tuple[Agreement, ...]:
        """The pairs worth a look: of each two kinds of answer one, named after all that give it.

        Treatments of one system that answer the same are one; two systems are shown even then.
        """
        made = {}
        for (a, b), pair in self._pairs.items():
            system_a, system_b = a.split("\0")[0], b.split("\0")[0]
            if a == b or (system_a == system_b and a.split("\0")[1] == b.split("\0")[1]):
                continue
            made[a, b] = pair.agreement
        return tuple(self._labelled(key, found) for key, found in made.items())

    def _labelled(self, key: tuple[str, ...], found: Agreement) -> Agreement:
        labels = []
        for kind in key:
            system = kind.split("\0")[0]
            answers = [(t, self.of(t.treatment)) for t in self.treatments if t.system == system]
            known = [(t, x) for t, x in answers if x is not None]
            same = [t.label for t, x in known if _class(x) == kind]
            labels.append(system if len(same) == len(known) else " / ".join(same[:3]))
        return replace(found, label_a=labels[0], label_b=labels[1])

    def unstable(self) -> list[tuple[str, str]]:
        """Treatments whose first and last valid trial answered differently: label and trial."""
        found = []
        for treatment in self.treatments:
            last = self.trial_of(treatment.treatment, last=True)
            first = self.of(treatment.treatment)
            if last is None or first is None or last["trial"] == first.about["trial"]:
                continue
            again = agreement.read_answers(self.record, last)
            if again.digest != first.digest:
                compared = agreement.compare(first, again, require="order", k=self.judging.k)
                differ = compared.agreement.queries - compared.agreement.agreeing
                if differ:
                    found.append((treatment.label, f"{differ} of {compared.agreement.queries}"))
        return found


def same_question(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two trials were asked the same queries over the same documents."""
    return all(
        (a.get(part) or {}).get("digest") == (b.get(part) or {}).get("digest")
        for part in ("corpus", "queries")
    )


def _class(answers: agreement.Answers) -> str:
    """Treatments of one class give the same answers for the same reasons."""
    about = answers.about
    parts = sorted(
        (name, str(level))
        for name, level in (about.get("parameters") or {}).items()
        if name in causes.PART_PARAMETERS
    )
    barred = ",".join(map(str, sorted(answers.unsupported)))
    question = f"{(about.get('corpus') or {}).get('digest')}/{barred}/{parts}"
    return f"{about.get('system')}\0{answers.digest}\0{about.get('version')}\0{question}"


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
    answers: _AnswerBook,
) -> list[Finding]:
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
