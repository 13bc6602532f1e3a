"""The treatments of two records and of further runs of either, matched and compared.

The run that stands for a side is the first that has a valid trial of the treatment, so the order in
which runs are given decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from searchbench.analysis.agreement import agreement, answers, every_trial
from searchbench.analysis.compare import (
    beside,
    classes_failed,
    failed,
    jobs,
    loads,
    pairs,
    sweeps,
    whole,
)
from searchbench.analysis.compare.mix import timed
from searchbench.analysis.compare.run import Key, Run, levels_of
from searchbench.analysis.judgement import Agreement, Estimate, RecordLine, TreatmentResult
from searchbench.analysis.stats.intervals import welch_log_ratio
from searchbench.analysis.words import of_job
from searchbench.errors import SearchbenchError

TRIED_ONCE = "fewer than two blocks have a valid trial of both, so its interval is not known"
STANDS = "a loss stands whatever is answered"


@dataclass
class Further:
    """By line, the lines of further runs of either side against the first: ``mixed``, and
    ``whole``, over everything that was asked.
    """

    mixed: dict[Key, list[RecordLine]] = field(default_factory=dict)
    whole: dict[Key, list[RecordLine]] = field(default_factory=dict)


@dataclass
class Treatments:
    """``matched``: the lines over what both answer alike; ``whole``: by line, the same over
    everything that was asked, where that is another. ``same``, ``same_b``: of further runs.
    """

    matched: sweeps.Matched
    whole: Mapping[Key, sweeps.Draft]
    same: Further
    same_b: Further


def is_estimate(line: RecordLine) -> bool:
    """Whether its ratio is one; a capacity that is open on a side has a bound."""
    return bool(line.ratio and line.value_a and line.value_b) and line.verdict != "not comparable"


def line_key(line: RecordLine) -> Key:
    """What a line is known by in any comparison."""
    return f"{line.levels['system']} {levels_of(line.levels)}", line.metric


def match(before: Sequence[Run], after: Sequence[Run]) -> Treatments:
    """Match the treatments of the runs of both sides, and compare them. SearchbenchError where
    nothing of a further run can be compared, unless all of it failed or was spoilt, or the runs are
    of one class.
    """
    own: list[dict[Key, TreatmentResult]] = [{}, {}]
    for side, runs in zip(own, (before, after), strict=True):
        for run in runs:
            for key, treatment in run.by_key.items():
                side.setdefault(key, treatment)
    drafts: list[sweeps.Draft] = []
    whole_of: dict[Key, sweeps.Draft] = {}
    further = Further(), Further()
    agreed: dict[str, Agreement] = {}
    told: dict[int, list[RecordLine]] = {}  # by run
    for key in (key for key in own[0] if key in own[1]):
        good = [measured(runs, key) for runs in (before, after)]
        x, y = (
            (found or [run for run in runs if key in run.by_key])[0]
            for found, runs in zip(good, (before, after), strict=True)
        )
        pair = _agreement(good[0], good[1], key)
        asked = pair if x.members is None else _agreement(good[0], good[1], key, of_class=False)
        changed = beside.answered_otherwise(x, y, key, asked)
        if pair is not None:
            label_a, label_b = x.by_key[key].label, y.by_key[key].label
            agreed[label_a] = replace(pair.agreement, label_a=label_a, label_b=label_b)
        for draft, of_all in _lines(x, y, key, pair, changed):
            drafts.append(draft)
            for run in (x, y):
                told.setdefault(id(run), []).append((of_all or draft)[0])
            if of_all is not None:
                whole_of[line_key(draft[0])] = of_all
        for runs, kept in zip(good, further, strict=True):
            for run in runs[1:]:
                for draft, of_all in _lines(x, run, key, pair, changed):
                    name = line_key(draft[0])
                    told.setdefault(id(run), []).append((of_all or draft)[0])
                    kept.mixed.setdefault(name, []).append(draft[0])
                    kept.whole.setdefault(name, []).append((of_all or draft)[0])
    insist = before[0].members is None
    if insist and any(is_estimate(line) for line, _ in (*drafts, *whole_of.values())):
        for run in (*before[1:], *after[1:]):
            _has_part(run, before[0], own, told.get(id(run), ()))
    only = [
        tuple(t.label for key, t in mine.items() if key not in other)
        for mine, other in (own, own[::-1])
    ]
    systems = [dict.fromkeys(t.system for t in side.values()) for side in own]
    absent = tuple(name for name in systems[0] if name not in systems[1])
    matched = sweeps.Matched(drafts, agreed, (only[0], only[1]), absent=absent)
    return Treatments(matched, whole_of, *further)


def _has_part(
    run: Run, first: Run, own: Sequence[Mapping[Key, TreatmentResult]], lines: Sequence[RecordLine]
) -> None:
    """SearchbenchError where a further run shows nothing of what is compared."""
    keys = [key for key in run.by_key if key in own[0] and key in own[1]]
    if any(map(is_estimate, lines)) or (keys and not any(map(run.first_trial, keys))):
        return
    why = next((f" ({line.reason})" for line in lines if line.verdict == "not comparable"), "")
    raise SearchbenchError(
        f"{run.record.path}: nothing in it can be compared with {first.record.path}{why}, so it "
        "does not show how much runs differ; give runs of the same study"
    )


def measured(runs: Sequence[Run], key: Key) -> list[Run]:
    """The runs that have a valid trial of a treatment."""
    return [run for run in runs if key in run.by_key and run.first_trial(key)]


def _agreement(
    before: Sequence[Run], after: Sequence[Run], key: Key, *, of_class: bool = True
) -> agreement.Pair | None:
    """How all valid trials of both sides answered when asked alone; None: other queries were.
    ``of_class``: only what the runs are of.
    """
    if not before or not after:
        return None
    a, b = before[0], after[0]
    x, y = a.first_trial(key), b.first_trial(key)
    if x is None or y is None or not answers.same_question(x, y):
        return None
    sides = [
        every_trial.distinct(
            one
            for run in runs
            if (first := run.first_trial(key)) and answers.same_question(x, first)
            for one in run.answers(key)
        )
        or [agreement.read_answers(runs[0].record, stands)]
        for runs, stands in ((before, x), (after, y))
    ]
    if of_class and a.members is not None:
        sides[0] = [every_trial.only(one, a.members) for one in sides[0]]
    rule, digest = a.record.plan.judging.agreement, x.corpus.digest
    agree = partial(
        agreement.compare, require=rule.require, k=rule.k, queries=a.queries(x.queries.digest),
        titles=a.record.titles(digest) | b.record.titles(digest),
    )  # fmt: skip
    return every_trial.compare_all(sides[0], sides[1], agree)


def _lines(
    a: Run, b: Run, key: Key, pair: agreement.Pair | None, changed: beside.Ints
) -> Iterator[tuple[sweeps.Draft, sweeps.Draft | None]]:
    """Each line over what both answer alike, and over everything that was asked, if that is other
    or alone known. ``changed``: the queries that both do not answer alike.
    """
    judging = a.record.plan.judging, b.record.plan.judging
    of_class = a.members is not None
    for metric in () if of_class else jobs.metrics(judging[0]):
        if metric in jobs.metrics(judging[1]):
            yield _of_job(a, b, key, metric, pair), None
    if not (judging[0].driven and judging[1].driven):
        return
    first, second, reason = a.first_trial(key), b.first_trial(key), ""
    none_agrees = False
    fails = failed.in_records(a.by_key[key], b.by_key[key])
    if fails:
        reason = fails
    elif first is None or second is None:
        reason = "it has no valid trial in one of the records"
    elif why := loads.differing(first, second):
        reason = why
    elif pair is None or not answers.same_question(first, second):
        reason = "the documents or the queries are not the same in both records"
    elif not pair.agreeing.size:
        reason = f"on no query do both return the same {pair.agreement.require}"
        none_agrees = pair.agreement.queries > 0
    elif why := pairs.all_empty(pair):
        reason = why
    other = pairs.metrics_for(b.load(key), a.metric)
    named = (m for m in pairs.metrics_for(a.load(key), a.metric) if m in other)
    metrics = [m for m in named if not of_job(m)]
    if of_class:  # how many of a class are answered follows from how many of it are asked
        metrics = [m for m in metrics if timed(m) and m != "throughput"]
    agreeing = None if reason or pair is None else pair.agreeing
    blank = whole.Over({})
    over = blank if agreeing is None else whole.over(a, b, key, metrics, agreeing)
    few = _too_few(a, b, key)
    reason = reason or few
    if not reason and not over.queries and of_class:
        each = [failed.share(run.by_key[key]) for run in (a, b)]
        reason = classes_failed.of_all((each[0], each[1]))
    if not reason and not over.queries:
        reason = "no block has a valid trial of both with a query on which they agree"
    every = blank
    if (not reason and (over.less or over.unknown)) or (none_agrees and not few):
        every = whole.over(a, b, key, metrics, None)
    for metric in metrics:
        line = replace(
            _blank(a, b, key, metric, reason),
            queries_used=0 if agreeing is None else int(agreeing.size),
            queries_measured=over.queries if timed(metric) and not reason else None,
        )
        if reason:
            yield (line, None), _of_all(line, every, pair) if every.values else None
            continue
        unknown = over.unknown if metric == "throughput" else ""
        draft = _ratio(replace(line, reason=unknown), [] if unknown else over.values[metric])
        of_all = None
        if every.values and timed(metric):
            at = replace(line, queries_used=every.asked, queries_measured=every.queries)
            if metric == "throughput" and (why := every.unknown or unknown):
                said = f"{why}; the ratio is of all requests, each at the usual cost of its query"
                values = whole.counted(a, b, key, every.blocks)
                of_all = _ratio(replace(at, over="counted", reason=said),
                                [one for one in values if all(one)])  # fmt: skip
            elif over.less and pair is not None:
                n = pair.agreement.queries - pair.agreement.agreeing
                though = f"{n} of {pair.agreement.queries} queries are answered otherwise"
                if not n:
                    though = "some queries were not answered when they were asked alone"
                said = f"over everything that both measured, though {though}: {STANDS}"
                of_all = _ratio(replace(at, over="asked", reason=said), every.values[metric])
        sides = (a, b), key, changed, pair
        yield beside.held(draft, *sides), of_all and beside.held(of_all, *sides)


def _of_all(
    line: RecordLine, every: whole.Over, pair: agreement.Pair | None
) -> sweeps.Draft | None:
    """The line over everything asked where no answer is the same: only a loss is known by it."""
    if pair is None or not timed(line.metric) or (every.unknown and line.metric == "throughput"):
        return None
    said = f"{line.reason}; over everything that both measured: {STANDS}"
    at = replace(
        line, verdict="not resolved", over="asked", reason=said, answers_doubt=line.reason,
        answers_floor=math.inf, queries_used=every.asked, queries_measured=every.queries,
    )  # fmt: skip
    return _ratio(at, every.values[line.metric])


def _blank(a: Run, b: Run, key: Key, metric: str, reason: str) -> RecordLine:
    x, y = a.by_key[key], b.by_key[key]
    return RecordLine(
        label=x.label,
        levels={"system": x.system, **x.levels},
        metric=metric,
        verdict="not comparable" if reason else "not resolved",
        value_a=x.figures.get(metric),
        value_b=y.figures.get(metric),
        ratio=None,
        p_value=None,
        floor=max(s.floors[metric].value if metric in s.floors else 1.0 for s in (a, b)),
        reason=reason,
    )


def _of_job(a: Run, b: Run, key: Key, metric: str, pair: agreement.Pair | None) -> sweeps.Draft:
    """The time of a job. Other answers afterwards win nothing, as less may have been done."""
    first, second = a.first_trial(key), b.first_trial(key)
    reason = "" if first and second else "it has no valid trial in one of the records"
    apart = "" if pair is None else pairs.apart(pair)
    reason = reason or _too_few(a, b, key) or (f"asked afterwards, {apart}" if apart else "")
    if not reason and first and second and first.corpus.digest != second.corpus.digest:
        reason = "the documents are not the same in both records"
    line = _blank(a, b, key, metric, reason)
    if reason:
        return line, None
    sides = a.valid(key), b.valid(key)
    found = [
        (x.figures[metric].value, y.figures[metric].value)
        for x, y in ((sides[0][k], sides[1][k]) for k in sorted(sides[0].keys() & sides[1].keys()))
        if metric in x.figures and metric in y.figures
    ]
    if doubt := jobs.doubt(pair):
        line = replace(line, answers_doubt=doubt, answers_floor=math.inf)
    draft, p = _ratio(line, found)
    return replace(draft, queries_used=int(pair.agreeing.size) if pair else 0), p


def _too_few(a: Run, b: Run, key: Key) -> str:
    """That too few blocks have a valid trial of both for a ratio, a clause; empty: enough have.

    The values that are shown are over all valid trials, so a ratio of one block of several would
    be of other trials than these. One is enough where that is all there was to be.
    """
    both = len(a.valid(key).keys() & b.valid(key).keys())
    blocks = ({t.block for t in run.by_key[key].trials} for run in (a, b))
    planned = min(map(len, blocks))
    if both >= min(2, planned):
        return ""
    few = "no block has" if not both else f"only {both} of {planned} blocks has"
    return f"{few} a valid trial of both, which is too few for a ratio"


def _ratio(line: RecordLine, values: Sequence[tuple[float, float]]) -> sweeps.Draft:
    if not values:
        return replace(line, reason=line.reason or "no block has enough samples in both records"), (
            None
        )
    a, b = np.array(values).T
    if line.metric != "throughput":
        a, b = b, a
    value = math.exp(float(np.log(b).mean() - np.log(a).mean()))
    ratio = Estimate(value, "ratio", len(values))
    tested = welch_log_ratio(a, b)
    if tested is None:
        return replace(line, ratio=ratio, reason=line.reason or TRIED_ONCE), None
    span, p = tested
    span = replace(span, low=math.exp(span.low), high=math.exp(span.high))
    return replace(line, ratio=replace(ratio, interval=span)), p
