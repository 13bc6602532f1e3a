"""Two sweeps, step by step, or two searches for capacity: before and after an upgrade, say.

Steps are matched by subject and load, limits by subject and promise; where each record has one
subject its name does not matter, since it is often only a port. Where each step was driven once,
the intervals are of slices within the windows: they know nothing of how much the machine differs
from one hour to the next.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from searchbench.analysis.agreement import agreement, answers
from searchbench.analysis.capacity import alike as capacity_alike
from searchbench.analysis.capacity.ratio import middle, ratio_of
from searchbench.analysis.capacity.verdict import SEARCHES, above, interval, leads, unordered
from searchbench.analysis.compare import builds, lesser, loads, otherwise
from searchbench.analysis.compare.run import Run
from searchbench.analysis.compare.same_work import SIDES, SameWork, same_work
from searchbench.analysis.compare.unread import Unread
from searchbench.analysis.judgement import (
    Agreement,
    Capacity,
    RecordLine,
    Step,
)
from searchbench.analysis.remedies import spelt
from searchbench.analysis.sweep import alike
from searchbench.analysis.sweep import points as at
from searchbench.analysis.sweep.mixed import TOO_FEW, Mixed
from searchbench.analysis.sweep.points import Point
from searchbench.analysis.sweep.words import percent
from searchbench.analysis.trial import driven
from searchbench.analysis.trial.by_system import not_measured
from searchbench.analysis.words import per_s
from searchbench.record import Record, Trial

STEPS_ONCE = (
    "Each step was driven once in each record, so the intervals cover only the noise within "
    "those windows (--repeat 5 shows more)."
)
SEARCHED_ONCE = (
    "Each record has one search, on one start of the system, and a restart alone may move a limit."
)
OF_LITTLE_EFFORT = (
    "an interval of a search of little effort, which held the truth in about 7 of 10 simulated "
    "searches; search with more effort before you rely on it"
)
Draft = tuple[RecordLine, float | None]
OF_CAPACITY = "capacity at "  # the metric of a limit, before its promise
_LEVELS = ("clients", "rate_per_s", "speed")  # by which steps are matched


@dataclass(frozen=True)
class Matched:
    """What two records have in common. ``drafts``: lines to be decided, each with its p.

    ``agreed``: by label, how far the two return the same; ``only``: the labels of what one record
    alone has; ``note``: what is not known of them all. ``unit``: what was driven. ``absent``:
    subjects (of trials: systems) of the first of which the second has nothing. ``unread``: by
    label, replies that nobody read. ``keys``: of each draft of a sweep or a search the first's
    subject, and its kind and level of load, or its promise.
    """

    drafts: Sequence[Draft]
    agreed: Mapping[str, Agreement]
    only: tuple[tuple[str, ...], tuple[str, ...]]
    note: str = ""
    unit: str = "trial"
    absent: tuple[str, ...] = ()
    unread: Mapping[str, Unread] = field(default_factory=dict)
    keys: Sequence[tuple[Hashable, ...]] = ()


def match(a: Run, b: Run) -> Matched:
    """Match the steps of two sweeps, first and second, and compare them."""
    sides = at.driven(a.judged.steps), at.driven(b.judged.steps)
    subjects = list(_in_common(a, b, sides))
    drafts: list[Draft] = []
    keys: list[tuple[Hashable, ...]] = []
    only: tuple[list[str], list[str]] = [], []
    for x_name, y_name, barrier, work in subjects:
        mine = {(p.kind, p.x): p for p in sides[0][x_name]}
        other = {(p.kind, p.x): p for p in sides[1][y_name]}
        for key in (key for key in mine if key in other):
            x, y = mine[key], other[key]
            first, second = (run.trials[p.steps[0].trial] for run, p in ((a, x), (b, y)))
            why = barrier or driven_otherwise(first, second)
            here = alike.at_load(work, x, y, (a.samples, b.samples))
            here = here if a.members is None else here.only(a.members)
            drafts += _lines((a, x), (b, y), why, here)
            keys += [(x_name, *key)] * (len(drafts) - len(keys))
        only[0].extend(p.steps[0].label for key, p in mine.items() if key not in other)
        only[1].extend(p.steps[0].label for key, p in other.items() if key not in mine)
    unmatched = [
        tuple(name for name in side if name not in {pair[which] for pair in subjects})
        for which, side in enumerate(sides)
    ]
    for side, names in zip(only, unmatched, strict=True):
        side.extend(names)
    shared = [p for side in sides for own in side.values() for p in own]
    once = not any(len({s.block for s in p.steps}) > 1 for p in shared)
    note = spelt(STEPS_ONCE, b.record.plan.judging) if once and drafts else ""
    both_only = tuple(only[0]), tuple(only[1])
    told = _agreed(subjects), _unread(subjects)
    return Matched(drafts, told[0], both_only, note, "step", unmatched[0], told[1], keys)


def not_driven(run: Run, subject: str) -> list[tuple[at.Kind, float]]:
    """Kind and level of planned steps of which there is none on record."""
    names = driven.subjects(run.record)
    own = [load for t, load in run.loads.items() if names[t] == subject]
    known = {(s.kind, at.level_of(s)) for s in run.judged.steps if s.subject == subject}
    levels = {"closed": "clients", "open": "rate_per_s", "replay": "speed"}
    planned: list[tuple[at.Kind, float]] = [
        (load.kind, float(getattr(load, levels[load.kind]) or 1.0)) for load in own
    ]
    return [key for key in planned if key not in known]


def label_of(a: Step, b: Step | None) -> str:
    """What a line about both is called: without the subject's name, where each has another."""
    if b is None:
        return a.label
    names = f" {a.subject}", f" {b.subject}"
    if names[0].endswith(names[1]) or names[1].endswith(names[0]):
        return a.label
    return a.label.removeprefix(a.subject).strip() or a.label


