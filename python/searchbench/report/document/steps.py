"""What a system sustains as its load grows: the sections of a sweep, and of a search for capacity.

A step of a sweep is one trial, and so is a rate that a search drove.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from searchbench.analysis.capacity.verdict import unsure
from searchbench.analysis.judgement import Capacity, Step
from searchbench.analysis.trial.replies import NO_ANSWERS
from searchbench.report.document import notices
from searchbench.report.document.blocks import Badge, Block, Details, Notice, Section, Text
from searchbench.report.document.content import LONG, Content, figure
from searchbench.report.document.text import line, short
from searchbench.report.figures import capacity as capacity_figures
from searchbench.report.figures import steps as figures
from searchbench.report.tables import numbers
from searchbench.report.tables import steps as tables
from searchbench.report.tables import study as shared

_NARROW = 1.1  # the most by which the upper end of a narrow interval exceeds the lower, as a ratio
_SHOWN = 2  # curves of trials that are shown open
_OF = {"closed": "clients", "open": "the offered rate", "replay": "the speed of the log"}


def answer(content: Content) -> Section:
    """What spoils the result before anything else; then every interval, and the sentences."""
    found = content.judgement.capacity
    if not content.searched:
        reading = "Small print below numbers: 95 % intervals. Hover or touch for exact values."
        blocks = [*_opening(content, _measured(content)), Text(reading, "quiet")]
    else:
        blocks = _opening(content, _found(content)) + (_intervals(found) if found else [])
    judged = content.judgement
    blocks += [*notices.in_full(judged.verdict, judged.void), *notices.analysis(judged)]
    return Section("answer", "The answer", tuple(blocks), "Answer")


def _opening(content: Content, badge: Badge) -> list[Block]:
    """How the answer begins: void steps, the badge, the answer in short, what speaks against it.

    A search that has an interval all the same begins with that.
    """
    judged = content.judgement
    blocks: list[Block] = [badge, *notices.in_short(judged.verdict)]
    if judged.void:
        why = judged.void.removeprefix("Void: ")
        invalid = [f for s in content.steps for f in s.findings if f.severity == "invalid"]
        remedies = list(dict.fromkeys(line(f.remedy) for f in invalid if f.remedy))
        why = why[:1].upper() + why[1:]
        void = Notice("invalid", "Void", "", "", why, " ".join(remedies[:2]))
        blocks.insert(0 if judged.void_first else len(blocks), void)
    found = [f for f in shared.findings_of(judged) if not f.trial and f.severity == "warning"]
    if found:
        blocks += notices.in_lines(found)
        blocks.append(Text("What each means, and what to do: see Findings.", "quiet"))
    return blocks


def _measured(content: Content) -> Badge:
    """Of a sweep: how many of its steps can be used."""
    valid, total = content.usable, len(content.steps)
    if not valid:
        return Badge("No answer", "bad", "No load step can be used.")
    text = f"{valid} of {numbers.counted(total, 'load step')} can be used."
    promised = {p.verdict for s in content.steps for p in s.promises}
    if "broken" in promised:
        return Badge("Promise broken", "bad", text)
    if promised:
        # One that was not driven to its end, or that is void, kept nothing.
        kept = promised == {"kept"} and all(s.promises for s in content.steps)
        return Badge(
            "Promise kept" if kept else "Cannot be told", "good" if kept else "unsure", text
        )
    return Badge("Measured", "good" if valid == total else "unsure", text)


def _found(content: Content) -> Badge:
    """Of a search: whether its intervals are closed and narrow."""
    found = content.judgement.capacity
    if all(c.holds is None and c.fails is None for c in found):
        return Badge("No answer", "bad", "No trial can be used.")
    aside = f"{content.usable} of {numbers.counted(len(content.steps), 'trial')} passed the audit."
    if not content.usable:
        return Badge("Doubtful", "bad", aside)
    ends = [(c.holds, c.fails) for c in found]
    closed = [(low, high) for low, high in ends if low is not None and high is not None]
    if opened := len(found) - len(closed):
        which = "The interval is"
        if len(found) > 1:
            which = f"{opened} of {len(found)} intervals {'is' if opened == 1 else 'are'}"
        text = "Partly open" if closed else "Open"
        return Badge(text, "unsure", f"{which} open on one side or both. {aside}")
    if any(map(unsure, found)):
        why = "It may be that no rate keeps the promise."
        return Badge("Cannot be told", "unsure", f"{why} {aside}")
    if any(c.effort < c.enough for c in found):
        return Badge("Rough", "unsure", f"Intervals from such short trials miss too often. {aside}")
    narrow = all(high <= low * _NARROW for low, high in closed)
    return Badge("Found" if narrow else "Wide", "good" if narrow else "unsure", aside)


def _intervals(found: Sequence[Capacity]) -> list[Block]:
    """Every interval in one table and one figure."""
    factor = capacity_figures.factor_of(found)
    reading = (
        "The greatest rate that keeps the promise is between the two numbers, with the odds below "
        "them. "
    )
    dashed = ""
    if any(c.holds is None or c.fails is None for c in found):
        reading += "≥ and <: the other end is not known, and the answer says why. "
        dashed = " Dashed with an arrow: that end is not known."
    return [
        tables.intervals(found),
        Text(reading + "Hover or touch for exact values.", "quiet"),
        *figure(
            "capacity",
            "The greatest rate that keeps each promise"
            + (f" against {short(factor, 60)}" if factor else ""),
            "Bars: from the rate at which the promise holds to the rate at which it fails."
            f"{' Thin lines join their middles.' if factor else ''}{dashed}",
            partial(capacity_figures.intervals, found),
        ),
    ]


def evidence(content: Content) -> Section | None:
    """The trials that each interval of a search rests on."""
    found = content.judgement.capacity
    blocks: list[Block] = []
    for i, each in enumerate(found):
        title = "How far each trial used up the promise"
        if 1 < len(found) <= _SHOWN:
            title = f"{short(each.subject, 60)}, {short(each.promise, 60)}: {title.lower()}"
        own: list[Block] = [
            *figure(
                f"capacity-{i}",
                title,
                "Requests that broke the promise, over those that may: below 1× it was kept. Bars: "
                "95 % intervals. Shaded: the interval of the capacity. All trials together decide "
                "where it begins and ends.",
                partial(capacity_figures.trials, each),
            ),
            tables.trials(each),
        ]
        if len(found) > _SHOWN:
            title = f"{short(each.subject, 80)}: {line(each.promise)}"
            note = f"{tables.between(each)}, {numbers.counted(len(each.trials), 'trial')}"
            own = [Details(title, tuple(own), note, each="intervals, with their trials")]
        blocks += own
    if not blocks:
        return None
    title = "The trials behind each interval" if len(found) > 1 else "The trials behind it"
    return Section("capacity", title, tuple(blocks), "Capacity")


def load(content: Content) -> Section | None:
    """Latency and throughput against the load, a line for each configuration."""
    points = figures.Loads.of(content.steps)
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
    both = len(points.found) <= figures.BOTH_UP_TO
    shown = "Dashed: p50; solid: p99" if both else "Lines: p99"
    for which, meaning in (
        ("response", "From when a request was due to its last byte: how long a user waits."),
        (
            "service",
            "From the first byte sent to the last byte received: how long the server takes.",
        ),
    ):
        blocks += figure(
            f"load-{which}",
            f"{which.capitalize()} time {against}",
            f"{meaning} {shown}; bands: 95 % intervals. {marks}",
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
    found, searched = content.steps, content.searched
    blocks: list[Block] = []
    if found:
        every = tables.steps(found)
        closed = searched and len(found) > LONG
        blocks.append(Details(f"All {len(found)} trials", (every,)) if closed else every)
    total = sum(s.requests for s in found)
    if any(kind != "ok" for s in found for kind in s.outcomes):
        ended = tables.outcomes(found)
        blocks.append(Details("How requests ended", (ended,), open=len(ended.rows) <= LONG))
    elif total:
        blocks.append(Text(_all_answered(found, total), "quiet"))
    cached = tables.cache(content.record.trials)
    if cached is not None:
        note = "by the server's own count, over the measured window"
        blocks.append(Details("Cache hits", (cached,), note, open=len(cached.rows) <= LONG))
    if content.judgement.comparisons:
        blocks.append(notices.compared(content, open_to=0))
    if not blocks:
        blocks.append(Text(f"No {'trial' if searched else 'load step'} is on record."))
    title = "Trials of the search" if searched else "Load steps"
    return Section("steps", title, tuple(blocks), "Trials" if searched else "Steps")


def _all_answered(found: Sequence[Step], total: int) -> str:
    """That no request failed; not that all succeeded, where a reply may be no answer."""
    kinds = dict.fromkeys(f.kind for s in found for f in s.findings if f.kind in NO_ANSWERS)
    if not kinds:
        return f"All {numbers.count(total)} measured requests succeeded."
    return (
        f"All {numbers.count(total)} measured requests got a reply, but not every reply is known "
        f"to be an answer ({', '.join(kinds)}): see Findings."
    )


def client(content: Content) -> Section:
    """Whether the client can be believed: counted clients, lateness, its own CPU."""
    text = Text(
        "Clients are counted in the trace, and again by Little's law: the times of all requests "
        "must add up to the clients that ran. In a closed loop this shows samples that were lost "
        "and clients that ended early. It does not show time that the load generator lost; that is "
        "its lateness. A request is late by the time from when it could have been sent until it "
        "was sent: the load generator's fault, not the server's.",
        "quiet",
    )
    table = tables.client(content.steps)
    details = Details(f"Every {content.step}", (table,), open=len(table.rows) <= LONG)
    return Section("client", "The load generator", (text, details), "Load generator")
