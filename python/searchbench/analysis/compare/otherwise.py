"""What the requests that are answered otherwise could make of a ratio over all requests.

At a rate, and in a search for capacity, every request counts, so one that is answered with nothing
at once is a gain. The ratio is held against the one that is left if the winner had taken as long on
these requests as its rival; what the rival never answered would have been late. And the time that a
server does not work on them is free for all others, which then wait less.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.compare.standing import MOST
from searchbench.analysis.judgement import Estimate
from searchbench.analysis.trial import latency
from searchbench.analysis.trial.measured import Measured
from searchbench.record.trial import Load

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
UNLOADED = 0.25  # quantile of a request's own times that has hardly any waiting in it
BEHIND = 2  # requests that one in the queue delays, for each that finds it there


def chosen(query: NDArray[np.uint32], other: Ints) -> NDArray[np.bool_]:
    """Which requests are among the ``other``."""
    table = np.zeros(int(max(query.max(initial=0), other.max(initial=0))) + 1, dtype=bool)
    table[other] = True
    return table[query]


def floor(winner: Measured, rival: Measured, other: Ints, metric: str) -> float:
    """The ratio that ``other`` could make; infinite: any. ``metric``: throughput of a rate that one
    does not keep up with, or a quantile, mean or maximum of times at a rate.
    """
    if not other.size or not winner.query.size or not rival.query.size:
        return 1.0
    share = of_work(rival, other)
    kind, _, name = metric.partition("_")
    if kind not in ("service", "response"):
        return 1 / (1 - share) if share < 1 else math.inf
    if share > 1 - MOST:  # without them all others would have waited less, nobody knows how much
        return math.inf
    own = _times(winner, kind)
    at = chosen(winner.query, other)
    as_long = own.copy()
    as_long[at] = _as_long(own[at], winner.query[at], rival, kind)
    before, after = _value(own, name), _value(as_long, name)
    return max(1.0, after / before) if before > 0 else math.inf


def by_the_queue(winner: Measured, rival: Measured, load: Load, other: Ints, metric: str) -> float:
    """The ratio over all requests but ``other`` that these could make, for the rest waits behind
    them; infinite: any. ``load``: the rival's.

    A lone client waits for nobody. In a closed loop a request waits at most behind those of all
    other clients, of which ``other`` have their share; each may cost it as much as it takes longer
    than the rest at the rival, and than at the winner. Where clients ask in turns, one of ``other``
    finds fewer of its kind before it than the rest do, and so seems less long than it is: by as
    many as it finds fewer, so that from one on nothing is known of it.
    A quantile can be made by as many requests as waited behind ``other``: as many as find one there
    in the time that it takes longer (Little's law), and as many again that wait for these.
    """
    closed, (kind, _, name) = load.kind == "closed", metric.partition("_")
    clients = (load.clients or 1) if closed else 0
    at = chosen(rival.query, other) if other.size else np.zeros(0, np.bool_)
    if clients == 1 or not at.any():
        return 1.0
    if at.all():
        return math.inf
    share = float(at.mean())
    longer = max(0.0, _longer(rival, other) - _longer(winner, other))
    if closed:
        fewer = _finds_fewer(rival, at, clients)
        if fewer >= 1:
            return math.inf
        longer /= 1 - fewer
        delay = clients * share * longer
        rest = float(_times(rival, "response")[~at].mean()) + (load.think_s or 0.0)
        made = rest / (rest - delay) if delay < rest else math.inf
        if name in ("", "mean"):
            return made
        if made > 1 / MOST:
            return math.inf
    elif of_work(rival, other) > 1 - MOST:
        return math.inf
    behind = BEHIND * share * at.size * longer / rival.window_s
    times = np.sort(_times(rival, kind)[~at])
    if name == "mean":  # had none of them waited
        least = _unwaited(rival.query[~at], _times(rival, kind)[~at])
        return max(1.0, float(times.mean()) / least) if least > 0 else math.inf
    q = 1.0 if name == "max" else latency.quantile_of(name)
    if behind >= q:
        return math.inf
    now, then = (times[latency.rank(times.size, of)] for of in (q, q - behind))
    return float(now / then) if then > 0 else math.inf


def _finds_fewer(measured: Measured, at: NDArray[np.bool_], clients: int) -> float:
    """How many fewer of the requests ``at`` one of them finds among those that the other clients
    sent last than any other request does; at least 0, and with two standard errors. Where it is not
    known when they were due: all that there are.
    """
    if measured.due_ns is None:
        return (clients - 1) * float(at.mean())
    own = at[np.argsort(measured.due_ns, kind="stable")]
    so_far = np.append(0, np.cumsum(own))
    end = np.arange(own.size)
    before = (so_far[end] - so_far[np.maximum(0, end - (clients - 1))]).astype(np.float64)
    error = float(before.std()) / math.sqrt(np.count_nonzero(own))
    return max(0.0, float(before[~own].mean() - before[own].mean()) + 2 * error)


def _longer(measured: Measured, other: Ints) -> float:
    """How much longer ``other`` take than the rest, in s; 0 where one of them was not asked."""
    at, took = chosen(measured.query, other), _times(measured, "response")
    return float(took[at].mean() - took[~at].mean()) if at.any() and not at.all() else 0.0


def of_work(measured: Measured, other: Ints) -> float:
    """The share of its work that a server did on ``other``, as far as times tell.

    All requests wait alike for a server to be free, so how much longer ``other`` take is their own;
    how long the rest take is seen where they hardly waited. That is rather too little, and the
    share then too large.
    """
    at = chosen(measured.query, other)
    if not at.any() or at.all():
        return float(at.any())
    took = _times(measured, "service")
    rest = _unwaited(measured.query[~at], took[~at])
    each = max(0.0, rest + float(took[at].mean() - took[~at].mean()))
    n, of = int(np.count_nonzero(at)), at.size
    whole = n * each + (of - n) * rest
    return n * each / whole if whole > 0 else 0.0


def late(measured: Measured, other: Ints, limit_ns: float) -> float:
    """The share of all requests that are late for being ``other``: what these are later than the
    rest, at the same load.
    """
    at = chosen(measured.query, other)
    if not at.any():
        return 0.0
    over = measured.response_ns >= limit_ns
    rest = float(over[~at].mean()) if not at.all() else 0.0
    return float(at.mean()) * max(0.0, float(over[at].mean()) - rest)


def least(ratio: Estimate) -> float:
    """By how much the better side is better at least, above 1; 1 if it may not be."""
    low, high = ratio.value, ratio.value
    if ratio.interval is not None:
        low, high = ratio.interval.low, ratio.interval.high
    return max(1.0, low if ratio.value > 1 else 1 / high if high > 0 else 1.0)


def _times(measured: Measured, kind: str) -> Floats:
    times = measured.service_ns if kind == "service" else measured.response_ns
    return times / 1e9


def _value(times: Floats, name: str) -> float:
    if name in ("mean", "max"):
        return float(times.mean() if name == "mean" else times.max())
    at = latency.rank(times.size, latency.quantile_of(name))
    return float(np.partition(times, at)[at])


def _unwaited(query: NDArray[np.uint32], took: Floats) -> float:
    """The mean time of requests, each by the lower quartile of those that ask the same."""
    order = np.lexsort((took, query))
    ordered = took[order]
    _, first, counts = np.unique(query[order], return_index=True, return_counts=True)
    own = ordered[first + (UNLOADED * (counts - 1)).astype(np.int64)]
    return float((own * counts).sum() / counts.sum())


def _as_long(own: Floats, query: NDArray[np.uint32], rival: Measured, kind: str) -> Floats:
    """For each request the time that the rival takes for it, at the same rank among those that ask
    the same, but no less than its own; infinite where the rival never answered it.
    """
    theirs = _times(rival, kind)
    found = np.full(own.size, math.inf)
    order, at = np.argsort(rival.query, kind="stable"), np.lexsort((own, query))
    asked = rival.query[order]
    each, first, counts = np.unique(query[at], return_index=True, return_counts=True)
    begin, end = np.searchsorted(asked, each), np.searchsorted(asked, each, side="right")
    for i, n, x, y in zip(first.tolist(), counts.tolist(), begin.tolist(), end.tolist(),
                          strict=True):  # fmt: skip
        if y > x:
            ranks = (np.arange(n) + 0.5) / n
            rows = at[i : i + n]
            found[rows] = np.maximum(np.quantile(theirs[order[x:y]], ranks), own[rows])
    return found
