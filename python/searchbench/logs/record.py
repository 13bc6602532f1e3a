"""The record of a log: what was counted, on disk, and another day added to it.

    logs.json           the format, what was read and how, and which folder has the counts
    counts-N/*.parquet  a table each (``counts``); N grows with each increment

A folder of counts is written whole before ``logs.json`` names it, so an increment that is cut
short changes nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from searchbench.errors import RecordError
from searchbench.logs.counts import TEXTS, Counting, Counts, Options, count
from searchbench.logs.mixed import with_others
from searchbench.logs.sources import (
    Source,
    called_now,
    identity,
    known_again,
    tail,
    with_header,
)

FORMAT = 1
NEW_NAMES = 100  # of a kind, at most, that an increment names as new
OTHERS = "(others)"  # the name of names that were too many
FILE = "logs.json"
# What must be the same in all increments: counts would not add up else.
_SAME = ("zone", "unit", "parameters", "columns", "line", "distinct")


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record that was read: its counts, its sources, its increments (when, sources, new)."""

    path: Path
    counts: Counts
    about: Mapping[str, Any]


def is_one(path: Path) -> bool:
    """Whether a folder is the record of a log."""
    return (path / FILE).is_file()


def open_log(path: Path) -> LogRecord:
    """Read a record. RecordError where it is none, or of a format that is not known."""
    try:
        about = orjson.loads((path / FILE).read_bytes())
    except FileNotFoundError:
        raise RecordError(f"{path} is not a record of a log: it has no {FILE}") from None
    except (OSError, orjson.JSONDecodeError) as error:
        raise RecordError(f"{path / FILE} cannot be read: {error}") from error
    if about.get("format") != FORMAT:
        raise RecordError(
            f"{path / FILE}: format {about.get('format')!r} is not known; this version reads "
            f"{FORMAT}"
        )
    folder = path / str(about["counts"])
    tables: dict[str, pa.Table] = {}
    for name in about["tables"]:
        try:
            tables[name] = pq.read_table(folder / f"{name}.parquet")
        except (OSError, pa.ArrowException) as error:
            raise RecordError(f"{folder / name}.parquet cannot be read: {error}") from error
    return LogRecord(path, Counts(tables, about["sources"]), about)


def add(
    path: Path,
    sources: list[Source],
    options: Options,
    on_tick: Callable[[int], object] | None = None,
    counting: Counting = count,
) -> LogRecord:
    """Read what is new in ``sources`` and add it to the record at ``path``, which may not be there.

    ``counting``: how they are read, here or on other machines. A line without an end is left for
    the next time. RecordError where the record was made with other options.
    """
    before = open_log(path) if is_one(path) else None
    if before is None and path.exists() and any(path.iterdir()):
        raise RecordError(f"{path} is not empty and no record of a log; name a new folder")
    wanted = orjson.loads(orjson.dumps({k: v for k, v in asdict(options).items() if k in _SAME}))
    if before is not None and before.about["options"] != wanted:
        other = next(k for k in _SAME if before.about["options"].get(k) != wanted[k])
        raise RecordError(
            f"{path} was counted with {other} = {before.about['options'].get(other)!r}, this is "
            f"{wanted[other]!r}; give the same, or name a new folder"
        )
    read_before = before.counts.sources if before else []
    known = known_again(sources, read_before)
    with TemporaryDirectory(prefix="searchbench-logs-") as folder:
        made = counting(
            [with_header(source, Path(folder)) for source in known],
            replace(options, keep_tail=True),
            before.counts.tables if before else None,
            on_tick,
        )
    for source, read in zip(known, made.sources, strict=True):
        read["tail"] = tail(called_now(source), int(read["read_bytes"]))
    increment = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "entries": sum(s["entries"] for s in made.sources),
        "new": _new(before.counts if before else None, made),
    }
    about = {
        "format": FORMAT,
        "counts": "",
        "tables": sorted(made.tables),
        "options": wanted,
        "sources": _joined(read_before, made.sources),
        "increments": [*(before.about["increments"] if before else []), increment],
    }
    _write(path, made.tables, about)
    return LogRecord(path, Counts(made.tables, about["sources"]), about)


def _joined(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All sources; of one that was gone on with, its parts together, under its newest name."""
    found = list(before)
    for source in now:
        known_as = source["known_as"]
        old = next((s for s in found if known_as and identity(s) == known_as), None)
        if old is None:
            found.append(source)
            continue
        merged = {**source, "notes": dict(old["notes"])}
        for name in ("lines", "entries", "unread", "back"):
            merged[name] += old[name]
        merged["longest_line"] = max(merged["longest_line"], old["longest_line"])
        later = [(line + old["lines"], *rest) for line, *rest in source["examples"]]
        merged["examples"] = [*old["examples"], *later][:5]
        merged["other_formats"] = with_others(old, source, old["lines"])
        for what, n in source["notes"].items():
            merged["notes"][what] = merged["notes"].get(what, 0) + n
        merged["format"] = source["format"] or old["format"]
        found[found.index(old)] = merged
    return found


def _new(before: Counts | None, now: Counts) -> dict[str, list[str]]:
    """Classes and indexes that were in none of the readings before; nothing in the first."""
    if before is None:
        return {}
    found: dict[str, list[str]] = {}
    for kind in ("class", "index"):
        names = [_names(counts, kind) for counts in (before, now)]
        if fresh := sorted(names[1] - names[0] - {OTHERS}):
            found[kind] = fresh[:NEW_NAMES]
    return found


def _names(counts: Counts, kind: str) -> set[str]:
    pairs = zip(counts.texts("groups", "kind"), counts.texts("groups", "name"), strict=True)
    return {name for of, name in pairs if of == kind}


def _write(path: Path, tables: Mapping[str, pa.Table], about: dict[str, Any]) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        numbers = [int(p.name.removeprefix("counts-")) for p in path.glob("counts-*")
                   if p.name.removeprefix("counts-").isdigit()]  # fmt: skip
        about["counts"] = f"counts-{max(numbers, default=0) + 1}"
        folder = path / about["counts"]
        folder.mkdir()
        for name, table in tables.items():
            texts = TEXTS.get(name, ())
            pq.write_table(
                table,
                folder / f"{name}.parquet",
                compression="zstd",
                use_dictionary=list(texts[:2]),
            )
        part = path / f".{FILE}.{os.getpid()}"
        part.write_bytes(orjson.dumps(about, option=orjson.OPT_INDENT_2, default=list))
        part.replace(path / FILE)
        for old in path.glob("counts-*"):
            if old != folder:
                with suppress(OSError):
                    shutil.rmtree(old)
    except OSError as error:
        raise RecordError(
            f"{path}: the record cannot be written ({error.strerror}); what was there before is "
            "unchanged"
        ) from error
