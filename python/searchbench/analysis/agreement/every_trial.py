"""The answers of every trial of a treatment, and not those of the first alone.

Answers may change from one trial to the next: an index that was built anew, a replica that lags. A
query then counts as answered alike only if it is so in every pair of trials that is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.agreement import agreement
from searchbench.analysis.agreement.agreement import Answers, Pair
from searchbench.record import Record, Trial
from searchbench.study.plan import Require

OTHER_TRIALS = "other answers in other trials"


@dataclass(frozen=True, slots=True)
class Varied:
    """The answers of a treatment's trials. ``first``: those that stand for it.

    ``others``: by trial the answers that are not the same as these at the level that is required;
    a trial that is not in it answers as ``first`` does. ``changed``: of each trial whose answers
    or their order differ from the first, on how many queries. ``trials``: how many were looked at.
    """

    first: Answers
    others: dict[str, Answers]
    changed: tuple[int, ...] = ()
    trials: int = 1

    def of(self, trial: str) -> Answers:
        """What this trial answered."""
        return self.others.get(trial, self.first)


def read(
    record: Record, trials: Sequence[Trial], first: Answers, *, require: Require, k: int
) -> Varied:
    """The answers of ``trials``, each held against ``first``.

    Only those whose digests differ are compared; hits of equal score may swap.
    """
    others: dict[str, Answers] = {}
    by_digest = {first.digest: (first, 0, 0)}
    changed, looked_at = [], {first.about.trial}
    for trial in trials:
        if trial.trial == first.about.trial:
            continue
        own = agreement.read_answers(record, trial)
        if not own.query.size:  # it was asked nothing alone, so nothing is known of it
            continue
        looked_at.add(trial.trial)
        if own.digest not in by_digest:
            order = agreement.compare(first, own, require="order", k=k).agreement.differing
            by_digest[own.digest] = own, _differing(first, own, require, k), order
        kept, other, moved = by_digest[own.digest]
        if other:
            others[trial.trial] = kept
        if other or moved:
            changed.append(max(other, moved))
    return Varied(first, others, tuple(changed), len(looked_at))


def _differing(a: Answers, b: Answers, require: Require, k: int) -> int:
    """On how many queries the two differ, of those that agree at least with themselves: a total
    that nobody knows agrees with none.
    """
    known = [agreement.compare(one, one, require=require, k=k).agreeing for one in (a, b)]
    same = agreement.compare(a, b, require=require, k=k).agreeing
    return int(np.setdiff1d(np.union1d(*known), same).size)


def agreeing_in_all(
    pair: Pair, sides: Iterable[tuple[Answers, Answers]], *, require: Require, k: int
) -> Pair:
    """``pair``, with only the queries on which every two of ``sides`` agree too.

    ``sides``: what both answered in each block that is used. Where these leave queries out, the
    counts of the agreement are those of what is left.
    """
    keep: NDArray[np.int64] = pair.agreeing
    seen = set()
    found = []
    for x, y in sides:
        if (x.digest, y.digest) not in seen:
            seen.add((x.digest, y.digest))
            found.append((x, y))
            keep = np.intersect1d(keep, agreement.compare(x, y, require=require, k=k).agreeing)
    lost = int(pair.agreeing.size - keep.size)
    if not lost:
        return pair
    left = [agreement.compare(only(x, keep), y, require=require, k=k).agreement for x, y in found]
    old = pair.agreement
    return Pair(
        replace(
            old,
            agreeing=int(keep.size),
            differing=old.differing + lost,
            causes={**old.causes, OTHER_TRIALS: lost},
            same_top_k=min(one.same_top_k for one in left),
            empty=max(one.empty for one in left),
        ),
        keep,
    )


def only(x: Answers, members: NDArray[np.int64]) -> Answers:
    """The same with only these queries: others get numbers that no other side has."""
    there = np.isin(x.query, members)
    return replace(x, query=np.where(there, x.query, -1 - np.arange(x.query.size)))
