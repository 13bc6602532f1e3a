"""What operations come to on a terminal: where methods cross, what a row costs, what fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from searchbench.analysis.judgement import Estimate, Judgement
    from searchbench.analysis.operations.model import MethodCurve, OperationResult

_MOST = 6  # lines of each; more are counted
_WORDS = 240  # characters of why a method fails; the page and the sheet have all


def said(judgement: Judgement) -> list[str]:
    """A line for each resolved crossing that the verdict does not name, for each slope, and for
    each failure; the first of many.
    """
    from searchbench.analysis.operations.crossing import sentence

    verdict = judgement.verdict
    known = {verdict.headline, *verdict.points}
    several = len(judgement.operations) > 1
    crossing, slopes, unsure = list[str](), list[str](), 0
    for each in judgement.operations:
        name = f"{each.name}: " if several else ""
        sure = [c for c in each.crossovers if c.interval is not None]
        unsure += len(each.crossovers) - len(sure)
        lines = [f"{name}{sentence(c)}." for c in sure]
        crossing += [line for line in lines if line not in known]
        slopes += [name + line for line in _slopes(each)]
    told = [*_first(crossing, "crossing")]
    if unsure:
        is_ = "crossing of curves is" if unsure == 1 else "crossings of curves are"
        told.append(f"{unsure} {'further ' * bool(crossing)}{is_} not resolved.")
    failures = [f"{name}{one}" for name, one in _failures(judgement.operations)]
    return [*told, *_first(slopes, "method"), *_first(failures, "failure")]


def _failures(operations: Sequence[OperationResult]) -> Iterator[tuple[str, str]]:
    """Where a method fails and why, behind the name of its operation if there are several."""
    for each in operations:
        for m in each.methods:
            for p in (p for p in m.points if p.failed):
                at = f" at {p.rows:,} rows" if each.by_rows else ""
                why = p.failed if len(p.failed) <= _WORDS else f"{p.failed[:_WORDS]} …"
                yield f"{each.name}: " if len(operations) > 1 else "", f"{m.label} fails{at}: {why}"


def _first(lines: list[str], what: str) -> Iterator[str]:
    yield from lines[:_MOST]
    if more := len(lines) - _MOST if len(lines) > _MOST else 0:
        yield f"({more} more of {what}{'s' * (more > 1)} in operations.csv and on the page.)"


def _slopes(of: OperationResult) -> Iterator[str]:
    for m in of.methods:
        if m.slope is not None and of.by_rows:
            yield f"{m.label}: {'; '.join(_costs(m))}."


def _costs(m: MethodCurve) -> Iterator[str]:
    assert m.slope is not None
    if m.slope.linear:
        yield f"{_amount(m.slope.per_row, 1e6, ' µs')} for each further row"
    if m.slope.exponent is not None:
        low, high = m.slope.between
        yield f"exponent {_amount(m.slope.exponent)} from {low:,} to {high:,} rows"
    elif not m.slope.linear:
        yield "no line describes its times"


def _amount(figure: Estimate, by: float = 1.0, unit: str = "") -> str:
    from searchbench.analysis.words import digits

    span = figure.interval
    ends = f" (95 % interval {digits(span.low * by)} to {digits(span.high * by)})" if span else ""
    return f"{digits(figure.value * by)}{unit}{ends}"
