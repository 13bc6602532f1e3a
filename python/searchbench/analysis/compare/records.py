"""Two records, treatment by treatment: did this change make it faster, slower, or other?

A record is one run, so two records are two samples of size one: what differs between them may be
the change or the run. Within two runs, Welch's t on the logs of the trials' values and the
greater of the two noise floors tell only whether *these two runs* differ. With further
runs of both the run is the unit: Welch's t on the logs of whole runs. With further runs of one
alone, whether the other lies outside them; its own starts may scatter by more than theirs.
Holm's correction over all treatments and metrics either way.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from searchbench.analysis import answer
from searchbench.analysis.capacity.ratio import ROUGH
from searchbench.analysis.compare import (
    acknowledged,
    answered,
    classes,
    compiling,
    decision,
    disturbed,
    doubts,
    every_run,
    lost,
    recovered,
    setup,
    sweeps,
    treatments,
    uncounted,
)
from searchbench.analysis.compare.further import Further, joined, together
from searchbench.analysis.compare.reconsider import would_change
from searchbench.analysis.compare.run import Run
from searchbench.analysis.compare.treatments import TRIED_ONCE
from searchbench.analysis.judgement import ClassLine, Estimate, RecordComparison, RecordLine
from searchbench.analysis.stats.intervals import ALPHA, LEVEL, holm, ratio_over_runs
from searchbench.analysis.words import of_job
from searchbench.errors import SearchbenchError
from searchbench.record import Record, Trial

_MARK_BYTES = 1 << 16  # of a file of samples: times to the nanosecond, so no two are alike
SHOWN = 3  # runs of each side, from which on they show all of their noise
WITHIN = "the interval is of these two runs and does not cover how much runs of one thing differ"


def compare_records(
    a: Record,
    b: Record,
    threshold: float = 0.05,
    same: Sequence[Record] = (),
    same_b: Sequence[Record] = (),
) -> RecordComparison:
    """Compare record b (after) with record a (before).

    Treatments are matched by system and levels. ``threshold``: the share of a quantity where
    more is better that b may lose before ``beyond_threshold`` is true. ``same``: further runs of
    what a is, ``same_b`` of what b is; SearchbenchError where a record is given twice (a and b
    count too), where two runs of a side share some of their trials, or where a record has nothing
    in common with a.
    """
    before, after = (a, *same), (b, *same_b)
    for record in (*before, *after):
        if record.plan.judging.first_look:
            raise SearchbenchError(
                f"{record.path} is a first look, which decides nothing; run its study without "
                "--quick to compare it"
            )
    paths = [record.path.resolve() for record in (*before, *after)]
    if paths[0] == paths[len(before)]:
        raise SearchbenchError(
            f"{paths[0]} is given as both A and B, which shows nothing; give the record from "
            "before the change and the one from after it"
        )
    if len(set(paths)) < len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise SearchbenchError(f"{twice} is given twice; a run counts once, so leave it out")
    _insist_on_runs(before, after)
    return compare_runs([Run(r) for r in before], [Run(r) for r in after], threshold)


def _insist_on_runs(before: Sequence[Record], after: Sequence[Record]) -> None:
    """SearchbenchError where two records hold the same trials, as a copy does, even one that was
    made before the run went on.
    """
    records = (*before, *after)
    trials = [
        {mark: trial.trial for trial in record.trials if (mark := _mark(record, trial))}
        for record in records
    ]
    for i, own in enumerate(trials):
        for j, others in enumerate(trials[:i]):
            if shared := own.keys() & others.keys():
                both = j < len(before) <= i
                if both and len(records) == 2:
                    if _is_copy(before[0], after[0]):
                        raise SearchbenchError(
                            f"{after[0].path} is a copy of {before[0].path}, so comparing them "
                            "shows nothing. Give two records: one from before the change, and one "
                            "from after it"
                        )
                    continue  # what somebody edited is compared with what it was
                raise SearchbenchError(
                    f"{records[j].path} and {records[i].path} have the same trials (such as "
                    f"{own[min(shared)]}), so they are copies of one run, or of parts of it; a run "
                    f"{'is of A or of B' if both else 'counts once'}, so leave one out"
                )


def _is_copy(a: Record, b: Record) -> bool:
    """Whether two records have the same plan, and the same trials with the same replies."""
    whole = [
        {
            str(path.relative_to(r.path)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in (r.path / "plan.json", *r.path.glob("trials/*/trial.json"),
                         *r.path.glob("trials/*/replies*.parquet"))
        }
        for r in (a, b)
    ]  # fmt: skip
    return whole[0] == whole[1]


def _mark(record: Record, trial: Trial) -> str | None:
    """What tells a trial from all others: instants that were measured to the nanosecond, and no
    text that somebody may have edited. None where it has none (two runs may fail alike).
    """
    begun = trial.drive.started_unix_ns if trial.drive else trial.started
    phases = [(span.start, span.end) for span in trial.spans]
    phases += [(job.start, job.end) for job in trial.jobs]
    samples = _end_of_samples(record, trial) if trial.status == "ok" else None
    return f"{begun} {phases} {samples}" if phases or samples else None


def _end_of_samples(record: Record, trial: Trial) -> str | None:
    """The size of its samples and a digest of their end; None where there are none."""
    try:
        with (record.path / "trials" / trial.trial / "samples.parquet").open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _MARK_BYTES))
            return f"{size} {hashlib.sha256(file.read()).hexdigest()}"
    except OSError:
        return None


def compare_runs(
    before: Sequence[Run], after: Sequence[Run], threshold: float = 0.05
) -> RecordComparison:
    """Compare the runs of one thing with those of another; the first of each stands for it."""
    a, b = before[0], after[0]
    trials = _trials(before, after)
    found, drafts, of_each = _drafts(before, after, threshold)
    lines = _decided(drafts, before, after)
    searched = {run.judged.measure for run in (a, b)} == {"capacity"}
    # Of searches none: their promises name classes.
    names, unlike = ([], "") if searched else classes.common([*before, *after])
    by_class = _by_class(names, before, after, [p for _, p in drafts])
    worse = [
        line
        for line in lines
        if line.verdict in ("slower", "differs") and line.ratio and line.ratio.value < 1 - threshold
    ]
    metric = a.judged.metric
    shown = {line.metric for line in lines if line.ratio} or {line.metric for line in lines}
    if not trials and metric not in shown:  # it is not known, as where many requests failed
        metric = min(shown, default="")
    gone = (
        lost.of(before, after, lines, threshold)
        if of_each is None
        else (of_each.gone(lines, threshold))
    )
    mixed = setup.is_mixed(before, after)
    if mixed:
        gone = lost.of_unlike(gone)
    dropped = answered.dropped(found.agreed)
    of_classes, fails = classes.failing(before, after, lines, names)
    after_it = recovered.of(before, after, lines, threshold) if trials else Further()
    beside = acknowledged.of(before, after, lines)
    further = together(of_classes, after_it, beside, mixed=mixed)
    every = joined({**dropped, **gone.lost}, further.lost)
    not_known = joined(gone.not_known, further.not_known)
    require = a.record.plan.judging.agreement.require
    told = decision.sentences(
        lines, worse, found, metric, threshold, gone, dropped, require,
        decision.classes_lost(by_class, threshold), further,
    )  # fmt: skip
    told += classes.sentences(by_class, lines, metric, {} if mixed else fails)
    told += answer.said([unlike], answer.Rank.DOUBT)
    judged = [[run.judged for run in side] for side in (before, after)]
    told += answer.said([disturbed.sentence(judged)], answer.Rank.DOUBT)
    told += answer.said([_compiling(lines, before, after)], answer.Rank.DOUBT)
    if of_each is not None:
        i, j = of_each.stand
        sides = before[i].judged, after[j].judged
        told = [*decision.around(told, sides, lines, found.note, bool(gone.lost or gone.not_known))]
    headline, points = answer.in_short(told)
    header, rows = decision.table(lines, metric)
    records = [[run.record for run in side] for side in (before, after)]
    findings = tuple(setup.findings(records[0], records[1], found.agreed, found.unread, trials))
    rated = [line.runs_known for line in lines if line.ratio]
    of_runs = not _not_of_runs(before, after, lines)
    sure = bool(rated) and all(rated) and not not_known and not further.later and of_runs
    slower = any(line.verdict == "slower" for line in worse)
    slower |= bool(further.later) and of_runs and min(len(before), len(after)) > 1
    return RecordComparison(
        a=str(a.record.path),
        b=str(b.record.path),
        threshold=threshold,
        comparisons=lines,
        only_in_a=found.only[0],
        only_in_b=found.only[1],
        answers_changed=answered.changed(found.agreed) or None,
        findings=findings,
        regressed=bool(every) or slower or (False if sure else None),
        decision=" ".join(s.text for s in told),
        headline=headline,
        points=points,
        header=header,
        lines=rows,
        beyond_threshold=bool(worse or every or further.later),
        same=tuple(str(run.record.path) for run in before[1:]),
        same_b=tuple(str(run.record.path) for run in after[1:]),
        metric=metric,
        agreement=found.agreed or None,
        differences=setup.differences(a.record, b.record),
        would_change=would_change(
            lines, metric, found.agreed, findings, (a.judged, b.judged), threshold, gone.lost
        ),
        lost=every,
        not_known=not_known,
        normal_later=further.later,
        answers_level=require,
        by_class=by_class,
    )


def _not_of_runs(before: Sequence[Run], after: Sequence[Run], lines: Sequence[RecordLine]) -> bool:
    """Whether the runs of a side do not show how much runs of it differ, or are of another machine
    than those of the other.
    """
    one_draw = any(doubts.one_draw(before, after, line) for line in lines)
    return one_draw or setup.is_mixed(before, after) or any(_of_machine(before, after))


def _of_machine(before: Sequence[Run], after: Sequence[Run]) -> tuple[str, str]:
    """Why a loss of the first, and one of the second, is no more than a difference: it was measured
    on another machine, or at a slower clock. Empty: it is not.
    """
    records = [[run.record for run in side] for side in (before, after)]
    if setup.other_machine(*records):
        return decision.OTHER_MACHINE, decision.OTHER_MACHINE
    slow = setup.slower_clock(*records)
    return decision.OTHER_CLOCK if 0 in slow else "", decision.OTHER_CLOCK if 1 in slow else ""


def _compiling(lines: Sequence[RecordLine], before: Sequence[Run], after: Sequence[Run]) -> str:
    """Whose compilers were busy in most trials of the side where it is slower; empty: nobody's."""
    busy: dict[str, None] = {}
    for line in lines:
        if line.verdict not in ("slower", "faster", "differs") or line.ratio is None:
            continue
        lost = line.ratio.value < 1
        trials = doubts.trials_of(line, before, after)[int(lost)]
        if not of_job(line.metric) and compiling.mostly(trials):
            busy[f"{line.label} in the {'second' if lost else 'first'} record"] = None
    return compiling.said([*busy])


