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
                    clients=n, seconds=11.0, levels={"system": system, "load.clients": n},
                    )  # fmt: skip
    path = run.write(tmp_path / "r")
    once = next(path.glob("trials/*b2-b-2/trial.json"))
    once.write_text(once.read_text().replace('"status":"ok"', '"status":"failed"')
                    .replace('"status": "ok"', '"status": "failed"'))  # fmt: skip
    found = judge(open_record(path))
    assert sum(step.status == "failed" for step in found.steps) == 1
    assert found.verdict.best == "b"


@pytest.mark.parametrize("status", ["ok", "failed"])
def test_clients_at_which_every_step_failed_are_no_more_than_it_sustains(
    tmp_path: Path, status: str
) -> None:
    run = sweep()
    for n in (1, 2, 4):
        run.add(f"a-{n}", system="a", server=lognormal(0.004, 0.1), clients=n, seconds=11.0,
                levels={"system": "a", "load.clients": n})  # fmt: skip
    path = run.write(tmp_path / "r")
    for trial in path.glob("trials/*-a-4/trial.json"):
        text = trial.read_text()
        for ok in ('"status":"ok"', '"status": "ok"'):
            text = text.replace(ok, ok.replace("ok", status))
        trial.write_text(text)
    said = judge(open_record(path)).verdict.decision
    if status == "ok":
        assert "That is the last usable step, so it may sustain more" in said
    else:
        assert "That is the last usable step: nothing is known beyond 2 clients." in said


def rates(path: Path, share: float, per_s: tuple[int, ...] = (200, 400)) -> Judgement:
    """Two servers at these rates; the second fails a share of the requests, at once."""
    run = sweep()
    for system, factor, errors in (("a", 1.0, 0.0), ("b", 0.7, share)):
        for rate in per_s:
            run.add(f"{system}-{rate}", system=system, server=lognormal(0.004 * factor, 0.3),
                    rate_per_s=rate, seconds=31.0, error_share=errors, subject=system,
                    levels={"system": system, "load.rate_per_s": rate})  # fmt: skip
    return judged(run, path)


@pytest.mark.parametrize("share", [0.6, 0.02])
def test_a_rate_at_which_requests_fail_at_once_is_not_kept_up_with(
    tmp_path: Path, share: float
) -> None:
    found = rates(tmp_path / "r", share)
    said = found.verdict.decision
    own = [step for step in found.steps if step.subject == "b"]
    assert [step.keeps_up for step in own] == [False] * 6
    assert [step.falls_behind for step in own] == [False] * 6
    for step in own:
        assert step.achieved is not None
        assert step.achieved.value == pytest.approx(1 - share, abs=0.03)
    assert "b does not keep up with 200 requests per second: it did not fall behind, but" in said
    assert "b keeps up" not in said
    assert "b may sustain more" not in said
    assert "What b sustains is not known: mend what fails, or drive lower rates." in said
    assert "not kept up" in found.verdict.lines[found.steps.index(own[0])][-1]
    assert found.verdict.best != "b"
    if share > 0.5:
        assert "At equal loads a answers 2.3 to 2.7" in said
        assert found.verdict.best == "a"


@pytest.mark.parametrize("share", [0.0, 0.0009])
def test_a_rate_at_which_hardly_a_request_fails_is_kept_up_with(
    tmp_path: Path, share: float
) -> None:
    found = rates(tmp_path / "r", share, (200,))
    assert [step.keeps_up for step in found.steps] == [True] * 6
    assert "b keeps up with 200 requests per second: " in found.verdict.decision
    assert "so b may sustain more: drive higher rates" in found.verdict.decision
    if share:
        assert "b keeps up with 200 requests per second: all" not in found.verdict.decision


def test_clients_most_of_whom_get_errors_are_not_said_to_get_more_with_more(
    tmp_path: Path,
) -> None:
    for share, more in ((0.3, False), (0.0, True)):
        run = sweep(1)
        for n in (1, 2):
            run.add(f"c{n}", system="s", server=lognormal(0.004, 0.1), clients=n, seconds=11.0,
                    levels={"load.clients": n}, error_share=share)  # fmt: skip
        said = judged(run, tmp_path / f"{share}").verdict.decision
        assert "That is the last usable step" in said
        assert ("may sustain more" in said) == more
