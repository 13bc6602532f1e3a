"""The answer in one paragraph and in a short table: what was found, how sure, what is not known."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from searchbench.analysis.compare import pairs
from searchbench.analysis.judgement import (
    Comparison,
    Estimate,
    Floor,
    Scale,
    TreatmentResult,
    TrialResult,
    Verdict,
)
from searchbench.analysis.words import amount, digits, listed, plural, times, upper, words
from searchbench.record.trial import Load

WIDTH = 80
MOST_QUESTIONS = 4
FEW = 3  # systems of which each pair has a sentence; of more, the best against each other


def decide(
    treatments: Sequence[TreatmentResult],
    comparisons: Sequence[Comparison],
    loads: Mapping[str, Load],
    metric: str,
    noise_floor: Floor | None,
    require: str,
    scales: Sequence[Scale] = (),
) -> Verdict:
    """The verdict on a study by one metric. ``loads``: the load of each treatment."""
    trials = [trial for t in treatments for trial in t.trials]
    usable = [t for t in treatments if metric in t.figures]
    if not usable:
        return Verdict(_no_verdict(trials, metric), False, None)
    ranked = sorted(usable, key=lambda t: t.figures[metric].value, reverse=metric == "throughput")
    own = [c for c in comparisons if c.metric == metric]
    by_question = _questions(ranked)
    several = len(by_question) > 1
    first = ranked[0]
    mine = _of_first(first, own)
    labels = {t.treatment: t.label for t in treatments}
    if len(treatments) == 1:
        sentences = [
            f"{first.label} {_has(metric, first.figures[metric])}.",
            "There is nothing to compare it with.",
        ]
    elif len(treatments) == 2 and len(own) == 1:
        sentences = _of_two(labels, ranked, own[0], loads, metric, require)
    else:
        # The systems first: which of them is what most questions ask.
        sentences = _by_system(treatments, own, metric, require)
        if not several:
            sentences += _of_many(first, mine, metric, labels)
        elif len(by_question) <= MOST_QUESTIONS:
            sentences += [
                f"Asked {_question_of(asked)}: {_leader(members, own, metric, labels)}"
                for asked, members in by_question.items()
            ]
    sentences += _peaks(scales, metric)
    left_out = max((c.queries_left_out for c in mine), default=0)
    if left_out and len(treatments) > 2:
        sentences.append(
            f"Ratios are over the queries that both systems answer the same ({require}); up to "
            f"{left_out} {plural(left_out, 'query was', 'queries were')} left out."
        )
    sentences.append(_control(noise_floor))
    not_used = Counter(t.status for t in trials if t.status != "valid")
    if not_used:
        said = " and ".join(f"{n} {status}" for status, n in not_used.items())
        sentences.append(f"Of {len(trials)} trials, {said}; they are shown and not used.")
    won = any(c.verdict == "faster" for c in mine)
    header, lines = _table(list(by_question.values()), own, loads, metric)
    return Verdict(
        decision=" ".join(s for s in sentences if s),
        resolved=any(c.verdict in ("faster", "slower") for c in own),
        best=first.treatment if won and not several else None,
        lines=lines,
        header=header,
    )


def _table(
    groups: Sequence[Sequence[TreatmentResult]],
    own: Sequence[Comparison],
    loads: Mapping[str, Load],
    metric: str,
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Header and lines, at most 80 columns wide with two spaces between.

    ``groups``: treatments that were asked the same, the best of each group first. ``own``: the
    comparisons by ``metric``.
    """
    closed = all(loads[t.treatment].kind == "closed" for ranked in groups for t in ranked)
    kind = "service" if closed else "response"
    header = ("treatment", "queries/s", f"{kind} p50", "p99", "best is")
    lines = []
    for ranked in groups:
        first = ranked[0]
        against = {c.b: c for c in _of_first(first, own)}
        for t in ranked:
            p50, p99 = (t.figures.get(f"{kind}_{name}") for name in ("p50", "p99"))
            rank = "the best" if t is first else _short(against.get(t.treatment), t, first, metric)
            lines.append((t.label, _rate(t.figures.get("throughput")), _ms(p50), _ms(p99), rank))
    room = WIDTH - sum(
        2 + max(len(header[i]), *(len(row[i]) for row in lines)) for i in range(1, len(header))
    )
    fitted = tuple((clip(row[0], max(9, room)), *row[1:]) for row in lines)
    return header, fitted


