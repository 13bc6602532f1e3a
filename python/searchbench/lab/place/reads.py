"""Requests to a device or a file as fast as it takes them, past the page cache or through it.

Run as a program of its own (it needs nothing but Python), because a control group holds processes:

    reads.py PATH direct|mapped|write BYTES SECONDS SENDERS

prints, as JSON, ``per_s``: requests a second, and ``requests``: how many were counted; ``all`` and
``seconds``: those of the beginning too, and from when to when. Through a mapping each sender has a
part of its own, and forgets all of it before it reads a page again: a page that somebody has mapped
stays in memory, and reading it again would be free.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import sys
import time
from array import array
from types import TracebackType

SETTLES_S = 0.15
"""What a limit lets through at first is not counted: the kernel gives a tenth of a second ahead."""
_APART = 16
"""Pages: a fault also maps those around it that are in memory, of 64 KiB in all."""


class Aligned:
    """A device or a file, read or written past the page cache in blocks of ``size`` bytes."""

    def __init__(self, path: str, size: int, *, writes: bool = False) -> None:
        self._file = os.open(path, (os.O_RDWR if writes else os.O_RDONLY) | os.O_DIRECT)
        self._size, self._writes = size, writes
        self._buffer = mmap.mmap(-1, size)  # begins at a page, as O_DIRECT wants it
        self._buffer.write(random.randbytes(size))
        self.blocks = os.lseek(self._file, 0, os.SEEK_END) // size

    def __enter__(self) -> Aligned:
        """It is open already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        """Close it."""
        os.close(self._file)

    def read(self, block: int) -> None:
        """Read, or write, the block of that number."""
        if self._writes:
            os.pwritev(self._file, [self._buffer], block * self._size)
        else:
            os.preadv(self._file, [self._buffer], block * self._size)


class Mapped:
    """A device or a file through a mapping, page by page, in the order of a lot.

    Of ``senders`` each has a part of its own, and between two parts pages that nobody reads: what
    another sender has mapped cannot be evicted.
    """

    def __init__(self, path: str, number: int, senders: int) -> None:
        self._file = os.open(path, os.O_RDONLY)
        pages = os.lseek(self._file, 0, os.SEEK_END) // mmap.PAGESIZE
        self._map = mmap.mmap(self._file, pages * mmap.PAGESIZE, prot=mmap.PROT_READ)
        self._map.madvise(mmap.MADV_RANDOM)
        first, after = pages * number // senders, pages * (number + 1) // senders
        self._own = range(first, max(after - _APART, first))
        self.blocks = len(self._own)
        self._left: list[int] = []

    def read(self, block: int) -> None:
        """Touch a page that is not in memory; which, is drawn by lot, not by ``block``."""
        if not self._left:
            self._forget()
            self._left = random.sample(self._own, min(self.blocks, 1 << 17))
        self._map[self._left.pop() * mmap.PAGESIZE]

    def _forget(self) -> None:
        """Unmap and evict its own part."""
        first, length = self._own.start * mmap.PAGESIZE, self.blocks * mmap.PAGESIZE
        self._map.madvise(mmap.MADV_DONTNEED, first, length)
        os.posix_fadvise(self._file, first, length, os.POSIX_FADV_DONTNEED)


def measure(path: str, how: str, size: int, seconds: float, senders: int) -> dict[str, float]:
    """Send requests from so many processes; how many a second were done once it had settled.

    Processes, because a fault of a mapping holds the interpreter's lock.
    """
    if how == "mapped":
        _forgotten(path)
    began = time.perf_counter()
    pipes = []
    for number in range(senders):
        out, into = os.pipe()
        if os.fork() == 0:
            code = 1
            try:
                os.close(out)
                pages = (number, senders)
                done = _sent(path, how, size, began + SETTLES_S + seconds, pages)
                with os.fdopen(into, "wb") as file:
                    done.tofile(file)
                code = 0
            finally:
                os._exit(code)
        os.close(into)
        pipes.append(out)
    instants: list[float] = []
    for pipe in pipes:
        found = array("d")
        with os.fdopen(pipe, "rb") as file:
            found.frombytes(file.read())
        instants += found
    for _ in pipes:
        if os.wait()[1]:
            raise SystemExit("a sender failed")
    if how == "mapped":
        _forgotten(path)
    counted = sorted(t - began for t in instants if t - began >= SETTLES_S)
    return {
        "per_s": slope(counted),
        "requests": len(counted),
        "all": len(instants),
        "seconds": max(instants, default=began) - began,
    }


def _sent(path: str, how: str, size: int, end: float, of: tuple[int, int]) -> array[float]:
    """When each request of one sender was done. ``of``: its number, and of how many."""
    file = Mapped(path, *of) if how == "mapped" else Aligned(path, size, writes=how == "write")
    done = array("d")
    while file.blocks and time.perf_counter() < end:
        file.read(random.randrange(file.blocks))
        done.append(time.perf_counter())
    return done


def _forgotten(path: str) -> None:
    """Evict it from the page cache: all of it, as what was written lies there in large pieces that
    no sender could evict alone; and afterwards nobody is to find what was read.
    """
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def slope(instants: list[float]) -> float:
    """Requests a second by least squares: limits let requests through in bursts.

    0 where there are too few.
    """
    n = len(instants)
    if n < 3:
        return 0.0
    mean_t, mean_k = sum(instants) / n, (n - 1) / 2
    above = sum((t - mean_t) * (k - mean_k) for k, t in enumerate(instants))
    return above / sum((t - mean_t) ** 2 for t in instants)


if __name__ == "__main__":
    path, how, size, seconds, senders = sys.argv[1:]
    found = measure(path, how, int(size), float(seconds), int(senders))
    sys.stdout.write(json.dumps(found) + "\n")
