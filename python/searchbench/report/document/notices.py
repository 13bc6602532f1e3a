"""What stands beside the verdict: whatever must be known before it is believed."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace

from searchbench.analysis.judgement import Comparison, Finding, Judgement, RecordComparison, Verdict
from searchbench.analysis.words import sentence
from searchbench.report.document.blocks import (
    Block,
    Code,
    Details,
    Facts,
    Notice,
    Points,
    Section,
    Severity,
    Text,
)
from searchbench.report.document.content import Content
from searchbench.report.document.text import fit, line, short
from searchbench.report.tables import numbers
from searchbench.report.tables import study as tables

CLOSED_LOOP = (
    "A closed loop cannot know how long a user would have waited: while a server "
    "stalls, its clients send nothing, so the requests that would have met the "
    "stall are missing from the count (coordinated omission). Its response times "
    "are those of a fixed number of patient clients; for what users see at a given "
    "rate, measure with an open loop. The order of systems may differ there too: the "
    "system that answers most at full load is not always the one that answers soonest "
    "at a given rate."
)

_LINE = 80  # letters of the number of a finding that is one line
_ASIDE = re.compile(r" \([^()]{24,}\)")
_NUMBER = re.compile(r"\d[\d.,]*")


def notices(found: Sequence[Finding]) -> list[Block]:
    """Findings that say the same of several trials are shown once."""
    groups: dict[tuple[str, str, str, str], list[Finding]] = {}
    for f in found:
        # Two sentences that differ in their numbers alone are one thing to know, or to do.
        alike = _NUMBER.sub("#", f.meaning), _NUMBER.sub("#", f.remedy)
        groups.setdefault((f.severity, f.kind, *alike), []).append(f)
    blocks: list[Block] = []
    for (_, kind, _, _), same in groups.items():
        meaning, remedy = sentence(same[0].meaning), sentence(same[0].remedy)
        if any(f.meaning != same[0].meaning for f in same):
            meaning += f" (In {same[0].trial}; the others are alike.)"
        if any(f.remedy != same[0].remedy for f in same):
            remedy += f" (For {same[0].trial}; the others need the same, with other figures.)"
        where = ", ".join(dict.fromkeys(line(f.trial) for f in same if f.trial))
        each = list(dict.fromkeys(line(f.number) for f in same))
        number = "; ".join(each[:4]) + (f"; and {len(each) - 4} more" if each[4:] else "")
        title = line(kind).replace("_", " ")
        severity = same[0].severity
        blocks.append(Notice(severity, title, where, number, line(meaning), line(remedy)))
    return blocks


def warnings(judgement: Judgement) -> list[Block]:
    """What must be known before the verdict is believed: a line each; Findings has it in full."""
    found = tables.findings_of(judgement)
    blocks = brief((n.severity, n.title, n.number) for n in unusable(judgement))
    blocks += in_lines([f for f in found if not f.trial and f.severity != "note"])
    rest = [f for f in found if f.trial and f.severity == "warning"]
    if rest:
        kinds = ", ".join(dict.fromkeys(line(f.kind).replace("_", " ") for f in rest))
        text = f"{numbers.counted(len(rest), 'warning')} on single trials ({kinds})"
        blocks.append(Text(f"{text}: see Findings.", "quiet"))
    elif blocks:
        blocks.append(Text("What each means, and what to do: see Findings.", "quiet"))
    return blocks


def in_lines(found: Sequence[Finding]) -> list[Block]:
    """A line for each kind of finding; ``findings`` has what they mean."""
    return brief((f.severity, line(f.kind).replace("_", " "), line(f.number)) for f in found)


def brief(found: Iterable[tuple[Severity, str, str]]) -> list[Block]:
    """Severities, titles and numbers as a line for each title."""
    by_title: dict[tuple[Severity, str], list[str]] = {}
    for severity, title, number in found:
        by_title.setdefault((severity, title), []).append(number)
    return [Notice(*which, "", _first_of(each), "", "") for which, each in by_title.items()]


def _first_of(each: Sequence[str]) -> str:
    """The first number without what long brackets say, and how many more there are."""
    first = short(_ASIDE.sub("", each[0]), _LINE)
    return f"{first}; and {len(each) - 1} more" if each[1:] else first


def unusable(judgement: Judgement) -> list[Notice]:
    """How many trials are not valid, why, and which."""
    blocks: list[Notice] = []
    trials = [t for treatment in judgement.treatments for t in treatment.trials]
    for status, meaning in (("invalid", "did not pass the audit"), ("failed", "failed")):
        named = [t for t in trials if t.status == status]
        if named:
            which = [line(t.trial) for t in named[:6]] + ["…"] * (len(named) > 6)
            grave = [f.kind for t in named for f in t.findings if f.severity == "invalid"]
            if status == "failed" or not grave:
                grave = [t.reason for t in named if t.reason]
            reasons = list(dict.fromkeys(line(kind).replace("_", " ") for kind in grave))
            title = f"{numbers.counted(len(named), 'trial')} of {len(trials)} {meaning}"
            number = "; ".join(reasons[:3]) + (" …" if reasons[3:] else "")
            shown = f"Used in no estimate: {', '.join(which)}."
            blocks.append(Notice("invalid", title, "", number, shown, ""))
    return blocks


def findings(content: Content) -> Section:
    """All findings: the number, what it means, what to do."""
    judged = content.judgement
    trials = unusable(judged) if judged.measure == "trials" else []
    blocks: list[Block] = [*trials, *notices(tables.findings_of(judged))] or [
        Text("The audit found nothing to report.")
    ]
    return Section("findings", "Findings", tuple(blocks))


def in_short(verdict: Verdict | RecordComparison) -> list[Block]:
    """The headline, and its points."""
    blocks: list[Block] = [Text(fit(verdict.headline), "lead")] if verdict.headline else []
    points = tuple(fit(text) for text in verdict.points)
    return [*blocks, Points(points)] if points else blocks


def in_full(verdict: Verdict | RecordComparison, void: str = "") -> list[Block]:
    """All that is said but what is ``void``; nothing where the short form says all of it."""
    parts = [part for part in verdict.decision.split("\n") if part and part != void]
    if len(" ".join(parts)) <= len(" ".join((verdict.headline, *verdict.points))):
        return []
    return [Details("The answer in full", tuple(Text(fit(part)) for part in parts))]


def analysis(judgement: Judgement) -> list[Block]:
    """What the author of the study wrote about it."""
    written = judgement.analysis.strip()
    if not written:
        return []
    text = "The author of the study writes: " + written
    return [_paragraph(part) for part in re.split(r"\n[^\S\n]*\n", text)]


def _paragraph(part: str) -> Block:
    """Lines that are all indented are a table of the author's, and stay as they are."""
    lines = [each for each in part.split("\n") if each.strip()]
    if lines and all(each[0].isspace() for each in lines):
        return Code(fit(textwrap.dedent("\n".join(lines))))
    return Text(line(part))


