"""Which treatments are compared with each other: decided by the plan alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

from searchbench.analysis.judgement import TreatmentResult

ALL_PAIRS_UP_TO = 6  # treatments; beyond, only pairs that differ in one factor


def family(
    treatments: Sequence[TreatmentResult], also: Collection[tuple[str, str]] = ()
) -> list[tuple[str, str]]:
    """The pairs to be compared, decided by the plan alone and never by the results.

    All pairs up to six treatments. Beyond, those that differ in exactly one factor: of
    a numeric one only neighbouring levels, of others all. A method of an operation and the system
    are one factor where neither system is asked by the other's method of this operation. What
    answers one operation is compared with nothing that answers another, or that draws other rows.
    ``also``: pairs that the question of the study is about, however many treatments there are.
    """
    asked_for = {frozenset(pair) for pair in also}
    both = [
        (a, b)
        for a, b in combinations(treatments, 2)
        if a.levels.get("operation") == b.levels.get("operation")
        and (a.draws == b.draws or not (a.draws and b.draws))
    ]
    if len(treatments) <= ALL_PAIRS_UP_TO:
        return [(a.treatment, b.treatment) for a, b in both]
    pairs = []
    # Two operations may have methods of one name, which are then two methods.
    asked = {(t.levels.get("operation"), t.system, t.levels.get("method")) for t in treatments}
    for a, b in both:
        if frozenset((a.treatment, b.treatment)) in asked_for:
            pairs.append((a.treatment, b.treatment))
            continue
        factors = [f for f in {**a.levels, **b.levels} if a.levels.get(f) != b.levels.get(f)]
        if {"system", "method"} <= {*factors}:
            of = a.levels.get("operation")
            crossed = {(of, x.system, y.levels.get("method")) for x, y in ((a, b), (b, a))}
            if not crossed & asked:
                factors.remove("method")
        if len(factors) == 1 and _neighbours(factors[0], a, b, treatments):
            pairs.append((a.treatment, b.treatment))
    return pairs


def _neighbours(
    factor: str, a: TreatmentResult, b: TreatmentResult, all_of: Sequence[TreatmentResult]
) -> bool:
    levels = {t.levels[factor] for t in all_of if factor in t.levels}
    if not all(isinstance(x, int | float) and not isinstance(x, bool) for x in levels):
        return True
    if factor not in a.levels or factor not in b.levels:
        return False
    ordered = sorted(float(x) for x in levels)
    return abs(ordered.index(float(a.levels[factor])) - ordered.index(float(b.levels[factor]))) == 1


def asking(treatments: Sequence[TreatmentResult]) -> frozenset[str]:
    """The factors that decide what operations draw, such as their number of rows: all treatments
    that draw the same have one level of each, and others have another.
    """
    levels: dict[str, dict[str, set[object]]] = {}
    for t in treatments:
        for factor, level in t.levels.items():
            if t.draws and factor not in ("system", "operation", "method"):
                levels.setdefault(factor, {}).setdefault(t.draws, set()).add(level)
    return frozenset(
        factor
        for factor, by_draws in levels.items()
        if all(len(each) == 1 for each in by_draws.values())
        and len(set().union(*by_draws.values())) > 1
    )
