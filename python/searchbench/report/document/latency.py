"""Service and response time by quantile: of treatments, or of the steps of a load."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Literal

from searchbench.report.document import notices
from searchbench.report.document.blocks import Block, Details, Section, Text
from searchbench.report.document.content import Content, figure
from searchbench.report.document.steps import LONG
from searchbench.report.document.text import line
from searchbench.report.figures import study as figures
from searchbench.report.tables import numbers
from searchbench.report.tables import steps as step_tables
from searchbench.report.tables import study as tables

_CURVE = 30  # points of a line by quantile, where there are many lines on a page
Which = Literal["service", "response"]


def of_treatments(content: Content) -> Section:
    """Curves of all treatments, and tables of the quantiles with intervals."""
    blocks: list[Block] = [
        Text(
            "Service time is from the first byte sent to the last byte received. Response "
            "time begins when the request was due, so it includes the wait for a connection."
        )
    ]
    kinds: tuple[Which, ...] = ("service", "response")
    if "closed" in content.loads:
        blocks.append(Text(notices.CLOSED_LOOP))
        if content.loads == {"closed"}:
            kinds = ("service",)
    for which in kinds:
        blocks += _curves(content, which)
        blocks.append(tables.quantiles(content.judgement, which))
    return Section("latency", "Latency", tuple(blocks))


def of_steps(content: Content) -> Section:
    """Curves of some steps, and tables of all."""
    fewer = len(content.drawn) < len(content.judgement.treatments)
    name = "trial" if content.searched else "step"
    some = f" Drawn: {len(content.drawn)} of the {name}s; the table has all." if fewer else ""
    blocks = _curves(content, "response", some, _CURVE)
    which: Which
    for which in ("response", "service"):
        table = step_tables.quantiles(content.steps, which)
        title = f"{which.capitalize()} time, every {name}"
        blocks.append(Details(title, (table,), open=len(table.rows) <= LONG))
    if any(s.connect for s in content.steps):
        table = step_tables.quantiles(content.steps, "connect")
        blocks.append(Details("Time to open a connection", (table,)))
    for s in content.steps:
        if s.worst_minute:
            at = numbers.human(s.worst_minute["from_s"], "s")
            worst = numbers.human(s.worst_minute["response_p99"], "s")
            blocks.append(
                Text(f"{line(s.label)}: the worst minute begins {at} into the window; its response "
                     f"p99 was {worst}.")
            )  # fmt: skip
    return Section("latency", "Latency", tuple(blocks))


def _curves(content: Content, which: Which, more: str = "", most: int = 0) -> list[Block]:
    drawn = replace(content.judgement, treatments=content.drawn)
    return figure(
        f"latency-{which}",
        f"{which.capitalize()} time by quantile",
        "Both axes are logarithmic; the quantiles from the middle to the tail have equal room for "
        "each nine. Bands: the intervals. A line ends where its quantiles have too few samples."
        f"{more}",
        partial(figures.latency, drawn, which, most=most),
    )
