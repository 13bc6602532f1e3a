"""A judgement as a page to read, a document to print, and sheets to compute with.

report = write_report(open_record(path), judge(record), path / "report")
report.html, report.pdf, report.csv
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from searchbench.report.write import Report, write_comparison, write_report

__all__ = ["Report", "write_comparison", "write_report"]


def __getattr__(name: str) -> Any:
    """Loaded on first use: what writes pages takes seconds, and a terminal needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from searchbench.report import write

    return getattr(write, name)
