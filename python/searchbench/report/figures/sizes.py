"""The figure of sizes: how many writes and reads had which, by treatment and storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import altair as alt

from searchbench.report.document.text import line
from searchbench.report.figures.look import SERIES, Look
from searchbench.report.figures.plots import Chart, data, in_panels, room_for_panels, six
from searchbench.report.tables.sizes import Row, binary, told

_PANELS = 12
_WHO = ("calls of the system", "requests to the device")


def histograms(found: Mapping[str, Sequence[Row]], look: Look) -> Chart:
    """A panel for each treatment, storage, and writes or reads; bars by power of two.

    ``found``: by the label of a treatment, its rows. At most twelve panels, writes first.
    """
    several = len(found) > 1
    places = {row.on for rows in found.values() for row in told(rows)[0]}
    panels: dict[str, list[dict[str, Any]]] = {}
    for what in ("writes", "reads"):
        for label, rows in found.items():
            first, _ = told(rows)
            for on in dict.fromkeys(row.on for row in first):
                own = [row for row in first if row.on == on and getattr(row, what)]
                name = " · ".join(
                    [
                        *([line(label)] if several else []),
                        what + f", {line(on)}" * (len(places) > 1),
                    ]
                )
                if bars := list(_bars(own)):
                    panels[name] = bars
    panels = dict(list(panels.items())[:_PANELS])
    if not panels:
        return None
    if several:  # their names are long for half the width of a phone
        look = replace(look, columns=max(1, look.columns - 1))
    columns, width, short = room_for_panels(list(panels), look)
    every = [
        {**bar, "name": name}
        for name, bars in zip(short, panels.values(), strict=True)
        for bar in bars
    ]
    # Every power of two between the least and the greatest, so that gaps are seen as gaps.
    present = {bar["at"] for bar in every}
    powers = [size.bit_length() - 1 for size in present if size]
    sizes = [0] * (0 in present) + [
        1 << n for n in range(min(powers, default=0), max(powers, default=-1) + 1)
    ]
    order = [binary(size) for size in sizes]
    ticks = order[:: max(1, -(-len(order) * 46 // max(1, width)))]
    x = alt.X(
        "size:N", scale=alt.Scale(domain=order),
        axis=alt.Axis(title=None, values=ticks, labelAngle=0, labelOverlap=True),
    )  # fmt: skip
    y = alt.Y("share:Q", scale=alt.Scale(domain=[0, 1]),
              axis=alt.Axis(title="share", format=".0%", tickCount=3, grid=True))  # fmt: skip
    there = [who for who in _WHO if any(bar["who"] == who for bar in every)]
    colour = alt.Color(
        "who:N", scale=alt.Scale(domain=there, range=[SERIES[_WHO.index(w)] for w in there]),
        legend=alt.Legend(title=None, orient="top"),
    )  # fmt: skip
    panel = alt.Chart().mark_bar().encode(
        x, y, colour, xOffset=alt.XOffset("who:N", sort=there), description="tip:N"
    )  # fmt: skip
    panel = panel.properties(width=width, height=max(80, width // 3))
    return in_panels(panel, data(every), short, columns)


def _bars(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Of the calls and of the requests the share of each size."""
    for device, who in enumerate(_WHO):
        counts: Counter[int] = Counter()
        for row in rows:
            if row.device == bool(device):
                counts.update(row.sizes)
        for size, count in sorted(counts.items()):
            share = count / counts.total()
            tip = f"{binary(size)}: {count:,} of {counts.total():,} {who}"
            yield {"at": size, "size": binary(size), "who": who, "share": six(share), "tip": tip}
