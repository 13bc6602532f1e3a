"""Figures of jobs: times with their intervals, files by kind, progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from searchbench.analysis.judgement import JobResult
from searchbench.report.figures.curves import names
from searchbench.report.figures.look import INK, SERIES, Look
from searchbench.report.figures.plots import Axis, Chart, data, draw, lines_from, six, whiskered
from searchbench.report.tables import numbers

_KINDS = ("data", "wal", "index", "backup", "restored", "system")
_FEW = 2  # treatments below which a picture says no more than the table


def times(results: Sequence[JobResult], look: Look) -> Chart:
    """A dot for each treatment, with its interval, from nought."""
    found = [(r, r.figures["seconds"]) for r in results if "seconds" in r.figures]
    if len(found) < _FEW:
        return None
    cut = names([r.label for r, _ in found], 44 if look.direct_labels else 20)
    rows: list[dict[str, Any]] = []
    for name, (r, figure) in zip(cut, found, strict=True):
        tip = f"{r.label}\n{numbers.human(figure.value, 's')}"
        row: dict[str, Any] = {"name": name, "s": six(figure.value), "tip": tip}
        if figure.interval is not None:
            row |= {"low": six(max(0.0, figure.interval.low)), "high": six(figure.interval.high)}
        rows.append(row)
    dots = max(row["s"] for row in rows)
    # An interval of two trials may be many times as long as the time itself.
    top = min(max(row.get("high", row["s"]) for row in rows), 3 * dots) * 1.05
    x, y = Axis("seconds", (0, top), grid=True), _names()
    room = _room(cut)
    return alt.layer(
        *whiskered(
            [row | {"high": min(row["high"], top)} if "high" in row else row for row in rows],
            (x.x("s:Q"), y),
            (x.x("low:Q"), alt.X2("high:Q"), y),
            alt.value(SERIES[0]),
        )
    ).properties(width=look.width - room, height=alt.Step(26))


def files(results: Sequence[JobResult], look: Look) -> Chart:
    """A bar for each treatment, of its files by kind."""
    found = [r for r in results if r.files]
    if len(found) < _FEW:
        return None
    cut = names([r.label for r in found], 44 if look.direct_labels else 20)
    rows = [
        {
            "name": name,
            "kind": kind,
            "mb": six(most / 1e6),
            "order": _KINDS.index(kind) if kind in _KINDS else len(_KINDS),
            "tip": f"{r.label}\n{kind}: {numbers.human(most, 'bytes')}",
        }
        for name, r in zip(cut, found, strict=True)
        for kind, (_, most) in r.files.items()
        if kind != "system"
    ]
    if not rows:
        return None
    kinds = sorted({str(row["kind"]) for row in rows}, key=lambda k: (k not in _KINDS, k))
    kinds = [kind for kind in _KINDS if kind in kinds] + [k for k in kinds if k not in _KINDS]
    legend = alt.Legend(title=None, orient="top", symbolType="square")
    bars = alt.Chart(data(rows)).mark_bar(height=16)
    return bars.encode(
        alt.X("mb:Q", stack="zero", axis=alt.Axis(title="MB allocated", grid=True)),
        _names(),
        color=alt.Color(
            "kind:N", sort=None, legend=legend,
            scale=alt.Scale(domain=kinds, range=list(SERIES[: len(kinds)])),
        ),
        order="order:Q",
        description="tip:N",
    ).properties(width=look.width - _room(cut), height=alt.Step(26))  # fmt: skip


def progress(results: Sequence[JobResult], look: Look) -> Chart:
    """Documents by seconds, a line a treatment."""
    found = [(r.label, r.progress) for r in results if r.progress is not None]
    if not found:
        return None
    curves = [curve for _, curve in found]
    x = Axis("seconds", (0, max(c.x[-1] for c in curves)))
    y = Axis("documents", (0, max(max(c.y) for c in curves) * 1.05), grid=True)
    lines = lines_from(curves, [label for label, _ in found],
                       lambda at: numbers.human(at, "s"), "")  # fmt: skip
    return draw(lines, x, y, look)


def _names() -> Any:
    return alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelColor=INK, labelLimit=320))


def _room(cut: Sequence[str]) -> int:
    return min(round(5.8 * max(map(len, cut))), 320) + 26
