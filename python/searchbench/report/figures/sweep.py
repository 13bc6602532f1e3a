"""The figures of a load run: latency and throughput against the load, and the search for capacity.

One line a system, p50 dashed and p99 whole. What is no point like the others is marked: a rate
that was not kept up by a hollow triangle, a void step by a cross.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import altair as alt

from searchbench.analysis.judgement import Capacity, Curve, Estimate, Step
from searchbench.analysis.sweep.points import Point, level_of, of_step, points
from searchbench.report.document.text import line
from searchbench.report.figures.curves import log_domain, log_ticks
from searchbench.report.figures.look import GHOST, INK, MANY, MARK, SERIES, SHADE, SOFT, Look
from searchbench.report.figures.plots import (
    TIME_LABELS,
    Axis,
    Chart,
    Line,
    data,
    draw,
    lines_from,
    six,
)
from searchbench.report.tables import numbers

BOTH_UP_TO = 3  # systems of which p50 and p99 share a picture; of more, p99 alone
_COLOURS = {"holds": SERIES[2], "fails": SERIES[1], "unclear": MARK, "void": GHOST}
_X = {"closed": "clients", "open": "requests offered per second", "replay": "times the log's speed"}


@dataclass(frozen=True)
class Loads:
    """The points of a load run, ready to be drawn: by system, and the steps that are void."""

    found: Mapping[str, Sequence[Point]]
    void: tuple[Step, ...]

    @classmethod
    def of(cls, steps: Sequence[Step]) -> Loads:
        """From all steps of the run."""
        found = {name: own for name, own in points(steps).items() if own}
        return cls(found, tuple(s for s in steps if s.status == "void"))

    @property
    def kind(self) -> str:
        """Of which kind the loads are."""
        return next((own[0].kind for own in self.found.values()), "closed")

    def void_values(self, *metrics: str) -> list[float]:
        """What void steps have of these metrics, so that their marks have room."""
        told = (of_step(step, metric) for step in self.void for metric in metrics)
        return [value.value for value in told if value is not None]

    @property
    def levels(self) -> list[float]:
        """Every level that was driven."""
        told = {p.x for own in self.found.values() for p in own}
        return sorted(told | {level_of(s) for s in self.void})


def against_load(loads: Loads, which: Literal["response", "service"], look: Look) -> Chart:
    """p50 and p99 of response or service time against the load, a line a system."""
    both = len(loads.found) <= BOTH_UP_TO
    lines: list[Line] = []
    for colour, (system, own) in enumerate(loads.found.items()):
        for quantile in ("p50", "p99") if both else ("p99",):
            name = quantile if len(loads.found) == 1 else f"{line(system)} {quantile}"
            made = _line(own, f"{which}_{quantile}", name, "s", loads.kind)
            if made is not None:
                lines.append(replace(made, colour=colour, dashed=both and quantile == "p50"))
    if not lines:
        return None
    values = [v for each in lines for v in (*each.curve.y, *each.curve.low, *each.curve.high)]
    values += loads.void_values(f"{which}_p50", f"{which}_p99")
    low, high = log_domain([v for v in values if v > 0 and math.isfinite(v)] or [1e-3, 1.0])
    title = f"{which} time (logarithmic)"
    y = Axis(title, (low, high), tuple(log_ticks(low, high)), TIME_LABELS, log=True, unit="s",
             grid=True)  # fmt: skip
    names = [f"{which}_p99", f"{which}_p50"] if both else [f"{which}_p99"]
    return _drawn(lines, loads, y, names, look)


def throughput(loads: Loads, look: Look) -> Chart:
    """Answered per second against the load, a line a system; where all offered is answered."""
    lines = []
    for colour, (system, own) in enumerate(loads.found.items()):
        made = _line(own, "answered", line(system), "queries/s", loads.kind)
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
        chart = ideal.encode(_at(x), alt.Y("y:Q", scale=y.scale(), axis=y.axis())) + chart
    return chart


def capacity(found: Capacity, look: Look) -> Chart:
    """Every probe of a search: how much of what the promise allows was used up, by rate."""
    told = [p for p in found.probes if p.excess is not None]
    if not told:
        return None
    floor = 0.01  # of the allowance; what is below is as good as none
    rows: list[dict[str, Any]] = []
    for p in told:
        assert p.excess is not None
        row: dict[str, Any] = {
            "x": six(p.rate_per_s), "y": six(max(floor, p.excess)), "verdict": p.verdict,
            "tip": f"{numbers.human(p.rate_per_s, '1/s')}: {p.verdict}\n"
            f"{numbers.digits(p.excess)} times what {p.condition} allows",
        }  # fmt: skip
        if p.excess_low is not None and p.excess_high is not None:
            row |= {"low": six(max(floor, p.excess_low)), "high": six(max(floor, p.excess_high))}
        rows.append(row)
    ends = [v for v in (found.holds, found.fails) if v is not None and v > 0]
    rates = [*(r["x"] for r in rows), *ends]
    low, high = min(rates) / 1.06, max(rates) * 1.06
    least = min(r.get("low", r["y"]) for r in rows)
    most = max([2.0, *(r.get("high", r["y"]) for r in rows)])
    x_title = "requests offered per second (logarithmic)"
    ticks = [t for t in log_ticks(low, high) if low <= t <= high] or sorted(set(rates))
    x = Axis(x_title, (low, high), tuple(ticks), log=True)
    bottom, top = log_domain([least, most])
    y = Axis("times what is allowed", (bottom, top), tuple(log_ticks(bottom, top)),
             "format(datum.value, '.3~r') + '×'", log=True, grid=True)  # fmt: skip
    layers: list[Chart] = []
    if found.holds is not None and found.fails is not None:
        band = alt.Chart(data([{"from": found.holds, "to": found.fails}]))
        layers.append(band.mark_rect(color=SHADE, aria=False, clip=True).encode(
            x=alt.X("from:Q", scale=x.scale(), axis=x.axis()), x2="to:Q"))  # fmt: skip
    y_at = alt.Y("y:Q", scale=y.scale(), axis=y.axis())
    one = alt.Chart(data([{"y": 1.0}]))
    layers.append(one.mark_rule(color=SOFT, strokeDash=[3, 3], aria=False).encode(y=y_at))
    seen = [v for v in _COLOURS if any(r["verdict"] == v for r in rows)]
    scale = alt.Scale(domain=seen, range=[_COLOURS[v] for v in seen])
    legend = alt.Legend(symbolType="circle", direction="horizontal", columns=4)
    colour = alt.Color("verdict:N", scale=scale, sort=None, legend=legend)
    base = alt.Chart(data(rows))
    whisker = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, aria=False)
    low_at = alt.Y("low:Q", scale=y.scale(), axis=y.axis())
    layers.append(whisker.encode(_at(x), low_at, alt.Y2("high:Q"), color=colour))
    dots = base.mark_point(filled=True, size=70, opacity=1)
    layers.append(dots.encode(_at(x), y_at, color=colour, description="tip:N"))
    return alt.layer(*layers).properties(width=look.width - 80, height=look.height)


def _line(own: Sequence[Point], metric: str, name: str, unit: str, kind: str) -> Line | None:
    told: list[tuple[float, Estimate]] = []
    for point in own:
        value = point.of(metric)
        if value is not None and value.value > 0:
            told.append((point.x, value))
    if not told:
        return None
    x, y = [x for x, _ in told], [e.value for _, e in told]
    spans = [e.interval for _, e in told]
    low = [s.low if s else e.value for s, (_, e) in zip(spans, told, strict=True)]
    high = [s.high if s else e.value for s, (_, e) in zip(spans, told, strict=True)]
    curve = Curve(name, tuple(x), tuple(y), tuple(low), tuple(high))
    unit_of_x = {"closed": " clients", "open": "/s", "replay": "×"}[kind]
    (made,) = lines_from([curve], [name], lambda v: f"{numbers.digits(v)}{unit_of_x}", unit)
    return made


def _x_axis(loads: Loads, look: Look) -> Axis:
    xs = loads.levels
    log = xs[-1] / xs[0] >= 8
    margin = 0.0 if log else (xs[-1] - xs[0]) * 0.03 or 0.5
    domain = (xs[0] / 1.05, xs[-1] * 1.05) if log else (xs[0] - margin, xs[-1] + margin)
    most = 12 if look.direct_labels else 6
    step = math.ceil(len(xs) / most)
    ticks = tuple(xs) if step == 1 else tuple(log_ticks(*domain) if log else xs[::step])
    return Axis(_X[loads.kind], domain, ticks, log=log)


def _at(x: Axis) -> alt.X:
    return alt.X("x:Q", scale=x.scale(), axis=x.axis())


def _drawn(
    lines: Sequence[Line], loads: Loads, y: Axis, metrics: Sequence[str], look: Look
) -> Chart:
    x = _x_axis(loads, look)
    chart = draw(lines, x, y, look, points=True)
    marks = _marks(loads, metrics, y)
    if len(lines) > MANY or not marks:
        return chart
    told = alt.Chart(data(marks)).mark_point(
        size=120, strokeWidth=2, color=INK, opacity=1, clip=True
    )
    return chart + told.encode(
        _at(x),
        alt.Y("y:Q", scale=y.scale(), axis=y.axis()),
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
            _mark(level_of(step), value, "cross", f"{line(step.system)}: void")
            for metric in metrics
            if (value := of_step(step, metric)) is not None and low <= value.value <= high
        ]
    return rows


def _mark(x: float, value: Estimate, shape: str, tip: str) -> dict[str, Any]:
    said = numbers.human(value.value, value.unit)
    return {"x": six(x), "y": six(value.value), "shape": shape, "tip": f"{tip}\n{said}"}
