"""What went on beside the readers: what it took from them, what it got done, when it was seen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from searchbench.analysis.roles.faults import sentences
from searchbench.analysis.roles.model import AnswersHeld, RoleResult, RolesJudged
from searchbench.analysis.roles.truth import said_of
from searchbench.analysis.trial.throughput import KEEPS_UP
from searchbench.report.document.blocks import Block, Details, Points, Section, Text
from searchbench.report.document.content import LONG, Content, figure
from searchbench.report.document.text import line
from searchbench.report.figures import roles as figures
from searchbench.report.tables import numbers
from searchbench.report.tables import roles as tables
from searchbench.workload.roles import NOTHING

_HOW = (
    "The readers and every other role each had their own measuring loop, thread and connections. "
    "All went by one clock. Each trial had its own copy of the same index, even where the roles "
    "were idle."
)
_HOW_READ = (
    "The readers and every other role each had their own measuring loop, thread and connections. "
    "All went by one clock. Nothing was written, so trials shared an index."
)
_READERS = (
    "Each has the figures of all its requests that were due in the windows of the valid trials, "
    "warm-up left out. A request that failed counts as taking forever, so a quantile can be "
    "forever. Each loop's lateness was audited as the readers' is: the figures of a trial in which "
    "a loop was too late are left out."
)
_VISIBLE = (
    "Commit to visible is the time from the answer to a write until a question finds its document. "
    "Markers show it: written documents with one extra word, by which they were asked for again "
    "and again over a separate connection. The interval covers both how few markers there were, "
    "and the time between two questions."
)

_MEANWHILE = (
    "A sample of the answers was compared with the answers before and after the drive, by numbers "
    "that inserts can only raise. If one was wrong, a finding says so. This was compared, and of "
    "which methods:"
)
_KINDS = {
    "counts": "How many documents each row counts: ",
    "rows": "Every row: ",
    "number": "The number of rows, because inserts may replace rows: ",
}

_OF_SEARCH = (
    "The readers and every other role each had their own measuring loop, thread and connections. "
    "All went by one clock. Each trial of a search had a system of its own, started on an index of "
    "its own with the same documents, even where the roles were idle. So every rate began with an "
    "index of the same size. What only a longer time of writing does to an index is in none of the "
    "trials."
)
_CAPACITY = (
    "Ratio: over that of the same configuration with every role idle. With three searches of each "
    "or more it is paired by block; with fewer its interval reaches as far as both intervals "
    "allow. Acknowledged: what the system took in the trials near the capacity, from 0.8 times the "
    "lower end of the interval to its upper end. If that is less than was asked, the capacity is "
    "beside that many writes only."
)

_STAGES = (
    "A request counts for the stage in which it was due. Each figure is the middle one of the "
    "treatment's valid trials. The figures of the table before this one are of the readers' "
    "window alone."
)
_FAULTS = (
    "A fault does not make a trial invalid: the audit covers the window before it. Answers are "
    "normal again from the first good request of the first span of time that is like those before "
    "the fault."
)
_DRAWN = 6  # treatments that are drawn beside their idle one
_NAMED = 6  # treatments that a sentence names


def section(content: Content) -> Section | None:
    """All roles of the study; None where it has none."""
    judged = content.judgement.roles
    if judged is None:
        return None
    only_read = all(r.does == "read" for r in judged.results)
    blocks: list[Block] = [Text(_HOW_READ if only_read else _HOW, "quiet"), *_cores(judged)]
    if judged.faults:
        blocks += [Text("What the fault did.", "lead")]
        blocks += [Text(line(" ".join(sentences(each)))) for each in judged.faults]
        blocks += [tables.faults(judged.faults), Text(_FAULTS, "quiet")]
    if judged.beside:
        asked = judged.beside[0].operation
        what = ": the median time of one operation over that of the idle one" if asked else ""
        some = any(pair.at_work for pair in judged.beside)
        whom = "with fewer roles at work" if some else "with every role idle"
        blocks += [Text(f"The readers, compared {whom}{what}.", "lead")]
        made = tables.beside_of_operations if asked else tables.beside
        blocks.append(made(judged.beside))
        blocks.append(Text(
            "Ratios are those of the comparisons of treatments, with their verdicts: paired by "
            "block, over the same queries, and corrected for all comparisons of the study. A ratio "
            "without a verdict is that of the two figures as they stand.", "quiet",
        ))  # fmt: skip
    others_read = _reading(judged)
    if others_read:
        blocks += [Text("How the other readers fared.", "lead"), tables.readers(others_read)]
        blocks.append(Text(_READERS, "quiet"))
    drawn = [pair for pair in judged.beside if pair.treatment in judged.over_time]
    for number, pair in enumerate(drawn[:_DRAWN], 1):
        over = [
            (label, judged.over_time[name])
            for name, label in ((pair.idle, pair.idle_label), (pair.treatment, pair.label))
            if name in judged.over_time
        ]
        shaded = " Shaded: when a publish or a job was at work, or the system was down." * any(
            o.events for _, o in over
        )
        shaded += " Below: good answers." * any(o.good is not None for _, o in over)
        if any(o.written is not None for _, o in over):
            shaded += (" Below: what the writer was asked for (dashed), and what the system "
                       "acknowledged (solid).")  # fmt: skip
        blocks += figure(
            f"roles-over-time-{number}",
            f"Response times of the readers: {line(pair.label)}",
            "Of one trial of each: solid 95 %, dashed half of the requests that were due at that "
            f"time.{shaded}",
            partial(figures.over_time, over),
        )
    writers = [r for r in judged.results if r.does == "write" and r.figures]
    if writers:
        blocks += [Text("What was written.", "lead"), tables.writers(writers)]
        blocks += [Text(said, "quiet") for said in _of_writers(writers)]
        blocks += _stages(judged, writers)
    if judged.answers:
        blocks += [Text("Answers while documents changed.", "lead"), Text(_MEANWHILE, "quiet")]
        blocks.append(Points(tuple(_held(judged.answers))))
    shown = [r for r in writers if r.visible is not None]
    if shown:
        blocks += [Text("From commit to visible.", "lead"), Text(_VISIBLE, "quiet")]
        blocks.append(tables.visible(shown))
        blocks += figure(
            "roles-visible",
            "Commit to visible",
            "The quantiles of the markers of all valid trials, with their intervals.",
            partial(figures.visible, shown),
        )
    others = _others(judged)
    if others:
        blocks += [Text("Publishers and jobs.", "lead"), tables.others(others)]
    return Section("roles", "Beside the readers", tuple(blocks), "Beside the readers")


def _stages(judged: RolesJudged, writers: Sequence[RoleResult]) -> list[Block]:
    """Writers whose rate changes, stage by stage."""
    blocks: list[Block] = []
    shaped = [r for r in writers if r.stages]
    if shaped:
        blocks += [Text("What was written, stage by stage.", "lead"), tables.stages(shaped)]
        blocks.append(Text(_STAGES, "quiet"))
    for r in writers:
        over = judged.over_time.get(r.treatment)
        if over is not None and over.written is not None and over.written.ended_s is not None:
            blocks.append(Text(
                f"{line(r.label)}: the file of times came to an end at "
                f"{numbers.digits(over.written.ended_s)} s of {numbers.digits(over.end_s)} s. "
                "After that nothing was written."
            ))  # fmt: skip
    return blocks


def of_search(content: Content) -> Section | None:
    """The capacity of readers beside roles, and what these got done; None where there are none."""
    judged = content.judgement.roles
    if judged is None:
        return None
    blocks: list[Block] = [Text(_OF_SEARCH, "quiet"), *_cores(judged)]
    if judged.capacity:
        blocks += [Text("The capacity of the readers, compared with every role idle.", "lead")]
        blocks += [tables.capacity(judged.capacity), Text(_CAPACITY, "quiet")]
    writers = [r for r in judged.results if r.does == "write" and r.figures]
    others = _others(judged)
    others_read = _reading(judged)
    shown = [r for r in writers if r.visible is not None]
    made: list[tuple[str, Sequence[RoleResult], Block]] = []
    if others_read:
        made.append(("How the other readers fared", others_read, tables.readers(others_read)))
    if writers:
        made.append(("What was written", writers, tables.writers(writers)))
    if shown:
        made.append(("From commit to visible", shown, tables.visible(shown)))
    if others:
        made.append(("Publishers and jobs", others, tables.others(others)))
    for title, rows, block in made:
        each = f"{title}, in each of {numbers.counted(len(rows), 'trial')}"
        blocks.append(Details(each, (block,), open=len(rows) <= LONG))
    checked: tuple[Block, ...] = tuple(Text(s, "quiet") for s in _of_writers(writers) if writers)
    if len(checked) > _NAMED:
        checked = (Details("How it is known that what was acknowledged was there", checked),)
    blocks += checked
    return Section("roles", "Beside the readers", tuple(blocks), "Beside the readers")


def _reading(judged: RolesJudged) -> list[RoleResult]:
    """The roles that read, and were not idle."""
    return [r for r in judged.results if r.does == "read" and not r.idle and r.trials]


def _others(judged: RolesJudged) -> list[RoleResult]:
    """Publishers and jobs."""
    return [r for r in judged.results if r.does not in ("read", "write") and r.figures]


def _cores(judged: RolesJudged) -> list[Block]:
    """That a machine is too small for all of it at once."""
    if judged.cores is None or judged.cores >= 1 + judged.loops:
        return []
    said = (
        f"This machine has {judged.cores} cores, and up to {judged.loops} measuring loops ran "
        "beside the server. That is too few for all of them at full speed: part of what a role "
        "costs the readers here is what its own sending and asking costs. Each loop's lateness was "
        "audited."
    )
    return [Text(said)]


def _held(answers: Sequence[AnswersHeld]) -> list[str]:
    """For each way in which answers were judged, of which methods, and how many."""
    found = []
    for kind, why in dict.fromkeys((each.kind, each.why) for each in answers):
        own = [each for each in answers if (each.kind, each.why) == (kind, why)]
        methods: dict[str, list[str]] = {}
        for each in own:
            methods.setdefault(each.operation, []).append(each.method)
        named = ", ".join(
            f"{line(name)} ({', '.join(map(line, dict.fromkeys(each)))})"
            for name, each in methods.items()
        )
        if kind == "any":
            found.append(f"Nothing, because {line(why)}: {named}.")
        else:
            n = sum(each.sampled for each in own)
            found.append(f"{_KINDS[kind]}{named}. {numbers.counted(n, 'sampled answer')}.")
    return found


_COUNTED = {
    "insert": "the engine's own count of its documents",
    "update": "how many documents have the word that each update writes",
}


def _who(own: Sequence[RoleResult], every: Sequence[RoleResult]) -> list[str]:
    """Whose results these are: systems, where they are all that these have; else treatments."""
    systems = dict.fromkeys(r.levels.get("system") for r in own)
    if None not in systems and all(r in own for r in every if r.levels.get("system") in systems):
        return [line(str(name)) for name in systems]
    return [line(r.label) for r in own]


def _of_writers(results: list[RoleResult]) -> list[str]:
    found = []
    for how, unasked in dict.fromkeys((r.how, r.unasked) for r in results if r.how):
        own = [r for r in results if (r.how, r.unasked) == (how, unasked)]
        where = "" if len(own) == len(results) else f" in {', '.join(_who(own, results))}"
        if how == NOTHING:
            found.append(f"Nothing has to be published{where}: {line(unasked)}.")
        else:
            found.append(f"What makes documents visible{where}: {line(how)}. Where nobody asks for "
                         f"it, {line(unasked)}.")  # fmt: skip
    late = [r for r in results if _behind(r) > 1.0]
    if late:
        late.sort(key=_behind, reverse=True)
        names = ", ".join(
            f"{line(r.label)} ({numbers.human(_behind(r), 's')})" for r in late[:_NAMED]
        )
        names += f", and {len(late) - _NAMED:,} more" * (len(late) > _NAMED)
        found.append(
            "These writers fell behind their clock. By how much, at the end: "
            f"{names}.{_accepted_less(late)}"
        )
    found += _checked(results)
    return found


def _behind(of: RoleResult) -> float:
    """How far it was behind its clock at the end, in seconds: in the trial in which it was most."""
    found = of.figures.get("behind_s")
    if found is None:
        return 0.0
    span = found.interval
    return span.high if span is not None and span.level == 1 else found.value


def _accepted_less(late: Sequence[RoleResult]) -> str:
    """Of writers that fell behind, whether less was accepted than offered; a sentence after a
    space.
    """
    rates = [(r, r.figures.get("accepted_per_s"), r.figures.get("offered_per_s")) for r in late]
    less = [r for r, got, of in rates if got and of and got.value < KEEPS_UP * of.value]
    if not all(got and of for _, got, of in rates):
        return ""
    if not less:
        return " In the window, nearly as much was accepted as was offered, or more."
    of = "" if len(less) == len(late) else f" ({', '.join(line(r.label) for r in less[:_NAMED])})"
    return (
        f" That is a result: less was accepted than was offered{of}. Whether the system would take "
        "more over more `connections` was not measured."
    )


def _checked(results: Sequence[RoleResult]) -> list[str]:
    """How it is known that what was acknowledged was there, and what was not looked for."""
    every = [(r, proof) for r in results for proof in r.proofs]
    how = [f"{kind}s, by {by}" for kind, by in _COUNTED.items()
           if any(p.counted and p.kind == kind for _, p in every)]  # fmt: skip
    sampled = any(proof.asked for _, proof in every)
    asked = ", and some of the written documents were asked for" if sampled else ""
    found = [f"After each trial everything was published{asked}."]
    if how:
        found[0] += (f" Counted were {', and '.join(how)}: as many as were acknowledged were "
                     "there, unless a finding says otherwise.")  # fmt: skip
    for r, proof in every:
        if not proof.counted:
            found.append(f"{line(r.label)}: {line(said_of(proof))}")
    return found
