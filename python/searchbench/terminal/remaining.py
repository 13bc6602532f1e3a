"""How much longer it takes: one answer, in the same words before a run, while it runs, and after
each trial.

It begins with what the plan estimates for a trial. What the trials of this sitting took is then
counted in, and the estimate weighs as much as one of them. A search for capacity decides by what it
sees, so of that there is a range, and what it takes at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from searchbench.record.trial import Trial as Kept
from searchbench.study.estimate import search_s
from searchbench.study.plan import Plan, warmups_s

if TYPE_CHECKING:
    from searchbench.terminal.searching import Searching

_ESTIMATE = 1.0  # trials that the plan's estimate weighs as much as
_USUAL = 3.0  # a search usually takes between a third and three times of its estimate
_SOON_S = 0.5  # less than that rounds to 0 s


@dataclass(frozen=True, slots=True)
class Left:
    """Seconds: usually from ``low`` to ``high``, and ``most`` at the utmost.

    ``high`` 0: a search has taken longer than is usual already.
    """

    low: float
    high: float
    most: float

    def __str__(self) -> str:
        """ "about 40 s", "about 2 to 15 min, up to 27 min", "up to 27 min"."""
        most = f"up to {duration(self.most)}"
        if self.high < _SOON_S and self.most >= _SOON_S:
            return most
        usual = f"about {_span(self.low, self.high)}"
        return usual if duration(self.most) == duration(self.high) else f"{usual}, {most}"


class Remaining:
    """The trials of a plan that are still to be driven. ``done``: how many are on record.

    ``plan`` None: nothing is estimated, and something is known after the first trial.
    """

    def __init__(
        self, plan: Plan | None, done: int = 0, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._plan, self._clock = plan, clock
        self._done, self._of = done, len(plan.every) if plan else 0
        self._began: float | None = None  # the trial that is driven now
        self._first: float | None = None  # the first of this sitting
        self._took_s, self._here = 0.0, 0
        self._search = _searching(plan)

    def begins(self, done: int, of: int) -> None:
        """A trial begins; so many of so many are on record. ``of`` 0: as many as it takes."""
        self._done, self._of = done, self._of or of
        self._began = self._clock()
        self._first = self._began if self._first is None else self._first

    def ends(self, about: Kept) -> None:
        """It is on record."""
        if self._search is not None:
            self._search.ends(about)
        if self._began is not None:
            self._took_s += self._clock() - self._began
            self._here += 1
        self._done, self._began = self._done + 1, None

    def left(self) -> Left | None:
        """From now on; None where nothing is left, or nothing is known of it yet."""
        return self._of_search() if self._search is not None else self._of_trials()

    def _of_trials(self) -> Left | None:
        still = self._of - self._done
        estimated_s = self._plan.estimated_s if self._plan else 0.0
        known = _ESTIMATE if estimated_s else 0.0
        if still <= 0 or not known + self._here:
            return None
        planned_s = estimated_s / max(1, self._of)
        each_s = (known * planned_s + self._took_s) / (known + self._here)
        since_s = 0.0 if self._began is None else self._clock() - self._began
        usual_s = each_s * still - min(each_s, since_s)
        more_s = warmups_s(self._plan) * still / self._of if self._plan else 0.0
        return Left(usual_s, usual_s, usual_s + more_s)

    def _of_search(self) -> Left:
        assert self._plan is not None
        assert self._search is not None
        judging = self._plan.judging
        usual_s = self._search.searches * search_s(judging.promises, judging.effort)
        # Documents and indexes, before the first trial.
        rest_s = max(0.0, self._plan.estimated_s - usual_s) if self._first is None else 0.0
        most_s = self._search.most_s()
        since_s = 0.0 if self._first is None else self._clock() - self._first
        low_s, high_s = (max(0.0, s - since_s) for s in (usual_s / _USUAL, usual_s * _USUAL))
        high_s = min(high_s, most_s)
        return Left(rest_s + min(low_s, high_s), rest_s + high_s, rest_s + most_s)


def duration(seconds: float) -> str:
    """Roughly, for a person: 40 s, 12 min, 3.5 h."""
    return " ".join(_rounded(seconds))


def _span(low_s: float, high_s: float) -> str:
    low, high = _rounded(low_s), _rounded(high_s)
    if low == high:
        return " ".join(high)
    first = low[0] if low[1] == high[1] else " ".join(low)
    return f"{first} to {' '.join(high)}"


def _rounded(seconds: float) -> tuple[str, str]:
    if seconds < 90:
        return f"{max(1.0, seconds):.0f}", "s"
    minutes = seconds / 60
    return (f"{minutes:.0f}", "min") if minutes < 90 else (f"{minutes / 60:.1f}", "h")


def _searching(plan: Plan | None) -> Searching | None:
    if plan is None or plan.judging.measure != "capacity":
        return None
    from searchbench.terminal.searching import Searching  # here, not above: what judges is heavy

    return Searching(plan)
