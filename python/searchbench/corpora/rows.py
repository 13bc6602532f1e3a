"""Raw rows of one file, each with its line: JSON lines, CSV, TSV, Parquet, a text file.

A row is a mapping, or a string that says why the line is none. Nothing is judged here. Files may
be compressed.
"""

from __future__ import annotations

import csv
import lzma
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal

import orjson

from searchbench.corpora.delimiter import detected
from searchbench.errors import CorpusError
from searchbench.packed import COMPRESSED, inner_suffix, open_packed

Format = Literal["jsonl", "csv", "tsv", "parquet", "text"]
Row = tuple[int, Mapping[str, Any] | str]
TEXT_COLUMNS = ("id", "title", "body")

LINE_LIMIT_BYTES = 64 << 20
"""The longest line, cell or text file taken: beyond it, the file is not what it seems to be."""

_SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "text",
    ".text": "text",
    ".md": "text",
    ".rst": "text",
}
_PARQUET_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Source:
    """One file. ``relative`` is its path below the folder that was asked for."""

    path: Path
    relative: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """How rows are cut. ``delimiter`` "" is the format's own; ``quote`` "" means no quoting."""

    format: Format
    delimiter: str = ""
    quote: str = '"'


def format_of(path: Path) -> Format | None:
    """The format that the end of the name tells, below the compression; None if it does not."""
    return _SUFFIXES.get(inner_suffix(path))


def rows(source: Source, dialect: Dialect) -> Iterator[Row]:
    """The rows of one file, streamed; CorpusError where the file itself is unusable."""
    if dialect.format == "jsonl":
        return _jsonl(source.path)
    if dialect.format == "parquet":
        return _parquet(source.path)
    if dialect.format == "text":
        return _text(source)
    return _table(source.path, dialect)


def header(path: Path, dialect: Dialect) -> tuple[str, ...] | None:
    """The columns that a file declares before its rows; None where each row has its own."""
    if dialect.format == "text":
        return TEXT_COLUMNS
    if dialect.format == "parquet":
        with _parquet_file(path) as file:
            return tuple(file.schema_arrow.names)
    if dialect.format in ("csv", "tsv"):
        with opened(path) as stream:
            return _header(path, _reader(_text_lines(path, stream), dialect))
    return None


