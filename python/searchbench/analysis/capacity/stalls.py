"""Times in which a server gave no reply at all, though many waited for one.

A stall of 1.2 s once in 90 s breaks a promise of p99 at any rate, and few trials see one.
So a trial that is broken by a stall alone says nothing about the rate: where most trials had none,
the search leaves it out, and the answer says how often there was one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from searchbench.analysis.capacity import lag
from searchbench.analysis.stats.distributions import chi_square
from searchbench.analysis.trial import silence
from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.words import digits, listed, per_s, plural
from searchbench.workload.load_table import Condition

WAITING = silence.WAITING[False]  # requests that were due meanwhile: one slow query is no stall
AFTER = 4.0  # times a stall before the first reply: by then the queue that it left is gone
LACK = 2.0  # times what came in the stalls: if more is lacking, the rate itself is too high
SMALL = 0.1  # of the requests that may be late: stalls that take less time move no interval
_TAIL = 0.025


def lengths_s(limit_ns: float, trace: Trace) -> tuple[float, ...]:
    """How long there was no reply, for each time longer than the limit and than usual gaps.

    Only while requests wait; the warm-up counts. What comes before the first reply counts too, if
    so little of the warm-up was left after it (``AFTER``) that it may have moved the window: the
    first requests of each trial may be slow, as connections are made.
    """
    begin, end = silence.gaps(trace)
    late, found = lag.own(trace), []
    for at in silence.long(begin, end, limit_ns):
        length = int(end[at] - begin[at])
        if at == 0 and trace.window[0] - end[0] >= AFTER * length:
            continue
        due = (trace.due >= begin[at]) & (trace.due < end[at])
        if np.count_nonzero(due) >= WAITING and late[due].max() < silence.CLIENTS * length:
            found.append(length / 1e9)
    return tuple(found)


def decide(
    condition: Condition, lengths: Sequence[float], share: float, achieved: float, window_s: float
) -> bool:
    """Whether stalls alone broke a condition, and the trial says nothing about its rate."""
    stalled = sum(lengths) / window_s if window_s else 0.0
    return (
        stalled >= condition.allowed
        and share >= condition.allowed
        and 1 - achieved <= LACK * stalled
    )


@dataclass(frozen=True, slots=True)
class Found:
    """Stalls of several trials, of which some broke the promise.

    ``rates``: at which there was one. ``share``: of the time without a reply, at least and at most
    in the long run (95 %): how many there are is Poisson. ``limit_s``: of the promise.
    """

    rates: Sequence[float]
    lengths_s: Sequence[float]
    watched_s: float
    limit_s: float = 0.0

    @property
    def share(self) -> tuple[float, float]:
        """Of the time, in the long run."""
        return self._in_the_long_run(self.lengths_s)

    @property
    def late(self) -> float:
        """Of the requests, at least those that a stall makes late with nothing else in the queue.

        Who comes in the last ``limit_s`` of a stall is answered in time, if no others wait.
        """
        return self._in_the_long_run([max(0.0, one - self.limit_s) for one in self.lengths_s])[0]

    def _in_the_long_run(self, lengths_s: Sequence[float]) -> tuple[float, float]:
        n = len(lengths_s)
        each = sum(lengths_s) / n / self.watched_s
        low, high = chi_square(_TAIL, 2 * n) / 2, chi_square(1 - _TAIL, 2 * (n + 1)) / 2
        return each * low, each * high

    @property
    def sentence(self) -> str:
        """That the server stalls, where, for how long and how often."""
        n = len(self.lengths_s)
        rates = listed([per_s(rate) for rate in sorted(set(self.rates))])
        return (
            f"The server stalls: no reply for up to {max(self.lengths_s):.2g} s at {rates}, "
            f"{n} {plural(n, 'time', 'times')} in {minutes(self.watched_s)}."
        )


def watched(seconds: float, who: str = "The server") -> str:
    """For how long the server was watched, and that what is rarer may have been missed."""
    rare = "once a minute"
    if seconds >= 60:  # so long a search has used up smaller budgets
        rare = "once an hour, or only when a burst budget is used up"
    return (
        f"{who} was watched for {minutes(seconds)} in all: what happens more rarely, such as a "
        f"stall {rare}, may have been missed."
    )


def minutes(seconds: float) -> str:
    """So many minutes, with a digit behind the point where they are few; below one, in seconds."""
    n = seconds / 60
    if n < 1:
        return f"{digits(seconds)} s"
    return f"{n:.1f} minutes" if n < 10 else f"{n:.0f} minutes"
