"""What was read and written, in which sizes: from trials of their own, which nothing counts."""

from __future__ import annotations

from functools import partial

from searchbench.report.document.blocks import Block, Details, Section, Text
from searchbench.report.document.content import Content, figure
from searchbench.report.document.text import line
from searchbench.report.figures import sizes as figures
from searchbench.report.tables import sizes as tables

_TEXT = (
    "One more trial of each treatment, after all others, in which the kernel counted by size what "
    "the system's processes read and wrote and what the devices were asked for. Tracing slows a "
    "system, so these trials are in no other figure. Sizes are powers of two: 4 KiB stands for 4 "
    "KiB up to, but not including, 8 KiB. Access through mapped memory, io_uring or the kernel's "
    "AIO is not a call: it shows in the requests to the device alone. Those may come in a "
    "later phase than the calls that caused them, and include the file system's own."
)


def section(content: Content) -> Section | None:
    """A figure, and a table for each treatment; None where nothing was traced."""
    traced = content.record.traced
    if not traced:
        return None
    blocks: list[Block] = [Text(_TEXT, "quiet")]
    labels = {t.id: t.label for t in content.record.plan.treatments}
    found = {}
    for trial in traced:
        label = labels[trial.treatment]
        if trial.status != "ok":
            why = "was not traced" if trial.stage == "trace" else "the traced trial failed"
            blocks.append(Text(f"{line(label)}: {why}: {line(trial.reason)}"))
            continue
        rows = tables.rows_of(content.record.sizes(trial.trial))
        found[label] = (rows, f"trials/{trial.trial}/io.parquet")
    blocks += figure(
        "io-sizes",
        "Sizes of writes and reads",
        "How many of the calls of the system, and of the requests to the device below, had which "
        "size: each colour adds up to 100 % in its panel. All phases of ingest, jobs and the drive "
        "together.",
        partial(figures.histograms, {label: rows for label, (rows, _) in found.items()}),
    )
    for label, (rows, source) in found.items():
        first, rest = tables.told(rows)
        if len(found) > 1:
            blocks.append(Text(line(label)))
        if first:
            blocks.append(tables.table_of(first, source))
        else:
            blocks.append(Text("Its processes neither read nor wrote a file by a call."))
        if rest:
            title = "Other file systems, and devices of the whole machine"
            blocks.append(Details(title, (tables.table_of(rest, source),), open=False))
    return Section("io-sizes", "Write and read sizes", tuple(blocks))
