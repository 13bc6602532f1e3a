"""The figures: one function each, from a judgement to an Altair chart. No I/O.

Each takes the ``Look`` it is for, and gives None where the judgement has nothing to show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt

from searchbench.analysis.judgement import Comparison, Curve, Judgement, Scale, TrialResult
from searchbench.report.document.text import line
from searchbench.report.figures.curves import against, by_nines, drawable, names, nines, thinned
from searchbench.report.figures.look import GHOST, INK, MANY, MARK, SERIES, SHADE, Look
from searchbench.report.figures.plots import (
    Axis,
    Chart,
    data,
    draw,
    in_panels,
    lines_from,
    room_for_panels,
    ruled,
    six,
    time_axis,
    whiskered,
)
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import title_of

QUANTILE_TICKS = (0.5, 0.9, 0.99, 0.999, 0.9999)


def latency(
    judgement: Judgement, which: Literal["service", "response"], look: Look, most: int = 0
) -> Chart:
    """Quantiles of service or response time, a line a treatment.

    The quantile axis is logarithmic in 1 − q, so the tail has as much room as the middle; the
    time axis is logarithmic too. Bands are the quantiles' intervals. ``most`` points a line.
    """
    most = most or (60 if len(judgement.treatments) <= MANY else 36)
    found = [(t.label, by_nines(getattr(t, which), most)) for t in judgement.treatments]
    found = [(label, curve) for label, curve in found if len(curve.x) > 1]
    if not found:
        return None
    curves = [curve for _, curve in found]
    right = max(curve.x[-1] for curve in curves)
    y = time_axis([v for c in curves for v in (*c.y, *c.low, *c.high)], f"{which} time")
    room = look.direct_labels and len(found) <= MANY
    x = Axis(
        "quantile (share of requests that took at most this long)" if room else "quantile",
        (0, max(right, 1.0)),
        tuple(at for at in map(nines, QUANTILE_TICKS) if at <= right + 0.01),
        "datum.value < 0.5 ? 'p50' : datum.value < 1.5 ? 'p90' : datum.value < 2.5 ? 'p99' : "
        "datum.value < 3.5 ? 'p99.9' : 'p99.99'",
        grid=True,
    )
    lines = lines_from(curves, [label for label, _ in found], _quantile_at, "s")
    return draw(lines, x, y, look)


def scaling(scales: Sequence[Scale], look: Look) -> Chart:
    """One metric against the levels of one factor, a line a combination of the held levels.

    ``scales``: those of one factor and one metric.
    """
    found = [(s, drawable(s.curve)) for s in scales]
    found = [(s, curve) for s, curve in found if len(curve.x) > 1]
    if not found:
        return None
    curves = [curve for _, curve in found]
    factor, unit, metric = found[0][0].factor, found[0][0].unit, found[0][0].metric
    xs = sorted({x for c in curves for x in c.x})
    log = xs[0] > 0 and xs[-1] / xs[0] >= 8
    margin = 0.0 if log else (xs[-1] - xs[0]) * 0.03
    x = Axis(line(factor), (xs[0] - margin, xs[-1] + margin), tuple(xs), log=log)
    # One wide band must not make all points one line at the bottom.
    most = max(v for c in curves for v in c.y) * (10 if unit == "s" else 2)
    ys = [v for c in curves for v in (*c.y, *(min(high, most) for high in c.high))]
    if unit == "s":
        y = time_axis(ys, f"{title_of(metric)} (logarithmic)")
    else:
        title = f"{title_of(metric)}, {line(unit)}" if unit else title_of(metric)
        y = Axis(title, (0, max(ys) * 1.05 or 1), grid=True)
    lines = lines_from(
        curves,
        [c.label or title_of(metric) for c in curves],
        lambda level: f"{line(factor)} = {numbers.digits(level)}",
        unit,
    )
    return draw(lines, x, y, look, points=True)


def warmup(judgement: Judgement, windows: Mapping[str, tuple[float, float]], look: Look) -> Chart:
    """How each trial came to its steady state: a panel a treatment, a line a trial.

    Each line is relative to its own mean over the measured window, so that slow treatments are
    seen as well as fast ones. ``windows``: the measured window of each trial in seconds since the
    drive began; it is shaded, so that one sees that what was measured had settled.
    """
    shown = [
        (t.label, [r for r in t.trials if r.warmup is not None and len(r.warmup.x) > 1])
        for t in judgement.treatments
    ]
    shown = [(label, trials) for label, trials in shown if trials]
    if not shown:
        return None
    columns, width, short = room_for_panels([label for label, _ in shown], look)
    rows = [
        row
        for name, (_, trials) in zip(short, shown, strict=True)
        for trial in trials
        for row in _warmup_rows(trial, name, windows.get(trial.trial))
    ]
    for name, (_, trials) in zip(short, shown, strict=True):
        own = [windows[t.trial] for t in trials if t.trial in windows]
        rows += [{"name": name, "from": start, "to": end} for start, end in joined(own)]
    what = next(r.warmup.label for _, trials in shown for r in trials if r.warmup)
    last = max((row["x"] for row in rows if "x" in row), default=1.0)
    top = max((row["y"] for row in rows if "y" in row), default=1.0)
    panel = _warmup_panel(what, look, (0, last), (0, min(max(top * 1.05, 1.25), 4.0)))
    panel = panel.properties(width=width, height=max(90, width // 2))
    return in_panels(panel, data(rows), short, columns)


def machine(
    judgement: Judgement,
    seen: Mapping[str, tuple[TrialResult, Sequence[Curve]]],
    windows: Mapping[str, tuple[float, float]],
    look: Look,
) -> Chart:
    """What the machine did in one trial of each treatment: a panel each, over the warm-up's time.

    ``seen``: by treatment a trial and its curves, shares of the time. ``windows``: as in
    ``warmup``.
    """
    shown = [(t.label, *seen[t.treatment]) for t in judgement.treatments if t.treatment in seen]
    kinds = list(dict.fromkeys(curve.label for _, _, curves in shown for curve in curves))
    if not kinds:
        return None
    columns, width, short = room_for_panels([label for label, *_ in shown], look)
    rows: list[dict[str, Any]] = []
    for name, (_, trial, curves) in zip(short, shown, strict=True):
        for curve in curves:
            fewer = thinned(curve, 60)
            rows += [
                {"name": name, "what": curve.label, "x": six(x), "y": six(y)}
                for x, y in zip(fewer.x, fewer.y, strict=True)
            ]
        if window := windows.get(trial.trial):
            rows.append({"name": name, "from": max(0.0, window[0]), "to": window[1]})
    last = max((row["x"] for row in rows if "x" in row), default=1.0)
    x_scale = alt.Scale(domain=[0, last], nice=False)
    x_axis = alt.Axis(title="seconds since the first request" if look.direct_labels else "seconds",
                      tickCount=4)  # fmt: skip
    share = alt.Axis(title="share of the time", values=[0, 0.5, 1], grid=True, format=".0%")
    scale = alt.Scale(domain=kinds, range=list(SERIES[: len(kinds)]))
    legend = alt.Legend(title=None, orient="top", symbolType="stroke", symbolOpacity=1)
    window_of = alt.Chart().transform_filter("isValid(datum.from)")
    lines = alt.Chart().transform_filter("isValid(datum.y)").mark_line(strokeWidth=1.4, clip=True)
    panel = alt.layer(
        window_of.mark_rect(color=GHOST, opacity=0.25, aria=False, clip=True).encode(
            alt.X("from:Q", scale=x_scale, axis=x_axis), x2="to:Q"
        ),
        lines.encode(
            alt.X("x:Q", scale=x_scale, axis=x_axis),
            alt.Y("y:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=share),
            color=alt.Color("what:N", scale=scale, sort=None,
                            legend=legend if len(kinds) > 1 else None),
            description="what:N",
        ),
    ).properties(width=width, height=max(70, width // 3))  # fmt: skip
    return in_panels(panel, data(rows), short, columns)


def differences(comparisons: Sequence[Comparison], labels: Mapping[str, str], look: Look) -> Chart:
    """Ratios with their intervals, the noise floor shaded: what is resolved stands clear of it."""
    rows: list[dict[str, Any]] = []
    one = len({c.b for c in comparisons}) == 1
    for c in comparisons:
        if c.ratio is None or c.ratio.value <= 0:
            continue
        interval, other = c.ratio.interval, line(labels.get(c.a, c.a))
        name = other if one else against(line(labels.get(c.b, c.b)), other)
        row: dict[str, Any] = {
            "name": name,
            "ratio": c.ratio.value,
            "resolved": c.verdict in ("faster", "slower"),
            "tip": f"{name}\n{numbers.digits(c.ratio.value)} times, {c.verdict}",
        }
        if interval and interval.low > 0:
            row |= {"low": interval.low, "high": interval.high}
        rows.append(row)
    if not rows:
        return None
    cut = names([row["name"] for row in rows], 44 if look.direct_labels else 20)
    for row, name in zip(rows, cut, strict=True):
        row["name"] = name
    floor = max([1.0, *(c.floor for c in comparisons if math.isfinite(c.floor))])
    values = [v for r in rows for v in (r["ratio"], r.get("low", 1), r.get("high", 1))]
    low, high = min([*values, 1 / floor]) / 1.05, max([*values, floor]) * 1.05
    ticks = sorted({1.0, *ratio_ticks(low, high)})
    title, times = "ratio (right of 1×: better)", "format(datum.value, '.3~r') + '×'"
    x = Axis(title, (low, high), tuple(ticks), times, log=True, grid=True)
    y = alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelColor=INK, labelLimit=320))
    colour = alt.condition("datum.resolved", alt.value(SERIES[0]), alt.value(MARK))
    noise = alt.Chart(data([{"from": 1 / floor, "to": floor}])).mark_rect(color=SHADE, aria=False)
    layers = [noise.encode(x.x("from:Q"), x2="to:Q"), ruled(x.x("at:Q"))]
    layers += whiskered(rows, (x.x("ratio:Q"), y), (x.x("low:Q"), alt.X2("high:Q"), y), colour)
    room = min(round(5.8 * max(map(len, cut))), 320) + 26
    return alt.layer(*layers).properties(width=look.width - room, height=alt.Step(26))


def _warmup_rows(
    trial: TrialResult, name: str, window: tuple[float, float] | None
) -> list[dict[str, Any]]:
    """The points of a trial's curve; a row for when it was steady."""
    if trial.warmup is None:
        return []
    whole = drawable(trial.warmup)
    start, end = window or (0.0, math.inf)
    inside = [y for x, y in zip(whole.x, whole.y, strict=True) if start <= x < end] or whole.y
    level = sum(inside) / len(inside) if inside else 0.0
    curve = thinned(whole, 60)
    rows: list[dict[str, Any]] = [
        {"name": name, "trial": line(trial.trial), "x": six(x), "y": six(y / (level or 1.0))}
        for x, y in zip(curve.x, curve.y, strict=True)
    ]
    if trial.steady_from_s is not None:
        tip = f"{line(trial.trial)}\nat one level from {numbers.human(trial.steady_from_s, 's')}"
        rows.append({"name": name, "steady": trial.steady_from_s, "tip": tip})
    return rows


