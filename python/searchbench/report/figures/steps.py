"""Latency and throughput against the load: the figures of a sweep, and of a search for capacity.

One line for each configuration, p50 dashed and p99 solid. What is not a point like the others is
marked: a rate that was not kept up by a hollow triangle, a void step by a cross.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import altair as alt

from searchbench.analysis.judgement import Curve, Estimate, Step
from searchbench.analysis.sweep.points import Point, level_of, of_step, points
from searchbench.report.document.text import line
from searchbench.report.figures.curves import log_ticks
from searchbench.report.figures.look import GHOST, INK, MANY, Look
from searchbench.report.figures.plots import (
    Axis,
    Chart,
    Line,
    data,
    draw,
    lines_from,
    six,
    time_axis,
)
from searchbench.report.tables import numbers

BOTH_UP_TO = 3  # configurations of which p50 and p99 share a picture; of more, p99 alone
_X = {"closed": "clients", "open": "requests offered per second", "replay": "times the log's speed"}


@dataclass(frozen=True)
class Loads:
    """The points of a sweep, ready to be drawn: by configuration, and the steps that are void."""

    found: Mapping[str, Sequence[Point]]
    void: tuple[Step, ...]

    @classmethod
    def of(cls, steps: Sequence[Step]) -> Loads:
        """From all steps: of those of the commonest kind, since kinds of load share no axis.

        A search for capacity has other kinds than one: its opening loop is closed.
        """
        kinds = Counter(s.kind for s in steps)
        commonest = max(kinds, key=lambda kind: (kinds[kind], kind != "closed"), default="closed")
        alike = [s for s in steps if s.kind == commonest]
        found = {name: own for name, own in points(alike).items() if own}
        return cls(found, tuple(s for s in alike if s.status == "void"))

    @property
    def kind(self) -> str:
        """Of which kind the loads are."""
        return next((own[0].kind for own in self.found.values()), "closed")

    def void_values(self, *metrics: str) -> list[float]:
        """What void steps have of these metrics, so that their marks have room."""
        values = (of_step(step, metric) for step in self.void for metric in metrics)
        return [value.value for value in values if value is not None]

    @property
    def levels(self) -> list[float]:
        """Every level that was driven."""
        driven = {p.x for own in self.found.values() for p in own}
        return sorted(driven | {level_of(s) for s in self.void})


def against_load(loads: Loads, which: str, look: Look) -> Chart:
    """p50 and p99 of response or service time against the load, a line for each configuration."""
    both = len(loads.found) <= BOTH_UP_TO
    lines: list[Line] = []
    for colour, (subject, own) in enumerate(loads.found.items()):
        for quantile in ("p50", "p99") if both else ("p99",):
            name = quantile if len(loads.found) == 1 else f"{line(subject)} {quantile}"
            made = _line(own, f"{which}_{quantile}", name, "s", loads.kind)
            if made is not None:
                lines.append(replace(made, colour=colour, dashed=both and quantile == "p50"))
    if not lines:
        return None
    values = [v for each in lines for v in (*each.curve.y, *each.curve.low, *each.curve.high)]
    values += loads.void_values(f"{which}_p50", f"{which}_p99")
    y = time_axis(values, f"{which} time (logarithmic)")
    names = [f"{which}_p99", f"{which}_p50"] if both else [f"{which}_p99"]
    return _drawn(lines, loads, y, names, look)


def throughput(loads: Loads, look: Look) -> Chart:
    """Answered per second against the load, beside the line where all offered is answered."""
    lines = []
    for colour, (subject, own) in enumerate(loads.found.items()):
        made = _line(own, "answered", line(subject), "queries/s", loads.kind)
        if made is not None:
            lines.append(replace(made, colour=colour))
    if not lines:
        return None
    values = [v for each in lines for v in (*each.curve.y, *each.curve.high)]
    top = max([*values, *loads.void_values("answered")]) * 1.05 or 1
    y = Axis("answered per second", (0, top), grid=True)
    chart = _drawn(lines, loads, y, ["answered"], look)
    if loads.kind == "open" and len(lines) <= MANY:
        x = _x_axis(loads, look)
        low, high = x.domain
        # A straight line has more than two points where the axis is logarithmic.
        at = [low + (min(high, top) - low) * i / 40 for i in range(41)] if top > low else []
        ideal = alt.Chart(data([{"x": v, "y": v} for v in at])).mark_line(
            stroke=GHOST, strokeDash=[2, 3], strokeWidth=1.2, clip=True, aria=False
        )
        chart = ideal.encode(x.x(), y.y()) + chart
    return chart


def _line(own: Sequence[Point], metric: str, name: str, unit: str, kind: str) -> Line | None:
    """The line of one metric of a configuration; None where it is not known at any load."""
    known = [(p.x, e) for p in own if (e := p.of(metric)) is not None and e.value > 0]
    if not known:
        return None
    ends = [(e.interval.low, e.interval.high) if e.interval else (e.value,) * 2 for _, e in known]
    x, y = (p for p, _ in known), (e.value for _, e in known)
    curve = Curve(name, tuple(x), tuple(y), *(tuple(end) for end in zip(*ends, strict=True)))
    unit_of_x = {"closed": " clients", "open": "/s", "replay": "×"}[kind]
    (made,) = lines_from([curve], [name], lambda v: f"{numbers.digits(v)}{unit_of_x}", unit)
    return made


def _x_axis(loads: Loads, look: Look) -> Axis:
    xs = loads.levels
    log = xs[-1] / xs[0] >= 8
    margin = 0.0 if log else (xs[-1] - xs[0]) * 0.03 or 0.5
    domain = (xs[0] / 1.05, xs[-1] * 1.05) if log else (xs[0] - margin, xs[-1] + margin)
    ticks: tuple[float, ...] = tuple(xs)
    if _crowded(xs, look, log=log):  # round numbers are better then
        ticks = tuple(log_ticks(*domain)) if log else ()
    return Axis(_X[loads.kind], domain, ticks, log=log)


def _crowded(levels: Sequence[float], look: Look, *, log: bool) -> bool:
    """Whether the names of two levels would touch."""
    at = [math.log(x) for x in levels] if log else list(levels)
    if len(at) < 2:
        return False
    nearest = min(b - a for a, b in pairwise(at))
    return nearest / (at[-1] - at[0]) < (0.05 if look.direct_labels else 0.12)


def _drawn(
    lines: Sequence[Line], loads: Loads, y: Axis, metrics: Sequence[str], look: Look
) -> Chart:
    x = _x_axis(loads, look)
    chart = draw(lines, x, y, look, points=True)
    marks = _marks(loads, metrics, y)
    if len(lines) > MANY or not marks:
        return chart
    drawn = alt.Chart(data(marks)).mark_point(
        size=120, strokeWidth=2, color=INK, opacity=1, clip=True
    )
    return chart + drawn.encode(
        x.x(),
        y.y(),
        shape=alt.Shape("shape:N", scale=None, legend=None),
        description="tip:N",
    )


def _marks(loads: Loads, metrics: Sequence[str], y: Axis) -> list[dict[str, Any]]:
    low, high = y.domain
    rows = []
    for name, own in loads.found.items():
        for point in own:
            if point.keeps_up is False:
                rows += [
                    _mark(point.x, value, "triangle-up", f"{line(name)}: not kept up")
                    for metric in metrics
                    if (value := point.of(metric)) is not None
                ]
    for step in loads.void:
        rows += [
            _mark(level_of(step), value, "cross", f"{line(step.subject)}: void")
            for metric in metrics
            if (value := of_step(step, metric)) is not None and low <= value.value <= high
        ]
    return rows


def _mark(x: float, value: Estimate, shape: str, tip: str) -> dict[str, Any]:
    amount = numbers.human(value.value, value.unit)
    return {"x": six(x), "y": six(value.value), "shape": shape, "tip": f"{tip}\n{amount}"}
