"""What of a document is printed: nobody leafs through hundreds of pages of rows.

Printed are all text, notices and figures that a reader sees without a click, and tables up to
``ROWS``. A longer table keeps its most telling rows. Of what a reader opens by a click, on paper
stands what is short; what lies two clicks away does not. Wherever something is left out, one line
says how much, and where it is. The page marks what is left out and shows it on a screen; the PDF
leaves it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from searchbench.report.document.blocks import (
    Block,
    Code,
    Details,
    Document,
    Facts,
    Figure,
    Notice,
    Points,
    Table,
    Text,
    Unprinted,
)
from searchbench.report.document.text import short
from searchbench.report.tables.numbers import counted

ROWS = 40  # of a table: about a page of A4
_LINES = 60  # of closed details that stand alone: a page and a half
_ROOM = 120  # of all closed details of one kind, such as a part for each configuration
_WIDTH = 100  # letters in a line
_FIGURE, _NOTICE = 8, 4  # lines; a figure is worth more than its height in rows
HOVER = "Hover or touch for exact values."
_NAMED = 3  # details that are named where they are not printed


def marked(document: Document) -> Document:
    """The document with marks on what is not printed, and the lines that say so."""
    sections = (
        replace(s, blocks=_marked(s.blocks, document.whole, clicked=False))
        for s in document.sections
    )
    return replace(document, sections=tuple(sections))


def printed(blocks: Sequence[Block]) -> list[Block]:
    """Blocks with marks, without what they mark; nobody hovers over paper."""
    left: list[Block] = []
    for block in blocks:
        if isinstance(block, Table) and block.left_out:
            rows = tuple(row for i, row in enumerate(block.rows) if i not in block.left_out)
            left.append(replace(block, rows=rows, left_out=frozenset()))
        elif isinstance(block, Text):
            text = block.text.replace(f" {HOVER}", "").replace(HOVER, "")
            left += [replace(block, text=text)] if text else []
        elif not isinstance(block, Details):
            left.append(block)
        elif block.printed:
            left.append(replace(block, blocks=tuple(printed(block.blocks))))
    return left


def _marked(blocks: Sequence[Block], whole: str, *, clicked: bool) -> tuple[Block, ...]:
    """``clicked``: whether a reader has opened something to see these blocks."""
    seen = [_inside(block, whole, clicked) for block in blocks]
    closed = [b for b in seen if isinstance(b, Details) and not b.open]
    hidden: dict[tuple[str, str], list[int]] = {}  # by kind and file: places of what is left out
    for at, block in enumerate(seen):
        if not isinstance(block, Details) or block.open:
            continue
        alike = [b for b in closed if b.each == block.each] if block.each else [block]
        if clicked or sum(map(_lines, alike)) > (_ROOM if block.each else _LINES):
            seen[at] = replace(block, printed=False)
            hidden.setdefault((block.each, block.source), []).append(at)
    said = {
        places[-1]: _not_printed([blocks[i] for i in places], whole) for places in hidden.values()
    }
    made: list[Block] = []
    for at, block in enumerate(seen):
        made.append(block)
        if isinstance(block, Table) and block.left_out:
            made.append(_not_all(block, whole))
        if at in said:
            made.append(said[at])
    return tuple(made)


def _inside(block: Block, whole: str, clicked: bool) -> Block:
    if isinstance(block, Details):
        inner = _marked(block.blocks, whole, clicked=clicked or not block.open)
        return replace(block, blocks=inner)
    if isinstance(block, Table) and len(block.rows) > ROWS:
        order = block.telling or range(len(block.rows))
        return replace(block, left_out=frozenset(range(len(block.rows))).difference(order[:ROWS]))
    return block


def _not_all(table: Table, whole: str) -> Unprinted:
    why = f"Those above are {table.printed_first}." if table.telling else "Those above come first."
    left = f"{len(table.left_out):,} of {len(table.rows):,} rows are not printed."
    return Unprinted(f"{left} {why} {_where(table.source, whole)}")


def _not_printed(found: Sequence[Block], whole: str) -> Unprinted:
    """One line for closed details of one kind; ``found`` is as it was before it was marked."""
    closed = [block for block in found if isinstance(block, Details)]
    lines = counted(sum(map(_lines, closed)), "line")
    if closed[0].each and len(closed) > 1:
        what = f"{len(closed):,} {closed[0].each}"
    else:
        names = [f"“{short(block.title, 60)}”" for block in closed[:_NAMED]]
        more = [f"{len(closed) - _NAMED} more"] if len(closed) > _NAMED else []
        *most, last = names + more
        what = f"{', '.join(most)} and {last}" if most else last
    return Unprinted(f"Not printed: {what} ({lines}). {_where(closed[0].source, whole)}")


def _where(source: str, whole: str) -> str:
    return f"All of it is in {source}." if source else whole


def _lines(block: Block) -> int:
    """About how many lines a block takes on paper."""
    if isinstance(block, Details):
        return 2 + sum(map(_lines, block.blocks)) if block.printed else 0
    if isinstance(block, Table):
        return 1 + len(block.rows) - len(block.left_out)
    if isinstance(block, Facts):
        return sum(1 + (len(name) + len(value)) // _WIDTH for name, value in block.pairs)
    if isinstance(block, Code):
        return 1 + sum(1 + len(text) // _WIDTH for text in block.text.split("\n"))
    if isinstance(block, Figure | Notice):
        return _FIGURE if isinstance(block, Figure) else _NOTICE
    texts = block.texts if isinstance(block, Points) else (block.text,)
    return sum(1 + len(text) // _WIDTH for text in texts)
