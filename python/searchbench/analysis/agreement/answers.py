"""The captured answers of a record's treatments, and how pairs of them agree; each read once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from searchbench.analysis.agreement import agreement, every_trial
from searchbench.analysis.judgement import Agreement, TreatmentResult
from searchbench.analysis.trial import driven
from searchbench.record import Record, Trial

Kind = tuple[str, str, str, str]  # system, digest of the answers, version, what may explain them


class AnswerBook:
    """The captured answers of each treatment, and how pairs of them agree; each read once.

    Where the treatments have valid trials, a query agrees only if it does in every block that has
    a valid trial of both. ``loaded``: of queries that were never asked alone, replies under load
    count (as of sweeps, which ask only some alone).
    """

    def __init__(
        self, record: Record, treatments: Sequence[TreatmentResult], *, loaded: bool = False
    ) -> None:
        self.record = record
        self.loaded = loaded
        self._under_load: dict[tuple[str, ...], pa.Table | None] = {}
        self.treatments = treatments
        self.trials = driven.by_treatment(record)
        self.rule = record.plan.judging.agreement
        self._answers: dict[str, agreement.Answers | None] = {}
        self._pairs: dict[tuple[Kind, Kind], agreement.Pair] = {}
        self._asked: dict[str, list[dict[str, Any]]] = {}
        self._varied: dict[str, every_trial.Varied | None] = {}

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
            more = self._more(trial) if trial and self.loaded else None
            found = agreement.read_answers(self.record, trial, more) if trial else None
            self._answers[treatment] = found
        return self._answers[treatment]

    def _more(self, trial: Trial) -> pa.Table | None:
        """What its system answered under load; read once for all of its treatments."""
        own = loaded_of(self.record, trial)
        key = tuple(t.trial for t in own)
        if key not in self._under_load:
            self._under_load[key] = agreement.loaded(self.record, own)
        return self._under_load[key]

    def distinct(self, treatment: str) -> int:
        """How many distinct queries the treatment's query set has."""
        trial = self.trial_of(treatment)
        if trial is None:
            return 0
        answers = self.of(treatment)
        return trial.queries.distinct or (answers.query.size if answers is not None else 0)

    def varied(self, treatment: str) -> every_trial.Varied | None:
        """The answers of all its valid trials; None where there are none."""
        if treatment not in self._varied:
            first, trial = self.of(treatment), self.trial_of(treatment)
            if first is not None and trial is not None and self.loaded:
                first = agreement.read_answers(self.record, trial)  # trials keep replies by chance
            self._varied[treatment] = None if first is None else self._vary(treatment, first)
        return self._varied[treatment]

    def _vary(self, treatment: str, first: agreement.Answers) -> every_trial.Varied:
        used = {*self._used(treatment).values()} - {first.about.trial}
        trials = (t for t in self.trials.get(treatment, []) if t.trial in used)
        own = every_trial.read(self.record, trials, first)
        return every_trial.vary(first, own, require=self.rule.require, k=self.rule.k)

    def _used(self, treatment: str) -> dict[int, str]:
        """By block the valid trial that a comparison uses; none of a method that failed."""
        own = next((t for t in self.treatments if t.treatment == treatment), None)
        return {
            t.block: t.trial
            for t in (own.trials if own and not own.failed else ())
            if t.status == "valid" and not t.control
        }

    def pair(self, a: str, b: str) -> agreement.Pair | None:
        """How two treatments agree in all their blocks; None where documents or queries are not
        the same.
        """
        x, y = self.of(a), self.of(b)
        if x is None or y is None or not same_question(x.about, y.about):
            return None
        key = (self._kind(a, x), self._kind(b, y))
        if key not in self._pairs:
            digest = x.about.queries.digest
            if digest not in self._asked:
                self._asked[digest] = self.record.queries(digest) if digest else []
            rule, queries = self.rule, self._asked[digest]
            pair = agreement.compare(
                x, y, require=rule.require, k=rule.k, queries=queries,
                titles=self.record.titles(x.about.corpus.digest),
            )  # fmt: skip
            self._pairs[key] = self._in_every_block(a, b, pair)
        return self._pairs[key]

    def _in_every_block(self, a: str, b: str, pair: agreement.Pair) -> agreement.Pair:
        x, y = self.varied(a), self.varied(b)
        if x is None or y is None or not self.wavers(a, b):
            return pair
        mine, other = self._used(a), self._used(b)
        sides = [(x.of(mine[k]), y.of(other[k])) for k in sorted(mine.keys() & other.keys())]
        return every_trial.agreeing_in_all(pair, sides, require=self.rule.require, k=self.rule.k)

    def _kind(self, treatment: str, answers: agreement.Answers) -> Kind:
        """As ``_kind``; one whose answers change between its trials is of a kind of its own."""
        system, digest, version, why = _kind(answers)
        known = self.varied(treatment)
        own = treatment if known is not None and known.others else ""
        return system, digest + own, version, why

    def wavers(self, a: str, b: str) -> bool:
        """Whether the answers of either change between its trials."""
        known = (self.varied(a), self.varied(b))
        return any(one is not None and one.others for one in known)

    def otherwise(self, a: str, b: str) -> NDArray[np.int64]:
        """The numbers of the queries that either was asked and that both do not answer alike."""
        x, y, pair = self.of(a), self.of(b), self.pair(a, b)
        if x is None or y is None or pair is None:
            return np.empty(0, np.int64)
        return np.setdiff1d(np.union1d(x.query, y.query), pair.agreeing)

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
            if a[0] != b[0] or (a[1] != b[1] and _unlike(pair.agreement))
        )

    def _labelled(self, kinds: tuple[Kind, Kind], found: Agreement) -> Agreement:
        labels = []
        for kind in kinds:
            answers = [(t, self.of(t.treatment)) for t in self.treatments if t.system == kind[0]]
            known = [(t, x) for t, x in answers if x is not None]
            same = [t.label for t, x in known if self._kind(t.treatment, x) == kind]
            labels.append(kind[0] if len(same) == len(known) else " / ".join(same[:3]))
        return replace(found, label_a=labels[0], label_b=labels[1])

    def unstable(self) -> Iterator[tuple[str, every_trial.Varied]]:
        """The treatments that answered differently in some of their trials, with these answers."""
        for treatment in self.treatments:
            known = self.varied(treatment.treatment)
            if known is not None and known.changed:
                yield treatment.treatment, known


