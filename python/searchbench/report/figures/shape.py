"""Response times over a load with several rates, and the rate that was offered below them."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from searchbench.analysis.judgement import Shaped
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
    offered = draw(below, x, Axis("offered per second", (0, top * 1.1)), look)
    # Under the times, so that a second stands below the same second.
    return alt.vconcat(times, offered.properties(width=times.width, height=_OFFERED_HEIGHT))
