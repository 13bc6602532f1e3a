"""Where the greatest rate is, as all trials of a search together say.

For each condition on time the quantile is taken as a floor, which a slow request needs even when it
is alone, and waits above it, whose inverse is straight in the rate near the answer, as it is in a
queue of capacity c, whose waits go with 1 / (c - rate). With y = ln(quantile / limit)

    y(r) = ln(a + (1 - a) / (1 - b (r / r* - 1)))           r*, the slope b and the floor a unknown

Where queries of one kind take nearly the limit, the quantile is flat up to high rates and then
rises: a is near 1. Without it the flat part would pull r* to it.

A trial's y has the variance that its window says (promise.py), pooled over the trials near the
limit, since a window that was lucky also seems sure; and what no window can see: SWAY (the waits of
two minutes of a server are not alike), and BENT, as the curve is not quite this one, more so
farther away.
Trials for another promise are often many at one distance, where the curve is bent alike for all:
together they say no more about it than one would (``alike``).

A server need not be equally fast in all trials: ln r* of a trial is normal about the usual one.
Its standard deviation is unknown too: SPEEDS, with the chances PRIOR before any trial, summed over.
So trials that contradict each other widen the interval by themselves.

Quantiles far from the limit (FAR_BELOW, FAR_ABOVE) only say on which side they are. For a condition
on errors the logit of the share is straight in ln r, likewise cut off, and the trial counts as many
requests as it is worth. No trial says more than 1 : OUTLIER.

The prior is flat in ln r* and ln b; FLOORS have the chances FLOOR_PRIOR before any trial. The
posterior is integrated by trapezoids on a grid that is dense about the trials' rates, then once
more at equal steps of every condition's chance: the error of a chance is below 0.001. That the
system keeps up is a condition more: what is lacking of the offered is max(0, 1 - c / r), and 1 % of
it is allowed. The promise's r* is the least of its conditions'. Of several that may be the least,
one has an upper end below the truth more often than one alone has, so the chance of its upper ends
is shared among them (``of_several``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.capacity.promise import Judged, Kept

Floats = NDArray[np.float64]
Curves = NDArray[np.float32]  # seven digits, which a likelihood does not need, take half the time

BENT, BENT_FAR, MOST_BENT = 0.12, 0.5, 0.35
FAR_BELOW, FAR_ABOVE = 0.7, 0.5  # half of the limit or 1.6 of it: only says on which side
FAR_ODDS = 1.4
SWAY = 0.02
SPEEDS = (0.007, 0.015, 0.03, 0.05, 0.08, 0.12)
PRIOR = (0.25, 0.15, 0.2, 0.2, 0.12, 0.08)  # more on the least ends searches before they saw it
OUTLIER = 1e-6
SLOPES = np.geomspace(1.0, 200.0, 12)
FLOORS = (0.0, 0.85, 0.98)  # shares of the limit
FLOOR_PRIOR = (0.8, 0.1, 0.1)
ODDS_SLOPES = np.geomspace(3.0, 600.0, 12).astype(np.float32)
LEAST_SLOPE = 3.0  # with a floor: else hardly any trial could say on which side it is
_CURVES = [
    (floor, slope, chance)
    for floor, chance in zip(FLOORS, FLOOR_PRIOR, strict=True)
    for slope in SLOPES
    if not floor or slope >= LEAST_SLOPE
]
_FLOOR, _SLOPE, _CHANCE = np.asarray(_CURVES, np.float32).T
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_ABOUT, _STEPS = 28, 350  # points of the first grid on each side of a rate; of the second
_ALLOWED_LACK = 0.01
TAIL = 0.025  # the chance that r* is beyond an end of the interval


@dataclass(frozen=True, slots=True)
class Posterior:
    """The chance that r* is at most each of ``rates`` (ascending): ``below``, 0..1.

    ``differs``: the chance that the server's speed differs from trial to trial by more than the
    least of SPEEDS; ``speeds``: the standard deviation of its logarithm, as expected. ``first``:
    the chances that the system no longer keeps up first, and that each condition breaks first.
    """

    rates: Floats
    below: Floats
    differs: float
    speeds: float
    first: tuple[float, ...] = ()

    def chance_below(self, rate_per_s: float) -> float:
        """The chance that r* is below a rate."""
        return float(np.interp(math.log(rate_per_s), np.log(self.rates), self.below))

    def quantile(self, q: float) -> float:
        """The rate that r* is below with chance ``q``."""
        return math.exp(float(np.interp(q, self.below, np.log(self.rates))))


def posterior(rates: Sequence[float], judged: Sequence[Judged], alike: Sequence[int]) -> Posterior:
    """From trials at ``rates`` (requests a second); at least one.

    ``alike``: of each trial, how many share what the curve is bent there (1: it stands alone).
    """
    low, high = math.log(min(rates) / 8), math.log(max(rates) * 8)
    # The farther from all trials, the less sharp the posterior, and the wider apart the points.
    apart = np.geomspace(2e-4, high - low, _ABOUT)
    about = np.concatenate([math.log(rate) + sign * apart for rate in rates for sign in (-1, 1)])
    grid = np.unique(np.clip(about, low, high))
    parts = _parts(rates, judged, alike, grid)
    even = np.linspace(0, 1, _STEPS)
    grid = np.unique(np.concatenate([grid, *(np.interp(even, p.below, grid) for p in parts)]))
    parts = _parts(rates, judged, alike, grid)
    # All conditions are of one server: in a trial in which it is slow, all of them suffer.
    below = of_several(np.max([p.below for p in parts], axis=0), _rivals(parts[1:]))
    most = max(parts, key=lambda p: p.differs)
    return replace(most, below=below, first=_first([p.below for p in parts]))


def of_several(below: Floats, conditions: int) -> Floats:
    """``below``, the greatest chance of all conditions, for the least r* of so many of them.

    If k conditions have one limit, the least of their upper ends is below it as often as any of
    them is, up to k times TAIL. So what TAIL leaves of ``below`` is what TAIL / k left of it
    (Bonferroni); the lower half stays, since the least of the lower ends errs on the safe side.
    """
    if conditions < 2:
        return below
    power = math.log(2 * TAIL) / math.log(2 * TAIL / conditions)
    above = np.minimum(0.5, 1 - below)
    return np.where(below > 0.5, 1 - 0.5 * (2 * above) ** power, below)


def _rivals(parts: Sequence[Posterior]) -> int:
    """How many conditions may be the least: whose lower end is below all upper ends. Those that
    break far above play no part.
    """
    if len(parts) < 2:
        return len(parts)
    least = min(p.quantile(1 - TAIL / len(parts)) for p in parts)
    return sum(p.quantile(TAIL) <= least for p in parts)


def _first(below: Sequence[Floats]) -> tuple[float, ...]:
    """The chance of each limit to be the least, as if they were independent.

    They are not quite: a slow trial moves all of them. So this is less sure than it might be.
    """
    middles = [(chance[1:] + chance[:-1]) / 2 for chance in below]
    found = []
    for i, chance in enumerate(below):
        others = [1 - middle for j, middle in enumerate(middles) if j != i]
        found.append(float((np.diff(chance) * np.prod(others, axis=0)).sum()))
    total = sum(found) or 1.0
    return tuple(one / total for one in found)


def _parts(
    rates: Sequence[float], judged: Sequence[Judged], alike: Sequence[int], grid: Floats
) -> list[Posterior]:
    """The posterior of every condition by itself."""
    conditions = range(len(judged[0].kept))
    found = [_lacking(rates, judged, grid)]
    found += [_condition(rates, judged, alike, index, grid) for index in conditions]
    return [_integrated(one, grid) for one in found]


def _integrated(log_likelihood: Curves, grid: Floats) -> Posterior:
    """From the log likelihood by SPEEDS (one where they do not matter), grid, and curves."""
    weights = np.exp(log_likelihood - log_likelihood.max()).sum(axis=2, dtype=np.float64)
    weights *= np.asarray(PRIOR[: len(weights)])[:, None]
    chances = np.trapezoid(weights, grid, axis=1)
    chances /= chances.sum()
    density = weights.sum(axis=0)
    between = np.diff(grid) * (density[1:] + density[:-1]) / 2
    below = np.concatenate([[0.0], np.cumsum(between)])
    speeds = math.exp(float(chances @ np.log(SPEEDS[: len(chances)])))
    return Posterior(np.exp(grid), below / below[-1], float(chances[1:].sum()), speeds)


def _condition(
    rates: Sequence[float],
    judged: Sequence[Judged],
    alike: Sequence[int],
    index: int,
    grid: Floats,
) -> Curves:
    """Log likelihood for one condition by SPEEDS, r* and curve: its slope, and floor.

    Of a condition on errors by r* and slope: how fast a server is matters little to it.
    """
    kept = [one.kept[index] for one in judged]
    by_time = kept[0].condition.limit_ns is not None
    unit = _unit_variance(kept) if by_time else 0.0
    speeds = np.asarray(SPEEDS if by_time else [0.0])[:, None, None]
    prior = np.log(_CHANCE) if by_time else np.zeros_like(ODDS_SLOPES)
    total = np.tile(prior, (speeds.size, grid.size, 1))
    for rate, one, share in zip(rates, kept, alike, strict=True):
        apart = (math.log(rate) - grid)[:, None]
        far = np.abs(apart).astype(np.float32)
        bent: Curves = np.minimum(BENT + BENT_FAR * far, MOST_BENT) * math.sqrt(share)
        if not by_time:
            chance = _odds(one, ODDS_SLOPES * apart.astype(np.float32), bent)
            total += np.log(np.minimum(chance, 1.0) + OUTLIER)
            continue
        expected = np.log(_over(apart))
        window = unit * _few(one) / max(1, one.requests) + (SWAY * (1 - _FLOOR)) ** 2
        doubt = window + (bent * expected) ** 2
        moved = np.log(_over(apart + speeds) / _over(apart - speeds)) / 2
        total += _log_times(one, expected, window, doubt + moved**2)
    return total


def _over(apart: Floats) -> Curves:
    """Quantile over limit by every curve, as far as it is looked at."""
    room = np.maximum(1 - _SLOPE * np.expm1(apart).astype(np.float32), 0.01)
    over: Curves = _FLOOR + (1 - _FLOOR) / room
    return np.clip(over, math.exp(-FAR_BELOW), math.exp(FAR_ABOVE))


def _unit_variance(kept: Sequence[Kept]) -> float:
    """Variance of the logarithm of the quantile, times requests: of the trials near the limit.

    The mean of the standard deviations, squared: a long window with one great cluster would
    outweigh all the others in the mean of variances.
    """
    weighed = [
        (math.exp(-(math.log(k.quantile_ns / k.condition.limit_ns) ** 2) * 3) + 0.01,
         k.spread * math.sqrt(k.requests))
        for k in kept
        if k.quantile_ns and k.spread is not None and k.condition.limit_ns
    ]  # fmt: skip
    weight = sum(w for w, _ in weighed)
    return (sum(w * s for w, s in weighed) / weight) ** 2 if weight else 0.0


def _few(kept: Kept) -> float:
    """How much more a quantile varies than its window can see: late ones come in few clusters.

    With k clusters 1 + 1 / (2 k^2), found by simulation; not where it is far above the limit.
    """
    high = math.exp(FAR_ABOVE) * (kept.condition.limit_ns or 0.0)
    if not kept.quantile_ns or kept.quantile_ns > high:
        return 1.0
    clusters = kept.effective * kept.condition.allowed
    return 1 + min(10.0, 0.5 / max(clusters, 1e-3) ** 2)


def _log_times(kept: Kept, expected: Curves, window: Curves, variance: Curves) -> Curves:
    """Log likelihood of a quantile, of its logarithm over the limit, by SPEEDS.

    As a density, over that of the least speed and no floor: else the greatest doubt would always
    fit best. Not so where only the side is known: there the chance goes to 1.
    """
    if not kept.requests or not kept.condition.limit_ns:
        return np.zeros_like(variance)
    seen = FAR_ABOVE
    if kept.quantile_ns:
        seen = min(seen, max(-FAR_BELOW, math.log(kept.quantile_ns / kept.condition.limit_ns)))
    chance: Curves = np.exp((seen - expected) ** 2 / (-2 * variance))
    if -FAR_BELOW < seen < FAR_ABOVE:
        chance *= np.sqrt(variance[0] / variance * (window[0] / window))
    return np.asarray(np.log(chance + OUTLIER), np.float32)


def _odds(kept: Kept, expected: Curves, bent: Curves) -> Curves:
    """Likelihood of a share that failed, in its effective requests; 1 at its best."""
    allowed = kept.condition.allowed
    base = math.log(allowed / (1 - allowed)) if allowed < 1 else 30.0
    most = 1 / (1 + math.exp(-base - FAR_ODDS))
    failed = min(kept.share, most) * kept.effective
    best = _best(failed, kept.effective)
    total = np.zeros_like(expected)
    for node, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
        logits = base + np.minimum(expected * np.exp(bent * node), FAR_ODDS)
        # log p = -log(1 + exp(-x)), log(1 - p) = log p - x.
        log_p = -np.logaddexp(0.0, -logits)
        chance = failed * log_p + (kept.effective - failed) * (log_p - logits)
        total += weight * np.exp(chance - best)
    return total


def _best(failed: float, n: float) -> float:
    """The log likelihood of the share that was seen."""
    passed = n - failed
    return sum(k * math.log(k / n) for k in (failed, passed) if k > 0)


def _lacking(rates: Sequence[float], judged: Sequence[Judged], grid: Floats) -> Curves:
    """Log likelihood by SPEEDS of the greatest rate at which the system still keeps up to 99 %."""
    total = np.zeros((len(SPEEDS), grid.size))
    capacity = np.exp(grid) * (1 - _ALLOWED_LACK)
    for rate, one in zip(rates, judged, strict=True):
        expected = np.maximum(0.0, 1 - capacity / rate)
        moved = [
            (np.maximum(0.0, 1 - capacity / rate / by) - np.maximum(0.0, 1 - capacity / rate * by))
            / 2
            for by in np.exp(np.asarray(SPEEDS) - SPEEDS[0])
        ]
        doubt = (one.achieved_high - one.achieved_low) / 4
        window = doubt**2 + (BENT * expected) ** 2 + 0.003**2
        spread = np.sqrt(window + np.square(moved))
        chance = np.exp(-(((max(0.0, 1 - one.achieved) - expected) / spread) ** 2) / 2)
        if one.achieved < 1 - _ALLOWED_LACK:
            chance *= spread[0] / spread
        total += np.log(chance + OUTLIER)
    return total.astype(np.float32)[:, :, None]
