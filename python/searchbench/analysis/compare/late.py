"""What the load generator itself may make of a ratio: it sent to one side later than it could.

That is time of the clients, and is in their response times, but it is no time of the server. A
trial is void only where it is a great share; below, it stays in the figures of both sides, and what
one has more of it than the other may look like a difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.compare import otherwise
from searchbench.analysis.judgement import Comparison, Estimate, TreatmentResult
from searchbench.analysis.trial import latency
from searchbench.analysis.trial.measured import Measured, Samples
from searchbench.analysis.words import percent
from searchbench.record.trial import Load

LATE = "the load generator sent late to"  # in whatever says that it may have made a ratio
REMEDY = (
    "Give the load generator a core of its own and stop what else uses the machine, so that it "
    "sends to both in time."
)


def floor(
    winner: Sequence[Measured], rival: Sequence[Measured], loads: tuple[Load, Load], metric: str
) -> float:
    """The ratio that is made by what the generator was later for the rival; 1: none. Of every trial
    of either side; ``loads``: of the winner and of the rival.
    """
    each = [
        [found for m in side if (found := _longer(m, load, metric)) is not None]
        for side, load in zip((winner, rival), loads, strict=True)
    ]
    if not all(each):
        return 1.0
    mine, other = map(fmean, each)
    return max(1.0, exp(other - mine))


def against(
    c: Comparison,
    by_id: Mapping[str, TreatmentResult],
    loads: Mapping[str, Load],
    samples: Samples | None,
) -> str:
    """Why the generator keeps a ratio from being resolved; empty: it does not."""
    if samples is None or c.ratio is None or not touched(c.metric) or otherwise.least(c.ratio) <= 1:
        return ""
    a, b = by_id[c.a], by_id[c.b]
    winner, rival = (b, a) if c.ratio.value > 1 else (a, b)
    of = [[samples.measured(x.trial) for x in t.trials if x.counts] for t in (winner, rival)]
    made = floor(of[0], of[1], (loads[winner.treatment], loads[rival.treatment]), c.metric)
    return why(rival.label, made, c.ratio, c.floor)


def why(rival: str, made: float, ratio: Estimate, noise: float) -> str:
    """Why a ratio is not resolved of which lateness makes ``made``; empty: it is beyond that, and
    what is left of it is beyond the floor of ``noise``.
    """
    if not could_be(made, ratio, noise):
        return ""
    return f"{LATE} {rival}, which alone makes {percent(made - 1)} and could make the rest"


def could_be(made: float, ratio: Estimate, noise: float) -> bool:
    """Whether what makes ``made`` of a ratio, and the floor of ``noise``, could make all of it."""
    size = max(ratio.value, 1 / ratio.value)
    return made > 1 and (otherwise.could_make(ratio, made) or size <= made * noise)


def touched(metric: str) -> bool:
    """Whether lateness is in it: service time begins when a request was sent."""
    return metric == "throughput" or metric.startswith("response_")


def _longer(m: Measured, load: Load, metric: str) -> float | None:
    """By how much lateness makes a figure of a trial longer, as a logarithm; None: not known.

    Of throughput that is the time that a connection, or a client, takes for a request.
    """
    if not m.query.size or m.lag_ns is None:
        return None
    _, _, name = metric.partition("_")
    own = m.response_ns if name else m.service_ns + m.lag_ns + (load.think_s or 0.0) * 1e9
    both = own.astype(np.float64), (own - m.lag_ns).astype(np.float64)
    with_it, without = (_value(times, name or "mean") for times in both)
    return log(with_it / without) if without > 0 else None


def _value(times: NDArray[np.float64], name: str) -> float:
    if name in ("mean", "max"):
        return float(times.mean() if name == "mean" else times.max())
    at = latency.rank(times.size, latency.quantile_of(name))
    return float(np.partition(times, at)[at])
