"""The table by class of requests, on a terminal: what each class met at each load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from searchbench.analysis.judgement import (
        ClassSeen,
        Estimate,
        Judgement,
        RecordComparison,
        Step,
    )

MOST = 30  # rows; of more, the greatest load alone is shown

Table = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]


def table(judgement: Judgement) -> Table:
    """Header and rows, times in milliseconds; both empty where there are no classes."""
    if judgement.measure == "trials":
        return _of_treatments(judgement)
    steps = [s for s in judgement.steps if s.classes]
    if len({s.block for s in steps}) > 1:  # each load once, by all its drives
        return _of_treatments(judgement)
    return _of_steps(steps) if steps else ((), ())


def of_records(found: RecordComparison) -> Table:
    """By class what two records differ by; by one metric where rows are many, and both empty where
    they are too many even so, or where there are no classes.
    """
    from searchbench.analysis.compare.classes import metric_of
    from searchbench.analysis.compare.decision import VALUES, WIDTH_LABEL, cells
    from searchbench.analysis.compare.verdict import clip

    own, metric = list(found.by_class), metric_of(found.by_class, found.metric)
    if len(own) > MOST:
        own = [one for one in own if one.line.metric == metric]
    if not own or len(own) > MOST:
        return (), ()
    several = len({one.line.label for one in own}) > 1
    rows = tuple(
        (
            *((clip(one.line.label, WIDTH_LABEL),) if several else ()),
            clip(one.name, WIDTH_LABEL),
            one.line.metric.replace("_", " "),
            *cells(one.line),
        )
        for one in sorted(own, key=lambda one: one.line.label)
    )
    return (*(("treatment",) if several else ()), "class", "metric", *VALUES), rows


def said(judgement: Judgement) -> str:
    """That the table has not all loads; empty where it has."""
    steps = [s for s in judgement.steps if s.classes]
    if judgement.measure == "trials" or sum(len(s.classes) for s in steps) <= MOST:
        return ""
    return "By class at the greatest load of each; the report has all."


def _of_steps(steps: Sequence[Step]) -> Table:
    from searchbench.analysis.sweep.points import level_of
    from searchbench.analysis.words import digits

    several = len({s.subject for s in steps}) > 1
    unit = {"closed": "clients", "open": "offered/s"}.get(steps[0].kind, "speed")
    if sum(len(s.classes) for s in steps) > MOST:
        used = [s for s in steps if s.status == "valid"] or list(steps)
        greatest = {s.subject: s for s in sorted(used, key=level_of)}
        steps = list(greatest.values())
    header = (*(("system",) if several else ()), unit, *_HEADER)
    rows = [
        (*((step.subject,) if several else ()), digits(level_of(step)), *_cells(seen, "response"))
        for step in steps
        for seen in step.classes
    ]
    return header, tuple(rows)


def _of_treatments(judgement: Judgement) -> Table:
    found = [t for t in judgement.treatments if t.classes]
    if not found or sum(len(t.classes) for t in found) > MOST:
        return (), ()
    of_service = judgement.measure == "trials" and judgement.metric != "response_p99"
    kind = "service" if of_service else "response"
    rows = [(t.label, *_cells(seen, kind)) for t in found for seen in t.classes]
    return ("treatment", *_HEADER), tuple(rows)


_HEADER = ("class", "share", "requests", "p50 ms", "p99 ms", "errors")


def _cells(seen: ClassSeen, kind: str) -> tuple[str, ...]:
    from searchbench.analysis.sweep.words import percent

    figures = seen.figures
    share, errors = figures.get("share"), figures.get("error_share")
    return (
        seen.name,
        "–" if share is None else percent(share.value),
        f"{seen.requests:,}",
        _ms(figures, f"{kind}_p50"),
        _ms(figures, f"{kind}_p99"),
        "–" if errors is None else percent(errors.value) if errors.value else "0",
    )


def _ms(figures: Mapping[str, Estimate], name: str) -> str:
    from searchbench.analysis.words import digits

    found = figures.get(name)
    return "–" if found is None else digits(1e3 * found.value)
