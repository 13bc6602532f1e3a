"""Files of SQL: statements that end with ``;``, or one a line.

One a line if no line ends with ``;``. Quotes (with doubled quotes and backslashes), ``--`` and
``#`` to the end of a line and ``/* */`` are respected: what stands in them ends nothing. Comments
between statements are left away; those within stay, for they may be hints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from searchbench.requests.build import Builder
from searchbench.requests.model import Ask

# `#` begins a comment in MySQL and is an operator in PostgreSQL: a comment only where a line
# begins with it.
_TOKEN = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`)
    |(?P<comment>--(?=[ \t\n]|\Z)[^\n]*|(?:(?<=\n)|\A)[ \t]*\#[^\n]*|/\*.*?\*/)
    |(?P<open>['"`]|/\*)
    |(?P<end>;)
    |(?P<line>\n)""",
    re.VERBOSE | re.DOTALL,
)
_NAMES = {"'": "a quote ' is", '"': 'a quote " is', "`": "a quote ` is", "/*": "a comment /* is"}


def read_sql(text: str, builder: Builder) -> None:
    """Every statement of ``text`` into ``builder``, bad ones with the line where they begin."""
    text = text.replace("\r\n", "\n")
    if re.search(r";[ \t]*(?:--[^\n]*)?$", text, re.MULTILINE) is None:
        for number, line in enumerate(text.split("\n"), 1):
            _one(line, number, builder)
        return
    for begun, statement, reason in _statements(text, 1):
        _put(begun, statement, reason, builder)


def _one(line: str, number: int, builder: Builder) -> None:
    found = list(_statements(line, number))
    if len(found) > 1 and not any(reason for *_, reason in found):
        builder.leave_out(
            number, "several statements in a line; end each with `;` at the end of a line"
        )
        return
    for _, statement, reason in found:
        _put(number, statement, reason, builder)


def _put(line: int, statement: str, reason: str, builder: Builder) -> None:
    if reason:
        builder.leave_out(line, reason)
    elif statement.startswith(("/", "http://")) and not statement.startswith("/*"):
        builder.leave_out(line, f"{statement[:40]!r} is a path, and this is a file of statements")
    else:
        builder.add(Ask(statement))


def _statements(text: str, line: int) -> Iterator[tuple[int, str, str]]:
    """(line where it begins, statement, reason why it is none)."""
    begun, start, at, began = False, 0, 0, line
    for token in _TOKEN.finditer(text):
        if not begun:
            between = text[at : token.start()]
            if between.strip():
                begun, start, began = True, at + len(between) - len(between.lstrip()), line
            elif token.lastgroup == "quoted":
                begun, start, began = True, token.start(), line
        kind = token.lastgroup
        at = token.end()
        if kind == "end":
            if begun:
                yield began, text[start : token.start()].rstrip(), ""
            begun = False
        elif kind == "open":
            yield (
                line,
                "",
                f"{_NAMES[token[0]]} opened here and not closed; nothing after it is read",
            )
            return
        elif kind == "comment" and not begun and token[0].startswith(("/*!", "/*+")):
            begun, start, began = True, token.start(), line
        line += 1 if kind == "line" else token[0].count("\n")
    rest = text[at:]
    if begun or rest.strip():
        if not begun:
            start, began = at + len(rest) - len(rest.lstrip()), line
        yield began, text[start:].strip(), ""