def _trials(before: Sequence[Run], after: Sequence[Run]) -> bool:
    """Whether the records are of trials; else they are sweeps, or searches."""
    return "trials" in (before[0].judged.measure, after[0].judged.measure)


def _drafts(
    before: Sequence[Run], after: Sequence[Run], threshold: float
) -> tuple[sweeps.Matched, list[sweeps.Draft], every_run.Found | None]:
    """What the runs have in common, and its lines over all of them, to be decided; of sweeps and
    searches also what became of each load in each run.
    """
    if _trials(before, after):
        matched = treatments.match(before, after)
        both = zip(*_compared(matched), strict=True)
        drafts = [uncounted.held(_lesser(*one), before, after, threshold) for one in both]
        return matched.matched, drafts, None
    of_each = every_run.find(before, after, threshold, _over_runs)
    drafts = [uncounted.held(draft, before, after, threshold) for draft in of_each.drafts()]
    return of_each.matched, drafts, of_each


def _decided(
    drafts: Sequence[sweeps.Draft],
    before: Sequence[Run],
    after: Sequence[Run],
    beside: Sequence[float | None] = (),
) -> tuple[RecordLine, ...]:
    """The lines, corrected for each other and for others whose p-values are ``beside``."""
    adjusted = holm([*(p for _, p in drafts), *beside])
    trials = _trials(before, after)
    lines = [line for line, _ in drafts]
    once = doubts.built_once(lines, before, after) if trials else ()
    started = doubts.started_once(lines, before, after, attached=trials)
    doubted = [doubts.of(line, before, after, once, started, trials) for line in lines]
    mixed = setup.is_mixed(before, after)

    machine = _of_machine(before, after)

    def of_runs(line: RecordLine) -> str:
        """Why the runs of a side do not show how much runs of it differ; empty: they do."""
        if mixed:
            return decision.MIXED
        return decision.ONE_DRAW if doubts.one_draw(before, after, line) else ""

    return tuple(
        _decide(
            line, p, against, of_runs(line), machine[line.ratio is None or line.ratio.value < 1]
        )
        for (line, against), p in zip(doubted, adjusted, strict=False)
    )


