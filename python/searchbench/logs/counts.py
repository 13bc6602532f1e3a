"""What was counted of a log: tables of columns, as the core gives them (``rust/logs`` tables.rs).

    groups       kind, name, and what is counted of each group (``NUMBERS``)
    times        kind, name, bucket, n: how many of a group took how long
    minutes      minute (since 1970), n, sum_ns, max_ns, zero, errors, coarse, slowest
    queries      hash, text, n, sum_ns, max_ns, zero, errors, first (minute)
    hits         n, by number of hits: 0, 1, 2-3, 4-7, ..
    resolutions  server, resolution_ns, n: how fine the log of a server writes times
    dropped      below, dropped, registers: what was too much to be counted exactly

Columns of numbers are u64, those of text are bytes: logs are not always UTF-8. Counts of several
readings add up to those of one reading of everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from searchbench import _core
from searchbench.errors import QueryError, RecordError
from searchbench.logs.parquet import readable, with_names
from searchbench.logs.sources import Source
from searchbench.logs.within import Within
from searchbench.logs.zones import offsets

NUMBERS = (
    "n", "timed", "sum_ns", "max_ns", "hits_known", "hits", "zero", "errors", "partial", "cached",
    "cpu_known", "cpu_us", "ios_known", "ios",
)  # fmt: skip
TEXTS = {
    "groups": ("kind", "name"),
    "times": ("kind", "name"),
    "minutes": ("coarse", "slowest"),
    "queries": ("text",),
    "resolutions": ("server",),
    "dropped": ("registers",),
}
PARAMETERS = ("q", "query", "s", "search", "term", "terms", "keyword", "keywords", "words", "text")
DISTINCT = 10_000_000
OTHERS = "(others)"
"""The name of the names of a kind that were too many to be told apart."""
MOST_NAMES = 20_000
_PART_ROWS = 1 << 18  # that are added at once; the core takes copies of them


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says of logs that do not say it.

    ``format``: of all sources; "" is told by content. ``unit``: of a whole number that is a
    duration in an access log ("s", "ms", "us"). ``parameters``: of a path, that hold words.
    ``columns``: (name, role, unit). ``line``: a format string. ``distinct``: queries counted
    exactly. ``zone``: of all logs that do not name theirs; ``zones``: of single servers, by name.
    ``within``: what is counted; None: everything.
    """

    zone: str = ""
    format: str = ""
    unit: str = ""
    parameters: tuple[str, ...] = PARAMETERS
    columns: tuple[tuple[str, str, str], ...] = ()
    line: str = ""
    threads: int = 0
    distinct: int = DISTINCT
    keep_tail: bool = False
    zones: tuple[tuple[str, str], ...] = ()
    within: Within | None = None


@dataclass(slots=True)
class Counts:
    """The tables by name, and what became of each source, in the order of reading."""

    tables: dict[str, pa.Table]
    sources: list[dict[str, Any]] = field(default_factory=list)

    def numbers(self, table: str, column: str) -> NDArray[np.uint64]:
        """A column of numbers."""
        found: NDArray[np.uint64] = self.tables[table].column(column).to_numpy()
        return found

    def texts(self, table: str, column: str) -> list[str]:
        """A column of text; bytes that are no UTF-8 are replaced."""
        values = self.tables[table].column(column).to_pylist()
        return [value.decode("utf-8", errors="replace") for value in values]


