"""HTTP/1.1 as bytes: requests built ahead of time, replies taken apart after the clock has stopped.

Every engine that speaks HTTP shares this. It opens no connection: the measuring core sends the
bytes and returns the reply whole, head and body, or several replies one after another.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

Pairs = Iterable[tuple[str, str | int]]


@dataclass(frozen=True, slots=True)
class HttpReply:
    """One reply. Names of ``headers`` are in lower case; ``body`` is without chunks and gzip."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def quoted(text: str) -> str:
    """``text`` for a place in a URL: everything escaped but what RFC 3986 calls unreserved."""
    return quote(text, safe="")


def get(path: str, pairs: Pairs = ()) -> bytes:
    """A GET request; every reserved byte of the parameters is escaped."""
    return f"GET {_target(path, pairs)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode("ascii")


def post(path: str, pairs: Pairs, body: bytes, kind: str = "application/json") -> bytes:
    """A POST request with a body of known length."""
    head = (
        f"POST {_target(path, pairs)} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body


def put(path: str, pairs: Pairs, body: bytes, kind: str = "application/json") -> bytes:
    """A PUT request with a body of known length."""
    return b"PUT" + post(path, pairs, body, kind).removeprefix(b"POST")


def split(data: bytes) -> list[HttpReply]:
    """The replies that follow each other in ``data``; ValueError where one is not whole."""
    replies: list[HttpReply] = []
    at = 0
    while at < len(data) or not replies:
        reply, at = _one(data, at)
        if reply.status >= 200:  # what comes before is an interim head
            replies.append(reply)
    return replies


def _target(path: str, pairs: Pairs) -> str:
    written = "&".join(f"{quoted(k)}={quoted(str(v))}" for k, v in pairs)
    return f"{path}?{written}" if written else path


def _one(data: bytes, at: int) -> tuple[HttpReply, int]:
    """The reply that begins at ``at``, and where it ends."""
    end = data.find(b"\r\n\r\n", at)
    if end < 0:
        raise ValueError(f"no HTTP reply: its head does not end in {len(data) - at} bytes")
    first, *lines = data[at:end].decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
        raise ValueError(f"no HTTP reply: it begins with {first[:40]!r}")
    headers = {}
    for line in lines:
        name, _colon, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    status, at = int(words[1]), end + 4
    if status < 200 or status in (204, 304):
        return HttpReply(status, headers, b""), at
    if headers.get("transfer-encoding", "").lower().endswith("chunked"):
        body, at = _chunks(data, at)
    elif "content-length" in headers:
        length = int(headers["content-length"])
        body = data[at : at + length]
        if len(body) != length:
            raise ValueError(f"the reply promises {length} bytes, {len(body)} are here")
        at += length
    else:
        body, at = data[at:], len(data)
    if headers.get("content-encoding", "").lower() == "gzip" and body:
        try:
            body = gzip.decompress(body)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"the body is not gzip, as its header says: {error}") from None
    return HttpReply(status, headers, body), at


def _chunks(data: bytes, at: int) -> tuple[bytes, int]:
    """The chunks that begin at ``at`` joined, and where their trailers end."""
    parts = []
    while True:
        line, at = _line(data, at)
        if not (size := int(line.split(b";")[0], 16)):
            break
        part = data[at : at + size]
        if len(part) != size or data[at + size : at + size + 2] != b"\r\n":
            raise ValueError(f"a chunk promises {size} bytes and does not have them")
        parts.append(part)
        at += size + 2
    while line:
        line, at = _line(data, at)
    return b"".join(parts), at


def _line(data: bytes, at: int) -> tuple[bytes, int]:
    end = data.find(b"\r\n", at)
    if end < 0:
        raise ValueError("the reply ends within its chunks")
    return data[at:end], end + 2
