"""What a sweep and a search for capacity share: the load against the answers, step by step.

A step of a sweep is one trial, and so is a rate that a search drove.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from searchbench.report.document import notices
from searchbench.report.document.blocks import Badge, Block, Details, Notice, Section, Text
from searchbench.report.document.content import Content, figure
from searchbench.report.document.text import fit, line
from searchbench.report.figures import steps as figures
from searchbench.report.figures.steps import Loads
from searchbench.report.tables import numbers
from searchbench.report.tables import steps as tables
from searchbench.report.tables import study as shared

LONG = 12  # rows of a table that is shown closed
_LEADS = 3  # paragraphs of the answer in large type
_OF = {"closed": "clients", "open": "the offered rate", "replay": "the speed of the log"}


def opening(content: Content, badge: Badge, first: Sequence[Block] = ()) -> list[Block]:
    """How the answer begins: void steps, the badge, the sentences, and what speaks against them.

    ``first``: intervals that come before the sentences. Those that only say an interval again come
    last then.
    """
    judged = content.judgement
    blocks: list[Block] = []
    if judged.void:
        why = judged.void.removeprefix("Void: ")
        why = why[:1].upper() + why[1:]
        blocks.append(Notice("invalid", "Void", "", "", why, _remedy(content)))
    blocks += [badge, *first]
    rest = judged.verdict.decision.removeprefix(judged.void).strip()
    sentences = [part for part in rest.split("\n") if part]
    if first:
        again = [c.sentence for c in judged.capacity]
        sentences.sort(key=lambda part: any(sentence in part for sentence in again))
    blocks += [
        Text(fit(part), "lead" if i < _LEADS and not first else "plain")
        for i, part in enumerate(sentences)
    ]
    blocks += notices.notices(
        [f for f in shared.findings_of(judged) if not f.trial and f.severity == "warning"]
    )
    return blocks + notices.analysis(judged)


def usable(content: Content) -> int:
    """How many of the steps can be used."""
    return sum(s.status == "valid" for s in content.steps)


def load(content: Content) -> Section | None:
    """Latency and throughput against the load, a line for each configuration."""
    points = Loads.of(content.steps)
    against = f"against {_OF[points.kind]}"
    marks = "Triangles: rates that were not kept up. " if points.kind != "closed" else ""
    marks += "Crosses: void. " if points.void else ""
    blocks = figure(
        "load-throughput",
        f"Throughput {against}",
        "Points: successful answers per second; bands: 95 % intervals. "
        + marks
        + ("Dotted: everything offered is answered." if points.kind == "open" else ""),
        partial(figures.throughput, points),
    )
    meaning = {
        "response": "From when a request was due to its last byte: how long a user waits.",
        "service": "From the first byte sent to the last byte received: how long the server takes.",
    }
    both = len(points.found) <= figures.BOTH_UP_TO
    shown = "Dashed: p50; solid: p99" if both else "Lines: p99"
    for which in ("response", "service"):
        blocks += figure(
            f"load-{which}",
            f"{which.capitalize()} time {against}",
            f"{meaning[which]} {shown}; bands: 95 % intervals. {marks}",
            partial(figures.against_load, points, which),
        )
    if not blocks:
        return None
    if "closed" in content.loads:
        blocks.append(Text(notices.CLOSED_LOOP))
    title = f"The load it sustains, by {_OF[points.kind].removeprefix('the ')}"
    return Section("load", title, tuple(blocks), "Load")


def table(content: Content) -> Section:
    """The table of steps, how their requests ended, and how their systems compare."""
    found = content.steps
    name = "trial" if content.searched else "load step"
    blocks: list[Block] = []
    if found and content.searched and len(found) > LONG:
        blocks.append(Details(f"All {len(found)} trials", (tables.steps(found),)))
    elif found:
        blocks.append(tables.steps(found))
    total = sum(s.requests for s in found)
    if any(kind != "ok" for s in found for kind in s.outcomes):
        ended = tables.outcomes(found)
        blocks.append(Details("How requests ended", (ended,), open=len(ended.rows) <= LONG))
    elif total:
        blocks.append(Text(f"All {numbers.count(total)} measured requests succeeded.", "quiet"))
    cached = tables.cache(content.record.trials)
    if cached is not None:
        note = "by the server's own count"
        blocks.append(Details("Cache hits", (cached,), note, open=len(cached.rows) <= LONG))
    if content.judgement.comparisons:
        compared = shared.comparisons(content.judgement.comparisons, content.labels)
        title = f"All {numbers.counted(len(compared.rows), 'comparison')}"
        blocks.append(Details(title, (compared,), "Ratios above 1: the first is better"))
    if not blocks:
        blocks.append(Text(f"No {name} is on record."))
    title = "Trials of the search" if content.searched else "Load steps"
    return Section("steps", title, tuple(blocks), "Trials" if content.searched else "Steps")


def client(content: Content) -> Section:
    """Whether the client can be believed: counted clients, lateness, its own CPU."""
    text = Text(
        "Clients are counted in the trace, and again by Little's law: the times of all requests "
        "must add up to the clients that ran. A request is late by the time between when the "
        "client could have sent it and when it did; that delay is the client's fault, not the "
        "server's.",
        "quiet",
    )
    table = tables.client(content.steps)
    title = "Every trial" if content.searched else "Every step"
    details = Details(title, (table,), open=len(table.rows) <= LONG)
    return Section("client", "The client", (text, details), "Client")


def _remedy(content: Content) -> str:
    remedies = dict.fromkeys(
        line(f.remedy)
        for s in content.steps
        for f in s.findings
        if f.severity == "invalid" and f.remedy
    )
    return " ".join(list(remedies)[:2])
