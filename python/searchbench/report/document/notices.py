"""What stands beside the verdict: the badge, and whatever must be known before it is believed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from searchbench.analysis.judgement import Finding, Judgement
from searchbench.report.document.blocks import Badge, Block, Notice, Section, Text
from searchbench.report.document.content import Content
from searchbench.report.document.text import line
from searchbench.report.tables import numbers
from searchbench.report.tables import study as tables

CLOSED_LOOP = (
    "A closed loop cannot know how long a user would have waited: while a server "
    "stalls, its clients send nothing, so the requests that would have met the "
    "stall are missing from the count (coordinated omission). Its response times "
    "are those of a fixed number of patient clients; for what users see at a given "
    "rate, measure with an open loop."
)

_NUMBER = re.compile(r"\d[\d.,]*")


def resolved_badge(judgement: Judgement) -> Badge:
    """Resolved or not, and how many trials could not be used."""
    unusable = [t for r in judgement.treatments for t in r.trials if t.status != "valid"]
    aside = f" {numbers.counted(len(unusable), 'trial')} could not be used." if unusable else ""
    if judgement.verdict.resolved:
        text = "At least one difference is larger than the noise of this machine." + aside
        return Badge("Resolved", "good", text)
    if not judgement.comparisons:
        return Badge("Not resolved", "unsure", "There is nothing to compare it with." + aside)
    text = "No difference is larger than that between two runs of the same system." + aside
    return Badge("Not resolved", "unsure", text)


def notices(found: Sequence[Finding]) -> list[Block]:
    """Findings that say the same of several trials are shown once."""
    groups: dict[tuple[str, str, str, str], list[Finding]] = {}
    for f in found:
        # Two sentences that differ in their numbers alone are one thing to know.
        alike = _NUMBER.sub("#", f.meaning)
        groups.setdefault((f.severity, f.kind, alike, f.remedy), []).append(f)
    blocks: list[Block] = []
    for (_, kind, _, remedy), same in groups.items():
        meaning = same[0].meaning
        if any(f.meaning != meaning for f in same):
            meaning += f" (In {same[0].trial}; the others are alike.)"
        where = ", ".join(dict.fromkeys(line(f.trial) for f in same if f.trial))
        each = list(dict.fromkeys(line(f.number) for f in same))
        number = "; ".join(each[:4]) + (f"; and {len(each) - 4} more" if each[4:] else "")
        blocks.append(
            Notice(
                same[0].severity,
                line(kind).replace("_", " "),
                where,
                number,
                line(meaning),
                line(remedy),
            )
        )
    return blocks


def warnings(judgement: Judgement) -> list[Block]:
    """What must be known before the verdict is believed."""
    blocks: list[Block] = []
    bad = [t for treatment in judgement.treatments for t in treatment.trials]
    total = len(bad)
    for status, meaning in (("invalid", "did not pass the audit"), ("failed", "failed")):
        named = [t for t in bad if t.status == status]
        if named:
            which = [line(t.trial) for t in named[:6]] + ["…"] * (len(named) > 6)
            grave = [f.kind for t in named for f in t.findings if f.severity == "invalid"]
            if status == "failed" or not grave:
                grave = [t.reason for t in named if t.reason]
            reasons = list(dict.fromkeys(line(kind).replace("_", " ") for kind in grave))
            blocks.append(
                Notice(
                    "invalid",
                    f"{numbers.counted(len(named), 'trial')} of {total} {meaning}",
                    "",
                    "; ".join(reasons[:3]) + (" …" if reasons[3:] else ""),
                    "Shown below and used in no estimate: " + ", ".join(which) + ".",
                    "",
                )
            )
    found = tables.findings_of(judgement)
    blocks += notices([f for f in found if not f.trial and f.severity != "note"])
    rest = [f for f in found if f.trial and f.severity == "warning"]
    if rest:
        kinds = ", ".join(dict.fromkeys(line(f.kind).replace("_", " ") for f in rest))
        text = f"{numbers.counted(len(rest), 'warning')} on single trials ({kinds}): see Findings."
        blocks.append(Text(text, "quiet"))
    return blocks


def findings(content: Content) -> Section:
    """All findings: the number, what it means, what to do."""
    found = tables.findings_of(content.judgement)
    if not found:
        return Section("findings", "Findings", (Text("The audit found nothing to report."),))
    return Section("findings", "Findings", tuple(notices(found)))


def analysis(judgement: Judgement) -> list[Block]:
    """What the author of the study wrote about it."""
    written = judgement.analysis.strip()
    if not written:
        return []
    text = "The author of the study writes: " + written
    return [Text(line(part)) for part in re.split(r"\n\s*\n", text)]


def reading(judgement: Judgement) -> str:
    """How to read the table of treatments."""
    text = "Small print: 95 % intervals over the valid trials. Hover or touch for exact values."
    if judgement.noise_floor:
        share = judgement.noise_floor.value
        change = share - 1 if share >= 1 else share
        text += (
            f" Noise floor from the A/A control: ±{numbers.digits(100 * change, 2)} %; "
            "smaller differences are never called a win."
        )
    return text
