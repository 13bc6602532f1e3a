"""Sweeps whose drives scatter by more than their windows show: what was driven once orders little.

Simulated are the comparisons alone: a record of each would take minutes, and one shows the words.
"""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from records import Study, lognormal
from searchbench.analysis.compare.same_work import SameWork
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import (
    Comparison,
    Curve,
    Estimate,
    Interval,
    Steadiness,
    Step,
    TrialResult,
)
from searchbench.analysis.judgement import TreatmentResult as Treatment
from searchbench.analysis.sweep import points as at
from searchbench.analysis.sweep.compared import Evidence, comparisons
from searchbench.record import open_record
from searchbench.record.trial import Load

RECORDS = 40
WITHIN = 0.002  # standard error of a window, as of 10 s at some thousand requests a second
FIVE = (1, 2, 4, 8, 16)
STEADY = Steadiness("steady", "service time", 10_000, 10.0, {})
NONE = Curve("", (), ())


class Windows:
    """In place of samples: nothing is known of the requests, so all count."""

    def asked(self, trial: str) -> str:
        return ""

    def measured(self, trial: str) -> SimpleNamespace:
        return SimpleNamespace(query=np.zeros(0))


def step(
    name: str, system: str, block: int, n: int, drive: float, rng: np.random.Generator
) -> Step:
    """A drive of level ``drive``, in the logarithm of its speed; what its windows add is WITHIN."""

    def figure(log: float) -> Estimate:
        value, half = 1000 * math.exp(log + WITHIN * rng.standard_normal()), 2.09 * WITHIN
        span = Interval(value * math.exp(-half), value * math.exp(half), 0.95, "")
        return Estimate(value, "", 10_000, span)

    return Step(
        system, system, f"{name}-{block}", name, block, name, "closed", {}, "valid",
        clients_asked=n, answered=figure(drive),
        response={"p50": figure(-drive), "p99": figure(-drive)},
    )  # fmt: skip


def sweep(
    seed: int, noise: float, *, faster: float = 0.0, loads: tuple[int, ...] = FIVE, blocks: int = 1,
    systems: int = 2, curved: float = 0.0, starts: float | None = None,
) -> tuple[Comparison, ...]:  # fmt: skip
    """Every drive has a level of its own, by ``noise``; the last system is faster. ``starts``: each
    block starts every system anew, at a level of that scatter; None: they ran already."""
    rng = np.random.default_rng([seed, 41])
    found: dict[str, list[at.Point]] = {}
    by_id = {}
    for system in range(systems):
        own = []
        begun = np.zeros(blocks) if starts is None else starts * rng.standard_normal(blocks)
        for n in loads:
            who, name = f"s{system}", f"s{system}-{n}"
            level = math.log1p(faster) * (1 + curved * math.log2(n)) if system == systems - 1 else 0
            steps = [
                step(name, who, b, n, level + begun[b] + noise * rng.standard_normal(), rng)
                for b in range(blocks)
            ]
            trials = tuple(
                TrialResult(s.trial, name, s.block, False, "valid", "", {}, {}, (),
                            steadiness=STEADY)
                for s in steps
            )  # fmt: skip
            by_id[name] = Treatment(name, name, f"s{system}", {}, {}, NONE, NONE, trials)
            own.append(at.points(steps, tuple(by_id.values()))[f"s{system}"][0])
        found[f"s{system}"] = own
    loads_of = {name: Load(kind="closed", clients=1) for name in by_id}
    started = frozenset(by_id) if starts is not None else frozenset[str]()
    windows = cast("Any", Windows())
    evidence = Evidence(by_id, loads_of, windows, lambda a, b: SameWork(), {}, started)
    return comparisons(found, evidence)


def told(records: int = RECORDS, **made: Any) -> float:
    """The share of sweeps in which any comparison is resolved."""
    each = (sweep(seed, **made) for seed in range(records))
    return sum(any(c.verdict in ("faster", "slower") for c in one) for one in each) / records


@pytest.mark.parametrize("noise", [0.01, 0.03, 0.05])
@pytest.mark.parametrize("loads", [(4,), (1, 4), (1, 2, 4), FIVE])
def test_equal_systems_whose_steps_were_driven_once_are_not_told_apart(
    noise: float, loads: tuple[int, ...]
) -> None:
    assert told(noise=noise, loads=loads) <= 0.05


@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_four_equal_systems_are_not_told_apart_either(noise: float) -> None:
    assert told(noise=noise, systems=4) <= 0.05


@pytest.mark.parametrize(("loads", "curved"), [((1, 2, 4, 8), 0.0), (FIVE, 0.0), (FIVE, 0.3)])
def test_a_difference_of_30_percent_is_told_where_drives_scatter_by_1(
    loads: tuple[int, ...], curved: float
) -> None:
    """``curved``: it grows with the clients, as far as a line goes."""
    assert told(noise=0.01, faster=0.3, loads=loads, curved=curved) >= 0.9


