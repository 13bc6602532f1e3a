"""Files and pipes that grow: whole lines as they come, across rotation.

A file is followed by its name, as ``tail -F`` does. What replaces it is read from its beginning,
and the old one for some seconds more: servers write to it until they are told of the rotation. A
file that was cut off is read from its beginning, too.
"""

from __future__ import annotations

import os
import select
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from searchbench.errors import QueryError

HEAD_BYTES = 64 << 10  # by which the core tells a format (rust/logs source.rs)
_MOST = 32 << 20  # bytes of a source at once, so that the view does not stand still
_LINGER_S = 10.0  # how long an old file must be silent before it is left
_PIECE = 1 << 20
_LONGEST = 64 << 20  # bytes of a line, beyond which the core reads no more of it (source.rs)


class Grows(Protocol):
    """A source that grows. ``behind``: there was more than was read at once. ``ended``: nothing
    will follow. ``rotations``: how often a file took the place of another, or was cut off."""

    behind: bool
    ended: bool
    rotations: int
    why: str  # why it cannot be read now, if it cannot

    def head(self) -> bytes:
        """What was there before, at most ``HEAD_BYTES``, in whole lines."""
        ...

    def new(self, at_s: float) -> bytes:
        """Whole lines that were added since the last call. ``at_s``: now, of a clock of seconds."""
        ...

    def rest(self) -> bytes:
        """At the end: what follows the last line break."""
        ...


@dataclass(slots=True)
class _Part:
    """An open file: how far it was read, its unfinished line, when it grew last."""

    fd: int
    identity: tuple[int, int]
    at: int
    grew_s: float
    line: bytes = b""

    def new(self, at_s: float) -> bytes:
        """Its new whole lines."""
        pieces = [self.line]
        read = 0
        while read < _MOST and (piece := os.pread(self.fd, _PIECE, self.at)):
            pieces.append(piece)
            self.at += len(piece)
            read += len(piece)
        if read:
            self.grew_s = at_s
        text, line = _whole(b"".join(pieces))
        # Of a line without an end no more is kept than is read.
        self.line = line[:_LONGEST]
        return text


