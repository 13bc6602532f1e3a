"""``searchbench report``: judge a record and write its page."""

from __future__ import annotations

from pathlib import Path

from searchbench.cli.flags import Json


def report(
    record: Path, *, out: Path | None = None, machine: str | None = None, as_json: Json = False
) -> int:
    """Judge a record and write the report: HTML, PDF and CSV.

    Parameters
    ----------
    record
        The folder of the record.
    out
        Where to write; the folder report inside the record by default.
    machine
        Instead, print what the machine did during this trial (its id, as in b01-t02), second by
        second through all phases, as `sar` does.
    as_json
        Print the judgement as JSON and write nothing.
    """
    from searchbench.analysis.judge import to_json
    from searchbench.errors import RecordError
    from searchbench.logs.record import is_one as is_log
    from searchbench.record import open_record
    from searchbench.terminal import out as terminal
    from searchbench.terminal.answer import answer

    terminal.outlast_readers()
    if is_log(record):
        raise RecordError(f"{record} is the record of a log: searchbench logs --record {record}")
    found = open_record(record)
    if machine is not None:
        from searchbench.terminal.machine import machine_of

        machine_of(found, machine, as_json=as_json)
        return 0
    page = None if as_json else out or record / "report"
    answer(found, page, plain=to_json if as_json else None)
    return 0
