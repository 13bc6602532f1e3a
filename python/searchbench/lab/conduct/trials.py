"""Which trial comes next: those of a plan, one after another, or as a search decides."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import structs

from searchbench.errors import LabError
from searchbench.record import Record, Writer
from searchbench.study.plan import Level, Plan, Treatment, Trial
from searchbench.workload.load_table import resolve_told

# Sees the record so far; the keys of the next trial's [load] for a subject in a block, None: done.
Decide = Callable[[Record, str, int], Mapping[str, Any] | None]
# The plan so far, and which of its trials is measured next, seen from what is on record then.
Trials = Iterator[tuple[Plan, Trial]]


def planned(plan: Plan, kept: Writer) -> Trials:
    """Those of a plan in its order that are not on record; a failed one is tried once a sitting."""
    return ((plan, trial) for trial in plan.every if not kept.has(trial.id))


def searched(plan: Plan, kept: Writer, decide: Decide) -> Trials:
    """For each subject until ``decide`` has nothing more to ask of it.

    Attached subjects take turns, trial by trial: what the machine does meanwhile meets all of them.
    Of those that are started only one runs at a time, so these are searched one after another.
    The plan begins with a template for each subject; each trial that is decided on is appended to
    it, with a treatment of its own, before it is driven. A search that was interrupted goes on
    where it stopped.
    """
    templates = {t.subject: t for t in plan.treatments}
    together: list[deque[tuple[int, str]]] = []  # each a list of those that take turns
    rng = random.Random(f"searchbench search {plan.seed}")
    for block in range(1, plan.judging.replicates + 1):
        subjects = list(templates)
        if block > 1:
            rng.shuffle(subjects)
        together.append(deque((block, s) for s in subjects if templates[s].attach))
        together += [deque([(block, s)]) for s in subjects if not templates[s].attach]
    tried: set[str] = set()
    for turns in together:
        while turns:
            block, subject = turns.popleft()
            plan = kept.record.plan
            trial = next(
                (
                    t
                    for t in plan.trials
                    if t.block == block
                    and plan.treatment(t.treatment).subject == subject
                    and t.id not in tried
                    and not kept.has(t.id)
                ),
                None,
            )
            if trial is None:
                wanted = decide(kept.record, subject, block)
                if wanted is None:
                    continue
                several = len(templates) > 1
                plan, trial = _grown(plan, templates[subject], block, wanted, several=several)
                kept.grow(plan)
            tried.add(trial.id)
            turns.append((block, subject))
            yield plan, trial


def _grown(
    plan: Plan, template: Treatment, block: int, wanted: Mapping[str, Any], *, several: bool
) -> tuple[Plan, Trial]:
    """The plan with a trial more. ``several``: there are further subjects, so labels name it."""
    load = resolve_told({**template.load, **wanted})
    key = "clients" if load.get("kind") == "closed" else "rate_per_s"
    if key not in load:
        raise LabError(f"a search asks for a load with {key}, and this has none", "drive")
    level: Level = load[key]
    measured = [plan.treatment(t.treatment) for t in plan.trials]
    again = sum(t.load.get(key) == level and t.subject == template.subject for t in measured)
    shown = f"{key}={level:g}" if isinstance(level, float) else f"{key}={level}"
    label = f"{template.subject} {shown}" if several else shown
    treatment = structs.replace(
        template,
        id=f"t{len(plan.treatments) + 1:02d}",
        label=f"{label} again={again + 1}" if again else label,
        levels={**template.levels, f"load.{key}": level},
        settings={**template.settings, "load": load},
    )
    trial = Trial(f"b{block:02d}-{treatment.id}", block, treatment.id)
    return structs.replace(
        plan, treatments=(*plan.treatments, treatment), trials=(*plan.trials, trial)
    ), trial
