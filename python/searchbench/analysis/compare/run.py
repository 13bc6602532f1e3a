"""A record of two that are compared, judged; its treatments are known by system and levels."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis import judge
from searchbench.analysis.agreement import every_trial
from searchbench.analysis.agreement.agreement import Answers
from searchbench.analysis.compare import builds, by_class, pairs, state
from searchbench.analysis.compare.same_work import SameWork
from searchbench.analysis.judgement import RecordLine, TreatmentResult, TrialResult
from searchbench.analysis.sweep.by_class import of_class
from searchbench.analysis.trial import driven
from searchbench.analysis.trial.classes import Classes
from searchbench.analysis.trial.measured import Samples
from searchbench.record import Record, Trial
from searchbench.record.trial import Load

KEPT_ROWS = 2_000_000  # measured samples that a run keeps in memory; there may be many runs

Key = tuple[str, str]


class Run:
    """A record, judged. ``members``: the numbers of the queries that are looked at, where they are
    those of one class (``only``); None: all.
    """

    members: NDArray[np.int64] | None = None

    def __init__(self, record: Record) -> None:
        self.record, self.judged = record, judge.judge(record)
        judged, self.metric = self.judged, self.judged.metric
        self.samples, self.loads = Samples(record, KEPT_ROWS), driven.loads(record)
        self.built = builds.of(record)
        self.entire = self.by_key = {key_of(t): t for t in judged.treatments}
        self.states = {key: state.of(t) for key, t in self.by_key.items()}
        self.trials = {t.trial: t for t in record.trials}
        metrics = sorted({c for t in judged.treatments for c in t.figures})
        self.floors = pairs.noise_floors(judged.treatments, metrics)
        self._queries: dict[str, list[dict[str, Any]]] = {}
        self._answers: dict[Key, list[Answers]] = {}
        self.works: dict[tuple[Path, str, str], SameWork] = {}  # with another record, by subjects

    @property
    def aborted(self) -> bool:
        """Whether it was ended because a promise was broken, as asked for: what is planned and not
        on record was left out for that. Else somebody ended it, and nothing is known of that.
        """
        cut = any(t.drive is not None and t.drive.cut_short for t in self.record.trials)
        return bool(self.record.plan.judging.abort) and cut

    @cached_property
    def classes(self) -> Classes | None:
        """The classes of the one list that all treatments were asked; None where there is none."""
        return by_class.of_record(self.record, self.judged.treatments)

    def only(self, name: str) -> Run:
        """The same as if nothing but one of its ``classes`` had been asked.

        What is of whole trials stays: states, loads, samples, answers, and the treatments as they
        were (``entire``).
        """
        one, judged = copy.copy(self), self.judged
        assert self.classes is not None
        one.members = self.classes.members(name)
        one.by_key = {key: _only(t, name) for key, t in self.by_key.items()}
        steps = (of_class(step, name) for step in judged.steps)
        one.judged = replace(judged, steps=tuple(s for s in steps if s is not None))
        one.floors = pairs.noise_floors([*one.by_key.values()], [*self.floors])
        return one

    def key_of(self, line: RecordLine) -> Key | None:
        """The treatment that a line is about; of a sweep of one subject whatever that is called."""
        system, levels = str(line.levels.get("system")), levels_of(line.levels)
        if (system, levels) in self.by_key:
            return system, levels
        if self.judged.measure != "sweep" or len({s.subject for s in self.judged.steps}) > 1:
            return None
        return next((key for key in self.by_key if key[1] == levels), None)

    def first_trial(self, key: Key) -> Trial | None:
        """The first valid trial that is no control; None of a method that failed."""
        return next((self.trials[t.trial] for t in self._used(key)), None)

    def queries(self, digest: str) -> list[dict[str, Any]]:
        """The rows of a query set; read once."""
        if digest not in self._queries:
            self._queries[digest] = self.record.queries(digest) if digest else []
        return self._queries[digest]

    def answers(self, key: Key) -> list[Answers]:
        """Each kind of answers that its valid trials gave when asked alone; read once."""
        if key not in self._answers:
            used = (self.trials[t.trial] for t in self._used(key))
            found = every_trial.read(self.record, used)
            self._answers[key] = every_trial.distinct(found.values())
        return self._answers[key]

    def load(self, key: Key) -> Load:
        """The load of a treatment."""
        return self.loads[self.by_key[key].treatment]

    def valid(self, key: Key) -> dict[int, TrialResult]:
        """By block, the valid trials that are no controls; none of a method that failed."""
        return {t.block: t for t in self._used(key)}

    def _used(self, key: Key) -> list[TrialResult]:
        of = self.by_key[key]
        return [] if of.failed else [t for t in of.trials if t.counts]

    def builds(self, key: Key, side: int) -> dict[int, str]:
        """By block, the build of its index, named so that no other record has the same name.

        One that the record did not make itself (an attached system's) is that of its ``side``.
        """
        own = self.built.get(self.by_key[key].treatment, {}) if key in self.by_key else {}
        where = {build: str(self.record.path) if build in self.trials else str(side)
                 for build in own.values()}  # fmt: skip
        return {block: f"{where[build]} {build}" for block, build in own.items()}


def _only(t: TreatmentResult, name: str) -> TreatmentResult:
    seen = next((one for one in t.classes if one.name == name), None)
    return replace(by_class.of_treatment(t, name), figures=seen.figures if seen else {})


def key_of(treatment: TreatmentResult) -> Key:
    """What a treatment is known by in any record."""
    return treatment.system, levels_of(treatment.levels)


def levels_of(levels: Mapping[str, Any]) -> str:
    """Levels as a key, without the system: a record of one system does not have it as a level."""
    rest = {path: level for path, level in levels.items() if path != "system"}
    return json.dumps(rest, sort_keys=True, default=str)
