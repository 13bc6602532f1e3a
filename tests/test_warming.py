"""A warm-up until steady: when it ends on servers whose truth is known, and on a real host."""

from __future__ import annotations

import heapq
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benches import judge as simulated
from benches.warming import (
    LIMIT_S,
    driven,
    lacking,
    parallel,
    samples_of,
    ticks,
    warmed_up,
    warming_of,
)

from records import Study, constant, lognormal, warming
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Estimate, TrialResult
from searchbench.analysis.trial import serving, warmup
from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.trial.warming import often_asked
from searchbench.measure.run import run as measure
from searchbench.record import open_record
from searchbench.record.samples import SoFar
from searchbench.report.tables.study import warmups
from searchbench.terminal.answer import warnings
from test_lab import study


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize(("rate", "tau"), [(50, 20), (100, 60), (400, 5), (2000, 1)])
def test_a_cold_system_is_driven_until_it_is_warm_or_to_the_limit(
    rate: float, tau: float, closed: bool
) -> None:
    for seed in range(2):
        found = warmed_up(rate, tau, seed, closed)
        assert lacking(found, tau) < 0.06 or found.on_record.at_limit, found.on_record


@pytest.mark.parametrize(("rate", "most_s"), [(10_000, 3.0), (2000, 6.0), (400, 12.0)])
def test_a_warm_system_is_measured_soon(rate: float, most_s: float) -> None:
    for seed in range(3):
        found = warmed_up(rate, None, seed).on_record
        assert not found.at_limit
        assert found.seconds <= most_s
        assert found.requests == pytest.approx(rate * found.seconds, rel=0.2)


@pytest.mark.parametrize(("workers", "scatter"), [(0, 0.3), (24, 0.3), (0, 0.001)])
def test_a_server_that_works_on_many_requests_at_once_is_not_called_warm_while_cold(
    workers: int, scatter: float
) -> None:
    cold, warm = (
        driven(parallel(np.random.default_rng(3), 1000, 0.008, scatter, workers, tau, seconds=25))
        for tau in (20.0, 0.0)
    )
    assert cold.start_ns is None, cold.on_record
    assert warm.start_ns is not None
    assert warm.on_record.seconds < 16


def test_the_window_begins_a_tick_after_the_last_look_and_then_the_drive_is_cut_short() -> None:
    trace = simulated.trace(np.random.default_rng(1), 400, None, 5.0, 5.0)
    looks: list[SoFar] = []

    def at_the_third(seen: SoFar) -> bool:
        looks.append(seen)
        return len(looks) == 3

    stages: list[str] = []
    found = warming_of(trace, at_the_third, began=lambda: stages.append("drive"))
    *_, (last_ns, goes_on) = ticks(found, samples_of(trace))
    assert [round(seen.at_s, 1) for seen in looks] == [0.5, 0.6, 0.7]
    assert looks[2].due.size == np.count_nonzero(trace.done < 0.7e9)
    assert looks[2].first.sum() == np.unique(looks[2].query).size
    assert found.window.start == 800_000_000
    assert found.window.end == 2_800_000_000
    assert (goes_on, stages) == (False, ["drive"])
    assert found.window.end < last_ns < found.window.end + 1_000_000_000
    assert not found.on_record.at_limit


def test_what_was_due_in_the_window_is_waited_for() -> None:
    """Of two clients one asks for two seconds: the drive goes on until it has its answer."""
    due = np.concatenate((np.arange(0, 10**10, 10**7), [2_505_000_000, 4_605_000_000]))
    done = np.concatenate((np.arange(0, 10**10, 10**7) + 10**7, [4_605_000_000, 4_700_000_000]))
    order = np.argsort(done, kind="stable")
    due, done = due[order], done[order]
    none = np.zeros(due.size, np.uint8)
    trace = Trace(none.astype(np.uint32), none, due, due, due, done, (0, 10**10))
    samples = samples_of(trace)
    samples["connection"] = np.isin(due, (2_505_000_000, 4_605_000_000))
    found = warming_of(trace, lambda seen: True, clients=2)
    *_, (last_ns, _) = ticks(found, samples)
    assert found.window.end == 2_600_000_000
    assert last_ns == 4_800_000_000


