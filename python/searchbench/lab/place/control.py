"""Control groups as this machine has them: version 1 or 2, and where ours may be made.

Version 1 has a hierarchy for each controller, version 2 one for all; a machine may have both. Ours
are made below our own group, so that limits put on us hold for them too. Where version 2 does not
allow that (a group with processes of its own passes no controller on), they are made below the
nearest group above that passes on what is wanted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
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


def hierarchies(wanted: Sequence[str]) -> dict[str, Hierarchy] | str:
    """Where groups that have these controllers can be made, or why they cannot.

    Those of version 2 are one and the same place for all of its controllers.
    """
    found: dict[str, Hierarchy] = {}
    own, all_mounts = _own(), mounts.mounted()
    for mount in all_mounts:
        for controller in set(wanted) & set(mount.options if mount.kind == "cgroup" else ()):
            parent = _within(mount, own.get(controller, "/"))
            if not _writable(parent):
                return _denied(parent)
            found[controller] = Hierarchy(parent, 1)
    rest = [controller for controller in wanted if controller not in found]
    unified = next((mount for mount in all_mounts if mount.kind == "cgroup2"), None)
    if rest and unified is None:
        return f"this machine has no control groups with the controller {rest[0]}"
    if rest and unified is not None:
        there = _version_2(unified, own.get("", "/"), [_V2_NAMES.get(c, c) for c in rest])
        if isinstance(there, str):
            return there
        found |= dict.fromkeys(rest, there)
    return found


def _version_2(mount: mounts.Mounted, own: str, wanted: Sequence[str]) -> Hierarchy | str:
    top = Path(mount.point)
    absent = [c for c in wanted if c not in _words(top / "cgroup.controllers")]
    if absent:
        return f"the kernel's control groups have no controller {absent[0]}"
    group = _within(mount, own)
    denied = ""
    for parent in (group, *group.parents):
        if not parent.is_relative_to(top):
            break
        if not set(wanted) <= set(_words(parent / "cgroup.subtree_control")):
            continue
        if _writable(parent):
            return Hierarchy(parent, 2)
        denied = denied or _denied(parent)
    return denied or f"no control group above ours passes on {' and '.join(wanted)}"


def _own() -> dict[str, str]:
    """Our own groups by controller; "": that of version 2."""
    found = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            found[name] = path
    return found


def _within(mount: mounts.Mounted, path: str) -> Path:
    """A group's folder: a mount may show only a part of its hierarchy."""
    root = mount.root.rstrip("/")
    inside = path.removeprefix(root) if path.startswith(f"{root}/") else path
    folder = Path(mount.point, inside.strip("/"))
    # In a container, our path may be one of the machine around it, which is not seen from here.
    return folder if folder.is_dir() else Path(mount.point)


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK)


def _denied(folder: Path) -> str:
    return f"we may not make control groups below {folder}; run as root"


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
