"""The captured answers of a record's treatments, and how pairs of them agree; each read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from searchbench.analysis.agreement import agreement, causes
from searchbench.analysis.judgement import Agreement, TreatmentResult
from searchbench.record import Record, Trial
from searchbench.study.plan import AgreementRule


@dataclass
class AnswerBook:
    """The captured answers of each treatment, and how pairs of them agree; each read once."""

    record: Record
    treatments: Sequence[TreatmentResult]
    trials: Mapping[str, Sequence[Trial]]
    rule: AgreementRule
    _answers: dict[str, agreement.Answers | None] = field(default_factory=dict)
    _pairs: dict[tuple[str, ...], agreement.Pair] = field(default_factory=dict)
    _asked: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def trial_of(self, treatment: str, last: bool = False) -> Trial | None:
        """The first (or last) trial of a treatment that answered and is no control.

        An invalid trial too: what makes a trial's times invalid does not touch what was
        returned to it before it was timed.
        """
        own = [t for t in self.trials.get(treatment, []) if t.status == "ok" and not t.control]
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
        answers = self.of(treatment)
        return trial.queries.distinct or (answers.query.size if answers is not None else 0)

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
                require=self.rule.require,
                k=self.rule.k,
                queries=self.queries(x.about),
            )
        return self._pairs[key]

    def queries(self, trial: Trial) -> list[dict[str, Any]]:
        """The query set of a trial, read once."""
        digest = trial.queries.digest
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
            if last is None or first is None or last.trial == first.about.trial:
                continue
            again = agreement.read_answers(self.record, last)
            if again.digest != first.digest:
                compared = agreement.compare(first, again, require="order", k=self.rule.k)
                differ = compared.agreement.queries - compared.agreement.agreeing
                if differ:
                    found.append((treatment.label, f"{differ} of {compared.agreement.queries}"))
        return found


def same_question(a: Trial, b: Trial) -> bool:
    """Whether two trials were asked the same queries over the same documents."""
    return (a.corpus.digest, a.queries.digest) == (b.corpus.digest, b.queries.digest)


def _class(answers: agreement.Answers) -> str:
    """Treatments of one class give the same answers for the same reasons."""
    about = answers.about
    parts = sorted(
        (name, str(level))
        for name, level in about.parameters.items()
        if name in causes.PART_PARAMETERS
    )
    barred = ",".join(map(str, sorted(answers.unsupported)))
    question = f"{about.corpus.digest}/{barred}/{parts}"
    return f"{about.system}\0{answers.digest}\0{about.version}\0{question}"
