"""Two sweeps, step by step: before and after an upgrade, say.

Steps are matched by subject and load; where each record has one subject its name does not matter,
since it is often only a port. Where each step was driven once, the intervals are of slices within
the windows: they know nothing of how much the machine differs from one hour to the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from searchbench.analysis.agreement import agreement, answers
from searchbench.analysis.judgement import Judgement, RecordLine
from searchbench.analysis.sweep import points as at
from searchbench.analysis.sweep.points import Point
from searchbench.analysis.sweep.words import percent
from searchbench.analysis.trial import driven
from searchbench.record import Record, Trial

ONCE = (
    "Each step was driven once in a record, so the intervals are of those windows alone: how much "
    "the machine differs from one hour to the next is not known (--repeat 5 tells a part of it)."
)
Draft = tuple[RecordLine, float | None]


@dataclass(frozen=True)
class Matched:
    """What two sweeps have in common. ``drafts``: lines to be decided, each with its p.

    ``changed``: by label, captured replies that differ, and of how many; ``note``: what
    is not known of them all.
    """

    drafts: tuple[Draft, ...]
    changed: Mapping[str, tuple[int, int]]
    only: tuple[tuple[str, ...], tuple[str, ...]]
    note: str = ""


def match(a: tuple[Record, Judgement], b: tuple[Record, Judgement]) -> Matched:
    """Match the steps of two sweeps, first and second, and compare them."""
    sides = at.points(a[1].steps), at.points(b[1].steps)
    subjects = in_common(sides)
    drafts: list[Draft] = []
    changed: dict[str, tuple[int, int]] = {}
    only: tuple[list[str], list[str]] = [], []
    for x_name, y_name in subjects:
        barrier, differ = answers_of(a[0], b[0], x_name, y_name)
        if differ is not None:
            changed[x_name if x_name == y_name else f"{x_name} and {y_name}"] = differ
        mine = {(p.kind, p.x): p for p in sides[0][x_name]}
        other = {(p.kind, p.x): p for p in sides[1][y_name]}
        for key, point in mine.items():
            if key in other:
                drafts += _lines(point, other[key], barrier, differ)
            else:
                only[0].append(point.steps[0].label)
        only[1].extend(p.steps[0].label for key, p in other.items() if key not in mine)
    for which, side in enumerate(only):
        taken = {pair[which] for pair in subjects}
        side.extend(name for name in sides[which] if name not in taken)
    shared = [p for side in sides for own in side.values() for p in own]
    once = not any(len({s.block for s in p.steps}) > 1 for p in shared)
    note = ONCE if once and drafts else ""
    return Matched(tuple(drafts), changed, (tuple(only[0]), tuple(only[1])), note)


def in_common(sides: tuple[Mapping[str, Any], Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Subjects to be compared: those of the same name, or the only one of each side."""
    names = [list(side) for side in sides]
    if len(names[0]) == len(names[1]) == 1:
        return [(names[0][0], names[1][0])]
    return [(name, name) for name in names[0] if name in names[1]]


def answers_of(
    a: Record, b: Record, x_name: str, y_name: str
) -> tuple[str, tuple[int, int] | None]:
    """Why the speeds may not be compared (empty: they may), and which answers differ."""
    x, y = _first(a, x_name), _first(b, y_name)
    if x is None or y is None:
        return "", None
    if not answers.same_question(x, y):
        return "the requests are not the same in both records", None
    mine, other = agreement.read_answers(a, x), agreement.read_answers(b, y)
    if not (mine.readable and other.readable):
        return "", None
    rule = a.plan.judging.agreement
    found = agreement.compare(mine, other, require=rule.require, k=rule.k).agreement
    return "", (found.queries - found.agreeing, found.queries)


def _first(record: Record, subject: str) -> Trial | None:
    subjects = driven.subjects(record)
    own = (t for t in record.trials if subjects.get(t.treatment) == subject and t.status == "ok")
    return next(own, None)


def _lines(a: Point, b: Point, barrier: str, differ: tuple[int, int] | None) -> list[Draft]:
    found: list[Draft] = []
    label = a.steps[0].label if a.subject == b.subject else _without(a.steps[0].label, a.subject)
    for metric in _metrics(a, b):
        named = "throughput" if metric == "answered" else metric
        values = a.of(metric), b.of(metric)
        ratio, p = at.against(a, b, metric)
        if ratio is not None and metric != "answered":
            ratio = at.inverse(ratio)
        reason = barrier or ("" if ratio is not None else "too few samples in one of the records")
        if not reason and differ is not None and differ[0]:
            reason = f"over all requests, though {differ[0]} of {differ[1]} have another total"
        if metric == "answered" and a.kind != "closed":
            reason = "; ".join(part for part in (_behind(a, b), reason) if part)
        line = RecordLine(
            label or a.steps[0].label, a.steps[0].levels, named,
            "not comparable" if barrier else "not resolved", *values,
            None if barrier else ratio, None, 1.0, reason,
        )  # fmt: skip
        found.append((line, None if barrier else p))
    return found


def _metrics(a: Point, b: Point) -> Sequence[str]:
    if a.kind == "closed":
        return ("answered", "response_p50", "response_p99")
    if a.keeps_up is False or b.keeps_up is False:
        return ("answered",)  # latencies of a growing queue are as long as one waits
    return ("response_p99", "response_p50")


def _behind(a: Point, b: Point) -> str:
    said = []
    for which, point in (("first", a), ("second", b)):
        shares = [s.achieved.value for s in point.steps if s.achieved is not None]
        if point.keeps_up is False and shares:
            said.append(f"the {which} does not keep up with it ({percent(min(shares))})")
    return ", ".join(said)


def _without(label: str, subject: str) -> str:
    return label.removeprefix(subject).strip()
