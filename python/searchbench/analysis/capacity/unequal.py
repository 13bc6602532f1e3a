"""What else may make one limit greater than another: the conditions of its trials were unequal.

Others took more of the cores from the lesser one, or roles got less done beside the greater one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from searchbench.analysis.capacity.alike import LEFT_OUT
from searchbench.analysis.compare import less_beside, taken
from searchbench.analysis.judgement import Capacity, CapacityTrial, TrialResult
from searchbench.workload.load_table import parse_promise

Searched = tuple[Capacity, Mapping[str, TrialResult]]  # with its trials, by name
Side = Sequence[Searched]  # the searches of one subject: of one record, or of several runs


def floor(winner: Side, rival: Side) -> float:
    """The ratio of limits that others could make who took more from the rival; 1: none.

    What makes the rival the lesser one are its trials that were not seen to keep the promise, at
    rates that the winner keeps: they are held against the winner's that kept it. Where there are
    none, all are held against all.
    """
    keeps = max((one.holds for one, _ in winner if one.holds is not None), default=0.0)
    kept = _trials(winner, lambda t: t.verdict == "holds")
    below = _trials(rival, lambda t: t.verdict in ("fails", "unclear") and t.rate_per_s <= keeps)
    broke = _trials(rival, lambda t: t.verdict == "fails" and t.rate_per_s <= keeps)
    sides = [(kept, one) for one in (broke, below) if kept and one]
    conditions = [c for one, _ in rival for c in parse_promise(one.promise) if c.limit_ns]
    allowed = min((c.allowed for c in conditions), default=1.0)
    return max(
        taken.floor(*both, "throughput", allowed) for both in sides or [(met(winner), met(rival))]
    )


def beside(winner: Side, rival: Side, names: tuple[str, str]) -> str:
    """That roles got less done beside the winner, a clause; empty: they did not. ``names``: what
    the winner and the rival are called.
    """
    return less_beside.said(met(winner), met(rival), *names)


def met(side: Side) -> list[TrialResult]:
    """The trials that its intervals rest on."""
    return _trials(side, lambda t: t.verdict != LEFT_OUT)


def _trials(side: Side, which: Callable[[CapacityTrial], bool]) -> list[TrialResult]:
    return [trials[t.trial] for one, trials in side for t in one.trials
            if which(t) and t.trial in trials]  # fmt: skip
