"""The systems of a study against each other, wherever they differ in nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from searchbench.analysis.compare import pairs, standing
from searchbench.analysis.judgement import Comparison, TreatmentResult
from searchbench.analysis.words import digits, plural, words

FEW = 3  # systems of which each pair has a sentence; of more, the leader against each other

# By the two systems, a and b, their comparisons at otherwise equal settings, b against a.
Found = Mapping[tuple[str, str], Sequence[Comparison]]


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
    systems = list(dict.fromkeys(t.system for t in treatments))
    if len(systems) > FEW:
        return _many(systems, found, metric)
    sentences = (_pair(*pair, several, metric) for pair, several in found.items())
    return [sentence for sentence in sentences if sentence]


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


def _pair(a_name: str, b_name: str, several: Sequence[Comparison], metric: str) -> str:
    """The range of the ratios of two systems; empty where no comparison is resolved."""
    resolved = [c for c in several if c.ratio and c.verdict in ("faster", "slower")]
    ratios = [c.ratio.value for c in resolved if c.ratio]
    if not ratios:
        return ""
    all_of = len(several)
    open_ones = all_of - len(ratios)
    rest = f" ({open_ones} not resolved or not comparable)" if open_ones else ""
    if len({r > 1 for r in ratios}) == 2:
        return (
            f"Between {a_name} and {b_name} it depends: {b_name} is better at "
            f"{sum(r > 1 for r in ratios)} and {a_name} at {sum(r < 1 for r in ratios)} of "
            f"{all_of} otherwise equal settings{rest}{standing.few(resolved)}."
        )
    if ratios[0] < 1:
        a_name, b_name, ratios = b_name, a_name, [1 / r for r in ratios]
    span = f"{digits(min(ratios))} to {digits(max(ratios))}"
    span = span if len(ratios) > 1 else digits(ratios[0])
    where = f"{len(ratios)} of {all_of} " if open_ones else ""
    return (
        f"At {where}otherwise equal settings {b_name} is {span} times as good as {a_name} by "
        f"{words(metric)}{rest}{standing.few(resolved)}."
    )


def _many(systems: Sequence[str], found: Found, metric: str) -> list[str]:
    """The system that leads over all settings, by how much, and whether it is the best."""
    speed = speeds(found)
    together = max(_connected(found), key=len, default=set())
    if not together:
        return []
    leader = max((name for name in systems if name in together), key=speed.__getitem__)
    met: dict[str, list[Comparison]] = {name: [] for name in systems if name != leader}
    for (a, b), several in found.items():
        if leader in (a, b):
            rival = a if leader == b else b
            met[rival] = [pairs.of(c.b if leader == b else c.a, c) for c in several]
    asked = [c for several in met.values() for c in several]
    with_ratio = {name: [c for c in own if c.ratio] for name, own in met.items()}
    means = {
        name: math.exp(sum(math.log(c.ratio.value) for c in own if c.ratio) / len(own))
        for name, own in with_ratio.items()
        if own
    }
    nearest_first = sorted(means.items(), key=lambda item: item[1])
    shown = ", ".join(f"{digits(mean)} times {name}" for name, mean in nearest_first)
    won, lost = (sum(c.verdict == verdict for c in asked) for verdict in ("faster", "slower"))
    if not won:
        return [
            f"Not resolved: which of {len(systems)} systems is the best by {words(metric)}. "
            f"Nearest to it is {leader}, in the geometric mean of the ratios {shown}, but none of "
            f"its {len(asked)} comparisons at otherwise equal settings shows it better."
        ]
    few = standing.few([c for c in asked if c.ratio])
    each = [(name, c) for name, own in met.items() for c in own]
    in_doubt = standing.doubts([*each, *((name, None) for name, own in met.items() if not own)])
    reached = f"In the geometric mean of the ratios it reaches {shown}."
    if not in_doubt:
        return [
            f"Of {len(systems)} systems {leader} is the best by {words(metric)} at all otherwise "
            f"equal settings (better in each of {len(asked)} comparisons{few}). {reached}"
        ]
    open_ones = len(asked) - won - lost
    outcomes = (won, "better"), (lost, "worse"), (open_ones, "not resolved or not comparable")
    rest = [f"{'once' if n == 1 else f'{n} times'} {what}" for n, what in outcomes if n]
    alone = [name for name in systems if name not in together]
    return [
        f"Of {len(together)} systems {'that can be compared ' if alone else ''}{leader} leads by "
        f"{words(metric)} over the otherwise equal settings ({', '.join(rest)} in {len(asked)} "
        f"{plural(len(asked), 'comparison', 'comparisons')}{few}); at one or more of them it is "
        f"{in_doubt}. {reached}"
    ]


def _connected(found: Found) -> list[set[str]]:
    """The groups of systems that ratios connect, directly or through others."""
    groups: list[set[str]] = []
    for pair in (pair for pair, several in found.items() if any(c.ratio for c in several)):
        touched = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in touched]
        groups.append(set(pair).union(*touched))
    return groups
