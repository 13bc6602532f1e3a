"""Machines that change within blocks: the order of trials makes no difference of equal systems."""

from __future__ import annotations

import math
from typing import Any

import pytest
from benches import judge_verdicts

from searchbench.analysis.compare import order
from searchbench.analysis.judgement import Estimate, Interval, TreatmentResult, TrialResult

NOISE = (0.005, 0.005)


def resolved(**made: Any) -> float:
    return judge_verdicts.resolved(150, sds=NOISE, **made)


@pytest.mark.parametrize("by_lot", [True, False])
@pytest.mark.parametrize("blocks", [2, 3])
@pytest.mark.parametrize("change", [{"place": 0.03}, {"first": 0.02}])
def test_a_machine_that_changes_within_blocks_favours_nobody(
    by_lot: bool, blocks: int, change: dict[str, float]
) -> None:
    """Of 2,000 studies of three blocks, with orders by lot, 5.5 % were resolved, at 3 % a place."""
    assert resolved(blocks=blocks, by_lot=by_lot, **change) <= 0.05


def test_a_difference_is_found_all_the_same() -> None:
    assert resolved(blocks=5, faster=0.05, place=0.002) > 0.9


def test_what_cannot_be_told_from_the_order_decides_nothing() -> None:
    ratio = Estimate(1.1, "ratio", 3, Interval(1.08, 1.12, 0.95, "t"))
    unknown = order.Effect(0.0, math.inf)
    assert order.could_make(ratio, 1.0, unknown, faster=True)
    assert not order.could_make(ratio, 0.0, unknown, faster=True), "both came as early"
    assert order.could_make(ratio, 2.0, order.Effect(0.05, 0.02), faster=True)
    assert not order.could_make(ratio, 2.0, order.Effect(0.05, 0.02), faster=False)
    assert not order.could_make(ratio, 0.3, order.Effect(0.05, 0.02), faster=True)
    assert "b was measured 1 place after a" in order.said("a", "b", 1.0)
    assert "a was measured 0.33 places after b" in order.said("a", "b", -1 / 3)


@pytest.mark.parametrize(
    ("trials", "label"),
    [
        ("a b | b a", "b"),
        ("a b | a b", ""),
        ("a b b' | b a a'", "b"),  # the twin was there at that time too
        ("b' a b | b a a'", ""),  # it tells what the machine did at another time
        ("a b | b a a'", "b"),  # that of a tells nothing of b
        ("a b | b a | a b", ""),
    ],
)
def test_of_two_blocks_both_trials_of_one_may_come_in_a_row(trials: str, label: str) -> None:
    """A spell of the machine that lasts for two trials looks like a difference then."""
    own: dict[str, list[TrialResult]] = {"a": [], "b": []}
    places = {}
    for block, names in enumerate(trials.split(" | ")):
        for at, name in enumerate(names.split()):
            trial = judge_verdicts._trial(name[0], block, name.endswith("'"), 0.0)
            own[name[0]].append(trial)
            places[trial.trial] = at
    none = judge_verdicts.NONE
    a, b = (
        TreatmentResult(name, name, name, {}, {}, none, none, tuple(of)) for name, of in own.items()
    )
    assert order.at_the_turn(a, b, places) == label
