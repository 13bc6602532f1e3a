"""A promise about answers ("p99 < 50ms, errors < 0.1%"), and whether a trace keeps it.

Every condition is a share of requests that may do otherwise: "p99 < 50 ms" means that fewer than
1 % of the requests that were due have a response time of 50 ms or more. Requests that failed or
never ended count as too late: a server that refuses is not fast. Beside what it says, every
promise asks that the system keeps up: at least 99 % of what is offered is achieved, so that the
backlog does not grow.

Late requests come in clusters, as in a queue one makes the next one late. How many independent
requests a window is worth is n over the design effect: the long-run variance of the late ones
(autocovariances of 200 slices summed while their pairs are positive; Geyer, Practical Markov
Chain Monte Carlo, 1992) over that of independent ones. The share's interval is the exact binomial
one of that many (Korn and Graubard, Confidence intervals for proportions with small expected
number of positive counts, 1998). Order statistics would be too sure.

A condition for a class is held against the requests of that class alone. Where none of them was due
the window says nothing of it: it neither keeps nor breaks the promise.

Response times count from when a request was due, so a client that is late itself only makes them
longer: a promise that is kept nevertheless is kept, and one that is broken even with that lateness
taken out (lag.py) is broken. Only where the lateness decides, the window says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.capacity import lag, slowed, spells, stalls
from searchbench.analysis.judgement import Interval
from searchbench.analysis.stats import within
from searchbench.analysis.stats.distributions import share_at_least, share_at_most
from searchbench.analysis.trial import throughput
from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.trial.pool import Pool
from searchbench.analysis.trial.steadiness import steadiness
from searchbench.analysis.trial.validity import ERRORS_INVALID
from searchbench.workload.load_table import Condition

Verdict = Literal["holds", "fails", "unclear"]
Floats = NDArray[np.float64]

OWN_SHARE = 0.1  # of the limit: less lateness of the client's own does not matter
CLUSTERED = 5.0  # design effect from which on what is late waited in a queue
_LEVEL = 0.95
_NEVER = np.iinfo(np.int64).max  # the response of a request that did not end well


@dataclass(frozen=True, slots=True)
class Kept:
    """How one condition fared: the share that failed it, and the share's 95 % interval.

    ``effective``: how many of ``requests`` independent ones the window is worth for this share.
    ``quantile_ns``: the condition's quantile as it was, and ``spread``, the standard error of its
    logarithm; None of a condition on errors, and where so many failed that it has no time.
    ``for_part``: the share of the window's slices in which more failed than may. ``varies``: the
    squared coefficient of variation of the responses of those that ended well, none taken for
    longer than the limit. ``first_half``: requests of the window's first half, and those of them
    that failed. ``slowest_at``: where in the window those are, in the mean, that take the quantile
    or longer (0: at its beginning, 1: at its end).
    """

    condition: Condition
    requests: int
    share: float
    low: float
    high: float
    effective: float
    quantile_ns: float | None = None
    spread: float | None = None
    for_part: float = 0.0
    varies: float = 0.0
    first_half: tuple[int, int] = (0, 0)
    slowest_at: float = 0.5

    @property
    def verdict(self) -> Verdict:
        """Kept or broken beyond doubt, or neither."""
        if self.high < self.condition.allowed:
            return "holds"
        return "fails" if self.low >= self.condition.allowed else "unclear"


@dataclass(frozen=True, slots=True)
class Judged:
    """A window against a promise.

    ``offered_per_s``, ``answered_per_s``: requests due, and those that ended well, in the window.
    ``achieved``: replies that came in the window over requests due in it, with the 95 % interval of
    this share in the long run.
    ``own_fault``: the promise was broken, but may have been kept had the client sent on time, so
    the window says nothing about the system. ``lagging``: the client was late by a tenth of a limit
    for more requests than may be late, whether that decides or not; all times count it.
    ``others`` of ``sampled`` replies under load are not those of the same queries asked alone; no
    trace knows these either. ``by_sizes``: seen by their sizes alone, so they only may be others.
    ``change``: by what share responses became longer from the window's beginning to its end.
    ``pool``: how busy the connections were; ``by_waits``: the promise was broken, and without the
    waits for a free connection it would have been kept. No trace alone knows these either.
    ``disturbed``: by the audit others took too much of the cores in use; no trace alone knows it.
    ``alone``: what kept a role beside the readers from going on as it should, in two words; empty:
    nothing did. The readers had it easier then, so a promise that was kept says nothing.
    ``lasted_s``: warm-up and window. ``stalls_s``: how long the server gave no reply, each time;
    ``stalled``: these alone broke the promise (stalls.py). ``spells_s``: how long its warm-up was
    slow, each time, by the time condition that allows the least (spells.py); ``slowed_s``: how long
    a part of its window was, in which replies came more slowly (slowed.py). ``sways``: the
    variance of what the queue grew by, for each request that was due. ``levelled``: it grew, but
    not in the end.
    """

    kept: tuple[Kept, ...]
    offered_per_s: float
    answered_per_s: float
    achieved: float
    achieved_low: float
    achieved_high: float
    own_fault: bool
    verdict: Verdict
    change: Interval | None = None
    disturbed: bool = False
    alone: str = ""
    lagging: bool = False
    others: int = 0
    sampled: int = 0
    by_sizes: bool = False
    pool: Pool | None = None
    by_waits: bool = False
    lasted_s: float = 0.0
    stalls_s: tuple[float, ...] = ()
    stalled: bool = False
    spells_s: tuple[float, ...] = ()
    slowed_s: float = 0.0
    sways: float = 0.0
    levelled: bool = False

    @property
    def requests(self) -> int:
        """Of the condition that is about most of them."""
        return max((k.requests for k in self.kept), default=0)

    @property
    def changed(self) -> bool:
        """Whether more replies are others than may be, so that its times are of other work."""
        return self.others > ERRORS_INVALID * self.sampled

    @property
    def seems_kept(self) -> bool:
        """As far as one can see, without asking for 95 %."""
        return self.achieved_high >= throughput.KEEPS_UP and all(
            k.share < k.condition.allowed for k in self.kept
        )

    @property
    def kept_alone(self) -> bool:
        """Whether the promise was kept, and not beside what should have gone on meanwhile."""
        return bool(self.alone) and self.seems_kept

    @property
    def says_nothing(self) -> bool:
        """Whether the window says nothing about the system."""
        spoilt = self.own_fault or self.disturbed or self.changed or self.kept_alone
        return spoilt or not self.offered_per_s


def judge(promise: tuple[Condition, ...], trace: Trace) -> Judged:
    """Whether the requests that were due within the window keep the promise."""
    found = _with_stalls(_as_it_was(promise, trace), trace)
    change = steadiness(trace, closed=False).changes.get("window")
    if change is not None:
        found = replace(found, change=change.interval)
    if not _lagging(promise, trace):
        return found
    found = replace(found, lagging=True)
    if found.seems_kept:
        return found
    on_time = _as_it_was(promise, lag.taken_out(trace))
    if on_time.seems_kept:
        return replace(found, own_fault=True)
    # Broken either way, but only as surely as with the lateness taken out.
    sure = found.verdict == on_time.verdict == "fails"
    return replace(found, verdict="fails" if sure else "unclear")


def others_at_most(others: int, sampled: int) -> float:
    """The share of all replies that may be other answers: the exact upper limit; 0 of none seen."""
    if not others:
        return 0.0
    return share_at_most((1 - _LEVEL) / 2, others, sampled)


def strictest_time(conditions: Iterable[Condition]) -> Condition | None:
    """Of the conditions on the times of all requests the one that allows the least to be late."""
    of_all = (c for c in conditions if c.limit_ns is not None and not c.of_class)
    return min(of_all, key=lambda c: c.allowed, default=None)


def _with_stalls(found: Judged, trace: Trace) -> Judged:
    found = replace(found, lasted_s=trace.window[1] / 1e9)
    limits = [k.condition.limit_ns for k in found.kept if k.condition.limit_ns is not None]
    if strictest := strictest_time(k.condition for k in found.kept):
        limit_ns = strictest.limit_ns or 0.0
        found = replace(found, spells_s=spells.before_window(limit_ns, trace))
        if not found.seems_kept:
            found = replace(found, slowed_s=slowed.longest_s(limit_ns, trace))
    lengths = stalls.lengths_s(min(limits), trace) if limits else ()
    if not lengths:
        return found
    stalled = any(
        stalls.decide(k.condition, lengths, k.share, found.achieved, trace.window_s)
        for k in found.kept
        if k.condition.limit_ns is not None
    )
    return replace(found, stalls_s=lengths, stalled=stalled)


def seems_kept(promise: tuple[Condition, ...], trace: Trace) -> bool:
    """Whether a trace keeps the promise as far as one can see, whoever made its requests late."""
    return _as_it_was(promise, trace).seems_kept


def builds_up(condition: Condition, trace: Trace) -> bool:
    """Whether waits of half the limit hint at more of the limit than a lucky window had.

    Long waits have an exponential tail (Kingman, 1962), so as a share p of them is above half the
    limit, p² is above it; and there are more clusters of the shorter ones. Where these do not
    cluster, it is the requests that take so long, and nothing follows from them.
    """
    if condition.limit_ns is None:
        return False
    inside = trace.measured()
    own = _of_class(condition, trace, inside)
    due, response = trace.due[inside][own], _responses(trace)[own]
    if not due.size:
        return False
    edges = np.linspace(*trace.window, throughput.SLICES + 1)
    late = response >= condition.limit_ns / 2
    effect = within.design_effect(due, late, edges)
    effective = due.size / effect
    x = float(late.mean()) * effective
    high = share_at_most((1 - _LEVEL) / 2, x, effective)
    return effect >= CLUSTERED and high >= math.sqrt(condition.allowed)


def _responses(trace: Trace) -> NDArray[np.int64]:
    """Of the requests due in the window; what never ended well is later than anything."""
    inside = trace.measured()
    due, done = trace.due[inside], trace.done[inside]
    ended = (done >= 0) & (trace.outcome[inside] == 0)
    return np.where(ended, np.maximum(done - due, 1), _NEVER)


def _as_it_was(promise: tuple[Condition, ...], trace: Trace) -> Judged:
    """The window against the promise, whoever made its requests late."""
    inside = trace.measured()
    due, response = trace.due[inside], _responses(trace)
    edges = np.linspace(*trace.window, throughput.SLICES + 1)
    kept = []
    for condition in promise:
        own = _of_class(condition, trace, inside)
        kept.append(_kept(condition, due[own], response[own], edges))
    found = throughput.achieved(trace)
    share = found.share if found is not None else 0.0
    span = found.in_the_long_run() if found is not None else None
    low, high = (span.low, span.high) if span is not None else (0.0, 0.0)
    verdicts = [k.verdict for k in kept]
    verdict: Verdict = "unclear"
    if not due.size or "fails" in verdicts or high < throughput.KEEPS_UP:
        verdict = "fails"
    elif share >= throughput.KEEPS_UP and all(v == "holds" for v in verdicts):
        verdict = "holds"
    offered, answered = throughput.offered(trace).value, throughput.answered(trace).value
    of_all = (offered, answered, share, low, high)
    sways = found.per_request() if found is not None else 0.0
    levelled = found is not None and throughput.levelled(found, trace)
    return Judged(
        tuple(kept), *of_all, own_fault=False, verdict=verdict, sways=sways, levelled=levelled
    )


def _of_class(condition: Condition, trace: Trace, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which of the requests in ``rows`` a condition is about."""
    query = trace.query[rows]
    if not condition.of_class:
        return np.ones(query.size, np.bool_)
    if trace.classes is None:
        return np.zeros(query.size, np.bool_)
    return trace.classes.rows(query, condition.of_class)


