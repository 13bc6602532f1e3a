"""The subjects of a sweep compared over one class of requests at a time, load by load.

Judged as the whole is (``sweep.compared``), by the response times of the class alone. A verdict on
a class is corrected for the comparisons of the sweep and of all its classes together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from searchbench.analysis.judgement import (
    ClassComparison,
    ClassSeen,
    Comparison,
    Estimate,
    Step,
    TreatmentResult,
)
from searchbench.analysis.sweep import points as at
from searchbench.analysis.sweep.compared import Evidence, prepared
from searchbench.analysis.trial.classes import Classes
from searchbench.analysis.words import listed, words


def comparisons(
    of: Classes | None,
    steps: Sequence[Step],
    treatments: Sequence[TreatmentResult],
    names: Sequence[str],
    evidence: Evidence,
    whole: Sequence[float | None],
) -> tuple[ClassComparison, ...]:
    """Every comparison over every class. ``names``: the subjects, in order; ``whole``: the p-values
    of the comparisons over all requests."""
    if of is None or len(names) < 2:
        return ()
    subjects = {step.treatment: step.subject for step in steps}
    each = []
    for name in of.names:
        own = [view for step in steps if (view := of_class(step, name)) is not None]
        every = at.tried(own, treatments)
        found = {subject: every[subject] for subject in names if subject in every}
        each.append((name, prepared(found, replace(evidence, members=of.members(name)))))
    found_of: list[ClassComparison] = []
    for name, own_prepared in each:
        beside = [p for other, drafts in each if other != name for p in drafts.p_values]
        for c in own_prepared.decided([*whole, *beside]):
            pair = evidence.work(subjects[c.a], subjects[c.b]).pair
            counts = pair.agreement.by_class.get(name) if pair is not None else None
            found_of.append(ClassComparison(name, _counted(c, *counts) if counts else c))
    return tuple(found_of)


def _counted(c: Comparison, agreeing: int, of: int) -> Comparison:
    """With the requests of the class alone; what is known of first hits is of all classes."""
    return replace(
        c,
        queries_used=agreeing,
        queries_left_out=of - agreeing,
        same_top_k=None,
        ranked_alike=None,
        empty=0,
    )


def of_class(step: Step, name: str) -> Step | None:
    """A step as if nothing but one class had been asked in it; None where that was not asked."""
    seen = next((one for one in step.classes if one.name == name), None)
    if seen is None:
        return None
    return replace(
        step,
        requests=seen.requests,
        answered=seen.figures.get("throughput"),
        error_share=seen.figures.get("error_share"),
        service=_times(seen, "service"),
        response=_times(seen, "response"),
    )


def _times(seen: ClassSeen, kind: str) -> dict[str, Estimate]:
    before = f"{kind}_"
    return {k.removeprefix(before): e for k, e in seen.figures.items() if k.startswith(before)}


def sentences(
    found: Sequence[ClassComparison],
    compared: Sequence[Comparison],
    subjects: Mapping[str, str],
) -> list[str]:
    """Where a class says something else than the whole, or something at all, in a sentence a pair.

    ``subjects``: by treatment.
    """
    said: dict[tuple[str, str], dict[str, dict[str, None]]] = {}
    for one in found:
        c = one.compared
        if c.metric == "response_p99" and c.verdict in ("faster", "slower"):
            both = subjects[c.a], subjects[c.b]
            said.setdefault(both, {}).setdefault(c.verdict, {})[one.name] = None
    result = []
    for (a, b), by_verdict in said.items():
        overall = {
            c.verdict
            for c in compared
            if (subjects[c.a], subjects[c.b]) == (a, b) and c.verdict in ("faster", "slower")
        }
        parts = [f"{v} for {listed(list(names))}" for v, names in by_verdict.items()]
        opposite = len(overall) == 1 and any(v not in overall for v in by_verdict)
        but = f"{next(iter(overall))} overall, but " if opposite else ""
        result.append(
            f"By class of requests and {words('response_p99')}, {b} is {but}{', '.join(parts)} at "
            f"one load or more, compared with {a}."
        )
    return result
