"""A judgement as a page to read, a document to print, and sheets to compute with.

report = write_report(open_record(path), judge(record), path / "report")
report.html, report.pdf, report.csv
"""

from searchbench.report.write import Report, write_comparison, write_report

__all__ = ["Report", "write_comparison", "write_report"]
