"""Searches of servers that stall now and then, that overload makes slower, or that are short."""

from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np
import pytest

from queues import Floats, Serve, Server, fixed, heavy, stalling
from searchbench.analysis.capacity import stalls
from searchbench.analysis.capacity.bracket import bracket, rough
from searchbench.analysis.capacity.pace import Driven, Seen
from searchbench.analysis.capacity.promise import Judged, judge
from searchbench.analysis.capacity.said import watched
from searchbench.analysis.capacity.stalls import Found
from searchbench.workload.load_table import parse_promise
from searches import search

PROMISE = "p99 < 10ms, errors < 0.1%"


def going_on(every_s: float, stall_s: float, from_s: float) -> Serve:
    """M/D/4 of 2 ms that stalls, each trial beginning a second after the one before ended."""
    began, works, serve = from_s, every_s - stall_s, fixed(4, 0.002)

    def stalled(due: Floats, rng: np.random.Generator) -> tuple[Floats, np.ndarray]:
        nonlocal began
        at = due + began
        rounds = np.floor(at / every_s)
        done, ok = serve(rounds * works + np.minimum(at - rounds * every_s, works), rng)
        done = done + np.floor(done / works) * stall_s - began
        began += float(due[-1]) + 1
        return done, ok

    return stalled


def overloaded(workers: int, good_s: float, bad_s: float) -> Serve:
    """Slower for good once a request waited for 20 ms."""
    bad = False

    def serve(due: Floats, rng: np.random.Generator) -> tuple[Floats, np.ndarray]:
        nonlocal bad
        free, done = [0.0] * workers, []
        for at in due.tolist():
            begins = max(at, free[0])
            bad = bad or begins - at > 0.02
            done.append(begins + (bad_s if bad else good_s))
            heapq.heapreplace(free, done[-1])
        return np.asarray(done), np.ones(len(due), np.bool_)

    return serve


def judged(serve: Serve, rate: float, seconds: float, promise: str = PROMISE) -> Judged:
    trace = Server(serve, np.random.default_rng(3)).trace(rate, seconds, 1)
    return judge(parse_promise(promise), trace)


@pytest.mark.parametrize(("every_s", "stall_s", "from_s"), [(90, 1.2, 5.0), (150, 2, 60.0)])
def test_rates_at_which_a_server_stalled_leave_no_lower_end(
    every_s: float, stall_s: float, from_s: float
) -> None:
    found = search(going_on(every_s, stall_s, from_s), PROMISE, 1200)
    assert any(d.judged.stalled for d in found.driven)
    assert found.bracket.holds is None
    assert (found.bracket.fails or 0) > 1700, "a stall is not taken for too high a rate"
    assert f"The server stalls: no reply for up to {stall_s:g} s at " in found.bracket.sentence
    assert "In the trials without a stall: the limit is between " in found.bracket.sentence


def test_a_stall_counts_by_the_replies_that_did_not_come() -> None:
    calm, at_rest = (
        judged(fixed(4, 0.002), 1200, 20),
        judged(stalling(fixed(4, 0.002), 15, 1.2), 1200, 20),
    )
    assert (calm.stalls_s, calm.stalled) == ((), False)
    assert at_rest.stalls_s == pytest.approx([1.2], abs=0.01)
    assert at_rest.stalled
    assert at_rest.lasted_s == 21


@pytest.mark.parametrize(
    ("serve", "rate", "promise"),
    [
        (fixed(4, 0.002), 2600.0, PROMISE),
        (heavy(4, 0.004, 1.5), 760.0, "p99 < 100ms"),
        (heavy(1, 0.004, 1.5), 100.0, "p99 < 100ms"),
        (heavy(2, 0.15, 1.0), 4.0, "p99 < 500ms"),
        (stalling(fixed(4, 0.002), 15, 0.05), 1200.0, PROMISE),
    ],
    ids=["overload", "heavy tail", "one worker", "few requests", "small"],
)
def test_slow_queries_overload_and_small_pauses_are_no_stall(
    serve: Serve, rate: float, promise: str
) -> None:
    assert not judged(serve, rate, 20, promise).stalled


def test_a_client_that_was_at_rest_itself_accuses_no_server() -> None:
    trace = Server(fixed(4, 0.002), np.random.default_rng(3)).trace(1200, 20, 1)
    rests = (trace.due > 9e9) & (trace.due < 10e9)
    late = replace(trace, sent=np.where(rests, int(10e9), trace.sent),
                   done=np.where(rests, int(10e9) + 2_000_000, trace.done))  # fmt: skip
    assert stalls.lengths_s(1e7, late) == ()
    assert stalls.lengths_s(1e7, replace(late, sent=trace.sent)) == pytest.approx([1], abs=0.01)


def test_a_server_that_stalls_in_nearly_every_trial_is_judged_by_these() -> None:
    found = search(stalling(fixed(4, 0.002), 5, 0.3), PROMISE, 1200, trials=6)
    seen = Seen(found.driven)
    assert sum(d.judged.stalled for d in seen.driven) > 1
    assert not seen.stalled
    assert found.bracket.holds is None
    assert "The server stalls" in found.bracket.sentence


