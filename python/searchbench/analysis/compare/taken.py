"""What others may make of a ratio: they took more of the cores from one side than from the other.

Such a trial counts, with a warning, on a machine that is always shared. Time that others took from
all alike is in both sides of a ratio; what they took more from one may look like a difference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from searchbench.analysis.compare import late, otherwise
from searchbench.analysis.judgement import Comparison, Estimate, TreatmentResult, TrialResult
from searchbench.analysis.trial import latency
from searchbench.analysis.words import of_job, percent

LEAST = 0.01  # of a core: by less, two systems on a quiet machine differ in what is not theirs
TAKEN = "others took more processor time from"  # in whatever says that it may have made a ratio
REMEDY = "Measure both again while nobody else uses the machine; on a virtual one, at another hour."


def floor(
    winner: Sequence[TrialResult],
    rival: Sequence[TrialResult],
    metric: str,
    allowed: float = 1.0,
) -> float:
    """The ratio that others could make who took more from the rival; 1: none.

    Work that lacked a share s of the time takes 1/(1 - s) as long. What is done meanwhile waits for
    all of that share, so a quantile q may be any time at all once 1 - q is no more than twice s, if
    s is no less than ``LEAST``. So may a rate that keeps a promise by which no more than the share
    ``allowed`` may be late.
    """
    if not winner or not rival:
        return 1.0
    mine, other = (fmean(_taken(trial, metric) for trial in side) for side in (winner, rival))
    more = other - mine
    if more <= 0:
        return 1.0
    _, _, name = metric.partition("_")
    beyond = 0.0 if name == "max" else allowed
    if name.startswith("p") and name[1:].isdigit():
        beyond = min(beyond, 1 - latency.quantile_of(name))
    if 2 * more >= max(beyond, 2 * LEAST) or other >= 1:
        return math.inf
    return (1 - mine) / (1 - other)


def against(c: Comparison, by_id: Mapping[str, TreatmentResult]) -> str:
    """Why others keep a ratio from being resolved; empty: they do not."""
    if c.ratio is None or not touched(c.metric) or otherwise.least(c.ratio) <= 1:
        return ""
    a, b = by_id[c.a], by_id[c.b]
    winner, rival = (b, a) if c.ratio.value > 1 else (a, b)
    of = [[x for x in t.trials if x.counts] for t in (winner, rival)]
    return why(rival.label, floor(of[0], of[1], c.metric), c.ratio, c.floor)


def why(rival: str, made: float, ratio: Estimate, noise: float) -> str:
    """Why a ratio is not resolved of which others could make ``made``; empty: it is beyond that."""
    return said(rival, made) if late.could_be(made, ratio, noise) else ""


def said(rival: str, made: float) -> str:
    """That others took more from the rival, and what that could make, a clause."""
    much = "any difference" if math.isinf(made) else percent(made - 1)
    return f"{TAKEN} {rival}, which could make {much}"


def touched(metric: str) -> bool:
    """Whether the time of the cores is in it."""
    return (
        metric == "throughput"
        or metric.startswith(("service_", "response_"))
        or bool(of_job(metric))
    )


def _taken(trial: TrialResult, metric: str) -> float:
    return trial.taken_of_jobs.get(metric, 0.0) if of_job(metric) else trial.taken
