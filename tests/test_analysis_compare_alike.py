"""Two records are compared only as far as both were driven alike, asked alike, and answered."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import records
from queues import fixed
from records import Study, lognormal
from searchbench.analysis.compare.loads import differing
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import judge
from searchbench.cli.compare import compare
from searchbench.errors import SearchbenchError
from searchbench.record import Record, Trial, open_record
from searchbench.record.trial import Cache, Load
from searches import Lab

PROMISE = "p99 < 10ms, errors < 0.1%"


def steps(seed: int = 1, loads: tuple[int, ...] = (4,), queries: int = 40, **how: Any) -> Study:
    """A sweep of clients (``rate_per_s``: an open loop), each step driven once."""
    judging = {"measure": "sweep"}
    run = Study(blocks=1, seed=seed, control=None, judging=judging, trial_noise=0.003,
                block_noise=0.0, queries=queries)  # fmt: skip
    for n in loads:
        load = {"clients": n} | ({"rate_per_s": how["rate_per_s"]} if "rate_per_s" in how else {})
        run.add(f"c{n}", system="srv", levels=load, **{
            "server": lognormal(0.004, 0.1), "seconds": 11.0, "clients": n, **how
        })  # fmt: skip
    return run


def search(path: Path, service_s: float = 0.002, **how: Any) -> Record:
    return Lab(path, {"s": fixed(4, service_s)}, (PROMISE,), effort=0.3, **how).run()


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search on record, never changed."""
    return search(tmp_path_factory.mktemp("searched") / "record").path


def opened(run: Study, path: Path) -> Record:
    return open_record(run.write(path))


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        (Load(think_s=0.01), Load(), "think_s 0.01 and 0"),
        (Load(clients=4), Load(clients=8), "clients 4 and 8"),
        (Load(timeout_s=1.0), Load(), "timeout_s 1 and 10"),
        (Load(idle="spin"), Load(), "idle spin and hybrid"),
        (Load(order="drawn"), Load(), "order drawn and logged"),
        (Load(kind="open", connections=64), Load(kind="open", connections=8), "connections 64 an"),
        (Load(kind="open", arrivals="constant"), Load(kind="open"), "arrivals constant and poisso"),
        (Load(kind="open"), Load(), "kind open and closed"),
        # Keys of another kind of loop say nothing, and an absent key is at its default.
        (Load(arrivals="constant", connections=9), Load(), ""),
        (Load(kind="open", think_s=1.0, clients=4), Load(kind="open", clients=8), ""),
        (Load(think_s=0.0, timeout_s=10.0), Load(), ""),
        (Load(kind="open", arrivals="poisson", connections=64), Load(kind="open"), ""),
        (Load(seconds=10.0, warmup_s=1.0, cpus=[1]), Load(seconds=20.0, realtime=True), ""),
        (Load(spread="round"), Load(), ""),  # of one address
    ],
)
def test_loads_are_the_same_if_all_is_that_the_server_or_the_clock_sees(
    a: Load, b: Load, why: str
) -> None:
    found = differing(
        Trial(trial="a", treatment="a", load=a), Trial(trial="b", treatment="b", load=b)
    )
    assert found.partition(" (")[0] == ("the load is not the same" if why else "")
    assert found.partition(" (")[2].startswith(why)


def test_a_spread_and_a_wanted_share_of_cache_hits_are_of_the_load() -> None:
    two, wanted = ["a:1", "a:2"], Cache(wanted_hit=0.5, distribution="uniform", exponent=0.0)
    a = Trial(trial="a", treatment="a", endpoints=two, load=Load(spread="round"), cache=wanted)
    b = Trial(trial="b", treatment="b", endpoints=two)
    assert differing(a, b) == (
        "the load is not the same (spread round and keep, cache_hit 0.5 and none, cache_law "
        "uniform and none, exponent of cache_law 0 and none)"
    )
    other = Trial(trial="b", treatment="b", endpoints=two, cache=Cache(cache_entries=7))
    assert not differing(b, other)


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ({}, {"think_s": 0.01}, "think_s 0 and 0.01"),
        ({"rate_per_s": 150.0}, {"rate_per_s": 150.0, "arrivals": "constant"}, "arrivals poisson"),
    ],
)
def test_two_sweeps_under_other_loads_are_not_comparable(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], why: str
) -> None:
    a, b = opened(steps(**first), tmp_path / "a"), opened(steps(2, **second), tmp_path / "b")
    more = opened(steps(3, **second), tmp_path / "c")
    for same_b in ([], [more]):
        found = compare_records(a, b, same_b=same_b)
        assert {line.verdict for line in found.comparisons} == {"not comparable"}
        assert why in found.headline
        assert (found.beyond_threshold, dict(found.lost)) == (False, {})
    again = opened(steps(4, **first), tmp_path / "d")
    with pytest.raises(SearchbenchError, match="the load is not the same"):
        compare_records(a, again, same=[b])  # nor is it a further run of the same thing
    assert {line.verdict for line in compare_records(a, again).comparisons} == {"not resolved"}


