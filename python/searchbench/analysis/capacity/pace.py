"""What the trials of a search for capacity say, which rate it drives next, and for how long.

    quadruple or halve until the answer is between two rates → guess it from what these said
    → full trials on both sides of it, in turn, until all together tell it to within ``WIDTH``
    → both sides once more, the lower one for a minute

One trial near the answer says little by itself: the late requests of 30 s may come in five
clusters. So a search ends when all of its trials together (posterior.py) are sure enough.

Longer than most files: what a search has seen, and what it does next for that, are read together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

from searchbench.analysis.capacity import answers, errors, filling, too_low
from searchbench.analysis.capacity.posterior import TAIL, Posterior, posterior
from searchbench.analysis.capacity.promise import Judged, Kept
from searchbench.analysis.words import percent
from searchbench.workload.load_table import (
    FEWEST,
    LONGEST_S,
    LOWEST_PER_S,
    WARMUP_SHARE,
    longest_window_s,
)

WIDTH = 0.05
TRIALS = 11  # of a search for one promise
MOST_OF_START = 3  # trials that errors of a start broke, for which as many more are driven
FURTHER = 6  # more, for each further promise of the same search
DOUBT = TAIL  # on each side
LATE_ONES = 300  # that a full trial should have, where as many are late as may be
CLUSTER = 150  # of more late requests at a time, trials are longer in proportion, up to twice
AGAIN = 2  # full trials on each side: a server changes
WIDE = 1.3  # so far apart are the ends still where a trial near the limit does not narrow them
COVERED_S = 60.0  # of one below the limit: a merge or a neighbour may come once a minute
STEEP = 10.0  # times as many late as may be, or so many times fewer: no chance moves a limit there
CLUSTERS = 8.0  # of late requests in the trials near the limit, from which on they tell enough
SHORTEST_S = 1.0
SURE_EFFORT = 0.3  # from which on intervals hold the truth in 95 % of cases, by simulation
VARYING_EFFORT = 1.0  # the same, of services that vary
NO_LATE = 0.01  # of what may be late, is hardly any
VARY = 1.4  # squared coefficients of variation of arrivals and services, from which on they do
VARY_MUCH = 3.0  # the same, from which on not even the longest trials show how they scatter
MUCH_DOUBT = DOUBT / 5  # there: by simulation, what leaves one answer in twenty wrong
USUAL = 0.01  # of the requests may be late, by the usual promise: a p99
_SHORT = 0.2  # the length of a trial that only looks for the side, of a full one's
_LAST = 3  # so many last trials are twice as long
_UP, _DOWN = (4.0, 4.0, 8.0), (2.0, 4.0, 8.0)
_STEP = 1.15  # the least step to a side of which nothing is known
_LATE = 3
_CHANGED = 6  # rates, each lower, at which all answers are others before no lower one is tried
NEAR = (0.74, 1.35)  # limit / quantile of a trial that is near the limit
SURELY, FAR = 1.05, 1.2  # a rate so far above a broken one was kept before: if either is sure
ALIKE = 0.1  # logarithm of the ratio of two rates at which a curve is bent alike


@dataclass(frozen=True, slots=True)
class Driven:
    """One rate driven for ``seconds`` (measured, after the warm-up), against one promise.

    ``full``: long enough to judge this promise by, and not a short trial. ``own``: it was driven
    for this promise and not for another of the same search. ``fresh``: on a system started for it.
    """

    rate_per_s: float
    seconds: float
    judged: Judged
    full: bool = True
    own: bool = True
    trial: str = ""
    fresh: bool = False

    @property
    def seems_kept(self) -> bool:
        """As far as one can see, without asking for 95 %."""
        return self.judged.seems_kept

    @property
    def room(self) -> float:
        """The least of limit / quantile; 0 where the promise is broken for another reason."""
        rooms = [
            k.condition.limit_ns / k.quantile_ns if k.quantile_ns else 0.0
            for k in self.judged.kept
            if k.condition.limit_ns and k.requests
        ]
        least = min(rooms, default=2.0)
        return least if least <= 1 or self.seems_kept else 0.0

    @property
    def near(self) -> bool:
        """Whether it is a full trial beside the limit."""
        return self.full and NEAR[0] < self.room < NEAR[1]


@dataclass(frozen=True)
class Seen:
    """Every trial of one search in the order driven, against one promise."""

    driven: Sequence[Driven]

    @property
    def used(self) -> list[Driven]:
        """Trials that say something about the rate, below the rates with other answers."""
        out = {id(d) for d in self.stalled}
        return [d for d in self.telling if id(d) not in out]

    @property
    def telling(self) -> list[Driven]:
        """The same, with those that a stall of the server broke."""
        out = {id(d) for d in self.of_start}
        return [d for d in self._answering if id(d) not in out]

    @property
    def _answering(self) -> list[Driven]:
        most = self.changed_per_s
        return [d for d in self.driven if not d.judged.says_nothing and d.rate_per_s < most]

    @cached_property
    def of_start(self) -> list[Driven]:
        """The first trials, which errors broke that passed."""
        answering = self._answering
        return [answering[i] for i in errors.of_start(*_split(answering))]

    @cached_property
    def failing(self) -> list[errors.Failing]:
        """Errors that do not depend on the rate, so that only chance says where they are few."""
        return errors.whatever_the_rate(*_split(self.used))  # in the order driven

    @cached_property
    def without_errors(self) -> Seen:
        """The same trials without these errors."""
        if not self.failing:
            return self
        out = {id(d) for d in self.of_start}  # once the errors are taken out, it is not seen
        driven = [d for d in self.driven if id(d) not in out]
        judged = [errors.apart(d.judged, d.rate_per_s, self.failing) for d in driven]
        return Seen([replace(d, judged=j) for d, j in zip(driven, judged, strict=True)])

    @cached_property
    def low(self) -> list[Driven]:
        """Trials, without these errors, that broke the promise because too little came."""
        used = self.without_errors.used
        return [used[i] for i in too_low.below(*_split(used))]

    @property
    def low_again(self) -> bool:
        """Whether one of them was driven after a rate that kept the promise."""
        used = self.without_errors.used
        rates, judged = _split(used)
        return too_low.again(rates, judged, too_low.below(rates, judged))

    @property
    def by_rate(self) -> Seen:
        """The same trials, as far as more load decides: without these errors, and without those."""
        low = {id(d) for d in [*self.low, *self.of_start]} if self.low else set()
        found = self.without_errors
        return Seen([d for d in found.driven if id(d) not in low]) if low else found

    @cached_property
    def stalled(self) -> list[Driven]:
        """Trials that a stall alone broke, if there is one or most that are as long had none."""
        telling = self.telling
        found = [d for d in telling if d.judged.stalled]
        shortest = min((d.seconds for d in found), default=0.0)
        as_long = sum(d.seconds >= shortest for d in telling)
        rare = len(found) == 1 < len(telling) or 2 * len(found) <= as_long
        return found if rare else []

    @cached_property
    def overload(self) -> tuple[Driven, Driven, list[Driven]] | None:
        """A rate that was kept, what overloaded the server after it, and that rate once more.

        None where nothing says that it does not recover: no rate well below was broken later. Nor
        can trials say it that had a system each.
        """
        used = self.used
        if any(d.fresh for d in used):
            return None
        first = next((i for i, d in enumerate(used) if not d.seems_kept), 0)
        if not first:
            return None
        top = max(used[:first], key=lambda d: d.rate_per_s)
        later = used[first + 1 :]
        held = top.judged.verdict == "holds"
        if not any(
            d.rate_per_s * (SURELY if held or d.judged.verdict == "fails" else FAR) < top.rate_per_s
            for d in later
            if not d.seems_kept
        ):
            return None
        again = [d for d in later if d.rate_per_s >= 0.999 * top.rate_per_s]
        tops = [d for d in again if d.rate_per_s <= 1.001 * top.rate_per_s]
        if any(d.seems_kept for d in again):
            return None
        return top, used[first], tops

    @cached_property
    def changed_per_s(self) -> float:
        """The lowest rate at which the answers are others than those asked for; infinite: none, or
        it is not the rate that made them others.

        One other reply of a short trial leaves it out, and says nothing of the rate.
        """
        if self.changed_in_time:
            return math.inf
        found = [d for d in self.driven if d.judged.changed and d.judged.others > 1]
        return min((d.rate_per_s for d in found), default=math.inf)

    @cached_property
    def changed_in_time(self) -> bool:
        """Whether the answers became others with the time, and not with the rate."""
        return answers.in_time(*_split(self.driven))

    def client_limit(self, rate_per_s: float) -> float:
        """The lowest rate above this one at which the client's own lateness broke the promise."""
        late = [d.rate_per_s for d in self.driven if d.judged.own_fault]
        return min((r for r in late if r > rate_per_s), default=math.inf)

    @cached_property
    def where(self) -> Posterior:
        """At the rates as drawn: random arrivals are never exactly as many as were meant."""
        used = self.used
        rates, judged = [d.judged.offered_per_s for d in used], [d.judged for d in used]
        return posterior(rates, judged, [self._alike(d) for d in used])

    @property
    def narrow(self) -> bool:
        """Whether all trials together tell the limit as well as was aimed at."""
        low, high = self.ends
        return high / low <= 1 + WIDTH

    @property
    def doubt(self) -> float:
        """The chance by the curve on each side of ``ends``, which is ``DOUBT`` in truth."""
        return MUCH_DOUBT if self.varies > VARY_MUCH and not self.waits else DOUBT

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Between which rates the limit is, but for ``DOUBT`` on each side."""
        return self.where.quantile(self.doubt), self.where.quantile(1 - self.doubt)

    def beside(self) -> tuple[list[Driven], list[Driven]]:
        """The full trials less than 10 % below and above the likeliest limit."""
        middle = self.where.quantile(0.5)
        fulls = [(d, d.rate_per_s / middle) for d in self.used if d.full]
        return [d for d, at in fulls if 0.9 < at < 1], [d for d, at in fulls if 1 < at < 1.1]

    @cached_property
    def clusters(self) -> float:
        """How many independent late requests the full trials near the limit have in all, at it.

        By the mean of their design effects: a lucky window seems to have many by its own. Where no
        trial is near, those count that are beside the limit; infinite: nothing has a time.
        """
        fulls = [d for d in self.used if d.full]
        if not fulls:
            return math.inf
        near = [d for d in fulls if d.near] or [d for side in self.beside() for d in side] or fulls
        own = [kept for d in near if (kept := _tightest(d)) is not None]
        if not own:
            return math.inf
        effect = sum(k.requests / k.effective for k in own) / len(own)
        return sum(k.requests * k.condition.allowed for k in own) / effect

    @cached_property
    def varies(self) -> float:
        """The squared coefficients of variation of arrivals and services, as far as was seen."""
        judged = [d.judged for d in self.used]
        conditions = self.driven[0].judged.kept if judged else ()
        own = [
            filling.varies(judged, i)
            for i, k in enumerate(conditions)
            if k.condition.limit_ns is not None
        ]
        return max(own, default=0.0)

    @cached_property
    def waits(self) -> bool:
        """Whether hardly any request is late just below the limit, so that what varies are waits
        and not services."""
        return median(self._times(0) or [1.0]) <= NO_LATE

    @property
    def varying(self) -> bool:
        """Whether services vary so much that short trials may all have been lucky together.

        Of simulated searches, the greatest ``varies`` of a trial was at most 1.29 with constant
        services of several workers, and at least 1.49 with exponential, lognormal and Pareto ones.
        """
        return self.varies > VARY and not self.waits

    def lucky(self, effort: float) -> bool:
        """Whether chance may move all trials of this effort together, so that none is sure."""
        return self.few or (effort < VARYING_EFFORT and self.varying)

    @property
    def few(self) -> bool:
        """Whether these are so few that chance moves them together, and no interval is sure."""
        return self.clusters < CLUSTERS and not self.steep

    @cached_property
    def steep(self) -> bool:
        """Whether the share that is late passes from hardly any to most within a few percent.

        As where the service hardly varies, and a queue is there or not. Then most full trials
        beside the limit are far on one side of what may be late, and clusters decide nothing.
        """
        times = [*self._times(0), *self._times(1)]
        few = sum(t <= 1 / STEEP for t in times)
        many = sum(t >= STEEP for t in times)
        return min(few, many) >= max(1, len(times) - few - many)

    def _times(self, side: int) -> list[float]:
        """How many times as many as may be are late, in the trials beside the limit: below (0) or
        above it (1)."""
        own = [k for d in self.beside()[side] if (k := _tightest(d)) is not None]
        return [k.share / k.condition.allowed for k in own]

    def _alike(self, one: Driven) -> int:
        """How many trials for other promises are at about its rate; 1 if it was for this one."""
        others = [d.rate_per_s / one.rate_per_s for d in self.used if not d.own]
        return 1 if one.own else sum(abs(math.log(ratio)) < ALIKE for ratio in others)


def _tightest(one: Driven) -> Kept | None:
    """The condition on time that is nearest to its limit, or farthest beyond it."""
    own = [k for k in one.judged.kept if k.condition.limit_ns and k.quantile_ns and k.effective]
    return max(own, key=lambda k: (k.quantile_ns or 0) / (k.condition.limit_ns or 1), default=None)


def _split(trials: Sequence[Driven]) -> tuple[list[float], list[Judged]]:
    return [d.rate_per_s for d in trials], [d.judged for d in trials]


@dataclass(frozen=True, slots=True)
class Next:
    """What to drive next: the rate, the length of its window, and whether it is a full trial."""

    rate_per_s: float
    seconds: float
    full: bool


def warmup_s(seconds: float, effort: float = 1.0) -> float:
    """What is to be driven before a window: a queue that starts empty has to build up."""
    return max(0.5 * min(1.0, effort), WARMUP_SHARE * seconds)


def longest_s(effort: float, full_s: float | None = None) -> float:
    """What one more trial takes at most, its warm-up with it.

    ``full_s``: the longest window of a full trial for the same promise so far. A later one is at
    most four times as long, for clusters and as one of the last, and half as much again where its
    rate is lower.
    """
    window = longest_window_s(effort)
    if full_s is not None:
        window = min(window, max(6 * full_s, COVERED_S * effort, FEWEST / LOWEST_PER_S))
    return window + warmup_s(window, effort)


def most_trials(promises: int) -> int:
    """How many trials a search for so many promises has at most, its opening loop aside."""
    return TRIALS + FURTHER * (promises - 1)


def following(seen: Seen, left: int, start_per_s: float, effort: float = 1.0) -> Next | None:
    """The next trial for a promise; None where it is settled, or nothing more can be learnt.

    ``left``: trials that may still be driven for it. ``start_per_s``: where to begin; the
    throughput of a short closed loop is a good start. ``effort`` multiplies the lengths of trials.
    """
    left += min(MOST_OF_START, len(seen.of_start))  # these were not about the rate
    if left <= 0:
        return None
    if not seen.driven:
        start = max(LOWEST_PER_S, start_per_s)
        return Next(start, _at_least(start, SHORTEST_S * effort), full=False)
    if any(one.settled for one in seen.failing):
        # Errors of its first seconds are no errors at every rate: they must last.
        watched_s = sum(d.judged.lasted_s for d in seen.driven)
        if watched_s >= COVERED_S:  # however little effort: a start takes as long
            return None
        least = min(d.rate_per_s for d in seen.used)
        return Next(least, COVERED_S, full=True)
    if seen.changed_in_time:
        return None
    once_more = answers.probe(*_split(seen.driven))
    if once_more is None and seen.low and not seen.low_again:
        once_more = max(d.rate_per_s for d in seen.low)
    if once_more is not None:  # is it the rate, or the time?
        return Next(once_more, _seconds(seen, once_more, left, effort, full=False), full=False)
    seen = seen.by_rate
    rate, full = _rate(seen, effort)
    if rate is None:
        return None
    if rate >= seen.changed_per_s and seen.used:  # there it would have other answers again
        rate = _between(max(d.rate_per_s for d in seen.used), seen.changed_per_s)
        if rate is None:
            return None
    seconds = _seconds(seen, rate, left, effort, full=full)
    if full and all(seen.beside()) and rate < seen.where.quantile(0.5):
        seconds = max(seconds, COVERED_S * effort)
    return Next(rate, seconds, full)


def full_s(seen: Seen, rate_per_s: float) -> float:
    """The least length of a full trial: enough requests, and so long that a queue up to the limit
    has built up in it.

    Of a condition for a class so many that there are enough of that class; and where these wait in
    a queue of their own, it builds up at their own rate.
    """
    judged = [d.judged for d in seen.used]
    conditions = [k.condition for k in seen.driven[0].judged.kept]
    queue_s = max(
        filling.built_up_s(c, rate_per_s * share, filling.varies(judged, i))
        for i, c in enumerate(conditions)
        for share in {1.0, _share(seen, i)}
    )
    # Errors are none or many; 4 / allowed requests without one say that the promise is kept.
    return max(SHORTEST_S, _requests(seen) / rate_per_s, queue_s / SURE_EFFORT)


def _requests(seen: Seen) -> float:
    """How many a full trial should have."""
    return max(_of_condition(seen, i) for i in range(len(seen.driven[0].judged.kept)))


def _of_condition(seen: Seen, index: int) -> float:
    """The same for one condition."""
    c = seen.driven[0].judged.kept[index].condition
    return (LATE_ONES if c.limit_ns is not None else 4) / c.allowed / _share(seen, index)


def by_queue(seen: Seen) -> bool:
    """Whether a queue up to the limit is what full trials have to be long for."""
    if not seen.used:
        return False
    rate = seen.by_rate.where.quantile(0.5)
    return full_s(seen, rate) > max(SHORTEST_S, 1.01 * _requests(seen) / rate)


def rare(seen: Seen) -> str:
    """Which condition full trials need so many requests for, a clause; empty: no more than a p99 of
    all requests needs.
    """
    need, index = max((_of_condition(seen, i), -i) for i in range(len(seen.driven[0].judged.kept)))
    if need <= 1.01 * LATE_ONES / USUAL:
        return ""
    condition = seen.driven[0].judged.kept[-index].condition
    what = "so rare a quantile" if condition.limit_ns is not None else "so small a share"
    if condition.allowed >= USUAL:
        what = f"so few requests ({percent(_share(seen, -index))})"
    return f"{condition.text} is of {what} that a trial has to have {need:,.0f} of all requests"


def enough(seen: Seen) -> float:
    """The least effort whose trials are so long beside its limit that an interval is surely right.

    Trials of slow requests, or for a generous limit, would have to be longer than any are
    (``LONGEST_S`` times the effort): they have too few requests, and a queue that begins empty has
    not built up in them. What breaks the promise all the same, at every rate, does so surely.
    """
    if not any(d.seems_kept for d in seen.used):
        return SURE_EFFORT
    least = full_s(seen, seen.by_rate.where.quantile(0.5))
    return SURE_EFFORT * max(1.0, least / LONGEST_S)


def least_effort(seen: Seen, effort: float) -> float:
    """The same, by how responses vary, too, and by how many clusters of late requests the trials of
    this ``effort`` met."""
    found = seen.by_rate
    if len({d.seems_kept for d in found.used}) < 2:
        return enough(seen)
    varying = VARYING_EFFORT if found.varying else SURE_EFFORT
    few = effort * CLUSTERS / max(1.0, found.clusters) if found.few else SURE_EFFORT
    return max(enough(seen), varying, few)


def _share(seen: Seen, index: int) -> float:
    """The share of the requests that a condition is about: 1, but of a class what was seen of it.

    Where none of the class was asked, as if the next request were of it.
    """
    if not seen.driven[0].judged.kept[index].condition.of_class:
        return 1.0
    of = sum(d.judged.offered_per_s * d.seconds for d in seen.driven)
    own = sum(d.judged.kept[index].requests for d in seen.driven)
    return min(1.0, max(1, own) / max(1.0, of))


def _seconds(seen: Seen, rate: float, left: int, effort: float, *, full: bool) -> float:
    seconds = full_s(seen, rate)
    if not full:
        seconds = max(SHORTEST_S, min(_SHORT * seconds, LONGEST_S / 10))
    else:
        seconds *= _clustered(seen) * (2 if left <= _LAST else 1)
    rarest = min(_share(seen, i) for i in range(len(seen.driven[0].judged.kept)))
    return _at_least(rate * rarest, min(LONGEST_S, seconds) * effort)


def _at_least(rate: float, seconds: float) -> float:
    """Long enough for a few requests, however little effort is wanted."""
    return max(seconds, min(LONGEST_S, FEWEST / rate))


def _clustered(seen: Seen) -> float:
    """How much longer a full trial has to be, as late requests come in great clusters."""
    effects = [
        k.requests / k.effective
        for d in seen.used
        if d.near
        for k in d.judged.kept
        if k.condition.limit_ns is not None and k.effective
    ]
    return min(2.0, max(1.0, sum(effects) / len(effects) / CLUSTER)) if effects else 1.0


def _rate(seen: Seen, effort: float) -> tuple[float | None, bool]:
    """The rate to drive next and whether in full; None where nothing more is to be said."""
    used = seen.used
    if not used:
        last = seen.driven[-1]
        if last.judged.disturbed:
            return last.rate_per_s, False  # once more: it was not for the rate
        if changed := [d for d in seen.driven if d.judged.changed]:
            least = min(changed, key=lambda d: d.rate_per_s)
            return (None if len(changed) >= _CHANGED else _down(seen, least)), False
        # Thrice late at ever lower rates: the client is not fit to judge anything.
        tried = sum(not d.judged.disturbed for d in seen.driven)
        return (None if tried >= _LATE else _down(seen, last)), False
    keeps = [d.seems_kept for d in used]
    if not any(keeps):
        least = min(used, key=lambda d: d.rate_per_s)
        late = [d for d in seen.driven if d.judged.own_fault and d.rate_per_s < least.rate_per_s]
        if len(late) >= _LATE:
            return None, False
        late_at = [d.rate_per_s for d in seen.driven if d.judged.own_fault]
        higher = too_low.higher(*_split(used), [*late_at, seen.changed_per_s])
        if higher is not None:
            return higher, False
        # Where the client itself was late, nothing is known yet: lower than that.
        return _down(seen, min([least, *late], key=lambda d: d.rate_per_s)), False
    if all(keeps):
        most = max(d.rate_per_s for d in used)
        higher = _up(seen, most)
        sure = any(d.full and d.rate_per_s == most for d in used)
        if higher is None and seen.changed_per_s < math.inf and not sure:
            return most, True  # the last rate with the answers asked for: is the promise kept?
        return higher, False
    if seen.overload and not seen.overload[2]:
        return seen.overload[0].rate_per_s, False  # is it kept after the overload too?
    where = seen.where
    low, middle, high = (where.quantile(q) for q in (DOUBT, 0.5, 1 - DOUBT))
    near = any(d.near for d in used)
    below, above = seen.beside()
    if high / low > WIDE and len(below) + len(above) >= 2 * AGAIN:
        # One more in their midst would say nothing new.
        aside = (high / low) ** 0.25
        up = high / middle > middle / low
        return max(LOWEST_PER_S, middle * aside if up else middle / aside), True
    if high / low > (WIDE if near else 1 + 3 * WIDTH):
        guess = None if near else _guess(seen)
        rate = max(LOWEST_PER_S, guess or middle)
        tried = any(d.near and abs(math.log(d.rate_per_s / rate)) < ALIKE for d in used)
        return rate, tried or guess is not None or high / low <= 1.5
    again = min(len(below), len(above)) >= AGAIN
    lower = len(below) < len(above)
    if seen.narrow and again:
        covered = max(d.seconds for d in below) >= 0.99 * COVERED_S * effort
        if covered and (effort < SURE_EFFORT or not seen.few):
            return None, False
        lower = lower or not covered
    aside = max(1 + 0.4 * WIDTH, (high / low) ** 0.25)
    return max(LOWEST_PER_S, middle / aside if lower else middle * aside), True


def _guess(seen: Seen) -> float | None:
    """Where limit / quantile is 1, on a line between the nearest rates about it.

    In a queue of capacity c a quantile is about k / (c - rate), so its inverse is straight; an
    overloaded system itself says what c is. None where a rate near it was tried already.
    """
    used = seen.used
    below = [(d.rate_per_s, d.room) for d in used if d.room > 1]
    above = [
        (d.rate_per_s, d.room)
        if d.room > 0.3
        else (min(d.rate_per_s, d.judged.answered_per_s), 0.0)
        for d in used
        if d.room <= 1
    ]
    if not below or not above:
        return None
    (low, most), (high, least) = max(below), min(above)
    if not low < high:
        return None
    rate = low + (most - 1) / (most - least) * (high - low)
    tried = any(abs(math.log(d.rate_per_s / rate)) < WIDTH / 5 for d in used)
    return None if tried else rate


def _up(seen: Seen, rate: float) -> float | None:
    """Every trial seems to keep the promise: higher, as far as the client can."""
    limit = min(seen.client_limit(rate), seen.changed_per_s)
    if limit < math.inf:
        return _between(rate, limit)
    if not all(d.own for d in seen.driven):
        # Trials for another promise were near: what they say is a better guide than a great step.
        return min(_UP[0] * rate, max(_STEP * rate, seen.where.quantile(0.5)))
    rose = sum(d.rate_per_s > seen.driven[0].rate_per_s for d in seen.used)
    return rate * _UP[min(rose, len(_UP) - 1)]


def _between(rate: float, limit: float) -> float | None:
    """Between a rate that says something and a higher one that does not; None: they are near."""
    step = math.sqrt(limit / rate)
    return rate * step if step > _STEP else None


def _down(seen: Seen, least: Driven) -> float | None:
    """No trial seems to keep the promise: lower."""
    rate = least.rate_per_s
    if rate <= LOWEST_PER_S:
        return None
    fell = sum(d.rate_per_s < seen.driven[0].rate_per_s for d in seen.driven)
    if fell > 1 and not any(d.judged.answered_per_s for d in seen.driven):
        # Three rates and never an answer: it is not the rate.
        return None
    lower = rate / _DOWN[min(fell, len(_DOWN) - 1)]
    if seen.used and not all(d.own for d in seen.driven):
        lower = max(rate / _DOWN[1], min(rate / _STEP, seen.where.quantile(0.5)))
    # An overloaded system says itself what it can answer.
    answered = 0.95 * least.judged.answered_per_s
    if least.judged.achieved < 0.95 and rate / 20 < answered < 0.9 * rate:
        lower = answered
    return max(lower, LOWEST_PER_S)
