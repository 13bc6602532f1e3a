"""What the sections of a page are made from: a record, its judgement, and what both know by name.

A page is assembled (``assemble``) from the sections that its kind of judgement brings. Each section
is a function from a ``Content`` to a ``Section``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from searchbench.analysis.judgement import Judgement, Step, TreatmentResult
from searchbench.analysis.sweep.points import level_of
from searchbench.record import Record
from searchbench.report.document.blocks import Block, Figure
from searchbench.report.document.text import line
from searchbench.report.figures.draw import svg, unchecked
from searchbench.report.figures.look import NARROW, WIDE, Look

LONG = 12  # rows of a table that is shown closed
_DRAWN = 6  # treatments of a load whose latencies are drawn by quantile, and whose warm-up is


@dataclass(frozen=True)
class Content:
    """A record with its judgement, and the names and orders that several sections need."""

    record: Record
    judgement: Judgement

    @property
    def searched(self) -> bool:
        """Whether a search for capacity drove the trials."""
        return self.judgement.measure == "capacity"

    @property
    def stepped(self) -> bool:
        """Whether the steps of a load were driven one after another on warm systems."""
        return self.judgement.measure != "trials"

    @property
    def step(self) -> str:
        """What a step of a load is called: a search drives trials."""
        return "trial" if self.searched else "step"

    @cached_property
    def labels(self) -> dict[str, str]:
        """The label of every treatment by its id."""
        return {t.treatment: t.label for t in self.judgement.treatments}

    @cached_property
    def loads(self) -> set[str]:
        """The kinds of the loads, as planned: "closed", "open", "replay"."""
        if self.searched:
            return {"open"}  # the opening loop is closed, and answers nothing by itself
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

    @property
    def usable(self) -> int:
        """How many of the steps can be used."""
        return sum(s.status == "valid" for s in self.steps)

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
