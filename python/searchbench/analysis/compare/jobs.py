"""Jobs of two treatments, paired by block: the times of what each did once, and whether it is the
same that they did, as far as what was asked afterwards tells.

A time is of all that a job did and not of some queries, so nearly all answers have to be alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from searchbench.analysis.agreement import agreement
from searchbench.analysis.agreement.agreement import Pair
from searchbench.analysis.compare import standing
from searchbench.analysis.judgement import Comparison, TreatmentResult
from searchbench.analysis.words import listed, of_job, plural
from searchbench.study.plan import Judging

NAMED = 3  # pairs whose answers differ that are named
UNASKED = (
    "Nothing was asked of what the jobs left, so whether all of them made the same is not known."
)


def metrics(judging: Judging) -> tuple[str, ...]:
    """What is compared of the jobs: how long each took."""
    return tuple(f"{job}_s" for job in judging.jobs)


def draft(
    a: TreatmentResult,
    b: TreatmentResult,
    metric: str,
    floor: float,
    pair: Pair | None,
    apart: str,
) -> tuple[Comparison, list[float]]:
    """The comparison before it is tested, and the log of its ratio in each block.

    ``pair``: how their answers afterwards agree; ``apart``: why these compare nothing.
    """
    alike, of = _alike(pair)
    blank = Comparison(
        a.treatment, b.treatment, metric, "not resolved", None, None, floor, alike, of - alike
    )
    if of and apart:
        return replace(blank, verdict="not comparable", reason=f"asked afterwards, {apart}"), []
    found = [
        {t.block: t.figures[metric].value for t in each.trials if t.counts and metric in t.figures}
        for each in (a, b)
    ]
    if lacking := [t.label for t, own in zip((a, b), found, strict=True) if not own]:
        why = f"no trial of {' or of '.join(lacking)} is valid"
        return replace(blank, verdict="not comparable", reason=why), []
    mine, other = found
    logs = [math.log(mine[block] / other[block]) for block in sorted(mine.keys() & other.keys())]
    return blank, logs


def doubt(pair: Pair | None) -> str:
    """Why the one that took less time may have done less, in a clause; empty: they answer alike
    afterwards, or nothing is known.

    Of queries that find nothing on either side nothing is learnt.
    """
    alike, of = _alike(pair)
    if pair is None or not of or pair.agreement.require == "none":
        return ""
    empty = pair.agreement.empty
    if alike - empty < standing.MOST * (of - empty):
        which = " that find something" if empty else ""
        return (
            f"asked afterwards, they answer only {alike - empty} of {of - empty} queries{which} "
            "alike, so the one that took less time may have done less"
        )
    unlike = standing.unlike(pair.agreement)
    return f"asked afterwards, {unlike}" if unlike else ""


def sentence(own: Sequence[Comparison], labels: Mapping[str, str], require: str) -> str:
    """How the answers afterwards agree. ``own``: comparisons by the time of a job; of others, or
    where nothing of it can be compared, empty.
    """
    found = [c for c in own if of_job(c.metric) and c.ratio is not None]
    if not found or require == "none":
        return ""
    asked = [c for c in found if c.queries_used or c.queries_left_out]
    if not asked:
        return UNASKED
    differ = [c for c in asked if c.queries_left_out]
    if not differ:
        n = max(c.queries_used for c in asked)
        who = "both" if len(own) == 1 else "all that were compared"
        which = f"all {n} queries" if n > 1 else "the one query"
        return f"Asked afterwards, {who} return the same {require} on {which}."
    said = [
        f"{labels.get(c.a, c.a)} and {labels.get(c.b, c.b)} on {c.queries_used} of "
        f"{c.queries_used + c.queries_left_out} queries"
        for c in sorted(differ, key=lambda c: c.queries_used)[:NAMED]
    ]
    more = len(differ) - len(said)
    tail = f"; {more} other {plural(more, 'pair differs', 'pairs differ')} too" if more else ""
    return f"Asked afterwards, the same {require} are returned by {listed(said)}{tail}."


def _alike(pair: Pair | None) -> tuple[int, int]:
    """How many of the queries asked afterwards both answer the same, and of how many."""
    if pair is None:
        return 0, 0
    found = pair.agreement
    return found.agreeing, found.queries + found.causes.get(agreement.ERROR, 0)
