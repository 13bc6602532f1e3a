"""What each class of queries met: a dot a treatment, a row a class; against the load, a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import altair as alt

from searchbench.analysis.judgement import Step, TreatmentResult
from searchbench.analysis.sweep.by_class import of_class
from searchbench.report.document.text import line
from searchbench.report.figures import steps as of_steps
from searchbench.report.figures.curves import names
from searchbench.report.figures.look import INK, SERIES, Look
from searchbench.report.figures.plots import Chart, data, six, time_axis
from searchbench.report.tables import numbers

_ROW = 17  # pixels of a dot
_MOST = 6  # treatments in one picture


def of_treatments(found: Sequence[TreatmentResult], metric: str, title: str, look: Look) -> Chart:
    """One time of each class, with its interval: a row a class, a dot a treatment."""
    found = [t for t in found if t.classes][:_MOST]
    labels = names([line(t.label) for t in found], look.label)
    classes = list(dict.fromkeys(seen.name for t in found for seen in t.classes))
    short = dict(zip(classes, names([line(c) for c in classes], look.label), strict=True))
    rows: list[dict[str, Any]] = []
    for label, t in zip(labels, found, strict=True):
        for seen in t.classes:
            figure = seen.figures.get(metric)
            if figure is None or figure.value <= 0:
                continue
            span = figure.interval
            tip = f"{line(seen.name)}, {label}\n{numbers.human(figure.value, 's')}"
            row: dict[str, Any] = {
                "class": short[seen.name],
                "name": label,
                "x": six(figure.value),
                "tip": tip,
            }
            if span is not None and span.low > 0:
                ends = [numbers.human(v, "s") for v in (span.low, span.high)]
                row |= {"low": six(span.low), "high": six(span.high)}
                row["tip"] = f"{tip} ({ends[0]} to {ends[1]})"
            rows.append(row)
    if not rows:
        return None
    x = time_axis([float(v) for r in rows for k in ("x", "low", "high") if (v := r.get(k))], title)
    room = min(round(5.8 * max(map(len, short.values()))), 320) + 26
    several = len(labels) > 1
    legend = alt.Legend(symbolType="circle", symbolOpacity=1) if several else None
    colours = [SERIES[i % len(SERIES)] for i in range(len(labels))]
    scale = alt.Scale(domain=labels, range=colours)
    colour = alt.Color("name:N", sort=None, legend=legend, scale=scale)
    axis = alt.Axis(labelColor=INK, labelLimit=320, labelPadding=10)
    y = alt.Y("class:N", sort=[short[c] for c in classes], title=None, axis=axis)
    offset = alt.YOffset("name:N", sort=None, scale=alt.Scale(domain=labels))
    base = alt.Chart(data(rows)).encode(y=y, yOffset=offset, color=colour)
    whisker = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2, aria=False)
    dots = base.mark_point(filled=True, size=70, opacity=1)
    chart = alt.layer(
        whisker.encode(x.x("low:Q", few=not look.direct_labels), alt.X2("high:Q")),
        dots.encode(x.x(few=not look.direct_labels), description="tip:N"),
    )
    height = max(60, (8 + _ROW * len(labels)) * len(classes))
    return chart.properties(width=look.width - room, height=height)


def against_load(found: Sequence[Step], which: str, look: Look) -> Chart:
    """A time of each class against the load: a line a class and configuration."""
    several = len({s.subject for s in found}) > 1
    views = []
    for step in found:
        for seen in step.classes:
            name = f"{step.subject}, {seen.name}" if several else seen.name
            if (view := of_class(step, seen.name)) is not None:
                views.append(replace(view, subject=name, label=name))
    if not views:
        return None
    return of_steps.against_load(of_steps.Loads.of(views), which, look)
