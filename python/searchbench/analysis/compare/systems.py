"""The systems of a study against each other, wherever they differ in nothing else.

The subjects of a sweep likewise, at equal loads.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence

import numpy as np

from searchbench.analysis.compare import pairs, standing
from searchbench.analysis.judgement import Comparison, Estimate, Interval, TreatmentResult
from searchbench.analysis.trial.by_system import dying
from searchbench.analysis.words import ABSURD, digits, listed, plural, times, words

FEW = 3  # systems of which each pair has a sentence; of more, the leader against each other
SETTINGS = "otherwise equal settings"

# By the two systems, a and b, their comparisons at otherwise equal settings, b against a.
Found = Mapping[tuple[str, str], Sequence[Comparison]]
NONE: Mapping[str, str] = {}
ONLY_LEADS = "{} only leads: it"


def by_system(
    treatments: Sequence[TreatmentResult], own: Sequence[Comparison], metric: str
) -> list[str]:
    """Sentences. ``own``: the comparisons by ``metric``, whose ratios are those that are said."""
    by_id = {t.treatment: t for t in treatments}
    found: dict[tuple[str, str], list[Comparison]] = {}
    for c in own:
        a, b = by_id[c.a], by_id[c.b]
        if a.system == b.system or _others(a) != _others(b):
            continue
        if (b.system, a.system) in found:
            a, b, c = b, a, pairs.of(c.a, c)
        found.setdefault((a.system, b.system), []).append(c)
    systems, dies = list(dict.fromkeys(t.system for t in treatments)), dying(treatments)
    if len(systems) > FEW:
        settings = {t.treatment: frozenset(_others(t).items()) for t in treatments}
        return many(systems, found, metric, dies=dies, settings=settings)
    told = [
        f"{said}{_only_leads(*both, several, dies)}"
        for both, several in found.items()
        if (said := pair(*both, several, metric))
    ]
    named = {name for name in dies if any(ONLY_LEADS.format(name) in one for one in told)}
    return told + of_dying(dies, but=named) if told else []


def of_dying(dies: Mapping[str, str], but: Collection[str] = ()) -> list[str]:
    """A sentence for each that failed so often that its figures are of what survived, ``but`` of
    these.
    """
    return [f"{name} {why}." for name, why in dies.items() if why and name not in but]


def _only_leads(a: str, b: str, several: Sequence[Comparison], dies: Mapping[str, str]) -> str:
    """That the winner of two systems only leads, a sentence after a space; empty: no doubt."""
    resolved = [c for c in several if c.ratio and c.verdict in ("faster", "slower")]
    won = {c.verdict for c in resolved}
    if len(won) != 1:
        return ""
    winner, other = (b, a) if won == {"faster"} else (a, b)
    seen = [c if winner == b else pairs.of(c.a, c) for c in resolved]
    doubt = standing.doubts([(other, c) for c in seen])
    against = [one for one in (f"was {doubt}" if doubt else "", dies.get(winner, "")) if one]
    return f" {ONLY_LEADS.format(winner)} {listed(against)}." if against else ""


def speeds(found: Found) -> dict[str, float]:
    """Log speed of each system, so that log(b/a) = speed of b − speed of a by least squares.

    Where all pairs are compared at as many settings, it is the mean of a system's log ratios over
    all others. Where some are not, what is missing follows from the others, so that nobody gains
    by being compared more often, or with slower ones only. Their mean is 0 among systems that
    comparisons connect.
    """
    names = list(dict.fromkeys(name for pair in found for name in pair))
    rows, logs = [], []
    for (a, b), several in found.items():
        for c in several:
            if c.ratio is not None and c.ratio.value > 0:
                rows.append([float(name == b) - float(name == a) for name in names])
                logs.append(math.log(c.ratio.value))
    if not rows:
        return {}
    solved = np.linalg.lstsq(np.array(rows), np.array(logs), rcond=None)[0]
    return dict(zip(names, solved.tolist(), strict=True))


def _others(t: TreatmentResult) -> dict[str, object]:
    return {factor: level for factor, level in t.levels.items() if factor != "system"}


def pair(
    a_name: str, b_name: str, several: Sequence[Comparison], metric: str, at: str = SETTINGS,
    part: str = "",
) -> str:  # fmt: skip
    """How two systems compare at their settings; empty where no comparison is resolved.

    ``part``: over what part of the requests, a clause.
    Of several ratios the range is that of their intervals, of which each is of 95 %.
    """
    resolved = [c for c in several if c.ratio and c.verdict in ("faster", "slower")]
    won = sum(c.verdict == "faster" for c in resolved)
    if not resolved:
        return ""
    all_of, open_ones = len(several), len(several) - len(resolved)
    rest = f" ({open_ones} not resolved or not comparable)" if open_ones else ""
    if 0 < won < len(resolved):
        return (
            f"Between {a_name} and {b_name} it depends: {b_name} is better at {won} and {a_name} "
            f"at {len(resolved) - won} of {all_of} {at}{rest}{standing.few(resolved)}{part}."
        )
    if not won:
        a_name, b_name = b_name, a_name
        resolved = [pairs.of(c.a, c) for c in resolved]
    where = f"{len(resolved)} of {all_of} " if open_ones else ""
    span = _range([c.ratio for c in resolved if c.ratio])
    how = f"{b_name} {as_good(metric, span, a_name)}"
    return f"At {where}{at} {how}{rest}{standing.few(resolved)}{part}."


def as_good(metric: str, span: str, other: str) -> str:
    """That something is so many times as good as another; ``span``: empty where that is unknown."""
    if not span:
        return f"is better than {other} by {words(metric)}"
    if metric == "throughput":
        return f"answers {span} as many queries per second as {other}"
    return f"is {span} as fast as {other} by {words(metric)}"


def _range(ratios: Sequence[Estimate]) -> str:
    """One ratio with its interval, or what all intervals span; empty where one is not known."""
    spans = [r.interval for r in ratios if r.interval is not None]
    if len(spans) < len(ratios):
        return ""
    if len(ratios) == 1:
        return times(ratios[0])
    low, high = min(span.low for span in spans), max(span.high for span in spans)
    if high > ABSURD * low:
        return f"{digits(low)} times (by the 95 % intervals; no upper limit is known) or more"
    if digits(low) == digits(high):
        return f"{digits(low)} times (to three digits, also by the ends of all 95 % intervals)"
    return f"{digits(low)} to {digits(high)} times (the range of the 95 % intervals)"


def best(names: Sequence[str], found: Found) -> str | None:
    """The system that every comparison resolves as better than every rival; None: there is none."""
    for name in names if len(names) > 1 else ():
        met = _met(name, names, found)
        if not _in_doubt(met) and not _lacking(met, found):
            return name
    return None


def _lacking(
    met: Mapping[str, Sequence[Comparison]], found: Found, at: str = SETTINGS,
    settings: Mapping[str, Hashable] = NONE,
) -> str:  # fmt: skip
    """At how many settings others were compared and this one was not, a clause; empty: at none.

    ``settings``: by treatment its own; without them, only the greatest number of any pair is known.
    """
    if settings:
        own, every = (
            {settings[c.a] for several in of.values() for c in several if c.ratio}
            for of in (met, found)
        )
        n, most = len(own), len(own | every)
    else:
        n, most = (max((len(several) for several in of.values()), default=0) for of in (met, found))
    return f"it was compared at only {n} of {most} {at}" if n < most else ""


def _met(name: str, names: Sequence[str], found: Found) -> dict[str, list[Comparison]]:
    """By rival, its comparisons with one system, whose ratios say how much better that one is."""
    met: dict[str, list[Comparison]] = {rival: [] for rival in names if rival != name}
    for (a, b), several in found.items():
        if name in (a, b):
            rival = a if name == b else b
            met[rival] = [pairs.of(c.b if name == b else c.a, c) for c in several]
    return met


def _in_doubt(met: Mapping[str, Sequence[Comparison]]) -> str:
    each = [(name, c) for name, own in met.items() for c in own]
    return standing.doubts([*each, *((name, None) for name, own in met.items() if not own)])


def many(
    systems: Sequence[str], found: Found, metric: str, at: str = SETTINGS, who: str = "systems",
    dies: Mapping[str, str] = NONE, settings: Mapping[str, Hashable] = NONE,
) -> list[str]:  # fmt: skip
    """The system that leads over all settings, by how much, and whether it is the best.

    ``dies``: by system, that it failed so often that it is not, a clause. ``settings``: as of
    ``_lacking``.
    """
    speed = speeds(found)
    together = max(_connected(found), key=len, default=set())
    if not together:
        return []
    leader = max((name for name in systems if name in together), key=speed.__getitem__)
    met = _met(leader, systems, found)
    asked = [c for several in met.values() for c in several]
    means = {name: mean for name, own in met.items() if (mean := _mean(own)) is not None}
    nearest_first = sorted(means.items(), key=lambda item: item[1].value)
    shown = ", ".join(f"{times(mean)} as good as {name}" for name, mean in nearest_first)
    reached = f" In the geometric mean of the ratios it is {shown}." if shown else ""
    won, lost = (sum(c.verdict == verdict for c in asked) for verdict in ("faster", "slower"))
    died = of_dying(dies)
    if not won:
        return [
            f"Not resolved: which of {len(systems)} {who} is the best by {words(metric)}. "
            f"Nearest to it is {leader}, but none of its {len(asked)} comparisons at {at} shows it "
            f"better.{reached}",
            *died,
        ]
    few = standing.few([c for c in asked if c.ratio])
    in_doubt, lacking = _in_doubt(met), _lacking(met, found, at, settings)
    if not in_doubt and not lacking and leader not in dies:
        return [
            f"Of {len(systems)} {who} {leader} is the best by {words(metric)} at all {at} "
            f"(better in each of {len(asked)} comparisons{few}).{reached}",
            *died,
        ]
    open_ones = len(asked) - won - lost
    outcomes = (lost, "worse"), (open_ones, "not resolved or not comparable")
    rest = "".join(f", {what} in {n}" for n, what in outcomes if n)
    alone = [name for name in systems if name not in together]
    in_doubt = f"; in one or more of them it is {in_doubt}" if in_doubt else ""
    return [
        f"Of {len(together)} {who} {'that can be compared ' if alone else ''}{leader} leads by "
        f"{words(metric)}: it is better in {won} of {len(asked)} "
        f"{plural(len(asked), 'comparison', 'comparisons')} at {at}{few}{rest}{in_doubt}"
        f"{', but ' + lacking if lacking else ''}"
        f"{', but it ' + dies[leader] if dies.get(leader) else ''}.{reached}",
        *of_dying(dies, but=[leader]),
    ]


def _mean(own: Sequence[Comparison]) -> Estimate | None:
    """The geometric mean of ratios, with an interval that holds however much they depend on each
    other: the mean of their ends. None where one has no interval, or other states could make it.
    """
    sure = all(
        c.verdict in ("faster", "slower") or (c.state_floor <= 1 and not c.answers_doubt)
        for c in own
    )
    spans = [c.ratio.interval for c in own if c.ratio and c.ratio.interval]
    if not own or not sure or len(spans) < len(own) or min(span.low for span in spans) <= 0:
        return None
    value, low, high = (
        math.exp(sum(map(math.log, each)) / len(own))
        for each in ([c.ratio.value for c in own if c.ratio], [s.low for s in spans],
                     [s.high for s in spans])
    )  # fmt: skip
    span = Interval(low, high, spans[0].level, "the mean of the ends, on logs")
    return Estimate(value, "ratio", len(own), span)


def _connected(found: Found) -> list[set[str]]:
    """The groups of systems that ratios connect, directly or through others."""
    groups: list[set[str]] = []
    for pair in (pair for pair, several in found.items() if any(c.ratio for c in several)):
        touched = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in touched]
        groups.append(set(pair).union(*touched))
    return groups
