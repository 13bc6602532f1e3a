"""What is judged of the roles beside the readers; part of a ``Judgement``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from searchbench.analysis.judgement import Curve, Estimate

Severity = Literal["invalid", "warning", "note"]
Row = tuple[str, Severity, str, str, str]
"""Of a finding its kind, severity, number, meaning and remedy."""


@dataclass(frozen=True, slots=True)
class Visible:
    """From the answer to a write until its document can be found, over the markers of all trials.

    ``quantiles``: by name, seconds; each with its interval, widened by what asking leaves open; an
    end that is not known is infinite. ``markers``: how many were written; ``unseen``: of these, not
    seen before the drive ended, for which the first of them was looked for ``unseen_s``.
    ``resolution_s``: how closely the middle one of those seen is known. ``asks_per_s``,
    ``ask_p50_s``: what the asking was.
    """

    quantiles: Mapping[str, Estimate]
    markers: int
    unseen: int
    unseen_s: float
    resolution_s: float
    asks_per_s: float
    ask_p50_s: float | None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened within a drive, in seconds since its start."""

    name: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class WrittenOver:
    """Documents a second of a writer whose rate changes: that were due, and that were acknowledged.

    ``ended_s``: when its file of times came to an end, where that is well before the drive did.
    """

    offered: Curve
    acknowledged: Curve
    ended_s: float | None = None


@dataclass(frozen=True, slots=True)
class OverTime:
    """One trial's response times by when requests were due, and what happened meanwhile.

    ``good``: answers a second, well and whole, by when they were due, where a fault made them few.
    ``written``: of a writer whose rate changes. ``end_s``: when the drive ended, which may be after
    the window.
    """

    trial: str
    median: Curve
    tail: Curve
    window: tuple[float, float]
    events: tuple[Event, ...] = ()
    good: Curve | None = None
    written: WrittenOver | None = None
    end_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Proof:
    """How it was seen that what was acknowledged was there: of inserts or of updates.

    ``acknowledged``: documents, over all valid trials; ``counted``: all of them were counted, in
    every trial. Else ``asked`` of them were asked for and found, and ``may_miss`` is the largest
    share of lost ones that such a sample misses in one of 20 studies; ``why`` none was counted.
    """

    kind: str
    acknowledged: int
    counted: bool
    asked: int
    may_miss: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class WriterStage:
    """A stage of a writer, over the trials of a treatment: the middle one of each figure.

    Rates are documents a second. ``offered``: documents of the requests that were due in it;
    ``acknowledged``: documents taken by the system by answers that came in it. ``behind_s``: how
    late its last request was begun. ``readers_p50_s``, ``readers_p99_s``: response times of the
    readers' requests due in it. None: too few to say, or too many of them failed.
    """

    start_s: float
    seconds: float
    first_per_s: float
    last_per_s: float
    offered: float
    acknowledged: float
    service_p50_s: float | None
    behind_s: float | None
    readers_p50_s: float | None
    readers_p99_s: float | None


@dataclass(frozen=True, slots=True)
class RoleResult:
    """One role of one treatment, over its valid trials that are no controls.

    ``figures`` of a writer: ``offered_per_s`` and ``accepted_per_s`` (documents), ``service_p50``,
    ``service_p99``, ``response_p99`` (of requests, in seconds), ``behind_s`` (how late the last
    request of the window was begun), ``ended`` (requests answered well); of a publisher or a job
    ``times``, ``took_p50``, ``took_max``; of one that reads ``requests`` (due in the windows),
    ``offered_per_s`` (by its clock), ``answered_per_s`` (well), quantiles of ``service`` and
    ``response`` in which a request that failed took forever (infinite), ``error_share``,
    ``behind_s``. ``left_out``: in so many trials its figures are those of a late generator.
    ``load``, ``asks``: of one that reads, how and how many distinct queries. ``how``: what
    publishes, ``unasked``: what happens where nobody does. ``kept_back``: documents that were kept
    for it. ``proofs``: how what a writer wrote was checked. ``stages``: of a writer with several.
    """

    role: str
    does: str
    treatment: str
    label: str
    levels: Mapping[str, str | int | float | bool]
    idle: bool
    trials: int
    figures: Mapping[str, Estimate] = field(default_factory=dict)
    how: str = ""
    unasked: str = ""
    kept_back: int = 0
    visible: Visible | None = None
    proofs: tuple[Proof, ...] = ()
    stages: tuple[WriterStage, ...] = ()
    left_out: int = 0
    load: str = ""
    asks: int | None = None


