"""Times in which a server gave no reply at all, though requests waited for one.

A hang at the beginning of a drive lies between no two replies. In a closed loop no latency knows of
it either: what waits from the warm-up into the window was due before the window, so that the rate
is that of less time, and all times in it look as usual.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.capacity import lag
from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.words import percent, plural
from searchbench.record import Trial

KIND = "stalls"
USUAL, LONGER = 0.999, 10.0  # a stall is so many times as long as this quantile of all gaps
CLIENTS = 0.5  # of a gap: if a request was sent so late, the client itself was at rest
LEAST_S = 0.2  # collectors and schedulers pause for less; that moves windows of seconds little
SOON = 0.05  # of the replies: one that takes longer may have waited itself
ALIKE = 1.003  # two times that differ by less are the same
SHARE = 0.05  # of the window: a smaller change counts as none
WAITING = {True: 2, False: 10}  # requests, in a closed loop and else: one slow query is no stall
FEWEST = 20  # replies, below which it is not known what is usual

Ints = NDArray[np.int64]
Row = tuple[str, Literal["warning"], str, str, str]


def gaps(trace: Trace) -> tuple[Ints, Ints]:
    """Begin and end, in ns, of each time without a reply while requests wait; in their order.

    One for each reply: it begins with the reply before, or when the oldest request was sent that
    waits still; the first when a reply to the first request was to be expected (as long after it as
    the soonest replies take), be that one ever answered or not.
    """
    replied = np.flatnonzero((trace.done >= 0) & (trace.sent >= 0))
    order = replied[np.argsort(trace.done[replied], kind="stable")]
    end, sent = trace.done[order], trace.sent[order]
    since = np.minimum.accumulate(sent[::-1])[::-1]
    if end.size:
        since[0] = trace.sent[trace.sent >= 0].min() + _expected(sent, end - sent)
        since[0] = min(int(since[0]), int(end[0]))
    return np.maximum(since, np.concatenate([since[:1], end[:-1]])), end


def _expected(sent: Ints, took: Ints) -> int:
    """After how many ns the first reply was to be expected: as late as the soonest of all come.

    0 where the first request took longer than nearly all others: so it does where the server slept
    when the drive began, since who comes later waits for less of that.
    """
    soonest, latest = np.quantile(took, [SOON, 1 - 2 * SOON])
    first = int(took[np.argmin(sent)])
    return int(soonest) if first <= ALIKE * latest else 0


def long(begin: Ints, end: Ints, least_ns: float) -> list[int]:
    """Which of ``gaps`` are longer than ``least_ns`` and than usual ones."""
    lengths = end - begin
    if lengths.size < 2:
        return []
    usual = float(np.quantile(lengths, USUAL, method="lower"))
    found: list[int] = np.flatnonzero(lengths > max(least_ns, LONGER * usual)).tolist()
    return found


def within(trace: Trace, closed: bool) -> list[tuple[int, int]]:
    """Begin and end (ns) of the stalls that reach into the window.

    Several requests wait through each, and none of them for the client, which may be at rest.
    """
    begin, end = gaps(trace)
    if end.size < FEWEST:
        return []
    late, found = lag.own(trace), []
    for at in long(begin, end, LEAST_S * 1e9):
        since, until = int(begin[at]), int(end[at])
        if since >= trace.window[1] or until <= trace.window[0]:
            continue
        waits = (trace.due >= since) & (trace.due < until)
        if closed:  # each client has one on its way
            waits = (trace.sent >= 0) & (trace.sent < until)
            waits &= (trace.done >= until) | ((trace.done < 0) & (trace.sent >= since))
        if np.count_nonzero(waits) < WAITING[closed]:
            continue
        if late[waits].max() < CLIENTS * (until - since):
            found.append((since, until))
    return found


def share(trace: Trace, closed: bool) -> float:
    """Of the window, in stalls."""
    return _lost_ns(within(trace, closed), trace) / max(1, trace.window[1] - trace.window[0])


def _lost_ns(found: list[tuple[int, int]], trace: Trace) -> int:
    start, stop = trace.window
    return sum(min(until, stop) - max(since, start) for since, until in found)


def stalls(trial: Trial, trace: Trace) -> Iterator[Row]:
    """The finding of the audit."""
    closed = trial.load.kind == "closed"
    found = within(trace, closed)
    lost_s = _lost_ns(found, trace) / 1e9
    if lost_s < SHARE * trace.window_s or not found:
        return
    n, longest_s = len(found), max(until - since for since, until in found) / 1e9
    number = f"no reply for {lost_s:.2g} s of {trace.window_s:.3g} s"
    if n > 1 or longest_s > 1.01 * lost_s:
        number += f", in {n} stalls of" if n > 1 else ", in a stall of"
        number += f" {plural(n, '', 'up to ')}{longest_s:.2g} s"
    if not np.any((trace.done >= 0) & (trace.done <= found[0][0])):
        number += ", from the first request on"
    meaning = "Requests waited, and the server answered none of them. "
    if closed:
        meaning += (
            f"The rate is {percent(lost_s / trace.window_s)} lower by that. Each client waited for "
            "one reply meanwhile, so the latencies hardly show it, or not at all if it began "
            "before the window."
        )
    else:
        meaning += "How late the slowest requests were depends on how often this happens."
    yield (
        "stalls",
        "warning",
        number,
        meaning + " One trial does not show how often that happens.",
        "See the server's log at that time: a collector, a merge, something loaded. A longer "
        "warm-up if it is only slow at first, else more trials or longer ones.",
    )
