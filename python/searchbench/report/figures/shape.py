"""Response times over a load with several rates, and the rate that was offered below them."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from searchbench.analysis.judgement import Curve, Shaped
from searchbench.report.document.text import line
from searchbench.report.figures.look import Look
from searchbench.report.figures.plots import Axis, Chart, Line, draw, time_axis, two_lines, under
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
    kept = any(shaped.in_time is not None for _, shaped in found)
    offered = [(colour, shaped.offered) for colour, (_, shaped) in enumerate(found)]
    if not kept:  # in no treatment's colour, as several have it
        loads = dict.fromkeys((each.x, each.y) for _, each in offered)
        known = {(each.x, each.y): each for _, each in offered}
        offered = [(len(found), known[at]) for at in loads]
    below = [
        Line(curve, "offered", colour, _tips(curve, "offered"), dashed=kept)
        for colour, curve in offered
    ] + [
        Line(shaped.in_time, "in time", colour, _tips(shaped.in_time, f"{line(label)}, in time"))
        for colour, (label, shaped) in enumerate(found) if shaped.in_time is not None
    ]  # fmt: skip
    top = max(y for each in below for y in each.curve.y)
    said = "in time per second" if kept else "offered per second"
    return under(times, below, x, Axis(said, (0, top * 1.1)), _OFFERED_HEIGHT)


def _tips(curve: Curve, name: str) -> tuple[str, ...]:
    return tuple(
        f"{numbers.digits(x)} s: {numbers.digits(y)}/s {name}"
        for x, y in zip(curve.x, curve.y, strict=True)
    )
