"""The page of a log: what was found, then the figures and tables that show it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from searchbench.analysis.logs.model import LogJudgement, Row
from searchbench.analysis.logs.remarks import clock_of, where
from searchbench.analysis.logs.tenths import tenths
from searchbench.report.document import logs_published as published
from searchbench.report.document.blocks import (
    Block,
    Details,
    Document,
    Notice,
    Points,
    Section,
    Table,
    Text,
)
from searchbench.report.document.content import LONG, figure
from searchbench.report.document.text import line
from searchbench.report.figures import logs as figures
from searchbench.report.figures import logs_groups as grouped
from searchbench.report.tables import logs as tables
from searchbench.report.tables.numbers import counted

_WARNINGS, _POINTS = 5, 8  # that are seen without a click
_RESOLUTION = (
    "Times below the resolution of the log are one bar: nothing is known about how they differ."
)
_PANELS = (
    "Share of the group's searches by tenth of a decade. The grey line is all searches together."
)
_LINES = "Each line is the share of the group's searches that took no longer."
_SERVED = (
    "Searches as users asked them, and their parts as agents or shards served them. The first "
    "include searches that were not divided."
)


def of_log(of: LogJudgement) -> Document:
    """What the page says."""
    made = [
        counted(of.all.n, "search", "searches") if of.all else "no search",
        counted(len(of.sources), "file"),
    ]
    if of.first_s is not None and of.last_s is not None:
        made.append(f"{tables.moment(of.first_s)} to {tables.moment(of.last_s)}, {clock_of(of)}")
    sections = (
        _answer, published.section, _times, _distributions, _groups, _when, _queries, _again,
        _files,
    )  # fmt: skip
    return Document(
        title="What production's query logs say",
        about=" · ".join(made),
        method="Each entry of the log was read and counted; nothing was drawn as a sample.",
        sections=tuple(s for part in sections if (s := part(of)) is not None),
        whole="All of it is on the page on a screen, and in the output of searchbench logs --json.",
        footer="Made by searchbench from query logs; searchbench logs --json has the same numbers.",
    )


def _answer(of: LogJudgement) -> Section:
    """The sentence, beside it what warns of it, then the rest as points."""
    blocks: list[Block] = [Text(line(of.headline), "lead")]
    warnings = [f for f in of.remarks if f.severity == "warning"]
    shown = [
        Notice("warning", line(f.title), "", "", line(f.text), line(f.remedy)) for f in warnings
    ]
    said = [line(f"{f.title}: {f.text} {f.remedy}") for f in of.remarks if f not in warnings]
    blocks += [*shown[:_WARNINGS], Points(tuple(said[:_POINTS]))]
    if more := shown[_WARNINGS:]:
        blocks.append(Details("More warnings", tuple(more), counted(len(more), "warning")))
    if rest := said[_POINTS:]:
        blocks.append(Details("And also", (Points(tuple(rest)),)))
    return Section("answer", "What was found", tuple(blocks), "Found")


def _times(of: LogJudgement) -> Section | None:
    if of.all is None or not of.all.quantiles_s:
        return None
    found = [one for one in tenths(of.spread) if one.share]
    blocks: list[Block] = [
        *figure(
            "times",
            "How often each time occurred, and the share within it",
            _RESOLUTION,
            partial(figures.distribution, of),
        ),
        _folded("The figure as a table", tables.tenths_of(found, of.resolution_s)),
        tables.groups("", (of.all,), of),
    ]
    for band, inside in zip(of.bands.bands, of.in_bands, strict=True):
        if inside:
            place = where(band, of.resolution_s)
            blocks.append(Text(f"Over-represented in the band {place}: {'; '.join(inside)}."))
    if of.served is not None and of.served.quantiles_s:
        blocks += [Text(_SERVED), tables.served(of)]
    return Section("times", "How long searches took", tuple(blocks), "Times")


def _folded(title: str, made: Table) -> Details:
    return Details(title, (made,), counted(len(made.rows), "row"))


def _distributions(of: LogJudgement) -> Section | None:
    """How the times of groups are distributed: by words and size of index, which the published
    analysis has, and by index and server.
    """
    blocks: list[Block] = []
    for name, title, rows in (
        ("words", "by number of words", of.words),
        ("size", "by size of the index", of.sizes),
        ("index", "by index", of.by["index"]),
        ("server", "by server", of.by["server"]),
    ):
        shown = grouped.drawn(rows)
        if len(shown) < 2:
            continue
        cut = "" if len(shown) == len(rows) else _some(len(shown))
        blocks += figure(
            f"times-by-{name}", f"How often each time occurred, {title}", f"{_PANELS}{cut}",
            partial(grouped.panels, of, tuple(rows)),
        )  # fmt: skip
        blocks += figure(
            f"within-by-{name}", f"Share of searches within a time, {title}", f"{_LINES}{cut}",
            partial(grouped.within, tuple(rows)),
        )  # fmt: skip
        table = tables.within(title.removeprefix("by ").capitalize(), rows)
        blocks.append(_folded(f"Both figures as a table: shares within times, {title}", table))
    title = "How the times of groups are distributed"
    return Section("distributions", title, tuple(blocks), "Distributions") if blocks else None


def _some(shown: int) -> str:
    """Which of the groups a figure has."""
    enough = f"with {grouped.ENOUGH} times or more"
    return f" Only the first {shown} groups of the table {enough} are drawn."


def _groups(of: LogJudgement) -> Section | None:
    if of.all is None:
        return None
    blocks: list[Block] = []
    for name, title, rows in (
        ("class", "By class of query", of.by["class"]),
        ("words", "By number of words", of.words),
        ("size", "By size of the index", of.sizes),
        ("index", "By index", of.by["index"]),
        ("server", "By server", of.by["server"]),
        ("user", "By user or application", of.by["user"]),
    ):
        blocks += _group(name, title, rows, of)
    text = "Where the log has times, the groups that took the most time in all come first."
    return Section("groups", "Who takes the time", (Text(text, "quiet"), *blocks), "Groups")


def _group(name: str, title: str, rows: Sequence[Row], of: LogJudgement) -> list[Block]:
    if not rows or (len(rows) == 1 and name not in ("class", "words")):
        return []
    drawn: list[Block] = []
    if name in ("words", "size"):
        drawn = figure(
            f"by-{name}", title,
            "p50, p95 and p99 of each group. Times below the log's resolution are shown as the "
            "resolution.",
            partial(figures.by_group, tuple(rows), floor_s=of.resolution_s),
        )  # fmt: skip
    note = counted(len(rows), "row")
    made = tables.groups(title.removeprefix("By ").capitalize(), rows, of)
    return [Details(title, (*drawn, made), note, open=len(rows) <= LONG)]


def _when(of: LogJudgement) -> Section | None:
    if not of.over:
        return None
    minutes = of.step_s // 60
    step = "a minute" if minutes == 1 else f"{minutes:,} minutes"
    blocks: list[Block] = figure(
        "over-time", "Rate and times over the log", f"Each point is {step}.",
        partial(figures.over_time, of),
    )  # fmt: skip
    if blocks:
        blocks.append(_folded("The figure as a table", tables.over(of.over, of.step_s)))
    if of.worst:
        text = "The minutes with the most waiting time in all, and the longest search in each."
        blocks += [Text(text), tables.minutes(of.worst)]
    return Section("when", "When", tuple(blocks), "When") if blocks else None


def _queries(of: LogJudgement) -> Section | None:
    if not of.most:
        return None
    timed = bool(of.all and of.all.quantiles_s)
    blocks = [Details("Asked most", (tables.asked(of.most, timed=timed),), open=True)]
    if timed:
        blocks.append(Details("Most time in all", (tables.asked(of.longest, timed=timed),)))
    vain = [one for one in of.without_hits if one.zero]
    if vain:
        blocks.append(Details("Most often without hits", (tables.asked(vain, timed=timed),)))
    return Section("queries", "Queries", tuple(blocks), "Queries")


def _again(of: LogJudgement) -> Section | None:
    found = of.repeats
    if found is None or not found.caches:
        return None
    about = "about " if found.estimated else ""
    text = (
        f"{found.requests:,} requests asked {about}{found.distinct:,.0f} distinct queries. What a "
        "cache would have saved is estimated from how often each was asked, not from the order: "
        "LRU as if the order were random; and a cache that always held those that are asked most. "
        "Both may be too low: where the same is asked several times in a row, or for an hour only, "
        "an LRU cache saves more. Both may be too high: pages, filters and changes of the index "
        "are not in most logs."
    )
    if any(one.indexes > 1 for one in of.most):
        text += " The same words on another index are another query here."
    if found.short:
        text += f" Counts of single queries may be too low by up to {found.short:,}."
    return Section("again", "What is asked again", (Text(text), tables.caches(found)), "Repetition")


def _files(of: LogJudgement) -> Section:
    return Section("files", "What was read", (tables.files(of.sources),), "Files")
