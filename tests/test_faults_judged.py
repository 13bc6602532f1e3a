"""What is said of a fault, on traces and writes whose truth is known."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from searchbench.analysis.roles import faults
from searchbench.analysis.roles.model import Durable, FaultResult
from searchbench.analysis.trial import recovery, recovery_said
from searchbench.analysis.trial.measured import NEVER, Trace
from searchbench.record import REPLIES
from searchbench.record.roles import FaultDone, RoleRun
from searchbench.record.trial import Load, Trial, Window

S, RATE = 10**9, 300
OUTCOMES = ["ok", "refused", "reset", "timed_out", "unfinished"]
BEGUN_S, AGAIN_S, END_S = 11, 13, 31
Floats = NDArray[np.float64]


def trial(kind: str = "kill", again_s: float = AGAIN_S, timeout_s: float = 2.0) -> Trial:
    fault = FaultDone(fault=kind, of="server", begun=BEGUN_S * S, again=round(again_s * S))
    return Trial(
        trial="t", treatment="t01", outcomes=OUTCOMES, load=Load(kind="open", timeout_s=timeout_s),
        window=Window(S, END_S * S),
        beside=[RoleRun(name="x", number=1, does="fault", fault=fault)],
    )  # fmt: skip


def crashed(again_s: float = AGAIN_S) -> tuple[Floats, Floats, NDArray[np.uint8]]:
    """When requests are due, how long they take, and how they end: 4 ms, and refused while down."""
    due = np.arange(0, END_S, 1 / RATE)
    down = (due >= BEGUN_S) & (due < again_s)
    took = np.where(down, np.inf, 0.004)
    return due, took, np.where(down, OUTCOMES.index("refused"), 0).astype(np.uint8)


def trace(due: Floats, took: Floats, outcome: NDArray[np.uint8]) -> Trace:
    at = np.round(due * S).astype(np.int64)
    took_ns = np.round(np.where(np.isfinite(took), took, 0) * S).astype(np.int64)
    done = np.where(np.isfinite(took), at + took_ns, NEVER)
    return Trace(np.zeros(due.size, np.uint32), outcome, at, at, at, done, (S, END_S * S))


def fails(
    took: Floats, outcome: NDArray[np.uint8], where: NDArray[np.bool_], how: str
) -> tuple[Floats, NDArray[np.uint8]]:
    code = np.uint8(OUTCOMES.index(how))
    return np.where(where, np.inf, took), np.where(where, code, outcome)


@pytest.mark.parametrize("how", ["timed_out", "reset", "slow"])
def test_one_request_long_before_a_fault_does_not_end_the_window(how: str) -> None:
    due, took, outcome = crashed()
    one = due == due[4 * RATE]
    if how == "slow":  # and is under way when the fault comes
        took = np.where(one, 7.5, took)
    else:
        took, outcome = fails(took, outcome, one, how)
    before = faults.undisturbed(trial(), trace(due, took, outcome))
    assert before.window == (S, pytest.approx(BEGUN_S * S, abs=S / 100))
    assert (np.count_nonzero(before.done == NEVER) == 1) == (how != "slow")


@pytest.mark.parametrize("how", ["timed_out", "reset"])
def test_failures_before_a_fault_are_no_fault_s(how: str) -> None:
    due, took, outcome = crashed()
    usual = (due < BEGUN_S) | (due >= AGAIN_S)
    some = usual & (due >= 5) & (np.random.default_rng(1).random(due.size) < 0.3)
    took, outcome = fails(took, outcome, some, how)
    whole = trace(due, took, outcome)
    before = faults.undisturbed(trial(), whole)
    assert before.window[1] > 8 * S, "those that time out are under way for two seconds"
    assert np.count_nonzero(before.outcome) > 0.2 * RATE * 3
    seen = faults._seen(trial(), whole)
    assert isinstance(seen.normal, str), "answers failed before it too"
    assert "there is no normal to come back to" in seen.normal


def test_what_waits_for_a_timeout_when_the_fault_comes_was_not_normal_before_it() -> None:
    """From 5 s on three in ten time out after 30 s, so these are all under way when it comes."""
    due, took, outcome = crashed()
    some = (due >= 5) & (np.random.default_rng(1).random(due.size) < 0.3)
    took, outcome = fails(took, outcome, some & ((due < BEGUN_S) | (due >= AGAIN_S)), "timed_out")
    one = trial(timeout_s=30.0)
    whole = trace(due, took, outcome)
    before = faults.until_it(one, whole)
    assert before.window[1] == pytest.approx(5 * S, abs=S / 10)
    record: Any = None
    found = next(iter(faults.findings(record, one, before)))
    assert (found.kind, found.number) == ("under way", "4.03 of 10 s")
    seen = faults._seen(one, whole)
    assert isinstance(seen.normal, str)
    assert "before it answers varied too much" in seen.normal


def test_in_a_closed_loop_a_request_without_reply_ended_before_its_client_went_on() -> None:
    """Of two clients that think for 0.5 s, one is refused at once, and one asks no more."""
    at = np.array([0, 1, 2, 0.2, 1.2], np.float64)
    made = trace(at, np.array([0.5, np.inf, 0.5, 0.5, np.inf]), np.array([0, 1, 0, 0, 1], np.uint8))
    made = replace(made, client=np.array([0, 0, 0, 1, 1], np.uint16))
    one = trial()
    one = msgspec.structs.replace(one, load=Load(kind="closed", clients=2, think_s=0.5))
    ended = faults._without_reply(one, made, 11 * S)
    assert ended[1] == 1.5 * S
    assert ended[4] == np.iinfo(np.int64).max


def test_of_many_that_are_under_way_the_first_ends_the_window() -> None:
    due, took, outcome = crashed()
    report = np.arange(due.size) % 20 == 0
    took = np.where(report & np.isfinite(took), 1.5, took)
    before = faults.undisturbed(trial(), trace(due, took, outcome))
    assert before.window[1] == pytest.approx((BEGUN_S - 1.5) * S, abs=S / 2)
    assert (before.done < BEGUN_S * S).all()


def said(one: Trial, *traces: Trace) -> str:
    """What is said of a trial for each trace; the first tells what is normal."""
    each = [faults._seen(one, whole) for whole in traces]
    seen = each[0]
    known = isinstance(seen.normal, recovery.Normal)
    figures = {
        key: found
        for key in dict.fromkeys(key for s in each for key in s.figures)
        if (values := [s.figures[key] for s in each if key in s.figures])
        and (found := recovery_said.over_trials(values, "s")) is not None
    }
    assert one.fault is not None
    return " ".join(
        faults.sentences(
            FaultResult(
                role="x", fault=one.fault.fault, of="server", treatment="t", label="a", levels={},
                resolution_s=0.05,
                trials=len(each), back=seen.back, started=sum(s.back for s in each),
                figures=figures,
                looked_s=seen.looked_s, why="" if known else str(seen.normal),
                not_within=int(math.isinf(seen.figures.get("normal_s", 0))),
            )
        )
    )  # fmt: skip


def test_what_hangs_after_a_freeze_is_not_answered_well() -> None:
    due, took, outcome = crashed()
    frozen = (due >= BEGUN_S) & (due < AGAIN_S)
    took = np.where(frozen, AGAIN_S - due + 0.01, took)
    outcome = np.where(frozen, 0, outcome).astype(np.uint8)
    well = said(trial("freeze"), trace(due, took, outcome))
    assert "All requests were answered well, but no answer came for 2 s." in well
    took, outcome = fails(took, outcome, due >= 14.2, "unfinished")
    hung = said(trial("freeze"), trace(due, took, outcome))
    assert "All requests were answered well" not in hung
    assert (
        "Of the requests from the signal on, 84 % were not answered before the drive ended." in hung
    )


def test_where_too_little_time_is_left_to_see_it_normal_is_not_known() -> None:
    whole = trace(*crashed(again_s=30.5))
    late = said(trial(again_s=30.5), whole)
    assert "How long until answers were normal is not known: only 0.5 s were left after it" in late
    told = said(trial(), trace(*crashed()))
    assert "Answers were normal at once after it had been started again (within 50 ms)." in told


def test_what_one_trial_of_several_failed_is_said_with_its_range() -> None:
    """In two of three trials the server failed for a tenth of the requests, in one for all."""
    due, took, outcome = crashed()
    down = (due >= BEGUN_S) & (due < AGAIN_S)
    some = down & (np.arange(due.size) % 10 == 0)
    usual = np.full(due.size, 0.004)
    few = trace(due, *fails(usual, np.zeros(due.size, np.uint8), some, "refused"))
    told = said(trial(), few, few, trace(due, took, outcome))
    assert "10 % (median; trials: 10 % to 100 %) failed" in told


NOTHING = Durable(
    acknowledged=0, lost=0, unapplied=0, unknown=0, asked=40, missing=0, counted=1
)  # fmt: skip


def test_only_what_was_counted_is_said_not_to_be_gone() -> None:
    all_counted = faults.durability(replace(NOTHING, acknowledged=1450))
    assert all_counted.startswith("Of 1,450 documents that were acknowledged in the drive, none")
    some = faults.durability(replace(NOTHING, acknowledged=1450, uncounted=2900))
    assert some == (
        "Of 1,450 documents that were acknowledged in the drive and counted at its end, none is "
        "gone by the count; of 2,900 acknowledged documents that were not counted, it is not known "
        "how many are gone; 0 of 40 written documents asked for are missing."
    )
    none = faults.durability(replace(NOTHING, uncounted=2900))
    assert none == (
        "Of 2,900 acknowledged documents that were not counted, it is not known how many are gone; "
        "0 of 40 written documents asked for are missing."
    )


def test_what_is_missing_of_those_asked_for_is_gone_whatever_the_count_says() -> None:
    found = replace(NOTHING, acknowledged=1450, missing=24, lost=24, unseen=1)
    assert faults.durability(found) == (
        "Of 1,450 documents that were acknowledged in the drive, at least 24 are gone; 24 of 40 "
        "written documents asked for are missing."
    )


def test_documents_too_many_are_no_deletes_where_nothing_was_deleted() -> None:
    assert faults.durability(replace(NOTHING, acknowledged=1450, twice=30)) == (
        "Of 1,450 documents that were acknowledged in the drive, none is gone by the count, and "
        "there are 30 too many, as if written twice; 0 of 40 written documents asked for "
        "are missing."
    )


def replies(*rows: tuple[str, int, float]) -> Any:
    """A record whose trials have these replies: phase, total, and when they were asked for."""
    table = pa.Table.from_pylist(
        [
            {
                "query": 0, "phase": phase, "total": total, "total_exact": True, "ids": [],
                "scores": [], "facets": "{}", "groups": "[]", "error": None, "outcome": 0,
                "asked": round(at_s * S), "answered": round(at_s * S),
            }
            for phase, total, at_s in rows
        ],
        schema=REPLIES,
    )  # fmt: skip
    return SimpleNamespace(replies=lambda _: table)


@pytest.mark.parametrize("phase", ["while_written", "under_load"])
def test_a_server_that_finds_far_too_little_after_a_fault_is_not_normal(phase: str) -> None:
    alone = ("captured", 40, 0.0), ("after", 60, 40.0)
    written = trial()
    written.beside.append(RoleRun(name="writer", number=2, does="write"))
    usual = [(phase, 45, at_s) for at_s in np.arange(2.0, 11, 0.1)]
    well = [(phase, 50, at_s) for at_s in np.arange(13.05, 31, 0.1)]
    few = [(phase, 1 if at_s < 25 else 50, at_s) for _, _, at_s in well]
    seen = faults._seen(trial(), trace(*crashed()))
    assert isinstance(seen.normal, recovery.Normal)
    assert faults._checked(replies(*alone, *usual, *well), written, seen) == seen
    found = faults._checked(replies(*alone, *usual, *few), written, seen)
    assert isinstance(found.normal, str)
    assert found.normal.startswith("120 of 180 sampled answers after it found less than half")
    assert "normal_s" not in found.figures
    now_and_then = [(phase, 0 if n % 25 == 0 else 45, 2 + n / 10) for n in range(290)]
    assert faults._checked(replies(*alone, *now_and_then), written, seen) == seen, "as before"
    nothing = ("captured", 0, 0.0), ("after", 0, 40.0)
    assert faults._checked(replies(*nothing, *usual, *few), written, seen) == seen


@pytest.mark.parametrize("operation", [False, True])
def test_answers_that_are_others_afterwards_are_not_normal(operation: bool) -> None:
    """A crash may empty a table, whose count is then found in no time."""
    crash, whole = trial(), trace(*crashed())
    if operation:
        crash.operation = SimpleNamespace(untimed=0)  # type: ignore[assignment]
    seen = faults._seen(crash, whole)
    assert isinstance(seen.normal, recovery.Normal)
    same = replies(("captured", 40, 0.0), ("after", 40, 40.0))
    emptied = replies(("captured", 40, 0.0), ("after", 0, 40.0))
    assert faults._checked(same, crash, seen) == seen
    assert faults.other_answers(same, crash) == (0, 1)
    found = faults._checked(emptied, crash, seen)
    assert found.normal == faults._OTHERS
    assert "normal_s" not in found.figures
    assert faults.other_answers(emptied, crash) == (1, 1)
    never = replace(seen, figures={"normal_s": math.inf})
    assert faults._checked(emptied, crash, never) == never, "it was not normal, that is known"
    crash.beside.append(RoleRun(name="writer", number=2, does="write"))
    assert faults.other_answers(emptied, crash) == (0, 0), "somebody wrote"


@pytest.mark.parametrize("late_s", [0.0, 0.3])
def test_a_load_generator_that_is_late_after_the_fault_is_said_to_be(late_s: float) -> None:
    """It opens its connections anew for 0.5 s, and sends what is due meanwhile so much later."""
    due, took, outcome = crashed()
    whole = trace(due, took, outcome)
    handshakes = (due >= AGAIN_S) & (due < AGAIN_S + 0.5)
    later = np.where(handshakes, np.int64(late_s * S), 0)
    whole = replace(whole, sent=whole.sent + later, done=whole.done + later)
    text = said(trial(), whole)
    assert ("load generator itself sent requests late" in text) == bool(late_s)
