"""A sweep as points: each subject at each load, over all times that it was driven there.

What is compared is one point with another: two loads of a subject, or two subjects at a load. As in
studies nothing is resolved that the states of both could make by themselves (``compare.state``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from searchbench.analysis.compare import state
from searchbench.analysis.judgement import Estimate, Interval, Step, TreatmentResult
from searchbench.analysis.stats import intervals, within
from searchbench.analysis.trial import throughput
from searchbench.analysis.trial.kinds import ENDED, NOT_MEASURED, OTHERWISE
from searchbench.analysis.trial.served import UNSERVED
from searchbench.analysis.trial.silence import KIND as STALLS

ERRORS = throughput.FAILED
CHANGED = "gave other answers under load than when asked alone"
UNKNOWN = state.of_trials(())
Kind = Literal["closed", "open", "replay"]


@dataclass(frozen=True)
class Point:
    """One subject at one load ``x``; ``steps`` those that are used there, ``state`` theirs."""

    subject: str
    x: float
    kind: Kind
    steps: tuple[Step, ...]
    state: state.State = UNKNOWN

    @property
    def system(self) -> str:
        """The system that it is a configuration of."""
        return self.steps[0].system

    @property
    def treatment(self) -> str:
        """The treatment of its first step."""
        return self.steps[0].treatment

    @property
    def keeps_up(self) -> bool | None:
        """All of its steps kept the rate up; one did not; or it is not clear."""
        each = [s.keeps_up for s in self.steps]
        if False in each:
            return False
        return True if all(each) else None

    @property
    def falls_behind(self) -> bool:
        """Whether requests waited longer and longer in one of its steps."""
        return any(s.falls_behind for s in self.steps)

    @property
    def errors(self) -> float:
        """The greatest share of requests that failed in one of its steps."""
        return max((s.error_share.value for s in self.steps if s.error_share), default=0.0)

    def values(self, metric: str) -> dict[int, Estimate]:
        """A metric of each of its steps, by block: ``answered``, ``response_p99``, ..."""
        each = ((step.block, of_step(step, metric)) for step in self.steps)
        return {block: e for block, e in each if e is not None and e.value > 0}

    def of(self, metric: str) -> Estimate | None:
        """A metric over all its steps: the interval is the wider of within and between them."""
        each = (of_step(step, metric) for step in self.steps)
        own = [value for value in each if value is not None and value.value > 0]
        if len(own) < 2:
            return own[0] if own else None
        between = intervals.geometric_estimate([e.value for e in own], own[0].unit)
        if between is None or between.interval is None or any(e.interval is None for e in own):
            return between
        spans = [(e.value, e.interval) for e in own if e.interval is not None]
        low = math.sqrt(sum((value - s.low) ** 2 for value, s in spans)) / len(own)
        high = math.sqrt(sum((s.high - value) ** 2 for value, s in spans)) / len(own)
        inner = Interval(between.value - low, between.value + high, 0.95, spans[0][1].method)
        span = wider(between.interval, inner)
        return Estimate(between.value, between.unit, sum(e.n for e in own), span)


Points = dict[str, list[Point]]


def of_step(step: Step, metric: str) -> Estimate | None:
    """A metric of one step: ``answered``, or one such as ``response_p99``."""
    if metric == "answered":
        return step.answered
    kind, _, name = metric.partition("_")
    found: Mapping[str, Estimate] = getattr(step, kind)
    return found.get(name)


def level_of(step: Step) -> float:
    """The step's own load: clients, requests a second, or multiples of the log's speed."""
    by_kind = {"closed": step.clients_asked, "open": step.rate_asked_per_s}
    return float(by_kind.get(step.kind, step.speed_asked) or 1.0)


def valid(step: Step) -> bool:
    """Neither void nor failed."""
    return step.status == "valid"


def otherwise(step: Step) -> bool:
    """Void because the server gave other answers under load than when it was asked alone."""
    return any(f.kind == OTHERWISE and f.severity == "invalid" for f in step.findings)


def ended(step: Step) -> bool:
    """Void because the server ended within it."""
    return any(f.kind in ENDED and f.severity == "invalid" for f in step.findings)


def unserved(step: Step) -> bool:
    """Void because the server answered some of the clients and let the others wait."""
    return any(f.kind == UNSERVED and f.severity == "invalid" for f in step.findings)


def stalled(point: Point) -> bool:
    """Whether the server gave no reply for a part of the window in one of its steps."""
    return any(f.kind == STALLS for s in point.steps for f in s.findings)


def failed(step: Step) -> bool:
    """Not driven to its end."""
    return step.status == "failed"


def not_measured(step: Step) -> bool:
    """Failed before or beside the system, as where a client machine was lost."""
    return any(f.kind == NOT_MEASURED for f in step.findings)


def by_server(step: Step) -> bool:
    """Void by the server's own doing, and not by the client's or the machine's."""
    return otherwise(step) or ended(step) or unserved(step)


def points(
    steps: Sequence[Step],
    treatments: Sequence[TreatmentResult] = (),
    use: Callable[[Step], bool] = valid,
) -> Points:
    """By subject, its points in ascending order of load, of the steps to ``use``.

    ``treatments``: whose trials tell in what state each was; without them that is unknown.
    """
    trials = {x.trial: x for t in treatments for x in t.trials}
    found: dict[str, dict[tuple[Kind, float], list[Step]]] = {}
    for step in steps:
        levels = found.setdefault(step.subject, {})
        if use(step):
            levels.setdefault((step.kind, level_of(step)), []).append(step)

    def state_of(own: Sequence[Step]) -> state.State:
        return state.of_trials([trials[s.trial] for s in own if s.trial in trials])

    return {
        subject: [
            Point(subject, x, kind, tuple(own), state_of(own))
            for (kind, x), own in sorted(levels.items())
        ]
        for subject, levels in found.items()
    }


