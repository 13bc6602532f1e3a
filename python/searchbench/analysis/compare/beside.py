"""Two studies: what the queries that both do not answer alike could make of a gain over the rest.

They are left out of a ratio, but were asked among the rest, of one server (``otherwise``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.agreement.agreement import Pair
from searchbench.analysis.compare import asked, otherwise
from searchbench.analysis.compare.run import Key, Run
from searchbench.analysis.judgement import RecordLine
from searchbench.analysis.stats import within

Ints = NDArray[np.int64]
Draft = tuple[RecordLine, float | None]


def answered_otherwise(a: Run, b: Run, key: Key, pair: Pair | None) -> Ints:
    """The numbers of all queries asked of either that both do not answer alike; none where it is
    not known how they answer. ``pair``: of all queries, whatever their class.
    """
    if pair is None:
        return np.empty(0, np.int64)
    queries = [
        np.unique(run.samples.measured(t.trial).query) for run in (a, b)
        for t in run.valid(key).values()
    ]  # fmt: skip
    every = np.unique(np.concatenate([*queries, np.empty(0, np.uint32)]))
    return np.setdiff1d(every.astype(np.int64), pair.agreeing)


def held(draft: Draft, sides: tuple[Run, Run], key: Key, other: Ints, pair: Pair | None) -> Draft:
    """The line, with how large a gain ``other`` could make of it, if it is no larger. ``pair``: of
    the queries that the line may be over.

    Where no gain is told, such a gain of throughput may have made up for a loss
    (``otherwise.hides``).
    """
    line, p = draft
    ratio = line.ratio
    if ratio is None or line.answers_doubt or not other.size:
        return draft
    told = ratio.value > 1 and (ratio.interval is None or within.resolved(ratio))
    if not told and line.metric != "throughput":
        return draft
    results = sides[0].by_key[key], sides[1].by_key[key]
    a, b = (asked.by_block(t) for t in results)
    load, samples = sides[0].load(key), (sides[0].samples, sides[1].samples)
    floor = max(
        otherwise.by_the_queue(
            samples[1].measured(b[k].trial), samples[0].measured(a[k].trial), load, other,
            line.metric, seen=not told,
        )
        for k in a.keys() & b.keys()
    )  # fmt: skip
    if floor < otherwise.least(ratio) if told else not otherwise.hides(ratio, floor):
        return draft
    agreed = pair.agreement if pair is not None else None
    n, of = (agreed.queries - agreed.agreeing, agreed.queries) if agreed else (0, 0)
    return replace(line, answers_doubt=otherwise.said(n, of), answers_floor=floor), p
