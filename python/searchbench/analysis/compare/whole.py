"""The values of two treatments in each block: over the queries that both answer alike, and over
everything that was asked, where a loss stands whatever is answered.

Where no mix of queries is known (the latencies do not add up to what was counted, say), throughput
is what was counted, with each query at its usual cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.compare import pairs
from searchbench.analysis.compare.mix import MINGLED, Mix, adds_up, timed
from searchbench.analysis.compare.run import Key, Run
from searchbench.analysis.trial.measured import Measured
from searchbench.record.trial import Load

Values = list[tuple[float, float]]
UNCOUNTED = (
    "the latencies of {which} would give more throughput than was counted, so clients waited for "
    "replies that no latency contains"
)
NO_CLIENTS = (
    "whether other queries or favoured clients made this is unknown, as the record does not say "
    "which client asked; ask one address, and not several, to know it"
)


@dataclass
class Over:
    """``values``: by metric, those of both in each block; ``queries``: the fewest of the mix in a
    block; ``asked``: the most that either measured; ``unknown``: why no mix gives a throughput,
    empty: all do. ``less``: whether some of what both measured is not in the mix.
    """

    values: dict[str, Values]
    queries: int = 0
    asked: int = 0
    unknown: str = ""
    less: bool = False
    blocks: list[int] = field(default_factory=list)


def over(
    a: Run, b: Run, key: Key, metrics: Sequence[str], agreeing: NDArray[np.int64] | None
) -> Over:
    """Over one mix (``mix``) of the ``agreeing`` queries, or of all that both measured, in each
    block that has a valid trial of both. What is not known of each request is over all of them.

    All are those of a class, where the runs are of one.
    """
    agreeing = a.members if agreeing is None else agreeing
    sides, loads = (a.valid(key), b.valid(key)), (a.load(key), b.load(key))
    found, counts = Over({m: [] for m in metrics}), []
    lacking: dict[str, None] = {}
    mingled = False
    for block in sorted(sides[0].keys() & sides[1].keys()):
        both = [
            run.samples.measured(own[block].trial) for run, own in zip((a, b), sides, strict=True)
        ]
        mix = Mix(both[0], both[1], agreeing)
        every = Mix(both[0], both[1], a.members).queries
        found.less = found.less or mix.queries < every
        if not mix.queries:
            continue
        found.blocks.append(block)
        asked = mix.asked
        if a.members is not None:
            either = np.union1d(both[0].query, both[1].query)
            asked = int(np.count_nonzero(np.isin(either, a.members)))
        found.asked = max(found.asked, asked)
        counts.append(mix.queries)
        for metric in metrics:
            x, y = (
                mix.value(m, load, metric)
                if timed(metric)
                else pairs.value(own[block], run.samples, metric, None)
                for m, run, own, load in zip(both, (a, b), sides, loads, strict=True)
            )
            if x and y:
                found.values[metric].append((x, y))
            elif metric == "throughput":
                which = zip(("the first", "the second"), both, loads, strict=True)
                names = [name for name, m, load in which if not adds_up(m, load)]
                lacking |= dict.fromkeys(names)
                mingled = mingled or not names
    found.queries = min(counts, default=0)
    if lacking:
        found.unknown = UNCOUNTED.format(which=" and of ".join(lacking))
    elif mingled:
        found.unknown = MINGLED
    return found


def counted(a: Run, b: Run, key: Key, blocks: Sequence[int]) -> Values:
    """The throughput of both in each of these blocks, as counted."""
    sides, loads = (a.valid(key), b.valid(key)), (a.load(key), b.load(key))
    return [
        rates(
            a.samples.measured(sides[0][block].trial), b.samples.measured(sides[1][block].trial),
            loads,
        )
        for block in blocks
    ]  # fmt: skip


def rates(a: Measured, b: Measured, loads: tuple[Load, Load]) -> tuple[float, float]:
    """Requests a second that ended well, each counted by the usual cost of its query: the median of
    its cycles. So whoever asked more of what is costly did not do less. 0.0 where no query is of
    both.

    A query that favoured clients ask looks cheap. So it is weighed among those of the same client
    alone, as in ``Mix``; where who asked is not on record (``of_clients``), among all.
    """
    medians = [
        _medians(m.query, m.response_ns / 1e9 + (load.think_s or 0.0))
        for m, load in zip((a, b), loads, strict=True)
    ]
    n = max(one.size for one in medians)
    x, y = (np.pad(one, (0, n - one.size), constant_values=np.nan) for one in medians)
    both = ~np.isnan(x) & ~np.isnan(y)
    if not both.any():
        return 0.0, 0.0
    slower = math.exp(float(np.log(y[both] / x[both]).mean()))  # the second at its usual
    cost = np.where(np.isnan(x), y / slower, np.where(np.isnan(y), x, np.sqrt(x * y / slower)))
    clients = [
        m.client if m.client is not None and of_clients(a, b) else np.zeros(m.query.size, np.uint16)
        for m in (a, b)
    ]
    most = 1 + max(int(client.max(initial=0)) for client in clients)
    asked = [np.bincount(client, minlength=most) for client in clients]
    spent = [
        np.bincount(client, cost[m.query], most) for client, m in zip(clients, (a, b), strict=True)
    ]
    unit = sum(spent) / np.maximum(1, sum(asked))  # by client, the cost of one of its requests
    there = unit > 0
    found = [
        float((own[there] / unit[there]).sum()) / m.window_s
        for own, m in zip(spent, (a, b), strict=True)
    ]
    return found[0], found[1]


def of_clients(a: Measured, b: Measured) -> bool:
    """Whether it is on record of both which client asked what."""
    return a.client is not None and b.client is not None


def _medians(query: NDArray[np.uint32], took: NDArray[np.float64]) -> NDArray[np.float64]:
    """By number of a query the median; nan of those that were not asked."""
    order = np.lexsort((took, query))
    each, first, counts = np.unique(query[order], return_index=True, return_counts=True)
    found = np.full(int(query.max(initial=0)) + 1, np.nan)
    found[each] = took[order][first + (counts - 1) // 2]
    return found
