"""The record of a log: what was counted, on disk, and another day added to it.

    logs.json           the format, what was read and how, and which folder has the counts
    counts-N/*.parquet  a table each (``counts``); N grows with each increment

A folder of counts is written whole, and is on the disk, before ``logs.json`` names it; only then
the one before goes. So an increment that is cut short, by a full disk or a loss of power, changes
nothing. Of two that run at the same time the one that ends last fails: it does not know what the
other has read.
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

from searchbench import _core
from searchbench.errors import QueryError, RecordError
from searchbench.logs.counts import (
    OTHERS,
    TEXTS,
    Counting,
    Counts,
    Options,
    Stored,
    count,
    finished,
    refused_source,
)
from searchbench.logs.opened import joined, kept, open_in, with_open
from searchbench.logs.rotated import in_order
from searchbench.logs.sources import (
    Source,
    called_as_before,
    called_now,
    folder_of,
    identity,
    known_again,
    tail,
    with_header,
)
from searchbench.spec import show
from searchbench.whole import not_written, on_disk

FORMAT = 1
NEW_NAMES = 100  # of a kind, at most, that an increment names as new
FILE = "logs.json"
_COUNTS = "counts-"
# What only an increment that was cut short leaves without ``FILE``.
_OURS = (_COUNTS, f".{FILE}.")
# What is added up of the parts of a source.
_SEEN = (
    "lines", "entries", "unread", "back", "longest_line", "examples", "other_formats", "notes",
)  # fmt: skip
# What must be the same in all increments: counts would not add up else.
_SAME = ("zone", "zones", "unit", "parameters", "columns", "line", "distinct")


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
    """Read a record, with what is open in its logs.

    RecordError where it is none, or of a format that is not known.
    """
    about = _about(path)
    return LogRecord(path, with_open(_settled(path, about), _options(about)), about)


def _is_begun(path: Path) -> bool:
    """Whether a folder has nothing, or nothing but what a first call left that was ended."""
    return path.is_dir() and all(each.name.startswith(_OURS) for each in path.iterdir())


def _about(path: Path) -> dict[str, Any]:
    """What ``logs.json`` says."""
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
    assert isinstance(about, dict)
    return about


def _settled(path: Path, about: Mapping[str, Any]) -> Counts:
    """What was counted of entries that are whole."""
    stored = _stored(path, about)
    return Counts({name: stored[name] for name in stored}, about["sources"])


def _stored(path: Path, about: Mapping[str, Any]) -> Stored:
    """The tables of what was counted of entries that are whole."""
    return Stored(path / str(about["counts"]), about["tables"])


def _options(about: Mapping[str, Any]) -> Options:
    """What the record says of how its logs are read."""
    kept = about["options"]
    return Options(
        zone=kept["zone"],
        zones=tuple((server, zone) for server, zone in kept.get("zones", ())),
        unit=kept["unit"],
        parameters=tuple(kept["parameters"]),
        columns=tuple((name, role, unit) for name, role, unit in kept["columns"]),
        line=kept["line"],
        distinct=kept["distinct"],
    )


def add(
    path: Path,
    sources: list[Source],
    options: Options,
    on_tick: Callable[[int], object] | None = None,
    counting: Counting = count,
) -> LogRecord:
    """Read what is new in ``sources`` and add it to the record at ``path``, which may not be there.

    ``counting``: how they are read, here or on other machines. A line without an end is left for
    the next time. What of an entry that may go on is there is in the counts that are returned, and
    is read again the next time. RecordError where the record was made with other options.
    """
    before = _about(path) if is_one(path) else None
    if before is None and path.exists() and not _is_begun(path):
        raise RecordError(f"{path} is not empty and no record of a log; name a new folder")
    wanted = orjson.loads(orjson.dumps({k: v for k, v in asdict(options).items() if k in _SAME}))
    if before is not None:
        before["options"].setdefault("zones", [])
    if before is not None and before["options"] != wanted:
        other = next(k for k in _SAME if before["options"].get(k) != wanted[k])
        raise RecordError(
            f"the record {path} was made with {other} = {show(before['options'].get(other))}, "
            f"but this call has {show(wanted[other])}; give the same, or name a new folder"
        )
    read_before = before["sources"] if before else []
    stored = _stored(path, before) if before else None
    names_before, entries_before = None, 0
    if stored is not None:
        open_, whole = open_in(read_before, options)
        names_before = _names(stored) | _names(open_)
        entries_before = sum(s["entries"] for s in whole)
    known = called_as_before(known_again(sources, read_before), read_before)
    try:
        known, made = _counted(known, options, stored, on_tick, counting)
    except RecordError:
        _insist_same(path, before)  # what was counted before is gone then
        raise
    for source, read in zip(known, made.sources, strict=True):
        read["tail"] = tail(called_now(source), int(read["read_bytes"]))
        read["folder"] = folder_of(source.path)
        read["open"] = kept(read["open"]) if "open" in read else {}
    sources_now = _joined(read_before, made.sources)
    shown = with_open(Counts(made.tables, sources_now), options)
    increment = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "entries": sum(s["entries"] for s in shown.sources) - entries_before,
        "new": _new(names_before, shown),
    }
    about = {
        "format": FORMAT,
        "counts": "",
        "tables": sorted(made.tables),
        "options": wanted,
        "sources": sources_now,
        "increments": [*(before["increments"] if before else []), increment],
    }
    _write(path, made.tables, about, before)
    return LogRecord(path, shown, about)


def _counted(
    sources: list[Source],
    options: Options,
    stored: Stored | None,
    on_tick: Callable[[int], object] | None,
    counting: Counting,
) -> tuple[list[Source], Counts]:
    """What is new, together with what is stored, and the sources in the order of reading.

    A file of which packed bytes were changed is left out: what was read of it could not be told
    from the log, nor taken back when a whole file comes in its place.
    """
    changed: list[Source] = []
    while True:
        known = in_order([source for source in sources if source not in changed], options)
        if changed and not known:
            raise QueryError(_changed(changed[0]))
        with TemporaryDirectory(prefix="searchbench-logs-") as folder:
            made = counting(
                [with_header(source, Path(folder)) for source in known],
                replace(options, keep_tail=True),
                stored,
                on_tick,
            )
        notes = zip(known, made.sources, strict=True)
        paths = {source.path for source, read in notes if read["notes"].get(_core.LOG_CORRUPT)}
        if not paths:
            break
        changed += [source for source in sources if source.path in paths]
    left_out = [finished(one, refused_source(one, _changed(one))) for one in changed]
    return [*known, *changed], Counts(made.tables, [*made.sources, *left_out])


def _changed(source: Source) -> str:
    return (
        f"{source.path} is packed, and bytes of it were changed, so nothing of it is added; copy "
        "it again from where it was packed"
    )


def _joined(before: list[dict[str, Any]], read: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All sources; of one that was gone on with, its parts together, under its newest name."""
    # Of what was left out the last time, this reading says what became of it.
    now_read = {source["path"] for source in read}
    found = [s for s in before if not (s["refused"] and s["path"] in now_read)]
    for source in read:
        known_as = source["known_as"]
        old = next((s for s in found if known_as and identity(s) == known_as), None)
        if old is None:
            found.append(source)
            continue
        # Where nothing could be read, what was open before stays so.
        now = source if source["format"] else {**source, "open": old.get("open", {})}
        merged = {**now, **{name: joined(old, source)[name] for name in _SEEN}}
        merged["format"] = source["format"] or old["format"]
        merged["goes_on"] = bool(old.get("goes_on"))
        # A file is damaged as it was read the last time: it may have been replaced by a whole one.
        merged["notes"] = {
            what: source["notes"].get(what, 0) if what == _core.LOG_DAMAGED else n
            for what, n in merged["notes"].items()
        }
        found[found.index(old)] = merged
    return found


