"""The answer in one paragraph and in a short table: what was found, how sure, what is not known.

Longer than most files, because sentences that stand side by side are written side by side.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from searchbench.analysis.answer import Rank, Said, in_short, said, sentences
from searchbench.analysis.compare import (
    builds,
    by_class,
    compiling,
    failed,
    jobs,
    pairs,
    standing,
    systems,
    why,
)
from searchbench.analysis.compare.family import asking
from searchbench.analysis.judgement import (
    ClassComparison,
    Comparison,
    Estimate,
    Floor,
    Scale,
    TreatmentResult,
    TrialResult,
    Verdict,
)
from searchbench.analysis.trial import by_system
from searchbench.analysis.words import (
    amount,
    digits,
    listed,
    most_frequent,
    of_job,
    plural,
    times,
    upper,
    words,
)
from searchbench.record.trial import Load

WIDTH = 80
MOST_QUESTIONS = 4
NOT_SHOWN = "not shown to be better than"
NAMED = 3  # rivals that a point names
# Levels that say nothing without the name of their factor.
_NEEDS_NAME = re.compile(r"true|false|[-+.\d]+")


def decide(
    treatments: Sequence[TreatmentResult],
    comparisons: Sequence[Comparison],
    loads: Mapping[str, Load],
    metric: str,
    noise_floor: Floor | None,
    require: str,
    scales: Sequence[Scale] = (),
    classes: Sequence[ClassComparison] = (),
    first: Sequence[Said] = (),
) -> Verdict:
    """The verdict on a study by one metric. ``loads``: the load of each treatment; ``classes``:
    the comparisons by class of queries; ``first``: what a study of this kind asks before all else.
    """
    trials = [trial for t in treatments for trial in t.trials]
    usable = [t for t in treatments if metric in t.figures]
    if not usable:
        none = _no_verdict(trials, metric)
        if treatments and all(t.failed for t in treatments):
            none = "No verdict: every method fails."
        none = " ".join([none, *failed.said_of_methods(treatments)])
        headline, points = in_short([*said(sentences([none]), Rank.ANSWER, Rank.DOUBT)])
        return Verdict(none, False, None, headline=headline, points=points)
    ranked = sorted(usable, key=lambda t: t.figures[metric].value, reverse=metric == "throughput")
    own = [c for c in comparisons if c.metric == metric]
    asks = asking(treatments)
    rivals = _questions(treatments, asks)
    of_question = _questions(ranked, asks)
    groups = [_group(each, rivals[asked], own) for asked, each in of_question.items()]
    several, group = len(rivals) > 1, groups[0]
    labels = {t.treatment: t.label for t in treatments}
    if len(treatments) == 1:
        alone = f"{group.first.label} {_has(metric, group.first.figures[metric])}."
        found = [Said(alone, Rank.ANSWER), Said("There is nothing to compare it with.")]
    elif len(treatments) == 2 and len(own) == 1:
        fails = failed.methods(*treatments)
        two = _of_two(labels, ranked, own[0], loads, metric, require, fails)
        found = [*said(two, Rank.ANSWER, Rank.DOUBT)]
    else:
        # The systems first, or next: which of them is what most questions ask.
        found = [*first]
        by_system = sentences(systems.by_system(treatments, own, metric))
        found += said(by_system, Rank.MORE if found else Rank.ANSWER, Rank.MORE)
        if not several:
            found += _of_many(group, metric, labels, Rank.MORE if found else Rank.ANSWER)
        elif len(groups) <= MOST_QUESTIONS:
            asked = (
                f"Asked {_question_of(one.first, asks)}: {_most(one, metric)}." for one in groups
            )
            found += said(asked, Rank.MORE)
        else:
            found += said([_tally(groups, asks)], Rank.MORE if found else Rank.ANSWER)
        found += said([standing.over_all(own, require)], Rank.DOUBT)
    # One that is faster overall and slower for a class is no simple answer.
    found += said(by_class.sentences(classes, own, labels, metric), Rank.DOUBT)
    found += said([jobs.sentence(own, labels, require)], Rank.DOUBT)
    levelled = [scale for scale in scales if not _asks(scale.factor, asks)]
    found += said(_peaks(levelled, metric, own, treatments), Rank.ASIDE)
    doubts = [
        failed.sentence(own, labels),
        standing.unsure(own),
        compiling.sentence(own, {t.treatment: t.trials for t in treatments}, labels),
        builds.sentence([c.build_floor for c in own]),
    ]
    found += said(doubts, Rank.DOUBT)
    if len(treatments) > 2 or len(own) != 1:  # of two it is the answer
        found += said(failed.said_of_methods(treatments), Rank.MORE)
    found += said([_control(noise_floor)], Rank.ASIDE if noise_floor else Rank.DOUBT)
    not_used = Counter(t.status for t in trials if t.status != "valid")
    if not_used:
        what = " and ".join(f"{n} {status}" for status, n in not_used.items())
        lost = f"Of {len(trials)} trials, {what}; these are shown and not used."
        found.append(Said(lost, Rank.DOUBT))
    header, lines = _table(groups, loads, metric)
    headline, points = in_short(found)
    return Verdict(
        decision=" ".join(s.text for s in found),
        resolved=any(c.verdict in ("faster", "slower") for c in own),
        best=group.first.treatment if group.best and not several else None,
        lines=lines,
        header=header,
        would_change=why.of_all(own),
        headline=headline,
        points=points,
        doubts="" if several else group.doubts,
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """Treatments that were asked the same.

    ``ranked``: those with a figure, the leader first; ``met``: by treatment, its comparison with
    the leader as ratio leader/other. ``doubts``: why the leader is not the best; empty: it is, or
    it is alone. ``without``: those that have no figure.
    """

    ranked: Sequence[TreatmentResult]
    met: Mapping[str, Comparison]
    doubts: str
    alone: bool
    without: Sequence[TreatmentResult]

    @property
    def first(self) -> TreatmentResult:
        return self.ranked[0]

    @property
    def best(self) -> bool:
        return not self.doubts and not self.alone

    @property
    def leads(self) -> bool:
        """Whether there is a ratio to any rival: nobody leads whom nothing was compared with."""
        return any(c.ratio is not None for c in self.met.values())


def _group(
    ranked: Sequence[TreatmentResult],
    rivals: Sequence[TreatmentResult],
    own: Sequence[Comparison],
) -> _Group:
    """``ranked``: by figure; ``rivals``: all that were asked the same, also without a figure.

    The leader is of those that lose to nobody the one that wins most often, and of these the one
    with the best figure: figures are over all queries and all its blocks, comparisons over the
    queries that agree and the blocks that both have.
    """
    there = {t.treatment for t in rivals if not t.failed}

    def met(t: TreatmentResult) -> dict[str, Comparison]:
        return {c.b: c for c in _of_first(t, own) if c.b in there}

    verdicts = {t.treatment: [c.verdict for c in met(t).values()] for t in ranked}
    unbeaten = [t for t in ranked if "slower" not in verdicts[t.treatment]]
    first = max(unbeaten, key=lambda t: verdicts[t.treatment].count("faster"), default=ranked[0])
    found = met(first)
    # A method that fails is no rival there.
    others = [t for t in rivals if t is not first and not t.failed]
    doubts = standing.doubts((t.label, found.get(t.treatment)) for t in others)
    dies = _dies(first)
    in_doubt = ", ".join(filter(None, [doubts, f"having {dies}" if dies else ""]))
    rest = [t for t in ranked if t is not first]
    without = [t for t in rivals if t is not first and t not in rest]
    return _Group([first, *rest], found, in_doubt, not others, without)


def _dies(t: TreatmentResult) -> str:
    """That the system failed in half of its trials or more, a clause; else empty: who survives in
    the others only is not the best.
    """
    return by_system.often(*by_system.failed(t.trials))


def _table(
    groups: Sequence[_Group], loads: Mapping[str, Load], metric: str
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Header and lines, at most 80 columns wide with two spaces between."""
    closed = all(loads[t.treatment].kind == "closed" for group in groups for t in group.ranked)
    kind = "service" if closed else "response"
    header: tuple[str, ...] = ("treatment", "queries/s", f"{kind} p50", "p99", "first is")
    if job := of_job(metric):
        header = ("treatment", f"time of {job}", "first is")
    lines = []
    for group in groups:
        for t in group.ranked:
            p50, p99 = (t.figures.get(f"{kind}_{name}") for name in ("p50", "p99"))
            rank = "the best" if group.best else "in the lead" if group.leads else "-"
            if t is not group.first:
                rank = _short(group.met.get(t.treatment), t, group.first, metric)
            shown: tuple[str, ...] = (_rate(t.figures.get("throughput")), _ms(p50), _ms(p99))
            shown = (_s(t.figures.get(metric)),) if job else shown
            lines.append((t.label, *shown, rank))
        for t in group.without:
            why = "not measured" if any(x.counts for x in t.trials) else "no valid trial"
            why = "fails" if t.failed else why
            lines.append((t.label, *["-"] * (len(header) - 2), why))
    room = WIDTH - sum(
        2 + max(len(header[i]), *(len(row[i]) for row in lines)) for i in range(1, len(header))
    )
    fitted = tuple((clip(row[0], max(9, room)), *row[1:]) for row in lines)
    return header, fitted


