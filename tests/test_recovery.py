"""Normal before a disturbance, and how long until it after: on traces whose truth is known."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from searchbench.analysis.judgement import Estimate, OverloadSeen
from searchbench.analysis.overload import results, sentence, until
from searchbench.analysis.roles import faults
from searchbench.analysis.roles.model import FaultResult
from searchbench.analysis.trial import overload
from searchbench.analysis.trial.classes import Classes
from searchbench.analysis.trial.measured import NEVER, Trace
from searchbench.analysis.trial.recovery import (
    STEPS,
    Again,
    Bound,
    Normal,
    again,
    normal_before,
    promised,
)
from searchbench.analysis.trial.recovery_said import between, bounds, over_trials
from searchbench.workload.load_table import parse_promise
from searchbench.workload.shape import shape_of

RATE, S = 400, 10**9
LOST = 6
Floats = NDArray[np.float64]
EDGES_S = np.linspace(0, 45, 10)


def open_trace(seconds: float, down: tuple[float, float], drained: float) -> Trace:
    """Due 400 a second and answered in 1 to 2 ms, but for ``down``, when nothing is answered; what
    is due from its end to ``drained`` waits in a backlog that shrinks linearly."""
    due = np.arange(0, seconds, 1 / RATE)
    took = 0.001 + 0.001 * (np.arange(len(due)) % 7 == 0)
    waits = (due >= down[1]) & (due < drained)
    took = np.where(waits, took + (drained - due), took)
    lost = (due >= down[0]) & (due < down[1])
    at = np.round(due * S).astype(np.int64)
    done = np.where(lost, NEVER, at + np.round(took * S).astype(np.int64))
    outcome = np.where(lost, LOST, 0).astype(np.uint8)
    query = np.zeros(len(due), np.uint32)
    return Trace(query, outcome, at, at, at, done, (0, round(seconds * S)))


def closed_trace(before: float, after: float, down: tuple[float, float], seconds: float) -> Trace:
    """So many answers a second before and after a time without any, each in 2 ms."""
    due = np.concatenate(
        (np.arange(0, down[0], 1 / before), np.arange(down[1], seconds, 1 / after))
    )
    at = np.round(due * S).astype(np.int64)
    zeros = np.zeros(len(due), np.uint32)
    done = at + 2_000_000
    return Trace(zeros, zeros.astype(np.uint8), at, at, at, done, (0, round(seconds * S)))


def known(trace: Trace, until: float, *, closed: bool = False) -> Normal:
    found = normal_before(trace, 0, round(until * S), closed=closed)
    assert isinstance(found, Normal), found
    return found


@pytest.mark.parametrize("drained", [12.0, 13.3, 17.25])
def test_answers_are_normal_once_the_backlog_is_gone(drained: float) -> None:
    trace = open_trace(30, (10, 12), drained)
    normal = known(trace, 10)
    found = again(trace, normal, 12 * S, 30 * S)
    # What waits no longer than the limit is normal already, and a few of a span may be late.
    early = normal.limit_s + normal.bounds[0].allowed * normal.span_s
    assert drained - early - normal.step_s <= 12 + found.after_s <= drained + normal.step_s
    assert found.later == 0
    assert found.looked_s == 18


@pytest.mark.parametrize(("took_s", "again_s"), [(0.06, math.inf), (0.004, 0.0)])
def test_where_all_requests_take_longer_answers_are_not_normal(
    took_s: float, again_s: float
) -> None:
    """Before, the median is 4 ms and the p99 40 ms; all requests after the restart take 60 ms."""
    due = np.arange(0, 30, 1 / 300)
    took = 0.004 * np.exp(0.99 * np.random.default_rng(1).standard_normal(due.size))
    took = np.where(due >= 12, took_s, took)
    lost = (due >= 10) & (due < 12)
    at = np.round(due * S).astype(np.int64)
    done = np.where(lost, NEVER, at + np.round(took * S).astype(np.int64))
    outcome = np.where(lost, LOST, 0).astype(np.uint8)
    trace = Trace(np.zeros(due.size, np.uint32), outcome, at, at, at, done, (S, 30 * S))
    normal = known(trace, 10)
    assert normal.limit_s > took_s, "by the p99 alone they would be in time"
    assert again(trace, normal, 12 * S, 30 * S).after_s == again_s
    assert "(twice the median before)" in bounds(normal)


def test_a_median_between_two_kinds_of_requests_is_no_bound() -> None:
    due = np.arange(0, 30, 1 / RATE)
    kind = np.random.default_rng(2).random(due.size) < 0.5
    at = np.round(due * S).astype(np.int64)
    done = at + np.where(kind, 1_000_000, 10_000_000)
    zeros = np.zeros(due.size, np.uint32)
    trace = Trace(zeros, zeros.astype(np.uint8), at, at, at, done, (0, 30 * S))
    assert again(trace, known(trace, 10), 12 * S, 30 * S).after_s < 0.1


def test_a_step_is_the_resolution_and_a_span_has_requests_enough() -> None:
    normal = known(open_trace(30, (10, 12), 12), 10)
    assert normal.span_s * RATE >= 200
    assert normal.step_s == normal.span_s / STEPS
    assert normal.limit_s == pytest.approx(2 * 0.002, rel=0.01)
    assert normal.good_per_s == 0, "in an open loop the number of requests is the load's"
    assert "at most 2 % of the requests due in 1 s fail or take 4 ms or more" in bounds(normal)


def test_what_does_not_come_back_is_not_within_the_window() -> None:
    trace = open_trace(20, (10, 12), 25)
    found = again(trace, known(trace, 10), 12 * S, 20 * S)
    assert math.isinf(found.after_s)
    assert found.looked_s == 8


def test_what_is_disturbed_once_more_is_normal_and_later_not() -> None:
    trace = open_trace(30, (10, 12), 12)
    second = (trace.due >= 20 * S) & (trace.due < 23 * S)
    trace.done[second] = NEVER
    trace.outcome[second] = LOST
    found = again(trace, known(trace, 10), 12 * S, 30 * S)
    assert found.after_s < 0.1
    assert 3 / 18 < found.later < 6 / 18


def test_an_overload_after_which_answers_are_normal_now_and_then_says_so() -> None:
    """After it 2 s are as before, 2 s not, and so on: the first of them begin at once."""
    shape = shape_of([[10, RATE], [5, 2 * RATE], [30, RATE]])
    due = np.concatenate([np.arange(0, 10, 1 / RATE), np.arange(10, 15, 1 / RATE / 2),
                          np.arange(15, 45, 1 / RATE)])  # fmt: skip
    bad = (due >= 10) & (due < 15) | (due >= 15) & ((due - 15) % 4 >= 2)
    at = np.round(due * S).astype(np.int64)
    done = at + np.where(bad, S, 2_000_000)
    zeros = np.zeros(due.size, np.uint32)
    trace = Trace(zeros, zeros.astype(np.uint8), at, at, at, done, (0, 45 * S))
    seen, _ = overload.of_trial(shape, trace, None, ["p90 < 200ms"], EDGES_S)
    trial: Any = SimpleNamespace(counts=True, shaped=SimpleNamespace(overloads=seen))
    treatment: Any = SimpleNamespace(treatment="t", label="t", levels={}, trials=(trial,) * 3)
    (found,) = results([treatment])
    said = until(found)
    assert "Answers were not normal again within the 30 s after it." in said
    assert f"Normal is: {found.first.bounds}." in said, "what that means is said beside it"
    (share,) = re.findall(r" They were normal at times, for (\d+) % of that time\.", said)
    assert 10 <= int(share) <= 60


def test_bounds_say_of_which_requests_they_are() -> None:
    promise = parse_promise("a: p90 < 100ms, errors < 1%; p50 < 2s")
    assert bounds(Normal(promised(promise), 0.0, 2.0, 0.1)) == (
        "at most 10 % of the requests of class a due in 2 s fail or take 100 ms or more "
        "(a: p90 < 100ms), at most 1 % fail (a: errors < 1%), at most 50 % of all requests fail or "
        "take 2 s or more (p50 < 2s)"
    )


def test_clients_of_a_closed_loop_that_get_no_answer_any_more_are_not_normal() -> None:
    """16 of them, and from 12 s on some are never answered."""
    each = np.arange(0, 30, 0.02)

    def loop(hung: int) -> Trace:
        client = np.repeat(np.arange(16), each.size)
        due = np.tile(each, 16) + client * 0.001
        kept = (client >= hung) | (due < 12)
        client, at = client[kept], np.round(due[kept] * S).astype(np.int64)
        last = np.append(client[1:] != client[:-1], True) & (client < hung)
        done = np.where(last, NEVER, at + 19_000_000)
        outcome = np.where(last, LOST, 0).astype(np.uint8)
        query = np.zeros(at.size, np.uint32)
        return Trace(query, outcome, at, at, at, done, (0, 30 * S), client=client.astype(np.uint16))

    for hung, after_s in ((0, 0.0), (1, math.inf), (3, math.inf)):
        trace = loop(hung)
        found = again(trace, known(trace, 10, closed=True), 13 * S, 30 * S)
        assert isinstance(found, Again)
        assert found.after_s == pytest.approx(after_s, abs=0.05), hung


def test_what_was_still_warming_up_is_no_normal() -> None:
    due = np.arange(0, 30, 1 / RATE)
    took = np.where(due < 10, 0.004 + 0.012 * (due < 7.2), 0.032)
    at = np.round(due * S).astype(np.int64)
    zeros = np.zeros(due.size, np.uint32)
    done = at + np.round(took * S).astype(np.int64)
    trace = Trace(zeros, zeros.astype(np.uint8), at, at, at, done, (0, 30 * S))
    said = normal_before(trace, 0, 10 * S, closed=False)
    assert isinstance(said, str)
    assert said.startswith("before it response times were still becoming shorter, so there is no")


def test_a_closed_loop_that_is_half_as_fast_is_not_normal() -> None:
    slow = closed_trace(500, 250, (10, 12), 30)
    assert math.isinf(again(slow, known(slow, 10, closed=True), 12 * S, 30 * S).after_s)
    # Without the rate its answers are as before, each in 2 ms: so it is the rate that tells.
    assert again(slow, known(slow, 10), 12 * S, 30 * S).after_s == 0
    whole = closed_trace(500, 480, (10, 13), 30)
    found = again(whole, known(whole, 10, closed=True), 12 * S, 30 * S)
    assert found.after_s == pytest.approx(1.0, abs=0.01)


def test_where_nothing_was_normal_nothing_is_said() -> None:
    trace = open_trace(30, (10, 12), 12)
    few = normal_before(trace, 0, S // 2, closed=False)
    assert isinstance(few, str)
    assert "there were only 200 good answers before it" in few
    wild = open_trace(30, (10, 12), 12)
    wild.done[::10] = NEVER
    wild.outcome[::10] = LOST
    said = normal_before(wild, 0, 10 * S, closed=False)
    assert said == "before it answers varied too much, so there is no normal to come back to"


def test_a_promise_says_what_is_in_time_and_how_many_may_not_be() -> None:
    trace = open_trace(40, (10, 12), 20)
    promise = parse_promise("p99 < 3s")
    normal = normal_before(trace, 0, 10 * S, closed=False, promise=promise)
    assert isinstance(normal, Normal)
    assert normal.bounds == (Bound(3.0, 0.01, "p99 < 3s"),)
    # From 20 s back by the limit: what is due then waits for less.
    assert again(trace, normal, 12 * S, 40 * S).after_s == pytest.approx(5.0, abs=0.1)
    broken = parse_promise("p99 < 1ms")
    said = normal_before(trace, 0, 10 * S, closed=False, promise=broken)
    assert said == "before it the promise was not kept, so there is no normal to come back to"


def overloaded(
    slow: Callable[[Floats, Floats], np.ndarray], failed: float = 0.0, reports: float = 0.1
) -> Trace:
    """10 s, then 5 s at twice the rate of which all is late, then 30 s of which some is ``slow``
    (by when it is due and by lot); ``reports`` have a class of their own, the others are searches.
    """
    rng = np.random.default_rng(4)
    due = np.concatenate([np.arange(0, 10, 1 / RATE), np.arange(10, 15, 1 / RATE / 2),
                          np.arange(15, 45, 1 / RATE)])  # fmt: skip
    report = rng.random(due.size) < reports
    late = (due >= 10) & (due < 15) | (due >= 15) & slow(report, rng.random(due.size))
    at = np.round(due * S).astype(np.int64)
    lost = (due >= 15) & (rng.random(due.size) < failed)
    outcome = np.where(lost, LOST, 0).astype(np.uint8)
    classes = Classes(("search", "report"), np.array([0, 1], np.uint8))
    done = at + np.where(late, 3 * S, 2_000_000)
    times = at, at, at, np.where(lost, NEVER, done), (0, 45 * S)
    return Trace(report.astype(np.uint32), outcome, *times, classes=classes)


def after_overload(trace: Trace, *promises: str) -> OverloadSeen:
    shape = shape_of([[10, RATE], [5, 2 * RATE], [30, RATE]])
    ((seen,), _) = overload.of_trial(shape, trace, None, promises, EDGES_S)
    return seen


def test_of_a_promise_each_condition_is_kept_before_answers_are_normal() -> None:
    some = overloaded(lambda _, lot: lot < 0.4)
    assert after_overload(some, "p50 < 20ms").normal_s == pytest.approx(0, abs=0.05)
    for promise in ("p50 < 20ms and p99 < 100ms", "p99 < 100ms, p50 < 20ms"):
        seen = after_overload(some, promise)
        assert seen.normal_s == math.inf
        assert "(p50 < 20ms)" in seen.bounds
        assert "(p99 < 100ms)" in seen.bounds
        assert (seen.limit_s, seen.in_time) == (0.1, "below 100 ms"), "a median is for most"
    wrong = overloaded(lambda *_: False, failed=0.08)
    assert after_overload(wrong, "p90 < 100ms").normal_s == pytest.approx(0, abs=0.05)
    assert after_overload(wrong, "errors < 1%, p90 < 100ms").normal_s == math.inf
    assert after_overload(wrong, "errors < 1%").normal_s == math.inf, "none of it is about times"


def test_a_condition_for_a_class_is_about_its_requests_alone() -> None:
    reports = overloaded(lambda report, _: report)
    both = "search: p90 < 100ms; report: p99 < 500ms"
    seen = after_overload(reports, both)
    assert seen.normal_s == math.inf
    assert "of the requests of class report fail" in seen.bounds
    assert (seen.limit_s, seen.in_time) == (0.1, "search: below 100 ms; report: below 500 ms")
    assert after_overload(reports, "search: p90 < 100ms").normal_s == pytest.approx(0, abs=0.05)
    searches = overloaded(lambda report, _: ~report)
    assert after_overload(searches, "report: p99 < 500ms").normal_s == pytest.approx(0, abs=0.2)
    assert after_overload(searches, both).normal_s == math.inf
    rare = overloaded(lambda report, _: report, reports=0.01)
    seen = after_overload(rare, "report: p99 < 500ms")
    assert seen.normal_s is None, "there are too few of them"
    assert "s to know what is normal (report: p99 < 500ms)" in seen.why
    assert after_overload(rare, "other: p99 < 500ms").why == (
        "no request of class other was due before it"
    )


def test_stragglers_below_what_is_promised_are_not_a_broken_promise() -> None:
    """Half as many are late as may be: some spans break it by chance, before as after."""
    known_of = later = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        due = np.sort(rng.uniform(0, 40, 40 * 300))
        took = np.where(rng.random(due.size) < 0.005, 0.3, 0.004)
        at = np.round(due * S).astype(np.int64)
        zeros = np.zeros(due.size, np.uint32)
        done = at + np.round(took * S).astype(np.int64)
        trace = Trace(zeros, zeros.astype(np.uint8), at, at, at, done, (0, 40 * S))
        promise = parse_promise("p99 < 100ms")
        normal = normal_before(trace, 0, 10 * S, closed=False, promise=promise)
        if isinstance(normal, Normal):
            known_of += 1
            found = again(trace, normal, 12 * S, 40 * S)
            assert isinstance(found, Again)
            assert found.after_s < 2
            later += found.later > 0
    assert known_of >= 17
    assert later <= 8


def test_a_closed_loop_whose_rate_scatters_is_back_at_once() -> None:
    back = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        due, client = [], []
        for n in range(16):
            starts = np.cumsum(0.24 * np.exp(rng.standard_normal(400)))
            starts = starts[starts < 40]
            due.append(starts)
            client.append(np.full(starts.size, n, np.uint16))
        at = np.round(np.concatenate(due) * S).astype(np.int64)
        done = np.concatenate([np.append(one[1:], 40.0) for one in due])
        zeros = np.zeros(at.size, np.uint32)
        trace = Trace(zeros, zeros.astype(np.uint8), at, at, at,
                      np.round(done * S).astype(np.int64), (0, 40 * S),
                      client=np.concatenate(client))  # fmt: skip
        normal = normal_before(trace, 0, 10 * S, closed=True)
        if isinstance(normal, Normal):
            found = again(trace, normal, 12 * S, 30 * S)
            assert isinstance(found, Again)
            back += math.isfinite(found.after_s)
        else:
            back += 1
    assert back >= 19


def test_over_trials_an_infinite_one_is_in_the_middle_and_in_the_range() -> None:
    three = over_trials([1.0, 2.0, 3.0], "s")
    assert three is not None
    assert three.interval is not None
    assert three.interval.low < 2.0 == three.value < three.interval.high
    some = over_trials([1.0, math.inf, 2.0], "s")
    assert some is not None
    assert some.interval is not None
    assert (some.value, some.interval.low, some.interval.high) == (2.0, 1.0, math.inf)
    odd = over_trials([0.0, 0.1, 0.0, 16.5, 0.1], "s")
    assert odd is not None
    assert odd.interval is not None
    assert (odd.value, odd.interval.low, odd.interval.high) == (0.1, 0.0, 16.5), "not their mean"
    assert between(odd.interval) == " (median; trials: 0 to 16.5)"
    two = over_trials([0.0, 0.8], "share")
    assert two is not None
    assert two.value == 0.4, "neither of them is in the middle"
    never = over_trials([math.inf, math.inf], "s")
    assert never is not None
    assert math.isinf(never.value)
    assert never.interval is None


def overload_of(failed: float) -> OverloadSeen:
    return OverloadSeen(
        before=1, after=3, start_s=10, seconds=5, base_per_s=100, most_per_s=200, times=2.0,
        offered_per_s=200, answered_per_s=100, in_time_per_s=100 * (1 - failed), failed=failed,
        limit_s=0.1, in_time="below 100 ms", promise="", normal_s=1.0, looked_s=30,
        resolution_s=0.05, later=failed / 10, bounds="", why="", lag_p99_s=0.0,
    )  # fmt: skip


@pytest.mark.parametrize("failed", [(0.0, 0.0, 0.8), (0.0, 0.8), (0.0, 0.0, 0.0)])
def test_failures_of_one_trial_are_said_though_the_middle_one_had_none(
    failed: tuple[float, ...],
) -> None:
    trials = [
        SimpleNamespace(counts=True, shaped=SimpleNamespace(overloads=(overload_of(f),)))
        for f in failed
    ]
    one: Any = SimpleNamespace(treatment="t01", label="a", levels={}, trials=trials)
    (found,) = results([one])
    told = sentence(found)
    if not any(failed):
        assert "failed" not in told
        assert "least to greatest" not in told
        return
    assert "failed (" not in told
    middle = "0 %" if len(failed) == 3 else "40 %"
    assert f"and {middle} (median; trials: 0 % to 80 %) failed" in told
    assert "/s (median; trials: 20 to 100) in time" in told
    assert "(median; trials: 0 % to 8 %) of the time after that" in told


@pytest.mark.parametrize("known_first", [False, True])
def test_what_is_known_in_some_trials_is_said_to_be_of_these(known_first: bool) -> None:
    """In one of three trials it is known, with its resolution, whichever that is."""
    shape = shape_of([[10, RATE], [5, 2 * RATE], [30, RATE]])
    due = np.concatenate([np.arange(0, 10, 1 / RATE), np.arange(10, 15, 1 / RATE / 2),
                          np.arange(15, 45, 1 / RATE)])  # fmt: skip
    at = np.round(due * S).astype(np.int64)
    zeros = np.zeros(due.size, np.uint32)
    seen = {}
    for name, slow in (("well", due < 0), ("wild", (due < 10) & (due % 2 < 0.1))):
        done = at + np.where(slow, S, 2_000_000)
        trace = Trace(zeros, zeros.astype(np.uint8), at, at, at, done, (0, 45 * S))
        seen[name], _ = overload.of_trial(shape, trace, None, ["p99 < 200ms"], EDGES_S)
    assert seen["wild"][0].normal_s is None
    trials: list[Any] = [
        SimpleNamespace(counts=True, shaped=SimpleNamespace(overloads=seen[name]))
        for name in (("well", "wild", "wild") if known_first else ("wild", "wild", "well"))
    ]
    treatment: Any = SimpleNamespace(treatment="t", label="t", levels={}, trials=trials)
    (found,) = results([treatment])
    assert found.unknown == 2
    assert "at once after it (within 50 ms, and only in 1 of 3 trials)" in until(found)
    told = FaultResult(
        "x", "kill", "server", "t", "t", {}, 3, back=True, unknown=2, resolution_s=0.05,
        figures={"normal_s": Estimate(0.3, "s", 1)}, bounds="at most 2 % take 80 ms or more",
    )  # fmt: skip
    assert faults.until(told).endswith("Normal is: at most 2 % take 80 ms or more.")
    assert "and only in 1 of 3 trials)" in faults.until(told)
