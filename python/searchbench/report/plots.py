"""The two shapes that every figure of lines has: all in one picture, or a panel for each.

Up to ``look.MANY`` lines share one picture, with their names at their ends. More than that, and
each line has a panel of its own, where the others stand behind it in grey.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt

from searchbench.analysis.judgement import Curve
from searchbench.report import numbers
from searchbench.report.curves import apart, names
from searchbench.report.look import GHOST, MANY, SERIES, Look
from searchbench.report.text import line

Chart = alt.Chart | alt.LayerChart | alt.VConcatChart | alt.ConcatChart

# d3's ".3~g" never yields powers of ten here, because each unit ends where the next begins.
TIME_LABELS = (
    "datum.value >= 1 ? format(datum.value, '.3~g') + ' s' : "
    "datum.value >= 0.001 ? format(datum.value * 1e3, '.3~g') + ' ms' : "
    "datum.value >= 0.000001 ? format(datum.value * 1e6, '.3~g') + ' µs' : "
    "datum.value == 0 ? '0' : format(datum.value * 1e9, '.3~g') + ' ns'"
)
COUNT_LABELS = "datum.value >= 100000 ? format(datum.value, '.3~s') : format(datum.value, ',.4~r')"


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: its title with the unit, its domain and ticks, how its ticks are named."""

    title: str
    domain: tuple[float, float]
    ticks: tuple[float, ...] = ()
    labels: str = COUNT_LABELS
    log: bool = False
    unit: str = ""
    grid: bool = False

    def scale(self) -> alt.Scale:
        """The scale for Vega-Lite."""
        kind: Any = "log" if self.log else "linear"
        return alt.Scale(type=kind, domain=list(self.domain), nice=False, zero=False)

    def axis(self, *, titled: bool = True, few: bool = False) -> alt.Axis:
        """The axis for Vega-Lite; ``few``: for a small panel."""
        options: dict[str, Any] = {"labelExpr": self.labels, "grid": self.grid}
        ticks = self.ticks
        if few and self.log and len(ticks) > 5:
            decades = tuple(t for t in ticks if f"{t:e}".startswith("1.0"))
            ticks = decades if len(decades) > 1 else ticks[::2]
        if ticks:
            options["values"] = list(ticks)
        elif few:
            options["tickCount"] = 3
        return alt.Axis(title=self.title if titled else None, **options)


@dataclass(frozen=True, slots=True)
class Line:
    """One line to be drawn: its curve, the full name, a colour index, what each point says."""

    curve: Curve
    name: str
    colour: int
    tips: tuple[str, ...]


def lines_from(
    curves: Sequence[Curve], labels: Sequence[str], x_name: Any, y_unit: str
) -> list[Line]:
    """Lines with a tip a point: the name, x by ``x_name``, y and its interval for people."""
    lines = []
    for i, (curve, name) in enumerate(zip(curves, map(line, labels), strict=True)):
        tips = []
        for at, (x, y) in enumerate(zip(curve.x, curve.y, strict=True)):
            tip = f"{name}\n{x_name(x)}: {numbers.human(y, y_unit)}"
            if curve.low and curve.high:
                low, high = (numbers.human(v[at], y_unit) for v in (curve.low, curve.high))
                tip += f" ({low} to {high})"
            tips.append(tip)
        lines.append(Line(curve, name, i, tuple(tips)))
    return lines


def draw(lines: Sequence[Line], x: Axis, y: Axis, look: Look, *, points: bool = False) -> Chart:
    """All lines in one picture, or a panel for each if they are many."""
    if len(lines) > MANY:
        return panels(lines, x, y, look, points=points)
    return together(lines, x, y, look, points=points)


def together(lines: Sequence[Line], x: Axis, y: Axis, look: Look, *, points: bool) -> Chart:
    """One picture; names at the lines' ends on a wide one, below it on a narrow one."""
    direct = look.direct_labels and len(lines) > 1
    short = names([line.name for line in lines], look.label)
    room = 24 + 6.2 * max(map(len, short), default=0) if direct else 0
    width = look.width - 70 - room
    colours = [SERIES[line.colour % len(SERIES)] for line in lines]
    named = len(lines) > 1 and not direct
    legend = alt.Legend(symbolType="stroke", symbolOpacity=1) if named else None
    colour = alt.Color(
        "name:N", scale=alt.Scale(domain=short, range=colours), sort=None, legend=legend
    )
    rows = [row for line, name in zip(lines, short, strict=True) for row in _rows(line, name)]
    base = alt.Chart(_data(rows))
    layers: list[alt.Chart] = []
    if any("low" in row for row in rows):
        layers.append(_band(base, x, y, colour))
    layers.append(base.mark_line(strokeWidth=2, clip=True).encode(_x(x), _y(y), colour))
    layers.append(_points(base, x, y, points).encode(color=colour))
    if direct:
        layers.append(_end_labels(lines, short, x, y, look, width))
    return alt.layer(*layers).properties(width=width, height=look.height)


