"""A pool of zfs-fuse on a file of ours, with compression, record size and logbias.

zfs-fuse is one process for the whole machine: where one runs that is not ours, there is no storage
of this kind. What it keeps in memory is outside of a system's cap: its ARC, of a fixed size, and
what the kernel keeps of the pool's file, of any size. (With direct I/O of its own it maps no file.)
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from searchbench.errors import LabError
from searchbench.lab.place import cold, mounts, things
from searchbench.lab.place.disk import compressible
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.place.storage import lies, megabytes
from searchbench.places import Storage
from searchbench.record.trial import Lever

ARC_MB = 64
"""What zfs-fuse may keep of the files in memory of its own."""

_STARTS_S = 15.0
_SETTLES_S = 20.0
_AGAIN_S = 0.2
_SAVES = 0.95
_LEVELS = {"gzip-6": "gzip"}  # what zfs calls otherwise than a study may


class Daemon:
    """The one zfs-fuse, started with the first pool of ours and ended with the last."""

    def __init__(self, ledger: Ledger, home: Path) -> None:
        self._ledger = ledger
        self._pidfile = home / "zfs-fuse.pid"
        self._number = 0
        self._users = 0

    @property
    def marker(self) -> str:
        """A path of ours among its arguments."""
        return str(self._pidfile)

    @property
    def processes(self) -> list[psutil.Process]:
        """The process, while it runs."""
        return things.Daemon("zfs-fuse", self.marker).processes()

    def enter(self) -> None:
        """Start it unless it runs; LabError if another one runs, or if it does not start."""
        self._users += 1
        if self.processes:
            return
        if others := running():
            raise LabError(
                f"a zfs-fuse that is not ours runs on this machine (process {others[0].pid}); stop "
                "it: service zfs-fuse stop",
                "place",
            )
        self._pidfile.parent.mkdir(parents=True, exist_ok=True)
        self._pidfile.unlink(missing_ok=True)  # with an old one it ends without a word
        self._number = self._ledger.note(things.Daemon("zfs-fuse", self.marker))
        code, said = things.run(
            "zfs-fuse", "-p", self.marker, "-m", str(ARC_MB), "--no-kstat-mount"
        )
        give_up = time.monotonic() + _STARTS_S
        while things.run("zpool", "list", "-H")[0]:
            if code or time.monotonic() > give_up:
                raise LabError(f"zfs-fuse did not start: {said or 'it printed nothing'}", "place")
            time.sleep(0.05)

    def leave(self) -> list[str]:
        """End it if no pool needs it any more."""
        self._users -= 1
        return self._ledger.undo(self._number) if self._users <= 0 else []


class Zfs:
    """``home``: an empty folder of ours, for the file and for where it is mounted."""

    device: str | None = None

    def __init__(self, asked: Storage, ledger: Ledger, home: Path, daemon: Daemon) -> None:
        self.asked, self._ledger, self._daemon = asked, ledger, daemon
        self._image = home / "disk.img"
        self._point = home / "mounted"
        self._pool = ledger.unique()
        self.folder = self._point / "files"
        self._numbers: list[int] = []
        self._entered = False

    @property
    def daemons(self) -> Sequence[psutil.Process]:
        """zfs-fuse, whose CPU time is the system's."""
        return self._daemon.processes

    def make(self) -> None:
        """Make the file, a pool on it, and its one file system with its properties."""
        self._entered = True
        self._daemon.enter()
        with self._image.open("xb") as file:
            file.truncate(self.asked.size_bytes)
        self._point.mkdir()
        for thing in (
            things.Pool(self._pool, self._daemon.marker),
            things.Mount(str(self._point), "fuse", self._pool),
        ):
            self._numbers.append(self._ledger.note(thing))
        properties = [
            part for item in self._properties().items() for part in ("-O", "=".join(item))
        ]
        # No cache file: a daemon that is started later must not find the pool by itself.
        code, said = things.run(
            "zpool", "create", "-o", "ashift=9", "-o", "cachefile=none", "-m", str(self._point),
            *properties, self._pool, str(self._image),
        )  # fmt: skip
        if code:
            raise self._error(f"the pool could not be made: {said}")
        self.folder.mkdir()

    def forget(self) -> None:
        """Export the pool and import it: its ARC forgets it. Meanwhile its file is evicted."""
        for arguments in (
            ("export", self._pool),
            ("import", "-d", str(self._image.parent), "-o", "cachefile=none", self._pool),
        ):
            code, said = things.run("zpool", *arguments)
            until = time.monotonic() + _SETTLES_S
            # For a moment after its last file was closed, zfs-fuse may still hold a pool.
            while code and "busy" in said and time.monotonic() < until:
                time.sleep(_AGAIN_S)
                code, said = things.run("zpool", *arguments)
            if code:
                raise self._error(f"zpool {arguments[0]} failed: {said}")
            # zfs-fuse reads it through the kernel's cache, where it would be in memory once more.
            if arguments[0] == "export" and not cold.evicted(self._image):
                raise self._error(f"{self._image} could not be evicted from memory")

    def levers(self, files: Sequence[Path]) -> list[Lever]:
        """The file system, its properties as zfs has them, and whether it compresses."""
        found = mounts.at(self._point)
        has = self._read_back()
        problem = "" if found is not None and found.source == self._pool else "it is not mounted"
        read_back = f"{found.kind} of {found.source}, ARC {ARC_MB} MB" if found else "not mounted"
        levers = [lies(self.asked, "filesystem", "zfs", self.folder, files, read_back, problem)]
        for key, name, wanted in self._given():
            levers.append(
                Lever(
                    name=f"storages.{self.asked.name}.{key}",
                    asked=wanted,
                    read_back=has.get(name, ""),
                    effect="as zfs has it, for files made since",
                    problem="" if has.get(name) == wanted else f"zfs has {has.get(name)!r}",
                )
            )
        if self.asked.compression:
            levers.append(self._compressed(files, has.get("compression", "")))
        return levers

    def remove(self) -> list[str]:
        """Destroy the pool, remove its file, and end the daemon with its last pool."""
        problems = self._ledger.undo(*self._numbers)
        if not problems:
            self._numbers = []
            self._image.unlink(missing_ok=True)
            if self._entered:
                self._entered = False
                problems = self._daemon.leave()
        return problems

    def _given(self) -> list[tuple[str, str, str]]:
        """Keys of a study with their property and its value, compression apart."""
        given = []
        if self.asked.record_size_bytes:
            given.append(("record_size", "recordsize", str(self.asked.record_size_bytes)))
        if self.asked.logbias:
            given.append(("logbias", "logbias", str(self.asked.logbias)))
        return given

    def _properties(self) -> dict[str, str]:
        given = {name: value for _, name, value in self._given()}
        return {"atime": "off", "compression": self.asked.compression or "off", **given}

    def _read_back(self) -> dict[str, str]:
        code, said = things.run("zfs", "get", "-Hp", "-o", "property,value", "all", self._pool)
        words = said.split()
        # Two columns; values of the properties that matter are single words.
        return {} if code else {
            name: words[words.index(name) + 1]
            for name in ("recordsize", "compression", "logbias", "used") if name in words
        }  # fmt: skip

    def _compressed(self, files: Sequence[Path], has: str) -> Lever:
        """What the pool uses, once it stands still, against the size of the files."""
        size, used = sum(f.stat().st_size for f in files), self._used()
        share = used / size if size else 0.0
        effect = f"{megabytes(size)} take {megabytes(used)}: {share:.0%}"
        asked = _LEVELS.get(self.asked.compression, self.asked.compression)
        problem = "" if has == asked else f"zfs has {has!r}"
        if not problem and size > 1_000_000 and share >= _SAVES:
            possible = compressible(files)
            if possible < 0.85:
                problem = f"{effect}, but zlib compresses a sample to {possible:.0%}"
            else:
                effect += f"; they hardly compress (zlib: a sample to {possible:.0%})"
        return Lever(
            name=f"storages.{self.asked.name}.compression",
            asked=self.asked.compression,
            read_back=has,
            effect=effect,
            problem=problem,
            figures={"bytes": size, "disk_bytes": used},
        )

    def _used(self) -> int:
        """Bytes that the pool uses; it counts seconds later, so until they are the same twice."""
        give_up = time.monotonic() + _SETTLES_S
        last, same = -1, 0
        while same < 4 and time.monotonic() < give_up:
            used = int(self._read_back().get("used", "0"))
            same = same + 1 if used == last else 0
            last = used
            time.sleep(0.5)
        return last

    def _error(self, why: str) -> LabError:
        return LabError(f"storage {self.asked.name}: {why}", "place")


def running() -> list[psutil.Process]:
    """Every zfs-fuse of this machine, ours or not."""
    every = psutil.process_iter(["name", "status"])
    return [
        process for process in every
        if process.info["name"] == "zfs-fuse" and process.info["status"] != psutil.STATUS_ZOMBIE
    ]  # fmt: skip
