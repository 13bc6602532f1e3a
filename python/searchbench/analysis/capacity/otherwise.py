"""What other answers under load leave of a search: its sentences about them.

By the rate: nothing is said of the lowest rate that had them, and above. By the time: which rate
keeps the promise is not known at all (``answers``).
"""

from __future__ import annotations

import math
from dataclasses import replace

from searchbench.analysis.capacity.found import Bracket
from searchbench.analysis.capacity.pace import Seen
from searchbench.analysis.capacity.promise import Judged, others_at_most
from searchbench.analysis.words import per_s, plural, upper

IF_FAILED = "If other answers count as failed"  # a doubt
NOT_COMPARABLE = "Not comparable"  # how the sentence begins where the answers changed at all rates
ABOUT = 1.1  # of the upper end: what is above it is of an overload
CHANGED, HAD_SIZES = "the answers changed", "the replies had other sizes"
FOR_SIZES = "Look at a reply under load, and name the engine if it is one that is known."
FOR_ANSWERS = "Raise the server's own limits, or see whether its documents changed meanwhile."


def changed_in_time(found: Bracket, seen: Seen) -> Bracket:
    """That the answers became others with the time, so that no rate is known to keep the promise.

    ``found``: by the trials that had the same ones.
    """
    out = [d for d in seen.driven if d.judged.changed]
    same = max(
        (d for d in seen.driven if d.judged.sampled and not d.judged.changed),
        key=lambda d: d.rate_per_s,
    )
    other = min(out, key=lambda d: (d.judged.others < 2, d.rate_per_s))
    what = HAD_SIZES if other.judged.by_sizes else CHANGED
    n, of = len(out), len(seen.driven)
    said = (
        f"{upper(what)} with the time, and not with the rate: in one trial, at "
        f"{per_s(same.rate_per_s)}, they were the same as when asked alone, and in another, at "
        f"{per_s(other.rate_per_s)}, they were not ({_others(seen)}). So it is not known which "
        "rate keeps the promise: see whether its documents or settings changed meanwhile, and "
        f"search again. {n} of {of} trials {plural(n, 'is', 'are')} left out."
    )
    if seen.used:
        said += f" By the other trials: {found.sentence[:1].lower()}{found.sentence[1:]}"
    return Bracket(None, None, said)


def below_other_answers(found: Bracket, seen: Seen) -> Bracket:
    """Nothing above the lowest rate at which the answers changed, which the sentence names."""
    out = [d for d in seen.driven if d.judged.changed]
    if not out or not seen.used:
        return found
    most = seen.changed_per_s
    n, of = len(out), len(seen.driven)
    which = f"{n} of {of} trials {plural(n, 'is', 'are')} left out"
    if most == math.inf:
        whose = plural(n, "its sampled replies", "the sampled replies of each")
        why = f"because one of {whose} was not what the same request got when it was asked alone"
        return replace(found, sentence=f"{found.sentence} {which}, {why}.")
    by_sizes = _first_changed(seen).by_sizes
    why = f"From {per_s(most)} on {HAD_SIZES if by_sizes else CHANGED} under load ({_others(seen)})"
    if found.fails is not None and found.fails <= most:
        return replace(found, sentence=f"{found.sentence} {why}: {which}.")
    sentence, holds = found.sentence, found.holds
    if found.chance_inside is not None:  # an interval whose upper end is not the one named here
        holds = min(found.holds or 0.0, max(d.rate_per_s for d in seen.used))
        sentence = f"The promise holds at {per_s(holds)} (95 %)."
    if by_sizes:
        why += ", so it is not known whether a rate from there on keeps the promise."
        return Bracket(holds, None, f"{sentence} {why} {FOR_SIZES}")
    why += ", so no rate from there on keeps the promise."
    return Bracket(holds, most, f"{sentence} {why} {FOR_ANSWERS}")


def few_others(found: Bracket, seen: Seen) -> str:
    """That the promise may be broken at any rate if other answers count as failed; else empty."""
    top = math.inf if found.fails is None else ABOUT * found.fails
    near = [d.judged for d in seen.used if d.rate_per_s <= top]
    others, sampled = sum(j.others for j in near), sum(j.sampled for j in near)
    least = min((k.condition.allowed for j in near for k in j.kept), default=1.0)
    most = others_at_most(others, sampled)
    if most < least:
        return ""
    return (
        f" {IF_FAILED} ({others:,} of {sampled:,} sampled replies; up to {100 * most:.2g} % of "
        "all may be), it is not known whether any of these rates keeps the promise."
    )


def all_changed(seen: Seen) -> str:
    """That all trials that say anything had other answers."""
    least = min(d.rate_per_s for d in seen.driven if d.judged.changed)
    by_sizes = _first_changed(seen).by_sizes
    what, remedy = (HAD_SIZES, FOR_SIZES) if by_sizes else (CHANGED, FOR_ANSWERS)
    return (
        f"{NOT_COMPARABLE}: {what} under load, down to {per_s(least)} ({_others(seen)}), and no "
        "trial at a lower rate says anything. So it is not known which rate keeps the promise. "
        f"{remedy}"
    )


def _first_changed(seen: Seen) -> Judged:
    """The trial at the lowest rate at which the answers changed, rather of more than one reply."""
    changed = (d for d in seen.driven if d.judged.changed)
    return min(changed, key=lambda d: (d.judged.others < 2, d.rate_per_s)).judged


def _others(seen: Seen) -> str:
    """How many answers changed in the trial at the lowest rate at which they did."""
    found = _first_changed(seen)
    n, of = f"{found.others:,}", f"{found.sampled:,}"
    if found.by_sizes:
        return f"{n} of {of} replies have another size than when the same was asked alone"
    return f"{n} of {of} sampled replies are not what the same requests got when asked alone"
