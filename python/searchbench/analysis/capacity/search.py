"""The search for capacity as a function of the record so far: what to drive next, what was found.

The lab asks, drives, writes the trial and asks again. Several promises are answered by one search:
the first promise that is not settled yet decides the next rate, and every trial counts for all.
What was found is computed from the samples alone: a better judge changes what an old record says.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from searchbench.analysis.agreement import agreement
from searchbench.analysis.capacity import connections, first
from searchbench.analysis.capacity.bracket import SUSPECT, bracket, rough
from searchbench.analysis.capacity.found import Bracket
from searchbench.analysis.capacity.pace import (
    FURTHER,
    SURE_EFFORT,
    TRIALS,
    Driven,
    Next,
    Seen,
    by_queue,
    enough,
    following,
    full_s,
    least_effort,
    rare,
    warmup_s,
)
from searchbench.analysis.capacity.promise import Judged, judge
from searchbench.analysis.capacity.said import STARTS, apart, between, watched
from searchbench.analysis.judgement import Capacity, CapacityTrial, Finding
from searchbench.analysis.remedies import spelt
from searchbench.analysis.roles import truth
from searchbench.analysis.trial import driven, replies, throughput, warmup
from searchbench.analysis.trial.machine import disturbances
from searchbench.analysis.trial.measured import read_trace
from searchbench.analysis.words import per_s
from searchbench.record import Record, Trial
from searchbench.study.plan import Treatment
from searchbench.workload.load_table import LONGEST_S, WARMUP_LIMIT_S, Condition, parse_promise
from searchbench.workload.roles import whole_cycles_s

# Warmed up until steady, which all that follows rests on.
OPENING_LOOP: dict[str, Any] = {"kind": "closed", "clients": 16, "seconds": 2.0}
START = 0.9  # of the throughput of the opening loop
BY_OTHERS = ("foreign CPU", "steal")  # findings, invalid ones of which leave a trial out
_REMEMBERED = 512  # trials
_OF_THE_STEP = ("load.rate_per_s", "load.probe")  # the second of records of format 1

Promises = tuple[tuple[Condition, ...], ...]
_known: OrderedDict[tuple[Path, str, str, tuple[str, ...]], tuple[Judged, ...]] = OrderedDict()


def next_load(record: Record, subject: str, block: int) -> dict[str, Any] | None:
    """The keys of the next trial's load for this subject and block; None where the search is done.

    A trial that failed ends the search: what comes after it would not be of the same system.
    """
    texts, effort = record.plan.judging.promises, record.plan.judging.effort
    trials, roles = _of_search(record, subject, block), template(record, subject).roles
    # With roles each trial has a system of its own, started on a copy of the same index.
    least_s = float(template(record, subject).load.get("warmup_s") or 0.0)
    if not trials and roles:
        return {**OPENING_LOOP, "warmup_s": least_s}
    if not trials:
        return {**OPENING_LOOP, "warmup_limit_s": round(WARMUP_LIMIT_S * min(1.0, effort), 3)}
    if any(t.status != "ok" for t in trials):
        return None
    rates = [t for t in trials if not is_opening_loop(t)]
    judged = [_judged(record, t, texts) for t in rates]
    start = 1.0
    if not rates:
        start = START * throughput.throughput(read_trace(record, trials[0])).value
    found = _undecided(rates, judged, len(texts), start, effort)
    if found is None:
        return None
    promise, wanted = found
    seconds = whole_cycles_s(roles, wanted.seconds)
    return {
        "kind": "open",
        "rate_per_s": float(f"{wanted.rate_per_s:.6g}"),
        "seconds": round(seconds, 3),
        "warmup_s": round(max(least_s if roles else 0.0, warmup_s(seconds, effort)), 3),
        "promise": promise,
        "full": wanted.full,
    }


def _of_search(record: Record, subject: str, block: int) -> list[Trial]:
    """The trials of one search, in the order driven: the opening loop, then rates."""
    subjects = driven.subjects(record)
    return [t for t in record.trials if t.block == block and subjects.get(t.treatment) == subject]


def template(record: Record, subject: str) -> Treatment:
    """What of a subject was planned before its first trial: its first treatment."""
    every = record.plan.treatments
    return next((t for t in every if (t.subject or t.system) == subject), every[0])


def is_opening_loop(trial: Trial) -> bool:
    """Whether a trial of a search is the closed loop that it begins with, and no rate."""
    return trial.load.kind == "closed"


def promises_of(record: Record) -> Promises:
    """The promises of the plan."""
    return tuple(parse_promise(text) for text in record.plan.judging.promises)


def judge_all(record: Record, trial: Trial, promises: Promises) -> tuple[Judged, ...]:
    """A trial's window against every promise, and whether its answers are those asked for."""
    trace = read_trace(record, trial)
    found = [judge(conditions, trace) for conditions in promises]
    found = connections.with_pool(found, promises, record, trial, trace)
    disturbed = any(
        kind in BY_OTHERS and severity == "invalid"
        for kind, severity, *_ in disturbances(trial, trace)
    )
    # Errors are a result: the promise counts them.
    others, _, sampled, _ = agreement.under_load(record, trial, answered=True)
    sizes, known = (0, 0) if others else replies.of_other_size(record, trial, trace)
    if sizes:
        others, sampled = sizes, known
    wrong = (f.kind for f in truth.findings(record, trial) if f.severity == "invalid")
    alone = ", ".join(dict.fromkeys(wrong)) if trial.beside else ""
    return tuple(
        replace(
            one, disturbed=disturbed, alone=alone, others=others, sampled=sampled,
            by_sizes=bool(sizes),
        )
        for one in found
    )  # fmt: skip


