"""Load or time: a server that became slower along a sweep is not taken for one that load slows."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import records
from records import Study, lognormal
from searchbench.analysis.compare.state import State
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Estimate, Interval, Step
from searchbench.analysis.sweep import drift
from searchbench.analysis.sweep.clients import sentences
from searchbench.analysis.sweep.points import Point, points
from searchbench.analysis.sweep.words import of_points
from searchbench.record import open_record
from searchbench.study.planner import one_pass

RATES = {1: 500.0, 2: 1000.0, 4: 2000.0, 8: 2000.0, 16: 2000.0}


def swept(
    rng: np.random.Generator, blocks: int, *, a_step: float = 0.0, by_block: float = 0.02,
    turns: bool = False,
) -> tuple[list[Point], dict[str, int]]:  # fmt: skip
    """A subject whose loads ascend in each block, slower by a share ``a_step`` with every step.

    ``by_block``: how far blocks scatter; windows scatter by 1 %. ``turns``: loads descend in every
    second block.
    """
    steps, order = [], {}
    for block in range(blocks):
        shared = by_block * rng.standard_normal()
        for clients, rate in [*RATES.items()][:: -1 if turns and block % 2 else 1]:
            log = shared + 0.01 * rng.standard_normal() + len(order) * math.log1p(-a_step)
            value = rate * math.exp(log)
            span = Interval(value * 0.98, value * 1.02, 0.95, "batch means")
            about: dict[str, Any] = {"trial": f"{block}-{clients}", "levels": {}, "block": block}
            order[about["trial"]] = len(order)
            steps.append(
                Step(system="s", subject="s", treatment=f"c{clients}", label=f"{clients}",
                     kind="closed", status="valid", clients_asked=clients,
                     answered=Estimate(value, "queries/s", 9, span), **about)
            )  # fmt: skip
    return points(steps)["s"], order


@pytest.mark.parametrize("blocks", [2, 3, 5])
def test_a_drift_is_seen_and_blocks_that_scatter_are_none(blocks: int) -> None:
    rng = np.random.default_rng(blocks)
    drifting = [drift.of(*swept(rng, blocks, a_step=0.03)) for _ in range(100)]
    shown = [one for one in drifting if one is not None]
    assert len(shown) >= 90
    assert np.median([one.ratio for one in shown]) == pytest.approx(0.97**4, rel=0.03)
    faster = [drift.of(*swept(rng, blocks, a_step=-0.03)) for _ in range(100)]
    assert sum(one is not None and one.ratio > 1 for one in faster) >= 90
    calm = [drift.of(*swept(rng, blocks)) for _ in range(400)]
    assert sum(one is not None for one in calm) <= 20
    slight = [drift.of(*swept(rng, blocks, a_step=0.002)) for _ in range(100)]
    assert sum(one is not None for one in slight) <= 10, "1 % in a pass alters nothing"


@pytest.mark.parametrize("by_block", [0.03, 0.05, 0.1])
@pytest.mark.parametrize("blocks", [2, 3, 4, 5])
def test_starts_that_scatter_are_no_drift(blocks: int, by_block: float) -> None:
    """A system that each block starts anew, at a speed that is drawn then and stays."""
    rng = np.random.default_rng(9)
    each = [swept(rng, blocks, by_block=by_block) for _ in range(400)]
    assert sum(drift.of(*one, anew=True) is not None for one in each) <= 26, "5 %, and chance"
    if (blocks, by_block) == (2, 0.05):
        assert sum(drift.of(*one) is not None for one in each) > 100, "of one that ran on"


@pytest.mark.parametrize(("blocks", "by_block"), [(2, 0.03), (2, 0.05), (3, 0.05), (3, 0.1)])
def test_what_blocks_that_scatter_show_as_often_is_said_to_be_perhaps_that(
    blocks: int, by_block: float
) -> None:
    """Of a system that ran on, two blocks have their windows alone, and three are in order by
    chance one time in three.
    """
    rng = np.random.default_rng(9)
    found = [drift.of(*swept(rng, blocks, by_block=by_block)) for _ in range(400)]
    shown = [one for one in found if one is not None]
    assert len(shown) > (40 if blocks == 2 else 20)
    assert sum(one.sure for one in shown) <= 26, "5 %, and chance"
    for one in shown:
        assert ("or its blocks only scatter" in drift.sentence("s", one)) is not one.sure
    many = [drift.of(*swept(rng, 5, a_step=0.03)) for _ in range(100)]
    assert sum("only scatter" not in drift.sentence("s", one) for one in many if one) >= 90


def test_a_drift_of_systems_that_are_started_anew_is_seen_in_several_blocks() -> None:
    rng = np.random.default_rng(2)
    each = [drift.of(*swept(rng, 5, a_step=0.03), anew=True) for _ in range(100)]
    assert sum(one is not None and one.ratio < 1 for one in each) >= 90


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("blocks", [2, 3, 4, 5])
def test_blocks_that_take_turns_tell_a_drift_from_blocks_that_scatter(
    blocks: int, anew: bool
) -> None:
    """A load that comes early in one block comes late in the next, so the change is seen within
    blocks, however far these scatter.
    """
    rng = np.random.default_rng(blocks)
    for by_block in (0.02, 0.1):
        drifting = [
            drift.of(*swept(rng, blocks, a_step=0.03, by_block=by_block, turns=True), anew=anew)
            for _ in range(100)
        ]
        shown = [one for one in drifting if one is not None]
        assert len(shown) >= 90
        assert all(one.sure for one in shown)
        assert np.median([one.ratio for one in shown]) == pytest.approx(0.97**4, rel=0.02)
        calm = [
            drift.of(*swept(rng, blocks, by_block=by_block, turns=True), anew=anew)
            for _ in range(400)
        ]
        assert sum(one is not None for one in calm) <= 26, "5 %, and chance"


def step(block: int, clients: int, value: float) -> Step:
    """So many clients in a block, and the queries that were answered a second, known to 1 %."""
    span = Interval(value * 0.99, value * 1.01, 0.95, "batch means")
    return Step(
        system="s", subject="s", treatment=f"c{clients}", label=f"{clients}", kind="closed",
        status="valid", clients_asked=clients, trial=f"{block}-{clients}", levels={}, block=block,
        answered=Estimate(value, "queries/s", 999, span),
    )  # fmt: skip


def worked(
    rng: np.random.Generator, blocks: int, *, turns: bool, loads: int = 5, every: float = 5.0,
    lasts: float = 1.0, takes: float = 0.2,
) -> str:  # fmt: skip
    """What is said of a server of 800/s at any load. A job takes a share of its speed; ``every``
    and ``lasts`` in steps, of which one pass has as many as there are ``loads``."""
    steps, order, phase = [], {}, rng.uniform(0, every)
    lot = random.Random(int(rng.integers(1 << 30)))
    for block in range(blocks):
        ascending = [4 * (n + 1) for n in range(loads)]
        in_turn = one_pass(ascending, block + 1, lot) if turns else ascending
        for clients in in_turn:
            when = len(order) + np.linspace(0.05, 0.95, 100)
            value = 800 * (1 - takes * float((((when + phase) % every) < lasts).mean()))
            value *= math.exp(0.005 * rng.standard_normal())
            order[f"{block}-{clients}"] = len(order)
            steps.append(step(block, clients, value))
    own = known_steady(steps)
    return " ".join(sentences("s", own, drifts=drift.of(own, order) is not None))


@pytest.mark.parametrize("blocks", [3, 4, 5])
def test_a_job_that_comes_back_once_a_pass_is_not_called_an_effect_of_the_load(blocks: int) -> None:
    claim, rng = "With more clients it answers less", np.random.default_rng(blocks)
    one_order = sum(claim in worked(rng, blocks, turns=False) for _ in range(100))
    turned = sum(claim in worked(rng, blocks, turns=True) for _ in range(100))
    assert one_order >= 10
    assert turned <= 5


@pytest.mark.parametrize(
    ("loads", "blocks", "every", "lasts", "takes"),
    [(5, 3, 4, 2, 0.5), (5, 4, 4, 2, 0.5), (4, 5, 5, 2, 0.5), (5, 5, 4, 2, 0.5), (4, 3, 3, 1, 0.3)],
)
def test_no_job_that_comes_back_keeps_step_with_a_load(
    loads: int, blocks: int, every: float, lasts: float, takes: float
) -> None:
    """With the third pass and the fourth in orders that begin two loads further on, and with the
    noise of two loads alone, 56, 38, 28, 46 and 16 of 100 called it an effect of the load."""
    rng, claim = np.random.default_rng([loads, blocks]), "With more clients it answers less"
    job: dict[str, Any] = {"loads": loads, "every": every, "lasts": lasts, "takes": takes}
    said = [worked(rng, blocks, turns=True, **job) for _ in range(100)]
    assert sum(claim in each for each in said) <= 15


def test_loads_agree_beyond_what_all_of_them_scatter_by() -> None:
    """Two loads that differ by as much in each pass say nothing where others scatter by more."""
    slow = {(0, 8), (1, 8), (2, 8), (1, 1), (2, 2)}
    rates = [
        step(block, clients, 800.0 * (0.5 if (block, clients) in slow else 1 + 0.002 * block))
        for block in range(3)
        for clients in (1, 2, 4, 8)
    ]
    said = " ".join(sentences("s", known_steady(rates)))
    assert "In these drives, it answered less with more clients: at 8 clients 0.4" in said
    assert "Other drives of one load differ by as much from pass to pass, so it is not" in said
    calm = [replace(s, answered=None) if (s.block, s.clients_asked) in slow - {
        (0, 8), (1, 8), (2, 8)} else s for s in rates]  # fmt: skip
    assert "With more clients it answers less: at 8 clients 0.4" in " ".join(
        sentences("s", known_steady(calm))
    )


@pytest.mark.parametrize("turns", [False, True])
def test_a_system_that_is_another_from_some_block_on_is_told_and_scatter_is_not(
    turns: bool,
) -> None:
    """Nobody of a server that runs already knows what was done to it between two blocks."""

    def swapped(rng: np.random.Generator, by: float) -> list[Point]:
        own, _ = swept(rng, 3, by_block=0.0, turns=turns)
        steps = [s for p in own for s in p.steps]
        moved = [
            step(s.block, s.clients_asked or 0,
                 s.answered.value * (1 - by if s.block == 2 else 1)) for s in steps if s.answered
        ]  # fmt: skip
        return known_steady(moved)

    rng = np.random.default_rng(7)
    found = [drift.jump(swapped(rng, 0.3)) for _ in range(100)]
    assert all(one is not None and one.slowest == 2 for one in found)
    assert np.median([one.ratio for one in found if one]) == pytest.approx(1 / 0.7, rel=0.03)
    assert sum(drift.jump(swapped(rng, 0.0)) is not None for _ in range(400)) == 0
    assert drift.jump(swapped(rng, 0.3)[:1]) is None, "one load shows no scatter"


def test_loads_that_all_passes_drove_at_one_time_are_named() -> None:
    """A spell around the turn of two passes looks like an effect of the highest loads."""
    rng = np.random.default_rng(9)
    two, order = swept(rng, 2, turns=True)
    assert [p.x for p in drift.close(two, order)] == [8, 16]
    assert not drift.close(*swept(rng, 2)), "in one order none is close to itself"
    assert not drift.close(*swept(rng, 1))
    five, after, lot = [], {}, random.Random(4)
    for block in range(1, 4):
        for clients in one_pass([*RATES], block, lot):
            after[f"{block}-{clients}"] = len(after)
            five.append(step(block, clients, RATES[clients]))
    assert not drift.close(points(five)["s"], after), "the third pass begins elsewhere"
    said = drift.at_the_turn("s", "8 and 16 clients", 2)
    assert said.startswith("Both passes drove s at 8 and 16 clients close together in time")


def test_a_spell_at_the_turn_of_two_passes_is_not_called_an_effect_of_the_load() -> None:
    """A server that is slow in the middle of the run: at the highest loads, in both passes."""
    steps, order = [], {}
    for block in range(2):
        for clients in [1, 2, 4, 8][:: -1 if block else 1]:
            order[f"{block}-{clients}"] = len(order)
            value = 88.0 * (clients if clients < 4 else 2.0)
            steps.append(step(block, clients, value * (1.001 if block else 1.0)))
    own = known_steady(steps)
    close = {p.x for p in drift.close(own, order)}
    assert close == {4, 8}
    said = " ".join(sentences("s", own, close=close))
    assert "In these drives, more than 2 clients brought no more throughput" in said
    assert "close together in time, so it is not known whether the load is the reason" in said
    assert "More than 2 clients bring no more" not in said
    assert "More than 2 clients bring no more" in " ".join(sentences("s", own))
    assert "More than 2 clients bring no more" in " ".join(sentences("s", own, close={8}))


def test_a_rate_that_all_passes_drove_at_one_time_is_too_much_of_these_drives_alone() -> None:
    achieved = Estimate(0.5, "share", 999, Interval(0.49, 0.51, 0.95, "batch means"))
    steps = [
        replace(step(block, int(rate), rate), kind="open", rate_asked_per_s=rate,
                clients_asked=None, keeps_up=rate < 200, achieved=achieved)
        for block in range(2) for rate in (100.0, 200.0)
    ]  # fmt: skip
    own = points(steps)["s"]
    assert "s does not keep up with 200 requests per second" in " ".join(of_points("s", own))
    said = " ".join(of_points("s", own, close={200.0}))
    assert "In these drives, s did not keep up with 200 requests per second" in said
    assert "not known whether the load is the reason" in said


def test_a_rate_that_was_kept_up_with_in_other_passes_is_not_said_to_be_too_much() -> None:
    """One slow spell in one of three passes."""
    fell, kept = (Estimate(v, "share", 999, Interval(v - 0.01, v + 0.01, 0.95, "batch means"))
                  for v in (0.6, 1.0))  # fmt: skip

    def said(slow: set[tuple[int, float]]) -> str:
        steps = [
            replace(step(block, int(rate), rate), kind="open", rate_asked_per_s=rate,
                    clients_asked=None, keeps_up=(block, rate) not in slow,
                    achieved=fell if (block, rate) in slow else kept)
            for block in range(3) for rate in (100.0, 200.0, 300.0)
        ]  # fmt: skip
        return " ".join(of_points("s", points(steps)["s"]))

    once = said({(1, 200.0)})
    assert "s keeps up with 100 requests per second" in once
    assert "In 1 of 3 drives at 200 requests per second, s did not keep up: 60 %" in once
    assert "In others it did, so it is not known whether the load is the reason." in once
    assert "does not keep up" not in once
    both = said({(1, 200.0), *((b, 300.0) for b in range(3))})
    assert "In 1 of 3 drives at 200 requests per second, s did not keep up" in both
    assert "s does not keep up with 300 requests per second: 60 %" in both
    lower = said({(b, 200.0) for b in range(3)})
    assert "does not keep up" not in lower, "300 was kept up with"
    assert (
        "s did not keep up with 200 requests per second in 3 drives (60 % of the load was "
        "answered within the window" in lower
    )
    assert "though it did with 300. So it is not known whether the load is the reason" in lower
    highest = said({(b, 300.0) for b in range(3)})
    assert "s does not keep up with 300 requests per second" in highest


def test_two_passes_say_in_the_verdict_which_loads_met_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = sweep(tmp_path / "r", monkeypatch, 0.0, blocks=2)
    assert "Both passes drove s at 2 clients and 8 clients close together in time" in said
    assert "passes drove s at" not in sweep(tmp_path / "one", monkeypatch, 0.0, blocks=1)


def test_loads_that_scatter_by_much_are_not_called_other_blocks() -> None:
    rng, found = np.random.default_rng(8), 0
    for _ in range(400):
        steps = [step(b, n, rate * math.exp(0.1 * rng.standard_normal()))
                 for b in range(3) for n, rate in RATES.items()]  # fmt: skip
        found += drift.jump(known_steady(steps)) is not None
    assert found <= 10, "1 %, and chance"


def test_only_what_each_block_started_is_said_to_have_been_started_anew() -> None:
    said = drift.in_every_block(["a", "b"])
    assert said.startswith("Each block started a and b again and drove the loads in the same order")


def test_nothing_is_known_of_a_drift_where_each_load_was_driven_once() -> None:
    own, order = swept(np.random.default_rng(1), 1, a_step=0.1)
    assert drift.of(own, order) is None
    assert drift.hidden(own, order)
    shuffled = dict(zip(order, (3, 0, 4, 1, 2), strict=True))
    assert not drift.hidden(own, shuffled)
    assert not drift.hidden(own[:1], order)


def aged(rng: np.random.Generator, blocks: int, *, turns: bool) -> tuple[list[Point], Any]:
    """Four workers, slower by 5 % with every step since the start, which each block makes anew."""
    steps, order = [], {}
    for block in range(blocks):
        loads = list(RATES.items())
        for age, (clients, rate) in enumerate(loads[::-1] if turns and block % 2 else loads):
            value = rate * math.exp(0.005 * rng.standard_normal() - 0.05 * age)
            order[f"{block}-{clients}"] = len(order)
            steps.append(step(block, clients, value))
    return known_steady(steps), order


def known_steady(steps: list[Step]) -> list[Point]:
    steady = State("steady", 0, 1, 0.0, 0.0, 1.0, None)
    return [replace(p, state=steady) for p in points(steps)["s"]]


@pytest.mark.parametrize("blocks", [2, 3, 4, 5])
def test_what_ages_anew_in_each_block_is_not_called_an_effect_of_the_load(blocks: int) -> None:
    rng, claim = np.random.default_rng(blocks), "With more clients it answers less"
    claimed = hedged = turned = 0
    for _ in range(50):
        own, order = aged(rng, blocks, turns=False)
        assert drift.of(own, order) is None, "each load has one age in all blocks"
        assert drift.hidden(own, order, anew=True)
        assert not drift.hidden(own, order), "a system that ran already became older"
        claimed += claim in " ".join(sentences("s", own))
        said = " ".join(sentences("s", own, hidden=True))
        assert claim not in said
        hedged += "All blocks drove the loads in the same order, so it is not known" in said
        own, order = aged(rng, blocks, turns=True)
        assert not drift.hidden(own, order, anew=True)
        turned += claim in " ".join(sentences("s", own))
    assert hedged >= claimed >= (30 if blocks > 2 else 5)
    assert turned <= 2


def test_a_decline_that_the_load_makes_is_seen_in_blocks_that_take_turns() -> None:
    rng, seen = np.random.default_rng(1), 0
    falls = {1: 500.0, 2: 1000.0, 4: 2000.0, 8: 1900.0, 16: 1700.0}
    for _ in range(50):
        steps = []
        for block in range(3):
            for n, rate in list(falls.items())[:: -1 if block % 2 else 1]:
                steps.append(step(block, n, rate * math.exp(0.005 * rng.standard_normal())))
        own = known_steady(steps)
        seen += "With more clients it answers less" in " ".join(sentences("s", own))
    assert seen >= 45


def sweep(path: Path, monkeypatch: pytest.MonkeyPatch, a_step: float, **more: Any) -> str:
    """What is said of four workers that become slower by a share with every step."""
    write, load = records.Study._write_trial, more.pop("load", None)

    def slower(self: Study, writer: Any, planned: Any, position: int, *rest: Any) -> None:
        treatment, factor, rng = rest
        write(self, writer, planned, position, treatment, factor * (1 + a_step) ** position, rng)

    monkeypatch.setattr(records.Study, "_write_trial", slower)
    run = Study(**({"blocks": 3, "block_noise": 0.01} | more), control=None, trial_noise=0.003,
                judging={"measure": "sweep", "command": ["load"]})  # fmt: skip
    for n in (1, 2, 4, 8):
        of_load = {"clients": n} if load is None else {"rate_per_s": 100.0 * n}
        server = lognormal(0.004 * (max(1.0, n / 4) if load is None else 1), 0.1)
        run.add(f"s{n}", system="s", server=server, levels={"load": n}, seconds=11.0, **of_load)
    return judge(open_record(run.write(path))).verdict.decision


@pytest.mark.parametrize("load", [None, "rates"])
def test_the_answer_says_that_it_may_be_the_time_and_claims_no_effect_of_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: str | None
) -> None:
    said = sweep(tmp_path / "r", monkeypatch, 0.04, load=load)
    assert "s became slower (by about " in said
    assert "whether the load or the time made the difference between two of its steps is" in said
    assert "no more throughput" not in said
    assert "Beyond that it answers less" not in said
    assert ("How many clients are enough is unknown" in said) is (load is None)


def test_without_a_drift_the_claims_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = sweep(tmp_path / "r", monkeypatch, 0.0)
    assert "became" not in said
    assert "More than 4 clients bring no more throughput" in said


def test_a_sweep_in_one_ascending_pass_says_that_time_looks_like_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ascending(np.random.Generator):
        def permutation(self, x: Any, axis: int = 0) -> Any:
            return np.arange(x)

    monkeypatch.setattr(
        records.np.random, "default_rng", lambda seed: Ascending(np.random.PCG64(seed))
    )
    said = sweep(tmp_path / "r", monkeypatch, 0.0, blocks=1)
    assert f"(--repeat 5 shows the rest). {drift.MEANWHILE}" in said
