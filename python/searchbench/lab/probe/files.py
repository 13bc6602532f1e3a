"""Files of the kernel that are read ten times a second.

Opening one costs several times what reading it does, so descriptors are kept. One of a process that
has ended is not read any more (ProcessLookupError), even if its number is somebody else's by then.
"""

from __future__ import annotations

import os

_AT_ONCE = 1 << 14


class Kept:
    """Files that are open since they were first read; at most ``most``, others are closed again."""

    def __init__(self, most: int = 128) -> None:
        self._most = most
        self._open: dict[str, int] = {}

    def read(self, path: str) -> bytes:
        """The whole file as it is now. OSError where there is none, or its process has ended."""
        descriptor = self._open.get(path)
        if descriptor is not None:
            return _whole(descriptor)
        descriptor = os.open(path, os.O_RDONLY)
        if len(self._open) < self._most:
            self._open[path] = descriptor
            return _whole(descriptor)
        try:
            return _whole(descriptor)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close all; what is read after that is opened anew."""
        while self._open:
            os.close(self._open.popitem()[1])

    def __del__(self) -> None:
        self.close()


def _whole(descriptor: int) -> bytes:
    """From its beginning to its end: the kernel may give a page at a time."""
    pieces = [os.pread(descriptor, _AT_ONCE, 0)]
    at = len(pieces[0])
    while pieces[-1]:
        pieces.append(os.pread(descriptor, _AT_ONCE, at))
        at += len(pieces[-1])
    return b"".join(pieces)


def once(path: str) -> bytes:
    """The first ``_AT_ONCE`` bytes of a file that is read seldom; OSError where there is none."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.pread(descriptor, _AT_ONCE, 0)
    finally:
        os.close(descriptor)
