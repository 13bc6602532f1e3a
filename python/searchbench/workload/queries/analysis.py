"""The declared analysis: how a text becomes terms, for every engine alike.

A term is a longest run of letters and digits (Unicode general category L* or N*); everything
else separates. Each character is lowered on its own by its simple mapping: no rule looks at the
neighbours (a Greek sigma at the end of a word stays σ), and no character becomes two.
So splitting before lowering and lowering before splitting give the same.
"""

from __future__ import annotations

import re

# [^\W_] is what str.isalnum() accepts: categories L* and N*, no marks, no connectors. A test
# goes through all of Unicode to hold this to the definition above.
_RUN = re.compile(r"[^\W_]+")


def lower(text: str) -> str:
    """``text`` with each character lowered alone, by its simple mapping."""
    if not text.isascii():
        # The only two characters for which str.lower() does otherwise: U+03A3 becomes a final
        # sigma at the end of a word, U+0130 becomes two characters.
        text = text.replace("\u03a3", "\u03c3").replace("\u0130", "i")
    return text.lower()


def terms(text: str) -> tuple[str, ...]:
    """The terms of ``text`` in order, repetitions kept."""
    return tuple(_RUN.findall(lower(text)))


def is_term(word: str) -> bool:
    """Whether ``word`` is exactly one term as ``terms`` gives them."""
    return terms(word) == (word,)
