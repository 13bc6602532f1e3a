"""How the times of groups are distributed: how often each occurs, and the share within a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import altair as alt

from searchbench.analysis.judgement import Curve
from searchbench.analysis.logs.model import LogJudgement, Row
from searchbench.analysis.logs.remarks import seconds
from searchbench.analysis.logs.tenths import Tenth, tenths
from searchbench.report.document.text import short
from searchbench.report.figures.curves import thinned
from searchbench.report.figures.look import MANY, MARK, SERIES, Look
from searchbench.report.figures.plots import (
    Axis,
    Chart,
    Line,
    data,
    draw,
    in_panels,
    room_for_panels,
    six,
    time_axis,
)

PANELS = 9  # groups that are drawn; more would make the page heavy and tell nobody more
ENOUGH = 20  # times of a group whose distribution is drawn
_POINTS = 110  # of all lines of a figure; one line has 30 at most
_NAME = 60  # letters of a group in what a point says; tables have the whole name
_PERCENT = "format(datum.value, '.0%')"


def drawn(rows: Sequence[Row]) -> list[Row]:
    """The first groups with enough times, in the order given."""
    return [row for row in rows if row.times is not None and row.times.count >= ENOUGH][:PANELS]


def panels(of: LogJudgement, rows: Sequence[Row], look: Look) -> Chart:
    """A panel for each group: its share by tenth of a decade, before that of all searches."""
    shown = drawn(rows)
    if len(shown) < 2:
        return None
    found = [tenths(row.times) for row in shown if row.times is not None]
    every = tenths(of.spread)
    columns, width, titles = room_for_panels([_named(row) for row in shown], look)
    ends = [end for each in (*found, every) for end in (each[0].low_s, each[-1].high_s)]
    x = _few(replace(time_axis(ends, ""), grid=False), look)
    top = max(one.height for each in (*found, every) for one in each)
    y = Axis("", (0.0, top * 1.05), (), _PERCENT, grid=True)
    behind = alt.Chart(data(_steps(every))).mark_line(
        interpolate="step-after", stroke=MARK, strokeWidth=1, clip=True, aria=False
    )
    own = [
        {**point, "name": title, "tip": _tip(row, row.resolution_s or of.resolution_s)}
        for row, title, each in zip(shown, titles, found, strict=True)
        for point in _steps(each)
    ]
    area = alt.Chart().mark_area(
        interpolate="step-after", color=SERIES[0], opacity=0.75, clip=True, strokeWidth=0
    ).encode(x.x(few=True), y.y(few=True), description="tip:N")  # fmt: skip
    ghost = behind.encode(x.x(few=True), y.y(few=True))
    panel = alt.layer(area, ghost).properties(width=width, height=round(width * 0.5))
    return in_panels(panel, data(own), titles, columns)


def within(rows: Sequence[Row], look: Look) -> Chart:
    """The share of searches within a time: a line for each group; of many, a panel for each."""
    shown = drawn(rows)
    if len(shown) < 2:
        return None
    lines = []
    for at, row in enumerate(shown):
        each = [one for one in tenths(row.times) if one.within] if row.times else []
        points = [one for one in each if one.share or one is each[-1]]
        curve = Curve(row.name, tuple(p.high_s for p in points), tuple(p.within for p in points))
        curve = thinned(curve, min(30, _POINTS // len(shown)))
        tips = tuple(
            f"{_named(row)}\n{100 * share:.4g} % within {seconds(limit)}"
            for limit, share in zip(curve.x, curve.y, strict=True)
        )
        lines.append(Line(curve, _named(row), at, tips))
    many = len(lines) > MANY
    x = time_axis([value for one in lines for value in one.curve.x], "" if many else "time")
    x = _few(x, look) if many else x
    y = Axis(
        "" if many else "share within", (0.0, 1.0), (0.0, 0.25, 0.5, 0.75, 1.0), _PERCENT, grid=True
    )
    # All lines end at the top, so names there would not say which is which.
    return draw(lines, x, y, replace(look, direct_labels=False))


def _few(axis: Axis, look: Look) -> Axis:
    """The axis with as many ticks as a panel has room for."""
    room = 5 if look.columns > 2 else 3
    decades = tuple(tick for tick in axis.ticks if f"{tick:e}".startswith("1.0"))
    if len(decades) < 2 or len(axis.ticks) <= room:
        return axis
    step = -(-len(decades) // room)
    return replace(axis, ticks=decades[(len(decades) - 1) % step :: step])


def _named(row: Row) -> str:
    return short(row.name, _NAME) or "(none)"


def _tip(row: Row, resolution_s: float | None) -> str:
    told = ", ".join(
        f"{name} {seconds(row.quantiles_s.get(name), resolution_s)}"
        for name in ("p50", "p95", "p99")
    )
    return f"{_named(row)}: {row.n:,} searches, {told}"


def _steps(found: Sequence[Tenth]) -> list[dict[str, Any]]:
    """The outline of bars, from its first edge to its last."""
    points = [{"x": six(one.low_s), "y": six(one.height)} for one in found]
    return [*points, {"x": six(found[-1].high_s), "y": six(found[-1].height)}]