def compared(content: Content, open_to: int) -> Details:
    """The table of comparisons, open if it has no more than ``open_to`` rows, and what would
    change those by the metric that decides.
    """
    judged = content.judgement
    table = replace(
        tables.comparisons(judged.comparisons, content.labels),
        telling=_telling(judged),
        printed_first="those that the verdict rests on, then the largest differences",
    )
    title = f"All {numbers.counted(len(table.rows), 'comparison')}"
    note = "Ratios above 1: the first is better"
    blocks: list[Block] = [table]
    label = content.labels
    pairs = tuple(
        (
            f"{line(label.get(c.b, c.b))} against {line(label.get(c.a, c.a))}: {c.verdict}",
            line(" ".join(f"{i}. {said}" for i, said in enumerate(c.would_change, start=1))),
        )
        for c in map(tables.upright, judged.comparisons)
        if c.metric == judged.metric and c.would_change
    )
    if pairs:
        why = "Why? What would change each verdict"
        blocks.append(Details(why, (Facts(pairs),), source="comparisons.csv"))
    return Details(title, tuple(blocks), note, open=len(table.rows) <= open_to)


def _telling(judgement: Judgement) -> tuple[int, ...]:
    """The comparisons by their numbers, the most telling first.

    The verdict rests on those, by the metric that decides, of what loses to nobody.
    """
    found = judgement.comparisons
    own = [c for c in found if c.metric == judgement.metric]
    beaten = {c.b for c in own if c.verdict == "slower"}
    beaten |= {c.a for c in own if c.verdict == "faster"}

    def key(i: int) -> tuple[bool, bool, float]:
        c: Comparison = found[i]
        size = abs(math.log(c.ratio.value)) if c.ratio and c.ratio.value > 0 else 0.0
        return c.metric != judgement.metric, {c.a, c.b} <= beaten, -size

    return tuple(sorted(range(len(found)), key=key))
