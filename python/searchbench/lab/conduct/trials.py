"""Which trial comes next: those of a plan, one after another, or as a search decides."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import structs

from searchbench.errors import LabError
from searchbench.record import Record, Writer
from searchbench.study.plan import Level, Plan, Treatment, Trial
from searchbench.workload.load_table import resolve_told

# Sees the record so far; the keys of the next trial's [load] for a subject in a block, None: done.
Decide = Callable[[Record, str, int], Mapping[str, Any] | None]


class Trials(Protocol):
    """Decides what is measured next, from what is on record."""

    plan: Plan

    def next(self, kept: Writer) -> Trial | None:
        """The next trial; None where all is done."""


class Planned:
    """The trials of a plan in its order, without those that are on record."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._rest = iter(plan.trials)

    def next(self, kept: Writer) -> Trial | None:
        """The next that is not on record; a failed one is tried again, once a sitting."""
        return next((trial for trial in self._rest if not kept.has(trial.id)), None)


class Search:
    """One subject after another, each until ``decide`` has nothing more to ask of it.

    The plan begins with a template for each subject; each trial that is decided on is appended to
    it, with a treatment of its own, before it is driven. A search that was interrupted goes on
    where it stopped.
    """

    def __init__(self, plan: Plan, decide: Decide) -> None:
        self.plan = plan
        self._decide = decide
        self._templates = {t.subject: t for t in plan.treatments}
        self._turns: list[tuple[int, str]] = []
        rng = random.Random(f"searchbench search {plan.seed}")
        for block in range(1, plan.judging.replicates + 1):
            subjects = list(self._templates)
            if block > 1:
                rng.shuffle(subjects)
            self._turns += [(block, subject) for subject in subjects]
        self._tried: set[str] = set()

    def next(self, kept: Writer) -> Trial | None:
        """What is planned and not on record, else what the record so far leads to."""
        self.plan = kept.record.plan
        while self._turns:
            block, subject = self._turns[0]
            for trial in self.plan.trials:
                own = self.plan.treatment(trial.treatment).subject == subject
                if own and trial.block == block and not self._settled(kept, trial):
                    self._tried.add(trial.id)
                    return trial
            wanted = self._decide(kept.record, subject, block)
            if wanted is not None:
                return self._append(kept, self._templates[subject], block, wanted)
            self._turns.pop(0)
        return None

    def _settled(self, kept: Writer, trial: Trial) -> bool:
        return trial.id in self._tried or kept.has(trial.id)

    def _append(
        self, kept: Writer, template: Treatment, block: int, wanted: Mapping[str, Any]
    ) -> Trial:
        number = len(self.plan.treatments) + 1
        load = resolve_told({**template.load, **wanted})
        key = "clients" if load.get("kind") == "closed" else "rate_per_s"
        if key not in load:
            raise LabError(f"a search asks for a load with {key}, and this has none", "drive")
        level: Level = load[key]
        again = sum(
            self.plan.treatment(t.treatment).load.get(key) == level
            and self.plan.treatment(t.treatment).subject == template.subject
            for t in self.plan.trials
        )
        levels = {**template.levels, f"load.{key}": level}
        several = len(self._templates) > 1
        shown = f"{key}={level:g}" if isinstance(level, float) else f"{key}={level}"
        label = f"{template.subject} {shown}" if several else shown
        treatment = structs.replace(
            template,
            id=f"t{number:02d}",
            label=f"{label} again={again + 1}" if again else label,
            levels=levels,
            settings={**template.settings, "load": load},
        )
        trial = Trial(f"b{block:02d}-{treatment.id}", block, treatment.id)
        self.plan = structs.replace(
            self.plan,
            treatments=(*self.plan.treatments, treatment),
            trials=(*self.plan.trials, trial),
        )
        kept.grow(self.plan)
        self._tried.add(trial.id)
        return trial
