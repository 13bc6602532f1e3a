"""What a search found, in sentences: its interval, what it broke below it, and for how long the
server was watched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from searchbench.analysis.capacity import stalls
from searchbench.analysis.capacity.found import Bracket
from searchbench.analysis.capacity.pace import WIDTH, Driven, Seen
from searchbench.analysis.words import per_s, percent, plural

STARTS = 3  # searches, each of a start of its own, from which on their hull is said with 95 %


def between(low: float, high: float, trials: int, searches: int = 1) -> str:
    """The interval in a sentence; of two searches it is no 95 %, as starts differ."""
    by = f"{trials} {plural(trials, 'trial', 'trials')}"
    if searches == 1:
        return f"The limit is between {per_s(low)} and {per_s(high)} (95 %, {by})."
    sure = "95 %, " if searches >= STARTS else ""
    few = "" if sure else " Two starts do not show how much starts differ: search three times."
    return (
        f"The limit of these starts is between {per_s(low)} and {per_s(high)} ({sure}{searches} "
        f"searches, {by}).{few}"
    )


def apart(low: float, high: float, trials: int, searches: int) -> str:
    """The same of searches whose intervals do not overlap: of a limit that differs from start to
    start, few starts show no 95 %.
    """
    return (
        f"The limit was between {per_s(low)} and {per_s(high)}, from the least to the greatest of "
        f"{searches} searches ({trials} trials). They do not agree: the limit changed from one to "
        "the next, so the next one may find another."
    )


def too_wide(low: float, high: float) -> str:
    """What to do about an interval that is wider than was aimed at; empty where it is not."""
    if high / low <= 1 + WIDTH:
        return ""
    return (
        f" This interval is {100 * (high / low - 1):.1f} % wide, and {100 * WIDTH:.0f} % was the "
        "aim: longer trials (more effort) would narrow it."
    )


def watched(seen: Sequence[Seen]) -> str:
    """For how long the server was watched in all; empty where it was not."""
    lasted_s = sum(d.judged.lasted_s for one in seen for d in one.driven)
    return stalls.watched(lasted_s) if lasted_s else ""


def above_low(found: Bracket, whole: Seen, seen: Seen) -> Bracket:
    """The same, of rates above those that broke the promise for so little load.

    ``seen``: without these. Not driven again afterwards, the time may have made that.
    """
    top = max(whole.low, key=lambda d: d.rate_per_s)
    kept = min(d.rate_per_s for d in seen.used if d.seems_kept)
    worst = max(top.judged.kept, key=lambda k: k.share / k.condition.allowed)
    low, at, n = min(d.rate_per_s for d in whole.low), per_s(top.rate_per_s), len(whole.low)
    said = (
        f"The promise was broken at low rates: in {n} trials from {per_s(low)} to {at} "
        f"({worst.share:.2%} of the requests broke {worst.condition.text} at {at}), and it was "
        f"kept at {per_s(kept)}. "
    )
    told = f"{found.sentence[:1].lower()}{found.sentence[1:]}"
    if not whole.low_again:
        said += (
            "Whether so low a rate is the reason, or the server became faster meanwhile, is not "
            f"known: drive {at} again (`rate_per_s`). Of the other rates: {told}"
        )
        return Bracket(None, found.fails, said)
    said += (
        "When so low a rate was driven again after that, it broke it again. A system that "
        "collects requests does this, and so does one whose processors sleep between requests. "
        f"From which rate between these on it keeps the promise is not known. Above: {told}"
    )
    return replace(found, sentence=said, broken_up_to=top.rate_per_s)


def errors_of_start(whole: Seen) -> str:
    """That errors of the first trials passed, which the interval is without."""
    first = whole.of_start
    worst = max(first, key=lambda d: max(_failed(d), default=0.0))
    n = len(first)
    return (
        f" The first {'trial is' if n == 1 else f'{n} trials are'} left out: in "
        f"{plural(n, 'it', 'them')} up to {percent(max(_failed(worst), default=0.0))} of the "
        "requests failed, and later surely fewer failed at rates as high. So the reason was a "
        "state that passed, such as a start."
    )


def _failed(one: Driven) -> list[float]:
    return [k.share for k in one.judged.kept if k.condition.limit_ns is None]


def not_driven(base: float, over: float) -> str:
    """That a rate between these two may keep a promise that all trials broke."""
    between_them = f"between {per_s(base)} and {per_s(over)}"
    if over == math.inf:
        between_them = f"above {per_s(base)}"
    return (
        "Its times hardly depend on the rate. Whether it keeps the promise at a rate "
        f"{between_them} is not known: drive some rates there (`rate_per_s`)."
    )


def later_when_less(used: list[Driven]) -> str:
    """That more requests are late at lower rates, so higher ones may do; empty where not."""
    least, most = (pick(used, key=lambda d: d.rate_per_s) for pick in (min, max))
    for low, high in zip(least.judged.kept, most.judged.kept, strict=True):
        if low.low > max(high.high, low.condition.allowed):
            return (
                f"The promise was broken at {per_s(most.rate_per_s)}, and at lower rates by more: "
                f"{low.share:.2%} of the requests broke {low.condition.text} at "
                f"{per_s(least.rate_per_s)}, and {high.share:.2%} at {per_s(most.rate_per_s)}. A "
                "system that collects requests, or keeps answers for a while, may keep the promise "
                "at higher rates: drive those (`rate_per_s`). Where it holds and where it fails is "
                "not known."
            )
    return ""
