"""Normal, and how long until it: bounds from a time before a disturbance, looked for after it.

Normal is defined by what was before: over a span of time nearly all requests are answered well, as
a whole, and within a limit; in a closed loop they are also nearly as many. The limit is twice the
p99 of before; a p99 that is far from the median would let all requests become slower, so most may
not take twice the median either. With a promise, normal is that each of its conditions is kept, by
those requests that it is about. Answers are normal again from the first request on with which such
a span begins. The span holds so many requests that chance alone seldom makes it look abnormal, and
it is moved in small steps, which are the resolution.

A span that is normal says nothing of what comes later: how much of the rest was not is counted too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.trial.latency import minimum_samples
from searchbench.analysis.trial.measured import NEVER, Trace
from searchbench.workload.load_table import Condition

TIMES_P99 = 2.0  # of the p99 before: the limit, where no promise says one
TIMES_MEDIAN = 2.0  # of the median before: most requests take less, where no promise says a limit
ALLOWED = 0.02  # of the requests of a span may fail, or take longer
RATE = 0.9  # of the good answers a second of before, in a closed loop at least
SPAN_S, REQUESTS = 1.0, 200  # of a span, at least, by the rate of before
OVER = 2.0  # requests of a span that may be over the limit, at least, by the share that may
STEPS = 20  # of a span
SLICES = 20  # of the time before
RARELY = 0.5  # of the time after a normal span that is not normal: more, and it came by chance
LAST, CHANGED = 0.25, 1.5  # part of the time before; times by which it may differ from all of it
SURELY = 3.0  # standard errors of that
MOSTLY = 0.9  # of the spans before must be normal, else the bounds say nothing
OFTEN = 0.5  # of them, where a promise was kept over all of the time before
BY_CHANCE = 1.5  # times the share of spans before that were not normal: no more than chance

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bound:
    """At most a share ``allowed`` of the requests fail or take ``limit_s`` or longer (infinite:
    fail). ``text``: what it is, as a condition of a promise. ``of_class``: of the requests of this
    class alone; empty: of all.
    """

    limit_s: float
    allowed: float
    text: str
    of_class: str = ""


@dataclass(frozen=True, slots=True)
class Normal:
    """What is normal: each of ``bounds``, over a span of ``span_s``; known to within ``step_s``.

    ``good_per_s``: good answers a second, at least, in a closed loop, else 0. Good are those within
    the limits that are theirs (``limits_s``). ``clients``: of a closed loop, else 0; no more of
    them than the first bound allows may be without an answer for the whole span. ``usual``: the
    share of the spans before that were not so, by chance.
    """

    bounds: tuple[Bound, ...]
    good_per_s: float
    span_s: float
    step_s: float
    clients: int = 0
    usual: float = 0.0

    @property
    def limit_s(self) -> float:
        """That which the fewest may exceed; infinite: there is none."""
        return next((bound.limit_s for bound in deciding(self.bounds)), math.inf)


@dataclass(frozen=True, slots=True)
class Again:
    """``after_s``: until answers were normal; infinite: they were not, in ``looked_s``.

    ``later``: the share of the time from then on in which they were not; of all of it, where they
    were not normal.
    """

    after_s: float
    looked_s: float
    later: float


class Answers:
    """The requests of a trace by when they were due, good or not."""

    def __init__(self, trace: Trace, bounds: Sequence[Bound]) -> None:
        order = np.argsort(trace.due, kind="stable")
        self.due: Ints = trace.due[order]
        good = in_time(trace, limits_s(trace, bounds))[order]
        self.good_due: Ints = self.due[good]
        self._good = np.concatenate([[0], np.cumsum(good)])
        self._each: list[tuple[float, Ints, Ints]] = []
        for bound in bounds:
            own = _of_class(trace, bound.of_class)
            bad = own & ~in_time(trace, bound.limit_s)
            sums = [np.concatenate([[0], np.cumsum(one[order])]) for one in (own, bad)]
            self._each.append((bound.allowed, sums[0], sums[1]))
        # From when to when each client had no answer, whenever it had no good one.
        bad = ~good[np.argsort(order)]
        nothing = np.empty(0, np.int64)
        self._waits = nothing, nothing
        if trace.client is not None:
            self._waits = trace.due[bad], asks_again(trace)[bad]

    def normal(self, at_ns: Ints, normal: Normal) -> NDArray[np.bool_]:
        """Of each span that begins then. A class without a request in it breaks no bound."""
        end_ns = at_ns + round(normal.span_s * 1e9)
        first, last = (np.searchsorted(self.due, each) for each in (at_ns, end_ns))
        good = self._good[last] - self._good[first]
        found: NDArray[np.bool_] = (last > first) & (good >= normal.good_per_s * normal.span_s)
        for allowed, own, bad in self._each:
            found &= bad[last] - bad[first] <= allowed * (own[last] - own[first])
        if normal.clients:
            span_ns = round(normal.span_s * 1e9)
            begun, over = self._waits
            long = over - begun >= span_ns
            waiting = np.searchsorted(np.sort(begun[long] + span_ns), end_ns, "right")
            waiting -= np.searchsorted(np.sort(over[long]), end_ns)
            found &= waiting <= normal.bounds[0].allowed * normal.clients
        return found


def asks_again(trace: Trace) -> Ints:
    """When the client of each request of a closed loop asked for the next one; never: the greatest
    number. The clients must be known.
    """
    assert trace.client is not None
    order = np.lexsort((trace.due, trace.client))
    client, due = trace.client[order], trace.due[order]
    on = np.append(client[1:] == client[:-1], False)
    found = np.empty(due.size, np.int64)
    found[order] = np.where(on, np.append(due[1:], 0), np.iinfo(np.int64).max)
    return found


def in_time(trace: Trace, limit_s: float | Floats) -> NDArray[np.bool_]:
    """Which requests were answered well, as a whole and within the limit (one, or of each)."""
    found: NDArray[np.bool_] = (
        (trace.outcome == 0) & (trace.done != NEVER) & (trace.done - trace.due < limit_s * 1e9)
    )
    return found


def limits_s(trace: Trace, bounds: Sequence[Bound]) -> Floats:
    """What each request has to stay within to be in time; infinite where nothing is said of it.

    Of the limits that are about it, that which the fewest may exceed: a median is for most.
    """
    found = np.full(trace.due.size, math.inf)
    for bound in reversed(deciding(bounds)):
        found[_of_class(trace, bound.of_class)] = bound.limit_s
    return found


def promised(promise: Sequence[Condition]) -> tuple[Bound, ...]:
    """The conditions of a promise."""
    return tuple(
        Bound(math.inf if c.limit_ns is None else c.limit_ns / 1e9, c.allowed, c.text, c.of_class)
        for c in promise
    )


def normal_before(
    trace: Trace, start_ns: int, end_ns: int, *, closed: bool,
    promise: Sequence[Condition] = (), until_ns: int | None = None,
) -> Normal | str:  # fmt: skip
    """What is normal, by the requests due in a time before; why it is not known, if it is not.

    ``until_ns``: when the disturbance came, if the time before is one in which nearly all requests
    had ended by then. What is normal must also hold in the rest of it: one that was under way for
    longer than the limit is late, whatever came of it.
    ``promise``: its conditions, which then say what is normal; beside what was before, where none
    of them is about times.
    """
    there = (trace.due >= start_ns) & (trace.due < end_ns)
    seconds = (end_ns - start_ns) / 1e9
    well = there & (trace.outcome == 0) & (trace.done != NEVER)
    n, least = int(np.count_nonzero(well)), minimum_samples(0.99)
    if n < least:
        return (
            f"there were only {n:,} good answers before it, and to know what is normal takes at "
            f"least {least:,}"
        )
    bounds = promised(promise)
    if not deciding(bounds):
        bounds = (*_of_before((trace.done - trace.due)[well]), *bounds)
    span_s = SPAN_S
    for bound in bounds:
        rate = int(np.count_nonzero(there & _of_class(trace, bound.of_class))) / seconds
        if not rate:
            return f"no request of class {bound.of_class} was due before it"
        span_s = max(span_s, max(REQUESTS, OVER / bound.allowed) / rate)
        if span_s > seconds:
            of = f" ({bound.text})" if promise else ""
            return (
                f"there were only {seconds:.3g} s before it, and at this rate it takes at least "
                f"{span_s:.2g} s to know what is normal{of}"
            )
    clients = np.unique(trace.client[there]).size if closed and trace.client is not None else 0
    good = _good_at_least(trace, bounds, (start_ns, end_ns), span_s) if closed else 0.0
    normal = Normal(bounds, good, span_s, span_s / STEPS, clients)
    if until_ns is not None:
        end_ns = max(end_ns, until_ns - round(normal.limit_s * 1e9))
    steps = _steps(start_ns, end_ns, normal)
    held = float(Answers(trace, bounds).normal(steps, normal).mean())
    if promise and not all(_kept(trace, bound, start_ns, end_ns) for bound in bounds):
        return "before it the promise was not kept, so there is no normal to come back to"
    if held < (OFTEN if promise else MOSTLY):
        return "before it answers varied too much, so there is no normal to come back to"
    normal = replace(normal, usual=1 - held)
    if not promise and (why := _changing(trace.due[well], (trace.done - trace.due)[well])):
        return why
    return normal


def _good_at_least(
    trace: Trace, bounds: Sequence[Bound], between_ns: tuple[int, int], span_s: float
) -> float:
    """Good answers a second of a span, at least: ``RATE`` of those of before, less what both the
    rate before and that of a span scatter by, as counts of slices do.
    """
    good = in_time(trace, limits_s(trace, bounds))
    counts = np.histogram(trace.due[good], np.linspace(*between_ns, SLICES + 1))[0]
    seconds = (between_ns[1] - between_ns[0]) / 1e9
    rate = float(counts.sum()) / seconds
    scatter = float(counts.var(ddof=1)) / max(1.0, float(counts.mean()))
    each = scatter * rate * (1 / span_s + 1 / seconds)  # the variance of the difference of both
    return max(0.0, RATE * rate - 2 * math.sqrt(each))


def _kept(trace: Trace, bound: Bound, start_ns: int, end_ns: int) -> bool:
    """Whether a bound was kept over all of a time. Near its limit, spans break it by chance."""
    own = (trace.due >= start_ns) & (trace.due < end_ns) & _of_class(trace, bound.of_class)
    return (
        bool((~in_time(trace, bound.limit_s)[own]).mean() <= bound.allowed) if own.any() else True
    )


def _changing(due: Ints, responses: Ints) -> str:
    """That responses were still becoming shorter or longer, if they were: by their mean logarithm
    in the last part of the time and in all of it.
    """
    last = due >= np.quantile(due, 1 - LAST)
    logs = np.log(np.maximum(responses, 1))
    times = math.exp(float(logs.mean() - logs[last].mean()))
    error = float(logs.std()) * math.sqrt(1 / np.count_nonzero(last) - 1 / logs.size)
    if 1 / CHANGED < times < CHANGED or abs(math.log(times)) < SURELY * error:
        return ""
    how = "shorter" if times > 1 else "longer"
    return (
        f"before it response times were still becoming {how}, so there is no normal to come back to"
    )


def _of_before(responses: Ints) -> tuple[Bound, ...]:
    """Twice the p99, and twice the median, of what was before."""
    limit_s = TIMES_P99 * float(np.quantile(responses, 0.99)) / 1e9
    slow_s = TIMES_MEDIAN * float(np.median(responses)) / 1e9
    # Half of those that did not before: a median between two kinds of requests is no bound.
    slow = (1 + float((responses >= slow_s * 1e9).mean())) / 2
    return (
        Bound(limit_s, ALLOWED, "twice the p99 before"),
        Bound(min(slow_s, limit_s), slow, "twice the median before"),
    )


def deciding(bounds: Sequence[Bound]) -> list[Bound]:
    """Those with limits, that which the fewest may exceed first."""
    return sorted((b for b in bounds if math.isfinite(b.limit_s)), key=lambda b: b.allowed)


def _of_class(trace: Trace, name: str) -> NDArray[np.bool_]:
    """Which requests are of a class; empty: all."""
    if not name:
        return np.ones(trace.due.size, np.bool_)
    if trace.classes is None:
        return np.zeros(trace.due.size, np.bool_)
    return trace.classes.rows(trace.query, name)


def again(trace: Trace, normal: Normal, since_ns: int, end_ns: int) -> Again | str:
    """When answers were normal, of those due from ``since_ns`` to ``end_ns``; why that is not
    known, if it is not."""
    steps, looked_s = _steps(since_ns, end_ns, normal), max(0.0, (end_ns - since_ns) / 1e9)
    if not steps.size:
        return (
            f"only {looked_s:.2g} s were left after it, and it takes {normal.span_s:.2g} s to tell "
            "whether answers are normal"
        )
    answers = Answers(trace, normal.bounds)
    held = answers.normal(steps, normal)
    first, later = int(np.argmax(held)), float((~held).mean())
    rest = float((~held[first:]).mean())
    if not held.any() or rest > max(RARELY, BY_CHANCE * normal.usual):
        return Again(math.inf, looked_s, later)
    # A span may begin with a few that were not in time, or with nothing at all.
    at = np.searchsorted(answers.good_due, steps[first])
    begun_ns = int(answers.good_due[min(at, len(answers.good_due) - 1)])
    by_chance = rest <= BY_CHANCE * normal.usual
    return Again((begun_ns - since_ns) / 1e9, looked_s, 0.0 if by_chance else rest)


def _steps(start_ns: int, end_ns: int, normal: Normal) -> Ints:
    """Where spans begin that end by then; the first in any case, if there is room for it."""
    last_ns = end_ns - round(normal.span_s * 1e9)
    return np.arange(start_ns, max(start_ns - 1, last_ns) + 1, max(1, round(normal.step_s * 1e9)))