def match_capacities(a: Run, b: Run) -> Matched:
    """Match the capacities of two records by subject and promise: did the limit move?"""
    sides: list[dict[str, dict[str, Capacity]]] = [{}, {}]
    for side, run in zip(sides, (a, b), strict=True):
        for one in run.judged.capacity:
            side.setdefault(one.subject, {})[one.promise] = one
    subjects = list(_in_common(a, b, (sides[0], sides[1])))
    changed = [at.all_otherwise(run.judged.steps) for run in (a, b)]
    both = [
        (
            x_name,
            y_name,
            promise,
            barrier
            or _changed(x_name in changed[0], y_name in changed[1])
            or searched_otherwise((a, sides[0][x_name][promise]), (b, sides[1][y_name][promise])),
            _gain(a, b, sides[0][x_name][promise], sides[1][y_name][promise], work),
        )
        for x_name, y_name, barrier, work in subjects
        for promise in sides[0][x_name]
        if promise in sides[1][y_name]
    ]
    gap = builds.alike(len(both), builds.STARTS_SD)
    lines = (_limits(sides[0][x][p], sides[1][y][p], why, made, gap) for x, y, p, why, made in both)
    judging = b.record.plan.judging
    drafts = [(replace(line, reason=spelt(line.reason, judging)), None) for line in lines]
    only = [
        tuple(f"{name} {p}" for name, own in side.items() for p in own if (name, p) not in taken)
        for side, taken in (
            (sides[0], {(x, promise) for x, _, promise, *_ in both}),
            (sides[1], {(y, promise) for _, y, promise, *_ in both}),
        )
    ]
    once = all(c.searches == 1 for run in (a, b) for c in run.judged.capacity)
    note = SEARCHED_ONCE if once and drafts else ""
    absent = tuple(name for name in sides[0] if name not in {x for x, *_ in subjects})
    both_only = only[0], only[1]
    told = _agreed(subjects), _unread(subjects)
    keys = [(x, promise) for x, _, promise, *_ in both]
    return Matched(drafts, told[0], both_only, note, "search", absent, told[1], keys)


def failed_below(run: Run, subject: str, held: float | None, holds: float | None) -> str:
    """The trial that failed at a rate that the first ``held``, if the search does not say that its
    own subject ``holds`` it; empty: there is none. One that failed before or beside the system says
    nothing.
    """
    names = driven.subjects(run.record)
    for trial in run.record.trials:
        rate = trial.load.rate_per_s or 0.0  # the opening loop has none
        if names.get(trial.treatment) != subject or trial.status == "ok" or not_measured(trial):
            continue
        if (holds or 0.0) <= rate <= (held or 0.0):
            which = f"the trial at {per_s(rate)}" if rate else "its opening loop"
            sustained = ", a rate that the first sustained" if rate else ""
            return f"{which} failed{sustained}: {trial.reason.rstrip('.')}"
    return ""


def _changed(first: bool, second: bool) -> str:
    """That one gave other answers in every trial of its search; empty: it did not."""
    which = [name for name, own in (("the first", first), ("the second", second)) if own]
    return f"{' and '.join(which)} {at.CHANGED}" if which else ""


def driven_otherwise(a: Trial, b: Trial) -> str:
    """That two steps had other loads than their level says; empty: they had not."""
    return loads.differing(a, b, matched=_LEVELS)


