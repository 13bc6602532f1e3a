"""The verdict of a sweep: what load does this sustain, in sentences with numbers.

Nothing is said that the record cannot know: a step that the client or the machine spoiled, or in
which the server gave other answers, is void and used for nothing, what is not resolved is called
so, and where each step was driven once, one sentence says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from searchbench.analysis import first_look
from searchbench.analysis.answer import Rank, Said, in_short, said, sentences
from searchbench.analysis.compare import builds, compiling, standing, systems
from searchbench.analysis.judgement import Estimate, Judgement, Step, TrialResult, Verdict
from searchbench.analysis.sweep import by_class, drift, promises
from searchbench.analysis.sweep import points as at
from searchbench.analysis.sweep import words as say
from searchbench.analysis.sweep.compared import Evidence, decisive, prepared
from searchbench.analysis.trial import by_system
from searchbench.analysis.trial.classes import Classes
from searchbench.analysis.trial.replies import REDIRECTS, SIZES
from searchbench.analysis.trial.silence import KIND as STALLS
from searchbench.analysis.words import digits, listed, plural

ONCE = (
    "Each step was driven once, so how much this machine varies from one time to the next is not "
    "known: each step's interval is of its window alone (--repeat 5 shows the rest)."
)
Agreeing = Mapping[tuple[str, str], tuple[int, int]]


def sustained(
    judged: Judgement,
    subjects: Mapping[str, str],
    evidence: Evidence,
    classes: Classes | None = None,
) -> Judgement:
    """The same judgement with the answer of a sweep. ``subjects``: by treatment; ``classes``: of
    the one list that all were asked."""
    steps, usable = judged.steps, at.points(judged.steps, judged.treatments)
    names = dict.fromkeys(subjects[t.treatment] for t in judged.treatments)
    found = {name: usable[name] for name in names if name in usable}
    agreeing = agreeing_of([*names], evidence)
    every = at.tried(steps, judged.treatments)
    driven = {name: every[name] for name in names if name in every}
    drafts = prepared(driven, evidence)
    compared = drafts.decided()
    of_classes = by_class.comparisons(
        classes, steps, judged.treatments, [*driven], evidence, drafts.p_values
    )
    if judged.first_look:
        compared = first_look.unresolved(compared)
        of_classes = first_look.unresolved_classes(of_classes)
    decide = decisive(compared)
    void = void_of(steps)
    otherwise, ended, unserved = (
        at.points(steps, use=use) for use in (at.otherwise, at.ended, at.unserved)
    )
    failed_at = {
        name: max((p.x for p in driven[name] if not any(map(at.valid, p.steps))), default=0.0)
        for name in driven
    }
    labels = {t.treatment: t.label for t in judged.treatments}
    by_subject: dict[str, list[TrialResult]] = {}
    for t in judged.treatments:
        by_subject.setdefault(subjects[t.treatment], []).extend(t.trials)
    dies = dying(steps)
    kept, several = promises.sentences(steps), say.of_subjects(driven, decide, agreeing, dies)
    order = {s.trial: i for i, s in enumerate(steps)}
    anew = {name: {p.treatment for p in own} <= evidence.started for name, own in found.items()}
    drifts = {name: drift.of(own, order, anew=anew[name]) for name, own in found.items()}
    jumps = {
        name: None if anew[name] or drifts[name] else drift.jump(own) for name, own in found.items()
    }
    blocks = {s.block for s in steps}
    close = {name: [] if drifts[name] else drift.close(own, order)
             for name, own in found.items()}  # fmt: skip
    hidden = {name: drift.hidden(own, order, anew=anew[name]) for name, own in found.items()}
    alone = (Rank.MORE, Rank.MORE) if kept or several else (Rank.ANSWER, Rank.MORE)
    if several and say.together([*found], decide):  # a few of many would be there by chance
        alone = (Rank.ASIDE, Rank.ASIDE)
    parts = [
        *([*said(sentences([one]), Rank.ANSWER, Rank.MORE)] for one in kept),
        [*said([promises.watched(steps)], Rank.DOUBT)],
        [*said(say.refused(steps), Rank.ANSWER)],
        *([*said(say.otherwise(*one), Rank.DOUBT)] for one in otherwise.items()),
        *([*said(say.ended(*one), Rank.DOUBT)] for one in ended.items()),
        *([*said(say.unserved(*one), Rank.DOUBT)] for one in unserved.items()),
        *([*said(say.no_answers(*one), Rank.DOUBT)] for one in found.items()),
        *(
            [
                *said(
                    say.so_far(name, own)
                    if judged.first_look
                    else say.of_points(
                        name,
                        own,
                        drifts[name] is not None,
                        hidden[name],
                        {p.x for p in close[name]},
                        failed_at.get(name, 0.0),
                    ),
                    *alone,
                )
            ]
            for name, own in found.items()
            if own
        ),
        *([*said([drift.sentence(*one)], Rank.DOUBT)] for one in drifts.items()),
        *([*said([drift.jumped(*one)], Rank.DOUBT)] for one in jumps.items()),
        *(
            [*said([drift.at_the_turn(name, say.loads_of(own), len(blocks))], Rank.DOUBT)]
            for name, own in close.items()
            if own
        ),
        [*said(sentences(several), Rank.MORE if kept else Rank.ANSWER, Rank.MORE)],
        [*said(by_class.sentences(of_classes, compared, subjects), Rank.DOUBT)],
        [*said(say.in_doubt(driven, decide), Rank.DOUBT)],
        [*said(in_part([*driven], evidence), Rank.DOUBT)],
        [*said(say.same_hits(driven, decide), Rank.MORE)],
        [*said([standing.unsure(decide)], Rank.DOUBT)],
        [*said([compiling.sentence(decide, by_subject, {})], Rank.DOUBT)],
        [*said(say.in_the_way(decide, labels), Rank.DOUBT, Rank.ASIDE)],
        [*said(failed(steps), Rank.DOUBT)],
    ]
    if len(blocks) < 2 and any(found.values()):
        meanwhile = any(hidden.values())
        parts.append([Said(f"{ONCE} {drift.MEANWHILE}" if meanwhile else ONCE, Rank.DOUBT)])
    elif any(hidden.values()):
        unseen = [name for name, is_hidden in hidden.items() if is_hidden]
        parts.append([Said(drift.in_every_block(unseen), Rank.DOUBT)])
    parts.append([*said([builds.of_starts([c.start_floor for c in decide])], Rank.DOUBT)])
    if any(c.verdict in ("faster", "slower") for c in decide):
        running = [
            name for name, own in found.items()
            if own and not {p.treatment for p in own} & evidence.started
        ]  # fmt: skip
        parts.append([*said([builds.of_running(running)], Rank.DOUBT)])
    if not steps:
        parts.append([Said("No step is on record yet, so there is no result.", Rank.ANSWER)])
    header, lines = table(steps)
    resolved = any(c.verdict in ("faster", "slower") for c in compared)
    best = systems.best(list(names), say.of_pairs(driven, decide))
    best = None if best in dies else best
    verdict = replace(worded(parts, void), resolved=resolved, best=best, lines=lines, header=header)
    judged = replace(judged, verdict=verdict, comparisons=compared, void=void)
    return replace(judged, class_comparisons=of_classes)


def dying(steps: Sequence[Step]) -> dict[str, str]:
    """By subject, that it failed in half of its drives of a load or more, where another did not, a
    clause: its figures are of those that survived. Empty: none did, so there is no figure.
    """
    by_load: dict[tuple[str, float], dict[str, list[Step]]] = {}
    for s in steps:
        if at.valid(s) or at.by_server(s) or (at.failed(s) and not at.not_measured(s)):
            own = by_load.setdefault((s.kind, at.level_of(s)), {})
            own.setdefault(s.subject, []).append(s)
    found: dict[str, str] = {}
    for _, of_load in sorted(by_load.items(), key=lambda one: one[0]):
        bad = {name: sum(not at.valid(s) for s in own) for name, own in of_load.items()}
        told = {
            name: by_system.often(bad[name], len(own), f"drives of {own[0].label}")
            for name, own in of_load.items()
        }
        for name, why in told.items():
            if why and not all(told.values()):
                survived = bad[name] < len(of_load[name])
                found[name] = found.get(name) or (why if survived else "")
    return found


def worded(parts: Sequence[Sequence[Said]], void: str, after: int = 0) -> Verdict:
    """A verdict of paragraphs; what is void stands ``after`` so many of them."""
    headline, points = in_short([s for part in parts for s in part])
    lines = [" ".join(s.text for s in part) for part in parts]
    decision = "\n".join(text for text in [*lines[:after], void, *lines[after:]] if text)
    return Verdict(decision, False, None, headline=headline, points=points)


def agreeing_of(names: Sequence[str], evidence: Evidence) -> Agreeing:
    """By two subjects: how many requests both answer the same, and of how many."""
    pairs = {two: evidence.work(*two).pair for two in combinations(names, 2)}
    return {
        two: (pair.agreement.agreeing, pair.agreement.queries)
        for two, pair in pairs.items()
        if pair is not None
    }


def in_part(names: Sequence[str], evidence: Evidence) -> list[str]:
    """Of which two subjects not all requests were compared, a sentence; of many the worst two."""
    pairs = {two: evidence.work(*two) for two in combinations(names, 2)}
    known = [(work.pair.agreement.uncompared, work.in_part(two))
             for two, work in pairs.items() if work.pair is not None]  # fmt: skip
    return [max(known)[1]] if known and max(known)[0] else []


def void_of(steps: Sequence[Step], *, left_out: Collection[str] | None = None) -> str:
    """The sentence "Void: ..." where steps say nothing about the server; empty where all do.

    What to do about it is no part of it: the findings that it names have their remedies.

    ``left_out``: the trials that a search for capacity does not use; None: it is a sweep. A search
    asks less of a trial, since a promise of 50 ms is kept or broken whether or not the load
    generator is 50 µs late.
    """
    void = [s for s in steps if s.status == "void"]
    n, of = len(void), sum(s.status != "failed" for s in steps)
    if not n:
        return ""
    each, why = "step" if left_out is None else "trial", ", ".join(kinds(*void))
    which = f"{n} of {of} {each}s ({listed(list(dict.fromkeys(s.label for s in void)))})"
    used = 0 if left_out is None else sum(s.trial not in left_out for s in void)
    if used:
        all_of = "the only trial" if of == 1 else f"all {of} trials"
        said = (
            f"Void: {all_of if n == of else which} may show the load generator or the machine "
            f"rather than the server ({why})"
        )
        if n == of:
            return f"{said}."  # the answer itself says what to do before one relies on it
        them = plural(n, "it", "them") if used == n else f"{used} of them"
        return (
            f"{said}; the search counts {them}, and the answer says so where it rests on such "
            "trials alone."
        )
    says = plural(n, "says nothing", "say nothing")
    if n == of > 1:
        which, says = f"none of the {of} {each}s", "says anything"
    said = f"Void: {which if of > 1 else f'the only {each}'} {says} about what the server sustains"
    if n < of:
        others = f"the search leaves {plural(n, 'it', 'them')} out"
        return f"{said} ({why}); {'the answer is from the others' if left_out is None else others}."
    sweep = left_out is None
    known = "there is no answer" if sweep else "no rate is known that keeps the promise"
    return f"{said} ({why}), so {known}."


def failed(steps: Sequence[Step]) -> list[str]:
    """How many steps were not driven to the end, and why the first of them was not."""
    ended = [s for s in steps if s.status == "failed"]
    if not ended:
        return []
    names = listed(list(dict.fromkeys(s.label for s in ended)))
    was = plural(len(ended), "step was", "steps were")
    return [f"{len(ended)} {was} not driven to the end ({names}): {ended[0].reason}."]


def table(steps: Sequence[Step]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """A short table for a terminal: a line a step, as driven; times in milliseconds."""
    if not steps:
        return (), ()
    several = len({s.subject for s in steps}) > 1
    who = "system" if {s.subject for s in steps} == {s.system for s in steps} else "subject"
    closed = all(s.kind == "closed" for s in steps)
    header = [*([who] if several else []), "clients" if closed else "offered/s", "answered/s"]
    header += ["±", "p50 ms", "p99 ms", "p99.9 ms", "service p99"]
    header += ["errors", ""] if closed else ["backlog p99", "errors", ""]
    lines = []
    for s in steps:
        cells = [s.subject] if several else []
        cells += [_clients(s) if closed else _value(s.offered), _value(s.answered), _half(s)]
        times = [s.response.get(name) for name in ("p50", "p99", "p999")]
        times += [s.service.get("p99"), *([] if closed else [s.backlog.get("p99")])]
        cells += [_value(found, 1e3) for found in times]
        share = s.error_share
        cells.append("–" if share is None else say.percent(share.value) if share.value else "0")
        cells.append(remark(s))
        lines.append(tuple(cells))
    return tuple(header), tuple(lines)


def remark(step: Step) -> str:
    """What must be known of a step at a glance: void, failed, not steady, not kept up, errors."""
    if step.status != "valid":
        why = ", ".join(kinds(step))
        return f"{step.status}: {why}" if why else step.status
    said = ["not steady"] if step.steadiness == "not steady" else []
    if step.keeps_up is False and step.achieved is not None:
        said.append(f"not kept up: {say.percent(step.achieved.value)}")
    elif step.keeps_up is None and step.achieved is not None:
        said.append("kept up: not clear")
    if step.error_share is not None and step.error_share.value > at.ERRORS:
        said.append("errors")
    warned = [f.kind for f in step.findings if f.severity == "warning"]
    told = ("connections busy", "server died", "server ended", "other answers under load",
            REDIRECTS, SIZES, STALLS)  # fmt: skip
    said += [k for k in told if k in warned]
    return ", ".join(said)


def kinds(*steps: Step) -> list[str]:
    """What makes the steps invalid; of one that only a search left out, its reason."""
    found: dict[str, None] = {}
    for s in steps:
        bad = [f.kind for f in s.findings if f.severity == "invalid"]
        found |= dict.fromkeys(bad or ([s.reason] if s.status == "void" else []))
    return list(found)


def _clients(step: Step) -> str:
    asked, seen = step.clients_asked, step.clients
    if seen is None:
        return "–" if asked is None else f"0 of {asked}"
    return f"{seen}" if asked in (None, seen) else f"{seen} of {asked}"


def _value(found: Estimate | None, by: float = 1.0) -> str:
    return "–" if found is None else digits(found.value * by)


def _half(step: Step) -> str:
    found = step.answered
    if found is None or found.interval is None or not found.value:
        return "–"
    return say.percent((found.interval.high - found.interval.low) / 2 / found.value)
