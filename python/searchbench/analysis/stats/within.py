"""What one trial alone can say of how sure its figures are: intervals from slices of its window.

Requests of one trial depend on each other: a slow one makes the next one wait. Slices of the
window are nearly independent where they are long beside the response times (batch means; Law,
Simulation Modeling and Analysis, 2015, 9.5.3). None of this knows how much the machine itself
changes from one trial to the next; only repeated trials do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Estimate, Interval
from searchbench.analysis.stats.distributions import (
    beta,
    normal,
    share_at_least,
    share_at_most,
    student,
    student_tails,
)
from searchbench.analysis.trial import latency

SLICES = 20
LEVEL = 0.95
LANDMARKS = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
BATCH_MEANS = f"batch means, {SLICES} slices"
Z = normal(0.5 + LEVEL / 2)
T = student(0.5 + LEVEL / 2, SLICES - 1)

Ints = NDArray[np.int64]


def rate(instants_ns: Ints, window: tuple[int, int], unit: str = "queries/s") -> Estimate:
    """How many of these instants a second fall into the window; interval by batch means.

    No interval below 10 in each slice on average: they are too few to be called normal.
    """
    start, end = window
    inside = instants_ns[(instants_ns >= start) & (instants_ns < end)]
    window_s = (end - start) / 1e9
    if window_s <= 0:
        return Estimate(0.0, unit, 0)
    value, interval = inside.size / window_s, None
    if inside.size >= 10 * SLICES:
        rates = np.histogram(inside, np.linspace(start, end, SLICES + 1))[0] / (window_s / SLICES)
        half = T * float(rates.std(ddof=1)) / math.sqrt(SLICES)
        interval = Interval(max(0.0, value - half), value + half, LEVEL, BATCH_MEANS)
    return Estimate(value, unit, int(inside.size), interval)


def quantiles(
    durations_ns: Ints, due_ns: Ints | None = None, window: tuple[int, int] | None = None
) -> dict[str, Estimate]:
    """p50, p90, p95, p99, p999, max and mean in seconds; those with too few samples are absent.

    With ``due_ns`` the intervals allow for requests that depend on each other: the widest of order
    statistics, Woodruff's (1952) interval, and the binomial one of as many independent requests as
    the window is worth; both take the variance of the share above the quantile from the slices.
    """
    if not durations_ns.size:
        return {}
    ordered = np.sort(durations_ns)
    found: dict[str, Estimate] = {}
    number = slices(due_ns, window) if due_ns is not None and window is not None else None
    for name, q in LANDMARKS.items():
        estimate = latency.quantile(ordered, q)
        if estimate is None:
            continue
        if number is not None:
            estimate = _dependent(estimate, q, durations_ns, ordered, number)
        found[name] = estimate
    n = int(ordered.size)
    found["max"] = Estimate(float(ordered[-1]) / 1e9, "s", n)
    found["mean"] = Estimate(float(ordered.mean()) / 1e9, "s", n)
    return found


def share(flags: NDArray[np.bool_], due_ns: Ints, window: tuple[int, int]) -> Estimate | None:
    """The share of requests with a flag; the wider of the exact binomial interval and slices'."""
    n = int(flags.size)
    if not n:
        return None
    x = int(np.count_nonzero(flags))
    tail = (1 - LEVEL) / 2
    low, high = share_at_least(tail, x, n), share_at_most(tail, x, n)
    half = T * _error_of_share(flags, slices(due_ns, window))
    low, high = min(low, max(0.0, x / n - half)), max(high, min(1.0, x / n + half))
    method = f"the wider of exact binomial and {SLICES} slices"
    return Estimate(x / n, "share", n, Interval(low, high, LEVEL, method))


def ratio(a: Estimate, b: Estimate) -> tuple[Estimate, float | None]:
    """b over a with its interval, and a two-sided p that they are the same.

    The interval of a difference (here of logs) from those of both parts: Zou and Donner,
    "Construction of confidence limits about effect measures", 2008. p by t with as many degrees
    of freedom as the slices have. None without intervals.
    """
    n = min(a.n, b.n)
    if a.value <= 0 or b.value <= 0:
        return Estimate(math.nan, "ratio", n), None
    d = math.log(b.value / a.value)
    ia, ib = a.interval, b.interval
    if ia is None or ib is None or ia.low <= 0 or ib.low <= 0:
        return Estimate(math.exp(d), "ratio", n), None
    down = math.hypot(math.log(b.value / ib.low), math.log(ia.high / a.value))
    up = math.hypot(math.log(ib.high / b.value), math.log(a.value / ia.low))
    interval = Interval(math.exp(d - down), math.exp(d + up), LEVEL, "slices within the trials")
    return Estimate(math.exp(d), "ratio", n, interval), p_value(d, down, up)


