"""In a replay whose rate grows more requests are in flight at the end, which is no queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import records
from records import Array, Server, Study, lognormal, single_queue
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Step
from searchbench.record import open_record


def replayed(
    path: Path, monkeypatch: pytest.MonkeyPatch, server: Server, times: float, seed: int
) -> Step:
    """100 requests a second on average, at the end ``times`` as many as at the beginning."""

    def growing(t: Any, log: Array, factor: float, rng: np.random.Generator) -> Any:
        n = int(t.load["rate_per_s"] * t.seconds)
        u = np.sort(rng.random(n))
        u = (np.sqrt(1 + (times**2 - 1) * u) - 1) / (times - 1)
        due, query = u * t.seconds, np.resize(log, n)
        return due, t.server(due, query, rng), query, np.arange(n) % 1000

    monkeypatch.setattr(records, "_open", growing)
    study = Study(blocks=1, seed=seed, control=None, trial_noise=0.0, block_noise=0.0,
                  judging={"measure": "sweep", "promises": ("p99 < 2500ms",)})  # fmt: skip
    made = study.add("replay", server=server, rate_per_s=100, seconds=61.0, warmup_s=4.0,
                     levels={"load.speed": 1.0})  # fmt: skip
    made.load |= {"kind": "replay", "speed": 1.0}
    (step,) = judge(open_record(study.write(path))).steps
    return step


@pytest.mark.parametrize("took_s", [0.01, 1.0])
def test_slow_replies_to_more_and_more_requests_are_kept_up_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, took_s: float
) -> None:
    found = [replayed(tmp_path / str(i), monkeypatch, lognormal(took_s, 0.05), 4.0, i)
             for i in range(4)]  # fmt: skip
    assert [step.keeps_up for step in found] == [True] * 4
    assert all(step.promises[0].verdict != "broken" for step in found)


def test_a_queue_that_grows_with_the_rate_is_still_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = replayed(tmp_path / "r", monkeypatch, single_queue(0.012), 4.0, 1)
    assert step.keeps_up is False
