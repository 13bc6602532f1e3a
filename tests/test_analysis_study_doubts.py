"""What makes a study of trials say less: answers that change, a queue that others share, few
requests that agree, levels that were not compared, windows that still move.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import records
from records import Array, Server, Study, good_answer, lognormal
from searchbench.analysis.compare.otherwise import by_the_queue
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Comparison, Judgement
from searchbench.analysis.trial.measured import Measured
from searchbench.record.trial import Load


def of(found: Judgement, metric: str = "throughput") -> Comparison:
    """The only comparison by a metric."""
    (one,) = [c for c in found.comparisons if c.metric == metric]
    return one


class Flaky(Study):
    """``b`` finds half of the documents, in half of the time, for some queries in some blocks."""

    bad: Mapping[int, range] = {}

    def _write_trial(self, writer: Any, planned: Any, position: Any, t: Any, *rest: Any) -> Any:
        if t.id == "b" and planned.block in self.bad:
            queries = self.bad[planned.block]

            def half(query: int) -> dict[str, Any]:
                answer = good_answer(query)
                return answer | {"total": answer["total"] // 2} if query in queries else answer

            t = replace(t, answer=half, server=lognormal(0.002))
        return super()._write_trial(writer, planned, position, t, *rest)


def flaky(path: Path, bad: Mapping[int, range]) -> Judgement:
    study = Flaky(blocks=5, seed=3, trial_noise=0.003, control="a")
    study.bad = bad
    study.add("a", system="a", server=lognormal(0.004))
    study.add("b", system="b", server=lognormal(0.0041))
    return judge(study.write(path))


def test_answers_of_the_middle_blocks_count_too(tmp_path: Path) -> None:
    found = flaky(tmp_path / "r", {1: range(40), 2: range(40), 3: range(40)})
    assert of(found).verdict == "not comparable"
    assert found.verdict.best is None
    numbers = [f.number for f in found.findings if f.kind == "answers changed"]
    assert numbers == ["40 of 40 queries of b in 3 of 5 trials"]
    assert found.agreement[0].agreeing == 0


def test_a_query_agrees_only_if_it_does_in_every_block(tmp_path: Path) -> None:
    found = flaky(tmp_path / "r", {1: range(3), 3: range(2, 6)})
    c = of(found)
    assert (c.queries_used, c.queries_left_out) == (34, 6)
    assert found.agreement[0].causes == {"other answers in other trials": 6}


def test_answers_that_stay_the_same_are_compared_as_before(tmp_path: Path) -> None:
    found = flaky(tmp_path / "r", {})
    assert (of(found).queries_used, of(found).queries_left_out) == (40, 0)
    assert not [f for f in found.findings if f.kind == "answers changed"]


class Dying(Study):
    """The servers of the treatments ``who`` end in the ``bad`` blocks, counted from 0."""

    bad: tuple[int, ...] = ()
    who: tuple[str, ...] = ("b",)

    def _write_trial(self, writer: Any, planned: Any, position: Any, t: Any, *rest: Any) -> Any:
        if t.id in self.who and planned.block in self.bad:
            t = replace(t, dies_at_s=3.0)
        return super()._write_trial(writer, planned, position, t, *rest)


@pytest.mark.parametrize(("bad", "best"), [((1, 2, 3, 4), None), ((1,), "b")])
@pytest.mark.parametrize("more", [(), ("c",)])
def test_who_dies_in_most_of_its_trials_is_not_the_best(
    tmp_path: Path, bad: tuple[int, ...], best: str | None, more: tuple[str, ...]
) -> None:
    study = Dying(blocks=6, seed=3, trial_noise=0.003, control="a")
    study.bad = bad
    for name, median_s in (("a", 0.0072), ("b", 0.004), *((name, 0.012) for name in more)):
        study.add(name, system=name, server=lognormal(median_s, 0.1))
    found = judge(study.write(tmp_path / "r"))
    (c,) = (c for c in found.comparisons if (c.a, c.b, c.metric) == ("a", "b", "throughput"))
    assert c.verdict == "faster"
    assert found.verdict.best == best
    assert ("failed by itself in 4 of its 6 trials" in found.verdict.decision) is (best is None)


@pytest.mark.parametrize(("dying", "best"), [("", "a"), ("a8", None), ("a8 b8", "a"), ("b8", "a")])
def test_who_dies_at_a_load_of_a_sweep_where_another_lives_is_not_the_best(
    tmp_path: Path, dying: str, best: str | None
) -> None:
    study = Dying(blocks=6, seed=3, trial_noise=0.003, control=None, judging={"measure": "sweep"})
    study.bad, study.who = (1, 2, 4), tuple(dying.split())
    for name, median_s in (("a", 0.004), ("b", 0.012)):
        for clients in (1, 8):
            levels = {"system": name, "load.clients": clients}
            server, key = lognormal(median_s, 0.1), f"{name}{clients}"
            study.add(key, system=name, server=server, clients=clients, levels=levels)
    assert judge(study.write(tmp_path / "r")).verdict.best == best


DEAR = (0, 10, 20, 30)


def fifo(factor: float) -> Server:
    """One worker, first come first served; what is ``DEAR`` takes ``factor`` times as long."""

    def server(due: Array, query: Array, rng: np.random.Generator) -> Array:
        work = 0.004 * np.exp(0.2 * rng.standard_normal(due.size))
        work[np.isin(query, DEAR)] *= factor
        done, free = np.empty(due.size), 0.0
        for i, (t, w) in enumerate(zip(due.tolist(), work.tolist(), strict=True)):
            free = max(free, t) + w
            done[i] = free
        return done - due

    return server


def gives_up(query: int) -> dict[str, Any]:
    answer = good_answer(query)
    return answer | {"total": answer["total"] // 2} if query in DEAR else answer


def test_requests_that_agree_wait_behind_those_that_do_not(tmp_path: Path) -> None:
    study = Study(blocks=4, trial_noise=0.003)
    for name, factor, answer in (("honest", 10.0, good_answer), ("cheat", 0.25, gives_up)):
        study.add(name, system=name, server=fifo(factor), rate_per_s=100, seconds=20.0,
                  warmup_s=5.0, answer=answer)  # fmt: skip
    found = judge(study.write(tmp_path / "r"))
    c = of(found, "response_p99")
    assert c.ratio is not None
    assert c.ratio.value > 3
    assert c.verdict == "not resolved"
    assert "waiting behind them, or caches that they emptied, could make the whole" in c.reason
    assert found.verdict.best is None


def clients(n: int, factor: float, extra: float, seed: int = 1, *, turns: bool = True) -> Measured:
    """A closed loop of ``n`` clients on one worker; ``DEAR`` takes ``extra`` times as long.

    ``turns``: each client follows the same log, else each asks by lot.
    """
    rng, heap, free = np.random.default_rng(seed), [(0.0, c, 0) for c in range(n)], 0.0
    rows = []
    while heap and heap[0][0] < 20.0:
        at, client, k = heapq.heappop(heap)
        query = (k + 7 * client) % 40 if turns else int(rng.integers(40))
        work = 0.004 * factor * math.exp(0.2 * rng.standard_normal())
        free = max(free, at) + work * (extra if query in DEAR else 1.0)
        rows.append((query, 1e9 * (free - at), 1e9 * at))
        heapq.heappush(heap, (free, client, k + 1))
    query, took, due = np.array(rows).T.astype(np.int64)
    part = np.zeros(took.size, np.uint8)
    return Measured(query.astype(np.uint32), took, took, part, 20.0, due_ns=due)


@pytest.mark.parametrize("n", [4, 16])
@pytest.mark.parametrize("turns", [True, False])
def test_what_a_queue_could_make_covers_what_it_makes(n: int, turns: bool) -> None:
    honest, cheat = (clients(n, 1.0, extra, turns=turns) for extra in (10.0, 0.25))
    took = [m.response_ns[~np.isin(m.query, DEAR)] for m in (honest, cheat)]
    other, load = np.array(DEAR), Load(kind="closed", clients=n)
    made = float(took[0].mean() / took[1].mean())
    assert by_the_queue(cheat, honest, load, other, "throughput") > made > 1.5
    for q, metric in ((0.5, "service_p50"), (0.99, "service_p99")):
        made = float(np.quantile(took[0], q) / np.quantile(took[1], q))
        assert by_the_queue(cheat, honest, load, other, metric) > made


@pytest.mark.parametrize("n", [4, 32])
def test_others_that_take_no_longer_make_little_of_a_ratio(n: int) -> None:
    slow, fast = (clients(n, factor, 1.0, turns=False) for factor in (2.0, 1.0))
    load = Load(kind="closed", clients=n)
    for metric in ("throughput", "service_p50", "service_p99"):
        assert by_the_queue(fast, slow, load, np.array(DEAR), metric) < 1.5


def test_a_query_that_is_most_of_the_requests_keeps_its_leader_from_being_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = records._closed

    def other(query: int) -> dict[str, Any]:
        answer = good_answer(query)
        return answer | {"total": answer["total"] + 1} if query == 0 else answer

    def found(of_head: int) -> Judgement:
        more = np.zeros(of_head, np.uint32)
        monkeypatch.setattr(
            records, "_closed", lambda t, log, *rest: closed(t, np.append(log, more), *rest)
        )
        study = Study(blocks=4)
        study.add("y", system="y", server=lognormal(0.012, 0.1), clients=1)
        study.add("x", system="x", server=lognormal(0.004, 0.1), answer=other, clients=1)
        return judge(study.write(tmp_path / str(of_head)))

    seldom, often = found(0), found(60)
    assert of(seldom).verdict == of(often).verdict == "faster"
    assert seldom.verdict.best == "x"
    assert often.verdict.best is None
    assert of(often).requests_alike == pytest.approx(39 / 100, abs=0.02)
    assert "fewer than 90 % of the requests the same as y" in often.verdict.decision


def test_a_drift_that_steady_windows_leave_is_no_difference(tmp_path: Path) -> None:
    """Equally fast once warm; one of them is still 3 to 1 % from that in its windows."""
    base = lognormal(0.004, 0.3)

    def warming(due: Array, query: Array, rng: np.random.Generator) -> Array:
        return base(due, query, rng) * (1 + 0.06 * np.exp(-due / 15.0))

    study = Study(blocks=5, seed=2, trial_noise=0.002, block_noise=0.01)
    study.add("a", system="a", server=base, clients=4, seconds=30.0, warmup_s=10.0)
    study.add("b", system="b", server=warming, clients=4, seconds=30.0, warmup_s=10.0)
    c = of(judge(study.write(tmp_path / "r")))
    assert c.state == "steady"
    assert c.ratio is not None
    assert c.ratio.interval is not None
    assert c.ratio.interval.high < 1, "no chance"
    assert c.verdict == "not resolved"
    assert "one may have drifted against the other within their windows" in c.reason


@pytest.mark.parametrize("seed", [1, 2])
def test_five_per_cent_between_steady_systems_stay_resolved(tmp_path: Path, seed: int) -> None:
    study = Study(blocks=5, seed=seed, trial_noise=0.01)
    for name, median in (("a", 0.004), ("b", 0.0042)):
        study.add(name, system=name, server=lognormal(median, 0.3), clients=4, seconds=12.0,
                  warmup_s=2.0)  # fmt: skip
    c = of(judge(study.write(tmp_path / "r")))
    assert (c.state, c.verdict) == ("steady", "slower")
    assert 1 < c.state_floor < 1.03
