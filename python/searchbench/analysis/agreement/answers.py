"""The captured answers of a record's treatments, and how pairs of them agree; each read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from searchbench.analysis.agreement import agreement
from searchbench.analysis.judgement import Agreement, TreatmentResult
from searchbench.analysis.trial import driven
from searchbench.record import Record, Trial

Kind = tuple[str, str, str, str]  # system, digest of the answers, version, what may explain them


class AnswerBook:
    """The captured answers of each treatment, and how pairs of them agree; each read once."""

    def __init__(self, record: Record, treatments: Sequence[TreatmentResult]) -> None:
        self.record = record
        self.treatments = treatments
        self.trials = driven.by_treatment(record)
        self.rule = record.plan.judging.agreement
        self._answers: dict[str, agreement.Answers | None] = {}
        self._pairs: dict[tuple[Kind, Kind], agreement.Pair] = {}
        self._asked: dict[str, list[dict[str, Any]]] = {}

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
            self._answers[treatment] = agreement.read_answers(self.record, trial) if trial else None
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
        key = (_kind(x), _kind(y))
        if key not in self._pairs:
            digest = x.about.queries.digest
            if digest not in self._asked:
                self._asked[digest] = self.record.queries(digest) if digest else []
            rule, queries = self.rule, self._asked[digest]
            self._pairs[key] = agreement.compare(
                x, y, require=rule.require, k=rule.k, queries=queries,
                titles=self.record.titles(x.about.corpus.digest),
            )  # fmt: skip
        return self._pairs[key]

    def of_all(self, treatments: Sequence[str]) -> tuple[Agreement, ...]:
        """How every two of these treatments agree, as ``shown``."""
        for a, b in combinations(treatments, 2):
            self.pair(a, b)
        return self.shown()

    def shown(self) -> tuple[Agreement, ...]:
        """The pairs worth a look: of each two kinds of answer one, named after all that give it.

        Treatments of one system that answer the same are one; two systems are shown even then.
        """
        return tuple(
            self._labelled((a, b), pair.agreement)
            for (a, b), pair in self._pairs.items()
            if a[:2] != b[:2]
        )

    def _labelled(self, kinds: tuple[Kind, Kind], found: Agreement) -> Agreement:
        labels = []
        for kind in kinds:
            answers = [(t, self.of(t.treatment)) for t in self.treatments if t.system == kind[0]]
            known = [(t, x) for t, x in answers if x is not None]
            same = [t.label for t, x in known if _kind(x) == kind]
            labels.append(kind[0] if len(same) == len(known) else " / ".join(same[:3]))
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
            if again.digest == first.digest:
                continue
            compared = agreement.compare(first, again, require="order", k=self.rule.k).agreement
            if compared.differing:
                found.append((treatment.label, f"{compared.differing} of {compared.queries}"))
        return found


def same_question(a: Trial, b: Trial) -> bool:
    """Whether two trials were asked the same queries over the same documents."""
    return (a.corpus.digest, a.queries.digest) == (b.corpus.digest, b.queries.digest)


def _kind(answers: agreement.Answers) -> Kind:
    """Treatments of one kind give the same answers for the same reasons."""
    about = answers.about
    parts = [(k, str(v)) for k, v in about.parameters.items() if k in agreement.PART_PARAMETERS]
    why = f"{about.corpus.digest}/{sorted(answers.unsupported)}/{sorted(parts)}"
    return about.system, answers.digest, about.version, why
