"""Treatments compared over one class of queries at a time: who is faster for which questions.

Each class is judged as the whole study is, over the queries of it on which both agree, with the
noise that the A/A control shows for that class. A verdict on a class is corrected for the
comparisons of the study and of all its classes together, so a class is not called faster because
many were looked at; the verdicts on the whole are corrected for each other alone.

Classes are compared where all treatments were asked one list of queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.agreement import agreement, every_trial
from searchbench.analysis.agreement.agreement import Pair
from searchbench.analysis.agreement.answers import AnswerBook
from searchbench.analysis.compare import builds, classes_failed, order, pairs
from searchbench.analysis.judgement import (
    ClassComparison,
    Comparison,
    Estimate,
    TreatmentResult,
    TrialResult,
)
from searchbench.analysis.trial import cache, classes
from searchbench.analysis.trial.classes import Classes
from searchbench.analysis.trial.measured import Samples
from searchbench.analysis.trial.replies import OTHERWISE
from searchbench.analysis.words import listed, percent, words
from searchbench.record import Record
from searchbench.record.trial import Load

NAMED = 3  # classes that a sentence names
# Figures of a whole trial that say in what state its queries were asked, and what became of them. A
# class has first asks of its own.
_OF_THE_WHOLE = ("first_asks", cache.FIGURE, OTHERWISE)


@dataclass(frozen=True)
class _Answers:
    """The answers to the queries of one class."""

    book: AnswerBook
    members: NDArray[np.int64]

    def pair(self, a: str, b: str) -> Pair | None:
        """How two treatments agree on them."""
        whole = self.book.pair(a, b)
        if whole is None:
            return None
        x, y = self.book.of(a), self.book.of(b)
        assert x is not None
        assert y is not None
        members, rule = self.members, self.book.rule
        if self.book.wavers(a, b):  # in other trials they may answer otherwise
            members = np.intersect1d(members, whole.agreeing)
        return agreement.compare(every_trial.only(x, members), y, require=rule.require, k=rule.k)

    def otherwise(self, a: str, b: str) -> NDArray[np.int64]:
        """What both do not answer alike, of all that was asked: a server works on every class."""
        return self.book.otherwise(a, b)

    def distinct(self, treatment: str) -> int:
        """How many queries the class has."""
        return int(self.members.size)


def of_record(record: Record, treatments: Sequence[TreatmentResult]) -> Classes | None:
    """The classes of the one list that all treatments were asked; None where there is no such."""
    trials = {t.trial: t for t in record.trials}
    found = [trials[t.trials[0].trial] for t in treatments if t.trials]
    if not found or len({t.queries.digest for t in found}) > 1:
        return None
    own = classes.of_trial(record, found[0])
    return own.shown if own is not None and len(own.names) > 1 else None


def comparisons(
    of: Classes | None,
    treatments: Sequence[TreatmentResult],
    loads: Mapping[str, Load],
    samples: Samples,
    answers: AnswerBook,
    metric: str,
    built: builds.Builds,
    whole: Sequence[float | None],
    places: order.Places | None = None,
) -> tuple[ClassComparison, ...]:
    """Every comparison over every class. ``whole``: the p-values of those of the study;
    ``places``: as in ``pairs.drafts``.
    """
    if of is None:
        return ()
    drafts = []
    for name in of.names:
        own, members = [of_treatment(t, name) for t in treatments], of.members(name)
        metrics = sorted({m for load in loads.values() for m in pairs.metrics_for(load, metric)})
        floors = pairs.noise_floors(own, metrics)
        answered = _Answers(answers, members)
        draft = pairs.drafts(
            own, loads, samples, answered, floors, metric, built, members=members, places=places
        )
        drafts.append((name, replace(draft, whole={t.treatment: t for t in treatments})))
    found = []
    for name, draft in drafts:
        beside = [p for other, d in drafts if other != name for p in d.p_values]
        found += [ClassComparison(name, c) for c in pairs.decided(draft, [*whole, *beside])]
    by_id = {t.treatment: t for t in treatments}
    both = dict.fromkeys((f.compared.a, f.compared.b) for f in found)
    fails = classes_failed.in_study([(by_id[a], by_id[b]) for a, b in both], of.names)
    return tuple(_with(f, fails.get((f.name, f.compared.a, f.compared.b), "")) for f in found)


def _with(found: ClassComparison, fails: str) -> ClassComparison:
    """The same with the reason that one of both fails requests of it, before any other."""
    reason = "; ".join(filter(None, (fails, found.compared.reason)))
    return replace(found, compared=replace(found.compared, reason=reason))


def of_treatment(t: TreatmentResult, name: str) -> TreatmentResult:
    """A treatment whose trials are as if nothing but one class had been asked of it."""
    return replace(t, trials=tuple(_trial(trial, name) for trial in t.trials))


def _trial(trial: TrialResult, name: str) -> TrialResult:
    seen = next((one for one in trial.classes if one.name == name), None)
    kept = {key: trial.figures[key] for key in _OF_THE_WHOLE if key in trial.figures}
    if OTHERWISE in kept and seen is not None and "share" in seen.figures:
        # Which class they were of is not on record, so all of them may have been of this one.
        share = seen.figures["share"].value
        most = min(1.0, kept[OTHERWISE].value / share) if share else 1.0
        kept[OTHERWISE] = replace(kept[OTHERWISE], value=most)
    return replace(trial, figures={**kept, **(seen.figures if seen else {})})


def sentences(
    found: Sequence[ClassComparison],
    compared: Sequence[Comparison],
    labels: Mapping[str, str],
    metric: str,
) -> list[str]:
    """What the classes say beside the whole, for each pair of which one of them is resolved, or
    that one of the two fails and not the other.

    Where a class says the opposite of the whole, that is what the sentence begins with.
    """
    said = []
    for whole in (c for c in compared if c.metric == metric):
        own = [f for f in found if _same(f.compared, whole)]
        if sentence := _of_pair(own, whole, labels, metric):
            said.append(sentence)
    return said


def _same(a: Comparison, b: Comparison) -> bool:
    return (a.a, a.b, a.metric) == (b.a, b.b, b.metric)


def _of_pair(
    own: Sequence[ClassComparison], whole: Comparison, labels: Mapping[str, str], metric: str
) -> str:
    faster, slower, other = (
        [f for f in own if f.compared.verdict == verdict]
        for verdict in ("faster", "slower", "not resolved")
    )
    failing = [f for f in own if classes_failed.FAILS in f.compared.reason]
    if not faster and not slower and not failing:
        return ""
    a, b = labels.get(whole.a, whole.a), labels.get(whole.b, whole.b)
    overall = {"faster": "faster", "slower": "slower"}.get(whole.verdict, "")
    against = slower if whole.verdict == "faster" else faster if whole.verdict == "slower" else []
    parts = []
    if faster:
        parts.append(f"faster for {_named(faster)}")
    if slower:
        parts.append(f"slower for {_named(slower)}")
    if against:
        first, second = (slower, faster) if whole.verdict == "faster" else (faster, slower)
        other_way = "slower" if whole.verdict == "faster" else "faster"
        parts = [f"{overall} overall, but {other_way} for {_named(first)}"]
        if second:
            parts.append(f"{overall} for {_named(second)}")
    if other := [f for f in other if f not in failing]:
        few = len(other) <= NAMED
        which = listed([f.name for f in other]) if few else f"{len(other)} classes"
        parts.append(f"not resolved for {which}")
    said = f"and {words(metric)}, {b} is {', '.join(parts)}, compared with {a}" if parts else ""
    fails = [_failing(failing, who, rival) for who, rival in ((b, a), (a, b))]
    told = "; ".join(filter(None, (said, *fails)))
    return f"By class of queries{' ' if said else ', '}{told}."


def _failing(found: Sequence[ClassComparison], who: str, rival: str) -> str:
    """Which classes one of two fails, the most first, a clause; empty: none."""
    mine = [f for f in found if f.compared.reason.startswith(f"{who} {classes_failed.FAILS}")]
    most = [(max(f.compared.failed), min(f.compared.failed), f.name) for f in mine]
    named = [(worse, f"{name} ({percent(worse)} of them failed; with {rival}, {percent(less)})")
             for worse, less, name in most]  # fmt: skip
    return f"{who} fails requests of {greatest_first(named)}" if named else ""


def _named(found: Sequence[ClassComparison]) -> str:
    sizes = [size(f.compared.ratio) for f in found]
    return greatest_first(
        [(s, f"{f.name} ({s:.3g} times)") for s, f in zip(sizes, found, strict=True)]
    )


def size(ratio: Estimate | None) -> float:
    """How far a ratio is from 1, either way, as a factor."""
    return max(ratio.value, 1 / ratio.value) if ratio else 1.0


def greatest_first(named: Sequence[tuple[float, str]]) -> str:
    """What has a size and a name in a sentence, the greatest first; of many a number."""
    most = sorted(named, key=lambda one: one[0], reverse=True)
    names = [name for _, name in most[:NAMED]]
    if (rest := len(most) - NAMED) > 0:
        names.append(f"{rest} more")
    return listed(names)
