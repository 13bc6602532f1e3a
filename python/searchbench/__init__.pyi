"""The types of what ``searchbench`` offers; ``__init__.py`` imports each when it is first used."""

from searchbench.analysis.frames import frames
from searchbench.analysis.judge import judge
from searchbench.errors import SearchbenchError
from searchbench.lab.conduct.studies import verify
from searchbench.measure.load import load
from searchbench.measure.run import run
from searchbench.record import open_record
from searchbench.report import write_report
from searchbench.study import read_study

__all__ = [
    "SearchbenchError",
    "frames",
    "judge",
    "load",
    "open_record",
    "read_study",
    "run",
    "verify",
    "write_report",
]