class GrowingFile:
    """A file by its name, from its end on; it may not be there yet.

    ``whole``: from its beginning on, because it is new. ``opened``: (device, inode) of every file
    that was read under this name, and ``reading`` of those that are being read; shared by those who
    must not read a file twice. Where files move on to the next name, as ``query.log`` to
    ``query.log.1``, one that takes this name is read by whoever had it before.
    """

    def __init__(
        self,
        path: str,
        at_s: float,
        *,
        whole: bool = False,
        opened: set[tuple[int, int]] | None = None,
        reading: set[tuple[int, int]] | None = None,
    ) -> None:
        self.path = path
        self._reading = set() if reading is None else reading
        self._others: tuple[int, int] | None = None  # the file of this name that others read
        self.behind, self.ended, self.rotations, self.why = False, False, 0, ""
        self._opened = set() if opened is None else opened
        self._parts: list[_Part] = []
        part = None if whole else self._open(at_s)
        if self.why:
            raise QueryError(self.why)
        if part is not None:
            part.at = os.fstat(part.fd).st_size
            # The line that is being written now belongs to what is followed.
            begin = max(0, part.at - HEAD_BYTES)
            last = os.pread(part.fd, part.at - begin, begin)
            part.line = last[last.rfind(b"\n") + 1 :]
            self._parts.append(part)

    def head(self) -> bytes:
        """What was there before."""
        if not self._parts:
            return b""
        part = self._parts[0]
        return _whole(os.pread(part.fd, min(part.at, HEAD_BYTES), 0))[0]

    def new(self, at_s: float) -> bytes:
        """Whole lines that were added."""
        found = []
        if self._parts and os.fstat(self._parts[-1].fd).st_size < self._parts[-1].at:
            found.append(_ended(self._parts[-1]))
            self._parts[-1].at = 0
            self.rotations += 1
        before = sum(part.at for part in self._parts)
        found += [part.new(at_s) for part in self._parts]
        self.behind = sum(part.at for part in self._parts) - before >= _MOST
        if self._replaced() and (part := self._open(at_s)) is not None:
            self.rotations += bool(self._parts)
            if any(part is own for own in self._parts):  # it has its name again
                self._parts.remove(part)
            found.append(part.new(at_s))
            self._parts.append(part)
        for old in [part for part in self._parts[:-1] if at_s - part.grew_s > _LINGER_S]:
            found.append(_ended(old))
            self._close(old)
            self._parts.remove(old)
        return b"".join(found)

    def rest(self) -> bytes:
        """What follows the last line break; the files are closed."""
        found = b"".join(map(_ended, self._parts))
        for part in self._parts:
            self._close(part)
        self._parts.clear()
        return found

    def _close(self, part: _Part) -> None:
        os.close(part.fd)
        self._reading.discard(part.identity)

    def _replaced(self) -> bool:
        """Whether another file has the name, or the first one has come."""
        try:
            now = Path(self.path).stat()
        except OSError:
            return False
        identity = (now.st_dev, now.st_ino)
        if identity == self._others:
            return False
        return not self._parts or self._parts[-1].identity != identity

    def _open(self, at_s: float) -> _Part | None:
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            # Who rotates a file may give it its permissions only then.
            self.why = f"{self.path} cannot be read: {error.strerror or error}"
            return None
        self.why = ""
        found = os.fstat(fd)
        identity = (found.st_dev, found.st_ino)
        self._others = None
        if identity in self._reading:
            os.close(fd)
            own = next((part for part in self._parts if part.identity == identity), None)
            self._others = None if own else identity
            return own
        self._opened.add(identity)
        self._reading.add(identity)
        return _Part(fd, identity, 0, at_s)


class GrowingPipe:
    """What comes through a file descriptor, such as standard input, until its end.

    ``own``: it is closed at the end.
    """

    def __init__(self, fd: int = 0, *, own: bool = False) -> None:
        self.behind, self.ended, self.rotations, self.why = False, False, 0, ""
        self._fd, self._own = fd, own
        self._pieces: list[bytes] = []
        self._bytes = 0

    def head(self) -> bytes:
        """Nothing: what a pipe had before nobody knows."""
        return b""

    def wait(self, most_s: float) -> None:
        """Wait for something to come, so long at most, and take it: who writes shall not wait."""
        if not self.ended and self._fd >= 0 and select.select([self._fd], [], [], most_s)[0]:
            try:
                piece = os.read(self._fd, _PIECE)
            except BlockingIOError:  # somebody else has read it
                return
            self.ended = not piece
            self._pieces.append(piece)
            self._bytes += len(piece)
            self.behind = self._bytes >= _MOST

    def new(self, at_s: float) -> bytes:
        """Whole lines that came; never waits."""
        del at_s
        before = -1
        while before < self._bytes < _MOST:
            before = self._bytes
            self.wait(0)
        self.behind = self._bytes >= _MOST
        text, line = _whole(b"".join(self._pieces))
        line = line[:_LONGEST]
        self._pieces, self._bytes = [line], len(line)
        return text

    def rest(self) -> bytes:
        """What follows the last line break."""
        line = b"".join(self._pieces)
        self._pieces.clear()
        if self._own:
            os.close(self._fd)
            self._own, self._fd = False, -1
        return line and line + b"\n"


def _whole(text: bytes) -> tuple[bytes, bytes]:
    """What is in whole lines, and what follows."""
    end = text.rfind(b"\n") + 1
    return text[:end], text[end:]


def _ended(part: _Part) -> bytes:
    """The last line of a file that nobody writes any more."""
    line, part.line = part.line, b""
    return line and line + b"\n"