def _kept(
    condition: Condition, due: NDArray[np.int64], response: NDArray[np.int64], edges: Floats
) -> Kept:
    n = due.size
    if not n:
        return Kept(condition, 0, 0.0 if condition.of_class else 1.0, 0.0, 1.0, 0.0)
    failed = response >= (_NEVER if condition.limit_ns is None else condition.limit_ns)
    share = float(failed.mean())
    effect = within.design_effect(due, failed, edges)
    quantile = spread = None
    slowest_at = 0.5
    if condition.limit_ns is not None:
        ordered = np.sort(response)
        quantile = _upper(ordered, condition.allowed)
        slow = response >= quantile
        slowest = within.design_effect(due, slow, edges)
        slowest_at = float((due[slow].mean() - edges[0]) / (edges[-1] - edges[0]))
        if share < condition.allowed:
            # Too few late ones to see how they cluster: the slowest of this window cluster alike.
            effect = max(effect, slowest)
        quantile, spread = _spread(ordered, condition.allowed, slowest)
    effective = n / effect
    x = share * effective
    tail = (1 - _LEVEL) / 2
    low, high = share_at_least(tail, x, effective), share_at_most(tail, x, effective)
    of, late = (np.histogram(at, edges)[0] for at in (due, due[failed]))
    for_part = float((late > condition.allowed * of).sum() / np.count_nonzero(of))
    varies = _varies(response, condition.limit_ns)
    first = due < (edges[0] + edges[-1]) / 2
    first_half = int(first.sum()), int(failed[first].sum())
    times = quantile, spread, for_part, varies
    return Kept(condition, n, share, low, high, effective, *times, first_half, slowest_at)


