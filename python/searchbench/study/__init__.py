"""Studies: a question as a TOML file, and every mistake in it at once.

``read_study(path)`` gives a ``Study`` or raises StudyError with all complaints, each with its
line and column, what was expected, and the nearest valid name.
"""

from __future__ import annotations

from searchbench.study.model import Factor, Study
from searchbench.study.read import parse_study, read_study

__all__ = ["Factor", "Study", "parse_study", "read_study"]
