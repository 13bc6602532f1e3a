"""A log as load, and a log beside a record, on a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from searchbench.analysis.logs.against import ALIKE, Against
from searchbench.analysis.logs.cut import Bound, Cut
from searchbench.analysis.logs.remarks import seconds
from searchbench.report.document.text import short
from searchbench.terminal import out

_ROWS = 30


def show_queries(about: Mapping[str, Any], cut: Cut | None, path: Path, beside: Path) -> None:
    """What was written, how far it is what production was asked, and how to replay it."""
    out.say(f"{about['searches']:,} searches, {about['distinct']:,} of them distinct, in {path}")
    out.say()
    told = [about["sentence"]]
    if hidden := about["anonymised"]:
        told.append(_hidden(hidden))
    if cut is not None:
        told += _cut(cut, about)
    out.points(told)
    if cut is not None:
        out.say()
        out.table(
            ("what", "whole log", "cut", "apart", "allowed", ""), [_row(b) for b in cut.bounds]
        )
        if cut.skipped:
            out.say()
            out.points([f"Not compared: {what}." for what in cut.skipped])
    out.say("\nIn a study:\n")
    for line in about["study"].splitlines():
        out.say(f"    {line}" if line else "")
    out.say(f"\nabout: {beside}")


def _hidden(hidden: Mapping[str, Any]) -> str:
    origin = {"log": "words asked often", "documents": "words of the documents"}[
        hidden["vocabulary"]
    ]
    told = (
        f"Anonymised: {hidden['exchanged']:,} {origin} took each other's places, "
        f"{hidden['made_up']:,} others are made up."
    )
    if hidden["kept"]:
        told += f" {hidden['kept']:,} have no other word of their kind and length, and stay."
    if not hidden["key"]:
        told += " The key is forgotten, so another call gives other words (--key FILE keeps it)."
    return told


def _cut(cut: Cut, about: Mapping[str, Any]) -> list[str]:
    whole = f"of {about['of']:,} in {about['last_s'] - about['first_s']:,.0f} s"
    length = f"{len(cut.window):,} searches in {cut.seconds:,.0f} s"
    missed = [bound.name for bound in cut.bounds if not bound.reached]
    if missed:
        first = (
            f"The cut of {length}, {whole}, does not stand for the log in {len(missed)} of "
            f"{len(cut.bounds)} properties: {', '.join(missed)}. It is the best that --cut "
            "allows; allow a longer one."
        )
    elif cut.whole:
        first = "No shorter cut is within all bounds: the file has the whole log."
    else:
        first = (
            f"The shortest cut within all bounds has {length}, {whole}; it begins "
            f"{cut.from_s:,.0f} s after the first."
        )
    found = [first]
    if len(cut.run_up):
        found.append(
            f"A run-up of {len(cut.run_up):,} searches in {cut.warmup_s:,.1f} s comes before it, "
            "so that its repeats are repeats and caches are as full as they were. The run-up is "
            "the warm-up (warmup_s) and is not measured; its times are not the log's."
        )
    return found


def _row(bound: Bound) -> tuple[str, str, str, str, str, str]:
    def shown(value: float) -> str:
        if math.isnan(value):
            return "–"
        return f"{value:.3g}" if bound.relative else f"{value:.1%}"

    if math.isinf(bound.apart):
        apart = "–"
    elif bound.relative:
        apart = f"{bound.apart:.1%}"
    else:
        apart = f"{100 * bound.apart:.1f} points"
    allowed = f"{bound.allowed:.0%}" if bound.relative else f"{100 * bound.allowed:.0f} points"
    verdict = "" if bound.reached else "not reached"
    return bound.name, shown(bound.whole), shown(bound.cut), apart, allowed, verdict


def show_against(found: Sequence[Against]) -> None:
    """Each treatment: the sentence, the quantiles by class, what else is to be said."""
    for one in found:
        if len(found) > 1:
            out.say(f"{one.label}\n")
        out.say(one.sentence)
        out.say()
        rows = []
        for line in one.lines[:_ROWS]:
            known = line.interval is not None
            rows.append((
                short(line.of_class, 40), f"p{100 * line.quantile:g}",
                f"{line.n[0]:,}", f"{line.n[1]:,}",
                seconds(line.log_s, one.step_s) if known else "–",
                seconds(line.lab_s) if known else "–",
                "–" if line.ratio is None else f"{line.ratio:.3g}",
                _interval(line.interval.low, line.interval.high) if line.interval else "–",
                line.answer,
            ))  # fmt: skip
        out.table(
            ("class", "", "in the log", "measured", "log", "laboratory", "ratio", "95 %", ""),
            rows, less=("in the log", "measured"),
        )  # fmt: skip
        if len(one.lines) > _ROWS:
            out.say(f"and {len(one.lines) - _ROWS} more: see --json")
        out.say()
        out.points([
            *one.remarks,
            f"The ratio is laboratory / log; within {ALIKE - 1:.0%} counts as the same. Intervals "
            "come from a block bootstrap over time; if a record has few trials, they do not cover "
            "how much runs differ.",
            "The log has the server's own times. The record has those that the client saw (service "
            "time), which include the way to the server and back.",
        ])  # fmt: skip


def _interval(low: float, high: float) -> str:
    return f"{low:.3g}–{high:.3g}" if math.isfinite(high) else f"{low:.3g} or more"
