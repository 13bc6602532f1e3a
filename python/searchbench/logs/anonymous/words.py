r"""A text that somebody typed, with other words in the same structure.

Operators stay (OR, AND, NOT, quotes, signs), and so do names of fields where the language that was
asked in has them: ``title:`` in Lucene's, ``@title`` in Sphinx's. What a server would refuse if it
were made up stays too, or keeps its form: dates in ISO's form stay, addresses (10.0.0.1) and UUIDs
become other ones, and a number that an integer of 32 or 64 bits can hold becomes such a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Words = Callable[[str], str]


def names(together: str) -> frozenset[str]:
    """Names with blanks between them."""
    return frozenset(together.split())


_DATE = (
    r"(?<![^\W_])\d{4}(?:-\d\d-\d\d|/\d\d/\d\d)"
    r"(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?"
    r"(?![^\W_])"
)
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_FORMS = (
    r"(?P<uuid>(?<![\w-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![\w-]))"
    rf"|(?P<address>(?<![\w.]){_OCTET}(?:\.{_OCTET}){{3}}(?![\w.])(?:/\d\d?\b)?)|{_DATE}"
)
_OPERATORS = r"|\b(?:OR|AND|NOT|TO|NEAR|MAYBE|SENTENCE|PARAGRAPH)\b|(?P<word>[^\W_]+)"
# By the language: what names a field, and what has numbers and letters that are no words.
_RUNS = {
    language: re.compile(_FORMS + named + _OPERATORS)
    for language, named in {
        "": "",
        "escaped": r"|\\.",
        ":": r"|(?<![^\W_])_exists_:[\w.*]+|(?<![\w.])_?[^\W_]+(?:[._][^\W_]+)*:(?=[^\s:/])"
             r"|[~^]\d+(?:\.\d+)?|\b(?:NOW|now)(?:[+-]\d+[A-Za-z]+|/[A-Za-z]+)+"
             r"|(?<=[\[{])(?:NOW|now)(?= TO )|(?<=TO )(?:NOW|now)(?=[\]}])|\*:\*",
        "~": r"|~\d+",
        # As in Sphinx: at the beginning, behind a blank, a bracket or a bar, or behind another.
        "@": r"|\\.|(?:(?<=[\s(|])|(?<!.))(?:@@relaxed\b|@!?(?:\w+|\([\w\s,]+\))(?:\[\d+\])?)",
        "tsquery": r"|:\*?[ABCDabcd]{1,4}\*?(?![^\W_])",
        "regex": r"|\\.|\[:\w+:\]|[^\W_]-[^\W_](?=[^\[]*\])|\{\d+(?:,\d*)?\}",
    }.items()
}  # fmt: skip
_REGEX = re.compile(r"((?<![\w\\/:])/(?:[^/\\\s]|\\.)+/(?![\w/]))")
_MOST = ((10, 2**31 - 1), (19, 2**63 - 1))


class NotAnonymised(ValueError):  # noqa: N818 -- a reason, which is counted
    """Why what was asked cannot get other words, in a clause that follows "left out: "."""


def in_text(text: str, of: Words, language: str = "") -> str:
    """A text with other words.

    ``language``: "" (none), "escaped" (as literals of SQL are), ":" and "~" (Lucene's, and the
    simple one of it), "@" (Sphinx's), "tsquery" (PostgreSQL's), "regex".
    """

    def put(run: re.Match[str]) -> str:
        if run["word"]:
            return of(run[0])
        if run["uuid"]:
            return _uuid(run[0], of)
        if run["address"]:
            address, slash, mask = run[0].partition("/")
            parts = [no_more(part, 255, of) for part in address.split(".")]
            return ".".join(parts) + slash + mask
        return run[0]

    if language == ":" and "/" in text:
        each = _REGEX.split(text)
        each[::2] = [_RUNS[":"].sub(put, part) for part in each[::2]]
        each[1::2] = [_RUNS["regex"].sub(put, part) for part in each[1::2]]
        return "".join(each)
    return _RUNS[language].sub(put, text)


def no_more(number: str, most: int, of: Words) -> str:
    """Another number for one, not above ``most``: of those, each still has one of its own."""
    found = of(number)
    while int(found) > most:  # goes around a circle that the number itself is in
        found = of(found)
    return found


def of_numbers_too(of: Words) -> Words:
    """Numbers that an integer of a server can hold become such numbers."""

    def found(word: str) -> str:
        for digits, most in _MOST:
            if len(word) == digits and word.isascii() and word.isdigit() and int(word) <= most:
                return no_more(word, most, of)
        return of(word)

    return found


def _uuid(text: str, of: Words) -> str:
    digits = f"{int(no_more(str(int(text.replace('-', ''), 16)), 2**128 - 1, of)):032x}"
    digits = digits.upper() if text.isupper() else digits
    return "-".join(digits[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))
