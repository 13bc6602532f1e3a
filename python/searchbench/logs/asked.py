"""What an entry of a log asked, as a line that a study can ask again: words, a path, a statement.

A line says no more than the log does. What the log lacks (filters of Sphinx's plain log, the body
of a POST) is named, so that it can be counted and told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec
import orjson

from searchbench.logs.entries import Row
from searchbench.workload.queries import sphinx_syntax
from searchbench.workload.queries.algebra import Boolean, Match
from searchbench.workload.queries.analysis import terms
from searchbench.workload.queries.sphinx_log import mode_and_words
from searchbench.workload.verbatim.build import BadRequest, escape, fit_path
from searchbench.workload.verbatim.logs import ask_of_entry

Kind = Literal["words", "paths", "statements"]

FILTERS = "had filters, of which the log has only the number"
GROUPED = "were grouped by an attribute, and are asked without"
FIELDS = "look in named fields, which the study's documents must have (--field NAME=OTHER)"
NO_INDEX = "name no index, and are sent to all of them"
HOW = "do not say how their words are to be found; the study's `match` does"

# What no entry of a format has, in a clause that follows "the log has no ..".
LIMITS: dict[str, tuple[str, ...]] = {
    "sphinx": ("searches that failed", "order of the hits"),
    "access": ("headers of requests",),
    "mysql-slow": ("searches that were faster than its threshold",),
    "slowlog": ("searches that were faster than its threshold",),
    "slowlog-json": ("searches that were faster than its threshold",),
    "mysql-general": ("times of answers",),
}

_AROUND = re.compile(
    rb"(?P<mode>\w+)/(?P<filters>\d+)/\S+ \d+ \((?P<offset>\d+),(?P<limit>\d+)\)(?P<group> @)?"
)
_STATEMENT = re.compile(rb"(?is)\s*\(?\s*(?:select\b.+\bfrom\b|with\s+\w+)")
_PLACE = re.compile(r"\$\d")
_METHOD = re.compile(r"([A-Z]+) /")


@dataclass(frozen=True, slots=True)
class Asked:
    """``line``: of a file of queries or of requests, without its time. ``missing``: what the log
    lacks of it, in clauses of this file."""

    kind: Kind
    line: dict[str, Any]
    missing: tuple[str, ...] = ()


class NotAsked(ValueError):  # noqa: N818 -- a reason, which is counted
    """Why an entry cannot be asked again, in a clause that follows "left out: "."""


def asked_of(row: Row, fields: Mapping[str, str] | None = None) -> Asked:
    """The line that a row of a log means. NotAsked with the reason where there is none.

    ``fields``: by the name of a field in the log that in the study; "": all fields.
    """
    try:
        if row.format == "sphinx":
            return _words_of_sphinx(row, fields or {})
        if row.format == "sphinxql":
            return _statement("sphinxql", row.around + b";")
        if row.format.startswith(("mysql", "postgresql")):
            return _sql(row.format.partition("-")[0], row.text)
        if row.format == "access":
            return _path(_method(row), row.text)
        if row.format == "groonga":
            ask = ask_of_entry("groonga", row.text)
            return Asked("paths", {"path": ask.text})
        if row.format in ("slowlog", "slowlog-json"):
            return _body(row)
        if row.format == "solr":
            core = f"/{row.index}".encode() if row.index else b""
            missing = () if row.index else (NO_INDEX,)
            return Asked("paths", {"path": escape(b"/solr" + core + row.text)}, missing)
    except BadRequest as reason:
        raise NotAsked(_without_example(str(reason))) from None
    return _named(row)


def identity(line: dict[str, Any]) -> bytes:
    """By what a study takes two lines for the same: words as terms, whatever their letters."""
    told = line if "text" not in line else {**line, "text": terms(line["text"])}
    return orjson.dumps(told, option=orjson.OPT_SORT_KEYS)


def _words_of_sphinx(row: Row, fields: Mapping[str, str]) -> Asked:
    found = _AROUND.match(row.around)
    if found is None:
        raise NotAsked("a head that cannot be read")
    try:
        text = row.text.decode()
    except UnicodeDecodeError:
        raise NotAsked("not UTF-8") from None
    if not text:
        raise NotAsked("no words: a scan of all documents")
    missing = []
    if int(found["filters"]):
        missing.append(FILTERS)
    if found["group"]:
        missing.append(GROUPED)
    page: dict[str, Any] = {"offset": int(found["offset"]), "limit": int(found["limit"])}
    if not page["offset"]:
        del page["offset"]
    plain = mode_and_words(found["mode"].decode(), text)
    if plain is not None:
        mode, words = plain
        words = " ".join(words.replace("|", " ").split())
        if not terms(words):
            raise NotAsked("no letter or digit, so no term")
        return Asked("words", {"text": words, "match": str(mode), **page}, tuple(missing))
    match = sphinx_syntax.read(text)
    if match is None:
        raise NotAsked("operators of Sphinx's own syntax that the algebra does not have")
    match = _renamed(match, fields)
    if _fielded(match):
        missing.append(FIELDS)
    return Asked("words", {"match": msgspec.to_builtins(match), **page}, tuple(missing))


def _renamed(match: Match, fields: Mapping[str, str]) -> Match:
    """With the fields' names in the study; one that is all of them leaves none."""
    if isinstance(match, Boolean):
        parts = (match.must, match.should, match.must_not)
        return Boolean(*(tuple(_renamed(m, fields) for m in part) for part in parts))
    named = tuple(dict.fromkeys(fields.get(name, name) for name in match.fields))
    return replace(match, fields=() if "" in named else named)


