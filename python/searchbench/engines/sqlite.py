"""SQLite FTS5, the full-text index of the most widespread database, behind our library host."""

from __future__ import annotations

from searchbench.engines.engine import Capabilities, Parameter
from searchbench.engines.frames import LibraryHost


class Sqlite(LibraryHost):
    """One file, one index; every connection of the load has a SQLite connection of its own."""

    name = "sqlite"
    can = Capabilities(
        title="SQLite FTS5",
        home="https://www.sqlite.org/fts5.html",
        cannot={"fuzzy": "upstream must: FTS5 has no edit-distance matching"},
        deviations={
            "scoring": "BM25 (k1 1.2, b 0.75) over all columns as one document; a term in more "
            "than half of the documents counts next to nothing (IDF never below 1e-6)",
        },
    )
    parameters = (
        Parameter("cache_mb", int, 64, "page cache of each connection", minimum=0, maximum=65536),
        Parameter(
            "mmap_mb",
            int,
            256,
            "how much of the file is mapped into memory",
            minimum=0,
            maximum=1048576,
        ),
        Parameter(
            "page_size",
            int,
            4096,
            "bytes a page",
            choices=(512, 1024, 2048, 4096, 8192, 16384, 32768, 65536),
            index=True,
        ),
        Parameter(
            "merged",
            bool,
            True,
            "merge the full-text index into one b-tree after ingest",
            index=True,
        ),
        Parameter(
            "journal", str, "wal", "how a commit is made safe", choices=("wal", "off"), index=True
        ),
    )
