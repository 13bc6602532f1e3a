"""What became of each promise of a search in all runs of both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from searchbench.analysis.agreement import answers
from searchbench.analysis.capacity.verdict import rough
from searchbench.analysis.compare import sweeps
from searchbench.analysis.compare.fate import COUNTS, SPOILT, Fate, Of, by_server, names, why
from searchbench.analysis.compare.run import Run
from searchbench.analysis.judgement import Capacity, RecordLine, Step
from searchbench.analysis.sweep import points as at
from searchbench.analysis.trial import driven
from searchbench.analysis.trial.by_system import not_measured
from searchbench.analysis.words import per_s, plural


def limits(before: Sequence[Run], after: Sequence[Run], threshold: float) -> Iterator[Of]:
    """Each promise of each subject of the first run that the second searched too."""
    first = before[0]
    subjects = dict.fromkeys(c.subject for c in first.judged.capacity)
    called_in = [names(first, runs, subjects) for runs in (before, after)]
    for subject in subjects:
        own = [[one.get(subject, "") for one in side] for side in called_in]
        for promise in (c.promise for c in first.judged.capacity if c.subject == subject):
            found = [
                [_capacity(run, name, promise) for run, name in zip(runs, called, strict=True)]
                for runs, called in zip((before, after), own, strict=True)
            ]
            holds = [c.holds for c in found[0] if c is not None and c.holds is not None]
            held = min(holds, default=None)
            if _other_searches((before, after), own, found):
                held = -1.0  # nothing that is known of one tells of the other
            fates = [
                [
                    None if not name or c is None else _of_search(run, name, c, held, threshold, i)
                    for run, name, c in zip(runs, called, side, strict=True)
                ]
                for i, (runs, called, side) in enumerate(
                    zip((before, after), own, found, strict=True)
                )
            ]
            if any(fates[1]):
                yield Of(subject, subject, (promise,), (own[0], own[1]), (fates[0], fates[1]), True)


def _other_searches(
    sides: tuple[Sequence[Run], Sequence[Run]],
    called: Sequence[Sequence[str]],
    found: Sequence[Sequence[Capacity | None]],
) -> bool:
    """Whether the second's search had other loads or other requests than the first's."""
    both = [
        next(((run, name, c) for run, name, c in zip(*side, strict=True) if c), None)
        for side in zip(sides, called, found, strict=True)
    ]
    if both[0] is None or both[1] is None:
        return False
    (a, x_name, x), (b, y_name, y) = both[0], both[1]
    first, second = sweeps.first_trial(a.record, x_name), sweeps.first_trial(b.record, y_name)
    if first is not None and second is not None and not answers.same_question(first, second):
        return True
    return bool(sweeps.searched_otherwise((a, x), (b, y)))


def _capacity(run: Run, name: str, promise: str) -> Capacity | None:
    own = (c for c in run.judged.capacity if (c.subject, c.promise) == (name, promise))
    return next(own, None)


def _of_search(
    run: Run, name: str, one: Capacity, held: float | None, threshold: float, side: int
) -> Fate:
    """What became of a search. ``held``: the least rate that the runs of the first sustained; None:
    no rate is known; below 0: they are no measure of this one.
    """
    if name in at.all_otherwise(run.judged.steps):
        return Fate("lost", at.CHANGED)
    limit = one.holds if side else one.holds or one.fails
    failed = sweeps.failed_below(run, name, held if side else one.holds, limit)
    if failed and (side or not limit):
        return Fate("lost", failed)
    own = [s for s in run.judged.steps if s.subject == name]
    if own and not one.holds and not one.fails and not any(map(_counts, own)):
        return Fate(SPOILT, Counter(map(why, own)).most_common(1)[0][0])
    closed = one.holds is not None and one.fails is not None
    reaches = held is None or (one.holds or 0.0) >= (1 - threshold) * held
    # A rough interval misses too often, mostly by being too high, to tell of a loss.
    known = not rough(one) and (closed or bool(side and reaches))
    up_to, which = one.broken_up_to, ("first", "second")[side]
    low = "" if up_to is None else f"the {which} breaks the promise at {per_s(up_to)} and below"
    holds, fails = (None, None) if rough(one) else (one.holds, one.fails)
    ended = _ended(run, name, beside=not closed)
    return Fate(COUNTS, ended, stands=closed, known=known, low=low, holds=holds, fails=fails)


def _ended(run: Run, name: str, *, beside: bool) -> str:
    """Why its search ended early, as a trial of it failed at a rate that need not be sustained.
    ``beside``: also for a reason that is none of the system's.
    """
    names = driven.subjects(run.record)
    bad = (t for t in run.record.trials if names.get(t.treatment) == name and t.status != "ok")
    for trial in (t for t in bad if beside or not not_measured(t)):
        rate = trial.load.rate_per_s
        which = f"trial at {per_s(rate)}" if rate else "opening loop"
        return f"its {which} failed ({trial.reason.rstrip('.')})"
    return ""


def _counts(step: Step) -> bool:
    return at.valid(step) or by_server(step)


def unknown(one: Of, lines: Sequence[RecordLine]) -> str:
    """Why the limits of the second may hide a loss; empty: they may not. In half of its runs or
    more, or in more of them than of the first's, none was found that tells; or it breaks the
    promise at low rates, or failed above what is to be sustained, more often than the first.
    """
    first, own = ([fate for fate in fates if fate is not None and fate.what == COUNTS]
                  for fates in one.fates)  # fmt: skip
    barrier = next((line.reason for line in lines if line.verdict == "not comparable"), "")
    if barrier and first:
        return barrier
    if any(_lost(line) for line in lines):
        return ""
    low = [fate.low for fate in own if fate.low]
    if len(low) * len(first) > sum(bool(fate.low) for fate in first) * len(own):
        return f"{low[0]}, in {len(low)} of {len(own)} searches, and the first does not so often"
    for line in lines:
        span = line.ratio.interval if line.ratio else None
        if span is not None and span.high < 1 and (why := one.unordered(line.ratio)):
            return f"at most it sustains less, but {why}"
        if why := one.beyond(line.ratio):
            return why
    ended = [fate.why for fate in own if fate.why]
    if len(ended) * len(first) > sum(bool(fate.why) for fate in first) * len(own):
        return f"{ended[0]}, in {len(ended)} of {len(own)} searches of the second"
    n, before = (sum(not fate.known for fate in side) for side in (own, first))
    more = 2 * n >= len(own) or n * len(first) > before * len(own)
    if not n or not more:
        return ""
    if n < len(own):
        return (
            f"in {n} of {len(own)} runs of the second no limit was found, nor a rate that the "
            "first sustained; search again with more effort"
        )
    return next((line.reason for line in lines if line.reason), "no limit was found")


def _lost(line: RecordLine) -> bool:
    """Whether a loss is told of anyway; a gain of some searches tells nothing of the others."""
    told = line.verdict in ("slower", "differs")
    return told and line.ratio is not None and line.ratio.value < 1


def not_found(one: Of) -> Iterator[str]:
    """That some searches of a side, and not all, found no limit that can be compared."""
    for fates, which in zip(one.fates, ("first", "second"), strict=True):
        own = [fate for fate in fates if fate is not None and fate.what == COUNTS]
        n = sum(not fate.stands for fate in own)
        if 0 < n < len(own):
            yield (
                f"{one.label}: {n} of {len(own)} searches of the {which} found no limit between "
                f"two rates, so {plural(n, 'it counts', 'they count')} for nothing."
            )
