"""A promise is read, and a trace is held to it, as sure as the trace allows and no surer."""

from __future__ import annotations

import numpy as np
import pytest

from queues import Server, fixed, shedding
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
    with pytest.raises(SearchbenchError, match="is no promise; say for example"):
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


def test_a_clients_own_lateness_is_said_and_not_laid_on_the_system() -> None:
    trace = server().trace(1000, 5, 1)
    assert not judge(PROMISE, trace).own_fault
    late = Trace(
        trace.query, trace.outcome, trace.due, trace.free,
        trace.due + 2_000_000 * (np.arange(len(trace.due)) % 50 == 0), trace.done, trace.window,
    )  # fmt: skip
    assert judge(PROMISE, late).own_fault
