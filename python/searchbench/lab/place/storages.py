"""The storages of one index: made fresh for it, removed after it. And eviction of its files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from searchbench.errors import LabError
from searchbench.lab.place import cold, mounts
from searchbench.lab.place.cold import Evicted, files_below
from searchbench.lab.place.disk import Disk
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.place.ram import Ram
from searchbench.lab.place.storage import Directory, Made, megabytes, size_words
from searchbench.lab.place.zfs import Daemon, Zfs
from searchbench.places import Place, Storage
from searchbench.record.trial import Lever

# File systems whose pages are cached by themselves or by another machine.
_OWN_CACHES = frozenset(
    ("zfs", "nfs", "nfs4", "9p", "virtiofs", "cifs", "smb3", "ceph", "glusterfs")
)  # fmt: skip

_BELOW_BYTES = 1_000_000  # a disk with less is full
_FULL = 0.01  # a storage with less of its size left is full: its file system keeps some for itself


class Storages:
    """``home``: a folder for this index alone, below ``work``, where storages are mounted too.

    ``data``: where the index lies, ``laid``: where files of other kinds do, once it is made.
    ``unwritten``: kinds of which there cannot be a file yet. ``copy``: the folder of a copy of the
    index that is driven in its stead, outside of any storage; its pages count too.
    """

    def __init__(
        self, place: Place | None, home: Path, work: Path, ledger: Ledger, daemon: Daemon
    ) -> None:
        self._asked: Mapping[str, Storage] = place.storages if place else {}
        self._home, self._work, self._ledger, self._daemon = home, work, ledger, daemon
        self._made: dict[str, Made] = {}
        self.data = home / "data"
        self.laid: dict[str, Path] = {}
        self.unwritten: set[str] = set()
        self.copy: Path | None = None

    @property
    def folders(self) -> list[Path]:
        """Wherever its files are."""
        return [self.data, *self.laid.values()]

    @property
    def daemons(self) -> list[psutil.Process]:
        """Processes that do the work of its storages. The probe's thread asks too, at any time."""
        return [process for made in tuple(self._made.values()) for process in tuple(made.daemons)]

    def room_of(self, kind: str, files: Sequence[Path]) -> int | None:
        """Bytes that are allocated to files of a kind; None where that cannot be known."""
        storage = self._asked.get(kind) or self._asked.get("data")
        made = self._made.get(storage.name) if storage else None
        if isinstance(made, Disk):
            return made.room_of(files)
        return sum(f.stat().st_blocks * 512 for f in files)

    @property
    def devices(self) -> list[str]:
        """The names of the block devices that are made for it, as the kernel counts them."""
        return [Path(m.path).name for m in self._made.values() if isinstance(m, Disk) and m.path]

    @property
    def own(self) -> dict[str, Made]:
        """By name, those that are file systems of ours and not directories, once they are made."""
        return {n: made for n, made in self._made.items() if made.asked.kind != "directory"}

    def serve(self, place: Place) -> None:
        """From now on they are those of this place, by the names that it has for them.

        One index serves all places in which its files are the same, and these may name a storage
        otherwise, or limit its rates otherwise.
        """
        made = self._made
        self._made = {}
        for kind, storage in place.storages.items():
            if (one := made.get(self._asked[kind].name)) is not None:
                one.asked = storage
                self._made[storage.name] = one
        self._asked = place.storages

    def made(self, name: str) -> Made:
        """The storage of that name."""
        return self._made[name]

    def make(self) -> None:
        """Make every storage that is not there yet. LabError (stage ``place``); see ``remove``."""
        if self._asked and not self._made:
            self._ledger.folder(self._work)
        for kind, storage in self._asked.items():
            if storage.name not in self._made:
                made = self._new(storage)
                self._made[storage.name] = made
                made.make()
            folder = self._made[storage.name].folder / kind
            if kind == "data":
                self.data = folder
            else:
                self.laid[kind] = folder

    def forget(self) -> None:
        """Nothing of its storages is in memory any more but what lies there; nobody uses them."""
        for made in self._made.values():
            made.forget()

    def forget_own(self) -> None:
        """What file systems keep in memory besides the kernel, gone; nobody uses them."""
        for made in self._made.values():
            if isinstance(made, Zfs):
                made.forget()

    def levers(self) -> list[Lever]:
        """Those of all its storages, with their effect on the files that lie there by now."""
        found = []
        for name, made in self._made.items():
            kinds = {kind for kind, storage in self._asked.items() if storage.name == name}
            if kinds <= self.unwritten:
                continue
            folders = [self._folder(kind) for kind in kinds]
            found += made.levers(list(files_below(folders)))
        return found

    def evict(self) -> Evicted:
        """Evict its files, but those that lie in memory."""
        return cold.evict(self._leaving())

    def resident_bytes(self) -> int:
        """How much of its files is in memory, but for those that lie there."""
        return cold.resident_bytes(self._leaving())

    def hidden(self) -> str:
        """Where pages stay in memory that the kernel neither shows nor charges, a sentence; "" if
        nowhere. The ZFS that is made here is no such place, as it is left and entered again.
        """
        kinds = ("data", *self.laid)
        asked = {kind: self._asked[kind].kind for kind in kinds if kind in self._asked}
        folders = [self._folder(kind) for kind in kinds
                   if asked.get(kind, "directory") == "directory"]  # fmt: skip
        folders += [self.copy] if self.copy else []
        if any(kind not in ("directory", "ram") for kind in asked.values()):
            folders.append(self._home)  # the files that its disks are made of
        for folder in folders:
            there = next(path for path in (folder, *folder.parents) if path.exists())
            kind = mounts.holding(there).kind
            if kind in _OWN_CACHES or kind.startswith("fuse"):
                return (
                    f"{there} lies on {kind}, which keeps pages in memory that the kernel neither "
                    "shows nor counts as the system's: so nothing can be shown to be cold, and no "
                    "limit of memory applies to them. Name a folder on another file system with "
                    "--work, or another `directory`"
                )
        return ""

    def full(self) -> str:
        """Which storage has no room left, as a sentence; "" if none."""
        for name, made in self._made.items():
            try:
                of = os.statvfs(made.folder)
            except OSError:  # it was not made
                continue
            size, free = of.f_blocks * of.f_frsize, of.f_bavail * of.f_frsize
            if made.asked.kind != "directory" and free < _FULL * size:
                return (
                    f"the storage {name} is full: {megabytes(free)} are left of `size` = "
                    f"{size_words(made.asked.size_bytes)}; make it larger"
                )
        return ""

    def full_below(self) -> str:
        """That the disk is full on which indexes are made, as a sentence; "" if not.

        The files grow there on which storages of ours are made, too.
        """
        try:
            of = os.statvfs(self._work)
        except OSError:
            return ""
        free = of.f_bavail * of.f_frsize
        if free >= _BELOW_BYTES:
            return ""
        return (
            f"the disk of {self._work.parent} is full, on which indexes are made: "
            f"{megabytes(free)} are left; free some room, or name another folder with --work"
        )

    def remove(self) -> list[str]:
        """Remove the files and all storages; what could not be, and why."""
        problems = []
        for name, made in reversed(self._made.items()):
            left = made.remove()
            problems += [f"storage {name}: {why}" for why in left]
        self._made.clear()
        self.laid.clear()
        self.data = self._home / "data"
        if not problems and (why := mounts.remove_tree(self._home)):
            problems.append(why)
        return problems

    def _leaving(self) -> list[Path]:
        """Folders whose files can leave memory."""
        return [
            *(
                self._folder(kind)
                for kind in ("data", *self.laid)
                if kind not in self._asked or self._asked[kind].kind != "ram"
            ),
            *([self.copy] if self.copy else []),
        ]

    def _folder(self, kind: str) -> Path:
        return self.data if kind == "data" else self.laid[kind]

    def _new(self, storage: Storage) -> Made:
        if storage.kind == "directory":
            return Directory(storage, self._ledger)
        home = self._home / f"on-{len(self._made)}"
        home.mkdir(parents=True)
        if storage.kind == "ram":
            return Ram(storage, self._ledger, home)
        if storage.kind == "zfs":
            return Zfs(storage, self._ledger, home, self._daemon)
        return Disk(storage, self._ledger, home)


def not_in_memory(evicted: Evicted) -> None:
    """LabError (stage ``place``) where files could not be evicted."""
    if not evicted.done:
        page = cold.PAGE_BYTES
        raise LabError(
            f"{megabytes(evicted.after * page)} of {megabytes(evicted.pages * page)} of the "
            "system's files could not be evicted from memory: a process has mapped them, or writes "
            "to them; stop that process",
            "place",
        )
