"""One metric against one numeric factor, all others held; with a model where it fits.

Which level is the best is decided by the study's own comparisons, so that no two sentences can
contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.compare import knee, pairs, standing
from searchbench.analysis.judgement import (
    Comparison,
    Curve,
    Fit,
    Interval,
    Level,
    Scale,
    TreatmentResult,
)
from searchbench.analysis.stats.distributions import f_quantile, student
from searchbench.analysis.stats.intervals import LEVEL

USL_LEVELS = 5  # four points leave one degree of freedom to three parameters: all of them fit
USL_R_SQUARED = 0.9
ROUNDS = 4  # of weighting by what was fitted before; by then it no longer moves
AS_WELL = 3  # times the law's residual variance: what fits no worse than that, fits as well
LEAST_NOISE = 1e-6  # relative; exact data are not known better than that
CONCURRENCY = ("clients", "threads", "connections", "parts", "shards", "cores", "nodes")

Floats = NDArray[np.float64]
# By treatment, those that it is shown to be better than, and whether over all queries.
Better = Mapping[str, Mapping[str, bool]]


def scales(
    treatments: Sequence[TreatmentResult],
    metrics: Sequence[str],
    compared: Sequence[Comparison],
) -> tuple[Scale, ...]:
    """A scale for each numeric factor, each crossing of the other levels, each metric.

    Levels without a figure (no valid trial, too few requests) have no point, and none is shown to
    be better than they are; two others at least make a scale. ``compared``: the comparisons of the
    study, corrected.
    """
    found = []
    better = {metric: _better(metric, compared) for metric in metrics}
    # No doubt keeps one that lost from being beaten.
    lost = {metric: _lost(metric, compared) for metric in metrics}
    for factor in _numeric_factors(treatments):
        groups: dict[tuple[tuple[str, Level], ...], list[TreatmentResult]] = {}
        for treatment in treatments:
            if factor in treatment.levels:
                held = tuple((f, v) for f, v in treatment.levels.items() if f != factor)
                groups.setdefault(held, []).append(treatment)
        for held, members in groups.items():
            for metric in metrics:
                usable = [t for t in members if metric in t.figures]
                unknown = [float(t.levels[factor]) for t in members if metric not in t.figures]
                if len(usable) >= 2:
                    ordered = sorted(usable, key=lambda t: float(t.levels[factor]))
                    of = better[metric], lost[metric]
                    found.append(_scale(factor, metric, dict(held), ordered, *of, unknown))
    return tuple(found)


def fit_usl(x: Sequence[float], y: Sequence[float]) -> Fit | None:
    """The Universal Scalability Law, where there are five levels and it explains the data.

    X(N) = λN / (1 + σ(N − 1) + κN(N − 1)); λ the rate of one, σ contention, κ coherence; peak at
    N = √((1 − σ)/κ) (Gunther, Guerrilla Capacity Planning, 2007, ch. 4). N/X is linear in 1/λ, σ/λ
    and κ/λ, so least squares of its relative errors gives t-intervals with three degrees of freedom
    less than levels, and Fieller's (1954) of their ratios. None below five levels, where R² < 0.9
    on logs, where the fit is no rate, where a ceiling fits as well, or where κ would be told and a
    network without coherence (``knee``) does not fit significantly worse. ``x`` ascends.
    """
    n, rate = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if n.size < USL_LEVELS or np.any(n < 1) or np.any(rate <= 0):
        return None
    terms = np.column_stack([np.ones_like(n), n - 1, n * (n - 1)])
    cycle = n / rate
    fitted = cycle
    for _ in range(ROUNDS):  # errors are relative to what is fitted
        weighted = terms / fitted[:, None]
        solution = np.linalg.lstsq(weighted, cycle / fitted, rcond=None)[0]
        fitted = terms @ solution
        if np.any(fitted <= 0):
            return None
    spread = float(np.sum((np.log(rate) - np.log(rate).mean()) ** 2))
    r_squared = 1 - float(np.sum(np.log(cycle / fitted) ** 2)) / spread if spread > 0 else 0.0
    if r_squared < USL_R_SQUARED:
        return None
    df = n.size - terms.shape[1]
    noise = max(float(np.sum((cycle / fitted - 1) ** 2)) / df, LEAST_NOISE**2)
    if _ceiling(n, rate, AS_WELL * noise):
        return None
    inverse = np.linalg.pinv(terms / fitted[:, None])
    # A fourth, exact value: 1. So λ too is a ratio of two linear combinations.
    values, covariance = np.append(solution, 1.0), np.zeros((4, 4))
    covariance[:3, :3] = noise * inverse @ inverse.T
    base, slope, curvature, one = np.eye(4)
    t = student(0.5 + LEVEL / 2, df)
    parameters, intervals = {}, {}
    ratios = {"lambda": (one, base), "sigma": (slope, base), "kappa": (curvature, base)}
    for name, (top, bottom) in ratios.items():
        span = _ratio_interval(top, bottom, values, covariance, t)
        if span is not None and span.low > 0:
            parameters[name] = float(top @ values / (bottom @ values))
            intervals[name] = span
    if "kappa" in parameters:
        # Of as many parameters, so the residual variances have F as their ratio.
        law = max(float(np.sum(np.log(cycle / fitted) ** 2)), df * LEAST_NOISE**2)
        if knee.squares(n, rate) <= f_quantile(LEVEL, df, df) * law:
            return None
    peak, above = None, base - slope
    squared = _ratio_interval(above, curvature, values, covariance, t)
    if (
        squared is not None
        and "kappa" in parameters  # else it may be a trough
        and n.min() ** 2 <= squared.low
        and squared.high <= n.max() ** 2
    ):
        peak = math.sqrt(above @ values / (curvature @ values))
        low, high = math.sqrt(squared.low), math.sqrt(squared.high)
        intervals["peak"] = Interval(low, high, LEVEL, squared.method)
    return Fit("Universal Scalability Law", parameters, r_squared, peak, intervals)


def _ceiling(n: Floats, rate: Floats, most: float) -> bool:
    """Whether min(λN, C) explains the data up to a residual variance, and λN alone does not.

    So it is with a closed loop on a server that has C / λ workers: neither contention nor
    coherence.
    """
    rise, top = np.log(rate / n), np.log(rate)
    knee = min(_squares(rise[:k]) + _squares(top[k:]) for k in range(1, n.size))
    return bool(knee <= (n.size - 2) * most and _squares(rise) > (n.size - 1) * most)


def _squares(values: Floats) -> float:
    return float(np.sum((values - values.mean()) ** 2))


def _ratio_interval(
    top: Floats, bottom: Floats, values: Floats, covariance: Floats, t: float
) -> Interval | None:
    """Fieller's interval (1954) of a ratio of two linear combinations of normal ``values``.

    None where the denominator is not told from 0: the interval has no end then.
    """
    x, y = float(top @ values), float(bottom @ values)
    xx, xy, yy = (
        t * t * float(u @ covariance @ v) for u, v in ((top, top), (top, bottom), (bottom, bottom))
    )
    a, b, c = y * y - yy, x * y - xy, x * x - xx
    if a <= 0:
        return None
    half = math.sqrt(max(0.0, b * b - a * c))
    return Interval((b - half) / a, (b + half) / a, LEVEL, "t over levels, Fieller")


def _scale(
    factor: str,
    metric: str,
    held: Mapping[str, Level],
    ordered: Sequence[TreatmentResult],
    better: Better,
    lost: Better,
    unknown: Sequence[float],
) -> Scale:
    """``unknown``: the levels that have no figure."""
    figures = [t.figures[metric] for t in ordered]
    x = tuple(float(t.levels[factor]) for t in ordered)
    y = tuple(f.value for f in figures)
    low = tuple(f.interval.low if f.interval else f.value for f in figures)
    high = tuple(f.interval.high if f.interval else f.value for f in figures)
    label = ", ".join(str(v) for v in held.values()) or metric
    sign = 1 if metric in ("throughput", "ingest_documents_per_s") else -1
    names = [t.treatment for t in ordered]
    beaten = {loser for name in names for loser in lost.get(name, ())}
    # A comparison is over the queries that agree, so the best mean may belong to one that lost.
    unbeaten = [i for i, name in enumerate(names) if name not in beaten] or range(len(names))
    at = max(unbeaten, key=lambda i: sign * y[i])
    below = _below(names[at], better, set(names))
    unclear = tuple(
        sorted([*(x[i] for i, name in enumerate(names) if i != at and name not in below), *unknown])
    )
    counts = factor.rsplit(".", 1)[-1]
    fit = fit_usl(x, y) if metric == "throughput" and counts in CONCURRENCY else None
    if fit:
        fit = _resolved(fit, x[at], [x[i] for i, name in enumerate(names) if name in below])
    return Scale(
        factor, metric, figures[0].unit, held, Curve(label, x, y, low, high), x[at], unclear, fit
    )


def _resolved(fit: Fit, best: float, worse: Sequence[float]) -> Fit:
    """The fit without what no comparison shows: coherence makes more clients slower than fewer,
    and a peak makes those beyond it slower. ``worse``: levels that the ``best`` is better than.

    A clock that falls as more cores are busy bends the curve as coherence does, and it never falls.
    """
    most = max(worse, default=0.0)
    out = {"peak"} if fit.peak and most <= fit.peak else set()
    if most <= best:
        out = {"peak", "kappa"}
    return replace(
        fit,
        parameters={name: value for name, value in fit.parameters.items() if name not in out},
        intervals={name: span for name, span in fit.intervals.items() if name not in out},
        peak=None if "peak" in out else fit.peak,
    )


def _better(metric: str, compared: Sequence[Comparison]) -> Better:
    """Whom each is shown to be better than, by the rule for the best: without any doubt."""
    found: dict[str, dict[str, bool]] = {}
    for c in compared:
        if c.metric == metric and c.verdict in ("faster", "slower"):
            winner, loser = (c.b, c.a) if c.verdict == "faster" else (c.a, c.b)
            if not standing.doubt(pairs.of(winner, c)):
                found.setdefault(winner, {})[loser] = not c.queries_left_out
    return found


def _lost(metric: str, compared: Sequence[Comparison]) -> Better:
    """Whom each is resolved to be better than, in doubt or not, over enough queries."""
    found: dict[str, dict[str, bool]] = {}
    for c in compared:
        few = c.queries_measured is not None and not standing.covered(c)
        if c.metric == metric and c.verdict in ("faster", "slower") and not few:
            winner, loser = (c.b, c.a) if c.verdict == "faster" else (c.a, c.b)
            found.setdefault(winner, {})[loser] = True
    return found


def _below(first: str, better: Better, members: set[str]) -> set[str]:
    """The members that ``first`` is shown to be better than, directly or by way of others.

    Of many treatments only neighbouring levels are compared. All that is resolved holds at once
    in 95 % of studies (Holm), and so does what follows from it; but it follows only where every
    link of a chain is over all queries, for else each is over queries of its own.
    """
    found = set(better.get(first, ())) & members
    todo, seen = [first], {first}
    while todo:
        over_all = {t for t, whole in better.get(todo.pop(), {}).items() if whole}
        new = (over_all & members) - seen
        seen |= new
        todo += new
    return (found | seen) - {first}


def _numeric_factors(treatments: Sequence[TreatmentResult]) -> list[str]:
    levels: dict[str, set[Level]] = {}
    for treatment in treatments:
        for factor, level in treatment.levels.items():
            levels.setdefault(factor, set()).add(level)
    return [
        factor
        for factor, found in levels.items()
        if len(found) >= 2
        and all(isinstance(v, int | float) and not isinstance(v, bool) for v in found)
    ]
