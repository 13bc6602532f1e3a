"""Classes of queries that one side answers, and of which the other fails requests under load.

A class may be so few of all requests that the whole hardly shows it: a system that fails every
hundredth query, always, has valid trials, and times that look the better for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median_low

from searchbench.analysis.compare import chance as by_chance
from searchbench.analysis.judgement import Estimate, TreatmentResult, TrialResult
from searchbench.analysis.stats.distributions import share_at_least, share_at_most
from searchbench.analysis.stats.intervals import ALPHA, LEVEL
from searchbench.analysis.trial.validity import ERRORS_INVALID
from searchbench.analysis.words import percent

ALLOWED = ERRORS_INVALID  # of the requests of a class, as of all requests of a trial
FAILS = "fails requests of this class"  # in every reason that says so of a study


@dataclass(frozen=True, slots=True)
class Side:
    """Of one class, over the ``trials`` of a side that count: how many ``fail`` it; its
    ``requests``, and how many of these ``failed``. ``whole``: the mean share of all requests that
    failed in these trials, or what a trial may fail if that is more.
    """

    trials: int
    fail: int
    requests: int
    failed: int
    whole: float

    @property
    def share(self) -> float:
        """The share of its requests that failed."""
        return self.failed / self.requests

    @property
    def none_good(self) -> bool:
        """Whether all failed."""
        return self.failed == self.requests

    @property
    def interval(self) -> tuple[float, float]:
        """Of that share, exact binomial."""
        x, n, tail = self.failed, self.requests, (1 - LEVEL) / 2
        return share_at_least(tail, x, n), share_at_most(tail, x, n)


@dataclass(frozen=True, slots=True)
class Case:
    """A class, named, on both sides. ``chance``: that so many more trials of ``b`` fail it if both
    fail as often.
    """

    name: str
    a: Side
    b: Side
    chance: float = 1.0

    @property
    def sure(self) -> bool:
        """Whether ``b`` fails the class: it has no good answer in several trials, and ``a`` has
        some; or half of its trials or more fail it, by more than chance. A single trial may fail
        all of a class by chance, however many requests that is.
        """
        apart = self.b.interval[0] > self.a.interval[1]
        gone = self.b.none_good and self.b.trials > 1 and apart
        return gone or (2 * self.b.fail >= self.b.trials and self.chance < ALPHA)

    @property
    def more(self) -> bool:
        """Whether clearly more of the requests of all trials together failed."""
        return self.b.interval[0] > max(self.b.whole, self.a.interval[1])

    @property
    def likely(self) -> bool:
        """Whether it seems to fail it: more of its requests failed, and half of its trials or more
        fail it; or clearly more trials do than of ``a``.
        """
        a, b = self.a, self.b
        most = self.more and b.fail * a.trials > a.fail * b.trials and 2 * b.fail >= b.trials
        return most or (b.fail > 0 and self.chance < ALPHA)


def cases(
    a: Sequence[TrialResult], b: Sequence[TrialResult], names: Sequence[str]
) -> Iterator[Case]:
    """Those classes of which both were asked something.

    A trial fails a class if surely more than 1 % of its requests failed, more than in half of
    ``a``'s trials, and a larger share than of all requests of that trial: a fault fails those of
    every class.
    """
    for name in names:
        own = [[*_seen(trials, name)] for trials in (a, b)]
        if all(own):
            usual = median_low(share.value for share, _, _ in own[0])
            yield Case(name, _side(own[0], usual), _side(own[1], usual))


def together(found: Sequence[Case], subjects: Sequence[str] = ()) -> list[Case]:
    """The same with the chance of each, corrected for all of them. ``subjects``: of each case, the
    subject of its load: those of one subject and class are tested together, in this order; empty:
    each by itself.
    """
    of = [f"{one.name} {who}" if who else "" for one, who in zip(found, subjects, strict=False)]
    of = of or [""] * len(found)
    order = sorted(range(len(found)), key=of.__getitem__)
    drives = [
        by_chance.Drives(
            (found[i].a.fail, found[i].a.trials), (found[i].b.fail, found[i].b.trials), of[i]
        )
        for i in order
    ]
    chance = dict(zip(order, by_chance.of_each(drives), strict=True))
    return [Case(one.name, one.a, one.b, chance[i]) for i, one in enumerate(found)]


def in_study(
    pairs: Sequence[tuple[TreatmentResult, TreatmentResult]], names: Sequence[str]
) -> Mapping[tuple[str, str, str], str]:
    """By class and the treatments of a pair why their speeds there are not all, a clause: that one
    of them surely fails requests of it that the other answers.
    """
    keys, labels, found = [], [], []
    for a, b in pairs:
        for x, y in ((a, b), (b, a)):
            own = [*cases(counted(x), counted(y), names)]
            found += own
            keys += [(one.name, a.treatment, b.treatment) for one in own]
            labels += [(y.label, x.label)] * len(own)
    said = {}
    for key, (who, other), one in zip(keys, labels, together(found), strict=True):
        if one.sure:
            many = f"all {one.b.requests:,}" if one.b.none_good else percent(one.b.share)
            rest = percent(one.a.share) if one.a.failed else "none"
            said[key] = f"{who} {FAILS} ({many}; {other} {rest})"
    return said


def of_all(shares: tuple[float, float]) -> str:
    """Why no time of a class is compared, if either side of two records failed all of it, a clause;
    else empty. ``shares``: of its requests that failed.
    """
    which = [side for side, share in zip(("first", "second"), shares, strict=True) if share == 1]
    return f"all requests of this class failed in the {' and in the '.join(which)}" if which else ""


def counted(t: TreatmentResult) -> list[TrialResult]:
    """Its trials that are valid, and no controls."""
    return [trial for trial in t.trials if trial.counts]


def _seen(trials: Sequence[TrialResult], name: str) -> Iterator[tuple[Estimate, int, float]]:
    """Of each trial that asked something of a class: the share that failed, of how many requests,
    and the share of all requests.
    """
    for trial in trials:
        whole = sum(trial.outcomes.values())
        failed = 1 - trial.outcomes.get("ok", 0) / whole if whole else 0.0
        for one in trial.classes:
            if one.name == name and "error_share" in one.figures:
                yield one.figures["error_share"], one.requests, failed


def _side(found: Sequence[tuple[Estimate, int, float]], usual: float) -> Side:
    fail = sum(
        (share.interval.low if share.interval else share.value) > max(ALLOWED, usual, whole)
        for share, _, whole in found
    )
    failed = sum(round(share.value * n) for share, n, _ in found)
    whole = max(ALLOWED, fmean(whole for _, _, whole in found))
    return Side(len(found), fail, sum(n for _, n, _ in found), failed, whole)
