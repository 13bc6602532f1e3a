"""Which system, in a few sentences, where several meet at several otherwise equal settings."""

from __future__ import annotations

import math
from collections.abc import Sequence

from searchbench.analysis.judgement import Comparison, TreatmentResult
from searchbench.analysis.words import digits, listed, words

FEW = 3  # systems of which each pair has a sentence; of more, the best against each other


def by_system(
    treatments: Sequence[TreatmentResult], own: Sequence[Comparison], metric: str, require: str
) -> list[str]:
    """The systems against each other, wherever they differ in nothing else.

    ``own``: the comparisons by ``metric``. Ratios are those of the comparisons, so over the
    queries that both answer alike.
    """
    by_id = {t.treatment: t for t in treatments}
    found: dict[tuple[str, str], list[Comparison]] = {}
    for c in own:
        a, b = by_id[c.a], by_id[c.b]
        if a.system != b.system and setting(a) == setting(b):
            found.setdefault((a.system, b.system), []).append(c)
    if len({name for pair in found for name in pair}) > FEW:
        return _many(found, metric, require)
    sentences = (_pair(*pair, several, metric, require) for pair, several in found.items())
    return [sentence for sentence in sentences if sentence]


def setting(treatment: TreatmentResult) -> tuple[tuple[str, object], ...]:
    """The levels of everything but the system."""
    return tuple((f, v) for f, v in treatment.levels.items() if f != "system")


def _pair(
    a_name: str, b_name: str, several: Sequence[Comparison], metric: str, require: str
) -> str:
    """The range of the ratios of two systems; empty where no comparison is resolved."""
    ratios = [c.ratio.value for c in several if c.ratio and c.verdict in ("faster", "slower")]
    if not ratios:
        return ""
    open_ones = len(several) - len(ratios)
    rest = f" ({open_ones} not resolved or not comparable)" if open_ones else ""
    if len({r > 1 for r in ratios}) == 2:
        return (
            f"Between {a_name} and {b_name} it depends: {b_name} is better at "
            f"{sum(r > 1 for r in ratios)} and {a_name} at {sum(r < 1 for r in ratios)} of "
            f"{len(several)} otherwise equal settings{rest}."
        )
    if ratios[0] < 1:
        a_name, b_name, ratios = b_name, a_name, [1 / r for r in ratios]
    span = f"{digits(min(ratios))} to {digits(max(ratios))}"
    span = span if len(ratios) > 1 else digits(ratios[0])
    return (
        f"At otherwise equal settings {b_name} is {span} times as good as {a_name} by "
        f"{words(metric)}{rest}{_over(several, require)}."
    )


def _many(found: dict[tuple[str, str], list[Comparison]], metric: str, require: str) -> list[str]:
    """The system that is best over all settings, and by how much, against each of the others."""
    systems = list(dict.fromkeys(name for pair in found for name in pair))
    means = {name: _against(name, found) for name in systems}
    best = max(systems, key=lambda name: sum(math.log(r) for r, _n in means[name].values()))
    others = sorted(means[best].items(), key=lambda item: item[1][0])
    if not others:
        return []
    asked = [c for pair, several in found.items() if best in pair for c in several]
    won = sum(
        c.verdict == ("faster" if pair[1] == best else "slower")
        for pair, several in found.items()
        if best in pair
        for c in several
    )
    open_ones = sum(c.verdict not in ("faster", "slower") for c in asked)
    lost = len(asked) - won - open_ones
    rest = [f"{won} times better" if won != 1 else "once better"]
    rest += [f"{lost} times worse" if lost != 1 else "once worse"] if lost else []
    rest += [f"{open_ones} times not resolved or not comparable"] if open_ones else []
    shown = ", ".join(f"{digits(r)} times {name}" for name, (r, _n) in others)
    if not won:
        return [
            f"Not resolved: which of {len(systems)} systems is the best by {words(metric)}. "
            f"Nearest to it is {best}, in the geometric mean of the ratios {shown}, but none of "
            f"its {len(asked)} comparisons at otherwise equal settings resolves."
        ]
    return [
        f"Of {len(systems)} systems {best} is the best by {words(metric)} over the otherwise equal "
        f"settings ({', '.join(rest)} in {len(asked)} comparisons{_over(asked, require)}). In "
        f"the geometric mean of the ratios it reaches {shown}."
    ]


def _against(
    name: str, found: dict[tuple[str, str], list[Comparison]]
) -> dict[str, tuple[float, int]]:
    """Geometric mean of this system's ratios over each other one, and of how many settings."""
    means = {}
    for (a, b), several in found.items():
        if name not in (a, b):
            continue
        logs = [math.log(c.ratio.value) for c in several if c.ratio and c.ratio.value > 0]
        if logs:
            mean = sum(logs) / len(logs)
            means[a if name == b else b] = (math.exp(mean if name == b else -mean), len(logs))
    return means


def questions(
    treatments: Sequence[TreatmentResult],
) -> dict[tuple[tuple[str, object], ...], list[TreatmentResult]]:
    """The treatments by what was asked of what: levels of [queries] and [corpus].

    Who chooses a system does not choose the question, so there is no best across them.
    """
    found: dict[tuple[tuple[str, object], ...], list[TreatmentResult]] = {}
    for t in treatments:
        asked = tuple((f, v) for f, v in t.levels.items() if f.startswith(("queries.", "corpus.")))
        found.setdefault(asked, []).append(t)
    return found


def question_of(asked: tuple[tuple[str, object], ...]) -> str:
    """A question in a sentence: "match=any"."""
    return listed([f"{f.rsplit('.', 1)[-1]}={v}" for f, v in asked]) if asked else ""


def _over(several: Sequence[Comparison], require: str) -> str:
    """On how many queries the ratios rest; the fewest, where they differ."""
    fewest = min(several, key=lambda c: c.queries_used)
    total = fewest.queries_used + fewest.queries_left_out
    if require == "none":
        return f", over all {total} queries, whatever they return"
    used = fewest.queries_used
    return f", over the {used} of {total} queries on which both return the same {require}"
