"""Logs counted while they grow: an increment at a time, and all increments together.

Each piece of new lines is written to a file of its own for the core, which reads files. The counts
of increments add up, so what is said at the end is what ``count`` says of the same lines.

What lies between two pieces is handed on: how the clock stood, by which an hour that passes twice
is told apart; and of formats whose entries are joined from lines that may be far apart, what their
reader holds, as between the readings of a record. Of these the last entry may wait for the line
after it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from searchbench import _core
from searchbench.errors import QueryError
from searchbench.logs.counts import Counts, Opened, Options, as_tables, insist_known, settings
from searchbench.logs.follow import HEAD_BYTES, GrowingFile, GrowingPipe, Grows
from searchbench.logs.held import Held, held
from searchbench.logs.mixed import with_others
from searchbench.logs.sources import STANDARD_INPUT, Source
from searchbench.whole import IN_PASSING, not_written

# Their entries are joined from lines that nothing ties together but what comes later. What their
# reader holds is kept from piece to piece; what others lack is waited for here (``held``).
JOINED = ("mysql-general", "postgresql", "postgresql-csv", "postgresql-json", "slowlog",
          "slowlog-json")  # fmt: skip
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh", b"PAR1")
_SUMS = ("lines", "entries", "unread", "back", "bytes")
_EXAMPLES = 5


_NOTHING: Opened = (b"", b"", b"", None, None)


@dataclass(slots=True)
class _Watched:
    """A source. ``read``: what became of it, as of ``counts``, with why it was ``refused``."""

    source: Source
    grows: Grows
    read: dict[str, Any]
    format: str = ""
    held: Held = field(default_factory=Held)
    header: bytes = b""  # of CSV: the line that names the columns
    opened: Opened = _NOTHING
    text: bytes = b""  # lines that were not read, because their entry may go on

    @property
    def is_open(self) -> bool:
        """Whether lines were read of which an entry may still be made."""
        return bool(self.opened[0] or self.text)


class Watch:
    """Sources that are followed from now on. To be used as a context, and ended by ``end``.

    ``again``: the sources that there are by now; those that were not there before are read from
    their beginning. QueryError where a source is packed or is no log.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        options: Options,
        at_s: float,
        again: Callable[[], Sequence[Source]] | None = None,
    ) -> None:
        insist_known(options)
        self._again = again
        self._opened: set[tuple[int, int]] = set()
        self._reading: set[tuple[int, int]] = set()
        self._came: set[str] = set()
        self._options = options
        self._all = _core.Log(options.distinct)
        self._folder = TemporaryDirectory(prefix="searchbench-logs-")
        self._named = "line" if options.line else options.format
        self._watched: list[_Watched] = []
        try:
            self._open(sources, at_s)
        except BaseException:
            self.__exit__()
            raise

    def _open(self, sources: Sequence[Source], at_s: float) -> None:
        for source in sources:
            if (grows := self._grows(source.path, at_s)) is not None:
                self._watched.append(_Watched(source, grows, _nothing(source)))
        if sources and not self._watched:
            raise QueryError(
                f"{sources[0].path} is packed, so it will not grow; leave out --live to read it"
            )
        for each in self._watched:
            head = each.grows.head()
            if self._named or head.strip():
                self._begin(each, head)

    def _grows(self, path: str, at_s: float) -> Grows | None:
        """What follows a path; None of a packed file, which will not grow."""
        if path == STANDARD_INPUT:
            return GrowingPipe()
        if Path(path).is_fifo():
            # Else nothing ends the wait for one who writes, not even Ctrl-C.
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            return GrowingPipe(fd, own=True)
        return None if _is_packed(path) else self._file(path, at_s)

    def _file(self, path: str, at_s: float, *, whole: bool = False) -> GrowingFile:
        return GrowingFile(path, at_s, whole=whole, opened=self._opened, reading=self._reading)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *error: object) -> None:
        for each in self._watched:
            each.grows.rest()
        self._folder.cleanup()

    @property
    def names(self) -> list[str]:
        """The paths of what is followed."""
        return [each.source.path for each in self._watched]

    @property
    def formats(self) -> list[str]:
        """The formats that are known by now."""
        return list(dict.fromkeys(each.format for each in self._watched if each.format))

    @property
    def rotations(self) -> int:
        """How often a log was rotated or cut off."""
        return sum(each.grows.rotations for each in self._watched)

    @property
    def behind(self) -> bool:
        """Whether there is more to be read at once."""
        return any(each.grows.behind for each in self._watched)

    @property
    def ended(self) -> bool:
        """Whether nothing can follow: all are pipes that ended. A log may come into a folder."""
        if not self._watched and self._again is not None:
            return False
        return all(each.grows.ended for each in self._watched)

    def wait(self, most_s: float) -> None:
        """Let some time pass, so much at most; what comes through a pipe meanwhile is taken."""
        pipes = [g for each in self._watched if isinstance(g := each.grows, GrowingPipe)]
        pipes = [pipe for pipe in pipes if not pipe.ended]
        for pipe in pipes:
            pipe.wait(most_s / len(pipes))
        if not pipes:
            time.sleep(most_s)

    def poll(self, at_s: float) -> Counts:
        """Count what is new. ``at_s``: now, of the clock of all calls."""
        given = [(each, self._new(each, at_s)) for each in self._watched]
        self._look(at_s)
        return self._count(given)

    def _look(self, at_s: float) -> None:
        """Follow what has come into the folders.

        A new file is followed when it was there the time before too, and nobody has read it since:
        what a link leads to is read under the name of the link. If the link went on too fast, the
        file is read under its own.
        """
        if self._again is None:
            return
        paths, came = {each.source.path for each in self._watched}, set()
        try:
            now = self._again()
        except QueryError:  # all files of a folder are gone, for now
            return
        there = {source.path: (source, _identity(source.path)) for source in now}
        # The number of a file that is gone may be that of a new one.
        self._opened.intersection_update(identity for _, identity in there.values() if identity)
        for source, identity in there.values():
            if source.path in paths or identity in self._opened:
                continue
            if source.path not in self._came:
                came.add(source.path)
            elif not _is_packed(source.path):
                grows = self._file(source.path, at_s, whole=True)
                self._watched.append(_Watched(source, grows, _nothing(source)))
        self._came = came

    def end(self, at_s: float) -> tuple[Counts, Counts]:
        """The last increment, with unfinished lines, and all increments together."""
        given = []
        new: dict[str, bytes] = {}
        for _ in range(3 if self._again else 1):  # what has come is followed at the second look
            for each in self._watched:
                path = each.source.path
                new[path] = new.get(path, b"") + self._new(each, at_s)
            self._look(at_s)
        for each in self._watched:
            text = new[each.source.path]
            rest = each.grows.rest()
            # A line that was being written when a file was left is no entry yet.
            if rest and each.grows.ended:
                text += self._taken(each, rest, at_s)
            given.append((each, text + b"".join(each.held.rest())))
        last = self._count(given, last=True)
        for each in self._watched:
            if not each.format:
                each.read["refused"] = each.read["refused"] or each.grows.why
        reads = [each.read for each in self._watched if each.format or each.read["refused"]]
        return last, Counts(as_tables(self._all.tables()), reads)

    def _new(self, each: _Watched, at_s: float) -> bytes:
        return self._taken(each, each.grows.new(at_s), at_s)

    def _taken(self, each: _Watched, text: bytes, at_s: float) -> bytes:
        """What is to be counted now, when ``text`` has come."""
        if text.strip() and not each.format and not each.read["refused"]:
            self._begin(each, text)
        if not each.format:
            return b""
        if each.format == "csv":
            text = _without_header(each, text)
        if type(each.held) is Held:
            return text
        return b"".join(each.held.give(_lines(text), at_s))

    def _begin(self, each: _Watched, head: bytes) -> None:
        """From its first lines on a source has a format, or is left out and says why."""
        try:
            form = self._named or self._told(each, head)
        except QueryError as error:
            each.read["refused"] = str(error)
            if all(one.read["refused"] for one in self._watched):
                raise
            return
        each.format, each.held = form, held(form)
        each.read["format"] = form
        if form == "csv":
            _without_header(each, head)

    def _told(self, each: _Watched, head: bytes) -> str:
        """The format that lines have."""
        path = self._written(0, head[:HEAD_BYTES])
        try:
            (read,) = _core.Log(2).read([(path, each.source.server, "", 0)], threads=1)
        except ValueError as error:
            raise QueryError(str(error).replace(path, each.source.path)) from None
        return str(read["format"])

    def _written(self, number: int, text: bytes) -> str:
        path = Path(self._folder.name) / str(number)
        try:
            path.write_bytes(text)
        except OSError as error:
            raise QueryError(not_written(path, error, *IN_PASSING)) from error
        return str(path)

    def _count(self, given: Sequence[tuple[_Watched, bytes]], *, last: bool = False) -> Counts:
        """Count texts, and add them to what was counted of all. ``last``: nothing will follow."""
        log = _core.Log(self._options.distinct)
        whole = [(e, t) for e, t in given if e.format not in JOINED and t]
        joined = [(e, t) for e, t in given if e.format in JOINED and (t or (last and e.is_open))]
        try:
            reads = [*self._read(log, whole, keep_tail=False),
                     *self._read(log, joined, keep_tail=not last)]  # fmt: skip
            tables = log.tables()
            self._all.add(tables)
        except ValueError as error:
            raise QueryError(str(error)) from None
        return Counts(as_tables(tables), reads)

    def _read(
        self, log: _core.Log, given: Sequence[tuple[_Watched, bytes]], *, keep_tail: bool
    ) -> list[dict[str, Any]]:
        """Read texts into a log; each goes on where the last one of its source ended."""
        if not given:
            return []
        reads = log.read(
            [
                (self._written(n, each.header + each.text + text), each.source.server,
                 each.format, 0)
                for n, (each, text) in enumerate(given)
            ],
            **settings(self._options),
            threads=self._options.threads,
            keep_tail=keep_tail,
            opens=[each.opened for each, _ in given],
        )  # fmt: skip
        for (each, _), read in zip(given, reads, strict=True):
            state, _, each.text, *_ = read.pop("open", _NOTHING)
            last_ns, at_s = read.pop("clock")
            # What stands in the text is read again, so the clock is as it was before it.
            each.opened = (state, b"", b"", last_ns, each.opened[4] if at_s is None else at_s)
            _join(each, read)
        return reads


