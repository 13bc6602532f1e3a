"""The files of an index, here and on a host: what differs is sent or fetched, the rest stays.

A file is taken for the same if its size and its time of change are, to the nanosecond; both are
kept on the way. So an index crosses the network once, however often it is deployed there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

from searchbench.lab.remote.link import HostError, Link

_About = tuple[int, int]


def push(link: Link, folder: Path, there: str, patterns: Sequence[str] = ()) -> int:
    """Make ``there``, below the link's folder, as ``folder`` is; how many bytes were sent.

    ``patterns``: of the files that are wanted there, by their paths in it; none: all are.
    HostError where they cannot be written.
    """
    own = {
        name: about for name, about in _below(folder).items()
        if not patterns or any(fnmatch(name, pattern) for pattern in patterns)
    }  # fmt: skip
    theirs = _listed(link, there)
    if others := [name for name in theirs if name not in own]:
        link.ask("drop", path=there, names=others)
    sent = 0
    for name, about in own.items():
        if theirs.get(name) != about:
            link.put(f"{there}/{name}", folder / name)
            sent += about[0]
    if sent and _listed(link, there) != own:
        raise HostError(link.host.name, "the files that were sent there are not those that are "
                        "here; nothing else may write to the index", "folder")  # fmt: skip
    return sent


def pull(link: Link, there: str, folder: Path) -> int:
    """Make ``folder`` as ``there`` is, below the link's folder; how many bytes were fetched."""
    own, theirs = _below(folder), _listed(link, there)
    for name in own.keys() - theirs.keys():
        (folder / name).unlink()
    fetched = 0
    for name, about in theirs.items():
        if own.get(name) != about:
            link.get(f"{there}/{name}", folder / name)
            fetched += about[0]
    return fetched


def _listed(link: Link, there: str) -> Mapping[str, _About]:
    return {name: (size, at) for name, (size, at) in link.ask("list", path=there)["files"].items()}


def _below(folder: Path) -> dict[str, _About]:
    """Every file below a folder: size, and time of change in ns."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            about = Path(place, name).lstat()
            path = str(Path(place, name).relative_to(folder))
            found[path] = (about.st_size, about.st_mtime_ns)
    return found
