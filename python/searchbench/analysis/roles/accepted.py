"""What a writer, a publisher or a job got done in one trial."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.trial.latency import minimum_samples, rank
from searchbench.analysis.trial.pooled import FOREVER_NS
from searchbench.record import Record, Trial
from searchbench.record.roles import RoleRun

Ints = NDArray[np.int64]
FATAL = ("refused", "reset", "timed_out", "truncated")


@dataclass(frozen=True)
class Written:
    """A writer's requests in a trial: those that were due, in order. Instants in ns, -1: never.

    ``well``: the engine took all of its documents; ``doubt``: nobody knows whether it did.
    ``unsent``: it was due, and had not been sent when the drive ended.
    """

    request: Ints
    due: Ints
    free: Ints
    sent: Ints
    done: Ints
    well: NDArray[np.bool_]
    doubt: NDArray[np.bool_]
    fatal: NDArray[np.bool_]
    documents: Ints
    taken: Ints
    kind: NDArray[np.object_]
    marker: NDArray[np.object_]
    error: NDArray[np.object_]

    @property
    def unsent(self) -> NDArray[np.bool_]:
        """By request."""
        found: NDArray[np.bool_] = (self.sent < 0) & ~self.fatal
        return found


def written(record: Record, trial: Trial, run: RoleRun) -> Written:
    """What a writer sent, joined with what the engine said of it."""
    samples = record.of_role(trial.trial, run.name)
    rows = record.writes(trial.trial, run.name)
    columns = {
        name: samples[name].cast("int64").fill_null(-1).to_numpy()
        for name in ("query", "due", "free", "sent", "done", "outcome")
    }
    at = columns["query"]
    of = {name: rows[name].to_numpy(zero_copy_only=False)[at] for name in rows.column_names}
    names = trial.outcomes
    ok = np.isin(columns["outcome"], [i for i, name in enumerate(names) if name == "ok"])
    fatal = np.isin(columns["outcome"], [i for i, name in enumerate(names) if name in FATAL])
    answered = columns["done"] >= 0
    whole = ok & rows["error"].is_null().to_numpy()[at]
    documents = of["documents"].astype(np.int64)
    taken = np.where(whole, documents - of["refused"].astype(np.int64), 0)
    doubt = (columns["sent"] >= 0) & ~whole & (fatal | ~answered | ~ok)
    return Written(
        at, columns["due"], columns["free"], columns["sent"], columns["done"],
        whole & (taken == documents), doubt, fatal, documents, taken,
        of["kind"], of["marker"], of["error"],
    )  # fmt: skip


def of_writer(made: Written, window: tuple[int, int], run: RoleRun) -> dict[str, float]:
    """Its figures in the window of one trial."""
    start, end = window
    seconds = (end - start) / 1e9
    due = (made.due >= start) & (made.due < end)
    done = (made.done >= start) & (made.done < end)
    found = {"accepted_per_s": float(made.taken[done].sum()) / seconds}
    clocked = run.keys.get("clients") is None
    if clocked:
        found["offered_per_s"] = float(made.documents[due].sum()) / seconds
    # One that was not taken took forever; without these, a system that takes few would look fast.
    # One that was due and never sent was not served, but whoever wanted it waits.
    begun = due & (made.sent >= 0)
    found |= _times("service", np.where(made.well, made.done - made.sent, FOREVER_NS)[begun])
    if clocked:
        found |= _times("response", np.where(made.well, made.done - made.due, FOREVER_NS)[due])
        if due.any():
            found["behind_s"] = behind_s(made.due[due], made.sent[due], made.unsent[due], end)
    return found


def behind_s(due: Ints, sent: Ints, unsent: NDArray[np.bool_], end_ns: int) -> float:
    """How late the last of these was begun by its clock (-1: it was not, as where the connection
    was refused), or how long the first that waited to the end, ``unsent``, had been due; 0 where
    there are none.
    """
    begun, waits = sent >= 0, [0]
    if begun.any():
        last = np.argmax(due[begun])
        waits.append(int(sent[begun][last] - due[begun][last]))
    if unsent.any():
        waits.append(end_ns - int(due[unsent].min()))
    return max(waits) / 1e9


def of_times(record: Record, trial: Trial, run: RoleRun) -> dict[str, float]:
    """How often a publisher or a job was done, and how long it took."""
    spans = spans_of(record, trial, run)
    if not spans:
        return {}
    took = np.array([end - start for start, end in spans]) / 1e9
    return {"times": float(len(took)), "took_p50": float(np.median(took)),
            "took_max": float(took.max())}  # fmt: skip


def spans_of(record: Record, trial: Trial, run: RoleRun) -> list[tuple[int, int]]:
    """When it was at work: from the first byte sent to the answer, in ns."""
    if run.spans:
        return list(run.spans)
    if run.start is not None:
        return [(run.start, run.end if run.end is not None else run.start)]
    if run.drive is None:
        return []
    samples = record.of_role(trial.trial, run.name)
    sent, done = (samples[name].fill_null(-1).to_numpy() for name in ("sent", "done"))
    return [(int(a), int(b)) for a, b in zip(sent, done, strict=True) if a >= 0 and b >= 0]


def _times(name: str, took_ns: Ints) -> dict[str, float]:
    quantiles: Mapping[str, float] = {"p50": 0.5, "p99": 0.99}
    ordered = np.sort(took_ns)
    found = {
        f"{name}_{label}": int(ordered[rank(ordered.size, q)])
        for label, q in quantiles.items()
        if ordered.size >= minimum_samples(q)
    }
    return {key: math.inf if ns == FOREVER_NS else ns / 1e9 for key, ns in found.items()}
