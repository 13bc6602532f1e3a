"""A job as tables: a row a treatment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from searchbench.analysis.judgement import JobResult
from searchbench.report.document.blocks import Cell, Table
from searchbench.report.document.text import line
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import (
    NONE,
    Made,
    bars,
    named,
    number,
    of_estimate,
    table,
    text,
)

_COSTS = {
    "documents_per_s": "Speed",
    "cpu_s": "CPU of the server",
    "peak_memory_bytes": "Peak memory",
    "write_bytes": "Written by the server",
    "device_bytes": "Written to its device",
}
_REQUESTS = {"request_p50_s": "p50", "request_p99_s": "p99", "request_max_s": "Longest"}
_KINDS = {
    "data": "Data", "wal": "Log", "index": "Text index", "backup": "Backup", "restored": "Restored",
    "system": "System",
}  # fmt: skip


def job(results: Sequence[JobResult]) -> Table:
    """Time, speed, what it cost, and what held it back."""
    bar = bars([r.figures.get("seconds") for r in results])
    return table(
        results,
        text("Treatment", lambda r: named(r.label), 2),
        text("Time", lambda r: of_estimate(e := r.figures.get("seconds"), bar(e)), 2),
        *_figures(results, _COSTS),
        text("Held back by", _held, 1.4),
    )


def requests(results: Sequence[JobResult]) -> Table | None:
    """How long single requests took, where a job is many; None where it is none."""
    many = [r for r in results if r.progress is not None]
    if not many:
        return None
    return table(many, text("Treatment", lambda r: named(r.label), 2), *_figures(many, _REQUESTS))


def files(results: Sequence[JobResult]) -> Table | None:
    """How large the files are after it, by kind; None where there are none."""
    kinds = list(dict.fromkeys(kind for r in results for kind in r.files))
    kinds.sort(key=lambda kind: list(_KINDS).index(kind) if kind in _KINDS else len(_KINDS))
    if not kinds:
        return None
    return table(
        results,
        text("Treatment", lambda r: named(r.label), 2),
        *(number(_KINDS.get(kind, kind), partial(_size, kind)) for kind in kinds),
        number(
            "Log before it was stopped", _running, when=any("wal" in r.running for r in results)
        ),
    )


def _figures(results: Sequence[JobResult], titles: Mapping[str, str]) -> Iterator[list[Made]]:
    """A column for each figure that any of them has."""

    def cell(name: str, r: JobResult) -> Cell:
        return of_estimate(r.figures.get(name))

    for name, title in titles.items():
        if any(name in r.figures for r in results):
            yield number(title, partial(cell, name))


def _size(kind: str, r: JobResult) -> Cell:
    """Bytes allocated; below it their length, where a file system made less or more of it."""
    if kind not in r.files:
        return NONE
    (least, most), (_, length) = r.files[kind], r.lengths.get(kind, (0, 0))
    other = length and not 0.97 <= most / length <= 1.03
    below = f"of {numbers.human(length, 'bytes')}" if other else ""
    return Cell(_range(least, most), f"{least} to {most} bytes, of {length}", below)


def _running(r: JobResult) -> Cell:
    if "wal" not in r.running:
        return NONE
    least, most = r.running["wal"]
    return Cell(_range(least, most), f"{least} to {most} bytes")


def _range(least: int, most: int) -> str:
    low, high = numbers.human(least, "bytes"), numbers.human(most, "bytes")
    return low if low == high else f"{low} to {high}"


def _held(r: JobResult) -> Cell:
    held = r.bottleneck
    if held is None:
        return NONE
    part = "nothing was used up" if held.part == "none" else held.part
    return Cell(part, below=line(held.number))
