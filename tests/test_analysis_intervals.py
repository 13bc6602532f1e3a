"""Intervals that hold the truth as often as they say, by simulation with fixed seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from searchbench.analysis import intervals
from searchbench.analysis.judgement import Interval


def coverage(n: int, rounds: int, seed: int, heavy: bool = False) -> float:
    """How often the interval of the mean of n log ratios holds the true 0."""
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(rounds):
        noise = rng.standard_normal(n)
        if heavy:  # a skewed noise of mean 0: some trials are disturbed, none is helped
            noise = rng.exponential(1.0, n) - 1.0
        found = intervals.mean_interval(0.02 * noise)
        assert found is not None
        hits += found.low <= 0 <= found.high
    return hits / rounds


@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_with_few_replicates_the_interval_covers_as_often_as_it_says(n: int) -> None:
    assert coverage(n, 4000, seed=n) == pytest.approx(0.95, abs=0.012)


def test_from_ten_replicates_the_bootstrap_covers_nearly_as_often_as_it_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(intervals, "RESAMPLES", 999)  # enough for coverage, faster for a test
    assert coverage(10, 600, seed=1) >= 0.89
    assert coverage(20, 600, seed=2) >= 0.92
    assert coverage(20, 600, seed=3, heavy=True) >= 0.88


def test_a_percentile_bootstrap_over_three_replicates_would_cover_far_too_rarely() -> None:
    """The reason why it is not used."""
    rng = np.random.default_rng(4)
    hits, rounds = 0, 500
    for _ in range(rounds):
        x = rng.standard_normal(3)
        means = rng.choice(x, (999, 3)).mean(axis=1)
        low, high = np.quantile(means, (0.025, 0.975))
        hits += low <= 0 <= high
    assert hits / rounds < 0.85


def test_the_bootstrap_takes_over_at_ten_and_says_so() -> None:
    x = np.random.default_rng(0).standard_normal(10)
    few, many = intervals.mean_interval(x[:9]), intervals.mean_interval(x)
    assert few is not None
    assert many is not None
    assert few.method.startswith("t ")
    assert many.method.startswith("BCa")
    assert intervals.mean_interval(x) == many, "the same record is judged the same twice"


def test_one_replicate_has_no_interval_and_equal_ones_have_no_width() -> None:
    assert intervals.mean_interval([1.0]) is None
    assert intervals.geometric_estimate([3.0], "x") is not None
    same = intervals.mean_interval([2.0, 2.0, 2.0])
    assert isinstance(same, Interval)
    assert same.low == same.high == 2.0


def test_a_geometric_estimate_is_symmetric_in_ratios() -> None:
    up = intervals.geometric_estimate([2.0, 2.2, 1.9], "ratio")
    down = intervals.geometric_estimate([1 / 2.0, 1 / 2.2, 1 / 1.9], "ratio")
    assert up is not None
    assert down is not None
    assert up.interval is not None
    assert down.interval is not None
    assert up.value == pytest.approx(1 / down.value)
    assert up.interval.low == pytest.approx(1 / down.interval.high)


def test_holm_multiplies_the_smallest_by_the_number_of_tests_and_never_decreases() -> None:
    assert intervals.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert intervals.holm([0.01, None, 0.04]) == [pytest.approx(0.02), None, pytest.approx(0.04)]
    assert intervals.holm([0.9, 0.8]) == [1.0, 1.0]
    assert intervals.holm([]) == []


def test_holm_keeps_the_share_of_studies_with_any_false_win_below_five_percent() -> None:
    rng = np.random.default_rng(8)
    wrong = 0
    for _ in range(1000):
        p = [intervals.p_value_of_zero_mean(rng.standard_normal(4)) for _ in range(10)]
        wrong += any(v is not None and v < 0.05 for v in intervals.holm(p))
    assert wrong / 1000 < 0.065


def test_welch_covers_the_difference_of_two_records() -> None:
    rng = np.random.default_rng(6)
    hits = 0
    for _ in range(2000):
        a, b = np.exp(0.01 * rng.standard_normal(4)), 1.1 * np.exp(0.03 * rng.standard_normal(6))
        tested = intervals.welch_log_ratio(a, b)
        assert tested is not None
        hits += tested[0].low <= math.log(1.1) <= tested[0].high
    assert hits / 2000 == pytest.approx(0.95, abs=0.015)


def test_the_number_of_blocks_said_to_resolve_a_difference_does() -> None:
    rng = np.random.default_rng(12)
    needed = intervals.replicates_to_resolve([0.03, 0.05, 0.01, 0.03])
    assert needed is not None
    spread = float(np.std([0.03, 0.05, 0.01, 0.03], ddof=1))
    found = []
    for _ in range(2000):
        p = intervals.p_value_of_zero_mean(0.03 + spread * rng.standard_normal(needed))
        found.append(p is not None and p < 0.05)
    power = np.mean(found)
    assert power >= 0.78
    assert intervals.replicates_to_resolve([0.1]) is None
    assert intervals.replicates_to_resolve([0.001, -0.001]) is None
