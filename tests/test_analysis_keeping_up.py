"""Rates just above what a server sustains: how little too much a window shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from queues import Floats, fixed
from records import Study
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Step
from searchbench.record import open_record

Served = Callable[[Floats, Floats, np.random.Generator], Floats]
LIMIT = 2000.0  # of four workers of 2 ms


def served(due: Floats, query: Floats, rng: np.random.Generator) -> Floats:
    """Response times of four workers of 2 ms."""
    return fixed(4, 0.002)(due, rng)[0] - due


def slower_until(until_s: float) -> Served:
    """Nobody waits for another, but answers take longer and longer: 20 ms at first, 400 ms from
    ``until_s`` on."""

    def responses(due: Floats, query: Floats, rng: np.random.Generator) -> Floats:
        return 0.02 + 0.38 * np.minimum(1.0, due / until_s)

    return responses


def driven(
    path: Path, rate: float, window_s: float, arrivals: str, server: Served = served
) -> tuple[Step, str]:
    """The step of one rate, and what is said of it."""
    run = Study(blocks=1, control=None, trial_noise=0.0, block_noise=0.0,
                judging={"measure": "sweep", "promises": ["p99 < 1s"]})  # fmt: skip
    run.add("r", server=server, rate_per_s=rate, arrivals=arrivals, seconds=window_s + 1,
            levels={"load.rate_per_s": rate})  # fmt: skip
    found = judge(open_record(run.write(path)))
    return found.steps[0], found.verdict.decision


def lacking(said: str) -> float:
    """What may be lacking in the long run, as the sentence has it."""
    found = re.search(r"in the long run up to ([\d.]+) % of it may be lacking", said)
    assert found is not None, said
    return float(found[1]) / 100


@pytest.mark.parametrize("window_s", [10.0, 30.0])
@pytest.mark.parametrize("rate", [2010.0, 2015.0])
def test_a_queue_that_surely_grows_is_not_kept_up_with_however_slowly(
    tmp_path: Path, rate: float, window_s: float
) -> None:
    step, said = driven(tmp_path / "r", rate, window_s, "constant")
    assert (step.falls_behind, step.keeps_up) == (True, False)
    assert f"does not keep up with {rate:,.0f} requests per second: 99." in said
    assert "and waits grew by " in said
    assert "may sustain more" not in said


@pytest.mark.parametrize("window_s", [10.0, 30.0, 60.0])
@pytest.mark.parametrize("rate", [2010.0, 2015.0])
def test_what_random_arrivals_hide_is_within_what_is_said_to_be_hidden(
    tmp_path: Path, rate: float, window_s: float
) -> None:
    step, said = driven(tmp_path / "r", rate, window_s, "poisson")
    if step.keeps_up is None:
        assert "the window is too short to say whether" in said
    elif step.keeps_up:
        assert step.achieved is not None
        assert step.achieved.interval is not None
        assert rate * (1 - lacking(said)) <= LIMIT * 1.001
        assert step.offered is not None
        least = step.achieved.interval.low * min(1.0, step.offered.value / rate)
        assert lacking(said) == pytest.approx(1 - least, rel=0.1)
    else:
        assert window_s >= 30


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
@pytest.mark.parametrize("rate", [500.0, 1500.0, 1900.0])
def test_rates_below_the_limit_are_kept_up_with(tmp_path: Path, rate: float, arrivals: str) -> None:
    step, said = driven(tmp_path / "r", rate, 10.0, arrivals)
    assert step.keeps_up is True
    assert f"keeps up with {rate:,.0f} requests per second: " in said
    assert lacking(said) < 0.03, "fewer of random arrivals may have come"


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_waits_that_grow_no_longer_in_the_end_do_not_say_that_a_rate_is_too_much(
    tmp_path: Path, arrivals: str
) -> None:
    step, said = driven(tmp_path / "r", 800.0, 8.0, arrivals, slower_until(5.0))
    assert step.achieved is not None
    assert step.achieved.interval is not None
    assert step.achieved.interval.high < 0.99
    assert (step.falls_behind, step.keeps_up) == (None, None)
    assert "At 800 requests per second tantivy answered more and more slowly, but no longer" in said
    assert "does not keep up" not in said
    assert [p.verdict for p in step.promises] == ["cannot tell"]
    assert "overload" not in {f.kind for f in step.findings}

    step, said = driven(tmp_path / "s", 800.0, 8.0, arrivals, slower_until(9.0))
    assert (step.falls_behind, step.keeps_up) == (True, False)
    # In the long run other arrivals might have been kept up with.
    assert [p.verdict for p in step.promises] == [
        "broken" if arrivals == "constant" else "cannot tell"
    ]


@pytest.mark.parametrize("over", [1.01, 1.02, 1.1, 1.5])
def test_a_queue_that_grows_to_the_end_seldom_seems_to_have_levelled(
    tmp_path: Path, over: float
) -> None:
    seen = []
    for seed in range(10):
        step, _ = driven(tmp_path / f"r{seed}", LIMIT * over, 10.0 + seed / 100, "poisson")
        seen.append(step.keeps_up is None and step.achieved.interval.high < 0.99)
    assert sum(seen) <= (2 if over < 1.05 else 0)
