"""Servers whose logs write times to different units, or whose clocks step differently, in one call.

What is said of all of them together is known no better than the coarsest lets it be. So what a
finer clock shows is said of those that have one, alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from searchbench.analysis.logs.bands import bands
from searchbench.analysis.logs.model import Finer
from searchbench.analysis.logs.spread import Spread

_LEAST = 0.01  # of all times; fewer are no answer of their own, and hide nothing


def share_within(of: Sequence[Spread], seconds: float) -> float:
    """The share of all times that were surely not longer, each by its own clock."""
    total = sum(times.count for times in of)
    within = sum(times.share_within(seconds) * times.count for times in of)
    return within / max(1, total)


def finer(of: Mapping[str, Spread]) -> Finer | None:
    """What those say alone that are finer than the coarsest. ``of``: by server, its times as they
    are known. None where all are equally fine, or one kind has next to no times.
    """
    total = sum(times.count for times in of.values())
    asked = {name: times for name, times in of.items() if times.count >= _LEAST * max(1, total)}
    steps = {name: times.resolution_ns for name, times in asked.items()}
    coarsest = max(steps.values(), default=0)
    fine = {name: times for name, times in asked.items() if times.resolution_ns < coarsest}
    if not fine:
        return None
    resolution_ns = max(steps[name] for name in fine)
    times = _together(list(fine.values()), resolution_ns)
    return Finer(
        {name: step / 1e9 for name, step in steps.items()},
        tuple(fine),
        resolution_ns / 1e9,
        times.count / total,
        times.quantiles_s(),
        bands(times),
    )


def _together(of: Sequence[Spread], resolution_ns: int) -> Spread:
    """The times of several, by value."""
    low = np.concatenate([times.low for times in of])
    width = np.concatenate([times.width for times in of])
    n = np.concatenate([times.n for times in of])
    order = np.argsort(low, kind="stable")
    most = max(times.max_ns for times in of)
    return Spread(low[order], width[order], n[order], most, resolution_ns)
