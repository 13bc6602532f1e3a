"""A ledger: what is made on this machine is written down before it is made.

Each process has a file of its own, in a folder that survives it; it is locked for as long as the
process lives. The next start, and ``searchbench places clean``, undo what the ledgers of dead
processes name, the last first, and nothing else. A loop device or a mount has no name that could
be ours, so a name alone would not do.

    {"boot": "...", "pid": 4711, "start": 123456}
    {"made": 1, "thing": {"type": "Loop", "image": "/tmp/.../disk.img"}}
    {"undone": 1}
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgspec

from searchbench.errors import LabError
from searchbench.lab.place.nets import Link, Namespace
from searchbench.lab.place.things import Daemon, Group, Loop, Mount, Pool, Thing, Tree
from searchbench.lab.remote.left import Remote

_PASSES = 3
_MOMENT_S = 2.0
_NAME = re.compile(r"(\d+)-(\d+)-\d+")  # process, when it began, which of its ledgers
_ANY = Tree | Loop | Mount | Group | Daemon | Pool | Namespace | Link | Remote


class _Line(msgspec.Struct, omit_defaults=True):
    """A line of a ledger: its head, something that is going to be made, or a number undone."""

    boot: str = ""
    pid: int = 0
    start: int = 0
    made: int = 0
    thing: _ANY | None = None
    undone: int = 0


_decode = msgspec.json.Decoder(_Line).decode


def folder() -> Path:
    """Where ledgers lie: SEARCHBENCH_LEDGERS, else one folder for root and one for each user."""
    named = os.environ.get("SEARCHBENCH_LEDGERS")
    if named:
        return Path(named)
    if os.geteuid() == 0:
        return Path("/var/lib/searchbench/ledgers")
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local/state") / "searchbench/ledgers"


@dataclass
class Ledger:
    """Of this process; as a context it undoes at its end whatever is still there.

    ``path`` is made with the first thing. ``problems``: what could not be undone.
    """

    problems: list[str] = field(default_factory=list)
    path: Path | None = None
    _file: int | None = None
    _things: dict[int, Thing] = field(default_factory=dict)
    _last: int = 0

    def __enter__(self) -> Self:
        """Nothing is written until something is to be made."""
        return self

    def __exit__(self, *_: object) -> None:
        """Undo what is left, the last first."""
        self.close()

    def unique(self, what: str = "") -> str:
        """A name with our prefix that no other process gives."""
        return f"searchbench-{os.getpid()}-{_started(os.getpid())}-{self._last + 1}{what}"

    def note(self, thing: Thing) -> int:
        """Write down what is going to be made; its number. LabError where it cannot be written."""
        try:
            if self._file is None:
                self._file = self._begin()
            self._last += 1
            self._write(_Line(made=self._last, thing=thing))  # type: ignore[arg-type]
        except OSError as error:
            raise LabError(
                "whatever is made or mounted is written down first, so that it can be undone; "
                f"but {folder()} cannot be written: {error.strerror}; set SEARCHBENCH_LEDGERS to "
                "another folder",
                "place",
            ) from None
        self._things[self._last] = thing
        return self._last

    def folder(self, path: Path) -> None:
        """Write down a folder of ours that exists, once; what is made in it goes before it."""
        tree = Tree(str(path))
        if tree not in self._things.values():
            self.note(tree)

    def undo(self, *numbers: int) -> list[str]:
        """Undo these, the last first; why not, of those that are left."""
        left = []
        for number in sorted(numbers, reverse=True):
            thing = self._things.get(number)
            if thing is None:
                continue
            if problem := thing.undo():
                left.append(problem)
                continue
            del self._things[number]
            self._write(_Line(undone=number))
        return left

    def settled(self, number: int) -> None:
        """That thing is gone, as whoever had it says itself."""
        if self._things.pop(number, None) is not None:
            self._write(_Line(undone=number))

    def close(self) -> None:
        """Undo all that is left; a ledger with nothing left is removed."""
        self.problems += self.undo(*self._things)
        if self._file is not None:
            if not self._things and self.path is not None:
                self.path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None

    def _begin(self) -> int:
        place = folder()
        place.mkdir(parents=True, exist_ok=True)
        start = _started(os.getpid())
        number = 0
        path = place / f"{os.getpid()}-{start}-{number}.jsonl"
        while path.exists():
            number += 1  # a second ledger of one process
            path = place / f"{os.getpid()}-{start}-{number}.jsonl"
        self.path = path
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.write(file, _encoded(_Line(boot=_boot(), pid=os.getpid(), start=start)))
        return file

    def _write(self, line: _Line) -> None:
        assert self._file is not None
        os.write(self._file, _encoded(line))


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What ``clean`` did. ``undone``: what was there and is gone; ``left``: what is not, and why.

    ``live``: the ids of processes that run and have made something.
    """

    undone: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    live: tuple[int, ...] = ()


