"""The two shapes that every figure of lines has: all in one picture, or a panel for each.

Up to ``look.MANY`` lines share one picture, with their names at their ends. More than that, and
each line has a panel of its own, where the others stand behind it in grey.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import orjson

from searchbench.analysis.judgement import Curve
from searchbench.report.document.text import line
from searchbench.report.figures.curves import apart, names, thinned
from searchbench.report.figures.look import GHOST, INK, MANY, SERIES, Look
from searchbench.report.tables import numbers

# Altair has no name for "a chart of whatever composition" that type checkers know.
Chart = Any

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
    dashed: bool = False


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
    short = names([each.name for each in lines], look.label)
    room = 24 + 6.6 * max(map(len, short), default=0) if direct else 0
    width = look.width - 70 - room
    colours = [SERIES[each.colour % len(SERIES)] for each in lines]
    named = len(lines) > 1 and not direct
    legend = alt.Legend(symbolType="stroke", symbolOpacity=1) if named else None
    colour = alt.Color(
        "name:N", scale=alt.Scale(domain=short, range=colours), sort=None, legend=legend
    )
    base = alt.Chart(data(_rows(lines, short)))
    layers: list[Chart] = []
    if any(each.curve.low for each in lines):
        layers.append(_band(base, x, y, colour))
    stroke = base.mark_line(strokeWidth=2, clip=True, aria=False).encode(_x(x), _y(y), colour)
    if any(each.dashed for each in lines):
        dashes = alt.Scale(
            domain=short, range=[[5, 4] if each.dashed else [1, 0] for each in lines]
        )
        stroke = stroke.encode(alt.StrokeDash("name:N", scale=dashes, sort=None, legend=legend))
    layers.append(stroke)
    layers.append(_points(base, x, y, points).encode(color=colour))
    if direct:
        layers += [_leaders(lines, x, y), _end_labels(lines, short, y, look, width)]
    return alt.layer(*layers).properties(width=width, height=look.height)


def panels(lines: Sequence[Line], x: Axis, y: Axis, look: Look, *, points: bool = False) -> Chart:
    """A panel for each line, on the same scales; the others stand behind it in grey."""
    columns = min(look.columns, len(lines))
    width = panel_width(look, columns)
    short = names([each.name for each in lines], panel_letters(width))
    x_axis, y_axis = x.axis(few=True), y.axis(few=True)
    # A layer with data of its own is not divided by the facet, so it is in every panel.
    behind = alt.Chart(data(_ghosts(lines))).mark_line(
        stroke=GHOST, strokeWidth=0.9, opacity=0.7, clip=True, aria=False
    )
    mine = alt.Chart()
    layers = [behind.encode(_x(x, x_axis), _y(y, y_axis), detail="line:N")]
    if any(each.curve.low for each in lines):
        layers.append(_band(mine, x, y, None, (x_axis, y_axis), SERIES[0]))
    stroke = mine.mark_line(strokeWidth=2, clip=True, aria=False, color=SERIES[0])
    layers.append(stroke.encode(_x(x, x_axis), _y(y, y_axis)))
    layers.append(_points(mine, x, y, points, (x_axis, y_axis)))
    panel = alt.layer(*layers).properties(width=width, height=round(width * 0.62))
    return in_panels(panel, data(_rows(lines, short)), short, columns)


def in_panels(panel: Any, rows: alt.InlineData, titles: Sequence[str], columns: int) -> Chart:
    """The panel repeated for each title (the rows' ``name``), in the order of the titles."""
    header = alt.Header(
        title=None,
        labelAnchor="start",
        labelFontWeight="bold",
        labelFontSize=11.5,
        labelColor=INK,
        labelPadding=5,
        labelLimit=400,
    )
    facet = alt.Facet("name:N", sort=list(titles), header=header)
    return panel.facet(facet=facet, data=rows, columns=columns, spacing={"row": 26, "column": 18})


def panel_width(look: Look, columns: int) -> int:
    """The width of one of so many panels side by side, without its axis."""
    return round((look.width - 84 - 18 * (columns - 1)) / columns)


def panel_letters(width: int) -> int:
    """How many letters of a title such a panel has room for."""
    return max(12, int((width + 12) / 6.1))


def data(rows: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    """Rows as one string of JSON, which Altair passes on; a list it would copy many times."""
    text = orjson.dumps(list(rows)).decode()
    return alt.InlineData(values=text, format=alt.JsonDataFormat(type="json"))


def _rows(lines: Sequence[Line], short: Sequence[str]) -> list[dict[str, Any]]:
    """A row a point."""
    rows = []
    for each, name in zip(lines, short, strict=True):
        curve = each.curve
        for i, (x, y) in enumerate(zip(curve.x, curve.y, strict=True)):
            row: dict[str, Any] = {"name": name, "x": six(x), "y": six(y), "tip": each.tips[i]}
            if curve.low and curve.high:
                row |= {"low": six(curve.low[i]), "high": six(curve.high[i])}
            rows.append(row)
    return rows


def _ghosts(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Every line with few points, to stand behind another."""
    thin = [thinned(each.curve, 14) for each in lines]
    return [
        {"line": at, "x": six(x), "y": six(y)}
        for at, curve in enumerate(thin)
        for x, y in zip(curve.x, curve.y, strict=True)
    ]


def six(value: float) -> float:
    """To six digits: the eye sees no more, and the page gets smaller."""
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
    fill: str = INK,
) -> Chart:
    band = base.transform_filter("isValid(datum.low)").mark_area(
        opacity=0.2, strokeWidth=0, clip=True, aria=False, color=fill
    )
    band = band.encode(_x(x, axes[0]), _y(y, axes[1], "low:Q"), alt.Y2("high:Q"))
    return band if colour is None else band.encode(color=colour)


def _points(
    base: alt.Chart,
    x: Axis,
    y: Axis,
    seen: bool,
    axes: tuple[alt.Axis | None, alt.Axis | None] = (None, None),
) -> Chart:
    """Points that say what they are; unseen ones are there for the pointer alone."""
    if seen:
        mark = base.mark_point(filled=True, size=34, opacity=1, color=SERIES[0])
    else:
        mark = base.mark_square(size=100, opacity=0, color=SERIES[0])
    return mark.encode(_x(x, axes[0]), _y(y, axes[1]), description="tip:N")


def _leaders(lines: Sequence[Line], x: Axis, y: Axis) -> Chart:
    """From the end of a line that stops early, for want of samples, to its name."""
    right = x.domain[1]
    rows = [
        {
            "x": each.curve.x[-1],
            "end": right,
            "y": each.curve.y[-1],
            "colour": SERIES[each.colour % len(SERIES)],
        }
        for each in lines
        if each.curve.x[-1] < right * 0.98
    ]
    mark = alt.Chart(data(rows)).mark_rule(strokeDash=[1, 4], strokeWidth=1.5, aria=False)
    colour = alt.Color("colour:N", scale=None, legend=None)
    return mark.encode(_x(x), _y(y), x2="end:Q", color=colour)


def _end_labels(
    lines: Sequence[Line], short: Sequence[str], y: Axis, look: Look, width: float
) -> Chart:
    """The lines' names to the right of their ends, moved apart where they would overlap."""
    ends = [_pixel(each.curve.y[-1], y, look.height) for each in lines]
    placed = apart(ends, 14, 2, look.height - 2)
    rows = [
        {"name": name, "place": place, "colour": SERIES[each.colour % len(SERIES)]}
        for each, name, place in zip(lines, short, placed, strict=True)
    ]
    return (
        alt.Chart(data(rows))
        .mark_text(align="left", baseline="middle", fontSize=12, fontWeight="bold", aria=False)
        .encode(
            x=alt.value(width + 8),
            y=alt.Y("place:Q", scale=None, axis=None),
            text="name:N",
            color=alt.Color("colour:N", scale=None, legend=None),
        )
    )


def _pixel(value: float, axis: Axis, height: float) -> float:
    low, high = axis.domain
    if axis.log:
        value, low, high = math.log(value), math.log(low), math.log(high)
    share = (value - low) / (high - low) if high > low else 0.5
    return height * (1 - min(1.0, max(0.0, share)))
