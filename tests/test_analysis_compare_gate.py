"""Sweeps and searches pass the gate by the rules of studies: all runs of a side count, in any
order, and what cannot be told is no pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from queues import Serve, drawn, failing, fixed
from records import Array, Study, good_answer, lognormal, warming
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import RecordComparison
from searchbench.cli.compare import compare
from searchbench.record import Record, open_record
from searches import Lab
from test_analysis_capacity_low import sleepy


def gate(first: Sequence[Record], later: Sequence[Record]) -> tuple[int, RecordComparison]:
    """Exit status and comparison of runs with runs."""
    a, b = ([record.path for record in side] for side in (first, later))
    status = compare(a[0], b[0], same=tuple(a[1:]), same_b=tuple(b[1:]), as_json=True)
    return status, compare_records(first[0], later[0], 0.05, first[1:], later[1:])


def search(path: Path, serve: Serve, seed: int, effort: float = 1.0, **how: Any) -> Record:
    return Lab(
        path, {"s": serve}, ("p99 < 10ms",), seed=seed, effort=effort, look_per_s=1500.0, **how
    ).run()


# Searches


@pytest.mark.parametrize(
    ("other", "verdict"), [(("s",), "not resolved"), ((), "faster")], ids=["other", "same"]
)
def test_a_greater_limit_over_several_runs_by_other_answers_is_not_faster(
    tmp_path: Path, other: tuple[str, ...], verdict: str
) -> None:
    first = [search(tmp_path / f"a{i}", fixed(4, 0.002), i) for i in (2, 4)]
    later = [search(tmp_path / f"b{i}", fixed(4, 0.0012), 10 + i, other=other) for i in (2, 4)]
    _, found = gate(first, later)
    (line,) = found.comparisons
    assert (line.verdict, line.runs) == (verdict, (2, 2))
    assert line.reason.count("they answer only 0 of 10 requests alike") == len(other)
    assert not found.beyond_threshold
    slower, found = gate(later, first)
    assert (slower, found.comparisons[0].verdict) == (1, "slower")


@pytest.mark.parametrize("turned", [False, True])
def test_a_search_that_failed_in_one_of_two_runs_is_lost_in_any_order(
    tmp_path: Path, turned: bool
) -> None:
    first = [search(tmp_path / f"a{i}", fixed(4, 0.002), 71 + i, 0.3) for i in range(2)]
    later = [
        search(tmp_path / "b0", fixed(4, 0.002), 81, 0.3),
        search(tmp_path / "b1", fixed(4, 0.002), 82, 0.3, fails={"s": 2}),
    ]
    status, found = gate(first, later[::-1] if turned else later)
    assert (status, [*found.lost]) == (1, ["s"])
    assert "the server is gone, in 1 of 2 runs" in found.lost["s"]
    status, found = gate(first, later[:1])
    assert (status, found.lost) == (0, {})


def test_a_search_that_found_no_limit_among_others_that_did_is_said(tmp_path: Path) -> None:
    """Two of three searches tell of the limit, in any order. The third may hide a loss."""
    first = [search(tmp_path / f"a{i}", fixed(4, 0.002), i) for i in (2, 4)]
    found_one = [search(tmp_path / f"b{i}", fixed(4, 0.002), 10 + i) for i in (2, 4)]
    none = search(tmp_path / "c", drawn(fixed(4, 0.005), 0.2), 41)
    for later in ([none, *found_one], [*found_one, none]):
        status, found = gate(first, later)
        assert (status, found.comparisons[0].runs) == (3, (2, 2))
        assert "in 1 of 3 runs of the second no limit was found" in found.not_known["s"]
    # Of the first it is said, and counts for nothing.
    status, found = gate([*first, none], found_one)
    assert (status, found.comparisons[0].runs) == (0, (2, 2))
    assert "1 of 3 searches of the first found no limit between two rates" in found.decision


def test_a_gain_of_some_searches_is_no_pass_where_half_found_no_limit(tmp_path: Path) -> None:
    """Two of four starts fail 3 % of all requests, and the others sustain more than before."""
    first = [search(tmp_path / f"a{i}", fixed(4, 0.002), i) for i in (2, 4)]
    good = [search(tmp_path / f"b{i}", fixed(4, 0.0012), 10 + i) for i in (2, 4)]
    none = [search(tmp_path / f"c{i}", failing(fixed(4, 0.0012), 0.03), 16 + i) for i in (1, 2)]
    status, found = gate(first, [*good, *none])
    assert (found.comparisons[0].verdict, found.comparisons[0].runs) == ("faster", (2, 2))
    assert (status, [*found.not_known]) == (3, ["s"])
    assert "in 2 of 4 runs of the second no limit was found" in found.not_known["s"]
    assert found.regressed is None


def test_searches_with_one_end_forbid_what_they_speak_against(tmp_path: Path) -> None:
    """Starts of two kinds: half sustain so much that the load generator's connections limit it."""

    def side(name: str, seconds: Sequence[float], seed: int) -> list[Record]:
        found = []
        for i, s in enumerate(seconds, seed):
            serve = fixed(4, s) if s else fixed(24, 0.002)
            found.append(search(tmp_path / f"{name}{i}", serve, i, 0.5, connections=24))
        return found

    even = side("a", [0.002] * 2, 1)
    two = side("b", [0.0025, 0.0025, 0.0, 0.0], 11)
    for first, later, which in ((even, two, "second"), (two, even, "first")):
        status, found = gate(first, later)
        assert found.comparisons[0].verdict == "not resolved"
        assert (status, found.regressed, [*found.not_known]) == (3, None, ["s"])
        assert f"2 of 4 searches of the {which} found no upper end" in found.not_known["s"]
    # Where they say the same as those with both ends, they forbid nothing.
    status, found = gate(even, two[:2])
    assert (status, found.comparisons[0].verdict) == (1, "slower")
    status, found = gate([*two[:2]], [*even, two[2]])
    assert found.comparisons[0].verdict == "faster"
    assert found.regressed is False


