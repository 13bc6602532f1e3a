"""Was the measured window steady? Shown to be, shown not to be, or unknown: silence proves nothing.

An equivalence test (Schuirmann 1987): steady is what has been shown to change by less than a stated
share, however few or many requests there are. Where the interval is too wide for that, and also for
the contrary, the answer is unknown.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Answer, Estimate, Interval, Steadiness
from searchbench.analysis.stats.distributions import normal, student
from searchbench.analysis.stats.within import long_run
from searchbench.analysis.trial import silence
from searchbench.analysis.trial.measured import Trace

MARGIN = 0.05  # a smaller change than this share counts as none
LOAD_MARGIN = 0.10  # a smaller change of the offered load is none that times would show
MEAN_MARGIN = 0.10  # of the mean of the times, which a few slow requests make less sure
LEVEL = 0.98  # either end of an interval is passed by chance once in 100
AHEAD_S = 10.0  # a pace of change is followed at least so far
FEWEST = 30  # requests; fewer do not even show their own scatter
SCATTER = 0.3
SLICES = 100
PER_SLICE = 5
FIFTH = 0.2
_LAGS, _RISES = (1, 5, 15), (2.0, 1.4)  # slices; by so much rises what wanders, lag to lag

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def steadiness(trace: Trace, closed: bool) -> Steadiness:
    """The answer for the measured window of a trace.

    Steady where the first and the last fifth are within 5 % of the rest, and where the pace of
    change, were it to last as long again as the trial has run (at least 10 s), would come to less
    than 5 %: a system that warms up for a minute changes little within a second. Of a long warm-up
    the second half of the whole trial may show it too. All this is of logarithms, which hardly see
    a few slow requests; so it is unknown unless the mean of the times is shown to move by less
    than 10 % too, and stalls take less than 5 % of the window. Not steady where a change within the
    window is beyond 5 %, as long as the queries are compared each with itself and, in an open loop,
    the rate stays: at a rate that grows they wait longer in a steady system.
    """
    what = "service time" if closed else "response time"
    start, end = trace.window
    ahead_s = max(AHEAD_S, end / 1e9)
    found, alike = changes(trace, closed, start, ahead_s)
    if not found:
        n = int(np.count_nonzero(trace.measured() & (trace.outcome == 0)))
        return Steadiness("unknown", what, n, ahead_s, {})
    n = next(iter(found.values())).n
    late = changes(trace, closed, end // 2, ahead_s)[0] if start > end // 2 else {}
    if any(each and all(map(_within, each.values())) for each in (found, late)):
        by_mean = mean_within(trace, closed, start, MEAN_MARGIN)
        by_mean = by_mean and silence.share(trace, closed) < MARGIN
        shown: Answer = "steady" if by_mean else "unknown"
        return Steadiness(shown, what, n, ahead_s, found, None, alike, by_mean)
    loaded = 0.0 if closed else load_changed(trace)
    beyond = any(_beyond(change) for where, change in found.items() if where != "ahead")
    if alike and beyond and not loaded:
        return Steadiness("not steady", what, n, ahead_s, found, None, alike)
    needed = None if loaded else _window_needed(found["ahead"], trace.window_s, start / 1e9)
    return Steadiness("unknown", what, n, ahead_s, found, needed, alike, load_changed=loaded)


def load_changed(trace: Trace) -> float:
    """By what share the offered load changed over the window, as far as no chance makes it.

    Of its slope over the window and of its first and last fifth against the rest the greatest;
    0 where none is shown to be a tenth or more.
    """
    start, end = trace.window
    due = trace.due[trace.measured()]
    slices = min(SLICES, due.size // PER_SLICE)
    if slices < FEWEST:
        return 0.0
    edges = np.linspace(start, end, slices + 1)
    offered = np.histogram(due, edges)[0] / (due.size / slices)
    x = (np.arange(slices) + 0.5) / slices
    alone = np.zeros(slices, np.int64)
    parts = (x, (x < FIFTH).astype(np.float64), (x >= 1 - FIFTH).astype(np.float64))
    shown = [
        value for value, half in (_slope(part, offered, alone, LEVEL) for part in parts)
        if abs(value) - half > LOAD_MARGIN
    ]  # fmt: skip
    return max(shown, key=abs, default=0.0)


def moves(found: Steadiness) -> bool:
    """Whether any change of the same queries is more than chance, and not of their rate."""
    if not found.alike or found.load_changed:
        return False
    spans = [e.interval for e in found.changes.values() if e.interval is not None]
    return any(span.low > 0 or span.high < 0 for span in spans)


def slows(found: Steadiness) -> bool:
    """Whether the times became longer over the window, as far as can be seen."""
    return "window" in found.changes and found.changes["window"].value > 0


def mean_within(
    trace: Trace, closed: bool, begin: int, margin: float, level: float = LEVEL
) -> bool:
    """Whether the mean of the times, slow requests and all, is shown to move by less than this.

    As ``changes``, of times over the mean of their query: a request in a hundred that takes a
    hundred times as long doubles the mean, and the logarithms hardly see it.
    """
    at, query, _ = _compared(trace, begin)
    if at.size < FEWEST:
        return False
    took = (trace.done[at] - (trace.sent if closed else trace.due)[at]).astype(np.float64)
    means = np.bincount(query, took) / np.maximum(1, np.bincount(query))
    y = took / np.maximum(1.0, means[query])
    x = (trace.due[at] - begin) / (trace.window[1] - begin)
    parts = (x, (x < FIFTH).astype(np.float64), (x >= 1 - FIFTH).astype(np.float64))
    found = (_slope(part, y, query, level) for part in parts)
    return all(abs(value) + half <= margin for value, half in found)


def rate_needed(window_s: float) -> float:
    """About how many requests a second mostly show a window of this length to be steady.

    Nine times in ten, at a scatter of 30 % from one asking of a query to the next. The standard
    error of a slope over n requests is that of one times sqrt(12 / n).
    """
    errors = normal(0.5 + LEVEL / 2) + normal(0.9)
    half = errors * SCATTER * math.sqrt(12.0) * max(AHEAD_S, window_s) / window_s
    return (half / MARGIN) ** 2 / window_s


def first_asks(trace: Trace) -> Estimate | None:
    """The share of measured requests that were the first of their query in the whole drive."""
    measured = trace.measured()
    n = int(np.count_nonzero(measured))
    if not n:
        return None
    order = np.argsort(trace.due, kind="stable")[::-1]
    first = np.zeros(int(trace.query.max()) + 1, dtype=np.int64)
    first[trace.query[order]] = order  # of several the last one stays: the earliest
    asked = np.unique(trace.query)
    return Estimate(float(np.count_nonzero(measured[first[asked]])) / n, "share", n)


def changes(
    trace: Trace, closed: bool, begin: int, ahead_s: float, level: float = LEVEL
) -> tuple[dict[str, Estimate], bool]:
    """By what share the times change from ``begin`` (ns) to the window's end, by where.

    "window": over that span; "ahead": in ``ahead_s`` at the same pace; "first fifth" and "last
    fifth": against the rest. Below 0: they became shorter. And whether queries were compared
    each with itself, which needs half of the requests to be of queries asked more than once; the
    others are left out then. Else all are one kind, and their costs add to the scatter.
    """
    at, query, alike = _compared(trace, begin)
    if at.size < FEWEST:
        return {}, False
    took = trace.done[at] - (trace.sent if closed else trace.due)[at]
    y = np.log(np.maximum(1, took))
    span_s = (trace.window[1] - begin) / 1e9
    x = (trace.due[at] - begin) / (trace.window[1] - begin)
    walk = 0.0 if closed else wandering(_centred(y, query))
    drift = _slope(x, y, query, level, walk)
    each = {
        "window": drift,
        "ahead": (drift[0] * ahead_s / span_s, drift[1] * ahead_s / span_s),
        "first fifth": _slope((x < FIFTH).astype(np.float64), y, query, level, walk),
        "last fifth": _slope((x >= 1 - FIFTH).astype(np.float64), y, query, level, walk),
    }
    n = at.size
    return {where: _share(value, half, n, level) for where, (value, half) in each.items()}, alike


def _compared(trace: Trace, begin: int) -> tuple[Ints, Ints, bool]:
    """The requests that are compared, in the order of time; their kinds; whether by query."""
    kept = (trace.outcome == 0) & (trace.done >= 0) & (trace.sent >= 0)
    kept &= (trace.due >= begin) & (trace.due < trace.window[1])
    at = np.flatnonzero(kept)
    at = at[np.argsort(trace.due[at], kind="stable")]
    _, query, asked = np.unique(trace.query[at], return_inverse=True, return_counts=True)
    again = asked[query] > 1
    if 2 * int(np.count_nonzero(again)) >= at.size:
        return at[again], query[again], True
    return at, np.zeros_like(query), False


def wandering(y: Floats) -> float:
    """The variance by which the level of ``y``, in the order of time, wanders from one slice to the
    next; 0 where it does not.

    A queue near saturation wanders for its relaxation time without any change of the system. Where
    that is a tenth of the window or more, its wandering is a random walk, which has no long-run
    variance to be seen. Second differences tell it: their variance rises with the lag for a walk
    (2 v for each slice), not for independent requests, nor much for a trend or a step, which moves
    few of them (so they are taken by their median).
    """
    slices = min(SLICES, y.size // PER_SLICE)
    if slices < 3 * _LAGS[-1]:
        return 0.0
    edges = np.arange(slices + 1) * y.size // slices
    levels = np.add.reduceat(y, edges[:-1]) / np.diff(edges)
    one, some, many = (_second(levels, lag) for lag in _LAGS)
    if some < _RISES[0] * one or many < _RISES[1] * some:
        return 0.0
    return (some - one) / (2 * (_LAGS[1] - _LAGS[0]))


def _second(levels: Floats, lag: int) -> float:
    """The variance of second differences, by their median."""
    differences = levels[2 * lag :] - 2 * levels[lag:-lag] + levels[: -2 * lag]
    return float(np.median(np.abs(differences)) / normal(0.75)) ** 2


def _slope(
    x: Floats, y: Floats, query: Ints, level: float, walk: float = 0.0
) -> tuple[float, float]:
    """Slope of y on x within queries, and half of its interval (least squares with fixed effects).

    The requests are in the order of time and depend on their neighbours, so the variance is the
    long-run one of the residuals' sums over slices; never less than if slices were independent.
    ``walk``: as ``wandering`` has it.
    """
    n, groups = x.size, int(np.count_nonzero(np.bincount(query)))
    if n - groups < FEWEST // 3:
        return 0.0, math.inf
    x, y = _centred(x, query), _centred(y, query)
    # No `@`: for long ones BLAS wakes threads that spin, on the processors of what is measured.
    xx = float((x * x).sum())
    if xx <= 1e-9 * n:  # no query was asked both within the part and outside
        return 0.0, math.inf
    value = float((x * y).sum()) / xx
    slices = min(SLICES, n // PER_SLICE)
    sums = np.add.reduceat(y - value * x, np.arange(slices) * n // slices)
    variance, freedom = long_run(sums)
    variance = max(variance, slices * float(sums.var(ddof=2))) / (n - groups - 1)
    half = student(0.5 + level / 2, freedom) * math.sqrt(variance / xx)
    if not walk:
        return value, half
    # What comes later in the window has moved with every step before it.
    later = np.add.reduceat(x, np.arange(slices) * n // slices)[::-1].cumsum() / xx
    wandered = math.sqrt(walk * float((later[:-1] ** 2).sum()))
    return value, math.hypot(half, normal(0.5 + level / 2) * wandered)


def _centred(values: Floats, query: Ints) -> Floats:
    """Each less the mean of its query."""
    means = np.bincount(query, values) / np.maximum(1, np.bincount(query))
    centred: Floats = values - means[query]
    return centred


def _share(value: float, half: float, n: int, level: float) -> Estimate:
    """A change of the log as a share, with its interval."""
    low, middle, high = (math.expm1(min(v, 20.0)) for v in (value - half, value, value + half))
    method = "t on logs, each query against itself, long-run variance"
    return Estimate(middle, "share", n, Interval(low, high, level, method))


def _within(change: Estimate) -> bool:
    span = change.interval
    return span is not None and span.low >= -MARGIN and span.high <= MARGIN


def _beyond(change: Estimate) -> bool:
    span = change.interval
    return span is not None and (span.low > MARGIN or span.high < -MARGIN)


def _window_needed(ahead: Estimate, window_s: float, start_s: float) -> float | None:
    """Seconds of window, at this rate and scatter, after which half of the margin is enough.

    The error of a drift falls with the square root of the requests; at a pace, also with the
    window. None where that is more than a day.
    """
    span = ahead.interval
    if span is None or span.low <= -1:
        return None
    half = (math.log1p(span.high) - math.log1p(span.low)) / 2 / max(AHEAD_S, start_s + window_s)
    seconds = window_s
    while half * (window_s / seconds) ** 1.5 * max(AHEAD_S, start_s + seconds) > MARGIN / 2:
        seconds *= 1.25
        if seconds > 86_400:
            return None
    return seconds
