"""Sums over time whose parts depend on each other: how much they vary, and what they are worth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

LEVEL = 0.95
_Z = float(stats.norm.ppf(0.5 + LEVEL / 2))

Floats = NDArray[np.float64]


def long_run(steps: NDArray[Any]) -> tuple[float, float]:
    """Variance of the sum of a stationary series, and degrees of freedom of that estimate.

    Geyer's initial monotone sequence: autocovariances in pairs, until a pair is not positive.
    """
    n = steps.size
    centred = steps - steps.mean()
    spectrum = np.fft.rfft(centred, 2 * n)
    covariance = np.fft.irfft(spectrum * np.conj(spectrum))[:n] / n
    pairs = covariance[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    stop = int(np.argmax(pairs <= 0)) if np.any(pairs <= 0) else pairs.size
    total = 2 * float(np.minimum.accumulate(pairs[:stop]).sum()) - float(covariance[0])
    # Never below what independent slices would have by more than their own chance.
    variance = n * max(total, 0.1 * float(covariance[0]))
    return variance, max(3.0, n / (2.0 * max(1, stop)) - 1)


def design_effect(due: NDArray[np.int64], failed: NDArray[np.bool_], edges: Floats) -> float:
    """Variance of the share over that of independent requests, at least 1; by Student's t."""
    p = float(failed.mean())
    if p in (0.0, 1.0):
        return 1.0
    of = np.histogram(due, edges)[0]
    late = np.histogram(due[failed], edges)[0]
    variance, freedom = long_run(late - p * of)
    wider = float(stats.t.ppf(0.5 + LEVEL / 2, freedom)) / _Z
    return max(1.0, variance / (due.size * p * (1 - p))) * wider**2
