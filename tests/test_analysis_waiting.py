"""Queries that two sides do not answer alike share a server with the rest: what they make of it."""

from __future__ import annotations

import heapq
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import records
from records import Array, Server, Study, constant, good_answer
from searchbench.analysis.compare import waiting
from searchbench.analysis.compare.otherwise import SHARED, behind, by_the_queue, late, of_work
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement, RecordComparison
from searchbench.analysis.trial.measured import NEVER, Measured, Trace, measured_of
from searchbench.record import Record, open_record
from searchbench.record.trial import Load

DEAR = (0, 10, 20, 30)  # of 40 queries


def other(query: int) -> dict[str, Any]:
    answer = good_answer(query)
    return answer | {"total": answer["total"] // 2} if query in DEAR else answer


def verdicts(found: Judgement | RecordComparison) -> dict[str, str]:
    return {c.metric: c.verdict for c in found.comparisons}


# Closed loops of one worker: studies, sweeps and two records alike


@pytest.fixture
def one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """All clients wait for one worker. ``parameters``: its pace, and what ``DEAR`` cost more."""

    def shared(t: Any, log: Any, factor: float, rng: np.random.Generator) -> Any:
        heap, free, rows = [(0.0, c, 0) for c in range(int(t.load["clients"]))], 0.0, []
        while heap and heap[0][0] < t.seconds:
            at, client, k = heapq.heappop(heap)
            query = int(log[(k + 7 * client) % len(log)])
            work = t.parameters["s"] * math.exp(0.2 * rng.standard_normal()) * factor
            free = max(free, at) + work * (t.parameters["dear"] if query in DEAR else 1.0)
            rows.append((at, free - at, query, client))
            heapq.heappush(heap, (free, client, k + 1))
        due, service, query, client = np.array(rows).T
        order = np.argsort(due + service, kind="stable")
        return (due[order], service[order], query[order].astype(np.uint32),
                client[order].astype(np.int64))  # fmt: skip

    monkeypatch.setattr(records, "_closed", shared)


def written(
    path: Path, *subjects: tuple[str, float, float, Any], measure: str = "trials", seed: int = 3
) -> Record:
    """``subjects``: name, seconds of a query, how many times as long ``DEAR`` take, answers."""
    study = Study(blocks=3, seed=seed, control=None, trial_noise=0.003, block_noise=0.005,
                  judging={"measure": measure})  # fmt: skip
    for name, pace_s, dear, answer in subjects:
        study.add(name, system=name, subject=name, server=constant(pace_s), clients=8,
                  levels={"system": name, "load.clients": 8}, answer=answer, seconds=11.0,
                  parameters={"s": pace_s, "dear": dear})  # fmt: skip
    return open_record(study.write(path))


HONEST = ("a", 0.004, 10.0, good_answer)
GIVES_UP = ("b", 0.004, 0.05, other)
FASTER = ("b", 0.002, 10.0, other)  # at everything, whatever it answers


@pytest.mark.parametrize("measure", ["trials", "sweep"])
def test_who_gives_up_what_others_wait_for_is_not_the_best(
    tmp_path: Path, one_worker: None, measure: str
) -> None:
    found = judge(written(tmp_path / "r", HONEST, GIVES_UP, measure=measure))
    (c,) = (c for c in found.comparisons if c.metric == "throughput")
    assert c.ratio is not None
    assert c.ratio.value > 1.8
    assert set(verdicts(found).values()) == {"not resolved"}
    assert (found.verdict.best, found.verdict.resolved) == (None, False)
    assert SHARED in found.verdict.decision


@pytest.mark.parametrize("measure", ["trials", "sweep"])
def test_who_is_faster_at_what_it_answers_otherwise_too_is_the_best(
    tmp_path: Path, one_worker: None, measure: str
) -> None:
    dear = ("a", 0.004, 2.0, good_answer), ("b", 0.002, 2.0, other)
    found = judge(written(tmp_path / "r", *dear, measure=measure))
    assert found.verdict.best == "b"
    assert SHARED not in found.verdict.decision


@pytest.mark.parametrize("measure", ["trials", "sweep"])
@pytest.mark.parametrize("cheaper", [True, False])
def test_the_same_of_two_records(
    tmp_path: Path, one_worker: None, measure: str, cheaper: bool
) -> None:
    pace = (0.004, 0.05) if cheaper else (0.002, 2.0)
    sides = ("x", 0.004, 10.0 if cheaper else 2.0, good_answer), ("x", *pace, other)
    runs = [
        [written(tmp_path / f"{i}-{k}", side, measure=measure, seed=10 * i + k) for k in range(3)]
        for i, side in enumerate(sides)
    ]
    (a, *same), (b, *more) = runs
    found = compare_records(a, b, same=same, same_b=more)
    told = verdicts(found)["throughput"]
    assert told == ("not resolved" if cheaper else "faster")
    assert (SHARED in found.decision) is cheaper
    assert list(found.not_known) == (["x 8"] if cheaper else [])
    assert found.regressed is (None if cheaper else False)


@pytest.mark.parametrize("measure", ["trials", "sweep"])
def test_a_loss_that_is_made_up_for_by_other_answers_is_no_pass(
    tmp_path: Path, one_worker: None, measure: str
) -> None:
    """The second gives up what others wait for, and takes nearly twice as long for all the rest."""
    dear = 56 / 72  # of the seven before one of the rest, as the clients ask in turns
    pace = 0.004 * (8 - dear + 10 * dear) / (8 - dear + 0.05 * dear)
    assert pace > 0.008
    sides = ("x", 0.004, 10.0, good_answer), ("x", pace, 0.05, other)
    runs = [[written(tmp_path / f"{i}-{k}", side, measure=measure, seed=10 * i + k)
             for k in range(3)] for i, side in enumerate(sides)]  # fmt: skip
    found = compare_records(runs[0][0], runs[1][0], same=runs[0][1:], same_b=runs[1][1:])
    (rate,) = (c for c in found.comparisons if c.metric == "throughput")
    assert rate.ratio is not None
    assert rate.ratio.value == pytest.approx(1, abs=0.1)
    assert rate.answers_floor > 1.5
    assert "waiting behind them" in found.not_known["x 8"]
    assert found.regressed is not False


@pytest.mark.parametrize("measure", ["trials", "sweep"])
@pytest.mark.parametrize("times", [1.0, 2.0])
def test_equal_servers_pass_though_some_answers_are_others_at_equal_cost(
    tmp_path: Path, one_worker: None, measure: str, times: float
) -> None:
    sides = ("x", 0.004, times, good_answer), ("x", 0.004, times, other)
    runs = [[written(tmp_path / f"{i}-{k}", side, measure=measure, seed=10 * i + k)
             for k in range(3)] for i, side in enumerate(sides)]  # fmt: skip
    found = compare_records(runs[0][0], runs[1][0], same=runs[0][1:], same_b=runs[1][1:])
    assert found.not_known == {}
    assert found.regressed is False


def spared(path: Path, *subjects: tuple[str, bool], measure: str = "sweep") -> Record:
    """One worker, equal systems. ``subjects``: name, and whether it cannot be asked ``DEAR``."""
    study = Study(blocks=3, seed=3, control=None, trial_noise=0.003, block_noise=0.005,
                  judging={"measure": measure})  # fmt: skip
    for name, barred in subjects:
        why = tuple((query, "fuzzy") for query in DEAR) if barred else ()
        study.add(name, system=name, subject=name, server=constant(0.004), clients=8,
                  levels={"system": name, "load.clients": 8}, seconds=11.0, unsupported=why,
                  parameters={"s": 0.004, "dear": 10.0})  # fmt: skip
    return open_record(study.write(path))


@pytest.mark.parametrize("measure", ["trials", "sweep"])
def test_who_cannot_be_asked_what_others_wait_for_is_not_the_best(
    tmp_path: Path, one_worker: None, measure: str
) -> None:
    found = judge(spared(tmp_path / "r", ("a", False), ("b", True), measure=measure))
    (c,) = (c for c in found.comparisons if c.metric == "throughput")
    assert c.ratio is not None
    assert c.ratio.value > 1.5
    assert set(verdicts(found).values()) == {"not resolved"}
    assert found.verdict.best is None
    assert c.queries_left_out == len(DEAR)


def test_a_sweep_that_cannot_ask_what_the_first_did_lost_answers(
    tmp_path: Path, one_worker: None
) -> None:
    a, b = (spared(tmp_path / str(barred), ("x", barred)) for barred in (False, True))
    found = compare_records(a, b)
    assert "4 of 40 queries that the first answers are not supported" in found.lost["x"]
    assert verdicts(found)["throughput"] == "not resolved"
    assert found.beyond_threshold


# A lone client


def soiled(dear_s: float, slow: float, pace_s: float = 0.002) -> Server:
    """The five after one of ``DEAR`` take ``slow`` times as long."""

    def server(due: Array, query: Array, rng: np.random.Generator) -> Array:
        dear = np.isin(query, DEAR)
        last = np.maximum.accumulate(np.where(dear, np.arange(query.size), -99))
        base = pace_s * np.exp(0.1 * rng.standard_normal(query.size))
        base *= np.where(np.arange(query.size) - last <= 5, slow, 1.0)
        return np.where(dear, dear_s, base)

    return server


@pytest.mark.parametrize(
    ("b", "best"), [(soiled(0.0002, 1.0), None), (soiled(0.005, 1.5, 0.001), "b")]
)
def test_a_lone_client_finds_the_caches_as_others_left_them(
    tmp_path: Path, b: Server, best: str | None
) -> None:
    study = Study(blocks=4, seed=3, trial_noise=0.003, block_noise=0.01)
    study.add("a", system="a", server=soiled(0.010, 1.5), clients=1, seconds=11.0)
    study.add("b", system="b", server=b, clients=1, answer=other, seconds=11.0)
    found = judge(open_record(study.write(tmp_path / "r")))
    (c,) = (c for c in found.comparisons if c.metric == "throughput")
    assert c.ratio is not None
    assert c.ratio.value > 1.2
    assert found.verdict.best == best
    assert ("caches that they emptied" in c.reason) is (best is None)


# At a rate


def queue(rho: float, cost: float, of: int, workers: int, seed: int, pace_s: float = 0.002,
          given_up: bool = False) -> Measured:  # fmt: skip
    """First come, first served; query 0 of so many costs ``cost`` times as much, or nothing."""
    rng, each = np.random.default_rng([seed, given_up]), 0.002 * (1 + (cost - 1) / of) / workers
    n = int(60 * rho / each)
    due = np.cumsum(rng.exponential(each / rho, n))
    query = (np.arange(n) * 7 % of).astype(np.uint32)
    work = pace_s * np.exp(0.3 * rng.standard_normal(n) - 0.045)
    work[query == 0] *= 0.02 if given_up else cost
    free, done = [0.0] * workers, np.empty(n)
    for i, (t, w) in enumerate(zip(due.tolist(), work.tolist(), strict=True)):
        done[i] = max(free[0], t) + w
        heapq.heapreplace(free, float(done[i]))
    took = np.rint((done - due) * 1e9).astype(np.int64)
    part = np.zeros(n, np.uint8)
    return Measured(query, took, took, part, 60.0, due_ns=np.rint(due * 1e9).astype(np.int64))


def made(honest: Measured, cheat: Measured, metric: str) -> float:
    x, y = (m.response_ns[m.query != 0] for m in (honest, cheat))
    if metric == "response_mean":
        return float(x.mean() / y.mean())
    q = float(f"0.{metric[-2:]}")
    return float(np.quantile(x, q) / np.quantile(y, q))


ONE = np.array([0])
RATE = Load(kind="open", rate_per_s=1.0)


@pytest.mark.parametrize("rho", [0.5, 0.7, 0.9])
@pytest.mark.parametrize(
    ("cost", "of", "workers"), [(18, 200, 1), (3.4, 40, 1), (80, 1000, 1), (60, 200, 2)]
)
def test_what_others_could_make_at_a_rate_covers_what_they_make(
    rho: float, cost: float, of: int, workers: int
) -> None:
    honest, cheat = (queue(rho, cost, of, workers, 1, given_up=up) for up in (False, True))
    for metric in ("response_p50", "response_p90", "response_p99", "response_mean"):
        assert by_the_queue(cheat, honest, RATE, ONE, metric) > made(honest, cheat, metric) > 1


def failing(m: Measured) -> Measured:
    """The same, of which all that ask query 0 fail in the end."""
    assert m.due_ns is not None
    due = m.due_ns
    bad, good = (
        Measured(m.query[at], m.service_ns[at], m.response_ns[at], m.part[at], 60.0, due_ns=due[at])
        for at in (m.query == 0, m.query != 0)
    )
    return replace(good, failed=bad)


def test_what_fails_in_the_end_is_waited_for_as_well() -> None:
    honest, cheat = (queue(0.7, 18, 200, 1, 1, given_up=up) for up in (False, True))
    for metric in ("response_p50", "response_p99", "response_mean"):
        bound = by_the_queue(cheat, honest, RATE, ONE, metric)
        assert by_the_queue(cheat, failing(honest), RATE, ONE, metric) == pytest.approx(bound)
    assert of_work(failing(honest), ONE) == pytest.approx(of_work(honest, ONE))
    assert late(failing(honest), ONE, 1e12) == pytest.approx(1 / 200, rel=0.1)


def test_times_of_what_failed_last_until_it_was_given_up() -> None:
    ms = 1_000_000
    column = lambda *x: np.array(x, np.int64) * ms  # noqa: E731
    trace = Trace(
        query=np.array([1, 2, 2, 2, 2], np.uint32), outcome=np.array([0, 3, 3, 3, 0], np.uint8),
        due=column(0, 10, 20, 30, 40), free=column(0, 10, 20, 30, 40),
        sent=np.array([0, 10 * ms, 20 * ms, NEVER, 40 * ms]),
        done=np.array([5 * ms, 14 * ms, NEVER, NEVER, 45 * ms]), window=(0, 100 * ms),
    )  # fmt: skip
    found = measured_of(trace, 0.05)
    assert found.response_ns.tolist() == [5 * ms, 5 * ms]
    assert found.failed is not None
    assert found.failed.response_ns.tolist() == [4 * ms, 50 * ms, 0]
    worst = measured_of(trace).failed
    assert worst is not None
    assert worst.response_ns.tolist() == [4 * ms, 80 * ms, 0]


@pytest.mark.parametrize("workers", [1, 2])
def test_one_query_that_costs_no_more_makes_less_than_half_the_time_does(workers: int) -> None:
    slow, fast = (queue(0.5, 1.0, 200, workers, 1, pace) for pace in (0.002, 0.001))
    for metric in ("response_p50", "response_p99"):
        assert by_the_queue(fast, slow, RATE, ONE, metric) < made(slow, fast, metric)


def test_in_a_queue_that_grows_one_query_in_200_may_be_any_share_of_the_work() -> None:
    assert behind(queue(1.3, 18, 200, 1, 1), ONE) > 1 / (1 - 18 / 217)


def at_a_rate(path: Path, measure: str, b: tuple[float, bool]) -> Judgement:
    """a at 70 % of what it sustains; b: its pace, and whether it gives up query 0."""

    def server(pace_s: float, cost: float) -> Server:
        def serve(due: Array, query: Array, rng: np.random.Generator) -> Array:
            work = pace_s * np.exp(0.3 * rng.standard_normal(due.size) - 0.045)
            done = np.cumsum(work := np.where(query == 0, cost, 1.0) * work)
            return np.maximum.accumulate(due - (done - work)) + done - due

        return serve

    def nothing(query: int) -> dict[str, Any]:
        return good_answer(query) | ({"total": 0, "ids": [], "scores": []} if not query else {})

    cost = 18.0 if b[1] else 1.0
    rate = round(0.7 / (0.0005 * (1 + (cost - 1) / 200)), 1)
    study = Study(blocks=3, queries=200, seed=3, trial_noise=0.003, block_noise=0.005,
                  judging={"measure": measure}, control=None)  # fmt: skip
    for name, pace_s, times, answer in (("a", 0.0005, cost, good_answer),
                                        ("b", b[0], 0.02 if b[1] else cost, nothing)):  # fmt: skip
        study.add(name, system=name, subject=name, server=server(pace_s, times), rate_per_s=rate,
                  levels={"system": name, "load.rate_per_s": rate}, answer=answer,
                  seconds=21.0)  # fmt: skip
    return judge(open_record(study.write(path)))


@pytest.mark.parametrize("measure", ["trials", "sweep"])
@pytest.mark.parametrize("given_up", [True, False])
def test_at_a_rate_who_gives_up_one_dear_query_is_not_better_at_the_rest(
    tmp_path: Path, measure: str, given_up: bool
) -> None:
    found = at_a_rate(tmp_path / "r", measure, (0.0005 if given_up else 0.00025, given_up))
    (c,) = (c for c in found.comparisons if c.metric == "response_p99")
    assert c.ratio is not None
    assert c.ratio.value > 2
    assert c.verdict == ("not resolved" if given_up else "faster")
    assert (SHARED in c.reason) is given_up
    assert found.verdict.best == (None if given_up else "b")


# How little times could be


def test_a_mean_delay_lowers_a_quantile_by_the_times_just_below_it() -> None:
    times = np.arange(1.0, 101.0)
    assert waiting.least(times, "mean", 2.0) == pytest.approx(48.5)
    assert waiting.least(times, "p90", 0.0) == 90
    # 81 to 90 lowered to 80.5 take 50 in all, of a mean of 0.5 of a hundred.
    assert waiting.least(times, "p90", 0.5) == pytest.approx(80.5)
    assert waiting.least(times, "p90", 50.0) == 0
    assert waiting.least(times[:0], "p90", 0.0) == 0
