"""What is on record: how much of a plan, and what makes a trial invalid as soon as it is there.

Said to a person before and while measuring; nothing that is measured rests on it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from searchbench.errors import RecordError
from searchbench.record.io import check_same_study, has_trials, open_record

if TYPE_CHECKING:
    from searchbench.analysis.judgement import Finding
    from searchbench.record import Record, Trial
    from searchbench.study import plan as planned

_REFUSED = {"errors", "no answers"}  # findings that the server's own words may explain
_MOST_BYTES = 200_000_000  # of samples; to judge more takes seconds and memory between two trials


@dataclass(frozen=True)
class Standing:
    """How far a plan is carried out. A failed trial counts as still to be driven.

    ``kept``: trials on record, ``since``: when the last of them ended. ``left``: those of the plan
    still to be driven. ``goes_on``: a search has more to ask than the plan has so far.
    """

    kept: int
    since: str
    left: tuple[planned.Trial, ...]
    goes_on: bool = False

    @property
    def whole(self) -> bool:
        """Whether nothing is left to be driven."""
        return not self.left and not self.goes_on


def standing(plan: planned.Plan, place: Path, again: Collection[str] = ()) -> Standing | None:
    """What the record at ``place`` has of the plan; None where it has nothing. ``again``: trials
    that are to be measured once more.

    RecordError where the record is of another study.
    """
    if not has_trials(place):
        return None
    record = open_record(place)
    check_same_study(record, plan)
    there = (*record.trials, *record.traced)
    ended = {t.trial: t.ended for t in there if t.status == "ok" and t.trial not in again}
    if not ended:
        return None
    left = tuple(t for t in record.plan.every if t.id not in ended)
    return Standing(len(ended), _minute(max(ended.values())), left, _goes_on(plan, record))


def _goes_on(plan: planned.Plan, record: Record) -> bool:
    if plan.judging.measure != "capacity":
        return False
    from searchbench.analysis.capacity.search import next_load

    blocks = range(1, plan.judging.replicates + 1)
    subjects = {t.subject for t in plan.treatments}
    return any(next_load(record, s, b) is not None for b in blocks for s in subjects)


def _minute(instant: str) -> str:
    """An instant of the record as this machine's clock shows it."""
    try:
        return f"{datetime.fromisoformat(instant).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return "an unknown time"


def spoilt(place: Path) -> tuple[str, ...]:
    """The trials of the record at ``place`` that are invalid for nothing but what others on the
    machine did.

    RecordError of a sweep, whose steps are driven one after another on one start, and of a search,
    which asks again by itself.
    """
    from searchbench.analysis.trial import validity

    if not has_trials(place):
        return ()
    record = open_record(place)
    if record.plan.judging.measure != "trials":
        raise RecordError(
            f"{place}: --again is for studies of trials. The steps of a sweep are driven one after "
            "another on one start, and a capacity search asks again by itself; to measure these "
            "once more, name another --record"
        )
    kept = (trial for trial in record.trials if trial.status == "ok")
    return tuple(t.trial for t in kept if validity.spoilt(_findings(record, t)))


def invalid(record: Record, trial: Trial) -> str:
    """What makes a trial invalid by the judge's audit, in short; "" if nothing does.

    "" too where it cannot be judged now: at the end it is judged again, and an error is raised.
    """
    try:
        return _invalid(record, trial)
    except Exception:  # a remark never ends a run
        return ""


def _invalid(record: Record, trial: Trial) -> str:
    from searchbench.analysis.capacity.search import is_opening_loop
    from searchbench.analysis.trial.validity import server_said

    measure = record.plan.judging.measure
    if trial.status != "ok" or (measure == "capacity" and is_opening_loop(trial)):
        return ""
    if record.samples_path(trial.trial).stat().st_size > _MOST_BYTES:
        return ""
    bad = [f for f in _findings(record, trial) if f.severity == "invalid"]
    said = [f"{f.kind}: {_first(f.number)}".removesuffix(": ") for f in bad]
    words = server_said(trial, trial.said).strip() if _REFUSED & {f.kind for f in bad} else ""
    return "; ".join([*said, *([words] if words else [])])


def _findings(record: Record, trial: Trial) -> tuple[Finding, ...]:
    from searchbench.analysis.trial import driven, replicates
    from searchbench.analysis.trial.measured import Samples

    trials = record.plan.judging.measure == "trials"
    subject = None if trials else driven.subjects(record)[trial.treatment]
    judged = replicates.judge_trial(record, trial, Samples(record), subject=subject)
    return judged.result.findings


def _first(number: str) -> str:
    """The number itself, without what explains it."""
    return re.split(r"[,;:] | \(", number)[0]
