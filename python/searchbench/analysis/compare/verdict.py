"""The answer in one paragraph and in a short table: what was found, how sure, what is not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from searchbench.analysis.compare.systems import by_system, question_of, questions
from searchbench.analysis.judgement import Comparison, Estimate, Scale, TreatmentResult, Verdict
from searchbench.analysis.words import amount, digits, listed, plural, times, upper, words
from searchbench.record.trial import Load

WIDTH = 80
MOST_QUESTIONS = 4
MORE_IS_BETTER = ("throughput",)


def decide(
    treatments: Sequence[TreatmentResult],
    comparisons: Sequence[Comparison],
    loads: Mapping[str, Load],
    metric: str,
    noise_floor: Estimate | None,
    require: str,
    scales: Sequence[Scale] = (),
) -> Verdict:
    """The verdict on a study by one metric. ``loads``: the load of each treatment."""
    usable = [t for t in treatments if metric in t.figures]
    trials = [trial for t in treatments for trial in t.trials]
    if not usable:
        return Verdict(_no_verdict(treatments, metric), False, None)
    better = metric in MORE_IS_BETTER
    ranked = sorted(usable, key=lambda t: t.figures[metric].value, reverse=better)
    own = [c for c in comparisons if c.metric == metric]
    resolved = any(c.verdict in ("faster", "slower") for c in own)
    by_question = questions(ranked)
    several = len(by_question) > 1
    first = ranked[0]
    mine = _of_first(first, own)
    sentences = []
    if len(treatments) == 1:
        sentences.append(f"{first.label} {_has(metric, first.figures[metric])}.")
        sentences.append("There is nothing to compare it with.")
    elif len(treatments) == 2 and len(own) == 1:
        sentences += _of_two(treatments, ranked, own[0], loads, metric, require)
    else:
        # The systems first: which of them is what most questions ask.
        labels = {t.treatment: t.label for t in treatments}
        sentences += by_system(treatments, own, metric, require)
        if not several:
            sentences += _of_many(ranked, mine, metric, labels)
        elif len(by_question) <= MOST_QUESTIONS:
            sentences += [
                f"Asked {question_of(asked)}: {_leader(members, own, metric, labels)}"
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
    best = first.treatment if won and not several else None
    header, lines = table(list(by_question.values()), own, loads, metric)
    return Verdict(" ".join(s for s in sentences if s), resolved, best, lines, header)


def table(
    groups: Sequence[Sequence[TreatmentResult]],
    own: Sequence[Comparison],
    loads: Mapping[str, Load],
    metric: str,
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Header and lines, at most 80 columns wide with two spaces between.

    ``groups``: treatments that were asked the same, the best of each group first. ``own``: the
    comparisons by ``metric``.
    """
    everyone = [t for ranked in groups for t in ranked]
    opened = any(loads[t.treatment].kind != "closed" for t in everyone)
    kind = "response" if opened else "service"
    header = ("treatment", "queries/s", f"{kind} p50", "p99", "best is")
    lines = []
    for ranked in groups:
        first = ranked[0]
        against = {c.b: c for c in _of_first(first, own)}
        for t in ranked:
            rank = "the best" if t is first else _short(against.get(t.treatment), t, first, metric)
            figures = [t.figures.get(f"{kind}_{name}") for name in ("p50", "p99")]
            lines.append(
                (
                    t.label,
                    _rate(t.figures.get("throughput")),
                    *(_ms(figure) for figure in figures),
                    rank,
                )
            )
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
    treatments: Sequence[TreatmentResult],
    ranked: Sequence[TreatmentResult],
    comparison: Comparison,
    loads: Mapping[str, Load],
    metric: str,
    require: str,
) -> list[str]:
    both = (comparison.a, comparison.b)
    labels = {t.treatment: t.label for t in treatments}
    if len(ranked) < 2:
        missing = next(labels[t] for t in both if t != ranked[0].treatment)
        return [
            f"Only {ranked[0].label} has a valid result: it "
            f"{_has(metric, ranked[0].figures[metric])}.",
            f"{missing} has none ({comparison.reason}).",
        ]
    if comparison.verdict == "not comparable":
        return [f"Not comparable: {comparison.reason}, so no speed ratio is given."]
    winner = ranked[0].treatment
    if comparison.ratio is not None and (comparison.ratio.value > 1) == (winner == comparison.a):
        winner = next(t for t in both if t != winner)  # over the queries that agree
    seen = _seen_from(winner, comparison)
    where = _where([loads[t] for t in both])
    used, left = comparison.queries_used, comparison.queries_left_out
    over = f", over the {used} of {used + left} queries on which both return the same {require}"
    over = over if require != "none" else f", over all {used} queries, whatever they return"
    if seen.verdict == "faster" and seen.ratio is not None:
        said = f"{labels[seen.a]} {_beats(metric, seen.ratio, labels[seen.b])}{where}{over}"
        gone = f"; {left} {plural(left, 'query was', 'queries were')} left out" if left else ""
        return [f"{said}{gone}."]
    ratio = f" (ratio {times(seen.ratio)})" if seen.ratio else ""
    return [
        f"Not resolved: {labels[seen.a]} and {labels[seen.b]} cannot be told apart by "
        f"{words(metric)}{where}{over}{ratio}.",
        f"{upper(seen.reason)}." if seen.reason else "",
    ]


