"""What of a plan was driven: the trials of each treatment, its load, and whose step it is."""

from __future__ import annotations

import msgspec

from searchbench.errors import RecordError
from searchbench.record import Record, Trial
from searchbench.record.trial import Load
from searchbench.study.plan import Treatment


def by_treatment(record: Record) -> dict[str, list[Trial]]:
    """The trials on record by treatment, in the order of the plan."""
    found: dict[str, list[Trial]] = {}
    for trial in record.trials:
        found.setdefault(trial.treatment, []).append(trial)
    return found


def loads(record: Record) -> dict[str, Load]:
    """The load of each treatment, as it was driven; of one that was not, as it is planned.

    RecordError where the plan's table is not a load.
    """
    trials = by_treatment(record)
    return {
        t.id: trials[t.id][0].load if t.id in trials else _load(t) for t in record.plan.treatments
    }


def _load(treatment: Treatment) -> Load:
    known = {key: treatment.load[key] for key in Load.__struct_fields__ if key in treatment.load}
    try:
        return msgspec.convert(known, Load)
    except msgspec.ValidationError as error:
        raise RecordError(f"the plan's load of {treatment.id} is damaged: {error}") from error


def subjects(record: Record) -> dict[str, str]:
    """By treatment, what its configuration is called without the step of its load."""
    return {t.id: t.subject or t.system for t in record.plan.treatments}
