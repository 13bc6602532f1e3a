"""The interval of a quantile of all trials together holds that of further trials."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from searchbench.analysis.judgement import Estimate
from searchbench.analysis.trial.pooled import FOREVER_NS, of_figure, pooled_quantile

STUDIES, TRIALS = 120, 5
Z = {0.5: 0.0, 0.9: 1.2816, 0.99: 2.3263}


def found(parts: list[NDArray[np.int64]], q: float) -> Estimate | None:
    parts = [np.sort(part) for part in parts]
    return pooled_quantile(parts, np.sort(np.concatenate(parts)), q)


def trials(rng: np.random.Generator, n: int, between: float, sd: float) -> list[NDArray[np.int64]]:
    starts = rng.normal(0, between, TRIALS)
    return [(1e8 * np.exp(rng.normal(start, sd, n))).astype(np.int64) for start in starts]


@pytest.mark.parametrize(
    ("q", "n", "between", "sd"),
    [
        (0.99, 250, 0.0, 0.4),  # too few for a p99 of one trial
        (0.99, 250, 0.1, 0.4),
        (0.99, 250, 0.3, 0.4),
        (0.99, 2000, 0.3, 0.4),
        (0.99, 2000, 0.05, 0.02),  # the slowest trial decides
        (0.9, 20, 0.2, 0.2),
        (0.5, 30, 0.3, 0.1),
    ],
)
def test_the_interval_holds_the_quantile_of_further_trials(
    q: float, n: int, between: float, sd: float
) -> None:
    rng = np.random.default_rng(3)
    true_s = 0.1 * math.exp(Z[q] * math.hypot(between, sd))
    missed = 0
    for _ in range(STUDIES):
        estimate = found(trials(rng, n, between, sd), q)
        assert estimate is not None
        assert estimate.interval is not None
        missed += not estimate.interval.low <= true_s <= estimate.interval.high
    assert missed <= 0.1 * STUDIES


def test_trials_that_are_alike_are_no_less_sure_than_their_samples_together() -> None:
    estimate = found(trials(np.random.default_rng(1), 5000, 0.0, 0.4), 0.99)
    assert estimate is not None
    assert estimate.interval is not None
    assert estimate.interval.high / estimate.interval.low < 1.12


def test_one_trial_in_which_the_quantile_took_forever_has_no_upper_end() -> None:
    parts = trials(np.random.default_rng(2), 30, 0.1, 0.1)
    parts[0][:18] = FOREVER_NS
    estimate = found(parts, 0.5)
    assert estimate is not None
    assert estimate.interval is not None
    assert estimate.value < 1
    assert estimate.interval.high == FOREVER_NS / 1e9


def test_without_two_trials_that_have_the_quantile_nobody_knows_how_trials_differ() -> None:
    parts = trials(np.random.default_rng(2), 80, 0.1, 0.1)
    estimate = found(parts, 0.99)
    assert estimate is not None
    assert estimate.n == 400
    assert estimate.interval is None


def test_two_trials_that_are_very_unlike_tell_nothing() -> None:
    fast, slow = np.full(3000, 1000), np.full(3000, 100 * 10**9)
    estimate = found([fast.astype(np.int64), slow.astype(np.int64)], 0.999)
    assert estimate is not None
    assert estimate.interval is not None
    assert estimate.interval.high > 1e6


@pytest.mark.parametrize("first", [0.002, 0.0])
def test_a_share_of_several_trials_is_that_of_all_that_was_asked(first: float) -> None:
    """A mean of logarithms would make 0.68 % of these, and 18 % where one trial has no failure."""
    shares = [first, 0.002, 0.002, 0.002, 0.9]
    found = of_figure("error_share", [Estimate(share, "share", 1000) for share in shares])
    assert found.value == pytest.approx(sum(shares) / 5)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (0.0, pytest.approx(0.68, abs=0.02))
    sure = of_figure("error_share", [Estimate(share, "share", 9) for share in (0.5, 1.0, 1.0)])
    assert sure.interval is not None
    assert sure.interval.high == 1.0


def test_a_maximum_of_several_trials_is_the_greatest() -> None:
    each = [Estimate(seconds, "s", 1000) for seconds in (0.05, 0.05, 0.05, 0.05, 8.0)]
    found = of_figure("response_max", each)
    assert (found.value, found.interval) == (8.0, None)
    assert of_figure("response_p99", each).value < 0.2
    assert of_figure("response_max", each[:1]).value == pytest.approx(0.05)
