"""What the laboratory makes on a machine, and how each is undone: by name, never by number.

Each says before it is made what it will be, and is undone only if what is there is still that. The
same code undoes what a live process has finished with and what a dead one left behind.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import struct
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

from searchbench.lab.place import mounts
from searchbench.lab.system.names import program

PREFIX = "searchbench-"
"""The beginning of the names of the folders, groups and pools that we make."""

# Of linux/loop.h.
_LOOP_CLR_FD, _LOOP_CONFIGURE, _LOOP_CTL_GET_FREE = 0x4C01, 0x4C0A, 0x4C82
_LO_FLAGS_DIRECT_IO = 16
_PR_SET_PDEATHSIG = 1
_PATIENCE_S = 5.0
_FLUSHED_S = 20.0  # a device is in use until what was written to it is on a disk, which others use
_libc = ctypes.CDLL(None, use_errno=True)


class Thing(msgspec.Struct, frozen=True, tag=True):
    """Something that we make. All paths are absolute."""

    def __str__(self) -> str:
        """What it is, for a person."""
        raise NotImplementedError

    def there(self) -> bool:
        """Is it there, and ours?"""
        raise NotImplementedError

    def undo(self) -> str:
        """See that it is gone: "" once it is, else why it is not."""
        raise NotImplementedError


class Tree(Thing, frozen=True, tag=True):
    """A folder of ours, with all that is in it."""

    path: str

    def __str__(self) -> str:
        """As for a person."""
        return f"folder {self.path}"

    def there(self) -> bool:
        """Is it there, with our name and our owner?"""
        path = Path(self.path)
        try:
            owner = path.lstat().st_uid
        except OSError:
            return False
        named = path.name.startswith(PREFIX)
        return named and not path.is_symlink() and owner == os.geteuid()

    def undo(self) -> str:
        """Remove it, but nothing across a mount."""
        return mounts.remove_tree(Path(self.path)) if self.there() else ""


class Loop(Thing, frozen=True, tag=True):
    """The loop devices with a file of ours behind them; which device it is, is seen later."""

    image: str

    def __str__(self) -> str:
        """As for a person."""
        return f"loop device of {self.image}"

    def devices(self) -> list[str]:
        """Their paths, as in /dev/loop3."""
        found = []
        for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
            try:
                if backing.read_text().strip().removesuffix(" (deleted)") == self.image:
                    found.append(f"/dev/{backing.parts[3]}")
            except OSError:  # detached meanwhile
                continue
        return found

    def there(self) -> bool:
        """Is there one?"""
        return bool(self.devices())

    def undo(self) -> str:
        """Detach them, and wait until the kernel has: it is put off while one is in use."""
        give_up = time.monotonic() + _FLUSHED_S
        while devices := self.devices():
            for device in devices:
                problem = self._detach(device)
                if problem:
                    return problem
            if time.monotonic() > give_up:
                return f"{devices[0]} with {self.image} behind it is still in use"
            time.sleep(0.01)
        return ""

    def attach(self) -> str:
        """Attach a device to it, with direct I/O; "" if done, else why not."""
        try:
            with Path(self.image).open("r+b", buffering=0) as file:
                while not self._attach(file.fileno()):
                    pass
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _attach(self, file: int) -> bool:
        """Whether the device that was free was still so."""
        with Path("/dev/loop-control").open("rb", buffering=0) as control:
            free = fcntl.ioctl(control, _LOOP_CTL_GET_FREE)
        config = struct.pack("=II40xIIII176x64x", file, 0, 0, 0, 0, _LO_FLAGS_DIRECT_IO)
        with Path(f"/dev/loop{free}").open("r+b", buffering=0) as device:
            try:
                fcntl.ioctl(device, _LOOP_CONFIGURE, config)
            except OSError as error:
                if error.errno == errno.EBUSY:
                    return False
                raise
        return True

    def _detach(self, device: str) -> str:
        try:
            descriptor = os.open(device, os.O_RDONLY)
        except OSError as error:
            return f"{device} was not detached: {error.strerror}"
        try:
            # While it is open nobody can put another file behind it.
            if device in self.devices():
                fcntl.ioctl(descriptor, _LOOP_CLR_FD)
        except OSError as error:
            if error.errno not in (errno.ENXIO, errno.EBUSY):  # ENXIO: nothing is behind it now
                return f"{device} was not detached: {error.strerror}"
        finally:
            os.close(descriptor)
        return ""


class Mount(Thing, frozen=True, tag=True):
    """A mount at a folder of ours. ``kind``: the file system as the kernel names it.

    ``source``: the file behind its loop device, or the name that it was mounted with.
    """

    point: str
    kind: str
    source: str

    def __str__(self) -> str:
        """As for a person."""
        return f"mount {self.point} ({self.kind})"

    def there(self) -> bool:
        """Is the topmost mount there ours?"""
        found = mounts.at(self.point)
        return found is not None and self._is(found)

    def _is(self, found: mounts.Mounted) -> bool:
        # A file system of fuse has its own name added, or not.
        if self.kind not in (found.kind, found.kind.partition(".")[0]):
            return False
        if found.source.startswith("/dev/loop"):
            return found.source in Loop(self.source).devices()
        return found.source == self.source

    def undo(self) -> str:
        """Unmount it, if what is mounted there is what we mounted."""
        while (found := mounts.at(self.point)) is not None:
            if not self._is(found):
                return f"{self.point} is left alone: {found.source} is mounted there, not ours"
            dead = found.kind.startswith("fuse") and _silent(self.point)
            if problem := mounts.unmount(self.point, dead=dead):
                return problem
        return ""


def _silent(point: str) -> bool:
    """Has the process behind a mount ended?"""
    try:
        Path(point).stat()
    except OSError as error:
        return error.errno in (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO)
    return False


class Group(Thing, frozen=True, tag=True):
    """A control group of ours: a folder in each of the hierarchies that it is in."""

    paths: tuple[str, ...]

    def __str__(self) -> str:
        """As for a person."""
        return f"control group {Path(self.paths[0]).name}"

    def there(self) -> bool:
        """Is any of its folders there?"""
        return any(Path(path).is_dir() for path in self.paths)

    def members(self) -> set[int]:
        """The processes in it, by their ids."""
        found: set[int] = set()
        for path in self.paths:
            for procs in Path(path).glob("**/cgroup.procs"):
                try:
                    found |= {int(pid) for pid in procs.read_text().split()}
                except OSError:
                    continue
        return found

    def undo(self) -> str:
        """End what is still in it (only what we started can be), and remove it."""
        for path in self.paths:
            if not Path(path).name.startswith(PREFIX):
                return f"{path} is left alone: it does not have our name"
        give_up = time.monotonic() + _PATIENCE_S
        while members := self.members() - {os.getpid()}:
            for pid in members:
                _end(pid, signal.SIGKILL)
            if time.monotonic() > give_up:
                return f"{self}: process {min(members)} in it did not end"
            time.sleep(0.01)
        return next(filter(None, map(_remove_group, self.paths)), "")


def _remove_group(path: str) -> str:
    give_up = time.monotonic() + _PATIENCE_S
    while True:
        try:
            for child in sorted(Path(path).glob("**/"), reverse=True):
                child.rmdir()  # a group within it comes before it
        except FileNotFoundError:
            return ""
        except OSError as error:
            if time.monotonic() > give_up:
                return f"{path} was not removed: {error.strerror}"
            time.sleep(0.01)  # the kernel has not finished with a process that has ended
        else:
            return ""


class Daemon(Thing, frozen=True, tag=True):
    """A process of ours that outlives the one that started it, as a file system's does.

    ``program``: its name; ``marker``: a path of ours that is in its arguments, so that no other
    process can be taken for it.
    """

    program: str
    marker: str

    def __str__(self) -> str:
        """As for a person."""
        return f"process {self.program} of {self.marker}"

    def processes(self) -> list[psutil.Process]:
        """Those that are it."""
        found = []
        for process in psutil.process_iter():
            try:
                argv = process.cmdline()
                ours = process.uids().effective == os.geteuid()
            except psutil.Error:
                continue
            named = bool(argv) and Path(argv[0]).name == self.program
            if ours and named and any(self.marker in part for part in argv[1:]):
                found.append(process)
        return found

    def there(self) -> bool:
        """Does it run?"""
        return bool(self.processes())

    def undo(self) -> str:
        """SIGTERM, and after 5 s SIGKILL."""
        for how in (signal.SIGTERM, signal.SIGKILL):
            for process in self.processes():
                _end(process.pid, how)
            give_up = time.monotonic() + _PATIENCE_S
            # What has ended has no arguments any more, even where nobody has read how it did.
            while self.there() and time.monotonic() < give_up:
                time.sleep(0.02)
            if not self.there():
                return ""
        return f"{self} did not end"


class Pool(Thing, frozen=True, tag=True):
    """A pool of zfs-fuse. ``marker``: of our daemon, without which no pool is ours."""

    name: str
    marker: str

    def __str__(self) -> str:
        """As for a person."""
        return f"pool {self.name}"

    def there(self) -> bool:
        """Does our daemon have it?"""
        if not Daemon("zfs-fuse", self.marker).there():
            return False
        return self.name in (run("zpool", "list", "-H", "-o", "name")[1] or "").split()

    def undo(self) -> str:
        """Destroy it; what is on it goes with it."""
        if not self.name.startswith(PREFIX):
            return f"pool {self.name} is left alone: it does not have our name"
        if not self.there():
            return ""
        code, said = run("zpool", "destroy", "-f", self.name)
        return f"{self} was not destroyed: {said}" if code else ""


def run(
    program_name: str, *arguments: str, timeout_s: float = 60.0, whole: bool = False
) -> tuple[int, str]:
    """Its exit code and what it printed, errors too; 127 where there is no such program.

    In one line, or ``whole``.
    """
    found = program(program_name)
    if found is None:
        return 127, f"{program_name} is not installed"
    try:
        done = subprocess.run(
            [found, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout_s,
            preexec_fn=dies_with_us,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 124, f"{program_name} did not end within {timeout_s:.0f} s"
    return done.returncode, done.stdout if whole else " ".join(done.stdout.split())


def dies_with_us() -> None:
    """In the child: what a killed process has begun must not go on while it is cleaned up."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _end(pid: int, how: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, how)
