"""Quantiles and tails are those of scipy.stats, which takes longer to import and to call."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from searchbench.analysis.stats import distributions

CHANCES = (1e-6, 0.025, 0.3, 0.5, 0.975, 1 - 1e-6)


@pytest.mark.parametrize("df", [1, 2.5, 19, 4000, math.inf])
def test_of_degrees_of_freedom(df: float) -> None:
    for p in CHANCES:
        assert distributions.student(p, df) == pytest.approx(stats.t.ppf(p, df), abs=1e-9)
        assert distributions.students(p, np.array([df, df])) == pytest.approx(
            [stats.t.ppf(p, df)] * 2
        )
        two_sided = 2 * stats.t.sf(3 * p, df)
        assert distributions.student_tails(-3 * p, df) == pytest.approx(two_sided)
        if df < math.inf:
            assert distributions.chi_square(p, df) == pytest.approx(stats.chi2.ppf(p, df))


def test_of_the_normal_and_of_beta() -> None:
    for p in CHANCES:
        assert distributions.normal(p) == pytest.approx(stats.norm.ppf(p), abs=1e-12)
        for a, b in ((0.5, 40.0), (3.2, 1.0), (1e4, 12.5)):
            assert distributions.beta(p, a, b) == pytest.approx(stats.beta.ppf(p, a, b))


def test_of_the_binomial() -> None:
    rng = np.random.default_rng(1)
    for p in (0.0, *CHANCES, 1.0):
        for n in (1, 7, 5000):
            share = float(rng.uniform())
            assert distributions.binomial(p, n, share) == stats.binom.ppf(p, n, share)
