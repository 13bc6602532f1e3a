"""Which class breaks its promise first, as the rate grows: what sets the limit of a search.

A promise may have conditions for several classes, and its limit is the least of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

from searchbench.analysis.capacity.pace import Seen
from searchbench.analysis.judgement import BreaksFirst
from searchbench.analysis.words import listed, per_s
from searchbench.workload.load_table import Condition

SURE = 0.95
MAYBE = 0.05  # less likely ones are not named


def breaks_first(searches: Sequence[Seen], promise: Sequence[Condition]) -> tuple[BreaksFirst, ...]:
    """The chances of the conditions to be the first, the likeliest first; of searches their mean.

    Empty where the promise has none for a class, and where nothing broke, or everything did.
    """
    if not any(c.of_class for c in promise):
        return ()
    told = [s.where.first for s in (one.by_rate for one in searches) if _between(s)]
    if not told:
        return ()
    means = [sum(own) / len(told) for own in zip(*told, strict=True)]
    named = [("", ""), *((c.text, c.of_class) for c in promise)]
    found = [BreaksFirst(*of, chance) for of, chance in zip(named, means, strict=True)]
    return tuple(sorted(found, key=lambda one: -one.chance))


def sentence(found: Sequence[BreaksFirst]) -> str:
    """Which class sets the limit, or between which it cannot be told; empty of none."""
    if not found:
        return ""
    if found[0].chance >= SURE:
        return f"What breaks first is {_what(found[0])}."
    likeliest, *others = (one for one in found if one.chance >= MAYBE)
    chance = f"{100 * likeliest.chance:.0f} %"
    if not others:
        return f"What breaks first is most likely {_what(likeliest)} ({chance})."
    return (
        f"What breaks first is not told apart: {_what(likeliest)} is the likeliest ({chance}), "
        f"then {listed([_what(one) for one in others])}."
    )


def broken_at_all(searches: Sequence[Seen], promise: Sequence[Condition]) -> str:
    """Where the promise was broken at every rate, which of its conditions were, and which were not.

    Empty where the promise has none for a class, and where it was kept somewhere.
    """
    if not any(c.of_class for c in promise):
        return ""
    used = [d for s in searches for d in s.used]
    if not used or any(d.seems_kept for d in used):
        return ""
    least = min(used, key=lambda d: d.rate_per_s)
    told = [(c, k) for c, k in zip(promise, least.judged.kept, strict=True) if k.requests]
    broken = [c.text for c, k in told if k.share >= c.allowed]
    kept = [c.text for c, k in told if k.share < c.allowed]
    if not broken or not kept:
        return ""
    return f"At {per_s(least.rate_per_s)}, {listed(broken)} was broken, and {listed(kept)} kept."


def _between(seen: Seen) -> bool:
    """Whether the promise was kept at some rates and broken at others."""
    keeps = [d.seems_kept for d in seen.used]
    return any(keeps) and not all(keeps)


def _what(one: BreaksFirst) -> str:
    if not one.condition:
        return "that the system keeps up with the whole"
    return one.condition
