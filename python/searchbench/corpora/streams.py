"""Plain and compressed files as streams of bytes and numbered lines; what is wrong with them."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from searchbench.errors import CorpusError
from searchbench.packed import open_packed

LINE_LIMIT_BYTES = 64 << 20
"""The longest line, cell or text file taken: beyond it, the file is not what it seems to be."""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The uncompressed bytes of a file, buffered; CorpusError where it cannot be read."""
    try:
        stream = open_packed(path)
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        yield stream
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise unreadable(path, error) from error
    finally:
        stream.close()


def lines(path: Path, stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Each line with its number from 1; a byte order mark is removed.

    CorpusError where a line is beyond LINE_LIMIT_BYTES, or the file is UTF-16 or UTF-32.
    """
    number = 0
    while line := stream.readline(LINE_LIMIT_BYTES + 1):
        number += 1
        if len(line) > LINE_LIMIT_BYTES:
            raise CorpusError(
                f"{path}:{number}: this line is longer than {LINE_LIMIT_BYTES >> 20} MiB; "
                "a file of documents holds one document a line."
            )
        if number == 1:
            if line.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise CorpusError(
                    f"{path}:1: this is UTF-16, and UTF-8 is expected; "
                    "convert it with: iconv -f UTF-16 -t UTF-8."
                )
            line = line.removeprefix(b"\xef\xbb\xbf")
        yield number, line


def text_lines(path: Path, stream: BinaryIO) -> Iterator[str]:
    """Each line as text; CorpusError that names file and line where it is not UTF-8."""
    for number, line in lines(path, stream):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise not_utf8(path, number, error) from error


def not_utf8(path: Path, line: int, error: UnicodeDecodeError) -> CorpusError:
    """The sentence for bytes that are not UTF-8."""
    byte = error.object[error.start]
    return CorpusError(
        f"{path}:{line}: byte 0x{byte:02x} is not UTF-8; convert the file with "
        "iconv -f ENCODING -t UTF-8 (often ENCODING is WINDOWS-1252)."
    )


def unreadable(path: Path, error: Exception) -> CorpusError:
    """The sentence for a file that the system, or its own compression, does not let us read."""
    if isinstance(error, FileNotFoundError):
        return CorpusError(f"There is no file {path}; paths are relative to the study file.")
    if isinstance(error, OSError) and error.strerror:
        return CorpusError(f"{path} cannot be read: {error.strerror}.")
    return CorpusError(
        f"{path} cannot be read: {error}; it may be damaged, or cut short, "
        "or its name says another compression than it has."
    )
