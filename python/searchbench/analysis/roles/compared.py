"""Readers beside roles against idle ones: the ratios and verdicts of the study's comparisons.

A ratio of two figures may be one of two mixes of queries, and by itself it is not corrected for the
others. So what is said of readers beside roles is what the comparison of the two treatments says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from searchbench.analysis.answer import Rank, Said, said
from searchbench.analysis.compare import pairs
from searchbench.analysis.judgement import Comparison
from searchbench.analysis.roles.model import Beside
from searchbench.analysis.stats.intervals import inverse
from searchbench.analysis.words import times, words

NOT_JUDGED = "not judged"


def with_verdicts(found: Sequence[Beside], compared: Sequence[Comparison]) -> tuple[Beside, ...]:
    """The same, each ratio with the verdict of its comparison."""
    by = {(frozenset((c.a, c.b)), c.metric): c for c in compared}
    return tuple(_with(one, by) for one in found)


def _with(one: Beside, by: dict[tuple[frozenset[str], str], Comparison]) -> Beside:
    ratios, judged = dict(one.ratios), dict[str, str]()
    for metric in one.ratios:
        c = by.get((frozenset((one.idle, one.treatment)), metric))
        if c is None:
            judged[metric] = NOT_JUDGED
            continue
        c = pairs.of(one.treatment, c)
        judged[metric] = c.verdict
        if c.ratio is None or not c.ratio.value:
            del ratios[metric]  # that of the figures would not be of the same work
        else:
            ratios[metric] = c.ratio if metric == "throughput" else inverse(c.ratio)
    return replace(one, ratios=ratios, judged=judged)


def said_beside(found: Sequence[Beside], metric: str) -> list[Said]:
    """What roles take from the readers, by the metric of the study: who has roles asks this first.
    The greatest loss that is resolved is the headline, or that none is.
    """
    of = {one.treatment: one.judged.get(metric) for one in found if metric in one.ratios}
    sure = [one for one in found if of.get(one.treatment) in ("faster", "slower")]
    rest = [one for one in found if of.get(one.treatment) == "not resolved"]
    those = [*sure, *rest]
    if not those:
        return []
    good = metric == "throughput"
    sure.sort(key=lambda one: one.ratios[metric].value, reverse=not good)
    if not sure and len(those) > 1:
        none = (
            f"What the roles take from the readers is resolved in none of {len(those)} cases, by "
            f"{words(metric)}."
        )
        return [Said(none, Rank.ANSWER), *(Said(_of(one, metric), Rank.MORE) for one in rest)]
    return [*said([_of(one, metric) for one in (*sure, *rest)], Rank.ANSWER, Rank.MORE)]


def _of(one: Beside, metric: str) -> str:
    open_ = "" if one.judged[metric] in ("faster", "slower") else ", which is not resolved"
    ratio = times(one.ratios[metric])
    return f"{one.label}: {words(metric)} is {ratio} that of {one.idle_label}{open_}."