def test_two_studies_under_other_loads_are_not_comparable(tmp_path: Path) -> None:
    found = []
    for name, think in (("a", 0.0), ("b", 0.002)):
        run = Study(blocks=2, seed=1)
        run.add("a", server=lognormal(0.004), think_s=think)
        found.append(opened(run, tmp_path / name))
    line, *_ = compare_records(*found).comparisons
    assert (line.verdict, line.ratio) == ("not comparable", None)
    assert line.reason == "the load is not the same (think_s 0 and 0.002)"


def test_two_searches_under_other_loads_are_not_comparable(searched: Path, tmp_path: Path) -> None:
    second = search(tmp_path / "b", connections=200, most=5)
    (line,) = compare_records(open_record(searched), second).comparisons
    assert line.reason == "the load is not the same (connections 1000 and 200)"
    assert (line.verdict, line.ratio) == ("not comparable", None)


def _slow_at_times(due: Any, query: Any, rng: np.random.Generator) -> Any:
    times = 0.005 * np.exp(0.05 * rng.standard_normal(due.size))
    times[rng.random(due.size) < 0.02] = 0.08
    return times


@pytest.mark.parametrize("rate", [None, 300.0])
def test_a_sweep_wins_nothing_by_the_requests_that_it_fails(
    tmp_path: Path, rate: float | None
) -> None:
    """What took the first 80 ms the second fails, so that its p99 looks better by 14 times."""
    load: dict[str, Any] = {} if rate is None else {"rate_per_s": rate}
    before, after = (
        [opened(steps(at + i, server=s, error_share=e, **load), tmp_path / f"{at}{i}")
         for i in range(4)]
        for at, s, e in ((10, _slow_at_times, 0.0), (20, lognormal(0.005, 0.05), 0.5))
    )  # fmt: skip
    found = compare_records(before[0], after[0], 0.05, before[1:], after[1:])
    lines = {line.metric: line for line in found.comparisons}
    assert lines["response_p99"].verdict == "not resolved"
    assert "what the second failed to answer could make" in lines["response_p99"].reason
    assert lines["response_p99"].failed[0] == 0.0
    assert lines["response_p99"].failed[1] == pytest.approx(0.5, abs=0.05)
    (why,) = found.lost.values()
    assert why.endswith("% of its requests failed, in 4 of 4 runs")
    assert found.beyond_threshold
    assert "Failed requests are in none of these figures" in found.decision
    turned = compare_records(after[0], before[0], 0.05, after[1:], before[1:])
    assert not turned.lost


@pytest.mark.parametrize(("first", "second"), [(0.0, 0.004), (0.008, 0.0115), (0.05, 0.5)])
def test_a_few_failed_requests_are_no_loss(tmp_path: Path, first: float, second: float) -> None:
    """Below 1 %, about 1 %, and where the first failed too."""
    shares = ((1, first), (2, second))
    a, b = (opened(steps(i, error_share=e), tmp_path / str(i)) for i, e in shares)
    found = compare_records(a, b)
    assert not found.lost
    line = next(line for line in found.comparisons if line.ratio)
    assert line.failed[1] == pytest.approx(second, abs=0.02)
    rate = found.comparisons[0]
    assert (rate.metric, rate.over) == ("throughput", "counted" if second == 0.5 else "alike")
    assert rate.ratio is not None
    assert (rate.ratio.value < 0.6) is (second == 0.5), "what was counted is known all the same"
    assert ("more throughput than was counted: some requests" in rate.reason) is (second == 0.5)