@dataclass(frozen=True, slots=True)
class Durable:
    """What of acknowledged writes a fault took, over the trials of a treatment.

    ``acknowledged``: documents of writes that were acknowledged, before the fault or after;
    ``lost``: so many of them are not there at the end, by the engine's own count, or by those that
    were asked for where these show more;
    ``unapplied``: deletes that were acknowledged and undone, likewise. ``unknown``: documents of
    requests that nobody knows whether they were taken. ``asked``: written documents that were asked
    for; ``missing``: of these, not found. ``counted``: in so many trials the engine counted.
    ``cancels``: in so many of these inserts and deletes were acknowledged, so that what is gone and
    what is undone hide each other in the count, and ``lost`` is the least that is gone.
    ``never_back``: in so many trials the server did not come back, so that nothing could be
    counted; ``unlooked``: documents that were acknowledged in these, which are in none of the
    others: all of them may be gone. ``uncounted``: documents that were acknowledged in the other
    trials, and that no count shows: the engine gave none, or they were updates whose word it does
    not count; ``acknowledged`` is without them. ``unseen``: in so many trials more may be gone than
    any count lacks: inserts and updates, or more of those asked for. ``twice``: documents too many,
    where none was deleted.
    """

    acknowledged: int
    lost: int
    unapplied: int
    unknown: int
    asked: int
    missing: int
    counted: int
    cancels: int = 0
    never_back: int = 0
    unlooked: int = 0
    uncounted: int = 0
    unseen: int = 0
    twice: int = 0

    @property
    def hides(self) -> bool:
        """Is ``lost`` the least that is gone? Then what was taken unseen makes up for others."""
        return bool(self.cancels or self.unknown or self.unseen)


@dataclass(frozen=True, slots=True)
class FaultResult:
    """A fault of one treatment, over its valid trials that are no controls.

    ``figures``, in seconds with intervals over the trials: ``first_error_s`` (from the signal to
    the first request that was not answered well and whole), ``without_s`` (the longest time from
    the signal on without a good answer), ``down_s`` (from the signal until it was started again, or
    went on), ``ready_s`` (from then until the service answered as after a start), ``normal_s``
    (from then until answers were normal; from the signal, where it was not started again in the
    window; infinite: not within the window); and the shares of the requests due while it was down
    that failed (``error_share``) or were answered in part (``partial_share``), of those from the
    signal on that were not answered well and whole (``unanswered_share``), and ``later``: the
    share of the time after ``normal_s`` in which answers were not normal; ``late``: by what share
    of the limit for normal answers the load generator itself was late until then, at p99.
    ``requests``: how many
    were due while it was down. ``resolution_s``: how closely the normal is known; ``looked_s``: for
    how long it was looked for at most, in the trial where that was least; ``bounds``: what normal
    is, in the first trial. ``not_within``: in so many trials answers were not normal again;
    ``unknown``: in so many that is not known, for the reason ``why``. ``back``: it was started
    again in the window in all of them, ``started``: in so many. ``trouble``: why it did not come
    back, if in any trial it did not.
    ``otherwise``: queries whose answers afterwards were not those of before, of ``compared``, where
    nobody wrote.
    """

    role: str
    fault: str
    of: str
    treatment: str
    label: str
    levels: Mapping[str, str | int | float | bool]
    trials: int
    back: bool
    figures: Mapping[str, Estimate] = field(default_factory=dict)
    requests: int = 0
    resolution_s: float = 0.0
    looked_s: float = 0.0
    bounds: str = ""
    why: str = ""
    not_within: int = 0
    unknown: int = 0
    trouble: str = ""
    otherwise: int = 0
    compared: int = 0
    durable: Durable | None = None
    started: int = 0


