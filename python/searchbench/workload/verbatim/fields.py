"""A request that is written as an object of JSON: ``path`` or ``sql``, and the rest of it."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from typing import Any

import orjson

from searchbench.workload.verbatim.build import BadRequest, fit_path, shown
from searchbench.workload.verbatim.model import Ask

KEYS = ("path", "method", "body", "headers", "host", "port", "timeout", "sql")
_OF_HTTP = ("path", "method", "body", "headers")
_METHOD = re.compile(r"[A-Za-z]+")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def ask_of(
    given: Mapping[str, Any], *, method: str | None = None, path: str | None = None, group: str = ""
) -> Ask:
    """The request that an object means; BadRequest with the reason.

    ``method`` and ``path`` are those where it says none: a request with a body is a POST else,
    one without a GET. A body that is a text is sent as it is, any other value as JSON.
    """
    if "sql" in given:
        return _statement(given, group)
    text = given.get("path", path)
    if text is None:
        raise BadRequest("it has no `path` and no `sql`")
    if not isinstance(text, str):
        raise BadRequest(f"`path` must be a text, not {told(text)}")
    target, host, port = fit_path(text)
    body = body_of(given.get("body"))
    return Ask(
        target,
        method_of(given.get("method"), method or ("GET" if body is None else "POST")),
        body,
        headers_of(given.get("headers")),
        host_of(given.get("host")) or host,
        port_of(given.get("port")) or port,
        timeout_of(given.get("timeout")),
        group,
    )


def _statement(given: Mapping[str, Any], group: str) -> Ask:
    text = given["sql"]
    if not isinstance(text, str) or not text.strip():
        raise BadRequest(f"`sql` must be a statement, not {told(text)}")
    for key in _OF_HTTP:
        if given.get(key) is not None:
            raise BadRequest(f"`{key}` is for HTTP, and this is a statement: give `sql` or `path`")
    return Ask(
        text.strip().removesuffix(";").rstrip(),
        host=host_of(given.get("host")),
        port=port_of(given.get("port")),
        timeout_s=timeout_of(given.get("timeout")),
        group=group,
    )


def body_of(value: Any) -> bytes | None:
    """The bytes of a body; None for none."""
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else orjson.dumps(value)


def method_of(value: Any, otherwise: str) -> str:
    """The method in capitals."""
    if value is None:
        return otherwise
    if not isinstance(value, str) or not _METHOD.fullmatch(value):
        raise BadRequest(f"`method` must be a word such as GET or POST, not {told(value)}")
    return value.upper()


def headers_of(value: Any) -> tuple[tuple[str, str], ...]:
    """Names and values, in order."""
    if value is None:
        return ()
    if not isinstance(value, dict):
        raise BadRequest(f'`headers` must be an object: {{"Accept": "text/plain"}}, '
                         f"not {told(value)}")  # fmt: skip
    for name, text in value.items():
        if not _HEADER_NAME.fullmatch(name):
            raise BadRequest(f"{shown(name)} cannot be the name of a header")
        if not isinstance(text, str) or any(c < " " and c != "\t" for c in text):
            raise BadRequest(f"the header `{name}` must be a text of one line, not {told(text)}")
    return tuple(value.items())


def host_of(value: Any) -> str | None:
    """A name or an address."""
    if value is None:
        return None
    if not isinstance(value, str) or not value or any(c.isspace() or c == "/" for c in value):
        raise BadRequest(f"`host` must be a name or an address, not {told(value)}")
    return value


def port_of(value: Any) -> int | None:
    """A port; drnbench's files have it as a number or as digits."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 65536:
        raise BadRequest(f"`port` must be a number from 1 to 65535, not {told(value)}")
    return value


def timeout_of(value: Any) -> float | None:
    """Seconds."""
    if value is None:
        return None
    seconds = number_of("timeout", value, "of seconds")
    if seconds <= 0:
        raise BadRequest(f"`timeout` must be a number of seconds above 0, not {told(value)}")
    return seconds


def number_of(key: str, value: Any, unit: str) -> float:
    """A number, also where it is written as a text."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise BadRequest(f"`{key}` must be a number {unit}, not {told(value)}") from None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadRequest(f"`{key}` must be a number {unit}, not {told(value)}")
    return float(value)


def known(given: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    """BadRequest for a key that nobody reads, with the nearest that is."""
    for key in given:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, 1)
            hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(keys)}"
            raise BadRequest(f"`{key}` is not known here; {hint}")


def told(value: Any) -> str:
    """A value of JSON as it appears in a sentence."""
    text = orjson.dumps(value, default=str).decode()
    return text if len(text) <= 60 else text[:57] + "..."
