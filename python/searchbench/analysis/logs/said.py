"""What a cut and a comparison with a record come to, in words: on a terminal and a page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from searchbench.analysis.judgement import Interval
from searchbench.analysis.logs.against import ALIKE
from searchbench.analysis.logs.cut import Bound, Cut
from searchbench.analysis.words import plural

HOW_AGAINST = (
    f"The ratio is laboratory / log; within {ALIKE - 1:.0%} counts as the same. Intervals come "
    "from a block bootstrap over time, and cover how much the record's trials differ.",
    "The log has the server's own times. The record has those that the client saw (service time), "
    "which include the way to the server and back.",
)


def of_file(about: Mapping[str, Any], cut: Cut | None) -> list[str]:
    """How far a file of searches is what production was asked. ``about``: of ``logs.written``."""
    told = [str(about["sentence"])]
    if hidden := about["anonymised"]:
        told.append(_hidden(hidden))
    return told if cut is None else [*told, *of_cut(cut, about)]


def of_cut(cut: Cut, about: Mapping[str, Any]) -> list[str]:
    """How far a cut stands for its log, and what the run-up before it is."""
    whole = f"of {about['of']:,} in {about['of_seconds']:,.0f} s"
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


def of_bound(bound: Bound) -> tuple[str, str, str, str, str]:
    """A property in the log, in the cut, how far they are apart, what is allowed, the verdict."""

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
    return shown(bound.whole), shown(bound.cut), apart, allowed, verdict


def of_interval(interval: Interval) -> str:
    """The ends of the interval of a ratio."""
    low, high = interval.low, interval.high
    return f"{low:.3g}–{high:.3g}" if math.isfinite(high) else f"{low:.3g} or more"


def _hidden(hidden: Mapping[str, Any]) -> str:
    origin = {"log": "words asked often", "documents": "words of the documents"}[
        hidden["vocabulary"]
    ]
    told = (
        f"Anonymised: {hidden['exchanged']:,} {origin} took each other's places, and "
        f"{hidden['made_up']:,} {plural(hidden['made_up'], 'other is', 'others are')} made up."
    )
    if hidden["kept"]:
        kept = hidden["kept"]
        told += f" {kept:,} {plural(kept, 'word stays', 'words stay')} unchanged and readable, "
        told += "because no other word of the same kind and length is possible."
    if n := hidden["with_signs"]:
        told += (
            f" {n:,} {plural(n, 'search has', 'searches have')} signs that are neither letters nor "
            "digits, such as emoji or the vowel signs of Hindi and Thai; these stay."
        )
    if not hidden["key"]:
        told += " The key is forgotten, so another call gives other words (--key FILE keeps it)."
    return told
