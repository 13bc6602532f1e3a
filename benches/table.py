"""Tables of figures, and where they go in BENCHMARKS.md.

A bench yields figures, each with what we hold ourselves to, and tables, which set clients side by
side. BENCHMARKS.md has a place for each bench, between ``<!-- measured NAME -->`` and
``<!-- end NAME -->``; what was measured replaces what stood there, and all else is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benches.figure import Figure

OURS = "searchbench"


@dataclass(frozen=True, slots=True)
class Table:
    """``rows`` of as many cells as there are ``columns``; the first column is names."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """A heading, the table with numbers to the right, the notes."""
        lines = [f"#### {self.title}", "", _line(self.columns)]
        lines.append("|---" + "|--:" * (len(self.columns) - 1) + "|")
        lines += [_line(row) for row in self.rows]
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)]) + "\n"

    def text(self) -> str:
        """As printed: columns under each other."""
        cells = [self.columns, *self.rows]
        widths = [max(len(row[at]) for row in cells) for at in range(len(self.columns))]
        lines = [f"  {self.title}"]
        for row in cells:
            rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
            lines.append("    " + "  ".join([row[0].ljust(widths[0]), *rest]))
        return "\n".join([*lines, *(f"    {note}" for note in self.notes)])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The median and the range: ``1.31 (1.27..1.36)``."""
    low, middle, high = (f"{v:.{digits}f}" for v in (min(values), median(values), max(values)))
    return f"{middle} ({low}..{high})"


def section(machine: str, told: Sequence[Figure | Table], missing: Sequence[str]) -> str:
    """What one bench found, as it stands in BENCHMARKS.md."""
    figures = [f for f in told if isinstance(f, Figure)]
    held = [f for f in figures if f.reached() is not None]
    plain = [f for f in figures if f.reached() is None]
    parts = [f"*{machine}*\n"]
    parts += [table.markdown() for table in told if isinstance(table, Table)]
    if held:
        cells = tuple((f.name.strip(), _value(f), _target(f), _mark(f)) for f in held)
        parts.append(Table("Held to", ("figure", "measured", "target", ""), cells).markdown())
    if plain:
        rows = tuple((f.name.strip(), _value(f), f.note) for f in plain)
        parts.append(Table("Measured too", ("figure", "measured", ""), rows).markdown())
    parts += [f"Not here: {line}.\n" for line in missing]
    return "\n".join(parts)


def _value(figure: Figure) -> str:
    return f"{figure.measured:.4g} {figure.unit}"


def _target(figure: Figure) -> str:
    return f"≤ {figure.at_most:g}" if figure.at_most is not None else f"≥ {figure.at_least:g}"


def _mark(figure: Figure) -> str:
    return ("reached" if figure.reached() else "**missed**") + f"; {figure.note}" * bool(
        figure.note
    )


def place(page: Path, name: str, text: str) -> bool:
    """Put a bench's section in its place; False where the page has none for it."""
    old = page.read_text(encoding="utf-8")
    found = re.search(rf"(<!-- measured {name} -->\n).*?(<!-- end {name} -->)", old, re.DOTALL)
    if not found:
        return False
    new = old[: found.end(1)] + "\n" + text + "\n" + old[found.start(2) :]
    page.write_text(new, encoding="utf-8")
    return True
