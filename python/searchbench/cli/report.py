"""``searchbench report``: judge a record and write its page."""

from __future__ import annotations

from pathlib import Path

from searchbench.cli.flags import Json


def report(record: Path, *, out: Path | None = None, as_json: Json = False) -> int:
    """Judge a record and write the report: HTML, PDF and CSV.

    Parameters
    ----------
    record
        The folder of the record.
    out
        Where to write; the folder report inside the record by default.
    as_json
        Print the judgement as JSON and write nothing.
    """
    from searchbench.analysis.judge import to_json
    from searchbench.record import open_record
    from searchbench.terminal import out as terminal
    from searchbench.terminal.answer import answer

    terminal.outlast_readers()
    page = None if as_json else out or record / "report"
    answer(open_record(record), page, plain=to_json if as_json else None)
    return 0