def searched_otherwise(*sides: tuple[Run, Capacity]) -> str:
    """That two searches drove other loads than at other rates; empty: they did not."""
    first = [
        next((trial for t in found.trials
              if (trial := run.trials.get(t.trial)) and trial.load.kind == "open"), None)
        for run, found in sides
    ]  # fmt: skip
    a, b = first
    return loads.differing(a, b, matched=_LEVELS) if a is not None and b is not None else ""


def _gain(a: Run, b: Run, x: Capacity, y: Capacity, work: SameWork) -> tuple[str, float]:
    """Why a greater limit of the second may be so by other answers, and up to which ratio; empty
    and 1: it may not.
    """
    steps, samples = (a.judged.steps, b.judged.steps), (a.samples, b.samples)
    found = capacity_alike.under_load(work, (x, y), steps, samples, SIDES)
    if why := found.doubt():
        return why, math.inf
    floor = capacity_alike.floor(found, x, a.samples)
    return (found.made, floor) if floor > 1 else ("", 1.0)


_Subjects = tuple[str, str, str, SameWork]


def _in_common(
    first: Run, second: Run, sides: tuple[Mapping[str, Any], Mapping[str, Any]]
) -> Iterator[_Subjects]:
    """Subjects to be compared: those of the same name and system, or the only one of each side.

    With each pair why their speeds may not be compared (empty: they may), and whether both answer
    the same.
    """
    a, b = first.record, second.record
    for x_name, y_name in in_pairs(a, b, sides):
        x, y = first_trial(a, x_name), first_trial(b, y_name)
        barrier, work = "", SameWork()
        if x is not None and y is not None and not answers.same_question(x, y):
            barrier = "the requests are not the same in both records"
        elif x is not None and y is not None:
            known, key = first.works, (b.path, x_name, y_name)
            if key not in known:
                known[key] = _work(a, b, x, y)
            work = known[key]
            barrier = work.apart() if work.blind is not None else ""
        yield x_name, y_name, barrier, work


def in_pairs(
    a: Record, b: Record, sides: tuple[Mapping[str, Any], Mapping[str, Any]]
) -> list[tuple[str, str]]:
    """Subjects of the same name and system, or the only one of each side."""
    names = [list(side) for side in sides]
    if len(names[0]) == len(names[1]) == 1:
        return [(names[0][0], names[1][0])]
    whole = _whole(a), _whole(b)
    return [(x, y) for x in names[0] for y in names[1] if whole[0][x] == whole[1][y]]


def _work(a: Record, b: Record, x: Trial, y: Trial) -> SameWork:
    """What is known of whether both answer the same, by what they answered when asked alone."""
    mine, other = (
        agreement.read_answers(r, t, agreement.loaded(r, answers.loaded_of(r, t)))
        for r, t in ((a, x), (b, y))
    )
    rule, asked = a.plan.judging.agreement, a.queries(x.queries.digest) if x.queries.digest else ()
    agree = partial(
        agreement.compare, mine, other, require=rule.require, k=rule.k, queries=asked,
        titles=a.titles(x.corpus.digest) | b.titles(y.corpus.digest),
    )  # fmt: skip
    return same_work(mine, other, agree)


def _whole(record: Record) -> dict[str, str]:
    """By subject its name with its system, which a record of one system leaves out."""
    each = ((t.subject or t.system, t.system) for t in record.plan.treatments)
    return {
        name: name if name == system or name.startswith(f"{system} ") else f"{system} {name}"
        for name, system in each
    }


def first_trial(record: Record, subject: str) -> Trial | None:
    """The first trial of a subject that was driven to its end."""
    subjects = driven.subjects(record)
    own = (t for t in record.trials if subjects.get(t.treatment) == subject and t.status == "ok")
    return next(own, None)


def _agreed(subjects: Sequence[_Subjects]) -> dict[str, Agreement]:
    return {
        x if x == y else f"{x} and {y}": replace(work.pair.agreement, label_a=x, label_b=y)
        for x, y, _, work in subjects
        if work.pair is not None
    }


def _unread(subjects: Sequence[_Subjects]) -> dict[str, Unread]:
    return {
        x if x == y else f"{x} and {y}": work.alone
        for x, y, _, work in subjects
        if work.alone is not None
    }


