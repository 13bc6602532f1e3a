"""Did two subjects of a search do the same work? As far as what each returned tells.

A limit is of all requests that were sent, so nearly all of them have to be answered alike, and the
rest must not be what makes one limit greater (``compare.same_work``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.compare import otherwise, standing
from searchbench.analysis.compare.same_work import Names, SameWork
from searchbench.analysis.judgement import Capacity, Step
from searchbench.analysis.sweep import alike
from searchbench.analysis.sweep.words import disagreement
from searchbench.analysis.trial.measured import Measured, Samples
from searchbench.workload.load_table import parse_promise

TAIL = 0.1  # of the requests that may be late
ENOUGH = 20  # requests, to know how long they take
LEFT_OUT = "left out"  # the verdict of a trial that says nothing
Ints = NDArray[np.int64]


def apart(a: str, b: str, work: SameWork) -> str:
    """A sentence: why two subjects are not comparable; empty: they are, or nothing is known."""
    why = work.apart((a, b))
    if why and work.pair is not None and work.pair.agreement.queries:
        found = work.pair.agreement
        if not found.agreeing:
            return disagreement(a, b, 0, found.queries)
    return f"{a} and {b} are not comparable: {why}." if why else ""


def floor(work: SameWork, rival: Capacity, samples: Samples) -> float:
    """The ratio of limits that is made if the better one does not work on what it answers
    otherwise; infinite: any. ``rival``: the lesser one, whose trials tell how dear that is.

    A server that has all of these requests too sustains less by the share that they have in its
    rival's work; and where they alone break the promise there, nothing is known.
    """
    if not work.other.size:
        return 1.0
    lightest = _lightest(rival, samples, work.other)
    if lightest is None:
        return 1.0
    limits = [c for c in parse_promise(rival.promise) if c.limit_ns is not None]
    if any(
        otherwise.late(lightest, work.other, c.limit_ns or 0.0) > TAIL * c.allowed for c in limits
    ):
        return math.inf
    return otherwise.floor(lightest, lightest, work.other, "throughput")


def said(a: str, b: str, work: SameWork) -> list[str]:
    """Sentences: how their answers differ; none where they are alike, or it is not known."""
    if why := apart(a, b, work):
        return [why]
    pair = work.pair
    if pair is None:
        return []
    agree, of = pair.agreement.agreeing, pair.agreement.queries
    differ = [disagreement(a, b, agree, of)] if agree < of else []
    if part := work.in_part((a, b)):
        differ.append(part)
    if standing.first_hits(pair.agreement) == 0:
        n = agree - pair.agreement.empty
        differ.append(
            f"On none of the {n} requests that both answer with the same {pair.agreement.require} "
            f"and that find something were {a} and {b} seen to return the same first hits, so "
            "whether they did the same work is unknown: look at what each returns."
        )
    return differ


def under_load(
    work: SameWork,
    sides: tuple[Capacity, Capacity],
    steps: tuple[Sequence[Step], Sequence[Step]],
    samples: tuple[Samples, Samples],
    names: Names,
) -> SameWork:
    """``work``, and of replies that nobody read the sizes that they had in trials up to the limit.

    ``steps``: of either record.
    """
    if not work.not_read:
        return work
    own: list[list[Step]] = []
    for one, several in zip(sides, steps, strict=True):
        up_to = one.holds or one.fails or math.inf
        used = {t.trial for t in one.trials if t.verdict != LEFT_OUT and t.rate_per_s <= up_to}
        own.append([s for s in several if s.trial in used])
    return alike.in_steps(work, (own[0], own[1]), samples, names)


def _lightest(one: Capacity, samples: Samples, other: Ints) -> Measured | None:
    """The trial in which requests waited least, of those with enough of the ``other``."""
    used = [t for t in one.trials if t.verdict != LEFT_OUT] or one.trials
    each = [samples.measured(t.trial) for t in used]
    each = [m for m in each if m.query.size]
    enough = [
        m
        for m in each
        if np.count_nonzero(otherwise.chosen(otherwise.worked_on(m, other).query, other)) >= ENOUGH
    ]
    return min(enough or each, key=lambda m: float(m.service_ns.mean()), default=None)
