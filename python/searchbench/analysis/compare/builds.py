"""Which build of an index each trial was measured on, and what two builds may make of a ratio."""

from __future__ import annotations

import math
from collections.abc import Mapping

from scipy import stats

from searchbench.analysis.stats.intervals import ALPHA
from searchbench.record import Record

# How far the speeds of two builds of one index are taken to scatter (standard deviation) where
# nothing was built twice: segments fall otherwise, pages lie elsewhere.
SD = 0.02

Builds = Mapping[str, Mapping[int, str]]  # by treatment and block, what built the index


def of(record: Record) -> dict[str, dict[int, str]]:
    """By treatment and block the trial that built its index; of a system that ran already, the
    system. Absent where there is no index: nothing was put in.
    """
    found: dict[str, dict[int, str]] = {}
    for trial in record.trials:
        if trial.status != "ok" or trial.control:
            continue
        build = f"attached {trial.system}" if trial.attached is not None else ""
        if not build and trial.ingest is not None:
            build = trial.ingest.reused or trial.trial
        if build:
            found.setdefault(trial.treatment, {})[trial.block] = build
    return found


def once(a: str, b: str, found: Builds) -> bool:
    """Whether their difference may be that of two builds: not one index, and not one each block."""
    mine, other = found.get(a, {}), found.get(b, {})
    blocks = mine.keys() & other.keys()
    if len(blocks) < 2 or all(mine[block] == other[block] for block in blocks):
        return False
    return any(len({side[block] for block in blocks}) < len(blocks) for side in (mine, other))


def floor(pairs: int) -> float:
    """The ratio that two builds of equal systems pass in 5 % of studies with so many ``pairs``.

    Two builds differ by √2 standard deviations; Bonferroni over the pairs. 1.06 for one.
    """
    return math.exp(float(stats.norm.isf(ALPHA / 2 / max(1, pairs))) * math.sqrt(2) * SD)
