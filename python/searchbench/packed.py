"""Files that may be compressed, as bytes and as lines, in constant memory.

Compression is told by the end of the name: .gz, .zst, .xz, .bz2, .lz4.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

COMPRESSED = (".gz", ".zst", ".xz", ".bz2", ".lz4")

_OPEN: dict[str, Callable[..., object]]
_OPEN = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_BUFFER_BYTES = 1 << 20


def open_packed(path: Path) -> BinaryIO:
    """The uncompressed bytes, buffered; OSError where there is no such file."""
    suffix = path.suffix.lower()
    if suffix in _OPEN:
        return cast("BinaryIO", _OPEN[suffix](path, "rb"))
    if suffix in (".zst", ".lz4"):
        # pyarrow and not zstandard: the latter ends a file that was cut short without a word.
        import pyarrow as pa  # here, not above: the command line must start fast

        raw = pa.input_stream(str(path), compression="zstd" if suffix == ".zst" else "lz4")
        return cast("BinaryIO", io.BufferedReader(raw, _BUFFER_BYTES))
    return path.open("rb", buffering=_BUFFER_BYTES)


def lines(path: Path) -> Iterator[bytes]:
    """Each line without its end; OSError with a reason where the file cannot be read whole."""
    with open_packed(path) as stream:
        try:
            for line in stream:
                yield line.rstrip(b"\r\n")
        except (EOFError, lzma.LZMAError, zlib.error) as error:
            raise OSError(f"it is damaged: {error}") from error


def inner_suffix(path: Path) -> str:
    """The suffix below the compression, in lower case: ".jsonl" of ``a.JSONL.gz``."""
    name = path.name.lower()
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    return Path(name).suffix
