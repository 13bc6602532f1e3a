"""PostgreSQL's extended protocol as bytes: prepared statements, executed one by one or in a row.

Values go as text and their types are inferred, as drivers do that know no types; rows come as text,
described each time, as libpq has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from searchbench.engines import postgres_form

SYNC = b"S\0\0\0\x04"


def prepare(name: str, sql: str) -> bytes:
    """Parse and Sync."""
    return _message(b"P", f"{name}\0{sql}\0".encode() + b"\0\0") + SYNC


def execute(name: str, values: Sequence[Any]) -> bytes:
    """Bind, Describe, Execute; a Sync comes after the last of a row of them."""
    given = []
    for value in values:
        if value is None:
            given.append(b"\xff\xff\xff\xff")
        else:
            text = _written(value).encode()
            given.append(len(text).to_bytes(4, "big") + text)
    count = len(given).to_bytes(2, "big")
    bind = b"".join((b"\0", name.encode(), b"\0\0\0", count, *given, b"\0\0"))
    return _message(b"B", bind) + _message(b"D", b"P\0") + _message(b"E", b"\0" + b"\0" * 4)


def rows_of(pieces: Iterable[bytes], take: Callable[[bytes], object]) -> Iterator[str | None]:
    """Each result of a reply, once its rows were handed over: what was refused, if it was.

    ``pieces``: the reply, cut anywhere.
    """
    for error in postgres_form.rows_of(
        pieces, lambda row: take("\t".join(map(_canonical, row)).encode())
    ):
        yield None if error is None else str(error)


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def _canonical(value: Any) -> str:
    if value is None:
        return "\\N"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return repr(value)
    return str(value).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body
