"""The lines of a file that may be packed (.gz, .zst), in constant memory."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import zstandard

PACKED = (".gz", ".zst")


def lines(path: Path) -> Iterator[bytes]:
    """Each line without its end; OSError with a reason where the file cannot be read whole."""
    with path.open("rb") as raw:
        try:
            for line in _unpacked(path, raw):
                yield line.rstrip(b"\r\n")
        except (EOFError, zstandard.ZstdError) as error:
            raise OSError(f"it is damaged: {error}") from error


def inner_suffix(path: Path) -> str:
    """The suffix below the packing: ".jsonl" of both ``a.jsonl`` and ``a.jsonl.gz``."""
    return (path.with_suffix("") if path.suffix in PACKED else path).suffix


def _unpacked(path: Path, raw: IO[bytes]) -> IO[bytes] | gzip.GzipFile | io.BufferedReader:
    if path.suffix == ".gz":
        return gzip.GzipFile(fileobj=raw)
    if path.suffix == ".zst":
        reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        return io.BufferedReader(reader)
    return raw
