"""Two records, treatment by treatment: did this change make it faster, slower, or other?

A record is one run, so two records are two samples of size one: what differs between them may be
the change or the run. Within two runs, Welch's t on the logs of the trials' values and the
greater of the two noise floors tell only whether *these two runs* differ. With further
runs of the same thing the run is the unit: Student's t on the logs of whole runs.
Holm's correction over all treatments and metrics either way.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from searchbench.analysis import judge
from searchbench.analysis.agreement import agreement, answers
from searchbench.analysis.compare import decision, pairs, setup, sweeps
from searchbench.analysis.compare.reconsider import would_change
from searchbench.analysis.judgement import (
    Agreement,
    Estimate,
    Finding,
    RecordComparison,
    RecordLine,
    TreatmentResult,
)
from searchbench.analysis.stats.intervals import ALPHA, holm, ratio_over_runs, welch_log_ratio
from searchbench.analysis.trial import driven
from searchbench.analysis.trial.measured import Samples
from searchbench.errors import SearchbenchError
from searchbench.record import Record, Trial

MACHINE = ("cpu", "cores", "memory_bytes", "kernel", "governor", "clocksource", "virtual")
TRIED_ONCE = "each record needs two valid trials to know how much repetition changes it"
WITHIN = "the interval is of these two runs and does not cover how much runs of one thing differ"

Key = tuple[str, str]


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
    what a is, ``same_b`` of what b is; SearchbenchError where one is given twice or has
    nothing in common with a.
    """
    before, after = (a, *same), (b, *same_b)
    for record in (*before, *after):
        if record.plan.judging.first_look:
            raise SearchbenchError(
                f"{record.path} is a first look, which decides nothing; run its study without "
                "--quick to compare it"
            )
    paths = [record.path.resolve() for record in (*before, *after)]
    if len(paths) > 2 and len(set(paths)) < len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise SearchbenchError(f"{twice} is given twice; a run counts once, so leave it out")
    return compare_runs([Run(r) for r in before], [Run(r) for r in after], threshold)


def compare_runs(
    before: Sequence[Run], after: Sequence[Run], threshold: float = 0.05
) -> RecordComparison:
    """Compare the runs of one thing with those of another; the first of each stands for it."""
    a, b = before[0], after[0]
    found = _matched(a, b)
    same, same_b = ([_apart(a, run) for run in runs[1:]] for runs in (before, after))
    drafts = [_over_runs(*draft, same, same_b) for draft in found.drafts]
    adjusted = holm([p for _, p in drafts])
    lines = tuple(_decide(line, p) for (line, _), p in zip(drafts, adjusted, strict=True))
    worse = [
        line
        for line in lines
        if line.verdict in ("slower", "differs") and line.ratio and line.ratio.value < 1 - threshold
    ]
    metric, shown = a.judged.metric, {line.metric for line in lines}
    trials = "trials" in (a.judged.measure, b.judged.measure)
    if not trials and metric not in shown:
        metric = min(shown, default="")
    said = decision.sentences(lines, worse, found, metric, threshold)
    if not trials:
        said = " ".join(decision.around(said, (a.judged, b.judged), lines, found.note))
    header, rows = decision.table(lines, metric)
    findings = tuple(_findings(before, after, found.changed))
    rated = [line.run_sd for line in lines if line.ratio]
    return RecordComparison(
        a=str(a.record.path),
        b=str(b.record.path),
        threshold=threshold,
        comparisons=lines,
        only_in_a=found.only[0],
        only_in_b=found.only[1],
        answers_changed=found.changed,
        findings=findings,
        regressed=any(line.verdict == "slower" for line in worse)
        or (None if None in rated or not rated else False),
        decision=said,
        header=header,
        lines=rows,
        beyond_threshold=bool(worse),
        same=tuple(str(run.record.path) for run in before[1:]),
        same_b=tuple(str(run.record.path) for run in after[1:]),
        metric=metric,
        agreement=found.agreed,
        differences=setup.differences(a.record, b.record),
        would_change=would_change(
            lines, metric, found.agreed, findings, (a.judged, b.judged), threshold
        ),
    )


