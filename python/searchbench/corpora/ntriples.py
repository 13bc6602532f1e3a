"""N-Triples, a line at a time: one statement, checked by the W3C's grammar, or what is wrong.

https://www.w3.org/TR/n-triples/ (2014), section 7, with one restriction: lines end with LF or
CRLF, not with CR alone.

    _:b0 <http://example.org/says> "caf\\u00E9"@fr .   # subject, predicate, object, comment
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Triple(NamedTuple):
    """One statement, its escapes resolved.

    An IRI stands without its brackets, a blank node with its ``_:``, a literal without quotes.
    ``qualifier``: of a literal ``@`` and its language, ``^^`` and the IRI of its datatype, or
    nothing; None where the object is no literal.
    """

    subject: str
    predicate: str
    object: str
    qualifier: str | None = None


class NotATriple(ValueError):  # noqa: N818 -- a reason, not a failure
    """A line that is none; the words say why, with the column (from 1) where it ends to be one."""


# Unrolled, so that a line that does not match is not tried in exponentially many ways.
_UCHAR = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_PLAIN_IRI = r'[^\x00-\x20<>"{}|^`\\]*'
_IRI = rf"<({_PLAIN_IRI}(?:(?:{_UCHAR}){_PLAIN_IRI})*)>"
_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_FIRST = f"{_BASE}_:0-9"
_LATER = f"{_BASE}_:\\-0-9\u00b7\u0300-\u036f\u203f\u2040"
_BLANK = rf"(_:[{_FIRST}](?:[{_LATER}.]*[{_LATER}])?)"
_PLAIN = r'[^"\\\n\r]*'
_STRING = rf'"({_PLAIN}(?:(?:\\[tbnrf"\'\\]|{_UCHAR}){_PLAIN})*)"'
_LANGUAGE = r"(@[a-zA-Z]+(?:-[a-zA-Z0-9]+)*)"

_GAP = re.compile(r"[ \t]*")
_SUBJECT = re.compile(f"{_IRI}|{_BLANK}")
_PREDICATE = re.compile(_IRI)
_OBJECT = re.compile(rf"{_IRI}|{_BLANK}|{_STRING}(?:{_LANGUAGE}|\^\^{_IRI})?")
_END = re.compile(r"\.[ \t]*(?:#.*)?", re.DOTALL)
_NOTHING = re.compile(r"[ \t]*(?:#.*)?", re.DOTALL)
_ESCAPE = re.compile(rf"\\[tbnrf\"'\\]|{_UCHAR}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NOT_IN_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\]')
_CHARACTERS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


def parse(line: str) -> Triple | None:
    """The statement of a line without its end; None for one of a comment or of nothing.

    NotATriple with the reason.
    """
    if _NOTHING.fullmatch(line):
        return None
    at = _end(_GAP, line, 0)
    found = _SUBJECT.match(line, at)
    if found is None:
        raise _wrong(line, at, "the subject", "an IRI in <..> or a blank node such as _:b0")
    subject = found[2] or _iri(found[1], at)
    at = _end(_GAP, line, found.end())
    found = _PREDICATE.match(line, at)
    if found is None:
        raise _wrong(line, at, "the predicate", "an IRI in <..>")
    predicate = _iri(found[1], at)
    at = _end(_GAP, line, found.end())
    found = _OBJECT.match(line, at)
    if found is None:
        raise _wrong(line, at, "the object", 'an IRI in <..>, a blank node or a literal in ".."')
    iri, blank, text, language, datatype = found.groups()
    qualifier = None
    if text is not None:
        named, qualifier = _unescaped(text, at), language or ""
        if datatype is not None:
            qualifier = f"^^{_iri(datatype, at)}"
    else:
        named = blank or _iri(iri, at)
    at = _end(_GAP, line, found.end())
    if _END.fullmatch(line, at) is None:
        raise _wrong(line, at, "what follows the object", "a full stop, and then only a comment")
    return Triple(subject, predicate, named, qualifier)


def written(triple: Triple) -> str:
    """The line of a statement, without its end, as the canonical form has it."""
    subject, predicate, named, qualifier = triple
    if qualifier is None:
        return f"{_term(subject)} {_term(predicate)} {_term(named)} ."
    text = named.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    if qualifier.startswith("^^"):
        qualifier = f"^^{_term(qualifier[2:])}"
    return f'{_term(subject)} {_term(predicate)} "{text}"{qualifier} .'


def _term(named: str) -> str:
    return named if named.startswith("_:") else f"<{named}>"


def _end(pattern: re.Pattern[str], line: str, at: int) -> int:
    found = pattern.match(line, at)
    return at if found is None else found.end()


def _iri(text: str, at: int) -> str:
    """Absolute, and still an IRI when its escapes are resolved."""
    iri = _unescaped(text, at) if "\\" in text else text
    if "\\" in text and _NOT_IN_IRI.search(iri):
        raise NotATriple(f"column {at + 1}: <{_short(text)}> has a character that no IRI may have")
    if not _SCHEME.match(iri):
        raise NotATriple(f"column {at + 1}: <{_short(text)}> is not absolute: it has no scheme")
    return iri


def _unescaped(text: str, at: int) -> str:
    if "\\" not in text:
        return text

    def character(found: re.Match[str]) -> str:
        sign = found[0][1]
        if sign not in "uU":
            return _CHARACTERS.get(sign, sign)
        code = int(found[0][2:], 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise NotATriple(f"column {at + 1}: {found[0]} is no character")
        return chr(code)

    return _ESCAPE.sub(character, text)


def _wrong(line: str, at: int, what: str, expected: str) -> NotATriple:
    here = _short(line[at:])
    seen = f"not {here!r}" if here else "and the line ends here"
    return NotATriple(f"column {at + 1}: {what} must be {expected}, {seen}")


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
