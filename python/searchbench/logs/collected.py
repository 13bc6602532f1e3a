"""What the collector's files are called, and servers by their folders: host and category apart.

The collector writes ``FOLDER/CATEGORY/CATEGORY_00000`` or ``FOLDER/BASE-2026-11-22_00000``, and the
link ``BASE_current`` to the newest. Hosts have folders of their own below it or above it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

_COLLECTED = re.compile(r"(?P<base>.+?)(?:-\d{4}-\d\d-\d\d)?_(?:\d{5}|current)")


def category(name: str) -> str:
    """The base name of a file of the collector, which is its category; "" of other files."""
    found = _COLLECTED.fullmatch(name)
    return found["base"] if found else ""


def below(folder: Path, path: str) -> str:
    """What a file of the collector below a folder is called: the folders between, and its category.

    That does not depend on what else is there, so it stays as hosts and categories come. "" of
    other files.
    """
    base = category(Path(path).name)
    between = Path(path).absolute().parent.relative_to(folder.absolute()).parts
    return "/".join(between if base in between else (*between, base)) if base else ""


def names(paths: Sequence[str]) -> dict[str, str]:
    """What the server of each file is called, where files of several folders are read.

    Its folder; where two folders are called the same, with as many folders above as it takes to
    tell all apart. Where the collector has several categories in one folder, the category follows.
    """
    folders = {path: Path(path).absolute().parent.resolve() for path in paths}
    size, longest = 1, max(len(folder.parts) for folder in folders.values())
    while size < longest and len({f.parts[-size:] for f in folders.values()}) < len(
        set(folders.values())
    ):
        size += 1
    within: dict[Path, set[str]] = defaultdict(set)
    for path, folder in folders.items():
        within[folder].add(category(Path(path).name))
    found = {}
    for path, folder in folders.items():
        found[path] = "/".join(folder.parts[-size:])
        base = category(Path(path).name)
        if base and len(within[folder]) > 1:
            found[path] += f"/{base}"
    return found
