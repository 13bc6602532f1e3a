"""A log as load, and a log beside a record, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from searchbench.analysis.logs import said
from searchbench.analysis.logs.against import Against
from searchbench.analysis.logs.cut import Cut
from searchbench.analysis.logs.remarks import seconds
from searchbench.report.document.text import short
from searchbench.terminal import out

_ROWS = 30


def show_queries(
    about: Mapping[str, Any], cut: Cut | None, path: Path, beside: Path, page: Path | None
) -> None:
    """What was written, how far it is what production was asked, and how to replay it."""
    out.say(f"{about['searches']:,} searches, {about['distinct']:,} of them distinct, in {path}")
    out.say()
    out.points(said.of_file(about, cut))
    if cut is not None:
        out.say()
        out.table(
            ("what", "whole log", "cut", "apart", "allowed", ""),
            [(b.name, *said.of_bound(b)) for b in cut.bounds],
        )
        if cut.skipped:
            out.say()
            out.points([f"Not compared: {what}." for what in cut.skipped])
    out.say("\nIn a study:\n")
    for line in about["study"].splitlines():
        out.say(f"    {line}" if line else "")
    out.say(f"\nabout: {beside}")
    if page is not None:
        out.say(f"page: {page}")


def show_against(found: Sequence[Against], page: Path | None) -> None:
    """Each treatment: the sentence, the quantiles by class, what else is to be said."""
    for one in found:
        if len(found) > 1:
            out.say(f"{one.label}\n")
        out.say(one.sentence)
        out.say()
        rows = []
        for line in one.lines[:_ROWS]:
            known = line.answer != "too few"
            rows.append((
                short(line.of_class, 40), f"p{100 * line.quantile:g}",
                f"{line.n[0]:,}", f"{line.n[1]:,}",
                seconds(line.log_s, one.step_s) if known else "–",
                seconds(line.lab_s) if known else "–",
                "–" if line.ratio is None else f"{line.ratio:.3g}",
                said.of_interval(line.interval) if line.interval else "–",
                line.answer,
            ))  # fmt: skip
        out.table(
            ("class", "", "in the log", "measured", "log", "laboratory", "ratio", "95 %", ""),
            rows, less=("in the log", "measured"),
        )  # fmt: skip
        if len(one.lines) > _ROWS:
            out.say(f"and {len(one.lines) - _ROWS} more: see --json")
        out.say()
        out.points([*one.remarks, *said.HOW_AGAINST])
    if page is not None:
        out.say(f"\npage: {page}")
