"""The least that times could be if requests had not been slowed by some others among them.

Nobody sees from outside who waited for whom, so the least is sought: a delay whose mean is known is
put where it lowers a quantile most; and a request is spared all that could have been before it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.trial import latency

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def least(times: Floats, name: str, delay: float, *, sure: bool = False) -> float:
    """The least mean, maximum or quantile (``name``) of times that hold a mean ``delay``; all in s.

    Of a quantile all of the delay is among the times just above it, but those that may stay above.
    ``sure``: with the noise of a sample, 0.0 where it is too small for the quantile.
    """
    if not times.size:
        return 0.0
    if name == "mean":
        return max(0.0, float(times.mean()) - delay)
    ordered, q = np.sort(times), 1.0 if name == "max" else latency.quantile_of(name)
    at = latency.rank(times.size, q)
    if sure and q < 1:
        ranks = latency.interval_ranks(times.size, q)
        if ranks is None:
            return 0.0
        at = ranks[0]
    # Lowering the times from i to `at` to the i-th takes their sum less so many times the i-th.
    lowered = ordered[: at + 1]
    above = np.cumsum(lowered[::-1])[::-1]
    many = np.arange(lowered.size, 0, -1)
    takes = above - many * lowered
    budget = delay * times.size
    i = int(np.argmax(takes <= budget))  # never more from one to the next; the last takes nothing
    return max(0.0, float((above[i] - budget) / many[i]))


def least_at_a_rate(
    times: Floats, due_ns: Ints, response_ns: Ints, at: Flags, name: str, after: float
) -> float:
    """The same of the requests that are not ``at``, asked at a rate, in s. ``times``: theirs.

    Both of these are too little, so the greater counts. Without those that are ``at`` a request
    would have waited less by at most as long as they lasted, of all that were there since the
    server was last empty; or nobody would have waited, as those did not that found it empty, unless
    one of these came while they were there. ``after``: the mean delay that they leave without a
    queue, in s.
    """
    order = np.argsort(due_ns, kind="stable")
    due, done, one = due_ns[order], (due_ns + response_ns)[order], at[order]
    begins = np.append(True, due[1:] >= np.maximum.accumulate(done)[:-1])
    busy = np.cumsum(begins) - 1
    spent = np.bincount(busy, one * response_ns[order] / 1e9)
    own = np.empty(times.size + np.count_nonzero(at))
    own[~at] = times
    own = own[order]
    spared = np.maximum(0.0, own - spent[busy])
    following = np.append(np.where(one, due, np.iinfo(np.int64).max), np.iinfo(np.int64).max)
    following = np.minimum.accumulate(following[::-1])[::-1][1:]  # when the next of them came
    alone = begins & ~one & (following >= done)
    return max(
        least(spared[~one], name, after),
        0.0 if name == "max" else least(own[alone], name, after, sure=True),
    )
