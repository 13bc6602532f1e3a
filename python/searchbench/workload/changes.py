"""How many changes a writer's clock asks for, and how many its documents allow.

All of it follows from the tables of a study and the number of documents, so that a study can be
told before anything is read that its writer will lack documents.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.workload.loads import Load, Replay, Window
from searchbench.workload.roles import is_random
from searchbench.workload.shape import Stage, arrivals_ns, stages_of

KINDS = ("insert", "update", "delete")
MOST_CHANGES = 2_000_000
"""In one drive: they are all made beforehand."""
_NS = 1_000_000_000


def span_ns(load: Load) -> tuple[int, int]:
    """The beginning of the window and the end of the drive, in ns, of a window in seconds."""
    begin_ns, end_ns = load.window.bounds_ns(np.empty(0, np.int64))
    return begin_ns, load.stop_ns or end_ns


def due_ns(
    table: Mapping[str, Any], begin_ns: int, stop_ns: int, seed: int = 0, base: Path | None = None
) -> NDArray[np.int64] | None:
    """When the requests of a role are due; None of one that sends as fast as it is answered.

    ``seed``: of random arrivals; ``base``: the directory that a file of times is relative to.
    StudyError where that file is no good.
    """
    if table.get("clients") is not None:
        return None
    if table.get("times") is not None:
        log = Replay((base or Path()) / table["times"], float(table.get("speed") or 1.0))
        due = log.due_ns(Window(whole=True))
        return due[due < stop_ns]
    if table.get("stages") is not None or is_random(table):
        # Numbers of their own: with those of the readers, both would come at the same moments.
        own = random.Random(f"searchbench writes at {seed}").randrange(2**32)
        arrivals: Any = table.get("arrivals") or "constant"
        found = arrivals_ns(in_requests(table, stop_ns), arrivals, own)
        return found[found < stop_ns]
    if table.get("documents_per_s"):
        every_ns = int(table["batch"]) / float(table["documents_per_s"]) * _NS
        first_ns = every_ns / 2
    else:
        every_ns = float(table["every_s"]) * _NS
        after_s = table.get("after_s")
        first_ns = every_ns if after_s is None else begin_ns + float(after_s) * _NS
    count = max(0, int(np.ceil((stop_ns - first_ns) / every_ns)))
    return (first_ns + every_ns * np.arange(count)).astype(np.int64)


def in_requests(table: Mapping[str, Any], stop_ns: int) -> tuple[Stage, ...]:
    """The rates of a writer over a drive that ends at ``stop_ns``, in requests a second."""
    batch = int(table["batch"])
    if table.get("stages") is None:
        rate = float(table["documents_per_s"]) / batch
        return (Stage(stop_ns / _NS, rate, rate),)
    return tuple(Stage(s.seconds, s.first / batch, s.last / batch)
                 for s in stages_of(table["stages"]))  # fmt: skip


def most_due(
    table: Mapping[str, Any], begin_ns: int, stop_ns: int, base: Path | None = None
) -> int | None:
    """How many requests a writer has to send by its clock, and with random arrivals the number
    that is exceeded once in 30,000 drives; None where it has no clock.
    """
    if is_random(table):
        mean = sum(stage.requests for stage in in_requests(table, stop_ns))
        return math.ceil(mean + 4 * math.sqrt(mean)) + 1
    due = due_ns(table, begin_ns, stop_ns, base=base)
    return None if due is None else len(due)


def kept_back(table: Mapping[str, Any], total: int) -> int:
    """How many of ``total`` documents a writer, its defaults put in, has kept back."""
    return int(table.get("documents") or round(float(table.get("share") or 0.0) * total))


def shares(table: Mapping[str, Any]) -> dict[str, float]:
    """The share of each kind of change that a writer makes; they add up to 1."""
    weights = {kind: float(table[kind]) for kind in KINDS}
    whole = sum(weights.values())
    return {kind: weight / whole for kind, weight in weights.items() if weight}


def allowed(table: Mapping[str, Any], spare: int, count: int) -> tuple[int, str]:
    """How many requests its documents allow a writer, and which kind of change sets that limit.

    ``spare``: documents that were kept back; ``count``: that are there. The kind is "" where the
    limit is our own.
    """
    batch, each = int(table["batch"]), shares(table)
    changed = each.get("update", 0.0) + each.get("delete", 0.0)
    room = {"": MOST_CHANGES // batch}
    if "insert" in each:
        room["insert"] = int(spare / each["insert"]) // batch
    if changed:
        room["update or delete"] = int(count / changed) // batch
    kind = min(room, key=lambda name: room[name])
    return room[kind], kind


def lacking(table: Mapping[str, Any], wanted: int | None, spare: int, count: int) -> str:
    """Why a writer has too few documents, with what to do; "" where it has enough.

    ``wanted``: requests that are due by its clock, None where it has none. ``spare``, ``count``: as
    in ``allowed``.
    """
    most, kind = allowed(table, spare, count)
    if wanted == 0:
        return "by its clock the writer has nothing to write in this drive: take a longer window"
    if wanted is not None and wanted > most:
        has = "may have up to" if is_random(table) else "has"
        number = f"{wanted * int(table['batch']):,}"
        changes = f"the writer {has} {number} changes to make by its clock, "
        if not kind:
            return (f"{changes}and {MOST_CHANGES:,} is the most that are made in one drive: write "
                    "less, or take a shorter window")  # fmt: skip
        there, what = (spare, "are kept back") if kind == "insert" else (count, "are there")
        return (
            f"{changes}and of the documents that it may {kind} {there:,} {what}: keep back more "
            "(`documents`, `share`), take a larger corpus, or write less"
        )
    if not most:
        return (
            "there are not enough documents for one request of the writer: keep back more "
            "(`documents`, `share`), or make `batch` smaller"
        )
    return ""
