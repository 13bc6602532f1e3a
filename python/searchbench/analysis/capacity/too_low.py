"""Rates at which the promise is broken because little comes, and not because much does.

A system that collects requests waits for more of them, and processors sleep between few. Such a
system breaks a promise at low rates and keeps it at higher ones, so a search that only goes down
would find no rate. It goes up once times do not go with the rate; and where a higher rate keeps
the promise, what is broken below it tells nothing of the greatest rate that does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from searchbench.analysis.capacity.promise import Judged
from searchbench.analysis.trial.throughput import KEEPS_UP

LOOKS = 3  # trials that broke the promise, before a higher rate than theirs is tried
TRIES = 3  # trials at higher rates
FLAT = 1.1  # a quantile at one rate over that at a lower one; by less it does not go with the rate
GROWN = 2.0  # times the quantile of the lowest rate: at this rate a queue is the reason
SPAN = 1.5  # between two rates, to tell whether times go with the rate
UP = 4.0
SAME, APART = 0.01, 1.2  # a rate driven again, as a share of it; one that is not beside it
NARROW, WIDE = 1.4, 2.0  # between what is kept up with and what is not: no more is tried; unknown


def higher(rates: Sequence[float], judged: Sequence[Judged], ends: Sequence[float]) -> float | None:
    """A higher rate that may keep the promise, where none did so far; None: nothing hints at one.

    Both in the order driven. ``ends``: rates at which nothing can be seen of the system.
    """
    tried = sum(rate > min(rates[:i]) for i, rate in enumerate(rates) if i)
    if tried >= TRIES or not flat(rates, judged):
        return None
    base, over = _ends(rates, judged)
    over = min([over, *(end for end in ends if end > base)])
    if over == math.inf:
        return UP * base
    return math.sqrt(base * over) if over / base > NARROW else None


def flat(rates: Sequence[float], judged: Sequence[Judged]) -> bool:
    """Whether a time that breaks the promise does not go with the rate, as far as was seen."""
    order = [i for i in sorted(range(len(rates)), key=lambda i: rates[i]) if _kept_up(judged[i])]
    if len(rates) < LOOKS or not order or rates[order[0]] > min(rates):
        return False
    least, top = order[0], order[-1]
    following = next((i for i in order if rates[i] >= SPAN * rates[least]), None)
    if following is None:
        return False
    for n, kept in enumerate(judged[least].kept):
        if kept.share < kept.condition.allowed or kept.quantile_ns is None:
            continue
        then, most = (judged[i].kept[n].quantile_ns or math.inf for i in (following, top))
        if then < FLAT * kept.quantile_ns and most < GROWN * kept.quantile_ns:
            return True
    return False


def gap(rates: Sequence[float], judged: Sequence[Judged]) -> tuple[float, float] | None:
    """From where to where a rate may keep the promise that was not driven; None: nowhere, as far
    as can be seen. Of trials that all broke it.
    """
    if not flat(rates, judged):
        return None
    base, over = _ends(rates, judged)
    return (base, over) if over / base > WIDE else None


def below(rates: Sequence[float], judged: Sequence[Judged]) -> list[int]:
    """Which trials are at rates too low for a promise that a higher rate keeps; empty: none are.

    All that were driven so low broke it, and before any rate kept it two did that are not near each
    other: trials about a limit are near, and what breaks it only later may not have recovered from
    overload. None is where one of these rates was driven again after a higher one was kept, and
    kept the promise then: it is the time.
    """
    kept = [i for i, one in enumerate(judged) if one.seems_kept]
    if not kept or _kept_later(rates, judged):
        return []
    least = min(rates[i] for i in kept)
    first = [rate for rate in rates[: kept[0]] if rate < least]
    if not first or max(first) < SPAN * min(first):
        return []
    return [i for i, rate in enumerate(rates) if rate < least]


def again(rates: Sequence[float], judged: Sequence[Judged], low: Sequence[int]) -> bool:
    """Whether one of the ``low`` trials came after one that kept the promise: then it is the rate
    that makes them break it, and no warm-up or other change in time.
    """
    first = next((i for i, one in enumerate(judged) if one.seems_kept), len(rates))
    return any(i > first for i in low)


def _kept_later(rates: Sequence[float], judged: Sequence[Judged]) -> bool:
    """Whether a rate that broke the promise kept it later, after a much higher one had."""
    for j, (rate, one) in enumerate(zip(rates, judged, strict=True)):
        before = [(r, was.seems_kept) for r, was in zip(rates[:j], judged[:j], strict=True)]
        if (
            one.seems_kept
            and any(not kept and abs(r / rate - 1) < SAME for r, kept in before)
            and any(kept and r > APART * rate for r, kept in before)
        ):
            return True
    return False


def _ends(rates: Sequence[float], judged: Sequence[Judged]) -> tuple[float, float]:
    """The highest rate that was kept up with, and the lowest above it that was not."""
    base = max(_of(rates, judged, kept_up=True))
    return base, min((r for r in _of(rates, judged, kept_up=False) if r > base), default=math.inf)


def _of(rates: Sequence[float], judged: Sequence[Judged], *, kept_up: bool) -> Iterator[float]:
    return (r for r, one in zip(rates, judged, strict=True) if _kept_up(one) is kept_up)


def _kept_up(one: Judged) -> bool:
    return bool(one.achieved_high >= KEEPS_UP)