def with_delimiter(path: Path, dialect: Dialect) -> Dialect:
    """The dialect with what separates the cells of this file; CorpusError where that is unclear."""
    if dialect.delimiter or dialect.format not in ("csv", "tsv"):
        return dialect
    with opened(path) as stream:
        lines = _text_lines(path, stream)
        found = detected(str(path), lines, usual(dialect), dialect.quote)
    return replace(dialect, delimiter=found)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The uncompressed bytes of a file, buffered; CorpusError where it cannot be read."""
    try:
        with open_packed(path) as stream:
            yield stream
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise _unreadable(path, error) from error


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


def _text_lines(path: Path, stream: BinaryIO) -> Iterator[str]:
    """Each line as text; CorpusError that names file and line where it is not UTF-8."""
    for number, line in lines(path, stream):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise _not_utf8(path, number, error) from error


def _decoded(path: Path, line: int, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(path, line + content.count(b"\n", 0, error.start), error) from error


def _not_utf8(path: Path, line: int, error: UnicodeDecodeError) -> CorpusError:
    return CorpusError(
        f"{path}:{line}: byte 0x{error.object[error.start]:02x} is not UTF-8; convert the file "
        "with iconv -f ENCODING -t UTF-8 (often ENCODING is WINDOWS-1252)."
    )


def _unreadable(path: Path, error: Exception) -> CorpusError:
    """What is said of a file that the system, or its own compression, does not let us read."""
    if isinstance(error, FileNotFoundError):
        return CorpusError(f"There is no file {path}; paths are relative to the study file.")
    if isinstance(error, OSError) and error.strerror:
        return CorpusError(f"{path} cannot be read: {error.strerror}.")
    return CorpusError(
        f"{path} cannot be read: {error}; it may be damaged, or cut short, "
        "or its name does not match its compression."
    )


def _jsonl(path: Path) -> Iterator[Row]:
    first = True
    with opened(path) as stream:
        for number, line in lines(path, stream):
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                if not line.strip():
                    continue
                _decoded(path, number, line)
                if first and line.lstrip().startswith(b"["):
                    raise _array(path) from error
                yield number, f"this is not JSON ({error})"
            else:
                if first and isinstance(row, list):
                    raise _array(path)
                yield number, row if isinstance(row, dict) else "this is not a JSON object"
            first = False


def _array(path: Path) -> CorpusError:
    return CorpusError(
        f"{path}:1: this is one JSON array, and one object a line is expected; "
        "convert it with: jq -c '.[]'."
    )


def _reader(stream: Iterator[str], dialect: Dialect) -> Any:
    csv.field_size_limit(LINE_LIMIT_BYTES)
    quoting: dict[str, Any] = (
        {"quotechar": dialect.quote} if dialect.quote else {"quoting": csv.QUOTE_NONE}
    )
    # strict: a stray quote is an error with a line, where it would be mended without a word.
    return csv.reader(stream, delimiter=dialect.delimiter or usual(dialect), strict=True, **quoting)


def usual(dialect: Dialect) -> str:
    """What separates cells by the name of the format."""
    return "\t" if dialect.format == "tsv" else ","


def _usual(dialect: Dialect) -> str:
    return "\t" if dialect.format == "tsv" else ","


def _header(path: Path, reader: Any) -> tuple[str, ...]:
    try:
        names = tuple(name.strip() for name in next(reader, ()))
    except csv.Error as error:
        raise CorpusError(f"{path}:1: the header cannot be read: {error}.") from error
    if not names:
        raise CorpusError(f"{path}:1: a header with the names of the columns is expected.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise CorpusError(
            f"{path}:1: the column {twice[0]!r} occurs {names.count(twice[0])} times; "
            "name each column once."
        )
    return names


def _table(path: Path, dialect: Dialect) -> Iterator[Row]:
    with opened(path) as stream:
        reader = _reader(_text_lines(path, stream), dialect)
        names = _header(path, reader)
        width = len(names)
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                if "field larger" in str(error):
                    raise CorpusError(
                        f"{path}:{line}: the row that begins here has a cell above "
                        f"{LINE_LIMIT_BYTES >> 20} MiB; a quote may not be closed."
                    ) from error
                yield line, f"this row cannot be read ({error})"
                continue
            if len(cells) == width:
                yield line, {n: cell or None for n, cell in zip(names, cells, strict=True)}
            elif cells:  # an empty line is no row
                yield line, f"this row has {len(cells)} cells, and the header {width}"


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.compute as pc

    number = 0
    with _parquet_file(path, pre_buffer=False) as file:
        for batch in file.iter_batches(batch_size=_PARQUET_ROWS, use_threads=False):
            columns = []
            for column in batch.columns:
                if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
                    # Python's datetime ends at microseconds, and a corpus's date sooner.
                    coarse = pa.timestamp("ms", column.type.tz)
                    column = pc.floor_temporal(column, unit="millisecond").cast(coarse, safe=False)
                columns.append(column.to_pylist())
            names = batch.schema.names
            for cells in zip(*columns, strict=True):
                number += 1
                yield number, dict(zip(names, cells, strict=True))


@contextmanager
def _parquet_file(path: Path, **options: bool) -> Iterator[Any]:
    """An open ParquetFile; CorpusError for what pyarrow raises about it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix.lower() in COMPRESSED:
        raise CorpusError(f"{path}: Parquet is compressed within; unpack the file and name that.")
    try:
        with pq.ParquetFile(path, **options) as file:
            yield file
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


def _text(source: Source) -> Iterator[Row]:
    with opened(source.path) as stream:
        content = stream.read(LINE_LIMIT_BYTES + 1)
    if len(content) > LINE_LIMIT_BYTES:
        yield 1, f"this text is longer than {LINE_LIMIT_BYTES >> 20} MiB"
        return
    body = _decoded(source.path, 1, content.removeprefix(b"\xef\xbb\xbf"))
    yield 1, {"id": source.relative, "title": source.path.name, "body": body or None}
