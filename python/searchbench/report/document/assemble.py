"""The document of a page, assembled from the sections that its kind of judgement brings."""

from __future__ import annotations

from collections.abc import Callable

from searchbench.analysis.judgement import Judgement
from searchbench.record import Record
from searchbench.report.document import (
    classes,
    compare,
    details,
    hosts,
    jobs,
    measured,
    notices,
    operations,
    places,
    roles,
    shape,
    sizes,
    steps,
)
from searchbench.report.document.blocks import Document, Section
from searchbench.report.document.content import Content
from searchbench.report.document.text import line, short
from searchbench.report.tables.numbers import counted

_Part = Callable[[Content], Section | None]
_OF_STEPS: tuple[_Part, ...] = (
    steps.load,
    classes.section,
    steps.table,
    measured.latency_of_steps,
    steps.client,
)
_OF_ALL: tuple[_Part, ...] = (
    measured.first_asks,
    measured.warmup,
    measured.agreement,
    measured.resources,
    places.section,
    hosts.section,
    sizes.section,
    measured.machine,
    notices.findings,
    details.section,
)
_JOBS_ALONE: tuple[_Part, ...] = (
    compare.answer,
    jobs.section,
    compare.throughput,
    measured.answers,
    places.section,
    sizes.section,
    measured.machine,
    notices.findings,
    details.section,
)
# By what was done: the sections in order; one that has nothing to say gives None and is left out.
_PARTS: dict[str, tuple[_Part, ...]] = {
    "trials": (
        compare.answer,
        operations.section,
        jobs.section,
        roles.section,
        compare.throughput,
        measured.latency_of_treatments,
        classes.section,
        shape.section,
        *_OF_ALL,
    ),
    "sweep": (steps.answer, *_OF_STEPS, *_OF_ALL),
    "capacity": (steps.answer, roles.of_search, steps.evidence, *_OF_STEPS, *_OF_ALL),
}
_UNTITLED = {
    "trials": "A study without a question",
    "sweep": "A sweep without a question",
    "capacity": "A capacity search without a question",
}


def document(record: Record, judgement: Judgement) -> Document:
    """What the report says, before it is set in type."""
    content = Content(record, judgement)
    about = ["a first look, which decides nothing"] * judgement.first_look + [
        f"measured {line(str(record.about.get('created', 'at an unknown time')))[:10]}",
        f"searchbench {line(str(record.about.get('searchbench', '')))}",
        *_counts(content),
    ]
    parts = _PARTS[judgement.measure] if judgement.driven else _JOBS_ALONE
    sections = (part(content) for part in parts)
    return Document(
        title="First look: " * judgement.first_look
        + (line(judgement.question) or _UNTITLED[judgement.measure]),
        about=" · ".join(about),
        method=_method(content),
        sections=tuple(section for section in sections if section is not None),
    )


def _counts(content: Content) -> list[str]:
    """What was measured, counted."""
    judged = content.judgement
    if not content.stepped:
        treatments = counted(len(judged.treatments), "treatment")
        return [treatments, counted(len(content.record.trials), "trial")]
    promises = {c.promise for c in judged.capacity}
    return [
        counted(len(content.subjects), "configuration"),
        *([counted(len(promises), "promise")] if promises else []),
        counted(len(content.steps), "trial" if content.searched else "load step"),
    ]


def _method(content: Content) -> str:
    """How the systems were driven, in a sentence."""
    if content.searched and content.judgement.roles is not None:
        return (
            "For each configuration, rates were driven one after another until the limit was "
            "found, each on a system started anew on its own copy of the index."
        )
    if content.searched:
        return (
            "For each configuration, rates were driven one after another on one warm system until "
            "the limit was found."
        )
    if content.stepped:
        return "The steps of a load were driven one after another on the same warm system."
    systems = {t.system for t in content.judgement.treatments}
    running = [name for name in content.attached if name in systems]
    if not running:
        return "Each treatment was started anew for every measurement."
    if len(running) == len(systems):
        return "The systems ran already; each treatment was measured anew in every block."
    return (
        "Each treatment was started anew for every measurement, except of the systems that ran "
        f"already ({', '.join(short(name, 60) for name in running)})."
    )
