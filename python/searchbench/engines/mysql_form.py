"""The text protocol of MySQL as bytes: queries built ahead of time, replies taken apart afterwards.

Every engine that speaks it shares this. It opens no connection: the measuring core logs in,
sends the bytes and returns the packets of the reply with their heads, or several replies one
after another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from searchbench.engines.engine import Request

_COM_QUERY = b"\x03"
_PIECE = 1 << 20
_MOST = 0xFF_FFFF  # bytes of one packet; a payload that fills it is continued in the next
_OK, _LOCAL_INFILE, _EOF, _ERR = 0x00, 0xFB, 0xFE, 0xFF
_NULL = 0xFB
_ESCAPES = str.maketrans(
    {"\0": "\\0", "\n": "\\n", "\r": "\\r", "\x1a": "\\Z", "'": "\\'", "\\": "\\\\"}
)


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to one statement: an error, rows, or a plain OK (no columns).

    ``rows``: values as the server wrote them, None for NULL. ``warnings``: how many the server
    counted. ``error``: the server's words with its code where it refused.
    """

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[bytes | None, ...], ...] = ()
    warnings: int = 0
    error: str | None = None

    def dicts(self) -> list[dict[str, str | None]]:
        """The rows by column name, as text; bytes that are not UTF-8 become U+FFFD."""
        return [
            {
                name: None if value is None else value.decode(errors="replace")
                for name, value in zip(self.columns, row, strict=True)
            }
            for row in self.rows
        ]


def query(sql: str | bytes) -> bytes:
    """COM_QUERY with its packet heads; from 16 MiB on it takes several packets."""
    payload = _COM_QUERY + (sql.encode() if isinstance(sql, str) else sql)
    if len(payload) < _MOST:
        return len(payload).to_bytes(3, "little") + b"\0" + payload
    parts = []
    # A payload that ends where a packet does is followed by an empty one, so that its end is known.
    for number, at in enumerate(range(0, len(payload) + 1, _MOST)):
        part = payload[at : at + _MOST]
        parts += [len(part).to_bytes(3, "little"), bytes((number & 0xFF,)), part]
    return b"".join(parts)


def load(sql: str, file: bytes) -> bytes:
    """A ``LOAD DATA LOCAL INFILE`` with what the server will ask for, and its end.

    It may be sent at once: the server reads on when it has asked. Were it to refuse, the rest would
    be taken for commands, so the connection is given up then.
    """
    parts = [query(sql)]
    pieces = [file[at : at + _PIECE] for at in range(0, len(file), _PIECE)]
    for number, piece in enumerate([*pieces, b""], 2):  # 1 is that of the server's question
        parts += [len(piece).to_bytes(3, "little"), bytes((number & 0xFF,)), piece]
    return b"".join(parts)


def request(*statements: str) -> Request:
    """An exchange for each; several statements in one string are one exchange."""
    return Request(tuple(map(query, statements)))


def quoted(text: str) -> str:
    """``text`` as a string literal of SQL, with the escapes of a backslash."""
    return "'" + text.translate(_ESCAPES) + "'"


def split(data: bytes) -> list[Result]:
    """The results that follow each other in ``data``; ValueError where one is not whole.

    Both ends of rows are taken: the EOF packets of old, after the columns and after the rows, and
    the one OK packet of servers and clients that agreed on CLIENT_DEPRECATE_EOF.
    """
    packets = _Packets(data)
    results: list[Result] = []
    while packets.at < len(data) or not results:
        results.append(_one(packets))
    return results


def refusal(results: Iterable[Result]) -> str | None:
    """The first error among them."""
    return next((r.error for r in results if r.error), None)


