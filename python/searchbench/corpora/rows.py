"""Raw rows of one file, each with its line: JSON lines, CSV, TSV, Parquet, a text file.

A row is a mapping, or a string that says why the line is none. Nothing is judged here.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from searchbench.corpora.streams import (
    LINE_LIMIT_BYTES,
    lines,
    not_utf8,
    opened,
    text_lines,
    unreadable,
)
from searchbench.errors import CorpusError
from searchbench.packed import COMPRESSED, inner_suffix

Format = Literal["jsonl", "csv", "tsv", "parquet", "text"]
Row = tuple[int, Mapping[str, Any] | str]
TEXT_COLUMNS = ("id", "title", "body")

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
        import pyarrow.parquet as pq

        with _parquet_errors(path), pq.ParquetFile(path) as file:
            return tuple(file.schema_arrow.names)
    if dialect.format in ("csv", "tsv"):
        with opened(path) as stream:
            return _header(path, _reader(text_lines(path, stream), dialect))
    return None


def _jsonl(path: Path) -> Iterator[Row]:
    first = True
    with opened(path) as stream:
        for number, line in lines(path, stream):
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                if not line.strip():
                    continue
                _check_utf8(path, number, line)
                if first and line.lstrip().startswith(b"["):
                    raise _array(path) from error
                row = None
                yield number, f"this is not JSON ({error})"
            if isinstance(row, dict):
                yield number, row
            elif first and isinstance(row, list):
                raise _array(path)
            elif row is not None:
                yield number, "this is not a JSON object"
            first = False


def _array(path: Path) -> CorpusError:
    return CorpusError(
        f"{path}:1: this is one JSON array, and one object a line is expected; "
        "convert it with: jq -c '.[]'."
    )


def _check_utf8(path: Path, number: int, line: bytes) -> None:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        raise not_utf8(path, number, error) from error


def _reader(stream: Iterator[str], dialect: Dialect) -> Any:
    csv.field_size_limit(LINE_LIMIT_BYTES)
    quoting: dict[str, Any] = {"quoting": csv.QUOTE_NONE}
    if dialect.quote:
        quoting = {"quotechar": dialect.quote}
    delimiter = dialect.delimiter or ("\t" if dialect.format == "tsv" else ",")
    # strict: a stray quote is an error with a line, where it would be mended without a word.
    return csv.reader(stream, delimiter=delimiter, strict=True, **quoting)


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
            f"{path}:1: the column {twice[0]!r} is there {names.count(twice[0])} times; "
            "name each column once."
        )
    return names


def _table(path: Path, dialect: Dialect) -> Iterator[Row]:
    with opened(path) as stream:
        reader = _reader(text_lines(path, stream), dialect)
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
    import pyarrow.parquet as pq

    number = 0
    with _parquet_errors(path), pq.ParquetFile(path, pre_buffer=False) as file:
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


class _parquet_errors:  # noqa: N801 -- reads as a clause of ``with``
    """Turns what pyarrow raises about a file into a CorpusError."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        if self.path.suffix.lower() in COMPRESSED:
            raise CorpusError(
                f"{self.path}: Parquet is compressed within; unpack the file and name that."
            )

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        import pyarrow as pa

        if isinstance(error, (OSError, pa.ArrowException)):
            raise unreadable(self.path, error) from error


def _text(source: Source) -> Iterator[Row]:
    with opened(source.path) as stream:
        content = stream.read(LINE_LIMIT_BYTES + 1)
    if len(content) > LINE_LIMIT_BYTES:
        yield 1, f"this text is longer than {LINE_LIMIT_BYTES >> 20} MiB"
        return
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        body = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise not_utf8(source.path, line, error) from error
    yield 1, {"id": source.relative, "title": source.path.name, "body": body or None}
