"""Groonga's answer to any ``select``, as Groonga and Droonga give it, whoever wrote the request.

Their own translators read the answers to requests of their making, with the columns that those
ask for. A request of the user's own may be of any command version and ask for any columns.

    version 1, 2    [[code, start, elapsed, message?], [[[total], [[name, type], ..], row, ..]]]
    version 3       {"header": {..}, "body": {"n_hits", "columns", "records"}}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from searchbench.engines.answer import Hit, Hits
from searchbench.engines.groonga.commands import short
from searchbench.engines.http_form import HttpReply, split

_IDS = ("_key", "_id")  # the first of these that was asked for names a hit, else the first column


def decode(reply: bytes) -> Hits:
    """Total and hits, or the error in the server's own words.

    A hit is named by ``_key``, ``_id``, or else its first column; its score is ``_score``, where
    that was asked for. ValueError where it is no answer to a ``select`` (another command, another
    output type).
    """
    (http,) = split(reply)
    try:
        answer = orjson.loads(http.body)
    except orjson.JSONDecodeError:
        if http.status >= 400:  # a front's own page of an error
            return Hits(total=None, error=f"HTTP status {http.status}")
        raise ValueError("the answer is not JSON") from None
    if (message := _message(answer)) is not None or http.status >= 400:
        return Hits(total=None, error=message or f"HTTP status {http.status}")
    return _hits(*_body(answer, http))


def _message(answer: Any) -> str | None:
    """The error's own words; None where there is none."""
    code, words = 0, None
    if isinstance(answer, dict) and isinstance(answer.get("header"), dict):
        code, error = answer["header"].get("return_code", 0), answer["header"].get("error") or {}
        words = error.get("message")
    elif isinstance(answer, list) and answer and isinstance(answer[0], list):
        code, *rest = answer[0] or [0]
        words = rest[2] if len(rest) > 2 else None
    if not code and not words:
        return None
    return short(str(words or f"return code {code}"))


def _body(answer: Any, http: HttpReply) -> tuple[int, list[str], Sequence[Sequence[Any]]]:
    """Total, names of columns, rows."""
    try:
        if isinstance(answer, dict):
            body = answer["body"]
            return body["n_hits"], [c["name"] for c in body["columns"]], body["records"]
        (total,), columns, *rows = answer[1][0]
        return total, [name for name, _type in columns], rows
    except (KeyError, IndexError, TypeError, ValueError):
        raise ValueError(f"no answer to a select, with HTTP status {http.status}") from None


def _hits(total: int, names: list[str], rows: Sequence[Sequence[Any]]) -> Hits:
    if not isinstance(total, int):
        raise ValueError(f"the answer has no count, but {total!r}")
    known = [names.index(name) for name in _IDS if name in names]
    at = known[0] if known else 0
    score = names.index("_score") if "_score" in names else None
    return Hits(
        total=total,
        hits=tuple(
            Hit(
                _named(row[at]),
                None if score is None else float(row[score]),
                {name: value for name, value in zip(names, row, strict=True) if name[:1] != "_"},
            )
            for row in rows
            if row
        ),
    )


def _named(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
