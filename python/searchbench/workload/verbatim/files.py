r"""Files of requests, in whatever form they are.

    paths      a path a line: /d/select?table=Docs&query=a, or http://HOST:PORT/..
    json       drnbench's forms (drnbench.py)
    jsonl      an object a line: {"path": "/..", "method": .., "body": .., "headers": {..},
               "t": seconds} or {"sql": ".."}; host, port and timeout too
    sql        statements that end with ``;``, or one a line
    access, groonga, sphinxql, mysql     production logs (logs.py, sql_logs.py)

A form is told by the file's name and, where that says nothing, by its content. Files that are
packed are unpacked as they are read. A line that is no request ends the reading with its number,
what is wrong and what would be right; of logs, which always have some, it is left out and
counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Literal

import orjson

from searchbench.errors import QueryError
from searchbench.packed import inner_suffix, open_packed
from searchbench.workload.verbatim import logs, sql_logs
from searchbench.workload.verbatim.build import (
    BadRequest,
    Builder,
    fit_path,
    read_lines,
    shown,
    text_of,
    unreadable,
)
from searchbench.workload.verbatim.drnbench import read_json
from searchbench.workload.verbatim.fields import KEYS, ask_of, known, told
from searchbench.workload.verbatim.model import Ask, Group, RequestSet
from searchbench.workload.verbatim.sql import read_sql

FORMS = ("paths", "json", "jsonl", "sql", "access", "groonga", "sphinxql", "mysql")
LOGS: dict[str, Callable[[Iterable[bytes], Builder], None]] = {
    "access": logs.read_access,
    "groonga": logs.read_groonga,
    "sphinxql": sql_logs.read_sphinxql,
    "mysql": sql_logs.read_mysql,
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
_OPTION = "say which with --form: " + ", ".join(FORMS)


def read_requests(
    path: Path,
    form: str = "auto",
    *,
    bad: Literal["refuse", "skip"] | None = None,
    method: str | None = None,
    default_path: str | None = None,
) -> RequestSet:
    """The requests of a file. QueryError where it cannot be read, or a line is no request.

    ``bad`` "skip" leaves such lines out and counts them; None refuses them, but in logs.
    ``method`` and ``default_path`` are those of requests that say none (without ``method``:
    POST where there is a body, else GET).
    """
    if form not in ("auto", *FORMS):
        raise QueryError(f"{form!r} is no form of a file of requests; there are auto, "
                         f"{', '.join(FORMS)}")  # fmt: skip
    builder = Builder(path.name)
    if form == "auto":
        form = form_of(path)
    groups: tuple[Group, ...] = ()
    if form == "json":
        groups = read_json(_whole(path), builder, method=method, path=default_path)
    elif form == "sql":
        try:
            read_sql(_whole(path).decode(), builder)
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise QueryError(f"{path.name}:{line}: not UTF-8") from None
    elif form in LOGS:
        LOGS[form](read_lines(path), builder)
    else:
        reader = _paths if form == "paths" else _jsonl
        reader(read_lines(path), builder, method, default_path)
    return builder.build(
        path.name,
        _EXPECTED if form not in LOGS else "none of its lines is a request that only reads",
        refuse=bad == "refuse" or (bad is None and form not in LOGS),
        groups=groups,
        by_time=form in LOGS,
    )


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
    if any(sql_logs.SPHINX_PLAIN.match(line) for line in first):
        raise QueryError(
            f"{path} is Sphinx's plain log: words that were searched for, and no requests. A study "
            f'reads it ([queries] file = "{path}"), and load sends what a study asks (--study); or '
            "let Sphinx write query_log_format = sphinxql"
        )
    raise QueryError(
        f"{path}: what its lines are cannot be told ({begins}); {_EXPECTED}; {_OPTION} (words to "
        "be searched for are no requests: fill them into a template, or use a study)"
    )


def _by_content(first: list[bytes]) -> str | None:
    """The form that the first lines that are not blank have; None where they do not tell."""
    head = first[0].lstrip()
    for line in first:
        if sql_logs.SPHINXQL.match(line):
            return "sphinxql"
        if logs.GROONGA.match(line):
            return "groonga"
        if (found := sql_logs.MYSQL.match(line)) and (
            found[1] or sql_logs.MYSQL_HEAD.match(first[0])
        ):
            return "mysql"
        if logs.ACCESS.match(line) and not line.startswith((b"/", b"{", b"[")):
            return "access"
    if sql_logs.MYSQL_HEAD.match(head):
        return "mysql"
    if head.startswith(b"{"):
        return "jsonl" if _is_object(head) and (len(first) > 1 or _is_ask(head)) else "json"
    if head.startswith(b"[") and not sql_logs.SPHINX_PLAIN.match(head):
        return "json"
    statements = [line for line in first if not _COMMENT.match(line)]
    is_sql = any(_VERB.match(line) for line in statements)
    if head.startswith(b"/") and not head.startswith(b"/*"):
        return "paths"
    if head.lower().startswith((b"http://", b"https://")):
        return "paths"
    # A comment of several lines may come first.
    return "sql" if is_sql and (_COMMENT.match(head) or _VERB.match(statements[0])) else None


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def _is_ask(line: bytes) -> bool:
    try:
        given = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return isinstance(given, dict) and ("sql" in given or "t" in given)


def _whole(path: Path) -> bytes:
    try:
        with open_packed(path) as stream:
            raw = stream.read()
    except OSError as error:
        raise unreadable(path, error) from error
    except (EOFError, ValueError) as error:
        raise QueryError(f"the file of requests {path} is damaged: {error}") from error
    if not raw.strip():
        raise QueryError(f"{path} is empty; {_EXPECTED}")
    return raw.removeprefix(b"\xef\xbb\xbf")


def _paths(
    lines: Iterable[bytes], builder: Builder, method: str | None, default_path: str | None
) -> None:
    seen: dict[bytes, int | str] = {}
    for number, raw in enumerate(lines, 1):
        what = seen.get(raw)
        if what is None:
            what = _path(raw, builder, method or "GET")
            seen[raw] = what
        if isinstance(what, str):
            if what:
                builder.leave_out(number, what)
        else:
            builder.again(what)


def _path(raw: bytes, builder: Builder, method: str) -> int | str:
    """The index of the ask that a line is; the reason if it is none, "" for a blank one."""
    try:
        text = text_of(raw).strip(" \t")
        if not text:
            return ""
        target, host, port = fit_path(text)
    except BadRequest as reason:
        return str(reason)
    return builder.index.setdefault(
        Ask(target, method, host=host, port=port), len(builder.index)
    )  # fmt: skip


def _jsonl(
    lines: Iterable[bytes], builder: Builder, method: str | None, default_path: str | None
) -> None:
    before: tuple[float, int] | None = None
    for number, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        try:
            ask, at = _object(raw, method, default_path)
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


def _object(
    raw: bytes, method: str | None, default_path: str | None
) -> tuple[Ask, float | None]:  # fmt: skip
    try:
        given = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"not JSON: {error.msg} (column {error.colno})") from None
    if not isinstance(given, dict):
        raise BadRequest(f'a line is an object, {{"path": "/.."}} or {{"sql": ".."}}, not '
                         f"{told(given)}")  # fmt: skip
    at = given.pop("t", None)
    if at is not None and (isinstance(at, bool) or not isinstance(at, int | float)):
        raise BadRequest(f"`t` must be a number of seconds, not {told(at)}")
    known(given, KEYS)
    return ask_of(given, method=method, path=default_path), at
