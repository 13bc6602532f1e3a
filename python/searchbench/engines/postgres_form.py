"""PostgreSQL's messages as bytes: statements and copies built ahead of time, replies taken apart.

It opens no connection: the measuring core sends the bytes and returns what the server said,
up to ReadyForQuery, or several such replies one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from searchbench.engines.pieces import Pieces

_COPY_PIECE_BYTES = 64 << 10
_ESCAPED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_BOOLEAN, _JSON = 16, 114
_INTEGERS, _FLOATS = (20, 21, 23), (700, 701, 1700)


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error or a notice: the server's fields by their letters (C code, M message, ..)."""

    fields: Mapping[str, str]

    def __str__(self) -> str:
        """Message, code, detail and place, in one sentence."""
        parts = [f"{self.fields.get('M', 'no reason given')} ({self.fields.get('C', '?')})"]
        parts += [self.fields[letter] for letter in "DHW" if letter in self.fields]
        return "; ".join(part.replace("\n", " ") for part in parts)


@dataclass(frozen=True, slots=True)
class Result:
    """What one statement returned: values by the types of their columns, None for NULL."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(slots=True)
class Reply:
    """What came of one exchange."""

    results: list[Result] = field(default_factory=list)
    errors: list[Trouble] = field(default_factory=list)
    notices: list[Trouble] = field(default_factory=list)


def query(*statements: str) -> bytes:
    """A Query message; several statements in one are one transaction."""
    return _message(b"Q", ";\n".join(statements).encode() + b"\0")


def copy(statement: str, rows: Sequence[Sequence[str | None]]) -> bytes:
    """A ``COPY .. FROM STDIN`` with its rows in the text format, and their end."""
    lines = "".join("\t".join(map(_copied, row)) + "\n" for row in rows).encode()
    pieces = [
        _message(b"d", lines[at : at + _COPY_PIECE_BYTES])
        for at in range(0, len(lines), _COPY_PIECE_BYTES)
    ]
    return b"".join((query(statement), *pieces, _message(b"c", b"")))


def array(values: Sequence[str]) -> str:
    """The literal of an array of texts."""
    quoted = (v.replace("\\", "\\\\").replace('"', '\\"') for v in values)
    return "{" + ",".join(f'"{v}"' for v in quoted) + "}"


def literal(text: str) -> str:
    """``text`` as a constant of a statement; it has no NUL."""
    return "'" + text.replace("'", "''") + "'"


def name(text: str) -> str:
    """``text`` as an identifier of a statement."""
    return '"' + text.replace('"', '""') + '"'


def split(data: bytes) -> list[Reply]:
    """The replies that follow each other in ``data``; ValueError where one is not whole."""
    replies: list[Reply] = []
    reply, fatal = Reply(), False
    columns: tuple[tuple[str, int], ...] = ()
    rows: list[tuple[Any, ...]] = []
    for kind, body in _messages((data,)):
        if kind == b"T":
            columns, rows = _described(body), []
        elif kind == b"D":
            rows.append(_row(body, columns))
        elif kind == b"C":
            reply.results.append(Result(tuple(c for c, _type in columns), tuple(rows)))
            columns, rows = (), []
        elif kind == b"E":
            reply.errors.append(_trouble(body))
            fatal = reply.errors[-1].fields.get("V") in ("FATAL", "PANIC")
        elif kind == b"N":
            reply.notices.append(_trouble(body))
        elif kind == b"Z":
            replies.append(reply)
            reply, columns, rows, fatal = Reply(), (), [], False
    if fatal:  # after it the server closes the connection and says nothing more
        replies.append(reply)
    elif reply != Reply() or rows or not replies:
        raise ValueError(f"the server was not ready again within the {len(data)} bytes of a reply")
    return replies


def rows_of(
    pieces: Iterable[bytes], take: Callable[[tuple[Any, ...]], object]
) -> Iterator[Trouble | None]:
    """Each result of replies, once its rows were handed over: what was refused, if it was.

    ``pieces``: the replies, cut anywhere. No more than a piece is kept of them. ValueError where
    the last one is not whole.
    """
    columns: tuple[tuple[str, int], ...] = ()
    whole = False
    for kind, body in _messages(pieces):
        whole = kind == b"Z"
        if kind == b"T":
            columns = _described(body)
        elif kind == b"D" and columns:
            take(_row(body, columns))
        elif kind == b"C":
            columns = ()
            yield None
        elif kind == b"E":
            trouble = _trouble(body)
            # After a fatal one the server closes the connection and says nothing more.
            whole = trouble.fields.get("V") in ("FATAL", "PANIC")
            yield trouble
    if not whole:
        raise ValueError("the server was not ready again within a reply")


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def _copied(value: str | None) -> str:
    return "\\N" if value is None else value.translate(_ESCAPED)


def _messages(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    data = Pieces(pieces)
    while head := data.take(5):
        length = int.from_bytes(head[1:], "big") - 4
        body = data.take(max(0, length))
        if length < 0 or len(head) < 5 or len(body) < length:
            began = (head + body)[:20]
            raise ValueError(f"no reply of PostgreSQL: {began!r} is not a message")
        yield head[:1], body


def _described(body: bytes) -> tuple[tuple[str, int], ...]:
    """Names and types (OIDs) of the columns."""
    found = []
    at = 2
    for _ in range(int.from_bytes(body[:2], "big")):
        end = body.index(b"\0", at)
        found.append((body[at:end].decode(), int.from_bytes(body[end + 7 : end + 11], "big")))
        at = end + 19
    return tuple(found)


def _row(body: bytes, columns: Sequence[tuple[str, int]]) -> tuple[Any, ...]:
    found: list[Any] = []
    at = 2
    for _name, kind in columns:
        length = int.from_bytes(body[at : at + 4], "big", signed=True)  # -1: NULL
        end = at + 4 + max(length, 0)
        found.append(None if length < 0 else _value(body[at + 4 : end], kind))
        at = end
    return tuple(found)


def _value(text: bytes, kind: int) -> Any:
    if kind in _INTEGERS:
        return int(text)
    if kind in _FLOATS:
        return float(text)
    if kind == _BOOLEAN:
        return text == b"t"
    return orjson.loads(text) if kind == _JSON else text.decode()


def _trouble(body: bytes) -> Trouble:
    parts = (part.decode(errors="replace") for part in body.split(b"\0") if part)
    return Trouble({part[0]: part[1:] for part in parts})
