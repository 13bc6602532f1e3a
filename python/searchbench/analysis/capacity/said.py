"""What a search found, in sentences: its interval, and for how long the server was watched."""

from __future__ import annotations

from collections.abc import Sequence

from searchbench.analysis.capacity import stalls
from searchbench.analysis.capacity.pace import WIDTH, Seen
from searchbench.analysis.words import per_s, plural


def between(low: float, high: float, trials: int, searches: int = 1) -> str:
    """The interval in a sentence."""
    by = f"{trials} {plural(trials, 'trial', 'trials')}"
    by = f"{searches} searches, {by}" if searches > 1 else by
    return f"The limit is between {per_s(low)} and {per_s(high)} (95 %, {by})."


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
