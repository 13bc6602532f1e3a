"""What a server itself says of a request that it refused, on one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import orjson

from searchbench.engines import mysql_form, postgres_form
from searchbench.engines.engine import Wire
from searchbench.engines.http_form import HttpReply, split

LONGEST = 200
UNREAD = (ValueError, KeyError, TypeError, IndexError, AttributeError)
_STATUS = re.compile(r"HTTP status \d+")
_TAG = re.compile(r"(?is)<(style|script|head)\b.*?</\1>|<[^>]*>")
# Where servers put their sentence in JSON, the innermost cause first.
_SENTENCES = ("caused_by", "root_cause", "error", "reason", "message", "detail", "msg", "header")


def words_of(reply: bytes, wire: Wire, read: Callable[[bytes], str | None] | None = None) -> str:
    """The server's sentence in a reply that is an error; empty where there is none to be read.

    ``read``: what its engine takes for the error's text, which is better where it is more than a
    status. At most ``LONGEST`` characters: what is longer loses its middle, as the reason may stand
    behind something long.
    """
    known, found = "", ""
    with suppress(*UNREAD):
        known = (read(reply) if read is not None else None) or ""
    if not known or _STATUS.fullmatch(known):
        with suppress(*UNREAD):
            found = _by_wire(reply, wire)
    line = " ".join((found or known).split())
    first, last = LONGEST // 2, LONGEST - 3 - LONGEST // 2
    return line if len(line) <= LONGEST else f"{line[:first]}...{line[-last:]}"


def _by_wire(reply: bytes, wire: Wire) -> str:
    if wire == "http":
        refused = next((r for r in split(reply) if r.status >= 400), None)
        return "" if refused is None else f"HTTP {refused.status}: {_body(refused)}".rstrip(": ")
    if wire in ("mysql", "sphinxql"):
        return mysql_form.refusal(mysql_form.split(reply)) or ""
    if wire == "postgres":
        return next((str(e) for r in postgres_form.split(reply) for e in r.errors), "")
    return ""


def _body(http: HttpReply) -> str:
    try:
        return _sentence(orjson.loads(http.body))
    except orjson.JSONDecodeError:
        return _TAG.sub(" ", http.body[: 16 * LONGEST].decode(errors="replace"))


def _sentence(answer: Any) -> str:
    """The first text that stands where a server puts what was wrong."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, list):  # Groonga's [[code, start, seconds, words, ..], ..]
        found = (_sentence(part) for part in answer)
        return next((words for words in found if words), "")
    if not isinstance(answer, dict):
        return ""
    found = (_sentence(answer[key]) for key in _SENTENCES if key in answer)
    return next((words for words in found if words), "")
