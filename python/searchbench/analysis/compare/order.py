"""What the order of the trials within blocks may make of a ratio.

A machine may be faster at the beginning of a block than later: it heats up, its caches fill. If one
of two treatments came first more often, that looks like a difference of the two. Plans run every
second block backwards, but the last block of an odd number has no partner, a trial may be missing,
and older plans drew each order by lot. How much a place in a block changes is seen in all trials of
the study together: value = treatment + block + slope x place, on logs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from searchbench.analysis.compare import asked
from searchbench.analysis.judgement import Estimate, TreatmentResult, TrialResult
from searchbench.analysis.stats.distributions import student
from searchbench.analysis.stats.intervals import LEVEL
from searchbench.analysis.words import plural
from searchbench.study.plan import Trial

SLOWED = 1.5  # by how much whatever lasts for two trials, in which all looks steady, may slow one
Places = Mapping[str, int]  # by trial, which one of its block it was


def places(trials: Sequence[Trial]) -> Places:
    """As planned. A trial that failed had its place too."""
    at: Counter[int] = Counter()
    found = {}
    for trial in trials:
        found[trial.id] = at[trial.block]
        at[trial.block] += 1
    return found


@dataclass(frozen=True, slots=True)
class Effect:
    """``slope``: by how much the log of a value changes from a place to the next; ``half``: half of
    its 95 % interval, infinite where treatments and places cannot be told apart.
    """

    slope: float
    half: float


def effect(treatments: Sequence[TreatmentResult], places: Places, metric: str) -> Effect:
    """By all valid trials of the study, twins among them."""
    trials = [
        (t.treatment, x)
        for t in treatments
        for x in t.trials
        if x.status == "valid" and x.trial in places
        and metric in x.figures and x.figures[metric].value > 0
    ]  # fmt: skip
    if not trials:
        return Effect(0.0, math.inf)
    _, row = np.unique([name for name, _ in trials], return_inverse=True)
    _, column = np.unique([x.block for _, x in trials], return_inverse=True)
    design = np.hstack([np.eye(row.max() + 1)[row], np.eye(column.max() + 1)[column]])
    place = np.array([float(places[x.trial]) for _, x in trials])
    y = np.log([x.figures[metric].value for _, x in trials])
    # What of places and of values is neither treatment nor block.
    solved, _, rank, _ = np.linalg.lstsq(design, np.column_stack([place, y]), rcond=None)
    rest_of_place, rest = (np.column_stack([place, y]) - design @ solved).T
    spread, df = float(rest_of_place @ rest_of_place), len(trials) - int(rank) - 1
    if spread < 1e-9 or df < 1:
        return Effect(0.0, math.inf)
    slope = float(rest_of_place @ rest) / spread
    left = rest - slope * rest_of_place
    error = math.sqrt(float(left @ left) / df / spread)
    return Effect(slope, student(0.5 + LEVEL / 2, df) * error)


def later(a: TreatmentResult, b: TreatmentResult, places: Places) -> float:
    """By how many places b came after a, in the mean over the blocks of both; below 0: before."""
    mine, other = asked.by_block(a), asked.by_block(b)
    each = [
        places[other[k].trial] - places[mine[k].trial]
        for k in mine.keys() & other.keys()
        if mine[k].trial in places and other[k].trial in places
    ]
    return fmean(each) if each else 0.0


def could_turn(ratio: Estimate) -> bool:
    """Whether what slowed the machine for two trials in a row could make a ratio."""
    return max(ratio.value, 1 / ratio.value) <= SLOWED


def at_the_turn(a: TreatmentResult, b: TreatmentResult, places: Places) -> str:
    """Whose trials, of two in all, were the last of one block and the first of the next, as the
    second goes backwards; empty: of neither, or it is not known, or a twin of it that was measured
    at another time tells what the machine did then (the noise floor holds it).
    """
    sides = [asked.by_block(t) for t in (a, b)]
    if not places or len(sides[0].keys() & sides[1].keys()) != 2:
        return ""
    for t, own in zip((a, b), sides, strict=True):
        first, second = (own[block] for block in sorted(sides[0].keys() & sides[1].keys()))
        # A plan names its trials by block, in their order.
        ids = list(places)
        at = ids.index(first.trial), ids.index(second.trial)
        twins = [ids.index(x.trial) for x in t.trials if _twin(x) and x.trial in places]
        if at[1] < at[0] or not {*range(at[0] + 1, at[1])} <= {*twins}:
            continue
        if not any(twin < at[0] - 1 or twin > at[1] + 1 for twin in twins):
            return t.label
    return ""


def _twin(trial: TrialResult) -> bool:
    return trial.control and trial.status == "valid"


def said_of_turn(label: str) -> str:
    """Why a ratio is not resolved."""
    return (
        f"both trials of {label} came one right after the other, so whatever slowed the machine "
        "down for so long would look like this difference"
    )


def could_make(ratio: Estimate, by: float, of: Effect, *, faster: bool) -> bool:
    """Whether coming ``by`` places later could make a ratio, b to a: without what the slope is
    likely to have made, its interval and that of the slope together hold 1. ``faster``: a greater
    value is a better one, as of throughput.
    """
    span = ratio.interval
    if span is None or not by or span.low <= 1 <= span.high:
        return False  # without it no difference shows either
    if math.isinf(of.half):
        return True
    half = math.log(span.high / span.low) / 2 if span.low > 0 else math.inf
    made = by * of.slope * (1 if faster else -1)
    return abs(math.log(ratio.value) - made) <= math.hypot(half, by * of.half)


def said(a: str, b: str, by: float) -> str:
    """Why a ratio is not resolved."""
    first, then = (a, b) if by > 0 else (b, a)
    places = f"{abs(by):.2g} {plural(abs(by) == 1, 'place', 'places')}"
    return (
        f"over the blocks {then} was measured {places} after {first} on average, and a machine "
        "that changes within blocks could make the difference"
    )
