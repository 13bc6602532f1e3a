"""Scaling: which level is the best, and what the Universal Scalability Law may say."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from records import Study, lognormal
from searchbench.analysis.compare.scaling import fit_usl, scales
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import (
    Comparison,
    Curve,
    Estimate,
    Fit,
    TreatmentResult,
)
from searchbench.record import open_record

TOLD_AT_MOST = 0.05
LEVELS = (1.0, 2.0, 4.0, 8.0, 16.0)


def law(levels: Sequence[float], sigma: float, kappa: float) -> np.ndarray:
    n = np.asarray(levels)
    return 1000 * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def fits(
    levels: Sequence[float], sigma: float, kappa: float, noise: float, times: int = 400
) -> list[Fit]:
    """The law with log-normal noise, fitted so many times; those fits that are shown."""
    rng = np.random.default_rng(5)
    true = law(levels, sigma, kappa)
    rates = true * np.exp(noise * rng.standard_normal((times, len(levels))))
    found = (fit_usl(levels, rate.tolist()) for rate in rates)
    return [fit for fit in found if fit is not None]


@pytest.mark.parametrize("levels", [(1, 2, 4, 8), LEVELS, (1, 2, 3, 4, 6, 8, 12, 16)])
@pytest.mark.parametrize("sigma", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_without_coherence_neither_a_peak_nor_kappa_is_told(
    levels: Sequence[float], sigma: float, noise: float
) -> None:
    found = fits(levels, sigma, 0.0, noise)
    assert sum(fit.peak is not None for fit in found) <= TOLD_AT_MOST * 400
    assert sum("kappa" in fit.parameters for fit in found) <= TOLD_AT_MOST * 400


def test_a_peak_within_the_levels_is_found_and_its_interval_holds_it() -> None:
    levels = (1, 2, 4, 8, 16, 32)
    found = [fit for fit in fits(levels, 0.05, 0.01, 0.01) if fit.peak is not None]
    assert len(found) >= 0.9 * 400
    spans = [fit.intervals["peak"] for fit in found]
    true = (0.95 / 0.01) ** 0.5
    assert 0.93 <= np.mean([span.low <= true <= span.high for span in spans]) <= 0.97
    kappas = [fit.intervals["kappa"] for fit in found]
    assert 0.93 <= np.mean([span.low <= 0.01 <= span.high for span in kappas]) <= 0.97


def test_a_peak_beyond_what_was_measured_is_not_told() -> None:
    assert all(fit.peak is None for fit in fits(LEVELS, 0.05, 0.001, 0.001))  # it is at 31


def test_a_law_that_does_not_fit_is_not_shown() -> None:
    assert fit_usl([1, 2, 4, 8], [10, 19, 34, 20]) is None, "three parameters, four points"
    assert fit_usl([1, 2, 4, 8, 16], [10, 50, 3, 80, 2]) is None
    linear = fit_usl(LEVELS, [10 * n for n in LEVELS])
    assert linear is not None
    assert linear.peak is None
    assert list(linear.parameters) == ["lambda"]


@pytest.mark.parametrize("levels", [LEVELS, (1, 2, 3, 4, 6, 8, 12, 16)])
@pytest.mark.parametrize("workers", [3, 6])
@pytest.mark.parametrize("noise", [0.003, 0.01, 0.05])
def test_a_server_that_is_full_has_no_coherence_and_no_peak(
    levels: Sequence[float], workers: int, noise: float
) -> None:
    """Clients cost nothing here: each adds as much as the first, until all workers are busy."""
    rng, found = np.random.default_rng(6), []
    for _ in range(200):
        rates = 1000 * np.minimum(0.95 * np.asarray(levels), workers)
        found.append(fit_usl(levels, rates * np.exp(noise * rng.standard_normal(len(levels)))))
    assert sum(f is not None and "kappa" in f.parameters for f in found) <= 0.15 * 200


def network(levels: Sequence[int], servers: int, delay: float) -> np.ndarray:
    """Exact MVA of a closed network: a station of servers of mean time 1, and a delay."""
    waiting, rates = [1.0], []
    for n in range(1, max(levels) + 1):
        rate = n / (delay + sum(j / min(j, servers) * waiting[j - 1] for j in range(1, n + 1)))
        some = [rate / min(j, servers) * waiting[j - 1] for j in range(1, n + 1)]
        waiting = [max(0.0, 1 - sum(some)), *some]
        rates.append(rate)
    return np.array([rates[n - 1] for n in levels])


@pytest.mark.parametrize("levels", [(1, 2, 4, 8, 16), (1, 2, 3, 4, 6, 8, 12, 16)])
@pytest.mark.parametrize(("servers", "delay"), [(1, 1.0), (2, 0.3), (2, 1.0), (4, 1.0), (8, 3.0)])
@pytest.mark.parametrize("noise", [0.001, 0.01])
def test_a_soft_knee_is_no_coherence(
    levels: Sequence[int], servers: int, delay: float, noise: float
) -> None:
    rng, rates = np.random.default_rng(1), network(levels, servers, delay)
    found = [fit_usl(levels, rates * np.exp(noise * rng.standard_normal(len(levels))))
             for _ in range(100)]  # fmt: skip
    assert sum(f is not None and "kappa" in f.parameters for f in found) <= TOLD_AT_MOST * 100


@pytest.mark.parametrize(("worse", "told"), [((16,), True), ((1, 2), False), ((), False)])
def test_a_peak_is_told_only_if_a_level_beyond_it_is_resolved_to_be_worse(
    worse: tuple[int, ...], told: bool
) -> None:
    rates = law(LEVELS, 0.05, 0.01)  # the peak is at 9.7
    treatments = [treatment(int(n), rate) for n, rate in zip(LEVELS, rates, strict=True)]
    (scale,) = scales(treatments, ["throughput"], [compared(n, 8, "faster") for n in worse])
    assert scale.fit is not None
    assert (scale.fit.peak is not None) is told
    assert ("peak" in scale.fit.intervals) is told
    assert ("kappa" in scale.fit.parameters) is told, "fewer clients are never faster, else"
    assert ("kappa" in scale.fit.intervals) is told


def test_a_clock_that_falls_with_busy_cores_is_no_coherence() -> None:
    """8 cores, a clock 1.45 times as fast for one: up to 88 of 100 were given a kappa."""
    levels, rng = (1, 2, 4, 6, 8), np.random.default_rng(3)
    n = np.asarray(levels, float)
    rates = 1000 * n * (1.45 - 0.45 * (n - 1) / 7)
    beaten = [compared(a, b, "faster") for a, b in pairwise(levels)]
    found, bent = 0, 0
    for _ in range(50):
        noisy = rates * np.exp(0.005 * rng.standard_normal(len(levels)))
        treatments = [treatment(k, rate) for k, rate in zip(levels, noisy.tolist(), strict=True)]
        (scale,) = scales(treatments, ["throughput"], beaten)
        alone = fit_usl(levels, noisy.tolist())
        bent += alone is not None and "kappa" in alone.parameters
        found += scale.fit is not None and "kappa" in scale.fit.parameters
    assert found == 0 < bent


def treatment(clients: int, rate: float) -> TreatmentResult:
    return TreatmentResult(
        f"c{clients}", f"{clients}", "a", {"load.clients": clients},
        {"throughput": Estimate(rate, "queries/s", 5)}, Curve("", (), ()), Curve("", (), ()), (),
    )  # fmt: skip


def compared(a: int, b: int, verdict: str, left_out: int = 0, same: int = 40) -> Comparison:
    return Comparison(f"c{a}", f"c{b}", "throughput", verdict, None, None, 1.0, 40, left_out,  # type: ignore[arg-type]
                      queries_measured=40, same_top_k=same)  # fmt: skip


@pytest.mark.parametrize(
    ("comparisons", "best", "unclear"),
    [
        ([], 4, (1, 2)),
        ([compared(1, 2, "faster"), compared(2, 4, "not resolved")], 4, (1, 2)),
        ([compared(1, 2, "faster"), compared(2, 4, "faster")], 4, ()),  # so 4 is above 1, too
        ([compared(1, 2, "faster"), compared(2, 4, "slower")], 2, ()),
        # Each link of a chain that leaves queries out is over queries of its own.
        ([compared(1, 2, "faster", 1), compared(2, 4, "faster", 1)], 4, (1,)),
        ([compared(1, 4, "faster", 40), compared(2, 4, "faster")], 4, (1,)),  # half of the queries
        ([compared(1, 4, "faster", same=0), compared(2, 4, "faster")], 4, (1,)),  # no first hits
        ([compared(1, 4, "faster"), compared(2, 4, "not comparable")], 4, (2,)),
    ],
)
def test_the_best_level_is_decided_by_the_comparisons_of_the_study(
    comparisons: list[Comparison], best: int, unclear: tuple[int, ...]
) -> None:
    treatments = [treatment(n, rate) for n, rate in ((1, 100.0), (2, 180.0), (4, 181.0))]
    (scale,) = scales(treatments, ["throughput"], comparisons)
    assert (scale.best, scale.best_not_resolved_from) == (best, unclear)


def test_a_level_within_the_noise_floor_is_not_called_the_best(tmp_path: Path) -> None:
    """The twins differ by more than 1 % here, though the pairs hardly scatter."""
    study = Study(blocks=5, control="c4", trial_noise=0.0, block_noise=0.0)
    for n, rate in ((1, 1.0), (2, 1.012)):
        study.add(
            f"c{n}",
            server=lognormal(0.004 * n / rate, 0.1),
            clients=n,
            levels={"system": "tantivy", "load.clients": n},
        )
    study.add(
        "c4",
        server=lambda due, query, rng: np.full(
            due.size, 0.02 * np.exp(0.02 * rng.standard_normal())
        ),
        clients=4,
        levels={"system": "tantivy", "load.clients": 4},
    )
    found = judge(open_record(study.write(tmp_path / "r")))
    (c,) = (c for c in found.comparisons if (c.a, c.b, c.metric) == ("c1", "c2", "throughput"))
    assert c.verdict == "not resolved"
    assert "Of the levels of clients, 2 leads" in found.verdict.decision
    assert "best level" not in found.verdict.decision


@pytest.mark.parametrize("spoilt", [{"lag_ns": 500_000}, {"dies_at_s": 3.0}])
def test_a_level_that_was_never_validly_measured_may_be_the_best(
    tmp_path: Path, spoilt: dict[str, float]
) -> None:
    study = Study(blocks=4, seed=1, trial_noise=0.003, block_noise=0.003)
    for n in (1, 2, 4, 8):
        study.add(f"c{n}", server=lognormal(0.004, 0.1), clients=n, seconds=9.0,
                  levels={"system": "x", "load.clients": n},
                  **(spoilt if n == 8 else {}))  # fmt: skip
    found = judge(study.write(tmp_path / "r"))
    (scale,) = [one for one in found.scales if one.metric == "throughput"]
    assert (scale.best, scale.best_not_resolved_from) == (4.0, (8.0,))
    assert "4 leads (x), not shown to be better than 8" in found.verdict.decision


def test_the_best_of_levels_that_all_were_measured_is_said(tmp_path: Path) -> None:
    study = Study(blocks=4, seed=1, trial_noise=0.003, block_noise=0.003)
    for n in (1, 2, 4):
        study.add(f"c{n}", server=lognormal(0.004, 0.1), clients=n, seconds=9.0,
                  levels={"system": "x", "load.clients": n})  # fmt: skip
    assert "The best level of clients is 4" in judge(study.write(tmp_path / "r")).verdict.decision
