"""The comparisons of a sweep: every two subjects at every load that both were driven at.

Judged as those of a study (``compare.pairs``), closed loops over one mix of requests
(``sweep.mixed``). Steps that were driven once are no surer than drives scatter (``sweep.scatter``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.compare import (
    asked,
    builds,
    failed,
    late,
    less_beside,
    otherwise,
    pairs,
    standing,
    state,
    taken,
)
from searchbench.analysis.compare import order as of_order
from searchbench.analysis.compare.same_work import SameWork
from searchbench.analysis.judgement import Comparison, TreatmentResult
from searchbench.analysis.stats import intervals, within
from searchbench.analysis.sweep import alike, scatter
from searchbench.analysis.sweep import points as at
from searchbench.analysis.sweep.mixed import MAY_DIFFER, NONE_ON_BOTH, TOO_FEW, Mixed, one_list
from searchbench.analysis.sweep.points import Point
from searchbench.analysis.trial.measured import Samples
from searchbench.record.trial import Load


@dataclass(frozen=True)
class Evidence:
    """What comparisons rest on besides the points.

    ``work``: whether two subjects answer the same, in this order. ``built``: as ``builds.of`` has
    it. ``started``: the treatments whose system each block started anew. ``members``: the numbers
    of the requests of the one class that is compared, of whose steps the points then are; None:
    all requests are. ``order``: by trial its place among all; empty: not known.
    """

    by_id: Mapping[str, TreatmentResult]
    loads: Mapping[str, Load]
    samples: Samples
    work: Callable[[str, str], SameWork]
    built: builds.Builds
    started: frozenset[str] = frozenset()
    members: NDArray[np.int64] | None = None
    order: Mapping[str, int] = field(default_factory=dict)


def comparisons(found: Mapping[str, Sequence[Point]], evidence: Evidence) -> tuple[Comparison, ...]:
    """All of them, corrected together; the ratio is of the second subject over the first.

    ``found``: points as ``tried`` has them; none is compared where one gave other answers. At
    rates that one does not keep up with, what is answered counts.
    """
    return prepared(found, evidence).decided()


@dataclass(frozen=True)
class Prepared:
    """Comparisons that are not yet corrected for each other: ``each`` with what it was made of."""

    each: Sequence[tuple[_Draft, Comparison]]
    evidence: Evidence

    @property
    def p_values(self) -> list[float | None]:
        """Of each, before any correction."""
        return [c.p_value for _, c in self.each]

    def decided(self, beside: Sequence[float | None] = ()) -> tuple[Comparison, ...]:
        """The comparisons, corrected together, and with others whose p-values are ``beside``."""
        adjusted = intervals.holm([*self.p_values, *beside])
        evidence = self.evidence
        return tuple(
            _decide(
                _answering(d, replace(c, p_value=p), evidence),
                d.state,
                d.turned(evidence.order)
                or failed.against(c, evidence.by_id, evidence.loads, samples=evidence.samples)
                or late.against(c, evidence.by_id, evidence.loads, evidence.samples)
                or taken.against(c, evidence.by_id)
                or less_beside.against(c, evidence.by_id),
            )
            for (d, c), p in zip(self.each, adjusted, strict=False)
        )


def prepared(found: Mapping[str, Sequence[Point]], evidence: Evidence) -> Prepared:
    """The comparisons of ``comparisons``, to be decided."""
    met = [
        (a, b)
        for mine, other in combinations(found.values(), 2)
        for a in mine
        for b in other
        if (a.kind, a.x) == (b.kind, b.x)
    ]
    once = [pair for pair in met if _built_once(*pair, evidence.built)]
    together = _pairs(once)
    started = [pair for pair in met if _started_once(*pair, evidence.started)]
    starts = _pairs(started)
    drafts = [
        _Draft(a, b, metric, mixed, work, *_draft(a, b, metric, evidence, mixed, work))
        for a, b in met
        for work in (_work(a, b, evidence),)
        for mixed in (_mixed(a, b, evidence, work),)
        for metric in at.metrics(a, b)
        # How many of a class are answered follows from how many of it are asked.
        if evidence.members is None or metric != "answered"
    ]
    sure = [
        _with_starts(
            _with_builds(c, together if (d.a, d.b) in once else 0),
            starts if (d.a, d.b) in started else 0,
        )
        for d, c in zip(drafts, _no_surer_than_drives(drafts, found), strict=True)
    ]
    return Prepared(list(zip(drafts, sure, strict=True)), evidence)


@dataclass(frozen=True)
class _Draft:
    """A comparison to be decided. ``state``: what the states of both could make, in words."""

    a: Point
    b: Point
    metric: str
    mixed: Mixed | None
    work: SameWork
    compared: Comparison
    state: str

    @property
    def family(self) -> tuple[str, str, str, str]:
        """Whose ratios tell how far drives scatter: of two subjects, by metric and kind of load."""
        return self.a.subject, self.b.subject, self.metric, self.a.kind

    @property
    def logs(self) -> list[float]:
        """The log ratios of the blocks that drove both."""
        sides = self.mixed.values(self.metric) if self.mixed else None
        x, y = sides or (p.values(self.metric) for p in (self.a, self.b))
        return [math.log(y[block].value / x[block].value) for block in x.keys() & y.keys()]

    @property
    def repeated(self) -> bool:
        """Whether both were driven in two blocks or more."""
        return len(self.logs) > 1

    def turned(self, order: Mapping[str, int]) -> str:
        """Why two drives in all may differ, as those of one of the two came in a row; empty: they
        did not, or it is not known.
        """
        ratio = self.compared.ratio
        if ratio is None or not of_order.could_turn(ratio):
            return ""
        for point in (self.a, self.b):
            when = sorted(order[s.trial] for s in point.steps if s.trial in order)
            if len(when) == 2 and when[1] - when[0] == 1:
                return of_order.said_of_turn(point.subject)
        return ""


def _no_surer_than_drives(
    drafts: Sequence[_Draft], found: Mapping[str, Sequence[Point]]
) -> Iterator[Comparison]:
    """The comparisons, where steps were driven once no surer than how far drives scatter; with no p
    where nothing on record tells that. Where they were driven in a few passes, no surer than the
    ratios of the same two scatter from pass to pass at all loads.
    """
    ratios: dict[tuple[str, str], dict[tuple[str, str], list[tuple[float, float]]]] = {}
    for d in drafts:
        if (ratio := d.compared.ratio) is not None and ratio.value > 0:
            own = ratios.setdefault(d.family[2:], {}).setdefault(d.family[:2], [])
            own.append((d.a.x, math.log(ratio.value)))
    points = [p for own in found.values() for p in own]
    noises = {
        family: scatter.by_pair(
            own, scatter.of_repeats([p for p in points if p.kind == family[1]], family[0])
        )
        for family, own in ratios.items()
    }
    logs: dict[tuple[str, str, str, str], list[list[float]]] = {}
    for d in drafts:
        if d.compared.ratio is not None and d.repeated:
            logs.setdefault(d.family, []).append(d.logs)
    for d in drafts:
        c = d.compared
        if c.ratio is None or c.p_value is None:
            yield c
            continue
        noise = noises[d.family[2:]][d.family[:2]]
        if d.repeated:
            passes = len(d.logs)
            among = scatter.of_ratios(logs[d.family], passes) if passes <= scatter.FEW else None
            # Two may agree at every load; do the loads, too?
            each = [one for one in (among, noise if passes == 2 else None) if one is not None]
            if not each:
                yield c
                continue
            noise = max(each, key=lambda one: one.variance)
        if noise is None:
            reason = "; ".join(filter(None, (c.reason, scatter.NOT_KNOWN)))
            yield replace(c, p_value=None, reason=reason)
        else:
            ratio, p = scatter.widened(c.ratio, c.p_value, noise)
            yield replace(c, ratio=ratio, p_value=p)


def _with_builds(c: Comparison, once: int) -> Comparison:
    """``once``: over how many pairs of subjects the floor of their builds is; 0: it has none."""
    if not once or c.ratio is None:
        return c
    return replace(c, build_floor=builds.floor(once, c.ratio))


def _with_starts(c: Comparison, once: int) -> Comparison:
    """The same of starts."""
    if not once or c.ratio is None:
        return c
    return replace(c, start_floor=builds.floor(once, c.ratio, builds.STARTS_SD))


def _pairs(met: Sequence[tuple[Point, Point]]) -> int:
    """Of how many subjects these points are pairs."""
    return len({(a.subject, b.subject) for a, b in met})


def _started_once(a: Point, b: Point, started: Collection[str]) -> bool:
    """Whether we started either, and no two blocks, which each start theirs, have both."""
    if not {a.treatment, b.treatment} & set(started):
        return False
    return len({s.block for s in a.steps} & {s.block for s in b.steps}) < 2


def decisive(found: Sequence[Comparison]) -> list[Comparison]:
    """Those that a verdict goes by: at each load throughput, else the p99 of response time."""
    rates = {(c.a, c.b) for c in found if c.metric == "throughput"}
    return [
        c
        for c in found
        if c.metric == "throughput" or (c.metric == "response_p99" and (c.a, c.b) not in rates)
    ]


def _built_once(a: Point, b: Point, built: builds.Builds) -> bool:
    """As ``builds.once``; of one block, whether it has two builds."""
    mine, other = (built.get(p.treatment, {}) for p in (a, b))
    if len(blocks := mine.keys() & other.keys()) == 1:
        return any(mine[block] != other[block] for block in blocks)
    return builds.once(a.treatment, b.treatment, built)


def _work(a: Point, b: Point, evidence: Evidence) -> SameWork:
    """Whether both answer the same, at this load."""
    if any(map(at.failed, (*a.steps, *b.steps))):
        return SameWork()  # it has no replies
    both = evidence.samples, evidence.samples
    return alike.at_load(evidence.work(a.subject, b.subject), a, b, both, (a.subject, b.subject))


def _answering(d: _Draft, c: Comparison, evidence: Evidence) -> Comparison:
    """The comparison with the reason why it may be of other answers, if one is in front by it.

    Over a mix of what both answer alike, as far as replies were read, only what the others leave
    to these counts.
    """
    if c.ratio is None or c.verdict != "not resolved":
        return c
    read_mix = d.mixed is not None and d.work.pair is not None
    doubt = d.work.few if read_mix else d.work.doubt((d.a.subject, d.b.subject))
    if not doubt:
        both = evidence.samples, evidence.samples
        loads = evidence.loads[d.a.treatment], evidence.loads[d.b.treatment]
        rest = d.mixed is not None
        floor, how = alike.floor(d.work, (d.a, d.b), both, loads, d.metric, c.ratio, rest=rest)
        if otherwise.least(c.ratio) <= floor > 1:
            doubt = how
    return replace(c, answers_doubt=doubt)


def _draft(
    a: Point, b: Point, metric: str, evidence: Evidence, mixed: Mixed | None, work: SameWork
) -> tuple[Comparison, str]:
    """With what the states of both could make, in words; empty: nothing. ``mixed``: None where they
    are compared over all requests.
    """
    named = "throughput" if metric == "answered" else metric
    of = [evidence.by_id[p.treatment] for p in (a, b)]
    shares = [(t.label, failed.share(t)) for t in of]
    labelled = [(t.label, point) for t, point in zip(of, (a, b), strict=True)]
    pair, distinct = work.pair, 0
    draft = Comparison(
        a.treatment, b.treatment, named, "not resolved", None, None, 1.0, distinct, 0,
        failed=(shares[0][1], shares[1][1]), not_read=work.not_read,
    )  # fmt: skip
    if why := at.not_comparable(*labelled):
        return replace(draft, verdict="not comparable", reason=why), ""
    why = work.apart((a.subject, b.subject))
    if why and pair is None:
        return replace(draft, verdict="not comparable", reason=why), ""
    reasons = []
    if pair is not None:
        agree, distinct = pair.agreement.agreeing, pair.agreement.queries
        distinct += pair.agreement.dropped_a + pair.agreement.dropped_b  # one cannot be asked them
        used = agree if why or mixed is not None else distinct
        draft = replace(
            draft, queries_used=used, queries_left_out=distinct - used,
            empty=pair.agreement.empty, same_top_k=standing.first_hits(pair.agreement),
            ranked_alike=standing.ranked_alike(pair.agreement),
        )  # fmt: skip
        if why:
            return replace(draft, verdict="not comparable", reason=why), ""
        if agree < used:
            differ = f"{distinct - agree} of {distinct} have another total"
            only = distinct > pair.agreement.queries
            differ += ", or only one of the two can be asked them" if only else ""
            reasons.append(f"over all requests, though {differ}")
    if mixed is not None:
        draft = _counted(draft, mixed, work)
    elif pair is not None:
        measured = asked.fewest_on_both(of[0], of[1], evidence.samples, pair)
        draft = replace(draft, queries_measured=measured)
    elif not one_list(a, b, (evidence.samples, evidence.samples)):
        reasons.append(MAY_DIFFER)
    if draft.queries_measured == 0:
        return replace(draft, verdict="not comparable", reason=NONE_ON_BOTH), ""
    if mixed is not None and mixed.left_out:
        reasons.append(mixed.left_out)
    if clause := failed.said(shares):
        reasons.append(clause)
    ratio, p = mixed.better(metric) if mixed is not None else at.better(a, b, metric)
    if ratio is None:
        names = labelled[0][0], labelled[1][0]
        reasons.insert(0, mixed.unknown(metric, names) if mixed is not None else TOO_FEW)
        return replace(draft, reason="; ".join(reasons)), ""
    sides = [(label, point.state) for label, point in labelled]
    known = state.floor(sides[0], sides[1], ratio.value - 1)
    draft = replace(
        draft, ratio=ratio, p_value=p, reason="; ".join(reasons),
        state=known.kind, state_floor=known.ratio,
    )  # fmt: skip
    return draft, known.said


def _mixed(a: Point, b: Point, evidence: Evidence, work: SameWork) -> Mixed | None:
    """Both over one mix of requests; None where they are compared over all.

    Clients of a rate or a log ask the same whoever answers.
    """
    if any(map(at.failed, (*a.steps, *b.steps))):
        return None  # no samples
    of = evidence.samples, evidence.samples
    if a.kind != "closed" or (work.pair is None and not one_list(a, b, of)):
        return None
    same = work.same
    if work.pair is None and same is not None and not same.size:
        same = None  # of what all is doubted the ratio is shown all the same
    if evidence.members is not None:
        members = evidence.members
        same = members if same is None else np.intersect1d(same, members)
    return Mixed(a, b, (evidence.loads[a.treatment], evidence.loads[b.treatment]), of, same)


def _counted(draft: Comparison, mixed: Mixed, work: SameWork) -> Comparison:
    """With the number of requests measured on both sides; of answers that were not read only
    if they are few, as most of them agree in nothing that is known.
    """
    if work.pair is not None:
        return replace(draft, queries_measured=mixed.queries)
    same = work.same
    if same is not None and 0 < same.size < work.known:
        return replace(
            draft, queries_used=same.size, queries_left_out=work.other.size,
            queries_measured=mixed.queries,
        )  # fmt: skip
    found = replace(draft, queries_used=mixed.asked, queries_measured=mixed.queries)
    return found if standing.few([found]) else draft


def _decide(c: Comparison, of_state: str, of_failed: str) -> Comparison:
    """``of_state``, ``of_failed``: why states, and failed requests or the load generator, may make
    a difference; empty: they may not.
    """
    if c.verdict != "not resolved" or c.ratio is None:
        return c
    against = []
    if c.p_value is None:
        said = scatter.NOT_KNOWN in c.reason
        against.append("" if said else "too few samples to know how sure it is")
    elif c.p_value >= intervals.ALPHA or not within.resolved(c.ratio):
        against.append("the difference may be chance, after correcting for all comparisons")
    against += pairs.within_floors(c, of_state, of_failed)
    if c.answers_doubt:
        against.append(c.answers_doubt)
    if against:
        return replace(c, reason="; ".join(part for part in (c.reason, *against) if part))
    return replace(c, verdict="faster" if c.ratio.value > 1 else "slower")
