r"""Sphinx's extended syntax as the algebra, as far as both have the same.

    red lamp            all           "red lamp"       a phrase
    red | blue          any           red -blue        not
    (red | blue) lamp   nested        @title red       in a field; @(title,body), @* all
    lam*                a prefix

A field is named at the beginning, behind a blank, a bracket or a bar: joe@example.org names none.
``|`` binds more tightly than the blank: ``a b | c`` is a and (b or c). What the algebra has no
word for is not guessed at: quorum, proximity, order, positions, boosts, exact forms, zones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from searchbench.workload.queries.algebra import Boolean, Match, Mode, Terms
from searchbench.workload.queries.analysis import terms

_TOKEN = re.compile(
    r"""\s+ | (?P<quoted>"[^"]*")(?P<after>[/~]\S*)? | (?P<sign>[()|])
      | (?P<field>(?:(?<=[\s(|])|(?<!.))@(?:\*|\w+|\([\w\s,]+\)))(?P<limit>\[\d+\])?
      | (?P<not>[-!](?=[\w"(@]))
      | (?P<word>(?:[^\s"()|@]|(?<=[^\s(|!-])@)[^\s"()|]*)""",
    re.VERBOSE,
)
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_FOREIGN = re.compile(
    r"<<|[\^$=~]|(?:^|\s)(?:MAYBE|NEAR(?:/\d+)?|NOTNEAR|SENTENCE|PARAGRAPH|ZONE|ZONESPAN)(?=[\s:(]|$)"
)
_DEEPEST = 30


class _Unread(Exception):  # noqa: N818 -- never shown: the caller gets None
    """There is an operator that the algebra lacks, or the text is no query."""


@dataclass
class _Reader:
    tokens: list[tuple[str, str]]
    at: int = 0
    depth: int = 0

    def group(self, fields: tuple[str, ...], *, inner: bool) -> Match:
        """All up to the end, or up to the bracket that closes."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _Unread
        must: list[Match] = []
        must_not: list[Match] = []
        while True:
            kind, text = self._next()
            if not kind or (kind == "sign" and text == ")"):
                if inner != bool(kind):
                    raise _Unread
                break
            if kind == "field":
                fields = _fields(text)
                continue
            into = must_not if kind == "not" else must
            if kind == "not":
                kind, text = self._next()
                into.append(self._factor(kind, text, fields))
                continue
            found = [self._factor(kind, text, fields)]
            while self._peek() == ("sign", "|"):
                self.at += 1
                kind, text = self._next()
                if kind == "field":
                    fields = _fields(text)
                    kind, text = self._next()
                found.append(self._factor(kind, text, fields))
            into.append(_either(found))
        self.depth -= 1
        return _all(must, must_not)

    def _factor(self, kind: str, text: str, fields: tuple[str, ...]) -> Match:
        if kind == "sign" and text == "(":
            return self.group(fields, inner=True)
        if kind == "phrase":
            words = terms(text)
            if not words or "*" in text:
                raise _Unread
            return Terms(Mode.PHRASE if len(words) > 1 else Mode.ALL, words, fields)
        if kind != "word":
            raise _Unread
        words = terms(text)
        if "*" in text:
            if len(words) != 1 or not text.endswith("*") or text.count("*") > 1:
                raise _Unread
            return Terms(Mode.PREFIX, words, fields)
        if not words:
            raise _Unread
        return Terms(Mode.ALL, words, fields)

    def _next(self) -> tuple[str, str]:
        found = self._peek()
        self.at += 1
        return found

    def _peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("", "")


def read(text: str) -> Match | None:
    """The match that a text in Sphinx's extended or boolean syntax means; None where there is none.

    Fields are named as they stand there.
    """
    bare = _ESCAPED.sub(" ", text).replace("&", " ")
    if _FOREIGN.search(bare):
        return None
    try:
        return _Reader(_tokens(bare)).group((), inner=False)
    except _Unread:
        return None


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None or token["after"] or token["limit"]:
            raise _Unread
        at = token.end()
        if token["quoted"]:
            found.append(("phrase", token["quoted"][1:-1]))
        elif token["sign"]:
            found.append(("sign", token["sign"]))
        elif token["field"]:
            found.append(("field", token["field"]))
        elif token["not"]:
            found.append(("not", ""))
        elif token["word"] and terms(token["word"]):  # a lone sign is nothing
            found.append(("word", token["word"]))
    return found


def _fields(text: str) -> tuple[str, ...]:
    if text == "@*":
        return ()
    return tuple(re.findall(r"\w+", text))


def _either(found: list[Match]) -> Match:
    """One of them, at least."""
    if len(found) == 1:
        return found[0]
    same = {one.fields for one in found if isinstance(one, Terms)}
    if len(same) == 1 and all(
        isinstance(one, Terms) and one.mode is Mode.ALL and len(one.terms) == 1 for one in found
    ):
        words = tuple(one.terms[0] for one in found if isinstance(one, Terms))
        return Terms(Mode.ANY, words, same.pop())
    return Boolean(should=tuple(found))


def _all(must: list[Match], must_not: list[Match]) -> Match:
    """All of the one, none of the other; words that follow each other in the same fields as one."""
    if not must:
        raise _Unread  # Sphinx refuses what only excludes
    joined: list[Match] = []
    for one in must:
        last = joined[-1] if joined else None
        if (
            isinstance(one, Terms)
            and isinstance(last, Terms)
            and one.mode is last.mode
            and one.mode in (Mode.ALL, Mode.PREFIX)
            and one.fields == last.fields
        ):
            joined[-1] = Terms(one.mode, last.terms + one.terms, one.fields)
        else:
            joined.append(one)
    if len(joined) == 1 and not must_not:
        return joined[0]
    return Boolean(must=tuple(joined), must_not=tuple(must_not))
