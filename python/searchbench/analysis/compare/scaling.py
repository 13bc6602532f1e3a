"""One metric against one numeric factor, all others held; with a model where it fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from searchbench.analysis.judgement import Curve, Fit, Level, Scale, TreatmentResult
from searchbench.analysis.stats.intervals import paired_ratio

USL_LEVELS = 4
USL_R_SQUARED = 0.9
PEAK_WITHIN = 4.0  # times the greatest level measured
CONCURRENCY = ("clients", "threads", "connections", "parts", "shards", "cores", "nodes")

Floats = NDArray[np.float64]


def scales(treatments: Sequence[TreatmentResult], metrics: Sequence[str]) -> tuple[Scale, ...]:
    """A scale for each numeric factor, each crossing of the other levels, each metric.

    Levels without a valid trial are left out; two levels at least make a scale.
    """
    found = []
    for factor in _numeric_factors(treatments):
        groups: dict[tuple[tuple[str, Level], ...], list[TreatmentResult]] = {}
        for treatment in treatments:
            if factor in treatment.levels:
                held = tuple((f, v) for f, v in treatment.levels.items() if f != factor)
                groups.setdefault(held, []).append(treatment)
        for held, members in groups.items():
            for metric in metrics:
                usable = [t for t in members if metric in t.figures]
                if len(usable) >= 2:
                    ordered = sorted(usable, key=lambda t: float(t.levels[factor]))
                    found.append(_scale(factor, metric, dict(held), ordered))
    return tuple(found)


def fit_usl(x: Sequence[float], y: Sequence[float]) -> Fit | None:
    """The Universal Scalability Law, where there are four levels and it explains the data.

    X(N) = λN / (1 + σ(N − 1) + κN(N − 1)); λ the rate of one, σ contention, κ coherence, all
    ≥ 0; peak at N = √((1 − σ)/κ) (Gunther, Guerrilla Capacity Planning, 2007, ch. 4). None
    below four levels or where R² < 0.9.
    """
    n, rate = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if n.size < USL_LEVELS or np.any(n < 1) or np.any(rate <= 0):
        return None

    def residuals(p: Floats) -> Floats:
        model = p[0] * n / (1 + p[1] * (n - 1) + p[2] * n * (n - 1))
        return np.asarray(np.log(model) - np.log(rate))

    first = np.array([rate[0] / n[0], 0.05, 0.001])
    solved = optimize.least_squares(
        residuals, first, bounds=([1e-12, 0, 0], [np.inf, np.inf, np.inf]), x_scale=first
    )
    rate_of_one, sigma, kappa = (float(v) for v in solved.x)
    spread = float(np.sum((np.log(rate) - np.log(rate).mean()) ** 2))
    r_squared = 1 - float(np.sum(solved.fun**2)) / spread if spread > 0 else 0.0
    if not solved.success or r_squared < USL_R_SQUARED:
        return None
    peak = float(np.sqrt((1 - sigma) / kappa)) if kappa > 0 and sigma < 1 else None
    if peak is not None and peak > PEAK_WITHIN * float(n.max()):
        peak = None  # far outside of what was measured it is an artefact of a tiny kappa
    parameters = {"lambda": rate_of_one, "sigma": sigma, "kappa": kappa}
    return Fit("Universal Scalability Law", parameters, r_squared, peak)


def _scale(
    factor: str, metric: str, held: Mapping[str, Level], ordered: Sequence[TreatmentResult]
) -> Scale:
    figures = [t.figures[metric] for t in ordered]
    x = tuple(float(t.levels[factor]) for t in ordered)
    y = tuple(f.value for f in figures)
    low = tuple(f.interval.low if f.interval else f.value for f in figures)
    high = tuple(f.interval.high if f.interval else f.value for f in figures)
    label = ", ".join(str(v) for v in held.values()) or metric
    more_is_better = metric in ("throughput", "ingest_documents_per_s")
    at = int(np.argmax(y) if more_is_better else np.argmin(y))
    unclear = tuple(
        level
        for level, treatment in zip(x, ordered, strict=True)
        if treatment is not ordered[at] and not _differs(treatment, ordered[at], metric)
    )
    counts = factor.rsplit(".", 1)[-1]
    fit = fit_usl(x, y) if metric == "throughput" and counts in CONCURRENCY else None
    return Scale(
        factor, metric, figures[0].unit, held, Curve(label, x, y, low, high), x[at], unclear, fit
    )


def _differs(a: TreatmentResult, b: TreatmentResult, metric: str) -> bool:
    """Whether paired by block two levels differ at 5 %, uncorrected: for a remark, no verdict."""
    values = [
        {t.block: t.figures[metric].value for t in of.trials if t.counts and metric in t.figures}
        for of in (a, b)
    ]
    logs = [float(np.log(values[1][i] / values[0][i])) for i in values[0] if i in values[1]]
    _, p = paired_ratio(logs, None)
    return p is not None and p < 0.05


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
