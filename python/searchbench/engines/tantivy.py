"""tantivy, a search library in Rust, behind our own library host."""

from __future__ import annotations

from searchbench.engines.engine import Capabilities, choice, levers, number
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
    parameters = levers(
        parts=number(1, (1, 64), "indexes in one process, searched together", index=True),
        split=choice(("round-robin", "hash"), "which part a document goes to", index=True),
        search_threads=number(
            0,
            (0, 256),
            "threads over which the parts of one query are spread; 0: one after another",
        ),
        statistics=choice(
            ("global", "local"), "term statistics for BM25: over all parts or of each part"
        ),
        merge=choice(("flat", "two-level"), "merge the parts' results at once or in two levels"),
        searcher=choice(
            ("shared", "per-thread"), "one searcher for all connections or one for each"
        ),
        indexing_threads=number(2, (1, 64), "threads that index", index=True),
        indexing_memory_mb=number(
            256, (16, 65536), "memory of the index writers of all parts together", index=True
        ),
        segments=choice(
            ("merged", "as-is"),
            "merge each part to one segment, or leave the segments as they are",
            index=True,
        ),
        refresh_ms=number(
            0,
            (0, 3_600_000),
            "commit and reload this often while batches come in; 0: only when asked",
            index=True,
        ),
        directory=choice(("mmap", "ram"), "where the index is read from"),
    )
