"""What the report says, in order: the answer first, then its evidence, then every detail.

Built once from a record and its judgement; the page and the document only set it in type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, Protocol

from searchbench.analysis.judgement import Agreement, Judgement, Scale
from searchbench.report.document.blocks import (
    Block,
    Details,
    Document,
    Facts,
    Figure,
    Section,
    Text,
)
from searchbench.report.document.chosen import scales_of, shown_comparisons
from searchbench.report.document.details import common, in_common, machine, treatment_details
from searchbench.report.document.notices import CLOSED_LOOP, badge, notices, reading, warnings
from searchbench.report.document.reproduce import as_run, reproduce
from searchbench.report.document.text import fit, line, short
from searchbench.report.figures import study as figures
from searchbench.report.figures.draw import svg, unchecked
from searchbench.report.figures.look import NARROW, WIDE, Look
from searchbench.report.tables import numbers
from searchbench.report.tables import study as tables
from searchbench.report.tables.cells import title_of
from searchbench.report.tables.measures import measures

_EXAMPLES = 300  # queries shown side by side, over all pairs
_FEWEST_EXAMPLES = 3  # of each pair


class RecordView(Protocol):
    """What the report needs of a record; ``searchbench.record.Record`` has it."""

    @property
    def about(self) -> Mapping[str, Any]:
        """record.json."""

    @property
    def plan(self) -> Mapping[str, Any]:
        """plan.json."""

    @property
    def host(self) -> Mapping[str, Any]:
        """host.json."""

    @property
    def study_text(self) -> str:
        """The study as run."""

    @property
    def trials(self) -> list[dict[str, Any]]:
        """Every trial.json."""


@dataclass(frozen=True)
class Content:
    """One report in the making."""

    record: RecordView
    judgement: Judgement

    def document(self) -> Document:
        """The whole document."""
        parts = (
            self.answer,
            self.throughput,
            self.latency,
            self.warmup,
            self.agreement,
            self.resources,
            self.machine,
            self.findings,
            self.details,
        )
        about = self.record.about
        return Document(
            title=line(self.judgement.question) or "A study without a question",
            about=" · ".join(
                [
                    f"measured {line(str(about.get('created', 'at an unknown time')))[:10]}",
                    f"searchbench {line(str(about.get('searchbench', '')))}",
                    numbers.counted(len(self.judgement.treatments), "treatment"),
                    numbers.counted(len(self.record.trials), "trial"),
                ]
            ),
            sections=tuple(part() for part in parts),
        )

    @cached_property
    def labels(self) -> dict[str, str]:
        """The label of every treatment by its id."""
        return {t.treatment: t.label for t in self.judgement.treatments}

    @cached_property
    def metric(self) -> str:
        """The figure that decides."""
        return self.judgement.metric

    @cached_property
    def loads(self) -> list[Mapping[str, Any]]:
        """The loads of all treatments as planned."""
        return [t.get("load", {}) for t in self.record.plan.get("treatments", [])]

    @cached_property
    def open_loop(self) -> bool:
        """Is any load open, so that response times can be told?"""
        return any(load.get("kind") in ("open", "replay") for load in self.loads)

    def answer(self) -> Section:
        """The verdict, its evidence, and what speaks against it, before anything else."""
        verdict = self.judgement.verdict
        blocks: list[Block] = [
            badge(self.judgement),
            Text(fit(verdict.decision), "lead"),
        ]
        blocks += warnings(self.judgement)
        if self.judgement.treatments:
            blocks.append(tables.overview(self.judgement, self.metric, open_loop=self.open_loop))
            blocks.append(Text(reading(self.judgement), "quiet"))
        compared = shown_comparisons(self.judgement, self.metric)
        best = {c.b for c in compared}
        title = "What is compared"
        if len(best) == 1:
            title = (
                f"{short(self.labels.get(id_ := next(iter(best)), id_), 60)} against every other"
            )
        blocks += self._figure(
            "differences",
            title,
            f"Ratios by {title_of(self.metric).lower()}, paired by block, with their intervals; "
            "above 1× is better. Shaded: the noise floor. Grey: not resolved.",
            partial(figures.differences, compared, self.labels),
        )
        if self.judgement.comparisons:
            table = tables.comparisons(self.judgement.comparisons, self.labels)
            title = f"All {numbers.counted(len(table.rows), 'comparison')}"
            note = "Ratios above 1: the first is better"
            blocks.append(Details(title, (table,), note, open=len(table.rows) <= 6))
        if self.judgement.analysis.strip():
            said = "What the study says of itself: " + self.judgement.analysis.strip()
            blocks += [Text(line(part)) for part in re.split(r"\n\s*\n", said)]
        return Section("answer", "The answer", tuple(blocks), "Answer")

    def throughput(self) -> Section:
        """Throughput, then latencies, against each factor that has numbers as levels."""
        blocks: list[Block] = []
        groups: dict[tuple[str, str], list[Scale]] = {}
        for scale in scales_of(self.judgement):
            groups.setdefault((scale.factor, scale.metric), []).append(scale)
        for i, ((factor, metric), found) in enumerate(groups.items()):
            blocks += self._figure(
                f"scaling-{i}",
                f"{title_of(metric)} against {short(factor, 60)}",
                "Points: over the valid trials; bands: the interval.",
                partial(figures.scaling, found),
            )
        if self.judgement.scales:
            blocks.append(tables.scales(self.judgement.scales))
        if not blocks:
            blocks.append(
                Text("No factor of this study has several numbers as levels, so there is no curve.")
            )
        return Section("throughput", "Throughput against each factor", tuple(blocks), "Throughput")

    def latency(self) -> Section:
        """Service and response time: curves, and tables of the quantiles with intervals."""
        blocks: list[Block] = [
            Text(
                "Service time is from the first byte sent to the last byte received. Response "
                "time begins when the request was due, so it includes the wait for a connection."
            )
        ]
        closed = [load for load in self.loads if load.get("kind") == "closed"]
        if closed:
            blocks.append(Text(CLOSED_LOOP + "measure with an open loop."))
        kinds: tuple[Literal["service", "response"], ...]
        kinds = ("service", "response") if self.open_loop or not closed else ("service",)
        for which in kinds:
            blocks += self._figure(
                f"latency-{which}",
                f"{which.capitalize()} time by quantile",
                "Both axes are logarithmic; the quantiles from the middle to the tail have equal "
                "room for each nine. Bands: the intervals. Quantiles with too few samples end "
                "the line.",
                partial(figures.latency, self.judgement, which),
            )
            blocks.append(tables.quantiles(self.judgement, which))
        return Section("latency", "Latency", tuple(blocks))

    def warmup(self) -> Section:
        """How each trial came to a steady state."""
        windows = {}
        for trial in self.record.trials:
            window = trial.get("window")
            if window:
                windows[str(trial["trial"])] = (window["start"] / 1e9, window["end"] / 1e9)
        blocks = self._figure(
            "warmup",
            "From the first request to the last",
            "A line a trial, relative to its own mean over the measured window (shaded). What is "
            "before the window is warm-up and counts for nothing. Triangles: steady from here.",
            partial(figures.warmup, self.judgement, windows),
        )
        late = [
            f"{line(t.trial)} ({numbers.human(t.steady_from_s, 's')})"
            for treatment in self.judgement.treatments
            for t in treatment.trials
            if t.steady_from_s is not None
            and t.trial in windows
            and t.steady_from_s > windows[t.trial][0]
        ]
        if late:
            blocks.append(Text("Steady only after the window had begun: " + ", ".join(late) + "."))
        few = [
            line(treatment.label)
            for treatment in self.judgement.treatments
            if treatment.trials and not any(t.warmup for t in treatment.trials)
        ]
        if not blocks:
            blocks = [Text("No trial has samples enough to draw its warm-up.")]
        elif few:
            blocks.append(Text("Too few requests to draw: " + ", ".join(few) + "."))
        return Section("warmup", "Warm-up", tuple(blocks))

    def agreement(self) -> Section:
        """Whether the systems return the same, and where they do not, why."""
        found = self.judgement.agreement
        if not found:
            text = "There is nothing to compare: only one system answered."
            return Section("agreement", "Agreement", (Text(text),))
        blocks: list[Block] = [
            Text(
                "Speed is worth comparing only between systems that answer the same. Before the "
                "timing, every distinct query was asked once and its reply kept."
            ),
            tables.agreement(found, self.labels),
        ]
        # Ten systems are 45 pairs: what is shown of each is less, so that the page stays a page.
        examples = max(_FEWEST_EXAMPLES, _EXAMPLES // len(found))
        for pair in found:
            blocks += self._measured(pair)
            blocks += self._differing(pair, examples)
        return Section("agreement", "Agreement", tuple(blocks))

    def resources(self) -> Section:
        """What each treatment cost the machine."""
        table = tables.resources(self.judgement, self.labels)
        if table is None:
            return Section("resources", "Resources", (Text("No resources were recorded."),))
        text = "Over the measured window, by the operating system's own accounts; ingest apart."
        return Section("resources", "Resources", (Text(text, "quiet"), table))

    def machine(self) -> Section:
        """The machine as it was found."""
        return Section("machine", "The machine", machine(self.record.host), "Machine")

    def findings(self) -> Section:
        """All findings: the number, what it means, what to do."""
        found = tables.findings_of(self.judgement)
        if not found:
            return Section("findings", "Findings", (Text("The audit found nothing to report."),))
        return Section("findings", "Findings", tuple(notices(found)))

    def details(self) -> Section:
        """Each treatment down to its configuration, what was not run, and how to run it again."""
        shared = common(self.record.trials)
        blocks: list[Block] = [in_common(shared)] if shared else []
        blocks += [treatment_details(t, self.record, shared) for t in self.judgement.treatments]
        if self.judgement.excluded:
            title = f"{numbers.counted(len(self.judgement.excluded), 'crossing')} not run"
            blocks.append(Details(title, (tables.excluded(self.judgement.excluded),)))
        blocks.append(as_run(self.record.study_text))
        blocks.append(reproduce(self.record))
        return Section("details", "Every detail", tuple(blocks), "Details")

    def _figure(
        self, name: str, title: str, caption: str, make: Callable[[Look], Any]
    ) -> list[Block]:
        drawn = []
        for size, look in (("wide", WIDE), ("narrow", NARROW)):
            with unchecked():
                chart = make(look)
            if chart is None:
                return []
            drawn.append(svg(chart, f"{name}-{size}", title))
        return [Figure(name, line(title), caption, *drawn)]

    def _names(self, pair: Agreement) -> tuple[str, str]:
        a = pair.label_a or self.labels.get(pair.a, pair.a)
        return a, pair.label_b or self.labels.get(pair.b, pair.b)

    def _measured(self, pair: Agreement) -> list[Block]:
        if pair.groups is None:
            return []
        a, b = self._names(pair)
        title = f"{short(a, 60)} and {short(b, 60)}, by document sets and groups"
        text = (
            "The measures of the Sphinx comparison study (2011), over all hits on record; the "
            "first is the reference. Ties are excused in the document groups only: documents of "
            "equal weight are a group, and the lowest group, which the end of the list may have "
            "cut, is left out. Queries with one group only are not counted there."
        )
        return [Details(title, (Text(text, "quiet"), measures(pair.groups)))]

    def _differing(self, pair: Agreement, most: int) -> list[Block]:
        a, b = self._names(pair)
        blocks: list[Block] = []
        shown = pair.examples[:most]
        for difference in shown:
            blocks.append(
                Facts(
                    (
                        ("Query", f"{difference.query}: {short(difference.text, 600)}"),
                        ("Cause", line(difference.cause) or "not known"),
                    )
                )
            )
            blocks.append(tables.side_by_side(difference, a, b))
        if not blocks:
            return []
        differing = sum(pair.causes.values())
        title = f"{short(a, 60)} and {short(b, 60)}, side by side"
        note = f"{len(shown)} of {numbers.counted(differing, 'query', 'queries')}"
        return [Details(title, tuple(blocks), note + " that differ" if differing else "")]
