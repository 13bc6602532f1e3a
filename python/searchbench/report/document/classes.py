"""What each class of queries met, and which treatment is faster for which class."""

from __future__ import annotations

from functools import partial

from searchbench.analysis.judgement import Capacity
from searchbench.report.document.blocks import Block, Details, Section, Text
from searchbench.report.document.content import LONG, Content, figure
from searchbench.report.document.text import line
from searchbench.report.figures import classes as figures
from searchbench.report.figures.steps import BOTH_UP_TO
from searchbench.report.tables import classes as tables
from searchbench.report.tables.cells import known, named, number, table, text
from searchbench.report.tables.numbers import percent

_HOW = (
    "Queries and requests with classes: each figure is computed in the same way as for all "
    "requests, but from the requests of one class alone. What another class does to the server is "
    "in these times too: all were asked of it together."
)


def section(content: Content) -> Section | None:
    """Every figure by class; None where nothing that was asked has a class."""
    rows = _rows(content)
    if not rows:
        return None
    blocks: list[Block] = [Text(_HOW, "quiet"), *_figures(content)]
    what = ("Trial" if content.searched else "Step") if content.stepped else "Treatment"
    made = tables.seen(rows, what)
    blocks.append(made if len(rows) <= LONG else Details("Every class", (made,), open=False))
    blocks += [b for c in content.judgement.capacity if c.first for b in _first(c)]
    judged = content.judgement
    if own := judged.class_comparisons:
        wanted = [c for c in own if c.compared.metric in (judged.metric, "response_p99")]
        note = (
            "Verdicts on classes are corrected for the comparisons of the study and of all of its "
            "classes together."
        )
        blocks.append(Text(f"Who is faster for which class, by the metric that decides. {note}"))
        blocks.append(tables.compared(wanted or own, content.labels))
        if wanted and len(own) > len(wanted):
            every = tables.compared(own, content.labels)
            blocks.append(Details("By every metric", (every,)))
    agreed = [a for a in judged.agreement if a.by_class]
    if agreed:
        blocks.append(Text("On how many queries of each class both return the same."))
        blocks.append(tables.agreement(agreed))
    return Section("classes", "By class of queries", tuple(blocks), "Classes")


def _rows(content: Content) -> list[tables.Row]:
    if content.stepped:
        return [(s.label, seen) for s in content.steps for seen in s.classes]
    return [(t.label, seen) for t in content.judgement.treatments for seen in t.classes]


def _figures(content: Content) -> list[Block]:
    if content.stepped:
        steps = [s for s in content.steps if s.status == "valid"]
        lines = {(s.subject, seen.name) for s in steps for seen in s.classes}
        shown = "Dashed: p50; solid: p99" if len(lines) <= BOTH_UP_TO else "Lines: p99"
        return figure(
            "classes-response",
            "Response time by class, against the load",
            "From when a request was due to its last byte, of the requests of each class. "
            f"{shown}; bands: 95 % intervals.",
            partial(figures.against_load, steps, "response"),
        )
    kind = "service" if "closed" in content.loads else "response"
    blocks: list[Block] = []
    for quantile in ("p50", "p99"):
        blocks += figure(
            f"classes-{kind}-{quantile}",
            f"{kind.capitalize()} time by class, {quantile}",
            "A row a class; bars: 95 % intervals. The axis is logarithmic.",
            partial(
                figures.of_treatments, content.drawn, f"{kind}_{quantile}",
                f"{kind} {quantile} (logarithmic)",
            ),
        )  # fmt: skip
    return blocks


def _first(found: Capacity) -> list[Block]:
    """Which condition breaks first as the rate grows."""
    return [
        Text(f"{line(found.subject)}, {line(found.promise)}: what breaks first as the rate grows."),
        table(
            found.first,
            text("Condition", lambda f: named(f.condition or "the system keeps up"), 3),
            number("Chance to break first", lambda f: known(f.chance, percent)),
        ),
    ]
