"""Intervals that hold the truth as often as they say, by simulation with fixed seeds."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from benches.gate import false_wins
from scipy import stats

from searchbench.analysis.judgement import Interval
from searchbench.analysis.stats import intervals


def noise(kind: str, n: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Log ratios around a true 0: normal; skewed (some trials are disturbed, none is helped);
    or with an outlier in ten.
    """
    if kind == "skewed":
        return rng.exponential(1.0, n) - 1.0
    return rng.standard_normal(n) * (
        np.where(rng.random(n) < 0.1, 6.0, 1.0) if kind == "outliers" else 1.0
    )


def coverage(kind: str, n: int, rounds: int = 4000) -> float:
    """How often the interval of the mean of n log ratios holds the truth."""
    rng = np.random.default_rng(n)
    hits = 0
    for _ in range(rounds):
        found = intervals.mean_interval(0.02 * noise(kind, n, rng))
        assert found is not None
        hits += found.low <= 0 <= found.high
    return hits / rounds


def bootstrap_coverage(kind: str, n: int, method: str, rounds: int = 400) -> float:
    rng = np.random.default_rng(n)
    hits = 0
    for _ in range(rounds):
        found = stats.bootstrap(
            (noise(kind, n, rng),), np.mean, n_resamples=499, method=method, random_state=rng
        ).confidence_interval
        hits += found.low <= 0 <= found.high
    return hits / rounds


@pytest.mark.parametrize("n", [2, 3, 5, 10, 20])
def test_the_interval_covers_as_often_as_it_says(n: int) -> None:
    assert coverage("normal", n) == pytest.approx(0.95, abs=0.012)


@pytest.mark.parametrize(("kind", "least"), [("skewed", 0.87), ("outliers", 0.94)])
@pytest.mark.parametrize("n", [3, 5, 10, 20])
def test_it_covers_nearly_as_often_where_the_noise_is_not_normal(
    kind: str, least: float, n: int
) -> None:
    assert coverage(kind, n) >= least


def test_a_bootstrap_would_cover_less_often_which_is_why_none_is_used() -> None:
    assert bootstrap_coverage("normal", 3, "percentile") < 0.85
    assert bootstrap_coverage("normal", 5, "percentile") < 0.90
    assert bootstrap_coverage("outliers", 10, "BCa") < coverage("outliers", 10) - 0.05


def pooled_coverage(sds: list[float], blocks: int, rounds: int = 1500) -> float:
    """How often the interval of treatment 1 against 0 holds the truth, block effects and all."""
    rng = np.random.default_rng(blocks)
    scale = np.array(sds)[:, None]
    hits = 0
    for _ in range(rounds):
        y = scale * rng.standard_normal((len(sds), blocks)) + 5 * rng.standard_normal(blocks)
        cells = {(f"t{i}", b, False): y[i, b] for i in range(len(sds)) for b in range(blocks)}
        ratio, p = intervals.paired_ratio(0.01 * (y[1] - y[0]), _scaled(cells))
        assert ratio is not None
        assert ratio.interval is not None
        assert p is not None
        hit = ratio.interval.low <= 1 <= ratio.interval.high
        assert hit or p < 0.05, "the interval is never the narrower one"
        hits += hit
    return hits / rounds


def _scaled(cells: dict[tuple[str, int, bool], float]) -> intervals.Noise | None:
    return intervals.block_noise({key: 0.01 * value for key, value in cells.items()})


@pytest.mark.parametrize("blocks", [2, 3, 5])
def test_the_noise_of_the_study_may_be_drawn_upon_and_the_interval_still_covers(
    blocks: int,
) -> None:
    assert pooled_coverage([1, 1, 1, 1], blocks) >= 0.945


@pytest.mark.parametrize("blocks", [2, 3, 5])
@pytest.mark.parametrize("sds", [[3, 1, 1, 1], [3, 3, 1, 1], [3, 3, 1, 1, 1, 1, 1, 1]])
def test_a_pair_three_times_as_noisy_as_the_rest_is_covered_nearly_as_often(
    sds: list[float], blocks: int
) -> None:
    assert pooled_coverage(sds, blocks) >= (0.91 if blocks == 2 else 0.94)