@pytest.mark.parametrize("starts", [0.02, 0.03, 0.05])
@pytest.mark.parametrize(("loads", "systems"), [((1, 2, 4), 2), (FIVE, 2), (FIVE, 4)])
def test_equal_systems_that_were_started_once_are_not_told_apart(
    starts: float, loads: tuple[int, ...], systems: int
) -> None:
    how: dict[str, Any] = {"noise": 0.002, "loads": loads, "systems": systems}
    assert told(100, starts=starts, **how) <= 0.1, "5 %, and chance"
    if starts == 0.05 and systems == 2:
        assert told(40, starts=None, **how) <= 0.05, "nothing scatters"


def test_starts_that_scatter_are_covered_by_blocks() -> None:
    assert told(100, noise=0.002, loads=(1, 2, 4), blocks=5, starts=0.05) <= 0.08
    assert told(noise=0.002, loads=(1, 2, 4), blocks=5, starts=0.01, faster=0.05) >= 0.8


def test_a_difference_of_40_percent_is_told_of_single_starts() -> None:
    assert told(noise=0.005, loads=(1, 2, 4), starts=0.03, faster=0.4) >= 0.9
    for c in sweep(1, 0.002, loads=(1, 2, 4), starts=0.0, faster=0.1):
        assert c.verdict == "not resolved"
        assert "each was started once, and below 15 % a difference may be that of two starts" in (
            c.reason
        )


def test_steps_of_five_blocks_are_told_apart_as_before() -> None:
    assert told(noise=0.01, faster=0.05, loads=(4,), blocks=5) >= 0.8
    assert told(noise=0.05, loads=(4,), blocks=5) <= 0.05


def test_one_load_that_was_driven_once_is_no_order_whatever_its_size() -> None:
    for c in sweep(1, 0.01, faster=2.0, loads=(4,)):
        assert (c.verdict, c.p_value) == ("not resolved", None)
        assert "each was driven once, and how far two drives of one load differ is not known" in (
            c.reason
        )


def test_a_record_says_what_its_two_drives_show_and_how_to_know_more(tmp_path: Path) -> None:
    run = Study(blocks=1, control=None, judging={"measure": "sweep"}, trial_noise=0.0)
    for name, factor in (("old", 2.0), ("new", 1.0)):
        run.add(name, system=name, server=lognormal(0.004 * factor, 0.1), seconds=8)
    found = judge(open_record(run.write(tmp_path / "r"))).verdict
    assert (found.best, found.resolved) == (None, False)
    said = "By throughput, which of old and new is better is not resolved at their one equal load."
    assert said in found.decision
    assert "In the two drives alone, new is 2" in found.decision
    assert "Drive each several times (`replicates = 5`), or more loads." in found.decision


def of_single_starts(
    path: Path, seed: int, faster: float = 0.0, blocks: int = 1, **treatment: Any
) -> tuple[bool, str | None, str]:
    """Two systems in a sweep, each started once at a speed that scatters by 5 %."""
    rng = np.random.default_rng([seed, 3])
    run = Study(blocks=blocks, control=None, seed=seed, trial_noise=0.002, block_noise=0.0,
                judging={"measure": "sweep"})  # fmt: skip
    for name in ("old", "new"):
        speed = float(np.exp(0.05 * rng.standard_normal())) * (1 + faster * (name == "new"))
        for n in (1, 2, 4):
            run.add(f"{name}{n}", system=name, server=lognormal(0.002 / speed, 0.1), clients=n,
                    seconds=4, levels={"system": name, "load.clients": n}, **treatment)  # fmt: skip
    found = judge(open_record(run.write(path))).verdict
    return found.resolved, found.best, found.decision


def test_records_of_single_starts_name_no_best_of_equal_systems(tmp_path: Path) -> None:
    told_of = [of_single_starts(tmp_path / str(seed), seed) for seed in range(8)]
    assert sum(resolved for resolved, _, _ in told_of) <= 1
    assert sum(best is not None for _, best, _ in told_of) <= 1
    assert "Each system was started once, so no difference below 1" in told_of[0][2]
    resolved, _, decision = of_single_starts(tmp_path / "other", 1, faster=0.6)
    assert resolved, decision


def test_the_answer_about_systems_that_ran_already_says_that_one_start_of_each_was_met(
    tmp_path: Path,
) -> None:
    said = "new and old ran already, so one start of each was measured, however often it was driven"
    ran = {"extra": {"attached": "http://127.0.0.1:1"}}
    resolved, _, decision = of_single_starts(tmp_path / "ran", 1, faster=0.6, blocks=3, **ran)
    assert resolved
    assert said in decision or said.replace("new and old", "old and new") in decision
    _, _, decision = of_single_starts(tmp_path / "started", 1, faster=0.6, blocks=3)
    assert "ran already" not in decision
