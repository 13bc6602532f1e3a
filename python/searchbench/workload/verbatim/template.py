r"""Requests from a template with terms filled in: ``/d/select?table=Docs&query={term}``.

A term is escaped by where it stands:

    in a path          percent-encoded as UTF-8; everything but RFC 3986's unreserved characters
    in a statement     bare, {term}, as a literal with its quotes; in single quotes, '{term}', as
                       what stands between them
    in a body of JSON  bare as a text with its quotes; in quotes as what stands between them

``{{term}}`` stands for {term} itself. Braces around anything but a word are just braces.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from searchbench.errors import QueryError
from searchbench.packed import inner_suffix
from searchbench.workload.verbatim.build import BadRequest, Builder, read_lines, shown
from searchbench.workload.verbatim.fields import KEYS, ask_of, known
from searchbench.workload.verbatim.logs import quoted
from searchbench.workload.verbatim.model import RequestSet

Row = Mapping[str, str]
Escape = Callable[[str], str]

_PLACE = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")
_QUOTED_SQL = re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL)
_NAME_SQL = re.compile(r'"(?:[^"\\]|\\.|"")*"|`[^`]*`', re.DOTALL)
_QUOTED_JSON = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def expand(
    template: str | Mapping[str, Any],
    terms: Iterable[str | Row],
    *,
    quote: Escape | None = None,
    name: str = "template",
    method: str | None = None,
) -> RequestSet:
    """A request for each term, in order; the template is a path, a statement or an object.

    An object (also as JSON) has ``path``, ``method``, ``body``, ``headers`` or ``sql``, as a
    line of JSONL has. A term that is a text fills ``{term}``; a mapping fills its names.
    ``quote`` makes a literal of SQL with its quotes, as the server takes it; without it quotes
    are doubled, and a term with a backslash is refused, for servers differ. QueryError with
    what is wrong: an unknown placeholder names the known ones.
    """
    given = _object(template)
    builder = Builder(name)
    filled = False
    for number, term in enumerate(terms, 1):
        row = {"term": term} if isinstance(term, str) else term
        try:
            if not filled:
                filled = True
                _has_places(given, row)
            builder.add(ask_of(_fill(given, row, quote or _doubled), method=method))
        except BadRequest as reason:
            raise QueryError(f"{name}: term {number}: {reason}") from None
    return builder.build(name, "there are no terms to fill in", refuse=True)


def read_terms(path: Path, column: str | int | None = None) -> list[str | Row]:
    """The terms of a file: a line each, or of .csv and .tsv its rows by their heading.

    ``column`` (its name, or its number from 0) takes one column as ``{term}``; without it every
    column fills the placeholder of its name. Blank lines are passed over. QueryError where the
    file is empty, has no such column, or a row is shorter or longer than the heading.
    """
    try:
        lines = [raw.decode() for raw in read_lines(path)]
    except UnicodeDecodeError as error:
        raise QueryError(f"{path}: not UTF-8 at {error.object[:40]!r}") from None
    suffix = inner_suffix(path)
    if suffix not in (".csv", ".tsv"):
        if column is not None:
            raise QueryError(f"{path} has no columns: only .csv and .tsv have")
        found: list[str | Row] = [line for line in lines if line.strip()]
    elif suffix == ".tsv":
        found = _rows(path, [line.split("\t") for line in lines if line], column)
    else:
        rows = csv.reader(io.StringIO("\n".join(lines)), strict=True)
        try:
            found = _rows(path, [row for row in rows if row], column)
        except csv.Error as error:
            raise QueryError(f"{path}:{rows.line_num}: {error}") from None
    if not found:
        raise QueryError(f"{path} has no terms; expected a term a line, or columns with a heading")
    return found


def _rows(path: Path, rows: list[list[str]], column: str | int | None) -> list[str | Row]:
    if not rows:
        return []
    heading, below = rows[0], rows[1:]
    for number, row in enumerate(below, 2):
        if len(row) != len(heading):
            raise QueryError(
                f"{path}: row {number} has {len(row)} fields, and the heading {len(heading)}"
            )
    if column is None:
        return [dict(zip(heading, row, strict=True)) for row in below]
    if isinstance(column, str):
        if column not in heading:
            raise QueryError(f"{path} has no column {column!r}; it has {', '.join(heading)}")
        column = heading.index(column)
    if not 0 <= column < len(heading):
        raise QueryError(f"{path} has no column {column}; it has 0 to {len(heading) - 1}")
    return [row[column] for row in below]


def _object(template: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(template, str):
        text = template.strip()
        if text.startswith("{") and not _PLACE.match(text):
            try:
                given: Mapping[str, Any] = orjson.loads(text)
            except orjson.JSONDecodeError as error:
                raise QueryError(
                    f"the template is not JSON: {error.msg} (column {error.colno})"
                ) from None
        elif text.startswith(("/", "http://", "https://")) and not text.startswith("/*"):
            return {"path": text}
        else:
            return {"sql": text}
    else:
        given = template
    try:
        known(given, KEYS)
    except BadRequest as reason:
        raise QueryError(f"the template: {reason}") from None
    return given


def _has_places(given: Mapping[str, Any], row: Row) -> None:
    places = {match[2] for text in _texts(given) for match in _PLACE.finditer(text) if match[2]}
    names = ", ".join(f"{{{name}}}" for name in row)
    if not places:
        raise QueryError(f"the template has no place for a term; write {names} where it belongs")
    for place in sorted(places - set(row)):
        raise QueryError(f"the template has {{{place}}}, and the terms have {names}; "
                         f"{{{{{place}}}}} stands for the text {{{place}}}")  # fmt: skip


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


def _fill(given: Mapping[str, Any], row: Row, quote: Escape) -> dict[str, Any]:
    filled: dict[str, Any] = {}
    for key, value in given.items():
        if key == "path" and isinstance(value, str):
            filled[key] = _replace(value, row, quoted)
        elif key == "sql" and isinstance(value, str):
            filled[key] = _sql(value, row, quote)
        elif key == "body" and isinstance(value, str):
            filled[key] = _body(value, row)
        elif key in ("body", "headers"):
            filled[key] = _deep(value, row)
        else:
            filled[key] = value
    return filled


def _deep(value: Any, row: Row) -> Any:
    """A value of JSON with its texts filled in; writing it as JSON escapes them."""
    if isinstance(value, str):
        return _replace(value, row, str)
    if isinstance(value, Mapping):
        return {_replace(key, row, str): _deep(part, row) for key, part in value.items()}
    if isinstance(value, list):
        return [_deep(part, row) for part in value]
    return value


def _body(text: str, row: Row) -> str:
    """A body that is a text: JSON where it begins as JSON, else a form, percent-encoded."""
    if text.lstrip()[:1] not in ("{", "["):
        return _replace(text, row, quoted)
    return _by_place(text, row, _QUOTED_JSON, _json_text)


def _json_text(term: str) -> str:
    try:
        return orjson.dumps(term).decode()
    except orjson.JSONEncodeError:
        raise BadRequest(f"{shown(term)} is no text of Unicode") from None


def _sql(text: str, row: Row, quote: Escape) -> str:
    for found in _NAME_SQL.finditer(_QUOTED_SQL.sub(lambda m: "'" * len(m[0]), text)):
        if any(match[2] for match in _PLACE.finditer(found[0])):
            raise BadRequest(f"{found[0]}: a term stands bare or in single quotes in a statement")

    def literal(term: str) -> str:
        written = quote(term)
        if len(written) < 2 or written[0] != "'" or written[-1] != "'":
            raise BadRequest(f"the way of quoting makes {written!r}, which is no literal in '..'")
        return written

    return _by_place(text, row, _QUOTED_SQL, literal)


def _by_place(text: str, row: Row, literal: re.Pattern[str], quote: Escape) -> str:
    """``text`` with terms quoted where they stand bare; within a literal without the quotes."""
    parts: list[str] = []
    at = 0
    for found in literal.finditer(text):
        parts.append(_replace(text[at : found.start()], row, quote))
        parts.append(_replace(found[0], row, lambda term: quote(term)[1:-1]))
        at = found.end()
    parts.append(_replace(text[at:], row, quote))
    return "".join(parts)


def _replace(text: str, row: Row, escape: Escape) -> str:
    return _PLACE.sub(
        lambda found: "{" + found[1] + "}" if found[1] else escape(row[found[2]]), text
    )


def _doubled(term: str) -> str:
    if "\\" in term:
        raise BadRequest(
            f"{shown(term)} has a backslash, which servers read differently; give the way of "
            "quoting of the target"
        )
    return "'" + term.replace("'", "''") + "'"
