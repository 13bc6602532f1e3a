"""The verdict of a search for capacity: each subject's limit, and which subject sustains more."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, permutations

from searchbench.analysis.answer import Rank, Said, said, sentences
from searchbench.analysis.capacity import alike, meanwhile, unequal
from searchbench.analysis.capacity.alike import LEFT_OUT
from searchbench.analysis.capacity.bracket import HOW_OFTEN, ROUGH
from searchbench.analysis.capacity.otherwise import IF_FAILED, NOT_COMPARABLE
from searchbench.analysis.capacity.pace import SURE_EFFORT
from searchbench.analysis.capacity.table import table
from searchbench.analysis.compare import builds, compiling, standing, taken
from searchbench.analysis.compare.same_work import SameWork
from searchbench.analysis.judgement import Capacity, Judgement, Step
from searchbench.analysis.roles.model import CapacityBeside
from searchbench.analysis.sweep import verdict as sweep
from searchbench.analysis.sweep.steps import OF_THE_WRITER
from searchbench.analysis.trial.measured import Samples
from searchbench.analysis.words import listed, per_s

FEW = 3  # subjects of which each pair has a sentence
SEARCHES = 3  # from which on their scatter shows what a restart does
ALL_VOID = "All trials are void"  # how the sentence begins then
ONE_START = (
    "This is of one start of the system, and another start may have another limit: searches on "
    "further starts show by how much."
)
Found = Mapping[tuple[str, str], Capacity]  # by subject and promise
Works = Callable[[str, str], SameWork]  # whether two subjects answer the same
Unsure = Callable[[Capacity, Capacity], str]
# Capacities beside roles, by how two compare; sentences of their ratios, and of what is in doubt.
Besides = Callable[
    [Sequence[Capacity], Unsure], tuple[Sequence[CapacityBeside], list[str], list[str]]
]


def sustained(
    judged: Judgement, work: Works, samples: Samples, besides: Besides = lambda *_: ((), [], [])
) -> Judgement:
    """The same judgement with the answer of a search. ``work``: by what was asked alone."""
    out = _left_out(judged.capacity)
    steps = _without(judged.steps, out)
    capacity = tuple(_doubted(_by_void_trials(one, steps), steps) for one in judged.capacity)
    judged = replace(judged, steps=steps, capacity=capacity)
    found = {(c.subject, c.promise): c for c in capacity}
    names = list(dict.fromkeys(c.subject for c in capacity))
    promises = list(dict.fromkeys(c.promise for c in capacity))
    void = sweep.void_of(steps, left_out=out)
    judged = replace(judged, void=void)
    parts: list[list[Said]] = []

    unsure_of: dict[tuple[str, str, str], str] = {}

    def why_unsure(x: Capacity, y: Capacity) -> str:
        """Why the one in front of the two only leads, in a clause; empty: it sustains more."""
        if (x.subject, y.subject, x.promise) not in unsure_of:
            unsure_of[x.subject, y.subject, x.promise] = _unsure(x, y)
        return unsure_of[x.subject, y.subject, x.promise]

    by_trial = {t.trial: t for treatment in judged.treatments for t in treatment.trials}

    def _unsure(x: Capacity, y: Capacity) -> str:
        if why := unordered(x, y):
            return why
        names = x.subject, y.subject
        found = alike.under_load(work(*names), (x, y), (steps, steps), (samples, samples), names)
        why = found.doubt(names)
        changed = max(capacity, key=lambda c: c.speeds)
        if not why and not leads(x, y, gap * alike.floor(found, y, samples)):
            why = found.made
        if not why and not leads(x, y, gap * meanwhile.reach(x, y, changed, steps)):
            why = meanwhile.doubt(changed)
        if not why:
            made = unequal.floor([(x, by_trial)], [(y, by_trial)])
            if not leads(x, y, gap * made):
                why = taken.said(y.subject, made)
        if not why:
            why = unequal.beside([(x, by_trial)], [(y, by_trial)], names)
        return f"which is not resolved: {why}" if why else ""

    single = Rank.ANSWER if len(names) == 1 else Rank.MORE
    for one in capacity:
        who = f"{one.subject}, {one.promise}" if len(names) > 1 else one.promise
        told = [*said(sentences([f"{who}: {one.sentence}"]), single, Rank.MORE)]
        once_said = {s.text for part in parts for s in part if s.text.startswith(ROUGH)}
        told = [s for s in told if s.text not in once_said]
        parts.append([replace(s, rank=Rank.DOUBT) if _doubts(s) else s for s in told])
        parts[-1] += said([one.doubt], Rank.DOUBT)
    once = any(c.searches < SEARCHES for c in capacity)
    pairs = len(names) * (len(names) - 1) // 2 * len(promises)
    gap = builds.alike(pairs, builds.STARTS_SD) if once else 1.0
    if len(names) > 1 and not judged.first_look:
        for promise in promises:
            most = _of_promise(promise, names, found, work, why_unsure, gap)
            parts.append([*said(most, Rank.ANSWER)])
        after = any(meanwhile.apart(x, y, steps) for x, y in combinations(capacity, 2))
        hedge = sentences([_once(gap, min(c.searches for c in capacity), after)]) if once else []
        parts.append([*said(hedge, Rank.DOUBT, Rank.ASIDE)])
        differ = [text for a, b in combinations(names, 2) for text in alike.said(a, b, work(a, b))]
        parts.append([*said(differ, Rank.DOUBT)])
    parts.append([*said(sweep.failed(steps), Rank.DOUBT)])
    if (
        len(names) == 1
        and once
        and not judged.first_look
        and min(c.searches for c in capacity) == 1
    ):
        parts.append([Said(ONE_START, Rank.DOUBT)])
    if judged.roles is not None:

        def not_apart(x: Capacity, y: Capacity) -> str:
            """Why neither is shown to sustain more, in a clause; empty: one is."""
            if alike.apart(x.subject, y.subject, work(x.subject, y.subject)):
                return "their answers are not comparable"
            for a, b in ((x, y), (y, x)):
                if leads(a, b, gap):
                    return why_unsure(a, b)
            apart = leads(x, y) or leads(y, x)
            return "a restart alone may do as much" if apart else "the intervals overlap"

        beside, ratios, doubts = besides(capacity, not_apart)
        judged = replace(judged, roles=replace(judged.roles, capacity=tuple(beside)))
        if not judged.first_look:
            parts.append([*said(ratios, Rank.MORE), *said(doubts, Rank.DOUBT)])
    if not capacity:
        none = "The plan has no promise, so there is no capacity to be found."
        parts.append([Said(none, Rank.ANSWER)])
    if len(capacity) == 1:
        header, lines = table(capacity[0], steps)
    else:
        header = ("configuration", *promises)
        shown = {(c.subject, c.promise): interval(c) for c in capacity}
        lines = tuple((name, *(shown[name, p] for p in promises)) for name in names)

    def sure(a: str, b: str, promise: str) -> bool:
        """Whether one subject sustains more than another, and they answer alike."""
        x, y = found[a, promise], found[b, promise]
        return leads(x, y, gap) and not why_unsure(x, y) and not alike.apart(a, b, work(a, b))

    above_others = [(a, b, p) for a, b in permutations(names, 2) for p in promises if sure(a, b, p)]
    resolved = bool(above_others)
    lesser = {(b, p): unequal.met([(found[b, p], by_trial)]) for _, b, p in above_others}
    early = dict.fromkeys(b for (b, _), trials in lesser.items() if compiling.mostly(trials))
    parts.append([*said([compiling.said([*early])], Rank.DOUBT)])
    # Above every rival under every promise.
    best = [
        a
        for a in names
        if all(sure(a, b, p) for b in names if b != a for p in promises)
        and not any(work(a, b).not_read for b in names if b != a)
    ]
    winner = best[0] if best and len(names) > 1 else None
    worded = sweep.worded(parts, void, after=0 if judged.void_first else len(capacity))
    verdict = replace(worded, resolved=resolved, best=winner, lines=lines, header=header)
    return replace(judged, verdict=verdict)


def unsure(one: Capacity) -> bool:
    """Whether it is not known that any rate keeps the promise, though a trial seemed to."""
    return IF_FAILED in one.sentence or one.sentence.startswith(ALL_VOID)


def _doubts(one: Said) -> bool:
    """Whether a sentence of a search keeps its interval from being relied on."""
    return one.rank == Rank.MORE and one.text.startswith((ROUGH, HOW_OFTEN, IF_FAILED))


def _left_out(capacity: Sequence[Capacity]) -> set[str]:
    """The trials that the search left out under every promise."""
    driven = [t for one in capacity for t in one.trials]
    return {t.trial for t in driven} - {t.trial for t in driven if t.verdict != LEFT_OUT}


def _without(steps: Sequence[Step], out: Collection[str]) -> tuple[Step, ...]:
    """The steps, where what the search left ``out`` is void too."""
    return tuple(
        replace(s, status="void", reason=_why_left_out(s))
        if s.trial in out and s.status == "valid" and s.requests
        else s
        for s in steps
    )


def _why_left_out(step: Step) -> str:
    """What a valid step that the search left out is void for."""
    kinds = (f.kind for f in step.findings if f.kind in OF_THE_WRITER)
    return next(kinds, "load generator too late")


def _by_void_trials(found: Capacity, steps: Sequence[Step]) -> Capacity:
    """The same, and where every trial that it rests on is void, its sentence begins with that."""
    used = {t.trial for t in found.trials if t.verdict != LEFT_OUT}
    own = [s for s in steps if s.trial in used]
    if not own or any(s.status != "void" for s in own):
        return found
    if found.sentence.startswith(NOT_COMPARABLE):  # it rests on no trial
        return found
    why = ", ".join(sweep.kinds(*own))
    told = found.sentence[:1].lower() + found.sentence[1:]
    void = f"{ALL_VOID} ({why}), so fix that and search again before you rely on this"
    return replace(found, sentence=f"{void}: {told}")


def interval(found: Capacity) -> str:
    """The limit in a cell: "755–839/s", "> 1,200/s", "< 40/s", "not found"."""
    return between(found.holds, found.fails)


def between(holds: float | None, fails: float | None) -> str:
    """The same by its ends."""
    if fails is None:
        return "not found" if holds is None else f"> {per_s(holds)}"
    if holds is None:
        return f"< {per_s(fails)}"
    return f"{per_s(holds).removesuffix('/s')}–{per_s(fails)}"


def above(a: Capacity, b: Capacity, gap: float = 1.0) -> bool:
    """Whether a is shown to sustain more than b: it ``leads``, and nothing leaves that open."""
    return leads(a, b, gap) and not unordered(a, b)


def leads(a: Capacity, b: Capacity, gap: float = 1.0) -> bool:
    """Whether a's whole interval is above b's, by more than the ratio ``gap``."""
    return a.holds is not None and b.fails is not None and a.holds > gap * b.fails


def unordered(a: Capacity, b: Capacity) -> str:
    """Why nothing is said to sustain more, however far two intervals are apart, in a clause; empty:
    it may be.
    """
    if why := rough(a, b):
        return why
    low = [one for one in (a, b) if one.broken_up_to is not None]
    if len(low) != 1:  # of two that both break it there, the greatest rates are compared
        return ""
    rate = per_s(low[0].broken_up_to or 0.0)
    return (
        f"which is not resolved: {low[0].subject} breaks the promise at {rate} and below, so which "
        "sustains more depends on the rate"
    )


def rough(*those: Capacity) -> str:
    """That searches of so little effort order nothing, and what would; empty: they may.

    Their intervals miss the truth too often: of two that do not overlap one may well have missed.
    """
    few = [one for one in those if one.effort < one.enough]
    if not few:
        return ""
    enough = max(one.enough for one in few)
    least = min(one.effort for one in few)
    said = f"at an effort of {least:g} intervals miss too often"
    if enough > SURE_EFFORT:
        said += " of such servers"
    return f"which is not resolved: {said}; search with --effort {enough:.2g} or more"


def _of_promise(
    promise: str, names: Sequence[str], found: Found, work: Works, unsure: Unsure, gap: float
) -> list[str]:
    """Which subject sustains more under one promise, where the intervals do not overlap."""
    own = {name: found[name, promise] for name in names}
    known = [n for n in names if own[n].holds is not None or own[n].fails is not None]
    pairs = [two for two in combinations(known, 2) if not alike.apart(*two, work(*two))]
    if len(known) <= FEW:
        return [
            f"With {promise}, {told}{_unread([(a, b)], work, told)}."
            for a, b in pairs
            for told in (_pair(own[a], own[b], unsure, gap),)
        ]
    leader = max(known, key=lambda n: (own[n].holds or 0.0, own[n].fails or math.inf))
    others = [n for two in pairs if leader in two for n in two if n != leader]
    beaten: dict[str, list[str]] = {}  # by why it is not sure
    even = []
    for n in others:
        if leads(own[leader], own[n], gap):
            beaten.setdefault(unsure(own[leader], own[n]), []).append(n)
        else:
            even.append(n)
    said = [
        f"With {promise}, {leader} leads {listed(those)}, {why}"
        f"{_unread([(leader, n) for n in those], work, why)}."
        if why
        else f"With {promise}, {leader} sustains more than {listed(those)}: the intervals do not "
        f"overlap{_unread([(leader, n) for n in those], work)}."
        for why, those in sorted(beaten.items())
    ]
    if even:
        said.append(f"With {promise}, {leader} and {listed(even)} are not told apart.")
    return said


def _unread(several: Sequence[tuple[str, str]], work: Works, after: str = "") -> str:
    """That nobody read the replies of some of these, a clause; empty: all were read, or it is said
    ``after`` what their sizes say.
    """
    not_read = any(work(*two).not_read for two in several) and "repl" not in after
    return standing.UNREAD if not_read else ""


def _once(gap: float, searches: int, after: bool) -> str:
    """That each was started once or twice, which no interval covers. ``after``: in turn."""
    order = " A change of the machine from one search to the next would look the same."
    return (
        f"Each configuration was started and searched {'once' if searches < 2 else 'twice'}, so "
        "limits less than "
        f"{100 * (gap - 1):.0f} % apart are not told apart: a restart alone may move a limit. How "
        f"far is not known, and {100 * builds.STARTS_SD:g} % (standard deviation) is assumed; to "
        f"know, search each several times (`replicates = 3`).{order if after else ''}"
    )


def _pair(a: Capacity, b: Capacity, unsure: Unsure, gap: float) -> str:
    if leads(b, a, gap):
        a, b = b, a
    spans = f"({interval(a)} against {interval(b)})"
    if not leads(a, b, gap):
        return f"{a.subject} and {b.subject} are not told apart {spans}"
    if why := unsure(a, b):
        return f"{a.subject} leads {b.subject} {spans}, {why}"
    return f"{a.subject} sustains more than {b.subject} {spans}: the intervals do not overlap"


def _doubted(found: Capacity, steps: Sequence[Step]) -> Capacity:
    """The same with an open upper end where that rests on void trials alone; a lower end that holds
    all the same is safe. Those that the interval leaves out are not among them.
    """
    if found.fails is None:
        return found
    middle = math.sqrt((found.holds or found.fails) * found.fails)
    rates = {
        t.trial: t.rate_per_s
        for t in found.trials
        if t.verdict != LEFT_OUT and t.rate_per_s >= 0.999 * middle
    }
    statuses = {s.status for s in steps if s.trial in rates}
    void = [s for s in steps if s.trial in rates and s.status == "void"]
    if "valid" in statuses or "void" not in statuses:
        return found
    least, why = min(rates[s.trial] for s in void), ", ".join(sweep.kinds(*void))
    doubt = (
        f"All trials from {per_s(least)} on are void ({why}), so the load generator or the machine "
        "may have broken the promise there, and the system may sustain more"
    )
    doubt += "." if found.sentence.startswith(ALL_VOID) else ": fix that and search again."
    return replace(found, fails=None, chance_inside=None, doubt=doubt)
