"""The tables of a trial: samples, replies, probe, reads and writes; all their columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from searchbench.errors import RecordError

_INSTANTS = ("due", "free", "connect", "sent", "first_byte", "done")
SAMPLES = pa.schema(
    [
        ("query", pa.uint32()),
        ("connection", pa.uint16()),
        ("outcome", pa.uint8()),
        ("bytes", pa.uint32()),
        *((name, pa.int64()) for name in (*_INSTANTS, "host")),
        ("role", pa.uint8()),
    ]
)

REPLIES = pa.schema(
    [
        ("query", pa.uint32()),
        ("phase", pa.string()),
        ("outcome", pa.uint8()),
        ("total", pa.int64()),
        ("total_exact", pa.bool_()),
        ("ids", pa.list_(pa.string())),
        ("scores", pa.list_(pa.float64())),
        ("facets", pa.string()),
        ("groups", pa.string()),
        ("warnings", pa.list_(pa.string())),
        ("error", pa.string()),
        # Of replies that were kept under load: when asked, and when answered.
        ("asked", pa.int64()),
        ("answered", pa.int64()),
    ]
)

# An entry for each core, at the place of its number; null where it is not there.
_OF_A_CORE = ("busy_s", "interrupts_s", "steal_s", "idle_s", "mhz")
_KINDS_OF_A_CORE = ("nice_s", "iowait_s", "softirq_s")
_DEVICE = pa.struct(
    [
        ("name", pa.string()),
        *((name, pa.int64()) for name in ("reads", "read_bytes")),
        ("read_s", pa.float64()),
        *((name, pa.int64()) for name in ("writes", "written_bytes")),
        ("write_s", pa.float64()),
        ("in_flight", pa.int64()),
        *((name, pa.float64()) for name in ("busy_s", "waited_s")),
    ]
)
_LINK = pa.struct(
    [
        ("name", pa.string()),
        *(
            (name, pa.int64())
            for name in ("received_bytes", "received", "sent_bytes", "sent", "dropped")
        ),
    ]
)
_THREAD = pa.struct(
    [("pid", pa.int64()), ("thread", pa.int64()), ("name", pa.string()), ("cpu_s", pa.float64())]
)
PROBE = pa.schema(
    [
        ("t", pa.int64()),
        ("server_cpu_s", pa.float64()),
        ("client_cpu_s", pa.float64()),
        ("host_user_s", pa.float64()),
        ("host_system_s", pa.float64()),
        ("host_steal_s", pa.float64()),
        ("host_iowait_s", pa.float64()),
        ("host_idle_s", pa.float64()),
        ("server_rss_bytes", pa.int64()),
        ("server_read_bytes", pa.int64()),
        ("server_write_bytes", pa.int64()),
        ("server_threads", pa.int32()),
        ("pressure_cpu", pa.float64()),
        ("pressure_io", pa.float64()),
        ("pressure_memory", pa.float64()),
        ("server_major_faults", pa.int64()),
        *((f"stalled_{name}_s", pa.float64()) for name in ("cpu", "io", "memory")),
        ("throttled", pa.int64()),
        *((f"core_{name}", pa.list_(pa.float64())) for name in _OF_A_CORE),
        ("jvm_compilers_s", pa.float64()),
        ("jvm_collectors_s", pa.float64()),
        *((f"host_{name}_s", pa.float64()) for name in ("nice", "irq", "softirq")),
        *((f"core_{name}", pa.list_(pa.float64())) for name in _KINDS_OF_A_CORE),
        *((name, pa.int64()) for name in ("running", "blocked", "switches")),
        *(
            (f"memory_{name}_bytes", pa.int64())
            for name in ("free", "available", "cached", "dirty", "writeback")
        ),
        *((name, pa.int64()) for name in ("host_faults", "host_major_faults")),
        *((f"pages_swapped_{where}", pa.int64()) for where in ("in", "out")),
        ("devices", pa.list_(_DEVICE)),
        ("links", pa.list_(_LINK)),
        ("server_busiest", pa.list_(_THREAD)),
        ("server_pss_bytes", pa.int64()),
    ]
)

# A row for each exchange of an operation: which row of samples.parquet it is part of, its number
# within what is timed, and its instants.
STATEMENTS = pa.schema(
    [
        ("sample", pa.uint32()),
        ("exchange", pa.uint32()),
        *((name, pa.int64()) for name in ("sent", "first_byte", "done")),
    ]
)

# A row for each phase, source, file system and call. Of sizes each power of two that occurred, by
# its lower end; fsync and its like, and flushes, have a count alone.
IO = pa.schema(
    [
        *((name, pa.string()) for name in ("phase", "source", "storage", "where", "filesystem")),
        ("call", pa.string()),
        ("count", pa.int64()),
        ("bytes", pa.int64()),
        ("sizes", pa.list_(pa.struct([("from", pa.int64()), ("count", pa.int64())]))),
    ]
)

_NO_HOST_TIME = (1 << 40) - 1


@dataclass(frozen=True, slots=True)
class SoFar:
    """A drive under way, as whoever decides on the end of its warm-up sees it.

    Requests that ended well, in arrays of one length: ``query`` (uint32), instants in ns since the
    start, and whether it was the first ask of its query since the system was made ready.
    ``distinct``: how many queries the load has. ``at_s``: now; ``limit_s``: the latest end.
    """

    query: np.ndarray[Any, np.dtype[np.uint32]]
    due: np.ndarray[Any, np.dtype[np.int64]]
    sent: np.ndarray[Any, np.dtype[np.int64]]
    done: np.ndarray[Any, np.dtype[np.int64]]
    first: np.ndarray[Any, np.dtype[np.bool_]]
    closed: bool
    distinct: int
    at_s: float
    limit_s: float


# Columns that records written before them lack: read as null.
_LATER = {
    *("connect", "role", "asked", "answered"),
    *PROBE.names[PROBE.get_field_index("server_major_faults") :],
}


def samples_table(
    raw: np.ndarray[Any, Any], request_to_query: np.ndarray[Any, Any], role: int = 0
) -> pa.Table:
    """The core's samples as the record's columns.

    ``raw``: structured array of ``_core.SAMPLE_DTYPE``; ``request_to_query``: uint32, the
    distinct query of each prepared request; ``role``: the number of the role they are of. Instants
    of -1 become null.
    """

    def instant(name: str) -> pa.Array:
        values = np.ascontiguousarray(raw[name])
        return pa.array(values, mask=values < 0)

    host = (raw["host_high"].astype(np.int64) << 32) | raw["host_low"].astype(np.int64)
    columns = [
        pa.array(request_to_query[raw["request"]].astype(np.uint32)),
        pa.array(np.ascontiguousarray(raw["connection"])),
        pa.array(np.ascontiguousarray(raw["outcome"])),
        pa.array(np.ascontiguousarray(raw["bytes"])),
        *(instant(name) for name in _INSTANTS),
        pa.array(host, mask=host == _NO_HOST_TIME),
        pa.array(np.full(len(raw), role, np.uint8)),
    ]
    return pa.Table.from_arrays(columns, schema=SAMPLES)


def statements_table(raw: np.ndarray[Any, Any]) -> pa.Table:
    """The core's exchanges, a structured array of ``_core.EXCHANGE_DTYPE``, as the record's."""
    columns = []
    for field in STATEMENTS:
        values = np.ascontiguousarray(raw[field.name])
        mask = values < 0 if field.type == pa.int64() else None
        columns.append(pa.array(values, mask=mask))
    return pa.Table.from_arrays(columns, schema=STATEMENTS)


def read_table(path: Path, schema: pa.Schema, columns: list[str] | None) -> pa.Table:
    """The table of a file, ``columns`` of it if given; empty where there is no file.

    RecordError where it is damaged or has not our columns.
    """
    wanted = columns or schema.names
    try:
        with pq.ParquetFile(path) as file:
            there = file.schema_arrow.names
            table = file.read([name for name in wanted if name in there])
    except FileNotFoundError:
        return pa.schema([schema.field(name) for name in wanted]).empty_table()
    except (pa.ArrowInvalid, OSError) as error:
        raise RecordError(f"{path}: cannot be read ({error}); the file is damaged") from error
    missing = [name for name in wanted if name not in there]
    if not set(missing) <= _LATER:
        raise RecordError(f"{path}: has no column {', '.join(missing)}; it is not ours")
    for name in missing:
        nulls = pa.nulls(table.num_rows, schema.field(name).type)
        table = table.add_column(wanted.index(name), schema.field(name), nulls)
    return table


def write_tables(path: Path, tables: Iterable[pa.Table]) -> None:
    """Write tables of one schema into one file, as they come."""
    rest = iter(tables)
    first = next(rest)
    with pq.ParquetWriter(path, first.schema, compression="zstd", compression_level=1) as writer:
        writer.write_table(first)
        for table in rest:
            writer.write_table(table)