def p_value(difference: float, down: float, up: float) -> float | None:
    """Two-sided p of no difference, from how far the interval reaches to both sides of it."""
    towards = down if difference > 0 else up
    if towards <= 0:
        return 1.0 if difference == 0 else 0.0
    return student_tails(abs(difference) / towards * T, SLICES - 1)


def resolved(found: Estimate) -> bool:
    """Whether a ratio's interval leaves out 1."""
    span = found.interval
    return span is not None and (span.low > 1 or span.high < 1)


def long_run(steps: NDArray[Any]) -> tuple[float, float]:
    """Variance of the sum of a stationary series, and degrees of freedom of that estimate.

    Geyer's initial monotone sequence: autocovariances in pairs, until a pair is not positive.
    """
    n = steps.size
    centred = steps - steps.mean()
    spectrum = np.fft.rfft(centred, 2 * n)
    covariance = np.fft.irfft(spectrum * np.conj(spectrum))[:n] / n
    pairs = covariance[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    stop = int(np.argmax(pairs <= 0)) if np.any(pairs <= 0) else pairs.size
    total = 2 * float(np.minimum.accumulate(pairs[:stop]).sum()) - float(covariance[0])
    # Never below what independent slices would have by more than their own chance.
    variance = n * max(total, 0.1 * float(covariance[0]))
    return variance, max(3.0, n / (2.0 * max(1, stop)) - 1)


def design_effect(due: Ints, failed: NDArray[np.bool_], edges: NDArray[np.float64]) -> float:
    """Variance of the share over that of independent requests, at least 1; by Student's t."""
    p = float(failed.mean())
    if p in (0.0, 1.0):
        return 1.0
    of = np.histogram(due, edges)[0]
    late = np.histogram(due[failed], edges)[0]
    variance, freedom = long_run(late - p * of)
    wider = student(0.5 + LEVEL / 2, freedom) / Z
    return max(1.0, variance / (due.size * p * (1 - p))) * wider**2


def slices(due_ns: Ints, window: tuple[int, int]) -> Ints:
    """By request, into which of the ``SLICES`` of the window it falls."""
    start, end = window
    number = (due_ns - start) * SLICES // max(1, end - start)
    return np.clip(number, 0, SLICES - 1).astype(np.int64)


def _error_of_share(flags: NDArray[np.bool_], number: Ints) -> float:
    """Standard error of the share of flags, from slices: a ratio of sums (Cochran 1977, 6.3)."""
    n = flags.size
    of = np.bincount(number, minlength=SLICES)
    flagged = np.bincount(number[flags], minlength=SLICES)
    rest = flagged - flagged.sum() / n * of
    return math.sqrt(SLICES / (SLICES - 1) * float(rest @ rest)) / n


def _dependent(
    estimate: Estimate, q: float, durations: Ints, ordered: Ints, number: Ints
) -> Estimate:
    """A quantile's interval, allowing for requests that depend on each other.

    Late requests come in bursts, so the share above the quantile is skewed and rests on few of
    them. Woodruff's interval is too sure of bursts that were not seen, the binomial one of as many
    independent requests as the window is worth (Korn and Graubard 1998) of those that were: the
    widest counts.
    """
    n, span = ordered.size, estimate.interval
    assert span is not None  # latency.quantile gives none without one
    above = durations > round(estimate.value * 1e9)
    p, error = float(above.mean()), _error_of_share(above, number)
    lows, highs = [q - T * error], [q + T * error]
    if 0 < p < 1:
        effect = max(1.0, n * error**2 / (p * (1 - p))) * (T / Z) ** 2
        worth = n / effect
        lows.append(1 - beta(0.5 + LEVEL / 2, p * worth + 1, (1 - p) * worth))
        highs.append(1 - beta((1 - LEVEL) / 2, p * worth, (1 - p) * worth + 1))
    low = float(ordered[latency.rank(n, max(0.0, min(lows)))]) / 1e9
    high = float(ordered[latency.rank(n, min(1.0, max(highs)))]) / 1e9
    if low >= span.low and high <= span.high:
        return estimate
    method = f"the widest of order statistics, and Woodruff's and binomial from {SLICES} slices"
    wider = Interval(min(low, span.low), max(high, span.high), LEVEL, method)
    return Estimate(estimate.value, estimate.unit, estimate.n, wider)
