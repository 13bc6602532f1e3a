"""Searches of systems that break a promise while little comes, and keep it at higher rates."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from queues import Floats, Serve, collecting, fixed
from searchbench.analysis.capacity.bracket import bracket
from searchbench.analysis.capacity.pace import Driven, Seen
from searchbench.analysis.judge import judge, to_json
from searchbench.terminal.answer import exit_code
from searches import Lab, search


def sleepy(serve: Serve, share: float, below_per_s: float, more_s: float) -> Serve:
    """The same; at rates below so many a second that share of the requests takes so much longer."""

    def slow(due: Floats, rng: np.random.Generator) -> tuple[Floats, np.ndarray]:
        done, ok = serve(due, rng)
        if len(due) / (due[-1] - due[0]) < below_per_s:
            done = done + np.where(rng.random(len(due)) < share, more_s, 0.0)
        return done, ok

    return slow


# Each with its promise, where its search begins, from which rate on it is kept, and up to which.
COLLECTS = {
    "64 or 20 ms": (collecting(64, 0.02, 0.002), "p99 < 15ms", 654, 5_000, 32_000),
    "32 or 10 ms": (collecting(32, 0.01, 0.001), "p99 < 6ms", 1_300, 6_400, 32_000),
}
SLEEPS = {
    "2 % by 12 ms": (sleepy(fixed(4, 0.002), 0.02, 1000, 0.012), "p99 < 10ms", 720, 1_000, 1_740),
    "3 % by 12 ms": (sleepy(fixed(16, 0.002), 0.03, 1000, 0.012), "p99 < 10ms", 900, 1_000, 8_000),
}


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", [*COLLECTS, *SLEEPS])
def test_a_promise_that_only_low_rates_break_is_kept_above_them(name: str, seed: int) -> None:
    serve, promise, start, least, most = (COLLECTS | SLEEPS)[name]
    found = search(serve, promise, start, seed=seed).bracket
    assert found.broken_up_to is not None, found.sentence
    assert found.broken_up_to < 1.02 * least
    assert found.fails is None or found.fails > 1.5 * least or found.fails >= 0.99 * most
    assert (found.holds or 0) <= 1.01 * most
    if name == "2 % by 12 ms" and found.holds is not None:
        assert found.holds <= 1740 <= (found.fails or math.inf), found.sentence
    assert "The promise was broken at low rates: in " in found.sentence
    assert "When so low a rate was driven again after that, it broke it again." in found.sentence


def test_a_promise_that_every_rate_breaks_is_still_said_to_be_broken_at_all() -> None:
    found = search(fixed(4, 0.02), "p99 < 10ms", 100)
    assert max(d.rate_per_s for d in found.driven) > 100, "higher rates were tried"
    assert found.bracket.fails == 1
    assert found.bracket.sentence.startswith("The promise was broken even at 1/s, the lowest rate")


@pytest.mark.parametrize("start", [450.0, 3000.0, 20_000.0])
def test_a_search_of_a_usual_server_drives_no_higher_rate_for_it(start: float) -> None:
    found = search(fixed(4, 0.002), "p99 < 10ms", start, seed=2)
    assert found.bracket.broken_up_to is None
    assert (found.bracket.holds or 0) <= 1740 <= (found.bracket.fails or 0)
    assert max(d.rate_per_s for d in found.driven) <= max(4 * 1800, start)


def test_what_became_faster_meanwhile_is_not_taken_for_the_rate() -> None:
    """The same trials; the low rate that is driven again keeps the promise now, or was not."""
    serve, promise, start, *_ = SLEEPS["3 % by 12 ms"]
    driven = search(serve, promise, start, seed=1).driven
    first = next(i for i, d in enumerate(driven) if d.seems_kept)
    up_to_there = Seen(driven[: first + 1])
    unknown = bracket(up_to_there)
    assert (unknown.holds, unknown.broken_up_to) == (None, None)
    assert "is not known: drive " in unknown.sentence
    assert up_to_there.low
    kept = Driven(driven[0].rate_per_s, 10.0, driven[first].judged, full=False)
    again = Seen([*driven[: first + 1], kept])
    assert not again.low
    assert bracket(again).broken_up_to is None


def test_who_breaks_it_at_low_rates_is_not_said_to_sustain_more(tmp_path: Path) -> None:
    servers = {"a": SLEEPS["3 % by 12 ms"][0], "b": fixed(1, 0.0035)}
    lab = Lab(tmp_path / "r", servers, ("p99 < 10ms",), effort=0.3, look_per_s=950, turns=True)
    record = lab.run()
    found = judge(record)
    a, b = found.capacity
    assert a.broken_up_to is not None
    assert a.broken_up_to < 1000
    assert b.broken_up_to is None
    assert (a.fails or math.inf) > 1000
    assert (found.verdict.best, found.verdict.resolved) == (None, False)
    assert "sustains more than" not in found.verdict.decision
    assert exit_code(record, found) in (0, 3)
    shown = to_json(found)["capacity"]
    assert [one["broken_up_to"] for one in shown] == [a.broken_up_to, None]