def _new(before: set[tuple[str, str]] | None, now: Counts) -> dict[str, list[str]]:
    """Classes and indexes that were in none of the readings before; nothing in the first."""
    if before is None:
        return {}
    found: dict[str, list[str]] = {}
    fresh = _names(now.tables) - before
    for kind in ("class", "index"):
        if names := sorted(name for of, name in fresh if of == kind and name != OTHERS):
            found[kind] = names[:NEW_NAMES]
    return found


def _names(tables: Mapping[str, pa.Table]) -> set[tuple[str, str]]:
    """The kind and the name of all groups."""
    if "groups" not in tables:
        return set()
    groups = Counts({"groups": tables["groups"]})
    return set(zip(groups.texts("groups", "kind"), groups.texts("groups", "name"), strict=True))


def _write(
    path: Path,
    tables: Mapping[str, pa.Table],
    about: dict[str, Any],
    before: Mapping[str, Any] | None,
) -> None:
    """``before``: what ``FILE`` said when the increment began; None: it was not there."""
    folder: Path | None = None
    try:
        path.mkdir(parents=True, exist_ok=True)
        folder = _new_folder(path)
        about["counts"] = folder.name
        for name, table in tables.items():
            texts = TEXTS.get(name, ())
            pq.write_table(
                table,
                folder / f"{name}.parquet",
                compression="zstd",
                use_dictionary=list(texts[:2]),
            )
            on_disk(folder / f"{name}.parquet")
        on_disk(folder)
        part = path / f".{FILE}.{os.getpid()}"
        part.write_bytes(orjson.dumps(about, option=orjson.OPT_INDENT_2, default=list))
        on_disk(part)
        _insist_same(path, before)
        part.replace(path / FILE)
    except BaseException as error:
        # What nothing names would only take room.
        if folder is not None and _named(path) != folder.name:
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            (path / f".{FILE}.{os.getpid()}").unlink()
        if not isinstance(error, OSError):
            raise
        _insist_same(path, before)
        why = not_written(path, error, "the record", "name another folder")
        raise RecordError(f"{why}; what was there before is unchanged") from error
    try:
        on_disk(path)
    except OSError:
        return  # what was there before goes the next time
    for old in path.glob(f"{_COUNTS}*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)


def _new_folder(path: Path) -> Path:
    """A folder for counts, which nobody else has made."""
    while True:
        numbers = [int(p.name.removeprefix(_COUNTS)) for p in path.glob(f"{_COUNTS}*")
                   if p.name.removeprefix(_COUNTS).isdigit()]  # fmt: skip
        folder = path / f"{_COUNTS}{max(numbers, default=0) + 1}"
        with suppress(FileExistsError):
            folder.mkdir()
            return folder


def _insist_same(path: Path, before: Mapping[str, Any] | None) -> None:
    """RecordError where another call has written to the record since ``before`` was read."""
    if _named(path) != (str(before["counts"]) if before else None):
        raise RecordError(
            f"{path}: another call has added to the record meanwhile, so this one did not; call "
            "it again"
        )


def _named(path: Path) -> str | None:
    """In which folder a record has its counts."""
    try:
        return str(_about(path)["counts"])
    except RecordError:
        return None