def _lines(
    first: tuple[Run, Point], second: tuple[Run, Point], barrier: str, work: SameWork
) -> Iterator[Draft]:
    a, b = first[1], second[1]
    samples = first[0].samples, second[0].samples
    metrics = at.metrics(a, b)
    if first[0].members is not None:
        # How many of a class are answered follows from how many of it are asked.
        metrics = tuple(metric for metric in metrics if metric != "answered")
    barrier = barrier or at.not_comparable(*zip(SIDES, (a, b), strict=True))
    mixes: list[Mixed] = []
    if a.kind == "closed" and not barrier:
        mixes = lesser.mixes(first, second, work.same)
        barrier = "" if mixes[0].queries else "no query was measured on both sides"
    for metric in metrics if a.kind == "closed" else reversed(metrics):  # the tail before the rest
        mixed, ratio, p = lesser.lesser(a, b, metric, mixes) if not barrier else (None, None, None)
        reasons, over = [barrier], "alike"
        if mixed and ratio is None and mixed.uncounted and metric == "answered":
            ratio, p = lesser.counted(first, second)
            over = "counted" if ratio is not None else over
            reasons.append(mixed.unknown(metric, SIDES))
            reasons.append("the ratio is of all requests, as counted" if ratio else "")
        elif not barrier and ratio is None:
            reasons.append(mixed.unknown(metric, SIDES) if mixed else TOO_FEW)
        elif not barrier and work.other.size and (mixed is None or mixed is mixes[0]):
            differ = f"{work.other.size} of {work.known}"
            what = "replies of another size" if work.not_read else "another total"
            reasons.append(f"over all requests, though {differ} have {what}")
        elif not barrier and work.other.size:
            reasons.append(f"over the {work.known - work.other.size} of {work.known} queries that "
                           "both answer alike")  # fmt: skip
        reasons.append(mixed.left_out if mixed else "")
        if metric == "answered" and a.kind != "closed":
            reasons.insert(0, _behind(a, b))
        doubt, most = work.doubt(), 1.0
        if ratio is not None and not doubt:
            driven_by = first[0].loads[a.treatment], second[0].loads[b.treatment]
            rest = mixed is not None and mixed is not mixes[0]
            made = partial(alike.floor, work, (a, b), samples, driven_by, metric, rest=rest)
            most, how = otherwise.gain(made, ratio, cancel=rest and metric == "answered")
            doubt = how if most > 1 else ""
        yield (
            RecordLine(
                label=label_of(a.steps[0], b.steps[0]),
                levels={"system": a.system, **a.steps[0].levels},
                metric="throughput" if metric == "answered" else metric,
                verdict="not comparable" if barrier else "not resolved",
                value_a=a.of(metric),
                value_b=b.of(metric),
                ratio=ratio,
                p_value=None,
                floor=1.0,
                reason="; ".join(filter(None, reasons)),
                queries_used=lesser.asked(mixed) if mixed else 0,
                queries_measured=mixed.queries if mixed else None,
                answers_doubt=doubt,
                answers_floor=most if most > 1 else math.inf if doubt else 1.0,
                over="counted" if over == "counted" else "alike",
            ),
            p,
        )


def _behind(a: Point, b: Point) -> str:
    said = []
    for which, point in (("first", a), ("second", b)):
        shares = [s.achieved.value for s in point.steps if s.achieved is not None]
        if point.keeps_up is False and shares:
            share = percent(min(shares))
            how = f"{share} answered within the window"
            said.append(f"the {which} does not keep up with this rate ({how})")
    return ", ".join(said)


def _limits(
    x: Capacity, y: Capacity, barrier: str, made: tuple[str, float], starts: float
) -> RecordLine:
    """``starts``: the gap that two starts may make, which few searches of a side do not cover."""
    doubt, floor = made
    moved, apart = above(y, x) or above(x, y), leads(y, x) or leads(x, y)
    unknown = [
        which for which, one in (("first", x), ("second", y)) if not (one.holds or one.fails)
    ]
    overlap = f": they do not overlap, {unordered(x, y)}" if apart else ": the intervals overlap"
    overlap = "" if moved else overlap
    if unknown:
        overlap = f": of the {' and the '.join(unknown)} no limit is known"
    doubts = (("the first", x.doubt), ("the second", y.doubt))
    gain = doubt if above(y, x) and not leads(y, x, floor) else ""
    in_doubt = f"; {gain}" if gain else ""
    in_doubt += "".join(
        f"; {which}: {doubt[:1].lower()}{doubt[1:].rstrip('.')}" for which, doubt in doubts if doubt
    )
    return RecordLine(
        label=x.subject,
        levels={"system": x.system, **x.levels},
        metric=OF_CAPACITY + x.promise,
        verdict="not comparable"
        if barrier
        else "differs"
        if moved and not gain
        else "not resolved",
        value_a=middle(x),
        value_b=middle(y),
        ratio=None if barrier else ratio_of(x, y),
        p_value=None,
        floor=1.0,
        reason=barrier or f"{interval(x)} and {interval(y)}{overlap}{in_doubt}",
        answers_doubt=doubt,
        answers_floor=floor,
        start_floor=starts if min(x.searches, y.searches) < SEARCHES else 1.0,
    )