def test_at_its_limit_a_drive_ends_by_itself() -> None:
    trace = simulated.trace(np.random.default_rng(1), 50, None, 60.0, 2.0)
    found = warming_of(trace, lambda seen: False)
    assert all(goes_on for _, goes_on in ticks(found, samples_of(trace)))
    assert found.on_record.at_limit
    assert found.window.start == round(LIMIT_S * 1e9)


def test_who_becomes_warm_before_the_limit_is_looked_at_once_more() -> None:
    trace = simulated.trace(np.random.default_rng(1), 50, None, 60.0, 2.0)
    looks: list[float] = []

    def late(seen: SoFar) -> bool:
        looks.append(seen.at_s / LIMIT_S)
        return looks[-1] > 0.97

    found = warming_of(trace, late)
    list(ticks(found, samples_of(trace)))
    assert [look for look in looks if look > 0.97] == pytest.approx([0.98], abs=0.01)
    assert not found.on_record.at_limit


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_when_a_server_of_several_workers_began_follows_from_due_and_done(workers: int) -> None:
    """The load is 0.9, so that all are busy often enough to be counted."""
    rng = np.random.default_rng(workers)
    due = np.sort(rng.uniform(0, 10**10, 5000)).astype(np.int64)
    free, done, begins = [0] * workers, np.empty(5000, np.int64), np.empty(5000, np.int64)
    for i, at in enumerate(due.tolist()):
        begins[i] = max(at, heapq.heappop(free))
        done[i] = begins[i] + round(1.8e6 * workers * rng.uniform(0.5, 1.5))
        heapq.heappush(free, int(done[i]))
    shuffled = rng.permutation(5000)
    found = serving.began(due[shuffled], done[shuffled])
    assert np.mean(found == begins[shuffled]) > 0.9
    assert np.mean(done[shuffled] - found) == pytest.approx(1.8e6 * workers, rel=0.05)
    assert np.mean(done - due) > 2e6 * workers


def so_far(n: int, distinct: int, first: float, at_s: float = 10.0) -> SoFar:
    """``n`` requests over ten seconds, of the last fifth of which a share are first asks."""
    done = np.linspace(0, at_s * 1e9, n, endpoint=False).astype(np.int64)
    asked = np.random.default_rng(1).random(n) < first
    query = np.zeros(n, np.uint32)
    return SoFar(query, done, done, done, asked, True, distinct, at_s, LIMIT_S)


def test_queries_are_asked_often_enough_as_far_as_that_can_be() -> None:
    assert not often_asked(so_far(1000, 400, 0.2))
    assert often_asked(so_far(1000, 400, 0.02))
    assert often_asked(so_far(1700, 400, 0.2)), "a log whose queries seldom come twice"
    assert not often_asked(so_far(1000, 2900, 1.0)), "asked twice by the limit"
    assert often_asked(so_far(1000, 3100, 1.0)), "never asked twice, wait as one may"


def judged(path: Path, **treatment: Any) -> TrialResult:
    study = Study(blocks=1, control=None, trial_noise=0, block_noise=0)
    study.add("t", **treatment)
    return judge(open_record(study.write(path / "record"))).treatments[0].trials[0]


