"""How far the clock steps by which a server took its times: further than its log writes, perhaps.

A kernel's cheap clock goes on in ticks of 4, 10 or 15.6 ms. A server that takes its times by it may
write them to a millisecond, but they are multiples of the tick: a comb, and each of its teeth would
look like a band. So the tick is looked for, and is then the resolution of such a log.

    0  10  20  30 ..    ticks of 10 ms
    0  15  31  46 ..    ticks of 15.625 ms (64 Hz), cut off to 1 ms
    0  15  16  31 ..    the same, of two readings that were cut off each

Times are looked at in units: first what the log writes, then ten times as much, and so on, so that
ticks are found of which a finer log shows the jitter. A lattice is a clock's if

- nearly all times above nought lie less than a unit beside it,
- of all units that they could have had, at most some would: chance alone does not put them there,
- three of its points follow each other and have several times each (nought is one).

A real server whose times pile up sharply at 10, 20 and 30 ms, and nowhere else, cannot be told from
a clock. Where a server is so fast that all times are 0 or 10 ms, it is not known which of both it
is (``sure``); then too nothing is said that only a finer clock could show.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from searchbench.analysis.logs.spread import Numbers, Spread

_LEAST = 100  # times above nought
_ON = 0.95  # of these, on the lattice
_BY_CHANCE = 0.6  # of all units, at most, on the lattice
_TOOTH = 5  # times at a point of the lattice
_TEETH = 3  # points of it that follow each other
_PLAIN = 4  # units between nought and the only other point, if a clock is to be thought of
_TICK_NS = 20_000_000  # ... which is no further than kernels' ticks go
_OFTEN = 0.01  # of the most frequent: what is rarer does not say where the next point is
_LOOKED_AT = 0.5  # of all times: those whose bucket is no wider than a unit, and which are near
_FAR = 1024  # units; beyond, buckets are wider
_MOST = 256  # points of a lattice that its step is fitted to


@dataclass(frozen=True, slots=True)
class Clock:
    """``step_ns``: how far it goes on at once. ``unit_ns``: how far from a multiple of the step a
    time may be written. ``sure``: that it is one, and not times that are all the same.
    """

    step_ns: int
    unit_ns: int
    sure: bool = True

    def seen(self, of: Spread) -> Spread:
        """Times as they are known by such a clock: at multiples of its step, which is the
        resolution.
        """
        low, width = of.low.copy(), of.width.copy()
        one = width < self.step_ns
        middle = low[one] + (width[one] - 1) / 2
        # Just less than a unit more, because what is cut off lies below its multiple.
        low[one] = np.floor((middle + 0.999 * self.unit_ns) / self.step_ns) * self.step_ns
        width[one] = 1.0
        return Spread(low, width, of.n, of.max_ns, self.step_ns)


def clock_of(of: Spread) -> Clock | None:
    """The clock of these times, if it steps further than the log writes; None: nothing shows it."""
    unit = max(1, of.resolution_ns)
    middle = of.low + (of.width - 1) / 2
    while 2 * unit <= of.max_ns:
        near = (of.width <= unit) & (of.low <= _FAR * unit)
        if of.n[near].sum() >= _LOOKED_AT * of.count:
            step, points = _step(np.floor(middle[near] / unit + 0.5), of.n[near].astype(float))
            sure = points >= _TEETH
            if sure or (points == 2 and step >= _PLAIN and step * unit <= _TICK_NS):
                return Clock(round(step * unit), unit, sure)
        unit *= 10
    return None


def _step(units: Numbers, n: Numbers) -> tuple[float, int]:
    """The step of the lattice on which times lie, in units, and how many of its points follow each
    other; (0, 0) where they lie on none.
    """
    values, at = np.unique(units, return_inverse=True)
    counts: Numbers = np.bincount(at, weights=n).astype(float)
    above = values >= 1
    total = float(counts[above].sum())
    apart = _apart(values, counts)
    if total < _LEAST or apart is None:
        return 0.0, 0
    points = min(_MOST, int(values[-1] / apart) + 1)
    whole = np.arange(np.floor(apart) - 1, np.ceil(apart) + 2)
    tried = np.concatenate((whole, apart + np.linspace(-1, 1, 8 * points + 1)))
    tried = tried[tried >= 1.5]
    share = (_on(values[above], tried[:, None]) * counts[above]).sum(axis=1) / total
    fit = tried[share >= share.max() - 1e-9]
    round_ones = fit[fit == np.rint(fit)]
    step = float(round_ones[0] if len(round_ones) else np.median(fit))
    by_chance = float(_on(np.arange(1, max(values[-1], step) + 1), step).mean())
    if share.max() < _ON or by_chance > _BY_CHANCE:
        return 0.0, 0
    on = _on(values, step)
    teeth = np.bincount(np.rint(values[on] / step).astype(int), weights=counts[on]) >= _TOOTH
    gaps = np.flatnonzero(~np.concatenate(([False], teeth, [False])))
    return step, int(np.diff(gaps).max()) - 1


def _on(values: Numbers, step: float | Numbers) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which values are less than a unit beside a multiple of the step."""
    beside = np.abs(values - np.rint(values / step) * step)
    return np.asarray(beside < 1 - 1e-9)


def _apart(values: Numbers, counts: Numbers) -> float | None:
    """How far those two neighbours are apart that have the most times; those beside each other are
    one.
    """
    often = counts >= max(2.0, _OFTEN * float(counts.max(initial=0)))
    found, weights = values[often], counts[often]
    begins = np.flatnonzero(np.diff(found, prepend=-2.0) > 1)
    if len(begins) < 2:
        return None
    mass = np.add.reduceat(weights, begins)
    places = np.add.reduceat(found * weights, begins) / mass
    return float(np.diff(places)[np.argmax(np.minimum(mass[:-1], mass[1:]))])
