"""Terms to ask for: out of the answer of a Groonga or Droonga ``select``, or a column of documents.

A ``select`` answers in one of these forms; what it is asked with as ``command_version`` says which:

    1, 2   [[0, started, elapsed], [[[hits], [[column, type], ..], record, ..], drilldown, ..]]
    3      {"header": {"return_code": 0, ..},
            "body": {"n_hits": hits, "columns": [{"name", "type"}, ..], "records": [record, ..]}}

An error is ``[[-22, started, elapsed, "message", ..]]``, or stands in the header. A file may hold
several answers, one a line.

A vector gives a term for each of its elements. A term is one line: line breaks in it become a
space. What is empty is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from searchbench.errors import QueryError
from searchbench.workload.queries.analysis import terms as analysed

_BREAKS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
_UNSAFE = re.compile(r"[:;]")  # what column and score mean to the syntax of a query
_FORMS = (
    "expected [[0, ..], [[[hits], [[column, type], ..], record, ..]]] or "
    '{"header": {..}, "body": {"columns": [..], "records": [..]}}'
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The columns of a ``select`` in order, and its records; ``hits``: how many it found."""

    hits: int
    columns: tuple[str, ...]
    records: tuple[list[Any], ...]


def read_answers(data: bytes, place: str) -> list[Answer]:
    """The answers in ``data``; QueryError, beginning with ``place``, where it is none.

    The server's own words where it refused.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise QueryError(f"{place} is empty; give the answer of a select")
    try:
        return [_answer(orjson.loads(data), place)]
    except orjson.JSONDecodeError as error:
        reason = error
    answers: list[Answer] = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            if answers:
                raise QueryError(f"{place}:{number} is no JSON: {error}") from None
            what = "XML or HTML" if data.lstrip().startswith(b"<") else f"no JSON ({reason})"
            raise QueryError(
                f"{place} is {what}, not the answer of a select; ask for JSON (/d/select, or "
                "output_type=json)"
            ) from None
        answers.append(_answer(found, f"{place}:{number}"))
    return answers


def values(answers: Iterable[Answer], column: str | int) -> Iterator[Any]:
    """The values of one column, by its name or its number from 0; QueryError where it is not."""
    for answer in answers:
        at = _column(answer, column)
        for record in answer.records:
            yield record[at]


def take_terms(
    values: Iterable[Any],
    *,
    words: bool = False,
    sanitize: bool = False,
    distinct: bool = False,
    limit: int | None = None,
) -> Iterator[str]:
    """The terms in ``values``, in order.

    ``words``: the single words as a search system takes them (the declared analysis: runs of
    letters and digits, in lower case). ``sanitize``: ':' and ';', which have a meaning in a
    query, become spaces, and outer spaces go. ``distinct``: each only once. ``limit``: no more
    than so many.
    """
    found: Iterator[str] = (
        term
        for value in values
        for text in _texts(value)
        for term in (analysed(text) if words else (_BREAKS.sub(" ", text),))
    )
    if sanitize:
        found = (_UNSAFE.sub(" ", term).strip() for term in found)
    found = (term for term in found if term.strip())
    if distinct:
        found = _once(found)
    return islice(found, limit)


def _answer(found: Any, place: str) -> Answer:
    header, body = None, None
    if isinstance(found, dict):
        header, body = found.get("header"), found.get("body")
        if isinstance(header, dict):
            error = header.get("error")
            words = error.get("message", "") if isinstance(error, dict) else ""
            _insist(header.get("return_code"), words, place)
    elif isinstance(found, list) and found and isinstance(found[0], list) and found[0]:
        header, body = found[0], found[1] if len(found) > 1 else None
        _insist(header[0], header[3] if len(header) > 3 else "", place)
    try:
        if isinstance(body, dict):
            hits, records = body["n_hits"], body["records"]
            columns = tuple(column["name"] for column in body["columns"])
        else:
            (hits,), named, *records = body[0]  # type: ignore[index]
            columns = tuple(name for name, _type in named)
    except (TypeError, KeyError, ValueError, IndexError):
        raise QueryError(f"{place} is JSON, but not the answer of a select; {_FORMS}") from None
    for number, record in enumerate(records, 1):
        if not isinstance(record, list) or len(record) != len(columns):
            raise QueryError(
                f"{place}: record {number} has not one value for each of the {len(columns)} "
                "columns, so this is not the answer of a select"
            )
    return Answer(hits, columns, tuple(records))


def _insist(code: Any, words: Any, place: str) -> None:
    if isinstance(code, int) and code:
        raise QueryError(
            f"{place} is no result: the server refused it: {words or 'no reason given'} "
            f"(return code {code})"
        )


def _column(answer: Answer, column: str | int) -> int:
    if isinstance(column, int) and 0 <= column < len(answer.columns):
        return column
    if isinstance(column, str) and column in answer.columns:
        return answer.columns.index(column)
    there = ", ".join(f"{n} {name}" for n, name in enumerate(answer.columns))
    raise QueryError(
        f"the answer has no column {column}; there are: {there}; output_columns of the select says "
        "which"
    )


def _texts(value: Any) -> Iterator[str]:
    """The texts of a value: of a vector each element, of a weighted one each key."""
    if isinstance(value, (list, tuple, dict)):
        for element in value:
            yield from _texts(element)
    elif isinstance(value, bool):
        yield "true" if value else "false"
    elif value is not None:
        yield str(value)


def _once(found: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for term in found:
        if term not in seen:
            seen.add(term)
            yield term
