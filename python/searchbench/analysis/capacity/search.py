"""The search for capacity as a function of the record so far: what is to be driven next.

The lab asks, drives, writes the trial and asks again. Several promises are answered by one search:
the first promise that is not settled yet decides the next rate, and every trial counts for all.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from searchbench.analysis.capacity.pace import (
    FURTHER,
    LONGEST_S,
    TRIALS,
    Next,
    following,
    full_s,
    warmup_s,
)
from searchbench.analysis.capacity.promise import Judged, judge
from searchbench.analysis.capacity.seen import Driven, Seen
from searchbench.analysis.trial import driven
from searchbench.analysis.trial import throughput as capacity
from searchbench.analysis.trial.measured import read_trace
from searchbench.record import Record, Trial
from searchbench.workload.load_table import Condition, parse_promise

FIRST_LOOK: dict[str, Any] = {"kind": "closed", "clients": 16, "seconds": 2.0, "warmup_s": 0.0}
START = 0.9  # of the throughput of the first look
_REMEMBERED = 512  # trials

Promises = tuple[tuple[Condition, ...], ...]
_known: OrderedDict[tuple[Path, str, str, tuple[str, ...]], tuple[Judged, ...]] = OrderedDict()


def next_load(record: Record, subject: str, block: int) -> dict[str, Any] | None:
    """The keys of the next trial's load for this subject and block; None where the search is done.

    A trial that failed ends the search: what comes after it would not be of the same system.
    """
    texts, effort = record.plan.judging.promises, record.plan.judging.effort
    trials = of_search(record, subject, block)
    if not trials:
        return dict(FIRST_LOOK)
    if any(t.status != "ok" for t in trials):
        return None
    rates = [t for t in trials if not is_first_look(t)]
    judged = [_judged(record, t, texts) for t in rates]
    start = 1.0 if rates else START * _throughput(record, trials[0])
    found = undecided(rates, judged, len(texts), start, effort)
    if found is None:
        return None
    promise, wanted = found
    return {
        "kind": "open",
        "rate_per_s": float(f"{wanted.rate_per_s:.6g}"),
        "seconds": round(wanted.seconds, 3),
        "warmup_s": round(warmup_s(wanted.seconds), 3),
        "promise": promise,
        "full": wanted.full,
    }


def of_search(record: Record, subject: str, block: int) -> list[Trial]:
    """The trials of one search, in the order driven: the first look, then rates."""
    subjects = driven.subjects(record)
    return [t for t in record.trials if t.block == block and subjects.get(t.treatment) == subject]


def is_first_look(trial: Trial) -> bool:
    """Whether a trial of a search is the closed loop that it begins with, and no rate."""
    return trial.load.kind == "closed"


def promises_of(record: Record) -> Promises:
    """The promises of the plan."""
    return tuple(parse_promise(text) for text in record.plan.judging.promises)


def judge_all(record: Record, trial: Trial, promises: Promises) -> tuple[Judged, ...]:
    """A trial's window against every promise."""
    trace = read_trace(record, trial)
    return tuple(judge(conditions, trace) for conditions in promises)


def seen_by(
    trials: Sequence[Trial], judged: Sequence[Sequence[Judged]], promise: int, effort: float
) -> Seen:
    """The rates of a search as one of its promises sees them.

    A trial that was full for another promise is full for this one too if it is as long as a full
    trial of this one.
    """
    plain = [
        Driven(t.load.rate_per_s or 0.0, t.load.seconds or 0.0, j[promise], trial=t.trial)
        for t, j in zip(trials, judged, strict=True)
    ]
    found = []
    for trial, one in zip(trials, plain, strict=True):
        own = (trial.load.promise or 0) == promise
        full = bool(trial.load.full)
        if full and not own:
            least = min(LONGEST_S, full_s(Seen(plain), one.rate_per_s)) * effort
            full = one.seconds >= 0.99 * least  # seconds are rounded
        found.append(
            Driven(one.rate_per_s, one.seconds, one.judged, full=full, own=own, trial=one.trial)
        )
    return Seen(found)


def undecided(
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


def _throughput(record: Record, look: Trial) -> float:
    return capacity.throughput(read_trace(record, look)).value


def _judged(record: Record, trial: Trial, texts: tuple[str, ...]) -> tuple[Judged, ...]:
    """``judge_all``, remembered: else each step of a search would read all traces before it."""
    key = (record.path, trial.trial, trial.started, texts)
    if key not in _known:
        _known[key] = judge_all(record, trial, promises_of(record))
        while len(_known) > _REMEMBERED:
            _known.popitem(last=False)
    return _known[key]
