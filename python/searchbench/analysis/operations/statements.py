"""Where the time of an operation goes: what each of its statements takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.operations.model import StatementTime
from searchbench.analysis.stats.intervals import geometric_estimate
from searchbench.record import Record, Trial
from searchbench.record.trial import OperationPart

BETWEEN = "between the statements"
_LEAST_S = 1e-9


def statement_times(record: Record, trials: Sequence[Trial]) -> tuple[StatementTime, ...]:
    """Of each statement, and of what lies between them, over the trials of a treatment.

    Of each trial, by statement, the median over the operations of its window that were answered
    well; over trials their geometric mean. Nothing where the instants are not on record.
    """
    parts: Sequence[OperationPart] = ()
    each: list[NDArray[np.float64]] = []
    for trial in trials:
        found = _of_trial(record, trial)
        if found is not None and trial.operation is not None:
            parts = trial.operation.parts
            each.append(found)
    if not each:
        return ()
    named = [
        *((part.line, part.text, part.statements) for part in parts),
        *([(0, BETWEEN, 0)] if sum(part.exchanges for part in parts) > 1 else []),
    ]
    whole = np.array([seconds.sum() for seconds in each])
    return tuple(
        StatementTime(
            line,
            text,
            statements,
            geometric_estimate([max(float(seconds[at]), _LEAST_S) for seconds in each], "s"),
            float(np.mean([seconds[at] for seconds in each] / whole)),
        )
        for at, (line, text, statements) in enumerate(named)
    )


def _of_trial(record: Record, trial: Trial) -> NDArray[np.float64] | None:
    """Seconds of each statement, in their order, and of what is between; None: not on record."""
    operation = trial.operation
    if operation is None or not operation.parts or (window := trial.window) is None:
        return None
    table = record.statements(trial.trial)
    if not table.num_rows:
        return None
    samples = record.samples(trial.trial, ["outcome", "due", "sent", "done"])
    outcome = samples.column("outcome").to_numpy()
    due, sent, done = (_instants(samples, name) for name in ("due", "sent", "done"))
    well = (outcome == 0) & (due >= window.start) & (due < window.end) & (done >= 0)
    if not well.any():
        return None
    ends = np.cumsum([part.exchanges for part in operation.parts])
    sample, exchange = (table.column(name).to_numpy() for name in ("sample", "exchange"))
    took = _instants(table, "done") - _instants(table, "sent")
    part = np.searchsorted(ends, exchange, side="right")
    known = part < len(ends)
    place = sample[known].astype(np.int64) * len(ends) + part[known]
    spent = np.bincount(place, took[known], len(samples) * len(ends)).reshape(-1, len(ends))
    between = (done - sent) - spent.sum(axis=1)
    own = np.column_stack([spent, between])[well]
    return np.asarray(np.median(own, axis=0) / 1e9, np.float64)


def _instants(table: object, name: str) -> NDArray[np.int64]:
    column = table.column(name).fill_null(-1)  # type: ignore[attr-defined]
    return np.asarray(column.to_numpy(), np.int64)