def panels(lines: Sequence[Line], x: Axis, y: Axis, look: Look, *, points: bool = False) -> Chart:
    """A panel for each line, on the same scales; the others stand behind it in grey."""
    columns = min(look.columns, len(lines))
    width = (look.width - 62 - 22 * columns) / columns - (14 if columns > 1 else 0)
    short = names([line.name for line in lines], max(12, int(width / 6.4)))
    ghosts = [row for line in lines for row in _rows(line, line.name, every=2)]
    behind = alt.Chart(_data(ghosts)).mark_line(
        stroke=GHOST, strokeWidth=0.9, opacity=0.7, clip=True, aria=False
    )
    drawn = []
    for i, (line, name) in enumerate(zip(lines, short, strict=True)):
        bottom = i >= len(lines) - columns
        axes = (
            x.axis(titled=bottom, few=True),
            y.axis(titled=i % columns == 0, few=True),
        )
        base = alt.Chart(_data(_rows(line, name)))
        layers = [behind.encode(_x(x, axes[0]), _y(y, axes[1]), detail="name:N")]
        colour = alt.value(SERIES[0])
        if line.curve.low:
            layers.append(_band(base, x, y, colour, axes))
        layers.append(
            base.mark_line(strokeWidth=2, clip=True).encode(
                _x(x, axes[0]), _y(y, axes[1]), color=colour
            )
        )
        layers.append(_points(base, x, y, points, axes).encode(color=colour))
        drawn.append(
            alt.layer(*layers).properties(
                width=width, height=width * 0.62, title=alt.TitleParams(text=name)
            )
        )
    return alt.concat(*drawn, columns=columns, spacing=18)


def _data(rows: Any) -> alt.Data:
    return alt.Data(values=rows)


def _rows(line: Line, name: str, every: int = 1) -> list[dict[str, Any]]:
    rows = []
    curve = line.curve
    for i, (x, y) in enumerate(zip(curve.x, curve.y, strict=True)):
        if i % every and i != len(curve.x) - 1:
            continue
        row: dict[str, Any] = {"name": name, "x": _six(x), "y": _six(y), "tip": line.tips[i]}
        if curve.low and curve.high:
            row |= {"low": _six(curve.low[i]), "high": _six(curve.high[i])}
        rows.append(row)
    return rows


def _six(value: float) -> float:
    # What the eye sees needs no more, and the page gets smaller.
    return float(f"{value:.6g}")


def _x(axis: Axis, drawn: alt.Axis | None = None) -> alt.X:
    return alt.X("x:Q", scale=axis.scale(), axis=drawn or axis.axis())


def _y(axis: Axis, drawn: alt.Axis | None = None, field: str = "y:Q") -> alt.Y:
    return alt.Y(field, scale=axis.scale(), axis=drawn or axis.axis())


def _band(
    base: alt.Chart,
    x: Axis,
    y: Axis,
    colour: Any,
    axes: tuple[alt.Axis | None, alt.Axis | None] = (None, None),
) -> alt.Chart:
    band = base.transform_filter("isValid(datum.low)").mark_area(
        opacity=0.2, strokeWidth=0, clip=True, aria=False
    )
    return band.encode(_x(x, axes[0]), _y(y, axes[1], "low:Q"), alt.Y2("high:Q"), color=colour)


def _points(
    base: alt.Chart,
    x: Axis,
    y: Axis,
    seen: bool,
    axes: tuple[alt.Axis | None, alt.Axis | None] = (None, None),
) -> alt.Chart:
    """Points that say what they are; unseen ones are there for the pointer alone."""
    mark = base.mark_point(
        filled=True, size=34 if seen else 60, opacity=1 if seen else 0, clip=False
    )
    return mark.encode(_x(x, axes[0]), _y(y, axes[1]), description="tip:N")


def _end_labels(
    lines: Sequence[Line], short: Sequence[str], x: Axis, y: Axis, look: Look, width: float
) -> alt.Chart:
    """The lines' names to the right of their ends, moved apart where they would overlap."""
    ends = [_pixel(line.curve.y[-1], y, look.height) for line in lines]
    placed = apart(ends, 14, 2, look.height - 2)
    rows = [
        {"name": name, "place": place, "colour": SERIES[line.colour % len(SERIES)]}
        for line, name, place in zip(lines, short, placed, strict=True)
    ]
    return (
        alt.Chart(_data(rows))
        .mark_text(align="left", baseline="middle", fontSize=12, fontWeight="bold")
        .encode(
            x=alt.value(width + 8),
            y=alt.Y("place:Q", scale=None, axis=None),
            text="name:N",
            color=alt.Color("colour:N", scale=None, legend=None),
        )
    )


def _pixel(value: float, axis: Axis, height: float) -> float:
    import math

    low, high = axis.domain
    if axis.log:
        value, low, high = math.log(value), math.log(low), math.log(high)
    share = (value - low) / (high - low) if high > low else 0.5
    return height * (1 - min(1.0, max(0.0, share)))


__all__ = [
    "COUNT_LABELS",
    "INK",
    "SOFT",
    "TIME_LABELS",
    "Axis",
    "Line",
    "draw",
    "panels",
    "replace",
]
