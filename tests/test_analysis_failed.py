"""What requests that fail after a long time may make of a comparison of closed loops."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import records
from records import Array, Server, Study, Treatment, good_answer, lognormal
from searchbench.analysis.compare import kept
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Judgement
from searchbench.record import Record, open_record

TIMEOUT_S = 0.1
SWEEP = {"measure": "sweep"}


class TimesOut(Study):
    """What takes as long as the timeout is a timeout, with the instant at which it ended."""

    def _samples(self, t: Treatment, factor: float, rng: np.random.Generator) -> pa.Table:
        made = super()._samples(t, factor, rng)
        took = made["done"].to_numpy() - made["due"].to_numpy()
        outcome = made["outcome"].to_numpy().copy()
        gone = took > 0.9e9 * TIMEOUT_S
        outcome[gone] = records.OUTCOMES.index("timed_out")
        done = pa.array(made["done"].to_numpy(), mask=gone & (t.load["kind"] == "open"))
        for name, column in (("outcome", pa.array(outcome)), ("done", done)):
            at = made.schema.get_field_index(name)
            made = made.set_column(at, made.schema.field(at), column)
        return made


def hanging(median_s: float, share: float) -> Server:
    """Of its requests a share is never answered."""

    def server(due: Array, query: Array, rng: np.random.Generator) -> Array:
        took = median_s * np.exp(0.02 * rng.standard_normal(due.size))
        return np.where(rng.random(due.size) < share, TIMEOUT_S, took)

    return server


def made(
    path: Path,
    of: dict[str, Server],
    blocks: int = 1,
    *,
    rate_per_s: float | None = None,
    **judging: Any,
) -> Record:
    study = TimesOut(blocks=blocks, control=None, trial_noise=0.002, block_noise=0.0,
                     judging=judging)  # fmt: skip
    for name, server in of.items():
        one = study.add(name, system=name, server=server, clients=8, seconds=11,
                        rate_per_s=rate_per_s, levels={"system": name})  # fmt: skip
        one.load["timeout_s"] = TIMEOUT_S
    return open_record(study.write(path))


def judged(path: Path, of: dict[str, Server], blocks: int = 1, **more: Any) -> Judgement:
    return judge(made(path, of, blocks, **more))


@pytest.mark.parametrize(("blocks", "judging"), [(1, SWEEP), (4, SWEEP), (4, {})])
def test_a_system_that_answers_fewer_because_requests_time_out_does_not_lead_by_the_rest(
    tmp_path: Path, blocks: int, judging: dict[str, Any]
) -> None:
    of = {"a": hanging(0.00415, 0), "b": hanging(0.0039, 0.0034)}
    found = judged(tmp_path / "r", of, blocks, **judging)
    a, b = (t.trials[0].figures["throughput"].value for t in found.treatments)
    assert b < 0.99 * a, "it was counted fewer"
    (c,) = (c for c in found.comparisons if c.metric == "throughput")
    assert c.ratio is not None
    if judging:
        assert c.ratio.value > 1.05, "what it answered, it answered sooner"
        assert c.verdict == "not resolved"
        assert "failed to answer could make the whole difference" in c.reason
    else:
        assert c.ratio.value < 1, "in a study the ratio is of what was counted"
        assert kept.COUNTED in c.reason
    assert found.verdict.best in (None, "a")


def test_a_gain_is_no_greater_than_what_was_counted(tmp_path: Path) -> None:
    """The second answers in 1/1.12 of the time, but lets 0.15 % of its requests time out: all in
    all it answers 1.08 times as many, and was said to answer 1.12 (1.11 to 1.13) times as many.
    """
    of = {"a": hanging(0.00415, 0), "b": hanging(0.00415 / 1.12, 0.0015)}
    found = judged(tmp_path / "r", of, 5)
    (c,) = (c for c in found.comparisons if c.metric == "throughput")
    assert c.ratio is not None
    assert c.ratio.interval is not None
    a, b = ([x.figures["throughput"].value for x in t.trials] for t in found.treatments)
    counted = float(np.exp(np.mean(np.log(np.array(b) / np.array(a)))))
    assert 1.06 < counted < 1.1
    assert c.ratio.interval.low <= counted <= c.ratio.interval.high
    assert (c.verdict, found.verdict.best) == ("faster", "b")


@pytest.mark.parametrize(
    "of",
    [
        {"a": hanging(0.00415, 0), "b": hanging(0.0039, 0)},
        {"a": hanging(0.00415, 0), "b": hanging(0.002, 0.0015)},
        {"a": lognormal(0.001, 0.1), "b": lognormal(0.0009, 0.1)},
    ],
    ids=["nothing fails", "twice as fast all the same", "fast"],
)
def test_a_system_that_answers_more_in_all_is_still_the_best(
    tmp_path: Path, of: dict[str, Server]
) -> None:
    assert judged(tmp_path / "r", of, 3, **SWEEP).verdict.best == "b"


def test_two_records_are_held_to_the_same(tmp_path: Path) -> None:
    a = made(tmp_path / "a", {"it": hanging(0.00415, 0)}, 4)
    b = made(tmp_path / "b", {"it": hanging(0.0039, 0.0034)}, 4)
    (line,) = (c for c in compare_records(a, b).comparisons if c.metric == "throughput")
    assert line.ratio is not None
    assert line.ratio.value > 1.05
    assert line.failed_floor > line.ratio.value
    assert "what the second failed to answer could make the whole difference" in line.reason


@pytest.mark.parametrize("measure", ["trials", "sweep"])
@pytest.mark.parametrize("share", [0.0, 0.0034, 0.03])
def test_at_a_rate_the_slower_of_two_systems_is_not_better_by_its_timeouts(
    tmp_path: Path, measure: str, share: float
) -> None:
    of = {"a": hanging(0.00415, 0), "b": hanging(0.0039, share)}
    metric = {"metric": "response_mean"} if measure == "trials" else {}
    found = judged(tmp_path / "r", of, 4, rate_per_s=2000, measure=measure, **metric)
    better = {c.metric: c.verdict for c in found.comparisons}
    if not share:
        assert found.verdict.best == "b"
        assert set(better.values()) == {"faster"}
        return
    assert found.verdict.best != "b"
    mean = 0.0039 * (1 - share) + TIMEOUT_S * share
    assert mean > 0.00415
    assert better.get("response_mean") != "faster"
    assert better.get("response_p99") != "faster"


@pytest.mark.parametrize("gives_up", [True, False])
def test_what_is_answered_otherwise_under_load_makes_no_p99(tmp_path: Path, gives_up: bool) -> None:
    """12 of 1,000 queries are dear; under load b gives up on nine of them, 0.9 % of its replies.

    The other b answers them all, and works four times as fast.
    """
    queries, sampled = 1000, 400
    dear = np.arange(5, queries, 84)[:12]
    given = set(dear[:9].tolist())

    def cost(up: bool) -> Server:
        def server(due: Array, query: Array, rng: np.random.Generator) -> Array:
            base = np.where(np.isin(query, dear), 0.040, 0.002)
            if up and gives_up:
                base = np.where(np.isin(query, list(given)), 0.0005, base)
            if up and not gives_up:
                base /= 4
            return base * np.exp(0.05 * rng.standard_normal(due.size))

        return server

    asked = count()

    def other(query: int) -> dict[str, Any]:
        under_load = next(asked) % (queries + sampled) >= queries
        if gives_up and under_load and query in given:
            return {"total": 0, "ids": [], "scores": []}
        return good_answer(query)

    made = Study(
        blocks=4, queries=queries, under_load=sampled, block_noise=0.003, trial_noise=0.003
    )
    for name, up in (("a", False), ("b", True)):
        made.add(name, system=name, server=cost(up), rate_per_s=400, seconds=21.0, warmup_s=5.0,
                 answer=other if up else good_answer)  # fmt: skip
    found = judge(open_record(made.write(tmp_path)))
    (p99,) = [c for c in found.comparisons if c.metric == "response_p99"]
    assert p99.ratio is not None
    assert p99.ratio.value > 3
    if gives_up:
        assert p99.verdict == "not resolved"
        assert "what b answered otherwise under load than alone" in p99.reason
        assert found.verdict.best is None
    else:
        assert p99.verdict == "faster"


class FailsInSome(Study):
    """The operations of the first treatment fail throughout every second block."""

    def _write_trial(self, *args: Any) -> None:
        planned, t = args[1], args[3]
        first = t is self.treatments[0]
        t.error_share = 1.0 if first and planned.block % 2 else 0.0
        super()._write_trial(*args)


@pytest.mark.parametrize("metric", ["service_p50", "throughput"])
def test_a_method_that_fails_in_whole_trials_is_not_the_best_by_the_others(
    tmp_path: Path, metric: str
) -> None:
    study = FailsInSome(blocks=6, control=None, judging={"metric": metric})
    for method, median_s in (("in", 0.002), ("temporary", 0.004)):
        about = {"name": "fetch", "method": method, "rows": 10}
        study.add(method, levels={"method": method}, server=lognormal(median_s), seconds=3,
                  clients=1, extra={"operation": about})  # fmt: skip
    found = judge(study.write(tmp_path / "r"))
    assert [len(t.trials) for t in found.treatments] == [6, 6]
    assert sum(not x.figures for x in found.treatments[0].trials) == 3
    (c,) = (c for c in found.comparisons if c.metric == metric)
    assert c.ratio is not None
    assert (c.verdict, found.verdict.best) == ("not resolved", None)
    assert "what in failed to answer could make the whole difference" in c.reason


class HangsInSomeBlocks(Study):
    """In its second and fourth block b hangs from just before the window on."""

    hang_s = 0.0

    def _write_trial(
        self, writer: Any, planned: Any, position: int, t: Treatment, *rest: Any
    ) -> None:
        if t.id == "b" and planned.block in (1, 3):
            t = replace(t, server=hanging_from(t.server, 0.95, 0.95 + self.hang_s))
        super()._write_trial(writer, planned, position, t, *rest)


def hanging_from(server: Server, begin_s: float, end_s: float) -> Server:
    """What is due in that time is answered at its end."""

    def hangs(due: Array, query: Array, rng: np.random.Generator) -> Array:
        took = server(due, query, rng)
        within = (due >= begin_s) & (due < end_s)
        return np.where(within, np.maximum(took, end_s - due), took)

    return hangs


@pytest.mark.parametrize(
    ("times", "hang_s", "others"),
    [(1.6, 4.0, 0), (1.3, 1.4, 0), (1.6, 3.0, 2), (1.2, 0.4, 2)],
    ids=[
        "half of the window",
        "a fifth",
        "beside quiet ones",
        "too short for a block to contradict",
    ],
)
def test_a_block_in_which_a_system_hung_is_in_its_ratio(
    tmp_path: Path, times: float, hang_s: float, others: int
) -> None:
    """Its latencies do not have the time that it hung. Without these blocks it was 1.6 (1.6 to 1.6)
    times as fast, and over all blocks it was counted to answer 1.2 times as much.
    """
    study = HangsInSomeBlocks(blocks=5, seed=3, trial_noise=0.003, block_noise=0.003, control="a")
    study.hang_s = hang_s
    study.add("a", system="a", server=lognormal(0.004 * times, 0.1), seconds=9.0)
    study.add("b", system="b", server=lognormal(0.004, 0.1), seconds=9.0)
    for k in range(others):
        study.add(f"c{k}", system=f"c{k}", server=lognormal(0.009 + 0.001 * k, 0.1), seconds=9.0)
    found = judge(open_record(study.write(tmp_path / "r")))
    (c,) = (c for c in found.comparisons if c.metric == "throughput" and (c.a, c.b) == ("a", "b"))
    a, b = (
        {x.block: x.figures["throughput"].value for x in t.trials if x.counts}
        for t in found.treatments[:2]
    )
    counted = float(np.exp(np.mean([np.log(b[k] / a[k]) for k in a])))
    assert c.ratio is not None
    assert c.ratio.interval is not None
    assert (c.ratio.n, c.blocks_unknown) == (5, 0)
    assert c.ratio.value == pytest.approx(counted, rel=0.01)
    assert c.ratio.interval.low <= counted <= c.ratio.interval.high
    assert kept.COUNTED in c.reason


def test_a_block_without_a_ratio_keeps_the_others_from_deciding(tmp_path: Path) -> None:
    """A p99 takes 299 requests; in two of five blocks b came to fewer, as it hung."""
    study = HangsInSomeBlocks(blocks=5, seed=3, trial_noise=0.003, block_noise=0.003, control="a")
    study.hang_s = 7.9
    study.add("a", system="a", server=lognormal(0.0064, 0.1), clients=1, seconds=9.0)
    study.add("b", system="b", server=lognormal(0.004, 0.1), clients=1, seconds=9.0)
    found = judge(open_record(study.write(tmp_path / "r")))
    (c,) = (c for c in found.comparisons if c.metric == "service_p99")
    assert c.blocks_unknown == 2
    assert c.verdict == "not resolved"
    assert "2 of 5 blocks are not in the ratio" in c.reason
    assert any("2 blocks have no ratio" in said for said in c.would_change)
