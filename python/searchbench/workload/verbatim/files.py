r"""Files of requests, in whatever form they are.

    paths      a path a line: /d/select?table=Docs&query=a, or http://HOST:PORT/..
    json       drnbench's forms (drnbench.py)
    jsonl      an object a line: {"path": "/..", "method": .., "body": .., "headers": {..},
               "t": seconds} or {"sql": ".."}; host, port, timeout and class too
    sql        statements that end with ``;``, or one a line
    access, groonga, sphinxql, mysql     production logs (logs.py)

A form is told by the file's name and, where that says nothing, by its content. Files that are
packed are unpacked as they are read. A line that is no request ends the reading with its number,
what is wrong and what would be right; of logs, which always have some, it is left out and
counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from searchbench.errors import QueryError
from searchbench.packed import inner_suffix, open_packed
from searchbench.workload.verbatim import logs
from searchbench.workload.verbatim.build import (
    KEYS,
    BadRequest,
    Builder,
    ask_of,
    fit_path,
    known,
    read_lines,
    shown,
    told,
    unreadable,
)
from searchbench.workload.verbatim.classes import of_request
from searchbench.workload.verbatim.drnbench import read_json
from searchbench.workload.verbatim.model import Ask, Group, RequestSet
from searchbench.workload.verbatim.sql import read_sql

FORMS = ("paths", "json", "jsonl", "sql", "access", "groonga", "sphinxql", "mysql")
LOGS: dict[str, Callable[[Iterable[bytes], Builder], None]] = {
    "access": logs.read_access,
    "groonga": logs.read_groonga,
    "sphinxql": logs.read_sphinxql,
    "mysql": logs.read_mysql,
}

_EXPECTED = (
    "expected a path a line (/d/select?table=Docs&query=a), SQL statements, JSON (a list, "
    "drnbench's groups), JSONL, or a log of a server"
)
_BY_SUFFIX = {".sql": "sql", ".jsonl": "jsonl", ".ndjson": "jsonl", ".paths": "paths"}
_LOOKED_AT = 50  # lines that are looked at to tell the form
_VERB = re.compile(
    rb"(?i)\s*\(?\s*(?:SELECT|WITH|INSERT|REPLACE|UPDATE|DELETE|SHOW|CALL|SET|DESC|DESCRIBE"
    rb"|EXPLAIN|BEGIN|START|COMMIT|CREATE|DROP|ALTER|TRUNCATE|VALUES|EXECUTE|PREPARE|USE|COPY)\b"
)
_COMMENT = re.compile(rb"\s*(?:--|/\*|#)")
_OPTION = "say which with `form` (--form): " + ", ".join(FORMS)


def read_requests(
    path: Path,
    form: str = "auto",
    *,
    method: str | None = None,
    lines: int | None = None,
    classes: str | None = None,
) -> RequestSet:
    """The requests of a file. QueryError where it cannot be read, or a line is no request.

    Of logs such lines are left out and counted. ``method`` is that of requests that say none
    (without it: POST where there is a body, else GET). ``lines``: only so many are looked at, in
    forms that have a request a line. ``classes``: by what requests are classed (classes.py), in
    place of any other class; None: by their own.
    """
    if form not in ("auto", *FORMS):
        raise QueryError(f"{form!r} is not a form of a file of requests; there are auto, "
                         f"{', '.join(FORMS)}")  # fmt: skip
    builder = Builder(path.name)
    if form == "auto":
        form = form_of(path)
    groups: tuple[Group, ...] = ()
    if form == "json":
        groups = read_json(_whole(path), builder, method)
    elif form == "sql":
        read_sql(_whole(path), builder)
    elif form in LOGS:
        LOGS[form](islice(read_lines(path), lines), builder)
    elif form == "paths":
        make = partial(_path, method=method or "GET")
        for number, raw in enumerate(islice(read_lines(path), lines), 1):
            if raw.strip(b" \t"):
                builder.take(number, raw, make)
    else:
        _jsonl(path, islice(read_lines(path), lines), builder, method)
    found = builder.build(
        path.name,
        _EXPECTED if form not in LOGS else "none of its lines is a request that only reads",
        groups=groups,
        of_log=form in LOGS,
    )
    if classes is None:
        return found
    return replace(found, classes=tuple(of_request(ask, classes) for ask in found.asks))


def form_of(path: Path) -> str:
    """The form of a file by its name and content; QueryError where they do not tell."""
    first = [line for line in islice(read_lines(path), _LOOKED_AT) if line.strip()]
    if not first:
        # So many empty lines, or none at all: there may be something below.
        first = list(islice((line for line in read_lines(path) if line.strip()), 1))
    if not first:
        raise QueryError(f"{path} is empty; {_EXPECTED}")
    suffix = inner_suffix(path)
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    by_content = _by_content(first)
    if by_content is not None:
        # A file of JSON lines is often called .json.
        return "json" if suffix == ".json" and by_content != "jsonl" else by_content
    if suffix == ".json":
        return "json"
    begins = shown(first[0].decode(errors="replace"))
    if any(logs.SPHINX_PLAIN.match(line) for line in first):
        raise QueryError(
            f"{path} is Sphinx's plain log: words that were searched for, and no requests. A study "
            f'reads it ([queries] file = "{path}"), and load sends what a study asks (--study); or '
            "let Sphinx write query_log_format = sphinxql"
        )
    raise QueryError(
        f"{path}: its lines cannot be recognized ({begins}); {_EXPECTED}; {_OPTION} (words to "
        "search for are not requests: fill them into a template, or use a study)"
    )


def _by_content(first: list[bytes]) -> str | None:
    """The form that the first lines that are not blank have; None where they do not tell."""
    head = first[0].lstrip()
    for line in first:
        if logs.SPHINXQL.match(line):
            return "sphinxql"
        if logs.GROONGA.match(line):
            return "groonga"
        if (found := logs.MYSQL.match(line)) and (found[1] or logs.MYSQL_HEAD.match(first[0])):
            return "mysql"
        if logs.ACCESS.match(line) and not line.startswith((b"/", b"{", b"[")):
            return "access"
    if logs.MYSQL_HEAD.match(head):
        return "mysql"
    if head.startswith(b"{"):
        given = _object_of(head)
        several = given is not None and (len(first) > 1 or "sql" in given or "t" in given)
        return "jsonl" if several else "json"
    if head.startswith(b"[") and not logs.SPHINX_PLAIN.match(head):
        return "json"
    statements = [line for line in first if not _COMMENT.match(line)]
    is_sql = any(_VERB.match(line) for line in statements)
    a_path = head.startswith(b"/") and not head.startswith(b"/*")
    if a_path or head.lower().startswith((b"http://", b"https://")):
        return "paths"
    # A comment of several lines may come first.
    return "sql" if is_sql and (_COMMENT.match(head) or _VERB.match(statements[0])) else None


def _object_of(line: bytes) -> dict[str, Any] | None:
    try:
        given = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return given if isinstance(given, dict) else None


def _whole(path: Path) -> str:
    try:
        with open_packed(path) as stream:
            raw = stream.read()
    except OSError as error:
        raise unreadable(path, error) from error
    except (EOFError, ValueError) as error:
        raise QueryError(f"the file of requests {path} is damaged: {error}") from error
    if not raw.strip():
        raise QueryError(f"{path} is empty; {_EXPECTED}")
    try:
        return raw.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise QueryError(f"{path.name}:{line}: not UTF-8") from None


def _path(raw: bytes, method: str) -> Ask:
    try:
        text = raw.decode().strip(" \t")
    except UnicodeDecodeError as error:
        raise BadRequest(f"not UTF-8 at byte {error.start + 1}") from None
    target, host, port = fit_path(text)
    return Ask(target, method, host=host, port=port)


def _jsonl(path: Path, lines: Iterable[bytes], builder: Builder, method: str | None) -> None:
    before: tuple[float, int] | None = None
    for number, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        try:
            given = _whole_object(raw)
            if not given.keys() & {"path", "sql"} and given.keys() & {"text", "match"}:
                # Every line of such a file is one: the first says it for all.
                raise QueryError(
                    f"{path}:{number}: these are words to search for, not a request. A study asks "
                    f'them: [queries] file = "{path}", with [load] kind = "replay" at the times of '
                    "their log. `load --study` sends what a study asks"
                )
            ask, at = _object(given, method)
            if at is not None:
                if before is not None and at < before[0]:
                    raise BadRequest(
                        f"`t` goes back, from {before[0]:g} (line {before[1]}) to {at:g}; sort "
                        "the file by `t`"
                    )
                before = at, number
        except BadRequest as reason:
            builder.leave_out(number, str(reason))
        else:
            builder.add(ask, at)


def _whole_object(raw: bytes) -> dict[str, Any]:
    try:
        given = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"not JSON: {error.msg} (column {error.colno})") from None
    if not isinstance(given, dict):
        raise BadRequest(f'a line is an object, {{"path": "/.."}} or {{"sql": ".."}}, not '
                         f"{told(given)}")  # fmt: skip
    return given


def _object(given: dict[str, Any], method: str | None) -> tuple[Ask, float | None]:
    at = given.pop("t", None)
    if at is not None and (isinstance(at, bool) or not isinstance(at, int | float)):
        raise BadRequest(f"`t` must be a number of seconds, not {told(at)}")
    given.pop("index", None)  # of a line that was made of a log
    known(given, KEYS)
    return ask_of(given, method=method), at
