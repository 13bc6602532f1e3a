"""What is said of the time that a search takes: about what it takes, and what it takes at most."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from queues import Serve, fixed, random
from searchbench.analysis.capacity.pace import TRIALS, warmup_s
from searchbench.record.trial import Load, Trial
from searchbench.study.estimate import search_s
from searchbench.study.plan import Judging, Plan, Treatment
from searchbench.terminal.progress import Terminal, outlook
from searchbench.terminal.searching import Searching
from searches import search


def plan(*subjects: str, effort: float = 1.0, promises: int = 1, blocks: int = 1) -> Plan:
    return Plan(
        question="?",
        seed=1,
        treatments=tuple(
            Treatment(id=s, label=s, subject=s, system=s, engine="", levels={}, settings={})
            for s in subjects
        ),
        judging=Judging(
            measure="capacity",
            promises=tuple(f"p99 < {n + 1}ms" for n in range(promises)),
            effort=effort,
            replicates=blocks,
        ),
    )


def rate(seconds: float, *, full: bool, subject: str = "a") -> Trial:
    load = Load(kind="open", seconds=seconds, full=full)
    return Trial(trial="b01-t02", treatment="t02", subject=subject, load=load)


LOOK = Trial(trial="b01-t01", treatment="t01", subject="a", load=Load(kind="closed"))


@pytest.mark.parametrize(
    ("serve", "promise", "truth", "effort"),
    [
        (fixed(4, 0.0005), "p99 < 10ms, errors < 0.1%", 7769.9, 1.0),
        (fixed(4, 0.002), "p99 < 10ms, errors < 0.1%", 1740.0, 1.0),
        (random(4, 0.004), "p99 < 50ms, errors < 0.1%", 902.67, 1.0),
        (random(4, 0.004), "p99 < 50ms, errors < 0.1%", 902.67, 0.1),
        (fixed(1, 0.5), "p99 < 2s", 1.5, 0.1),
    ],
    ids=["fast", "M/D/4", "M/M/4", "little effort", "slow"],
)
def test_a_search_never_takes_longer_than_was_said(
    serve: Serve, promise: str, truth: float, effort: float
) -> None:
    for start in (0.4, 2.0):
        found = search(serve, promise, truth * start, effort=effort)
        each = [d.seconds + warmup_s(d.seconds, effort) for d in found.driven]
        said = Searching(plan("a", effort=effort))
        assert sum(each) < said.most_s()
        said.ends(LOOK)
        for n, one in enumerate(found.driven, 1):
            said.ends(rate(one.seconds, full=one.full))
            assert sum(each[n:]) <= said.most_s(), n


@pytest.mark.parametrize(
    ("serve", "promise", "greatest", "effort"),
    [
        (fixed(4, 0.0005), "p99 < 10ms, errors < 0.1%", 8000.0, 1.0),
        (fixed(4, 0.002), "p99 < 10ms, errors < 0.1%", 2000.0, 1.0),
        (fixed(4, 0.002), "p99.9 < 10ms", 2000.0, 1.0),
        (fixed(4, 0.002), "p50 < 5ms", 2000.0, 1.0),
        (fixed(1, 0.001), "p99 < 10ms", 1000.0, 1.0),
        (random(4, 0.004), "p99 < 50ms, errors < 0.1%", 1000.0, 0.3),
    ],
    ids=["fast", "M/D/4", "p99.9", "p50", "M/D/1", "M/M/4"],
)
def test_a_search_takes_a_third_to_three_times_of_what_is_said(
    serve: Serve, promise: str, greatest: float, effort: float
) -> None:
    # The first look says 0.9 of what the server can answer; its warm-up takes some seconds.
    driven = search(serve, promise, 0.9 * greatest, effort=effort).driven
    took_s = 6 + sum(d.seconds + warmup_s(d.seconds, effort) + 1.5 for d in driven)
    assert 1 / 3 < took_s / search_s([promise], effort) < 3
    assert search_s(["p99.9 < 10ms"], 1.0) > 2 * search_s(["p99 < 10ms"], 1.0)
    assert search_s([promise, promise], effort) > search_s([promise], effort)


def test_it_falls_as_trials_end_and_with_what_full_trials_took() -> None:
    said = Searching(plan("a", "b"))
    before = said.most_s()
    said.ends(LOOK)
    first = said.most_s()
    said.ends(rate(5.0, full=False))
    second = said.most_s()
    said.ends(rate(6.0, full=True))
    assert before > first > second > said.most_s()
    for _ in range(TRIALS):
        said.ends(rate(6.0, full=True))
    assert said.most_s() == pytest.approx(before / 2), "the other one may take all of its time"
    said.ends(rate(6.0, full=True, subject="b"))
    assert said.most_s() < before / 2


def test_several_promises_and_blocks_take_more() -> None:
    once = Searching(plan("a")).most_s()
    assert Searching(plan("a", blocks=3)).most_s() == pytest.approx(3 * once)
    assert Searching(plan("a", promises=2)).most_s() > 1.4 * once


def test_the_outlook_of_a_search_is_a_range_and_its_line_says_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = outlook(plan("a"))
    assert said == "1 configuration, a search for 1 promise, about 2 to 15 min, up to 27 min"
    terminal = Terminal(plan("a"))
    terminal.ends(None, LOOK, "")  # type: ignore[arg-type]  # the plan's trial is not looked at
    assert capsys.readouterr().err.endswith(": done, about 2 to 15 min, up to 26 min left\n")


def test_attached_subjects_take_turns_so_each_has_trials_left() -> None:
    at = plan("a", "b")
    at = replace(at, treatments=tuple(replace(t, attach=("h:1",)) for t in at.treatments))
    turns, after = Searching(at), Searching(plan("a", "b"))
    for found in (turns, after):
        found.ends(LOOK)
        found.ends(replace(LOOK, trial="b01-t02", subject="b"))
    assert turns.most_s() == pytest.approx(2 * after.most_s())
