"""Attached systems are asked before anything is driven: one that is down is one sentence."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path

from searchbench.engines import engine
from searchbench.errors import LabError
from searchbench.lab.conduct.openings import Openings
from searchbench.lab.system.attach import Attached, knock
from searchbench.record import open_record
from searchbench.study.plan import Plan, Treatment


def ask_attached(treatments: Iterable[Treatment], openings: Openings) -> None:
    """Ask each attached system once; LabError with a sentence for each that cannot be asked.

    One that verbatim requests go to is asked by them, later; here it has to take a connection.
    """
    several = {(t.system, t.attach): t for t in treatments if t.attach}
    wrong = [found for t in several.values() if (found := _wrong(t, openings))]
    if wrong:
        raise LabError("; ".join(wrong), "deploy")


def _wrong(treatment: Treatment, openings: Openings) -> str:
    try:
        target = openings.target(treatment)
        assert target is not None
        if not treatment.requests:
            named = engine(treatment.engine)
            with tempfile.TemporaryDirectory(prefix="searchbench-ask-") as run:
                Attached(named, treatment.parameters, Path(run), target).__enter__().stop()
        knock(target)
    except LabError as error:
        return str(error)
    return ""


def left_of(plan: Plan, path: Path, again: Collection[str] = ()) -> list[Treatment]:
    """The treatments that still have a trial to be driven, by the record at ``path``. ``again``:
    trials that are to be measured once more.
    """
    if plan.judging.measure == "capacity" or not (path / "record.json").is_file():
        return list(plan.treatments)
    record = open_record(path)
    there = [*record.trials, *record.traced]
    kept = {trial.trial for trial in there if trial.status == "ok"} - {*again}
    left = {trial.treatment for trial in plan.every if trial.id not in kept}
    return [treatment for treatment in plan.treatments if treatment.id in left]