def _fielded(match: Match) -> bool:
    if isinstance(match, Boolean):
        return any(_fielded(m) for m in (*match.must, *match.should, *match.must_not))
    return bool(match.fields)


def _statement(form: str, written: bytes) -> Asked:
    return Asked("statements", {"sql": ask_of_entry(form, written).text})


def _sql(form: str, written: bytes) -> Asked:
    found = _statement(form, written)
    if _PLACE.search(found.line["sql"]):
        raise NotAsked("a prepared statement, whose values stand in another line")
    return found


def _path(method: str, written: bytes) -> Asked:
    ask = ask_of_entry("access", method.encode() + b" " + written + b" HTTP/1.1")
    return Asked("paths", {"path": ask.text, **({} if method == "GET" else {"method": method})})


def _body(row: Row) -> Asked:
    try:
        body = orjson.loads(row.text)
    except orjson.JSONDecodeError:
        raise NotAsked("a body that is not whole") from None
    index = f"/{escape(row.index.encode())}" if row.index else ""
    line = {"path": f"{index}/_search", "method": "POST", "body": body}
    if isinstance(body, dict):
        line["headers"] = {"Content-Type": "application/json"}
    return Asked("paths", line, () if row.index else (NO_INDEX,))


def _named(row: Row) -> Asked:
    """Of a log with named fields: a path, a statement, or words."""
    text = row.text.strip()
    if not text:
        raise NotAsked("nothing that was asked")
    if text.startswith((b"/", b"http://", b"https://")):
        if b" " in text:
            raise NotAsked("a space in the path; no server answers that")
        try:
            plain = re.sub(rb"(?i)^https?://[^/]*", b"", text) or b"/"
            fit_path(escape(plain))
            return _path(_method(row), plain)
        except BadRequest as reason:
            raise NotAsked(_without_example(str(reason))) from None
    if _STATEMENT.match(text):
        try:
            return _sql("sql", text)
        except BadRequest as reason:
            raise NotAsked(_without_example(str(reason))) from None
    try:
        words = " ".join(text.decode().split())
    except UnicodeDecodeError:
        raise NotAsked("not UTF-8") from None
    if not terms(words):
        raise NotAsked("no letter or digit, so no term")
    return Asked("words", {"text": words}, (HOW,))


def _method(row: Row) -> str:
    found = _METHOD.match(row.of_class)
    return found[1] if found else "GET"


def _without_example(reason: str) -> str:
    """A reason without what was asked, so that those alike can be counted together."""
    told = re.sub(r"""^(['"]).*?\1,? """, "a request that ", reason)
    return re.sub(r"""[: ]*(['"])(?:\\.|(?!\1).)*\1""", "", told).strip()
