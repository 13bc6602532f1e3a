"""Control groups as this machine has them: version 1 or 2, and where ours may be made.

Version 1 has a hierarchy for each controller, version 2 one for all; a machine may have both. Ours
are made below our own group, so that limits put on us hold for them too. Where version 2 does not
allow that (a group with processes of its own hands no controller on), they are made below the
nearest group above that hands on what is wanted.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from searchbench.lab.place import mounts

CONTROLLERS = ("memory", "cpu", "cpuacct", "blkio")
"""As version 1 names them. In version 2 blkio is io, and cpuacct a part of cpu."""

_V2_NAMES = {"blkio": "io", "cpuacct": "cpu"}


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Where a group for a controller can be made. ``version``: 1 or 2."""

    parent: Path
    version: int


def hierarchy(controller: str) -> Hierarchy | str:
    """Where a group that has this controller can be made, or why none can."""
    found = mounts.mounted()
    own = _own()
    for mount in found:
        if mount.kind == "cgroup" and controller in mount.options:
            parent = _within(mount, own.get(controller, "/"))
            return Hierarchy(parent, 1) if _writable(parent) else _denied(parent)
    for mount in found:
        if mount.kind == "cgroup2":
            return _version_2(mount, own.get("", "/"), _V2_NAMES.get(controller, controller))
    return "this machine has no control groups mounted"


def _version_2(mount: mounts.Mounted, own: str, controller: str) -> Hierarchy | str:
    top = Path(mount.point)
    if controller not in _words(top / "cgroup.controllers"):
        return f"the kernel's control groups have no controller {controller}"
    group = _within(mount, own)
    denied = ""
    for parent in (group, *group.parents):
        if not parent.is_relative_to(top):
            break
        if controller not in _words(parent / "cgroup.subtree_control"):
            continue
        if _writable(parent):
            return Hierarchy(parent, 2)
        denied = denied or _denied(parent)
    return denied or (
        f"no control group above ours hands the controller {controller} on; start searchbench with "
        "`systemd-run --scope -p Delegate=yes`, or as root"
    )


def _own() -> dict[str, str]:
    """Our own groups by controller; "": that of version 2."""
    found = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            found[name] = path
    return found


def _within(mount: mounts.Mounted, path: str) -> Path:
    """A group's folder: a mount may show a part of its hierarchy only."""
    root = mount.root.rstrip("/")
    inside = path.removeprefix(root) if path.startswith(f"{root}/") else path
    folder = Path(mount.point, inside.strip("/"))
    # In a container, our path may be one of the machine around it, which is not seen from here.
    return folder if folder.is_dir() else Path(mount.point)


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK)


def _denied(folder: Path) -> str:
    return f"control groups below {folder} are not ours to make; run as root"


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
