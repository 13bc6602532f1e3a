"""Judgement → files: the page, the document, the sheets. The only writer of this package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from searchbench.analysis.judgement import Judgement, RecordComparison
from searchbench.analysis.logs.model import LogJudgement
from searchbench.errors import RecordError
from searchbench.record import Record
from searchbench.report.document.assemble import document
from searchbench.report.document.blocks import Document
from searchbench.report.document.logs import of_log
from searchbench.report.document.records import of_two_records
from searchbench.report.page import page
from searchbench.report.pdf import document_pdf
from searchbench.report.sheets import write_sheets
from searchbench.whole import not_written, write_whole


@dataclass(frozen=True, slots=True)
class Report:
    """Where the parts of a report are."""

    html: Path
    pdf: Path
    csv: list[Path]


def write_report(record: Record, judgement: Judgement, out_dir: Path | str) -> Report:
    """Write report.html, report.pdf and the CSV files into ``out_dir``, which is made.

    What was there of these names is replaced, each file whole. RecordError where the folder
    cannot be written.
    """
    folder = Path(out_dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        made = document(record, judgement)
        html, pdf = folder / "report.html", folder / "report.pdf"
        write_whole([(pdf, document_pdf(made)), (html, page(made).encode())])
        return Report(html, pdf, write_sheets(judgement, folder))
    except OSError as error:
        said = not_written(folder, error, "the report", "name another folder")
        raise RecordError(said) from error


def write_comparison(found: RecordComparison, a: Record, b: Record, path: Path) -> Path:
    """Write the page of two records as one HTML file. RecordError where that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole([(path, page(of_two_records(found, a, b)).encode())])
    except OSError as error:
        raise RecordError(not_written(path, error, "the page")) from error
    return path


def write_log_page(of: LogJudgement, path: Path) -> Path:
    """Write the page of a log, and beside it the same as PDF. RecordError where that cannot be."""
    return write_page(of_log(of), path)


def write_page(made: Document, path: Path) -> Path:
    """Write a document as a page, and beside it as PDF. Where the page is.

    RecordError where that cannot be.
    """
    if path.suffix == ".pdf":
        path = path.with_suffix(".html")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pdf = path.with_suffix(".pdf")
        write_whole([(pdf, document_pdf(made)), (path, page(made).encode())])
    except OSError as error:
        raise RecordError(not_written(path, error, "the page")) from error
    return path
