"""Figures of the roles: the readers' times with what went on, and commit to visible."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import altair as alt

from searchbench.analysis.roles.model import OverTime, RoleResult
from searchbench.report.document.text import line
from searchbench.report.figures.curves import names
from searchbench.report.figures.look import INK, SERIES, SOFT, Look
from searchbench.report.figures.plots import (
    Axis,
    Chart,
    Line,
    data,
    draw,
    six,
    time_axis,
    two_lines,
    under,
    whiskered,
)
from searchbench.report.tables import numbers

_LEAST_SHARE = 0.002  # of the axis: what is shorter is drawn so wide
_LEAST_S = 1e-5
_BELOW = 70  # the height of what is drawn under the times


def over_time(found: Sequence[tuple[str, OverTime]], look: Look) -> Chart:
    """A solid and a dashed line for each treatment; what went on is shaded behind.

    Below, where a fault came over any: good answers a second; where the rate of a writer changes:
    documents a second, dashed as they were due, solid as they were acknowledged.
    """
    found = [(label, over) for label, over in found if len(over.tail.x) > 1]
    if not found:
        return None
    lines = [
        replace(each, breaks=_without_answers(found[each.colour][1]))
        for each in two_lines([(label, (over.tail, over.median)) for label, over in found])
    ]
    end = max(max(over.window[1], over.end_s) for _, over in found)
    x = Axis("seconds since the start of the drive", (0, end))
    y = time_axis([v for each in lines for v in each.curve.y], "response")
    times = draw(lines, x, y, look)
    shades = [
        {"x": six(e.start_s), "end": six(min(end, max(e.end_s, e.start_s + _LEAST_SHARE * end))),
         "tip": f"{label}: {e.name}, {numbers.human(e.end_s - e.start_s, 's')}"}
        for label, over in found for e in over.events if e.start_s < end
    ]  # fmt: skip
    if not isinstance(times, alt.LayerChart):
        return times
    width, height = times.width, times.height
    band = alt.Chart(data(shades)).mark_rect(opacity=0.25, color=SOFT)
    behind = band.encode(x.x("x:Q"), x2="end:Q", description="tip:N")
    drawn: Chart = times
    if shades:
        drawn = alt.layer(behind, times).properties(width=width, height=height)
    good = [
        Line(over.good, f"{line(label)}, good answers", at,
             tuple(f"{numbers.digits(s)} s: {numbers.digits(n)}/s"
                   for s, n in zip(over.good.x, over.good.y, strict=True)))
        for at, (label, over) in enumerate(found) if over.good is not None
    ]  # fmt: skip
    if good:
        top = max(n for each in good for n in each.curve.y)
        drawn = under(drawn, good, x, Axis("good answers/s", (0, max(1.0, top * 1.1))), _BELOW)
    if wrote := list(_written(found)):
        top = max(n for each in wrote for n in each.curve.y)
        drawn = under(drawn, wrote, x, Axis("documents/s", (0, max(1.0, top * 1.1))), _BELOW)
    return drawn


def _written(found: Sequence[tuple[str, OverTime]]) -> Iterator[Line]:
    """Of each writer whose rate changes what was due and what was acknowledged."""
    for at, (label, over) in enumerate(found):
        if over.written is None:
            continue
        for curve, dashed in ((over.written.offered, True), (over.written.acknowledged, False)):
            tips = tuple(
                f"{numbers.digits(s)} s: {numbers.digits(n)} documents/s"
                for s, n in zip(curve.x, curve.y, strict=True)
            )
            yield Line(curve, f"{line(label)}, {curve.label}", at, tips, dashed=dashed)


def _without_answers(over: OverTime) -> tuple[float, ...]:
    """When nothing that was due was answered well: the server was down."""
    good = over.good
    return () if good is None else tuple(x for x, y in zip(good.x, good.y, strict=True) if not y)


def visible(results: Sequence[RoleResult], look: Look) -> Chart:
    """A dot for each quantile of each treatment, with its interval, on a logarithmic axis.

    Of those that are not told apart from nought there is nothing to draw.
    """
    found = [
        (r, name, e)
        for r in results
        if r.visible is not None
        for name, e in r.visible.quantiles.items()
        if math.isfinite(e.value) and e.interval is not None and e.interval.low > 0
    ]
    if not found:
        return None
    labels = [f"{r.label}, {name}" for r, name, _ in found]
    cut = names(labels, 44 if look.direct_labels else 20)
    rows: list[dict[str, Any]] = []
    for short, (r, name, e) in zip(cut, found, strict=True):
        tip = f"{line(r.label)}, {name}\n{numbers.human(e.value, 's')}"
        row: dict[str, Any] = {"name": short, "s": six(max(_LEAST_S, e.value)), "tip": tip}
        if e.interval is not None and math.isfinite(e.interval.high):
            row |= {"low": six(max(_LEAST_S, e.interval.low)), "high": six(e.interval.high)}
        rows.append(row)
    x = time_axis([row[k] for row in rows for k in ("s", "low", "high") if k in row], "seconds")
    y = alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelColor=INK, labelLimit=320))
    room = min(round(5.8 * max(map(len, cut))), 320) + 26
    return alt.layer(
        *whiskered(rows, (x.x("s:Q"), y), (x.x("low:Q"), alt.X2("high:Q"), y), alt.value(SERIES[0]))
    ).properties(width=look.width - room, height=alt.Step(26))
