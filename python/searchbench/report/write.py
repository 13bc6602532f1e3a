"""Judgement → files: the page, the document, the sheets. The only writer of this package."""

from __future__ import annotations

import os
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
        return Report(
            _whole(folder / "report.html", page(made).encode()),
            _whole(folder / "report.pdf", document_pdf(made)),
            write_sheets(judgement, folder),
        )
    except OSError as error:
        raise RecordError(
            f"{folder}: the report cannot be written ({error.strerror}); name another folder"
        ) from error


def write_comparison(found: RecordComparison, a: Record, b: Record, path: Path) -> Path:
    """Write the page of two records as one HTML file. RecordError where that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _whole(path, page(of_two_records(found, a, b)).encode())
    except OSError as error:
        raise RecordError(
            f"{path}: the page cannot be written ({error.strerror}); name another file"
        ) from error


def write_log_page(of: LogJudgement, path: Path) -> Path:
    """Write the page of a log, and beside it the same as PDF. RecordError where that cannot be."""
    return write_page(of_log(of), path)


def write_page(made: Document, path: Path) -> Path:
    """Write a document as a page, and beside it as PDF. RecordError where that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _whole(path.with_suffix(".pdf"), document_pdf(made))
        return _whole(path, page(made).encode())
    except OSError as error:
        raise RecordError(
            f"{path}: the page cannot be written ({error.strerror}); name another file"
        ) from error


def _whole(path: Path, content: bytes) -> Path:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(path)
    return path
