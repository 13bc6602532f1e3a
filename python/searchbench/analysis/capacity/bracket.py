"""What a search found for one promise: the limit as an interval, or which side is open and why.

By all trials together (posterior.py) the greatest rate is below ``holds`` with a chance of 2.5 % at
most, and above ``fails`` with as much. A side of which nothing can be said stays open.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from searchbench.analysis.capacity import connections, stalls, too_low
from searchbench.analysis.capacity.changes import BEYOND, TOO_SHORT, Changes, changes
from searchbench.analysis.capacity.errors import Failing
from searchbench.analysis.capacity.found import Bracket
from searchbench.analysis.capacity.otherwise import (
    ABOUT,
    NOT_COMPARABLE,
    all_changed,
    below_other_answers,
    changed_in_time,
    few_others,
)
from searchbench.analysis.capacity.pace import (
    CLUSTERS,
    DOUBT,
    SURE_EFFORT,
    VARYING_EFFORT,
    WIDTH,
    Driven,
    Seen,
)
from searchbench.analysis.capacity.posterior import Posterior
from searchbench.analysis.capacity.promise import strictest_time
from searchbench.analysis.capacity.said import (
    above_low,
    between,
    errors_of_start,
    later_when_less,
    not_driven,
    too_wide,
)
from searchbench.analysis.capacity.stalls import Found as Stalls
from searchbench.analysis.words import digits, listed, per_s, percent, plural
from searchbench.workload.load_table import LONGEST_S

FULL_OF_WIDTH = 0.98  # an interval that could be narrower is made so wide, for it is surer
CHANGES = 0.975  # the chance that the server's speed differs, from which on it is said
APART = 0.05  # standard deviation of speeds; beyond it there may be two and none between them
SUSPECT = 0.82  # and from which on an order of the trials is a drift: before any trial it is 0.75
ROUGH, HOW_OFTEN = "This answer is rough", "How often the server stalls"  # doubts
LATE = "the load generator itself sent requests late"
_HOUR_S = 3600.0
MORE_CORES = "Give the load generator more processors"


def bracket(seen: Seen, effort: float = 1.0) -> Bracket:
    """The interval by all trials of a search that say something about the system."""
    whole, failing, seen = seen, seen.failing, seen.by_rate
    found = _between_spells(_after_overload(_bracket(seen, effort), seen), seen)
    found = _between_stalls(found, seen)
    found = _with_errors(found, seen, failing)
    found = _over_connections(found, seen)
    if not whole.changed_in_time:
        found = below_other_answers(found, seen)
    if whole.low:
        found = above_low(found, whole, seen)
    if whole.changed_in_time:
        found = changed_in_time(found, whole)
    found = replace(found, sentence=f"{found.sentence}{few_others(found, seen)}")
    if whole.of_start:
        found = replace(found, sentence=f"{found.sentence}{errors_of_start(whole)}")
    disturbed = [d for d in seen.driven if d.judged.disturbed]
    alone = [d for d in seen.driven if d.judged.kept_alone and not d.judged.disturbed]
    why = ", ".join(dict.fromkeys(d.judged.alone for d in alone))
    out = _left_out(
        disturbed, seen, "others took the processors of the server or of the load generator "
        "(foreign CPU or steal)",
    ) + _left_out(
        alone, seen, "the promise was kept there, but what the study has beside the readers did "
        f"not go on as it should ({why})",
    )  # fmt: skip
    return replace(found, sentence=found.sentence + out)


def _left_out(trials: Sequence[Driven], seen: Seen, why: str) -> str:
    """That these say nothing, with their rates; empty where there are none."""
    if not trials:
        return ""
    n, of = len(trials), len(seen.driven)
    rates = listed([per_s(rate) for rate in sorted({d.rate_per_s for d in trials})])
    return f" {n} of {of} trials ({rates}) {plural(n, 'is', 'are')} left out, because {why}."


def _with_errors(found: Bracket, seen: Seen, failing: Sequence[Failing]) -> Bracket:
    """The same, which rests on what depends on the rate, with the errors that do not."""
    if not failing:
        return found
    most = max(failing, key=lambda one: (one.too_many, not one.few))
    if most.too_many:
        return Bracket(None, most.too_many_from, most.sentence)
    if most.few:
        return replace(found, sentence=f"{found.sentence} {most.sentence}")
    told = f"Without these errors: {found.sentence[:1].lower()}{found.sentence[1:]}"
    return Bracket(None, found.fails, f"{most.sentence} {told}")


def _over_connections(found: Bracket, seen: Seen) -> Bracket:
    """The same, with an open upper end where the connections are or may be what set it."""
    why = connections.doubt(seen, found.holds, found.fails)
    if not why:
        return found
    n = next(d.judged.pool.connections for d in seen.used if d.judged.pool is not None)
    these = plural(n, "this one connection", f"these {n:,} connections")
    told = found.sentence[:1].lower() + found.sentence[1:]
    return Bracket(found.holds, None, f"{why} With {these}: {told}")


def _between_spells(found: Bracket, seen: Seen) -> Bracket:
    """The same where the warm-ups of trials that did not break the promise had slow spells, which
    no window has. Its lower end is open if they took as much of the time as requests may be late.
    """
    top = math.inf if found.fails is None else found.fails
    below = [d for d in seen.telling if d.rate_per_s <= top and d.judged.verdict != "fails"]
    slow = [d for d in below if d.judged.spells_s]
    time = strictest_time(k.condition for d in slow for k in d.judged.kept)
    if found.holds is None or time is None:
        return found
    lengths = [length for d in slow for length in d.judged.spells_s]
    watched_s = sum(d.judged.lasted_s for d in below)
    share = sum(lengths) / watched_s
    where = plural(len(lengths), "the warm-up of a trial", "warm-ups of trials")
    rates = listed([per_s(rate) for rate in sorted({d.rate_per_s for d in slow})])
    said = (
        f"In {where} that did not break the promise ({rates}), the server was slow for up to "
        f"{max(lengths):.2g} s at a time: nearly all requests were late, for "
        f"{digits(sum(lengths))} s in total. All trials that did not break the promise took "
        f"{stalls.minutes(watched_s)}."
    )
    if share < time.allowed:
        return replace(found, sentence=f"{found.sentence} {said}")
    told = f"In the windows alone: {found.sentence[:1].lower()}{found.sentence[1:]}"
    said += (
        f" That is {percent(share)} of their time, and the promise allows {percent(time.allowed)} "
        "of the requests to be late. So it is not known whether any rate keeps the promise in "
        "the long run: longer trials (more effort) would show more."
    )
    return Bracket(None, found.fails, f"{said} {told}")


def _between_stalls(found: Bracket, seen: Seen) -> Bracket:
    """The same where the server gave no reply at times, which no rate may mend."""
    top = math.inf if found.fails is None else ABOUT * found.fails
    near = [d for d in seen.telling if d.rate_per_s <= top]
    if not any(d.judged.stalled for d in near):
        return found
    (time, *_) = sorted(
        (k.condition for k in near[0].judged.kept if k.condition.limit_ns), key=lambda c: c.allowed
    )
    stalled = Stalls(
        [d.rate_per_s for d in near if d.judged.stalls_s],
        [length for d in near for length in d.judged.stalls_s],
        sum(d.judged.lasted_s for d in near),
        (time.limit_ns or 0.0) / 1e9,
    )
    least, most = stalled.share
    if most < stalls.SMALL * time.allowed:
        said = f"{stalled.sentence} That is too rare to move the limit."
        return replace(found, sentence=f"{found.sentence} {said}")
    said = (
        f"{HOW_OFTEN} is not known, and so neither is the rate that keeps the promise in the long "
        "run: longer trials (more effort) would show more."
    )
    if stalled.late > time.allowed:
        said = (
            f"Its stalls alone break {time.text} at the rates driven, and at any rate if they come "
            "with the time, and not with the requests."
        )
    elif least > time.allowed:
        said = (
            f"{HOW_OFTEN} does not tell which rate keeps the promise in the long run: of the "
            "requests that meet a stall, only those that wait longer than the limit are late, and "
            "at lower rates fewer do. Longer trials (more effort) would show more."
        )
    told = found.sentence
    if found.holds is not None and seen.stalled:
        told = f"In the trials without a stall: {told[:1].lower()}{told[1:]}"
    return Bracket(None, found.fails, f"{stalled.sentence} {said} {told}")


def _after_overload(found: Bracket, seen: Seen) -> Bracket:
    """The same where the server was faster before it was overloaded than after that."""
    top, over, again = seen.overload or (None, None, [])
    if not top or not over or not again:
        return found
    least = BEYOND if top.judged.verdict == "holds" else ABOUT
    if top.rate_per_s <= least * seen.where.quantile(1 - DOUBT):
        return found
    told = found.sentence
    if found.chance_inside is not None and found.holds is not None:
        told = f"The promise holds at {per_s(found.holds)} (95 %)."
    how = (
        f"Either the server became slower, by overload or meanwhile, {TOO_SHORT}"
        if seen.few
        else "The server does not recover from overload, or it became slower meanwhile"
    )
    said = (
        f"{how}: it kept the "
        f"promise at {per_s(top.rate_per_s)} before {per_s(over.rate_per_s)} was driven, and broke "
        f"it at that rate afterwards. {told} Which rates it sustains without an overload is "
        f"not known: start it anew, and drive only rates below {per_s(over.rate_per_s)}."
    )
    return Bracket(found.holds, None, said)


def _bracket(seen: Seen, effort: float) -> Bracket:
    used = seen.used
    if not seen.driven:
        return Bracket(None, None, "No rate has been driven yet.")
    if not used:
        least = min(d.rate_per_s for d in seen.driven)
        why = (
            f"Even at {per_s(least)} the promise was broken because {LATE}, so nothing is known "
            f"about the system. {MORE_CORES}, or promise a longer time."
        )
        if any(d.judged.disturbed for d in seen.driven):
            why = (
                "Nothing is known about the system. Stop what else runs here, or use a quieter "
                "machine, and search again."
            )
        elif any(d.judged.kept_alone for d in seen.driven):
            why = (
                "Nothing is known about the capacity of readers with roles beside them: in the "
                "trials that kept the promise, the roles did not go on as they should."
            )
        elif any(d.judged.changed for d in seen.driven):
            why = all_changed(seen)
        elif not any(d.judged.own_fault for d in seen.driven):
            why = (
                "No request was due in the window of any trial, so nothing is known about the "
                "system: longer trials (more effort) are needed."
            )
        return Bracket(None, None, why)
    rates = [d.rate_per_s for d in used]
    if not any(d.judged.answered_per_s for d in used):
        why = (
            f"No request was answered well, not even at {per_s(min(rates))}, so the rate is not "
            "the reason: look at the outcomes and at the server's log."
        )
        return Bracket(None, min(rates), why)
    keeps = [d.seems_kept for d in used]
    if not any(keeps):
        broken = [d.rate_per_s for d in used if d.judged.verdict == "fails"]
        if rising := later_when_less(used):
            return Bracket(None, None, rising)
        said = _nothing_holds(seen)
        if between_them := too_low.gap(rates, [d.judged for d in used]):
            return Bracket(None, None, f"{said} {not_driven(*between_them)}")
        return Bracket(None, min(broken, default=None), said)
    if all(keeps):
        sure = max(used, key=lambda d: (d.rate_per_s, d.judged.verdict == "holds", d.seconds))
        return _all_hold(seen, sure)
    where = seen.where
    low, high = seen.ends
    slack = (1 + FULL_OF_WIDTH * WIDTH) / (high / low)
    if slack > 1:
        low, high = low / math.sqrt(slack), high * math.sqrt(slack)
    outside = 1 - (where.chance_below(high) - where.chance_below(low))
    inside = 1 - outside * DOUBT / seen.doubt
    lucky = seen.lucky(effort)
    found = changes(
        used, low, where.quantile(0.5), high, differs=where.differs > SUSPECT, few=lucky
    )
    if found.lower or found.upper:
        return _changed(found, used, low, high)
    # In short trials the queue of an overload has grown or not: that looks like other speeds.
    told = effort >= SURE_EFFORT and not lucky
    lowest = min(d.rate_per_s for d in used if not d.seems_kept)
    short = not any(d.full and d.seems_kept and d.rate_per_s >= lowest for d in used)
    if told and where.differs >= CHANGES and where.speeds > APART:
        return Bracket(None, None, _no_usual_speed(used, where, few=short))
    if low < min(rates) / BEYOND or high > max(rates) * BEYOND:
        return _beyond(used, low, high, where)
    sentence = between(low, high, len(used)) + too_wide(low, high)
    sentence += _differing(where, few=lucky or short)
    sentence += _lagging(used)
    return Bracket(low, high, sentence, inside)


def _changed(found: Changes, used: list[Driven], low: float, high: float) -> Bracket:
    """What is left of an interval if the server changed; it has no odds."""
    rates = [d.rate_per_s for d in used]
    holds = None if found.lower or low < min(rates) / BEYOND else low
    fails = None if found.upper or high > max(rates) * BEYOND else high
    said = found.lower + found.upper
    if holds is not None:
        said.append(f"The promise holds at {per_s(holds)} (95 %); where it fails is not known.")
    elif fails is not None:
        said.append(f"The promise fails at {per_s(fails)} (95 %); where it holds is not known.")
    else:
        said.append("Where the promise holds and where it fails is not known.")
    said.append(
        "Search again on a warm server and a quiet machine, or with longer trials (more effort)."
    )
    return Bracket(holds, fails, " ".join(said))


def _differing(where: Posterior, *, few: bool) -> str:
    """That the server was not equally fast in all trials; empty where it may have been."""
    if where.differs < CHANGES:
        return ""
    by = f"{percent(where.speeds)} (standard deviation) from one trial to the next"
    if few:
        return f" Either the server's speed differs by about {by}, {TOO_SHORT}."
    return (
        f" The server changed between the trials: its speed differs by about {by}. If it scatters "
        "about one usual speed, the interval is of that; at times it sustains less."
    )


def _no_usual_speed(used: Sequence[Driven], where: Posterior, *, few: bool) -> str:
    """That speeds differ so much that there may be no rate which it mostly sustains.

    ``few``: only trials that were shorter than a full one kept the promise where others broke it.
    """
    kept = max(d.rate_per_s for d in used if d.seems_kept)
    broken = min(d.rate_per_s for d in used if not d.seems_kept)
    once = f"One trial kept the promise at {per_s(kept)}, and one broke it at {per_s(broken)}, so "
    once += "the rate that it mostly sustains is not known."
    by = f"{percent(where.speeds)} (standard deviation) from one trial to the next"
    if few:
        return (
            f"Either the server's speed differs by about {by}, {TOO_SHORT}. {once} "
            "Search again with longer trials (more effort)."
        )
    return (
        f"The server changed between the trials: its speed differs by about {by}, so it may have "
        f"two speeds, and none between them. {once} See what else runs on its machine and in the "
        "server, or start it anew, and search again."
    )


def rough(
    found: Bracket, effort: float, enough: float = SURE_EFFORT, *, by_queue: bool = False,
    rare: str = "", clusters: float | None = None, varying: bool = False,
) -> Bracket:  # fmt: skip
    """The same; of trials too short for it, it is not said to hold with 95 %.

    ``enough``: the least effort of which it is. ``by_queue``: for the queue, and not for requests;
    ``rare``: what these are so many for, if not for slow ones. ``clusters``: in how many late
    requests came, if it is for these, or as times vary (``varying``).
    """
    if effort >= enough or found.sentence.startswith(NOT_COMPARABLE):
        return found
    if found.holds is None and found.fails is None:
        return found
    told = found.sentence.replace("(95 %, ", "(").replace(" (95 %)", "")
    if clusters is not None and varying and effort < VARYING_EFFORT:
        told += (
            f" {ROUGH}: response times vary so much that all trials of an effort below "
            f"{VARYING_EFFORT:g} may have been lucky together; up to half of such simulated "
            f"searches missed the truth. Search with an effort of {enough:.2g} or more before you "
            "rely on it."
        )
    elif clusters is not None:
        told += (
            f" {ROUGH}: near the limit late requests came in only about {clusters:.2g} clusters, "
            f"and {CLUSTERS:g} are needed; of simulated searches with fewer up to a third missed "
            f"the truth. Search with an effort of {enough:.2g} or more before you rely on it."
        )
    elif enough > SURE_EFFORT:
        trials = f"than {LONGEST_S * effort:g} s"
        why = f"requests that take so long need longer trials {trials}"
        if rare:
            why = f"{rare}, which at this rate takes longer {trials}"
        if by_queue:
            why = f"to build up to so long a limit a queue needs longer trials {trials}"
        told += (
            f" {ROUGH}: {why}, and of simulated searches so short up to half missed the truth. "
            f"Search with an effort of {enough:.2g} or more before you rely on it"
        )
        lesser = ", or promise a quantile that is less rare." if "rare a quantile" in rare else "."
        told += ", or promise a shorter time." if by_queue else lesser
        if by_queue and LONGEST_S * enough > _HOUR_S:
            told += (
                " Its trials would last hours. Shorter ones show how much the system answers at "
                "all, but hardly which rate keeps the promise."
            )
    else:
        told += (
            f" {ROUGH} (effort {effort:g}): with trials so short, the interval held the truth in "
            f"about 7 of 10 simulated searches. Search with an effort of {SURE_EFFORT:g} or more "
            "before you rely on it."
        )
    return replace(found, sentence=told, chance_inside=None)


def _beyond(used: list[Driven], low: float, high: float, where: Posterior) -> Bracket:
    """An end is where nothing was driven: that side is open, however the curve goes on."""
    rates = sorted(d.rate_per_s for d in used)
    holds = low if low >= rates[0] / BEYOND else None
    fails = high if high <= rates[-1] * BEYOND else None
    known, unsure = [], []
    if holds is not None:
        known.append(f"The promise holds at {per_s(holds)} (95 %).")
    else:
        unsure.append(f"whether it holds at {per_s(rates[0])}, the lowest rate driven")
    if fails is not None:
        known.append(f"The promise fails at {per_s(fails)} (95 %).")
    else:
        unsure.append(f"whether it fails at {per_s(rates[-1])}, the highest rate driven")
    known.append(f"It is not certain {listed(unsure)}.")
    middle = where.quantile(0.5)
    if rates[0] <= middle <= rates[-1]:  # else it is of the curve alone
        known.append(f"The limit is most likely near {per_s(middle)}.")
    known.append(
        "Times vary too much from trial to trial; use a quieter machine or longer trials (more "
        "effort)."
    )
    return Bracket(holds, fails, " ".join(known))


def _all_hold(seen: Seen, top: Driven) -> Bracket:
    """Nothing seems to break the promise: what kept the search from going higher."""
    limit = seen.client_limit(top.rate_per_s)
    if seen.changed_per_s < limit:  # that is why, and is said of every bracket
        limit = math.inf
    n = len(seen.driven) - sum(d.judged.disturbed or d.judged.changed for d in seen.driven)
    by_rate: dict[float, list[bool]] = {}
    for d in seen.used:  # a rate that was driven again, and longer, is known by that
        if d.full or not any(o.full and o.rate_per_s == d.rate_per_s for o in seen.used):
            by_rate.setdefault(d.rate_per_s, []).append(d.judged.verdict == "holds")
    holds = max((rate for rate, own in by_rate.items() if all(own)), default=None)
    at_top = by_rate[top.rate_per_s]
    unsure = not all(at_top)
    seems = "seems to be kept" if unsure else "was still kept"
    kept = f"The promise {seems} at {per_s(top.rate_per_s)}"
    if limit == math.inf:
        kept += f", the highest rate of {n} {plural(n, 'trial', 'trials')}"
    if unsure and holds is not None:
        kept += f"; at {per_s(holds)} it is kept (95 %)"
    if limit < math.inf:
        kept += (
            f", but at {per_s(limit)} it was broken because {LATE}: that is the limit of this "
            "search, and not of the system"
        )
    said = [f"{kept}."]
    if unsure:
        at, n = per_s(top.rate_per_s), len(at_top)
        short = f"The trial at {at} alone is too short to be sure."
        shows = plural(sum(at_top) == 1, "shows", "show")
        some = f"Only {sum(at_top)} of the {n} trials at {at} {shows} that it is kept there (95 %)."
        said.append(short if n == 1 else some)
    if seen.changed_per_s == math.inf:
        said.append("Where it fails is not known.")
    if limit < math.inf:
        said.append(f"{MORE_CORES}, and search again.")
    return Bracket(holds, None, " ".join(said))


def _nothing_holds(seen: Seen) -> str:
    used = seen.used
    least = min(used, key=lambda d: d.rate_per_s)
    broken = [
        f"{k.condition.text}: {k.share:.2%} of the requests broke it"
        for k in least.judged.kept
        if k.share >= k.condition.allowed
    ]
    behind = f"only {least.judged.achieved:.1%} of what was offered got a reply within the window"
    reason = "; ".join(broken) or behind
    n = len(used)
    said = (
        f"The promise was broken even at {per_s(least.rate_per_s)}, the lowest rate of {n} "
        f"{plural(n, 'trial', 'trials')} ({reason}). At which rate it holds is not known."
    )
    late = {
        d.rate_per_s for d in seen.driven if d.judged.own_fault and d.rate_per_s < least.rate_per_s
    }
    if late:
        rates = listed([per_s(rate) for rate in sorted(late)])
        said += (
            f" At {rates} it was broken because {LATE}, which says nothing about the system. "
            f"{MORE_CORES}."
        )
    return said


def _lagging(used: list[Driven]) -> str:
    """That the load generator's lateness moves the interval; empty where it does not matter."""
    late = sorted({d.rate_per_s for d in used if d.near and d.judged.lagging})
    if not late:
        return ""
    return (
        f" At {listed([per_s(rate) for rate in late])} {LATE}, and response times count that: "
        "the system may sustain more."
    )