class Stored(Mapping[str, pa.Table]):
    """Tables in files of a folder, each read when it is wanted: ten million queries are a gigabyte.

    RecordError where one cannot be read.
    """

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._folder, self._names = folder, tuple(names)

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._names:
            raise KeyError(name)
        return pa.concat_tables(self.parts(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def parts(self, name: str) -> Iterator[pa.Table]:
        """A table by and by."""
        path = self._folder / f"{name}.parquet"
        try:
            with pq.ParquetFile(path) as file:
                schema = file.schema_arrow
                yield schema.empty_table()
                for batch in file.iter_batches(_PART_ROWS):
                    yield pa.Table.from_batches([batch], schema)
        except (OSError, pa.ArrowException) as error:
            raise RecordError(f"{path} cannot be read: {error}") from error


UNITS_NS = {"": 0, "s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def insist_known(options: Options) -> None:
    """QueryError where the unit of times or the format is none that there is."""
    if options.unit not in UNITS_NS:
        raise QueryError(f"{options.unit!r} is not a unit of time; there are s, ms, us")
    if options.format and options.format not in _core.LOG_FORMATS:
        raise QueryError(
            f"{options.format!r} is not a format of a log; there are {', '.join(_core.LOG_FORMATS)}"
        )


Opened = tuple[bytes, bytes, bytes, int | None, int | None]
"""What a reading leaves open: the state of its reader, lines of the file before that are not read,
the lines from which on the next one reads, the time of the last entry, the second of the last
stamp."""
Tick = Callable[[int], object]
"""Is told the bytes that were read so far."""


class Counting(Protocol):
    """A way to read sources and count them: ``count``, or one that others do."""

    def __call__(
        self,
        sources: Sequence[Source],
        options: Options,
        before: Mapping[str, pa.Table] | None = None,
        on_tick: Tick | None = None,
    ) -> Counts:
        """As ``count``."""


def count(
    sources: Sequence[Source],
    options: Options,
    before: Mapping[str, pa.Table] | None = None,
    on_tick: Tick | None = None,
) -> Counts:
    """Read sources and count them, together with what was counted ``before``.

    QueryError where none of them is a log, where one is damaged, or where an option is wrong.
    """
    log = _core.Log(options.distinct)
    if before is not None:
        add_tables(log, before)
    read = read_into(log, sources, options, on_tick=on_tick)
    return Counts(tables_of(log), [finished(s, r) for s, r in zip(sources, read, strict=True)])


def read_into(
    log: _core.Log,
    sources: Sequence[Source],
    options: Options,
    parts: Sequence[tuple[int, int, int] | None] = (),
    on_tick: Tick | None = None,
) -> list[dict[str, Any]]:
    """Read sources, or parts of them, into a log; what became of each, as the core says it.

    ``parts``: as of the core. Errors as of ``count``.
    """
    insist_known(options)
    named = named_format(options)
    with readable(sources) as paths:
        try:
            read = log.read(
                [
                    (path, s.server, s.format, 0)
                    if s.again_from
                    else (path, s.server, named or s.format, s.skip_bytes)
                    for s, path in zip(sources, paths, strict=True)
                ],
                **settings(options),
                threads=options.threads,
                keep_tail=options.keep_tail,
                parts=list(parts),
                follows=[s.follows for s in sources],
                opens=[_open_of(s, part) for s, part in zip_longest(sources, parts)],
                on_tick=on_tick,
            )
        except ValueError as error:
            raise QueryError(with_names(str(error), sources, paths)) from None
    for source, path, found in zip(sources, paths, read, strict=True):
        del found["clock"]  # a record has it in what is open
        own_names(found, source, path)
        if source.again_from:
            _without_header(found, source)
    return read


def _open_of(source: Source, part: tuple[int, int, int] | None) -> Opened:
    """What was left open, for the reading that begins where the last one ended."""
    return source.opened if part is None or part[1] == 0 else (b"", b"", b"", None, None)


def settings(options: Options) -> dict[str, Any]:
    """What the core's readers are told of how logs are written."""
    return {
        "zone": list(offsets(options.zone)),
        "zones": [(server, list(offsets(zone))) for server, zone in options.zones],
        "unit_ns": UNITS_NS[options.unit],
        "parameters": list(options.parameters),
        "columns": list(options.columns),
        "line": options.line,
        "within": None if options.within is None else options.within.span_ns,
    }


def refused_source(source: Source, why: str) -> dict[str, Any]:
    """What the core says of a source that is left out."""
    return {
        "path": source.path, "server": source.server, "format": "", "refused": why, "bytes": 0,
        "skipped_bytes": source.skip_bytes, "lines": 0, "entries": 0, "unread": 0,
        "longest_line": 0, "back": 0, "examples": [], "other_formats": [],
        "notes": {},
    }  # fmt: skip


def own_names(found: dict[str, Any], source: Source, path: str) -> None:
    """What became of a source that was read at ``path``, with the source's own path."""
    found["path"] = source.path
    found["refused"] = with_names(found["refused"], [source], [path])


def named_format(options: Options) -> str:
    """The format that the user names for all sources; "" where each is told by its content."""
    return "line" if options.line else options.format


def finished(source: Source, read: dict[str, Any]) -> dict[str, Any]:
    """What became of a source, with what a record knows it again by."""
    read["read_bytes"] = source.skip_bytes + read["bytes"]
    read["head_bytes"], read["digest"] = source.head_bytes, source.digest
    read["known_as"] = source.known_as
    read["goes_on"] = bool(source.follows)
    # Which note a reading comes upon first depends on where it begins.
    read["notes"] = dict(sorted(read["notes"].items()))
    return read


def add_tables(log: _core.Log, tables: Mapping[str, pa.Table]) -> None:
    """Add counts to a log. QueryError where they are no such tables."""
    try:
        for name in tables:
            for part in _parts(tables, name):
                log.add({name: _columns(part)})
    except ValueError as error:
        raise QueryError(str(error)) from None


def _parts(tables: Mapping[str, pa.Table], name: str) -> Iterator[pa.Table]:
    if isinstance(tables, Stored):
        yield from tables.parts(name)
        return
    table = tables[name]
    for at in range(0, max(1, len(table)), _PART_ROWS):
        yield table.slice(at, _PART_ROWS)


def tables_of(log: _core.Log) -> dict[str, pa.Table]:
    """What was counted, by name; the log is empty afterwards."""
    return as_tables(log.tables())


def as_tables(given: Mapping[str, Mapping[str, Any]]) -> dict[str, pa.Table]:
    """The tables that the core gives, by name."""
    return {name: _table(columns) for name, columns in given.items()}


def _without_header(found: dict[str, Any], source: Source) -> None:
    """What became of a file whose header was read again, as if it had not been."""
    found["bytes"] -= source.header_bytes
    found["lines"] -= 1
    found["examples"] = [(line - 1, *rest) for line, *rest in found["examples"]]


def _table(given: Mapping[str, Any]) -> pa.Table:
    return pa.table({column: _array(values) for column, values in given.items()})


def _array(values: Any) -> pa.Array:
    if not isinstance(values, tuple):
        return pa.array(np.frombuffer(values, np.uint64))
    data, ends = values
    starts = np.concatenate(([0], np.frombuffer(ends, np.uint64))).astype(np.int64)
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(starts) - 1, buffers)


def _columns(table: pa.Table) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_integer(column.type):
            found[name] = np.ascontiguousarray(column.to_numpy(), np.uint64)
            continue
        found[name] = flat(column.cast(pa.large_binary()).combine_chunks())
    return found


def flat(values: pa.Array) -> tuple[Any, NDArray[np.uint64]]:
    """The bytes of all values one after another, and where each ends."""
    _, places, data = values.buffers()
    if data is None or not len(values):
        return b"", np.zeros(len(values), np.uint64)
    at = np.frombuffer(places, np.int64)[values.offset : values.offset + len(values) + 1]
    return np.frombuffer(data, np.uint8)[at[0] : at[-1]], (at[1:] - at[0]).astype(np.uint64)
