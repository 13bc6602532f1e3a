"""Throughput over a mix is held against what was counted: a hang that no latency has is a loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from records import Array, Server, Study
from searchbench.analysis.compare.kept import in_trial
from searchbench.analysis.compare.mix import adds_up
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.compare.uncounted import REMEDY
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import RecordComparison, RecordLine
from searchbench.analysis.trial.measured import Measured
from searchbench.cli.compare import compare
from searchbench.record import Record, open_record
from searchbench.record.trial import Load


def hang(until_s: float, slow_s: float = 0.004, pace_s: float = 0.004) -> Server:
    """No reply from 0.4 s of a drive on; the window begins at 1 s. ``slow_s``: of query 0."""

    def server(due: Array, query: Array, rng: np.random.Generator) -> Array:
        took = np.where(query == 0, slow_s, pace_s * np.exp(0.1 * rng.standard_normal(due.size)))
        return np.where((due >= 0.4) & (due < until_s), until_s - due + took, took)

    return server


def write(
    path: Path, seed: int, server: Server, measure: str = "trials", queries: int = 40
) -> Record:
    """One system at 8 clients, in a window of 1 to 8 s."""
    study = Study(blocks=3, seed=seed, control=None, queries=queries, trial_noise=0.003,
                  block_noise=0.003, judging={"measure": measure})  # fmt: skip
    levels = {"load.clients": 8} if measure == "sweep" else {"system": "x"}
    study.add("x", system="x", server=server, clients=8, levels=levels, seconds=8.0)
    return open_record(study.write(path))


def runs(
    folder: Path, name: str, seed: int, server: Callable[[int], Server], n: int = 3, **how: Any
) -> list[Record]:
    return [write(folder / f"{name}{i}", seed + i, server(i), **how)
            for i in range(n)]  # fmt: skip


def gate(first: Sequence[Record], later: Sequence[Record]) -> tuple[int, RecordComparison]:
    a, b = ([record.path for record in side] for side in (first, later))
    status = compare(a[0], b[0], same=tuple(a[1:]), same_b=tuple(b[1:]), as_json=True)
    return status, compare_records(first[0], later[0], 0.05, first[1:], later[1:])


def rate(found: RecordComparison) -> RecordLine:
    return next(line for line in found.comparisons if line.metric == "throughput")


@pytest.mark.parametrize("measure", ["trials", "sweep"])
def test_a_hang_of_less_than_a_tenth_of_the_window_is_a_loss(tmp_path: Path, measure: str) -> None:
    """8.6 % of each window without a reply, which is in no latency: 8 % fewer are answered."""
    first = runs(tmp_path, "a", 1, lambda _: hang(0), measure=measure)
    later = runs(tmp_path, "b", 11, lambda _: hang(1.6), measure=measure)
    status, found = gate(first, later)
    line = rate(found)
    assert line.ratio is not None
    assert line.value_a is not None
    assert line.value_b is not None
    assert line.ratio.value == pytest.approx(line.value_b.value / line.value_a.value, rel=0.02)
    assert line.ratio.value == pytest.approx(1 - 0.6 / 7, rel=0.02)
    # A stall leaves open whether trials were steady, so a loss is mostly not told, but no pass.
    assert (status, found.regressed) in [(1, True), (3, None)]
    assert line.verdict == {1: "slower", 3: "not resolved"}[status]
    assert "No resolved loss" not in found.decision
    assert "clients waited for replies that no latency contains" in found.decision
    assert REMEDY in found.decision
    # Two runs alone do not pass either; and who hung before is not worse for it now.
    assert gate(first[:1], later[:1])[0] != 0
    assert gate(later, first)[0] == 0
    # Equal ones pass as before, by the mix.
    equal = runs(tmp_path, "c", 21, lambda _: hang(0), measure=measure)
    status, found = gate(first, equal)
    assert (status, found.regressed, found.not_known) == (0, False, {})
    assert "more throughput than was counted" not in rate(found).reason


def test_the_order_of_runs_decides_nothing(tmp_path: Path) -> None:
    """One run of the first hangs too, as all of the second do."""
    first = runs(tmp_path, "a", 1, lambda i: hang(1.6 if i == 0 else 0), n=6)
    later = runs(tmp_path, "b", 11, lambda _: hang(1.6))
    found = [rate(gate(order, later)[1]).ratio for order in (first, first[::-1])]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].value == pytest.approx(found[1].value, rel=0.005)
    assert found[0].value < 0.95


@pytest.mark.parametrize("measure", ["trials", "sweep"])
def test_a_slow_query_on_both_sides_hides_no_hang(tmp_path: Path, measure: str) -> None:
    """A query that takes 3 s may account for much of a window of 7 s, and a hang is as long."""
    how: dict[str, Any] = {"measure": measure, "queries": 1500}
    first = runs(tmp_path, "a", 1, lambda _: hang(0, 3.0), **how)
    status, found = gate(first, runs(tmp_path, "b", 11, lambda _: hang(4.0, 3.0), **how))
    assert status in (1, 3)
    assert "No resolved loss" not in found.decision
    ratio = rate(found).ratio
    assert ratio is not None
    assert ratio.value < 0.85
    equal = runs(tmp_path, "c", 21, lambda _: hang(0, 3.0), **how)
    status, found = gate(first, equal)
    assert (status, found.regressed) == (0, False)
    faster = runs(tmp_path, "d", 31, lambda _: hang(0, 3.0, 0.0025), **how)
    status, found = gate(first, faster)
    assert (status, rate(found).verdict) == (0, "faster")


@pytest.mark.parametrize("measure", ["trials", "sweep"])
def test_who_hangs_is_not_the_best_by_latencies_alone(tmp_path: Path, measure: str) -> None:
    """It answers sooner, and less, beside a query that takes as long as the hang."""

    def best(name: str, b: Server) -> str | None:
        study = Study(blocks=3, control=None, queries=400, trial_noise=0.002, block_noise=0.002,
                      judging={"measure": measure})  # fmt: skip
        for system, server in (("a", hang(0, 1.0)), ("b", b)):
            study.add(system, system=system, server=server, clients=8, seconds=8.0,
                      levels={"system": system, "load.clients": 8})  # fmt: skip
        return judge(open_record(study.write(tmp_path / name))).verdict.best

    assert best("hangs", hang(2.2, 1.0, 0.0037)) is None
    assert best("good", hang(0, 1.0, 0.003)) == "b"


def test_the_edges_of_a_window_are_no_hang() -> None:
    """Cycles of very different lengths: what is left of them at both edges is chance, as it says.

    All clients ask at once, which is the worst.
    """
    rng, load = np.random.default_rng(3), Load(kind="closed", clients=4)
    found, window_s = [], 7.0
    for _ in range(300):
        cycles = rng.choice([0.004, 1.0], 4000, p=[0.99, 0.01]) * rng.uniform(0.5, 1.5, 4000)
        begins = np.cumsum(cycles) - rng.uniform(5, 10)
        inside = (begins - cycles >= 0) & (begins - cycles < window_s)
        ns = np.tile((cycles[inside] * 1e9).astype(np.int64), 4)
        query = np.zeros(ns.size, np.uint32)
        one = in_trial(Measured(query, ns, ns, np.zeros(ns.size, np.uint8), window_s), load)
        assert one is not None
        found.append((one.log, one.error))
    logs, errors = np.array(found).T
    assert abs(float(logs.mean())) < 0.03
    assert float(np.median(errors)) == pytest.approx(float(logs.std()), rel=0.5)
    assert np.mean(np.abs(logs) > 2 * errors) < 0.1
    short = np.full(8_000, 4_000_000, np.int64)
    lacking = Measured(short.astype(np.uint32), short, short, np.zeros(short.size, np.uint8), 8.75)
    assert adds_up(lacking, load)
    one = in_trial(lacking, load)
    assert one is not None
    assert one.log == pytest.approx(math.log(32 / 35))
    assert one.log < -10 * one.error