def false_and_found(sds: list[float], blocks: int, effect: float) -> tuple[float, float]:
    """Of studies of equal systems, the share that resolve any difference after Holm's correction;
    and the share of pairs that are resolved where each is that far apart.
    """
    rng = np.random.default_rng([len(sds), blocks])
    scale, rounds = np.array(sds)[:, None], 60
    pairs = list(itertools.combinations(range(len(sds)), 2))
    wrong, found = 0, 0.0
    for _ in range(rounds):
        y = 0.01 * scale * rng.standard_normal((len(sds), blocks))
        noise = intervals.block_noise(
            {(f"t{i}", b, False): y[i, b] for i in range(len(sds)) for b in range(blocks)}
        )
        equal, apart = (
            intervals.holm([intervals.paired_ratio(y[j] - y[i] + by, noise)[1] for i, j in pairs])
            for by in (0.0, effect)
        )
        wrong += any(p is not None and p < 0.05 for p in equal)
        found += sum(p is not None and p < 0.05 for p in apart) / len(pairs)
    return wrong / rounds, found / rounds


def test_of_many_treatments_those_that_are_noisier_by_chance_are_resolved_too() -> None:
    """With its own degrees of freedom, none of the pairs above the study's noise was: 0.62."""
    wrong, found = false_and_found([1] * 16, 3, 0.2)
    assert found > 0.8
    assert wrong <= 0.1


@pytest.mark.parametrize("noisy", [3, 10, 30])
def test_one_of_many_treatments_that_is_noisier_is_seldom_said_to_differ(noisy: float) -> None:
    assert false_and_found([noisy, *[1] * 11], 3, 0.0)[0] <= 0.1


def test_two_blocks_can_resolve_a_tenfold_difference_in_a_noisy_study() -> None:
    rng = np.random.default_rng(3)
    y = 0.2 * rng.standard_normal((4, 2)) + np.array([0, math.log(10), 0.3, 0.6])[:, None]
    cells = {(f"t{i}", b, False): y[i, b] for i in range(4) for b in range(2)}
    ratio, p = intervals.paired_ratio(y[1] - y[0], intervals.block_noise(cells))
    assert ratio is not None
    assert ratio.interval is not None
    assert ratio.interval.low > 1.5
    assert p is not None
    assert p < 0.05


def test_block_effects_are_no_noise_and_missing_cells_are_no_trouble() -> None:
    cells = {(t, b, False): a + 10.0 * b for t, a in (("x", 1.0), ("y", 2.0)) for b in range(4)}
    found = intervals.block_noise(cells)
    assert found is not None
    assert found.variance == pytest.approx(0, abs=1e-18)
    assert found.df == 3
    del cells["x", 2, False]
    found = intervals.block_noise(cells)
    assert found is not None
    assert found.df == 2
    assert intervals.block_noise({("x", 0, False): 1.0}) is None
    assert intervals.block_noise({}) is None


def test_one_replicate_has_no_interval_and_equal_ones_have_no_width() -> None:
    assert intervals.mean_interval([1.0]) is None
    assert intervals.geometric_estimate([3.0], "x") is not None
    same = intervals.mean_interval([2.0, 2.0, 2.0])
    assert isinstance(same, Interval)
    assert same.low == same.high == 2.0


def test_a_ratio_of_which_nothing_is_known_has_an_end_near_nought_and_can_be_turned() -> None:
    ratio, _ = intervals.paired_ratio([-600.0, 600.0], None)
    assert ratio is not None
    assert ratio.interval is not None
    turned = intervals.inverse(ratio).interval
    assert turned is not None
    assert turned.low == pytest.approx(1 / ratio.interval.high)


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
        p = [intervals.paired_ratio(rng.standard_normal(4), None)[1] for _ in range(10)]
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


