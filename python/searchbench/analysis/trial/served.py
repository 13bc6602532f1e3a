"""Whether a closed loop's clients were all served, or the server answered some and let others wait.

A client that waits all through the window for one reply was due before it, so no latency and no
error of the window knows of it, and Little's law counts it as in flight. What is then measured is
a system with fewer clients than it was to have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Finding
from searchbench.analysis.trial.measured import NEVER, Trace
from searchbench.analysis.trial.throughput import LITTLE_TOLERANCE
from searchbench.analysis.words import plural
from searchbench.record import Record, Trial

UNSERVED = "clients not served"
WAITED = 0.5  # of the window, for which a client at least waited, before it counts as not served
LITTLE_OF_IT = 0.10  # of an even share of the replies, below which a client got hardly any
LEAST = 20  # replies of an even share, or to the same queries: with fewer it may be by chance
SLOW = 0.5  # of the window: where replies take so long, a client may rightly have had none
_WAITING = ("timed_out", "unfinished")  # outcomes of requests that were not answered in their time

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def findings(record: Record, trial: Trial, trace: Trace) -> tuple[Finding, ...]:
    """That clients of a closed loop got no reply within the window, or hardly any; else empty.

    Nothing where nobody got one: then it is not some clients that were left out.
    """
    clients, (start, end) = trial.load.clients or 1, trace.window
    came = (trace.done >= start) & (trace.done < end)
    if trial.load.kind != "closed" or clients < 2 or not came.any():
        return ()
    columns = record.samples(trial.trial, ["connection", "connect"])
    connection: NDArray[np.uint16] = columns.column("connection").to_numpy()
    connect: Ints = columns.column("connect").fill_null(NEVER).to_numpy()
    under_way = _under_way_ns(trial, trace, connect)
    replies = np.bincount(connection[came], minlength=int(connection.max()) + 1)
    waited = np.bincount(connection, under_way, replies.size) > WAITED * (end - start)
    none = waited & (replies == 0)
    even = float(replies.sum()) / clients
    few = waited & (replies > 0) & (replies < LITTLE_OF_IT * even)
    # With several endpoints a client has a connection to each, and replies are of connections.
    if even < LEAST or replies.size > clients:
        few[:] = False
    found = []
    if none.any():
        found.append(_unserved(trial, trace, connection, none, under_way > 0))
    if few.any():
        theirs = _longest_of_others(trace, connection, none | few, under_way > 0)[0]
        if theirs < SLOW * (end - start):
            found.append(_uneven(trial, few, replies, even))
    return tuple(found)


def _under_way_ns(trial: Trial, trace: Trace, connect: Ints) -> Ints:
    """For how much of the window each request was under way, in ns.

    One that was never answered is so until its timeout, also while it waited to be let in.
    """
    start, end = trace.window
    began = np.where(trace.sent >= 0, trace.sent, np.where(connect >= 0, connect, trace.due))
    given_up = np.full_like(began, end)
    if trial.load.timeout_s:
        given_up = began + int(trial.load.timeout_s * 1e9)
    waiting = [i for i, name in enumerate(trial.outcomes) if name in _WAITING]
    given_up = np.where(np.isin(trace.outcome, waiting), given_up, trace.due)
    until = np.where(trace.done >= 0, trace.done, given_up)
    overlap: Ints = np.maximum(np.minimum(until, end) - np.maximum(trace.due, start), 0)
    return overlap


def _longest_of_others(
    trace: Trace, connection: NDArray[np.uint16], whose: Bools, under_way: Bools
) -> tuple[int, bool]:
    """The longest response to other clients, ns, of the queries that ``whose`` clients waited for.

    And whether others asked these queries often enough; if not, it is of whatever they asked.
    """
    theirs = whose[connection]
    asked = np.unique(trace.query[theirs & under_way])
    others = ~theirs & (trace.done >= 0)
    same = others & np.isin(trace.query, asked)
    enough = bool(np.count_nonzero(same) >= LEAST)
    chosen = same if enough else others
    return int((trace.done - trace.due)[chosen].max(initial=0)), enough


def _longest_alone_s(trial: Trial) -> float | None:
    """What no query took longer than when each was asked alone; None where not all were."""
    captured, distinct = trial.captured, trial.queries.distinct
    if captured is None or not distinct or captured.distinct < distinct or not captured.mean_s:
        return None
    return captured.mean_s * captured.distinct


def _unserved(
    trial: Trial, trace: Trace, connection: NDArray[np.uint16], none: Bools, under_way: Bools
) -> Finding:
    clients, n = trial.load.clients or 1, int(np.count_nonzero(none))
    longest_ns, same = _longest_of_others(trace, connection, none, under_way)
    alone_s = _longest_alone_s(trial)
    slow = longest_ns >= SLOW * trace.window_s * 1e9
    served = max(1, clients - n)
    only = "what was measured is what the server does for " + plural(
        served, "one client", f"{served} clients"
    )
    took = _time(longest_ns / 1e9)
    remedy = (
        "Give the server as many workers, threads or connections as there are clients, or ask "
        f"with {plural(served, 'one client', f'{served} clients')}."
    )
    if slow:
        why = (
            f"Replies take up to {took}, so in a window of {trace.window_s:.3g} s a client may "
            "rightly have had none; but the rate and the latencies lack these requests."
        )
        remedy = f"A window of {float(f'{10 * longest_ns / 1e9:.2g}'):g} s or more."
    elif same:
        why = (
            f"It was the server that let them wait: other clients got the same queries answered in "
            f"{took} at most. No latency has these waits, and {only}."
        )
    elif alone_s is not None and alone_s < SLOW * trace.window_s:
        why = (
            f"It was the server that let them wait: asked alone, no query took more than "
            f"{_time(alone_s)}. No latency has these waits, and {only}."
        )
    else:
        why = (
            f"No latency has these waits, and {only}. Whether the server or their queries made "
            f"them wait is unknown: other clients hardly asked these queries, and waited {took} "
            "at most."
        )
    return Finding(
        "clients not served",
        "invalid" if n > LITTLE_TOLERANCE * clients and not slow else "warning",
        trial.trial,
        f"{n} of {clients} clients got no answer within the window",
        why,
        remedy,
    )


def _uneven(trial: Trial, few: Bools, replies: NDArray[Any], even: float) -> Finding:
    clients, n = trial.load.clients or 1, int(np.count_nonzero(few))
    return Finding(
        "clients served unevenly",
        "warning",
        trial.trial,
        f"{n} of {clients} clients got less than a tenth of an even share "
        f"(at most {int(replies[few].max()):,} replies of {even:,.0f})",
        "The latencies are those of the clients that the server favoured, because these got nearly "
        "all replies; the others waited far longer.",
        "See how the server deals connections to its workers, and give it as many as there are "
        "clients; or ask with fewer clients.",
    )


def _time(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds >= 0.1 else f"{1e3 * seconds:.2g} ms"
