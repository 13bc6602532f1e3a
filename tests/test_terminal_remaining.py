"""How much longer it takes is said in the same words before a run, while it runs, and after."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from searchbench.measure.kept import Standing
from searchbench.record.trial import Trial as Kept
from searchbench.study.plan import Plan, Treatment, Trial
from searchbench.terminal.progress import Terminal, beginning, outlook
from searchbench.terminal.remaining import Left, Remaining
from test_terminal_searching import LOOK
from test_terminal_searching import plan as search_of

ENDED = Kept(trial="b01-t01", treatment="t01")


def plan(trials: int, estimated_s: float, warmup_limit_s: float = 0.0) -> Plan:
    settings = {"load": {"warmup_limit_s": warmup_limit_s}}
    treatment = Treatment(
        id="t01", label="one", subject="one", system="one", engine="", levels={}, settings=settings
    )
    return Plan(
        question="?",
        seed=1,
        treatments=(treatment,),
        trials=tuple(Trial(f"b{n:02}-t01", n, "t01") for n in range(1, trials + 1)),
        estimated_s=estimated_s,
    )


class Clock:
    """A clock that is moved by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_it_begins_with_the_estimate_and_ends_with_what_trials_took() -> None:
    clock = Clock()
    remaining = Remaining(plan(10, 20.0), clock=clock)
    assert str(remaining.left()) == "about 20 s"
    said = []
    for done in range(10):
        remaining.begins(done, 10)
        clock.now += 8.0
        remaining.ends(ENDED)
        said.append(str(remaining.left()))
    # After one trial the estimate weighs as much as that: 9 trials of 5 s. Later 8 s is known.
    assert said[0] == "about 45 s"
    assert said[8] == "about 7 s"
    assert said[9] == "None", "nothing is left"


def test_it_falls_while_a_trial_is_driven_but_not_below_what_is_still_to_come() -> None:
    clock = Clock()
    remaining = Remaining(plan(4, 40.0), clock=clock)
    remaining.begins(0, 4)
    clock.now += 6.0
    assert str(remaining.left()) == "about 34 s"
    clock.now += 600.0
    assert str(remaining.left()) == "about 30 s"


def test_the_time_before_the_first_trial_is_not_counted_once_for_each() -> None:
    clock = Clock()
    remaining = Remaining(plan(4, 40.0), clock=clock)
    clock.now += 300.0  # documents are read
    remaining.begins(0, 4)
    clock.now += 10.0
    remaining.ends(ENDED)
    assert str(remaining.left()) == "about 30 s"


def test_without_a_plan_nothing_is_said_before_a_trial_has_ended() -> None:
    clock = Clock()
    remaining = Remaining(None, clock=clock)
    remaining.begins(0, 3)
    assert remaining.left() is None
    clock.now += 4.0
    remaining.ends(ENDED)
    assert str(remaining.left()) == "about 8 s"


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (Left(40, 40, 40), "about 40 s"),
        (Left(40, 40, 320), "about 40 s, up to 5 min"),
        (Left(40, 900, 1620), "about 40 s to 15 min, up to 27 min"),
        (Left(120, 900, 1620), "about 2 to 15 min, up to 27 min"),
        (Left(120, 1620, 1620), "about 2 to 27 min"),
        (Left(0, 0, 600), "up to 10 min"),
        (Left(9000, 9000, 9000), "about 2.5 h"),
    ],
)
def test_one_wording(left: Left, words: str) -> None:
    assert str(left) == words


def test_a_search_that_takes_longer_than_usual_has_only_its_utmost_left() -> None:
    clock = Clock()
    remaining = Remaining(search_of("a"), clock=clock)
    assert str(remaining.left()) == "about 2 to 15 min, up to 27 min"
    remaining.begins(0, 0)
    clock.now += 200.0
    remaining.ends(LOOK)
    assert str(remaining.left()).startswith("about 1 s to ")
    clock.now += 3600.0
    assert str(remaining.left()).startswith("up to ")


def test_plan_run_and_its_lines_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    made = plan(4, 40.0, warmup_limit_s=60.0)
    said = "about 40 s, up to 5 min"
    assert outlook(made) == f"1 treatment in 4 trials, {said}"
    assert beginning(made, Path("r"), None) == f"1 treatment in 4 trials, {said}; record: r"
    half = Standing(kept=2, left=made.trials[2:], since="then")
    assert beginning(made, Path("r"), half).endswith("2 are driven now, about 20 s, up to 2 min")
    terminal = Terminal(made)
    terminal.begins(made.trials[0], "one", 0, 4)
    terminal.ends(made.trials[0], replace(ENDED, status="ok"), "")
    (line,) = capsys.readouterr().err.splitlines()
    # Four trials are planned with 40 s, and the first took none: 3 of 5 s, and their warm-ups.
    assert line == "[1/4] one: done, about 15 s, up to 3 min left"
