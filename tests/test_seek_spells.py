"""Searches whose slow spells fall into warm-ups, where no window sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from queues import Floats, Serve, Server, fixed
from searchbench.analysis.capacity.bracket import bracket
from searchbench.analysis.capacity.pace import Driven, Seen
from searchbench.analysis.capacity.promise import judge, strictest_time
from searchbench.analysis.capacity.spells import before_window
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
    assert found == (3.0,)
    brief = Server(slow((5, 5.7)), np.random.default_rng(3)).trace(1000, 20, 10)
    assert not before_window(LIMIT_NS, brief)
    later = Server(slow((12, 15)), np.random.default_rng(3)).trace(1000, 20, 10)
    assert not before_window(LIMIT_NS, later), "the window has it"
    none = Server(fixed(4, 0.002), np.random.default_rng(3)).trace(1000, 20, 0)
    assert not before_window(LIMIT_NS, none)


def test_what_the_client_itself_sent_late_is_no_spell_of_the_server() -> None:
    trace = Server(fixed(4, 0.002), np.random.default_rng(3)).trace(1000, 20, 10)
    held = (trace.due >= 5e9) & (trace.due < 8e9)
    by_ns = np.where(held, 60_000_000, 0)
    by_client = replace(trace, sent=trace.sent + by_ns, done=trace.done + by_ns)
    assert not before_window(LIMIT_NS, by_client)
    stalled = (trace.due >= 5e9) & (trace.due < 5.5e9)
    after = replace(by_server := replace(trace, done=trace.done + by_ns),
                    sent=trace.sent + np.where(stalled, 60_000_000, 0))  # fmt: skip
    assert not before_window(LIMIT_NS, after), "what the client held back came at once"
    assert before_window(LIMIT_NS, by_server) == (3.0,)


def test_a_trial_that_keeps_its_promise_says_how_slow_its_warm_up_was() -> None:
    trace = Server(slow((5, 8)), np.random.default_rng(3)).trace(1000, 60, 10)
    found = judge(parse_promise(PROMISE), trace)
    assert found.verdict == "holds"
    assert found.spells_s == (3.0,)


def test_the_time_condition_that_allows_the_least_is_asked_for() -> None:
    conditions = parse_promise("p50 < 1ms, p99 < 10ms, errors < 0.1%")
    found = strictest_time(conditions)
    assert found is not None
    assert found.text == "p99 < 10ms"
    assert strictest_time(parse_promise("errors < 1%")) is None


def _with(driven: Sequence[Driven], slow_s: Mapping[int, float]) -> str:
    """What is said of these trials, some of which were slow for so long in a warm-up of 10 s."""
    again = [
        replace(d, judged=replace(d.judged, spells_s=(slow_s[i],))) if i in slow_s else d
        for i, d in enumerate(driven)
    ]
    return bracket(Seen(again)).sentence


def test_spells_in_the_warm_ups_of_what_was_kept_leave_no_lower_end() -> None:
    driven = list(search(fixed(4, 0.002), PROMISE, 1200).driven)
    kept = [i for i, d in enumerate(driven) if d.judged.verdict == "holds"]
    assert kept
    calm = _with(driven, {})
    assert "was slow for up to" not in calm
    assert "The limit is between " in calm
    told = _with(driven, dict.fromkeys(kept, 20.0))
    assert told.startswith("In ")
    assert (
        "the server was slow for up to 20 s at a time: nearly all requests were late, for " in told
    )
    assert "not known whether any rate keeps the promise in the long run" in told
    assert "In the windows alone: the limit is between " in told
    rare = _with(driven, {kept[0]: 1.0})
    assert rare.startswith(calm)
    assert "In the warm-up of a trial that did not break the promise (" in rare
    assert "the server was slow for up to 1 s" in rare
    assert "whether any rate keeps the promise" not in rare
    broken = [i for i, d in enumerate(driven) if d.judged.verdict == "fails"]
    assert _with(driven, dict.fromkeys(broken, 20.0)) == calm


def test_no_spell_is_seen_where_only_the_queue_makes_requests_late() -> None:
    for start in (1100, 1200, 1300):
        assert "was slow for up to" not in search(fixed(4, 0.002), PROMISE, start).bracket.sentence
