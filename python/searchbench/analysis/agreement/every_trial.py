"""The answers of every trial of a treatment, and not those of the first alone.

Answers may change from one trial to the next: an index that was built anew, a replica that lags. A
query then counts as answered alike only if it is so in every pair of trials that is compared.

    read             what each trial answered; trials that answer the same share it
    vary             one treatment: which of its trials answer otherwise than the first
    agreeing_in_all  two treatments of a record: what they agree on in each block that both have
    compare_all      two sides without common blocks, as of two records: what all kinds of answers
                     of both agree on
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.agreement import agreement
from searchbench.analysis.agreement.agreement import Answers, Pair
from searchbench.analysis.judgement import Agreement
from searchbench.record import Record, Trial
from searchbench.study.plan import Require

OTHER_TRIALS = "other answers in other trials"

Numbers = NDArray[np.int64]


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


def read(record: Record, trials: Iterable[Trial], *known: Answers) -> dict[str, Answers]:
    """By trial what it answered when it was asked alone; trials that were asked nothing are left
    out, as nothing is known of them.

    Those that answer the same share what one of them answered: one of ``known``, or the first.
    """
    by_digest = {one.digest: one for one in known}
    found = {}
    for trial in trials:
        own = agreement.read_answers(record, trial)
        if own.query.size:
            found[trial.trial] = by_digest.setdefault(own.digest, own)
    return found


def distinct(found: Iterable[Answers]) -> list[Answers]:
    """One of each kind of answers, in the order given."""
    by_digest: dict[str, Answers] = {}
    for one in found:
        by_digest.setdefault(one.digest, one)
    return [*by_digest.values()]


def vary(first: Answers, own: Mapping[str, Answers], *, require: Require, k: int) -> Varied:
    """The answers of a treatment's trials, ``own``, each held against ``first``.

    Only those whose digests differ are compared; hits of equal score may swap.
    """
    others: dict[str, Answers] = {}
    changed = []
    known = {first.digest: (0, 0)}
    for trial, answers in own.items():
        if answers.digest not in known:
            order = agreement.compare(first, answers, require="order", k=k).agreement.differing
            known[answers.digest] = _differing(first, answers, require, k), order
        other, moved = known[answers.digest]
        if other:
            others[trial] = answers
        if other or moved:
            changed.append(max(other, moved))
    return Varied(first, others, tuple(changed), len({first.about.trial, *own}))


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
    found = {(x.digest, y.digest): (x, y) for x, y in sides}.values()
    keep = pair.agreeing
    for x, y in found:  # what no side of a block was asked is known by ``pair`` alone
        same = agreement.compare(x, y, require=require, k=k).agreeing
        keep = np.setdiff1d(keep, np.setdiff1d(np.union1d(x.query, y.query), same))
    if keep.size == pair.agreeing.size:
        return pair
    left = [agreement.compare(only(x, keep), y, require=require, k=k).agreement for x, y in found]
    narrowed = replace(
        _narrowed(pair.agreement, pair.agreeing.size, keep.size),
        same_top_k=min(one.same_top_k for one in left),
        ranked_alike=min(one.ranked_alike for one in left),
        empty=max(one.empty for one in left),
    )
    return Pair(narrowed, keep)


def compare_all(
    a: Sequence[Answers], b: Sequence[Answers], agree: Callable[[Answers, Answers], Pair]
) -> Pair:
    """How all answers of one side agree with those of the other: the least alike pair, with what
    all pairs agree on. Compared is each kind of answers of one side with the first of the other.

    ``a``, ``b``: distinct, at least one each. ``agree``: how two agree.
    """
    pairs = [agree(a[0], y) for y in b] + [agree(x, b[0]) for x in a[1:]]
    if len(pairs) == 1:
        return pairs[0]
    keep = _common(pairs)
    worst = min(pairs, key=lambda one: (one.agreeing.size, _same(one))).agreement
    of_all = [one.agreement for one in pairs]
    levels = {}
    for level, (same, differ, unknown) in worst.levels.items():
        least = min(same, *(one.levels.get(level, (same, 0, 0))[0] for one in of_all))
        levels[level] = (least, differ + same - least, unknown)
    found = replace(
        _narrowed(worst, pairs[0].agreeing.size, keep.size),
        agreeing_changed=min(int(keep.size), max(one.agreeing_changed for one in of_all)),
        same_top_k=min(one.same_top_k for one in of_all),
        ranked_alike=min(one.ranked_alike for one in of_all),
        levels=levels,
    )
    return Pair(found, keep)


def only(x: Answers, members: Numbers) -> Answers:
    """The same with only these queries: others get numbers that no other side has."""
    there = np.isin(x.query, members)
    return replace(x, query=np.where(there, x.query, -1 - np.arange(x.query.size)))


def _common(pairs: Iterable[Pair]) -> Numbers:
    """The queries on which all of these agree."""
    found: Numbers = reduce(np.intersect1d, (one.agreeing for one in pairs))
    return found


def _narrowed(of: Agreement, firsts: int, kept: int) -> Agreement:
    """The same where only ``kept`` queries are answered alike in all trials; the rest differ.

    ``firsts``: on how many queries the first answers of both sides agree.
    """
    causes = dict(of.causes)
    if lost := firsts - kept:
        causes[OTHER_TRIALS] = lost
    differing = of.differing + of.agreeing - kept
    return replace(of, agreeing=kept, differing=differing, causes=causes)


def _same(pair: Pair) -> int:
    return sum(same for same, _, _ in pair.agreement.levels.values())