def _of_first(first: TreatmentResult, own: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons of one treatment with others, as ratio first/other."""
    return [_seen_from(first.treatment, c) for c in own if first.treatment in (c.a, c.b)]


def _tally(groups: Sequence[_Group], asks: frozenset[str]) -> str:
    """Of many questions, in how many each is the best."""
    best = Counter(_who(group.first, asks) for group in groups if group.best)
    what = "operations" if "operation" in groups[0].first.levels else "questions"
    if sizes := sorted(_short_name(factor) for factor in asks):
        of = ["operation", *sizes] if what == "operations" else sizes
        what = f"levels of {listed(of)}"
    rest = sum(not group.best for group in groups)
    if not best:
        return f"In none of {len(groups)} {what} is anything shown to be better than all else."
    told = [f"{who} is the best in {n}" for who, n in best.most_common()]
    if rest:
        told.append(f"in {rest} nothing is shown to be better than all else that answers")
    return f"Of {len(groups)} {what}, {listed(told)}."


def _who(t: TreatmentResult, asks: frozenset[str]) -> str:
    """A treatment without what it was asked: "sensei method=bql"."""
    asked = dict(_question(t, asks))
    rest = {f: v for f, v in t.levels.items() if f not in asked and f != "system"}
    return " ".join([t.system, *(f"{_short_name(f)}={v}" for f, v in rest.items())])


def _leads(group: _Group, metric: str) -> str:
    """The leader with its figure; whether it is the best, or what keeps it from being it."""
    label, figure = group.first.label, group.first.figures[metric]
    if group.alone:
        return f"{label} {_has(metric, figure)}"
    tail = f", {group.doubts}" if group.doubts else ""
    if not group.leads:
        return f"{label} {_has(metric, figure)}{tail}"
    return f"{label} {'is the best' if group.best else 'leads'} with {amount(figure)}{tail}"


def _most(group: _Group, metric: str) -> str:
    """As ``_leads``, with a number where that names every rival that is not shown to be beaten."""
    found = [
        standing.doubt(group.met.get(t.treatment)) for t in (*group.ranked[1:], *group.without)
    ]
    if sum(map(bool, found)) <= NAMED or not group.leads:
        return _leads(group, metric)
    n = f"{sum(map(bool, found))} of the {len(found)} others"
    figure = amount(group.first.figures[metric])
    return f"{group.first.label} leads with {figure}, not shown to be better than {n}"


def _of_two(
    labels: Mapping[str, str],
    ranked: Sequence[TreatmentResult],
    comparison: Comparison,
    loads: Mapping[str, Load],
    metric: str,
    require: str,
    fails: str,
) -> list[str]:
    """``fails``: which of the two methods failed, a clause; empty: none."""
    both = (comparison.a, comparison.b)
    first = ranked[0]
    if len(ranked) < 2:
        missing = next(labels[t] for t in both if t != first.treatment)
        n = sum(t.status == "valid" for t in first.trials)
        if fails:
            return [
                f"{fails}, so there is nothing to compare {first.label} with.",
                f"{first.label} {_has(metric, first.figures[metric])} in {n} valid "
                f"{plural(n, 'trial', 'trials')}.",
            ]
        return [
            f"No answer: {missing} has no valid trial ({comparison.reason}), so nothing is known "
            "about it.",
            f"{first.label} {_has(metric, first.figures[metric])} in {n} valid "
            f"{plural(n, 'trial', 'trials')}, which decides nothing.",
        ]
    if comparison.verdict == "not comparable":
        return [f"Not comparable: {comparison.reason}, so no speed ratio is given."]
    winner = first.treatment
    if comparison.ratio is not None and (comparison.ratio.value > 1) == (winner == comparison.a):
        winner = next(t for t in both if t != winner)  # over the queries that agree
    seen = _seen_from(winner, comparison)
    job = of_job(metric)
    where = "" if job else _where([loads[t] for t in both])
    # A job is no query: its ratio is over nothing else.
    queries = "" if job else standing.over(comparison, require)
    over = where if job else f"{where}, {queries}"
    if seen.verdict == "faster" and seen.ratio is not None:
        left = comparison.queries_left_out
        said = f"{labels[seen.a]} {_beats(metric, seen.ratio, labels[seen.b])}{over}"
        gone = f"; {left} {plural(left, 'query was', 'queries were')} left out" if left else ""
        doubt = standing.doubt(seen)
        dies = next((_dies(t) for t in ranked if t.treatment == seen.a), "")
        against = [one for one in (f"was {doubt} {labels[seen.b]}" if doubt else "", dies) if one]
        leads = f"{labels[seen.a]} only leads: it {listed(against)}." if against else ""
        return [f"{said}{gone}.", leads]
    better = f"which of {labels[seen.a]} and {labels[seen.b]} is better by {words(metric)}{where}"
    reason = f"Reason: {seen.reason}." if seen.reason else ""
    if seen.ratio is None:
        return [f"Not resolved: {better}{'' if job else f', {queries}'}.", reason]
    span = seen.ratio.interval
    measured = f"{labels[seen.a]} {_beats(metric, seen.ratio, labels[seen.b])}"
    said = f"Not resolved: {better} ({measured})."
    if span is not None and span.low > 1:  # it is not chance that stands in the way
        said = f"Not resolved, though as measured {measured}{where}."
    return [said, reason, "" if job else f"The ratio is {queries}."]


def _of_many(group: _Group, metric: str, labels: Mapping[str, str], first: Rank) -> list[Said]:
    told = [Said(f"By {words(metric)}, {_leads(group, metric)}.", first)]
    mine = group.met.values()
    wins = [(c.ratio, c) for c in mine if c.verdict == "faster" and c.ratio]
    if wins:
        ratio, c = min(wins, key=lambda win: win[0].value)
        n, of = len(wins), len(mine)
        whom = f"{n} of the {of} treatments" if n < of else f"all {of} treatments"
        whom = whom if of > 1 else "the only treatment"
        nearest = f"{_beats(metric, ratio, labels.get(c.b, c.b))}{standing.few([c])}"
        better = (
            f"{group.first.label} is better than {whom} that it was compared with; it {nearest}"
            f"{', the nearest of these' if n > 1 else ''}."
        )
        told.append(Said(better, Rank.MORE if first is Rank.ANSWER else Rank.ASIDE))
    for verdict, joined in (("not resolved", "against"), ("not comparable", "with")):
        found = [c for c in mine if c.verdict == verdict and c.reason]
        if found:
            names = listed([labels.get(c.b, c.b) for c in found])
            eg = ", for example" if len({c.reason for c in found}) > 1 else ""
            told.append(Said(f"{upper(verdict)} {joined} {names}{eg}: {found[0].reason}."))
    return told


def _peaks(
    scales: Sequence[Scale],
    metric: str,
    own: Sequence[Comparison],
    treatments: Sequence[TreatmentResult],
) -> list[str]:
    told = []
    for scale in (scale for scale in scales if scale.metric == metric):
        levels = (
            str(v) if k == "system" else f"{_short_name(k)}={v}" for k, v in scale.held.items()
        )
        held = f" ({' '.join(levels)})" if scale.held else ""
        unclear = scale.best_not_resolved_from
        name, best = _short_name(scale.factor), f"{scale.best:g}"
        if unclear:
            others = listed([f"{x:g}" for x in unclear])
            said = (
                f"Of the levels of {name}, {best} leads{held}, not shown to be better than {others}"
            )
        else:
            said = f"The best level of {name} is {best}{held}"
        levels_of = {t.treatment for t in treatments if scale.held.items() <= t.levels.items()}
        met = [c for c in own if {c.a, c.b} <= levels_of]
        one_query = any(c.queries_measured == 1 for c in met)
        told.append(f"{said}{', by one query alone' if one_query else ''}.")
    return told if len(told) <= 4 else []


def _control(noise_floor: Floor | None) -> str:
    if noise_floor is None:
        return (
            "There is no valid A/A control in this record, so it is not known which differences "
            "the machine alone would make."
        )
    return (
        f"The noise floor of the A/A control is {100 * (noise_floor.value - 1):.1f} % "
        f"({noise_floor.n} {plural(noise_floor.n, 'pair', 'pairs')} of {noise_floor.treatments} "
        f"{plural(noise_floor.treatments, 'treatment', 'treatments')}): two measurements of the "
        "same thing differ by up to that here, so smaller differences are not resolved."
    )


def _no_verdict(trials: Sequence[TrialResult], metric: str) -> str:
    if not trials:
        return "No verdict: no trial is on record yet."
    reasons = [t.reason for t in trials if t.status != "valid" and t.reason]
    if not reasons:
        return f"No verdict: no trial has enough samples for {words(metric)}."
    reason, n = most_frequent(reasons)
    valid = sum(t.status == "valid" for t in trials)
    return (
        f"No verdict: of {len(trials)} trials {valid} are valid, and none gives "
        f"{words(metric)}. The most frequent reason ({n} of {len(trials)}): {reason}."
    )


def _questions(
    treatments: Sequence[TreatmentResult], asks: frozenset[str]
) -> dict[tuple[tuple[str, object], ...], list[TreatmentResult]]:
    """The treatments by what was asked of what: levels of [queries] and [corpus], the operation,
    and the levels that decide what it draws (``asks``).

    Who chooses a system does not choose the question, so there is no best across them.
    """
    found: dict[tuple[tuple[str, object], ...], list[TreatmentResult]] = {}
    for t in treatments:
        found.setdefault(_question(t, asks), []).append(t)
    return found


def _question(t: TreatmentResult, asks: frozenset[str]) -> tuple[tuple[str, object], ...]:
    return tuple((f, v) for f, v in t.levels.items() if _asks(f, asks))


def _asks(factor: str, asks: frozenset[str]) -> bool:
    """Whether its levels are other questions, or other documents to ask about."""
    known = factor == "operation" or factor.startswith(("queries.", "corpus."))
    return known or factor in asks


def _question_of(t: TreatmentResult, asks: frozenset[str]) -> str:
    """What a treatment was asked, in a sentence: "match=any"."""
    return listed([f"{_short_name(f)}={v}" for f, v in _question(t, asks)])


def _short_name(factor: str) -> str:
    """ "load.clients" → "clients"."""
    return factor.rsplit(".", 1)[-1]


def _seen_from(treatment: str, c: Comparison) -> Comparison:
    """The same comparison with ``treatment`` as the one that is better or worse: it becomes ``a``
    here, ``b`` the other, and the ratio says how many times as good ``a`` is.
    """
    c = pairs.of(treatment, c)
    return replace(c, a=c.b, b=c.a, failed=c.failed[::-1])


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
    about = "~" if c.state == "unknown" else ""
    return f"{about}{digits(c.ratio.value)}x {c.verdict}"


def _rate(figure: Estimate | None) -> str:
    if figure is None:
        return "-"
    span = figure.interval
    half = 100 * (span.high - span.low) / 2 / figure.value if span else 0.0
    spread = (f" ±{half:.0f}%" if half < 100 else " ±>100%") if span else ""
    return f"{digits(figure.value)}{spread}"


def _s(figure: Estimate | None) -> str:
    if figure is None:
        return "-"
    span = figure.interval
    half = 100 * (span.high - span.low) / 2 / figure.value if span else 0.0
    spread = (f" ±{half:.0f}%" if half < 100 else " ±>100%") if span else ""
    return f"{digits(figure.value)} s{spread}"


def _ms(figure: Estimate | None) -> str:
    return "-" if figure is None else f"{digits(figure.value * 1e3)} ms"


def clip(label: str, width: int) -> str:
    """A treatment's label in ``width`` characters, still telling treatments apart if it can.

    First the names go of levels that say enough without them ("any" for "match=any", but not "4"
    for "clients=4"), then the middle: systems stand at the beginning, and what was varied last at
    the end.
    """
    if len(label) > width:
        # A level may be of several words.
        parts = re.split(r" (?=[^ =]+=)", label)
        label = " ".join(
            value if eq and not _NEEDS_NAME.fullmatch(value) else part
            for part in parts
            for _, eq, value in [part.partition("=")]
        )
    if len(label) <= width:
        return label
    end = (width - 1) // 2
    return label[: width - 1 - end] + "…" + label[-end:]