def low(
    folder: Path, name: str, serve: Serve, seed: int, runs: int, effort: float = 0.3
) -> list[Record]:
    """Searches that begin below 1,000 a second."""
    return [
        Lab(folder / f"{name}{i}", {"s": serve}, ("p99 < 10ms",), seed=seed + i, effort=effort,
            look_per_s=950.0).run()
        for i in range(runs)
    ]  # fmt: skip


@pytest.mark.parametrize("runs", [1, 2])
def test_a_promise_that_is_broken_at_low_rates_is_no_pass(tmp_path: Path, runs: int) -> None:
    """The second sustains more at most, and breaks the promise below 1,000 a second."""
    first = low(tmp_path, "a", fixed(16, 0.002), 1, runs)
    sleeps = sleepy(fixed(16, 0.002 / 1.2), 0.03, 1000, 0.012)
    later = low(tmp_path, "b", sleeps, 11, runs)
    assert all(judge(record).capacity[0].broken_up_to is not None for record in later)
    status, found = gate(first, later)
    assert (status, found.comparisons[0].verdict) == (3, "not resolved")
    assert "the second breaks the promise at" in found.not_known["s"]
    # The other way round it sustains less at most, and keeps the promise where the first did not.
    status, found = gate(later, first)
    assert (status, found.comparisons[0].verdict) == (3, "not resolved")
    assert "at most it sustains less, but the first breaks" in found.not_known["s"]


def test_a_lower_limit_stays_a_loss_where_low_rates_are_lost_too(tmp_path: Path) -> None:
    # An effort that its late requests, which come in few clusters, need: else it is not resolved.
    first = low(tmp_path, "a", fixed(16, 0.002), 1, 2, effort=1.0)
    later = low(tmp_path, "b", sleepy(fixed(16, 0.004), 0.03, 1000, 0.012), 21, 2, effort=1.0)
    assert any(judge(record).capacity[0].broken_up_to is not None for record in later)
    status, found = gate(first, later)
    assert status == 1
    assert found.comparisons[0].verdict in ("slower", "differs")
    assert found.not_known == {}


@pytest.mark.parametrize("runs", [1, 3])
def test_searches_of_little_effort_order_nothing_over_several_runs_either(
    tmp_path: Path, runs: int
) -> None:
    """By how much such intervals miss goes with the system, so that runs agree in it."""
    first, later = (
        [search(tmp_path / f"{side}{i}", fixed(4, took), 10 * i, 0.05) for i in range(runs)]
        for side, took in (("a", 0.002), ("b", 0.004))
    )
    for one, other in ((first, later), (later, first)):
        status, found = gate(one, other)
        assert found.comparisons[0].verdict == "not resolved"
        assert (status, found.lost, [*found.not_known]) == (3, {}, ["s"])
        assert found.regressed is None


def test_a_server_that_dies_above_what_is_sustained_is_no_pass(tmp_path: Path) -> None:
    """The first survives all that its search drives, the second is gone after one kept rate."""

    def one(name: str, seed: int, **how: Any) -> Record:
        lab = Lab(tmp_path / name, {"s": fixed(4, 0.002)}, ("p99 < 100ms",), seed=seed, effort=0.3,
                  look_per_s=2100.0, **how)  # fmt: skip
        return lab.run()

    first, later = one("a", 1), one("b", 11, fails={"s": 3})
    died = [t.load.rate_per_s or 0.0 for t in later.trials if t.status != "ok"]
    assert died[0] > 2500
    status, found = gate([first], [later])
    assert (status, found.lost) == (3, {})
    assert "failed (the server is gone), in 1 of 1 searches" in found.not_known["s"]
    assert gate([first], [one("c", 12)])[0] == 0
    # Where the first dies there as well, nothing is worse.
    assert gate([one("d", 13, fails={"s": 3})], [later])[0] == 0


