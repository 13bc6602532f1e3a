"""What became of a load, or of a limit, in each run of both sides."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from searchbench.analysis.compare import lost, sweeps
from searchbench.analysis.compare.run import Run
from searchbench.analysis.judgement import Estimate, Step
from searchbench.analysis.sweep import points as at
from searchbench.analysis.trial import driven
from searchbench.analysis.trial.by_system import BY_SYSTEM
from searchbench.analysis.words import per_s

COUNTS = "counts"
SPOILT = "spoilt"
NONE_WELL = "no request was answered well"


@dataclass(frozen=True)
class Fate:
    """What became of it in one run: that it ``counts``, was ``spoilt``, or why it was lost there.

    ``trials``: how many the load generator and the machine did not spoil; ``broken``: why of those
    in which the system failed. ``stands``: whether there is something to be compared, of a search
    both ends of a limit; ``known``: of a search, whether it tells of a loss; ``low``: that it broke
    its promise at low rates, up to which; empty: it did not. ``holds``, ``fails``: the ends that a
    search claims with 95 %.
    """

    what: str
    why: str = ""
    trials: int = 0
    broken: tuple[str, ...] = ()
    stands: bool = True
    known: bool = True
    low: str = ""
    holds: float | None = None
    fails: float | None = None


@dataclass
class Of:
    """A load (``key``: kind and level) or a promise of a ``subject``, as the first run has it.

    ``names``: by side and run, what the subject is called there; ``fates``: what became of it,
    None where that run does not plan it.
    """

    label: str
    subject: str
    key: tuple[Hashable, ...]
    names: tuple[Sequence[str], Sequence[str]]
    fates: tuple[Sequence[Fate | None], Sequence[Fate | None]]
    capacity: bool = False
    drafts: list[sweeps.Draft] = field(default_factory=list)

    def unordered(self, ratio: Estimate | None) -> str:
        """Why a search of one side is not ordered with one of the other, which sustains ``ratio``
        times as much: which sustains more depends on the rate, as the better side alone breaks the
        promise at low rates, in half of its searches or more; empty: it does not.
        """
        first, second = (_most_low(side) for side in self.fates)
        if ratio is None or bool(first) == bool(second) or (ratio.value > 1) != bool(second):
            return ""
        return first or second

    def beyond(self, ratio: Estimate | None) -> str:
        """Why the searches that have one end only speak against ``ratio``, which is that of those
        with both, a clause; empty: they do not.

        Against a loss: the second sustains in one of them what the first does, or the first does
        not sustain in one what the second does, or no rate at all. Against a gain: the reverse, but
        for the last. Where neither is shown: the first sustains in one of them more than any of
        the second.
        """
        sides = [[fate for fate in own if fate is not None and fate.what == COUNTS]
                 for own in self.fates]  # fmt: skip
        closed = [[fate for fate in own if fate.stands] for own in sides]
        if ratio is None or ratio.interval is None or not all(closed):
            return ""
        span = ratio.interval
        better = 1 if span.high < 1 else 0  # the side that may not be as good as this
        other = 1 - better
        shown = not span.low <= 1 <= span.high
        lost = [fate.why for fate in self.fates[0] if fate and fate.what not in (COUNTS, SPOILT)]
        if shown and better and lost:  # what the second lost is told in any case
            there = sum(fate is not None for fate in self.fates[0])
            return f"in {len(lost)} of {there} searches of the first no limit exists ({lost[0]})"
        reached = (
            min(_known(fate.holds for fate in closed[other]), default=None)
            if shown
            else max(_known(fate.fails for fate in closed[other]), default=None)
        )
        which = ("first", "second")
        above = [
            fate.holds
            for fate in sides[better]
            if not fate.stands and fate.holds and reached and fate.holds >= reached
        ]
        if above:
            return (
                f"{len(above)} of {len(sides[better])} searches of the {which[better]} found no "
                f"upper end, and sustained {per_s(min(above))} and more, which is not below what "
                f"the {which[other]} sustains"
            )
        most = max(_known(fate.fails for fate in closed[better]), default=None) if shown else None
        below = [
            fate.fails
            for fate in sides[other]
            if not fate.stands and fate.fails and most and fate.fails <= most
        ]
        if below:
            return (
                f"{len(below)} of {len(sides[other])} searches of the {which[other]} found no "
                f"lower end, and did not sustain {per_s(max(below))}, which is not above what the "
                f"{which[better]} sustains"
            )
        return ""

    @property
    def stand(self) -> tuple[int, int]:
        """Which runs stand for either side."""
        first, second = (_first(own) for own in self.fates)
        return first, second

    def seen(self, side: int) -> lost.Seen:
        """The same as counts of runs and of trials."""
        found = lost.Seen()
        for fate in self.fates[side]:
            if fate is None:
                continue
            found.trials += fate.trials
            found.broken += fate.broken
            if fate.what == COUNTS:
                found.valid += 1
            elif fate.what == SPOILT:
                found.spoilt.append(fate.why)
            else:
                found.failed.append(fate.why)
                found.untried += not fate.trials
        return found


def _known(rates: Iterable[float | None]) -> list[float]:
    return [rate for rate in rates if rate]


def _most_low(fates: Sequence[Fate | None]) -> str:
    """At which low rates most searches of a side break the promise; empty: at none."""
    counted = [fate.low for fate in fates if fate is not None and fate.what == COUNTS]
    low = [one for one in counted if one]
    return low[0] if low and 2 * len(low) >= len(counted) else ""


def _first(fates: Sequence[Fate | None]) -> int:
    """The first that counts; else the first with something to compare; else the first there is."""
    there = [(i, fate) for i, fate in enumerate(fates) if fate is not None]
    ranks = [(_rank(fate), i) for i, fate in there]
    return min(ranks)[1] if ranks else 0


def _rank(fate: Fate) -> int:
    """0: best to be compared."""
    if fate.what != COUNTS:
        return 4 - fate.stands
    return 2 - fate.known - (fate.known and fate.stands)


def names(first: Run, runs: Sequence[Run], subjects: Mapping[str, Any]) -> list[dict[str, str]]:
    """By subject of the first run, what it is called in each of these."""
    found = []
    for run in runs:
        own = dict.fromkeys(s.subject for s in run.judged.steps)
        pairs = dict(sweeps.in_pairs(first.record, run.record, (subjects, own)))
        planned = set(driven.subjects(run.record).values())
        found.append({x: pairs.get(x, x) for x in subjects if x in pairs or x in planned})
    return found


def limits_of(before: Sequence[Run], runs: Sequence[Run], subject: str) -> list[str]:
    """What a subject of the first's searches is called in each of these; empty: it is not there."""
    first = next((r for r in before if any(c.subject == subject for c in r.judged.capacity)), None)
    if first is None:
        return [""] * len(runs)
    subjects = dict.fromkeys(c.subject for c in first.judged.capacity)
    return [called.get(subject, "") for called in names(first, runs, subjects)]


def by_server(step: Step) -> bool:
    """Whether it is the server's doing that a step does not count."""
    kinds = {f.kind for f in step.findings if f.severity == "invalid"}
    return step.status == "valid" or at.by_server(step) or bool(kinds & BY_SYSTEM)


def why(step: Step) -> str:
    """The reason of a step that does not count, a clause."""
    return step.reason.rstrip(".") or NONE_WELL
