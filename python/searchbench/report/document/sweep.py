"""What a system sustains as its load grows: the sections of a sweep."""

from __future__ import annotations

from typing import Literal

from searchbench.report.document import (
    agreement,
    details,
    latency,
    notices,
    resources,
    steps,
    warmup,
)
from searchbench.report.document.blocks import Badge, Section, Text
from searchbench.report.document.content import Content, Kind
from searchbench.report.tables import numbers

_READING = "Small print below numbers: 95 % intervals. Hover or touch for exact values."


def answer(content: Content) -> Section:
    """Void steps before anything else; then the answer in sentences."""
    blocks = steps.opening(content, _badge(content))
    blocks.append(Text(_READING, "quiet"))
    return Section("answer", "The answer", tuple(blocks), "Answer")


def _badge(content: Content) -> Badge:
    valid, total = steps.usable(content), len(content.steps)
    if not valid:
        return Badge("No answer", "bad", "No load step can be used.")
    tone: Literal["good", "unsure"] = "good" if valid == total else "unsure"
    return Badge("Measured", tone, f"{valid} of {numbers.counted(total, 'load step')} can be used.")


def _method(content: Content) -> str:
    return "The steps of a load were driven one after another on the same warm system."


def _counts(content: Content) -> list[str]:
    return [
        numbers.counted(len(content.subjects), "configuration"),
        numbers.counted(len(content.steps), "load step"),
    ]


KIND = Kind(
    parts=(
        answer,
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
    untitled="A sweep without a question",
)