def clean() -> Cleaned:
    """Undo what dead processes have left; what a live one has made is not touched."""
    undone: list[str] = []
    left: list[str] = []
    live: list[int] = []
    place = folder()
    for path in sorted(place.glob("*.jsonl")) if place.is_dir() else ():
        # SEARCHBENCH_LEDGERS may name a folder of other files too, such as 2026-11-23.jsonl.
        if (whose := _written_by(path)) is None:
            continue
        pid, start = whose
        if _lives(path, pid, start):
            live.append(pid)
            continue
        with _locked(path) as mine:
            if not mine:
                live.append(pid)
                continue
            things, unknown = _left_in(path)
            problems = _undo(things, undone)
            if unknown:
                problems.append(
                    f"{path} names {unknown}, which this version of searchbench does not know; run "
                    "`searchbench places clean` with the version that wrote the file"
                )
            if problems:
                left += problems
            else:
                path.unlink(missing_ok=True)
    return Cleaned(tuple(undone), tuple(left), tuple(live))


def _undo(things: Sequence[Thing], undone: list[str]) -> list[str]:
    """Undo these, the last first; why not, of those that are left.

    Again where something is there once more: a daemon may have finished what it had begun.
    """
    problems: list[str] = []
    for _ in range(_PASSES):
        problems = []
        for thing in reversed(things):
            there = thing.there()
            if problem := thing.undo():
                problems.append(problem)
            elif there and str(thing) not in undone:
                undone.append(str(thing))
        if not any(thing.there() for thing in things):
            break
    return problems


def _left_in(path: Path) -> tuple[list[Thing], str]:
    """What a ledger names and does not call undone, in the order in which it was made.

    And the kinds of what only another version can undo.
    """
    things: dict[int, Thing] = {}
    unknown: dict[int, str] = {}
    for row in path.read_bytes().split(b"\n"):
        try:
            line = _decode(row)
        except msgspec.DecodeError:
            # Killed while it wrote, nothing was made yet; a whole line is another version's.
            with contextlib.suppress(msgspec.DecodeError, KeyError, TypeError):
                found = msgspec.json.decode(row)
                unknown[found["made"]] = f"a {found['thing']['type']}"
            continue
        if line.thing is not None:
            things[line.made] = line.thing
        things.pop(line.undone, None)
        unknown.pop(line.undone, None)
    return list(things.values()), " and ".join(sorted({*unknown.values()}))


def _written_by(path: Path) -> tuple[int, int] | None:
    """Which process wrote a ledger, and when that began; None: the file is no ledger.

    A ledger begins with the boot in which it was written, or with what was made.
    """
    if (named := _NAME.fullmatch(path.stem)) is None:
        return None
    try:
        head = _decode(path.read_bytes().split(b"\n", 1)[0])
    except (OSError, msgspec.DecodeError):
        return None
    return (int(named[1]), int(named[2])) if head.boot or head.thing else None


def _lives(path: Path, pid: int, start: int) -> bool:
    """Is it the ledger of a process that runs?"""
    if _started(pid) != start:
        return False
    try:
        head = _decode(path.read_bytes().split(b"\n", 1)[0])
    except (OSError, msgspec.DecodeError):
        return True  # it has only just begun
    return head.boot == _boot()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Whether we have it to ourselves: its process may run where we do not see it.

    A child that a killed process was just starting has the lock for a moment more.
    """
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # another has just cleaned it
        yield False
        return
    give_up = time.monotonic() + _MOMENT_S
    try:
        while not _lock(file) and time.monotonic() < give_up:
            time.sleep(0.02)
        yield _lock(file) and path.exists()
    finally:
        os.close(file)


def _lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _encoded(line: _Line) -> bytes:
    return msgspec.json.encode(line) + b"\n"


def _started(pid: int) -> int:
    """When a process began, in ticks since the machine did (proc(5): starttime); -1: not there."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError):
        return -1


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
