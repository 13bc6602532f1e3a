"""A load with several rates, stage by stage: what was offered, what came of it.

Only the stage that is the window is judged; these figures show the others beside it. A request
belongs to the stage in which it was due; what is answered a second counts where the answer came, as
a queue of one stage is answered in the next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Curve, Shaped, StageSeen
from searchbench.analysis.trial import overload
from searchbench.analysis.trial.measured import NEVER, Trace
from searchbench.record import Trial
from searchbench.workload.shape import Shape, Stage, shape_of

Floats = NDArray[np.float64]
_BINS = 80
_FEWEST = 20  # requests answered in a bin of the curves
_FEWEST_OF_P99 = 100  # and in a stage
_DRAWN = 0.95


def of_trial(trial: Trial, trace: Trace, promises: Sequence[str] = ()) -> Shaped | None:
    """Its stages and its times over all of them; None of a load with one rate.

    ``promises``: of the study; the first says which answers of an overload come in time.
    """
    load = trial.load
    if load.stages is None:
        return None
    shape = shape_of(load.stages, load.judged_stage, load.capacity_per_s)
    answered = (trace.outcome == 0) & (trace.done != NEVER)
    due_s, response_s = trace.due / 1e9, (trace.done - trace.due) / 1e9
    stages = tuple(
        _stage(stage, start, at == shape.judged, due_s, response_s, answered)
        for at, (stage, start) in enumerate(zip(shape.stages, shape.starts, strict=False))
    )
    edges = np.linspace(0, shape.starts[-1], _BINS + 1)
    places = np.searchsorted(edges, due_s[answered], side="right") - 1
    in_bins = [np.sort(response_s[answered][places == at]) for at in range(_BINS)]
    full = [at for at, found in enumerate(in_bins) if len(found) >= _FEWEST]
    middles = tuple(float(edges[at] + edges[at + 1]) / 2 for at in full)
    middle, most = (
        tuple(float(np.quantile(in_bins[at], quantile)) for at in full)
        for quantile in (0.5, _DRAWN)
    )
    overloads, in_time = overload.of_trial(shape, trace, load.capacity_per_s, promises, edges)
    return Shaped(
        stages,
        median=Curve("median", middles, middle),
        tail=Curve("95 %", middles, most),
        offered=_offered(shape),
        overloads=overloads,
        in_time=in_time,
    )


def within(trial: Trial, trace: Trace) -> Trace:
    """The trace of the stage that is judged, where there are others: their rates are not its."""
    if trial.load.stages is None:
        return trace
    kept = trace.measured()
    columns = ("query", "outcome", "due", "free", "sent", "done")
    return replace(trace, **{name: getattr(trace, name)[kept] for name in columns})


def _stage(
    stage: Stage,
    start: float,
    judged: bool,
    due_s: np.ndarray[tuple[int], np.dtype[np.float64]],
    response_s: np.ndarray[tuple[int], np.dtype[np.float64]],
    answered: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> StageSeen:
    there = (due_s >= start) & (due_s < start + stage.seconds)
    came_s = (due_s + response_s)[answered]
    # One that was not answered well is later than any: it is in no time of those that were.
    times = np.where(answered, response_s, math.inf)[there]
    return StageSeen(
        start_s=start,
        seconds=stage.seconds,
        first_per_s=stage.first,
        last_per_s=stage.last,
        judged=judged,
        requests=int(there.sum()),
        answered=int(np.count_nonzero(there & answered)),
        p50_s=_quantile(times, 0.5, 1),
        p99_s=_quantile(times, 0.99, _FEWEST_OF_P99),
        came=int(np.count_nonzero((came_s >= start) & (came_s < start + stage.seconds))),
    )


def _quantile(times: Floats, q: float, fewest: int) -> float | None:
    """By nearest rank, as interpolation between infinite ones has no value."""
    if len(times) < fewest:
        return None
    return float(np.quantile(times, q, method="inverted_cdf"))


def _offered(shape: Shape) -> Curve:
    """The rate over time, a corner at each end of each stage."""
    x, y = [], []
    for stage, start in zip(shape.stages, shape.starts, strict=False):
        x += [start, start + stage.seconds]
        y += [stage.first, stage.last]
    return Curve("offered", tuple(x), tuple(y))
