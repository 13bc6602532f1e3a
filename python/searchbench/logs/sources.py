"""Which files a log is, what their servers are called, and how far they were read before."""

from __future__ import annotations

import base64
import glob
import gzip
import hashlib
import io
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from searchbench.errors import QueryError
from searchbench.logs.collected import below, category, names
from searchbench.logs.parquet import Lines, column_of, is_parquet
from searchbench.whole import IN_PASSING, is_full, not_written

STANDARD_INPUT = "-"
_HEAD_BYTES = 4096  # by which a file is known again, unpacked
_TAIL_BYTES = 65536  # before the place where the last reading ended: it must be the same too
_DAMAGES = (EOFError, zlib.error, OSError, pa.ArrowException)
_NEVER = frozenset((".html", ".pdf", ".json5", ".py", ".md", ".toml", ".png", ".crc", ".sizes"))


@dataclass(frozen=True, slots=True)
class Source:
    """A file of a log, or ``-``. ``skip_bytes``: read before, counted unpacked.

    ``digest``: of its first ``head_bytes``; ``known_as``: the ``identity`` of what was read of it
    before. ``again_from``: a file that has its header and what is new of it, which is read in its
    place; ``header_bytes``: of that header. ``format``: "" is what the user says, or the content.
    ``lines``: the column of a Parquet file that has its lines; "" is no such file. All bytes are
    then counted of the lines. ``opened``: what the last reading left open (``counts.Opened``).
    ``said``: the user said what its server is called. ``follows``: it goes on where the source
    before it in a list ended (``rotated``), as of the core.
    """

    path: str
    server: str
    skip_bytes: int = 0
    head_bytes: int = 0
    digest: str = ""
    known_as: str = ""
    again_from: str = ""
    header_bytes: int = 0
    format: str = ""
    lines: str = ""
    opened: tuple[bytes, bytes, bytes, int | None, int | None] = (b"", b"", b"", None, None)
    said: bool = False
    follows: int = 0


def find(
    files: Iterable[Path | str], server: str = "", lines: str = "", *, growing: bool = False
) -> list[Source]:
    """The sources that files and folders mean, folders with all that is below them.

    A server is called what ``server`` says; else, where files of several folders are read, its
    folder; else its file without what rotation adds to the name. Those of the collector are called
    by host and category (``collected``). ``lines``: the column of Parquet files that has the lines
    of the log; "" is ``value``. ``growing``: of a file and links to it the link is taken, because
    it goes on to the next file. Below a folder, Parquet files without a column of lines
    are left out. A file that several names lead to is read once. QueryError where there is no
    file, or one that is named is such a Parquet file.
    """
    paths: list[str] = []
    columns: dict[str, str] = {}
    called: dict[str, str] = {}
    for given in files:
        path = Path(given)
        if str(given) == STANDARD_INPUT:
            paths.append(STANDARD_INPUT)
        elif path.is_dir():
            found = _within(path, lines)
            if not found and not growing:
                raise QueryError(f"{path} has no files; name the log or its folder")
            paths += [str(p) for p in found]
            called |= {str(p): name for p in found if (name := below(path, str(p)))}
        elif not path.exists():
            raise QueryError(f"{path} is not there; name a log, a folder of logs, or - for "
                             "standard input")  # fmt: skip
        else:
            paths.append(str(path))
    paths = _once(paths, links=growing)
    if not paths and not (growing and files):
        raise QueryError("which log? name a file, a folder, or - for standard input")
    for each in paths:
        if each != STANDARD_INPUT and is_parquet(each):
            columns[each] = column_of(each, lines)
    folders = {str(Path(p).parent) for p in paths if p != STANDARD_INPUT}
    if len(folders) > 1:
        called = names([p for p in paths if p != STANDARD_INPUT]) | called
    return [
        Source(
            p,
            server or called.get(p) or _server(p),
            lines=columns.get(p, ""),
            said=bool(server),
        )
        for p in paths
    ]


def _within(folder: Path, lines: str) -> list[Path]:
    """The files below a folder that may be logs, and folders that cannot be looked into: the core
    says of each why it is left out.
    """
    hidden: list[OSError] = []
    found = [
        Path(where, name)
        for where, _, names in os.walk(folder, onerror=hidden.append)
        for name in names
        if Path(where, name).is_file() and _may_be_a_log(Path(where, name), lines)
    ]
    return sorted([*found, *(Path(str(error.filename)) for error in hidden)])


def _once(paths: Iterable[str], *, links: bool) -> list[str]:
    """Each file under one of its names: the collector's ``BASE_current`` leads to one of its files,
    and what is in it would be counted twice. Of a file and links to it the file is taken, or else
    the link.
    """
    kept: dict[object, str] = {}
    for path in dict.fromkeys(paths):
        which: object = path
        if path != STANDARD_INPUT:
            with suppress(OSError):
                about = Path(path).stat()
                which = (about.st_dev, about.st_ino) if about.st_ino else path
        other = kept.get(which)
        if other is None or (
            Path(other).is_symlink() is not links and Path(path).is_symlink() is links
        ):
            kept[which] = path
    return list(kept.values())


