"""Cold: the pages of files evicted from memory, proven by asking the kernel which are there.

``posix_fadvise`` evicts the pages of one file and needs no privilege; pages that a living process
has mapped stay. What is left is evicted as root with all other clean pages of the machine.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_DROP = Path("/proc/sys/vm/drop_caches")
_CHUNK_PAGES = 1 << 18  # asked about at a time: 1 GiB of a file, 256 KiB of answers
_PROT_READ, _MAP_SHARED = 1, 1
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
)  # fmt: skip
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
_FAILED = ctypes.c_void_p(-1).value


@dataclass(frozen=True, slots=True)
class Evicted:
    """Pages of files: all that they have, those in memory before and after."""

    pages: int
    before: int
    after: int

    @property
    def done(self) -> bool:
        """Is next to nothing left? A page that the kernel reads meanwhile does not count."""
        return self.after <= max(2, self.pages // 1000)


def files_below(folders: Iterable[Path]) -> Iterator[Path]:
    """Regular files below these folders, each once; links are not followed."""
    for folder in folders:
        for root, _, names in os.walk(folder):
            for name in names:
                path = Path(root, name)
                if path.is_file() and not path.is_symlink():
                    yield path


def evict(folders: Iterable[Path]) -> Evicted:
    """Evict the files below these folders; what they had in memory before and have after."""
    files = list(files_below(folders))
    pages = sum(-(-path.stat().st_size // PAGE_BYTES) for path in files)
    before = sum(map(resident, files))
    for path in files:
        _advise(path)
    after = sum(map(resident, files))
    if after and os.geteuid() == 0:
        os.sync()
        with suppress(OSError):  # a container may not be allowed to
            _DROP.write_text("3")
        after = sum(map(resident, files))
    return Evicted(pages, before, after)


def evicted(path: Path) -> bool:
    """Evict one file that nobody uses; is next to nothing of it left?"""
    _advise(path)
    pages = -(-path.stat().st_size // PAGE_BYTES)
    return Evicted(pages, 0, resident(path)).done


def resident_bytes(folders: Iterable[Path]) -> int:
    """How much of the files below these folders is in memory."""
    return sum(map(resident, files_below(folders))) * PAGE_BYTES


def resident(path: Path) -> int:
    """How many pages of a file are in memory.

    The kernel tells only who owns the file or may write to it.

    A file that has gone meanwhile has none.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return 0
    try:
        size = os.fstat(descriptor).st_size
        found = 0
        for at in range(0, size, _CHUNK_PAGES * PAGE_BYTES):
            found += _resident(descriptor, at, min(size - at, _CHUNK_PAGES * PAGE_BYTES))
        return found
    finally:
        os.close(descriptor)


def _resident(descriptor: int, at: int, length: int) -> int:
    # Python's mmap gives no address of what it maps for reading alone.
    address = _libc.mmap(None, length, _PROT_READ, _MAP_SHARED, descriptor, at)
    if address == _FAILED:
        raise OSError(ctypes.get_errno(), "mmap")
    try:
        told = ctypes.create_string_buffer(-(-length // PAGE_BYTES))
        if _libc.mincore(address, length, told):
            raise OSError(ctypes.get_errno(), "mincore")
        # The lowest bit says it; the kernel leaves the others at 0.
        return len(told.raw) - told.raw.count(0)
    finally:
        _libc.munmap(address, length)


def _advise(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)  # pages that are yet to be written are not evicted
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
