"""The figures: one function each, from a judgement to an Altair chart. No I/O.

Each takes the ``Look`` it is for, and gives None where the judgement has nothing to show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt

from searchbench.analysis.judgement import Comparison, Curve, Judgement, TrialResult
from searchbench.report import numbers
from searchbench.report.curves import by_nines, drawable, log_domain, log_ticks, names, thinned
from searchbench.report.look import INK, MANY, MARK, SERIES, SHADE, SOFT, Look
from searchbench.report.plots import (
    COUNT_LABELS,
    TIME_LABELS,
    Axis,
    Chart,
    draw,
    lines_from,
    panels,
)
from searchbench.report.text import line

QUANTILE_TICKS = (0.5, 0.9, 0.99, 0.999, 0.9999)


def latency(
    judgement: Judgement, which: Literal["service", "response"], look: Look
) -> Chart | None:
    """Quantiles of service or response time, a line a treatment.

    The quantile axis is logarithmic in 1 − q, so the tail has as much room as the middle; the
    time axis is logarithmic too. Bands are the quantiles' intervals.
    """
    most = 60 if len(judgement.treatments) <= MANY else 36
    found = [(t.label, by_nines(getattr(t, which), most)) for t in judgement.treatments]
    found = [(label, curve) for label, curve in found if len(curve.x) > 1]
    if not found:
        return None
    curves = [curve for _, curve in found]
    right = max(curve.x[-1] for curve in curves)
    y = _time_axis([v for c in curves for v in (*c.y, *c.low, *c.high)], f"{which} time", log=True)
    x = Axis(
        "quantile (share of requests that took at most this long)",
        (0, max(right, 1.0)),
        tuple(-math.log10(1 - q) for q in QUANTILE_TICKS if -math.log10(1 - q) <= right + 0.01),
        "datum.value < 0.5 ? 'p50' : datum.value < 1.5 ? 'p90' : datum.value < 2.5 ? 'p99' : "
        "datum.value < 3.5 ? 'p99.9' : 'p99.99'",
        grid=True,
    )
    if not look.direct_labels or len(found) > MANY:
        x = _retitled(x, "quantile")
    lines = lines_from(curves, [label for label, _ in found], _quantile_at, "s")
    return draw(lines, x, y, look)


def scaling(judgement: Judgement, factor: str, look: Look) -> Chart | None:
    """One measured quantity against the levels of one factor, a line a group of treatments."""
    curves = [drawable(c) for c in judgement.scaling.get(factor, ())]
    curves = [c for c in curves if len(c.x) > 1]
    if not curves:
        return None
    xs = sorted({x for c in curves for x in c.x})
    log = xs[0] > 0 and xs[-1] / xs[0] >= 8
    margin = 0.0 if log else (xs[-1] - xs[0]) * 0.03
    x = Axis(factor, (xs[0] - margin, xs[-1] + margin), tuple(xs), log=log)
    ys = [v for c in curves for v in (*c.y, *c.high)]
    y = Axis("throughput, requests per second", (0, max(ys, default=1) * 1.05 or 1), grid=True)
    lines = lines_from(
        curves,
        [c.label for c in curves],
        lambda level: f"{factor} = {numbers.digits(level)}",
        "1/s",
    )
    return draw(lines, x, y, look, points=True)


def warmup(
    judgement: Judgement, windows: Mapping[str, tuple[float, float]], look: Look
) -> Chart | None:
    """How each trial came to its steady state: a panel a treatment, a line a trial.

    ``windows``: the measured window of each trial in seconds since the drive began; it is
    shaded, so that one sees that what was measured had settled.
    """
    shown = [
        (t.label, [r for r in t.trials if r.warmup is not None and len(r.warmup.x) > 1])
        for t in judgement.treatments
    ]
    shown = [(label, trials) for label, trials in shown if trials]
    if not shown:
        return None
    columns = min(look.columns, len(shown))
    width = (look.width - 62 - 22 * columns) / columns - (14 if columns > 1 else 0)
    short = names([label for label, _ in shown], max(12, int(width / 6.4)))
    drawn = []
    for i, ((_, trials), name) in enumerate(zip(shown, short, strict=True)):
        titles = (i >= len(shown) - columns, i % columns == 0)
        drawn.append(
            _warmup_panel(trials, windows, titles).properties(
                width=width, height=max(90, width * 0.5), title=alt.TitleParams(text=name)
            )
        )
    return alt.concat(*drawn, columns=columns, spacing=18)


def differences(
    comparisons: Sequence[Comparison], labels: Mapping[str, str], look: Look
) -> Chart | None:
    """Ratios with their intervals, the noise floor shaded: what is resolved stands clear of it."""
    rows: list[dict[str, Any]] = []
    for c in comparisons:
        if c.ratio is None or c.ratio.value <= 0:
            continue
        interval = c.ratio.interval
        row: dict[str, Any] = {
            "name": line(labels.get(c.b, c.b)),
            "ratio": c.ratio.value,
            "resolved": c.verdict in ("faster", "slower"),
            "tip": f"{line(labels.get(c.b, c.b))}\n{numbers.digits(c.ratio.value)} times, {c.verdict}",
        }
        if interval and interval.low > 0:
            row |= {"low": interval.low, "high": interval.high}
        rows.append(row)
    if not rows:
        return None
    cut = names([row["name"] for row in rows], look.label if look.direct_labels else 18)
    for row, name in zip(rows, cut, strict=True):
        row["name"] = name
    floor = max([1.0, *(c.floor for c in comparisons if math.isfinite(c.floor))])
    values = [v for r in rows for v in (r["ratio"], r.get("low", 1), r.get("high", 1))]
    low, high = min([*values, 1 / floor]) / 1.05, max([*values, floor]) * 1.05
    ticks = sorted({1.0, *_ratio_ticks(low, high)})
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    x = alt.X(
        "ratio:Q",
        scale=scale,
        axis=alt.Axis(
            title="times as good (right of 1: better than the first)",
            values=ticks,
            labelExpr="format(datum.value, '.3~r') + '×'",
            grid=True,
        ),
    )
    y = alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelColor=INK, labelLimit=240))
    base = alt.Chart(alt.Data(values=rows))
    colour = alt.condition("datum.resolved", alt.value(SERIES[0]), alt.value(MARK))
    noise = (
        alt.Chart(alt.Data(values=[{"from": 1 / floor, "to": floor}]))
        .mark_rect(color=SHADE, aria=False)
        .encode(x=alt.X("from:Q", scale=scale), x2="to:Q")
    )
    one = (
        alt.Chart(alt.Data(values=[{"at": 1}]))
        .mark_rule(color=SOFT, strokeDash=[3, 3], aria=False)
        .encode(x=alt.X("at:Q", scale=scale))
    )
    whisker = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2, aria=False)
        .encode(x=alt.X("low:Q", scale=scale), x2="high:Q", y=y, color=colour)
    )
    dot = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=x, y=y, color=colour, description="tip:N"
    )
    room = 8 * max(map(len, cut)) + 20
    return alt.layer(noise, one, whisker, dot).properties(
        width=look.width - min(room, 250), height=alt.Step(26)
    )


def _warmup_panel(
    trials: Sequence[TrialResult],
    windows: Mapping[str, tuple[float, float]],
    titles: tuple[bool, bool],
) -> alt.LayerChart:
    curves = [(r, thinned(drawable(r.warmup), 80)) for r in trials if r.warmup is not None]
    last = max((c.x[-1] for _, c in curves if c.x), default=1.0)
    top = max((v for _, c in curves for v in c.y), default=1.0) or 1.0
    x_title, y_title = (
        "seconds since the first request" if titles[0] else None,
        (curves[0][1].label or None) if titles[1] else None,
    )
    is_time = _is_time(curves[0][1].label)
    rows = [
        {"name": r.trial, "x": float(f"{x:.6g}"), "y": float(f"{y:.6g}")}
        for r, c in curves
        for x, y in zip(c.x, c.y, strict=True)
    ]
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[0, last], nice=False),
        axis=alt.Axis(title=x_title, tickCount=4),
    )
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[0, top * 1.08], nice=False),
        axis=alt.Axis(
            title=y_title,
            tickCount=3,
            grid=True,
            labelExpr=TIME_LABELS if is_time else COUNT_LABELS,
        ),
    )
    spans = {windows[r.trial] for r, _ in curves if r.trial in windows}
    layers: list[alt.Chart] = []
    if spans:
        start, end = max(s for s, _ in spans), min(e for _, e in spans)
        layers.append(
            alt.Chart(alt.Data(values=[{"from": max(0.0, start), "to": min(end, last)}]))
            .mark_rect(color=SHADE, aria=False)
            .encode(x=alt.X("from:Q", scale=alt.Scale(domain=[0, last], nice=False)), x2="to:Q")
        )
    layers.append(
        alt.Chart(alt.Data(values=rows))
        .mark_line(strokeWidth=1.3, opacity=0.75, clip=True, color=SERIES[0])
        .encode(x=x, y=y, detail="name:N", description="name:N")
    )
    steady = [{"at": r.steady_from_s} for r, _ in curves if r.steady_from_s is not None]
    if steady:
        layers.append(
            alt.Chart(alt.Data(values=steady))
            .mark_tick(color=SERIES[1], thickness=2, size=10, aria=False)
            .encode(
                x=alt.X("at:Q", scale=alt.Scale(domain=[0, last], nice=False)),
                y=alt.YValue("height"),
            )
        )
    return alt.layer(*layers)


def _time_axis(values: Sequence[float], title: str, *, log: bool) -> Axis:
    positive = [v for v in values if v > 0 and math.isfinite(v)]
    low, high = log_domain(positive or [1e-3, 1.0])
    return Axis(
        title, (low, high), tuple(log_ticks(low, high)), TIME_LABELS, log=log, unit="s", grid=True
    )


def _retitled(axis: Axis, title: str) -> Axis:
    return Axis(title, axis.domain, axis.ticks, axis.labels, axis.log, axis.unit, axis.grid)


def _quantile_at(nines: float) -> str:
    return numbers.quantile_name(round(1 - 10**-nines, 7))


def _ratio_ticks(low: float, high: float) -> list[float]:
    if high / low > 3:
        return [t for t in log_ticks(low, high)]
    step = 0.1 if high - low < 0.8 else 0.25
    step = 0.02 if high - low < 0.15 else step
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(i * step, 4) for i in range(first, last + 1)]


def _is_time(label: str) -> bool:
    return any(word in label for word in ("time", "latency", " s", "p50", "median"))


__all__ = ["Curve", "differences", "latency", "panels", "scaling", "warmup"]
