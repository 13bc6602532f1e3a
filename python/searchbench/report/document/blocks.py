"""The document as plain data: what the page (HTML) and the document (PDF) both render.

    Document ─ sections ─ blocks: Text · Badge · Notice · Table · Figure · Facts · Code · Details
                                  · Unprinted

The content is decided once, in ``assemble``; the renderers only set type. So both say the same
in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Tone = Literal["plain", "lead", "quiet"]
Severity = Literal["invalid", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Text:
    """One paragraph."""

    text: str
    tone: Tone = "plain"
    kind: str = field(default="text", init=False)


@dataclass(frozen=True, slots=True)
class Badge:
    """The answer in one or two words, with the reason why it is that."""

    text: str
    tone: Literal["good", "unsure", "bad"]
    explanation: str
    kind: str = field(default="badge", init=False)


@dataclass(frozen=True, slots=True)
class Notice:
    """A finding: the number, what it means, what to do. ``where``: its trials, or the study.

    Without ``meaning`` it is one line.
    """

    severity: Severity
    title: str
    where: str
    number: str
    meaning: str
    remedy: str
    kind: str = field(default="notice", init=False)


@dataclass(frozen=True, slots=True)
class Span:
    """A value with its interval as shares 0..1 of the width of a cell; drawn inside the cell."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: ``text`` for people, ``exact`` for those who ask, ``below`` in small print."""

    text: str
    exact: str = ""
    below: str = ""
    span: Span | None = None
    tone: Literal["", "good", "bad", "quiet"] = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A heading; numbers are set flush right. ``weight`` shares out the width of the PDF."""

    name: str
    number: bool = False
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under headings; every row is as long as ``columns``.

    ``source``: the file that has all rows. ``telling``: the numbers of all rows, the most telling
    first; empty: the order of the rows is that. ``printed_first``: what they are, in words.
    ``left_out``: the numbers of the rows that are not printed (``paper``).
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    source: str = ""
    telling: tuple[int, ...] = ()
    printed_first: str = ""
    left_out: frozenset[int] = frozenset()
    kind: str = field(default="table", init=False)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure by name; ``wide`` and ``narrow`` are its SVG for a desk and for a phone."""

    name: str
    title: str
    caption: str
    wide: str
    narrow: str
    kind: str = field(default="figure", init=False)


@dataclass(frozen=True, slots=True)
class Facts:
    """Pairs of a name and what it is."""

    pairs: tuple[tuple[str, str], ...]
    kind: str = field(default="facts", init=False)


@dataclass(frozen=True, slots=True)
class Points:
    """A list of short paragraphs."""

    texts: tuple[str, ...]
    kind: str = field(default="points", init=False)


@dataclass(frozen=True, slots=True)
class Code:
    """Text to be shown as it is: a command line, a configuration file, a study."""

    text: str
    label: str = ""
    kind: str = field(default="code", init=False)


@dataclass(frozen=True, slots=True)
class Details:
    """Blocks under a heading that a reader opens (on paper: a lesser heading).

    ``each``: what several of a kind are called, which are printed all or not at all. ``source``:
    the file that has all of it. ``printed``: whether it stands on paper (``paper``).
    """

    title: str
    blocks: tuple[Block, ...]
    note: str = ""
    open: bool = False
    each: str = ""
    source: str = ""
    printed: bool = True
    kind: str = field(default="details", init=False)


@dataclass(frozen=True, slots=True)
class Unprinted:
    """A line on paper alone: what is not printed, and where it is."""

    text: str
    kind: str = field(default="unprinted", init=False)


Block = Text | Points | Badge | Notice | Table | Figure | Facts | Code | Details | Unprinted


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the document; ``id`` is its anchor, ``short`` its name in the contents."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    short: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """The whole: the question as title, one line about when and where, sections in order.

    ``method``: how the systems were driven, in one sentence below the title. ``whole``: where
    everything is that is not printed. ``footer``: the last line of the page.
    """

    title: str
    about: str
    method: str
    sections: tuple[Section, ...]
    whole: str = (
        "All of it is on the page on a screen, and in the output of searchbench report RECORD "
        "--json."
    )
    footer: str = (
        "Made by searchbench from a record on disk; the same numbers are in the CSV files beside "
        "this page."
    )
