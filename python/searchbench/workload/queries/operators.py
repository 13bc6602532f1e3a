"""Operators in the words of a plain query: it is said where they are taken as plain words.

A line of a query file is cut into words, so `"red lamp" -blue` asks for red, lamp and blue. Whoever
typed it meant something else. Known are

    "red lamp"        a phrase; but for one whole query in quotes where phrases are asked for
    -blue +red !red   at the beginning of a word
    red OR blue       OR, AND, NOT in capitals, in a query that has small letters too
    (red blue)        parentheses around words
    red | blue

A hyphen within a word and a sign that stands alone are none.
"""

from __future__ import annotations

import re

from searchbench.workload.queries.algebra import Mode

_QUOTED = re.compile(r'"[^"]*\w[^"]*"')
_WHOLE = re.compile(r'\s*"[^"]*"\s*')
_OTHERS = re.compile(
    r'(?:^|\s)[-+!](?=[\w"(])'  # a sign before a word
    r"|\([^()]*\w[^()]*\)"
    r"|[\w\")]\s*\|\s*[\w\"(]"
)
_NAMED = re.compile(r"(?:^|\s)NOT\s+\S|\S\s+(?:OR|AND)\s+\S")


def has_operators(text: str, mode: Mode) -> bool:
    """Whether a text has operators that are lost when it is cut into words."""
    if _OTHERS.search(text):
        return True
    if _NAMED.search(text) and any(letter.islower() for letter in text):
        return True
    asked_as_phrase = mode is Mode.PHRASE and _WHOLE.fullmatch(text)
    return not asked_as_phrase and _QUOTED.search(text) is not None
