"""SQLite FTS5, the full-text index of the most widespread database, behind our library host."""

from __future__ import annotations

from dataclasses import replace

from searchbench.corpora.corpus import Schema
from searchbench.engines.engine import Capabilities, Parameters
from searchbench.engines.frames import LibraryHost
from searchbench.engines.levers import choice, described, number, switch
from searchbench.engines.write import Publish


class Sqlite(LibraryHost):
    """One file, one index; every connection of the load has a SQLite connection of its own."""

    name = "sqlite"
    can = Capabilities(
        title="SQLite FTS5",
        home="https://www.sqlite.org/fts5.html",
        cannot={"fuzzy": "upstream must: FTS5 has no edit-distance matching"},
        deviations={
            "scoring": "BM25 (k1 1.2, b 0.75) over all columns as one document; a term in more "
            "than half of the documents counts almost nothing (its IDF is set to 1e-6)",
        },
    )
    parameters = described(
        {
            number("cache_mb", 64, (0, 65536)): "page cache of each connection",
            number("mmap_mb", 256, (0, 1048576)): "how much of the file is mapped into memory",
            choice("page_size", *(512 << n for n in range(8)), default=4096, index=True): "bytes "
            "in a page",
            switch("merged", True, index=True): "merge the full-text index into one b-tree after "
            "ingest",
            choice("journal", "wal", "off", index=True): "the journal that makes a commit safe "
            "(journal_mode)",
            switch("keys", False, index=True): "index the ids; without that, documents can be "
            "inserted but not replaced or deleted",
        }
    )

    def publish(self, schema: Schema, params: Parameters) -> Publish:
        """A commit; the host gathers batches in a transaction of 50,000 documents."""
        commit = super().publish(schema, params)
        return replace(commit, unasked="the host commits after 50,000 documents")
