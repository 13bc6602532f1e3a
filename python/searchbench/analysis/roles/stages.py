"""A writer whose rate changes: what it was asked for and what was acknowledged, stage by stage,
and what the readers met meanwhile.

A request of the writer belongs to the stage in which it was due, and so does one of the readers.
What was acknowledged a second counts where the answer came: it may be of a stage before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Curve
from searchbench.analysis.roles.accepted import Ints, Written, behind_s, written
from searchbench.analysis.roles.model import WriterStage, WrittenOver
from searchbench.analysis.trial.latency import minimum_samples
from searchbench.analysis.trial.measured import NEVER, Trace
from searchbench.record import Record, Trial
from searchbench.record.roles import RoleRun
from searchbench.workload.shape import stages_of, starts_of

Floats = NDArray[np.float64]

_BINS = 40
_ENDED = 0.1  # of the drive: a file of times that ends so long before it is said to


@dataclass(frozen=True, slots=True)
class Readers:
    """When the readers' requests were due, and how long each took in ns: forever, unless it was
    answered well. Without these a stage in which they failed would look fast.
    """

    due: Ints
    took: Floats


def readers(trace: Trace) -> Readers:
    """Of all requests of a trial."""
    well = (trace.outcome == 0) & (trace.done != NEVER)
    return Readers(trace.due, np.where(well, trace.done - trace.due, np.inf))


def of_trial(run: RoleRun, made: Written, beside: Readers) -> tuple[WriterStage, ...]:
    """The stages of a writer in one trial; none of a writer at one rate."""
    if run.keys.get("stages") is None:
        return ()
    stages = stages_of(run.keys["stages"])
    edges = np.rint(np.array(starts_of(stages)) * 1e9).astype(np.int64)
    found = []
    for at, stage in enumerate(stages):
        own = (made.due >= edges[at]) & (made.due < edges[at + 1])
        came = (made.done >= edges[at]) & (made.done < edges[at + 1])
        read = (beside.due >= edges[at]) & (beside.due < edges[at + 1])
        found.append(WriterStage(
            start_s=edges[at] / 1e9,
            seconds=stage.seconds,
            first_per_s=stage.first,
            last_per_s=stage.last,
            offered=int(made.documents[own].sum()),
            acknowledged=int(made.taken[came].sum()),
            service_p50_s=_quantile((made.done - made.sent)[own & made.well], 0.5),
            behind_s=behind_s(made.due[own], made.sent[own], made.unsent[own], edges[-1])
            if own.any() else None,
            readers_p50_s=_quantile(beside.took[read], 0.5),
            readers_p99_s=_quantile(beside.took[read], 0.99),
        ))  # fmt: skip
    return tuple(found)


def together(trials: Sequence[tuple[WriterStage, ...]]) -> tuple[WriterStage, ...]:
    """The middle one of all trials of each figure of each stage."""
    if not trials:
        return ()
    names = ("service_p50_s", "behind_s", "readers_p50_s", "readers_p99_s")
    found = []
    for each in zip(*trials, strict=True):
        middle = {}
        for name in names:
            values = [v for stage in each if (v := getattr(stage, name)) is not None]
            middle[name] = median(values) if len(values) == len(each) else None
        counts = {name: median(getattr(stage, name) for stage in each)
                  for name in ("offered", "acknowledged")}  # fmt: skip
        found.append(replace(each[0], **middle, **counts))
    return tuple(found)


def over_time(record: Record, trial: Trial, end_ns: int) -> WrittenOver | None:
    """Documents a second that were due and that were acknowledged, over a drive; None where no
    writer's rate changes.
    """
    for run in trial.beside:
        changes = any(run.keys.get(key) is not None for key in ("stages", "times"))
        if run.does != "write" or run.drive is None or not changes:
            continue
        made = written(record, trial, run)
        edges = np.linspace(0, max(1, end_ns), _BINS + 1)
        acknowledged = _rates(made.done, made.taken, edges, "acknowledged")
        offered = _rates(made.due, made.documents, edges, "offered")
        if run.keys.get("stages") is not None:
            stages = stages_of(run.keys["stages"])
            starts = starts_of(stages)
            x = [v for at in range(len(stages)) for v in starts[at : at + 2]]
            y = [rate for stage in stages for rate in (stage.first, stage.last)]
            offered = Curve("offered", tuple(x), tuple(y))
        last_ns = int(made.due.max(initial=0))
        ended = run.keys.get("times") is not None and last_ns < (1 - _ENDED) * end_ns
        return WrittenOver(offered, acknowledged, last_ns / 1e9 if ended else None)
    return None


def _rates(at: Ints, documents: Ints, edges: np.ndarray, name: str) -> Curve:
    counts, _ = np.histogram(at[at >= 0], edges, weights=documents[at >= 0])
    seconds = np.diff(edges) / 1e9
    middles = (edges[1:] + edges[:-1]) / 2e9
    return Curve(name, tuple(middles.tolist()), tuple((counts / seconds).tolist()))


def _quantile(took_ns: Ints | Floats, quantile: float) -> float | None:
    """In seconds; None of too few, or where it is one that took forever."""
    if len(took_ns) < minimum_samples(quantile):
        return None
    # "higher": between a time and forever there is nothing to interpolate.
    found = float(np.quantile(took_ns, quantile, method="higher")) / 1e9
    return found if np.isfinite(found) else None