@pytest.mark.parametrize("runs", [4, 6])
def test_equal_things_are_seldom_told_apart_over_runs_and_far_ones_are(runs: int) -> None:
    rng = np.random.default_rng(runs)

    def found(change: float) -> float:
        """The share resolved: runs differ by 2 %, trials within a run by 0.5 %."""
        resolved = 0
        for _ in range(1000):
            trials = 0.02 * rng.standard_normal((runs + 1, 1)) + 0.005 * rng.standard_normal(
                (runs + 1, 5)
            )
            values = trials.mean(axis=1)
            tested = intervals.ratio_over_runs(values[:-1], values[-1:] + change)
            assert tested is not None
            assert (tested.ratio.low > 0 or tested.ratio.high < 0) == (tested.p < 0.05)
            assert tested.noise.df == runs - 1
            resolved += tested.p < 0.05
        return resolved / 1000

    assert found(0.0) < 0.065
    assert found(0.15) > 0.9


def test_runs_are_never_surer_than_their_trials_and_copies_tell_nothing() -> None:
    a, b = np.array([0.0, 0.001, -0.001]), np.array([0.05])
    narrow, wide = intervals.ratio_over_runs(a, b), intervals.ratio_over_runs(a, b, 0.06)
    assert narrow is not None
    assert wide is not None
    assert narrow.ratio.low > 0
    assert wide.ratio.low == pytest.approx(-0.01)
    assert intervals.ratio_over_runs(np.zeros(3), b) is None
    assert intervals.ratio_over_runs(np.zeros(1), b) is None


@pytest.mark.parametrize(("systems", "blocks"), [(2, 2), (2, 3), (2, 5), (4, 2), (4, 3)])
def test_one_noisy_system_does_not_win_by_chance(systems: int, blocks: int) -> None:
    assert false_wins((1.0,) * (systems - 1) + (10.0,), blocks, 400) <= 0.05


def test_the_number_of_blocks_said_to_resolve_a_difference_does() -> None:
    """At either end: if the noise is as small, or as great, as the interval of it allows."""
    rng = np.random.default_rng(12)
    logs = [0.03, 0.05, 0.01, 0.03]
    found = intervals.replicates_to_resolve(logs, None)
    assert found is not None
    spread = float(np.std(logs, ddof=1))
    for needed, p_of_variance in zip(found, (0.95, 0.05), strict=True):
        assert needed is not None
        true = spread * math.sqrt(3 / stats.chi2.ppf(p_of_variance, 3))
        drawn = 0.03 + true * rng.standard_normal((1000, needed))
        resolved = [(intervals.paired_ratio(x, None)[1] or 0.0) < 0.05 for x in drawn]
        assert np.mean(resolved) >= 0.78
    assert intervals.replicates_to_resolve([0.1], None) is None
    assert intervals.replicates_to_resolve([0.001, -0.001], None) is None


def test_the_range_of_blocks_holds_those_that_the_true_noise_asks_for() -> None:
    """Six treatments in five blocks: the pair's own four degrees of freedom say next to nothing."""
    rng = np.random.default_rng(3)
    within, rounds = 0, 400
    n = np.arange(2, 1001)
    t = stats.t.ppf(0.975, 3 * (n - 1)) + stats.t.ppf(0.8, 3 * (n - 1))
    truth = int(n[0.02 * math.sqrt(2) * t / np.sqrt(n) <= 0.01][0])
    for _ in range(rounds):
        y = 0.02 * rng.standard_normal((6, 5))
        cells = {(str(t), b, False): y[t, b] for t in range(6) for b in range(5)}
        logs = y[1] - y[0]
        logs += 0.01 - logs.mean()  # the difference that is seen
        found = intervals.replicates_to_resolve(logs, intervals.block_noise(cells))
        assert found is not None
        within += found[0] <= truth <= (found[1] or 1001)
    assert within / rounds >= 0.9
