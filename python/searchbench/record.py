"""The record on disk: the narrow waist between doing and judging, and the only file that knows
its names. FORMATS.md describes it for readers without us.

Every file is written under a temporary name and renamed, and ``trial.json`` last of its folder:
a trial is on record if, and only if, its ``trial.json`` is there.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from searchbench.errors import RecordError

FORMAT = 1

SAMPLES = pa.schema(
    [
        ("query", pa.uint32()),
        ("connection", pa.uint16()),
        ("outcome", pa.uint8()),
        ("bytes", pa.uint32()),
        ("due", pa.int64()),
        ("free", pa.int64()),
        ("connect", pa.int64()),
        ("sent", pa.int64()),
        ("first_byte", pa.int64()),
        ("done", pa.int64()),
        ("host", pa.int64()),
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
    ]
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
    ]
)

NO_HOST_TIME = (1 << 40) - 1

# Columns of samples.parquet that records written before them lack: read as null.
LATER = ("connect",)


@dataclass(frozen=True)
class Record:
    """A record that was opened to be read; everything is read from disk when asked for."""

    path: Path

    @cached_property
    def about(self) -> dict[str, Any]:
        """record.json: the format, the version that wrote it, when."""
        return _read_json(self.path / "record.json")

    @cached_property
    def plan(self) -> dict[str, Any]:
        """plan.json: treatments, trials in order, exclusions, how it is to be judged."""
        return _read_json(self.path / "plan.json")

    @cached_property
    def host(self) -> dict[str, Any]:
        """host.json: the machine's fingerprint."""
        return _read_json(self.path / "host.json")

    @property
    def study_text(self) -> str:
        """The study file as it was run."""
        return (self.path / "study.toml").read_text(encoding="utf-8")

    @cached_property
    def trials(self) -> list[dict[str, Any]]:
        """Every trial on record, in the order of the plan."""
        order = {t["id"]: i for i, t in enumerate(self.plan.get("trials", []))}
        found = [_read_json(p) for p in (self.path / "trials").glob("*/trial.json")]
        return sorted(found, key=lambda t: order.get(t["trial"], len(order)))

    def samples_path(self, trial: str) -> Path:
        """Where the samples of a trial are, for readers that scan many at once."""
        return self.path / "trials" / trial / "samples.parquet"

    def samples(self, trial: str, columns: list[str] | None = None) -> pa.Table:
        """The samples of a trial: a row a request."""
        return _read_table(self.samples_path(trial), SAMPLES, columns)

    def replies(self, trial: str) -> pa.Table:
        """The kept and decoded replies of a trial."""
        return _read_table(self.path / "trials" / trial / "replies.parquet", REPLIES, None)

    def probe(self, trial: str) -> pa.Table:
        """What the machine and the server did while the trial was driven."""
        return _read_table(self.path / "trials" / trial / "probe.parquet", PROBE, None)

    def queries(self, digest: str) -> list[dict[str, Any]]:
        """The distinct queries of a query set: ``query``, ``text``, ``algebra``."""
        path = self.path / "queries" / f"{digest}.jsonl"
        try:
            lines = path.read_bytes().splitlines()
        except FileNotFoundError:
            raise RecordError(f"{path}: the query set of this record is missing") from None
        return [orjson.loads(line) for line in lines]


def open_record(path: Path | str) -> Record:
    """Open a record to read it. RecordError if it is none, or of a format we do not read."""
    folder = Path(path)
    if not (folder / "record.json").is_file():
        raise RecordError(f"{folder}: not a record (it has no record.json)")
    record = Record(folder)
    version = record.about.get("format")
    if version != FORMAT:
        raise RecordError(
            f"{folder}: the record has format {version}, this searchbench reads format {FORMAT}; "
            f"read it with searchbench {record.about.get('searchbench', 'of that time')}"
        )
    return record


