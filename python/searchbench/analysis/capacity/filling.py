"""How long a queue needs to fill up to the limit of a promise, so that a trial shows it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from searchbench.analysis.capacity.promise import Judged
from searchbench.analysis.trial.throughput import FAILED
from searchbench.workload.load_table import Condition

NEAREST = 0.02  # rates so near each other such a trial tells apart
TAILS = 0.06  # how a trial's error grows with the squared logarithm of the share that may be late
RELAXED, CLUSTERS = 10.0, 0.3  # relaxation times of a trial: so many, and over the share allowed
ENOUGH_REQUESTS = 100  # to see how much their times vary


def built_up_s(condition: Condition, rate_per_s: float, c2: float) -> float:
    """How long a trial has to last for a queue that begins empty to show the limit of a condition.

    Of its rate, and of ``c2`` as ``varies`` has it; 0 of a condition on errors.

    Near saturation a wait is a Brownian motion reflected at 0: it drifts by rho - 1 a second, with
    the variance v = c2 / rate (of any number of workers). A share a of waits is longer than the
    limit L in the long run where 1 - rho = v ln(1/a) / 2L, and there its relaxation time is
    2 v / (1 - rho)^2 = 8 L^2 / (v ln(1/a)^2): the more generous the promise, the longer (Whitt,
    Planning queueing simulations, 1989). A trial is long enough if one of these holds:

    - It has a cluster of long waits or more, and shows how they scatter (RELAXED, CLUSTERS).
    - It hardly matters to the rate. In T seconds the limit seems higher by L / T, which an overload
      needs to fill the queue, and by TAILS ln(1/a)^2 sqrt(v / T), as most trials meet too few
      clusters (fitted to simulated Brownian motions; where services vary more than exponential
      ones, few of them make a cluster, and v counts c2 / 2 times, fitted to lognormal ones).
    - The rate that keeps the promise is hardly below that which the system keeps up with at all,
      which is told sooner.
    """
    if condition.limit_ns is None:
        return 0.0
    limit_s, tail = condition.limit_ns / 1e9, math.log(1 / condition.allowed)
    v = c2 / rate_per_s
    relaxed_s = 8 * limit_s**2 / (v * tail**2)
    found = [max(RELAXED, CLUSTERS / condition.allowed) * relaxed_s]
    v *= max(1.0, c2 / 2)
    by_clusters = TAILS * tail**2 * math.sqrt(v)
    root = by_clusters + math.sqrt(by_clusters**2 + 4 * limit_s * NEAREST)
    found.append((root / (2 * NEAREST)) ** 2)
    left = NEAREST - FAILED - v * tail / (2 * limit_s)
    if left > 0:
        found.append(v / left**2)
    return min(found)


def varies(judged: Sequence[Judged], index: int) -> float:
    """Squared coefficients of variation of arrivals and services together, as far as was seen.

    Trials that kept the promise show it by their responses, if little waited, and those that did
    not by how their queues grew; the others of them show less.
    """
    many = [one for one in judged if one.requests >= ENOUGH_REQUESTS]
    kept = [1 + one.kept[index].varies for one in many if one.seems_kept]
    over = [one for one in many if not one.seems_kept]
    of = sum(one.requests for one in over)
    swayed = sum(one.sways * one.requests for one in over) / max(1, of)
    return max([1.0, swayed, *kept]) if many else 2.0
