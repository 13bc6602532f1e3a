"""The shape of an open loop: stages, each of so many seconds at a rate or from one to another.

    [[60, 100], [30, 400], [60, 100]]     a spike: three stages, each at one rate
    [[30, 10, 200], [120, 200]]           a ramp from 10 to 200 a second, then two minutes at 200

Rates are requests a second, or shares of a capacity that is known. Only a stage at one rate can be
judged: the longest of them, or the one that is named. It is the measured window; what comes before
and after it is recorded and shown. Stages at a greater rate between two at the same one are an
overload, from which the system has to return.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

_NS = 1_000_000_000
_MOST_STAGES = 100
_MOST_S, _MOST_PER_S = 86_400.0, 10_000_000.0
_MOST_SHARE = 100.0  # of a capacity; what is more was meant as requests a second
_DRAWN = 4096


@dataclass(frozen=True, slots=True)
class Stage:
    """So many seconds, from the first rate to the last, in requests a second; linear between."""

    seconds: float
    first: float
    last: float

    @property
    def constant(self) -> bool:
        """Whether it has one rate."""
        return self.first == self.last

    @property
    def requests(self) -> float:
        """How many requests are expected of it."""
        return self.seconds * (self.first + self.last) / 2


@dataclass(frozen=True, slots=True)
class Peak:
    """Stages at a greater rate than the one ``before`` them, and the one ``after`` them at its
    rate again: their places, from 0."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Shape:
    """Stages one after another. ``judged``: the place of the one that is measured, from 0."""

    stages: tuple[Stage, ...]
    judged: int

    @property
    def starts(self) -> tuple[float, ...]:
        """The second at which each stage begins, and that at which the last ends."""
        return starts_of(self.stages)

    @property
    def window(self) -> Stage:
        """The stage that is judged."""
        return self.stages[self.judged]

    @property
    def peaks(self) -> tuple[Peak, ...]:
        """Each overload that a stage at one rate comes before, and one at the same rate after."""
        found = []
        for at, stage in enumerate(self.stages):
            if not stage.constant or stage.first <= 0:
                continue
            after = at + 1
            while after < len(self.stages) and _above(self.stages[after], stage.first):
                after += 1
            whole = after > at + 1 and after < len(self.stages)
            if whole and self.stages[after].constant and self.stages[after].first == stage.first:
                found.append(Peak(at, after))
        return tuple(found)

    def due_ns(self, arrivals: Literal["poisson", "constant"], seed: int) -> NDArray[np.int64]:
        """When requests are due, int64, never decreasing, from 0 to the end of the last stage."""
        return arrivals_ns(self.stages, arrivals, seed)


def starts_of(stages: Sequence[Stage]) -> tuple[float, ...]:
    """The second at which each stage begins, and that at which the last ends."""
    return (0.0, *np.cumsum([stage.seconds for stage in stages]).tolist())


def arrivals_ns(
    stages: Sequence[Stage], arrivals: Literal["poisson", "constant"], seed: int
) -> NDArray[np.int64]:
    """When what comes at the rates of stages is due, int64, never decreasing.

    The arrivals of one a second, in the time that passes as fast as the rate: so gaps are
    those of the rate at each moment, and the same seed gives the same times.
    """
    counted = np.cumsum([0.0, *(stage.requests for stage in stages)])
    whole = float(counted[-1])
    if arrivals == "constant":
        at = np.arange(math.ceil(whole - 1e-9), dtype=np.float64)
    else:
        rng = np.random.default_rng([seed, 0x73686170])
        parts, last = [np.empty(0)], 0.0
        while last < whole:
            parts.append(last + np.cumsum(rng.exponential(1.0, _DRAWN)))
            last = float(parts[-1][-1])
        at = np.concatenate(parts)
        at = at[at < whole]
    place = np.searchsorted(counted, at, side="right") - 1
    first = np.array([stage.first for stage in stages])[place]
    rise = np.array([(s.last - s.first) / s.seconds for s in stages])[place]
    inside = at - counted[place]
    # The root of first * t + rise * t² / 2 = inside that loses no digits where rise is small.
    root = np.sqrt(np.maximum(first * first + 2 * rise * inside, 0.0))
    with np.errstate(invalid="ignore"):
        t = np.where(inside > 0, 2 * inside / (first + root), 0.0)
    due: NDArray[np.int64] = np.rint((np.array(starts_of(stages))[place] + t) * _NS).astype(
        np.int64
    )
    return due


def shape_of(
    stages: Sequence[Any], judged: int | None = None, capacity_per_s: float | None = None
) -> Shape:
    """The shape of a study's ``stages``; ``judged`` counts from 1. ValueError with the reason.

    ``capacity_per_s``: what the rates are shares of; None: they are requests a second.
    """
    made = stages_of(stages, capacity_per_s)
    constant = [at for at, stage in enumerate(made) if stage.constant and stage.first > 0]
    if not constant:
        raise ValueError("`stages` has none at one rate above 0, so there is none to be judged")
    if judged is None:
        # Of several that are as long, the first.
        return Shape(made, max(constant, key=lambda at: (made[at].seconds, -at)))
    if judged > len(made) or judged - 1 not in constant:
        can = ", ".join(str(at + 1) for at in constant)
        raise ValueError(
            f"`judged_stage` must be a stage at one rate above 0 ({can}), not {judged}"
        )
    return Shape(made, judged - 1)


def stages_of(stages: Sequence[Any], capacity_per_s: float | None = None) -> tuple[Stage, ...]:
    """The stages alone, whether or not one of them can be judged. ValueError with the reason."""
    if not stages or len(stages) > _MOST_STAGES:
        raise ValueError(f"`stages` must have 1 to {_MOST_STAGES} of them")
    return tuple(_stage(number, each, capacity_per_s) for number, each in enumerate(stages, 1))


def _above(stage: Stage, rate: float) -> bool:
    """Is more offered in it than ``rate``, and never less?"""
    return max(stage.first, stage.last) > rate <= min(stage.first, stage.last)


def _stage(number: int, given: Any, capacity_per_s: float | None) -> Stage:
    numbers = given if isinstance(given, list | tuple) else ()
    fits = 2 <= len(numbers) <= 3 and all(
        isinstance(n, int | float) and not isinstance(n, bool) and math.isfinite(n) for n in numbers
    )
    if not fits:
        raise ValueError(
            f"stage {number} must be [SECONDS, RATE] or [SECONDS, FROM, TO], as in [60, 100]"
        )
    seconds, *rates = map(float, numbers)
    if capacity_per_s is not None:
        if max(rates) > _MOST_SHARE:
            raise ValueError(
                f"stage {number}: with `capacity_per_s` rates are shares of it, at most "
                f"{_MOST_SHARE:g}, as in [10, 1.5]"
            )
        rates = [rate * capacity_per_s for rate in rates]
    if not 0 < seconds <= _MOST_S:
        raise ValueError(f"stage {number} must last above 0 and at most {_MOST_S:g} seconds")
    if not all(0 <= rate <= _MOST_PER_S for rate in rates):
        raise ValueError(f"stage {number} must have rates from 0 to {_MOST_PER_S:g} a second")
    return Stage(seconds, rates[0], rates[-1])
