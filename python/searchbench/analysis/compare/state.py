"""Were two treatments measured in the same state? A cold system is not compared with a warm one.

What is not known is bounded: whoever loses might have become faster, and the difference has to be
larger than that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from searchbench.analysis.judgement import Estimate, TreatmentResult, TrialResult
from searchbench.analysis.trial import cache
from searchbench.analysis.trial.steadiness import MARGIN
from searchbench.analysis.words import ABSURD, digits, listed, plural

# At first asks that take twice as long, a share that differs by so much makes as much difference.
FIRST_ASKS = MARGIN
# A speed that approaches its limit exponentially has left at most its pace times the time constant;
# the longest that are reckoned with are those of compilers, about a minute.
HORIZON_S = 60.0
# Closed loops: the greatest warm-up measured was of 8 times (a JVM, from its start). Of open loops
# there is no such bound, since queues make more of it.
MOST = 10.0
# An answer that is computed is reckoned to take so many times as long as one from a cache.
COMPUTED = 100.0

# Standard errors of a bound that 5 % exceed, and of an interval of 98 %.
ONE_SIDED, TWO_SIDED = 1.645, 2.326
LEAST = 0.001  # a drift that nobody would call a difference

REMEDIES = {
    "not steady": "Warm up longer and run it again.",
    "other caches": "Turn the cache off and run both again.",
    "other first asks": "Warm up both until every query was asked once (--warmup; in a study "
    "`warmup_s`), and run both again.",
    "cold and warm": "Ask both in the same state: give their places the same `cold` and `restart`.",
    "unknown": "Measure longer, to see whether they were steady.",
}

Answer = Literal["steady", "not steady", "unknown"]


@dataclass(frozen=True, slots=True)
class State:
    """A treatment's state over its valid trials, twins among them.

    ``accused``: how many of its ``trials`` were not steady. ``falls``, ``rises``: by how much the
    log of its times may still change where that is unknown; else 0. ``first_asks``: mean share.
    ``cold``: in which state each query was asked, where that is the same for each; "" if not.
    ``cached``: of the answers that came from a cache unasked, the mean share; None: unknown.
    ``window``, ``ahead``: of one that is steady, the mean log change of its times over the measured
    window, and in a minute at that pace, each with half of its 98 % interval.
    """

    answer: Answer
    accused: int
    trials: int
    falls: float
    rises: float
    most: float
    first_asks: float | None
    cached: float | None = None
    cold: str = ""
    window: tuple[float, float] = (0.0, 0.0)
    ahead: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Floor:
    """How large a ratio the states of a pair could make by themselves, and why.

    ``kind``: what is known of both; ``ratio`` is infinite where no size helps.
    """

    kind: Literal[
        "steady", "unknown", "not steady", "other caches", "other first asks", "cold and warm"
    ]
    ratio: float
    said: str


def of(t: TreatmentResult) -> State:
    """The state that a treatment was measured in."""
    return of_trials(t.trials)


def of_trials(trials: Sequence[TrialResult]) -> State:
    """The state that these replicates were measured in; of none it is unknown.

    Not steady where at least two of its trials are, or half of them. Steady where most are, or
    where the mean changes of all of its trials are within the margin: each replicate starts
    afresh, so a warm-up is in all of them alike.
    """
    used = [x for x in trials if x.status == "valid"]
    if cold := next((x.cold for x in used if x.cold), ""):
        # Every request meets the state that was made and proven for it: nothing can drift.
        return State("steady", 0, len(used), 0.0, 0.0, 0.0, 1.0, cold=cold)
    found = [x.steadiness for x in used if x.steadiness is not None]
    asks, cached = (
        [x.figures[name].value for x in used if name in x.figures]
        for name in ("first_asks", cache.FIGURE)
    )
    by_mean = all(s.by_mean for s in found)
    n, mean_asks = len(found), sum(asks) / len(asks) if asks else None
    accused, steady = (sum(s.answer == a for s in found) for a in ("not steady", "steady"))
    pooled = {
        where: _pooled([s.changes[where] for s in found if where in s.changes])
        for where in (found[0].changes if found else ())
    }
    answer: Answer = "unknown"
    if accused and (accused > 1 or 2 * accused >= n):
        answer = "not steady"
    elif 2 * steady > n or (pooled and by_mean and all(map(_within, pooled.values()))):
        answer = "steady"
    falls = rises = 0.0
    if answer == "unknown":
        mean, half = pooled.get("ahead", (0.0, math.inf))
        later = HORIZON_S / found[0].ahead_s if found else 1.0
        falls, rises = max(0.0, half - mean) * later, max(0.0, half + mean) * later
        if not by_mean:  # what a few slow requests do to the mean has no pace to go by
            falls = rises = math.inf
    window, ahead = (0.0, 0.0), (0.0, 0.0)
    if answer == "steady" and "window" in pooled and "ahead" in pooled:
        later = HORIZON_S / found[0].ahead_s
        window = _known(pooled["window"])
        mean, half = _known(pooled["ahead"])
        ahead = mean * later, half * later
    closed = bool(found) and found[0].what == "service time"
    return State(
        answer, accused, n, falls, rises, math.log(MOST) if closed else math.inf, mean_asks,
        sum(cached) / len(cached) if cached else None, window=window, ahead=ahead,
    )  # fmt: skip


def floor(a: tuple[str, State], b: tuple[str, State], log_ratio: float) -> Floor:
    """Label and state of either side; ``log_ratio`` is of b/a, above 0 if b is the better one."""
    both = (a, b)
    if cold := [one for one in both if one[1].answer == "not steady"]:
        said = " and ".join(
            f"{label} was not steady in {s.accused} of {s.trials} trials" for label, s in cold
        )
        return Floor("not steady", math.inf, said)
    if a[1].cold != b[1].cold:
        said = " and ".join(
            f"{label} was asked {s.cold or 'one query after another'}" for label, s in both
        )
        return Floor("cold and warm", math.inf, said)
    if said := _caches(both):
        return Floor("other caches", math.inf, said)
    x, y = a[1], b[1]
    if (
        x.first_asks is not None
        and y.first_asks is not None
        and abs(x.first_asks - y.first_asks) > FIRST_ASKS
    ):
        of_each = " and ".join(
            f"{100 * (s.first_asks or 0):.0f} % of the requests to {label}" for label, s in both
        )
        return Floor("other first asks", math.inf, f"{of_each} were the first of their query")
    if open_ones := [label for label, s in both if s.answer == "unknown"]:
        size = x.falls + y.rises if log_ratio > 0 else y.falls + x.rises
        size = min(size, max(s.most for s in (x, y) if s.answer == "unknown"))
        was = plural(len(open_ones), "was", "were")
        said = f"whether {listed(open_ones)} {was} steady is unknown, and {_change(size)}"
        return Floor("unknown", round(math.exp(size), 6) if size < 700 else math.inf, said)
    size = _drift(x, y) if log_ratio > 0 else _drift(y, x)
    if size < LEAST:
        return Floor("steady", 1.0, "")
    said = (
        f"{a[0]} and {b[0]} were steady, but one may have drifted against the other within their "
        f"windows: {_change(size)}; a longer warm-up and longer windows would bound it"
    )
    return Floor("steady", round(math.exp(size), 6) if size < 700 else math.inf, said)


def _drift(slower: State, faster: State) -> float:
    """By how much the log of a ratio may be too great for a drift that steady windows leave.

    The times of the slower side may still fall against those of the faster one: over the windows
    by the estimate and its one-sided 95 % error, or, where the estimate is more than chance, by
    what that pace comes to in a minute.
    """
    mean = faster.window[0] - slower.window[0]
    error = math.hypot(faster.window[1], slower.window[1])
    later = faster.ahead[0] - slower.ahead[0]
    sure = mean > error
    return max(0.0, mean + error * ONE_SIDED / TWO_SIDED, later if sure else 0.0)


def _known(change: tuple[float, float]) -> tuple[float, float]:
    """The same; of one without an interval, which other tests showed to be steady, nothing."""
    return change if math.isfinite(change[1]) else (0.0, 0.0)


def _caches(both: Sequence[tuple[str, State]]) -> str:
    """That caches of answers alone could make more than the margin; empty: they could not."""
    cost = [1 + (COMPUTED - 1) * (1 - (s.cached or 0.0)) for _, s in both]
    if max(cost) <= (1 + MARGIN) * min(cost):
        return ""
    known = [
        f"{'an unknown share' if s.cached is None else cache.percent(s.cached)} of the answers "
        f"of {label}"
        for label, s in both
    ]
    return f"{' and '.join(known)} came from a cache"


def _change(size: float) -> str:
    if size > math.log(ABSURD):
        return "no upper limit is known for how far it may still change"
    times = f"{digits(float(f'{math.exp(size):.2g}'))} times"
    by = f"{digits(float(f'{100 * math.expm1(size):.2g}'))} %" if size < math.log(2) else times
    return f"a change of up to {by} is not excluded"


def _pooled(changes: Sequence[Estimate]) -> tuple[float, float]:
    """Mean log change and half of its interval.

    Where trials differ by more than their intervals say, it is wider by that (Birge 1932).
    """
    if not changes or any(c.value <= -1 for c in changes):
        return 0.0, math.inf
    means = [math.log1p(c.value) for c in changes]
    halves = [_half(c) for c in changes]
    n, mean = len(means), sum(means) / len(means)
    half = math.sqrt(sum(h * h for h in halves)) / n
    if n > 1 and 0 < half < math.inf:
        # The halves are of 98 %, so 2.33 standard errors.
        off = ((m - mean) / max(h, 1e-12) for m, h in zip(means, halves, strict=True))
        half *= math.sqrt(max(1.0, sum((2.33 * z) ** 2 for z in off) / (n - 1)))
    return mean, half


def _half(change: Estimate) -> float:
    span = change.interval
    if span is None or span.low <= -1 or span.high >= math.expm1(20.0):
        return math.inf
    return (math.log1p(span.high) - math.log1p(span.low)) / 2


def _within(change: tuple[float, float]) -> bool:
    mean, half = change
    return mean - half >= math.log1p(-MARGIN) and mean + half <= math.log1p(MARGIN)