def _may_be_a_log(path: Path, lines: str) -> bool:
    # What begins with an underscore beside Parquet files is Hadoop's, such as _SUCCESS.
    if path.suffix.lower() in _NEVER or path.name.startswith(".") or path.name == "_SUCCESS":
        return False
    if not is_parquet(path):
        return path.suffix.lower() != ".parquet"
    with suppress(QueryError):
        return bool(column_of(path, lines))
    return False


def _server(path: str) -> str:
    if path == STANDARD_INPUT:
        return "standard input"
    return _log(path)


def _log(path: str) -> str:
    """The file without what rotation and packing add to its name."""
    name = Path(path).name
    for ending in (".gz", ".zst", ".parquet"):
        name = name.removesuffix(ending)
    stem, _, last = name.rpartition(".")
    if stem and last.isdigit():
        name = stem
    return category(name) or name.removesuffix(".log") or name


def folder_of(path: str) -> str:
    """The folder of a file, wherever it is called from; "" of standard input."""
    return "" if path == STANDARD_INPUT else str(Path(path).resolve().parent)


def called_as_before(sources: Sequence[Source], before: Sequence[dict[str, Any]]) -> list[Source]:
    """Each source with the name that its server has in a record, where the user says no other.

    What a call without a record calls a server depends on how many folders it reads. In a record a
    log keeps its name: the file, what it is called after rotation, and, where the record calls
    servers by their folders, all files of that folder.
    """
    read = [s for s in before if s["path"] != STANDARD_INPUT]
    servers = {(_folder(s), _log(s["path"])): str(s["server"]) for s in read}
    by_folder = {
        _folder(s) for s in read if s["server"] == Path(_folder(s)).name != _log(s["path"])
    }
    files = {s["digest"]: str(s["server"]) for s in read if s["digest"]}
    found = []
    for source in sources:
        if source.said or source.path == STANDARD_INPUT:
            found.append(source)
            continue
        folder = folder_of(source.path)
        name = servers.get((folder, _log(source.path)))
        if name is None and source.known_as:
            name = files.get(source.known_as.split(" ", 1)[0])
        if name is None and (folder in by_folder or (by_folder and not _is_read(folder, servers))):
            name = Path(folder).name
        if name is None and _is_read(folder, servers):
            name = _log(source.path)
        found.append(source if name is None else replace(source, server=name))
    return found


def _is_read(folder: str, servers: Mapping[tuple[str, str], str]) -> bool:
    return any(of == folder for of, _ in servers)


def _folder(read: Mapping[str, Any]) -> str:
    return str(read.get("folder") or folder_of(read["path"]))


def known_again(sources: Sequence[Source], before: Sequence[dict[str, Any]]) -> list[Source]:
    """Each source with what was read of it before, whatever it is called now or packed by.

    A file is known by its first bytes and by those before the place where the last reading ended:
    logs of two servers may begin alike, and one that was cut off may begin as it did before. One
    that was rotated is found under its new name; one that was only begun goes on where the last
    reading ended.
    """
    found = []
    for source in sources:
        if source.path == STANDARD_INPUT:
            found.append(source)
            continue
        try:
            head = _head(source)
        except QueryError:  # the core says why it is left out
            found.append(source)
            continue
        same = [old for old in before if _is_that(source, head, old)]
        # Of two that are both meant, the one of its name, or else the one that goes further.
        old = max(
            same, key=lambda o: (o["path"] == source.path, int(o["read_bytes"])), default=None
        )
        found.append(
            replace(
                source,
                skip_bytes=int(old["read_bytes"]) if old else 0,
                head_bytes=len(head),
                digest=_digest(head),
                known_as=identity(old) if old else "",
                format="csv" if old and old["format"] == "csv" else "",
                opened=opened(old or {}),
            )
        )
    return found


def opened(read: Mapping[str, Any]) -> tuple[bytes, bytes, bytes, int | None, int | None]:
    """What a reading left open, as a record keeps it."""
    kept = read.get("open") or {}
    names = ("state", "before", "text")
    state, before, text = (base64.b64decode(kept.get(name, "")) for name in names)
    return state, before, text, kept.get("last_ns"), kept.get("at_s")


def identity(read: dict[str, Any]) -> str:
    """By what a source that was read is told from all others of its record; "" if by nothing."""
    if not read["digest"]:
        return ""
    return f"{read['digest']} {read['read_bytes']} {read.get('tail', '')}"


