"""Where a statement of SQL compares a column with a date in quotes, by its text alone.

In a database that is filled from a corpus a date is a number. MariaDB compares such a column with
'2024-01-01' as with the number 2024, without a message, so the answer is another one. Nothing is
parsed: what stands beside a quoted date is looked at, as in

    day >= '2024-01-01'    '2024-01-01' < day    day BETWEEN '..' AND '..'    day IN ('..', '..')

What a function or a calculation makes of a column is none of this.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<comment>--(?=[ \t\n]|\Z)[^\n]*|/\*.*?\*/)
    |(?P<text>'(?:[^'\\]++|\\.|'')*+')
    |(?P<double>"(?:[^"\\]++|\\.|"")*+")
    |`(?P<name>[^`]*)`
    |(?P<word>[^\W\d]\w*)
    |(?P<number>\d[\w.]*)
    |(?P<compares><=>|<=|>=|<>|!=|=|<|>)
    |(?P<other>\S)""",
    re.VERBOSE | re.DOTALL,
)
_DATE = re.compile(
    r"\s*\d{4}-\d\d?-\d\d?(?:[T ]\d\d?:\d\d(?::\d\d(?:\.\d+)?)?)?\s*(?:Z|[+-][\d:]+)?\s*"
)
_TYPED = ("date", "timestamp", "datetime")  # DATE '2024-01-01'
_CALCULATES = "+-*/%|(:"


class Compared(NamedTuple):
    """A column, in small letters, that a date in quotes is compared with, and in which line."""

    line: int
    column: str
    date: str


class _Token(NamedTuple):
    kind: str
    said: str  # of a word and a name in small letters, of a text what is in its quotes
    line: int


def dates_compared(text: str, columns: Collection[str]) -> Iterator[Compared]:
    """Each date in quotes that is compared with one of these columns (in small letters)."""
    tokens = [*_tokens(text)]
    for i, token in enumerate(tokens):
        if token.kind not in ("text", "double") or not _DATE.fullmatch(token.said):
            continue
        column = _before(tokens, i) or _after(tokens, i)
        if column in columns:
            yield Compared(token.line, column, token.said.strip())


def _tokens(text: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup or ""
        said = found[kind]
        if kind in ("text", "double"):
            said = said[1:-1]
        elif kind in ("word", "name"):
            said = said.lower()
        if kind != "comment":
            yield _Token(kind, said, text.count("\n", 0, found.start()) + 1)


def _before(tokens: list[_Token], i: int) -> str:
    """The column before the date at ``i`` that it is compared with; "" if there is none."""
    at = _beginning(tokens, i) - 1
    if _is(tokens, at, "and"):  # the second of BETWEEN .. AND ..
        first = _beginning(tokens, at - 1)
        at = first - 1 if _is(tokens, first - 1, "between") else -1
    elif at >= 0 and tokens[at].said in "(,":
        while at >= 0 and (tokens[at].said in "(," or tokens[at].kind in ("text", "double")):
            at -= 1
        at = at if _is(tokens, at, "in") else -1
    elif at >= 0 and tokens[at].kind != "compares" and not _is(tokens, at, "between"):
        at = -1
    if at < 1:
        return ""
    return _column(tokens, at - 2 if _is(tokens, at - 1, "not") else at - 1)


def _after(tokens: list[_Token], i: int) -> str:
    """The column after it: '2024-01-01' < data.day."""
    if i + 2 >= len(tokens) or tokens[i + 1].kind != "compares":
        return ""
    at = i + 2
    while at + 2 < len(tokens) and tokens[at + 1].said == ".":
        at += 2
    made_of = at + 1 < len(tokens) and tokens[at + 1].said in _CALCULATES
    return "" if made_of else _column(tokens, at)


def _beginning(tokens: list[_Token], i: int) -> int:
    """Where a date begins: at its type, if that is before it."""
    return i - 1 if i and tokens[i - 1].kind == "word" and tokens[i - 1].said in _TYPED else i


def _column(tokens: list[_Token], at: int) -> str:
    if at < 0 or tokens[at].kind not in ("word", "name", "double"):
        return ""
    return tokens[at].said.lower()


def _is(tokens: list[_Token], at: int, word: str) -> bool:
    return at >= 0 and tokens[at].kind == "word" and tokens[at].said == word