def test_a_limit_that_was_not_found_is_no_pass(tmp_path: Path) -> None:
    first = search(tmp_path / "a", fixed(4, 0.002), 31)
    after = search(tmp_path / "b", drawn(fixed(4, 0.005), 0.2), 41)
    status, found = gate([first], [after])
    assert (status, found.lost, found.regressed) == (3, {}, None)
    assert "of the second no limit is known" in found.not_known["s"]
    assert "Cannot tell" in found.headline
    # Of the first nothing is known to be sustained, so nothing can be missed.
    assert gate([after], [first])[0] == 0


# Sweeps


def sweep(
    path: Path, seed: int, servers: Mapping[int, Any], clients: int = 4, **how: Any
) -> Record:
    """Steps of so many clients, three blocks. ``how``: of that with ``clients``."""
    study = Study(blocks=3, seed=seed, control=None, trial_noise=0.003, block_noise=0.005,
                  judging={"measure": "sweep"})  # fmt: skip
    for n, server in servers.items():
        study.add(f"x{n}", system="x", server=server, clients=n, levels={"load.clients": n},
                  seconds=8.0, **(how if n == clients else {}))  # fmt: skip
    return open_record(study.write(path))


GOOD = {2: lognormal(0.004, 0.1), 4: lognormal(0.004, 0.1)}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    folder = tmp_path_factory.mktemp("swept")
    return [sweep(folder / f"a{i}", 10 + i, GOOD) for i in range(3)]


@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize("how", [{"dies_at_s": 3.0}, {"error_share": 0.6}], ids=["dies", "errs"])
def test_a_load_that_fails_in_most_runs_is_lost_in_any_order(
    tmp_path: Path, swept: list[Record], how: Mapping[str, Any], place: int
) -> None:
    later = [sweep(tmp_path / f"b{i}", 41 + i, GOOD, **how) for i in range(2)]
    later.insert(place, sweep(tmp_path / "good", 40, GOOD))
    status, found = gate(swept, later)
    assert (status, [*found.lost]) == (1, ["4"])
    assert "in 2 of 3 runs" in found.lost["4"]
    assert "not in half of the second's runs or more" in found.headline
    assert "Only in" not in found.decision
    # In one run of three it is no loss, and no pass.
    one = [run for run in later if run is not later[1 if place == 0 else 0]][:2]
    one.append(sweep(tmp_path / "more", 49, GOOD))
    status, found = gate(swept, one)
    assert (status, found.lost, [*found.not_known]) == (3, {}, ["4"])
    # What fails as often in the first is neither.
    status, found = gate(one, one_of(tmp_path, how))
    assert (status, found.lost) == (0, {})


@pytest.mark.parametrize(("workers", "status"), [(1, 3), (4, 0)], ids=["behind", "keeps up"])
def test_a_rate_that_is_no_longer_kept_up_with_is_no_pass(
    tmp_path: Path, workers: int, status: int
) -> None:
    """One worker sustains 2 % less than the rate: its queue grows without end."""

    def rates(name: str, seed: int, serve: Serve) -> Record:
        def server(due: Array, query: Array, rng: np.random.Generator) -> Array:
            return serve(due, rng)[0] - due

        study = Study(blocks=3, seed=seed, control=None, trial_noise=0.003, block_noise=0.003,
                      judging={"measure": "sweep"})  # fmt: skip
        for rate in (500, 1000):
            study.add(f"x{rate}", system="x", server=server, rate_per_s=float(rate), seconds=21.0,
                      arrivals="constant", levels={"load.rate_per_s": rate})  # fmt: skip
        return open_record(study.write(tmp_path / name))

    first = [rates(f"a{i}", 1 + i, fixed(4, 0.002)) for i in range(2)]
    slow = fixed(1, 1 / 980) if workers == 1 else fixed(4, 0.00201)
    later = [rates(f"b{i}", 11 + i, slow) for i in range(2)]
    one, found = gate(first[:1], later[:1])
    assert (one, found.lost, [*found.not_known]) == (status, {}, ["1000"] if status else [])
    both, found = gate(first, later)
    assert both == (1 if status else 0)
    if status:
        assert "it fell behind the rate" in found.lost["1000"]


def one_of(folder: Path, how: Mapping[str, Any]) -> list[Record]:
    """Three runs, one of which fails at 4 clients."""
    good = [sweep(folder / f"o{i}", 60 + i, GOOD) for i in range(2)]
    return [good[0], sweep(folder / "o2", 62, GOOD, **how), good[1]]


