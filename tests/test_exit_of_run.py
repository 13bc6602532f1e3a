"""The exit status of a study in which a server dies, and what its sentences say about it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from records import Study, lognormal
from searchbench.analysis.compare.pairs import within_floors
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Comparison, Estimate, Interval, Judgement
from searchbench.record import Record, open_record
from searchbench.terminal.answer import exit_code


class Dying(Study):
    """The server of ``b`` ends in the ``bad`` blocks, counted from 0."""

    bad: tuple[int, ...] = ()

    def _write_trial(self, writer: Any, planned: Any, position: Any, t: Any, *rest: Any) -> Any:
        if t.system == "b" and planned.block in self.bad:
            t = replace(t, dies_at_s=3.0)
        return super()._write_trial(writer, planned, position, t, *rest)


def study(
    path: Path, bad: tuple[int, ...], names: str, loads: tuple[int, ...] = (4,), **more: Any
) -> tuple[Record, Judgement]:
    """``b`` is the fastest, and dies in these of six blocks."""
    run = Dying(blocks=6, seed=3, trial_noise=0.003, block_noise=0.005, control=None, **more)
    run.bad = bad
    for i, name in enumerate(names):
        for n in loads:
            levels = {"system": name} | ({"load.clients": n} if len(loads) > 1 else {})
            server = lognormal(0.004 if name == "b" else 0.008 * (1 + i), 0.1)
            run.add(f"{name}{n}", system=name, server=server, clients=n, levels=levels, seconds=9.0)
    record = open_record(run.write(path))
    return record, judge(record)


@pytest.mark.parametrize(
    ("bad", "status"), [((1, 2, 3, 4), 1), ((2,), 1), ((), 0)], ids=["most", "one", "none"]
)
@pytest.mark.parametrize("how", [{}, {"judging": {"measure": "sweep"}}], ids=["trials", "sweep"])
def test_a_run_in_which_a_server_died_is_bad_news(
    tmp_path: Path, bad: tuple[int, ...], status: int, how: dict[str, Any]
) -> None:
    assert exit_code(*study(tmp_path / "r", bad, "ab", **how)) == status


DIED = "failed by itself in 4 of its 6 trials"


@pytest.mark.parametrize("names", ["ab", "abc", "abcd"])
@pytest.mark.parametrize("bad", [(1, 2, 3, 4), (1,)], ids=["most", "one"])
def test_the_sentence_of_systems_names_who_dies_in_half_of_its_trials(
    tmp_path: Path, names: str, bad: tuple[int, ...]
) -> None:
    _, found = study(tmp_path / "r", bad, names)
    said, dies = found.verdict.decision, len(bad) > 1
    assert (DIED in said, found.verdict.best) == ((True, None) if dies else (False, "b4"))
    if len(names) > 3:
        assert ("b is the best by throughput" in said) is not dies
        assert ("b leads by throughput: it is better in 3 of 3 comparisons" in said) is dies
        assert (DIED in found.verdict.headline) is dies


@pytest.mark.parametrize("names", ["ab", "abcd"])
def test_the_sentence_of_subjects_names_who_dies_in_half_of_its_drives(
    tmp_path: Path, names: str
) -> None:
    for bad, dies in (((1, 2, 3, 4), True), ((1,), False)):
        _, found = study(tmp_path / str(dies), bad, names, (2, 4), judging={"measure": "sweep"})
        said = found.verdict.decision
        assert ("failed by itself in 4 of its 6 drives of b 2" in said) is dies
        assert (found.verdict.best == "b") is not dies
        if len(names) > 3:
            assert ("b is the best by throughput" in said) is not dies


def test_who_dies_and_does_not_lead_is_named_too(tmp_path: Path) -> None:
    run = Dying(blocks=6, seed=3, trial_noise=0.003, control=None)
    run.bad = (1, 2, 3)
    for i, name in enumerate("acdb"):
        run.add(name, system=name, server=lognormal(0.004 * (1 + i), 0.1))
    found = judge(run.write(tmp_path / "r")).verdict
    assert found.best == "a"
    assert "a is the best by throughput" in found.decision
    assert "b failed by itself in 3 of its 6 trials." in found.decision


@pytest.mark.parametrize(
    ("low", "floor", "held"),
    [(1.05, 1.1, True), (1.15, 1.1, False), (1.05, 1.3, True), (1.05, 1.0, False),
     (0.95, 1.1, False), (0.95, 1.3, True)],
)  # fmt: skip
def test_a_gain_is_held_against_what_others_make_at_its_near_end(
    low: float, floor: float, held: bool
) -> None:
    """As between two records; in both directions."""
    for turned in (False, True):
        span = Interval(low, 1.2 * 1.2 / low, 0.95, "")
        value = 1.2
        if turned:
            span, value = replace(span, low=1 / span.high, high=1 / span.low), 1 / value
        ratio = Estimate(value, "ratio", 5, span)
        c = Comparison("a", "b", "throughput", "not resolved", ratio, 0.001, 1.0, 30, 10,
                       answers_floor=floor)  # fmt: skip
        assert any("answer otherwise" in why for why in within_floors(c, "", "")) is held