def seen_by(
    trials: Sequence[Trial], judged: Sequence[Sequence[Judged]], promise: int, effort: float
) -> Seen:
    """The rates of a search as one of its promises sees them.

    A trial that was full for another promise is full for this one too if it is as long as a full
    trial of this one.
    """
    plain = [
        Driven(
            t.load.rate_per_s or 0.0, t.load.seconds or 0.0, j[promise], trial=t.trial,
            fresh=bool(t.beside),
        )
        for t, j in zip(trials, judged, strict=True)
    ]  # fmt: skip
    found = []
    for trial, one in zip(trials, plain, strict=True):
        own = (trial.load.promise or 0) == promise
        full = bool(trial.load.full)
        if full and not own:
            least = min(LONGEST_S, full_s(Seen(plain), one.rate_per_s)) * effort
            full = one.seconds >= 0.99 * least  # seconds are rounded
        found.append(replace(one, full=full, own=own))
    return Seen(found)


def _undecided(
    trials: Sequence[Trial],
    judged: Sequence[Sequence[Judged]],
    promises: int,
    start_per_s: float,
    effort: float,
) -> tuple[int, Next] | None:
    """The first promise that is not settled, and what to drive for it; None where all are."""
    for promise in range(promises):
        seen = seen_by(trials, judged, promise, effort)
        left = (TRIALS if promise == 0 else FURTHER) - sum(d.own for d in seen.driven)
        wanted = following(seen, left, start_per_s, effort)
        if wanted is not None:
            return promise, wanted
    return None


def _judged(record: Record, trial: Trial, texts: tuple[str, ...]) -> tuple[Judged, ...]:
    """``judge_all``, remembered: else each step of a search would read all traces before it."""
    key = (record.path, trial.trial, trial.started, texts)
    if key not in _known:
        _known[key] = judge_all(record, trial, promises_of(record))
        while len(_known) > _REMEMBERED:
            _known.popitem(last=False)
    return _known[key]


def capacities(record: Record) -> tuple[Capacity, ...]:
    """For every subject and promise of the plan the interval of its limit, and why it is that.

    Nothing that was stored about it is used. Where several blocks searched, the interval is the
    hull of theirs.
    """
    names = dict.fromkeys(driven.subjects(record).values())
    return tuple(one for name in names for one in _of_subject(record, name))


@dataclass(frozen=True)
class _Search:
    """The trials of one block. ``unfinished``: why it ended early; empty where it did not."""

    trials: Sequence[Trial]
    judged: Sequence[Sequence[Judged]]
    unfinished: str


def unwarmed(record: Record) -> Iterator[Finding]:
    """That a warm-up before a search, which ends once the server is warm, ended at its limit."""
    loops = [t for t in record.trials if is_opening_loop(t) and t.warmup is not None]
    found = [
        t
        for t in loops
        if t.warmup and t.warmup.at_limit
        and warmup.find(read_trace(record, t), True, at_limit=True).steadiness.answer != "steady"
    ]  # fmt: skip
    if not found:
        return
    judging, longest_s = record.plan.judging, max(t.warmup.seconds for t in found if t.warmup)
    remedy = "Ask the server for a while before the search, or draw fewer distinct queries."
    if judging.effort < 1:  # from there on the limit of the warm-up is the same
        remedy = f"Search with more effort, which raises that limit. {remedy}"
    yield Finding(
        "warm-up limit",
        "warning",
        "",
        f"{len(found)} of {len(loops)} searches, after {longest_s:.0f} s",
        "The warm-up before the search ended at its limit, before the server was seen to be warm. "
        "So the first trials may be of a cold server, and the limit that was found too low.",
        spelt(remedy, judging),
    )