def test_a_load_that_no_run_of_the_second_answers_is_no_pass(
    tmp_path: Path, swept: list[Record]
) -> None:
    """Half of the first's runs answer there, which is too few for a loss."""
    first = [swept[0], sweep(tmp_path / "a", 80, GOOD, fails_at="drive")]
    status, found = gate(first, [sweep(tmp_path / "b", 90, GOOD, fails_at="drive")])
    assert (status, found.lost, [*found.not_known]) == (3, {}, ["4"])
    assert "in 1 of 1 runs of the second, and in 1 of 2 of the first" in found.not_known["4"]


def test_a_run_that_died_at_every_load_counts(tmp_path: Path, swept: list[Record]) -> None:
    good = sweep(tmp_path / "b0", 48, GOOD)
    study = Study(blocks=3, seed=49, control=None, judging={"measure": "sweep"})
    for n, server in GOOD.items():
        study.add(f"x{n}", system="x", server=server, clients=n, levels={"load.clients": n},
                  seconds=8.0, dies_at_s=3.0)  # fmt: skip
    dead = open_record(study.write(tmp_path / "b1"))
    for later in ([good, dead], [dead, good]):
        status, found = gate(swept, later)
        assert (status, [*found.lost]) == (1, ["2", "4"])


def hangs(due: Array, query: Array, rng: np.random.Generator) -> Array:
    """Nothing is answered from 0.6 s to 4 s of a drive, of which the window is 1 to 8 s."""
    took = 0.004 * np.exp(0.1 * rng.standard_normal(due.size))
    return np.where((due >= 0.6) & (due < 4.0), 4.0 - due + took, took)


@pytest.mark.parametrize(
    ("server", "how", "status", "why"),
    [
        (warming(lognormal(0.006, 0.1), 1.4, 8.0), {}, 3, "was not steady in 3 of 3 trials"),
        (hangs, {}, 1, "some requests are in no latency"),
        (lognormal(0.012, 0.1), {"lag_ns": 4_000_000}, 3, "spoilt by the load generator or"),
        (lognormal(0.004, 0.1), {}, 0, ""),
        (lognormal(0.005, 0.1), {}, 1, ""),
    ],
    ids=["not steady", "hangs", "spoilt", "equal", "slower"],
)
def test_a_sweep_passes_by_the_rule_of_studies(
    tmp_path: Path, swept: list[Record], server: Any, how: Mapping[str, Any], status: int, why: str
) -> None:
    later = [sweep(tmp_path / f"b{i}", 20 + i, {**GOOD, 4: server}, **how) for i in range(3)]
    gone, found = gate(swept, later)
    assert gone == status
    assert why in " ".join([*found.not_known.values(), *(c.reason for c in found.comparisons)])
    assert [*found.not_known] == (["4"] if status == 3 else [])
    assert found.regressed is {0: False, 1: True, 3: None}[status]
    assert "Only in" not in found.decision


@pytest.mark.parametrize("turned", [False, True])
def test_the_answers_of_all_runs_of_a_sweep_count(
    tmp_path: Path, swept: list[Record], turned: bool
) -> None:
    def none(query: int) -> dict[str, Any]:
        return {**good_answer(query), "total": 0, "ids": [], "scores": []}

    study = Study(blocks=3, seed=52, control=None, judging={"measure": "sweep"})
    for n, server in GOOD.items():
        study.add(f"x{n}", system="x", server=server, clients=n, levels={"load.clients": n},
                  seconds=8.0, answer=none)  # fmt: skip
    later = [sweep(tmp_path / "b0", 50, GOOD), open_record(study.write(tmp_path / "b1"))]
    _, found = gate(swept, later[::-1] if turned else later)
    assert found.answers_changed == {"x": (40, 40)}
    assert "are the same: totals" not in found.decision


def test_a_hang_in_some_runs_is_compared_as_counted_in_any_order(
    tmp_path: Path, swept: list[Record]
) -> None:
    """A run that hangs gains nothing by its latencies, whichever run stands for its side."""
    good = sweep(tmp_path / "b0", 70, GOOD)
    held = [sweep(tmp_path / f"b{i}", 70 + i, {**GOOD, 4: hangs}) for i in (1, 2, 3)]
    for later in ([good, *held], [*held, good]):
        _, found = gate(swept, later)
        (rate,) = (c for c in found.comparisons if (c.label, c.metric) == ("4", "throughput"))
        assert (rate.over, rate.runs) == ("counted", (3, 4))
        assert rate.ratio is not None
        assert rate.ratio.value == pytest.approx(0.57 ** (3 / 4), rel=0.1)
