"""Printing: plain tables for people, JSON with stable names for machines."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import Any


def as_json(value: Any) -> None:
    """One JSON document on standard output."""
    import orjson

    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    sys.stdout.write(orjson.dumps(value, option=options, default=str).decode() + "\n")


def say(text: str = "") -> None:
    """A line, or paragraphs, on standard output, wrapped to the terminal."""
    import textwrap

    width = min(100, shutil.get_terminal_size((80, 24)).columns)
    for line in text.split("\n"):
        sys.stdout.write(textwrap.fill(line, width, break_on_hyphens=False) + "\n")


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Aligned columns: numbers to the right, texts to the left; the last column may be cut."""
    cells = [[str(c) for c in row] for row in rows]
    widths = [max(len(r[i]) for r in [list(header), *cells]) for i in range(len(header))]
    right = [bool(cells) and all(_numeric(row[i]) for row in cells) for i in range(len(header))]
    for row in [list(header), *cells]:
        parts = [
            c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)
        ]
        sys.stdout.write("  ".join(parts).rstrip() + "\n")


def _numeric(text: str) -> bool:
    return text[:1].isdigit() or text in ("", "–") or text[:1] in "+-±×"
