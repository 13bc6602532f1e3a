"""How figures look: sizes for a desk and for a phone, and one set of colours.

A figure is drawn once, in the colours of the light theme; the page's style sheet maps each of
these literal colours to the reader's theme. So every colour a figure uses must be named here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FONT = "Arial, Liberation Sans, Helvetica, sans-serif"
INK = "#1b1d22"
SOFT = "#5c626b"
RULE = "#dfe2e6"
GHOST = "#c2c7ce"
SHADE = "#eef0f3"
MARK = "#8a9099"

# Okabe and Ito (2008), "Color universal design": told apart with any kind of colour vision.
# The pale ones are replaced by dark ones, so that thin lines keep 3:1 against white.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#a0306e", "#7a5c00", "#4b4b4b")

# The same in the dark theme, in the same order.
SERIES_DARK = ("#4fb0ea", "#ff8a47", "#35cfa4", "#d96aa8", "#f0dc78", "#ffffff")

DARK = {
    INK: "#e8eaed",
    SOFT: "#a4abb5",
    RULE: "#343941",
    GHOST: "#565d68",
    SHADE: "#23272e",
    MARK: "#7d8591",
    **dict(zip(SERIES, SERIES_DARK, strict=True)),
}


@dataclass(frozen=True, slots=True)
class Look:
    """The room for a figure. ``columns``: panels side by side; ``label``: characters of a name."""

    width: int
    height: int
    columns: int
    label: int
    direct_labels: bool


WIDE = Look(width=864, height=320, columns=3, label=30, direct_labels=True)
NARROW = Look(width=350, height=250, columns=2, label=20, direct_labels=False)

# Above this many lines in one picture nobody can follow one; then each gets a panel of its own.
MANY = 6


def config() -> dict[str, Any]:
    """The Vega-Lite configuration of every figure."""
    axis = {
        "labelColor": SOFT,
        "titleColor": SOFT,
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "gridColor": RULE,
        "domainColor": RULE,
        "tickColor": RULE,
        "tickSize": 4,
        "labelPadding": 4,
        "titlePadding": 8,
    }
    return {
        "font": FONT,
        "background": "transparent",
        "view": {"stroke": None},
        "axis": axis,
        "axisX": {"grid": False},
        "axisY": {"domain": False, "ticks": False},
        "title": {
            "color": INK,
            "fontSize": 11.5,
            "fontWeight": "bold",
            "anchor": "start",
            "offset": 6,
        },
        "legend": {
            "labelColor": INK,
            "labelFontSize": 12,
            "labelLimit": 320,
            "title": None,
            "orient": "bottom",
            "direction": "vertical",
            "columns": 1,
            "symbolStrokeWidth": 3,
        },
    }