class Writer:
    """Writes a record, a whole file at a time. Making one on an existing record continues it."""

    def __init__(
        self,
        path: Path,
        *,
        study_text: str,
        plan: Mapping[str, Any],
        host: Mapping[str, Any],
        version: str,
    ) -> None:
        self.path = path
        if (path / "record.json").exists():
            self._check_same_study(open_record(path), study_text, plan)
        elif path.exists() and any(path.iterdir()):
            raise RecordError(f"{path}: the folder is not empty and holds no record; name another")
        else:
            with _room(path):
                (path / "trials").mkdir(parents=True, exist_ok=True)
                (path / "queries").mkdir(exist_ok=True)
                _write(path / "study.toml", study_text.encode())
                _write(path / "plan.json", _pretty(plan))
                _write(path / "host.json", _pretty(host))
                about = {
                    "format": FORMAT,
                    "searchbench": version,
                    "created": datetime.now(UTC).isoformat(timespec="seconds"),
                }
                _write(path / "record.json", _pretty(about))

    @staticmethod
    def _check_same_study(old: Record, study_text: str, plan: Mapping[str, Any]) -> None:
        if old.plan != json.loads(_pretty(plan)):
            raise RecordError(
                f"{old.path}: holds another study, or another version of this one; name another "
                "folder with --record, or remove this one to begin again"
            )

    def grow(self, plan: Mapping[str, Any]) -> None:
        """Put a longer plan in place of the plan: what is decided while measuring."""
        with _room(self.path):
            _write(self.path / "plan.json", _pretty(plan))

    def has(self, trial: str) -> bool:
        """Is this trial on record, and not failed? A failed one is tried again."""
        path = self.path / "trials" / trial / "trial.json"
        return path.exists() and _read_json(path).get("status") == "ok"

    def queries(self, digest: str, lines: Iterable[Mapping[str, Any]]) -> None:
        """Keep a query set, once."""
        path = self.path / "queries" / f"{digest}.jsonl"
        if not path.exists():
            with _room(path):
                _write(path, b"".join(orjson.dumps(line) + b"\n" for line in lines))

    def trial(
        self,
        about: Mapping[str, Any],
        *,
        samples: pa.Table | Iterable[pa.Table] | None = None,
        replies: pa.Table | None = None,
        probe: pa.Table | None = None,
        logs: Mapping[str, bytes] | None = None,
    ) -> None:
        """Put one trial on record; ``about`` becomes its trial.json. Replaces a failed attempt.

        ``samples`` may come in several tables, which are written as they come.
        """
        folder = self.path / "trials" / str(about["trial"])
        with _room(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for name, table in (("samples", samples), ("replies", replies), ("probe", probe)):
                if table is not None:
                    part = folder / f".{name}.parquet"
                    _write_tables(part, [table] if isinstance(table, pa.Table) else table)
                    part.rename(folder / f"{name}.parquet")
            for name, content in (logs or {}).items():
                _write(folder / name, content)
            _write(folder / "trial.json", _pretty({"format": FORMAT, **about}))


def samples_table(raw: np.ndarray[Any, Any], request_to_query: np.ndarray[Any, Any]) -> pa.Table:
    """The core's samples as the record's columns.

    ``raw``: structured array of ``_core.SAMPLE_DTYPE``; ``request_to_query``: uint32, the
    distinct query of each prepared request. Instants of -1 become null.
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
        *(instant(name) for name in ("due", "free", "connect", "sent", "first_byte", "done")),
        pa.array(host, mask=host == NO_HOST_TIME),
    ]
    return pa.Table.from_arrays(columns, schema=SAMPLES)


def _read_table(path: Path, schema: pa.Schema, columns: list[str] | None) -> pa.Table:
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
    if not set(missing) <= set(LATER):
        raise RecordError(f"{path}: has no column {', '.join(missing)}; it is not ours")
    for name in missing:
        nulls = pa.nulls(table.num_rows, schema.field(name).type)
        table = table.add_column(wanted.index(name), schema.field(name), nulls)
    return table


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", orjson.loads(path.read_bytes()))
    except FileNotFoundError:
        raise RecordError(f"{path}: is missing; the record is not whole") from None
    except orjson.JSONDecodeError as error:
        raise RecordError(f"{path}: is not JSON ({error}); the record is damaged") from None


def _pretty(value: Mapping[str, Any]) -> bytes:
    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    return orjson.dumps(value, option=options) + b"\n"


def _write_tables(path: Path, tables: Iterable[pa.Table]) -> None:
    rest = iter(tables)
    first = next(rest)
    with pq.ParquetWriter(path, first.schema, compression="zstd", compression_level=1) as writer:
        writer.write_table(first)
        for table in rest:
            writer.write_table(table)


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)


@contextmanager
def _room(path: Path) -> Iterator[None]:
    """Say what to do when the disk is full or may not be written."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RecordError(
                f"{path}: the disk is full; free some room and give the same command again: "
                "it continues after the last trial on record"
            ) from error
        raise RecordError(f"{path}: cannot be written ({error.strerror})") from error
