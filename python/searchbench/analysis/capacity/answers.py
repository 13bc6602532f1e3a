"""Did the answers become others with the rate, or with the time?

A server that gives other answers when it is busy gives them above some rate. One whose documents
change while it is searched gives them at every rate from then on, and a search that took that for
the rate's doing would say that no rate from there on keeps its promise. The difference shows where
a rate is driven again that had the answers of the captures: by then they are others, or not.
"""

from __future__ import annotations

from collections.abc import Sequence

from searchbench.analysis.capacity.errors import depends
from searchbench.analysis.capacity.promise import Judged

SEVERAL = 2  # other replies of a trial: of one nothing follows


def in_time(rates: Sequence[float], judged: Sequence[Judged]) -> bool:
    """Whether more answers are others at one time of the search than at another, of the trials at
    rates up to the greatest that had the same ones. Both in the order driven.
    """
    same = [rate for rate, one in zip(rates, judged, strict=True) if _same(one)]
    own = [
        one
        for rate, one in zip(rates, judged, strict=True)
        if same and one.sampled and rate <= max(same)
    ]
    if not any(map(_changed, own)):
        return False
    return depends([one.others for one in own], [one.sampled for one in own])


def probe(rates: Sequence[float], judged: Sequence[Judged]) -> float | None:
    """The rate to drive again, which had the same answers and is lower than the last, which had
    not; None where it is known what decides, or nothing would tell.
    """
    if not judged or not _changed(judged[-1]):
        return None
    same = [i for i, one in enumerate(judged) if _same(one)]
    first = next(i for i, one in enumerate(judged) if _changed(one))
    if any(i > first for i in same):
        return None  # they were the same again, at a lower rate: it is the rate
    return max((rates[i] for i in same if rates[i] < rates[-1]), default=None)


def _same(one: Judged) -> bool:
    return one.sampled > 0 and not one.changed


def _changed(one: Judged) -> bool:
    return one.changed and one.others >= SEVERAL
