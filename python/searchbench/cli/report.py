"""``searchbench report``: judge a record and write its page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def report(
    record: Path,
    *,
    out: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Judge a record and write the report: HTML, PDF and CSV.

    Parameters
    ----------
    record
        The folder of the record.
    out
        Where to write; the folder ``report`` inside the record by default.
    as_json
        Print the judgement as JSON and write nothing.
    """
    from searchbench.analysis.judge import judge, to_json
    from searchbench.record import open_record
    from searchbench.report import write_report
    from searchbench.terminal import out as printer
    from searchbench.terminal.answer import show

    opened = open_record(record)
    judgement = judge(opened)
    if as_json:
        printer.as_json(to_json(judgement))
        return 0
    written = write_report(opened, judgement, out or record / "report")
    show(judgement)
    printer.say(f"\nreport: {written.html}")
    return 0