def _of_subject(record: Record, subject: str) -> list[Capacity]:
    judging, promises = record.plan.judging, promises_of(record)
    blocks = dict.fromkeys(t.block for t in record.trials)
    trials = [own for block in blocks if (own := _of_search(record, subject, block))]
    searches = [_search(record, own, promises) for own in trials]
    why = dict.fromkeys(s.unfinished for s in searches if s.unfinished)
    planned = template(record, subject)
    found = []
    for promise, text in enumerate(judging.promises):
        seen = [seen_by(s.trials, s.judged, promise, judging.effort) for s in searches]
        least = max((least_effort(one, judging.effort) for one in seen), default=SURE_EFFORT)
        by_length = max((enough(one) for one in seen), default=SURE_EFFORT)
        few = min((one.by_rate.clusters for one in seen), default=None)
        each = [bracket(one, judging.effort) for one in seen]
        hull = _hull(each, seen)
        queue = any(enough(one) == by_length and by_queue(one) for one in seen)
        of_rare = next((rare(one) for one in seen if one.driven and enough(one) == by_length), "")
        hull = rough(
            hull, judging.effort, least, by_queue=queue, rare=of_rare,
            clusters=few if by_length <= max(judging.effort, SURE_EFFORT) < least else None,
            varying=any(one.by_rate.varying for one in seen if one.driven),
        )  # fmt: skip
        breaks_first = first.breaks_first(seen, promises[promise])
        of_class = first.sentence(breaks_first) or first.broken_at_all(seen, promises[promise])
        found.append(
            Capacity(
                subject=subject,
                system=planned.system,
                levels={f: v for f, v in planned.levels.items() if f not in _OF_THE_STEP},
                promise=text,
                holds=hull.holds,
                fails=hull.fails,
                sentence=spelt(
                    " ".join(filter(None, [hull.sentence, of_class, watched(seen), *why])),
                    judging,
                ),
                trials=tuple(_trial(d) for one in seen for d in one.driven),
                chance_inside=hull.chance_inside,
                searches=len(seen),
                effort=judging.effort,
                enough=least,
                speeds=max((_speeds(one.by_rate) for one in seen), default=0.0),
                first=breaks_first,
                broken_up_to=hull.broken_up_to,
                blocks={
                    own[0].block: (b.holds, b.fails) for own, b in zip(trials, each, strict=True)
                },
            )
        )
    return found


def _speeds(seen: Seen) -> float:
    """How far its speed differs from trial to trial; 0 where it was not seen to."""
    return seen.where.speeds if seen.used and seen.where.differs > SUSPECT else 0.0


def _search(record: Record, own: Sequence[Trial], promises: Promises) -> _Search:
    failed = next((t for t in own if t.status != "ok"), None)
    rates = [t for t in own if t.status == "ok" and not is_opening_loop(t)]
    judged = [judge_all(record, t, promises) for t in rates]
    why = ""
    if failed is not None:
        which = "opening loop" if is_opening_loop(failed) else f"trial {failed.trial}"
        reason = failed.reason or "no reason was recorded"
        why = f"The search ended early: the {which} failed ({reason})."
    elif all(t.load.promise is not None for t in rates):  # format 1 does not say what it was for
        effort = record.plan.judging.effort
        if not rates or _undecided(rates, judged, len(promises), 1.0, effort) is not None:
            why = (
                "The search is not finished, because it was interrupted or an earlier version "
                "asked for fewer trials: the same command goes on with it."
            )
    return _Search(rates, judged, why)


def _hull(brackets: Sequence[Bracket], seen: Sequence[Seen]) -> Bracket:
    """What several searches say together: each block may have had a limit of its own."""
    if not brackets:
        return Bracket(None, None, "No rate has been driven yet.")
    if len(brackets) == 1:
        return brackets[0]
    most = min(s.changed_per_s for s in seen)  # above it no search names a rate
    lows = [b.holds for b in brackets if b.holds is not None]
    highs = [min(b.fails, most) for b in brackets if b.fails is not None]
    low = min(lows) if len(lows) == len(brackets) else None
    high = max(highs) if len(highs) == len(brackets) else None
    up_to = max((b.broken_up_to for b in brackets if b.broken_up_to is not None), default=None)
    if low is None or high is None:
        n = len(brackets)
        parts = [f"In search {i} of {n}: {b.sentence}" for i, b in enumerate(brackets, 1)]
        return Bracket(low, high, " ".join(parts), broken_up_to=up_to)
    chances = [b.chance_inside for b in brackets if b.chance_inside is not None]
    trials, n = sum(len(s.used) for s in seen), len(brackets)
    also = "" if up_to is None else f" At {per_s(up_to)} and below the promise was broken."
    if max(lows) >= min(highs):
        told = apart(low, high, trials, n) + also
        return Bracket(low, high, told, broken_up_to=up_to)
    told = between(low, high, trials, n) + also
    chance = min(chances, default=None) if n >= STARTS else None
    return Bracket(low, high, told, chance, up_to)


def _trial(one: Driven) -> CapacityTrial:
    """A trial by the condition that it broke most."""
    worst = max(one.judged.kept, key=lambda k: k.share / k.condition.allowed)
    allowed, condition = worst.condition.allowed, worst.condition.text
    excess = worst.share / allowed, worst.low / allowed, worst.high / allowed
    verdict = "left out" if one.judged.says_nothing else one.judged.verdict
    driven_at = one.trial, one.rate_per_s, one.seconds
    return CapacityTrial(*driven_at, verdict, condition, *excess, one.judged.achieved)
