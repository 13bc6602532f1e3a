"""What is normal and how long until it, over the trials of a treatment, in words."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.stats.intervals import mean_interval
from searchbench.analysis.trial.recovery import Bound, Normal, deciding
from searchbench.analysis.words import digits, percent

UNLIKE = 2.0  # times the median, by which the greatest and the least of trials may differ


def bounds(normal: Normal) -> str:
    """The bounds in a clause, for people."""
    said, before = list[str](), None
    whole = "all" if any(bound.of_class for bound in normal.bounds) else "the"
    for bound in normal.bounds:
        of = ""
        if bound.of_class != before:
            name = bound.of_class
            whose = f"the requests of class {name}" if name else f"{whole} requests"
            of = f" of {whose}" + (f" due in {normal.span_s:.2g} s" if not said else "")
            before = name
        late = f" or take {_time(bound.limit_s)} or more" if math.isfinite(bound.limit_s) else ""
        said.append(f"at most {100 * bound.allowed:.2g} %{of} fail{late} ({bound.text})")
    if normal.good_per_s:
        said.append(f"and good answers are at least {normal.good_per_s:,.3g} a second")
    return ", ".join(said)


def in_time_is(bounds: Sequence[Bound]) -> str:
    """What "in time" means, for a bracket: "below 50 ms", for each class that has a limit."""
    least = {b.of_class: b.limit_s for b in reversed(deciding(bounds))}
    each = (f"{name + ': ' if name else ''}below {_time(s)}" for name, s in least.items())
    return "; ".join(each)


def normal_is(bounds: str) -> str:
    """The bounds in a sentence after a space; empty: they are not known."""
    return f" Normal is: {bounds}." if bounds else ""


def over_trials(values: Sequence[float], unit: str) -> Estimate | None:
    """The mean with its interval over trials; where they are unlike, so that it would be the figure
    of none of them, or one is infinite: the median and the range."""
    if not values:
        return None
    n, middle = len(values), statistics.median(values)
    low = min(values)
    unlike = max(values) > UNLIKE * middle or low < middle / UNLIKE
    if unlike or not all(map(math.isfinite, values)):
        span = Interval(low, max(values), 1.0, "least to greatest of trials")
        return Estimate(middle, unit, n, span if n > 1 and math.isfinite(low) else None)
    span_of = mean_interval(values)
    if span_of is not None:  # what cannot be less than nothing is not said to be perhaps less
        span_of = Interval(max(0.0, span_of.low), span_of.high, span_of.level, span_of.method)
    return Estimate(float(np.mean(values)), unit, n, span_of)


def between(span: Interval | None, said: Callable[[float], str] = digits) -> str:
    """An interval of ``over_trials`` after a space, in brackets; empty: there is none."""
    if span is None:
        return ""
    ends = f"{said(span.low)} to {said(span.high)}"
    return f" (95 % interval {ends})" if span.level < 1 else f" (median; trials: {ends})"


def range_of(found: Estimate, said: Callable[[float], str] = digits) -> str:
    """The range of trials that are unlike, as ``between``; empty: the mean stands for all."""
    span = found.interval
    return between(span, said) if span is not None and span.level == 1 else ""


def share(found: Estimate) -> str:
    """A share in a sentence, with its range where trials are unlike."""
    return percent(found.value) + range_of(found, percent)


def ever(found: Estimate | None) -> bool:
    """Is it above nought in any trial?"""
    if found is None:
        return False
    return max(found.value, found.interval.high if found.interval is not None else 0.0) > 0


def later(figures: Mapping[str, Estimate]) -> str:
    """For how much of the time answers were not normal once they had been; empty: never."""
    found = figures.get("later")
    if found is None or not ever(found):
        return ""
    return f" In {share(found)} of the time after that they were not."


def now_and_then(figures: Mapping[str, Estimate]) -> str:
    """Of answers that were not normal again, for how much of the time they were, if ever."""
    found = figures.get("later")
    if found is None or found.value >= 1:
        return ""
    return f" They were normal at times, for {percent(1 - found.value)} of that time."


def took(found: Estimate, since: str, step_s: float, some: str) -> str:
    """How long it was until answers were normal, a clause. ``since``: from when on it counts;
    ``step_s``: how closely it is known, so that less than that is at once; ``some``: ``of_some``.
    """
    most = found.interval.high if found.interval else found.value
    if max(found.value, most) <= step_s:
        return f"Answers were normal at once {since} (within {_time(step_s)}{some})"
    known = f"known to within {_time(step_s)}{some}"
    return f"Answers were normal {digits(found.value)} s{between(found.interval)} {since} ({known})"


def of_some(trials: int, unknown: int) -> str:
    """Of how many trials alone it is known, a clause; empty: of all."""
    if not unknown:
        return ""
    return f", and only in {trials - unknown} of {trials} trials"


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"
