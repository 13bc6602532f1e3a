"""The figure of an operation: seconds against rows, both logarithmic, a line a method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from searchbench.analysis.judgement import Curve
from searchbench.analysis.operations.model import MethodCurve
from searchbench.report.figures.curves import log_domain, log_ticks
from searchbench.report.figures.look import Look
from searchbench.report.figures.plots import Axis, Chart, draw, lines_from, time_axis


def curves(methods: Sequence[MethodCurve], look: Look) -> Chart:
    """None where nothing was asked at two numbers of rows."""
    found, gaps, fails = [], list[tuple[float, ...]](), list[list[str]]()
    for m in methods:
        known = [p for p in m.points if p.seconds is not None]
        if not known:
            continue
        ends = [p.seconds.interval for p in known if p.seconds is not None]
        low = tuple(i.low for i in ends if i is not None)
        high = tuple(i.high for i in ends if i is not None)
        banded = len(low) == len(known)
        # A line does not go on over a number of rows at which its method fails.
        first, last = known[0].rows, known[-1].rows
        gaps.append(tuple(float(p.rows) for p in m.points if p.failed and first < p.rows < last))
        fails.append([f"\nfails {p.failed_in}" if p.failed_in else "" for p in known])
        found.append((m.method, Curve(
            m.method,
            tuple(float(p.rows) for p in known),
            tuple(p.seconds.value for p in known if p.seconds is not None),
            low if banded else (),
            high if banded else (),
        )))  # fmt: skip
    rows = sorted({x for _, c in found for x in c.x})
    if len(rows) < 2:
        return None
    low_x, high_x = log_domain(rows)
    x = Axis("rows asked for", (low_x, high_x), tuple(log_ticks(low_x, high_x)), log=True)
    y = time_axis([v for _, c in found for v in c.y], "time of one operation")
    lines = lines_from(
        [c for _, c in found], [n for n, _ in found], lambda at: f"{at:,.0f} rows", "s"
    )
    lines = [
        replace(
            each, breaks=gaps[i], tips=tuple(map("".join, zip(each.tips, fails[i], strict=True)))
        )
        for i, each in enumerate(lines)
    ]
    return draw(lines, x, y, look, points=True)