def test_a_load_that_the_second_could_not_be_driven_at_is_lost(tmp_path: Path) -> None:
    whole = steps(1, (1, 2, 4, 8))
    a = whole.write(tmp_path / "a")
    broken = steps(2, (1, 2, 4, 8))
    broken.treatments[2].fails_at = broken.treatments[3].fails_at = "drive"
    ended = steps(3, (1, 2, 4, 8))
    ended.run_only = 2
    fewer, same = steps(4, (1, 2)).write(tmp_path / "few"), steps(5, (1, 2, 4, 8))
    b, c, d = broken.write(tmp_path / "b"), ended.write(tmp_path / "c"), same.write(tmp_path / "d")
    assert [compare(a, other) for other in (b, c, d, fewer)] == [1, 3, 0, 0]
    found = compare_records(open_record(a), open_record(b))
    assert [*found.lost] == ["4", "8"]
    found = compare_records(open_record(a), open_record(c))
    assert not found.lost
    assert found.regressed is None
    said = "the second has no valid trial of it, as the run ended before it was measured"
    assert said in found.decision
    # Of what an interrupted first run had not come to, nothing was to be kept.
    turned = compare_records(open_record(c), open_record(a))
    assert "ended before it was measured" not in turned.decision


@pytest.mark.parametrize(
    ("fails", "why"),
    [(1, "its opening loop failed"), (4, "the trial at 1,440/s failed, a rate that the first")],
)
def test_a_search_that_failed_where_the_first_sustained_the_rate_is_lost(
    searched: Path, tmp_path: Path, fails: int, why: str
) -> None:
    second = search(tmp_path / "b", seed=2, fails={"s": fails})
    assert [compare(searched, second.path), compare(second.path, searched)] == [1, 0]
    found = compare_records(open_record(searched), second)
    assert found.lost["s"].startswith(why)
    assert found.regressed


def _kinds(cheap_s: float, dear_s: float) -> Callable[..., Any]:
    """Queries below 100 are of one kind, the others of another."""
    return lambda due, query, rng: (
        np.where(query < 100, cheap_s, dear_s) * np.exp(0.05 * rng.standard_normal(due.size))
    )


def mixed_log(monkeypatch: pytest.MonkeyPatch, cheap: int) -> None:
    """A log that begins with so many queries of the first kind; then both kinds in turn."""
    then = np.arange(20_000) % 200 if cheap < 3000 else 100 + np.arange(20_000) % 100
    log = np.concatenate([np.arange(cheap) % 100, then]).astype(np.uint32)
    closed = records._closed
    monkeypatch.setattr(records, "_closed", lambda t, _, f, rng: closed(t, log, f, rng))


@pytest.mark.parametrize(
    ("cheap", "old", "new", "verdict", "truth"),
    [
        (3900, (0.0005, 0.010), (0.006, 0.011), "not comparable", None),  # none is in both
        (1500, (0.002, 0.010), (0.006, 0.011), "slower", None),
        (1500, (0.002, 0.010), (0.002, 0.010), "not resolved", 1.0),
    ],
)
def test_a_version_that_is_slower_on_every_query_is_not_faster_by_what_it_was_asked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cheap: int,
    old: tuple[float, float],
    new: tuple[float, float],
    verdict: str,
    truth: float | None,
) -> None:
    """The faster one comes further in the log, to dear queries that the slower never saw."""
    mixed_log(monkeypatch, cheap)
    before, after = (
        [opened(steps(at + i, (1,), 200, server=_kinds(*times), seconds=22.0, warmup_s=2.0),
                tmp_path / f"{at}{i}") for i in range(3)]
        for at, times in ((10, old), (20, new))
    )  # fmt: skip
    found = compare_records(before[0], after[0], 0.05, before[1:], after[1:])
    line = found.comparisons[0]
    assert (line.metric, line.verdict) == ("throughput", verdict)
    assert found.beyond_threshold is (verdict == "slower")
    if verdict == "not comparable":
        assert line.reason == "no query was measured on both sides"
    elif truth:
        assert line.ratio is not None
        assert line.ratio.value == pytest.approx(truth, rel=0.02)
        assert (line.queries_used, line.queries_measured) == (200, 200)


def _by_void_trials(path: Path, copy: Path, above_per_s: float) -> Record:
    """The same search where the client was at its limit in every trial above a rate."""
    shutil.copytree(path, copy)
    for about in copy.glob("trials/*/trial.json"):
        told = json.loads(about.read_text())
        if told["load"]["kind"] == "open":
            told["load"]["idle"] = "block"
            if told["load"]["rate_per_s"] > above_per_s:
                told["drive"] = {"elapsed_ns": 10**9, "threads": [{"user_ns": 10**9}]}
        about.write_text(json.dumps(told))
    return open_record(copy)


