"""What roles got done beside the readers of a trial, so that readers beside less are known."""

from __future__ import annotations

import json

from searchbench.analysis.judgement import Worked
from searchbench.analysis.roles import reading
from searchbench.analysis.roles.accepted import of_writer, spans_of, written
from searchbench.record import Record, Trial
from searchbench.record.roles import RoleRun

_NOW_AND_THEN = ("publish", "job")


def of_trial(record: Record, trial: Trial, window: tuple[int, int]) -> tuple[Worked, ...]:
    """Of each role at work but faults, in the window (ns)."""
    one = 1e9 / (window[1] - window[0])
    return tuple(
        Worked(
            run.name, run.does, json.dumps(run.keys, sort_keys=True, default=str), per_s,
            # What is done once begins when the study says, so whether it ended is no chance.
            grain=one if run.does in _NOW_AND_THEN and run.keys.get("every_s") else 0.0,
        )
        for run in trial.beside
        if not run.idle and (per_s := _per_s(record, trial, run, window)) is not None
    )  # fmt: skip


def _per_s(record: Record, trial: Trial, run: RoleRun, window: tuple[int, int]) -> float | None:
    if run.does in _NOW_AND_THEN:
        ended = sum(window[0] <= end < window[1] for _, end in spans_of(record, trial, run))
        return ended * 1e9 / (window[1] - window[0])
    if run.drive is None:
        return None
    if run.does == "write":
        return of_writer(written(record, trial, run), window, run)["accepted_per_s"]
    if run.does == "read":
        read = reading.of_trial(record, trial, run)
        return None if read is None or read.late else read.answered.value
    return None
