"""The greatest rate that keeps a promise, as an interval: the sections of a search for capacity."""

from __future__ import annotations

from functools import partial

from searchbench.analysis.judgement import Capacity
from searchbench.report.document import (
    agreement,
    details,
    latency,
    notices,
    resources,
    steps,
    warmup,
)
from searchbench.report.document.blocks import Badge, Block, Details, Section, Text
from searchbench.report.document.content import Content, Kind, figure
from searchbench.report.document.text import line, short
from searchbench.report.figures import capacity as figures
from searchbench.report.tables import numbers
from searchbench.report.tables import steps as tables

_NARROW = 1.1  # the most by which the upper end of a narrow interval exceeds the lower, as a ratio
_SENTENCES = 2  # intervals whose sentences come before the table
_SHOWN = 2  # curves of trials that are shown open


def answer(content: Content) -> Section:
    """What spoils the result before anything else; then every interval, and the sentences."""
    found = content.judgement.capacity
    shown = _intervals(content, found) if found else []
    # One interval or two are a sentence each; of more, a table is quicker to read.
    first = len(found) > _SENTENCES
    opening = steps.opening(content, _badge(content), shown if first else [])
    return Section("answer", "The answer", (*opening, *([] if first else shown)), "Answer")


def evidence(content: Content) -> Section | None:
    """The trials that each interval rests on."""
    found = content.judgement.capacity
    blocks: list[Block] = []
    for i, each in enumerate(found):
        own = _trials(i, each, named=1 < len(found) <= _SHOWN)
        if len(found) > _SHOWN:
            title = f"{short(each.subject, 80)}: {line(each.promise)}"
            note = f"{tables.between(each)}, {numbers.counted(len(each.trials), 'trial')}"
            blocks.append(Details(title, tuple(own), note))
        else:
            blocks += own
    if not blocks:
        return None
    title = "The trials behind each interval" if len(found) > 1 else "The trials behind it"
    return Section("capacity", title, tuple(blocks), "Capacity")


def _intervals(content: Content, found: tuple[Capacity, ...]) -> list[Block]:
    """Every interval in one table and one figure."""
    factor = figures.factor_of(found)
    against = f" against {short(factor, 60)}" if factor else ""
    dashed = " Dashed with an arrow: no trial bounds that side." if _open(found) else ""
    return [
        tables.intervals(found),
        Text(_reading(content), "quiet"),
        *figure(
            "capacity",
            f"The greatest rate that keeps each promise{against}",
            "Bars: from the rate at which the promise holds to the rate at which it fails."
            f"{' Thin lines join their middles.' if factor else ''}{dashed}",
            partial(figures.intervals, found),
        ),
    ]


def _trials(index: int, found: Capacity, *, named: bool) -> list[Block]:
    title = "How far each trial used up the promise"
    if named:
        title = f"{short(found.subject, 60)}, {short(found.promise, 60)}: {title.lower()}"
    return [
        *figure(
            f"capacity-{index}",
            title,
            "Requests that broke the promise, over those that may: below 1× it was kept. Bars: "
            "95 % intervals. Shaded: the interval of the capacity. All trials together decide "
            "where it begins and ends.",
            partial(figures.trials, found),
        ),
        tables.trials(found),
    ]


def _badge(content: Content) -> Badge:
    valid, total = steps.usable(content), len(content.steps)
    found = content.judgement.capacity
    known = [c for c in found if c.holds is not None or c.fails is not None]
    if not known:
        return Badge("No answer", "bad", "No trial can be used.")
    aside = f"{valid} of {numbers.counted(total, 'trial')} passed the audit."
    if not valid:
        return Badge("Doubtful", "bad", aside)
    if opened := _open(found):
        which = "The interval is"
        if len(found) > 1:
            which = f"{opened} of {len(found)} intervals {'is' if opened == 1 else 'are'}"
        text = "Open" if opened == len(found) else "Partly open"
        return Badge(text, "unsure", f"{which} open on one side or both. {aside}")
    narrow = all(c.fails is not None and c.holds is not None and c.fails <= c.holds * _NARROW
                 for c in found)  # fmt: skip
    return Badge("Bracketed" if narrow else "Wide", "good" if narrow else "unsure", aside)


def _open(found: tuple[Capacity, ...]) -> int:
    return sum(c.holds is None or c.fails is None for c in found)


def _reading(content: Content) -> str:
    text = (
        "The greatest rate that keeps the promise is between the two numbers, with the odds below "
        "them. "
    )
    if _open(content.judgement.capacity):
        text += "≥: no trial shows a rate that breaks it. <: no trial shows a rate that keeps it. "
    return text + "Hover or touch for exact values."


def _method(content: Content) -> str:
    return (
        "For each configuration, rates were driven one after another on one warm system until the "
        "limit was bracketed."
    )


def _counts(content: Content) -> list[str]:
    promises = {c.promise for c in content.judgement.capacity}
    return [
        numbers.counted(len(content.subjects), "configuration"),
        *([numbers.counted(len(promises), "promise")] if promises else []),
        numbers.counted(len(content.steps), "trial"),
    ]


KIND = Kind(
    parts=(
        answer,
        evidence,
        steps.load,
        steps.table,
        latency.of_steps,
        steps.client,
        warmup.section,
        agreement.section,
        resources.section,
        resources.machine,
        notices.findings,
        details.section,
    ),
    method=_method,
    counts=_counts,
    untitled="A search for capacity without a question",
)
