"""The record: what was done, as files that anybody can judge again.

trial    what trial.json holds           samples  the tables of a trial
io       reading and writing             old      records of earlier formats
lock     one command at a time
"""

from __future__ import annotations

from searchbench.record.io import FORMAT, Record, Writer, open_record
from searchbench.record.samples import (
    IO,
    PROBE,
    REPLIES,
    SAMPLES,
    STATEMENTS,
    samples_table,
    statements_table,
)
from searchbench.record.trial import Trial

__all__ = [
    "FORMAT",
    "IO",
    "PROBE",
    "REPLIES",
    "SAMPLES",
    "STATEMENTS",
    "Record",
    "Trial",
    "Writer",
    "open_record",
    "samples_table",
    "statements_table",
]
