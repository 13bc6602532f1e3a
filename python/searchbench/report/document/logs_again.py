"""The pages of a log as load, with its cut, and of a log beside a record."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from searchbench.analysis.logs.against import ALIKE, Against
from searchbench.analysis.logs.cut import Cut
from searchbench.analysis.logs.said import HOW_AGAINST, of_cut, of_file
from searchbench.logs.searches import Searches
from searchbench.report.document.blocks import (
    Block,
    Code,
    Details,
    Document,
    Points,
    Section,
    Text,
)
from searchbench.report.document.content import LONG, figure
from searchbench.report.document.text import line, short
from searchbench.report.figures import logs_again as figures
from searchbench.report.tables import logs_again as tables
from searchbench.report.tables.logs import moment
from searchbench.report.tables.numbers import counted

_TREATMENTS = 12  # with a figure and a table; a page stays below 2 MB
_ROWS = 1_000  # of all tables of treatments


def of_searches(about: Mapping[str, Any], cut: Cut | None) -> Document:
    """The page of a file of searches. ``about``: what the file is (``logs.written``)."""
    found = of_file(about, None)
    if cut is not None:
        found = [*of_cut(cut, about), *found]
    made = [
        f"{about['searches']:,} of {counted(about['of'], 'search', 'searches')}",
        *_span(about["first_s"], about["last_s"], about["zone"]),
        about["file"],
    ]
    sections = [Section("answer", "What was found", (Points(tuple(map(line, found))),), "Found")]
    if cut is not None:
        sections.append(_bounds(cut))
    how = "These tables of a study replay the file at the log's own times."
    if about["seconds"] is None:
        how = "These tables of a study send what is in the file; the log has no times."
    study = Section("study", "In a study", (Text(how), Code(about["study"])), "Study")
    files = Section("files", "What was read", (tables.files(about["sources"]),), "Files")
    return Document(
        title="A log as load" if cut is None else "Does the cut stand for the log?",
        about=" · ".join(map(line, made)),
        method="Every search of the log was read; nothing was drawn as a sample."
        if cut is None
        else "Stretches of many lengths from all over the log were compared with the whole log; "
        "the file has the shortest that is within all bounds, or otherwise the best.",
        sections=(*sections, study, files),
        whole=f"All of it is in {line(about['file'])}.about.json.",
        footer=f"Made by searchbench logs --queries; {line(about['file'])}.about.json has the same "
        "numbers.",
    )


def _bounds(cut: Cut) -> Section:
    far = any(each.allowed * figures.FURTHEST < each.apart < math.inf for each in cut.bounds)
    longer = f" A bar that ends at {figures.FURTHEST:.0%} is longer." if far else ""
    blocks: list[Block] = [
        *figure(
            "bounds", "How far the cut is from the log",
            f"A bar for each property. The dashed line is what is allowed.{longer}",
            partial(figures.bounds, cut),
        ),
        tables.bounds(cut.bounds),
    ]  # fmt: skip
    if cut.skipped:
        blocks.append(Points(tuple(line(f"Not held to: {what}.") for what in cut.skipped)))
    return Section("bounds", "What was kept, and within what", tuple(blocks), "Bounds")


def of_against(found: Sequence[Against], log: Searches, record: Path) -> Document:
    """The page of a log held against the record of a study."""
    made = [
        f"record {record.name or record}",
        counted(len(log), "search", "searches") + " of the log",
    ]
    if log.at_ns is not None:
        made += _span(int(log.at_ns[0]) / 1e9, int(log.at_ns[-1]) / 1e9, log.zone)
    several = len(found) > 1
    said = [line(f"{one.label}: {one.sentence}" if several else one.sentence) for one in found]
    blocks: list[Block] = [Points(tuple(said[:_TREATMENTS]))]
    if rest := said[_TREATMENTS:]:
        note = counted(len(rest), "treatment")
        blocks.append(Details("And of the others, without figures", (Points(tuple(rest)),), note))
    blocks += [Text(text, "quiet") for text in HOW_AGAINST]
    shown = found[:_TREATMENTS]
    rows = max(LONG, _ROWS // len(shown))
    return Document(
        title="Does the laboratory tell the truth about production?",
        about=" · ".join(map(line, made)),
        method="Quantiles of the log's times beside those of the service times on record, by class "
        "of the searches.",
        sections=(
            Section("answer", "What was found", tuple(blocks), "Found"),
            *(_treatment(at, one, rows, several=several) for at, one in enumerate(shown, 1)),
            Section("files", "What was read", (tables.files(log.files),), "Files"),
        ),
        whole="All of it is in the output of searchbench logs --against RECORD --json.",
        footer="Made by searchbench from query logs and a record; searchbench logs --against "
        "RECORD --json has the same numbers.",
    )


def _treatment(at: int, one: Against, most: int, *, several: bool) -> Section:
    blocks: list[Block] = [
        *figure(
            f"ratios-{at}", "Laboratory / log, by class",
            f"Dots: ratios of quantiles; bars: 95 % intervals. Shaded: within {ALIKE - 1:.0%}, "
            "which counts as the same. A time below the log's resolution has no dot.",
            partial(figures.ratios, one),
        ),
    ]  # fmt: skip
    classes = len({each.of_class for each in one.lines if each.interval is not None})
    if classes > figures.CLASSES:
        blocks.append(Text(f"The figure has the {figures.CLASSES} most frequent of {classes} "
                           "classes.", "quiet"))  # fmt: skip
    made = tables.against(one.lines[:most], one.step_s)
    long = len(made.rows) > 3 * LONG
    blocks.append(
        Details("Every quantile", (made,), counted(len(made.rows), "row")) if long else made
    )
    if len(one.lines) > most:
        blocks.append(Text(f"{len(one.lines) - most:,} more rows are in the output of searchbench "
                           "logs --against RECORD --json.", "quiet"))  # fmt: skip
    if one.remarks:
        blocks.append(Points(tuple(map(line, one.remarks))))
    title = line(one.label) if several else "By class of query"
    return Section(
        f"treatment-{at}", title, tuple(blocks), short(title, 24) if several else "Classes"
    )


def _span(first_s: float | None, last_s: float | None, zone: str) -> list[str]:
    if first_s is None or last_s is None:
        return []
    told = "UTC" if zone else "UTC where the log names its zone, else as it writes it"
    return [f"{moment(int(first_s))} to {moment(int(last_s))}, {told}"]
