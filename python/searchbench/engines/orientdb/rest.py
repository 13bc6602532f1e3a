"""OrientDB's REST interface as bytes: who asks, SQL with its parameters, and what went wrong."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from searchbench.engines.http_form import HttpReply, get, post

DATABASE = "docs"
USER, PASSWORD = "root", "searchbench"  # of a server of ours, on loopback alone
_WHO = base64.b64encode(f"{USER}:{PASSWORD}".encode())
_HEADER = b"\r\nAuthorization: Basic " + _WHO + b"\r\n"
_NONE: Mapping[str, Any] = {}
_LONGEST = 400  # characters of an error: the server repeats the whole statement in it


def asked(path: str) -> bytes:
    """A GET request of ours."""
    return _ours(get(path))


def posted(path: str, body: bytes = b"") -> bytes:
    """A POST request of ours."""
    return _ours(post(path, (), body))


def sql(statement: str, parameters: Mapping[str, Any] = _NONE, database: str = DATABASE) -> bytes:
    """One statement."""
    return _command("sql", statement, parameters, database)


def script(statements: Iterable[str], parameters: Mapping[str, Any] = _NONE) -> bytes:
    """Several statements in one request; the answer is that of the last."""
    return _command("script", ";\n".join(statements), parameters)


def trouble(http: HttpReply) -> str | None:
    """The server's own words where it refused: those of the innermost cause."""
    if http.status < 400:
        return None
    try:
        errors = orjson.loads(http.body)["errors"]
        said = str(errors[0]["content"])
    except (ValueError, TypeError, KeyError, IndexError):
        return f"HTTP status {http.status}"
    words = said.replace("\r\n", "\n").rpartition("--> ")[2].strip() or f"HTTP status {http.status}"
    return words if len(words) <= _LONGEST else words[:_LONGEST] + "..."


def _command(
    language: str, text: str, parameters: Mapping[str, Any], database: str = DATABASE
) -> bytes:
    # Without the last key each answer has the plan by which it was found, which is longer.
    body = {"command": text, "parameters": dict(parameters), "returnExecutionPlan": False}
    return posted(f"/command/{database}/{language}", orjson.dumps(body))


def _ours(request: bytes) -> bytes:
    """With the login, which goes with every request: without a cookie there is no session."""
    return request.replace(b"\r\n", _HEADER, 1)
