"""Logs that are kept as Parquet: the lines are the rows of one column of text, in their order.

The core reads files and streams of lines. So the rows are given to it through a named pipe, as fast
as it takes them, and nothing is unpacked onto a disk.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from searchbench.errors import QueryError

if TYPE_CHECKING:
    from searchbench.logs.sources import Source

VALUE = "value"
"""The column that has the lines where the user names none: so Spark calls the lines of a text."""
_ROWS = 16_384  # of a batch
_PIECE = 1 << 20  # bytes that are written at once
_AT_ONCE = 512  # pipes; the core takes sources in order, and has three for each thread open at most


def is_parquet(path: str | Path) -> bool:
    """Whether a file is Parquet by its first bytes; False where it cannot be read, or is a pipe."""
    try:
        # What is read of a pipe is lost for who reads it next.
        if not Path(path).is_file():
            return False
        with Path(path).open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return False


def column_of(path: str | Path, named: str) -> str:
    """The column of text that has the lines: ``named``, or ``value``.

    QueryError with the remedy where there is none.
    """
    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException) as error:
        raise QueryError(f"{path} is damaged: {_first_line(error)}") from None
    wanted = named or VALUE
    texts = [field.name for field in schema if _is_text(field.type)]
    if wanted in texts:
        return wanted
    there = f"its columns of text are {', '.join(texts)}" if texts else "it has no column of text"
    raise QueryError(f"{path} has no column {wanted} with lines of a log: {there}; name the column "
                     "with --column NAME=line")  # fmt: skip


class Lines(io.RawIOBase):
    """The rows of a column, each with a line break behind it; rows that are null are left out.

    OSError or pyarrow's exceptions where the file is damaged.
    """

    def __init__(self, path: str, column: str) -> None:
        self._file = pq.ParquetFile(path)
        self._batches = self._file.iter_batches(batch_size=_ROWS, columns=[column])
        self._held = memoryview(b"")

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, into: Any) -> int:
        """Bytes that were read; 0 at the end."""
        while not self._held:
            batch = next(self._batches, None)
            if batch is None:
                return 0
            self._held = _text(batch.column(0))
        with memoryview(into).cast("B") as target:
            n = min(len(target), len(self._held))
            target[:n] = self._held[:n]
        self._held = self._held[n:]
        return n

    def close(self) -> None:
        """Closes the file too."""
        if not self.closed:
            self._file.close()
        super().close()


def _text(rows: pa.Array) -> memoryview:
    """All rows one after another."""
    ended = pc.binary_join_element_wise(
        rows.cast(pa.large_binary()),
        pa.scalar(b"", pa.large_binary()),
        pa.scalar(b"\n", pa.large_binary()),
    )
    _, places, data = ended.buffers()
    if data is None or not len(ended):
        return memoryview(b"")
    ends = memoryview(places).cast("q")
    whole = memoryview(data).cast("B")
    return whole[ends[ended.offset] : ends[ended.offset + len(ended)]]


def _is_text(of: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(of)
        or pa.types.is_large_string(of)
        or pa.types.is_binary(of)
        or pa.types.is_large_binary(of)
    )


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0].strip() or type(error).__name__


@contextmanager
def readable(sources: Sequence[Source]) -> Iterator[list[str]]:
    """For each source the path that the core reads: its own, or a pipe with the rows of Parquet.

    QueryError at the end where one of the Parquet files is damaged.
    """
    if not any(source.lines for source in sources):
        yield [source.again_from or source.path for source in sources]
        return
    pipes: list[_Pipe] = []
    paths: list[str] = []
    with (
        TemporaryDirectory(prefix="searchbench-lines-") as folder,
        ThreadPoolExecutor(_AT_ONCE) as threads,
    ):
        try:
            for source in sources:
                path = source.again_from or source.path
                if source.lines and not source.again_from:
                    pipes.append(_Pipe(source, Path(folder) / f"{len(pipes):08d}", threads))
                    path = str(pipes[-1].pipe)
                paths.append(path)
            yield paths
        finally:
            for pipe in pipes:
                pipe.done.cancel()  # where it was not begun
            for pipe in pipes:
                pipe.end()
            broken = next((p for p in pipes if p.failed), None)
            if broken:
                assert broken.failed is not None
                raise QueryError(
                    f"{broken.source.path} is damaged: {_first_line(broken.failed)}"
                ) from broken.failed


def with_names(text: str, sources: Sequence[Source], paths: Sequence[str]) -> str:
    """A sentence of the core with the sources' own paths in place of those that it was given."""
    for source, path in zip(sources, paths, strict=True):
        if path != source.path:
            text = text.replace(path, source.path)
    return text


class _Pipe:
    """A thread that writes the rows of a Parquet file into a pipe, once somebody reads it."""

    def __init__(self, source: Source, pipe: Path, threads: Executor) -> None:
        self.source, self.pipe = source, pipe
        self.failed: Exception | None = None
        os.mkfifo(pipe, 0o600)
        self.done = threads.submit(self._write)

    def _write(self) -> None:
        try:
            # It waits here for a reader; who reads must not wait for ever if the file is damaged.
            with self.pipe.open("wb", _PIECE) as pipe:
                try:
                    with Lines(self.source.path, self.source.lines) as lines:
                        shutil.copyfileobj(lines, pipe, _PIECE)
                except BrokenPipeError:
                    raise
                except (OSError, pa.ArrowException) as error:
                    self.failed = error
        except BrokenPipeError:
            pass  # the reader has what it wanted

    def end(self) -> None:
        """Wait until the thread has ended, whether or not the pipe was read."""
        while not self.done.done():
            os.close(os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK))
            wait([self.done], 0.02)
