"""The declared analysis as Sphinx's ``charset_table``: every letter and digit of Unicode, lowered.

Sphinx maps characters one to one and splits at those that its table does not name, which is just
what is declared. The characters that Python knows for letters and digits are written as ranges.
"""

from __future__ import annotations

import sys
from functools import cache

from searchbench.workload.queries.analysis import lower

EVERY = "\ue000"
"""The word that stands in every document, in a field of its own. A character for private use is
no letter, so neither a text nor a query has it as a term."""
HIGHEST = 0x2FFFF
"""The last code point that is named."""
_WIDTH = 240


@cache
def charset_table() -> str:
    """The value of ``charset_table``, over several lines as a configuration continues them."""
    stays: list[int] = []
    moves: list[tuple[int, int]] = []
    for code in range(min(HIGHEST, sys.maxunicode) + 1):
        char = chr(code)
        if char.isalnum():
            lowered = ord(lower(char))
            if lowered == code:
                stays.append(code)
            else:
                moves.append((code, lowered))
    boards = [b for b in _runs([m for m in moves if m[1] == m[0] + 1], step=2) if b[0] < b[1]]
    paired = {code for first, last, _ in boards for code in range(first, last + 2)}
    stays = [code for code in stays if code not in paired]
    moves = [move for move in moves if move[0] not in paired]
    # A board maps every other character to its neighbour, which stays: capital, small, capital.
    parts = [_code(ord(EVERY)), *(f"{_range(a, b + 1)}/2" for a, b, _ in boards)]
    parts += [_range(first, last) for first, last, _ in _runs([(c, c) for c in stays])]
    for first, last, distance in _runs(moves):
        target = f"->{_range(first + distance, last + distance)}"
        parts.append(_range(first, last) + target)
    lines, line = [], ""
    for part in parts:
        if len(line) + len(part) > _WIDTH:
            lines.append(line)
            line = ""
        line += part + ", "
    return " \\\n    ".join([*lines, line.removesuffix(", ")])


def _runs(pairs: list[tuple[int, int]], step: int = 1) -> list[tuple[int, int, int]]:
    """First, last and distance to the target of each run, ``step`` apart, with one distance."""
    found: list[tuple[int, int, int]] = []
    for code, target in pairs:
        if found and found[-1][1] == code - step and found[-1][2] == target - code:
            found[-1] = (found[-1][0], code, target - code)
        else:
            found.append((code, code, target - code))
    return found


def _range(first: int, last: int) -> str:
    return _code(first) if first == last else f"{_code(first)}..{_code(last)}"


def _code(code: int) -> str:
    return f"U+{code:X}"
