"""Writes a corpus as JSON lines, whole or not at all.

A line is ``{"id": .., field: value, ..}``, with dates in milliseconds since 1970 UTC, so that
it is read back as it was with the same ``fields``. Compression is told by the end of the name:
.gz, .zst, .xz, .bz2. The same documents give the same bytes.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import tempfile
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO, cast

from searchbench.corpora.corpus import Corpus, Digester, Summary, dump, intake_of
from searchbench.errors import CorpusError

_ZSTD_LEVEL = 9
_BUFFER_BYTES = 1 << 20


def write_jsonl(corpus: Corpus, path: Path) -> Summary:
    """Writes all documents and says what they were; ``path`` appears once it is complete.

    CorpusError where the disk is full or the place cannot be written; then nothing is left.
    """
    digester = Digester(corpus.schema)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with os.fdopen(handle, "wb") as raw:
            with _compressing(raw, path) as stream:
                for document in corpus.documents():
                    digester.add(document)
                    stream.write(dump({"id": document.id, **document.values}, document.id))
            raw.flush()
            os.fsync(raw.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with suppress(FileNotFoundError):  # it was renamed
            Path(temporary).unlink()
    return Summary(
        corpus.name,
        digester.hexdigest(),
        digester.documents,
        digester.text_bytes,
        intake_of(corpus),
    )


def _compressing(raw: BinaryIO, path: Path) -> AbstractContextManager[BinaryIO]:
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return cast("BinaryIO", gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0))
    if suffix == ".xz":
        return cast("BinaryIO", lzma.open(raw, "wb"))
    if suffix == ".bz2":
        return cast("BinaryIO", bz2.open(raw, "wb"))
    if suffix == ".zst":
        import zstandard  # here, not above: the command line must start fast

        packer = zstandard.ZstdCompressor(level=_ZSTD_LEVEL).stream_writer(raw, closefd=False)
        return cast("BinaryIO", io.BufferedWriter(packer, _BUFFER_BYTES))
    if suffix == ".lz4":
        raise CorpusError(f"{path}: .lz4 is read and not written; take .zst.")
    return nullcontext(raw)


def _unwritable(path: Path, error: OSError) -> CorpusError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return CorpusError(
            f"The disk is full, so {path} was not written; make room, or write elsewhere."
        )
    return CorpusError(f"{path} cannot be written: {error.strerror or error}.")
