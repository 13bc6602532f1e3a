"""Writing a corpus as JSON lines, CSV, TSV or Parquet; whole or not at all.

The form is told by the end of the name, and but for Parquet a second end compresses: .gz, .zst,
.xz, .bz2. The same documents give the same bytes. The first column is ``id``, or the key of a
table; a key of several columns is among the fields. Read with the same fields, a file holds the
same documents.

    jsonl      a line is {"id": .., field: value, ..}; dates in milliseconds since 1970 UTC
    csv, tsv   keywords joined by "|", dates in ISO 8601; an empty cell is no value
    parquet    lists of strings, timestamps; compressed with zstd
"""

from __future__ import annotations

import bz2
import csv
import errno
import gzip
import io
import lzma
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from searchbench.corpora.corpus import (
    Corpus,
    Document,
    Field,
    FieldType,
    Schema,
    Summary,
    digest,
)
from searchbench.errors import CorpusError

FORMS = (".jsonl", ".csv", ".tsv", ".parquet")
_BUFFER_BYTES = 1 << 20
_ROWS = 20_000
_BETWEEN = "|"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CANONICAL = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
_Put = Callable[[Document], object]


def write(corpus: Corpus, path: Path) -> Summary:
    """Write all documents and say what they were; another end of the name than of a form: JSON.

    CorpusError where the disk is full, the place cannot be written, or a value cannot be said in
    that form; then nothing is left.
    """
    ends = [end.lower() for end in path.suffixes[-2:]]
    form = next((end for end in ends if end in FORMS), ".jsonl")
    if form == ".parquet" and ends[-1] != form:
        raise CorpusError(f"{path}: Parquet is compressed inside; leave out {path.suffix}.")
    with (
        _whole(path) as temporary,
        _compressing(temporary, path) as stream,
        _FORMS[form](corpus.schema, stream) as put,
    ):
        return digest(corpus, put)


@contextmanager
def _jsonl(schema: Schema, stream: BinaryIO) -> Iterator[_Put]:
    key = _key(schema)

    def put(document: Document) -> None:
        row = {**({key.name: _own(key, document)} if key else {}), **document.values}
        stream.write(orjson.dumps(row, option=_CANONICAL))

    yield put


@contextmanager
def _separated(delimiter: str, schema: Schema, stream: BinaryIO) -> Iterator[_Put]:
    text = io.TextIOWrapper(stream, "utf-8", newline="", write_through=False)
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    key = _key(schema)
    writer.writerow([*([key.name] if key else []), *(field.name for field in schema.fields)])

    def put(document: Document) -> None:
        cells = [_cell(field, document) for field in schema.fields]
        writer.writerow([document.id, *cells] if key else cells)

    try:
        yield put
        text.flush()
    finally:
        text.detach()  # the stream below is not ours to close


@contextmanager
def _parquet(schema: Schema, stream: BinaryIO) -> Iterator[_Put]:
    import pyarrow as pa  # here, not above: the command line must start fast
    import pyarrow.parquet as pq

    types = {
        FieldType.KEYWORDS: pa.list_(pa.string()),
        FieldType.INTEGER: pa.int64(),
        FieldType.FLOAT: pa.float64(),
        FieldType.DATE: pa.timestamp("ms", tz="UTC"),
        FieldType.BOOLEAN: pa.bool_(),
    }
    key = _key(schema)
    columns = [*([key] if key else []), *schema.fields]
    arrow = pa.schema([(each.name, types.get(each.type, pa.string())) for each in columns])
    rows: list[list[Any]] = []

    with pq.ParquetWriter(stream, arrow, compression="zstd") as writer:

        def flush() -> None:
            cells = zip(*rows, strict=True) if rows else ([] for _ in columns)
            writer.write_batch(pa.record_batch(list(map(list, cells)), schema=arrow))
            rows.clear()

        def put(document: Document) -> None:
            values = [document.values.get(field.name) for field in schema.fields]
            rows.append([_own(key, document), *values] if key else values)
            if len(rows) == _ROWS:
                flush()

        yield put
        flush()


_FORMS: Mapping[str, Callable[[Schema, BinaryIO], Any]] = {
    ".jsonl": _jsonl,
    ".csv": partial(_separated, ","),
    ".tsv": partial(_separated, "\t"),
    ".parquet": _parquet,
}


def _key(schema: Schema) -> Field | None:
    """The column of the document's id; None where it is made of several fields."""
    if schema.table is None:
        return Field("id", FieldType.KEYWORD)
    return schema.table.key[0] if len(schema.table.key) == 1 else None


def _own(key: Field, document: Document) -> str | int:
    return int(document.id) if key.type is FieldType.INTEGER else document.id


def _cell(field: Field, document: Document) -> object:
    value = document.values.get(field.name)
    if isinstance(value, list):
        if held := [each for each in value if _BETWEEN in each or not each]:
            raise CorpusError(
                f"Document {document.id!r} has the keyword {held[0]!r} in {field.name}, which "
                f"cells joined by {_BETWEEN} cannot hold; write .jsonl or .parquet."
            )
        return _BETWEEN.join(value)
    if field.type is FieldType.BOOLEAN and value is not None:
        return "true" if value else "false"
    if field.type is FieldType.DATE and value is not None:
        moment = _EPOCH + timedelta(milliseconds=value)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A file beside ``path`` that becomes it once it is whole, and else goes."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error
    temporary = Path(name)
    try:
        yield temporary
        os.fsync(handle)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        os.close(handle)
        temporary.unlink(missing_ok=True)  # not there once it was renamed


@contextmanager
def _compressing(temporary: Path, path: Path) -> Iterator[BinaryIO]:
    """``temporary``, open to be written and packed as the end of ``path`` says."""
    suffix = path.suffix.lower()
    if suffix == ".lz4":
        raise CorpusError(f"{path}: .lz4 is read but not written; use .zst.")
    packing = _PACKING.get(suffix, nullcontext)
    with temporary.open("wb", buffering=_BUFFER_BYTES) as below, packing(below) as stream:
        yield stream


def _zstd(below: BinaryIO) -> Any:
    import pyarrow as pa  # here, not above: the command line must start fast

    return pa.CompressedOutputStream(below, "zstd")


_PACKING: Mapping[str, Callable[[BinaryIO], Any]] = {
    # Without a name and a time in its head, so that the same documents give the same bytes.
    ".gz": lambda below: gzip.GzipFile("", "wb", compresslevel=6, fileobj=below, mtime=0),
    ".xz": partial(lzma.LZMAFile, mode="wb"),
    ".bz2": partial(bz2.BZ2File, mode="wb"),
    ".zst": _zstd,
}


def _unwritable(path: Path, error: OSError) -> CorpusError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return CorpusError(
            f"The disk is full, so {path} was not written; make room, or write elsewhere."
        )
    return CorpusError(f"{path} cannot be written: {error.strerror or error}.")
