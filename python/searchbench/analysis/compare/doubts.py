"""What else could make the ratio of two records: states, failed requests, the load generator,
builds, starts, few queries.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product, starmap
from statistics import fmean

from searchbench.analysis.capacity import unequal
from searchbench.analysis.compare import (
    builds,
    failed,
    kept,
    late,
    less_beside,
    otherwise,
    standing,
    state,
    taken,
    uncounted,
    whole,
)
from searchbench.analysis.compare.fate import limits_of
from searchbench.analysis.compare.run import Key, Run
from searchbench.analysis.compare.sweeps import OF_CAPACITY
from searchbench.analysis.judgement import RecordLine, TrialResult
from searchbench.analysis.trial import driven
from searchbench.analysis.words import of_job

Side = Sequence[tuple[str, Run, Key]]
Sides = Sequence[Side]


def built_once(
    lines: Iterable[RecordLine], before: Sequence[Run], after: Sequence[Run]
) -> set[Key]:
    """Treatments whose difference may be that of two builds that have no replicate."""
    found = ((before[0].key_of(line), line.run_sd is not None) for line in lines if line.ratio)
    return {
        key
        for key, known in dict.fromkeys(found)
        if key is not None
        and builds.over_runs(
            [run.builds(key, 0) for run in before], [run.builds(key, 1) for run in after], known
        )
    }


def one_draw(before: Sequence[Run], after: Sequence[Run], line: RecordLine) -> bool:
    """Whether several runs of a side were asked in one order, at the same instants.

    They have the luck of that draw in common (which queries met in a queue), so how much they
    differ does not hold how far another draw would have moved them.
    """
    if line.run_sd is None or of_job(line.metric):  # a job asks for nothing
        return False
    draws = [[run.record.plan.draws for run in side] for side in (before, after)]
    return any(len(set(own)) < len(own) for own in draws)


@dataclass(frozen=True, slots=True)
class Started:
    """Lines whose difference may be that of two starts, and of how many ``subjects``."""

    keys: Collection[Key] = ()
    subjects: int = 0


def started_once(
    lines: Iterable[RecordLine],
    before: Sequence[Run],
    after: Sequence[Run],
    *,
    attached: bool,
) -> Started:
    """The lines of which nothing shows how much starts differ: neither several runs, each with
    starts of its own, nor two blocks of both, each of which started the system anew. (A system that
    ran already may be one start of it in all runs of a side, and another in those of the other,
    however often it was driven.) ``attached``: only those of systems that ran already, as each
    trial of a study starts its own.
    """
    found: set[Key] = set()
    subjects: set[str] = set()
    for line in lines:
        key = before[0].key_of(line) if line.ratio else None
        if key is None or key in found or line.metric.startswith("capacity"):
            continue
        sides = [
            [(run, name) for run in runs if (name := run.key_of(line)) in run.by_key and name]
            for runs in (before, after)
        ]
        starts = [[_starts(run, name) for run, name in side] for side in sides]
        anew = all(map(all, starts))  # every run has a start of its own
        if anew and (attached or line.run_sd is not None):
            continue
        if all(len(x & y) > 1 for x, y in product(*starts)):
            continue
        found |= {name for _, name in sides[0]}
        run, name = sides[0][0]
        subjects.add(driven.subjects(run.record)[run.by_key[name].treatment])
    return Started(found, len(subjects))


def _starts(run: Run, key: Key) -> set[int]:
    """The blocks that started the system anew, and have a valid trial."""
    valid = run.valid(key)
    return {block for block, t in valid.items() if run.trials[t.trial].attached is None}


def of(
    line: RecordLine,
    before: Sequence[Run],
    after: Sequence[Run],
    once: Collection[Key],
    started: Started,
    trials: bool,
) -> tuple[RecordLine, Sequence[str]]:
    """The line with what else could make its ratio (states, failed requests, builds, starts), and
    why it is not resolved if any of these could. ``once``: treatments with builds that have no
    replicate; ``started``: the same of starts; ``trials``: else the records are sweeps.
    """
    if line.ratio is None:
        return line, ()
    ratio, log = line.ratio, math.log(line.ratio.value)
    gain = log > 0 and otherwise.least(ratio) <= line.answers_floor > 1
    if line.metric.startswith("capacity"):  # a search drives rates of its own, and has no state
        return _of_search(_by_start(line), before, after, _once(line) if gain else [])
    sides = [
        [
            (f"further run {i} of the {which}" if i else f"the {which}", run, key)
            for i, run in enumerate(runs)
            if (key := run.key_of(line)) in run.by_key and key and run.first_trial(key)
        ]
        for which, runs in (("first", before), ("second", after))
    ]
    if not all(sides):
        return line, ()
    if of_job(line.metric):  # it has no state and no requests, and makes what is built
        unlike = [line.answers_doubt] if gain else []
        return line, [*unlike, *filter(None, [_of_others(line, sides)])]
    states = max(
        (state.floor((x, a.states[i]), (y, b.states[j]), log)
         for (x, a, i), (y, b, j) in product(*sides)),
        key=lambda one: one.ratio,
    )  # fmt: skip
    line = replace(line, state=states.kind, state_floor=states.ratio)
    limits = [(states.ratio, states.said)]
    line = _of_requests(line, sides, once, trials)
    if sides[0][0][2] in started.keys:
        by_start = builds.floor(started.subjects, ratio, builds.STARTS_SD)
        ran = any(
            (trial := run.first_trial(key)) is not None and trial.attached is not None
            for side in sides for _, run, key in side
        )  # fmt: skip
        line = replace(line, start_floor=by_start, ran_already=ran)
    at = int(log > 0)
    winner = ("the first", "the second")[at]
    others = any(failed.otherwise(run.by_key[key]) for _, run, key in sides[at])
    limits += [
        (line.failed_floor, failed.why(winner, failed=bool(line.failed[at]), otherwise=others)),
        (line.build_floor, builds.said(line.build_floor)),
        (line.start_floor, builds.said_of_starts(line.start_floor, found=line.ran_already)),
    ]
    if gain:
        limits.append((math.inf, line.answers_doubt))
    of_each = (_of_lag, _of_others, _of_writes)
    limits += [(math.inf, found) for of in of_each if (found := of(line, sides))]
    if rates := _answered(line, sides):
        line = replace(line, answered=rates[1] / rates[0])
        if why := failed.of_count(ratio, rates, ("the first", "the second")):
            limits.append((math.inf, why))
    if log > 0 and line.over == "counted":
        limits.append((math.inf, "a gain is not resolved without one mix of queries"))
    elif line.over == "counted" and not all(starmap(_clients_known, chain(*sides))):
        limits.append((math.inf, whole.NO_CLIENTS))
    return line, [why for most, why in limits if most > 1 and abs(log) <= math.log(most)]


def _of_lag(line: RecordLine, sides: Sides) -> str:
    """Why the load generator could have made the ratio, over all runs; empty: it could not."""
    assert line.ratio is not None
    if not late.touched(line.metric) or otherwise.least(line.ratio) <= 1:
        return ""
    which, *both = _winners_first(line, sides)
    of = [
        [run.samples.measured(t.trial) for _, run, key in side for t in run.valid(key).values()]
        for side in both
    ]
    winners, rivals = (run.load(key) for (_, run, key), *_ in both)
    made = late.floor(of[0], of[1], (winners, rivals), line.metric)
    return late.why(which, made, line.ratio, _noise(line))


def _of_others(line: RecordLine, sides: Sides) -> str:
    """Why others on the machine could have made the ratio, over all runs; empty: not so."""
    assert line.ratio is not None
    if not taken.touched(line.metric) or otherwise.least(line.ratio) <= 1:
        return ""
    which, *both = _winners_first(line, sides)
    of = [[t for _, run, key in side for t in run.valid(key).values()] for side in both]
    return taken.why(which, taken.floor(of[0], of[1], line.metric), line.ratio, _noise(line))


def _of_writes(line: RecordLine, sides: Sides) -> str:
    """That a role got less done beside the winner, over all runs; empty: none did."""
    rival, winners, rivals = _winners_first(line, sides)
    winner = "the first" if rival == "the second" else "the second"
    of = [
        [t for _, run, key in side for t in run.valid(key).values()] for side in (winners, rivals)
    ]
    return less_beside.said(of[0], of[1], winner, rival)


def _answered(line: RecordLine, sides: Sides) -> list[float]:
    """The requests that either side answered in a second, over all runs, where some failed and the
    ratio weighs them by what they cost; else empty.
    """
    weighed = line.over == "counted" or uncounted.COUNTED in line.reason
    if line.metric != "throughput" or not weighed or not any(line.failed):
        return []
    rates = [
        [run.by_key[key].figures["throughput"].value for _, run, key in side
         if "throughput" in run.by_key[key].figures]
        for side in sides
    ]  # fmt: skip
    if not all(rates) or not all(map(all, rates)):
        return []
    return [math.exp(fmean(map(math.log, own))) for own in rates]


def _winners_first(line: RecordLine, sides: Sides) -> tuple[str, Side, Side]:
    """What the rival is called, the runs of the winner, and those of the rival."""
    assert line.ratio is not None
    first, second = sides
    won = line.ratio.value < 1
    return ("the second", first, second) if won else ("the first", second, first)


def _noise(line: RecordLine) -> float:
    """The floor that is not in the noise of the ratio already; that of several runs has it."""
    return 1.0 if line.run_sd is not None else line.floor


def _by_start(line: RecordLine) -> RecordLine:
    """A limit that moved by no more than two starts may move it, where no further run shows it."""
    if line.run_sd is not None or line.ratio is None:
        return replace(line, start_floor=1.0)
    span, most = line.ratio.interval, line.start_floor
    low, high = (span.low, span.high) if span else (line.ratio.value, line.ratio.value)
    if line.verdict != "differs" or low > most or high < 1 / most:
        return line
    reason = f"{line.reason}; {builds.said_of_starts(most)}"
    return replace(line, verdict="not resolved", reason=reason)


def _of_search(
    line: RecordLine, before: Sequence[Run], after: Sequence[Run], known: Sequence[str]
) -> tuple[RecordLine, Sequence[str]]:
    """The line, and why it is not resolved: what is ``known``, and what happened on the machine
    while its searches drove. Without several runs the line is decided already, so it is undone.
    """
    assert line.ratio is not None
    sides = _searched(line, before, after)
    won = int(line.ratio.value > 1)
    names = ("the first", "the second")[won], ("the second", "the first")[won]
    winner, rival = sides[won], sides[1 - won]
    own = [
        taken.why(names[1], unequal.floor(winner, rival), line.ratio, 1.0),
        unequal.beside(winner, rival, names),
    ]
    why = [*known, *filter(None, own)]
    if line.verdict == "differs" and line.run_sd is None and any(own):
        reason = "; ".join(filter(None, (line.reason, *own)))
        line = replace(line, verdict="not resolved", reason=reason)
    return line, why


def _searched(
    line: RecordLine, before: Sequence[Run], after: Sequence[Run]
) -> list[list[unequal.Searched]]:
    """The searches of either side that a line about a limit is of, over all runs."""
    promise = line.metric.removeprefix(OF_CAPACITY)
    return [
        [
            (one, {t.trial: t for of in run.judged.treatments for t in of.trials})
            for run, called in zip(runs, limits_of(before, runs, line.label), strict=True)
            for one in run.judged.capacity
            if (one.subject, one.promise) == (called, promise)
        ]
        for runs in (before, after)
    ]


def trials_of(
    line: RecordLine, before: Sequence[Run], after: Sequence[Run]
) -> list[list[TrialResult]]:
    """The trials of either side that a line is of, over all runs."""
    if line.metric.startswith(OF_CAPACITY):
        return [unequal.met(side) for side in _searched(line, before, after)]
    return [
        [
            trial
            for run in runs
            if (key := run.key_of(line)) in run.by_key and key
            for trial in run.valid(key).values()
        ]
        for runs in (before, after)
    ]


def _once(line: RecordLine) -> list[str]:
    """The doubt about answers, said once: the line's reason may have it."""
    return ["" if line.answers_doubt in line.reason else line.answers_doubt]


