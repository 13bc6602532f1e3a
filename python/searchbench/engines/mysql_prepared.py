"""Prepared statements of MySQL as bytes, and rows of both of its protocols as lines of text.

A statement is executed by the number that the server gives it: servers count those of a connection
from 1, so the n-th that a connection prepares is number n (the measuring core holds them to it).
Numbers go as 64-bit integers or doubles, all else as text. Rows of the text protocol and of the
binary one come out the same: values separated by tabs, ``\\N`` for NULL.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from searchbench.engines.pieces import Pieces

Take = Callable[[bytes], object]
"""Takes one row, as a line."""

_PREPARE, _EXECUTE = b"\x16", 0x17
_LONGLONG, _DOUBLE, _TEXT, _NULL_TYPE = 0x08, 0x05, 0xFD, 0x06
_OK, _NULL, _EOF, _ERR = 0x00, 0xFB, 0xFE, 0xFF
_MOST = 0xFF_FFFF
_INTEGERS = {0x01: ("b", 1), 0x02: ("h", 2), 0x0D: ("h", 2), 0x03: ("i", 4), 0x09: ("i", 4),
             0x08: ("q", 8)}  # fmt: skip
_FLOAT = 0x04
_DATES, _TIME = (0x07, 0x0A, 0x0C), 0x0B
_UNSIGNED = 32
_ESCAPES = {b"\\": b"\\\\", b"\t": b"\\t", b"\n": b"\\n"}


def prepare(sql: str) -> bytes:
    """COM_STMT_PREPARE with its packet head."""
    return _packet(_PREPARE + sql.encode())


def execute(number: int, values: Sequence[Any]) -> bytes:
    """COM_STMT_EXECUTE of the statement of that number (from 1) with these values."""
    head = struct.pack("<BIBI", _EXECUTE, number, 0, 1)
    if not values:
        return _packet(head)
    nulls = bytearray((len(values) + 7) // 8)
    types, written = bytearray(), bytearray()
    for at, value in enumerate(values):
        if value is None:
            nulls[at // 8] |= 1 << at % 8
            types += bytes((_NULL_TYPE, 0))
        elif isinstance(value, int):
            types += bytes((_LONGLONG, 0))
            written += int(value).to_bytes(8, "little", signed=True)
        elif isinstance(value, float):
            types += bytes((_DOUBLE, 0))
            written += struct.pack("<d", value)
        else:
            text = str(value).encode()
            types += bytes((_TEXT, 0))
            written += _length(len(text)) + text
    return _packet(b"".join((head, bytes(nulls), b"\x01", bytes(types), bytes(written))))


class Rows:
    """The results of one reply, one after another; there may be more rows than memory holds.

    ``pieces``: its bytes in order, cut anywhere.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = Pieces(pieces)

    def next(self, take: Take, *, binary: bool) -> str | None:
        """Hand each row of the next result to ``take``; the server's words where it refused.

        ValueError where there is no whole result.
        """
        first = self._take()
        if not first:
            raise ValueError("no reply of MySQL: an empty packet")
        if first[0] == _ERR:
            return _words(first)
        if first[0] == _OK:
            return None
        count, _ = _number(first, 0)
        types = [_type(self._take()) for _ in range(count)]
        packet = self._take()
        if packet[0] == _EOF and len(packet) == 5:
            packet = self._take()
        read = _binary if binary else _text
        while not (packet[0] == _EOF and len(packet) < 0xFF):
            if packet[0] == _ERR:
                return _words(packet)
            take(read(packet, types))
            packet = self._take()
        return None

    @property
    def over(self) -> bool:
        """Is nothing left?"""
        return self._pieces.over

    def _take(self) -> bytes:
        whole, length = b"", _MOST
        while length == _MOST:
            head = self._pieces.take(4)
            if len(head) < 4:
                place = self._pieces.place - len(head)
                raise ValueError(f"the reply ends within a packet head, at byte {place}")
            length = head[0] | head[1] << 8 | head[2] << 16
            part = self._pieces.take(length)
            if len(part) != length:
                raise ValueError(f"a packet promises {length} bytes, {len(part)} are here")
            whole = whole + part if whole else part
        return whole


def _packet(payload: bytes) -> bytes:
    if len(payload) < _MOST:
        return len(payload).to_bytes(3, "little") + b"\0" + payload
    parts = []
    for number, at in enumerate(range(0, len(payload) + 1, _MOST)):
        part = payload[at : at + _MOST]
        parts += [len(part).to_bytes(3, "little"), bytes((number & 0xFF,)), part]
    return b"".join(parts)