def test_a_warm_up_that_its_limit_ended_is_not_steady_unless_the_window_is_shown_to_be(
    tmp_path: Path,
) -> None:
    ended = {"warmup": {"seconds": 1.0, "requests": 900, "at_limit": True}}
    slower = warming(lognormal(0.004), 1.5, 20.0)
    cold = judged(tmp_path / "cold", server=slower, seconds=6.0, extra=ended)
    assert cold.steadiness is not None
    assert cold.steadiness.answer == "not steady"
    (said,) = (f for f in cold.findings if f.kind == "warm-up limit")
    assert said.meaning.endswith("still changed in the window, so this trial is not steady.")
    assert said.remedy.startswith("Set `load.warmup_limit_s` to 2 or more, or draw fewer")
    found = judged(tmp_path, server=lognormal(0.004), seconds=3.0, extra=ended)
    assert found.steadiness is not None
    assert found.steadiness.answer == "unknown", "nothing moves by more than chance"
    (said,) = (f for f in found.findings if f.kind == "warm-up limit")
    assert said.number.startswith("after 1 s;")
    assert said.meaning.endswith("Whether it was steady in the window is unknown.")
    assert said.remedy.startswith("Set `load.warmup_limit_s` to 2 or more")
    same = judged(tmp_path / "same", server=constant(0.004), seconds=12.0, extra=ended)
    assert same.steadiness is not None
    assert same.steadiness.answer == "steady"
    assert "warm-up limit" not in {f.kind for f in same.findings}
    slowing = judged(tmp_path / "slowing", server=warming(lognormal(0.008), 0.3, 20.0),
                     seconds=6.0, extra=ended)  # fmt: skip
    (said,) = (f for f in slowing.findings if f.kind == "warm-up limit")
    assert said.remedy.startswith("It becomes slower, which no warm-up cures")
    assert (same.figures["steady_s"].value, same.figures["steady_requests"].value) == (0.0, 0.0)


def test_where_the_limit_is_why_trials_are_not_steady_the_answer_says_so_with_their_number(
    tmp_path: Path,
) -> None:
    found = {}
    for at_limit in (True, False):
        ended = {"warmup": {"seconds": 1.0, "requests": 9, "at_limit": at_limit}}
        study = Study(blocks=3)
        study.add("a", server=lognormal(0.004, 0.1))
        cold = warming(lognormal(0.01, 0.1), 2.0, 6.0)
        study.add("b", system="sqlite", server=cold, extra=ended)
        answer = judge(open_record(study.write(tmp_path / f"{at_limit}")))
        assert "sqlite was not steady in 3 of 3 trials" in answer.verdict.decision
        found[at_limit] = [line for line in warnings(answer) if "? warm-up limit" in line]
    (said,) = found[True]
    assert said.startswith("? warm-up limit (3 of 9 trials: ")
    assert "Set `load.warmup_limit_s` to 2 or more" in said
    assert not found[False], "that ended because the system was warm, as far as was seen"


def test_how_long_a_system_takes_to_warm_up_is_a_figure() -> None:
    """At 40 % of its speed at first, approaching it with a constant of 5 s: two thirds at 2.9 s."""
    rng = np.random.default_rng(2)
    cold, warm = (simulated.trace(rng, 800, tau, 25.0, 15.0) for tau in (5.0, None))
    found = warmup.milestones(cold, warmup.find(cold, closed=True))
    assert found["two_thirds_s"].value == pytest.approx(5 * math.log(1.8), rel=0.15)
    assert found["two_thirds_requests"].value == pytest.approx(800 * 1.6, rel=0.25)
    assert found["warmup_s"].value == 25.0
    found = warmup.milestones(warm, warmup.find(warm, closed=True))
    assert (found["two_thirds_s"].value, found["two_thirds_requests"].value) == (0.0, 0.0)


def test_a_milestone_that_some_trials_did_not_reach_is_that_of_the_others(tmp_path: Path) -> None:
    each = [Estimate(at, "s", 1) for at in (8.0, 9.0, 10.0)]
    found = warmup.over_trials(each, 5)
    assert found is not None
    assert found.interval is not None
    assert (found.value, found.interval.low, found.interval.high) == (9.0, 8.0, 10.0)
    assert found.interval.level == 1.0, "it is no interval of all starts"
    assert warmup.over_trials(each, 3) is None
    assert warmup.over_trials([], 3) is None
    study = Study(blocks=5, control=None)
    study.add("a", server=lognormal(0.004, 0.1), seconds=8.0)
    judged = judge(open_record(study.write(tmp_path / "r")))
    (whole,) = judged.treatments
    assert "steady_s" in whole.figures
    lacking = replace(
        whole.trials[0],
        figures={k: v for k, v in whole.trials[0].figures.items() if k != "steady_s"},
    )
    some = replace(judged, treatments=(replace(whole, trials=(lacking, *whole.trials[1:])),))
    cell = warmups(some).rows[0][3]
    assert "in 4 of 5 trials" in cell.below
    assert "trials" not in warmups(judged).rows[0][3].below


