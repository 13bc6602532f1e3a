"""The two shapes that every figure of lines has: all in one picture, or a panel for each.

Up to ``look.MANY`` lines share one picture, with their names at their ends. More than that, and
each line has a panel of its own, where the others stand behind it in grey.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import orjson

from searchbench.analysis.judgement import Curve
from searchbench.report.document.text import line
from searchbench.report.figures.curves import apart, log_domain, log_ticks, names, thinned
from searchbench.report.figures.look import GHOST, INK, MANY, SERIES, SOFT, Look
from searchbench.report.tables import numbers

# Altair has no name for "a chart of whatever composition" that type checkers know.
Chart = Any

# d3's ".3~g" never yields powers of ten here, because each unit ends where the next begins.
TIME_LABELS = (
    "datum.value >= 1 ? format(datum.value, ',.3~r') + ' s' : "
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
    grid: bool = False

    def x(self, field: str = "x:Q", *, few: bool = False) -> alt.X:
        """A field along this axis, from left to right; ``few`` ticks: for a small panel."""
        return alt.X(field, scale=self._scale(), axis=self._axis(few=few))

    def y(self, field: str = "y:Q", *, few: bool = False) -> alt.Y:
        """A field along this axis, upwards; ``few`` ticks: for a small panel."""
        return alt.Y(field, scale=self._scale(), axis=self._axis(few=few))

    def _scale(self) -> alt.Scale:
        kind: Any = "log" if self.log else "linear"
        return alt.Scale(type=kind, domain=list(self.domain), nice=False, zero=False)

    def _axis(self, *, few: bool) -> alt.Axis:
        options: dict[str, Any] = {"labelExpr": self.labels, "grid": self.grid}
        ticks = self.ticks
        if few and self.log and len(ticks) > 5:
            decades = tuple(t for t in ticks if f"{t:e}".startswith("1.0"))
            ticks = decades if len(decades) > 1 else ticks[::2]
        if ticks:
            options["values"] = list(ticks)
        elif few:
            options["tickCount"] = 3
        return alt.Axis(title=self.title, **options)


def time_axis(values: Iterable[float], title: str) -> Axis:
    """A logarithmic axis of seconds with room for all ``values`` that can stand on it."""
    low, high = log_domain([v for v in values if v > 0 and math.isfinite(v)] or [1e-3, 1.0])
    return Axis(title, (low, high), tuple(log_ticks(low, high)), TIME_LABELS, log=True, grid=True)


@dataclass(frozen=True, slots=True)
class Line:
    """One line to be drawn: its curve, the full name, a colour index, what each point says.

    ``breaks``: x of places, in ascending order, that the line does not cross.
    """

    curve: Curve
    name: str
    colour: int
    tips: tuple[str, ...]
    dashed: bool = False
    breaks: tuple[float, ...] = ()


def two_lines(found: Sequence[tuple[str, tuple[Curve, Curve]]]) -> list[Line]:
    """For each label a solid and a dashed line of times in seconds, over seconds."""
    return [
        Line(
            curve, name := f"{line(label)}, {curve.label}", colour,
            tuple(f"{name}\n{numbers.digits(x)} s: {numbers.human(y, 's')}"
                  for x, y in zip(curve.x, curve.y, strict=True)),
            dashed,
        )
        for colour, (label, curves) in enumerate(found)
        for curve, dashed in zip(curves, (False, True), strict=True)
    ]  # fmt: skip


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
    made = _panels if len(lines) > MANY else _together
    return made(lines, x, y, look, points=points)


def _together(lines: Sequence[Line], x: Axis, y: Axis, look: Look, *, points: bool) -> Chart:
    """One picture; names at the lines' ends on a wide one, below it on a narrow one."""
    direct = look.direct_labels and len(lines) > 1
    short = names([each.name for each in lines], look.label)
    room = 24 + 6.6 * max(map(len, short), default=0) if direct else 0
    width = look.width - 70 - room
    colours = [SERIES[each.colour % len(SERIES)] for each in lines]
    named = len(lines) > 1 and not direct
    legend = alt.Legend(symbolType="stroke", symbolOpacity=1) if named else None
    scale = alt.Scale(domain=short, range=colours)
    own: dict[str, Any] = {"color": alt.Color("name:N", scale=scale, sort=None, legend=legend)}
    dashes = dict(own)
    if any(each.dashed for each in lines):
        scale = alt.Scale(domain=short, range=[[5, 4] if each.dashed else [1, 0] for each in lines])
        dashes["strokeDash"] = alt.StrokeDash("name:N", scale=scale, sort=None, legend=legend)
    base = alt.Chart(data(_rows(lines, short)))
    layers = _line(base, lines, x, y, own, dashes, points=points)
    if direct:
        layers += [_leaders(lines, x, y), _end_labels(lines, short, y, look, width)]
    return alt.layer(*layers).properties(width=width, height=look.height)


