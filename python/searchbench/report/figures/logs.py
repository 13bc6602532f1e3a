"""Figures of a log: how times are distributed, by words, over the time of the log."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import altair as alt

from searchbench.analysis.logs.model import LogJudgement, Row
from searchbench.analysis.logs.remarks import seconds
from searchbench.analysis.logs.tenths import Tenth, tenths
from searchbench.report.document.text import short
from searchbench.report.figures.look import GHOST, SERIES, Look
from searchbench.report.figures.plots import TIME_LABELS, Chart, data, six, time_axis

_LETTER = 6  # pixels of a letter below an axis
_SHOWN = ("p50", "p95", "p99")


def distribution(of: LogJudgement, look: Look) -> Chart:
    """The share of searches by time: bars of a tenth of a decade, and the cumulative line.

    What lies below the resolution of the log is one bar, a decade wide, for nothing is known of it.
    """
    found = [one for one in tenths(of.spread) if one.share]
    if not found:
        return None
    bars = [_bar(one) for one in found]
    rise = [
        {
            "x": six(one.high_s),
            "y": six(one.within),
            "tip": f"{100 * one.within:.4g} % within {seconds(one.high_s)}",
        }
        for one in found
    ]
    axis = time_axis([bars[0]["from"], bars[-1]["to"]], "time")
    scale = alt.Scale(type="log", domain=list(axis.domain), nice=False)
    ticks = alt.Axis(title=None, values=list(axis.ticks), labelExpr=TIME_LABELS)
    x = alt.X("from:Q", scale=scale, axis=ticks)
    height = look.height // 2
    frequency = alt.Chart(data(bars)).mark_bar(color=SERIES[0], opacity=1).encode(
        x, alt.X2("to:Q"), y2=alt.Y2("floor:Q"), description="tip:N",
        y=alt.Y("height:Q", axis=alt.Axis(title="share by tenth of a decade", format=".0%")),
    ).properties(width=look.width - 70, height=height)  # fmt: skip
    dots = alt.OverlayMarkDef(color=SERIES[1])
    cumulative = alt.Chart(data(rise)).mark_line(color=SERIES[1], point=dots).encode(
        alt.X("x:Q", scale=scale, axis=ticks), description="tip:N",
        y=alt.Y("y:Q", scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(title="share within", format=".0%")),
    ).properties(width=look.width - 70, height=height)  # fmt: skip
    return alt.vconcat(frequency, cumulative, spacing=8)


def _bar(one: Tenth) -> dict[str, Any]:
    """A bar; its height is the share by a tenth of a decade."""
    a, b = one.low_s, one.high_s
    where = f"below {seconds(b)}" if one.below else f"{seconds(a)} to {seconds(b)}"
    return {
        "from": six(a), "to": six(b), "height": six(one.height), "floor": 0,
        "tip": f"{where}: {100 * one.share:.3g} %, {round(one.n):,} searches",
    }  # fmt: skip


def by_group(rows: tuple[Row, ...], look: Look, floor_s: float | None) -> Chart:
    """p50, p95 and p99 of each group, in the order given; below the resolution at its place."""
    least = floor_s or 1e-6
    points: list[dict[str, Any]] = [
        {
            "group": short(row.name, look.label) or "(none)",
            "of": name,
            "y": six(value or least),
            "tip": f"{row.name}: {name} {seconds(value, floor_s)}, {row.n:,} searches",
        }
        for row in rows
        for name in _SHOWN
        if (value := row.quantiles_s.get(name)) is not None
    ]
    if len(rows) < 2 or not points:
        return None
    order = list(dict.fromkeys(point["group"] for point in points))
    fits = len(order) * (max(map(len, order)) * _LETTER + 8) <= look.width - 70
    angle = 0 if fits else -40 if look.direct_labels else -90
    axis = time_axis([point["y"] for point in points], "time")
    return (
        alt.Chart(data(points))
        .mark_line(point=alt.OverlayMarkDef(size=40))
        .encode(
            alt.X("group:N", sort=order, axis=alt.Axis(title=None, labelAngle=angle)),
            axis.y(),
            alt.Color("of:N", sort=list(_SHOWN),
                      scale=alt.Scale(domain=list(_SHOWN), range=list(SERIES[:3])),
                      legend=alt.Legend(orient="top", direction="horizontal", columns=3)),
            description="tip:N",
        )
        .properties(width=look.width - 70, height=look.height)
    )  # fmt: skip


def over_time(of: LogJudgement, look: Look) -> Chart:
    """The rate, and below it the mean and the worst minute's p95, over the time of the log."""
    if len(of.over) < 2:
        return None
    rows: list[dict[str, Any]] = []
    by_time = {moment.at_s: moment for moment in of.over}
    timed_at = {at_s for at_s, moment in by_time.items() if moment.mean_s}
    alone = {at_s for at_s in timed_at if not timed_at & {at_s - of.step_s, at_s + of.step_s}}
    for second in range(of.over[0].at_s, of.over[-1].at_s + 1, of.step_s):
        moment = by_time.get(second)
        at = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        rate = moment.n / of.step_s if moment else 0.0
        rows.append({"t": at, "what": "rate", "y": six(rate)})
        for what, value in (
            ("mean", moment.mean_s if moment else None),
            ("p95 of the worst minute, at most", moment.p95_at_most_s if moment else None),
        ):
            y = six(value) if value else None
            rows.append({"t": at, "what": what, "y": y, "alone": second in alone})
    days = (of.over[-1].at_s - of.over[0].at_s) / 86_400
    form = "%H:%M" if days < 1 else "%m-%d %H:%M" if days < 5 else "%Y-%m-%d"
    x = alt.X("t:T", axis=alt.Axis(title=None, labelOverlap=True, tickCount=6, format=form))
    base = alt.Chart(data(rows))
    rate_line = (
        base.transform_filter("datum.what == 'rate'")
        .mark_area(color=GHOST, line={"color": SERIES[0]})
        .encode(x, alt.Y("y:Q", axis=alt.Axis(title="searches a second")))
        .properties(width=look.width - 70, height=look.height // 2)
    )
    timed = [row["y"] for row in rows if row["what"] != "rate" and row["y"]]
    if not timed:
        return rate_line
    names = ["mean", "p95 of the worst minute, at most"]
    of_times = base.transform_filter("datum.what != 'rate'")
    channels = (
        x,
        time_axis(timed, "time").y(),
        alt.Color("what:N", scale=alt.Scale(domain=names, range=[SERIES[2], SERIES[1]]),
                  legend=alt.Legend(orient="bottom", direction="horizontal", columns=2)),
    )  # fmt: skip
    # A moment between two without times is no line, and needs a point.
    points = of_times.transform_filter("datum.alone").mark_point(filled=True, size=12, opacity=1)
    times = alt.layer(of_times.mark_line().encode(*channels), points.encode(*channels))
    sized = times.properties(width=look.width - 70, height=look.height // 2)
    return alt.vconcat(rate_line, sized, spacing=8)
