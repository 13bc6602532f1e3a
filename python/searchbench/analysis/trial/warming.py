"""Is a system warm? Asked while it is driven, to end its warm-up; nothing else rests on it.

Whether the window was steady is judged again, by the whole trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from searchbench.analysis.judgement import Estimate
from searchbench.analysis.trial import serving
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
    beginning, and if that pace lasted as long again. Of an open loop a request's time begins when
    the server began with it (``serving``), so that queues add little to the scatter; and its
    response times must not be seen to become shorter, as they do where that is wrong. What is due
    late is left out as long as the longest request took: of those the long ones are still under
    way.
    """
    end = int(seen.at_s * 1e9) - int((seen.done - seen.due).max(initial=0))
    if end <= 0:
        return False
    some = slice(None, None, 1 + seen.due.size // MOST)
    begins = [int(end * part) for part in PARTS]
    ahead_s = max(AHEAD_S, end / 1e9)
    query, due, done = seen.query[some], seen.due[some], seen.done[some]
    began = (seen.sent if seen.closed else serving.began(seen.due, seen.done))[some]
    good = np.zeros(due.size, np.uint8)
    good[began >= done] = 1  # overtakers
    served = Trace(query, good, due, due, began, done, (0, end))
    waited = replace(served, outcome=np.zeros_like(good))
    return any(
        _as_fast(changes(served, True, begin, ahead_s, LEVEL)[0])
        and mean_within(served, True, begin, MEAN_FLAT, LEVEL)
        and (seen.closed or not _falls(changes(waited, False, begin, ahead_s, LEVEL)[0]))
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


def _falls(found: Mapping[str, Estimate]) -> bool:
    """Whether any of these changes is seen to be a speeding up, of more than ``FLAT``."""
    for where, change in found.items():
        span = change.interval
        if span is None:
            continue
        if where == "first fifth":
            if span.low > 0 and change.value > FLAT:
                return True
        elif span.high < 0 and change.value < -FLAT:
            return True
    return False
