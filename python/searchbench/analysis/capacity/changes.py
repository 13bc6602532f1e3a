"""Does something else than the rate decide, so that an end of the interval is not known?

How much a server's speed differs from trial to trial widens the interval (posterior.py). This is
what no width allows for: slow for some seconds of a trial, faster or slower and slower, trials that
contradict the interval itself, and requests that are late at any rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.capacity.pace import Driven
from searchbench.analysis.trial.throughput import KEEPS_UP
from searchbench.analysis.words import listed, per_s

BEYOND = 1.05  # so far outside of an interval a trial contradicts it
BY_FAR = 3  # between the quantiles of two trials at the same rate
ABOUT, BY_MORE = 1.1, 10  # and where the other's rate is lower by less than this, kept or not
PART = 0.5  # of a window; what is late for less is not too high a rate
PAIRS = 2  # of trials that contradict each other, all in one order, from which on it may be drift
SURELY = 4  # of these no two with a trial in common, from which on it is one
TOO_SHORT = "or the trials were too short to tell"
CHANGE = 0.05  # share by which responses change within a window
Floats = NDArray[np.float64]

COLD = 0.001  # chance of so early slow requests, below which a server starts each trial cold
TRIALS = 3  # of which at least it is told
REQUESTS = 100  # of one of them
BY_CHANCE = 0.05  # that trials which broke the promise were late so early, or another end is open
EARLY, LOWER_BY = 0.3, 0.95  # place in a window; of the rate of a full trial that was kept
LOWER = 0.95  # of the likeliest limit
RISE = 2.5  # of the logarithm of the share of late requests by that of the rate, at least
ANYWAY = 0.6  # of the requests that may be late: if as many are at lower rates, no rate decides


@dataclass(slots=True)
class Changes:
    """Sentences, each a reason for which the lower or the upper end is not known."""

    lower: list[str] = field(default_factory=list)
    upper: list[str] = field(default_factory=list)


def changes(
    used: Sequence[Driven], low: float, middle: float, high: float, *, differs: bool,
    few: bool = False,
) -> Changes:  # fmt: skip
    """What the trials say against one server with a limit between ``low`` and ``high``.

    ``middle``: as likely above the limit as below.
    ``differs``: its speed seems to differ from trial to trial. ``few``: late requests came in so
    few clusters that chance may look like all of this.
    """
    found = Changes()
    slow = [
        d
        for d in used
        if _slow_for_a_part(d, used) or (d.judged.slowed_s and d.rate_per_s < high * BEYOND)
    ]
    if slow:
        found.lower.append(
            f"At {_rates(slow)} the server was slower for only a part of the trial. "
            "These trials are too short to tell how often that happens."
        )
    broken = [d for d in used if d.judged.verdict == "fails" and d.rate_per_s < low / BEYOND]
    over = [d for d in used if d.judged.verdict == "holds" and d.rate_per_s > high * BEYOND]
    for side, against, how in ((found.lower, broken, "broken"), (found.upper, over, "kept")):
        if against:
            side.append(
                "The trials contradict each other, so the server or the machine changed between "
                f"them{f', {TOO_SHORT}' if few else ''}: the promise was {how} at "
                f"{_rates(against)}."
            )
    if differs:
        _in_order(used, found, few=few)
    _within(used, (low + high) / 2, found)
    if not _late_at_first(used, high, found):
        _cold_starts([d for d in used if d.rate_per_s < high], found)
    _late_anyway(used, middle, found, differs=differs)
    return found


def _slow_for_a_part(one: Driven, used: Sequence[Driven]) -> bool:
    """Whether it broke the promise in a part of its window, and another was by far faster."""
    parts = [k.for_part for k in one.judged.kept if k.condition.limit_ns]
    if not one.full or one.seems_kept or min(parts, default=1.0) > PART:
        return False
    return any(
        d.full
        and (
            (d.seems_kept and d.rate_per_s >= one.rate_per_s and d.room > BY_FAR * one.room)
            or (d.rate_per_s >= one.rate_per_s / ABOUT and d.room > BY_MORE * one.room > 0)
        )
        for d in used
    )


def _in_order(used: Sequence[Driven], found: Changes, *, few: bool) -> None:
    """Drift: wherever two full trials contradict each other, the later one was the slower.

    One odd trial contradicts several, and these pairs say no more than one of them does.
    """
    fulls = list(enumerate(d for d in used if d.full))
    pairs = [
        (i, j)
        for i, broken in fulls
        for j, kept in fulls
        if kept.seems_kept and not broken.seems_kept and broken.rate_per_s <= kept.rate_per_s
    ]
    orders = {"slower" if i > j else "faster" for i, j in pairs}
    if len(pairs) < PAIRS or len(orders) != 1:
        return
    (how,) = orders
    side = found.lower if how == "slower" else found.upper
    if few or _apart(pairs) < SURELY:
        side.append(f"Either the server became {how} with time, and that may go on, {TOO_SHORT}.")
        return
    side.append(f"The server became {how} from trial to trial, and that may go on.")


def _apart(pairs: Sequence[tuple[int, int]]) -> int:
    """How many of the pairs there are at most, no two of which have a trial in common."""
    taken: dict[int, int] = {}

    def takes(one: int, passed: set[int]) -> bool:
        for i, j in pairs:
            if i == one and j not in passed:
                passed.add(j)
                if j not in taken or takes(taken[j], passed):
                    taken[j] = one
                    return True
        return False

    return sum(takes(one, set()) for one in {i for i, _ in pairs})


def _within(used: Sequence[Driven], middle: float, found: Changes) -> None:
    """Faster (or slower) and slower within the windows of most trials that were kept up with.

    Above the limit the queue itself becomes longer and longer.
    """
    changing = [d for d in used if d.judged.change is not None and d.judged.achieved >= KEEPS_UP]
    faster = [d for d in changing if d.judged.change and d.judged.change.high < -CHANGE]
    below = [d for d in changing if d.rate_per_s < middle]
    slower = [d for d in below if d.judged.change and d.judged.change.low > CHANGE]
    for side, those, of, how, may in (
        (found.upper, faster, changing, "shorter", "was not warm yet and may sustain more"),
        (found.lower, slower, below, "longer", "became slower and may sustain less"),
    ):
        if len(those) >= max(2, len(of) / 2):
            side.append(
                f"In {len(those)} of {len(of)} trials response times became {how} from the "
                f"beginning of the window to its end: the server {may}."
            )


def _late_at_first(used: Sequence[Driven], high: float, found: Changes) -> bool:
    """Whether every trial below the upper end that broke the promise did so as a cold server does.

    It was late at its beginning, as it had a backlog of its warm-up to work off, and a full one at
    about its rate or above kept the promise. Or it was a short look at a rate that a full one kept
    by far: it ended before the server had caught up, as it has before the middle of a long one.
    """
    kept = max((d.rate_per_s for d in used if d.full and d.seems_kept), default=0.0)
    broke = [d for d in used if not d.seems_kept and d.rate_per_s < high]
    by_far = [d for d in broke if d.rate_per_s < LOWER_BY * kept]
    near = [d for d in broke if d.rate_per_s >= LOWER_BY * kept]
    cold = [d for d in near if d.rate_per_s * LOWER_BY < kept and _catches_up(d)]
    short = [
        d for d in by_far if not d.full and (_catches_up(d) or d.judged.verdict == "fails")
    ]  # fmt: skip
    if len(cold) < len(near) or not (cold or short):
        return False
    places = sum(_latest(d) for d in cold)
    if not short and _sum_below(places, len(cold)) > BY_CHANCE:
        return False
    found.upper.append(
        f"At {_rates([*short, *cold])} the promise was broken in a short trial or at the beginning "
        "of one, and longer trials at about that rate or above kept it: the server seems to be "
        "cold when a trial starts, and may sustain more once it is warm."
    )
    return True


def _catches_up(one: Driven) -> bool:
    """Whether it had its slowest requests at its beginning, and worked off a backlog."""
    return one.judged.achieved >= 1 and _latest(one) < EARLY


def _latest(one: Driven) -> float:
    return max((k.slowest_at for k in one.judged.kept if k.quantile_ns), default=1.0)


def _cold_starts(used: Sequence[Driven], found: Changes) -> None:
    """Slow at the beginning of every window: a server that cools down from trial to trial.

    Where the slowest requests of a steady server come in one cluster, that is anywhere in the
    window, so their mean place is uniform; in more, it is nearer to the middle; and of a queue that
    begins empty it is later. So their sum is no smaller than that of as many uniform variables.
    """
    told = [d for d in used if d.judged.requests >= REQUESTS]
    if len(told) < TRIALS:
        return
    for kept in zip(*(d.judged.kept for d in told), strict=True):
        places = sum(k.slowest_at for k in kept)
        if kept[0].condition.limit_ns and _sum_below(places, len(kept)) < COLD:
            found.upper.append(
                f"In all {len(kept)} trials, the slowest requests came at the beginning: the "
                "server seems to be cold when a trial starts, and may sustain more once it is warm."
            )
            return


def _sum_below(x: float, n: int) -> float:
    """The chance that n uniform variables add up to x at most (Irwin 1927; Hall 1927)."""
    if x >= n / 2:  # where only the lower tail matters, and its sum cancels out least
        return 1.0
    terms = ((-1) ** k * math.comb(n, k) * (x - k) ** n for k in range(math.floor(x) + 1))
    return math.fsum(terms) / math.factorial(n)


def _late_anyway(used: Sequence[Driven], middle: float, found: Changes, *, differs: bool) -> None:
    """Nearly as many are late at lower rates: those that are slow even if the server is idle.

    By how much more of them are late near the limit is less than two trials differ. Where the
    server's own speed ``differs``, that may be why the share does not rise with the rate.
    """
    rates = np.array([d.rate_per_s for d in used])
    for kept in zip(*(d.judged.kept for d in used), strict=True):
        condition = kept[0].condition
        requests, shares, effective = (
            np.array([getattr(k, name) for k in kept])
            for name in ("requests", "share", "effective")
        )
        lower = rates < LOWER * middle
        late = float((requests * shares)[lower].sum() / max(1, requests[lower].sum()))
        near = (condition.allowed / 3 < shares) & (shares < 3 * condition.allowed)
        rise = _rise(np.log(rates[near]), np.log(shares[near]), (effective * shares)[near])
        if condition.limit_ns and (late >= ANYWAY * condition.allowed or rise < RISE):
            also = ", or the server changed between the trials" if differs else ""
            found.lower.append(
                f"Nearly as many requests break {condition.text} at lower rates, so the rate "
                f"hardly decides whether the promise holds{also}. Promise a longer time, or a "
                "lower quantile."
            )


def _rise(x: Floats, y: Floats, weight: Floats) -> float:
    """The slope of y on x at most (two standard errors); ``weight``: 1 / the variance of y."""
    if x.size < 3:
        return math.inf
    x = x - np.average(x, weights=weight)
    of = float(weight @ x**2)
    return float(weight * x @ y) / of + 2 / math.sqrt(of) if of else math.inf


def _rates(trials: Sequence[Driven]) -> str:
    return listed([per_s(rate) for rate in sorted({d.rate_per_s for d in trials})])
