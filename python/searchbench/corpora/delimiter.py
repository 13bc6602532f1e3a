"""What separates the cells of a table that does not say so: a comma, a semicolon, a tab, a pipe.

Seen from the header and the first rows, with quotes respected: the one by which most rows have as
many cells as the header. Half of Europe's spreadsheets write semicolons into files named .csv.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable

from searchbench.errors import CorpusError

NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a pipe"}
LINES, CHARACTERS = 200, 1 << 20
"""Of the beginning of a file: so much of it is looked at."""

_LEAST = 0.5  # of the rows: else what the format is named for, and its bad rows are shown


def shown(delimiter: str) -> str:
    """The delimiter, for a sentence."""
    return "tabs" if delimiter == "\t" else delimiter


def detected(file: str, lines: Iterable[str], usual: str, quote: str) -> str:
    """The delimiter of a table that begins with these lines; CorpusError where two fit as well.

    ``usual``: that of the format, taken where no other one cuts the header and most rows.
    """
    beginning, cut = _beginning(lines)
    shares = {each: _share(beginning, each, quote, cut) for each in NAMES}
    fit = {each: share for each, share in shares.items() if share >= _LEAST}
    best = [each for each, share in fit.items() if share == max(fit.values())]
    if len(best) > 1:
        either = " or ".join(NAMES[each] for each in best)
        raise CorpusError(
            f"{file}:1: its cells may be separated by {either}, and the first rows fit both; "
            "name one with `delimiter`.",
            at=("files",),
        )
    return best[0] if best else usual


def _beginning(lines: Iterable[str]) -> tuple[list[str], bool]:
    """The first lines, and whether there are more."""
    taken: list[str] = []
    characters = 0
    for line in lines:
        if len(taken) == LINES or characters > CHARACTERS:
            return taken, True
        taken.append(line)
        characters += len(line)
    return taken, False


def _share(lines: list[str], delimiter: str, quote: str, cut: bool) -> float:
    """The share of rows that have as many cells as the header; 0 where that has only one."""
    if quote:
        reader = csv.reader(lines, delimiter=delimiter, strict=True, quotechar=quote)
    else:
        reader = csv.reader(lines, delimiter=delimiter, strict=True, quoting=csv.QUOTE_NONE)
    width = alike = rows = 0
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error:
            if cut and reader.line_num == len(lines):  # the row goes on beyond what is looked at
                break
            if not width:
                return 0.0
            cells = []
            rows += 1
        if not cells:
            continue
        if not width:
            width = len(cells)
            continue
        rows += 1
        alike += len(cells) == width
    if width < 2:
        return 0.0
    return alike / rows if rows else 1.0
