"""The capacity of readers with roles beside them, over that of the same with every role idle.

Both are intervals of searches. What a writer was asked for and what it got done stands beside them:
a capacity beside fewer writes than the study asks for is another one, and is said to be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from searchbench.analysis.capacity.alike import LEFT_OUT
from searchbench.analysis.capacity.ratio import ratio_of
from searchbench.analysis.capacity.search import template
from searchbench.analysis.capacity.verdict import SEARCHES, between
from searchbench.analysis.judgement import Capacity, Estimate
from searchbench.analysis.roles.accepted import of_writer, written
from searchbench.analysis.roles.model import CapacityBeside, Pace
from searchbench.analysis.roles.results import idle, rest
from searchbench.analysis.stats.intervals import paired_ratio
from searchbench.analysis.trial.throughput import KEEPS_UP
from searchbench.analysis.words import digits, from_to, per_s, plural
from searchbench.record import Record, Trial
from searchbench.study.plan import Treatment

NEAR = 0.8  # of the lower end of an interval: from there on a trial is near the capacity
_UNRESOLVED = "which is not resolved: "  # how a verdict begins why it is not
Found = tuple[Sequence[CapacityBeside], list[str], list[str]]


def beside_idle(
    record: Record, capacity: Sequence[Capacity], not_apart: Callable[[Capacity, Capacity], str]
) -> Found:
    """Each capacity of readers beside roles, with sentences of the ratios, and of writers that fell
    short. ``not_apart``: why neither of two is shown to be greater, in a clause; empty: one is.
    """
    planned = {c.subject: template(record, c.subject) for c in capacity}
    of = {(c.subject, c.promise): c for c in capacity}
    found = []
    for one in capacity:
        own = planned[one.subject]
        if not own.roles or idle(own):
            continue
        name = _idle_one(own, planned)
        other = of.get((name, one.promise))
        ends = (one.holds, one.fails)
        paces = tuple(_paces(record, one))
        if other is None:
            found.append(CapacityBeside(one.subject, "", one.promise, *ends, paces=paces))
            continue
        found.append(CapacityBeside(
            one.subject, name, one.promise, *ends, other.holds, other.fails,
            _ratio(other, one), not_apart(other, one).removeprefix(_UNRESOLVED), paces,
        ))  # fmt: skip
    return found, [*map(_sentence, _in_pairs(found))], [*_short(found)]


def _idle_one(own: Treatment, planned: Mapping[str, Treatment]) -> str:
    """The subject that differs in its roles alone, which are idle; empty: there is none."""
    return next(
        (name for name, t in planned.items() if t.roles and idle(t) and rest(t) == rest(own)), ""
    )


def _ratio(idle_one: Capacity, own: Capacity) -> Estimate | None:
    """Of the middles, over the blocks in which both searches have an interval; where they are few,
    or an end of the whole is open, as far as both intervals allow. Its level is that of the less
    sure of both.
    """
    mine, others = _middles(own), _middles(idle_one)
    logs = [mine[block] - others[block] for block in sorted(mine.keys() & others.keys())]
    whole = ratio_of(idle_one, own)
    if whole is None or whole.interval is None or len(logs) < SEARCHES:
        return whole
    found = paired_ratio(logs, None)[0]
    if found is None or found.interval is None:
        return whole
    # What short trials miss is common to all blocks, and not in how these differ.
    level = min(found.interval.level, whole.interval.level)
    return replace(found, interval=replace(found.interval, level=level))


def _middles(one: Capacity) -> dict[int, float]:
    """By block the logarithm of the middle of its interval, where that is closed."""
    return {
        block: math.log(holds * fails) / 2
        for block, (holds, fails) in one.blocks.items()
        if holds is not None and fails is not None
    }


def _paces(record: Record, one: Capacity) -> Iterable[Pace]:
    """How each writer kept up in the trials near the capacity; where none is near, in all up to it.

    At low rates it has the system to itself, which says nothing of what it gets at the capacity.
    """
    top = math.inf if one.fails is None else one.fails
    up_to = {t.trial: t.rate_per_s for t in one.trials
             if t.verdict != LEFT_OUT and t.rate_per_s <= top}  # fmt: skip
    near = {name: rate for name, rate in up_to.items() if rate >= NEAR * (one.holds or 0.0)}
    rates = near or up_to
    trials = [t for t in record.trials if t.trial in rates and t.window is not None]
    names = dict.fromkeys(
        run.name for t in trials for run in t.beside
        if run.does == "write" and run.drive is not None
    )  # fmt: skip
    for name in names:
        yield _pace(record, name, [t for t in trials if _has(t, name)], rates)


def _has(trial: Trial, name: str) -> bool:
    return any(run.name == name and run.drive is not None for run in trial.beside)


def _pace(record: Record, name: str, trials: Sequence[Trial], rates: Mapping[str, float]) -> Pace:
    seconds = asked = acknowledged = batch = 0.0
    behind: list[float] = []
    clocked = True
    for trial in trials:
        run = next(r for r in trial.beside if r.name == name)
        assert trial.window is not None
        window = trial.window.start, trial.window.end
        figures = of_writer(written(record, trial, run), window, run)
        own_s = (window[1] - window[0]) / 1e9
        seconds += own_s
        clocked = clocked and "offered_per_s" in figures
        asked += own_s * figures.get("offered_per_s", 0.0)
        acknowledged += own_s * figures["accepted_per_s"]
        behind += [figures["behind_s"]] if "behind_s" in figures else []
        batch = float(run.keys.get("batch", 1))
    # At either end of a window a request may be due on one side of it and answered on the other.
    short = asked - acknowledged > max((1 - KEEPS_UP) * asked, batch * len(trials))
    return Pace(
        name, asked / seconds if clocked else None, acknowledged / seconds, len(trials),
        min(rates[t.trial] for t in trials), max(rates[t.trial] for t in trials),
        max(behind, default=None), clocked and short,
    )  # fmt: skip


def _in_pairs(found: Iterable[CapacityBeside]) -> list[CapacityBeside]:
    """Those whose ratio is known, or at least a bound of it."""
    return [one for one in found if one.idle and one.ratio is not None]


def _sentence(one: CapacityBeside) -> str:
    """The ratio of one, as far as it is known."""
    assert one.ratio is not None
    span = one.ratio.interval
    said = digits(one.ratio.value)
    if span is None:
        said = f"at {'most' if one.ratio.value < 1 else 'least'} {said}"
    else:
        chance = f"{100 * span.level:.0f} % interval " if span.level >= 0.95 else "roughly "
        said = f"{said} ({chance}{from_to(span.low, span.high)})"
    why = f", but they are not told apart: {one.unresolved}" if one.unresolved else ""
    return (
        f"With {one.promise}, the capacity of the readers of {one.subject} is {said} times that of "
        f"{one.idle}{why}."
    )


def _short(found: Iterable[CapacityBeside]) -> Iterable[str]:
    """Of each writer that fell behind, what its readers' capacity is beside."""
    for one in found:
        for pace in one.paces:
            if not pace.short or pace.asked_per_s is None:
                continue
            n = pace.trials
            late = "" if pace.behind_s is None else (
                f", and at the end of a window the {pace.role} was up to "
                f"{digits(pace.behind_s)} s behind its clock"
            )  # fmt: skip
            yield (
                f"With {one.promise}, {one.subject} ({between(one.holds, one.fails)}) took fewer "
                f"writes than it was asked to: of {digits(pace.asked_per_s)} documents a second it "
                f"acknowledged {digits(pace.acknowledged_per_s)} in {n} "
                f"{plural(n, 'trial', 'trials')} at {per_s(pace.from_per_s)} to "
                f"{per_s(pace.up_to_per_s)}{late}. So this is the capacity beside that many writes."
            )
