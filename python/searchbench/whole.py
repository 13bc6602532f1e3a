"""Files that are there whole or not at all: written beside their place, and renamed into it.

What was there before stays until then, and its permissions stay. A place that is no file, such as a
pipe or a device, is written as it is.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT)
# What of ``not_written`` is said of a temporary file.
IN_PASSING = ("a temporary file", "name another folder in TMPDIR")
_KEPT = 40  # letters of a file's name in that of the file beside it


def is_full(error: OSError) -> bool:
    """Whether there was no room left, on the disk or of one's share of it."""
    return error.errno in _FULL


def not_written(
    path: Path | str, error: OSError, what: str = "the file", instead: str = "name another file"
) -> str:
    """Why ``what`` was not written to a path, with the remedy: the sentence of an error."""
    if is_full(error):
        return f"{path}: the disk is full, so {what} was not written; make room, or {instead}"
    return f"{path}: {what} cannot be written ({error.strerror or error}); {instead}"


@contextmanager
def beside(path: Path, *, waits: bool = True) -> Iterator[Path]:
    """A file to be written in place of ``path``, which it becomes when the block ends.

    If the block fails, it goes, and what was there before stays. ``waits``: until it is on the
    disk; else the block has seen to that (``on_disk``). OSError where it cannot be made.
    """
    place = Path(os.path.realpath(path))  # a link stays a link
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        yield place
        return
    part = place.with_name(f".{os.getpid()}.{place.name[-_KEPT:]}")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        try:
            if mode is not None:
                os.fchmod(handle, stat.S_IMODE(mode))
            yield part
            # Some file systems say only here that there is no room.
            if waits:
                os.fsync(handle)
        finally:
            os.close(handle)
        part.replace(place)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def on_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk: only then it is sure that there
    was room, and that they outlive a loss of power. OSError. Of what is neither nothing is sure.
    """
    kind = path.stat().st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        return
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # as some have it of folders
            raise
    finally:
        os.close(handle)


def write_whole(contents: Sequence[tuple[Path, bytes]]) -> None:
    """Write files that belong together: none takes its place before all are whole. OSError."""
    with ExitStack() as stack:
        for path, content in contents:
            part = stack.enter_context(beside(path, waits=False))
            part.write_bytes(content)
            on_disk(part)