def _varies(response: NDArray[np.int64], limit_ns: float | None) -> float:
    """What takes longer than the limit is late by itself; what builds up a queue to it is less."""
    if limit_ns is None:
        return 0.0
    took = np.minimum(response[response < _NEVER], limit_ns).astype(np.float64)
    return float(took.var() / took.mean() ** 2) if took.size else 0.0


def _upper(ordered: NDArray[np.int64], tail: float) -> float:
    """The nearest-rank quantile above which a share ``tail`` of the values is."""
    rank = math.ceil(ordered.size * (1 - tail) - 1e-9)
    return float(ordered[min(ordered.size, max(1, rank)) - 1])


def _spread(
    ordered: NDArray[np.int64], tail: float, effect: float
) -> tuple[float | None, float | None]:
    """The quantile and the standard error of its logarithm: half the way between the quantiles
    whose tails are one standard error (of the logarithm of the tail) thicker and thinner."""
    error = math.sqrt((1 - tail) / tail * effect / ordered.size)
    quantile = _upper(ordered, tail)
    if quantile >= _NEVER:
        return None, None
    thin, thick = (_upper(ordered, min(1.0, tail * math.exp(k * error))) for k in (-1, 1))
    thin = thin if thin < _NEVER else quantile * quantile / max(1.0, thick)
    return quantile, math.log(max(thin, 1.0) / max(thick, 1.0)) / 2


def _lagging(promise: tuple[Condition, ...], trace: Trace) -> bool:
    """Whether more requests than may be late were sent late by the client by a tenth of a limit."""
    sent = trace.measured() & (trace.sent >= 0)
    if not sent.any():
        return False
    late = lag.own(trace)[sent]
    for c in promise:
        own = late[_of_class(c, trace, sent)]
        if c.limit_ns is None or not own.size:
            continue
        if float((own >= OWN_SHARE * c.limit_ns).mean()) >= c.allowed:
            return True
    return False