def _unlike(found: Agreement) -> bool:
    """Whether two answer anything otherwise. (Replies under load are kept by chance, so two that
    answer the same may have others on record.)
    """
    return bool(found.causes or found.only_a or found.only_b or found.dropped_a or found.dropped_b)


def loaded_of(record: Record, trial: Trial) -> list[Trial]:
    """The trials whose replies under load tell what the system of ``trial`` answers to what it was
    never asked alone, those of the least load first; none where documents change, or all was asked
    alone.
    """
    own = trial.captured
    if own is None or (trial.queries.distinct or 0) <= (own.distinct or 0):
        return []
    found = [
        t for t in record.trials
        if t.status == "ok" and (t.subject, t.system) == (trial.subject, trial.system)
        and not t.control and same_question(t, trial)
    ]  # fmt: skip
    if any(role.does == "write" and not role.idle for t in found for role in t.beside):
        return []
    # A search begins with clients that ask as fast as they can, to see how fast a system is.
    return sorted(found, key=lambda t: (t.load.kind == "closed", t.load.rate_per_s or 0.0,
                                        t.load.clients or 0))  # fmt: skip


def same_question(a: Trial, b: Trial) -> bool:
    """Whether two trials were asked the same queries over the same documents."""
    return (a.corpus.digest, a.queries.digest) == (b.corpus.digest, b.queries.digest)


def _kind(answers: agreement.Answers) -> Kind:
    """Treatments of one kind give the same answers for the same reasons."""
    about = answers.about
    parts = [(k, str(v)) for k, v in about.parameters.items() if k in agreement.PART_PARAMETERS]
    why = f"{about.corpus.digest}/{sorted(answers.unsupported)}/{sorted(parts)}"
    return about.system, answers.digest, about.version, why
