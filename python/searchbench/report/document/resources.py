"""What the measurement cost the machine, and which machine it was."""

from __future__ import annotations

from dataclasses import replace

from searchbench.report.document.blocks import Block, Details, Facts, Section, Text
from searchbench.report.document.content import Content
from searchbench.report.document.details import flat
from searchbench.report.document.steps import LONG
from searchbench.report.tables import study as tables

_OF_INGEST = ("index_bytes", "ingest_s", "ingest_documents_per_s")
_OF_CLIENT = ("client_cpu_share",)  # which the section about the client has


def section(content: Content) -> Section | None:
    """What each treatment cost, where the server's process was seen."""
    judged = content.judgement
    text = "Over the measured window, by the operating system's own accounts"
    if content.stepped:
        left_out = (*_OF_CLIENT, *(_OF_INGEST if content.attached else ()))
        driven = {s.treatment for s in content.steps}
        judged = replace(
            judged,
            resources={
                treatment: {k: v for k, v in figures.items() if k not in left_out}
                for treatment, figures in judged.resources.items()
                if treatment in driven
            },
        )
    table = tables.resources(judged, content.labels)
    if table is not None:
        text += "." if content.attached else "; ingest apart."
        shown: Block = table
        if content.stepped and len(table.rows) > LONG:
            title = "Every trial" if content.searched else "Every step"
            shown = Details(title, (table,))
        return Section("resources", "Resources", (Text(text, "quiet"), shown))
    if content.stepped:
        return None
    return Section("resources", "Resources", (Text("No resources were recorded."),))


def machine(content: Content) -> Section:
    """The fingerprint of the machine as pairs; nested ones are named by their path."""
    pairs = flat(content.record.host)
    text = Text("The record holds nothing about the machine.")
    return Section("machine", "The machine", (Facts(tuple(pairs)) if pairs else text,), "Machine")