@pytest.mark.parametrize(("share", "slow_s"), [(0.05, 0.1), (0.02, 0.2), (0.1, 0.03), (0.0, 0.0)])
def test_a_few_slow_requests_that_take_most_of_the_time_are_a_slow_system(
    share: float, slow_s: float
) -> None:
    """As where some of them read from a disk until all is in memory: for 20 s at a quarter of the
    speed or less, though nearly all requests are as fast as later.
    """
    rng = np.random.default_rng(1)
    sent, at = [], 0.0
    while at < 40:
        sent.append(at)
        slow = at < 20 and rng.random() < share
        at += slow_s if slow else 1e-3 * np.exp(0.2 * rng.standard_normal())
    ns = np.round(1e9 * np.array([*sent, at])).astype(np.int64)
    n = len(sent)
    query = rng.integers(40, size=n).astype(np.uint32)
    window = (round(25e9), round(40e9))
    trace = Trace(query, np.zeros(n, np.uint8), ns[:-1], ns[:-1], ns[:-1], ns[1:], window)
    found = warmup.milestones(trace, warmup.find(trace, closed=True))
    assert found["two_thirds_s"].value == pytest.approx(20.0 if share else 0.0, abs=1.0)


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("stall_s", [7.0, 15.0])
def test_a_stall_of_a_fast_system_is_no_warm_up(closed: bool, stall_s: float) -> None:
    """For half a second nothing is answered: one request waits, or all that are due meanwhile."""
    due = np.arange(0, 40, 1e-3)
    stalled = (due >= stall_s) & (due < stall_s + 0.5)
    if closed:
        due = due[~stalled]
        took = np.full(due.size, 0.9e-3)
        took[np.searchsorted(due, stall_s) - 1] = 0.5
    else:
        took = np.where(stalled, stall_s + 0.5 - due, 0.9e-3)
    at = np.round(1e9 * due).astype(np.int64)
    done = at + np.round(1e9 * took).astype(np.int64)
    n = due.size
    query = (np.arange(n) % 40).astype(np.uint32)
    trace = Trace(query, np.zeros(n, np.uint8), at, at, at, done, (round(10e9), round(40e9)))
    found = warmup.milestones(trace, warmup.find(trace, closed=closed))
    if "two_thirds_s" in found:
        assert found["two_thirds_s"].value == 0.0
    assert warmup._two_thirds_s(trace, "throughput" if closed else "response_p50") == 0.0


@pytest.mark.parametrize("load", ["clients = 2", "rate_per_s = 500"])
def test_a_study_without_a_warm_up_measures_once_the_system_is_warm(
    tmp_path: Path, load: str
) -> None:
    load += "\nseconds = 0.5\nwarmup_limit_s = 2"
    record = measure(
        study(tmp_path, "[systems.tantivy]\n", load, "[control]\naa = false"), tmp_path / "record"
    )
    (trial,) = record.trials
    assert trial.status == "ok", trial.reason
    assert (trial.load.warmup_s, trial.load.warmup_limit_s) == (None, 2.0)
    assert trial.warmup is not None
    assert 0.5 <= trial.warmup.seconds <= 2.0
    assert trial.warmup.requests > 100
    assert trial.window is not None
    assert (trial.window.start / 1e9, trial.window.seconds) == (trial.warmup.seconds, 0.5)
    samples = record.samples(trial.trial)
    due, outcome = samples["due"].to_numpy(), samples["outcome"].to_numpy()
    assert due.max() >= trial.window.end - 100_000_000
    assert set(outcome[due < trial.window.end].tolist()) == {0}
    assert "warmup_s" in judge(record).treatments[0].trials[0].figures
