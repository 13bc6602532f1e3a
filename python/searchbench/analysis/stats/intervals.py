"""Confidence intervals, tests and the correction for many comparisons: the statistics proper.

Replicates are few, so the mean of their logs has a t-interval. No bootstrap is used: in
simulation it holds the truth less often than it says at every number of replicates a study has
(docs/decisions/0005-t-intervals-over-replicates.md has the figures; a test repeats them).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.stats.distributions import chi_square, student, student_tails, students

LEVEL = 0.95
ALPHA = 0.05  # below it, after the correction, a difference is one
# The noise of a study with so many degrees of freedom is known well enough to tell which pairs are
# noisier than it: those that pass it by more than one in ten equally noisy ones would.
WELL_KNOWN, NOISIER = 20, 0.9

Floats = NDArray[np.float64]


def mean_interval(values: Sequence[float] | Floats) -> Interval | None:
    """Student's t-interval for the mean of ``values`` (logs, by preference); None below two."""
    x = np.asarray(values, dtype=np.float64)
    if x.size < 2 or not np.all(np.isfinite(x)):
        return None
    mean = float(x.mean())
    if float(np.ptp(x)) <= 1e-12 * float(np.max(np.abs(x)) + 1e-300):
        return Interval(mean, mean, LEVEL, "no spread between replicates")
    error = float(x.std(ddof=1)) / math.sqrt(x.size)
    half = student(0.5 + LEVEL / 2, x.size - 1) * error
    return Interval(mean - half, mean + half, LEVEL, "t over replicates")


def geometric_estimate(values: Sequence[float] | Floats, unit: str) -> Estimate | None:
    """Geometric mean of positive ``values`` with the interval of the mean of their logs."""
    x = np.asarray(values, dtype=np.float64)
    if not x.size or np.any(x <= 0) or not np.all(np.isfinite(x)):
        return None
    logs = np.log(x)
    interval = mean_interval(logs)
    if interval is not None:
        low, high = _exp(interval.low), _exp(interval.high)
        interval = Interval(low, high, interval.level, f"{interval.method}, on logs")
    return Estimate(math.exp(float(logs.mean())), unit, int(x.size), interval)


@dataclass(frozen=True, slots=True)
class Noise:
    """How far a log value scatters: by use, one block's log ratio of two equal treatments.

    ``variance``; ``df``: degrees of freedom that it rests on.
    """

    variance: float
    df: int


def block_noise(cells: Mapping[tuple[str, int, bool], float]) -> Noise | None:
    """The noise that a whole study shows: residual of log value = treatment + block.

    ``cells``: log value by (treatment, block, whether it is the twin), which may be missing; a
    twin is its treatment measured again, so both have one mean. The analysis of variance of
    randomised blocks (Montgomery, Design and Analysis of Experiments, ch. 4), by least squares.
    The variance of a ratio of two is twice the residual one. None without degrees of freedom.
    """
    if not cells:
        return None
    _, row = np.unique([treatment for treatment, _, _ in cells], return_inverse=True)
    _, column = np.unique([block for _, block, _ in cells], return_inverse=True)
    design = np.hstack([np.eye(row.max() + 1)[row], np.eye(column.max() + 1)[column]])
    y = np.array(list(cells.values()))
    solution, _, matrix_rank, _ = np.linalg.lstsq(design, y, rcond=None)
    df = len(cells) - int(matrix_rank)
    if df < 1:
        return None
    residual = y - design @ solution
    return Noise(2.0 * float(residual @ residual) / df, df)


