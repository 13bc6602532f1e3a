"""A verbatim request in the bytes of the protocol that a target speaks."""

from __future__ import annotations

import base64

from searchbench.engines import frames, mysql_form, postgres_form
from searchbench.engines.engine import Request
from searchbench.errors import LabError
from searchbench.lab.system.address import Login, Target
from searchbench.workload.verbatim.model import Ask

_BODY_KINDS = ((b"{", "application/json"), (b"[", "application/json"))


def encode(ask: Ask, target: Target, place: int = 0) -> Request:
    """The bytes that send ``ask`` to one endpoint of ``target``.

    ``place``: which of its addresses. LabError where they do not fit together.
    """
    if target.wire == "http":
        host, port = target.addresses[place]
        return Request((_http(ask, f"{host}:{port}" if port != 80 else host, target.login),))
    if target.wire in ("mysql", "sphinxql"):
        return Request((mysql_form.query(_statement(ask, target)),))
    if target.wire == "postgres":
        return Request((postgres_form.query(_statement(ask, target)),))
    if target.wire == "frames":
        return frames.frame(frames.QUERY, ask.text.encode())
    raise LabError(
        f"{target.url}: requests of Sphinx's native API are made from queries: give --study FILE "
        "and --system NAME; for SQL statements, sphinxql://HOST:9306", "compile",
    )  # fmt: skip


def _http(ask: Ask, host: str, login: Login | None) -> bytes:
    if not ask.is_path:
        raise LabError(
            f"{ask.text[:80]!r} is no path, and this target speaks HTTP: a request begins with "
            "'/'; SQL statements go to mysql://, postgres:// or sphinxql://", "compile",
        )  # fmt: skip
    headers = {"Host": host}
    if login is not None:
        user, password, _ = login
        word = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        headers["Authorization"] = f"Basic {word}"
    if ask.body is not None:
        kinds = (kind for mark, kind in _BODY_KINDS if ask.body.lstrip().startswith(mark))
        headers["Content-Type"] = next(kinds, "application/x-www-form-urlencoded")
        headers["Content-Length"] = str(len(ask.body))
    own = {name.lower() for name, _ in ask.headers}
    lines = [f"{n}: {v}" for n, v in headers.items() if n.lower() not in own]
    lines += [f"{n}: {v}" for n, v in ask.headers]
    head = "\r\n".join([f"{ask.method} {ask.text} HTTP/1.1", *lines, "", ""])
    return head.encode("utf-8") + (ask.body or b"")


def _statement(ask: Ask, target: Target) -> str:
    if ask.is_path:
        raise LabError(
            f"{ask.text[:80]!r} is a path, and {target.url} is asked in SQL; paths go to http://",
            "compile",
        )
    return ask.text