def _clients_known(_: str, run: Run, key: Key) -> bool:
    """Whether it is on record of every trial which client asked what; of one client it always is.

    Else counted requests are weighed by what may be whom the server favours.
    """
    load = run.load(key)
    return (load.clients or 1) == 1 or all(
        run.samples.measured(t.trial).client is not None for t in run.valid(key).values()
    )


def _of_requests(
    line: RecordLine,
    sides: Sides,
    once: Collection[Key],
    trials: bool,
) -> RecordLine:
    """The line with its floors of failed requests and builds, and a remark on few queries."""
    assert line.ratio is not None
    shares = [max(failed.share(run.by_key[key]) for _, run, key in side) for side in sides]
    winners, rivals = sides if line.ratio.value < 1 else sides[::-1]
    by_failed = max(
        max(
            failed.floor(a.by_key[i], b.by_key[j], a.load(i), line.metric),
            failed.uncounted(a.entire[i], b.entire[j], (a.load(i), b.load(j)), line.metric),
        )
        for (_, a, i), (_, b, j) in product(winners, rivals)
    )
    if line.metric == "throughput":
        each = [[kept.of(run.by_key[key], run.load(key), run.samples) for _, run, key in side]
                for side in (winners, rivals)]  # fmt: skip
        by_failed = max(by_failed, kept.made(*each))
    key = sides[0][0][2]
    by_build = builds.floor(len(once), line.ratio) if key in once else 1.0
    own = [line.reason, failed.said([("the first", shares[0]), ("the second", shares[1])])]
    used, measured = line.queries_used, line.queries_measured
    if measured is None:
        own.append("over all requests, as it is not known of each" if trials else "")
    elif not standing.covered(line):
        which = f"these {used} queries" if trials else f"{used} queries"
        own.append(f"in one block only {measured} of {which} were measured on both sides")
    return replace(
        line, failed=(shares[0], shares[1]), failed_floor=by_failed, build_floor=by_build,
        reason="; ".join(filter(None, own)),
    )  # fmt: skip
