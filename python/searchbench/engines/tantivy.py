"""tantivy, a search library in Rust, behind our own library host."""

from __future__ import annotations

from searchbench.engines.engine import Capabilities, Parameter
from searchbench.engines.frames import LibraryHost


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
    parameters = (
        Parameter(
            "parts",
            int,
            1,
            "indexes in one process, searched together",
            minimum=1,
            maximum=64,
            index=True,
        ),
        Parameter(
            "split",
            str,
            "round-robin",
            "which part a document goes to",
            choices=("round-robin", "hash"),
            index=True,
        ),
        Parameter(
            "search_threads",
            int,
            0,
            "threads over which the parts of one query are spread; 0: one after another",
            minimum=0,
            maximum=256,
        ),
        Parameter(
            "statistics",
            str,
            "global",
            "term statistics for BM25: over all parts or of each part",
            choices=("global", "local"),
        ),
        Parameter(
            "merge",
            str,
            "flat",
            "merge the parts' results at once or in two levels",
            choices=("flat", "two-level"),
        ),
        Parameter(
            "searcher",
            str,
            "shared",
            "one searcher for all connections or one for each",
            choices=("shared", "per-thread"),
        ),
        Parameter(
            "indexing_threads", int, 2, "threads that index", minimum=1, maximum=64, index=True
        ),
        Parameter(
            "indexing_memory_mb",
            int,
            256,
            "memory of the index writers of all parts together",
            minimum=16,
            maximum=65536,
            index=True,
        ),
        Parameter(
            "segments",
            str,
            "merged",
            "merge each part to one segment, or leave the segments as they are",
            choices=("merged", "as-is"),
            index=True,
        ),
        Parameter(
            "refresh_ms",
            int,
            0,
            "commit and reload this often while batches come in; 0: only when asked",
            minimum=0,
            maximum=3_600_000,
            index=True,
        ),
        Parameter(
            "directory", str, "mmap", "where the index is read from", choices=("mmap", "ram")
        ),
    )