def paired_ratio(
    logs: Sequence[float] | Floats, noise: Noise | None
) -> tuple[Estimate | None, float | None]:
    """Geometric mean of paired ratios with its interval, and the p that it is 1.

    Two or three blocks say little of their own scatter, so the study's noise is drawn upon: the
    variance is the greater of the pair's own and the study's, the degrees of freedom those of the
    study but at most three times the pair's own (of two blocks twice, as these hardly show whether
    the pair is the noisy one). A pair of three blocks or more that scatters
    more than the study keeps its own variance with its own degrees of freedom; so one
    that scatters by chance too little is not believed, and one that is noisier is not trusted more.
    By chance, more than a third of all equally noisy pairs scatter more than the study. So where
    its noise is well known, the p of a pair is by its own degrees of freedom only if it scatters
    more than nine in ten of them would. (Its interval stays the wider one: it would else miss in up
    to 8 %.)
    """
    x = np.asarray(logs, dtype=np.float64)
    if not x.size:
        return None, None
    mean, n = float(x.mean()), int(x.size)
    if n < 2:
        return Estimate(math.exp(mean), "ratio", n), None
    used = _noise_used(x, noise)
    df, error = used.df, math.sqrt(used.variance / n)
    of_p = _noise_used(x, noise, NOISIER)
    method = "t over blocks, on logs"
    if used.df > n - 1:
        method = "t over blocks with the noise of the study, on logs"
    if error <= 1e-12 * max(abs(mean), 1e-300):
        exact = Interval(math.exp(mean), math.exp(mean), LEVEL, "no spread between replicates")
        return Estimate(math.exp(mean), "ratio", n, exact), 1.0 if mean == 0 else 0.0
    half = student(0.5 + LEVEL / 2, df) * error
    interval = Interval(_exp(mean - half), _exp(mean + half), LEVEL, method)
    p = student_tails(abs(mean) / error, of_p.df)
    return Estimate(math.exp(mean), "ratio", n, interval), p


def _noise_used(x: Floats, noise: Noise | None, noisier: float = 0.0) -> Noise:
    """What ``paired_ratio`` takes for the noise of these log ratios, two or more. ``noisier``: the
    share of equally noisy pairs that one has to pass to count as noisier than a well-known study.
    """
    own, df = float(x.var(ddof=1)), x.size - 1
    if noise is None or noise.df <= df:
        return Noise(own, df)
    # A pair that is noisier than the study has the degrees of freedom of its own variance; with
    # one alone, it could not resolve a thirtyfold difference.
    usual = chi_square(noisier, df) / df if noisier and noise.df >= WELL_KNOWN else 1.0
    if own > usual * noise.variance and df > 1:
        return Noise(own, df)
    return Noise(max(own, noise.variance), min(noise.df, 3 * df if df > 1 else 2))


def welch_log_ratio(a: Floats, b: Floats) -> tuple[Interval, float] | None:
    """Interval of mean(log b) − mean(log a) for unpaired samples, and its two-sided p.

    Welch's t with the degrees of freedom of Satterthwaite (1946); None where either has fewer
    than two values.
    """
    if a.size < 2 or b.size < 2 or np.any(a <= 0) or np.any(b <= 0):
        return None
    x, y = np.log(a), np.log(b)
    difference = float(y.mean() - x.mean())
    va, vb = float(x.var(ddof=1)) / x.size, float(y.var(ddof=1)) / y.size
    if va + vb <= 1e-24:
        p = 1.0 if abs(difference) < 1e-12 else 0.0
        return Interval(difference, difference, LEVEL, "no spread between replicates"), p
    df = (va + vb) ** 2 / (va**2 / (x.size - 1) + vb**2 / (y.size - 1))
    error = math.sqrt(va + vb)
    half = student(0.5 + LEVEL / 2, df) * error
    p = student_tails(abs(difference) / error, df)
    return Interval(difference - half, difference + half, LEVEL, "Welch's t, on logs"), p


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of one thing against runs of another: ``ratio`` (log), its ``p``, the ``noise``.

    ``noise``: of one run's log value over both sides, so its ``variance`` is not that of a ratio.
    ``sds``: the standard deviation of either side's; None: it is not known, and ``ratio`` and ``p``
    suppose that it is that of the other. ``within``: the interval is as wide as what was measured
    within the runs, and not as runs differ.
    """

    ratio: Interval
    p: float
    noise: Noise
    sds: tuple[float | None, float | None]
    within: bool


def ratio_over_runs(a: Floats, b: Floats, least: float = 0.0) -> Runs | None:
    """Interval of mean(b) − mean(a), logs of whole runs, and its two-sided p.

    Welch's t with the degrees of freedom of Satterthwaite (1946), as either may scatter by more
    than the other. Where one is a single run, Student's two-sample t with the variance of the other
    (Student 1908), n − 1 degrees of freedom: whether a run of the other would lie there. ``least``:
    half the width that the interval has at least, since runs are not surer than what was measured
    within them. Runs of one side that do not differ at all show no noise, and count as one. None
    where nothing was repeated.
    """
    if not a.size or not b.size:
        return None
    sds = (_sd(a), _sd(b))
    a, b = (x if sd is not None else x[:1] for x, sd in zip((a, b), sds, strict=True))
    df = a.size + b.size - 2
    if df < 1:
        return None
    variance = sum(float(((x - x.mean()) ** 2).sum()) for x in (a, b)) / df
    difference, method, of_t = float(b.mean() - a.mean()), "t over runs of one side", float(df)
    error = math.sqrt(variance * (1 / a.size + 1 / b.size))
    if sds[0] is not None and sds[1] is not None:
        va, vb = sds[0] ** 2 / a.size, sds[1] ** 2 / b.size
        of_t = (va + vb) ** 2 / (va**2 / (a.size - 1) + vb**2 / (b.size - 1))
        error, method = math.sqrt(va + vb), "Welch's t over runs"
    half = student(0.5 + LEVEL / 2, of_t) * error
    wide = max(least, half)
    interval = Interval(difference - wide, difference + wide, LEVEL, f"{method}, on logs")
    p = student_tails(abs(difference) / error, of_t)
    return Runs(interval, p, Noise(variance, df), sds, within=least > 1.001 * half)


def _sd(x: Floats) -> float | None:
    """The standard deviation of runs; None of a single one, or where they do not differ."""
    sd = float(x.std(ddof=1)) if x.size > 1 else 0.0
    return sd if sd > 1e-12 else None


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment (Holm 1979); None stays None and does not count.

    The i-th smallest of m (from 0) is multiplied by m − i; then made to never decrease.
    """
    ranked = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    so_far = 0.0
    for rank, (p, i) in enumerate(ranked):
        so_far = max(so_far, min(1.0, (len(ranked) - rank) * p))
        adjusted[i] = so_far
    return adjusted


