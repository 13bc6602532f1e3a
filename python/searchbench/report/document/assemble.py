"""The document of a page, assembled from the sections that its kind of judgement brings."""

from __future__ import annotations

from collections.abc import Mapping

from searchbench.analysis.judgement import Judgement
from searchbench.report.document import capacity, compare, sweep
from searchbench.report.document.blocks import Document
from searchbench.report.document.content import Content, Kind, RecordView
from searchbench.report.document.text import line

KINDS: Mapping[str, Kind] = {
    "trials": compare.KIND,
    "sweep": sweep.KIND,
    "capacity": capacity.KIND,
}


def document(record: RecordView, judgement: Judgement) -> Document:
    """What the report says, before it is set in type."""
    content = Content(record, judgement)
    kind = KINDS[judgement.measure]
    about = record.about
    return Document(
        title=line(judgement.question) or kind.untitled,
        about=" · ".join(
            [
                f"measured {line(str(about.get('created', 'at an unknown time')))[:10]}",
                f"searchbench {line(str(about.get('searchbench', '')))}",
                *kind.counts(content),
            ]
        ),
        method=kind.method(content),
        sections=tuple(s for part in kind.parts if (s := part(content)) is not None),
    )
