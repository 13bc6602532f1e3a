"""The audit: what makes a trial invalid, what is only remarked, and what is left alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from records import Study, constant, exponential, lognormal, single_queue, stalling, warming
from searchbench.analysis.findings import hoist
from searchbench.analysis.judgement import Curve, Finding, TreatmentResult, TrialResult
from searchbench.analysis.trial import throughput as capacity
from searchbench.analysis.trial import validity, warmup
from searchbench.analysis.trial.measured import Trace, read_trace
from searchbench.record import Trial, open_record


def trial_of(path: Path, **treatment: Any) -> tuple[Trial, Trace]:
    study = Study(blocks=1, control=None, trial_noise=0, block_noise=0)
    study.add("t", **treatment)
    record = open_record(study.write(path / "record"))
    return record.trials[0], read_trace(record, record.trials[0])


def audited(path: Path, **treatment: Any) -> dict[str, Finding]:
    trial, trace = trial_of(path, **treatment)
    warm = warmup.find(trace, trial.load.kind == "closed")
    return {f.kind: f for f in validity.audit(trial, trace, warm)}


@pytest.mark.parametrize("think_s", [0.0, 0.01])
def test_a_trial_in_good_health_has_no_findings(tmp_path: Path, think_s: float) -> None:
    assert audited(tmp_path, server=lognormal(0.004), think_s=think_s, seconds=61.0) == {}


def test_an_open_loop_in_good_health_has_no_findings(tmp_path: Path) -> None:
    assert audited(tmp_path, server=lognormal(0.004), rate_per_s=800, seconds=31.0) == {}


def test_a_server_that_stalls_is_no_overload(tmp_path: Path) -> None:
    found = audited(tmp_path, server=stalling(), rate_per_s=1000, arrivals="constant", seconds=8.2)
    assert "overload" not in found, "the window ends within a stall"


def test_more_load_than_capacity_is_invalid(tmp_path: Path) -> None:
    found = audited(tmp_path, server=single_queue(0.00125), rate_per_s=1000)
    assert found["overload"].severity == "invalid"


def test_with_few_requests_overload_is_unknown_and_not_absent(tmp_path: Path) -> None:
    found = audited(tmp_path, server=single_queue(0.04), rate_per_s=40)
    assert "overload" not in found
    behind = found["behind at the end"]
    assert behind.severity == "warning"
    assert "Whether the queue grew all through it is unknown" in behind.meaning
    assert "200 requests are the least" in behind.remedy


def test_requests_that_were_never_sent_are_overload(tmp_path: Path) -> None:
    found = audited(tmp_path, rate_per_s=500, extra={"drive": {"unsent": 12}})
    assert "12 requests never sent" in found["overload"].number


def test_time_that_clients_lost_breaks_littles_law(tmp_path: Path) -> None:
    trial, trace = trial_of(tmp_path, server=exponential(0.004))
    kept = np.random.default_rng(0).random(trace.due.size) > 0.05
    columns = {
        n: getattr(trace, n)[kept] for n in ("query", "outcome", "due", "free", "sent", "done")
    }
    thinned = Trace(**columns, window=trace.window)
    warm = warmup.find(thinned, closed=True)
    found = {f.kind: f for f in validity.audit(trial, thinned, warm)}
    assert found["Little's law"].severity == "invalid"
    assert found["Little's law"].number.startswith("3.8")


def test_time_that_the_generator_lost_is_seen_by_its_lag_and_not_by_littles_law(
    tmp_path: Path,
) -> None:
    """The generator stalls for 90 % of the time: an identity cannot show it, the lag does."""
    trial, trace = trial_of(tmp_path, clients=1)
    due = np.arange(0, 6 * 10**9, 10**7)
    late = replace(
        trace, query=np.arange(due.size) % 40, outcome=np.zeros(due.size, np.uint8),
        due=due, free=due, sent=due + 9 * 10**6, done=due + 10**7,
    )  # fmt: skip
    assert capacity.little_of(trial.load, late) == pytest.approx(1.0)
    found = {f.kind: f for f in validity.audit(trial, late, warmup.find(late, closed=True))}
    assert "Little's law" not in found
    assert found["generator lag"].severity == "invalid"
    assert found["generator lag"].number == "90 % of each client's time"


def test_few_long_requests_do_not_break_littles_law(tmp_path: Path) -> None:
    """X (R + Z) taken at face value would be off by a fifth here, by the window's edges alone."""
    found = audited(tmp_path, server=constant(0.9), clients=32, seconds=6.0)
    assert "Little's law" not in found


def test_a_late_generator_makes_an_open_loop_invalid(tmp_path: Path) -> None:
    found = audited(tmp_path, server=constant(0.004), rate_per_s=500, lag_ns=600_000)
    assert found["generator lag"].severity == "invalid"
    found = audited(tmp_path / "less", server=constant(0.004), rate_per_s=500, lag_ns=150_000)
    assert found["generator lag"].severity == "warning"


