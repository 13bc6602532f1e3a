"""How far two drives of one load differ, for steps that were driven once.

No window tells: two drives of one thing may differ by 5 %, and each by 0.3 % within. Where a load
was driven again, that tells. Else the ratios of two subjects at several loads do, as far as they
do not lie on one line: what is left is scatter, or a curve, which then counts as scatter too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.stats import within
from searchbench.analysis.stats.distributions import student, student_tails
from searchbench.analysis.stats.intervals import Noise, block_noise
from searchbench.analysis.sweep import points as at
from searchbench.analysis.sweep.points import Point

FEW = 5  # passes: in so many, two systems come in orders that look alike often enough by chance
LINE = 5  # loads, from which on the ratio may go with the load
Pair = tuple[str, str]
NOT_KNOWN = "each was driven once, and how far two drives of one load differ is not known"


def of_repeats(own: Sequence[Point], metric: str) -> Noise | None:
    """Of the log ratio of two drives, from loads that were driven in several blocks."""
    values = {p.treatment: p.values(metric) for p in own}
    return block_noise(
        {
            (treatment, block, False): math.log(e.value)
            for treatment, each in values.items()
            if len(each) > 1
            for block, e in each.items()
        }
    )


@dataclass(frozen=True, slots=True)
class Passes:
    """How drives of one load scatter from pass to pass, in logs; 0 where it is not known.

    ``means``: how far the means of two loads may differ by that, at 95 %. ``drives``: by how much
    two drives of one load differed at most.
    """

    means: float = 0.0
    drives: float = 0.0


def of_passes(own: Sequence[Point], metric: str = "answered") -> Passes:
    """The scatter of all loads of one subject, beside which that of two of them says little.

    Two loads may agree from pass to pass by chance, or because what comes back (a job once a
    minute) met one of them each time; all loads together seldom do. What is left of the logs by an
    analysis of variance in two ways without replication, by pass and load, has (B - 1)(L - 1)
    degrees of freedom; loads that not all passes had are left out.
    """
    values = [p.values(metric) for p in own]
    blocks = {block for each in values for block in each}
    used = [each for each in values if len(each) == len(blocks)]
    if len(blocks) < 2 or len(used) < 2:
        return Passes()
    logs = np.log([[each[block].value for each in used] for block in sorted(blocks)])
    rest = logs - logs.mean(axis=0) - logs.mean(axis=1, keepdims=True) + logs.mean()
    df = (len(blocks) - 1) * (len(used) - 1)
    variance = float((rest * rest).sum()) / df
    means = student(0.5 + within.LEVEL / 2, df) * math.sqrt(2 * variance / len(blocks))
    return Passes(means, float(np.ptp(rest, axis=0).max()))


def of_ratios(logs: Sequence[Sequence[float]], n: int) -> Noise | None:
    """Of the mean over ``n`` passes of the log ratio of two subjects at one load: how far their
    ratios scatter from pass to pass, each about its mean at its load. None: of one load alone,
    whose own interval has that in it.

    What comes back may meet the same one of two in each pass at one load; at all loads it does not.
    """
    if len(logs) < 2:
        return None
    df = sum(len(own) - 1 for own in logs)
    rest = sum(float(np.var(own)) * len(own) for own in logs)
    return Noise(rest / df / n, df)


def of_loads(ratios: Sequence[tuple[float, float]]) -> Noise | None:
    """The same from one ratio at each of several loads: (load, log ratio).

    About their mean; from ``LINE`` loads on about a straight line in the logarithm of the load.
    """
    x, y = (np.array(column) for column in zip(*ratios, strict=True))
    terms = 2 if np.unique(x).size >= LINE else 1
    if x.size <= terms:
        return None
    design = np.vander(np.log(x), terms)
    residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    df = int(x.size) - terms
    return Noise(float(residual @ residual) / df, df)


def by_pair(
    ratios: Mapping[Pair, Sequence[tuple[float, float]]], repeats: Noise | None
) -> dict[Pair, Noise | None]:
    """By pair of subjects, what to take for the noise of one of its ratios, all by one metric.

    The greater of its own and that of all pairs together, which has at most three times its own
    degrees of freedom, as in ``intervals.paired_ratio``. ``repeats`` where they tell more.
    """
    own = {pair: of_loads(each) for pair, each in ratios.items()}
    known = [noise for noise in own.values() if noise is not None]
    df = sum(noise.df for noise in known)
    # Of n subjects each is in n - 1 of the pairs, so their ratios are no n (n - 1) / 2 samples.
    subjects = (1 + math.sqrt(1 + 8 * len(known))) / 2
    all_of = sum(noise.variance * noise.df for noise in known) / df if df else 0.0
    found: dict[Pair, Noise | None] = {}
    for pair, noise in own.items():
        if noise is not None and noise.variance < all_of:
            noise = Noise(all_of, max(noise.df, min(3 * noise.df, int(2 * df / subjects))))
        if repeats is not None and (noise is None or repeats.df > noise.df):
            noise = repeats
        found[pair] = noise
    return found


def widened(ratio: Estimate, p: float, noise: Noise) -> tuple[Estimate, float]:
    """A ratio of two drives that is no surer than ``noise`` lets it be, and the p that it is 1."""
    log, sd = math.log(ratio.value), math.sqrt(noise.variance)
    half = student(0.5 + within.LEVEL / 2, noise.df) * sd
    span = Interval(
        math.exp(log - half), math.exp(log + half), within.LEVEL, "t over what drives scatter by"
    )
    if ratio.interval is not None:
        span = at.wider(span, ratio.interval)
    tails = student_tails(log / sd, noise.df) if sd else 0.0
    return Estimate(ratio.value, ratio.unit, ratio.n, span), max(p, tails)