def _length(number: int) -> bytes:
    if number < _NULL:
        return bytes((number,))
    if number < 1 << 16:
        return b"\xfc" + number.to_bytes(2, "little")
    if number < 1 << 24:
        return b"\xfd" + number.to_bytes(3, "little")
    return b"\xfe" + number.to_bytes(8, "little")


def _number(packet: bytes, at: int) -> tuple[int, int]:
    first = packet[at]
    if first < _NULL:
        return first, at + 1
    width = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first)
    if width is None:
        raise ValueError(f"no length at byte {at} of {len(packet)}")
    return int.from_bytes(packet[at + 1 : at + 1 + width], "little"), at + 1 + width


@lru_cache(1024)
def _type(packet: bytes) -> tuple[int, bool]:
    """The type of a column, and whether it is unsigned."""
    at = 0
    for _ in range(6):
        length, at = _number(packet, at)
        at += length
    at += 7  # a length of what follows, the character set, the width
    return packet[at], bool(packet[at + 1] & _UNSIGNED)


def _text(packet: bytes, types: Sequence[tuple[int, bool]]) -> bytes:
    values, at = [], 0
    for kind, _ in types:
        if packet[at] == _NULL:
            values.append(b"\\N")
            at += 1
            continue
        length, at = _number(packet, at)
        value = packet[at : at + length]
        at += length
        values.append(_float(kind, float(value)) if kind in (_FLOAT, _DOUBLE) else _escaped(value))
    return b"\t".join(values)


def _binary(packet: bytes, types: Sequence[tuple[int, bool]]) -> bytes:
    at = 1 + (len(types) + 9) // 8
    values = []
    for column, (kind, unsigned) in enumerate(types, 2):
        if packet[1 + column // 8] >> column % 8 & 1:
            values.append(b"\\N")
        elif kind in _INTEGERS:
            width = _INTEGERS[kind][1]
            part = packet[at : at + width]
            values.append(b"%d" % int.from_bytes(part, "little", signed=not unsigned))
            at += width
        elif kind in (_FLOAT, _DOUBLE):
            width = 4 if kind == _FLOAT else 8
            part = packet[at : at + width]
            values.append(_float(kind, struct.unpack("<f" if width == 4 else "<d", part)[0]))
            at += width
        else:
            length, at = _number(packet, at)
            part = packet[at : at + length]
            at += length
            if kind in _DATES:
                part = _date(part, whole=kind != 0x0A)
            elif kind == _TIME:
                part = _time(part)
            values.append(_escaped(part))
    return b"\t".join(values)


def _float(kind: int, value: float) -> bytes:
    """As many digits as the type has: those of a float are written out by the server."""
    return (f"{value:.6g}" if kind == _FLOAT else repr(float(value))).encode()


def _escaped(value: bytes) -> bytes:
    if b"\\" in value or b"\t" in value or b"\n" in value:
        for mark, written in _ESCAPES.items():
            value = value.replace(mark, written)
    return value


def _date(part: bytes, *, whole: bool) -> bytes:
    """A date, or a date with its time, as the text protocol writes it (fractions as they are)."""
    full = part.ljust(11, b"\0")
    year, month, day, hour, minute, second, micro = struct.unpack("<HBBBBBI", full)
    text = f"{year:04d}-{month:02d}-{day:02d}"
    if whole:
        text += f" {hour:02d}:{minute:02d}:{second:02d}"
    return (text + (f".{micro:06d}" if micro else "")).encode()


def _time(part: bytes) -> bytes:
    negative, days, hour, minute, second, micro = struct.unpack("<BIBBBI", part.ljust(12, b"\0"))
    text = f"{'-' * bool(negative)}{days * 24 + hour:02d}:{minute:02d}:{second:02d}"
    return (text + (f".{micro:06d}" if micro else "")).encode()


def _words(packet: bytes) -> str:
    code, message = int.from_bytes(packet[1:3], "little"), packet[3:]
    message = message[6:] if message[:1] == b"#" else message
    return f"{message.decode(errors='replace')} (error {code})"


def rows_of(pieces: Iterable[bytes], binary: Sequence[int], take: Take) -> Iterator[str | None]:
    """Each result of a reply, once its rows were handed over: what was refused, if it was.

    ``pieces``: the reply, cut anywhere. ``binary``: whether the statement of each was prepared.
    """
    rows = Rows(pieces)
    for each in binary:
        if rows.over:
            return
        yield rows.next(take, binary=bool(each))