def _by_class(
    names: Sequence[str],
    before: Sequence[Run],
    after: Sequence[Run],
    whole: Sequence[float | None],
) -> tuple[ClassLine, ...]:
    """Every line over every class of these, which all runs have. ``whole``: the p-values of the
    lines over all queries.
    """
    each = []
    for name in names:
        first, second = ([run.only(name) for run in side] for side in (before, after))
        each.append((name, first, second, _drafts(first, second, 0.0)[1]))
    found = []
    for name, first, second, drafts in each:
        others = (p for other, _, _, own in each if other != name for _, p in own)
        lines = _decided(drafts, first, second, beside=[*whole, *others])
        found += [ClassLine(name, line) for line in lines]
    return tuple(found)


def _compared(
    found: treatments.Treatments,
) -> tuple[list[sweeps.Draft], list[sweeps.Draft | None]]:
    """The drafts over all runs: over what both answer alike, and over everything asked."""
    mixed, of_all = [], []
    for draft in found.matched.drafts:
        name = treatments.line_key(draft[0])
        sides = [(own.mixed.get(name, []), own.whole.get(name, []))
                 for own in (found.same, found.same_b)]  # fmt: skip
        mixed.append(_over_runs(*draft, sides[0][0], sides[1][0]))
        other = found.whole.get(name)
        further = [line for line in (*sides[0][1], *sides[1][1]) if line.over != "alike"]
        if other is None and further:
            other = replace(draft[0], over=further[0].over, reason=further[0].reason), draft[1]
        of_all.append(other and _over_runs(*other, sides[0][1], sides[1][1]))
    return mixed, of_all