def _of_first(first: TreatmentResult, own: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons of one treatment with others, as ratio first/other."""
    return [_seen_from(first.treatment, c) for c in own if first.treatment in (c.a, c.b)]


def _leader(
    ranked: Sequence[TreatmentResult],
    own: Sequence[Comparison],
    metric: str,
    labels: Mapping[str, str],
) -> str:
    """The best answer to one question, and what it cannot be told apart from."""
    first = ranked[0]
    there = {t.treatment for t in ranked}
    even = [c for c in _of_first(first, own) if c.b in there and c.verdict == "not resolved"]
    tail = f", not told apart from {listed([labels.get(c.b, c.b) for c in even])}" if even else ""
    return f"{first.label} leads with {amount(first.figures[metric])}{tail}."


def _of_two(
    labels: Mapping[str, str],
    ranked: Sequence[TreatmentResult],
    comparison: Comparison,
    loads: Mapping[str, Load],
    metric: str,
    require: str,
) -> list[str]:
    both = (comparison.a, comparison.b)
    first = ranked[0]
    if len(ranked) < 2:
        missing = next(labels[t] for t in both if t != first.treatment)
        return [
            f"Only {first.label} has a valid result: it {_has(metric, first.figures[metric])}.",
            f"{missing} has none ({comparison.reason}).",
        ]
    if comparison.verdict == "not comparable":
        return [f"Not comparable: {comparison.reason}, so no speed ratio is given."]
    winner = first.treatment
    if comparison.ratio is not None and (comparison.ratio.value > 1) == (winner == comparison.a):
        winner = next(t for t in both if t != winner)  # over the queries that agree
    seen = _seen_from(winner, comparison)
    over = f", over all {comparison.queries_used} queries, whatever they return"
    over = _where([loads[t] for t in both]) + (
        _over([comparison], require) if require != "none" else over
    )
    if seen.verdict == "faster" and seen.ratio is not None:
        left = comparison.queries_left_out
        said = f"{labels[seen.a]} {_beats(metric, seen.ratio, labels[seen.b])}{over}"
        gone = f"; {left} {plural(left, 'query was', 'queries were')} left out" if left else ""
        return [f"{said}{gone}."]
    ratio = f" (ratio {times(seen.ratio)})" if seen.ratio else ""
    return [
        f"Not resolved: {labels[seen.a]} and {labels[seen.b]} cannot be told apart by "
        f"{words(metric)}{over}{ratio}.",
        f"{upper(seen.reason)}." if seen.reason else "",
    ]


def _of_many(
    first: TreatmentResult,
    mine: Sequence[Comparison],
    metric: str,
    labels: Mapping[str, str],
) -> list[str]:
    more = "highest" if metric == "throughput" else "lowest"
    sentences = [f"{first.label} has the {more} {words(metric)}: {amount(first.figures[metric])}."]
    wins = [(c.ratio, c.b) for c in mine if c.verdict == "faster" and c.ratio]
    even = [c for c in mine if c.verdict == "not resolved"]
    other = [c for c in mine if c.verdict == "not comparable"]
    if wins:
        ratio, nearest = min(wins, key=lambda win: win[0].value)
        count = f"{len(wins)} of the {len(mine)} others"
        whom = "each of the others" if len(wins) == len(mine) else count
        sentences.append(
            f"It is better than {whom} it was compared with, and {times(ratio)} as "
            f"good as the nearest of these, {labels.get(nearest, nearest)}."
        )
    if even:
        names = listed([labels.get(c.b, c.b) for c in even])
        sentences.append(f"Not resolved: it cannot be told apart from {names}.")
        sentences.append(f"{upper(even[0].reason)}." if even[0].reason else "")
    if other:
        names = listed([labels.get(c.b, c.b) for c in other])
        sentences.append(f"Not comparable with {names}: {other[0].reason}.")
    return sentences


def _peaks(scales: Sequence[Scale], metric: str) -> list[str]:
    sentences = []
    for scale in (scale for scale in scales if scale.metric == metric):
        levels = (
            str(v) if k == "system" else f"{_short_name(k)}={v}" for k, v in scale.held.items()
        )
        held = f" ({' '.join(levels)})" if scale.held else ""
        unclear = scale.best_not_resolved_from
        tail = f", not told apart from {listed([f'{x:g}' for x in unclear])}" if unclear else ""
        sentences.append(f"Of {_short_name(scale.factor)}, {scale.best:g} is the best{held}{tail}.")
    return sentences if len(sentences) <= 4 else []


def _control(noise_floor: Floor | None) -> str:
    if noise_floor is None:
        return (
            "There is no A/A control in this record, so it is not known which differences "
            "the machine alone would make."
        )
    return (
        f"The A/A control differs by at most {100 * (noise_floor.value - 1):.1f} % "
        f"({noise_floor.n} {plural(noise_floor.n, 'pair', 'pairs')} of {noise_floor.treatments} "
        f"{plural(noise_floor.treatments, 'treatment', 'treatments')})."
    )


def _no_verdict(trials: Sequence[TrialResult], metric: str) -> str:
    if not trials:
        return "No verdict: no trial is on record yet."
    reasons = Counter(t.reason for t in trials if t.status != "valid" and t.reason)
    if not reasons:
        return f"No verdict: no trial has enough samples for {words(metric)}."
    reason, n = reasons.most_common(1)[0]
    valid = sum(t.status == "valid" for t in trials)
    return (
        f"No verdict: of {len(trials)} trials {valid} are valid, and none gives "
        f"{words(metric)}. The most frequent reason ({n} of {len(trials)}): {reason}."
    )


def _by_system(
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
        levels = ({k: v for k, v in t.levels.items() if k != "system"} for t in (a, b))
        if a.system != b.system and next(levels) == next(levels):
            found.setdefault((a.system, b.system), []).append(c)
    if len({name for pair in found for name in pair}) > FEW:
        return _many(found, metric, require)
    sentences = (_pair(*pair, several, metric, require) for pair, several in found.items())
    return [sentence for sentence in sentences if sentence]


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
    best = max(systems, key=lambda name: sum(map(math.log, means[name].values())))
    others = sorted(means[best].items(), key=lambda item: item[1])
    if not others:
        return []
    asked = [
        (c, "faster" if pair[1] == best else "slower")
        for pair, several in found.items()
        for c in several
        if best in pair
    ]
    won = sum(c.verdict == wins for c, wins in asked)
    open_ones = sum(c.verdict not in ("faster", "slower") for c, _ in asked)
    lost = len(asked) - won - open_ones
    rest = [f"{won} times better" if won != 1 else "once better"]
    rest += [f"{lost} times worse" if lost != 1 else "once worse"] if lost else []
    rest += [f"{open_ones} times not resolved or not comparable"] if open_ones else []
    shown = ", ".join(f"{digits(r)} times {name}" for name, r in others)
    if not won:
        return [
            f"Not resolved: which of {len(systems)} systems is the best by {words(metric)}. "
            f"Nearest to it is {best}, in the geometric mean of the ratios {shown}, but none of "
            f"its {len(asked)} comparisons at otherwise equal settings resolves."
        ]
    over = _over([c for c, _ in asked], require)
    return [
        f"Of {len(systems)} systems {best} is the best by {words(metric)} over the otherwise equal "
        f"settings ({', '.join(rest)} in {len(asked)} comparisons{over}). In "
        f"the geometric mean of the ratios it reaches {shown}."
    ]


def _against(name: str, found: dict[tuple[str, str], list[Comparison]]) -> dict[str, float]:
    """Geometric mean of this system's ratios over each other one."""
    means = {}
    for (a, b), several in found.items():
        if name not in (a, b):
            continue
        logs = [math.log(c.ratio.value) for c in several if c.ratio and c.ratio.value > 0]
        if logs:
            mean = sum(logs) / len(logs)
            means[a if name == b else b] = math.exp(mean if name == b else -mean)
    return means


def _questions(
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


def _question_of(asked: tuple[tuple[str, object], ...]) -> str:
    """A question in a sentence: "match=any"."""
    return listed([f"{_short_name(f)}={v}" for f, v in asked]) if asked else ""


def _short_name(factor: str) -> str:
    """ "load.clients" → "clients"."""
    return factor.rsplit(".", 1)[-1]


def _over(several: Sequence[Comparison], require: str) -> str:
    """On how many queries the ratios rest; the fewest, where they differ."""
    fewest = min(several, key=lambda c: c.queries_used)
    total = fewest.queries_used + fewest.queries_left_out
    if require == "none":
        return f", over all {total} queries, whatever they return"
    used = fewest.queries_used
    return f", over the {used} of {total} queries on which both return the same {require}"


def _seen_from(treatment: str, c: Comparison) -> Comparison:
    """The same comparison with ``treatment`` as the one that is better or worse: it becomes ``a``
    here, ``b`` the other, and the ratio says how many times as good ``a`` is.
    """
    c = pairs.of(treatment, c)
    return replace(c, a=c.b, b=c.a)


def _beats(metric: str, ratio: Estimate, other: str) -> str:
    if metric == "throughput":
        return f"answers {times(ratio)} as many queries per second as {other}"
    return f"is {times(ratio)} as fast as {other} by {words(metric)}"


def _has(metric: str, figure: Estimate) -> str:
    if metric == "throughput":
        return f"answers {amount(figure)}"
    return f"has a {words(metric)} of {amount(figure)}"


def _where(loads: Sequence[Load]) -> str:
    first = loads[0]
    if any(load != first for load in loads):
        return ""
    if first.kind == "closed":
        n = first.clients or 1
        return f" at {n} {plural(n, 'client', 'clients')}"
    rate = first.rate_per_s
    return f" at {rate:,.6g} queries per second offered" if rate else ""


def _short(
    c: Comparison | None, other: TreatmentResult, first: TreatmentResult, metric: str
) -> str:
    if c is None:  # no comparison was planned: the plain ratio, marked as such
        ratio = first.figures[metric].value / other.figures[metric].value
        return f"({digits(ratio if metric == 'throughput' else 1 / ratio)}x, untested)"
    if c.verdict == "not comparable":
        return "not comparable"
    if c.verdict == "not resolved" or c.ratio is None:
        return "not resolved"
    return f"{digits(c.ratio.value)}x {c.verdict}"


def _rate(figure: Estimate | None) -> str:
    if figure is None:
        return "-"
    span = figure.interval
    half = 100 * (span.high - span.low) / 2 / figure.value if span else 0.0
    spread = (f" ±{half:.0f}%" if half < 100 else " ±>100%") if span else ""
    return f"{digits(figure.value)}{spread}"


def _ms(figure: Estimate | None) -> str:
    return "-" if figure is None else f"{digits(figure.value * 1e3)} ms"


def clip(label: str, width: int) -> str:
    """A treatment's label in ``width`` characters, still telling treatments apart if it can.

    First the names go of levels that are words ("match=any" says no more than "any"), then the
    middle: systems stand at the beginning, and what was varied last at the end.
    """
    if len(label) > width:
        label = " ".join(
            value if value[:1].isalpha() and value not in ("true", "false") else name + eq + value
            for name, eq, value in (part.partition("=") for part in label.split(" "))
        )
    if len(label) <= width:
        return label
    end = (width - 1) // 2
    return label[: width - 1 - end] + "…" + label[-end:]
