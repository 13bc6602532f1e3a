"""Writes a corpus as JSON lines, whole or not at all.

A line is ``{"id": .., field: value, ..}``, with dates in milliseconds since 1970 UTC, so that
it is read back as it was with the same ``fields``. Compression is told by the end of the name:
.gz, .zst, .xz, .bz2. The same documents give the same bytes.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import os
import tempfile
from pathlib import Path
from typing import BinaryIO, cast

from searchbench.corpora.corpus import Corpus, Digester, Summary, dump, intake_of
from searchbench.errors import CorpusError

_BUFFER_BYTES = 1 << 20


def write_jsonl(corpus: Corpus, path: Path) -> Summary:
    """Writes all documents and says what they were; ``path`` appears once it is complete.

    CorpusError where the disk is full or the place cannot be written; then nothing is left.
    """
    digester = Digester(corpus.schema)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    temporary = Path(name)
    try:
        with _compressing(temporary, path) as stream:
            for document in corpus.documents():
                digester.add(document)
                stream.write(dump({"id": document.id, **document.values}, document.id))
        os.fsync(handle)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        os.close(handle)
        temporary.unlink(missing_ok=True)  # not there once it was renamed
    return Summary(
        corpus.name,
        digester.hexdigest(),
        digester.documents,
        digester.text_bytes,
        intake_of(corpus),
    )


def _compressing(temporary: Path, path: Path) -> BinaryIO:
    suffix = path.suffix.lower()
    if suffix == ".gz":
        # Without a name and a time in its head, so that the same documents give the same bytes.
        return cast("BinaryIO", _Gzip(temporary))
    if suffix == ".xz":
        return cast("BinaryIO", lzma.open(temporary, "wb"))
    if suffix == ".bz2":
        return cast("BinaryIO", bz2.open(temporary, "wb"))
    if suffix == ".zst":
        import pyarrow as pa  # here, not above: the command line must start fast

        return cast("BinaryIO", pa.output_stream(str(temporary), compression="zstd"))
    if suffix == ".lz4":
        raise CorpusError(f"{path}: .lz4 is read and not written; take .zst.")
    return temporary.open("wb", buffering=_BUFFER_BYTES)


class _Gzip(gzip.GzipFile):
    """Closes the file below it, which GzipFile leaves open when it is given one."""

    def __init__(self, path: Path) -> None:
        self._below = path.open("wb")
        super().__init__("", "wb", compresslevel=6, fileobj=self._below, mtime=0)

    def close(self) -> None:
        """Ends the stream and closes the file."""
        try:
            super().close()
        finally:
            self._below.close()


def _unwritable(path: Path, error: OSError) -> CorpusError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return CorpusError(
            f"The disk is full, so {path} was not written; make room, or write elsewhere."
        )
    return CorpusError(f"{path} cannot be written: {error.strerror or error}.")
