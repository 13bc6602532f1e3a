"""A storage in memory: a tmpfs of a given size. Its files never leave memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import psutil

from searchbench.errors import LabError
from searchbench.lab.place import mounts, things
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.place.storage import lies, megabytes, size_words
from searchbench.places import Storage
from searchbench.record.trial import Lever


class Ram:
    """``point``: an empty folder of ours."""

    device: str | None = None
    daemons: Sequence[psutil.Process] = ()

    def __init__(self, asked: Storage, ledger: Ledger, point: Path) -> None:
        self.asked, self._ledger, self._point = asked, ledger, point
        self.folder = point
        self._number = 0

    def make(self) -> None:
        """Mount it."""
        free = psutil.virtual_memory().available
        if self.asked.size_bytes > free:
            raise LabError(
                f"storage {self.asked.name}: `size` is {size_words(self.asked.size_bytes)}, and "
                f"this machine has {megabytes(free)} of memory free; make it smaller",
                "place",
            )
        source = self._ledger.unique()
        self._number = self._ledger.note(things.Mount(str(self._point), "tmpfs", source))
        options = f"size={self.asked.size_bytes},mode=0755"
        if said := mounts.mount(source, self._point, "tmpfs", options):
            raise LabError(
                f"storage {self.asked.name}: tmpfs could not be mounted: {said}", "place"
            )

    def forget(self) -> None:
        """It lies in memory."""

    def levers(self, files: Sequence[Path]) -> list[Lever]:
        """Is it a tmpfs of this size, and are the files on it?"""
        found = mounts.at(self.folder)
        kind = found.kind if found else "nothing"
        of = os.statvfs(self.folder)
        size = of.f_blocks * of.f_frsize
        problem = "" if kind == "tmpfs" else f"{kind} is mounted there, not tmpfs"
        if not problem and abs(size - self.asked.size_bytes) > 65536:
            problem = f"its size is {megabytes(size)}"
        return [
            lies(self.asked, "ram", "true", self.folder, files,
                 f"{kind} of {megabytes(size)}", problem)
        ]  # fmt: skip

    def remove(self) -> list[str]:
        """Unmount it; what was on it is gone."""
        return self._ledger.undo(self._number)
