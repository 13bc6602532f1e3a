"""Searches of servers that have two speeds, so that no rate between them is the usual limit."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from queues import fixed, two_speeds
from searchbench.analysis.capacity.bracket import bracket
from searchbench.analysis.capacity.pace import Seen
from searches import Found, search

PROMISE, MD4 = "p99 < 10ms, errors < 0.1%", 1740.0


def speeds(share: float, seed: int) -> Found:
    """A search of a server that has 0.8 of its speed in a share of the trials."""
    start = MD4 * float(np.exp(np.random.default_rng(seed).uniform(np.log(0.25), np.log(2))))
    return search(two_speeds(fixed(4, 0.002), 0.8, share), PROMISE, start, seed=seed)


@pytest.mark.parametrize(("share", "seed"), [(0.5, 4), (0.25, 2), (0.25, 5)])
def test_no_limit_between_two_speeds_is_called_that_of_the_usual_one(
    share: float, seed: int
) -> None:
    found = speeds(share, seed).bracket
    low, high = found.holds or 0.0, found.fails or math.inf
    assert any(low <= limit <= high for limit in (0.8 * MD4, MD4)), found.sentence
    if (low, high) == (0.0, math.inf):
        assert "so it may have two speeds, and none between them" in found.sentence
        assert "it mostly sustains is not known" in found.sentence


def test_where_only_short_trials_contradict_the_others_the_server_is_not_said_to_change() -> None:
    found = next(
        one
        for seed in range(20)
        if "so it may have two speeds" in (one := speeds(0.5, seed)).bracket.sentence
    )
    lowest = min(d.rate_per_s for d in found.driven if not d.seems_kept)
    short = [
        replace(d, full=d.full and not (d.seems_kept and d.rate_per_s >= lowest))
        for d in found.driven
    ]
    said = bracket(Seen(short)).sentence
    assert "Either the server's speed differs by about" in said
    assert "or the trials were too short to tell" in said
    assert "server changed" not in said
