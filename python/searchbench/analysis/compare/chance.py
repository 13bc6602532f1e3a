"""Whether the second's failures may be chance: of equal systems that fail by themselves now and
then, one fails at a load where the other does not, and of many loads that is so at some.

At a load, Fisher's exact test tells it, corrected for all of them (Holm). Loads at which each was
driven once can tell nothing by themselves, so those of a subject are also taken together: by the
same test over all of its drives, and by how probable it is that so many failures, dealt to these at
random, hit every drive of the second, and none of the first, at so many adjoining loads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from searchbench.analysis.stats.distributions import more_often
from searchbench.analysis.stats.intervals import ALPHA, holm

LEAST_DRIVES = 2  # of the second that failed; a single one shows nothing, wherever it lies


@dataclass(frozen=True, slots=True)
class Drives:
    """In how many of its trials the system failed, and of how many: ``a`` and ``b``, the first and
    the second. ``subject``: all whose drives are taken together have the same, one after another in
    ascending order of load; empty: this stands alone.
    """

    a: tuple[int, int]
    b: tuple[int, int]
    subject: str = ""

    @property
    def gone(self) -> bool:
        """Whether all drives of the second failed, and none of the first."""
        return self.a[0] == 0 and self.b[0] == self.b[1]


def of_each(found: Sequence[Drives]) -> list[float]:
    """Of each the chance that the second fails so much more often if both fail as often, at its
    own load or over all of its subject; corrected for all of them.
    """
    alone = holm([_of_one(one) for one in found])
    pools = [[*own] for _, own in groupby(range(len(found)), key=lambda i: found[i].subject or i)]
    together = _over_loads([[found[i] for i in own] for own in pools])
    return [min(1.0 if p is None else p, q) for p, q in zip(alone, together, strict=True)]


def _of_one(one: Drives, *, half: bool = True) -> float | None:
    """Fisher's test. None: whoever had failed, it could show nothing, so it takes nothing from the
    others (Tarone 1990). ``half``: where nothing could be more extreme, that counts half.
    """
    (x, n), (y, m) = one.a, one.b
    if not n or not m:
        return None
    most = min(x + y, m)
    if _fisher(Drives((x + y - most, n), (most, m)), half) >= ALPHA:
        return None
    return _fisher(one, half)


def _fisher(one: Drives, half: bool) -> float:
    """One-sided; mid-p (Lancaster 1961) where all of the second failed and none of the first: else
    three trials of either could not show that something is lost altogether.
    """
    p = more_often(*one.a, *one.b)
    return p / 2 if half and one.gone else p


def _over_loads(pools: Sequence[Sequence[Drives]]) -> Iterator[float]:
    """Of each load of each subject the lesser of two chances: that the subject fails so much more
    often over all loads, and that of the stretch of lost loads in which it lies (1: it lies in
    none). Corrected for all of these that could show anything.
    """
    known = [[one for one in own if one.a[1] and one.b[1]] for own in pools]
    wholes = [_of_one(_sum(loads), half=False) if len(loads) > 1 else None for loads in known]
    tests = sum(whole is not None for whole in wholes) + sum(map(_could_show, known))
    for own, loads, whole in zip(pools, known, wholes, strict=True):
        in_turn = _of_stretches(loads)
        for one in own:
            p = next(in_turn) if one.a[1] and one.b[1] else 1.0
            yield min(1.0, max(1, tests) * min(p, 1.0 if whole is None else whole))


def _sum(loads: Sequence[Drives]) -> Drives:
    a, b = (
        (sum(bad for bad, _ in side), sum(n for _, n in side))
        for side in ([one.a for one in loads], [one.b for one in loads])
    )
    return Drives(a, b)


def _of_stretches(loads: Sequence[Drives]) -> Iterator[float]:
    """Of each load the chance of the stretch of lost ones in which it lies; 1: it lies in none."""
    at = 0
    for gone, stretch in groupby(loads, key=lambda one: one.gone):
        size = len([*stretch])
        p = 1.0
        if gone and sum(one.b[1] for one in loads[at : at + size]) >= LEAST_DRIVES:
            p = _of_stretch(loads, size, last=at + size == len(loads))
        yield from [p] * size
        at += size


def _of_stretch(loads: Sequence[Drives], size: int, *, last: bool) -> float:
    """The chance of a stretch of ``size`` lost loads or a longer one, anywhere among ``loads``;
    ``last``: of a longer one, or of one that reaches to the greatest load. What is just as extreme
    counts half (mid-p).
    """
    longer = sum(_dealt(loads, at, size + 1) for at in range(len(loads) - size))
    to_the_last = _dealt(loads, len(loads) - size, size)
    if last:
        return longer + to_the_last / 2
    elsewhere = sum(_dealt(loads, at, size) for at in range(len(loads) - size))
    return longer + to_the_last + elsewhere / 2


def _dealt(loads: Sequence[Drives], at: int, size: int) -> float:
    """The chance that as many failures as there are, dealt to all drives at random, hit every one
    of the second in the ``size`` loads from ``at`` on, and none of the first there.
    """
    drives = sum(one.a[1] + one.b[1] for one in loads)
    failures = sum(one.a[0] + one.b[0] for one in loads)
    here = loads[at : at + size]
    hit = sum(one.b[1] for one in here)
    rest = drives - hit - sum(one.a[1] for one in here)
    if hit > failures:
        return 0.0
    return math.comb(rest, failures - hit) / math.comb(drives, failures)


def _could_show(loads: Sequence[Drives]) -> bool:
    """Whether some stretch would be more than chance, with as many failures as there are."""
    failures = sum(one.a[0] + one.b[0] for one in loads)
    return any(
        LEAST_DRIVES <= sum(one.b[1] for one in loads[-size:]) <= failures
        and _of_stretch(loads, size, last=True) < ALPHA
        for size in range(1, len(loads) + 1)
    )