def _lesser(draft: sweeps.Draft, of_all: sweeps.Draft | None) -> sweeps.Draft:
    """The lesser ratio: other answers win nothing, and what they lose is a loss."""
    if of_all is None or of_all[0].ratio is None:
        return draft
    mine, span = draft[0].ratio, of_all[0].ratio.interval
    if draft[0].verdict == "not comparable" and (span is None or span.high >= 1):
        return draft
    return of_all if mine is None or of_all[0].ratio.value < mine.value else draft


def _over_runs(
    line: RecordLine,
    p: float | None,
    same: Sequence[RecordLine],
    same_b: Sequence[RecordLine],
) -> sweeps.Draft:
    """The line over all runs of both sides, where these tell how much runs differ. ``same``,
    ``same_b``: the line of each further run against the first.
    """
    if not treatments.is_estimate(line) or line.ratio is None:
        return line, p
    span = line.ratio.interval
    further = [[one for one in side if treatments.is_estimate(one)] for side in (same, same_b)]
    a, b = (
        np.array([begin, *(math.log(one.ratio.value) for one in side if one.ratio)])
        for begin, side in zip((0.0, math.log(line.ratio.value)), further, strict=True)
    )
    # Two runs are not surer than what was measured within them. More show it themselves, as their
    # values have that noise in them; else the run that is given first would decide. Searches may
    # err alike in all runs.
    few = min(a.size, b.size) < SHOWN or line.metric.startswith("capacity")
    found = ratio_over_runs(a, b, math.log(span.high / span.low) / 2 if span and few else 0.0)
    if found is None:
        return line, p
    low, high = math.exp(found.ratio.low), math.exp(found.ratio.high)
    interval = replace(found.ratio, low=low, high=high)
    ratio = Estimate(math.sqrt(low * high), "ratio", min(a.size, b.size), interval)
    reason = "" if line.reason == TRIED_ONCE else line.reason
    runs, sd = (a.size, b.size), math.sqrt(found.noise.variance)
    line = replace(line, run_sds=found.sds, within=found.within)
    one = min((line, *chain(*further)), key=_covered)
    line = replace(line, queries_used=one.queries_used, queries_measured=one.queries_measured)
    # Of the second's runs the one counts whose answers leave most open.
    least = max((line, *further[1]), key=lambda one: one.answers_floor)
    line = replace(line, answers_doubt=least.answers_doubt, answers_floor=least.answers_floor)
    if any(map(_rough, (line, *chain(*further)))):
        # By how much such intervals miss goes with the system, so runs agree in it.
        ratio = replace(ratio, interval=replace(interval, level=ROUGH))
        reason = "; ".join(filter(None, (reason, sweeps.OF_LITTLE_EFFORT)))
        return replace(line, ratio=ratio, reason=reason, verdict="not resolved", runs=runs), None
    return replace(line, ratio=ratio, reason=reason, runs=runs, run_sd=sd), found.p


