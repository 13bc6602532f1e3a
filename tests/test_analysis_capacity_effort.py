"""Searches of little effort: whoever is in front leads, and is not said to sustain more."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from queues import Serve, fixed
from searchbench.analysis.capacity.verdict import above, leads
from searchbench.analysis.compare import builds
from searchbench.analysis.compare.records import compare_records
from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Capacity
from searchbench.report.document.records import of_two_records
from searchbench.report.page import page
from searches import Lab, search

PROMISE = "p99 < 10ms"
PARTS = {"sphinx parts=1": fixed(1, 0.002), "sphinx parts=2": fixed(2, 0.002)}
GAP = builds.alike(1)


def limits(serve: Serve, effort: float, searches: int) -> list[Capacity]:
    """What searches of equal servers found, each begun elsewhere."""
    rng, found = np.random.default_rng(3), []
    for seed in range(searches):
        start = 1740 * float(np.exp(rng.uniform(np.log(0.25), np.log(2))))
        one = search(serve, PROMISE, start, seed=seed, effort=effort).bracket
        found.append(Capacity("s", "s", {}, PROMISE, one.holds, one.fails, "", (), effort=effort))
    return found


@pytest.mark.parametrize("effort", [0.03, 0.3])
def test_of_equal_servers_hardly_ever_one_sustains_more(effort: float) -> None:
    pairs = list(combinations(limits(fixed(4, 0.002), effort, 10), 2))
    assert np.mean([above(a, b, GAP) or above(b, a, GAP) for a, b in pairs]) <= 0.05


@pytest.mark.parametrize("effort", [0.1, 0.3])
def test_intervals_apart_tell_two_only_if_neither_is_of_little_effort(effort: float) -> None:
    low, high = (
        Capacity("s", "s", {}, PROMISE, holds, 1.05 * holds, "", (), effort=own)
        for holds, own in ((400.0, effort), (800.0, 1.0))
    )
    assert leads(high, low, GAP)
    assert above(high, low, GAP) is (effort == 0.3)
    assert not above(low, high, GAP)


@pytest.mark.parametrize("effort", [0.1, 0.3])
def test_a_server_that_is_twice_as_fast_is_resolved_by_enough_effort(
    tmp_path: Path, effort: float
) -> None:
    record = Lab(tmp_path / "r", PARTS, (PROMISE,), effort=effort, look_per_s=450).run()
    verdict = judge(record).verdict
    sure = effort >= 0.3
    assert (verdict.resolved, verdict.best) == (sure, "sphinx parts=2" if sure else None)
    assert (f"With {PROMISE}, sphinx parts=2 sustains more than " in verdict.decision) is sure
    assert (
        f"With {PROMISE}, sphinx parts=2 leads sphinx parts=1 (" in verdict.decision
    ) is not sure
    why = (
        "), which is not resolved: at an effort of 0.1 intervals miss too often; search with "
        "`load.effort` 0.3 or more."
    )
    assert (why in verdict.decision) is not sure


@pytest.mark.parametrize("efforts", [(0.3, 0.1), (0.1, 0.3), (0.3, 0.3)])
def test_a_limit_that_seems_to_have_moved_is_no_regression_if_either_search_was_short(
    tmp_path: Path, efforts: tuple[float, float]
) -> None:
    a, b = (
        Lab(tmp_path / name, {"s": fixed(4, service_s)}, (PROMISE,), effort=effort,
            look_per_s=1000).run()
        for name, service_s, effort in zip("ab", (0.002, 0.004), efforts, strict=True)
    )  # fmt: skip
    found = compare_records(a, b)
    (line,) = found.comparisons
    sure = min(efforts) >= 0.3
    assert (line.verdict, found.beyond_threshold) == (
        ("differs", True) if sure else ("not resolved", False)
    )
    assert ("they do not overlap, which is not resolved: at an effort of 0.1" in line.reason) is (
        not sure
    )
    assert line.ratio is not None
    assert line.ratio.value == pytest.approx(0.4, rel=0.15)
    assert line.ratio.interval is not None
    assert line.ratio.interval.level == (0.95 if sure else 0.7)
    assert (found.lines[0][5] == "-") is not sure
    answer = page(of_two_records(found, a, b)).partition('id="change"')[0]
    rough = [effort < 0.3 for effort in efforts]
    assert re.findall(r"<small>[\d,.–]+/s(, rough)?</small>", answer) == [
        ", rough" if one else "" for one in rough
    ]
    assert ("×, rough</small>" in answer) is not sure
    assert (
        "Rough: an interval of a search of little effort, which held the truth in" in answer
    ) is (not sure)