class _Packets:
    """The packets of a reply in order."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self) -> bytes:
        """The next payload, put together where it takes several packets."""
        whole, length = b"", _MOST
        while length == _MOST:
            head = self.data[self.at : self.at + 4]
            if len(head) < 4:
                raise ValueError(f"the reply ends within a packet head, at byte {self.at}")
            length = int.from_bytes(head[:3], "little")
            self.at += 4
            part = self.data[self.at : self.at + length]
            if len(part) != length:
                raise ValueError(f"a packet promises {length} bytes, {len(part)} are here")
            self.at += length
            whole = whole + part if whole else part
        return whole


def _one(packets: _Packets) -> Result:
    if not (first := packets.take()):
        raise ValueError("no reply of MySQL: an empty packet")
    if first[0] == _ERR:
        return _refused(first)
    if first[0] == _OK:
        return Result(warnings=_warnings(first))
    if first[0] == _LOCAL_INFILE and packets.at < len(packets.data):
        return _one(packets)
    if first[0] == _LOCAL_INFILE:
        raise ValueError("the server asks for a file, which is not a reply to a query")
    count, _at = _number(first, 0)
    columns = tuple(_column(packets.take()) for _ in range(count or 0))
    rows: list[tuple[bytes | None, ...]] = []
    packet = packets.take()
    if _is_eof(packet):  # without it, this is a row or the end already
        packet = packets.take()
    while True:
        if packet and packet[0] == _ERR:
            return _refused(packet)
        if _is_eof(packet):
            return Result(columns, tuple(rows), _u16(packet, 1))
        if packet and packet[0] == _EOF and len(packet) < _MOST:
            return Result(columns, tuple(rows), _warnings(packet))
        rows.append(_row(packet, len(columns)))
        packet = packets.take()


def _is_eof(packet: bytes) -> bool:
    # An OK packet that ends rows begins with the same byte and has at least seven.
    return len(packet) == 5 and packet[0] == _EOF


def _refused(packet: bytes) -> Result:
    code, message = _u16(packet, 1), packet[3:]
    if message[:1] == b"#":  # and the five letters of SQLSTATE
        message = message[6:]
    words = message.rstrip(b"\0").decode(errors="replace")  # searchd sends the string's end along
    return Result(error=f"{words} (error {code})")


def _warnings(packet: bytes) -> int:
    """Of an OK packet, after the rows that were changed and the number of the last."""
    _affected, at = _number(packet, 1)
    _insert_id, at = _number(packet, at)
    return _u16(packet, at + 2)


def _column(packet: bytes) -> str:
    """The name of a column: the fifth of the strings that describe it."""
    text, at = b"", 0
    for _ in range(5):
        text, at = _string(packet, at)
    return text.decode(errors="replace")


def _row(packet: bytes, count: int) -> tuple[bytes | None, ...]:
    values: list[bytes | None] = []
    at = 0
    for _ in range(count):
        null = packet[at : at + 1] == bytes((_NULL,))
        value, at = (None, at + 1) if null else _string(packet, at)
        values.append(value)
    if at != len(packet):
        raise ValueError(f"a row of {count} columns ends at byte {at} of {len(packet)}")
    return tuple(values)


def _string(packet: bytes, at: int) -> tuple[bytes, int]:
    length, at = _number(packet, at)
    end = at + (length or 0)
    if length is None or end > len(packet):
        raise ValueError(f"a string promises {length} bytes, {len(packet) - at} are here")
    return packet[at:end], end


def _number(packet: bytes, at: int) -> tuple[int | None, int]:
    """A length-encoded number and where it ends; None for NULL."""
    first = packet[at] if at < len(packet) else _ERR
    width = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first, 0)
    if first < _NULL:
        return first, at + 1
    if first == _NULL:
        return None, at + 1
    if first == _ERR or at + 1 + width > len(packet):
        raise ValueError(f"no length at byte {at} of {len(packet)}")
    return int.from_bytes(packet[at + 1 : at + 1 + width], "little"), at + 1 + width


def _u16(packet: bytes, at: int) -> int:
    if at + 2 > len(packet):
        raise ValueError(f"a packet of {len(packet)} bytes is too short")
    return int.from_bytes(packet[at : at + 2], "little")