class Run:
    """A record, judged."""

    def __init__(self, record: Record) -> None:
        self.record, self.judged = record, judge.judge(record)
        judged, self.metric = self.judged, self.judged.metric
        self.samples, self.loads = Samples(record), driven.loads(record)
        self.by_key = {_key(t): t for t in judged.treatments}
        self.trials = {t.trial: t for t in record.trials}
        metrics = sorted({c for t in judged.treatments for c in t.figures})
        self.floors = pairs.noise_floors(judged.treatments, metrics)
        self._queries: dict[str, list[dict[str, Any]]] = {}

    def first_trial(self, key: Key) -> Trial | None:
        """The first valid trial that is no control."""
        return next((self.trials[t.trial] for t in self.by_key[key].trials if t.counts), None)

    def queries(self, digest: str) -> list[dict[str, Any]]:
        """The rows of a query set; read once."""
        if digest not in self._queries:
            self._queries[digest] = self.record.queries(digest) if digest else []
        return self._queries[digest]

    def values(self, key: Key, metric: str, keep: Any) -> pairs.Floats:
        """A metric of each valid trial, over the queries in ``keep``."""
        treatment = self.by_key[key]
        load = self.loads[treatment.treatment]
        own = [
            pairs.value(trial, load, self.samples, metric, keep)
            for trial in treatment.trials
            if trial.counts
        ]
        return np.array([v for v in own if v])


def _key(treatment: TreatmentResult) -> Key:
    return treatment.system, json.dumps(dict(treatment.levels), sort_keys=True, default=str)


def _matched(a: Run, b: Run) -> sweeps.Matched:
    """What two runs have in common, by what was measured."""
    measures = {a.judged.measure, b.judged.measure}
    if "trials" in measures:
        return _match(a, b)
    sides = (a.record, a.judged), (b.record, b.judged)
    return sweeps.match_capacities(*sides) if measures == {"capacity"} else sweeps.match(*sides)


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
    return sweeps.Matched(drafts, agreed, (only[0], only[1]))


def _agreement(a: Run, b: Run, key: Key) -> agreement.Pair | None:
    x, y = a.first_trial(key), b.first_trial(key)
    if x is None or y is None or not answers.same_question(x, y):
        return None
    sides = agreement.read_answers(a.record, x), agreement.read_answers(b.record, y)
    rule = a.record.plan.judging.agreement
    return agreement.compare(
        *sides, require=rule.require, k=rule.k, queries=a.queries(x.queries.digest)
    )


def _lines(a: Run, b: Run, key: Key, pair: agreement.Pair | None) -> Iterator[sweeps.Draft]:
    x, y = a.by_key[key], b.by_key[key]
    reason, keep = "", None
    if a.first_trial(key) is None or b.first_trial(key) is None:
        reason = "it has no valid trial in one of the records"
    elif pair is None:
        reason = "the documents or the queries are not the same in both records"
    elif not pair.agreeing.size:
        reason = f"on no query do both return the same {pair.agreement.require}"
    elif pair.agreement.agreeing < max(pair.agreement.queries, 1):
        keep = pair.agreeing
    other = pairs.metrics_for(b.loads[y.treatment], a.metric)
    for metric in pairs.metrics_for(a.loads[x.treatment], a.metric):
        if metric not in other:
            continue
        line = RecordLine(
            label=x.label,
            levels=x.levels,
            metric=metric,
            verdict="not comparable" if reason else "not resolved",
            value_a=x.figures.get(metric),
            value_b=y.figures.get(metric),
            ratio=None,
            p_value=None,
            floor=max(s.floors[metric].value if metric in s.floors else 1.0 for s in (a, b)),
            reason=reason,
        )
        if reason:
            yield line, None
        else:
            yield _ratio(line, a.values(key, metric, keep), b.values(key, metric, keep))


def _ratio(line: RecordLine, a: pairs.Floats, b: pairs.Floats) -> sweeps.Draft:
    if not a.size or not b.size:
        return replace(line, reason="too few samples in one of the records"), None
    if line.metric != "throughput":
        a, b = b, a
    value = math.exp(float(np.log(b).mean() - np.log(a).mean()))
    ratio = Estimate(value, "ratio", min(a.size, b.size))
    tested = welch_log_ratio(a, b)
    if tested is None:
        return replace(line, ratio=ratio, reason=TRIED_ONCE), None
    span, p = tested
    span = replace(span, low=math.exp(span.low), high=math.exp(span.high))
    return replace(line, ratio=replace(ratio, interval=span)), p


def _apart(first: Run, run: Run) -> dict[Key, float]:
    """By line, the log ratio of a further run to the first. SearchbenchError where none is left."""
    logs = {
        _line_key(line): math.log(line.ratio.value)
        for line, _ in _matched(first, run).drafts
        if _is_estimate(line) and line.ratio
    }
    if not logs:
        raise SearchbenchError(
            f"{run.record.path}: nothing in it can be compared with {first.record.path}, so it "
            "does not tell how much runs differ; give runs of the same study"
        )
    return logs


def _line_key(line: RecordLine) -> Key:
    return json.dumps(dict(line.levels), sort_keys=True, default=str), line.metric


def _is_estimate(line: RecordLine) -> bool:
    """Whether its ratio is one; a capacity that is open on a side has a bound."""
    return bool(line.ratio and line.value_a and line.value_b) and line.verdict != "not comparable"


