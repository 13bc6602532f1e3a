"""What the report says, in order: the answer first, then its evidence, then every detail.

Built once from a record and its judgement; the page and the document only set it in type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from searchbench.analysis.judgement import Agreement, Finding, Judgement, TreatmentResult
from searchbench.report import figures, numbers, tables
from searchbench.report.blocks import (
    Badge,
    Block,
    Details,
    Document,
    Facts,
    Figure,
    Notice,
    Section,
    Text,
)
from searchbench.report.details import machine, treatment_details
from searchbench.report.draw import svg
from searchbench.report.look import NARROW, WIDE, Look
from searchbench.report.reproduce import as_run, reproduce
from searchbench.report.text import fit, line, short


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
        named = self.record.plan.get("judging", {}).get("metric")
        return str(named or ("response_p99" if self.open_loop else "throughput"))

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
            _badge(verdict.resolved, self._unusable()),
            Text(fit(verdict.decision), "lead"),
        ]
        blocks += self._warnings()
        if self.judgement.treatments:
            blocks.append(tables.overview(self.judgement, self.metric, open_loop=self.open_loop))
            blocks.append(Text(_reading(self.judgement), "quiet"))
        compared = _against_first(self.judgement)
        first = self.labels.get(compared[0].a, compared[0].a) if compared else ""
        blocks += self._figure(
            "differences",
            f"How much better than {short(first, 60)}",
            "Points: the ratio, paired by block; lines: its interval. Shaded: the noise floor, "
            "within which a difference is not resolved (grey).",
            lambda look: figures.differences(compared, self.labels, look),
        )
        if self.judgement.comparisons:
            table = tables.comparisons(self.judgement.comparisons, self.labels)
            title = f"All {numbers.counted(len(table.rows), 'comparison')}"
            note = "Ratios above 1: the first is better"
            blocks.append(Details(title, (table,), note, open=len(table.rows) <= 6))
        if self.judgement.analysis.strip():
            blocks.append(Text("What the study says of itself: " + fit(self.judgement.analysis)))
        return Section("answer", "The answer", tuple(blocks))

    def throughput(self) -> Section:
        """Throughput against each factor that has numbers as levels."""
        blocks: list[Block] = []
        for i, factor in enumerate(self.judgement.scaling):
            blocks += self._figure(
                f"scaling-{i}",
                f"Throughput against {short(factor, 60)}",
                "Points: throughput over the valid trials; bands: its interval.",
                lambda look, factor=factor: figures.scaling(self.judgement, factor, look),
            )
        if not blocks:
            blocks.append(
                Text("No factor of this study has several numbers as levels, so there is no curve.")
            )
        return Section("throughput", "Throughput against each factor", tuple(blocks))

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
            blocks.append(
                Text(
                    "A closed loop cannot know how long a user would have waited: while a server "
                    "stalls, its clients send nothing, so the requests that would have met the "
                    "stall are missing from the count (coordinated omission). Its response times "
                    "are those of so many patient clients; for what users see at a given rate, "
                    "measure with an open loop."
                )
            )
        kinds = ("service", "response") if self.open_loop or not closed else ("service",)
        for which in kinds:
            blocks += self._figure(
                f"latency-{which}",
                f"{which.capitalize()} time by quantile",
                "Both axes are logarithmic; the quantiles from the middle to the tail have equal "
                "room for each nine. Bands: the intervals. Quantiles with too few samples end "
                "the line.",
                lambda look, which=which: figures.latency(self.judgement, which, look),
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
            "Throughput over the time of a trial",
            "A line a trial. Shaded: the measured window. What lies before it is warm-up and "
            "counts for nothing.",
            lambda look: figures.warmup(self.judgement, windows, look),
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
        if not blocks:
            blocks = [Text("No trial has samples enough to draw its warm-up.")]
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
        for pair in found:
            blocks += self._differing(pair)
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
        return Section("machine", "The machine", machine(self.record.host))

    def findings(self) -> Section:
        """All findings: the number, what it means, what to do."""
        found = tables.findings_of(self.judgement)
        if not found:
            return Section("findings", "Findings", (Text("The audit found nothing to report."),))
        return Section("findings", "Findings", tuple(_notices(found)))

    def details(self) -> Section:
        """Each treatment down to its configuration, what was not run, and how to run it again."""
        blocks: list[Block] = [treatment_details(t, self.record) for t in self.judgement.treatments]
        if self.judgement.excluded:
            title = f"{numbers.counted(len(self.judgement.excluded), 'crossing')} not run"
            blocks.append(Details(title, (tables.excluded(self.judgement.excluded),)))
        blocks.append(as_run(self.record.study_text))
        blocks.append(reproduce(self.record))
        return Section("details", "Every detail", tuple(blocks))

    def _figure(
        self, name: str, title: str, caption: str, make: Callable[[Look], Any]
    ) -> list[Block]:
        wide = make(WIDE)
        if wide is None:
            return []
        drawn = [
            svg(chart, f"{name}-{size}", title)
            for size, chart in (("wide", wide), ("narrow", make(NARROW)))
        ]
        return [Figure(name, title, caption, *drawn)]

    def _unusable(self) -> list[str]:
        return [
            t.trial
            for treatment in self.judgement.treatments
            for t in treatment.trials
            if t.status != "valid"
        ]

    def _warnings(self) -> list[Block]:
        """What must be known before the verdict is believed."""
        blocks: list[Block] = []
        grave = [f for f in tables.findings_of(self.judgement) if f.severity != "note"]
        bad = [t for treatment in self.judgement.treatments for t in treatment.trials]
        total = len(bad)
        for status, meaning in (("invalid", "did not pass the audit"), ("failed", "failed")):
            named = [t for t in bad if t.status == status]
            if named:
                reasons = list(dict.fromkeys(line(t.reason) for t in named if t.reason))
                blocks.append(
                    Notice(
                        "invalid",
                        f"{numbers.counted(len(named), 'trial')} of {total} {meaning}",
                        ", ".join(line(t.trial) for t in named[:6]) + (" …" if named[6:] else ""),
                        "; ".join(reasons[:3]) + (" …" if reasons[3:] else ""),
                        "Shown below, and not used in any estimate.",
                        "",
                    )
                )
        study = [f for f in grave if not f.trial]
        blocks += _notices(study)
        rest = [f for f in grave if f.trial and f.severity == "warning"]
        if rest:
            kinds = ", ".join(dict.fromkeys(line(f.kind).replace("_", " ") for f in rest))
            text = (
                f"{numbers.counted(len(rest), 'warning')} on single trials ({kinds}): see Findings."
            )
            blocks.append(Text(text, "quiet"))
        return blocks

    def _differing(self, pair: Agreement) -> list[Block]:
        a = self.labels.get(pair.a, pair.a)
        b = self.labels.get(pair.b, pair.b)
        blocks: list[Block] = []
        for difference in pair.examples:
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
        note = f"{len(pair.examples)} of {numbers.counted(differing, 'query', 'queries')}"
        return [Details(title, tuple(blocks), note + " that differ" if differing else "")]


def _badge(resolved: bool, unusable: list[str]) -> Badge:
    aside = f" {numbers.counted(len(unusable), 'trial')} could not be used." if unusable else ""
    if resolved:
        text = "At least one difference is larger than the noise of this machine." + aside
        return Badge("Resolved", "good", text)
    text = "No difference is larger than what the same system differs from itself." + aside
    return Badge("Not resolved", "unsure", text)


def _notices(found: list[Finding]) -> list[Block]:
    """Findings that say the same of several trials are said once."""
    groups: dict[tuple[str, str, str, str], list[Finding]] = {}
    for f in found:
        groups.setdefault((f.severity, f.kind, f.meaning, f.remedy), []).append(f)
    blocks: list[Block] = []
    for (_, kind, meaning, remedy), same in groups.items():
        where = ", ".join(dict.fromkeys(line(f.trial) for f in same if f.trial))
        said = list(dict.fromkeys(line(f.number) for f in same))
        number = "; ".join(said[:4]) + (f"; and {len(said) - 4} more" if said[4:] else "")
        blocks.append(
            Notice(
                same[0].severity,
                line(kind).replace("_", " "),
                where or "the whole study",
                number,
                line(meaning),
                line(remedy),
            )
        )
    return blocks


def _reading(judgement: Judgement) -> str:
    text = "Small print: 95 % intervals over the valid trials. Hover or touch for exact values."
    if judgement.noise_floor:
        share = judgement.noise_floor.value
        change = share - 1 if share >= 1 else share
        text += (
            f" Noise floor from the A/A control: ±{numbers.digits(100 * change, 2)} %; "
            "smaller differences are never called a win."
        )
    return text


def _against_first(judgement: Judgement) -> list[Any]:
    """The comparisons that share the commonest first treatment, by the commonest metric."""
    found = [c for c in judgement.comparisons if c.ratio is not None]
    if not found:
        return []
    metrics = [c.metric for c in found]
    metric = max(dict.fromkeys(metrics), key=metrics.count)
    found = [c for c in found if c.metric == metric]
    firsts = [c.a for c in found]
    best = judgement.verdict.best
    first = best if best in firsts else max(dict.fromkeys(firsts), key=firsts.count)
    return [c for c in found if c.a == first]


__all__ = ["Content", "RecordView", "TreatmentResult"]
