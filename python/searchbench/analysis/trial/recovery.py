"""Normal, and how long until it: bounds from a time before a disturbance, looked for after it.

Normal is defined by what was before: over a span of time nearly all requests are answered well, as
a whole, and within a limit; in a closed loop they are also nearly as many. The limit is that of a
promise, or twice the p99 of before; a p99 that is far from the median would let all requests become
slower, so without a promise most may not take twice the median either. Answers are normal again
from the first request on with which such a span begins. The span holds so many requests that chance
alone seldom makes it look abnormal, and it is moved in small steps, which are the resolution.

A span that is normal says nothing of what comes later: how much of the rest was not is counted too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.stats.intervals import mean_interval
from searchbench.analysis.trial.latency import minimum_samples
from searchbench.analysis.trial.measured import NEVER, Trace
from searchbench.workload.load_table import Condition

TIMES_P99 = 2.0  # of the p99 before: the limit, where no promise says one
TIMES_MEDIAN = 2.0  # of the median before: most requests take less, where no promise says a limit
ALLOWED = 0.02  # of the requests of a span may fail, or take longer
RATE = 0.9  # of the good answers a second of before, in a closed loop at least
SPAN_S, REQUESTS = 1.0, 200  # of a span, at least, by the rate of before
OVER = 2.0  # requests of a span that may be over the limit, at least, by the share that may
STEPS = 20  # of a span
MOSTLY = 0.9  # of the spans before must be normal, else the bounds say nothing

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Normal:
    """What is normal. ``limit_s``: of a response; ``allowed``: the share of requests that may fail
    or take longer; ``good_per_s``: good answers a second, at least, in a closed loop, else 0;
    ``span_s``: over so long; ``step_s``: known so closely. ``slow``: the share of requests that may
    take ``slow_s`` or longer.
    """

    limit_s: float
    allowed: float
    good_per_s: float
    span_s: float
    step_s: float
    slow_s: float = math.inf
    slow: float = 1.0


@dataclass(frozen=True, slots=True)
class Again:
    """``after_s``: until answers were normal; infinite: they were not, in ``looked_s``.

    ``later``: the share of the time from then on in which they were not (0 where they never were).
    """

    after_s: float
    looked_s: float
    later: float


class Answers:
    """The requests of a trace by when they were due, good or not."""

    def __init__(self, trace: Trace, limit_s: float, slow_s: float = math.inf) -> None:
        order = np.argsort(trace.due, kind="stable")
        self.due: Ints = trace.due[order]
        good = in_time(trace, limit_s)[order]
        self.good_due: Ints = self.due[good]
        self._bad = np.concatenate([[0], np.cumsum(~good)])
        slow = ~in_time(trace, min(limit_s, slow_s))[order]
        self._slow = np.concatenate([[0], np.cumsum(slow)])

    def normal(self, at_ns: Ints, normal: Normal) -> NDArray[np.bool_]:
        """Of each span that begins then."""
        end_ns = at_ns + round(normal.span_s * 1e9)
        first, last = (np.searchsorted(self.due, each) for each in (at_ns, end_ns))
        n, bad = last - first, self._bad[last] - self._bad[first]
        slow = self._slow[last] - self._slow[first]
        found: NDArray[np.bool_] = (
            (n > 0)
            & (bad <= normal.allowed * n)
            & (slow <= normal.slow * n)
            & (n - bad >= normal.good_per_s * normal.span_s)
        )
        return found


def in_time(trace: Trace, limit_s: float) -> NDArray[np.bool_]:
    """Which requests were answered well, as a whole and within the limit."""
    found: NDArray[np.bool_] = (
        (trace.outcome == 0) & (trace.done != NEVER) & (trace.done - trace.due < limit_s * 1e9)
    )
    return found


def normal_before(
    trace: Trace, start_ns: int, end_ns: int, *, closed: bool, promise: Condition | None = None
) -> Normal | str:
    """What is normal, by the requests due in a time before; why it is not known, if it is not.

    ``promise``: a condition with a limit, which then says what is in time and how many may not be.
    """
    there = (trace.due >= start_ns) & (trace.due < end_ns)
    seconds = (end_ns - start_ns) / 1e9
    well = there & (trace.outcome == 0) & (trace.done != NEVER)
    n, least = int(np.count_nonzero(well)), minimum_samples(0.99)
    if n < least:
        return (
            f"there were only {n:,} good answers before it, and to know what is normal takes at "
            f"least {least:,}"
        )
    limit_s, allowed, slow_s, slow = 0.0, ALLOWED, math.inf, 1.0
    if promise is not None and promise.limit_ns is not None:
        limit_s, allowed = promise.limit_ns / 1e9, promise.allowed
    else:
        responses = (trace.done - trace.due)[well]
        limit_s = TIMES_P99 * float(np.quantile(responses, 0.99)) / 1e9
        slow_s = TIMES_MEDIAN * float(np.median(responses)) / 1e9
        # Half of those that did not before: a median between two kinds of requests is no bound.
        slow = (1 + float((responses >= slow_s * 1e9).mean())) / 2
    rate = float(np.count_nonzero(there)) / seconds
    span_s = max(SPAN_S, max(REQUESTS, OVER / allowed) / rate)
    if span_s > seconds:
        return (
            f"there were only {seconds:.3g} s before it, and at this rate it takes at least "
            f"{span_s:.2g} s to know what is normal"
        )
    good = int(np.count_nonzero(there & in_time(trace, limit_s)))
    normal = Normal(
        limit_s, allowed, RATE * good / seconds if closed else 0.0, span_s, span_s / STEPS,
        slow_s, slow,
    )  # fmt: skip
    steps = _steps(start_ns, end_ns, normal)
    held = float(Answers(trace, limit_s, slow_s).normal(steps, normal).mean())
    if held < MOSTLY:
        kept = "the promise was not kept" if promise is not None else "answers varied too much"
        return f"before it {kept}, so there is no normal to come back to"
    return normal


def again(trace: Trace, normal: Normal, since_ns: int, end_ns: int) -> Again:
    """When answers were normal, of those due from ``since_ns`` to ``end_ns``."""
    steps, looked_s = _steps(since_ns, end_ns, normal), max(0.0, (end_ns - since_ns) / 1e9)
    answers = Answers(trace, normal.limit_s, normal.slow_s)
    held = answers.normal(steps, normal)
    if not held.any():
        return Again(math.inf, looked_s, 0.0)
    first = int(np.argmax(held))
    # A span may begin with a few that were not in time, or with nothing at all.
    at = np.searchsorted(answers.good_due, steps[first])
    begun_ns = int(answers.good_due[min(at, len(answers.good_due) - 1)])
    return Again((begun_ns - since_ns) / 1e9, looked_s, float((~held[first:]).mean()))


def bounds(normal: Normal, promise: str = "") -> str:
    """The bounds in a clause, for people."""
    limit, span = _time(normal.limit_s), f"{normal.span_s:.2g} s"
    most = f"{100 * normal.allowed:.2g} %"
    what = f"at most {most} of the requests due in {span} fail or take {limit} or more"
    what += f" ({promise})" if promise else " (twice the p99 before)"
    if math.isfinite(normal.slow_s):
        what += (
            f", at most {100 * normal.slow:.0f} % take {_time(normal.slow_s)} or more (twice the "
        )
        what += "median before)"
    if normal.good_per_s:
        what += f", and good answers are at least {normal.good_per_s:,.3g} a second"
    return what


def normal_is(bounds: str) -> str:
    """The bounds in a sentence after a space; empty: they are not known."""
    return f" Normal is: {bounds}." if bounds else ""


def over_trials(values: Sequence[float], unit: str) -> Estimate | None:
    """The mean with its interval over trials; where one is infinite, the median and the range."""
    if not values:
        return None
    n = len(values)
    if not all(map(math.isfinite, values)):
        low = min(values)
        span = Interval(low, math.inf, 1.0, "least to greatest of trials")
        middle = float(sorted(values)[n // 2])
        return Estimate(middle, unit, n, span if math.isfinite(low) else None)
    span_of = mean_interval(values)
    if span_of is not None:  # what cannot be less than nothing is not said to be perhaps less
        span_of = Interval(max(0.0, span_of.low), span_of.high, span_of.level, span_of.method)
    return Estimate(float(np.mean(values)), unit, n, span_of)


def of_some(trials: int, unknown: int) -> str:
    """Of how many trials alone it is known, a clause; empty: of all."""
    if not unknown:
        return ""
    return f", and only in {trials - unknown} of {trials} trials"


def _steps(start_ns: int, end_ns: int, normal: Normal) -> Ints:
    """Where spans begin that end by then; the first in any case, if there is room for it."""
    last_ns = end_ns - round(normal.span_s * 1e9)
    return np.arange(start_ns, max(start_ns - 1, last_ns) + 1, max(1, round(normal.step_s * 1e9)))


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"
