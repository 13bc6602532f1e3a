"""tantivy, a search library in Rust, behind our own library host."""

from __future__ import annotations

from searchbench.engines.engine import Capabilities
from searchbench.engines.frames import LibraryHost
from searchbench.engines.levers import choice, described, number, switch


class Tantivy(LibraryHost):
    """Parts, threads, statistics, merges and searchers are levers of the host, not of tantivy."""

    name = "tantivy"
    can = Capabilities(
        title="tantivy",
        home="https://github.com/quickwit-oss/tantivy",
        deviations={
            "scoring": "BM25 (k1 1.2, b 0.75) with field lengths rounded to one byte; "
            "several fields add up",
        },
    )
    parameters = described(
        {
            number("parts", 1, (1, 64), index=True): "how many indexes in one process are searched "
            "together",
            choice("split", "round-robin", "hash", index=True): "which part a document goes to",
            number("search_threads", 0, (0, 256)): "over how many threads the parts of one query "
            "are spread; 0: one part after another",
            choice("statistics", "global", "local"): "term statistics for BM25: of all parts "
            "together (global), or of each part (local)",
            choice("merge", "flat", "two-level"): "merge the parts' results at once or in two "
            "levels",
            choice("searcher", "shared", "per-thread"): "shared: one searcher for all connections; "
            "per-thread: one for each",
            number("indexing_threads", 2, (1, 64), index=True): "threads that index",
            number("indexing_memory_mb", 256, (16, 65536), index=True): "memory of the index "
            "writers of all parts together",
            choice("segments", "merged", "as-is", index=True): "merge each part to one segment, "
            "or leave the segments as they are",
            number("refresh_ms", 0, (0, 3_600_000), index=True): "how often, in ms, to commit and "
            "reload while batches come in; 0: only when asked",
            switch("keys", False, index=True): "index the ids; without that, documents can be "
            "inserted but not replaced or deleted",
            choice("directory", "mmap", "ram"): "how the index is read: mapped into memory, or "
            "copied into it",
        }
    )
