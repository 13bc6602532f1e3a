"""Two records: throughput over a mix of queries, held against what was counted (``kept``).

Where the count tells of a loss beyond the threshold, and the mix of none, the count is the result.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from searchbench.analysis.compare import kept
from searchbench.analysis.compare.kept import Kept
from searchbench.analysis.compare.run import Run
from searchbench.analysis.judgement import Estimate, RecordLine
from searchbench.analysis.stats import within
from searchbench.analysis.stats.distributions import student, student_tails
from searchbench.analysis.stats.intervals import ALPHA, LEVEL
from searchbench.analysis.words import percent

COUNTED = "more throughput than was counted"  # in every clause that says so
SURE = "clients waited for replies that no latency contains"
MAYBE = "clients may have waited for replies that no latency contains"
REMEDY = (
    "See in the server's log what it did when it gave no reply, warm up longer if that is only at "
    "the start, and measure longer windows."
)

Draft = tuple[RecordLine, float | None]


def held(draft: Draft, before: Sequence[Run], after: Sequence[Run], threshold: float) -> Draft:
    """The line over all runs; as counted where that tells of a loss of more than ``threshold``, and
    the mix of none.
    """
    line, p = draft
    mixed = line.ratio
    if mixed is None or line.metric != "throughput" or line.verdict == "not comparable":
        return draft
    if line.over == "counted" or before[0].members is not None:
        return draft
    sides = [[own for run in runs if (own := _of(run, line))] for runs in (before, after)]
    if not all(sides):
        return draft
    change, half = kept.change(*sides)
    counted = _with(mixed, change, half)
    if counted.value >= min(mixed.value, 1 - threshold):
        return draft
    found = None if p is None else _p(counted, line)
    if mixed.value < 1 - threshold and (_told(mixed, p) or not _told(counted, found)):
        return draft
    waited = SURE if -change > half else MAYBE
    why = (
        f"against the first, the latencies of the second suggest {percent(math.expm1(-change))} "
        f"{COUNTED}: {waited}, and the ratio is of what was counted"
    )
    reason = "; ".join(filter(None, (line.reason, why)))
    return replace(line, ratio=counted, reason=reason), found


def sentence(lines: Sequence[RecordLine], told: Collection[str]) -> str:
    """Which losses are of what was counted, why, and what to do; empty: none. ``told``: the labels
    of those whose reason is said anyway.
    """
    found = [
        (line.label, part)
        for line in lines
        for part in line.reason.split("; ")
        if COUNTED in part and line.ratio is not None and line.ratio.value < 1
    ]
    whys = [f"{label}: {why}." for label, why in found if label not in told]
    return " ".join([*whys, REMEDY]) if found else ""


def _of(run: Run, line: RecordLine) -> list[Kept]:
    """By trial of a run; empty where it has none of this load, or no closed loop."""
    key = run.key_of(line)
    if key is None or key not in run.by_key:
        return []
    return kept.of(run.by_key[key], run.load(key), run.samples)


def _with(ratio: Estimate, change: float, half: float) -> Estimate:
    """The ratio with the time that no latency contains; ``half`` of the interval of that."""
    value, span = ratio.value * math.exp(change), ratio.interval
    if span is None:
        return replace(ratio, value=value)
    down, up = math.log(ratio.value / span.low), math.log(span.high / ratio.value)
    low, high = math.exp(-math.hypot(down, half)), math.exp(math.hypot(up, half))
    method = f"{span.method}, with what no latency contains"
    wider = replace(span, low=value * low, high=value * high, method=method)
    return replace(ratio, value=value, interval=wider)


def _p(ratio: Estimate, line: RecordLine) -> float | None:
    """The p that it is 1, by as many degrees of freedom as the line has."""
    if ratio.interval is None:
        return None
    freedom = sum(line.runs) - 2
    if freedom < 1:
        freedom = max(1, min(2 * ratio.n - 2, within.SLICES - 1))
    log, end = math.log(ratio.value), ratio.interval.low if ratio.value > 1 else ratio.interval.high
    towards = abs(log - math.log(end))
    if towards <= 0:
        return 0.0
    return student_tails(abs(log) / towards * student(0.5 + LEVEL / 2, freedom), freedom)


def _told(ratio: Estimate, p: float | None) -> bool:
    """Whether a loss is told of by itself: it is more than chance, or it has no interval, and then
    nothing more is known of it anyway.
    """
    if ratio.interval is None or p is None:
        return True
    return p < ALPHA and ratio.interval.high < 1
