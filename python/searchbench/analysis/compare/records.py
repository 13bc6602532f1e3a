"""Two records, treatment by treatment: did this change make it faster, slower, or other?

The records were run at different times, so nothing is paired by block: Welch's t on the logs of
the trials' values, Holm's correction over all treatments and metrics, and the greater of
the two noise floors.
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
from searchbench.analysis.compare import pairs, sweeps
from searchbench.analysis.judgement import (
    Estimate,
    Finding,
    Judgement,
    RecordComparison,
    RecordLine,
    TreatmentResult,
)
from searchbench.analysis.stats.intervals import ALPHA, holm, welch_log_ratio
from searchbench.analysis.trial import driven
from searchbench.analysis.trial.measured import Samples
from searchbench.record import Record, Trial

MACHINE = ("cpu", "cores", "memory_bytes", "kernel", "governor", "clocksource", "virtual")
WIDTH_LABEL = 34

Key = tuple[str, str]


def compare_records(a: Record, b: Record, threshold: float = 0.05) -> RecordComparison:
    """Compare record b (after) with record a (before).

    Treatments are matched by system and levels. ``threshold``: the share of a quantity where
    more is better that b may lose before ``regressed`` is true; only resolved losses count.
    """
    sides = judge.judge(a), judge.judge(b)
    trials = any(judged.measure == "trials" for judged in sides)
    if trials:
        found = _match(_Side(a, sides[0]), _Side(b, sides[1]))
    elif all(judged.measure == "capacity" for judged in sides):
        found = sweeps.match_capacities((a, sides[0]), (b, sides[1]))
    else:
        found = sweeps.match((a, sides[0]), (b, sides[1]))
    adjusted = holm([p for _, p in found.drafts])
    lines = tuple(_decide(line, p) for (line, _), p in zip(found.drafts, adjusted, strict=True))
    worse = [
        line
        for line in lines
        if line.verdict == "slower" and line.ratio and line.ratio.value < 1 - threshold
    ]
    metric, shown = sides[0].metric, {line.metric for line in lines}
    if not trials and metric not in shown:
        metric = min(shown, default="")
    decision = _decision(lines, worse, found, metric, threshold)
    if not trials:
        decision = " ".join(_around(decision, sides, lines, found.note))
    header, rows = _table(lines, metric)
    return RecordComparison(
        a=str(a.path),
        b=str(b.path),
        threshold=threshold,
        comparisons=lines,
        only_in_a=found.only[0],
        only_in_b=found.only[1],
        answers_changed=found.changed,
        findings=tuple(_findings(a, b, found.changed)),
        regressed=bool(worse),
        decision=decision,
        header=header,
        lines=rows,
    )


def _around(
    decision: str, sides: Sequence[Judgement], lines: Sequence[RecordLine], note: str
) -> Iterator[str]:
    """The decision on two sweeps or searches, after what is void and before what is not known."""
    for which, judged in zip(("first", "second"), sides, strict=True):
        if judged.void:
            yield judged.void.replace("Void:", f"Void, in the {which} record:", 1)
    yield decision
    behind = [line for line in lines if "keep up with it" in line.reason]
    yield from (f"{line.label}: {line.reason}." for line in behind[:3])
    if note:
        yield note


class _Side:
    """One of two records of independent trials, judged."""

    def __init__(self, record: Record, judged: Judgement) -> None:
        self.record, self.metric = record, judged.metric
        self.samples, self.loads = Samples(record), driven.loads(record)
        self.by_key = {_key(t): t for t in judged.treatments}
        self.trials = {t.trial: t for t in record.trials}
        metrics = sorted({c for t in judged.treatments for c in t.figures})
        self.floors = pairs.noise_floors(judged.treatments, metrics)

    def first_trial(self, key: Key) -> Trial | None:
        """The first valid trial that is no control."""
        return next((self.trials[t.trial] for t in self.by_key[key].trials if t.counts), None)

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


def _match(a: _Side, b: _Side) -> sweeps.Matched:
    """Match the treatments of two records, first and second, and compare them."""
    drafts: list[sweeps.Draft] = []
    changed: dict[str, tuple[int, int]] = {}
    for key in (key for key in a.by_key if key in b.by_key):
        pair = _agreement(a, b, key)
        if pair is not None:
            found = pair.agreement
            changed[a.by_key[key].label] = (found.differing, found.queries)
        drafts += _lines(a, b, key, pair)
    only = [
        tuple(t.label for key, t in one.by_key.items() if key not in other.by_key)
        for one, other in ((a, b), (b, a))
    ]
    return sweeps.Matched(drafts, changed, (only[0], only[1]))


def _agreement(a: _Side, b: _Side, key: Key) -> agreement.Pair | None:
    x, y = a.first_trial(key), b.first_trial(key)
    if x is None or y is None or not answers.same_question(x, y):
        return None
    sides = agreement.read_answers(a.record, x), agreement.read_answers(b.record, y)
    rule = a.record.plan.judging.agreement
    return agreement.compare(*sides, require=rule.require, k=rule.k)


def _lines(a: _Side, b: _Side, key: Key, pair: agreement.Pair | None) -> Iterator[sweeps.Draft]:
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
        reason = "each record needs two valid trials to know how much repetition changes it"
        return replace(line, ratio=ratio, reason=reason), None
    span, p = tested
    span = replace(span, low=math.exp(span.low), high=math.exp(span.high))
    return replace(line, ratio=replace(ratio, interval=span)), p


def _decide(line: RecordLine, p: float | None) -> RecordLine:
    ratio = line.ratio
    if line.verdict == "not comparable" or ratio is None or p is None or ratio.interval is None:
        return line
    line = replace(line, verdict="not resolved", p_value=p)
    if line.floor > 1 and abs(math.log(ratio.value)) <= math.log(line.floor):
        return replace(line, reason=f"within the noise floor of {100 * (line.floor - 1):.1f} %")
    if p < ALPHA and (ratio.interval.low > 1 or ratio.interval.high < 1):
        return replace(line, verdict="faster" if ratio.value > 1 else "slower")
    said = "the interval includes no difference, after correcting for all comparisons"
    return replace(line, reason=f"{line.reason}; {said}" if line.reason else said)


def _findings(a: Record, b: Record, changed: Mapping[str, tuple[int, int]]) -> Iterator[Finding]:
    differing = [f for f in MACHINE if a.host.get(f) != b.host.get(f)]
    if differing:
        yield Finding(
            "other machine",
            "warning",
            "",
            "; ".join(f"{f}: {a.host.get(f)} and {b.host.get(f)}" for f in differing),
            "The records were made on machines that differ, so a difference in speed may be "
            "the machine's.",
            "Run both studies on one machine, one after the other.",
        )
    versions = [{(t.engine, t.version) for t in record.trials if t.version} for record in (a, b)]
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
                "searchbench report shows the examples; see whether the change was meant.",
            )


def _decision(
    lines: Sequence[RecordLine],
    worse: Sequence[RecordLine],
    found: sweeps.Matched,
    metric: str,
    threshold: float,
) -> str:
    own = [line for line in lines if line.metric == metric]
    if own:
        counts = {
            verdict: sum(line.verdict == verdict for line in own)
            for verdict in ("faster", "slower", "not resolved", "not comparable")
        }
        parts = ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)
        said = f"By {metric.replace('_', ' ')}, of {len(own)} treatments: {parts}."
    else:
        said = "The records have no treatment in common, so there is nothing to compare."
    if worse:
        ratio, worst = min(
            ((line.ratio.value, line) for line in worse if line.ratio), key=lambda one: one[0]
        )
        said += (
            f" A regression beyond {100 * threshold:g} %: {worst.label} by "
            f"{worst.metric.replace('_', ' ')} is {100 * (1 - ratio):.1f} % worse than before."
        )
    elif own:
        said += f" No resolved loss exceeds {100 * threshold:g} %."
    differ, n = (sum(one[i] for one in found.changed.values()) for i in (0, 1))
    if differ:
        said += f" Answers changed on {differ} of {n} queries."
    elif n:
        said += f" The answers to all {n} queries are the same."
    for which, labels in zip(("first", "second"), found.only, strict=True):
        if labels:
            said += f" Only in the {which}: {', '.join(labels[:4])}."
    return said


def _table(
    lines: Sequence[RecordLine], metric: str
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    rows = []
    for line in sorted(lines, key=lambda line: line.metric != metric):
        label, ratio, span = line.label, line.ratio, line.ratio.interval if line.ratio else None
        rows.append(
            (
                label if len(label) <= WIDTH_LABEL else label[: WIDTH_LABEL - 1] + "…",
                line.metric.replace("_", " "),
                f"{ratio.value:.3f}" if ratio else "-",
                f"{span.low:.2f}–{span.high:.2f}" if span else "-",
                line.verdict,
            )
        )
    return ("treatment", "metric", "b/a", "95 %", "verdict"), tuple(rows)
