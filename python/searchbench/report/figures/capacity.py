"""The figures of a search for capacity: the intervals it found, and the trials they rest on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import altair as alt

from searchbench.analysis.judgement import Capacity
from searchbench.report.document.text import line
from searchbench.report.figures.curves import log_domain, log_ticks, names
from searchbench.report.figures.look import GHOST, INK, MARK, SERIES, SHADE, Look
from searchbench.report.figures.plots import Axis, Chart, data, ruled, six, whiskered
from searchbench.report.tables import numbers
from searchbench.report.tables.steps import between

_COLOURS = {"holds": SERIES[2], "fails": SERIES[1], "unclear": MARK, "left out": GHOST}
_WIDE = 5.0  # a greatest rate so many times the least has a logarithmic axis
_BESIDE = 9  # pixels between the bars of two promises at the same level
_RATE = "requests per second"


def factor_of(found: Sequence[Capacity]) -> str:
    """The one factor by which the configurations differ, if its levels are numbers; else empty."""
    levels = {c.subject: c.levels for c in found}
    keys = dict.fromkeys(key for own in levels.values() for key in own)
    varying = [k for k in keys if len({repr(own.get(k)) for own in levels.values()}) > 1]
    if len(varying) != 1:
        return ""
    of = [own.get(varying[0]) for own in levels.values()]
    numeric = all(isinstance(level, int | float) and not isinstance(level, bool) for level in of)
    return varying[0] if numeric else ""


def intervals(found: Sequence[Capacity], look: Look) -> Chart:
    """Every interval: against the factor that varies if that is a number, else a row for each.

    One interval alone is in the figure of its trials, so there is nothing to draw.
    """
    axis = _rates(found)
    if len(found) < 2 or axis is None:
        return None
    whole = list(dict.fromkeys(c.promise for c in found))
    promises = names(whole, 60)
    factor = factor_of(found)
    rows = [
        _row(c, promises[whole.index(c.promise)], factor, axis.domain)
        for c in found
        if c.holds is not None or c.fails is not None
    ]
    legend = alt.Legend(symbolType="stroke", symbolOpacity=1) if len(promises) > 1 else None
    colours = [SERIES[i % len(SERIES)] for i in range(len(promises))]
    colour = alt.Color("promise:N", sort=None, legend=legend,
                       scale=alt.Scale(domain=promises, range=colours))  # fmt: skip
    if factor:
        return _against(rows, factor, promises, axis, colour, look)
    return _in_rows(rows, promises, axis, colour, look)


def _rates(found: Sequence[Capacity]) -> Axis | None:
    """The axis of all rates: from nought, or logarithmic where the span is wide.

    With room for open sides.
    """
    ends = [v for c in found for v in (c.holds, c.fails) if v is not None and v > 0]
    if not ends:
        return None
    opened = any(c.fails is None and c.holds is not None for c in found)
    low, high = min(ends), max(ends)
    if high / low < _WIDE:
        return Axis(_RATE, (0, high * (1.3 if opened else 1.06)), grid=True)
    down = 1.5 if any(c.holds is None and c.fails is not None for c in found) else 1.1
    low, high = low / down, high * (1.5 if opened else 1.1)
    return Axis(f"{_RATE} (logarithmic)", (low, high), _ticks(low, high), log=True, grid=True)


def _ticks(low: float, high: float) -> tuple[float, ...]:
    """Of a logarithmic axis of rates; evenly spaced where it is too short for 1-2-5."""
    ticks = [t for t in log_ticks(low, high) if low <= t <= high]
    if len(ticks) <= 2:
        least = (high - low) / 6
        power = 10.0 ** math.floor(math.log10(least))
        step = next(by * power for by in (1, 2, 5, 10) if by * power >= least * 0.999)
        ticks = [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return tuple(ticks)


def _row(found: Capacity, promise: str, factor: str, domain: tuple[float, float]) -> dict[str, Any]:
    """One interval to be drawn; an open side goes to the edge of the picture."""
    low = domain[0] if found.holds is None else found.holds
    high = domain[1] if found.fails is None else found.fails
    odds = "" if found.chance_inside is None else f", {numbers.percent(found.chance_inside)}"
    row: dict[str, Any] = {
        "subject": line(found.subject),
        "promise": promise,
        "low": six(low),
        "high": six(high),
        "tip": f"{line(found.subject)}\n{line(found.promise)}: {between(found)}{odds}",
    }
    if factor:
        row["x"] = float(found.levels[factor])
    if found.holds is None:
        row["open"] = six(low)
    elif found.fails is None:
        row["open"] = six(high)
    else:
        middle = math.sqrt(low * high) if low > 0 else (low + high) / 2
        row["middle"] = six(middle)
    for side, end in (("holds", found.holds), ("fails", found.fails)):
        if end is not None:
            row[side] = six(end)
    return row


def _in_rows(
    rows: Sequence[dict[str, Any]], promises: Sequence[str], axis: Axis, colour: Any, look: Look
) -> Chart:
    """A row for each configuration, within it a bar for each promise."""
    whole = list(dict.fromkeys(row["subject"] for row in rows))
    short = dict(zip(whole, names(whole, 44 if look.direct_labels else 20), strict=True))
    drawn = [{**row, "subject": short[row["subject"]]} for row in rows]
    room = min(round(5.8 * max(map(len, short.values()))), 320) + 26
    labels = alt.Axis(labelColor=INK, labelLimit=320, labelPadding=10)
    y = alt.Y("subject:N", sort=None, title=None, axis=labels)
    offset = alt.YOffset("promise:N", sort=None, scale=alt.Scale(domain=list(promises)))
    base = alt.Chart(data(drawn)).encode(y=y, yOffset=offset, color=colour)
    layers = _bars(base, partial(axis.x, few=not look.direct_labels), across=True)
    height = alt.Step(30, **{"for": "position"})
    if len(promises) > 1:
        height = alt.Step(16, **{"for": "offset"})
    return alt.layer(*layers).properties(width=look.width - room, height=height)


def _against(
    rows: Sequence[dict[str, Any]],
    factor: str,
    promises: Sequence[str],
    axis: Axis,
    colour: Any,
    look: Look,
) -> Chart:
    """Bars against the levels of the factor, beside each other where promises share a level."""
    xs = sorted({row["x"] for row in rows})
    log = xs[0] > 0 and xs[-1] / xs[0] >= 8
    margin = (xs[-1] - xs[0]) * 0.08 or 0.5
    domain = (xs[0] / 1.2, xs[-1] * 1.2) if log else (xs[0] - margin, xs[-1] + margin)
    x = Axis(line(factor), domain, tuple(xs), log=log)
    layers: list[Chart] = []
    for i, promise in enumerate(promises):
        aside = (i - (len(promises) - 1) / 2) * _BESIDE
        own = [row for row in rows if row["promise"] == promise]
        base = alt.Chart(data(own)).encode(x=x.x(), color=colour)
        if sum("middle" in row for row in own) > 1:
            closed = base.transform_filter("isValid(datum.middle)")
            join = closed.mark_line(strokeWidth=1, opacity=0.6, xOffset=aside, aria=False)
            layers.append(join.encode(axis.y("middle:Q")))
        layers += _bars(base, axis.y, across=False, xOffset=aside)
    return alt.layer(*layers).properties(width=look.width - 80, height=look.height)


def _bars(
    base: alt.Chart, rate: Callable[[str], Any], *, across: bool, **place: Any
) -> list[Chart]:
    """Each interval as a bar with its ends; an open side is dashed and has an arrow.

    ``rate``: the channel of a rate. ``across``: the rates go from left to right, else upwards.
    ``place``: where the marks go beside their place on the other axis.
    """

    def at(mark: Chart, field: str, to: str = "") -> Chart:
        second = {"x2" if across else "y2": to} if to else {}
        return mark.encode(rate(field), description="tip:N", **second)

    closed = base.transform_filter("!isValid(datum.open)")
    opened = base.transform_filter("isValid(datum.open)")
    layers = [
        at(closed.mark_rule(strokeWidth=6, **place), "low:Q", "high:Q"),
        at(opened.mark_rule(strokeWidth=2, strokeDash=[4, 3], **place), "low:Q", "high:Q"),
    ]
    shapes = {"holds": "right" if across else "up", "fails": "left" if across else "down"}
    turned: Any = "vertical" if across else "horizontal"
    for side, shape in shapes.items():
        known = f"isValid(datum.{side})"
        tick = base.transform_filter(known).mark_tick(thickness=2, size=13, orient=turned, **place)
        arrow = opened.transform_filter(known).mark_point(
            shape=f"triangle-{shape}", filled=True, size=70, opacity=1, **place
        )
        layers += [at(tick, f"{side}:Q"), at(arrow, "open:Q")]
    return layers


def trials(found: Capacity, look: Look) -> Chart:
    """Every trial of a search: how much of what the promise allows was used up, by rate."""
    floor = 0.01  # of the allowance; less is drawn there, since a logarithmic axis has no nought
    rows: list[dict[str, Any]] = []
    for t in found.trials:
        if t.excess is None:
            continue
        row: dict[str, Any] = {
            "x": six(t.rate_per_s), "y": six(max(floor, t.excess)), "verdict": t.verdict,
            "tip": f"{numbers.human(t.rate_per_s, '1/s')}: {t.verdict}\n"
            f"{numbers.digits(t.excess)} times what {t.condition} allows",
        }  # fmt: skip
        if t.excess_low is not None and t.excess_high is not None:
            row |= {"low": six(max(floor, t.excess_low)), "high": six(max(floor, t.excess_high))}
        rows.append(row)
    if not rows:
        return None
    ends = [v for v in (found.holds, found.fails) if v is not None and v > 0]
    rates = [*(r["x"] for r in rows), *ends]
    low, high = min(rates) / 1.06, max(rates) * 1.06
    least = min(r.get("low", r["y"]) for r in rows)
    most = max([2.0, *(r.get("high", r["y"]) for r in rows)])
    x_title = "requests offered per second (logarithmic)"
    x = Axis(x_title, (low, high), _ticks(low, high), log=True)
    bottom, top = log_domain([least, most])
    y = Axis("times what is allowed", (bottom, top), tuple(log_ticks(bottom, top)),
             "format(datum.value, '.3~r') + '×'", log=True, grid=True)  # fmt: skip
    layers: list[Chart] = []
    if ends:
        start = low if found.holds is None else found.holds
        end = high if found.fails is None else found.fails
        band = alt.Chart(data([{"from": start, "to": end}]))
        shaded = band.mark_rect(color=SHADE, aria=False, clip=True)
        layers.append(shaded.encode(x.x("from:Q"), x2="to:Q"))
    seen = [v for v in _COLOURS if any(r["verdict"] == v for r in rows)]
    scale = alt.Scale(domain=seen, range=[_COLOURS[v] for v in seen])
    legend = alt.Legend(symbolType="circle", direction="horizontal", columns=4)
    colour = alt.Color("verdict:N", scale=scale, sort=None, legend=legend)
    layers.append(ruled(y.y("at:Q")))
    layers += whiskered(rows, (x.x(), y.y()), (x.x(), y.y("low:Q"), alt.Y2("high:Q")), colour)
    return alt.layer(*layers).properties(width=look.width - 80, height=look.height)
