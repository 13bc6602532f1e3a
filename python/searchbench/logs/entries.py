"""The entries of logs one by one, in their order: what was asked, when, and how long it took.

What was asked is kept once for each distinct text, so a log of millions of searches is some
columns of numbers. Instants are as the log says them: the start of an entry where the log tells how
long it took, in UTC where the zone is known, else as written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchbench import _core
from searchbench.errors import QueryError
from searchbench.logs.counts import Options, insist_known, named_format, own_names, settings
from searchbench.logs.parquet import readable, with_names
from searchbench.logs.sources import Source

NO_TIME = np.iinfo(np.int64).min
UNKNOWN = np.iinfo(np.uint64).max
NO_WORDS = np.iinfo(np.uint32).max
SEARCH, PART, OTHER = 0, 1, 2
ERROR, PARTIAL = 4, 8


@dataclass(frozen=True, slots=True)
class Row:
    """One distinct thing that was asked. ``around``: where ``text`` is only the words, the whole
    statement (SQL of Sphinx), or mode, number of filters, hits and page (Sphinx's plain log)."""

    format: str
    index: str
    of_class: str
    text: bytes
    around: bytes


@dataclass(frozen=True, eq=False)
class Entries:
    """Columns of one length, in the order of the log; ``rows[asked[i]]`` is what entry i asked.

    ``at_ns``: int64, ``NO_TIME`` where the log has none. ``ns``: uint64, how long it took, or
    ``UNKNOWN``. ``resolution_ns``: the finest difference of ``ns`` that the log can write.
    ``words``: uint32 or ``NO_WORDS``. ``kind``: ``SEARCH``, ``PART``, ``OTHER``. ``failed``: bool.
    ``sources``: what became of each source, as of ``counts``.
    """

    at_ns: NDArray[np.int64]
    ns: NDArray[np.uint64]
    resolution_ns: NDArray[np.uint32]
    words: NDArray[np.uint32]
    kind: NDArray[np.uint8]
    failed: NDArray[np.bool_]
    asked: NDArray[np.uint32]
    source: NDArray[np.uint32]
    rows: Sequence[Row]
    sources: Sequence[dict[str, Any]]

    def __len__(self) -> int:
        return len(self.asked)


def read_entries(
    sources: Sequence[Source],
    options: Options,
    on_tick: Callable[[int], object] | None = None,
) -> Entries:
    """All entries of sources, one source after another.

    QueryError where none of them is a log, where one is damaged, or where an option is wrong.
    """
    insist_known(options)
    named = named_format(options)
    with readable(sources) as paths:
        try:
            found, read = _core.log_entries(
                [
                    (path, s.server, named, s.skip_bytes)
                    for s, path in zip(sources, paths, strict=True)
                ],
                **settings(options),
                follows=[s.follows for s in sources],
                on_tick=on_tick,
            )
        except ValueError as error:
            raise QueryError(with_names(str(error), sources, paths)) from None
    for one, source, path in zip(read, sources, paths, strict=True):
        own_names(one, source, path)
    kind = np.frombuffer(found["kind"], np.uint8)
    return Entries(
        np.frombuffer(found["at_ns"], np.int64),
        np.frombuffer(found["ns"], np.uint64),
        np.frombuffer(found["resolution_ns"], np.uint32),
        np.frombuffer(found["words"], np.uint32),
        (kind & 3).astype(np.uint8),
        (kind & ERROR) > 0,
        np.frombuffer(found["asked"], np.uint32),
        np.frombuffer(found["source"], np.uint32),
        _rows(found),
        read,
    )


def _rows(found: dict[str, Any]) -> list[Row]:
    text: bytes = found["bytes"]
    ends = np.frombuffer(found["ends"], np.uint64).tolist()
    rows, start, width = [], 0, len(found["parts"])
    known: dict[bytes, str] = {}  # few indexes and classes stand in many rows
    for at in range(0, len(ends), width):
        parts = []
        for end in ends[at : at + width]:
            parts.append(text[start:end])
            start = end
        form, index, of_class, asked, around = parts
        for name in (form, index, of_class):
            if name not in known:
                known[name] = name.decode("utf-8", errors="replace")
        rows.append(Row(known[form], known[index], known[of_class], asked, around))
    return rows
