"""Searches whose slow spells fall into warm-ups, where no window sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from queues import Floats, Serve, Server, fixed
from searchbench.analysis.capacity.bracket import bracket
from searchbench.analysis.capacity.pace import Driven, Seen
from searchbench.analysis.capacity.promise import judge, strictest_time
from searchbench.analysis.capacity.spells import Spells, before_window
from searchbench.workload.load_table import parse_promise
from searches import search

PROMISE = "p99 < 10ms, errors < 0.1%"
LIMIT_NS = 10e6


def slow(*spells: tuple[float, float]) -> Serve:
    """M/D/4 of 2 ms whose requests take 60 ms, without a queue, from one second to another."""
    serve = fixed(4, 0.002)

    def slowed(due: Floats, rng: np.random.Generator) -> tuple[Floats, np.ndarray]:
        done, ok = serve(due, rng)
        meets = np.zeros(len(due), np.bool_)
        for begin, end in spells:
            meets |= (due >= begin) & (due < end)
        return np.where(meets, np.maximum(done, due + 0.06), done), ok

    return slowed


def test_a_spell_of_the_warm_up_is_seen_and_what_is_late_from_the_start_is_none() -> None:
    trace = Server(slow((0, 3), (5, 8)), np.random.default_rng(3)).trace(1000, 20, 10)
    found = before_window(LIMIT_NS, trace)
    assert found.lengths_s == (3.0,)
    assert found.late == pytest.approx(3000, rel=0.1)
    brief = Server(slow((5, 5.7)), np.random.default_rng(3)).trace(1000, 20, 10)
    assert not before_window(LIMIT_NS, brief).lengths_s
    later = Server(slow((12, 15)), np.random.default_rng(3)).trace(1000, 20, 10)
    assert not before_window(LIMIT_NS, later).lengths_s, "the window has it"
    none = Server(fixed(4, 0.002), np.random.default_rng(3)).trace(1000, 20, 0)
    assert not before_window(LIMIT_NS, none).lengths_s


def test_a_trial_that_keeps_its_promise_says_how_slow_its_warm_up_was() -> None:
    trace = Server(slow((5, 8)), np.random.default_rng(3)).trace(1000, 60, 10)
    found = judge(parse_promise(PROMISE), trace)
    assert found.verdict == "holds"
    assert found.spells.lengths_s == (3.0,)


def test_the_time_condition_that_allows_the_least_is_asked_for() -> None:
    conditions = parse_promise("p50 < 1ms, p99 < 10ms, errors < 0.1%")
    found = strictest_time(conditions)
    assert found is not None
    assert found.text == "p99 < 10ms"
    assert strictest_time(parse_promise("errors < 1%")) is None


def _with(driven: Sequence[Driven], slow_s: Mapping[int, float]) -> str:
    """What is said of these trials, some of which were slow for so long in a warm-up of 10 s."""
    again = [
        replace(d, judged=replace(d.judged, spells=Spells(
            (slow_s[i],), int(slow_s[i] * d.rate_per_s))))
        if i in slow_s else d
        for i, d in enumerate(driven)
    ]  # fmt: skip
    return bracket(Seen(again)).sentence


def test_spells_in_the_warm_ups_of_what_was_kept_leave_no_lower_end() -> None:
    driven = list(search(fixed(4, 0.002), PROMISE, 1200).driven)
    kept = [i for i, d in enumerate(driven) if d.judged.verdict == "holds"]
    assert kept
    calm = _with(driven, {})
    assert "was slow for up to" not in calm
    assert "The limit is between " in calm
    told = _with(driven, dict.fromkeys(kept, 20.0))
    assert told.startswith("The server was slow for up to 20 s in ")
    assert "whether any rate keeps the promise in the long run is not known" in told
    assert "In the windows alone: the limit is between " in told
    rare = _with(driven, {kept[0]: 1.0})
    assert rare.startswith(calm)
    assert "The server was slow for up to 1 s in the warm-up of a trial (" in rare
    assert "may be, so whether any rate" not in rare
    broken = [i for i, d in enumerate(driven) if d.judged.verdict == "fails"]
    assert _with(driven, dict.fromkeys(broken, 20.0)) == calm


def test_no_spell_is_seen_where_only_the_queue_makes_requests_late() -> None:
    for start in (1100, 1200, 1300):
        assert "was slow for up to" not in search(fixed(4, 0.002), PROMISE, start).bracket.sentence
