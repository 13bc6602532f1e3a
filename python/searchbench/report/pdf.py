"""The same document as PDF, set by Typst from a template of ours.

The content reaches the template as JSON, so no text of a study can be taken for markup.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

import orjson
import typst

from searchbench.errors import RecordError
from searchbench.report.document.blocks import Block, Details, Document, Figure, Table
from searchbench.report.document.paper import marked, printed
from searchbench.report.document.text import fit
from searchbench.report.figures.draw import pdf
from searchbench.whole import IN_PASSING, not_written


def document_pdf(document: Document) -> bytes:
    """The PDF as bytes; the same content gives the same bytes.

    RecordError where there is no room for what Typst reads.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="searchbench-report-") as name:
            folder = Path(name)
            made = typst.compile(lay_out(document, folder), root=folder, timestamp=0)
    except OSError as error:
        place = error.filename or tempfile.gettempdir()
        raise RecordError(not_written(place, error, *IN_PASSING)) from error
    return bytes(made)


def lay_out(document: Document, folder: Path) -> Path:
    """Write what Typst reads into a folder: template, content, figures. Returns the template."""
    content = {
        "title": document.title,
        "about": document.about,
        "method": document.method,
        "sections": [
            {"title": s.title, "blocks": [_block(b, folder) for b in printed(s.blocks)]}
            for s in marked(document).sections
        ],
    }
    (folder / "content.json").write_bytes(orjson.dumps(_fit(content)))
    template = resources.files("searchbench.report").joinpath("templates", "document.typ")
    copied = folder / "document.typ"
    copied.write_text(template.read_text("utf-8"), "utf-8")
    return copied


def _block(block: Block, folder: Path) -> dict[str, Any]:
    if isinstance(block, Figure):
        path = folder / f"{block.name}.pdf"
        path.write_bytes(pdf(block.wide))
        return {
            "kind": block.kind,
            "title": block.title,
            "caption": block.caption,
            "file": path.name,
        }
    if isinstance(block, Details):
        inner = [_block(b, folder) for b in block.blocks]
        return {"kind": block.kind, "title": block.title, "note": block.note, "blocks": inner}
    if isinstance(block, Table):
        return {
            "kind": block.kind,
            "columns": [asdict(c) for c in block.columns],
            "rows": [[asdict(cell) for cell in row] for row in block.rows],
        }
    return asdict(block)


def _fit(value: Any) -> Any:
    if isinstance(value, str):
        return fit(value)
    if isinstance(value, dict):
        return {key: _fit(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_fit(held) for held in value]
    return value