def test_a_late_generator_that_costs_clients_time_makes_a_closed_loop_invalid(
    tmp_path: Path,
) -> None:
    found = audited(tmp_path, server=constant(0.004), lag_ns=300_000)
    assert found["generator lag"].severity == "invalid"


@pytest.mark.parametrize(("share", "severity"), [(0.003, "warning"), (0.05, "invalid")])
def test_errors_are_said_and_many_are_invalid(tmp_path: Path, share: float, severity: str) -> None:
    found = audited(tmp_path, error_share=share)["errors"]
    assert found.severity == severity
    assert "engine error" in found.number


def test_a_server_that_dies_is_found_with_its_instant(tmp_path: Path) -> None:
    found = audited(tmp_path, dies_at_s=3.0)["server died"]
    assert found.severity == "invalid"
    assert found.number == "after 2.0 s of 5 s"


def test_notes_of_the_lab_become_findings_and_a_dead_server_is_invalid(tmp_path: Path) -> None:
    note = {"kind": "server ended", "number": "-", "meaning": "it ended", "remedy": "look"}
    found = audited(tmp_path, extra={"notes": [note]})
    assert found["server ended"].severity == "invalid"


def test_a_warm_up_that_is_too_short_says_how_long_it_should_be(tmp_path: Path) -> None:
    slow_start = warming(lognormal(0.004), 4.0, 2.5)
    found = audited(tmp_path, server=slow_start, seconds=10.0, warmup_s=0.5)
    assert found["warm-up not reached"].severity == "warning"
    assert found["warm-up not reached"].remedy in ("Warm up at least 3 s.", "Warm up at least 4 s.")
    enough = audited(tmp_path / "enough", server=slow_start, seconds=10.0, warmup_s=3.5)
    assert "warm-up not reached" not in enough


def test_a_trial_that_never_settles_is_remarked(tmp_path: Path) -> None:
    found = audited(tmp_path, server=warming(lognormal(0.004), 6.0, 10.0), seconds=10.0)
    assert {"never steady", "warm-up not reached"} & set(found)


def test_pure_noise_is_not_taken_for_a_warm_up() -> None:
    rng = np.random.default_rng(21)
    alarms = 0
    for _ in range(200):
        due = np.sort(rng.integers(0, 10**10, 6000))
        none = np.zeros(due.size, dtype=np.uint8)
        done = due + rng.lognormal(15, 0.5, due.size).astype(np.int64)
        trace = Trace(none.astype(np.uint32), none, due, due, due, done, (10**9, 10**10))
        found = warmup.find(trace, closed=False)
        alarms += found.steadiness.answer == "not steady"
    assert alarms <= 10


def test_mser_cuts_where_the_series_becomes_steady() -> None:
    rng = np.random.default_rng(1)
    level = np.concatenate((np.linspace(3, 1, 20), np.ones(80)))
    cut = warmup.truncation(level + 0.05 * rng.standard_normal(100))
    assert cut is not None
    assert 15 <= cut <= 45, "the ramp ends at 20; the minimum is flat"
    assert warmup.truncation(np.linspace(5, 1, 100)) is None


def test_a_request_that_timed_out_occupied_its_client_until_it_was_given_up() -> None:
    second = 1_000_000_000
    due = np.arange(10) * second // 10
    done = np.where(np.arange(10) == 4, -1, due + second // 10)
    trace = Trace(
        query=np.zeros(10, np.uint32),
        outcome=np.where(done < 0, 5, 0).astype(np.uint8),
        due=due,
        free=due,
        sent=due,
        done=done,
        window=(0, second),
    )
    assert capacity.little(trace, 1, 0.0, 0.1) == pytest.approx(1.0)
    assert capacity.little(trace, 1, 0.0) > 1.1  # as if it had lasted to the end of the window


def test_what_two_roles_of_a_trial_have_is_counted_as_one_trial() -> None:
    def late(trial: str, role: str) -> Finding:
        return Finding("a role's lag", "warning", trial, f"{role}: p99 9 ms", "It was late.", "")

    roles = {"a": ("writer", "reports"), "b": ("writer", "reports"), "c": ()}
    trials = tuple(
        TrialResult(name, "t", i, False, "valid", "", {}, {}, tuple(late(name, r) for r in own))
        for i, (name, own) in enumerate(roles.items())
    )
    times = Curve("", (), ())
    (kept,), (shared,) = hoist([TreatmentResult("t", "t", "s", {}, {}, times, times, trials)])
    assert shared.number == "e.g. writer: p99 9 ms (2 of 3 trials)"
    assert [each.findings for each in kept.trials] == [(), (), ()]
    # In one trial of two it is not what most trials have, however many roles it is of.
    _, few = hoist([TreatmentResult("t", "t", "s", {}, {}, times, times, trials[1:])])
    assert few == []
