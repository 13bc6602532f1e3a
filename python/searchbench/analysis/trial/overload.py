"""An overload of one trial, and the return from it: a load whose rate goes up and comes back.

What was offered, answered, and answered in time while the rate was greater; and how long after it
answers were again as before it. A request belongs to the time in which it was due, so what waits in
the backlog of an overload is late there, and what comes after it waits behind that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Curve, OverloadSeen
from searchbench.analysis.trial import recovery, recovery_said
from searchbench.analysis.trial.measured import NEVER, Trace
from searchbench.workload.load_table import Condition, parse_promise
from searchbench.workload.shape import Peak, Shape

Floats = NDArray[np.float64]


def of_trial(
    shape: Shape, trace: Trace, capacity_per_s: float | None, promises: Sequence[str],
    edges_s: NDArray[np.float64],
) -> tuple[tuple[OverloadSeen, ...], Curve | None]:  # fmt: skip
    """Each overload of the shape, in order, and what was answered in time over the whole trial: by
    the limits of the first overload that has some; None where none has.
    """
    promise = _of_times(promises)
    seen, curve = list[OverloadSeen](), None
    for peak in shape.peaks:
        one, limits_s = _seen(shape, peak, trace, capacity_per_s, promise)
        seen.append(one)
        if curve is None and one.limit_s:
            curve = _in_time(trace, limits_s, edges_s)
    return tuple(seen), curve


def _in_time(trace: Trace, limits_s: Floats, edges_s: Floats) -> Curve:
    """Requests answered well within their limits, a second, by when they were due."""
    good = recovery.in_time(trace, limits_s)
    counts, edges = np.histogram(trace.due[good] / 1e9, edges_s)
    width = np.diff(edges)
    middles = (edges[:-1] + edges[1:]) / 2
    return Curve("in time", tuple(middles.tolist()), tuple((counts / width).tolist()))


def _of_times(promises: Sequence[str]) -> tuple[Condition, ...]:
    """The first promise with a condition on times, else the first; empty where there is none."""
    all_of = [parse_promise(text) for text in promises]
    timed = (each for each in all_of if any(c.limit_ns is not None for c in each))
    return next(timed, all_of[0] if all_of else ())


def _seen(
    shape: Shape, peak: Peak, trace: Trace, capacity_per_s: float | None,
    promise: Sequence[Condition],
) -> tuple[OverloadSeen, Floats]:  # fmt: skip
    """An overload, and what each request had to stay within to be in time."""
    starts = [round(each * 1e9) for each in shape.starts]
    begin, end, stop = starts[peak.before + 1], starts[peak.after], starts[peak.after + 1]
    seconds = (end - begin) / 1e9
    most = max(max(s.first, s.last) for s in shape.stages[peak.before + 1 : peak.after])
    due = (trace.due >= begin) & (trace.due < end)
    well = (trace.outcome == 0) & (trace.done != NEVER)
    came = well & (trace.done >= begin) & (trace.done < end)
    n = max(1, int(np.count_nonzero(due)))
    normal = recovery.normal_before(
        trace, starts[peak.before], begin, closed=False, promise=promise
    )
    bounds, after = recovery.promised(promise), None
    why = normal if isinstance(normal, str) else ""
    if isinstance(normal, recovery.Normal):
        bounds = normal.bounds
        found = recovery.again(trace, normal, end, stop)
        if isinstance(found, str):
            why = found
        else:
            after = found
    limits_s = recovery.limits_s(trace, bounds)
    good = due & recovery.in_time(trace, limits_s)
    sent = (trace.due >= begin) & (trace.due < stop) & (trace.sent != NEVER)
    lag = np.maximum(0, trace.sent - np.maximum(trace.due, trace.free))[sent]
    least_s = float(limits_s.min(initial=math.inf))
    seen = OverloadSeen(
        before=peak.before + 1,
        after=peak.after + 1,
        start_s=begin / 1e9,
        seconds=seconds,
        base_per_s=shape.stages[peak.before].first,
        most_per_s=most,
        times=None if capacity_per_s is None else most / capacity_per_s,
        offered_per_s=int(np.count_nonzero(due)) / seconds,
        answered_per_s=int(np.count_nonzero(came)) / seconds,
        in_time_per_s=int(np.count_nonzero(good)) / seconds,
        failed=int(np.count_nonzero(due & ~well)) / n,
        limit_s=least_s if math.isfinite(least_s) else 0.0,
        in_time=recovery_said.in_time_is(bounds),
        promise=", ".join(c.text for c in promise),
        normal_s=None if after is None else after.after_s,
        looked_s=(stop - end) / 1e9,
        resolution_s=normal.step_s if isinstance(normal, recovery.Normal) else 0.0,
        later=0.0 if after is None else after.later,
        bounds=recovery_said.bounds(normal) if isinstance(normal, recovery.Normal) else "",
        why=why,
        lag_p99_s=float(np.quantile(lag, 0.99)) / 1e9 if lag.size else 0.0,
    )
    return seen, limits_s
