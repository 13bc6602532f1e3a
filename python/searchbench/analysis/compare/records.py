"""Two records, treatment by treatment: did this change make it faster, slower, or other?

The records were run at different times, so nothing is paired by block: Welch's t on the logs of
the trials' values, Holm's correction over all treatments and metrics, and the greater of
the two noise floors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from searchbench.analysis import judge
from searchbench.analysis.agreement import agreement, answers
from searchbench.analysis.compare import capacities, pairs, sweeps
from searchbench.analysis.judgement import (
    Estimate,
    Finding,
    Interval,
    Judgement,
    RecordComparison,
    RecordLine,
    TreatmentResult,
)
from searchbench.analysis.plain import to_json
from searchbench.analysis.stats.intervals import holm, welch_log_ratio
from searchbench.analysis.trial import driven
from searchbench.analysis.trial.measured import Samples
from searchbench.record import Record, Trial
from searchbench.record.trial import Load

ALPHA = 0.05
MACHINE = ("cpu", "cores", "memory_bytes", "kernel", "governor", "clocksource", "virtual")
WIDTH_LABEL = 34


def comparison_json(compared: RecordComparison) -> dict[str, Any]:
    """The comparison for machines; field names as in judgement.py."""
    return to_json(compared)


def compare_records(a: Record, b: Record, threshold: float = 0.05) -> RecordComparison:
    """Compare record b (after) with record a (before).

    Treatments are matched by system and levels. ``threshold``: the share of a quantity where
    more is better that b may lose before ``regressed`` is true; only resolved losses count.
    """
    sides = _Side.of(a), _Side.of(b)
    if all(side.judged.measure != "trials" for side in sides):
        return _compare_sweeps(sides, threshold)
    keys = [key for key in sides[0].by_key if key in sides[1].by_key]
    only = [
        tuple(t.label for key, t in one.by_key.items() if key not in other.by_key)
        for one, other in (sides, sides[::-1])
    ]
    drafts: list[tuple[RecordLine, float | None]] = []
    changed: dict[str, tuple[int, int]] = {}
    for key in keys:
        pair = _agreement(sides[0], sides[1], key)
        label = sides[0].by_key[key].label
        if pair is not None:
            found = pair.agreement
            changed[label] = (found.queries - found.agreeing, found.queries)
        drafts += _lines(sides[0], sides[1], key, pair)
    adjusted = holm([p for _, p in drafts])
    lines = tuple(_decide(line, p) for (line, _), p in zip(drafts, adjusted, strict=True))
    return _compared(sides, lines, changed, only, threshold, sides[0].judged.metric)


def _compare_sweeps(sides: tuple[_Side, _Side], threshold: float) -> RecordComparison:
    a, b = sides
    searched = a.judged.measure == b.judged.measure == "capacity"
    match = capacities.match if searched else sweeps.match
    found = match((a.record, a.judged), (b.record, b.judged))
    adjusted = holm([p for _, p in found.drafts])
    lines = tuple(_decide(line, p) for (line, _), p in zip(found.drafts, adjusted, strict=True))
    shown = {line.metric for line in lines}
    metric = a.judged.metric if a.judged.metric in shown else next(iter(sorted(shown)), "")
    compared = _compared(sides, lines, found.changed, list(found.only), threshold, metric)
    said = [
        side.judged.void.replace("Void:", f"Void, in the {which} record:", 1)
        for which, side in (("first", a), ("second", b))
        if side.judged.void
    ]
    said.append(compared.decision)
    behind = [line for line in lines if "keep up with it" in line.reason]
    said += [f"{line.label}: {line.reason}." for line in behind[:3]]
    if found.note:
        said.append(found.note)
    return replace(compared, decision=" ".join(said))


def _compared(
    sides: tuple[_Side, _Side],
    lines: tuple[RecordLine, ...],
    changed: Mapping[str, tuple[int, int]],
    only: list[tuple[str, ...]],
    threshold: float,
    metric: str,
) -> RecordComparison:
    a, b = (side.record for side in sides)
    worse = [
        line
        for line in lines
        if line.verdict == "slower" and line.ratio and line.ratio.value < 1 - threshold
    ]
    header, rows = _table(lines, metric)
    return RecordComparison(
        a=str(a.path),
        b=str(b.path),
        threshold=threshold,
        comparisons=lines,
        only_in_a=only[0],
        only_in_b=only[1],
        answers_changed=changed,
        findings=tuple(_findings(a, b, sides, changed)),
        regressed=bool(worse),
        decision=_decision(lines, worse, changed, only, metric, threshold),
        header=header,
        lines=rows,
    )


Key = tuple[str, str]


@dataclass(frozen=True)
class _Side:
    """One of the two records, judged."""

    record: Record
    judged: Judgement
    samples: Samples
    by_key: Mapping[Key, TreatmentResult]
    loads: Mapping[str, Load]
    trials: Mapping[str, Trial]
    floors: Mapping[str, pairs.Floor]

    @classmethod
    def of(cls, record: Record) -> _Side:
        judged = judge.judge(record)
        metrics = sorted({c for t in judged.treatments for c in t.figures})
        return cls(
            record,
            judged,
            Samples(record),
            {_key(t): t for t in judged.treatments},
            driven.loads(record),
            {t.trial: t for t in record.trials},
            pairs.noise_floors(judged.treatments, metrics),
        )

    def first_trial(self, treatment: TreatmentResult) -> Trial | None:
        """The first valid trial that is no control."""
        for trial in treatment.trials:
            if trial.status == "valid" and not trial.control:
                return self.trials[trial.trial]
        return None


def _key(treatment: TreatmentResult) -> Key:
    return treatment.system, json.dumps(dict(treatment.levels), sort_keys=True, default=str)


def _agreement(a: _Side, b: _Side, key: Key) -> agreement.Pair | None:
    x, y = a.first_trial(a.by_key[key]), b.first_trial(b.by_key[key])
    if x is None or y is None or not answers.same_question(x, y):
        return None
    rule, digest = a.record.plan.judging.agreement, x.queries.digest
    return agreement.compare(
        agreement.read_answers(a.record, x),
        agreement.read_answers(b.record, y),
        require=rule.require,
        k=rule.k,
        queries=a.record.queries(digest) if digest else (),
    )


def _lines(
    a: _Side, b: _Side, key: Key, pair: agreement.Pair | None
) -> list[tuple[RecordLine, float | None]]:
    x, y = a.by_key[key], b.by_key[key]
    load_a, load_b = a.loads[x.treatment], b.loads[y.treatment]
    metrics = pairs.metrics_for(load_a, a.judged.metric)
    found: list[tuple[RecordLine, float | None]] = []
    for metric in (m for m in metrics if m in pairs.metrics_for(load_b, a.judged.metric)):
        floor = math.exp(max(s.floors[metric].log if metric in s.floors else 0.0 for s in (a, b)))
        reason, keep = "", None
        if a.first_trial(x) is None or b.first_trial(y) is None:
            reason = "it has no valid trial in one of the records"
        elif pair is None:
            reason = "the documents or the queries are not the same in both records"
        elif not pair.agreeing.size:
            reason = f"on no query do both return the same {pair.agreement.require}"
        elif pair.agreement.agreeing < max(pair.agreement.queries, 1):
            keep = pair.agreeing
        values = (x.figures.get(metric), y.figures.get(metric))
        line = RecordLine(
            x.label, x.levels, metric, "not comparable", *values, None, None, floor, reason
        )
        if reason:
            found.append((line, None))
            continue
        sides = [
            np.array(
                [
                    v
                    for trial in treatment.trials
                    if trial.status == "valid" and not trial.control
                    if (v := pairs.value(trial, load, side.samples, metric, keep))
                ]
            )
            for side, treatment, load in ((a, x, load_a), (b, y, load_b))
        ]
        found.append(_ratio(line, sides[0], sides[1]))
    return found


def _ratio(line: RecordLine, a: pairs.Floats, b: pairs.Floats) -> tuple[RecordLine, float | None]:
    values = (line.value_a, line.value_b)
    if not a.size or not b.size:
        reason = "too few samples in one of the records"
        return _with(line, "not resolved", values, None, reason), None
    if line.metric != "throughput":
        a, b = b, a
    value = math.exp(float(np.log(b).mean() - np.log(a).mean()))
    tested = welch_log_ratio(a, b)
    n = min(a.size, b.size)
    if tested is None:
        reason = "each record needs two valid trials to know how much repetition changes it"
        return _with(line, "not resolved", values, Estimate(value, "ratio", n), reason), None
    span, p = tested
    interval = Interval(math.exp(span.low), math.exp(span.high), span.level, span.method)
    ratio = Estimate(value, "ratio", n, interval)
    return _with(line, "not resolved", values, ratio, ""), p


def _with(
    line: RecordLine,
    verdict: Any,
    values: tuple[Estimate | None, Estimate | None],
    ratio: Estimate | None,
    reason: str,
) -> RecordLine:
    return RecordLine(
        line.label, line.levels, line.metric, verdict, *values, ratio, None, line.floor, reason
    )


def _decide(line: RecordLine, p: float | None) -> RecordLine:
    ratio = line.ratio
    if line.verdict == "not comparable" or ratio is None or p is None or ratio.interval is None:
        return line
    size = abs(math.log(ratio.value))
    apart = ratio.interval.low > 1 or ratio.interval.high < 1
    verdict, reason = "not resolved", line.reason
    if line.floor > 1 and size <= math.log(line.floor):
        reason = f"within the noise floor of {100 * (line.floor - 1):.1f} %"
    elif not apart or p >= ALPHA:
        said = "the interval includes no difference, after correcting for all comparisons"
        reason = f"{reason}; {said}" if reason else said
    else:
        verdict = "faster" if ratio.value > 1 else "slower"
    changed = _with(line, verdict, (line.value_a, line.value_b), ratio, reason)
    return RecordLine(
        changed.label,
        changed.levels,
        changed.metric,
        changed.verdict,
        changed.value_a,
        changed.value_b,
        changed.ratio,
        p,
        changed.floor,
        changed.reason,
    )


def _findings(
    a: Record, b: Record, sides: tuple[_Side, _Side], changed: Mapping[str, tuple[int, int]]
) -> list[Finding]:
    found = []
    differing = [f for f in MACHINE if a.host.get(f) != b.host.get(f)]
    if differing:
        said = "; ".join(f"{f}: {a.host.get(f)} and {b.host.get(f)}" for f in differing)
        found.append(
            Finding(
                "other machine",
                "warning",
                "",
                said,
                "The records were made on machines that differ, so a difference in speed may be "
                "the machine's.",
                "Run both studies on one machine, one after the other.",
            )
        )
    versions = [{(t.engine, t.version) for t in s.record.trials if t.version} for s in sides]
    if versions[0] != versions[1]:
        names = [", ".join(sorted(f"{e} {v}" for e, v in side)) for side in versions]
        found.append(
            Finding(
                "other versions",
                "note",
                "",
                f"{names[0]} and {names[1]}",
                "The engines are not of the same version.",
                "None, if that is what is being compared.",
            )
        )
    for label, (differ, n) in changed.items():
        if differ:
            found.append(
                Finding(
                    "answers changed",
                    "warning",
                    "",
                    f"{differ} of {n} queries of {label}",
                    "The two records answer these queries differently; ratios are over the rest.",
                    "searchbench report shows the examples; see whether the change was meant.",
                )
            )
    return found


def _decision(
    lines: tuple[RecordLine, ...],
    worse: list[RecordLine],
    changed: Mapping[str, tuple[int, int]],
    only: list[tuple[str, ...]],
    metric: str,
    threshold: float,
) -> str:
    own = [line for line in lines if line.metric == metric]
    counts = {
        verdict: sum(line.verdict == verdict for line in own)
        for verdict in ("faster", "slower", "not resolved", "not comparable")
    }
    if not own:
        said = "The records have no treatment in common, so there is nothing to compare."
    else:
        parts = ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)
        said = f"By {metric.replace('_', ' ')}, of {len(own)} treatments: {parts}."
    if worse:
        worst = min(worse, key=lambda line: line.ratio.value if line.ratio else 1.0)
        ratio = worst.ratio.value if worst.ratio else 1.0
        said += (
            f" A regression beyond {100 * threshold:g} %: {worst.label} by "
            f"{worst.metric.replace('_', ' ')} is {100 * (1 - ratio):.1f} % worse than before."
        )
    elif own:
        said += f" No resolved loss exceeds {100 * threshold:g} %."
    differ, n = (sum(x) for x in zip(*changed.values(), strict=True)) if changed else (0, 0)
    if n:
        said += (
            f" Answers changed on {differ} of {n} queries."
            if differ
            else f" The answers to all {n} queries are the same."
        )
    for which, labels in zip(("first", "second"), only, strict=True):
        if labels:
            said += f" Only in the {which}: {', '.join(labels[:4])}."
    return said


def _table(
    lines: tuple[RecordLine, ...], metric: str
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    header = ("treatment", "metric", "b/a", "95 %", "verdict")
    rows = []
    for line in sorted(lines, key=lambda line: line.metric != metric):
        ratio, span = line.ratio, line.ratio.interval if line.ratio else None
        label = line.label
        rows.append(
            (
                label if len(label) <= WIDTH_LABEL else label[: WIDTH_LABEL - 1] + "…",
                line.metric.replace("_", " "),
                f"{ratio.value:.3f}" if ratio else "-",
                f"{span.low:.2f}–{span.high:.2f}" if span else "-",
                line.verdict,
            )
        )
    return header, tuple(rows)
