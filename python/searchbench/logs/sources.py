"""Which files a log is, what their servers are called, and how far they were read before."""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from searchbench.errors import QueryError

STANDARD_INPUT = "-"
_HEAD_BYTES = 4096  # by which a file is known again, unpacked
_NEVER = frozenset((".html", ".pdf", ".parquet", ".json5", ".py", ".md", ".toml", ".png"))


@dataclass(frozen=True, slots=True)
class Source:
    """A file of a log, or ``-``. ``skip_bytes``: read before, counted unpacked.

    ``digest``: of its first ``head_bytes``; ``known_as``: that by which it was known before.
    """

    path: str
    server: str
    skip_bytes: int = 0
    head_bytes: int = 0
    digest: str = ""
    known_as: str = ""


def find(files: Iterable[Path | str], server: str = "") -> list[Source]:
    """The sources that files and folders mean, folders with all that is below them.

    A server is called what ``server`` says; else, where files of several folders are read, its
    folder; else its file without what rotation adds to the name. QueryError where there is no file.
    """
    paths: list[str] = []
    for given in files:
        path = Path(given)
        if str(given) == STANDARD_INPUT:
            paths.append(STANDARD_INPUT)
        elif path.is_dir():
            below = sorted(p for p in path.rglob("*") if p.is_file() and _may_be_a_log(p))
            if not below:
                raise QueryError(f"{path} has no files; name the log or its folder")
            paths += [str(p) for p in below]
        elif not path.exists():
            raise QueryError(f"{path} is not there; name a log, a folder of logs, or - for "
                             "standard input")  # fmt: skip
        else:
            paths.append(str(path))
    if not paths:
        raise QueryError("which log? name a file, a folder, or - for standard input")
    folders = {str(Path(p).parent) for p in paths if p != STANDARD_INPUT}
    return [Source(p, server or _server(p, len(folders) > 1)) for p in dict.fromkeys(paths)]


def _may_be_a_log(path: Path) -> bool:
    return path.suffix.lower() not in _NEVER and not path.name.startswith(".")


def _server(path: str, by_folder: bool) -> str:
    if path == STANDARD_INPUT:
        return "standard input"
    if by_folder:
        return Path(path).resolve().parent.name
    name = Path(path).name
    for ending in (".gz", ".zst"):
        name = name.removesuffix(ending)
    stem, _, last = name.rpartition(".")
    if stem and last.isdigit():
        name = stem
    return name.removesuffix(".log") or name


def known_again(sources: Sequence[Source], before: Sequence[dict[str, Any]]) -> list[Source]:
    """Each source with what was read of it before, whatever it is called now or packed by.

    A file is known by its first bytes. One that was rotated is found under its new name; one that
    was only begun goes on where the last reading ended.
    """
    found = []
    for source in sources:
        if source.path == STANDARD_INPUT:
            found.append(source)
            continue
        head = _head(source.path)
        skip, known_as = 0, ""
        for old in before:
            size = int(old["head_bytes"])
            if size and len(head) >= size and _digest(head[:size]) == old["digest"]:
                skip, known_as = int(old["read_bytes"]), str(old["digest"])
        found.append(Source(source.path, source.server, skip, len(head), _digest(head), known_as))
    return found


def _digest(head: bytes) -> str:
    return hashlib.sha256(head).hexdigest()[:32]


def _head(path: str) -> bytes:
    """The first bytes, unpacked as the core unpacks them; fewer where it is damaged."""
    try:
        with Path(path).open("rb") as raw:
            magic = raw.read(4)
            raw.seek(0)
            stream: BinaryIO = raw
            if magic[:2] == b"\x1f\x8b":
                stream = cast("BinaryIO", gzip.GzipFile(fileobj=raw))
            elif magic == b"\x28\xb5\x2f\xfd":
                import pyarrow as pa

                packed = pa.input_stream(raw, compression="zstd")
                stream = cast("BinaryIO", io.BufferedReader(packed))
            return stream.read(_HEAD_BYTES)
    except OSError as error:
        raise QueryError(f"{path} cannot be read: {error.strerror or error}") from error
    except (EOFError, zlib.error) as error:
        raise QueryError(f"{path} is damaged: {error}") from error
