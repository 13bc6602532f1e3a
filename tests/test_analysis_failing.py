"""Sweeps in which steps or requests fail: no server is praised for what it did not answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from records import Study, lognormal
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement
from searchbench.record import open_record


def sweep(blocks: int = 3) -> Study:
    return Study(blocks=blocks, control=None, judging={"measure": "sweep"}, block_noise=0.005,
                 trial_noise=0.005)  # fmt: skip


def judged(run: Study, path: Path) -> Judgement:
    return judge(open_record(run.write(path)))


def two(path: Path, factors: tuple[float, float], failing: tuple[int, ...] = ()) -> Judgement:
    """Two servers of these service times at 1 to 8 clients; the second's steps fail at some."""
    run = sweep()
    for system, factor in zip("ab", factors, strict=True):
        for n in (1, 2, 4, 8):
            run.add(f"{system}-{n}", system=system, server=lognormal(0.004 * factor, 0.1),
                    clients=n, seconds=11.0, levels={"system": system, "load.clients": n},
                    fails_at="drive" if system == "b" and n in failing else None)  # fmt: skip
    return judged(run, path)


@pytest.mark.parametrize("failing", [(4, 8), (8,), (1,)])
def test_a_server_whose_steps_failed_is_not_the_best_by_its_other_loads(
    tmp_path: Path, failing: tuple[int, ...]
) -> None:
    found = two(tmp_path / "r", (1.0, 0.5), failing)
    n = 4 - len(failing)
    assert found.verdict.best is None
    assert f"At {n} of 4 equal loads b answers 1.9" in found.verdict.decision
    open_ones = [c for c in found.comparisons if c.verdict == "not comparable"]
    assert {c.reason for c in open_ones} == {f"b {x} failed before the end of the step"
                                             for x in failing}  # fmt: skip
    assert all(c.ratio is None and c.p_value is None for c in open_ones)


def test_a_server_all_of_whose_steps_failed_is_not_comparable(tmp_path: Path) -> None:
    found = two(tmp_path / "r", (1.0, 0.5), (1, 2, 4, 8))
    assert found.verdict.best is None
    assert not found.verdict.resolved
    assert "a and b are not comparable: b 1 failed" in found.verdict.decision


def test_a_server_that_is_faster_at_every_load_is_still_the_best(tmp_path: Path) -> None:
    found = two(tmp_path / "r", (1.0, 0.5))
    assert found.verdict.best == "b"
    assert "At equal loads b answers 1.9" in found.verdict.decision


def test_a_step_that_failed_once_of_three_times_is_compared_by_the_others(tmp_path: Path) -> None:
    run = sweep()
    for system, factor in (("a", 1.0), ("b", 0.5)):
        for n in (1, 2):
            run.add(f"{system}-{n}", system=system, server=lognormal(0.004 * factor, 0.1),
                    clients=n, seconds=11.0, levels={"system": system, "load.clients": n})  # fmt: skip
    path = run.write(tmp_path / "r")
    once = next(path.glob("trials/*b2-b-2/trial.json"))
    once.write_text(once.read_text().replace('"status":"ok"', '"status":"failed"')
                    .replace('"status": "ok"', '"status": "failed"'))  # fmt: skip
    found = judge(open_record(path))
    assert sum(step.status == "failed" for step in found.steps) == 1
    assert found.verdict.best == "b"
