"""Files of SQL: statements that end with ``;``, or one a line.

One a line if no line ends with ``;``. Quotes (with doubled quotes and backslashes), ``--`` and
``#`` to the end of a line and ``/* */`` are respected: what stands in them ends nothing. Comments
between statements are left away; those within stay, for they may be hints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from searchbench.workload.verbatim.build import Builder
from searchbench.workload.verbatim.model import Ask

# `#` begins a comment in MySQL and is an operator in PostgreSQL: a comment only where a line
# begins with it.
_TOKEN = re.compile(
    r"""(?P<quoted>'(?:[^'\\]++|\\.|'')*+'|"(?:[^"\\]++|\\.|"")*+"|`[^`]*`)
    |(?P<comment>--(?=[ \t\n]|\Z)[^\n]*|(?:(?<=\n)|\A)[ \t]*\#[^\n]*|/\*.*?\*/)
    |(?P<open>['"`]|/\*)
    |(?P<end>;)
    |(?P<line>\n)""",
    re.VERBOSE | re.DOTALL,
)
# A blank line, or a statement in a line without comments, backslashes or odd quotes.
_SIMPLE = re.compile(
    r"""[ \t]*(?:([^\s'"`;/\#-][^'"`;/\#\n-]*+(?:'[^'\\\n]*+'[^'"`;/\#\n-]*+)*+);)?[ \t]*\n"""
)
_BEGINS = re.compile(r"(?i)\n[ \t]*SELECT\b")
_GOES_ON = re.compile(r"(?i)\b(?:UNION|ALL|DISTINCT|EXCEPT|INTERSECT|MINUS)\s*\Z")
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
            number, "several statements on one line; end each with `;` at the end of a line"
        )
        return
    for _, statement, reason in found:
        _put(number, statement, reason, builder)


def _put(line: int, statement: str, reason: str, builder: Builder) -> None:
    if reason:
        builder.leave_out(line, reason)
    elif (second := _second(statement)) is not None:
        builder.leave_out(
            line + second, "a SELECT begins here, and the one before it has not ended with `;`"
        )
    elif statement.startswith(("/", "http://")) and not statement.startswith("/*"):
        builder.leave_out(line, f"{statement[:40]!r} is a path, and this is a file of statements")
    else:
        builder.add(Ask(statement))


def _second(statement: str) -> int | None:
    """In which line of a SELECT, from 0, another begins; None if it is one statement."""
    if "\n" not in statement or not re.match(r"(?i)SELECT\b", statement):
        return None
    masked = _TOKEN.sub(_masked, statement)
    for found in _BEGINS.finditer(masked):
        before = masked[: found.start()]
        if before.count("(") == before.count(")") and not _GOES_ON.search(before):
            return statement.count("\n", 0, found.start()) + 1
    return None


def _masked(token: re.Match[str]) -> str:
    if token.lastgroup not in ("quoted", "comment"):
        return token[0]
    fill = "x" if token.lastgroup == "quoted" else " "
    return re.sub(r"[^\n]", fill, token[0])


def _statements(text: str, line: int) -> Iterator[tuple[int, str, str]]:
    """(line where it begins, statement, reason why it is none)."""
    at = 0
    while at < len(text):
        # Most statements are a line: told at once, and not token by token.
        simple = _SIMPLE.match(text, at)
        if simple is not None:
            if simple[1]:
                yield line, simple[1].rstrip(), ""
            line += 1
            at = simple.end()
            continue
        begun, statement, reason, end = _slowly(text, at)
        if statement or reason:
            yield line + text.count("\n", at, begun), statement, reason
        line += text.count("\n", at, end)
        at = end


def _slowly(text: str, at: int) -> tuple[int, str, str, int]:
    """(where it begins, statement, reason why it is none, where the next may begin)."""
    start: int | None = None
    for token in _TOKEN.finditer(text, at):
        kind = token.lastgroup
        if start is None:
            between = text[at : token.start()]
            if between.strip():
                start = at + len(between) - len(between.lstrip())
            elif kind == "quoted" or token[0].startswith(("/*!", "/*+")):
                start = token.start()
        at = token.end()
        if kind == "open":
            reason = f"{_NAMES[token[0]]} opened here and not closed; nothing after it is read"
            return token.start(), "", reason, len(text)
        if kind == "end":
            statement = "" if start is None else text[start : token.start()].rstrip()
            return token.start() if start is None else start, statement, "", at
    rest = text[at:]
    if start is None:
        start = at + len(rest) - len(rest.lstrip())
    return start, text[start:].strip(), "", len(text)
