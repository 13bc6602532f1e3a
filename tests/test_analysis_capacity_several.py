"""Several conditions that limit equally: the least of their upper ends is not too low too often."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from queues import fixed
from searchbench.analysis.capacity.pace import Driven
from searchbench.analysis.capacity.posterior import TAIL, Posterior, of_several, posterior
from searchbench.analysis.capacity.promise import Kept
from searchbench.workload.load_table import parse_promise
from searches import search


@pytest.fixture(scope="module")
def driven() -> list[Driven]:
    """Trials of M/D/4 of 2 ms, whose limit at p99 < 10 ms is 1,740 a second."""
    return [*search(fixed(4, 0.002), "p99 < 10ms", 1500.0, effort=0.3).driven]


def of(driven: list[Driven], *also: Kept | None, k: int = 1) -> Posterior:
    """With ``k`` conditions that fared alike, and others that never broke."""
    judged = [replace(d.judged, kept=(*d.judged.kept * k, *filter(None, also))) for d in driven]
    return posterior([d.judged.offered_per_s for d in driven], judged, [1] * len(driven))


@pytest.mark.parametrize("k", [2, 4, 8])
def test_upper_ends_of_equal_conditions_share_their_chance(driven: list[Driven], k: int) -> None:
    one, several = of(driven), of(driven, k=k)
    assert several.quantile(TAIL) == pytest.approx(one.quantile(TAIL), rel=1e-3)
    assert several.quantile(0.5) == pytest.approx(one.quantile(0.5), rel=1e-3)
    assert several.quantile(1 - TAIL) == pytest.approx(one.quantile(1 - TAIL / k), rel=1e-3)
    assert several.quantile(1 - TAIL) > 1.0005 * one.quantile(1 - TAIL)
    assert np.all(np.diff(several.below) >= 0)


def test_a_condition_that_breaks_far_above_changes_nothing(driven: list[Driven]) -> None:
    (far,) = parse_promise("p99 < 10s")
    alone = driven[0].judged.kept[0]
    never = replace(alone, condition=far, share=0.0, low=0.0, high=0.001)
    one, two = of(driven), of(driven, never)
    for q in (TAIL, 0.5, 1 - TAIL):
        assert two.quantile(q) == pytest.approx(one.quantile(q), rel=1e-3)


def test_of_conditions_that_limit_equally_the_least_upper_end_is_rarely_too_low() -> None:
    """Each end is normal about the truth. By themselves, of eight up to 18 % were too low."""
    rng, grid = np.random.default_rng(1), np.linspace(-6, 6, 4001)
    for k in (1, 4, 8):
        plain = corrected = 0
        for _ in range(1000):
            at = float(rng.standard_normal(k).min())
            below = np.interp(grid, *_normal(at))
            plain += float(np.interp(1 - TAIL, below, grid)) < 0
            corrected += float(np.interp(1 - TAIL, of_several(below, k), grid)) < 0
        assert corrected <= 0.04 * 1000
        assert (plain > 0.07 * 1000) is (k > 1)


def _normal(at: float) -> tuple[np.ndarray, np.ndarray]:
    x = np.linspace(-6, 6, 601)
    density = np.exp(-(x**2) / 2)
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return x + at, below / below[-1]
