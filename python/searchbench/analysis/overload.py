"""The overloads of every treatment, over its trials: goodput, and how long until all is normal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from searchbench.analysis.judgement import (
    Estimate,
    OverloadResult,
    OverloadSeen,
    TreatmentResult,
)
from searchbench.analysis.trial import recovery_said
from searchbench.analysis.words import digits

LATE = 0.1  # of the limit: from here on the generator's own lateness may have made answers late

_FIGURES: dict[str, tuple[str, Callable[[OverloadSeen], float | None]]] = {
    "offered_per_s": ("queries/s", lambda one: one.offered_per_s),
    "answered_per_s": ("queries/s", lambda one: one.answered_per_s),
    "in_time_per_s": ("queries/s", lambda one: one.in_time_per_s if one.limit_s else None),
    "in_time_share": (
        "share",
        lambda one: one.in_time_per_s / max(1e-9, one.offered_per_s) if one.limit_s else None,
    ),
    "failed": ("share", lambda one: one.failed),
    "normal_s": ("s", lambda one: one.normal_s),
    "later": ("share", lambda one: one.later if one.normal_s is not None else None),
}


def results(treatments: Sequence[TreatmentResult]) -> tuple[OverloadResult, ...]:
    """An entry for each overload of each treatment that has a valid trial."""
    return tuple(one for t in treatments for one in _of_treatment(t))


def _of_treatment(t: TreatmentResult) -> Iterator[OverloadResult]:
    trials = [x.shaped.overloads for x in t.trials if x.counts and x.shaped is not None]
    for number, each in enumerate(zip(*trials, strict=True), 1):
        figures: dict[str, Estimate] = {}
        for name, (unit, of) in _FIGURES.items():
            values = [value for one in each if (value := of(one)) is not None]
            if (found := recovery_said.over_trials(values, unit)) is not None:
                figures[name] = found
        yield OverloadResult(
            treatment=t.treatment,
            label=t.label,
            levels=t.levels,
            number=number,
            trials=len(each),
            figures=figures,
            not_within=sum(one.normal_s is not None and math.isinf(one.normal_s) for one in each),
            unknown=sum(one.normal_s is None for one in each),
            late=max(one.lag_p99_s / one.limit_s if one.limit_s else 0.0 for one in each),
            first=next((one for one in each if one.normal_s is not None), each[0]),
        )


def sentence(found: OverloadResult) -> str:
    """What came of it, for a terminal and a page."""
    first = found.first
    of = f" ({digits(first.times)} times the capacity)" if first.times is not None else ""
    many = f"Overload {found.number} of {found.label}" if found.number > 1 else found.label
    said = f"{many}: {digits(first.seconds)} s with up to {digits(first.most_per_s)}/s{of}"
    offered, answered = (found.figures[k] for k in ("offered_per_s", "answered_per_s"))
    said += f"; of {_rate(offered)} offered {_rate(answered)} were answered"
    if first.limit_s:
        said += f", {_rate(found.figures['in_time_per_s'])} in time ({first.in_time})"
    failed = found.figures["failed"]
    said += f", and {recovery_said.share(failed)} failed" if recovery_said.ever(failed) else ""
    return f"{said}. {until(found)}"


def _rate(found: Estimate) -> str:
    return f"{digits(found.value)}/s{recovery_said.range_of(found)}"


def until(found: OverloadResult) -> str:
    """How long until answers were normal, in a sentence."""
    took, first = found.figures.get("normal_s"), found.first
    normal = recovery_said.normal_is(first.bounds)
    if took is None:
        return f"How long until answers were normal is not known: {first.why}."
    if found.not_within:
        who = "" if found.not_within == found.trials else (
            f" in {found.not_within} of {found.trials} trials"
        )  # fmt: skip
        return (
            f"Answers were not normal again within the {digits(first.looked_s)} s after it{who}."
            f"{'' if who else recovery_said.now_and_then(found.figures)}{normal}"
        )
    more = recovery_said.later(found.figures)
    some = recovery_said.of_some(found.trials, found.unknown)
    said = recovery_said.took(took, "after it", first.resolution_s, some)
    return f"{said}.{more}{normal}"


def _seconds(seconds: float) -> str:
    return f"{digits(seconds)} s" if seconds >= 1 else f"{digits(1e3 * seconds)} ms"
