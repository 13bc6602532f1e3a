"""What others took from one of two equal systems is no difference of the systems."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from records import Study, lognormal
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.compare.taken import REMEDY, TAKEN, floor
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement, TrialResult
from searchbench.record import open_record

SECONDS = 8.0
TRIAL = TrialResult("b01-t01", "t01", 1, False, "valid", "", {}, {}, ())


def stolen(share: float, foreign: float = 0.0) -> dict[str, Any]:
    """A machine of two cores that is said to be shared, and of whose time so much was taken."""
    by_core = [
        {
            "cpu": cpu, "busy_s": (own + foreign) * SECONDS, "interrupts_s": 0.0,
            "steal_s": share * SECONDS, "idle_s": max(0.0, 1 - own - share - foreign) * SECONDS,
        }
        for cpu, own in enumerate((0.5, 0.1))
    ]  # fmt: skip
    return {"host_window": {"shared": True, "by_core": by_core}}


def studied(folder: Path, mine: float, other: float, times: float = 1.2) -> Judgement:
    """Of two systems, the second of which is ``times`` as fast."""
    run = Study(blocks=4, seed=3, block_noise=0.01, trial_noise=0.003)
    each = (("x", times, mine), ("y", 1.0, other))
    for name, factor, share in each:
        run.add(name, system=name, server=lognormal(0.004 * factor, 0.1), clients=4,
                seconds=SECONDS, extra=stolen(share))  # fmt: skip
    return judge(open_record(run.write(folder)))


@pytest.mark.parametrize(
    ("mine", "other", "resolved"),
    [(0.2, 0.0, False), (0.2, 0.2, True), (0.0, 0.2, True), (0.0, 0.0, True), (0.04, 0.0, True)],
)
def test_what_others_took_from_the_slower_one_may_have_made_it_slower(
    tmp_path: Path, mine: float, other: float, resolved: bool
) -> None:
    found = studied(tmp_path / "r", mine, other)
    (c,) = (c for c in found.comparisons if c.metric == "throughput")
    assert (c.verdict == "faster") is resolved
    assert (TAKEN in c.reason) is not resolved
    assert (found.verdict.best == "y") is resolved
    if not resolved:
        assert "others took more processor time from x, which could make " in found.verdict.decision


def test_what_is_a_small_share_of_many_cores_may_all_have_been_on_one(tmp_path: Path) -> None:
    run = Study(blocks=4, seed=3, block_noise=0.01, trial_noise=0.003)
    for name, factor, share in (("x", 1.2, 0.049), ("y", 1.0, 0.0)):
        own = {0: 0.8, 2: share, 3: share, 4: share, 1: 0.3}
        own[0] += share
        by_core = [
            {
                "cpu": cpu, "busy_s": busy * SECONDS, "interrupts_s": 0.0, "steal_s": 0.0,
                "idle_s": (1 - busy) * SECONDS,
            }
            for cpu, busy in own.items()
        ]  # fmt: skip
        extra = {
            "service": {"cpus": [0, 2, 3, 4]}, "server": {"cpu_s": 0.8 * SECONDS},
            "host_window": {"cores": 5, "client_cpu_s": 0.3 * SECONDS, "by_core": by_core},
        }  # fmt: skip
        run.add(name, system=name, server=lognormal(0.004 * factor, 0.1), clients=4,
                seconds=SECONDS, warmup_s=0.0, extra=extra)  # fmt: skip
    found = judge(open_record(run.write(tmp_path / "r")))
    (c,) = (c for c in found.comparisons if c.metric == "throughput")
    assert (c.verdict, found.verdict.best) == ("not resolved", None)
    assert TAKEN in c.reason


def test_a_difference_that_is_larger_than_others_could_make_is_one(tmp_path: Path) -> None:
    found = studied(tmp_path / "r", 0.2, 0.0, times=2.5)
    (c,) = (c for c in found.comparisons if c.metric == "throughput")
    assert c.verdict == "faster"


def test_a_regression_is_none_where_others_took_from_the_second_alone(tmp_path: Path) -> None:
    def run(name: str, seed: int, factor: float, share: float) -> Any:
        study = Study(blocks=3, seed=seed, block_noise=0.003, trial_noise=0.003, control=None)
        study.add("a", server=lognormal(0.004 * factor, 0.1), clients=4, seconds=SECONDS,
                  extra=stolen(share))  # fmt: skip
        return open_record(study.write(tmp_path / name))

    first = [run(f"a{i}", i, 1 + 0.003 * i, 0.0) for i in range(4)]
    for share, regressed in ((0.2, None), (0.0, True)):
        later = [run(f"b{share}-{i}", 50 + i, 1.2 + 0.003 * i, share) for i in range(4)]
        found = compare_records(first[0], later[0], 0.05, first[1:], later[1:])
        assert found.regressed is regressed, found.decision
        assert (REMEDY in found.decision) is (regressed is None)


def test_the_floor_is_what_was_taken_more_from_the_rival() -> None:
    def of(winner: float, rival: float, metric: str = "throughput") -> float:
        return floor([replace(TRIAL, taken=winner)], [replace(TRIAL, taken=rival)], metric)

    assert of(0.0, 0.2) == pytest.approx(1.25)
    assert of(0.1, 0.2) == pytest.approx(0.9 / 0.8)
    assert of(0.2, 0.2) == of(0.3, 0.2) == 1.0
    assert of(0.0, 0.2, "response_p50") == pytest.approx(1.25)
    assert of(0.0, 0.25, "response_p50") == math.inf, "half of the times may have met it"
    assert of(0.0, 0.06, "service_p90") == math.inf
    assert of(0.0, 0.008, "service_p99") == pytest.approx(1 / 0.992), "quiet machines differ so"
    assert of(0.0, 0.011, "service_p99") == math.inf
    assert of(0.0, 0.011, "response_max") == math.inf
    assert floor([], [TRIAL], "throughput") == 1.0
