"""When the requests of a role that reads are due, and how its queries are sent.

Its clock is that of a writer, in requests: a rate, stages, a file of times, every so many seconds;
or it replays the times of its own log.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.workload import changes
from searchbench.workload.loads import ClosedLoop, Load, OpenLoop, Replay, Window

_NS = 1_000_000_000


def replays_log(table: Mapping[str, Any]) -> bool:
    """Does a role, its defaults put in, go by the times of its own log?"""
    paces = ("clients", "rate_per_s", "every_s", "stages", "times")
    return all(table.get(key) is None for key in paces)


def seed_of(name: str, seed: int) -> int:
    """The seed of a role: with that of the readers, both would come at the same instants, and ask
    the same queries in the same order.
    """
    return random.Random(f"searchbench reads as {name} at {seed}").randrange(2**32)


def due_ns(
    table: Mapping[str, Any],
    begin_ns: int,
    stop_ns: int,
    seed: int,
    base: Path | None = None,
    logged_s: NDArray[np.float64] | None = None,
) -> NDArray[np.int64] | None:
    """When its requests are due; None of clients, who ask as fast as they are answered.

    ``seed``: its own. ``logged_s``: the times of its log, where it replays them. StudyError where
    a file of times is no good, or a log has none.
    """
    if replays_log(table):
        due = Replay(None, float(table.get("speed") or 1.0)).due_ns(Window(whole=True), logged_s)
        return due[due < stop_ns]
    asked = dict(table)
    asked |= {"batch": 1, "documents_per_s": asked.pop("rate_per_s", None)}
    return changes.due_ns(asked, begin_ns, stop_ns, seed, base)


def load_of(table: Mapping[str, Any], beside: Load) -> Load:
    """Its load, over the same drive as that of the readers (``beside``); when what is due,
    ``due_ns`` says.
    """
    loop: ClosedLoop | OpenLoop | Replay
    if table.get("clients") is not None:
        loop = ClosedLoop(int(table["clients"]), float(table.get("think_s") or 0.0))
    elif table.get("times") is not None or replays_log(table):
        loop = Replay(None, connections=int(table["connections"]))
    else:
        rate_per_s = float(table.get("rate_per_s") or 1 / float(table.get("every_s") or 1.0))
        loop = OpenLoop(rate_per_s, connections=int(table["connections"]))
    return replace(
        beside,
        loop=loop,
        order="logged" if table.get("every_s") is not None else "stretches",
        timeout_s=float(table["timeout_s"]),
        idle="hybrid",
        cpus=(),
    )
