"""What two treatments of a study were asked in the same blocks, and what of it is alike."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.agreement.agreement import Pair
from searchbench.analysis.compare import otherwise
from searchbench.analysis.compare.mix import Mix, timed
from searchbench.analysis.judgement import TreatmentResult, TrialResult
from searchbench.analysis.trial.measured import Samples
from searchbench.record.trial import Load


def by_block(treatment: TreatmentResult, *, control: bool = False) -> dict[int, TrialResult]:
    """By block its valid trial, or that of its twin."""
    return {
        trial.block: trial
        for trial in treatment.trials
        if trial.status == "valid" and trial.control is control
    }


def fewest_on_both(
    a: TreatmentResult, b: TreatmentResult, samples: Samples, pair: Pair | None
) -> int | None:
    """The fewest agreeing queries that a block measured on both sides; None: not compared."""
    if pair is None:
        return None
    mine, other = by_block(a), by_block(b)
    counts = []
    for block in mine.keys() & other.keys():
        x, y = (samples.measured(side[block].trial) for side in (mine, other))
        counts.append(Mix(x, y, pair.agreeing).queries)
    return min(counts, default=0)


def requests_alike(
    a: TreatmentResult,
    b: TreatmentResult,
    samples: Samples,
    other: NDArray[np.int64],
    members: NDArray[np.int64] | None = None,
) -> float:
    """The share of the measured requests that ask what both answer alike, of the side with less.

    A query that is asked often is one among the distinct ones, and many requests. ``members``: the
    queries of which alone this is; None: all.
    """
    shares = []
    for t in (a, b) if other.size else ():
        queries = [samples.measured(trial.trial).query for trial in by_block(t).values()]
        if members is not None:
            queries = [query[otherwise.chosen(query, members)] for query in queries]
        n = sum(query.size for query in queries)
        of = sum(int(np.count_nonzero(otherwise.chosen(query, other))) for query in queries)
        shares.append(1 - of / n if n else 1.0)
    return min(shares, default=1.0)


def by_the_queue(
    both: tuple[TreatmentResult, TreatmentResult],
    samples: Samples,
    loads: Mapping[str, Load],
    other: NDArray[np.int64],
    metric: str,
    log_ratio: float,
) -> float:
    """What waiting behind ``other`` could make of a ratio: the most of any block."""
    winner, rival = both[::-1] if log_ratio > 0 else both
    if not other.size or not timed(metric):
        return 1.0
    mine, theirs, load = by_block(winner), by_block(rival), loads[rival.treatment]
    return max(
        otherwise.by_the_queue(
            samples.measured(mine[k].trial), samples.measured(theirs[k].trial), load, other, metric
        )
        for k in mine.keys() & theirs.keys()
    )
