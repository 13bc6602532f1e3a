"""Which host governs: how often one is named where all are alike, and where one is slower."""

from __future__ import annotations

import numpy as np
import pytest

from searchbench.analysis.trial.alone import governing, of_trials
from searchbench.record.alone import HostAlone
from searchbench.record.trial import Trial


def trials(rates: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[Trial]:
    """A row a trial, a column a host."""
    return [
        Trial(
            trial=f"b{n}", treatment="t01",
            hosts=[
                HostAlone(
                    host=f"h{k}", agent=f"p{k}", parts=1, clients=2, seconds=1.0,
                    answered=int(rate), failed=0, per_s=float(rate), service_p50_s=1 / rate,
                    service_p99_s=2 / rate,
                )
                for k, rate in enumerate(row)
            ],
        )
        for n, row in enumerate(rates)
    ]  # fmt: skip


def named(speeds: list[float], replicates: int, noise: float = 0.1, times: int = 1500) -> float:
    """How often a host is said to govern; of speeds that differ, the slowest must be it."""
    rng = np.random.default_rng(len(speeds) * 100 + replicates)
    hits = 0
    for _ in range(times):
        rates = np.array(speeds) * np.exp(noise * rng.standard_normal((replicates, len(speeds))))
        found = governing(of_trials(trials(rates)))
        if found is not None and len(set(speeds)) > 1:
            assert found.host == f"h{int(np.argmin(speeds))}"
        hits += found is not None
    return hits / times


@pytest.mark.parametrize("hosts", [2, 3, 4])
@pytest.mark.parametrize("replicates", [2, 3, 5])
def test_of_hosts_that_are_alike_none_is_named_more_often_than_chance(
    hosts: int, replicates: int
) -> None:
    assert named([100.0] * hosts, replicates) < 0.07


def test_a_host_of_half_the_speed_is_named() -> None:
    assert named([100.0, 50.0], 3, times=300) > 0.9
    assert named([100.0, 100.0, 50.0], 5, times=300) > 0.95


def test_one_trial_and_one_host_show_nothing() -> None:
    assert governing(of_trials(trials(np.array([[100.0, 20.0]])))) is None
    assert governing(of_trials(trials(np.array([[100.0], [101.0]])))) is None
    assert of_trials([Trial(trial="b1", treatment="t01")]) == []
