r"""Requests from a template and a term: ``/d/select?table=Docs&query={term}``, one request a line.

A template is a path, a statement of SQL, or an object as a line of JSONL has it (``path``,
``method``, ``body``, ``headers`` or ``sql``). A term is escaped by where it stands:

    in a path          percent-encoded as UTF-8; everything but RFC 3986's unreserved characters
    in a statement     bare, {term}, as a literal with its quotes; in single quotes, '{term}', as
                       what stands between them
    in a body of JSON  bare as a text with its quotes; in quotes as what stands between them
    in another body    percent-encoded, as in a form

``{{term}}`` stands for {term} itself. Braces around anything but a word are just braces.

Servers do not agree on literals of SQL: MySQL, MariaDB and Sphinx read a backslash as an escape,
PostgreSQL and SQLite do not, and Sphinx does not take two quotes for one. So a term with a quote or
a backslash takes a ``dialect``. A file of statements is read with backslashes as escapes, so in the
standard dialect a term with a backslash cannot be written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal
from urllib.parse import quote

import orjson

from searchbench.errors import QueryError
from searchbench.workload.verbatim.build import KEYS, BadRequest, ask_of, known, shown

Dialect = Literal["mysql", "standard"]
Escape = Callable[[str], str]
TERM = "{term}"

_PLACE = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")
_QUOTED_SQL = re.compile(r"('(?:[^'\\]|\\.|'')*')", re.DOTALL)
_NAME_SQL = re.compile(r'"(?:[^"\\]|\\.|"")*"|`[^`]*`', re.DOTALL)
_QUOTED_JSON = re.compile(r'("(?:[^"\\]|\\.)*")', re.DOTALL)
_A_STATEMENT = re.compile(r"[\s(]*[A-Za-z]+\s")
_percent: Escape = partial(quote, safe="")


def filler(template: str, dialect: Dialect | None = None) -> Callable[[str], str]:
    """A function that puts a term into ``template``: a request, as one line of a file.

    The function raises BadRequest, with the reason, for a term that cannot stand there. QueryError
    where the template is none.
    """
    given = _object(template)
    _has_a_place(given, template)
    as_json = template.lstrip().startswith("{")

    def fill(term: str) -> str:
        filled = _filled(given, term, partial(_literal, dialect=dialect))
        ask_of(filled)  # which refuses what cannot be sent
        if as_json:
            return orjson.dumps(filled).decode()
        return str(filled.get("path") or filled["sql"])

    try:
        fill("term")
    except BadRequest as reason:
        raise QueryError(f"the template: {reason}") from None
    return fill


def _object(template: str) -> Mapping[str, Any]:
    text = template.strip()
    if text.startswith("{") and not _PLACE.match(text):
        try:
            given: Mapping[str, Any] = orjson.loads(text)
            known(given, KEYS)
        except orjson.JSONDecodeError as error:
            raise QueryError(
                f"the template is not JSON: {error.msg} (column {error.colno})"
            ) from None
        except BadRequest as reason:
            raise QueryError(f"the template: {reason}") from None
        return given
    if text.startswith(("/", "http://", "https://")) and not text.startswith("/*"):
        return {"path": text}
    if _A_STATEMENT.match(text):
        return {"sql": " ".join(text.splitlines())}
    raise QueryError(
        f"the template {template!r} is neither a path, which begins with '/', nor an SQL "
        "statement nor a JSON object"
    )


def _has_a_place(given: Mapping[str, Any], template: str) -> None:
    places = {match[2] for text in _texts(given) for match in _PLACE.finditer(text) if match[2]}
    if not places:
        raise QueryError(f"the template {template!r} has no place for the term: write {TERM} there")
    for place in sorted(places - {"term"}):
        raise QueryError(
            f"the template has {{{place}}}, and there is only {TERM}; {{{{{place}}}}} stands for "
            f"the text {{{place}}}"
        )


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield key
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _filled(given: Mapping[str, Any], term: str, literal: Escape) -> dict[str, Any]:
    filled: dict[str, Any] = {}
    for key, value in given.items():
        if key == "path" and isinstance(value, str):
            filled[key] = _put(value, term, _percent)
        elif key == "sql" and isinstance(value, str):
            filled[key] = _statement(value, term, literal)
        elif key == "body" and isinstance(value, str):
            filled[key] = _body(value, term)
        elif key in ("body", "headers"):
            filled[key] = _deep(value, term)
        else:
            filled[key] = value
    return filled


def _deep(value: Any, term: str) -> Any:
    """A value of JSON with its texts filled in; writing it as JSON escapes them."""
    if isinstance(value, str):
        return _put(value, term, str)
    if isinstance(value, Mapping):
        return {_put(key, term, str): _deep(part, term) for key, part in value.items()}
    if isinstance(value, list):
        return [_deep(part, term) for part in value]
    return value


def _body(text: str, term: str) -> str:
    """A body that is a text: JSON where it begins as JSON, else a form, percent-encoded."""
    if text.lstrip()[:1] not in ("{", "["):
        return _put(text, term, _percent)
    return _by_place(text, term, _QUOTED_JSON, lambda each: orjson.dumps(each).decode())


def _statement(text: str, term: str, literal: Escape) -> str:
    for found in _NAME_SQL.finditer(_QUOTED_SQL.sub(lambda m: "'" * len(m[0]), text)):
        if any(match[2] for match in _PLACE.finditer(found[0])):
            raise BadRequest(f"{found[0]}: a term stands bare or in single quotes in a statement")
    return _by_place(text, term, _QUOTED_SQL, literal)


def _literal(term: str, dialect: Dialect | None) -> str:
    if dialect == "mysql":
        term = term.replace("\\", "\\\\").replace("'", "\\'")
    elif "\\" in term or (dialect is None and "'" in term):
        what = "a backslash" if "\\" in term else "a quote"
        raise BadRequest(
            f"{shown(term)} has {what}, which servers read differently: give --dialect mysql "
            "(MySQL, MariaDB, Sphinx)"
            + ("" if what == "a backslash" else " or --dialect standard (PostgreSQL, SQLite)")
        )
    else:
        term = term.replace("'", "''")
    return f"'{term}'"


def _by_place(text: str, term: str, literal: re.Pattern[str], escape: Escape) -> str:
    """``text`` with terms quoted where they stand bare; within a literal without the quotes."""

    def within(each: str) -> str:
        return escape(each)[1:-1]

    parts = enumerate(literal.split(text))  # bare and literal by turns
    return "".join(_put(part, term, within if number % 2 else escape) for number, part in parts)


def _put(text: str, term: str, escape: Escape) -> str:
    return _PLACE.sub(lambda found: "{" + found[1] + "}" if found[1] else escape(term), text)
