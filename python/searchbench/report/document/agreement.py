"""Whether the systems return the same, and where they do not, why."""

from __future__ import annotations

from searchbench.analysis.judgement import Agreement
from searchbench.report.document.blocks import Block, Details, Facts, Section, Text
from searchbench.report.document.content import Content
from searchbench.report.document.text import line, short
from searchbench.report.tables import numbers
from searchbench.report.tables import study as tables

_EXAMPLES = 300  # queries shown side by side, over all pairs
_FEWEST_EXAMPLES = 3  # of each pair


def section(content: Content) -> Section | None:
    """A table of all pairs, then for each its measures and the queries that differ."""
    found = content.judgement.agreement
    if not found:
        if content.stepped and len({t.system for t in content.judgement.treatments}) <= 1:
            return None
        text = "There is nothing to compare: at most one system's answers are on record."
        return Section("agreement", "Agreement", (Text(text),))
    blocks: list[Block] = [
        Text(
            "Speed is worth comparing only between systems that answer the same. Before the "
            "timing, every distinct query was asked once and its reply kept."
        ),
        tables.agreement(found, content.labels),
    ]
    # Ten systems are 45 pairs: fewer examples of each are shown, so that the page stays a page.
    examples = max(_FEWEST_EXAMPLES, _EXAMPLES // len(found))
    for pair in found:
        names = _names(pair, content)
        blocks += _measured(pair, *names)
        blocks += _differing(pair, *names, examples)
    return Section("agreement", "Agreement", tuple(blocks))


def _names(pair: Agreement, content: Content) -> tuple[str, str]:
    a = pair.label_a or content.labels.get(pair.a, pair.a)
    return a, pair.label_b or content.labels.get(pair.b, pair.b)


def _measured(pair: Agreement, a: str, b: str) -> list[Block]:
    if pair.groups is None:
        return []
    title = f"{short(a, 60)} and {short(b, 60)}, by document sets and groups"
    text = (
        "The measures of the Sphinx comparison study (2011), over all hits on record; the "
        "first is the reference. Ties are excused in the document groups only: documents of "
        "equal weight are a group, and the lowest group, which the end of the list may have "
        "cut, is left out. Queries with one group only are not counted there."
    )
    return [Details(title, (Text(text, "quiet"), tables.measures(pair.groups)))]


def _differing(pair: Agreement, a: str, b: str, most: int) -> list[Block]:
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
