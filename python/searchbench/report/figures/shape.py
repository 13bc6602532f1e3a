"""Response times over a load with several rates, and the rate that was offered below them."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from searchbench.analysis.judgement import Shaped
from searchbench.report.document.text import line
from searchbench.report.figures.look import Look
from searchbench.report.figures.plots import Axis, Chart, Line, draw, time_axis, two_lines
from searchbench.report.tables import numbers

_OFFERED_HEIGHT = 70


def over_time(found: Sequence[tuple[str, Shaped]], look: Look) -> Chart:
    """A solid line for 95 % of each treatment's responses, a dashed one for half of them.

    ``found``: labels, and one trial of each.
    """
    found = [(label, shaped) for label, shaped in found if len(shaped.tail.x) > 1]
    if not found:
        return None
    lines = two_lines([(label, (shaped.tail, shaped.median)) for label, shaped in found])
    end = max(shaped.offered.x[-1] for _, shaped in found)
    x = Axis("seconds", (0, end))
    times = draw(lines, x, time_axis([y for each in lines for y in each.curve.y], "response"), look)
    if not isinstance(times, alt.LayerChart):
        return times  # a panel for each, with no room below
    loads = list(dict.fromkeys((s.offered.x, s.offered.y) for _, s in found))
    shown = [next(s.offered for _, s in found if (s.offered.x, s.offered.y) == at) for at in loads]
    top = max(y for curve in shown for y in curve.y)
    below = [
        Line(curve, "offered", len(found), tuple(f"{numbers.digits(y)}/s" for y in curve.y))
        for curve in shown
    ]
    kept = [
        Line(
            shaped.in_time, f"{line(label)}, in time", colour,
            tuple(f"{numbers.digits(x)} s: {numbers.digits(y)}/s in time"
                  for x, y in zip(shaped.in_time.x, shaped.in_time.y, strict=True)),
        )
        for colour, (label, shaped) in enumerate(found) if shaped.in_time is not None
    ]  # fmt: skip
    top = max([top, *(y for each in kept for y in each.curve.y)])
    said = "offered, and answered in time, per second" if kept else "offered per second"
    offered = draw([*below, *kept], x, Axis(said, (0, top * 1.1)), look)
    # Under the times, so that a second stands below the same second.
    return alt.vconcat(times, offered.properties(width=times.width, height=_OFFERED_HEIGHT))