def replicates_to_resolve(
    log_ratios: Sequence[float] | Floats, noise: Noise | None, tests: int = 1
) -> tuple[int, int | None] | None:
    """Blocks after which a difference as large as this mean would come out, four times in five.

    The noise is the one that ``paired_ratio`` used. Least and most are for the ends of the 90 %
    interval of its variance s² (chi-squared, with the blocks that it rests on): the smallest n with
    |mean| ≥ (t(1 − α/2, f) + t(0.8, f)) · s/√n, where f grows with n as it is now, and α = 0.05
    over ``tests`` (Bonferroni, which Holm never exceeds). Most is None above 1,000 blocks; all is
    None where the least is, or where there is nothing to go by.
    """
    x = np.asarray(log_ratios, dtype=np.float64)
    if x.size < 2 or float(x.mean()) == 0:
        return None
    used = _noise_used(x, noise, NOISIER)
    n = np.arange(2, 1001)
    f = (n - 1) * used.df / (x.size - 1)
    t = students(1 - (1 - LEVEL) / 2 / max(1, tests), f) + students(0.8, f)
    resolvable = math.sqrt(used.variance) * t / np.sqrt(n)  # the least mean, at this variance
    # Where it is the pair's own variance that counts, it rests on the pair's own blocks alone.
    known = used.df if noise is not None and used.variance == noise.variance else x.size - 1
    return _from_to(abs(float(x.mean())), resolvable, known)


def runs_to_resolve(
    log_ratio: float, sd: float, df: int, tests: int = 1
) -> tuple[int, int | None] | None:
    """Runs of each of two things after which such a ratio would come out, four times in five.

    ``sd``: of a run's log value, with ``df`` degrees of freedom. As ``replicates_to_resolve``, for
    the test of ``ratio_over_runs``.
    """
    n = np.arange(2, 1001)
    t = students(1 - (1 - LEVEL) / 2 / max(1, tests), 2 * n - 2) + students(0.8, 2 * n - 2)
    return _from_to(abs(log_ratio), sd * t * np.sqrt(2 / n), df)


def _from_to(size: float, resolvable: Floats, df: int) -> tuple[int, int | None] | None:
    """The least n from 2 on with ``size`` ≥ its ``resolvable``, at both ends of the variance."""
    factors = [math.sqrt(df / chi_square(p, df)) for p in (0.95, 0.05)]
    least, most = (np.flatnonzero(size >= k * resolvable) for k in factors)
    return (2 + int(least[0]), 2 + int(most[0]) if most.size else None) if least.size else None


def inverse(ratio: Estimate) -> Estimate:
    """The ratio the other way round."""
    span = ratio.interval
    turned = span and replace(span, low=1 / span.high, high=1 / span.low)
    return replace(ratio, value=1 / ratio.value, interval=turned)


def _exp(x: float) -> float:
    return math.exp(max(-700.0, min(700.0, x)))  # neither 0 nor infinite
