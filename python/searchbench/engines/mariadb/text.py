"""The copy of a text that MariaDB indexes: the declared terms, in characters of its words.

MariaDB's parser of full text knows the letters and digits of Unicode 3.2 within the first plane,
the underscore and the apostrophe; everything else separates. So the copy holds the declared terms
with one space between them, and a letter that the parser does not know is written `_` and five
hexadecimal digits. Declared terms hold no underscore, and the escape has one length, so terms and
prefixes of terms stay as different as they were.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import cache

from searchbench.workload.queries.analysis import terms

MOST_CHARACTERS = 83
"""Characters of a term that are indexed; terms are cut there, for longer ones would be left out.

InnoDB takes 84, which is the most that can be set; Aria and MyISAM take one fewer than is set.
"""

_ESCAPE = re.compile(r"_([0-9a-f]{5})")


def indexed(text: str) -> str:
    """The copy of ``text``."""
    return " ".join(words(terms(text)))


def words(found: Iterable[str]) -> list[str]:
    """Declared terms, or prefixes of terms, as they stand in the copy."""
    return [_word(term) for term in found]


def term(word: str) -> str:
    """The declared term that stands in the copy as ``word``; cut ones stay cut."""
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)), word)


def _word(found: str) -> str:
    if not found.isascii():
        found = found.translate(_unknown())
    return found[:MOST_CHARACTERS]


@cache
def _unknown() -> dict[int, str]:
    """Letters and digits that MariaDB's parser takes for separators, and how they are written.

    Compared with the server over every character of Unicode, for each storage engine.
    """
    old = unicodedata.ucd_3_2_0
    return {
        code: f"_{code:05x}"
        for code in range(0x80, sys.maxunicode + 1)
        if chr(code).isalnum() and (code > 0xFFFF or old.category(chr(code))[0] not in "LN")
    }
