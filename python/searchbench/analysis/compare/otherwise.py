"""What the requests that are answered otherwise could make of a ratio over all requests.

At a rate, and in a search for capacity, every request counts, so one that is answered with nothing
at once is a gain. The ratio is held against the one that is left if the winner had taken as long on
these requests as its rival; what the rival never answered would have been late. And the time that a
server does not work on them is free for all others, which then wait less. So a ratio over the rest
alone is held against what these could make of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.compare import waiting
from searchbench.analysis.compare.standing import MOST
from searchbench.analysis.judgement import Estimate
from searchbench.analysis.stats import within
from searchbench.analysis.trial import latency
from searchbench.analysis.trial.measured import Measured
from searchbench.record.trial import Load

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_SEEN = 0.9  # of a cycle, that waiting for others is taken to be at most
_ABOVE = math.nextafter(1, 2)  # a ratio of which the second is the winner
UNLOADED = 0.25  # quantile of a request's own times that has hardly any waiting in it
SHARED = "share the server with the rest"  # in whatever says that these may have made a ratio


def chosen(query: NDArray[np.uint32], other: Ints) -> NDArray[np.bool_]:
    """Which requests are among the ``other``."""
    table = np.zeros(int(max(query.max(initial=0), other.max(initial=0))) + 1, dtype=bool)
    table[other] = True
    return table[query]


def floor(
    winner: Measured, rival: Measured, other: Ints, metric: str, slowed: float = 1.0
) -> float:
    """The ratio that ``other`` could make; infinite: any. ``metric``: throughput, or a quantile,
    mean or maximum of times at a rate. ``slowed``: by what factor the rest would be slowed if the
    winner worked on ``other`` too (``by_the_queue``).
    """
    if not other.size or not winner.query.size or not rival.query.size:
        return 1.0
    share = of_work(rival, other)
    kind, _, name = metric.partition("_")
    if kind not in ("service", "response"):
        return slowed / (1 - share) if share < 1 else math.inf
    # Without them all others would have waited less, nobody knows how much.
    if share > 1 - MOST or math.isinf(slowed):
        return math.inf
    own = _times(winner, kind)
    at = chosen(winner.query, other)
    as_long = own * slowed
    as_long[at] = _as_long(own[at], winner.query[at], rival, kind)
    before, after = _value(own, name), _value(as_long, name)
    return max(1.0, after / before) if before > 0 else math.inf


def by_the_queue(
    winner: Measured, rival: Measured, load: Load, other: Ints, metric: str, *, seen: bool = False
) -> float:
    """The ratio over all requests but ``other`` that these could make, for the rest shares the
    server with them; infinite: any. ``load``: the rival's. ``seen``: of throughput, as far as times
    show it, without what asking in turns may hide; never infinite.

    One of ``other`` makes those after it wait, and leaves them caches without what they need, or
    garbage to collect. Of the latter nothing is seen from outside; it is taken to cost no more than
    ``other`` themselves take longer than the rest, at the rival and than at the winner.
    In a closed loop a request waits at most behind one of each other client; of these, ``other``
    have their share, and each may cost it that much too. Where clients ask in turns, one of
    ``other`` finds fewer of its kind before it than the rest do, and so seems less long than it is:
    by as many as it finds fewer, so that from one on nothing is known of it.
    At a rate, what a request takes does not show in how long it lasts, because all wait. There it
    counts who could have waited for ``other`` at all (``waiting.least_at_a_rate``).
    """
    closed, (kind, _, name) = load.kind == "closed", metric.partition("_")
    if not other.size or not (closed or kind in ("service", "response")):
        return 1.0
    rival = worked_on(rival, other)
    at = chosen(rival.query, other)
    if not at.any():
        return 1.0
    if at.all():
        return 1.0 if seen else math.inf
    share, times = float(at.mean()), _times(rival, kind)[~at]
    longer = max(0.0, _longer(rival, other) - _longer(winner, other))
    after = share / (1 - share) * longer  # by which one of the rest is slowed on average
    if closed:
        clients = load.clients or 1
        fewer = 0.0 if seen else _finds_fewer(rival, at, clients)
        if fewer >= 1:
            return math.inf
        delay = (after + (clients - 1) * share * longer) / (1 - fewer)
        if name == "":
            cycle = float(_times(rival, "response")[~at].mean()) + (load.think_s or 0.0)
            delay = min(delay, MOST_SEEN * cycle) if seen else delay
            return cycle / (cycle - delay) if delay < cycle else math.inf
        least = waiting.least(times, name, delay)
    elif rival.due_ns is None or of_work(rival, other) > 1 - MOST:
        return math.inf
    else:
        least = waiting.least_at_a_rate(times, rival.due_ns, rival.response_ns, at, name, after)
    return max(1.0, _value(times, name) / least) if least > 0 else math.inf


def worked_on(measured: Measured, other: Ints) -> Measured:
    """With those of ``other`` that failed, which stand last: the server worked on these too, and
    the rest waited for them.
    """
    failed = measured.failed
    if failed is None or not (at := chosen(failed.query, other)).any():
        return measured

    def both(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([x, y[at]])

    known = measured.due_ns is not None and failed.due_ns is not None
    return Measured(
        both(measured.query, failed.query),
        both(measured.service_ns, failed.service_ns),
        both(measured.response_ns, failed.response_ns),
        both(measured.part, failed.part),
        measured.window_s,
        due_ns=both(measured.due_ns, failed.due_ns) if known else None,  # type: ignore[arg-type]
    )


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
    """How much longer ``other`` take than the rest, in s; those that were never answered well are
    taken to have cost nothing.
    """
    at, took = chosen(measured.query, other), _times(measured, "response")
    if at.all():
        return 0.0
    return float((took[at].mean() if at.any() else 0.0) - took[~at].mean())


def of_work(measured: Measured, other: Ints) -> float:
    """The share of its work that a server did on ``other``, as far as times tell.

    All requests wait alike for a server to be free, so how much longer ``other`` take is their own;
    how long the rest take is seen where they hardly waited. That is rather too little, and the
    share then too large.
    """
    measured = worked_on(measured, other)
    at = chosen(measured.query, other)
    if not at.any() or at.all():
        return float(at.any())
    took = _times(measured, "service")
    rest = _unwaited(measured.query[~at], took[~at])
    each = max(0.0, rest + float(took[at].mean() - took[~at].mean()))
    n, of = int(np.count_nonzero(at)), at.size
    whole = n * each + (of - n) * rest
    return n * each / whole if whole > 0 else 0.0


def behind(measured: Measured, other: Ints) -> float:
    """The ratio that ``other`` could make of how much is answered at a rate that the rival, which
    is ``measured``, does not keep up with; infinite: any.

    In a queue that grows, nothing is answered at once, so how long the rest take by themselves is
    not seen. But the server is never idle, so ``other`` have at most as large a share of its work
    as of the window, as if it had one worker; with two standard errors.
    """
    measured = worked_on(measured, other)
    at, took = chosen(measured.query, other), _times(measured, "response")
    n = int(np.count_nonzero(at))
    if n < 2 or at.all():
        return math.inf if at.any() else 1.0
    error = math.sqrt(float(took[at].var()) / n + float(took[~at].var()) / (at.size - n))
    longer = max(0.0, float(took[at].mean() - took[~at].mean()) + 2 * error)
    share = n * longer / measured.window_s
    share += n / at.size * max(0.0, 1 - share)
    return 1 / (1 - share) if share < 1 else math.inf


def said(n: int, of: int, what: str = "queries") -> str:
    """Why a ratio is not resolved that is not beyond ``by_the_queue``, a clause. ``n`` of what was
    asked: answered otherwise; 0: only such as are in no ratio (of other classes, say).
    """
    which = f"the {n} of {of} {what} that they answer otherwise"
    if not n:
        which = f"{what} that they answer otherwise, none of them in the ratio,"
    return (
        f"{which} {SHARED}, and waiting behind them, or caches that "
        "they emptied, could make the whole difference; make both answer these alike, or ask both "
        "without them"
    )


def late(measured: Measured, other: Ints, limit_ns: float) -> float:
    """The share of all requests that are late for being ``other``: what these are later than the
    rest, at the same load. Those that failed are.
    """
    well, measured = measured.query.size, worked_on(measured, other)
    at = chosen(measured.query, other)
    if not at.any():
        return 0.0
    over = measured.response_ns >= limit_ns
    over[well:] = True
    rest = float(over[~at].mean()) if not at.all() else 0.0
    return float(at.mean()) * max(0.0, float(over[at].mean()) - rest)


def least(ratio: Estimate) -> float:
    """By how much the better side is better at least, above 1; 1 if it may not be."""
    low, high = ratio.value, ratio.value
    if ratio.interval is not None:
        low, high = ratio.interval.low, ratio.interval.high
    return max(1.0, low if ratio.value > 1 else 1 / high if high > 0 else 1.0)


def hides(ratio: Estimate, floor: float) -> bool:
    """Whether the rest surely became slower if ``floor`` is what others made of the ratio: also the
    upper end of its interval is then a loss. Of what is not known nothing is hidden.
    """
    span = ratio.interval
    return span is not None and span.high < floor < math.inf


def gain(
    made: Callable[..., tuple[float, str]], ratio: Estimate, *, cancel: bool
) -> tuple[float, str]:
    """How large a gain other answers could make, and how, as ``made`` of a ratio above 1 says.
    ``cancel``: where none is told, such a gain may have made up for a loss of all the rest.
    """
    told = ratio.value > 1 and (ratio.interval is None or within.resolved(ratio))
    if cancel and not told:
        most, how = made(ratio=replace(ratio, value=max(ratio.value, _ABOVE)), seen=True)
        if hides(ratio, most):
            return most, how
    return made(ratio=ratio) if ratio.value > 1 else (1.0, "")


def could_make(ratio: Estimate, floor: float) -> bool:
    """Whether what could make a ratio of ``floor`` could make this one: if it leaves out 1, as
    little of it as its interval allows; else as large as it looks.
    """
    size = max(ratio.value, 1 / ratio.value)
    return size > 1 < floor and (least(ratio) if within.resolved(ratio) else size) <= floor


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
