"""A log while it grows, on a terminal: drawn anew each second. Elsewhere: a line each ten seconds.

It goes to standard error, as all that shows how something fares does; what is found at the end goes
to standard output.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import PurePath
from typing import TextIO

from searchbench.analysis.logs.live import View
from searchbench.analysis.logs.model import Row
from searchbench.analysis.logs.remarks import seconds
from searchbench.report.document.text import short
from searchbench.report.tables.numbers import counted, digits, percent
from searchbench.terminal import out

_LINE_S = 10.0  # between two lines where there is no terminal
_UP = "\x1b[{}A"
_CLEAR = "\r\x1b[J"


class Screen:
    """Draws views. ``live``: whether ``stream`` is a terminal."""

    def __init__(self, stream: TextIO, names: Sequence[str], *, live: bool) -> None:
        self._stream, self._live = stream, live
        self._names = _named(names)
        self._drawn = 0
        self._said_s = 0.0

    def show(self, view: View, formats: Sequence[str], rotations: int, at_s: float) -> None:
        """The view of now. ``at_s``: of the clock of all calls."""
        if self._live:
            columns, rows = shutil.get_terminal_size((80, 24))
            lines = self._lines(view, formats, rotations, columns - 1)[: rows - 1]
            text = "".join(f"{line[: columns - 1]}\n" for line in lines)
            self._write(self._back() + text)
            self._drawn = len(lines)
        elif at_s - self._said_s >= _LINE_S:
            self._said_s = at_s
            self._write(f"{time.strftime('%H:%M:%S')}  {_line(view)}\n")

    def clear(self) -> None:
        """Take away what was drawn."""
        if self._drawn:
            self._write(self._back())
            self._drawn = 0

    def _back(self) -> str:
        return (_UP.format(self._drawn) if self._drawn else "") + _CLEAR

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def _lines(self, view: View, formats: Sequence[str], rotations: int, width: int) -> list[str]:
        head = self._names + (f" ({', '.join(formats)})" if formats else "")
        head += f", {_clock(view.since_s)} since the start"
        if rotations:
            head += f", rotated {counted(rotations, 'time')}"
        recent = "last minute" if view.since_s >= view.recent_s + 1 else "since the start"
        figures = [(recent, view.recent, view.recent_per_s)]
        if recent == "last minute":
            figures.append(("since the start", view.whole, view.whole_per_s))
        timed = bool(view.whole.quantiles_s)
        made = [[name, *_figures(row, per_s, view.resolution_s, timed=timed)]
                for name, row, per_s in figures]  # fmt: skip
        titles = ["", "searches", "a second", *(["p50", "p95", "p99", "longest"] if timed else []),
                  "no hits", "failed"]  # fmt: skip
        lines = [head, "Ctrl-C ends it and shows the report", ""]
        lines += out.laid_out(titles, made, ("longest", "no hits"), width)
        if view.classes:
            lines += ["", *_classes(view, width, timed=timed)]
        return lines


def _classes(view: View, width: int, *, timed: bool) -> list[str]:
    titles = ["class", "last minute", "share", *(["of time", "p50", "p95"] if timed else []),
              "since the start", *(["its p95"] if timed else [])]  # fmt: skip
    rows = []
    for recent, whole in view.classes:
        cells = [short(recent.name, 34) or "(none)", f"{recent.n:,}", percent(recent.share)]
        if timed:
            of_time = recent.share_of_time
            cells.append("–" if of_time is None else percent(of_time))
            cells += [_time(recent, q, view.resolution_s) for q in ("p50", "p95")]
        cells.append(f"{whole.n:,}")
        if timed:
            cells.append(_time(whole, "p95", view.resolution_s))
        rows.append(cells)
    lines = out.laid_out(titles, rows, ("share", "p50", "its p95"), width)
    if view.more:
        lines.append(f"and {counted(view.more, 'more class', 'more classes')}")
    return lines


def _figures(row: Row, per_s: float, resolution_s: float | None, *, timed: bool) -> list[str]:
    cells = [f"{row.n:,}", digits(per_s)]
    if timed:
        cells += [_time(row, q, resolution_s) for q in ("p50", "p95", "p99")]
        cells.append("–" if row.max_s is None else seconds(row.max_s, resolution_s))
    return [*cells, _share(row.zero), _share(row.errors)]


def _line(view: View) -> str:
    """All of it in one line."""
    row = view.recent
    told = [f"{digits(view.recent_per_s)} searches/s in the last {view.recent_s:.0f} s"]
    told += [f"{q} {_time(row, q, view.resolution_s)}"
             for q in ("p50", "p95", "p99") if row.quantiles_s]  # fmt: skip
    if row.errors is not None and row.n:
        told.append(f"failed {percent(row.errors)}")
    if view.classes and view.classes[0][0].n:
        told.append(f"most time: {short(view.classes[0][0].name, 40) or '(none)'}")
    told.append(f"{view.whole.n:,} since the start")
    return ", ".join(told)


def _time(row: Row, quantile: str, resolution_s: float | None) -> str:
    value = row.quantiles_s.get(quantile)
    return "–" if value is None else seconds(value, resolution_s)


def _share(value: float | None) -> str:
    return "–" if value is None else percent(value)


def _named(names: Sequence[str]) -> str:
    """What is followed, in few letters; an empty folder has nothing yet."""
    if not names:
        return "no log yet"
    if len(names) > 1:
        return f"{PurePath(names[0]).name} and {counted(len(names) - 1, 'more log')}"
    return "standard input" if names[0] == "-" else PurePath(names[0]).name


def _clock(elapsed_s: float) -> str:
    minutes, second = divmod(int(elapsed_s), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{second:02}"
