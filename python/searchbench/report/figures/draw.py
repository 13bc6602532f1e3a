"""Charts → SVG that stands in a page: themed by its style sheet, with tips, without script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape, unescape
from typing import Any

import vl_convert
from altair.utils.schemapi import debug_mode

from searchbench.report.document.text import line
from searchbench.report.figures.look import FONT, config

_TAG = re.compile(r'<([a-zA-Z]+)((?: [\w:-]+="[^"]*")*) ?(/?)>')
_ATTRIBUTE = re.compile(r' ([\w:-]+)="([^"]*)"')
_EMPTY = re.compile(r"<path d=\"M0,0h[\d.]+v[\d.]+h-?[\d.]+Z\"/>|<g></g>")
_FRACTION = re.compile(r"(\.\d)\d+")

# Vega says these for programs that read its SVG; they double the size and help nobody here.
_DROPPED = frozenset(
    ("class", "role", "aria-roledescription", "aria-hidden", "pointer-events", "xmlns:xlink")
)
_IDLE = frozenset((("opacity", "1"), ("stroke-miterlimit", "10"), ("stroke-width", "1")))


@contextmanager
def unchecked() -> Iterator[None]:
    """Charts made in here are not checked against the schema: a second saved; tests check them."""
    with debug_mode(False):
        yield


def svg(chart: Any, name: str, title: str) -> str:
    """The chart as one SVG element.

    ``name`` makes its inner ids unique in the page; ``title`` is what a screen reader says.
    The text of each mark's description becomes its ``<title>``, which browsers show as a tip.
    """
    spec = chart.to_dict(validate=False)
    spec["config"] = config()
    drawn: str = vl_convert.vegalite_to_svg(spec, show_warnings=False)
    return _for_page(drawn, name, title)


def pdf(svg_text: str) -> bytes:
    """An SVG as a page of PDF with its fonts inside, for the printed document."""
    drawn: bytes = vl_convert.svg_to_pdf(svg_text)
    return drawn


def _for_page(drawn: str, name: str, title: str) -> str:
    root = _TAG.match(drawn)
    if root is None or root[1] != "svg":
        raise ValueError(f"figure {name}: the renderer gave no SVG")
    size = dict(_ATTRIBUTE.findall(root[2]))
    width, height = size["width"], size["height"]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="{FONT}" role="img" '
        f'aria-label="{escape(line(title))}">'
    )

    ids: dict[str, str] = {}  # Vega counts on from one drawing to the next; here from nought

    def rewritten(tag: re.Match[str]) -> str:
        return _rewritten(tag, name, ids)

    # Only tags are touched, never the text between them: Vega escapes "<" and ">" there.
    body = _TAG.sub(rewritten, drawn[root.end() :])
    return head + _EMPTY.sub("", body)


def _rewritten(tag: re.Match[str], name: str, ids: dict[str, str]) -> str:
    element, attributes, closed = tag.groups()
    kept, label = [], ""
    for key, value in _ATTRIBUTE.findall(attributes):
        if key == "aria-label":
            label = unescape(value)
        elif key in _DROPPED or (key, value) in _IDLE:
            continue
        elif key == "font-family" and value == FONT:
            continue  # the whole figure has it
        elif key in ("d", "transform"):
            kept.append(f' {key}="{_FRACTION.sub(_one_place, value)}"')
        elif key == "id":
            kept.append(f' id="{ids.setdefault(value, f"{name}-{len(ids)}")}"')
        elif value.startswith("url(#"):
            inner = ids.setdefault(value[5:-1], f"{name}-{len(ids)}")
            kept.append(f' {key}="url(#{inner})"')
        else:
            kept.append(f' {key}="{value}"')
    start = f"<{element}{''.join(kept)}"
    if label and closed:
        return f"{start}><title>{escape(label, quote=False)}</title></{element}>"
    if label:
        return f"{start}><title>{escape(label, quote=False)}</title>"
    return f"{start}{closed}>"


def _one_place(match: re.Match[str]) -> str:
    return match[1]