def _lines(text: bytes) -> list[bytes]:
    """Lines with their ends. (``splitlines`` would end them at a CR within a statement, too.)"""
    *whole, last = text.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def _without_header(each: _Watched, text: bytes) -> bytes:
    """Lines of CSV without the one that names the columns, wherever a file begins with it."""
    lines = _lines(text)
    if not each.header:
        each.header = next((line for line in lines if line.strip()), b"")
    return b"".join(line for line in lines if line != each.header)


def _nothing(source: Source) -> dict[str, Any]:
    """What became of a source of which nothing was read."""
    return {
        "path": source.path, "server": source.server, "format": "", "refused": "", "lines": 0,
        "entries": 0, "unread": 0, "back": 0, "bytes": 0, "read_bytes": 0, "longest_line": 0,
        "examples": [], "other_formats": [], "notes": {},
    }  # fmt: skip


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_packed(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(6).startswith(_PACKED)
    except OSError:
        return False


def _join(each: _Watched, read: dict[str, Any]) -> None:
    """What became of an increment is added to what became of its source."""
    old, header = each.read, int(bool(each.header))
    later = [(line + old["lines"] - header, *rest) for line, *rest in read["examples"]]
    old["examples"] = [*old["examples"], *later][:_EXAMPLES]
    old["other_formats"] = with_others(old, read, old["lines"] - header)
    read["lines"] -= header
    read["bytes"] -= len(each.header)
    for name in _SUMS:
        old[name] += read[name]
    old["read_bytes"] = old["bytes"]
    old["longest_line"] = max(old["longest_line"], read["longest_line"])
    for what, n in read["notes"].items():
        old["notes"][what] = old["notes"].get(what, 0) + n
