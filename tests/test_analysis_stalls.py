"""A server that gives no reply for a while: what a trial, a sweep and a search say of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from queues import Floats, Serve, Server, collecting, fixed, heavy, random
from records import Array, Study, exponential, lognormal, single_queue, warming
from records import Server as Records
from searchbench.analysis.capacity.promise import judge as judge_promise
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import TrialResult
from searchbench.analysis.trial import silence
from searchbench.record import open_record
from searchbench.workload.load_table import parse_promise
from searches import search
from test_analysis_steps import by_clients, judged, line_of, load_run

PROMISE = "p99 < 10ms"


def hanging(from_s: float, until_s: float, server: Records | None = None) -> Records:
    """Answers in 4 ms, but who comes in a certain time waits for its end."""
    usual = server or lognormal(0.004, 0.1)

    def served(due: Array, query: Array, rng: np.random.Generator) -> Array:
        hangs = (due >= from_s) & (due < until_s)
        return usual(due, query, rng) + np.where(hangs, until_s - due, 0.0)

    return served


def trial(path: Path, server: Records, **more: Any) -> TrialResult:
    run = Study(blocks=1, control=None, trial_noise=0.0, block_noise=0.0)
    run.add("a", server=server, **({"seconds": 21.0, "warmup_s": 1.0} | more))
    ((found,),) = (t.trials for t in judge(open_record(run.write(path))).treatments)
    return found


def stalls(found: TrialResult) -> list[str]:
    return [f.number for f in found.findings if f.kind == "stalls" and f.severity == "warning"]


@pytest.mark.parametrize("load", [{}, {"rate_per_s": 500.0}], ids=["closed", "open"])
@pytest.mark.parametrize(
    ("hangs", "number"),
    [
        ((0.0, 7.0), "no reply for 6 s of 20 s, in a stall of 7 s, from the first request on"),
        ((0.5, 7.0), "no reply for 6 s of 20 s, in a stall of 6.5 s"),
        ((1.0, 4.0), "no reply for 3 s of 20 s"),
        ((9.0, 11.0), "no reply for 2 s of 20 s"),
    ],
)
def test_a_window_without_replies_for_a_part_is_remarked_and_not_called_steady(
    tmp_path: Path, hangs: tuple[float, float], number: str, load: dict[str, Any]
) -> None:
    calm = trial(tmp_path / "calm", hanging(0, 0), **load)
    assert stalls(calm) == []
    assert calm.steadiness is not None
    assert load or calm.steadiness.answer == "steady"
    found = trial(tmp_path / "r", hanging(*hangs), **load)
    assert (found.status, stalls(found)) == ("valid", [number])
    assert found.steadiness is not None
    assert found.steadiness.answer != "steady"


@pytest.mark.parametrize(
    ("server", "more"),
    [
        (hanging(0.0, 1.5), {"warmup_s": 3.0, "clients": 8}),
        (warming(lognormal(0.004), 400.0, 2.0), {"warmup_s": 3.0}),
        (exponential(0.05), {"clients": 2}),
        (lognormal(0.004, 1.5), {"clients": 1}),
        (lognormal(0.02, 1.5), {"clients": 4}),
        (hanging(5.0, 8.0), {"clients": 1}),
        (single_queue(0.0025), {"rate_per_s": 360.0}),
        (hanging(5.0, 5.5), {}),
    ],
    ids=["slow first replies in the warm-up", "warming", "two clients", "heavy tail",
         "heavier tail", "one client, one slow query", "a queue", "short"],
)  # fmt: skip
def test_slow_first_replies_in_a_declared_warm_up_and_slow_queries_are_no_stalls(
    tmp_path: Path, server: Records, more: dict[str, Any]
) -> None:
    assert stalls(trial(tmp_path / "r", server, **more)) == []


@pytest.mark.parametrize(
    ("serve", "rate"),
    [
        (fixed(4, 0.002), 1200.0),
        (fixed(4, 0.002), 2600.0),
        (random(4, 0.004), 900.0),
        (heavy(4, 0.004, 1.5), 760.0),
        (heavy(2, 0.15, 1.0), 4.0),
        (collecting(100, 0.5, 0.01), 100.0),
    ],
    ids=["usual", "overload", "random", "heavy tail", "few requests", "in batches"],
)
def test_queues_of_all_kinds_do_not_stall(serve: Serve, rate: float) -> None:
    for seed in range(5):
        trace = Server(serve, np.random.default_rng(seed)).trace(rate, 20, 3)
        assert silence.within(trace, closed=False) == []


def test_a_client_that_was_at_rest_itself_finds_no_stall() -> None:
    server = Server(fixed(4, 0.002), np.random.default_rng(3))
    trace = server.trace(1200, 20, 1)
    rests = trace.due < 5e9
    done = np.where(rests, int(5e9) + 2_000_000, trace.done)
    assert len(silence.within(replace(trace, done=done), closed=False)) == 1
    late = replace(trace, done=done, sent=np.where(rests, int(5e9), trace.sent))
    assert silence.within(late, closed=False) == []


def test_a_step_with_a_stall_says_so_and_claims_nothing(tmp_path: Path) -> None:
    run = by_clients((1, 2, 4), run=load_run(), seconds=21.0)
    run.add("new-8", system="new", server=hanging(0.0, 15.0, lognormal(0.0064, 0.1)), clients=8,
            levels={"system": "new", "load.clients": 8}, seconds=21.0)  # fmt: skip
    found = judged(run, tmp_path / "r")
    step = next(s for s in found.steps if s.clients_asked == 8)
    assert (step.status, step.steadiness == "steady") == ("valid", False)
    assert line_of(found, step)[-1] == "stalls"
    said = found.verdict.decision
    assert (
        "At 8 clients new answered with stalls (no reply for 14 s of 20 s, in a stall of 15 s, "
        in said
    )
    assert "no more throughput" not in said
    assert "Beyond that it answers less" not in said
    calm = by_clients((1, 2, 4, 8), run=load_run(), seconds=21.0)
    said = judged(calm, tmp_path / "calm").verdict.decision
    assert "stalls" not in said
    assert "More than 4 clients bring no more throughput" in said


def asleep(serve: Serve, until_s: float, trials: tuple[int, ...] | None = None) -> Serve:
    """The same, but that it does not begin to work before ``until_s``; in these trials, from 0."""
    driven = -1

    def served(due: Floats, rng: np.random.Generator) -> tuple[Floats, np.ndarray]:
        nonlocal driven
        driven += 1
        sleeps = trials is None or driven in trials
        return serve(np.maximum(due, until_s) if sleeps else due, rng)

    return served


@pytest.mark.parametrize(
    ("until_s", "warmup_s", "found"),
    [(4.0, 1.0, [4.0]), (2.0, 3.0, [2.0]), (0.1, 1.0, []), (0.5, 4.5, []), (0.0, 1.0, [])],
)
def test_a_search_sees_a_stall_before_the_first_reply_of_a_trial(
    until_s: float, warmup_s: float, found: list[float]
) -> None:
    server = Server(asleep(fixed(4, 0.002), until_s), np.random.default_rng(3))
    kept = judge_promise(parse_promise(PROMISE), server.trace(1200, 20, warmup_s))
    assert kept.stalls_s == pytest.approx(found, abs=0.02)
    assert kept.stalled is bool(found)


# Full trials of it: a trial that ends while the server sleeps has no reply that could show a stall.
@pytest.mark.parametrize("which", [3, 6])
def test_a_search_does_not_take_a_server_that_slept_for_one_that_is_overloaded(which: int) -> None:
    found = search(asleep(fixed(4, 0.002), 6.0, (which,)), PROMISE, 1200)
    assert [i for i, d in enumerate(found.driven) if d.judged.stalled] == [which]
    assert (found.bracket.fails or 0) > 1700
    assert "The server stalls: no reply for up to 6 s at " in found.bracket.sentence
