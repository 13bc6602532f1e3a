"""How much of the clients' time the latencies of a closed loop contain: the count knows of more.

Throughput over a mix of queries comes from latencies, and no latency has the time that a client
waited for what was due before the window, or never ended well. So a server that hangs for a tenth
of every window has the ratio 1 over the mix, and answers a tenth less. Which queries were asked is
no reason for that: over all of them, the clients' time is spent, or it is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from searchbench.analysis.judgement import TreatmentResult
from searchbench.analysis.stats import within
from searchbench.analysis.stats.distributions import normal, student
from searchbench.analysis.stats.intervals import LEVEL
from searchbench.analysis.trial.measured import Measured, Samples
from searchbench.record.trial import Load


@dataclass(frozen=True, slots=True)
class Kept:
    """The share of the clients' time that is in the latencies of a trial, as a logarithm.

    That is also what was counted over what the latencies give. It is above 0 where last requests
    outlast the window by more than the first ones began late. ``error``: by how much it scatters
    (standard deviation) for that alone.
    """

    log: float
    error: float


Side = Sequence[Sequence[Kept]]  # by run, by trial
COUNTED = "so the ratio is of what was counted"  # in every reason that says so
ALIKE = f"{COUNTED}, each request alike"
BY_COST = "some requests failed, and weighed by what requests cost the ratio would be another"
MARGIN = 0.02  # on logs: by how much a ratio may say more than the count


def in_trial(measured: Measured, load: Load) -> Kept | None:
    """Of a trial of a closed loop; None without requests.

    At an edge of the window each client has a request under way. What is left of it has the
    variance E[c³] / 3 E[c] - (E[c²] / 2 E[c])², of cycles c, as in any renewal process. Clients
    may wait for the same thing, so they are taken to be at one place in their cycles.
    """
    if not measured.query.size:
        return None
    cycles = measured.response_ns / 1e9 + (load.think_s or 0.0)
    mean, second, third = (float((cycles**n).mean()) for n in (1, 2, 3))
    if mean <= 0:
        return None
    share = mean * cycles.size / ((load.clients or 1) * measured.window_s)
    left = max(0.0, third / (3 * mean) - (second / (2 * mean)) ** 2)
    return Kept(math.log(share), math.sqrt(2 * left) / measured.window_s / share)


def of(t: TreatmentResult, load: Load, samples: Samples) -> list[Kept]:
    """By valid trial that is no control; empty where there is none, or no closed loop."""
    if load.kind != "closed":
        return []
    each = (in_trial(samples.measured(trial.trial), load) for trial in t.trials if trial.counts)
    return [one for one in each if one is not None]


def change(a: Side, b: Side) -> tuple[float, float]:
    """The logarithm of what b's latencies contain over what those of a do, and half of its 95 %
    interval. Neither is empty.
    """
    (first, near), (second, other) = _mean(a), _mean(b)
    return second - first, math.hypot(near, other)


def as_counted(
    logs: Sequence[float],
    blocks: Sequence[tuple[Kept | None, Kept | None]],
    alike: Sequence[float],
    *,
    lacking: bool,
) -> tuple[list[float], str]:
    """The logs of ratios over a mix, by block, with the time that no latency contains, if there
    surely is some: in all blocks together, or in one of them; and why they are.

    ``blocks``: both sides of each. ``lacking``: the latencies of a trial do not add up. ``alike``:
    where requests failed, the logs of the ratios of all that were answered; else empty. These are
    the result where they say less: a query that one side answers and the other fails is in no mix,
    but its time is in the latencies of the one side, and in none of the other.
    """
    both = [(a, b) for a, b in blocks if a is not None and b is not None]
    if not both or len(both) < len(logs):
        return [*logs], ""
    log, half = change([[a for a, _ in both]], [[b for _, b in both]])
    if not lacking and abs(log) <= half and not any(_surely(*pair, len(both)) for pair in both):
        return [*logs], ""
    counted = [mixed + b.log - a.log for mixed, (a, b) in zip(logs, both, strict=True)]
    sign = math.copysign(1.0, fmean(counted))
    if alike and sign * (fmean(counted) - fmean(alike)) > MARGIN:
        return [*alike], f"clients waited for replies that no latency contains, {ALIKE}"
    return counted, f"clients waited for replies that no latency contains, {COUNTED}"


def _surely(a: Kept, b: Kept, blocks: int) -> bool:
    """Whether in one of so many blocks more of the time is missing on one side than requests at the
    edges of windows make: hangs in few of the blocks scatter too much to show in their mean.
    """
    z = normal(1 - (1 - LEVEL) / 2 / blocks)
    return abs(b.log - a.log) > z * math.hypot(a.error, b.error)


def made(winner: Side, rival: Side) -> float:
    """The ratio of throughputs that time in no latency surely makes for the winner; else 1."""
    if not any(map(len, winner)) or not any(map(len, rival)):
        return 1.0
    log, half = change([one for one in winner if one], [one for one in rival if one])
    return math.exp(-log) if -log > half else 1.0


def _mean(side: Side) -> tuple[float, float]:
    """The mean of a side, and half of its 95 % interval: as runs scatter, or the trials of the only
    run, but at least as the edges of windows do.
    """
    values = [fmean(k.log for k in own) for own in side]
    if len(values) == 1:
        values = [k.log for k in side[0]]
    errors = [k.error for own in side for k in own]
    half = within.Z * math.hypot(*errors) / len(errors)
    if len(values) > 1:
        n = len(values)
        half = max(half, student(0.5 + LEVEL / 2, n - 1) * stdev(values) / math.sqrt(n))
    return fmean(values), half