def _of_many(
    ranked: Sequence[TreatmentResult],
    mine: Sequence[Comparison],
    metric: str,
    labels: Mapping[str, str],
) -> list[str]:
    first = ranked[0]
    more = "highest" if metric in MORE_IS_BETTER else "lowest"
    sentences = [f"{first.label} has the {more} {words(metric)}: {amount(first.figures[metric])}."]
    wins = [c for c in mine if c.verdict == "faster" and c.ratio]
    even = [c for c in mine if c.verdict == "not resolved"]
    other = [c for c in mine if c.verdict == "not comparable"]
    if wins:
        nearest = min(wins, key=lambda c: c.ratio.value if c.ratio else 0.0)
        if nearest.ratio is not None:
            count = f"{len(wins)} of the {len(mine)} others"
            whom = "each of the others" if len(wins) == len(mine) else count
            sentences.append(
                f"It is better than {whom} it was compared with, and {times(nearest.ratio)} as "
                f"good as the nearest of these, {labels.get(nearest.b, nearest.b)}."
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
    for scale in scales:
        if scale.metric != metric:
            continue
        levels = (
            str(v) if k == "system" else f"{k.rsplit('.', 1)[-1]}={v}"
            for k, v in scale.held.items()
        )
        held = f" ({' '.join(levels)})" if scale.held else ""
        unclear = scale.best_not_resolved_from
        tail = f", not told apart from {listed([f'{x:g}' for x in unclear])}" if unclear else ""
        factor = scale.factor.rsplit(".", 1)[-1]
        sentences.append(f"Of {factor}, {scale.best:g} is the best{held}{tail}.")
    return sentences if len(sentences) <= 4 else []


def _control(noise_floor: Estimate | None) -> str:
    if noise_floor is None:
        return (
            "There is no A/A control in this record, so it is not known which differences "
            "the machine alone would make."
        )
    return (
        f"The A/A control differs by at most {100 * (noise_floor.value - 1):.1f} % "
        f"({noise_floor.n} {plural(noise_floor.n, 'pair', 'pairs')})."
    )


def _no_verdict(treatments: Sequence[TreatmentResult], metric: str) -> str:
    trials = [trial for t in treatments for trial in t.trials]
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


def _seen_from(treatment: str, c: Comparison) -> Comparison:
    """The same comparison with ``treatment`` as the one that is better or worse: it becomes ``a``
    here, ``b`` the other, and the ratio says how many times as good ``a`` is.
    """
    if treatment == c.b:
        return replace(c, a=c.b, b=c.a)
    turned = c.ratio
    if turned is not None:
        span = turned.interval
        inverse = replace(span, low=1 / span.high, high=1 / span.low) if span else None
        turned = replace(turned, value=1 / turned.value, interval=inverse)
    if c.verdict == "faster":
        return replace(c, ratio=turned, verdict="slower")
    if c.verdict == "slower":
        return replace(c, ratio=turned, verdict="faster")
    return replace(c, ratio=turned)


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
        return f"({digits(ratio if metric in MORE_IS_BETTER else 1 / ratio)}x, untested)"
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
        parts = (part.partition("=") for part in label.split(" "))
        label = " ".join(
            value
            if value and value[0].isalpha() and value not in ("true", "false")
            else name + eq + value
            for name, eq, value in parts
        )
    if len(label) <= width:
        return label
    end = (width - 1) // 2
    return label[: width - 1 - end] + "…" + label[-end:]
