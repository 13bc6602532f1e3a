"""A job as a table: a row a treatment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from searchbench.analysis.judgement import JobResult
from searchbench.report.document.blocks import Cell, Table
from searchbench.report.document.text import line
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import NONE, bars, named, number, of_estimate, table, text

_COLUMNS = {
    "documents_per_s": "Speed",
    "cpu_s": "CPU of the server",
    "peak_rss_bytes": "Peak memory",
    "write_bytes": "Written by the server",
    "device_bytes": "Written to its device",
    "request_p50_s": "Request p50",
    "request_p99_s": "Request p99",
    "request_max_s": "Longest request",
}
_KINDS = {
    "data": "Data", "wal": "Log", "index": "Text index", "backup": "Backup", "restored": "Restored",
    "system": "System",
}  # fmt: skip
_HELD = {
    "none": "nothing was used up",
}  # fmt: skip


def job(results: Sequence[JobResult]) -> Table:
    """Time, speed, what it cost, the files it left, and what held it back."""
    bar = bars([r.figures.get("seconds") for r in results])
    kinds = list(dict.fromkeys(kind for r in results for kind in r.files))
    kinds.sort(key=lambda kind: list(_KINDS).index(kind) if kind in _KINDS else len(_KINDS))

    def cost(name: str, r: JobResult) -> Cell:
        return of_estimate(r.figures.get(name))

    return table(
        results,
        text("Treatment", lambda r: named(r.label), 2),
        text("Time", lambda r: of_estimate(e := r.figures.get("seconds"), bar(e)), 2),
        *(
            number(title, partial(cost, name))
            for name, title in _COLUMNS.items()
            if any(name in r.figures for r in results)
        ),
        *(number(f"{_KINDS.get(kind, kind)} after", partial(_size, kind)) for kind in kinds),
        number(
            "Log while running",
            partial(_running, "wal"),
            when=any("wal" in r.running for r in results),
        ),
        text("Held back by", _held, 1.4),
        number("Trials", lambda r: Cell(str(r.trials)), 0.6),
    )


def _size(kind: str, r: JobResult) -> Cell:
    """Bytes allocated; below it their length, where a file system made less or more of it."""
    if kind not in r.files:
        return NONE
    (least, most), (_, length) = r.files[kind], r.lengths.get(kind, (0, 0))
    said = numbers.human(least, "bytes")
    if numbers.human(most, "bytes") != said:
        said += f" to {numbers.human(most, 'bytes')}"
    other = length and not 0.97 <= most / length <= 1.03
    below = f"of {numbers.human(length, 'bytes')}" if other else ""
    return Cell(said, f"{least} to {most} bytes, of {length}", below)


def _running(kind: str, r: JobResult) -> Cell:
    """The length of the files of a kind before the server stopped."""
    if kind not in r.running:
        return NONE
    least, most = r.running[kind]
    said = numbers.human(least, "bytes")
    if numbers.human(most, "bytes") != said:
        said += f" to {numbers.human(most, 'bytes')}"
    return Cell(said, f"{least} to {most} bytes")


def _held(r: JobResult) -> Cell:
    held = r.bottleneck
    if held is None:
        return NONE
    return Cell(_HELD.get(held.part, held.part), below=line(held.number))
