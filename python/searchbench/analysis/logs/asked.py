"""The queries that were asked most, took most time, or had no hits.

What is counted is a query on an index. Here the same words on several indexes are one query, since
users ask in words; how many indexes it was asked of stands beside it. Of a query as long as a log's
counts keep it (``_KEPT`` bytes) the end is not known, so such ones are never joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from searchbench.analysis.logs.model import Asked
from searchbench.logs.counts import Counts, flat

_ROWS = 20  # of a list
_KEPT = 200  # bytes of a query (``rust/logs`` queries.rs, SHOWN)
_PARTS, _AT_ONCE = 61, 100_000  # parts that are joined by themselves; rows that are looked at
_SUMS = ("n", "sum_ns", "zero", "errors")


def asked(counts: Counts, by: Sequence[str]) -> list[tuple[Asked, ...]]:
    """For each column of ``by`` the queries with the most of it; those with none are left out."""
    table = counts.tables["queries"]
    several = counts.texts("groups", "kind").count("index") > 1
    found = [_most(part, by) for part in _parts(table, several)]
    # What the parts took would stay with the process, and the rest of judging needs it.
    pa.default_memory_pool().release_unused()
    return [_first(pa.concat_tables(rows), column)
            for column, rows in zip(by, zip(*found, strict=True), strict=True)]  # fmt: skip


def _parts(table: pa.Table, several: bool) -> Iterator[pa.Table]:
    """The table in parts, with equal queries joined; equal ones are in one part.

    Joined one part after the other, ten million queries need little memory besides.
    """
    table = table.select(["hash", "text", *_SUMS, "max_ns", "first"])
    if not several or not len(table):
        yield _own(table)
        return
    part_of = _part_of(table.column("text"))
    order = np.argsort(part_of, kind="stable")
    ends = np.cumsum(np.bincount(part_of, minlength=_PARTS))
    for rows in np.split(order, ends[:-1]):
        part = _own(table.take(pa.array(rows)))
        whole = pc.less(pc.binary_length(part.column("text")), _KEPT)
        yield _joined(part.filter(whole))
        yield part.filter(pc.invert(whole))


def _own(table: pa.Table) -> pa.Table:
    """With a column that says of how many indexes each row is."""
    return table.append_column("indexes", pa.array(np.ones(len(table), np.uint64)))


def _part_of(texts: pa.ChunkedArray) -> NDArray[np.uint8]:
    """For each text a number below ``_PARTS``, from its length and some of its bytes."""
    found = [np.zeros(0, np.uint8)]
    for chunk in texts.chunks:
        for begin in range(0, len(chunk), _AT_ONCE):
            data, ends = flat(chunk.slice(begin, _AT_ONCE).cast(pa.large_binary()))
            # One more, behind the last text, which may be empty.
            letters = np.append(np.frombuffer(data, np.uint8), np.uint8(0))
            until = ends.astype(np.int64)
            length = np.diff(until, prepend=0)
            mixed = length.astype(np.uint32)
            for eighth in range(8):
                # Rounded up, so that it is a byte of the text itself.
                at = until - (length * (8 - eighth) + 7) // 8
                own = np.where(length > 0, letters[at], 0).astype(np.uint32)
                mixed = mixed * np.uint32(31) + own
            found.append((mixed % np.uint32(_PARTS)).astype(np.uint8))
    return np.concatenate(found)


def _joined(part: pa.Table) -> pa.Table:
    """A row for each text."""
    codes = part.column("text").combine_chunks().dictionary_encode()
    at = codes.indices.to_numpy()
    if len(codes.dictionary) == len(part):
        return part
    order = np.argsort(at, kind="stable")
    starts = np.flatnonzero(np.diff(at[order], prepend=-1))

    def of(name: str, how: np.ufunc) -> NDArray[np.uint64]:
        found: NDArray[np.uint64] = how.reduceat(part.column(name).to_numpy()[order], starts)
        return found

    columns = {name: of(name, np.add) for name in (*_SUMS, "indexes")}
    columns |= {"max_ns": of("max_ns", np.maximum), "first": of("first", np.minimum)}
    columns["hash"] = of("hash", np.minimum)
    return pa.table({name: codes.dictionary if name == "text" else columns[name]
                     for name in part.column_names})  # fmt: skip


def _most(table: pa.Table, by: Sequence[str]) -> list[pa.Table]:
    """Of a part, for each column, the rows that may be among the first."""
    found = []
    for column in by:
        values = table.column(column).to_numpy().astype(np.int64)
        most = min(_ROWS, len(values))
        at = np.argpartition(-values, most - 1)[:most] if most else np.zeros(0, np.int64)
        found.append(table.take(pa.array(at)))
    return found


def _first(table: pa.Table, column: str) -> tuple[Asked, ...]:
    """The rows with the most of a column, in the order of it."""
    rows = [row for row in table.to_pylist() if row[column] > 0]
    rows.sort(key=lambda row: (-row[column], row["hash"]))
    return tuple(
        Asked(
            row["text"].decode("utf-8", errors="replace"),
            row["n"],
            row["sum_ns"] / 1e9,
            row["max_ns"] / 1e9,
            row["zero"],
            row["errors"],
            row["first"] * 60 if row["first"] < 2**32 - 1 else None,
            row["indexes"],
        )
        for row in rows[:_ROWS]
    )