def test_a_limit_by_void_trials_alone_is_no_limit_for_anybody(
    searched: Path, tmp_path: Path
) -> None:
    search(tmp_path / "b", 0.0029, seed=2)
    first = _by_void_trials(searched, tmp_path / "first", 1e9)
    limit = judge(tmp_path / "b").capacity[0]
    assert limit.holds is not None
    assert limit.fails is not None
    assert not limit.doubt
    sure = _by_void_trials(tmp_path / "b", tmp_path / "sure", 1e9)
    assert compare_records(first, sure).beyond_threshold
    in_doubt = _by_void_trials(tmp_path / "b", tmp_path / "doubt", limit.holds)
    (one,) = judge(in_doubt.path).capacity
    assert (one.holds, one.fails, one.chance_inside) == (limit.holds, None, None)
    assert "and the system may sustain more: fix that" in one.doubt
    found = compare_records(first, in_doubt)
    assert not found.beyond_threshold
    (line,) = found.comparisons
    assert line.verdict == "not resolved"
    assert "the system may sustain more" in line.reason


def of_systems(systems: str, seed: int, measure: str = "sweep", named: bool = True) -> Study:
    """Systems at 2 and 4 clients; ``named``: a study of several, where the system is a level."""
    run = Study(blocks=2, seed=seed, control=None, judging={"measure": measure},
                trial_noise=0.003, block_noise=0.0)  # fmt: skip
    for system in systems:
        for n in (2, 4):
            levels = ({"system": system} if named else {}) | {"load.clients": n}
            run.add(f"{system}{n}", system=system, server=lognormal(0.004, 0.1), clients=n,
                    levels=levels, seconds=11.0)  # fmt: skip
    return run


@pytest.mark.parametrize("measure", ["sweep", "trials"])
def test_a_system_that_the_second_lacks_is_named_and_the_others_are_compared(
    tmp_path: Path, measure: str
) -> None:
    both = of_systems("xy", 1, measure).write(tmp_path / "both")
    one = of_systems("x", 2, measure, named=False).write(tmp_path / "one")
    found = compare_records(open_record(both), open_record(one))
    rates = [line for line in found.comparisons if line.metric == "throughput"]
    assert [(line.label, line.levels["system"]) for line in rates] == [("x 2", "x"), ("x 4", "x")]
    assert all(line.ratio and line.state for line in rates), "states are looked at too"
    said = (
        "y is only in the first record, so whether it changed is not known: measure it in the "
        "second too."
    )
    assert said in found.points
    assert [*found.lost] == ([] if measure == "sweep" else ["y 2", "y 4"])
    turned = compare_records(open_record(one), open_record(both))
    assert len(turned.comparisons) == len(found.comparisons)
    assert "is only in the first" not in turned.decision
    assert "Only in the second: y" in turned.decision


def test_systems_that_both_records_have_are_not_said_to_be_missing(tmp_path: Path) -> None:
    a, b = (of_systems("xy", seed).write(tmp_path / str(seed)) for seed in (1, 2))
    found = compare_records(open_record(a), open_record(b))
    assert "nly in the" not in found.decision
    assert not found.lost
    for trial in b.glob("trials/*-y?"):
        shutil.rmtree(trial)  # as if the second run had ended before it came to y
    ended = compare_records(open_record(a), open_record(b))
    assert not ended.lost
    assert ended.regressed is None
    assert any(point.startswith("y is only in the first record") for point in ended.points)


def test_a_configuration_goes_by_its_system_in_a_record_of_several(tmp_path: Path) -> None:
    paths = []
    for name, systems, subject in (("a", "xy", "{} parts={}"), ("b", "x", "parts={1}")):
        run = Study(blocks=1, control=None, judging={"measure": "sweep"}, trial_noise=0.0)
        for system in systems:
            for parts in (1, 2):
                levels: dict[str, Any] = {"system": system} if len(systems) > 1 else {}
                levels |= {f"systems.{system}.parts": parts, "load.clients": 2}
                run.add(f"{system}{parts}", system=system, subject=subject.format(system, parts),
                        server=lognormal(0.004 * parts, 0.1), clients=2, levels=levels)  # fmt: skip
        paths.append(run.write(tmp_path / name))
    found = compare_records(*map(open_record, paths))
    rates = [line for line in found.comparisons if line.metric == "throughput"]
    assert sorted(line.label for line in rates) == ["x 1 2", "x 2 2"]
    assert " are only in the first record, so whether they changed is not known" in found.decision
    assert sorted(found.only_in_a) == ["y parts=1", "y parts=2"]
