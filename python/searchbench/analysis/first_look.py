"""A first look (``run --quick``) shows figures and decides nothing, and says so before all else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from searchbench.analysis import answer
from searchbench.analysis.compare import pairs, systems
from searchbench.analysis.judgement import (
    ClassComparison,
    Comparison,
    Finding,
    Judgement,
    Step,
    TreatmentResult,
)
from searchbench.analysis.words import listed, most_frequent, times

SENTENCE = (
    "This is a first look, which decides nothing: blocks, windows and documents were cut. Run the "
    "study without --quick for an answer."
)
_REASON = "a first look decides nothing"
_MOST = 4  # ratios that are said; the rest is in the tables


def unresolved(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The same figures, and no winner."""
    return tuple(
        replace(c, verdict="not resolved", reason=_REASON)
        if c.verdict in ("faster", "slower")
        else c
        for c in comparisons
    )


def unresolved_classes(found: Sequence[ClassComparison]) -> tuple[ClassComparison, ...]:
    """The same of comparisons by class."""
    compared = unresolved([one.compared for one in found])
    return tuple(replace(one, compared=c) for one, c in zip(found, compared, strict=True))


def untold(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The same steps, whose promises are neither kept nor broken."""
    return tuple(
        replace(
            step,
            promises=tuple(
                replace(p, verdict="cannot tell", why=f"{_REASON}; {p.why}") for p in step.promises
            ),
        )
        for step in steps
    )


def undecided(judged: Judgement) -> Judgement:
    """The judgement with nothing decided, and the sentence before its answer.

    What a sweep says of its steps was withheld before: ``untold``, and no law of their loads.
    """
    said = _ratios(judged) if judged.measure == "trials" else judged.verdict.decision
    decision = f"{SENTENCE} {said}".strip()
    points = (judged.verdict.headline, *judged.verdict.points)
    if judged.measure == "trials":
        points = (said,) if said else ()
    headline = SENTENCE
    if void := _without_valid(judged):
        headline, points = void, (SENTENCE, *points)
        decision = f"{void} {SENTENCE}"
    finding = Finding("first look", "note", "", "", SENTENCE, "")
    return replace(
        judged,
        verdict=replace(
            judged.verdict,
            decision=decision,
            resolved=False,
            best=None,
            doubts="",
            headline=headline,
            points=points[: answer.MOST],
        ),
        findings=(finding, *judged.findings),
        capacity=tuple(replace(c, sentence=f"{c.sentence} ({_REASON})") for c in judged.capacity),
    )


def _without_valid(judged: Judgement) -> str:
    """That no trial is valid, or none of some treatments, and the most frequent reason; else empty.

    A treatment that has not been measured yet is not meant.
    """
    if judged.measure != "trials":
        return ""
    lacking = [
        t for t in judged.treatments if t.trials and all(x.status != "valid" for x in t.trials)
    ]
    trials = [x for t in lacking for x in t.trials]
    reasons = [x.reason for x in trials if x.reason]
    if not reasons:
        return ""
    whose = "" if len(lacking) == len(judged.treatments) else _of(lacking)
    reason, n = most_frequent(reasons)
    most = f"The most frequent reason ({n} of {len(trials)})" if n < len(trials) else "The reason"
    return f"No trial{whose} is valid. {most}: {reason}."


def _of(lacking: Sequence[TreatmentResult]) -> str:
    return f" of {listed([t.label for t in lacking])}"


def _ratios(judged: Judgement) -> str:
    """The ratios by the metric, without a word about which is better."""
    labels = {t.treatment: t.label for t in judged.treatments}
    own = [c for c in judged.comparisons if c.metric == judged.metric and c.ratio is not None]
    found = [pairs.of(c.a, c) if c.ratio and c.ratio.value < 1 else c for c in own[:_MOST]]
    said = [
        f"{labels[c.b]} {systems.as_good(judged.metric, times(c.ratio), labels[c.a])}"
        for c in found
        if c.ratio is not None
    ]
    more = f", and {len(own) - _MOST} more ratios are in the table" if len(own) > _MOST else ""
    return f"So far, {'; '.join(said)}{more}." if said else ""
