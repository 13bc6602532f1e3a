"""SQLite FTS5, the full-text index of the most widespread database, behind our library host."""

from __future__ import annotations

from searchbench.engines.engine import Capabilities, choice, levers, number, switch
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
    parameters = levers(
        cache_mb=number(64, (0, 65536), "page cache of each connection"),
        mmap_mb=number(256, (0, 1048576), "how much of the file is mapped into memory"),
        page_size=choice(
            (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536),
            "bytes a page",
            default=4096,
            index=True,
        ),
        merged=switch(True, "merge the full-text index into one b-tree after ingest", index=True),
        journal=choice(("wal", "off"), "how a commit is made safe", index=True),
    )
