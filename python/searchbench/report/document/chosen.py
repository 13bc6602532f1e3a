"""Which of the many comparisons and curves are drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from searchbench.analysis.judgement import Comparison, Judgement, Scale
from searchbench.report.tables import study as tables


def shown_comparisons(judgement: Judgement, metric: str) -> list[Comparison]:
    """By the deciding metric: the best against every other if it has met all, else all pairs."""
    found = [c for c in judgement.comparisons if c.metric == metric and c.ratio is not None]
    ranked = tables.ranked(judgement, metric)
    first = judgement.verdict.best or (ranked[0].treatment if ranked else "")
    met = [_of(first, c) for c in found if first in (c.a, c.b)]
    order = [t.treatment for t in ranked]
    if len(met) >= len(judgement.treatments) - 1 or len(met) == len(found):
        return sorted(met, key=lambda c: order.index(c.a))
    return found[:24]


def _of(first: str, c: Comparison) -> Comparison:
    """The same comparison with ``first`` as its b, so that the ratio is of it over the other."""
    if c.b == first or c.ratio is None or c.ratio.value <= 0:
        return c
    i = c.ratio.interval
    if i is not None and i.low > 0:
        i = replace(i, low=1 / i.high, high=1 / i.low)
    turned: dict[str, Literal["faster", "slower"]] = {"faster": "slower", "slower": "faster"}
    return replace(
        c,
        a=c.b,
        b=c.a,
        verdict=turned.get(c.verdict, c.verdict),
        ratio=replace(c.ratio, value=1 / c.ratio.value, interval=i),
    )


def scales_of(judgement: Judgement) -> tuple[Scale, ...]:
    """The scaling curves with their units; throughput first, as the section says."""
    if judgement.scales:
        return tuple(sorted(judgement.scales, key=lambda s: s.metric != "throughput"))
    return tuple(
        Scale(factor, "throughput", "queries/s", {}, curve, curve.x[0])
        for factor, curves in judgement.scaling.items()
        for curve in curves
        if curve.x
    )
