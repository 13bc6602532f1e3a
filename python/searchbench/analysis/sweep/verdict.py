"""The verdict of a load run: what does this endpoint bear, in sentences with numbers.

Nothing is said that the run cannot know: a step that the client or the machine spoiled is void
and used for nothing, what is not resolved is called so, and where each step was driven once, that
is said once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from searchbench.analysis.judgement import (
    Agreement,
    Capacity,
    CapacityProbe,
    Comparison,
    Estimate,
    Step,
    TreatmentResult,
    Verdict,
)
from searchbench.analysis.sweep import points as at
from searchbench.analysis.sweep import words as say
from searchbench.analysis.words import digits, listed, plural

ONCE = (
    "Each step was driven once, so how much this machine changes from one time to the next is not "
    "known: the intervals are of each window alone (--repeat 5 tells)."
)


@dataclass(frozen=True, slots=True)
class Bearing:
    """What ``Judgement`` takes of a load run."""

    verdict: Verdict
    comparisons: tuple[Comparison, ...]
    capacity: tuple[Capacity, ...]
    void: str


def bear(
    judging: Mapping[str, Any],
    treatments: Sequence[TreatmentResult],
    steps: Sequence[Step],
    agreed: Sequence[Agreement],
) -> Bearing:
    """The answer of a load run. ``judging``: the table of plan.json."""
    told = at.points(steps)
    names = dict.fromkeys(t.system for t in treatments)
    found = {name: told[name] for name in names if name in told}
    system = {t.treatment: t.system for t in treatments}
    agreeing = {(system[a.a], system[a.b]): (a.agreeing, a.queries) for a in agreed}
    compared = at.comparisons(found, agreeing)
    capacity = capacities(judging, list(found))
    void = void_of(steps, searched=bool(capacity))
    parts = [[void]] if void else []
    several = len(found) > 1
    parts += [[say.of_capacity(c, several=several), *_doubtful(c, steps)] for c in capacity]
    searched = {c.system for c in capacity}
    for name, own in found.items():
        if own and name not in searched:
            parts.append(say.of_points(name, own))
    parts.append(say.of_systems(found, compared, agreeing))
    parts.append(_failed(steps))
    once = max((s.block for s in steps), default=0) <= 1
    if once and not capacity and any(found.values()):
        parts.append([ONCE])
    if not steps:
        parts.append(["No load step is on record yet, so there is nothing to say."])
    header, lines = table(steps)
    best = say.best_of(found, compared)
    resolved = any(c.verdict in ("faster", "slower") for c in compared)
    decision = "\n".join(" ".join(part) for part in parts if part)
    verdict = Verdict(decision, resolved, best, lines, header)
    return Bearing(verdict, compared, capacity, void)


def void_of(steps: Sequence[Step], *, searched: bool = False) -> str:
    """The sentence "Void: ..." where steps cannot be believed; empty where all can.

    ``searched``: a search for capacity drove them. It asks less of a probe, since a promise of
    50 ms is kept or broken whether or not the client is 50 µs late.
    """
    void = [s for s in steps if s.status == "void"]
    if not void:
        return ""
    kinds = dict.fromkeys(f.kind for s in void for f in s.findings if f.severity == "invalid")
    why = ", ".join(kinds)
    driven = [s for s in steps if s.status != "failed"]
    if len(void) == len(driven):
        which = (
            "the only load step" if len(driven) == 1 else f"none of the {len(driven)} load steps"
        )
        verb = "cannot" if len(driven) == 1 else "can"
        end = "so nothing is said of what is borne"
        if searched:
            end = "so what the search found may be the client's doing"
        return f"Void: {which} {verb} be believed ({why}), {end}."
    names = listed(list(dict.fromkeys(s.label for s in void)))
    end = (
        "their times are not the server's; the search uses all in which the client was late by "
        "less than a tenth of the promise"
        if searched
        else "what follows is from the others"
    )
    many = f"{len(void)} of {len(driven)} load steps ({names})"
    return f"Void: {many} cannot be believed ({why}); {end}."


def _doubtful(found: Capacity, steps: Sequence[Step]) -> list[str]:
    """That the upper end rests on void probes; a lower end that holds all the same is safe."""
    if found.fails is None:
        return []
    own = [
        s
        for s in steps
        if s.system == found.system
        and s.rate_asked_per_s is not None
        and math.isclose(s.rate_asked_per_s, found.fails, rel_tol=1e-3)
    ]
    if not own or any(s.status == "valid" for s in own):
        return []
    return [
        f"What was driven at {digits(found.fails)} is void, so that it fails there may be the "
        "client's doing: it may bear more."
    ]


def capacities(judging: Mapping[str, Any], systems: Sequence[str]) -> tuple[Capacity, ...]:
    """The brackets that a search left in plan.json, by system."""
    told = judging.get("capacity") or {}
    return tuple(_capacity(name, told[name]) for name in systems if name in told)


def _capacity(system: str, told: Mapping[str, Any]) -> Capacity:
    return Capacity(
        system=system,
        slo=str(told.get("slo") or ""),
        holds=told.get("holds_per_s"),
        fails=told.get("fails_per_s"),
        sentence=str(told.get("sentence") or ""),
        probes=tuple(_probe(p) for p in told.get("probes") or []),
        chance_inside=told.get("chance_inside"),
    )


def _probe(told: Mapping[str, Any]) -> CapacityProbe:
    """A probe of a search, by the condition that it broke most."""
    judged = told.get("judged") or {}
    worst: tuple[float, Mapping[str, Any]] | None = None
    for kept in judged.get("kept") or []:
        allowed = float(kept["condition"]["allowed"])
        if allowed > 0 and (worst is None or float(kept["share"]) / allowed > worst[0]):
            worst = float(kept["share"]) / allowed, {**kept, "allowed": allowed}
    excess = low = high = None
    condition = ""
    if worst is not None:
        kept = worst[1]
        excess = worst[0]
        low, high = (float(kept[end]) / kept["allowed"] for end in ("low", "high"))
        condition = str(kept["condition"].get("text", ""))
    verdict = "void" if judged.get("own_fault") else str(judged.get("verdict", "unclear"))
    achieved = judged.get("achieved")
    return CapacityProbe(
        rate_per_s=float(told["rate_per_s"]),
        seconds=float(told.get("seconds") or 0.0),
        verdict=verdict,
        condition=condition,
        excess=excess,
        excess_low=low,
        excess_high=high,
        achieved=None if achieved is None else float(achieved),
    )


def _failed(steps: Sequence[Step]) -> list[str]:
    failed = [s for s in steps if s.status == "failed"]
    if not failed:
        return []
    names = listed(list(dict.fromkeys(s.label for s in failed)))
    was = plural(len(failed), "step was", "steps were")
    return [f"{len(failed)} {was} not driven to the end ({names}): {failed[0].reason}."]


def table(steps: Sequence[Step]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """A short table for a terminal: a line a step, as driven; times in milliseconds."""
    if not steps:
        return (), ()
    several = len({s.system for s in steps}) > 1
    closed = all(s.kind == "closed" for s in steps)
    header = [*(["system"] if several else []), "clients" if closed else "offered/s", "answered/s"]
    header += ["±", "p50 ms", "p99 ms", "p99.9 ms", "service p99"]
    header += ["errors", ""] if closed else ["backlog p99", "errors", ""]
    lines = []
    for s in steps:
        cells = [s.system] if several else []
        cells += [_clients(s) if closed else _value(s.offered), _value(s.answered), _half(s)]
        cells += [_ms(s.response.get(name)) for name in ("p50", "p99", "p999")]
        cells.append(_ms(s.service.get("p99")))
        if not closed:
            cells.append(_ms(s.backlog.get("p99")))
        share = s.error_share
        cells.append("–" if share is None else say.percent(share.value) if share.value else "0")
        cells.append(remark(s))
        lines.append(tuple(cells))
    return tuple(header), tuple(lines)


def remark(step: Step) -> str:
    """What must be known of a step at a glance: void, failed, not kept up, errors."""
    if step.status != "valid":
        kinds = dict.fromkeys(f.kind for f in step.findings if f.severity == "invalid")
        return f"{step.status}: {', '.join(kinds)}" if kinds else step.status
    said = []
    if step.keeps_up is False and step.achieved is not None:
        said.append(f"not kept up: {say.percent(step.achieved.value)}")
    elif step.keeps_up is None and step.achieved is not None:
        said.append("kept up: not clear")
    if step.error_share is not None and step.error_share.value > at.ERRORS:
        said.append("errors")
    warned = [f.kind for f in step.findings if f.severity == "warning"]
    said += [k for k in ("server died", "server ended", "other answers under load") if k in warned]
    return ", ".join(said)


def _clients(step: Step) -> str:
    asked, seen = step.clients_asked, step.clients
    if seen is None:
        return "–" if asked is None else f"0 of {asked}"
    return f"{seen}" if asked in (None, seen) else f"{seen} of {asked}"


def _value(found: Estimate | None) -> str:
    return "–" if found is None else digits(found.value)


def _half(step: Step) -> str:
    found = step.answered
    if found is None or found.interval is None or not found.value:
        return "–"
    return say.percent((found.interval.high - found.interval.low) / 2 / found.value)


def _ms(found: Estimate | None) -> str:
    return "–" if found is None else digits(found.value * 1e3)
