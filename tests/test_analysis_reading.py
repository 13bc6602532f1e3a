"""Quantiles of a role that reads, over trials that differ, where some have few of its requests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from searchbench.analysis.judgement import Estimate
from searchbench.analysis.roles.reading import Read, figures

MEDIAN_S = 2.0


def read(rng: np.random.Generator, asks: int) -> Read:
    """Times differ by 10 % from trial to trial and by 10 % within."""
    own = MEDIAN_S * np.exp(0.1 * rng.standard_normal())
    ns = np.sort(np.rint(1e9 * own * np.exp(0.1 * rng.standard_normal(asks)))).astype(np.int64)
    return Read(asks, 0, None, Estimate(asks / 30, "requests/s", asks), ns, ns, None, late=False)


@pytest.mark.parametrize("asks", [(30,) * 5, (4, 30, 30, 30, 30), (4,) * 5, (3, 9, 5, 4, 30)])
def test_the_interval_of_a_median_holds_it_however_few_requests_a_trial_has(
    asks: Sequence[int],
) -> None:
    misses = 0
    for seed in range(300):
        rng = np.random.default_rng([seed, 1])
        interval = figures([read(rng, n) for n in asks])["response_p50"].interval
        assert interval is not None
        misses += not interval.low <= MEDIAN_S <= interval.high
    assert misses <= 0.1 * 300


def test_without_two_trials_that_have_a_quantile_it_has_no_interval() -> None:
    rng = np.random.default_rng(1)
    one, few = read(rng, 40), read(rng, 4)
    assert figures([one])["response_p90"].interval is not None
    assert figures([one, few])["response_p90"].interval is None
