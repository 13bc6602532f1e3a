"""Logs read by Spark's executors: the driver shares out the pieces and adds up what is counted.

    pieces → shares → [executor: read] → counts by key → [executor: merge] → this machine: add

Everything that the crate counts is a sum, a least or a greatest, and a piece is a run of the blocks
that one machine would read. So the answer is the same, and a task that is done again because its
executor was lost gives what the lost one would have given.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from searchbench import _core
from searchbench.errors import NotInstalled, QueryError
from searchbench.lab.spark import executor
from searchbench.lab.spark.session import session
from searchbench.logs.counts import (
    Counts,
    Options,
    Tick,
    add_tables,
    finished,
    read_into,
    tables_of,
)
from searchbench.logs.pieces import BLOCK_BYTES, Piece, cut, joined, looked_at, shared_out
from searchbench.logs.sources import Source

_TASKS_A_CORE = 3  # so that one that is slow, or is done again, delays little
_MOST_BYTES = 256 << 20  # of a share, where files can be cut
_BROKEN = executor.SLICES + 1  # the key of what could not be done
_MISSING = "missing"


@dataclass(slots=True)
class OnSpark:
    """Counts logs as ``counts.count`` does, in the executors of a Spark.

    ``tasks``: into how many the last reading was divided; ``again``: how many of them had to be
    done more than once.
    """

    master: str
    tasks: int = 0
    again: int = 0

    def __call__(
        self,
        sources: Sequence[Source],
        options: Options,
        before: Mapping[str, pa.Table] | None = None,
        on_tick: Tick | None = None,
    ) -> Counts:
        """The counts. QueryError as of ``count``; NotInstalled, LabError as of ``session``."""
        log = _core.Log(options.distinct)
        if before is not None:
            add_tables(log, before)
        # What goes on with a CSV file is a file in a folder of this machine.
        here = [source for source in sources if source.again_from]
        there = [source for source in sources if not source.again_from]
        whole, refused = looked_at(there, options)
        if not whole and not here:
            raise QueryError("\n".join(str(one["refused"]) for one in refused.values()))
        found = self._counted(log, whole, options, on_tick) if whole else []
        read_here = iter(read_into(log, here, options) if here else [])
        read_there = iter(joined(found, refused))
        return Counts(
            tables_of(log),
            [finished(s, next(read_here if s.again_from else read_there)) for s in sources],
        )

    def _counted(
        self, log: _core.Log, whole: Sequence[Piece], options: Options, on_tick: Tick | None
    ) -> list[Any]:
        """Adds the counts of all pieces to ``log``; what became of the pieces."""
        with session(self.master) as context:
            from pyspark import StorageLevel  # there is a session, so it is installed

            step = _step(sum(p.work_bytes for p in whole), context.defaultParallelism)
            pieces = cut(whole, step)
            shares = shared_out(pieces, -(-sum(p.work_bytes for p in pieces) // step))
            self.tasks = len(shares)
            read_bytes, runs = context.accumulator(0), context.accumulator(0)
            given = pickle.dumps(replace(options, threads=1))
            read = _reader(given, read_bytes, runs)
            counted = context.parallelize([pickle.dumps(s) for s in shares], len(shares))
            counted = counted.flatMap(read).groupByKey(_BROKEN + 1, int)
            merged = counted.map(_merger(options.distinct)).persist(StorageLevel.DISK_ONLY)
            with _told(lambda: int(read_bytes.value), on_tick):
                merged.count()  # all at the same time; they are fetched one by one
                found = added(log, merged.toLocalIterator())
            # A task that failed has a further attempt; one whose output was lost is run anew.
            failed = sum(again for _, again in found)
            self.again = failed + max(0, int(runs.value) - len(shares))
        return [entry for entries, _ in found for entry in entries]


def _step(total_bytes: int, cores: int) -> int:
    """The bytes of a share: whole blocks."""
    blocks = total_bytes // (max(1, cores) * _TASKS_A_CORE * BLOCK_BYTES)
    return max(BLOCK_BYTES, min(blocks * BLOCK_BYTES, _MOST_BYTES))


def added(log: _core.Log, parts: Iterable[tuple[int, bytes]]) -> list[tuple[list[Any], bool]]:
    """Add what was merged, in any order, to ``log``: what became of the pieces of each task, and
    whether the task was begun before.

    QueryError, NotInstalled where a task could not be done.
    """
    found: list[tuple[list[Any], bool]] = []
    below, dropped = 0, 0
    for key, part in parts:
        if key == _BROKEN:
            kind, sentence = pickle.loads(part)
            raise NotInstalled(sentence) if kind == _MISSING else QueryError(sentence)
        tables, more = executor.unpacked(part)
        found += more
        if key != executor.REST:
            # Slices have no query in common: what one dropped is missing from no count of another.
            of = tables.pop("dropped")
            below = max(below, of.column("below")[0].as_py())
            dropped += of.column("dropped")[0].as_py()
        add_tables(log, tables)
    if dropped:
        types = {"below": pa.uint64(), "dropped": pa.uint64(), "registers": pa.large_binary()}
        row = {"below": [below], "dropped": [dropped], "registers": [b""]}
        add_tables(log, {"dropped": pa.table(row, pa.schema(list(types.items())))})
    return found


def _reader(given: bytes, read_bytes: Any, runs: Any) -> Callable[[bytes], list[tuple[int, bytes]]]:
    """What a task does. It travels by value, so that it can say that searchbench is not there."""
    version, broken, missing = _core.version, _BROKEN, _MISSING

    def read(share: bytes) -> list[tuple[int, bytes]]:
        import pickle
        import platform
        import sys

        host = platform.node()

        def failed(kind: str, sentence: str) -> list[tuple[int, bytes]]:
            return [(broken, pickle.dumps((kind, sentence)))]

        try:
            from searchbench import _core
            from searchbench.errors import SearchbenchError
            from searchbench.lab.spark import executor
        except ImportError as error:
            return failed(
                missing,
                f"the executor on {host} cannot import searchbench ({error}): install the same "
                f"version there, for {sys.executable}",
            )
        if _core.version != version:
            return failed(
                missing,
                f"the executor on {host} has searchbench {_core.version}, and this machine "
                f"{version}: install the same version there, for {sys.executable}",
            )
        from pyspark import TaskContext

        context = TaskContext.get()
        again = context is not None and context.attemptNumber() > 0
        pieces = pickle.loads(share)
        try:
            parts = executor.read(pieces, pickle.loads(given), again)
        except SearchbenchError as error:
            return failed("", f"{error} (on {host}; all machines must see the same files)")
        read_bytes.add(sum(piece.work_bytes for piece in pieces))
        runs.add(1)
        return parts

    return read


def _merger(distinct: int) -> Callable[[tuple[int, Any]], tuple[int, bytes]]:
    broken = _BROKEN

    def merge(pair: tuple[int, Any]) -> tuple[int, bytes]:
        key, parts = pair
        if key == broken:
            return key, min(parts)

        from searchbench.lab.spark import executor

        return key, executor.merge(parts, distinct)

    return merge


@contextmanager
def _told(read_bytes: Callable[[], int], on_tick: Tick | None) -> Iterator[None]:
    """``on_tick`` is told while the block waits for Spark."""
    if on_tick is None:
        yield
        return
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(0.2):
            on_tick(read_bytes())

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
