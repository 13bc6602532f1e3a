"""Printing: plain tables for people, JSON with stable names for machines.

A reader of our output may leave before its end, as ``head`` does. What is only printed then ends
(``main``); what measures or writes files goes on (``outlast_readers``).
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any, TextIO


def as_json(value: Any) -> None:
    """One JSON document on standard output."""
    import orjson

    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    sys.stdout.write(orjson.dumps(value, option=options, default=str).decode() + "\n")


def say(text: str = "", to: TextIO | None = None) -> None:
    """A line, or paragraphs, on standard output or ``to``, wrapped to the terminal."""
    import textwrap

    stream = to or sys.stdout
    width = min(100, shutil.get_terminal_size((80, 24)).columns)
    for line in text.split("\n"):
        stream.write(textwrap.fill(line, width, break_on_hyphens=False) + "\n")


def points(texts: Sequence[str]) -> None:
    """Each text as a point of a list, wrapped to the terminal."""
    import textwrap

    width = min(100, shutil.get_terminal_size((80, 24)).columns)
    for text in texts:
        filled = textwrap.fill(f"- {text}", width, break_on_hyphens=False, subsequent_indent="  ")
        sys.stdout.write(filled + "\n")


def table(
    header: Sequence[str], rows: Sequence[Sequence[object]], less: Sequence[str] = ()
) -> None:
    """Aligned columns: numbers to the right, texts to the left.

    Where the terminal is too narrow, columns named in ``less`` are left out, the first of them
    first; then what the last column holds goes below its row.
    """
    for line in laid_out(header, rows, less, shutil.get_terminal_size((80, 24)).columns):
        sys.stdout.write(line + "\n")


def laid_out(
    header: Sequence[str], rows: Sequence[Sequence[object]], less: Sequence[str], width: int
) -> list[str]:
    """The lines of a table in so many columns of letters (``table``)."""
    import textwrap

    cells = [list(header), *([str(c) for c in row] for row in rows)]
    for name in less:
        if _wide(cells) > width and name in cells[0]:
            at = cells[0].index(name)
            cells = [[*row[:at], *row[at + 1 :]] for row in cells]
    below = [""] * len(cells)
    if _wide(cells) > width and not cells[0][-1]:
        below, cells = [row[-1] for row in cells], [row[:-1] for row in cells]
    widths = _widths(cells)
    right = [
        len(cells) > 1 and all(map(_numeric, column[1:])) for column in zip(*cells, strict=True)
    ]
    lines = []
    for row, under in zip(cells, below, strict=True):
        parts = [
            c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
        if under:
            indent = "    "
            lines += textwrap.wrap(under, width, initial_indent=indent, subsequent_indent=indent)
    return lines


class _Lasting(io.FileIO):
    """A file descriptor whose reader may leave: what is written from then on goes nowhere."""

    def write(self, data: Any, /) -> int:
        """As of a file; never BrokenPipeError."""
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


def outlast_readers() -> None:
    """From now on, go on when nobody reads standard output or standard error any longer."""
    sys.stdout, sys.stderr = _lasting(sys.stdout), _lasting(sys.stderr)


def _lasting(stream: TextIO) -> TextIO:
    """The same stream; as it is where it was replaced by something that is no pipe of ours."""
    if stream not in (sys.__stdout__, sys.__stderr__) or not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    raw = _Lasting(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        raw if stream.write_through else io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def drop_readers() -> None:
    """What is still to be written goes nowhere: nobody reads it, and an exit would try again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*cells, strict=True)]


def _wide(cells: Sequence[Sequence[str]]) -> int:
    """How wide the table is, with two spaces between its columns."""
    return sum(_widths(cells)) + 2 * (len(cells[0]) - 1)


def _numeric(text: str) -> bool:
    return text[:1].isdigit() or text in ("", "–") or text[:1] in "+-±×"