@dataclass(frozen=True, slots=True)
class Beside:
    """The readers of a treatment beside those of the same one with every role idle; where none is
    so, with as few roles ``at_work`` as there are, which go on here in the same way.

    ``ratios``: by metric, its own over the idle one's, paired by block: those of the comparisons of
    the study, where these are compared, and else of the figures as they are. ``judged``: by metric,
    the verdict of that comparison ("faster": than the idle one), after the correction for all of
    them; "not judged" where the two are not compared by it. ``idle``: that
    treatment; "" where there is none. Of an operation also its
    name, its ``method``, the ``system`` where there are several, and the other levels (``at``).
    """

    treatment: str
    label: str
    idle: str
    idle_label: str
    ratios: Mapping[str, Estimate]
    operation: str = ""
    method: str = ""
    system: str = ""
    at: str = ""
    judged: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    at_work: int = field(default=0, kw_only=True)


@dataclass(frozen=True, slots=True)
class Pace:
    """How a writer kept up in the trials of a search that are near the capacity of the readers.

    ``asked_per_s``: documents that were due by its clock, per second of the windows (None: it had
    no clock); ``acknowledged_per_s``: those that the system took. ``trials``: of so many;
    ``from_per_s``, ``up_to_per_s``: the lowest and the highest of their rates. ``behind_s``: how
    late the last request of a window was begun, in the trial where that was most. ``short``: by
    more than chance, less was acknowledged than asked.
    """

    role: str
    asked_per_s: float | None
    acknowledged_per_s: float
    trials: int
    from_per_s: float
    up_to_per_s: float
    behind_s: float | None = None
    short: bool = False


@dataclass(frozen=True, slots=True)
class CapacityBeside:
    """The capacity of readers with roles beside them, over that of the same with every role idle.

    ``idle``: that configuration; "" where there is none. ``holds``, ``fails``: the ends of its own
    interval, requests per second; ``idle_holds``, ``idle_fails``: those of the idle one; None: that
    side is open. ``ratio``: over the blocks where there are three or more, else as far as both
    intervals allow; without an interval it is only a bound. ``unresolved``: why neither is shown to
    sustain more, in a clause; empty: one is. ``paces``: of its writers.
    """

    subject: str
    idle: str
    promise: str
    holds: float | None
    fails: float | None
    idle_holds: float | None = None
    idle_fails: float | None = None
    ratio: Estimate | None = None
    unresolved: str = ""
    paces: tuple[Pace, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswersHeld:
    """How the answers of one method were held against those of before and after the changes.

    ``kind`` as in ``workload.operations.growth``, with ``why`` where that is "any"; ``sampled``:
    how many answers, over all valid trials with a writer.
    """

    operation: str
    method: str
    system: str
    kind: str
    why: str
    sampled: int


@dataclass(frozen=True, slots=True)
class RolesJudged:
    """All roles of a study. ``cores``: of the machine; ``loops``: most loops that ran at once.

    ``beside``: of trials; ``capacity``: of a search.
    """

    answers: tuple[AnswersHeld, ...] = ()
    faults: tuple[FaultResult, ...] = ()
    results: tuple[RoleResult, ...] = ()
    beside: tuple[Beside, ...] = ()
    capacity: tuple[CapacityBeside, ...] = ()
    over_time: Mapping[str, OverTime] = field(default_factory=dict)
    cores: int | None = None
    loops: int = 1
