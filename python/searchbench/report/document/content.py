"""What the sections of a page are made from: a record, its judgement, and what both know by name.

A page is assembled (``assemble``) from the sections that its kind of judgement brings: ``compare``,
``sweep`` or ``capacity``. Each section is a function from a ``Content`` to a ``Section``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from searchbench.analysis.judgement import Judgement, Step, TreatmentResult
from searchbench.analysis.sweep.points import level_of
from searchbench.record.trial import Trial
from searchbench.report.document.blocks import Block, Figure, Section
from searchbench.report.document.text import line
from searchbench.report.figures.draw import svg, unchecked
from searchbench.report.figures.look import NARROW, WIDE, Look
from searchbench.study.plan import Plan

_DRAWN = 6  # treatments of a load whose latencies are drawn by quantile, and whose warm-up is


class RecordView(Protocol):
    """What the report needs of a record; ``searchbench.record.Record`` has it."""

    @property
    def about(self) -> Mapping[str, Any]:
        """record.json."""

    @property
    def plan(self) -> Plan:
        """plan.json."""

    @property
    def host(self) -> Mapping[str, Any]:
        """host.json."""

    @property
    def study_text(self) -> str:
        """The study as run."""

    @property
    def trials(self) -> list[Trial]:
        """Every trial.json."""


@dataclass(frozen=True)
class Content:
    """A record with its judgement, and the names and orders that several sections need."""

    record: RecordView
    judgement: Judgement

    @property
    def searched(self) -> bool:
        """Whether a search for capacity drove the trials."""
        return self.judgement.measure == "capacity"

    @property
    def stepped(self) -> bool:
        """Whether the steps of a load were driven one after another on warm systems."""
        return self.judgement.measure != "trials"

    @cached_property
    def labels(self) -> dict[str, str]:
        """The label of every treatment by its id."""
        return {t.treatment: t.label for t in self.judgement.treatments}

    @cached_property
    def loads(self) -> set[str]:
        """The kinds of the loads, as planned: "closed", "open", "replay"."""
        if self.searched:
            return {"open"}  # the short first look is a closed loop, and answers nothing by itself
        return {str(t.load.get("kind", "closed")) for t in self.record.plan.treatments}

    @cached_property
    def attached(self) -> list[str]:
        """The systems that ran already, which nobody started for this measurement."""
        return list(dict.fromkeys(t.system for t in self.record.trials if t.attached is not None))

    @cached_property
    def subjects(self) -> dict[str, list[TreatmentResult]]:
        """By configuration (without the step of its load), in the order of the plan."""
        named = {t.id: t.subject or t.label for t in self.record.plan.treatments}
        found: dict[str, list[TreatmentResult]] = {}
        for treatment in self.judgement.treatments:
            found.setdefault(named.get(treatment.treatment, treatment.label), []).append(treatment)
        return found

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """All steps: by subject, then by ascending load, then by block."""
        order = {name: i for i, name in enumerate(self.subjects)}
        last = len(order)
        return tuple(
            sorted(
                self.judgement.steps,
                key=lambda s: (order.get(s.subject, last), level_of(s), s.block),
            )
        )

    @cached_property
    def drawn(self) -> tuple[TreatmentResult, ...]:
        """The treatments of which curves are drawn.

        Of a load's steps at most six, from the least load to the greatest of every subject.
        """
        every = self.judgement.treatments
        if not self.stepped:
            return every
        used = {t.treatment for t in every if any(x.status == "valid" for x in t.trials)}
        used = used or {t.treatment for t in every}
        if len(used) <= _DRAWN:
            return tuple(t for t in every if t.treatment in used)
        share = max(2, _DRAWN // max(1, len(self.subjects)))
        chosen: list[TreatmentResult] = []
        for members in self.subjects.values():
            own = [t for t in members if t.treatment in used]
            n = min(share, len(own))
            at = {round(i * (len(own) - 1) / max(1, n - 1)) for i in range(n)}
            chosen += [own[i] for i in sorted(at)]
        return tuple(chosen[:_DRAWN])


Part = Callable[[Content], Section | None]


@dataclass(frozen=True, slots=True)
class Kind:
    """What one kind of judgement brings to a page.

    ``parts``: its sections in order; one that has nothing to say gives None and is left out.
    ``method``: the sentence that says how the systems were driven. ``counts``: what was measured,
    counted. ``untitled``: the title where the study asks no question.
    """

    parts: tuple[Part, ...]
    method: Callable[[Content], str]
    counts: Callable[[Content], list[str]]
    untitled: str


def figure(name: str, title: str, caption: str, make: Callable[[Look], Any]) -> list[Block]:
    """A figure, for a desk and for a phone; nothing where ``make`` has nothing to draw."""
    drawn = []
    for size, look in (("wide", WIDE), ("narrow", NARROW)):
        with unchecked():
            chart = make(look)
        if chart is None:
            return []
        drawn.append(svg(chart, f"{name}-{size}", title))
    return [Figure(name, line(title), caption, *drawn)]
