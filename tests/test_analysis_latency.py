"""Quantiles against distributions whose quantiles are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from searchbench.analysis.trial import latency


@pytest.mark.parametrize(("q", "n"), [(0.5, 6), (0.9, 29), (0.99, 299), (0.999, 2995)])
def test_the_least_number_of_samples_is_where_the_extremes_enclose_the_quantile(
    q: float, n: int
) -> None:
    assert latency.minimum_samples(q) == n
    assert 1 - q**n - (1 - q) ** n >= 0.95
    assert 1 - q ** (n - 1) - (1 - q) ** (n - 1) < 0.95


def test_a_quantile_with_too_few_samples_is_not_shown() -> None:
    ordered = np.arange(298, dtype=np.int64)
    assert latency.quantile(ordered, 0.99) is None
    assert latency.quantile(np.arange(299, dtype=np.int64), 0.99) is not None
    assert 0.99 not in latency.curve("service", ordered).x
    assert 0.5 in latency.curve("service", ordered).x


def test_a_quantile_is_the_nearest_rank_and_a_time_that_happened() -> None:
    ordered = np.arange(1, 101, dtype=np.int64) * 1_000_000
    for q, expected_ms in ((0.5, 50), (0.07, 7), (0.9, 90)):
        found = latency.quantile(ordered, q)
        assert found is not None
        assert found.value == pytest.approx(expected_ms / 1e3)


@pytest.mark.parametrize("n", [6, 7, 29, 50, 299, 300, 1000, 2995, 10_000])
@pytest.mark.parametrize("q", [0.01, 0.05, 0.5, 0.9, 0.99, 0.999])
def test_the_order_statistics_hold_the_quantile_as_often_as_they_say(n: int, q: float) -> None:
    ranks = latency.interval_ranks(n, q)
    if n < latency.minimum_samples(q):
        assert ranks is None
        return
    assert ranks is not None
    low, high = ranks[0] + 1, ranks[1] + 1
    # Ranks from 1: the quantile lies between exactly if low ≤ number below < high.
    covered = stats.binom.cdf(high - 1, n, q) - stats.binom.cdf(low - 1, n, q)
    assert covered >= 0.95 - 1e-12
    assert 1 <= low < high <= n


def test_the_interval_of_an_exponential_p99_covers_the_truth_in_simulation() -> None:
    rng = np.random.default_rng(11)
    truth, hits = -math.log(0.01), 0
    for _ in range(2000):
        ordered = np.sort(rng.exponential(1e9, 400)).astype(np.int64)
        found = latency.quantile(ordered, 0.99)
        assert found is not None
        assert found.interval is not None
        hits += found.interval.low <= truth <= found.interval.high
    assert hits / 2000 >= 0.94


def test_uniform_samples_have_their_quantiles_and_their_curve_rises() -> None:
    ordered = np.sort(np.random.default_rng(3).integers(0, 10**9, 200_000)).astype(np.int64)
    curve = latency.curve("service", ordered)
    assert np.allclose(curve.y, curve.x, atol=0.005)
    assert list(curve.y) == sorted(curve.y)
    assert all(a <= b <= c for a, b, c in zip(curve.low, curve.y, curve.high, strict=True))
    assert curve.x[0] == 0.0
    assert max(curve.x) == pytest.approx(0.9999)


@pytest.mark.parametrize(("name", "q"), [("p50", 0.5), ("p9", 0.9), ("p99", 0.99), ("p999", 0.999)])
def test_names_of_quantiles_mean_what_they_say(name: str, q: float) -> None:
    assert latency.quantile_of(name) == q
