"""Figures of a cut beside its log, and of a record beside a log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from searchbench.analysis.logs.against import ALIKE, Against, Line
from searchbench.analysis.logs.cut import Cut
from searchbench.analysis.logs.said import of_bound, of_interval
from searchbench.report.document.text import line
from searchbench.report.figures.curves import names
from searchbench.report.figures.look import INK, SERIES, SHADE, SOFT, Look
from searchbench.report.figures.plots import Axis, Chart, data, ruled, six
from searchbench.report.figures.study import ratio_ticks
from searchbench.report.tables.numbers import quantile_name

CLASSES = 12  # rows in one picture
FURTHEST = 3.0  # times what is allowed; a bar ends there
_ROW = 17  # pixels of a dot
_PER_LETTER = 5.8  # pixels


def bounds(cut: Cut, look: Look) -> Chart:
    """How far a cut is from its log: a bar a property, as a share of what is allowed."""
    if not any(bound.apart > 0 for bound in cut.bounds):
        return None
    short = names([line(bound.name) for bound in cut.bounds], 40 if look.direct_labels else 22)
    rows: list[dict[str, Any]] = []
    for name, bound in zip(short, cut.bounds, strict=True):
        whole, of_cut, apart, allowed, _ = of_bound(bound)
        known = math.isfinite(bound.apart)
        row: dict[str, Any] = {"name": name, "at": 0}
        if known:
            row["used"] = six(min(FURTHEST, bound.apart / bound.allowed))
        tip = f"{line(bound.name)}\nlog {whole}, cut {of_cut}: {apart} apart, {allowed} allowed"
        rows.append(row | {"what": "within" if bound.reached else "not reached", "tip": tip})
    top = max(1.1, *(1.05 * row.get("used", 0.0) for row in rows))
    step = 0.25 if top < 2 else 0.5
    ticks = tuple(step * i for i in range(1 + int(top / step)))
    percent = "format(datum.value, '.0%')"
    x = Axis("apart, of what is allowed", (0, top), ticks, percent, grid=True)
    y = alt.Y("name:N", sort=short, title=None, axis=alt.Axis(labelColor=INK, labelLimit=320))
    several = any(row["what"] != "within" and "used" in row for row in rows)
    legend = alt.Legend(symbolType="square") if several else None
    scale = alt.Scale(domain=["within", "not reached"], range=[SERIES[0], SERIES[1]])
    base = alt.Chart(data(rows)).encode(y=y, description="tip:N")
    bars = base.transform_filter("isValid(datum.used)").mark_bar(opacity=1, height=13)
    unknown = base.transform_filter("!isValid(datum.used)").mark_text(
        text="not known: too short", align="left", dx=4, color=SOFT, fontSize=11
    )
    room = min(round(_PER_LETTER * max(map(len, short))), 320) + 26
    made = alt.layer(
        bars.encode(
            x.x("used:Q"),
            color=alt.Color("what:N", scale=scale, legend=legend, sort=None),
        ),
        unknown.encode(x.x("at:Q")),
        ruled(x.x("at:Q")),
    )
    return made.properties(width=look.width - room, height=alt.Step(24))


def ratios(found: Against, look: Look) -> Chart:
    """Laboratory / log of each class: a row a class, a dot a quantile, with its interval.

    Shaded: what counts as the same. A quantile below the log's resolution has no dot, and its
    interval ends at the edge.
    """
    known = [each for each in found.lines if each.interval is not None]
    classes = list(dict.fromkeys(each.of_class for each in known))[:CLASSES]
    known = [each for each in known if each.of_class in classes]
    if not known:
        return None
    low, high = _domain(known)
    short = names([line(name) for name in classes], look.label)
    by_class = dict(zip(classes, short, strict=True))
    rows = [_row(each, by_class[each.of_class], low, high) for each in known]
    quantiles = sorted({row["of"] for row in rows})
    ticks = sorted({1.0, *ratio_ticks(low, high)})
    times = "format(datum.value, '.3~r') + '×'"
    title = "laboratory / log (right of 1×: slower in the laboratory)"
    title = title if look.direct_labels else "laboratory / log"
    x = Axis(title, (low, high), tuple(ticks), times, log=True, grid=True)
    few = not look.direct_labels
    axis = alt.Axis(labelColor=INK, labelLimit=320, labelPadding=10)
    y = alt.Y("name:N", sort=short, title=None, axis=axis)
    offset = alt.YOffset("of:N", sort=None, scale=alt.Scale(domain=quantiles))
    legend = alt.Legend(orient="top", direction="horizontal", columns=3, symbolType="circle",
                        symbolOpacity=1)  # fmt: skip
    scale = alt.Scale(domain=quantiles, range=list(SERIES[: len(quantiles)]))
    colour = alt.Color("of:N", sort=None, legend=legend, scale=scale)
    base = alt.Chart(data(rows)).encode(y=y, yOffset=offset, color=colour)
    whisker = base.mark_rule(strokeWidth=2, clip=True)
    dots = base.transform_filter("isValid(datum.x)").mark_point(filled=True, size=70, opacity=1)
    alike = alt.Chart(data([{"from": 1 / ALIKE, "to": ALIKE}])).mark_rect(color=SHADE, aria=False)
    made = alt.layer(
        alike.encode(x.x("from:Q", few=few), x2="to:Q"),
        ruled(x.x("at:Q", few=few)),
        whisker.encode(x.x("low:Q", few=few), alt.X2("high:Q"), description="tip:N"),
        dots.encode(x.x(few=few), description="tip:N"),
    )
    room = min(round(_PER_LETTER * max(map(len, short))), 320) + 26
    height = max(60, (8 + _ROW * len(quantiles)) * len(classes))
    return made.properties(width=look.width - room, height=height)


def _domain(known: Sequence[Line]) -> tuple[float, float]:
    """Where all ratios and all ends of intervals that are known can stand, and what is the same."""
    values = [1 / ALIKE, ALIKE]
    for each in known:
        assert each.interval is not None
        ends = (each.interval.low, each.interval.high, each.ratio or 0.0)
        values += [value for value in ends if 0 < value < math.inf]
    room = 1.5 if any(each.ratio is None for each in known) else 1.05
    return min(values) / 1.05, max(values) * room


def _row(each: Line, name: str, low: float, high: float) -> dict[str, Any]:
    assert each.interval is not None
    quantile = quantile_name(each.quantile)
    said = "" if each.ratio is None else f"{each.ratio:.3g}, "
    return {
        "name": name,
        "of": quantile,
        "x": None if not each.ratio else six(each.ratio),
        "low": six(max(low, each.interval.low)),
        "high": six(min(high, each.interval.high)),
        "tip": f"{line(each.of_class)}, {quantile}\n{said}{of_interval(each.interval)}: "
               f"{each.answer}",
    }  # fmt: skip
