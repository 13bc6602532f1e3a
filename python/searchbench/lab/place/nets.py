"""Network devices and namespaces of ours: as all that we make, written down first and undone."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

from searchbench.lab.place import mounts
from searchbench.lab.place.things import PREFIX, Thing, run

_PATIENCE_S = 5.0


class Link(Thing, frozen=True, tag=True):
    """A bridge, or our end of a cable. Its name has no room for ours, so its address says whose.

    ``mac``: its hardware address, given with its name as it is made, and nobody else's.
    """

    name: str
    mac: str

    def __str__(self) -> str:
        """As for a person."""
        return f"network device {self.name}"

    def there(self) -> bool:
        """Is it there, with our address?"""
        try:
            return Path(f"/sys/class/net/{self.name}/address").read_text().strip() == self.mac
        except OSError:
            return False

    def undo(self) -> str:
        """Remove it, and wait until the kernel has: the other end of a cable goes with it."""
        give_up = time.monotonic() + _PATIENCE_S
        while self.there():
            code, said = run("ip", "link", "del", self.name)
            if time.monotonic() > give_up:
                return f"{self} was not removed: {said if code else 'it is still there'}"
        return ""


def link(unique: str) -> Link:
    """A device that is going to be made; ``unique``: a name of the ledger."""
    number = unique.rpartition("-")[2]
    mac = bytes([0x02, *hashlib.sha256(unique.encode()).digest()[:5]])  # 02: of nobody's making
    return Link(f"sb{os.getpid()}-{number}"[:15], mac.hex(":"))


class Namespace(Thing, frozen=True, tag=True):
    """A network namespace of ours, by its name; all that runs in it was started by us."""

    name: str

    @property
    def path(self) -> Path:
        """The file that stands for it."""
        return Path("/run/netns") / self.name

    def __str__(self) -> str:
        """As for a person."""
        return f"network namespace {self.name}"

    def there(self) -> bool:
        """Is there one of that name, or the file for it?"""
        return self.path.exists()

    def inode(self) -> int:
        """Its number, as /proc/PID/ns/net has it; 0 where there is none."""
        return self.path.stat().st_ino if mounts.at(self.path) is not None else 0

    def members(self) -> set[int]:
        """The processes in it, by their ids."""
        wanted = self.inode()
        return {pid for pid in psutil.pids() if wanted and inode_of(pid) == wanted}

    def undo(self) -> str:
        """End what is still in it, and remove it."""
        if not self.name.startswith(PREFIX):
            return f"{self} is left alone: it does not have our name"
        give_up = time.monotonic() + _PATIENCE_S
        while members := self.members():
            for pid in members:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > give_up:
                return f"{self}: process {min(members)} in it did not end"
            time.sleep(0.01)
        if self.there() and mounts.at(self.path) is None:
            self.path.unlink()  # killed before the namespace was put there
        if not self.there():
            return ""
        code, said = run("ip", "netns", "del", self.name)
        return f"{self} was not removed: {said}" if code else ""


def inode_of(pid: int) -> int:
    """The number of the namespace that a process is in; 0 where it has ended or is not shown."""
    try:
        return Path(f"/proc/{pid}/ns/net").stat().st_ino
    except OSError:
        return 0
