"""Bands: at which times requests pile up, and how many such places there are.

Times are looked at on a logarithmic axis. What a log writes as ``v`` with the resolution ``r`` lay
anywhere from v to v + r, and is spread over that; what it writes as nought lies below r, nobody
knows where, and is one band at most (with what thins out above r). Where the clock steps further
than the log writes, r is its step (``clock``). The rest is smoothed by 0.08
decades, and its peaks are candidates. Two neighbours are told apart if the valley between them is

- real: its count and that of the lower peak, within the bandwidth, differ by more standard
  deviations of counts than chance would make in one of a hundred logs. Peak and valley were looked
  for in the whole log, so that is corrected for all pairs of places where they could be (4 to 4.6);
- deep enough to matter: at least a tenth lower than the lower peak.

Else the lower of the two is taken into the other, and said to be not told apart. So the answer may
be "two bands; a third near 30 ms is not told apart".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import special

from searchbench.analysis.logs.spread import Numbers, Spread

STEP = 0.02  # decades
BANDWIDTH = 0.08  # decades
_DEEP = 0.1  # a valley that matters is so much lower than the lower of its peaks
_CHANCE = 0.01  # of logs that have one band, in how many at most chance may make a second
_SURE = 3.3  # standard deviations, where one place only is looked at: at the resolution
_LEAST = 0.005  # of all requests; a smaller peak is no band
_BELOW = 0.02  # of all requests below the resolution are a band


@dataclass(frozen=True, slots=True)
class Band:
    """A place where times pile up, up to the valleys. ``at_s`` None: below the resolution."""

    at_s: float | None
    low_s: float
    high_s: float
    share: float


@dataclass(frozen=True, slots=True)
class Bands:
    """The bands that are told apart, ascending, and candidates that are not: (where, why)."""

    bands: tuple[Band, ...]
    doubted: tuple[tuple[float, str], ...]


def bands(of: Spread) -> Bands:
    """The bands of a histogram; none without times."""
    total = of.count
    if not total:
        return Bands((), ())
    resolution = max(1, of.resolution_ns)
    below = float(of.n[of.low < resolution].sum())
    start = math.log10(resolution)
    mass = density(of, start)
    smooth = _smoothed(mass)
    peaks = [i for i in range(len(smooth)) if _is_peak(smooth, i)]
    peaks = [i for i in peaks if _near(mass, i) >= _LEAST * total]
    sure = _sure(len(mass))
    doubted: list[tuple[float, str]] = []
    while len(peaks) > 1:
        doubts = [_doubt(mass, smooth, a, b, sure) for a, b in pairwise(peaks)]
        at = next((i for i, why in enumerate(doubts) if why), None)
        if at is None:
            break
        # The least deep valley goes first.
        depths = [_depth(smooth, a, b) for a, b in pairwise(peaks)]
        at = min((i for i, why in enumerate(doubts) if why), key=lambda i: depths[i])
        lower = at if smooth[peaks[at]] < smooth[peaks[at + 1]] else at + 1
        doubted.append((_seconds(start, peaks[lower]), doubts[at]))
        del peaks[lower]
    valleys = [_valley(smooth, a, b) for a, b in pairwise(peaks)]
    edges = [0, *valleys, len(mass)] if peaks else []  # none: all of it is below the resolution
    found = [
        Band(
            _seconds(start, peak), _edge(start, a), _edge(start, b), float(mass[a:b].sum()) / total
        )
        for peak, (a, b) in zip(peaks, pairwise(edges), strict=True)
    ]
    return Bands(
        _with_below(found, smooth, peaks, below, total, resolution), tuple(sorted(doubted))
    )


def _with_below(
    found: list[Band], smooth: Numbers, peaks: list[int], below: float, total: int, resolution: int
) -> tuple[Band, ...]:
    """The bands with that below the resolution, if times pile up there and do not only thin out."""
    # Below, they are spread over a decade at least.
    edge = float(smooth[: round(0.2 / STEP)].max()) if len(smooth) else 0.0
    beside = edge / STEP  # a decade, known from some 2 sqrt(pi) bandwidths
    chance = math.sqrt(below + beside / (2 * math.sqrt(math.pi) * BANDWIDTH))
    more = below - beside > max(_DEEP * below, _SURE * chance)
    if below < _BELOW * total or (peaks and not more):
        return tuple(found)
    high, share = resolution / 1e9, below / total
    if peaks and peaks[0] <= 1:
        # Its slope, as far as the log shows it.
        high, share = found[0].high_s, share + found[0].share
        found = found[1:]
    return (Band(None, 0.0, high, share), *found)


def density(of: Spread, start: float) -> Numbers:
    """Counts by steps of the logarithm of the time from 10**start ns on, spread as is known."""
    above = of.low >= 10**start * (1 - 1e-9)
    low, n = of.low[above], of.n[above].astype(float)
    high = low + np.maximum(of.width[above], of.resolution_ns)
    if not len(low):
        return np.zeros(0)
    steps = math.ceil((math.log10(high.max()) - start) / STEP)
    edges = start + STEP * np.arange(steps + 1)
    # Each is spread evenly by the logarithm: the few values just above the resolution would look
    # like peaks else. How much lies below each edge is a sum of ramps.
    low, high = np.log10(low), np.log10(high)
    rate = n / (high - low)
    points = np.concatenate((low, high))
    slopes = np.concatenate((rate, -rate))
    by_point = np.argsort(points, kind="stable")
    points, slopes = points[by_point], np.cumsum(slopes[by_point])
    grown = np.concatenate(([0.0], np.cumsum(slopes[:-1] * np.diff(points))))
    found: Numbers = np.maximum(0.0, np.diff(np.interp(edges, points, grown)))
    return found


def _smoothed(mass: Numbers) -> Numbers:
    if not len(mass):
        return mass
    reach = math.ceil(4 * BANDWIDTH / STEP)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * STEP / BANDWIDTH) ** 2)
    # Behind either end it goes on as it was there: an end is no peak because nothing is known.
    held = np.concatenate((np.full(reach, mass[0]), mass, np.zeros(reach)))
    return np.convolve(held, kernel / kernel.sum(), mode="valid")


def _is_peak(smooth: Numbers, i: int) -> bool:
    before = smooth[i - 1] if i else -1.0
    after = smooth[i + 1] if i + 1 < len(smooth) else -1.0
    return bool(smooth[i] > before and smooth[i] >= after and smooth[i] > 0)


def _near(mass: Numbers, i: int) -> float:
    reach = round(BANDWIDTH / STEP)
    return float(mass[max(0, i - reach) : i + reach + 1].sum())


def _valley(smooth: Numbers, a: int, b: int) -> int:
    return a + int(np.argmin(smooth[a : b + 1]))


def _depth(smooth: Numbers, a: int, b: int) -> float:
    return float(1 - smooth[_valley(smooth, a, b)] / min(smooth[a], smooth[b]))


def _sure(steps: int) -> float:
    """How many standard deviations a valley must have, of a histogram of so many steps."""
    places = max(2.0, steps * STEP / BANDWIDTH)
    return float(-special.ndtri(_CHANCE / (places * (places - 1) / 2)))


def _doubt(mass: Numbers, smooth: Numbers, a: int, b: int, sure: float) -> str:
    """Why two peaks are not told apart; empty where they are."""
    peak = a if smooth[a] < smooth[b] else b
    depth = _depth(smooth, a, b)
    if depth < _DEEP:
        return f"the dip beside it is only {100 * max(0.0, depth):.0f} % deep"
    counts = _near(mass, peak), _near(mass, _valley(smooth, a, b))
    if counts[0] - counts[1] <= sure * math.sqrt(sum(counts)):
        return "too few requests lie there"
    return ""


def _edge(start: float, step: int) -> float:
    return float(10 ** (start + STEP * step) / 1e9)


def _seconds(start: float, step: float) -> float:
    return float(10 ** (start + STEP * (step + 0.5)) / 1e9)