def _over_runs(
    line: RecordLine,
    p: float | None,
    same: Sequence[Mapping[Key, float]],
    same_b: Sequence[Mapping[Key, float]],
) -> sweeps.Draft:
    """The line over all runs of both sides, where these tell how much runs differ."""
    if not _is_estimate(line) or line.ratio is None:
        return line, p
    key, span = _line_key(line), line.ratio.interval
    a = np.array([0.0, *(logs[key] for logs in same if key in logs)])
    b = np.array([math.log(line.ratio.value), *(logs[key] for logs in same_b if key in logs)])
    # Runs are not surer than what was measured within them.
    found = ratio_over_runs(a, b, math.log(span.high / span.low) / 2 if span else 0.0)
    if found is None:
        return line, p
    low, high = math.exp(found.ratio.low), math.exp(found.ratio.high)
    interval = replace(found.ratio, low=low, high=high)
    ratio = Estimate(math.sqrt(low * high), "ratio", min(a.size, b.size), interval)
    reason = "" if line.reason == TRIED_ONCE else line.reason
    runs, sd = (a.size, b.size), math.sqrt(found.noise.variance)
    return replace(line, ratio=ratio, reason=reason, runs=runs, run_sd=sd), found.p


def _decide(line: RecordLine, p: float | None) -> RecordLine:
    ratio, known = line.ratio, line.run_sd is not None
    if line.verdict == "not comparable" or ratio is None or p is None or ratio.interval is None:
        return line
    line = replace(line, verdict="not resolved", p_value=p)
    # Between runs the floor is contained: a run's value has the noise of its trials in it.
    if not known and line.floor > 1 and abs(math.log(ratio.value)) <= math.log(line.floor):
        return replace(line, reason=f"within the noise floor of {100 * (line.floor - 1):.1f} %")
    said = "the interval includes no difference, after correcting for all comparisons"
    if p < ALPHA and (ratio.interval.low > 1 or ratio.interval.high < 1):
        if known:
            return replace(line, verdict="faster" if ratio.value > 1 else "slower")
        line, said = replace(line, verdict="differs"), WITHIN
    return replace(line, reason=f"{line.reason}; {said}" if line.reason else said)


def _findings(
    before: Sequence[Run], after: Sequence[Run], changed: Mapping[str, tuple[int, int]]
) -> Iterator[Finding]:
    records = [run.record for run in (*before, *after)]
    hosts = {f: list(dict.fromkeys(str(r.host.get(f)) for r in records)) for f in MACHINE}
    differing = [f"{f}: {' and '.join(found)}" for f, found in hosts.items() if len(found) > 1]
    if differing:
        yield Finding(
            "other machine",
            "warning",
            "",
            "; ".join(differing),
            "The records were made on machines that differ, so a difference in speed may be "
            "the machine's.",
            "Run both studies on one machine, one after the other.",
        )
    for runs in (before, after):
        found = [known for run in runs if (known := _versions(run))]
        if any(one != found[0] for one in found):
            yield Finding(
                "not the same",
                "warning",
                "",
                " and ".join(dict.fromkeys(", ".join(sorted(map(" ".join, one))) for one in found)),
                "Records said to be of the same thing are not of the same versions, so what they "
                "differ by is more than that of runs.",
                "Give only records of the same versions with --same or --same-b.",
            )
    starts = [
        [min((t.started for t in run.record.trials), default="") for run in runs]
        for runs in (before, after)
    ]
    apart = max(starts[0]) < min(starts[1]) or max(starts[1]) < min(starts[0])
    if len(records) > 2 and all(map(all, starts)) and apart:
        yield Finding(
            "not interleaved",
            "warning",
            "",
            f"{min(map(min, starts))} to {max(map(max, starts))}",
            "All runs of one side were made before those of the other, so whatever changed on the "
            "machine in between counts as the change.",
            "Run both in turn: the first again after the second, at least.",
        )
    versions = [_versions(runs[0]) for runs in (before, after)]
    if versions[0] != versions[1]:
        yield Finding(
            "other versions",
            "note",
            "",
            " and ".join(", ".join(sorted(f"{e} {v}" for e, v in own)) for own in versions),
            "The engines are not of the same version.",
            "None, if that is what is being compared.",
        )
    for label, (differ, n) in changed.items():
        if differ:
            yield Finding(
                "answers changed",
                "warning",
                "",
                f"{differ} of {n} queries of {label}",
                "The two records answer these queries differently; ratios are over the rest.",
                "The page (--out) shows them side by side; see whether the change was meant.",
            )


def _versions(run: Run) -> set[tuple[str, str]]:
    return {(t.engine, t.version) for t in run.record.trials if t.version}
