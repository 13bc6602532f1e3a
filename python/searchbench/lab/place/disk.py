"""A file of ours with ext4, xfs or btrfs on it, behind a loop device with direct I/O.

Without direct I/O each page would be in memory twice: once as the file system's, once as the
file's. The file is sparse, so that it takes no more room than what was written.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path

import psutil

from searchbench.errors import LabError
from searchbench.lab.place import mounts, things
from searchbench.lab.place.cold import PAGE_BYTES
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.place.slow import Slow
from searchbench.lab.place.storage import lies, megabytes, size_words
from searchbench.places import Storage
from searchbench.record.trial import Lever

MAKERS = {
    # No inode table is left to be written in the background, while something is measured.
    "ext4": ("mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-i", "65536",
             "-E", "lazy_itable_init=0,lazy_journal_init=0"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
}  # fmt: skip
"""The command that makes each file system on a file."""

SAVES_NOTHING = 0.95
"""Files that take so much of their size, or more, were not compressed."""

_COMPRESSES = 0.85  # what zlib makes less than this of, a file system must save something of
_EXTENT_BYTES = 128 << 10  # what btrfs compresses at a time
_SAMPLES = 64
_AT_ONCE = 500  # files that compsize is asked about


class Disk:
    """``home``: an empty folder of ours, for the file and for where it is mounted."""

    def __init__(self, asked: Storage, ledger: Ledger, home: Path) -> None:
        self.asked, self._ledger = asked, ledger
        self._image = home / "disk.img"
        self._point = home / "mounted"
        self.folder = self._point / "files"
        self._slow = Slow(self._image, home / "slow", asked.latency_ms or 0.0, ledger)
        self._numbers: list[int] = []
        self._device = ""

    @property
    def device(self) -> str | None:
        """Of the loop device, while it is attached."""
        if not self._device:
            return None
        number = Path(self._device).stat().st_rdev
        return f"{os.major(number)}:{os.minor(number)}"

    @property
    def path(self) -> str:
        """The loop device, as in /dev/loop3."""
        return self._device

    @property
    def probe(self) -> Path:
        """A file on it to measure with; no engine uses it."""
        return self._point / "probe"

    @property
    def daemons(self) -> Sequence[psutil.Process]:
        """The processes that delay requests."""
        return self._slow.daemons

    def make(self) -> None:
        """Make the file, the file system, and a folder on it. Nothing is delayed yet."""
        try:
            with self._image.open("xb") as file:
                file.truncate(self.asked.size_bytes)
        except OSError as error:
            raise self._error(
                f"a file of `size` = {size_words(self.asked.size_bytes)} could not be made in "
                f"{self._image.parent}: {error.strerror}; make it smaller"
            ) from None
        program, *arguments = MAKERS[self.asked.kind]
        code, said = things.run(program, *arguments, str(self._image))
        if code:
            raise self._error(f"{self.asked.kind} could not be made: {said}")
        self._point.mkdir()
        self._attach(self._image)
        self.folder.mkdir()

    def forget(self) -> None:
        """Mount it anew, so that nothing of it is in memory; from now on requests are delayed."""
        if problems := self._detach():
            raise self._error(problems[0])
        self._attach(self._slow.start() if self.asked.latency_ms else self._image)

    def levers(self, files: Sequence[Path]) -> list[Lever]:
        """The file system, where it lies, and whether it compresses."""
        found = mounts.at(self._point)
        problem = ""
        if found is None or found.kind != self.asked.kind or found.source != self._device:
            problem = f"{found.kind if found else 'nothing'} is mounted there"
        elif not self._direct():
            problem = f"{self._device} has no direct I/O, so its pages would be in memory twice"
        read_back = "" if found is None else f"{found.kind} on {found.source}, direct I/O"
        levers = [
            lies(self.asked, "filesystem", self.asked.kind, self.folder, files, read_back, problem)
        ]
        if self.asked.compression:
            levers.append(self._compressed(files, found))
        if self.asked.latency_ms:
            levers.append(self._slow.lever(self.asked, self._device))
        return levers

    def remove(self) -> list[str]:
        """Unmount it, detach it, remove the file."""
        problems = self._detach()
        if not problems:
            self._image.unlink(missing_ok=True)
        return problems

    def _attach(self, backing: Path) -> None:
        loop = things.Loop(str(backing))
        self._numbers.append(self._ledger.note(loop))
        if said := loop.attach():
            raise self._error(f"a loop device could not be attached: {said}")
        (self._device,) = loop.devices()
        if not self._direct():
            where = mounts.holding(self._image)
            raise self._error(
                f"{where.kind} at {where.point} has no direct I/O for loop devices, so pages would "
                "be in memory twice; use --work to name a folder on another file system"
            )
        mount = things.Mount(str(self._point), self.asked.kind, str(backing))
        self._numbers.append(self._ledger.note(mount))
        said = mounts.mount(self._device, self._point, self.asked.kind, self._options())
        if said:
            raise self._error(f"{self.asked.kind} could not be mounted: {said}")

    def _detach(self) -> list[str]:
        problems = self._ledger.undo(*self._numbers)
        if not problems:
            self._numbers, self._device = [], ""
            problems = self._slow.stop()
        return problems

    def _options(self) -> str:
        if self.asked.kind != "btrfs":
            return ""
        # Discards are sent in the background while something is measured.
        options = "nodiscard"
        # Forced: else btrfs gives up on a file whose beginning does not compress.
        return options + (f",compress-force={self.asked.compression}" if self.asked.compression
                          else "")  # fmt: skip

    def _direct(self) -> bool:
        name = Path(self._device).name
        try:
            return Path(f"/sys/block/{name}/loop/dio").read_text().strip() == "1"
        except OSError:
            return False

    def _compressed(self, files: Sequence[Path], found: mounts.Mounted | None) -> Lever:
        """How much room the files take, by their size; could they be compressed at all?"""
        os.sync()
        asked = self.asked.compression
        option = next((o for o in (found.options if found else ()) if o.startswith("compress")), "")
        # Holes take no room, compressed or not.
        whole, (held, room) = sum(f.stat().st_size for f in files), self._room(files)
        size = min(whole, held)
        read_back = option or "no compression in the options of the mount"
        share = room / size if size else 0.0
        effect = f"{megabytes(size)} take {megabytes(room)}: {share:.0%}"
        if size < SAVES_NOTHING * whole:
            effect += f"; {megabytes(whole - size)} more are holes"
        problem, possible = "", None
        if not option.startswith("compress-force=") or asked.split(":")[0] not in option:
            problem = f"mounted with {read_back}"
        elif size and share >= SAVES_NOTHING:
            possible = compressible(files)
            if possible < _COMPRESSES:
                problem = (
                    f"{effect}, but zlib compresses a sample to {possible:.0%}; files whose room "
                    "was reserved beforehand (fallocate) are not compressed"
                )
            else:
                effect += f"; they hardly compress (zlib: a sample to {possible:.0%})"
        return Lever(
            name=f"storages.{self.asked.name}.compression",
            asked=asked,
            read_back=read_back,
            effect=effect,
            problem=problem,
            figures={"bytes": size, "disk_bytes": room},
        )

    def _room(self, files: Sequence[Path]) -> tuple[int, int]:
        """The blocks of the files, without holes, in bytes; and what these take of the device.

        As compsize counts, else as btrfs itself does.
        """
        code, said = things.run("compsize", "-b", "-x", str(self.folder))
        words = said.split()
        if not code and "TOTAL" in words:
            total = words.index("TOTAL")
            return int(words[total + 3]), int(words[total + 2])
        if "No files" in said or not files:
            return 0, 0
        size = sum(f.stat().st_blocks * 512 for f in files)  # of btrfs: as if not compressed
        of = os.statvfs(self._point)  # with what btrfs needs for itself
        return size, (of.f_blocks - of.f_bfree) * of.f_frsize

    def room_of(self, files: Sequence[Path]) -> int | None:
        """What these files take of the device; None where only compsize could tell."""
        if self.asked.kind != "btrfs":
            return sum(f.stat().st_blocks * 512 for f in files)
        total = 0
        for at in range(0, len(files), _AT_ONCE):
            several = [str(f) for f in files[at : at + _AT_ONCE]]
            code, said = things.run("compsize", "-b", "-x", *several)
            words = said.split()
            if "No files" in said:
                continue
            if code or "TOTAL" not in words:
                return None
            total += int(words[words.index("TOTAL") + 2])
        return total

    def _error(self, why: str) -> LabError:
        return LabError(f"storage {self.asked.name}: {why}", "place")


def compressible(files: Sequence[Path]) -> float:
    """To what share zlib compresses a sample of these files; extent by extent, as btrfs does.

    Holes are left out.
    """
    sizes = [path.stat().st_size for path in files]
    extents = [
        (path, at) for path, size in zip(files, sizes, strict=True)
        for at in range(0, size, _EXTENT_BYTES)
    ]  # fmt: skip
    before = after = 0
    for path, at in extents[:: max(1, len(extents) // _SAMPLES)]:
        piece = _data(path, at)
        if len(piece) > PAGE_BYTES:  # a page or less has nothing to save
            before += len(piece)
            after += min(len(piece), len(zlib.compress(piece, 1)))
    return after / before if before else 1.0


def _data(path: Path, at: int) -> bytes:
    """What is written of the extent there, up to the next hole; nothing if all of it is a hole."""
    with path.open("rb", buffering=0) as file:
        try:
            begin = os.lseek(file.fileno(), at, os.SEEK_DATA)
        except OSError:  # there is nothing but a hole from there on
            return b""
        end = min(os.lseek(file.fileno(), begin, os.SEEK_HOLE), at + _EXTENT_BYTES)
        return os.pread(file.fileno(), max(0, end - begin), begin)
