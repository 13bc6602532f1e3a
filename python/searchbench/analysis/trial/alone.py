"""Hosts asked alone before the drive: which of them is the slowest, and so governs the whole.

A distributed query is answered when the last of its agents has answered. Asked alone, by the same
requests and as many clients, an agent says how fast the whole can be at most, where hosts do not
take from each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from searchbench.record.trial import HostAlone, Trial


@dataclass(frozen=True, slots=True)
class Alone:
    """An agent over the trials of a treatment, in their order.

    ``per_s``: answers a second; times in seconds, means over trials. ``slowest``: in how many of
    ``trials`` no other was slower.
    """

    host: str
    agent: str
    parts: int
    per_s: tuple[float, ...]
    service_p50_s: float
    service_p99_s: float
    failed: int
    slowest: int
    trials: int

    @property
    def governs(self) -> bool:
        """Was it the slowest in every trial?"""
        return self.slowest == self.trials

    @property
    def mean_per_s(self) -> float:
        """Over trials."""
        return mean(self.per_s)


def of_trials(trials: Sequence[Trial]) -> list[Alone]:
    """Each agent, in its order; none where there are none on hosts of their own."""
    asked = [trial.hosts for trial in trials if trial.hosts]
    least = [min(each.per_s for each in hosts) for hosts in asked]
    by_agent: dict[str, list[HostAlone]] = {}
    for each in (each for hosts in asked for each in hosts):
        by_agent.setdefault(each.agent, []).append(each)
    return [
        Alone(
            host=seen[0].host,
            agent=name,
            parts=seen[0].parts,
            per_s=tuple(each.per_s for each in seen),
            service_p50_s=mean(each.service_p50_s for each in seen),
            service_p99_s=mean(each.service_p99_s for each in seen),
            failed=sum(each.failed for each in seen),
            slowest=sum(e.per_s == low for e, low in zip(seen, least, strict=True)),
            trials=len(asked),
        )
        for name, seen in by_agent.items()
    ]
