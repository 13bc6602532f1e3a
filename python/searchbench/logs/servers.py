"""Generated logs of several servers, one beside the other, and the sizes of their indexes.

server-00.log ..    a log for each server, written at the same time
indexes.sizes       the name and the bytes of each index (``sizes``)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from searchbench import _core
from searchbench.errors import QueryError

SIZES = "indexes.sizes"


def write_servers(
    folder: Path, servers: int, lines: int, indexes: int, write: Callable[[str, int, int], None]
) -> None:
    """Write ``lines`` in total. ``write``: the log of one, by path, its number and its lines.

    QueryError where the folder has files; OSError where they cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise QueryError(f"{folder} is there already; name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    sizes = "".join(f"{name} {size}\n" for name, size in _core.generated_indexes(indexes))
    (folder / SIZES).write_text(sizes)
    digits = max(2, len(str(servers - 1)))
    # What does not divide evenly goes to the first.
    many = [lines // servers + (number < lines % servers) for number in range(servers)]
    with ThreadPoolExecutor(min(servers, os.cpu_count() or 1)) as pool:
        done = [
            pool.submit(write, str(folder / f"server-{number:0{digits}}.log"), number, of_it)
            for number, of_it in enumerate(many)
        ]
        for one in done:
            one.result()