def under(above: Chart, lines: Sequence[Line], x: Axis, y: Axis, height: int) -> Chart:
    """A chart with a low one under it, so that a second stands below the same second.

    The low one has the colours of the one above, and no names of its own.
    """
    short = [str(at) for at in range(len(lines))]
    own, stroke = (
        alt.Scale(domain=short, range=chosen)
        for chosen in (
            [SERIES[each.colour % len(SERIES)] for each in lines],
            [[5, 4] if each.dashed else [1, 0] for each in lines],
        )
    )
    colour = {"color": alt.Color("name:N", scale=own, sort=None, legend=None)}
    dashes = {"strokeDash": alt.StrokeDash("name:N", scale=stroke, sort=None, legend=None)}
    base = alt.Chart(data(_rows(lines, short)))
    layers = _line(base, lines, x, y, colour, colour | dashes, points=False, few=True)
    width = above.vconcat[0].width if isinstance(above, alt.VConcatChart) else above.width
    low = alt.layer(*layers).properties(width=width, height=height)
    return alt.vconcat(above, low).resolve_scale(color="independent", strokeDash="independent")


def _panels(lines: Sequence[Line], x: Axis, y: Axis, look: Look, *, points: bool) -> Chart:
    """A panel for each line, on the same scales; the others stand behind it in grey."""
    columns, width, short = room_for_panels([each.name for each in lines], look)
    # A layer with data of its own is not divided by the facet, so it is in every panel.
    behind = alt.Chart(data(_ghosts(lines))).mark_line(
        stroke=GHOST, strokeWidth=0.9, opacity=0.7, clip=True, aria=False
    )
    ghosts = behind.encode(x.x(few=True), y.y(few=True), detail="line:N")
    mine = _line(alt.Chart(), lines, x, y, {}, {}, points=points, few=True)
    panel = alt.layer(ghosts, *mine).properties(width=width, height=round(width * 0.62))
    return in_panels(panel, data(_rows(lines, short)), short, columns)


def _line(
    base: alt.Chart,
    lines: Sequence[Line],
    x: Axis,
    y: Axis,
    own: Mapping[str, Any],
    stroke: Mapping[str, Any],
    *,
    points: bool,
    few: bool = False,
) -> list[Chart]:
    """Band, line, and points that say what they are; unseen ones are for the pointer alone.

    ``own``: channels of all three, ``stroke``: those of the line.
    """
    at = (x.x(few=few), y.y(few=few))
    layers = []
    if any(each.curve.low for each in lines):
        band = base.transform_filter("isValid(datum.low)").mark_area(
            opacity=0.2, strokeWidth=0, clip=True, aria=False, color=SERIES[0]
        )
        layers.append(band.encode(at[0], y.y("low:Q", few=few), alt.Y2("high:Q"), **own))
    drawn = base.mark_line(strokeWidth=2, clip=True, aria=False, color=SERIES[0])
    if any(each.breaks for each in lines):
        base = base.transform_filter("isValid(datum.y)")
    if points:
        mark = base.mark_point(filled=True, size=34, opacity=1, color=SERIES[0])
    else:
        mark = base.mark_square(size=100, opacity=0, color=SERIES[0])
    return [*layers, drawn.encode(*at, **stroke), mark.encode(*at, description="tip:N", **own)]


def room_for_panels(labels: Sequence[str], look: Look) -> tuple[int, int, list[str]]:
    """How many panels stand side by side, how wide each is without its axis, and their titles."""
    columns = min(look.columns, len(labels))
    width = round((look.width - 84 - 18 * (columns - 1)) / columns)
    return columns, width, names(labels, max(12, int((width + 12) / 6.1)))


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


def ruled(channel: Any) -> Chart:
    """A dashed line across the picture where ``channel`` (of the field "at") is one."""
    rule = alt.Chart(data([{"at": 1}])).mark_rule(color=SOFT, strokeDash=[3, 3], aria=False)
    return rule.encode(channel)


def whiskered(
    rows: Sequence[Mapping[str, Any]], at: Sequence[Any], ends: Sequence[Any], colour: Any
) -> list[Chart]:
    """A dot for each row that says what it is, and its interval from low to high if it has one.

    ``at`` and ``ends``: where dots and intervals are.
    """
    base = alt.Chart(data(rows))
    whisker = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, aria=False)
    dots = base.mark_point(filled=True, size=70, opacity=1)
    return [
        whisker.encode(*ends, color=colour),
        dots.encode(*at, color=colour, description="tip:N"),
    ]


def data(rows: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    """Rows as one string of JSON, which Altair passes on; a list it would copy many times."""
    text = orjson.dumps(list(rows)).decode()
    return alt.InlineData(values=text, format=alt.JsonDataFormat(type="json"))


def _rows(lines: Sequence[Line], short: Sequence[str]) -> list[dict[str, Any]]:
    """A row a point, and one without y for each place that a line does not cross."""
    rows: list[dict[str, Any]] = []
    for each, name in zip(lines, short, strict=True):
        curve = each.curve
        rows += ({"name": name, "x": six(x), "y": None} for x in each.breaks)
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
    return mark.encode(x.x(), y.y(), x2="end:Q", color=colour)


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