def tail(source: Source, read_bytes: int) -> str:
    """A digest of what was read last, up to a place in the unpacked file; "" of standard input.

    Also "" where the file is gone, or can be read less far.
    """
    if source.path == STANDARD_INPUT or not read_bytes:
        return ""
    begin = max(0, read_bytes - _TAIL_BYTES)
    try:
        last = _upto_damage(source, begin, read_bytes - begin)
    except OSError:
        return ""
    return _digest(last) if len(last) == read_bytes - begin else ""


def called_now(source: Source) -> Source:
    """The same file under the name that it has now in its folder: it may have been rotated, and
    packed, while it was read. The same source where none there begins as it did.
    """
    if source.path == STANDARD_INPUT or not source.head_bytes:
        return source
    path = Path(source.path)
    beside = sorted(p for p in path.parent.glob(f"{glob.escape(path.stem)}*") if p != path)
    for one in (path, *beside):
        named = replace(source, path=str(one))
        with suppress(QueryError):
            if one.is_file() and _digest(_head(named)[: source.head_bytes]) == source.digest:
                return named
    return source


def with_header(source: Source, folder: Path) -> Source:
    """A CSV file that is gone on with: its header and what is new of it, in a file in ``folder``.

    The same where nothing is new. Its columns are named by its first line alone.
    """
    if source.format != "csv" or not source.skip_bytes:
        return source
    target = folder / hashlib.sha256(source.path.encode()).hexdigest()
    try:
        with _unpacked(source) as stream, target.open("wb") as made:
            header = b""
            while not header.strip() and (line := stream.readline()):
                header += line
            _pass_over(stream, source.skip_bytes - len(header))
            made.write(header)
            shutil.copyfileobj(stream, made, 1 << 20)
            new = made.tell() - len(header)
    except OSError as error:
        if is_full(error):
            raise QueryError(not_written(target, error, *IN_PASSING)) from error
        raise QueryError(f"{source.path} cannot be read: {error.strerror or error}") from error
    except (EOFError, zlib.error, pa.ArrowException) as error:
        raise QueryError(f"{source.path} is damaged: {error}") from error
    if not new:
        return source
    return replace(source, again_from=str(target), header_bytes=len(header))


def _is_that(source: Source, head: bytes, old: dict[str, Any]) -> bool:
    """Is it the file that was read, with all that was read of it?"""
    size = int(old["head_bytes"])
    if not size or len(head) < size or _digest(head[:size]) != old["digest"]:
        return False
    # Records that were made before tails were kept know files by their heads alone.
    return "tail" not in old or tail(source, int(old["read_bytes"])) == old["tail"]


def _digest(head: bytes) -> str:
    return hashlib.sha256(head).hexdigest()[:32]


def _head(source: Source) -> bytes:
    """The first bytes, unpacked as the core unpacks them; fewer where it is damaged."""
    try:
        return _upto_damage(source, 0, _HEAD_BYTES)
    except OSError as error:
        why = getattr(error, "strerror", None) or error
        raise QueryError(f"{source.path} cannot be read: {why}") from error


def _upto_damage(source: Source, begin: int, n: int) -> bytes:
    """So many bytes from there on; fewer where the file ends, or cannot be unpacked any further.

    OSError where nothing can be read.
    """
    try:
        with _unpacked(source) as stream:
            _pass_over(stream, begin)
            return stream.read(n)
    except FileNotFoundError:
        raise
    except _DAMAGES:
        # A reading that fails gives nothing of what came before, so it is made of small ones.
        found = b""
        with _unpacked(source, buffered=False) as stream:
            try:
                _pass_over(stream, begin)
                while len(found) < n and (some := stream.read(1)):
                    found += some
            except _DAMAGES as error:
                if not found and isinstance(error, OSError):
                    raise
        return found


@contextmanager
def _unpacked(source: Source, *, buffered: bool = True) -> Iterator[BinaryIO]:
    """The content of a file, unpacked as the core unpacks it; of Parquet the lines.

    ``buffered``: of zstd, more may be unpacked than is asked for.
    """
    if source.lines:
        with Lines(source.path, source.lines) as lines:
            yield cast("BinaryIO", io.BufferedReader(lines))
        return
    with Path(source.path).open("rb") as raw:
        magic = raw.read(4)
        raw.seek(0)
        stream: BinaryIO = raw
        if magic[:2] == b"\x1f\x8b":
            stream = cast("BinaryIO", gzip.GzipFile(fileobj=raw))
        elif magic == b"\x28\xb5\x2f\xfd":
            packed = pa.input_stream(raw, compression="zstd")
            stream = cast("BinaryIO", io.BufferedReader(packed) if buffered else packed)
        yield stream


def _pass_over(stream: BinaryIO, n: int) -> None:
    """So many bytes from here on are not read; of packed files they must be unpacked."""
    if isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO):
        stream.seek(n, io.SEEK_CUR)
        return
    while n > 0 and (some := stream.read(min(n, 1 << 20))):
        n -= len(some)
