"""Searches of servers that have two speeds, so that no rate between them is the usual limit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from queues import fixed, two_speeds
from searches import search

PROMISE, MD4 = "p99 < 10ms, errors < 0.1%", 1740.0


@pytest.mark.parametrize(("share", "seed"), [(0.5, 4), (0.25, 2), (0.25, 5)])
def test_no_limit_between_two_speeds_is_called_that_of_the_usual_one(
    share: float, seed: int
) -> None:
    start = MD4 * float(np.exp(np.random.default_rng(seed).uniform(np.log(0.25), np.log(2))))
    found = search(two_speeds(fixed(4, 0.002), 0.8, share), PROMISE, start, seed=seed).bracket
    low, high = found.holds or 0.0, found.fails or math.inf
    assert any(low <= limit <= high for limit in (0.8 * MD4, MD4)), found.sentence
    if (low, high) == (0.0, math.inf):
        assert "so it may have two speeds, and none between them" in found.sentence
        assert "what it mostly sustains is not known" in found.sentence
