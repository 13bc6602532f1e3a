"""The capacity of every subject of a record under every promise, computed from its samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from searchbench.analysis.capacity import search
from searchbench.analysis.capacity.bracket import Bracket, between, bracket
from searchbench.analysis.capacity.promise import Judged, Kept
from searchbench.analysis.capacity.seen import Driven, Seen
from searchbench.analysis.judgement import Capacity, CapacityTrial, Level
from searchbench.analysis.trial import driven
from searchbench.record import Record, Trial

OF_THE_STEP = ("load.rate_per_s", "load.probe")  # the second of records of format 1


def capacities(record: Record) -> tuple[Capacity, ...]:
    """For every subject and promise of the plan the interval of its limit, and why it is that.

    Nothing that was stored about it is used: a better judge changes what an old record says. Where
    several blocks searched, the interval is the hull of theirs.
    """
    names = dict.fromkeys(driven.subjects(record).values())
    return tuple(one for name in names for one in _of_subject(record, name))


@dataclass(frozen=True)
class _Search:
    """The trials of one block. ``unfinished``: why it ended early; empty where it did not."""

    trials: Sequence[Trial]
    judged: Sequence[Sequence[Judged]]
    unfinished: str


def _of_subject(record: Record, subject: str) -> list[Capacity]:
    judging = record.plan.judging
    promises = search.promises_of(record)
    blocks = dict.fromkeys(t.block for t in record.trials)
    searches = [
        _search(record, own, promises)
        for block in blocks
        if (own := search.of_search(record, subject, block))
    ]
    planned = next(t for t in record.plan.treatments if (t.subject or t.system) == subject)
    levels = {f: level for f, level in planned.levels.items() if f not in OF_THE_STEP}
    found = []
    for promise, text in enumerate(judging.promises):
        seen = [search.seen_by(s.trials, s.judged, promise, judging.effort) for s in searches]
        found.append(_capacity(subject, planned.system, levels, text, seen, searches))
    return found


def _search(record: Record, own: Sequence[Trial], promises: search.Promises) -> _Search:
    failed = next((t for t in own if t.status != "ok"), None)
    rates = [t for t in own if t.status == "ok" and not search.is_first_look(t)]
    judged = [search.judge_all(record, t, promises) for t in rates]
    why = ""
    if failed is not None:
        which = "first look" if search.is_first_look(failed) else f"trial {failed.trial}"
        reason = failed.reason or "no reason was recorded"
        why = f"The search ended early: the {which} failed ({reason})."
    elif all(t.load.promise is not None for t in rates):  # format 1 does not say what it was for
        effort = record.plan.judging.effort
        if not rates or search.undecided(rates, judged, len(promises), 1.0, effort) is not None:
            why = "The search was interrupted."
    return _Search(rates, judged, why)


def _capacity(
    subject: str,
    system: str,
    levels: dict[str, Level],
    text: str,
    seen: Sequence[Seen],
    searches: Sequence[_Search],
) -> Capacity:
    brackets = [bracket(one) for one in seen]
    hull = _hull(brackets, seen)
    why = list(dict.fromkeys(s.unfinished for s in searches if s.unfinished))
    return Capacity(
        subject=subject,
        system=system,
        levels=levels,
        promise=text,
        holds=hull.holds,
        fails=hull.fails,
        sentence=" ".join([hull.sentence, *why]),
        trials=tuple(_trial(d) for one in seen for d in one.driven),
        chance_inside=hull.chance_inside,
        searches=len(seen),
    )


def _hull(brackets: Sequence[Bracket], seen: Sequence[Seen]) -> Bracket:
    """What several searches say together: each block may have had a limit of its own."""
    if not brackets:
        return Bracket(None, None, "No rate has been driven yet.")
    if len(brackets) == 1:
        return brackets[0]
    lows = [b.holds for b in brackets if b.holds is not None]
    highs = [b.fails for b in brackets if b.fails is not None]
    low = min(lows) if len(lows) == len(brackets) else None
    high = max(highs) if len(highs) == len(brackets) else None
    if low is None or high is None:
        n = len(brackets)
        parts = [f"In search {i} of {n}: {b.sentence}" for i, b in enumerate(brackets, 1)]
        return Bracket(low, high, " ".join(parts))
    chances = [b.chance_inside for b in brackets if b.chance_inside is not None]
    sentence = between(low, high, sum(len(s.used) for s in seen), len(brackets))
    if max(lows) >= min(highs):
        sentence += " The searches do not agree: the limit changed from one to another."
    return Bracket(low, high, sentence, min(chances, default=None))


def _trial(one: Driven) -> CapacityTrial:
    """A trial by the condition that it broke most."""
    worst: Kept | None = max(
        one.judged.kept, key=lambda k: k.share / k.condition.allowed, default=None
    )
    excess: list[float | None] = [None, None, None]
    if worst is not None:
        excess = [s / worst.condition.allowed for s in (worst.share, worst.low, worst.high)]
    return CapacityTrial(
        trial=one.trial,
        rate_per_s=one.rate_per_s,
        seconds=one.seconds,
        verdict="void" if one.judged.own_fault else one.judged.verdict,
        condition=worst.condition.text if worst is not None else "",
        excess=excess[0],
        excess_low=excess[1],
        excess_high=excess[2],
        achieved=one.judged.achieved,
    )
