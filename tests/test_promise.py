"""A promise is read, and a trace is held to it, as sure as the trace allows and no surer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from queues import Server, fixed, shedding
from searchbench.analysis.capacity import lag
from searchbench.analysis.capacity.promise import judge
from searchbench.analysis.trial.measured import Trace
from searchbench.errors import SearchbenchError
from searchbench.workload.load_table import parse_promise

PROMISE = parse_promise("p99 < 10ms, errors < 0.1%")


def server(seed: int = 1, **how: object) -> Server:
    """Four workers of 2 ms: 2,000/s at most."""
    return Server(fixed(4, 0.002), np.random.default_rng(seed), **how)  # type: ignore[arg-type]


def test_a_promise_is_read_with_its_units() -> None:
    found = parse_promise("p99.9 < 1.5s and p50<250us, errors < 0.1%")
    assert [(c.allowed, c.limit_ns) for c in found] == [
        (pytest.approx(0.001), 1.5e9),
        (0.5, 250e3),
        (0.001, None),
    ]


@pytest.mark.parametrize("text", ["", "p99", "p99 > 5ms", "p0 < 1ms", "p100 < 1ms", "p99 < 0ms"])
def test_what_is_no_promise_is_named_with_an_example(text: str) -> None:
    with pytest.raises(SearchbenchError, match="is not a promise; give for example"):
        parse_promise(text)


def test_far_below_capacity_it_holds_and_above_it_fails() -> None:
    assert judge(PROMISE, server().trace(1000, 10, 1)).verdict == "holds"
    over = judge(PROMISE, server().trace(2300, 10, 1))
    assert over.verdict == "fails"
    assert over.achieved == pytest.approx(2000 / 2300, rel=0.02)
    assert over.answered_per_s == pytest.approx(2000, rel=0.01)


def test_a_system_that_does_not_keep_up_fails_before_its_responses_are_too_long() -> None:
    patient = parse_promise("p99 < 10s")
    assert judge(patient, server(arrivals="constant").trace(2100, 5, 1)).verdict == "fails"
    assert judge(patient, server(arrivals="constant").trace(1990, 5, 1)).verdict == "holds"


def test_requests_that_failed_are_late_however_fast_they_were() -> None:
    shed = Server(shedding(fixed(4, 0.002), 1000), np.random.default_rng(1))
    late, errors = judge(PROMISE, shed.trace(1500, 10, 1)).kept
    assert late.share == pytest.approx(errors.share)
    assert errors.share == pytest.approx(1 / 3, abs=0.03)
    assert late.verdict == errors.verdict == "fails"
    assert late.quantile_ns is None


def test_few_requests_are_not_enough_to_promise_few_errors() -> None:
    few = judge(PROMISE, server().trace(1000, 2, 0))
    assert few.kept[1].share == 0
    assert few.kept[1].verdict == few.verdict == "unclear"


def test_an_empty_window_fails() -> None:
    nothing = np.zeros(0, np.int64)
    empty = Trace(nothing.astype(np.uint32), nothing.astype(np.uint8), *[nothing] * 4, (0, 10**9))
    assert judge(PROMISE, empty).verdict == "fails"


def test_late_requests_in_clusters_count_as_fewer() -> None:
    # 1740/s is where the true share of late requests is 1 % (M/D/4): the interval of most windows
    # has to hold that, which that of independent requests does not.
    held = independent = 0
    for seed in range(40):
        late = judge(PROMISE, server(seed).trace(1740, 12, 2)).kept[0]
        held += late.low <= 0.01 <= late.high
        half = 1.96 * (0.01 * 0.99 / late.requests) ** 0.5
        independent += abs(late.share - 0.01) <= half
    assert held >= 32
    assert independent <= 20


def sent_late(trace: Trace, by_ns: int) -> Trace:
    """Every request sent late by the client, and answered late by as much."""
    return replace(trace, sent=trace.sent + by_ns, done=trace.done + by_ns)


def test_a_client_that_is_late_is_at_fault_only_where_its_lateness_decides() -> None:
    fine, over = server().trace(1000, 5, 1), server().trace(2300, 5, 1)
    on_time, kept = judge(PROMISE, fine), judge(PROMISE, sent_late(fine, 2_000_000))
    assert (kept.own_fault, kept.lagging) == (False, True)
    assert (on_time.own_fault, on_time.lagging) == (False, False)
    assert kept.seems_kept, "response times count the lateness, and are short all the same"
    assert kept.kept[0].quantile_ns == (on_time.kept[0].quantile_ns or 0) + 2e6
    decides = judge(PROMISE, sent_late(fine, 9_000_000))
    assert decides.own_fault
    assert decides.says_nothing
    broken = judge(PROMISE, sent_late(over, 9_000_000))
    assert (broken.own_fault, broken.verdict) == (False, "fails")


def test_a_promise_is_broken_only_as_surely_as_without_the_clients_lateness() -> None:
    # 1.3 % are slow by themselves, 4 % more for the client's lateness: sure only with it.
    chance = np.random.default_rng(2).random(2000)
    due = np.arange(2000) * 1_000_000
    late = np.where(chance > 0.96, 20_000_000, 0)
    done = due + late + np.where(chance < 0.013, 40_000_000, 1_000_000)
    nothing = np.zeros(2000, np.uint32), np.zeros(2000, np.uint8)
    trace = Trace(*nothing, due, due, due, done, (0, 2 * 10**9))
    assert judge(PROMISE[:1], trace).verdict == "fails", "all of it would be the server's"
    found = judge(PROMISE[:1], replace(trace, sent=due + late))
    assert (found.own_fault, found.verdict) == (False, "unclear")


def lateness(due: list[int], free: list[int], sent: list[int], done: list[int]) -> list[int]:
    """By how much the client may have delayed each reply at most."""
    instants = (np.array(each, np.int64) for each in (due, free, sent, done))
    n = len(due)
    trace = Trace(np.zeros(n, np.uint32), np.zeros(n, np.uint8), *instants, (0, 1000))
    return (trace.done - lag.taken_out(trace).done).tolist()


def test_a_late_request_may_have_delayed_those_behind_it_until_the_system_was_idle() -> None:
    due, done = [0, 10, 20, 100], [40, 50, 60, 110]
    assert lateness(due, due, [7, 10, 21, 102], done) == [7, 7, 7, 2]
    assert lateness(due, due, [0, 10, 25, 100], done) == [5, 5, 5, 0], "it may share the processor"


def test_a_request_that_waited_for_a_connection_was_delayed_by_the_one_before_it_too() -> None:
    assert lateness([0, 1, 2], [0, 13, 26], [3, 17, 28], [13, 26, 38]) == [3, 7, 9]


def test_what_was_not_sent_or_not_answered_stays_so() -> None:
    assert lateness([0, 10, 50], [0, -1, 50], [4, -1, 50], [9, -1, 55]) == [4, 0, 0]
    assert lateness([0, 10, 50], [0, 10, 50], [4, 10, 50], [-1, 20, 55]) == [0, 4, 4]


def test_what_is_taken_out_is_at_least_what_the_client_added_to_a_queue() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        due = np.cumsum(rng.exponential(0.7e6, 3000)).astype(np.int64)
        sent = due + np.where(rng.random(3000) < 0.02, 8_000_000, 0)
        done = {at: [0] * 3000 for at in ("due", "sent")}
        for name, at in (("due", due), ("sent", sent)):
            end = 0
            for i in np.argsort(at, kind="stable").tolist():
                done[name][i] = end = max(end, int(at[i])) + 600_000
        nothing = np.zeros(3000, np.uint32), np.zeros(3000, np.uint8)
        trace = Trace(*nothing, due, due, sent, np.array(done["sent"]), (0, 2 * 10**9))
        # In order of their replies: a late request lets others pass it.
        early = np.sort(lag.taken_out(trace).done)
        assert (early <= np.sort(np.array(done["due"]))).all()
