"""What the controlling machine and a client machine say to each other over ssh's pipes.

A message is a JSON object with a ``kind``, followed by byte strings that it names:

    u32 length of the JSON, little-endian | JSON | the byte strings one after another

where the JSON's ``blobs`` lists [name, length in bytes] of each. A client machine first prints
GREETING: what a login shell printed before it (a message of the day, an echo in .bashrc) is none
of ours and is passed over.

    to a client machine      ping, job, go, alive, stop, give
    from a client machine    hello, pong, ready, tick, ended, trace, failed
"""

from __future__ import annotations

import importlib.metadata
import json
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from searchbench import _core

PROTOCOL = 2
GREETING = b"\nsearchbench client machine\n"
_BEFORE_GREETING_BYTES = 1 << 16
_LENGTH = struct.Struct("<I")
_MOST_JSON_BYTES = 1 << 26
_CHUNK_BYTES = 1 << 20

Room = Callable[[str, int], memoryview]
Fields = Mapping[str, Any]
Blobs = Mapping[str, memoryview]


class NotOurs(Exception):  # noqa: N818 -- what arrived, not an error of ours
    """What arrived is not of this protocol; the message is what it is, as far as it was read."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``received_unix_ns``: this machine's clock when its first bytes were here."""

    kind: str
    fields: Fields
    blobs: Blobs = field(default_factory=dict)
    received_unix_ns: int = 0


class Sender:
    """Writes messages whole; threads may share one."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lock = threading.Lock()

    def greet(self) -> None:
        """Say that from here on it is us who speak."""
        with self._lock:
            self._file.write(GREETING)
            self._file.flush()

    def send(
        self, kind: str, fields: Fields | None = None, blobs: Blobs | None = None, stamp: str = ""
    ) -> int:
        """Write a message; the time just before, in ns since 1970, also as its field ``stamp``.

        OSError where nobody reads any more.
        """
        parts = {name: memoryview(b).cast("B") for name, b in (blobs or {}).items() if len(b)}
        head = {"kind": kind, "blobs": [[n, len(b)] for n, b in parts.items()], **(fields or {})}
        with self._lock:
            sent_unix_ns = time.time_ns()
            if stamp:
                head[stamp] = sent_unix_ns
            text = json.dumps(head).encode()
            self._file.write(_LENGTH.pack(len(text)) + text)
            for blob in parts.values():
                self._file.write(blob)
            self._file.flush()
        return sent_unix_ns


class Receiver:
    """Reads messages. ``heard``: time.monotonic() when the last bytes came."""

    def __init__(self, file: BinaryIO, room: Room | None = None) -> None:
        self._file = file
        self._room = room or (lambda _name, size: memoryview(bytearray(size)))
        self.heard = time.monotonic()

    def greeting(self) -> None:
        """Pass over everything up to GREETING; NotOurs with what came instead of it."""
        seen = b""
        while not seen.endswith(GREETING):
            byte = self._file.read(1)
            seen += byte
            if not byte or len(seen) > _BEFORE_GREETING_BYTES:
                raise NotOurs(seen.decode(errors="replace").strip()[-300:])
        self.heard = time.monotonic()

    def next(self) -> Message | None:
        """The next message; None at the end. NotOurs where it is cut off or no message."""
        length = self._file.read(_LENGTH.size)
        received_unix_ns = time.time_ns()
        if not length:
            return None
        self.heard = time.monotonic()
        if len(length) < _LENGTH.size or _LENGTH.unpack(length)[0] > _MOST_JSON_BYTES:
            raise NotOurs(length.decode(errors="replace"))
        text = self._file.read(_LENGTH.unpack(length)[0])
        try:
            head = json.loads(text)
            kind, places = str(head.pop("kind")), [(str(n), int(s)) for n, s in head.pop("blobs")]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise NotOurs(text[:300].decode(errors="replace")) from None
        blobs = {name: self._blob(name, size) for name, size in places}
        return Message(kind, head, blobs, received_unix_ns)

    def _blob(self, name: str, size: int) -> memoryview:
        whole = self._room(name, size)
        at = 0
        while at < size:
            # readinto gives what there is: a long blob is heard of while it comes.
            count = self._file.readinto(whole[at : at + _CHUNK_BYTES])  # type: ignore[attr-defined]
            if not count:
                raise NotOurs(f"{name} ended after {at} of {size} bytes")
            at += count
            self.heard = time.monotonic()
        return whole


def versions() -> dict[str, Any]:
    """Versions of searchbench and of the core, and what their traces look like."""
    try:
        version = importlib.metadata.version("searchbench")
    except importlib.metadata.PackageNotFoundError:
        version = _core.version
    return {
        "protocol": PROTOCOL,
        "searchbench": version,
        "core": _core.version,
        "build": _core.profile,
        "sample": [list(column) for column in _core.SAMPLE_DTYPE],
        "outcomes": list(_core.OUTCOMES),
    }
