"""Tables of what a system read and wrote: a row for each phase, place and call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from searchbench.report.document.blocks import Cell, Table
from searchbench.report.document.text import line
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import NONE, number, table, text

# Phases in which nothing of the question happens: what is read there is programs and settings.
_ASIDE = frozenset(
    ("trace", "host", "compile", "prepare", "place", "deploy", "identify", "capture", "totals",
     "answers", "stop")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """Reads or writes of one phase. ``bytes`` None: the call has no size, as a sync has none.

    ``sizes``: by the lower end of each power of two, how many.
    """

    phase: str
    device: bool
    storage: str
    where: str
    call: str
    count: int
    bytes: int | None
    sizes: dict[int, int]

    @property
    def on(self) -> str:
        """The storage, or the mount or device where it is none of ours."""
        return self.storage or self.where

    @property
    def writes(self) -> bool:
        """Does it write?"""
        return "write" in self.call

    @property
    def reads(self) -> bool:
        """Does it read?"""
        return "read" in self.call


def rows_of(found: pa.Table) -> list[Row]:
    """The rows of a trial's io.parquet, of the phases that matter, in the order of the phases."""
    order = list(dict.fromkeys(found["phase"].to_pylist()))
    rows = [
        Row(
            one["phase"],
            one["source"] == "device",
            one["storage"],
            one["where"],
            one["call"],
            one["count"],
            one["bytes"],
            {s["from"]: s["count"] for s in one["sizes"] or ()},
        )
        for one in found.to_pylist()
        if one["phase"] not in _ASIDE
    ]
    return sorted(rows, key=lambda r: (order.index(r.phase), r.on, r.device, not r.writes, r.call))


def told(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Those of the storages, or where there are none of the system; and all others."""
    if any(row.storage for row in rows):
        first = [row for row in rows if row.storage]
    else:
        first = [row for row in rows if not row.device]
    return first, [row for row in rows if row not in first]


def table_of(rows: Iterable[Row], source: str) -> Table:
    """Of one treatment. ``source``: the file that has all."""
    return table(
        rows,
        text("Call or request", lambda r: Cell(_named(r)), 1.2),
        text("On", lambda r: Cell(line(r.on)), 1.0),
        text("Phase", lambda r: Cell(line(r.phase)), 0.8),
        number("Count", lambda r: Cell(numbers.count(r.count)), 0.8),
        number("Bytes", lambda r: _bytes(r.bytes), 0.9),
        number("Median size", lambda r: _size(median(r.sizes)), 0.9),
        number("Mean size", _mean, 0.9),
        source=source,
    )


def median(sizes: dict[int, int]) -> int | None:
    """The power of two in which the middle one lies; None where there are no sizes."""
    passed, half = 0, sum(sizes.values()) / 2
    for size in sorted(sizes):
        passed += sizes[size]
        if passed >= half:
            return size
    return None


def binary(size: float) -> str:
    """Bytes in units of 1,024: a power of two is a round number.

    >>> binary(512), binary(65536), binary(1 << 20)
    ('512 B', '64 KiB', '1 MiB')
    """
    unit = "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{numbers.digits(size)} {unit}"


def _named(row: Row) -> str:
    return f"device: {line(row.call)}" if row.device else line(row.call)


def _bytes(found: int | None) -> Cell:
    return NONE if found is None else Cell(binary(found), f"{found:,} B")


def _size(found: int | None) -> Cell:
    return NONE if found is None else Cell(binary(found))


def _mean(row: Row) -> Cell:
    return NONE if row.bytes is None or not row.count else Cell(binary(row.bytes / row.count))
