"""Sweeps over one mix of requests: who is slower at every request never looks faster.

Within a record, and from one record to another.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import records
from records import Array, Study
from searchbench.analysis.compare import standing
from searchbench.analysis.compare.mix import Mix
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Comparison, Judgement, Step
from searchbench.analysis.stats import within
from searchbench.analysis.sweep.mixed import Mixed
from searchbench.analysis.sweep.points import Point
from searchbench.analysis.trial.measured import Measured
from searchbench.record import Record, open_record
from searchbench.record.trial import Load

UNREAD: dict[str, Any] = {"total": None, "ids": [], "scores": []}
CHEAP = np.arange(100)


def cheap_and_dear(cheap_s: float, dear_s: float) -> records.Server:
    """The first hundred queries are cheap, the others dear."""
    return lambda due, query, rng: (
        np.where(query < 100, cheap_s, dear_s) * np.exp(0.05 * rng.standard_normal(due.size))
    )


FAST, SLOW = cheap_and_dear(0.0005, 0.010), cheap_and_dear(0.006, 0.011)


def swept(
    monkeypatch: pytest.MonkeyPatch, path: Path, log: Array | None, blocks: int, **more: Any
) -> Judgement:
    """Two systems, one slower at every query, with one client; ``log``: what is asked in turn."""
    own = records._closed
    if log is not None:
        asked = log.astype(np.uint32)
        monkeypatch.setattr(
            records, "_closed", lambda t, _, factor, rng: own(t, asked, factor, rng)
        )
    run = Study(blocks=blocks, control=None, judging={"measure": "sweep"}, queries=200,
                trial_noise=0.003, block_noise=0.003)  # fmt: skip
    for name, server in (("fast", FAST), ("slow", SLOW)):
        run.add(name, system=name, server=server, clients=1, levels={"system": name}, **more)
    return judge(open_record(run.write(path)))


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("blocks", [1, 3])
def test_where_no_request_was_measured_on_both_sides_nothing_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int, read: bool
) -> None:
    log = np.concatenate([np.resize(CHEAP, 2100), np.resize(100 + CHEAP, 3000)])
    more = {} if read else {"answer": lambda q: UNREAD}
    found = swept(monkeypatch, tmp_path / "r", log, blocks, warmup_s=2.0, **more)
    rates = {s.system: s.answered.value for s in found.steps if s.answered}
    assert rates["slow"] > 1.4 * rates["fast"], "over all requests the slower one looks faster"
    assert {(c.verdict, c.ratio) for c in found.comparisons} == {("not comparable", None)}
    assert found.verdict.best is None
    assert "fast and slow are not comparable: no request" in found.verdict.decision
    assert "because in the same time they came to different ones" in found.verdict.decision
    assert "as many queries per second" not in found.verdict.decision


@pytest.mark.parametrize("read", [True, False])
def test_where_some_requests_were_measured_on_both_sides_these_alone_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: bool
) -> None:
    mixed = np.ravel(np.column_stack([np.resize(100 + CHEAP, 2000), np.resize(CHEAP, 2000)]))
    log = np.concatenate([np.resize(CHEAP, 2700), mixed])
    more = {} if read else {"answer": lambda q: UNREAD}
    found = swept(monkeypatch, tmp_path / "r", log, 3, seconds=16.0, warmup_s=5.0, **more)
    (c,) = (c for c in found.comparisons if c.metric == "throughput")
    assert c.ratio is not None
    assert c.ratio.value == pytest.approx(0.5 / 6, rel=0.03)
    assert (c.verdict, c.queries_measured) == ("slower", 100)
    said = "as many queries per second as slow, over only 100 queries"
    unread = "; the replies were not read, so whether both answer the same is not known"
    assert f"{said}{'' if read else unread}." in found.verdict.decision
    assert found.verdict.best is None


def test_a_list_that_both_asked_in_full_is_compared_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = swept(monkeypatch, tmp_path / "r", None, 3, seconds=16.0)
    (c,) = (c for c in found.comparisons if c.metric == "throughput")
    assert c.ratio is not None
    assert (c.verdict, c.queries_measured, c.queries_used) == ("slower", 200, 200)
    assert 1 / c.ratio.value == pytest.approx(17 / 10.5, rel=0.02)
    assert found.verdict.best == "fast"
    assert "over only" not in found.verdict.decision


@pytest.mark.parametrize("log", ["cheap first", "once"])
def test_ratios_over_one_mix_hold_the_truth_and_equal_ones_are_rarely_told_apart(log: str) -> None:
    rng = np.random.default_rng(5)
    truth = np.where(np.arange(3000) % 300 < 150, 0.002, 0.010)
    asked = np.concatenate([np.resize(np.arange(150), 900), np.resize(np.arange(300), 3000)])
    if log == "once":
        asked = rng.permutation(3000)
    load, window = Load(kind="closed", clients=1), (0, 5_000_000_000)

    def measured(factor: float) -> Measured:
        times = factor * truth[asked] * np.exp(0.3 * rng.standard_normal(asked.size))
        due = np.concatenate(([0.0], np.cumsum(times)[:-1]))
        kept = due < 5
        ns = np.rint(times[kept] * 1e9).astype(np.int64)
        part = within.slices(np.rint(due[kept] * 1e9).astype(np.int64), window).astype(np.uint8)
        return Measured(asked[kept].astype(np.uint32), ns, ns, part, 5.0)

    for factor in (1.0, 1.5):
        held: dict[str, list[bool]] = {}
        for _ in range(150):
            a, b = measured(1.0), measured(factor)
            mix = Mix(a, b, None)
            for metric in ("throughput", "response_p50", "response_p99"):
                x, y = (mix.estimate(m, load, metric) for m in (a, b))
                assert x is not None
                assert y is not None
                ratio, _ = within.ratio(x, y)
                assert ratio.interval is not None
                true = 1 / factor if metric == "throughput" else factor
                held.setdefault(metric, []).append(
                    ratio.interval.low <= true <= ratio.interval.high
                )
        assert all(np.mean(each) > 0.88 for each in held.values()), held


class Kept:
    """Measured samples of steps that are on no record."""

    def __init__(self, windows: dict[str, Measured]) -> None:
        self._windows = windows

    def measured(self, trial: str) -> Measured:
        return self._windows[trial]


def driven(
    rng: np.random.Generator, cheap_s: float, dear_s: float, blocks: int
) -> tuple[Point, Any]:
    """A step of one client, a window of 5 s after 2 s in each block: first cheap requests alone."""
    asked = np.concatenate([np.resize(CHEAP, 1500), np.arange(20_000) % 200])
    steps, windows = [], {}
    for block in range(blocks):
        times = np.where(asked < 100, cheap_s, dear_s)
        times = times * np.exp(0.3 * rng.standard_normal(asked.size))
        due = np.concatenate(([0.0], np.cumsum(times)[:-1]))
        kept = (due >= 2) & (due < 7)
        ns = np.rint(times[kept] * 1e9).astype(np.int64)
        at = np.rint(due[kept] * 1e9).astype(np.int64)
        part = within.slices(at, (2_000_000_000, 7_000_000_000)).astype(np.uint8)
        windows[str(block)] = Measured(asked[kept].astype(np.uint32), ns, ns, part, 5.0)
        steps.append(
            Step(
                system="s",
                subject="s",
                trial=str(block),
                treatment="s",
                block=block,
                label="1",
                kind="closed",
                levels={},
                status="valid",
                clients_asked=1,
            )
        )
    return Point("s", 1.0, "closed", tuple(steps)), Kept(windows)


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("new", [(0.0005, 0.010), (0.004, 0.011)], ids=["equal", "slower"])
def test_of_two_records_equal_ones_are_rarely_told_apart_and_a_slower_one_never_looks_faster(
    blocks: int, new: tuple[float, float]
) -> None:
    rng, equal, load = np.random.default_rng(8), new[0] < 0.001, Load(kind="closed", clients=1)
    told, over_all = [], []
    for _ in range(60):
        (a, of_a), (b, of_b) = (driven(rng, *of, blocks) for of in ((0.0005, 0.010), new))
        ratio, _ = Mixed(a, b, (load, load), (of_a, of_b), None).better("answered")
        assert ratio is not None
        told.append(within.resolved(ratio) * np.sign(ratio.value - 1))
        over_all.append(of_b.measured("0").query.size / of_a.measured("0").query.size)
    if equal:
        assert np.count_nonzero(told) <= 6
    else:
        assert min(over_all) > 1.1, "over all requests it looks faster"
        assert told.count(-1) == 60


def swept_twice(path: Path, slower: float, *, blocks: int, **more: Any) -> tuple[Record, Record]:
    """Two records of one system with one client, in the second slower by a factor."""
    found = []
    for name, factor in (("a", 1.0), ("b", slower)):
        run = Study(
            blocks=blocks,
            control=None,
            judging={"measure": "sweep"},
            trial_noise=0.003,
            block_noise=0.003,
            seed=len(found) + 1,
            queries=more.get("queries", 200),
        )
        server = records.by_query(0.005 * factor, {}, 0.05)
        run.add("s", system="s", server=server, clients=1, levels={"load.clients": 1},
                seconds=more.get("seconds", 11.0), warmup_s=more.get("warmup_s", 1.0))  # fmt: skip
        found.append(open_record(run.write(path / name)))
    return found[0], found[1]


def test_a_block_without_a_common_request_counts_for_nothing_and_the_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, lists = records._closed, iter([CHEAP, CHEAP, CHEAP, 100 + CHEAP])
    monkeypatch.setattr(
        records, "_closed", lambda t, _, f, rng: own(t, next(lists).astype(np.uint32), f, rng)
    )
    found = compare_records(*swept_twice(tmp_path, 1.5, blocks=2))
    line = found.comparisons[0]
    assert (line.metric, line.queries_used, line.queries_measured) == ("throughput", 100, 100)
    assert line.ratio is not None
    assert line.ratio.value == pytest.approx(1 / 1.5, rel=0.03)
    assert "in 1 of 2 blocks, which count for nothing, no request was measured on" in line.reason


def test_two_sweeps_that_share_few_requests_say_over_how_few_they_are(tmp_path: Path) -> None:
    a, b = swept_twice(tmp_path, 20, blocks=3, queries=2000, seconds=6.0, warmup_s=0.05)
    found = compare_records(a, b)
    line = found.comparisons[0]
    few = line.queries_measured
    assert few is not None
    assert 0 < few < 80
    assert f"in one block only {few} of {line.queries_used} queries were measured" in line.reason
    assert f", over only {few} queries" in found.decision
    assert f"only {few} were measured on both sides in one block of" in found.decision


def compared(**more: Any) -> Comparison:
    made: dict[str, Any] = {"queries_used": 40, "queries_measured": 40, "same_top_k": 12} | more
    return Comparison("a", "b", "throughput", "faster", None, 0.01, 1.0,
                      made.pop("queries_used"), 0, **made)  # fmt: skip


def test_no_query_on_both_sides_is_few_and_unknown_is_not() -> None:
    assert standing.few([compared(queries_measured=0)]) == ", over only 0 queries"
    assert standing.few([compared(queries_measured=None)]) == ""


def test_no_list_of_first_hits_the_same_is_a_doubt_and_a_few_are_none() -> None:
    assert standing.doubt(compared(same_top_k=0)) == "never seen to return the same first hits as"
    assert standing.doubt(compared(same_top_k=0, empty=5))
    assert standing.doubt(compared(same_top_k=1)) == ""
    assert standing.doubt(compared(same_top_k=None)) == ""
    assert standing.doubt(compared(same_top_k=0, empty=40)) == ""


def test_never_having_ranked_alike_is_a_doubt_where_it_could_be_seen_often() -> None:
    never = "never seen to rank hits like"
    assert standing.doubt(compared(ranked_alike=(0, 38))) == never
    assert standing.doubt(compared(ranked_alike=(0, 5), empty=10)) == never
    assert standing.doubt(compared(ranked_alike=(1, 38))) == ""
    assert standing.doubt(compared(ranked_alike=(0, 3))) == "", "so few spoil no agreement"
    assert standing.doubt(compared(ranked_alike=None)) == ""


@pytest.mark.parametrize("measure", ["throughput", "sweep"])
def test_who_does_not_rank_is_not_the_best_by_lists_of_all_that_match(
    tmp_path: Path, measure: str
) -> None:
    """Two of forty queries find three documents each, which any system lists."""

    def answer(query: int, ranks: bool) -> dict[str, Any]:
        made = records.good_answer(query)
        if query < 2:
            made |= {"total": 3, "ids": made["ids"][:3], "scores": made["scores"][:3]}
        if ranks:
            return made
        others = made["ids"] if query < 2 else [f"x{i}" for i in range(10)]
        return made | {"ids": others, "scores": [1.0] * len(others)}

    for quick_ranks in (False, True):
        run = Study(blocks=4, control=None, trial_noise=0.0)
        if measure == "sweep":
            run.judging = {"measure": "sweep"}
        for name, median_s, ranks in (("good", 0.005, True), ("quick", 0.001, quick_ranks)):
            run.add(name, system=name, server=records.lognormal(median_s, 0.1), clients=4,
                    answer=lambda query, ranks=ranks: answer(query, ranks))  # fmt: skip
        found = judge(open_record(run.write(tmp_path / str(quick_ranks)))).verdict
        assert (found.best == "quick") is quick_ranks, found.decision
        said = " ".join((found.decision, *found.points, found.doubts))
        assert ("seen to rank hits" in said) is not quick_ranks


@pytest.mark.parametrize(("same", "best"), [(0, None), (9, "quick"), (40, "quick")])
def test_a_sweep_says_on_how_many_requests_the_first_hits_are_the_same(
    tmp_path: Path, same: int, best: str | None
) -> None:
    def junk(query: int) -> dict[str, Any]:
        good = records.good_answer(query)
        return good if query < same else good | {"ids": [f"x{i}" for i in range(len(good["ids"]))]}

    run = Study(blocks=3, control=None, judging={"measure": "sweep"}, trial_noise=0.0)
    for name, median_s in (("good", 0.005), ("quick", 0.001)):
        answer = junk if name == "quick" else records.good_answer
        run.add(name, system=name, server=records.lognormal(median_s, 0.1), answer=answer)
    found = judge(open_record(run.write(tmp_path / "r"))).verdict
    assert found.best == best
    doubt = "On none of the 40 requests with the same total were good and quick seen to return"
    assert any(doubt in point for point in found.points) == (same == 0)
    some = "On 9 of the 40 requests with the same total good and quick return the same first hits"
    assert (some in found.decision) == (same == 9)
    assert ("first hits" in found.decision) == (same < 40)