def _warmup_panel(
    what: str, look: Look, x_domain: tuple[float, float], y_domain: tuple[float, float]
) -> Chart:
    """One panel of the warm-up figure; its data come with the facet."""
    title = "throughput" if what == "throughput" else "median response time"
    x_scale = alt.Scale(domain=list(x_domain), nice=False)
    x_title = "seconds since the first request" if look.direct_labels else "seconds"
    x_axis = alt.Axis(title=x_title, tickCount=4)
    ticks = [0, 0.5, 1, 1.5, 2, 3]
    y_axis = alt.Axis(title=f"{title}, relative", values=ticks, grid=True, format=".3~r")
    y: dict[str, Any] = {"scale": alt.Scale(domain=list(y_domain), nice=False), "axis": y_axis}

    def of(field: str) -> alt.Chart:
        return alt.Chart().transform_filter(f"isValid(datum.{field})")

    def x(field: str) -> alt.X:
        return alt.X(field, scale=x_scale, axis=x_axis)

    measured = of("from").mark_rect(color=GHOST, opacity=0.25, aria=False, clip=True)
    trace = of("y").mark_line(strokeWidth=1.2, opacity=0.65, clip=True, color=SERIES[0])
    steady = of("steady").mark_point(
        shape="triangle-up", filled=True, size=50, opacity=0.9, color=SERIES[1]
    )
    return alt.layer(
        measured.encode(x("from:Q"), x2="to:Q"),
        trace.encode(x("x:Q"), alt.Y("y:Q", **y), detail="trial:N", description="trial:N"),
        steady.encode(x("steady:Q"), alt.YDatum(y_domain[0], **y), description="tip:N"),
    )


def joined(windows: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The windows of a treatment's trials without the gaps between them: what overlaps is one."""
    found: list[tuple[float, float]] = []
    for start, end in sorted((max(0.0, start), end) for start, end in windows):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def _quantile_at(nines: float) -> str:
    return numbers.quantile_name(round(1 - 10**-nines, 7))


def ratio_ticks(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis of ratios: round ones, as many as can be read."""
    if high / low > 3:
        steps = (1, 2, 5) if high / low > 12 else (1, 1.5, 2, 3, 4, 5, 7)
        ticks = [round(step * 10**power, 6) for power in range(-4, 5) for step in steps]
        return [tick for tick in ticks if low <= tick <= high]
    step = 0.1 if high - low < 0.8 else 0.25
    step = 0.02 if high - low < 0.15 else step
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(i * step, 4) for i in range(first, last + 1)]
