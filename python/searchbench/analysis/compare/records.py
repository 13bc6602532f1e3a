"""Two records, treatment by treatment: did this change make it faster, slower, or other?

A record is one run, so two records are two samples of size one: what differs between them may be
the change or the run. Within two runs, Welch's t on the logs of the trials' values and the
greater of the two noise floors tell only whether *these two runs* differ. With further
runs of both the run is the unit: Welch's t on the logs of whole runs. With further runs of one
alone, whether the other lies outside them; its own starts may scatter by more than theirs.
Holm's correction over all treatments and metrics either way.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis import answer
from searchbench.analysis.agreement import agreement, answers
from searchbench.analysis.compare import answered, decision, doubts, loads, pairs, setup, sweeps
from searchbench.analysis.compare.mix import Mix, timed
from searchbench.analysis.compare.reconsider import would_change
from searchbench.analysis.compare.run import Key, Run, levels_of
from searchbench.analysis.judgement import (
    Agreement,
    Estimate,
    RecordComparison,
    RecordLine,
    TreatmentResult,
)
from searchbench.analysis.stats.intervals import ALPHA, holm, ratio_over_runs, welch_log_ratio
from searchbench.errors import SearchbenchError
from searchbench.record import Record

TRIED_ONCE = "fewer than two blocks have a valid trial of both, so its interval is not known"
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
    count too) or has nothing in common with a.
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
    return compare_runs([Run(r) for r in before], [Run(r) for r in after], threshold)


def compare_runs(
    before: Sequence[Run], after: Sequence[Run], threshold: float = 0.05
) -> RecordComparison:
    """Compare the runs of one thing with those of another; the first of each stands for it."""
    a, b = before[0], after[0]
    found = _matched(a, b)
    known = any(_is_estimate(line) for line, _ in found.drafts)  # else further runs tell nothing
    same, same_b = (
        [_apart(a, run) for run in runs[1:]] if known else [] for runs in (before, after)
    )
    drafts = [_over_runs(*draft, same, same_b) for draft in found.drafts]
    adjusted = holm([p for _, p in drafts])
    trials = "trials" in (a.judged.measure, b.judged.measure)
    once = doubts.built_once((line for line, _ in drafts), before, after) if trials else ()
    doubted = [doubts.of(line, before, after, once, trials) for line, _ in drafts]
    lines = tuple(
        _decide(line, p, against) for (line, against), p in zip(doubted, adjusted, strict=True)
    )
    worse = [
        line
        for line in lines
        if line.verdict in ("slower", "differs") and line.ratio and line.ratio.value < 1 - threshold
    ]
    metric = a.judged.metric
    shown = {line.metric for line in lines if line.ratio} or {line.metric for line in lines}
    if not trials and metric not in shown:  # it is not known, as where many requests failed
        metric = min(shown, default="")
    lost = _lost(a, b) if trials else found.lost
    require = a.record.plan.judging.agreement.require
    told = decision.sentences(lines, worse, found, metric, threshold, lost, require)
    if not trials:
        told = [*decision.around(told, (a.judged, b.judged), lines, found.note)]
    headline, points = answer.in_short(told)
    header, rows = decision.table(lines, metric)
    records = [[run.record for run in side] for side in (before, after)]
    findings = tuple(setup.findings(records[0], records[1], found.agreed, found.unread, trials))
    rated = [line.runs_known for line in lines if line.ratio]
    return RecordComparison(
        a=str(a.record.path),
        b=str(b.record.path),
        threshold=threshold,
        comparisons=lines,
        only_in_a=found.only[0],
        only_in_b=found.only[1],
        answers_changed=answered.changed(found.agreed) or None,
        findings=findings,
        regressed=bool(lost)
        or any(line.verdict == "slower" for line in worse)
        or (False if rated and all(rated) else None),
        decision=" ".join(s.text for s in told),
        headline=headline,
        points=points,
        header=header,
        lines=rows,
        beyond_threshold=bool(worse or lost),
        same=tuple(str(run.record.path) for run in before[1:]),
        same_b=tuple(str(run.record.path) for run in after[1:]),
        metric=metric,
        agreement=found.agreed or None,
        differences=setup.differences(a.record, b.record),
        would_change=would_change(
            lines, metric, found.agreed, findings, (a.judged, b.judged), threshold, lost
        ),
        lost=lost,
        answers_level=require,
    )


def _matched(a: Run, b: Run) -> sweeps.Matched:
    """What two runs have in common, by what was measured."""
    measures = {a.judged.measure, b.judged.measure}
    if "trials" in measures:
        return _match(a, b)
    return sweeps.match_capacities(a, b) if measures == {"capacity"} else sweeps.match(a, b)


def _match(a: Run, b: Run) -> sweeps.Matched:
    """Match the treatments of two records, first and second, and compare them."""
    drafts: list[sweeps.Draft] = []
    agreed: dict[str, Agreement] = {}
    for key in (key for key in a.by_key if key in b.by_key):
        pair = _agreement(a, b, key)
        if pair is not None:
            label = a.by_key[key].label
            agreed[label] = replace(pair.agreement, label_a=label, label_b=b.by_key[key].label)
        drafts += _lines(a, b, key, pair)
    only = [
        tuple(t.label for key, t in one.by_key.items() if key not in other.by_key)
        for one, other in ((a, b), (b, a))
    ]
    systems = [dict.fromkeys(t.system for t in run.judged.treatments) for run in (a, b)]
    absent = tuple(name for name in systems[0] if name not in systems[1])
    return sweeps.Matched(drafts, agreed, (only[0], only[1]), absent=absent)


def _lost(a: Run, b: Run) -> dict[str, str]:
    """By label, why b has no valid trial of what a has; empty where they share no treatment."""
    if not a.by_key.keys() & b.by_key.keys():
        return {}
    return {
        t.label: _why_none(b.by_key[key]) if key in b.by_key else "the second does not have it"
        for key, t in a.by_key.items()
        if a.first_trial(key) and (key not in b.by_key or not b.first_trial(key))
    }


def _why_none(treatment: TreatmentResult) -> str:
    """The most frequent reason of trials of which none is valid."""
    own = [t for t in treatment.trials if not t.control]
    grave = (f.kind for t in own for f in t.findings if f.severity == "invalid")
    reasons = [t.reason for t in own if t.reason] or [*grave] or ["none was measured"]
    return Counter(reason.rstrip(".") for reason in reasons).most_common(1)[0][0]


def _agreement(a: Run, b: Run, key: Key) -> agreement.Pair | None:
    x, y = a.first_trial(key), b.first_trial(key)
    if x is None or y is None or not answers.same_question(x, y):
        return None
    sides = agreement.read_answers(a.record, x), agreement.read_answers(b.record, y)
    rule = a.record.plan.judging.agreement
    digest = x.corpus.digest
    return agreement.compare(
        *sides, require=rule.require, k=rule.k, queries=a.queries(x.queries.digest),
        titles=a.record.titles(digest) | b.record.titles(digest),
    )  # fmt: skip


def _lines(a: Run, b: Run, key: Key, pair: agreement.Pair | None) -> Iterator[sweeps.Draft]:
    x, y = a.by_key[key], b.by_key[key]
    first, second, reason = a.first_trial(key), b.first_trial(key), ""
    if first is None or second is None:
        reason = "it has no valid trial in one of the records"
    elif why := loads.differing(first, second):
        reason = why
    elif pair is None:
        reason = "the documents or the queries are not the same in both records"
    elif not pair.agreeing.size:
        reason = f"on no query do both return the same {pair.agreement.require}"
    elif why := pairs.all_empty(pair):
        reason = why
    other = pairs.metrics_for(b.load(key), a.metric)
    metrics = [m for m in pairs.metrics_for(a.load(key), a.metric) if m in other]
    agreeing = None if reason or pair is None else pair.agreeing
    values, fewest = ({}, None) if agreeing is None else _values(a, b, key, metrics, agreeing)
    reason = reason or _too_few(a, b, key)
    if not reason and fewest == 0:
        reason = "no block has a valid trial of both with a query on which they agree"
    for metric in metrics:
        line = RecordLine(
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
            queries_used=0 if agreeing is None else int(agreeing.size),
            queries_measured=fewest if timed(metric) and not reason else None,
        )
        yield (line, None) if reason else _ratio(line, values[metric])


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


def _values(
    a: Run, b: Run, key: Key, metrics: Sequence[str], agreeing: NDArray[np.int64]
) -> tuple[dict[str, list[tuple[float, float]]], int]:
    """By metric, the values of both in each block that has a valid trial of both; and the fewest
    agreeing queries that a block measured on both sides.

    Both are over one mix (``mix``): in a block all records of a study ask in the same order. What
    is not known of each request is over all of them.
    """
    sides, counts = (a.valid(key), b.valid(key)), []
    found: dict[str, list[tuple[float, float]]] = {m: [] for m in metrics}
    for block in sorted(sides[0].keys() & sides[1].keys()):
        both = [
            run.samples.measured(own[block].trial) for run, own in zip((a, b), sides, strict=True)
        ]
        mix = Mix(both[0], both[1], agreeing)
        if not mix.queries:
            continue
        counts.append(mix.queries)
        for metric in metrics:
            x, y = (
                mix.value(m, run.load(key), metric)
                if timed(metric)
                else pairs.value(own[block], run.samples, metric, None)
                for m, run, own in zip(both, (a, b), sides, strict=True)
            )
            if x and y:
                found[metric].append((x, y))
    return found, min(counts, default=0)


def _ratio(line: RecordLine, values: Sequence[tuple[float, float]]) -> sweeps.Draft:
    if not values:
        return replace(line, reason="no block has enough samples in both records"), None
    a, b = np.array(values).T
    if line.metric != "throughput":
        a, b = b, a
    value = math.exp(float(np.log(b).mean() - np.log(a).mean()))
    ratio = Estimate(value, "ratio", len(values))
    tested = welch_log_ratio(a, b)
    if tested is None:
        return replace(line, ratio=ratio, reason=TRIED_ONCE), None
    span, p = tested
    span = replace(span, low=math.exp(span.low), high=math.exp(span.high))
    return replace(line, ratio=replace(ratio, interval=span)), p


def _apart(first: Run, run: Run) -> dict[Key, RecordLine]:
    """The lines of a further run against the first. SearchbenchError where none is left."""
    lines = [line for line, _ in _matched(first, run).drafts]
    found = {_line_key(line): line for line in lines if _is_estimate(line)}
    if not found:
        why = next((f" ({line.reason})" for line in lines if line.verdict == "not comparable"), "")
        raise SearchbenchError(
            f"{run.record.path}: nothing in it can be compared with {first.record.path}{why}, so "
            "it does not show how much runs differ; give runs of the same study"
        )
    return found


def _line_key(line: RecordLine) -> Key:
    return f"{line.levels['system']} {levels_of(line.levels)}", line.metric


def _is_estimate(line: RecordLine) -> bool:
    """Whether its ratio is one; a capacity that is open on a side has a bound."""
    return bool(line.ratio and line.value_a and line.value_b) and line.verdict != "not comparable"


def _over_runs(
    line: RecordLine,
    p: float | None,
    same: Sequence[Mapping[Key, RecordLine]],
    same_b: Sequence[Mapping[Key, RecordLine]],
) -> sweeps.Draft:
    """The line over all runs of both sides, where these tell how much runs differ."""
    if not _is_estimate(line) or line.ratio is None:
        return line, p
    key, span = _line_key(line), line.ratio.interval
    further = [[found[key] for found in side if key in found] for side in (same, same_b)]
    a, b = (
        np.array([begin, *(math.log(one.ratio.value) for one in side if one.ratio)])
        for begin, side in zip((0.0, math.log(line.ratio.value)), further, strict=True)
    )
    # Runs are not surer than what was measured within them.
    found = ratio_over_runs(a, b, math.log(span.high / span.low) / 2 if span else 0.0)
    if found is None:
        return line, p
    low, high = math.exp(found.ratio.low), math.exp(found.ratio.high)
    interval = replace(found.ratio, low=low, high=high)
    ratio = Estimate(math.sqrt(low * high), "ratio", min(a.size, b.size), interval)
    reason = "" if line.reason == TRIED_ONCE else line.reason
    runs, sd = (a.size, b.size), math.sqrt(found.noise.variance)
    line = replace(line, run_sds=found.sds, within=found.within)
    few = min((line, *chain(*further)), key=_covered)
    line = replace(line, queries_used=few.queries_used, queries_measured=few.queries_measured)
    return replace(line, ratio=ratio, reason=reason, runs=runs, run_sd=sd), found.p


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


def _decide(line: RecordLine, p: float | None, against: Sequence[str]) -> RecordLine:
    """``against``: why it is not resolved, whatever its noise."""
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
    elif line.runs_known and not why:
        return replace(line, verdict="faster" if ratio.value > 1 else "slower")
    elif not why:
        line, why = replace(line, verdict="differs"), [_of_one_side(line) or WITHIN]
    return replace(line, reason="; ".join(filter(None, (line.reason, *why))))