def driven(steps: Sequence[Step], treatments: Sequence[TreatmentResult] = ()) -> Points:
    """``points``, and where a subject only has steps at a load that the server made void, these."""
    return _with(by_server, steps, treatments)


def tried(steps: Sequence[Step], treatments: Sequence[TreatmentResult] = ()) -> Points:
    """``driven``, and where a subject has no such steps at a load but some that failed, these: what
    it sustains there is not known, and what it did at lower loads does not tell.
    """
    return _with(lambda step: by_server(step) or failed(step), steps, treatments)


def _with(
    more: Callable[[Step], bool], steps: Sequence[Step], treatments: Sequence[TreatmentResult]
) -> Points:
    """``points``, and at loads where a subject has none, those of ``more`` steps."""
    found, others = points(steps, treatments), points(steps, treatments, more)
    return {
        subject: sorted(
            {(p.kind, p.x): p for p in (*others[subject], *own)}.values(),
            key=lambda p: (p.kind, p.x),
        )
        for subject, own in found.items()
    }


def all_otherwise(steps: Sequence[Step]) -> set[str]:
    """Subjects that have steps, all of them with other answers."""
    same = {s.subject for s in steps if not otherwise(s)}
    return {s.subject for s in steps} - same


def not_comparable(*sides: tuple[str, Point]) -> str:
    """Which of them, by name, have no step that counts by the server's doing, and how; empty: none.

    Nor does one that failed.
    """
    whys = (
        (otherwise, CHANGED),
        (ended, "ended within the step"),
        (unserved, "left clients without an answer"),
        (failed, "failed before the end of the step"),
    )
    said = [
        f"{' and '.join(names)} {why}"
        for made, why in whys
        if (names := [name for name, point in sides if _spoilt(point, made)])
    ]
    return "; ".join(said)


def _spoilt(point: Point, made: Callable[[Step], bool]) -> bool:
    """Whether none of its steps counts, and ``made`` is why of one or more."""
    return not any(map(valid, point.steps)) and any(map(made, point.steps))


def against(a: Point, b: Point, metric: str) -> tuple[Estimate | None, float | None]:
    """b over a by a metric, and the p that they are the same.

    Where both were driven in two blocks or more, paired by block; and never surer than the slices
    within the trials are.
    """
    x, y = a.of(metric), b.of(metric)
    if x is None or y is None:
        return None, None
    found, p = within.ratio(x, y)
    if found.interval is None:
        return found, p
    return paired(a.values(metric), b.values(metric)) or (found, p)


def paired(
    mine: Mapping[int, Estimate], other: Mapping[int, Estimate]
) -> tuple[Estimate, float] | None:
    """The second over the first, by block, and the p that they are the same.

    Never surer than the slices within the trials are. None below two blocks of both.
    """
    both = sorted(mine.keys() & other.keys())
    logs = [math.log(other[k].value / mine[k].value) for k in both]
    ratio, q = intervals.paired_ratio(logs, None)
    if ratio is None or ratio.interval is None or q is None:
        return None
    inner = _pooled(mine, other, both)
    span = wider(ratio.interval, inner)
    return Estimate(ratio.value, "ratio", len(both), span), max(q, p_of(inner, ratio.value))


def better(a: Point, b: Point, metric: str) -> tuple[Estimate | None, float | None]:
    """``against`` with the ratio of what is more than one where b is better."""
    ratio, p = against(a, b, metric)
    return (intervals.inverse(ratio) if ratio is not None and metric != "answered" else ratio), p


def resolved(a: Point, b: Point, ratio: Estimate | None, metric: str) -> bool:
    """Whether ``against`` shows a difference that their states alone could not make."""
    if ratio is None or not within.resolved(ratio):
        return False
    log = math.log(ratio.value)
    floor = state.floor(("", a.state), ("", b.state), log if metric == "answered" else -log)
    return abs(log) > math.log(floor.ratio)


def metrics(a: Point, b: Point) -> tuple[str, ...]:
    """What two points are compared by: latencies of a growing queue are as long as one waits.

    A rate that is not kept up with for what failed is compared by what was answered too.
    """
    if a.kind == "closed":
        return ("answered", "response_p50", "response_p99")
    if a.falls_behind or b.falls_behind:
        return ("answered",)
    latencies = ("response_p50", "response_p99")
    return ("answered", *latencies) if False in (a.keeps_up, b.keeps_up) else latencies


def wider(outer: Interval, inner: Interval) -> Interval:
    """Both intervals together."""
    method = f"the wider of {outer.method} and {inner.method}"
    low, high = min(outer.low, inner.low), max(outer.high, inner.high)
    return Interval(low, high, outer.level, method)


def _pooled(a: Mapping[int, Estimate], b: Mapping[int, Estimate], both: Sequence[int]) -> Interval:
    """The interval of the mean log ratio from what is known within the trials alone."""
    down = up = total = 0.0
    for k in both:
        ratio, _ = within.ratio(a[k], b[k])
        span = ratio.interval
        total += math.log(ratio.value)
        if span is not None:
            down += math.log(ratio.value / span.low) ** 2
            up += math.log(span.high / ratio.value) ** 2
    n = len(both)
    mean = total / n
    return Interval(math.exp(mean - math.sqrt(down) / n), math.exp(mean + math.sqrt(up) / n),
                    within.LEVEL, "slices within the trials")  # fmt: skip


def p_of(span: Interval, value: float) -> float:
    """The p that a ratio of ``value`` with this interval is 1."""
    found = within.p_value(math.log(value), math.log(value / span.low), math.log(span.high / value))
    return 1.0 if found is None else found