def _rough(line: RecordLine) -> bool:
    """Whether either side's interval is that of a search of little effort."""
    span = line.ratio.interval if line.ratio else None
    return span is not None and span.level < LEVEL


def _of_one_side(line: RecordLine) -> str:
    """Why no more than "differs" is said with further runs of one side alone; empty: of none."""
    if not line.single:
        return ""
    other = "second" if line.single == "first" else "first"
    n = line.runs[other == "second"]
    return (
        f"it lies outside the {n} runs of the {other}, and how much runs of the {line.single} "
        "differ is not known"
    )


def _covered(line: RecordLine) -> float:
    """The share of the agreeing queries that were measured on both sides."""
    return (line.queries_measured or 0) / max(1, line.queries_used)


def _decide(
    line: RecordLine, p: float | None, against: Sequence[str], of_runs: str, machine: str
) -> RecordLine:
    """``against``: why it is not resolved, whatever its noise; ``of_runs``: why it would not be, as
    its interval does not cover what runs differ by; ``machine``: why it is no more than a
    difference.
    """
    ratio, known = line.ratio, line.run_sd is not None
    if line.verdict == "not comparable" or ratio is None or p is None or ratio.interval is None:
        return line
    line = replace(line, verdict="not resolved", p_value=p)
    why = list(against)
    # Between runs the floor is contained: a run's value has the noise of its trials in it.
    if not known and line.floor > 1 and abs(math.log(ratio.value)) <= math.log(line.floor):
        why = [f"within the noise floor of {100 * (line.floor - 1):.1f} %"]
    elif p >= ALPHA or ratio.interval.low <= 1 <= ratio.interval.high:
        why = why or ["the difference may be chance, after correcting for all comparisons"]
    elif of_runs and not why:
        why = [of_runs]
    elif line.runs_known and not why and not machine:
        return replace(line, verdict="faster" if ratio.value > 1 else "slower")
    elif not why:
        line, why = replace(line, verdict="differs"), [machine or _of_one_side(line) or WITHIN]
    return replace(line, reason="; ".join(filter(None, (line.reason, *why))))
