"""What else may make one limit greater than another: what happened on the machine in its trials.

Others took more of the cores from the lesser one, or roles got less done beside the greater one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from searchbench.analysis.capacity.alike import LEFT_OUT
from searchbench.analysis.compare import less_beside, taken
from searchbench.analysis.judgement import Capacity, TrialResult
from searchbench.workload.load_table import parse_promise

Searched = tuple[Capacity, Mapping[str, TrialResult]]  # with its trials, by name
Side = Sequence[Searched]  # the searches of one subject: of one record, or of several runs


def floor(winner: Side, rival: Side) -> float:
    """The ratio of limits that others could make who took more from the rival; 1: none.

    The trials that broke the promise at rates that the winner keeps count by themselves too: it is
    they that make the rival the lesser one.
    """
    keeps = max((one.holds for one, _ in winner if one.holds is not None), default=0.0)
    broke = [
        trials[t.trial]
        for one, trials in rival
        for t in one.trials
        if t.verdict == "fails" and t.rate_per_s <= keeps and t.trial in trials
    ]
    promises = {one.promise for one, _ in rival}
    limits = [c for text in promises for c in parse_promise(text) if c.limit_ns is not None]
    allowed = min((c.allowed for c in limits), default=1.0)
    return max(
        taken.floor(met(winner), side, "throughput", allowed) for side in (met(rival), broke)
    )


def beside(winner: Side, rival: Side, names: tuple[str, str]) -> str:
    """That roles got less done beside the winner, a clause; empty: they did not. ``names``: what
    the winner and the rival are called.
    """
    return less_beside.said(met(winner), met(rival), *names)


def met(side: Side) -> list[TrialResult]:
    """The trials that its intervals rest on."""
    return [
        trials[t.trial]
        for one, trials in side
        for t in one.trials
        if t.verdict != LEFT_OUT and t.trial in trials
    ]
