"""What every storage does: it is made, holds files, is looked at, leaves memory, is removed.

directory    a folder of ours in one that exists        disk.py   ext4, xfs, btrfs on a file
ram.py       tmpfs                                      zfs.py    zfs-fuse on a file
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import psutil

from searchbench.errors import LabError
from searchbench.lab.place import mounts, things
from searchbench.lab.place.ledger import Ledger
from searchbench.places import Storage
from searchbench.record.trial import Lever
from searchbench.sizes import size_text


class Made(Protocol):
    """A storage of ours. ``folder``: where files go. ``device``: "major:minor" of what is slowed.

    ``daemons``: processes without which it does not work; their CPU time is the system's.
    """

    asked: Storage
    folder: Path

    @property
    def device(self) -> str | None:
        """Of what can be slowed; None where there is no such device."""

    @property
    def daemons(self) -> Sequence[psutil.Process]:
        """Processes that do its work."""

    def make(self) -> None:
        """LabError (stage ``place``) where it cannot be made; then nothing is left of it."""

    def forget(self) -> None:
        """Evict what it keeps in memory besides the pages of files, while nobody uses it."""

    def levers(self, files: Sequence[Path]) -> list[Lever]:
        """Its levers, as read back and by their effect on the files that lie on it."""

    def remove(self) -> list[str]:
        """Remove it with all that is on it; why not, if not."""


class Directory:
    """A folder of ours in a folder that exists, on whatever device."""

    device: str | None = None
    daemons: Sequence[psutil.Process] = ()

    def __init__(self, asked: Storage, ledger: Ledger) -> None:
        self.asked, self._ledger = asked, ledger
        self.folder = Path(asked.directory)
        self._number = 0

    def make(self) -> None:
        """Make the folder."""
        if not Path(self.asked.directory).is_dir():
            raise LabError(
                f"storage {self.asked.name}: there is no directory {self.asked.directory}; create "
                "it, or name another",
                "place",
            )
        self.folder = Path(self.asked.directory) / self._ledger.unique()
        self._number = self._ledger.note(things.Tree(str(self.folder)))
        try:
            self.folder.mkdir()
        except OSError as error:
            raise LabError(
                f"storage {self.asked.name}: cannot make {self.folder}: {error.strerror}", "place"
            ) from None

    def forget(self) -> None:
        """Nothing to do: it caches nothing of its own."""

    def levers(self, files: Sequence[Path]) -> list[Lever]:
        """Where the files lie."""
        found = mounts.holding(self.folder)
        return [
            lies(self.asked, "directory", self.asked.directory, self.folder, files,
                 f"{found.kind} on {found.source}")
        ]  # fmt: skip

    def remove(self) -> list[str]:
        """Remove the folder."""
        return self._ledger.undo(self._number)


def lies(
    asked: Storage,
    key: str,
    wanted: str,
    folder: Path,
    files: Sequence[Path],
    read_back: str,
    problem: str = "",
) -> Lever:
    """The lever that says what a storage is; its effect: all files lie on it, none elsewhere."""
    device = folder.stat().st_dev
    stats = [path.stat() for path in files if path.exists()]
    on_it = sum(each.st_size for each in stats if each.st_dev == device)
    off_it = sum(each.st_size for each in stats if each.st_dev != device)
    if not problem and off_it:
        problem = f"{megabytes(off_it)} of its files lie on another file system"
    elif not problem and not on_it:
        problem = f"no file of the system lies on it; {len(stats)} should"
    return Lever(
        name=f"storages.{asked.name}.{key}",
        asked=wanted,
        read_back=read_back,
        effect=f"{megabytes(on_it)} in {len(stats)} files lie on it",
        problem=problem,
        figures={"files": len(stats), "bytes": on_it},
    )


def megabytes(size: float) -> str:
    """Bytes for a person."""
    return f"{size / 1e6:,.1f} MB"


def size_words(size: int) -> str:
    """A size as a study would give it."""
    return size_text(size)
