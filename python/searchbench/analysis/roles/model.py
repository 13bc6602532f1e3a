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

    ``quantiles``: by name, seconds; each with the interval of the order statistics, widened by what
    asking leaves open; an end that is not known is infinite. ``markers``: how many could have been
    seen; ``unseen``: of these, not seen before the drive ended. ``resolution_s``: how closely the
    middle one of them is known. ``asks_per_s``, ``ask_p50_s``: what the asking was.
    """

    quantiles: Mapping[str, Estimate]
    markers: int
    unseen: int
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
class OverTime:
    """One trial's response times by when requests were due, and what happened meanwhile."""

    trial: str
    median: Curve
    tail: Curve
    window: tuple[float, float]
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class RoleResult:
    """One role of one treatment, over its valid trials that are no controls.

    ``figures`` of a writer: ``offered_per_s`` and ``accepted_per_s`` (documents), ``service_p50``,
    ``service_p99``, ``response_p99`` (of requests, in seconds), ``behind_s`` (how late the last
    request of the window was begun), ``ended`` (requests answered well); of a publisher or a job
    ``times``, ``took_p50``, ``took_max``. ``how``: what publishes, ``unasked``: what
    happens where nobody does. ``kept_back``: documents that were kept for it.
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


@dataclass(frozen=True, slots=True)
class Beside:
    """The readers of a treatment beside those of the same one with every role idle.

    ``ratios``: by metric, its own over the idle one's, paired by block; each by itself, without a
    correction for many. ``idle``: that treatment; "" where there is none. Of an operation also its
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
    """All roles of a study. ``cores``: of the machine; ``loops``: most loops that ran at once."""

    answers: tuple[AnswersHeld, ...] = ()
    results: tuple[RoleResult, ...] = ()
    beside: tuple[Beside, ...] = ()
    over_time: Mapping[str, OverTime] = field(default_factory=dict)
    cores: int | None = None
    loops: int = 1
