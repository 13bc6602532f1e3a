"""The report of a load run: what is borne first, then the curves, the steps, and every detail."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

from searchbench.analysis.judgement import Judgement, Step
from searchbench.analysis.sweep.points import level_of
from searchbench.report.document.blocks import (
    Badge,
    Block,
    Code,
    Details,
    Document,
    Facts,
    Notice,
    Section,
    Text,
)
from searchbench.report.document.content import Content
from searchbench.report.document.details import common, flat, in_common
from searchbench.report.document.notices import CLOSED_LOOP, notices
from searchbench.report.document.text import fit, line, short
from searchbench.report.figures import study as figures
from searchbench.report.figures import sweep as load_figures
from searchbench.report.figures.sweep import Loads
from searchbench.report.tables import numbers
from searchbench.report.tables import study as tables
from searchbench.report.tables import sweep as load_tables

_DRAWN = 6  # steps whose latencies are drawn by quantile, and whose warm-up is
_CURVE = 30  # points of a line by quantile
_LEADS = 3  # paragraphs of the answer in large type
_NARROW = 1.1  # a bracket whose upper end is not more than so many times the lower
_LONG = 12  # rows of a table that is shown closed

# What is of the making of an index, which a load run never makes, and what the client section has.
_NOT_OURS = ("index_bytes", "ingest_s", "ingest_documents_per_s", "client_cpu_share")
_OF = {"closed": "clients", "open": "the offered rate", "replay": "the speed of the log"}


@dataclass(frozen=True)
class LoadContent(Content):
    """One report of a load run in the making."""

    def document(self) -> Document:
        """The whole document; parts that have nothing to say are left out."""
        about = self.record.about
        parts = [
            self.answer(),
            *self.capacity(),
            *self.load(),
            self.steps(),
            self.latency(),
            self.client(),
            self.warmup(),
            *([self.agreement()] if self.judgement.agreement else []),
            *self.cost(),
            self.machine(),
            self.findings(),
            self.details(),
        ]
        return Document(
            title=line(self.judgement.question) or "A load run without a question",
            about=" · ".join(
                [
                    f"measured {line(str(about.get('created', 'at an unknown time')))[:10]}",
                    f"searchbench {line(str(about.get('searchbench', '')))}",
                    numbers.counted(len(self.systems), "system"),
                    numbers.counted(len(self.found), "load step"),
                ]
            ),
            sections=tuple(parts),
        )

    @cached_property
    def found(self) -> tuple[Step, ...]:
        """All steps: by system, then by ascending load, then by repetition."""
        order = {name: i for i, name in enumerate(self.systems)}
        return tuple(
            sorted(self.judgement.steps, key=lambda s: (level_of(s), order[s.system], s.block))
        )

    @cached_property
    def systems(self) -> list[str]:
        """The systems in the order of the plan."""
        return list(dict.fromkeys(t.system for t in self.judgement.treatments))

    @cached_property
    def loads(self) -> list[Mapping[str, Any]]:
        """The loads of all treatments as planned."""
        return [t.get("load", {}) for t in self.record.plan.get("treatments", [])]

    @cached_property
    def points(self) -> Loads:
        """What the figures are drawn from."""
        return Loads.of(self.judgement.steps)

    def answer(self) -> Section:
        """Void steps before anything else; then the answer in sentences."""
        j = self.judgement
        blocks: list[Block] = []
        if j.void:
            why = j.void.removeprefix("Void: ")
            why = why[:1].upper() + why[1:]
            blocks.append(Notice("invalid", "Void", "", "", why, _remedy(self.found)))
        blocks.append(_badge(j))
        rest = j.verdict.decision.removeprefix(j.void).strip()
        said = [part for part in rest.split("\n") if part]
        blocks += [
            Text(fit(part), "lead" if i < _LEADS else "plain") for i, part in enumerate(said)
        ]
        blocks += notices(
            [f for f in tables.findings_of(j) if not f.trial and f.severity == "warning"]
        )
        blocks.append(Text(_reading(j), "quiet"))
        return Section("answer", "The answer", tuple(blocks), "Answer")

    def capacity(self) -> list[Section]:
        """The bracket of each system whose capacity was searched for, and the curve around it."""
        blocks: list[Block] = []
        for i, found in enumerate(self.judgement.capacity):
            several = len(self.judgement.capacity) > 1
            name = f"{short(found.system, 60)}: " if several else ""
            blocks.append(
                Facts(
                    (
                        (f"{name}holds", _rate(found.holds)),
                        ("fails", _rate(found.fails)),
                        ("promise", line(found.slo)),
                    )
                )
            )
            blocks += self._figure(
                f"capacity-{i}",
                f"{name}{'w' if several else 'W'}hat each probe used up of the promise",
                "Requests that broke the promise, over those that may: below 1× it was kept. Bars: "
                "95 % intervals. Shaded: the bracket. Each end is judged by all probes together.",
                partial(load_figures.capacity, found),
            )
            blocks.append(load_tables.probes(found))
        return [Section("capacity", "Capacity", tuple(blocks))] if blocks else []

    def load(self) -> list[Section]:
        """Latency and throughput against the load, a line a system."""
        kind = self.points.kind
        against = f"against {_OF[kind]}"
        marks = "Triangles: rates that were not kept up. " if kind != "closed" else ""
        marks += "Crosses: void. " if self.points.void else ""
        blocks = self._figure(
            "load-throughput",
            f"Throughput {against}",
            "Points: answered well per second; bands: 95 % intervals. "
            + marks
            + ("Dotted: everything offered is answered." if kind == "open" else ""),
            partial(load_figures.throughput, self.points),
        )
        said = {
            "response": "From when a request was due to its last byte: what a user waits.",
            "service": "From the first byte sent to the last byte received: what the server takes.",
        }
        for which in ("response", "service"):
            blocks += self._figure(
                f"load-{which}",
                f"{which.capitalize()} time {against}",
                f"{said[which]} Dashed: p50; whole: p99; bands: 95 % intervals. {marks}",
                partial(load_figures.against_load, self.points, which),
            )
        closed = [load for load in self.loads if load.get("kind") == "closed"]
        if closed:
            blocks.append(Text(CLOSED_LOOP + "drive it at that rate (--rate)."))
        return [Section("load", f"Load: {_OF[kind]}", tuple(blocks), "Load")] if blocks else []

    def steps(self) -> Section:
        """The table of load steps, and how their requests ended."""
        blocks: list[Block] = [load_tables.steps(self.found)] if self.found else []
        total = sum(s.requests for s in self.found)
        if any(kind != "ok" for s in self.found for kind in s.outcomes):
            table = load_tables.outcomes(self.found)
            blocks.append(Details("How requests ended", (table,), open=len(table.rows) <= _LONG))
        elif total:
            blocks.append(
                Text(f"All {numbers.count(total)} measured requests ended well.", "quiet")
            )
        cached = load_tables.cache(self.record.trials)
        if cached is not None:
            note = "by the server's own count"
            blocks.append(Details("Cache hits", (cached,), note, open=len(cached.rows) <= _LONG))
        if self.judgement.comparisons:
            compared = tables.comparisons(self.judgement.comparisons, self.labels)
            title = f"All {numbers.counted(len(compared.rows), 'comparison')} of systems"
            blocks.append(Details(title, (compared,), "Ratios above 1: the first is better"))
        if not blocks:
            blocks.append(Text("No load step is on record."))
        return Section("steps", "Load steps", tuple(blocks), "Steps")

    def latency(self) -> Section:
        """Quantile curves of some steps, and a table of all."""
        drawn = replace(self.judgement, treatments=tuple(self._chosen()))
        fewer = len(drawn.treatments) < len(self.judgement.treatments)
        blocks: list[Block] = []
        some = f" {len(drawn.treatments)} of the steps; all are in the table." if fewer else ""
        blocks += self._figure(
            "latency-response",
            "Response time by quantile",
            "Both axes are logarithmic; each nine of the quantiles has equal room. Bands: the "
            f"intervals. Quantiles with too few samples end the line.{some}",
            partial(figures.latency, drawn, "response", most=_CURVE),
        )
        which: Literal["response", "service"]
        for which in ("response", "service"):
            table = load_tables.quantiles(self.found, which)
            title = f"{which.capitalize()} time, every step"
            blocks.append(Details(title, (table,), open=len(table.rows) <= _LONG))
        if any(s.connect for s in self.found):
            table = load_tables.quantiles(self.found, "connect")
            blocks.append(Details("Time to open a connection", (table,)))
        for s in self.found:
            if s.worst_minute:
                at = numbers.human(s.worst_minute["from_s"], "s")
                worst = numbers.human(s.worst_minute["response_p99"], "s")
                blocks.append(
                    Text(f"{line(s.label)}: in the worst minute, from {at} of the window on, the "
                         f"response p99 was {worst}.")
                )  # fmt: skip
        return Section("latency", "Latency", tuple(blocks))

    def client(self) -> Section:
        """Whether the client can be believed: counted clients, lateness, its own CPU."""
        text = Text(
            "Clients are counted in the trace, and again by Little's law: the times of all "
            "requests must add up to the clients that ran. Late is what the client sent later than "
            "it could; that is our fault and none of the server's.",
            "quiet",
        )
        table = load_tables.client(self.found)
        details = Details("Every step", (table,), open=len(table.rows) <= _LONG)
        return Section("client", "The client", (text, details), "Client")

    def warmup(self) -> Section:
        """How some of the steps came to a steady state."""
        kept = tuple(self._chosen())
        return Content(self.record, replace(self.judgement, treatments=kept)).warmup()

    def cost(self) -> list[Section]:
        """What each step cost the server, where its process is seen from here."""
        kept = {
            name: {k: v for k, v in own.items() if k not in _NOT_OURS}
            for name, own in self.judgement.resources.items()
        }
        table = tables.resources(replace(self.judgement, resources=kept), self.labels)
        text = Text("Over the measured window, by the operating system's own accounts.", "quiet")
        return [Section("resources", "Resources", (text, table))] if table else []

    def details(self) -> Section:
        """Targets, requests, what all steps share, and the command to run it again."""
        shared = common(self.record.trials)
        blocks: list[Block] = [self._target(name) for name in self.systems]
        blocks.append(self._requests())
        blocks += self._machines()
        held = {key: value for key, value in shared.items() if key == "load"}
        if held:
            blocks.append(in_common(held))
        blocks.append(self._again())
        return Section("details", "Every detail", tuple(blocks), "Details")

    def _chosen(self) -> Sequence[Any]:
        """At most six treatments, from the least load to the greatest, of every system."""
        every = self.judgement.treatments
        used = [t for t in every if any(x.status == "valid" for x in t.trials)] or list(every)
        if len(used) <= _DRAWN:
            return used
        share = max(2, _DRAWN // max(1, len(self.systems)))
        chosen = []
        for name in self.systems:
            own = [t for t in used if t.system == name]
            n = min(share, len(own))
            at = {round(i * (len(own) - 1) / max(1, n - 1)) for i in range(n)}
            chosen += [own[i] for i in sorted(at)]
        return chosen[:_DRAWN]

    def _target(self, name: str) -> Details:
        own = [t for t in self.record.trials if t.get("system") == name]
        first = own[0] if own else {}
        pairs = [
            ("target", line(str(first.get("attached", "not known")))),
            (
                "endpoints",
                ", ".join(line(str(p)) for p in first.get("places") or []) or "not known",
            ),
            ("engine", line(f"{first.get('engine', 'not known')} {first.get('version', '')}")),
        ]
        extra = (first.get("facts") or {}).get("extra") or {}
        pairs += flat(extra)
        return Details(short(name, 200), (Facts(tuple(pairs)),), "as it was found", open=True)

    def _machines(self) -> list[Block]:
        """The machines that drove, where they were several: their clocks, and what each sent."""
        found: list[Block] = []
        for trial in self.record.trials:
            several = (trial.get("drive") or {}).get("machines") or []
            pairs: list[tuple[str, str]] = []
            for each in several:
                told = {k: v for k, v in each.items() if not isinstance(v, Mapping) and k != "host"}
                host = line(str(each.get("host", "a machine")))
                pairs += [(f"{host} · {name}", said) for name, said in flat(told)]
            if pairs:
                title = f"Client machines of {line(str(trial['trial']))}"
                found.append(Details(title, (Facts(tuple(pairs)),)))
        return found[:_LONG]

    def _requests(self) -> Details:
        first: Mapping[str, Any] = next(
            (t["queries"] for t in self.record.trials if t.get("queries")), {}
        )
        names = {"name": "file", "digest": "digest", "distinct": "distinct requests",
                 "logged": "requests in it", "bad_lines": "lines that are no request"}  # fmt: skip
        pairs = tuple(
            (said, f"{v:,}" if isinstance(v := first[key], int) else line(str(v)))
            for key, said in names.items()
            if key in first
        )
        return Details("Requests", (Facts(pairs),), open=True)

    def _again(self) -> Details:
        judging = self.record.plan.get("judging") or {}
        command = shlex.join(["searchbench", *map(str, judging.get("command") or ["load"])])
        pairs = (
            ("searchbench", line(str(self.record.about.get("searchbench", "not known")))),
            ("seed", line(str(self.record.plan.get("seed", "not known")))),
        )
        blocks = (
            Code(fit(command)),
            Text("Before and after a change, as two records:"),
            Code("searchbench compare BEFORE AFTER"),
            Facts(pairs),
        )
        return Details("Run it again", blocks, open=True)


def _badge(judgement: Judgement) -> Badge:
    valid = [s for s in judgement.steps if s.status == "valid"]
    total = len(judgement.steps)
    if not valid:
        return Badge("No answer", "bad", "No load step can be used.")
    aside = f"{len(valid)} of {numbers.counted(total, 'load step')} can be believed."
    if judgement.capacity:
        found = judgement.capacity[0]
        if found.holds is None or found.fails is None:
            return Badge("Open", "unsure", aside)
        narrow = found.fails <= found.holds * _NARROW
        return Badge("Bracketed" if narrow else "Wide", "good" if narrow else "unsure", aside)
    tone: Literal["good", "unsure"] = "good" if len(valid) == total else "unsure"
    return Badge("Measured", tone, aside)


def _remedy(found: Sequence[Step]) -> str:
    said = dict.fromkeys(
        line(f.remedy) for s in found for f in s.findings if f.severity == "invalid" and f.remedy
    )
    return " ".join(list(said)[:2])


def _reading(judgement: Judgement) -> str:
    text = "Small print below numbers: 95 % intervals. Hover or touch for exact values."
    if max((s.block for s in judgement.steps), default=0) <= 1:
        text += " They are of each window alone; only repeated steps know what the machine adds."
    return text


def _rate(rate: float | None) -> str:
    return "not found" if rate is None else numbers.human(rate, "1/s")