def test_stalls_that_take_hardly_any_time_open_no_end() -> None:
    found = search(fixed(4, 0.002), PROMISE, 1200)
    one = min((d for d in found.driven if d.full), key=lambda d: d.rate_per_s)

    def after(minutes: float) -> str:
        hit = replace(one.judged, stalls_s=(0.3,), stalled=True, lasted_s=60 * minutes)
        return bracket(Seen([*found.driven, replace(one, judged=hit)])).sentence

    assert "too rare to move the limit" in after(60)
    assert "How often the server stalls is not known" in after(1)


ANY_RATE = "Its stalls alone break p99 < 50ms at the rates driven, and at any rate if they come"


def paused_by_requests(every: int, pause_s: float) -> Serve:
    """M/D/4 of 2 ms that pauses before each so manieth request, as a collector of garbage does."""
    serve = fixed(4, 0.002)

    def paused(due: Floats, rng: np.random.Generator) -> tuple[Floats, np.ndarray]:
        begins: list[float] = []
        for at in due[every::every].tolist():
            begins.append(max(at, begins[-1] + pause_s) if begins else at)
        if not begins:
            return serve(due, rng)
        begin = np.asarray(begins)
        before = np.searchsorted(begin, due, side="right")
        paused_s = np.minimum(due - begin[np.maximum(before - 1, 0)], pause_s)
        lost_s = np.maximum(before - 1, 0) * pause_s + np.where(before > 0, paused_s, 0.0)
        done, ok = serve(due - lost_s, rng)
        at_work = begin - np.arange(begin.size) * pause_s
        return done + pause_s * np.searchsorted(at_work, done, side="right"), ok

    return paused


@pytest.mark.parametrize(
    ("serve", "limit"),
    [(stalling(fixed(4, 0.002), 4, 0.06), 1340), (paused_by_requests(10_000, 0.1), 962)],
    ids=["a little longer than the limit", "with the rate"],
)
def test_stalls_that_low_rates_outlast_break_no_promise_at_any_rate(
    serve: Serve, limit: float
) -> None:
    """A quarter of the limit keeps the promise, with 0.4 % of the requests late, or none."""
    for seed in range(4):
        told = search(serve, "p99 < 50ms", 0.8 * limit, seed=seed).bracket
        assert "at any rate" not in told.sentence
        assert told.holds is None or told.holds < limit


def test_stalls_that_break_a_promise_at_any_rate_are_said_to() -> None:
    """A second of every ten: 9.5 % are late at each rate, however low."""
    said = [search(stalling(fixed(4, 0.002), 10, 1.0), "p99 < 50ms", 1000, seed=s) for s in (1, 2)]
    assert all(ANY_RATE in one.bracket.sentence for one in said)


def test_how_often_a_server_stalls_has_an_interval() -> None:
    low, high = Found([900.0], [1.2], 300).share
    assert (low, high) == pytest.approx((0.0001, 0.0223), abs=1e-4)
    low, high = Found([900.0] * 20, [0.3] * 20, 300).share
    assert 0.01 < low < 0.02 < high
    many = Found([900.0] * 20, [0.3] * 20, 300, 0.2)
    assert (many.share, many.late) == ((low, high), pytest.approx(low / 3))


@pytest.mark.parametrize("start", [400, 1600])
def test_a_server_that_stays_slower_after_an_overload_has_no_upper_end(start: float) -> None:
    found = search(overloaded(4, 0.002, 0.003), PROMISE, start)
    assert (found.bracket.holds or 0) < 1160
    assert found.bracket.fails is None
    assert (
        "The server does not recover from overload, or it became slower meanwhile: it kept the "
        "promise at 1,600/s before 6,400/s was driven, and broke it at that rate afterwards."
        in found.bracket.sentence
    )


def test_a_server_that_recovers_is_driven_no_further_than_before() -> None:
    found = search(fixed(4, 0.002), PROMISE, 400)
    assert Seen(found.driven).overload is None
    assert "recover" not in found.bracket.sentence


def test_a_short_search_does_not_say_that_it_is_right_in_95_of_100_cases() -> None:
    found = search(fixed(4, 0.002), PROMISE, 1200, effort=0.1).bracket
    told = rough(found, 0.1)
    assert "95 %" not in told.sentence
    assert "held the truth in about 7 of 10 simulated searches" in told.sentence
    assert (told.holds, told.fails, told.chance_inside) == (found.holds, found.fails, None)
    assert rough(found, 0.3) == found


def test_the_answer_says_for_how_long_the_server_was_watched() -> None:
    trial = Driven(1200, 20, judged(fixed(4, 0.002), 1200, 20))
    said = watched([Seen([trial] * 9)])
    assert said.startswith("The server was watched for 3.1 minutes in all: what happens more")
    assert watched([]) == ""
