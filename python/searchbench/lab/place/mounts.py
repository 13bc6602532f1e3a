"""What is mounted where, and how a tree is removed without ever crossing a mount."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MOUNTINFO = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")
_DETACH = 2  # MNT_DETACH of umount(2)
_NOSUID, _NODEV, _NOATIME = 2, 4, 1024  # MS_.. of mount(2)
_PATIENCE_S = 5.0
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (
    ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mounted:
    """A line of mountinfo. ``device``: "major:minor"; ``options``: of the file system."""

    point: str
    kind: str
    source: str
    device: str
    options: tuple[str, ...]
    root: str = "/"


def mounted() -> list[Mounted]:
    """Everything that is mounted where we can see it, the last on top."""
    found = []
    for line in _MOUNTINFO.read_text().splitlines():
        first, _, second = line.partition(" - ")
        (_id, _parent, device, root, point, _options, *_tags) = first.split()
        kind, source, options = second.split()[:3]
        found.append(
            Mounted(_plain(point), kind, _plain(source), device, tuple(options.split(",")),
                    _plain(root))
        )  # fmt: skip
    return found


def at(point: Path | str) -> Mounted | None:
    """What is mounted exactly there, the topmost; None where nothing is."""
    return next((m for m in reversed(mounted()) if m.point == str(point)), None)


def holding(path: Path) -> Mounted:
    """The mount that a path that exists lies on."""
    real = Path(os.path.realpath(path))
    points = {m.point: m for m in mounted()}
    return next(points[str(p)] for p in (real, *real.parents) if str(p) in points)


def below(path: Path | str) -> list[str]:
    """Where something is mounted at a path or below it."""
    whole = os.path.realpath(path)
    return [m.point for m in mounted() if m.point == whole or m.point.startswith(f"{whole}/")]


def mount(source: str, point: Path, kind: str, options: str = "") -> str:
    """Mount it, without a program that could go on when we are killed; "" if done, else why not.

    No access times are kept, and neither devices nor set-user-id programs work there.
    """
    arguments = (source.encode(), str(point).encode(), kind.encode())
    if _libc.mount(*arguments, _NOATIME | _NOSUID | _NODEV, options.encode()):
        return os.strerror(ctypes.get_errno())
    return ""


def unmount(point: Path | str, *, dead: bool = False) -> str:
    """Unmount the topmost mount there; "" if done, else why not.

    Waits up to 5 s for those that still use it. ``dead``: the process behind it has ended, so
    that nobody will ever finish with it.
    """
    give_up = time.monotonic() + _PATIENCE_S
    while _libc.umount2(str(point).encode(), _DETACH if dead else 0):
        code = ctypes.get_errno()
        if code == errno.EINVAL or code == errno.ENOENT:  # nothing is mounted there
            return ""
        if code != errno.EBUSY or time.monotonic() >= give_up:
            held = ", ".join(_held_by(point))
            return (
                f"{point} could not be unmounted: {os.strerror(code)}{f' ({held})' if held else ''}"
            )
        time.sleep(0.02)
    return ""


def remove_tree(path: Path) -> str:
    """Remove a folder with all that is in it; "" once it is gone, else why it is not.

    Nothing is removed where something is mounted in it: what lies there may be somebody else's.
    """
    inside = below(path)
    if inside:
        return f"{path} was not removed: {inside[0]} is mounted in it"
    try:
        device = path.lstat().st_dev
        for _, folders, files, at_folder in os.fwalk(path, topdown=False):
            if os.fstat(at_folder).st_dev != device:
                return f"{path} was not removed: another file system is mounted in it"
            for name in files:
                os.unlink(name, dir_fd=at_folder)
            for name in folders:
                _rmdir(name, at_folder)
        path.rmdir()
    except FileNotFoundError:
        return "" if not path.exists() else f"{path} changed while it was removed"
    except OSError as error:
        return f"{path} was not removed: {error.strerror}"
    return ""


def _rmdir(name: str, at_folder: int) -> None:
    """An empty folder, or a link to one, which is not followed."""
    if stat.S_ISLNK(os.stat(name, dir_fd=at_folder, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=at_folder)
    else:
        os.rmdir(name, dir_fd=at_folder)


def _held_by(point: Path | str) -> Iterator[str]:
    """Processes with a file open, or with their working directory, below a mount."""
    prefix = f"{point}/"
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            links = [process / "cwd", *(process / "fd").iterdir()]
            if any(f"{link.readlink()}/".startswith(prefix) for link in links):
                yield f"process {process.name}, {(process / 'comm').read_text().strip()}"
        except OSError:
            continue  # ended meanwhile, or not ours to look at


def _plain(text: str) -> str:
    """Spaces and the like are written as octal numbers there."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)
