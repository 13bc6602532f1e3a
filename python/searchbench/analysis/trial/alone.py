"""Hosts asked alone before the drive: which of them is the slowest, and so governs the whole.

A distributed query is answered when the last of its agents has answered. Asked alone, by the same
requests and as many clients, an agent says how fast the whole can be, where hosts do not take from
each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from searchbench.analysis.judgement import Estimate
from searchbench.analysis.stats.intervals import geometric_estimate, mean_interval
from searchbench.record.alone import HostAlone
from searchbench.record.trial import Trial


@dataclass(frozen=True, slots=True)
class Alone:
    """An agent over the trials of a treatment, in their order.

    ``rates``: answers a second in each; ``per_s``: their geometric mean with its interval. Times in
    seconds, means over trials. ``failed``: answered otherwise than well, in all.
    """

    host: str
    agent: str
    parts: int
    rates: tuple[float, ...]
    per_s: Estimate
    service_p50_s: float
    service_p99_s: float
    failed: int


def of_trials(trials: Sequence[Trial]) -> list[Alone]:
    """Each agent, in its order; none where there are none on hosts of their own."""
    by_agent: dict[str, list[HostAlone]] = {}
    for each in (each for trial in trials for each in trial.hosts):
        by_agent.setdefault(each.agent, []).append(each)
    return [
        Alone(
            host=seen[0].host,
            agent=name,
            parts=seen[0].parts,
            rates=tuple(each.per_s for each in seen),
            per_s=rate,
            service_p50_s=mean(each.service_p50_s for each in seen),
            service_p99_s=mean(each.service_p99_s for each in seen),
            failed=sum(each.failed for each in seen),
        )
        for name, seen in by_agent.items()
        if (rate := geometric_estimate([each.per_s for each in seen], "queries/s")) is not None
    ]


def figures(trial: Trial) -> dict[str, Estimate]:
    """Of each agent its rate and its times, by names that tables of numbers have."""
    found = {}
    for each in trial.hosts:
        own = {"rate": (each.per_s, "queries/s"), "p50": (each.service_p50_s, "s"),
               "p99": (each.service_p99_s, "s")}  # fmt: skip
        for what, (value, unit) in own.items():
            name = f"alone_{what}_{each.agent}_at_{each.host}"
            found[name] = Estimate(value, unit, each.answered, None)
    return found


def governing(ones: Sequence[Alone]) -> Alone | None:
    """The slowest, where it is slower than the next by more than chance makes it; else None.

    By Student's interval of the log of their ratio over trials, which are paired: both were asked
    one after the other. One trial shows nothing.
    """
    if len(ones) < 2:
        return None
    slowest, second, *_ = sorted(ones, key=lambda one: one.per_s.value)
    if len(slowest.rates) != len(second.rates):
        return None
    span = mean_interval(
        [math.log(b / a) for a, b in zip(slowest.rates, second.rates, strict=True)]
    )
    apart = span is not None and span.method.startswith("t ") and span.low > 0
    return slowest if apart else None
