"""What the executors do: count pieces of a log, and merge the counts of several of them.

Counts leave a task under keys, so that they can be merged side by side: the distinct queries in
slices by their hash, all else together. What crosses is bytes: Spark's own wire has no tables.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from searchbench import _core
from searchbench.logs.counts import Options, add_tables, tables_of
from searchbench.logs.pieces import Piece, count_pieces

REST = 0
"""The key of all tables but that of the queries, and of what became of the pieces."""
SLICES = 16
"""Slices of the queries, by the first bits of their hash: they have the keys from 1 on. A slice has
whole shards of the core's table, so a limit of distinct queries is in force for each as for all."""
_SLICE_BITS = 4


def read(pieces: list[Piece], options: Options, again: bool) -> list[tuple[int, bytes]]:
    """The counts of pieces by key. ``again``: the task was begun before; the driver is told so.

    QueryError where a piece cannot be read, or is another file here.
    """
    log = _core.Log(options.distinct)
    found = count_pieces(log, pieces, options)
    tables = tables_of(log)
    queries = tables.pop("queries")
    hashes = queries.column("hash").to_numpy()
    limits = np.arange(1, SLICES, dtype=np.uint64) << np.uint64(64 - _SLICE_BITS)
    ends = [0, *np.searchsorted(hashes, limits).tolist(), len(hashes)]
    slices = [
        (key, packed({"queries": queries.slice(ends[key - 1], ends[key] - ends[key - 1])}))
        for key in range(1, SLICES + 1)
        if ends[key] > ends[key - 1]
    ]
    return [(REST, packed(tables, [(found, again)])), *slices]


def merge(parts: Iterable[bytes], distinct: int) -> bytes:
    """What several tasks counted under one key, as if one had."""
    log = _core.Log(distinct)
    found: list[Any] = []
    for part in parts:
        tables, more = unpacked(part)
        add_tables(log, tables)
        found += more
    return packed(tables_of(log), found)


def packed(tables: Mapping[str, pa.Table], found: Iterable[Any] = ()) -> bytes:
    """Tables, and what became of pieces, as bytes."""
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    streams = {}
    for name, table in tables.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        streams[name] = sink.getvalue().to_pybytes()
    return pickle.dumps((streams, list(found)))


def unpacked(part: bytes) -> tuple[dict[str, pa.Table], list[Any]]:
    """What ``packed`` made bytes of."""
    streams, found = pickle.loads(part)
    return {name: pa.ipc.open_stream(s).read_all() for name, s in streams.items()}, found
