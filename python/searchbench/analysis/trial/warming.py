"""Is a system warm? Asked while it is driven, to end its warm-up; nothing else rests on it.

Whether the window was steady is judged again, by the whole trace.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from searchbench.analysis.judgement import Estimate
from searchbench.analysis.trial.measured import Trace
from searchbench.analysis.trial.steadiness import AHEAD_S, changes, mean_within
from searchbench.record.samples import SoFar

# A warm-up may end on less evidence than a window is called steady on. What is far from warm, even
# if it takes minutes, changes by some 20 % in the time that is followed.
FLAT, MEAN_FLAT, LEVEL = 0.10, 0.20, 0.95
SLOWER = 0.30  # becoming slower is no warm-up; an interval that goes further says too little
PARTS = (1 / 8, 1 / 4, 1 / 2)  # of the time so far, left out as the beginning
MOST = 100_000  # requests that are looked at; more make a look slow, not better
RECENT = 0.2  # of the time so far, where first asks are counted
FEW = 0.05  # share of first asks
OFTEN = 4  # times as many requests as there are queries: drawn at random, 2 % are left


def is_warm(seen: SoFar) -> bool:
    """Whether the speed is flat and the queries have been asked."""
    return often_asked(seen) and flat(seen)


def often_asked(seen: SoFar) -> bool:
    """Whether first asks have become few, as far as waiting for that has a use.

    It has none where there are so many queries that they cannot be asked before the limit, and
    where as many requests as would do if they were drawn at random have left some unasked.
    """
    n = seen.due.size
    if n >= OFTEN * seen.distinct or n * seen.limit_s / seen.at_s < 2 * seen.distinct:
        return True
    recent = seen.first[seen.done >= (1 - RECENT) * seen.at_s * 1e9]
    return bool(recent.size) and float(recent.mean()) <= FEW


def flat(seen: SoFar) -> bool:
    """Whether the times of the same queries are shown to become shorter by less than ``FLAT``.

    That they become longer is no warm-up. As in ``steadiness``: over the time so far less its
    beginning, and if that pace lasted as long again. Of an open loop a request's time begins no
    earlier than the request before it ended, so that queues add little to the scatter: it is not
    how long a request takes, but is flat when that is. What is due late is left out as long as the
    longest request took: of those the long ones are still under way.
    """
    end = int(seen.at_s * 1e9) - int((seen.done - seen.due).max(initial=0))
    if end <= 0:
        return False
    order = np.argsort(seen.done, kind="stable")
    due, began, done = seen.due[order], seen.sent[order], seen.done[order]
    if not seen.closed:
        began[1:] = np.maximum(due[1:], done[:-1])
    some = slice(None, None, 1 + due.size // MOST)
    query, due, began, done = seen.query[order][some], due[some], began[some], done[some]
    trace = Trace(query, np.zeros(due.size, np.uint8), due, due, began, done, (0, end))
    ahead_s = max(AHEAD_S, end / 1e9)
    begins = [int(end * part) for part in PARTS]
    return any(
        _as_fast(changes(trace, True, begin, ahead_s, LEVEL)[0])
        and mean_within(trace, True, begin, MEAN_FLAT, LEVEL)
        for begin in begins
    )


def _as_fast(found: Mapping[str, Estimate]) -> bool:
    """Whether of these changes, if there are any, none may be a speeding up beyond ``FLAT``."""
    spans = {where: change.interval for where, change in found.items()}
    for where, span in spans.items():
        down, up = (SLOWER, FLAT) if where == "first fifth" else (FLAT, SLOWER)
        if span is None or span.low < -down or span.high > up:
            return False
    return bool(spans)
