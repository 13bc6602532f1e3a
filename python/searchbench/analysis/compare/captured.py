"""The answers of two sides, of all their valid trials and runs, and not of the first trial alone.

Answers may change from one trial to the next: an index that was built anew, a replica that lags. A
query is answered alike only if it is so in every pair that is compared: each kind of answers of one
side with the first of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.agreement import agreement
from searchbench.analysis.agreement.agreement import Answers, Pair
from searchbench.analysis.agreement.every_trial import OTHER_TRIALS
from searchbench.record import Record, Trial


def distinct(found: Iterable[Answers]) -> list[Answers]:
    """One of each kind of answers, in the order given; what was asked nothing is left out."""
    by_digest: dict[str, Answers] = {}
    for one in found:
        if one.query.size:
            by_digest.setdefault(one.digest, one)
    return [*by_digest.values()]


def read(record: Record, trials: Iterable[Trial]) -> list[Answers]:
    """Each kind of answers that these trials gave when they were asked alone."""
    return distinct(agreement.read_answers(record, trial) for trial in trials)


def compare(
    a: Sequence[Answers], b: Sequence[Answers], agree: Callable[[Answers, Answers], Pair]
) -> Pair:
    """How all answers of one side agree with those of the other: the least alike pair, with what
    all pairs agree on. ``agree``: how two agree.
    """
    pairs = [agree(a[0], y) for y in b] + [agree(x, b[0]) for x in a[1:]]
    if len(pairs) == 1:
        return pairs[0]
    keep: NDArray[np.int64] = reduce(np.intersect1d, (one.agreeing for one in pairs))
    worst = min(pairs, key=lambda one: (one.agreeing.size, _same(one))).agreement
    levels = {}
    for level, (same, differ, unknown) in worst.levels.items():
        of_all = [one.agreement.levels.get(level, (same, 0, 0))[0] for one in pairs]
        least = min(same, *of_all)
        levels[level] = (least, differ + same - least, unknown)
    causes = dict(worst.causes)
    if more := int(pairs[0].agreeing.size - keep.size):
        causes[OTHER_TRIALS] = more
    found = replace(
        worst,
        agreeing=int(keep.size),
        differing=worst.differing + int(worst.agreeing - keep.size),
        agreeing_changed=min(int(keep.size), max(p.agreement.agreeing_changed for p in pairs)),
        same_top_k=min(one.agreement.same_top_k for one in pairs),
        levels=levels,
        causes=causes,
    )
    return Pair(found, keep)


def _same(pair: Pair) -> int:
    return sum(same for same, _, _ in pair.agreement.levels.values())
