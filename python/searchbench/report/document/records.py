"""The page of two records: did the change make it faster, slower, or answer otherwise?"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from searchbench.analysis.compare import answered, decision, standing, sweeps, unread
from searchbench.analysis.compare.classes import metric_of
from searchbench.analysis.judgement import (
    Agreement,
    ClassLine,
    Comparison,
    RecordComparison,
    RecordLine,
)
from searchbench.analysis.words import listed
from searchbench.record import Record
from searchbench.report.document import measured, notices
from searchbench.report.document.blocks import (
    Badge,
    Block,
    Code,
    Details,
    Document,
    Facts,
    Section,
    Text,
)
from searchbench.report.document.content import LONG, figure
from searchbench.report.document.text import fit, line, short
from searchbench.report.figures import study as figures
from searchbench.report.tables import agreement as agreement_tables
from searchbench.report.tables import records as tables
from searchbench.report.tables.cells import title_of

_NAME = 60


def of_two_records(found: RecordComparison, a: Record, b: Record) -> Document:
    """What the page says: the decision, its evidence, the answers, what else differs."""
    names = [short(name, _NAME) for name in _names(a.path, b.path)]
    questions = dict.fromkeys(line(r.plan.question) for r in (a, b) if line(r.plan.question))
    made = [line(str(r.about.get("created", "at an unknown time")))[:10] for r in (a, b)]
    return Document(
        title=f"What changed from {names[0]} to {names[1]}?",
        about=f"first: {names[0]}, measured {made[0]} · second: {names[1]}, measured {made[1]}",
        method=f"They ask: {' / '.join(questions)}" if questions else "",
        sections=tuple(
            section
            for part in (_answer, _classes, _would_change, _others, _answers, _setup, _runs)
            if (section := part(found)) is not None
        ),
        whole="All of it is on the page on a screen, and in the output of searchbench compare "
        "--json.",
        footer="Made by searchbench from two records on disk; the same numbers are in searchbench "
        "compare --json.",
    )


def _names(a: Path, b: Path) -> tuple[str, str]:
    """What the records are called: the last part of their paths, or all where that is the same."""
    return (a.name, b.name) if a.name != b.name else (str(a), str(b))


def _answer(found: RecordComparison) -> Section:
    own = [of for of in found.comparisons if of.metric == found.metric]
    blocks: list[Block] = [
        _badge(found),
        *notices.in_short(found),
    ]
    if own:
        blocks.append(tables.lines(own))
        text = (
            f"By {title_of(found.metric).lower()}. Ratios are above 1× where the second is better, "
            "so those of times are of speeds: half the time is 2×; 95 % intervals."
        )
        if any(decision.is_rough(e) for of in own for e in (of.value_a, of.value_b)):
            text += f" Rough: {sweeps.OF_LITTLE_EFFORT}."
        if any(of.queries_measured is not None for of in own):
            text += " First and Second are over all requests, ratios over one mix of the queries "
            text += "that both answer the same and both measured."
        blocks.append(Text(text, "quiet"))
    blocks += notices.notices([f for f in found.findings if f.severity != "note"])
    shaded = any(of.floor > 1 and of.run_sd is None for of in own)
    blocks += figure(
        "ratios",
        "The second against the first",
        f"Ratios by {title_of(found.metric).lower()} with their intervals; right of 1× the second "
        "is better. Grey: not resolved, or a difference of which it is not known whether it is one "
        "of the runs." + (" Shaded: the noise floor within the runs." if shaded else ""),
        partial(figures.differences, *_drawn(own)),
    )
    blocks += notices.in_full(found)
    return Section("answer", "The answer", tuple(blocks), "Answer")


def _drawn(own: Sequence[RecordLine]) -> tuple[list[Comparison], dict[str, str]]:
    """The lines as comparisons of the first (all one) with the second, which has their names."""
    drawn = [
        Comparison(
            str(i), "", of.metric, "not resolved" if of.verdict == "differs" else of.verdict,
            of.ratio, of.p_value, 1.0 if of.run_sd is not None else of.floor, 0, 0,
        )
        for i, of in enumerate(own)
        if of.ratio is not None
    ]  # fmt: skip
    return drawn, {str(i): of.label for i, of in enumerate(own)}


def _badge(found: RecordComparison) -> Badge:
    """Whether a loss is resolved, and over what."""
    beyond = f"{100 * found.threshold:g} %"
    few = any(standing.few([of]) for of in found.comparisons)
    if found.lost:
        why = "Something that worked in the first did not work in the second."
        return Badge("Regression", "bad", why)
    if not any(of.ratio for of in found.comparisons) and not found.normal_later:
        return Badge(
            "Not comparable", "unsure", "No speed of one can be compared with the other's."
        )
    if found.regressed:
        why = f"A loss of more than {beyond} is larger than what runs of the same thing differ by"
        over = ", over the queries that were measured on both sides" if few else ""
        return Badge("Regression", "bad", f"{why}{over}.")
    if found.beyond_threshold:
        if any(decision.OTHER_MACHINE in of.reason for of in found.comparisons):
            why = f"A loss of more than {beyond} is larger than the noise, but the machine may be "
            return Badge("Two machines", "unsure", f"{why}the reason.")
        if any(decision.OTHER_CLOCK in of.reason for of in found.comparisons):
            why = f"A loss of more than {beyond} is larger than the noise, but the CPU frequency "
            return Badge("Two CPU frequencies", "unsure", f"{why}may be the reason.")
        one = next((of.single for of in found.comparisons if of.single), "")
        noise = "what runs of one side differ by" if one else "the noise within the two runs"
        why = f"A loss of more than {beyond} is larger than {noise}; whether "
        said = f"The {one} differs" if one else "These two runs differ"
        return Badge(said, "unsure", why + "it is the change is not known.")
    if found.not_known:
        why = f"Nothing can be told of {listed([*found.not_known][:3])}."
        return Badge("Cannot tell", "unsure", why)
    if lost := decision.classes_lost(found.by_class, found.threshold):
        why = f"Over all queries no loss of more than {beyond} is resolved, but one is for "
        return Badge("A class lost", "unsure", f"{why}{listed(lost[:3])}.")
    if found.regressed is None:
        why = f"No loss of more than {beyond} is resolved; how much runs differ is not known."
        return Badge("Not resolved", "unsure", why)
    most, by_failed = decision.hidden_loss(found.comparisons)
    if few or by_failed or most > found.threshold:
        why = f"No loss of more than {beyond} is resolved, but one is not excluded."
        return Badge("Not resolved", "unsure", why)
    why = f"A loss of more than {beyond} is excluded"
    if any(f.kind in answered.KINDS for f in found.findings):
        return Badge("No slower", "unsure", f"{why}, but answers changed.")
    if any(f.kind == unread.KIND for f in found.findings):
        return Badge("No slower", "unsure", f"{why}, but the answers were not read.")
    return Badge("No regression", "good", f"{why}.")


def _classes(found: RecordComparison) -> Section | None:
    """Each class by itself; the metric that decides is open."""
    if not found.by_class:
        return None
    metric = metric_of(found.by_class, found.metric)
    by_metric: dict[str, list[ClassLine]] = {metric: []}
    for one in found.by_class:
        by_metric.setdefault(one.line.metric, []).append(one)
    blocks: list[Block] = [
        Text(
            "Each class of queries by itself, as the whole is compared. Verdicts are corrected for "
            "the lines of the whole and of all classes together; those of the whole for each other "
            "alone."
        )
    ]
    blocks += [
        Details(title_of(name), (tables.by_class(own),), open=name == metric)
        for name, own in by_metric.items()
        if own
    ]
    return Section("classes", "By class of queries", tuple(blocks), "Classes")


def _would_change(found: RecordComparison) -> Section:
    said = [Text(f"{i}. {line(text)}") for i, text in enumerate(found.would_change, start=1)]
    heading = Text("The most effective first.", "quiet")
    blocks = (heading, *said) if said else (Text("Nothing that these records show."),)
    return Section("change", "What would change this answer", blocks, "What would change it")


def _others(found: RecordComparison) -> Section | None:
    """The metrics that do not decide, and what one record alone has."""
    by_metric: dict[str, list[RecordLine]] = {}
    for of in found.comparisons:
        if of.metric != found.metric:
            by_metric.setdefault(of.metric, []).append(of)
    few = len(found.comparisons) <= LONG
    blocks: list[Block] = [
        Details(title_of(metric), (tables.lines(own),), open=few)
        for metric, own in by_metric.items()
    ]
    for which, labels in (("first", found.only_in_a), ("second", found.only_in_b)):
        if labels:
            blocks.append(Text(f"Only in the {which}: {', '.join(map(line, labels))}."))
    return Section("metrics", "Other metrics", tuple(blocks), "Metrics") if blocks else None


def _answers(found: RecordComparison) -> Section:
    agreed = found.agreement or {}
    pairs = _pairs(agreed)
    not_read = [f for f in found.findings if f.kind == unread.KIND]
    if not_read:
        text = "The replies were not read, so whether both answer the same is not known."
        blocks = (Text(text), *notices.notices([f for f in not_read if f.severity == "note"]))
        return Section("answers", "Answers", blocks)
    if not pairs:
        text = "The two were not asked the same queries over the same documents, or what they "
        text += "answered is not on record."
        return Section("answers", "Answers", (Text(text),))
    when = "Outside the timed part of each run"
    text = (
        f"{measured.asked_alone(agreed.values(), when, stepped=True)} "
        f"{answered.sentence(agreed)} The study requires "
        f"{answered.REQUIRED[found.answers_level]}. Of the queries that differ, the least "
        "alike come first."
    )
    table = agreement_tables.agreement(pairs, {})
    return Section(
        "answers", "Answers", (Text(text), table, *measured.each_pair(pairs, {}, shown=True))
    )


def _pairs(agreed: Mapping[str, Agreement]) -> list[Agreement]:
    """A pair for each treatment; those whose answers changed alike (with another load) are one."""
    alike: list[tuple[Agreement, list[str]]] = []
    for label, one in agreed.items():
        plain = replace(one, a="", b="", label_a="", label_b="")
        members = next((names for other, names in alike if other == plain), None)
        if members is None:
            alike.append((plain, [label]))
        else:
            members.append(label)
    pairs = []
    for plain, names in alike:
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        name = " / ".join(short(name, _NAME) for name in names[:2]) + more
        of = f"{name}: " if len(alike) > 1 else ""
        pairs.append(replace(plain, label_a=f"{of}the first", label_b="the second"))
    return pairs


def _setup(found: RecordComparison) -> Section:
    blocks: list[Block] = [Text("What both records have is left out.", "quiet")]
    if found.differences:
        blocks.append(tables.setup(found.differences))
    else:
        blocks = [Text("Versions, settings, documents, queries and machine are the same.")]
    notes = notices.notices(
        [f for f in found.findings if f.severity == "note" and f.kind != unread.KIND]
    )
    return Section("setup", "What else differs", (*blocks, *notes), "Setup")


def _runs(found: RecordComparison) -> Section:
    sides = (("First", (found.a,)), ("Second", (found.b,)))
    further = (("More of the first", found.same), ("More of the second", found.same_b))
    pairs = [(name, ", ".join(map(line, paths))) for name, paths in (*sides, *further) if paths]
    command = ["searchbench", "compare", found.a, found.b]
    command += ["--threshold", f"{100 * found.threshold:g}%"]
    for flag, paths in (("--same", found.same), ("--same-b", found.same_b)):
        command += [flag, *paths] if paths else []
    text = "Each record has a report of its own, with every trial and every finding."
    blocks = (Facts(tuple(pairs)), Text(text), Code(fit(shlex.join(command))))
    return Section("records", "The records", blocks, "Records")
