"""What every page shows of what was measured: latency, warm-up, agreement, cost, the machine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from searchbench.analysis.judgement import Agreement
from searchbench.analysis.trial import sampled
from searchbench.record import Trial
from searchbench.report.document import notices
from searchbench.report.document.blocks import Block, Details, Facts, Section, Text
from searchbench.report.document.content import LONG, Content, figure
from searchbench.report.document.details import flat
from searchbench.report.document.text import line, short
from searchbench.report.figures import study as figures
from searchbench.report.tables import agreement as agreement_tables
from searchbench.report.tables import numbers
from searchbench.report.tables import steps as step_tables
from searchbench.report.tables import study as tables

_CURVE = 30  # points of a line by quantile, where there are many lines on a page
_EXAMPLES = 300  # queries shown side by side, over all pairs
_FEWEST_EXAMPLES = 3  # of each pair
_FIRST_ASKS = (
    "One client asked one query after another. All figures of this page are of first asks; only "
    "this section also has later asks. So queries per second are one divided by the mean time of a "
    "first ask; the time between queries does not count."
)
_STEADY = (
    "Trials by whether the measured window was shown to be steady: the times of the same queries "
    "change by less than 5 % within it; what had not begun by then leaves no trace. Unknown: "
    "shown neither to be steady nor not to be. First asks: requests that were the first of their "
    "query in the drive, of a sweep in all steps so far; where their shares differ by more than "
    "5 points, a ratio compares cold queries with warm ones and is not resolved. Requests per "
    "distinct query: how often each was asked in the window; a small hot set is answered from "
    "caches, so compare treatments that are alike in this."
)
_WARMUPS = (
    "How long each takes to warm up, from its first request. The peak is the speed in the measured "
    "window, each query compared with itself."
)
_OF_INGEST = ("index_bytes", "ingest_s", "ingest_documents_per_s")
_OF_CLIENT = ("client_cpu_share",)  # which the section about the client has
Which = Literal["service", "response"]


def latency_of_treatments(content: Content) -> Section:
    """Curves of all treatments, and tables of the quantiles with intervals."""
    blocks: list[Block] = [
        Text(
            "Service time is from the first byte sent to the last byte received. Response "
            "time begins when the request was due, so it includes the wait for a connection."
        )
    ]
    if "closed" in content.loads:
        blocks.append(Text(notices.CLOSED_LOOP))
    kinds: tuple[Which, ...] = ("service", "response")
    for which in kinds[:1] if content.loads == {"closed"} else kinds:
        blocks += _curves(content, which)
        blocks.append(tables.quantiles(content.judgement, which))
    return Section("latency", "Latency", tuple(blocks))


def latency_of_steps(content: Content) -> Section:
    """Curves of some steps, and tables of all."""
    fewer = len(content.drawn) < len(content.judgement.treatments)
    name = content.step
    some = f" Drawn: {len(content.drawn)} of the {name}s; the table has all." if fewer else ""
    blocks = _curves(content, "response", some, _CURVE)
    kinds: tuple[Which, ...] = ("response", "service")
    for which in kinds:
        table = step_tables.quantiles(content.steps, which)
        title = f"{which.capitalize()} time, every {name}"
        blocks.append(Details(title, (table,), open=len(table.rows) <= LONG))
    if any(s.connect for s in content.steps):
        table = step_tables.quantiles(content.steps, "connect")
        blocks.append(Details("Time to open a connection", (table,)))
    for s in content.steps:
        if s.worst_minute:
            at, worst = (numbers.human(s.worst_minute[k], "s") for k in ("from_s", "response_p99"))
            text = f"the worst minute begins {at} into the window; its response p99 was {worst}."
            blocks.append(Text(f"{line(s.label)}: {text}"))
    return Section("latency", "Latency", tuple(blocks))


def _curves(content: Content, which: Which, more: str = "", most: int = 0) -> list[Block]:
    drawn = replace(content.judgement, treatments=content.drawn)
    return figure(
        f"latency-{which}",
        f"{which.capitalize()} time by quantile",
        "Both axes are logarithmic; the quantiles from the middle to the tail have equal room for "
        "each nine. Bands: the wider of order statistics and the range of the trials; the "
        "intervals of the tables are also for trials to come, so they may be wider. A line ends "
        "where its quantiles have too few samples."
        f"{more}",
        partial(figures.latency, drawn, which, most=most),
    )


def first_asks(content: Content) -> Section | None:
    """How long first asks took, and later ones; None where no trial was cold for each query."""
    states = {t.cold for treatment in content.judgement.treatments for t in treatment.trials}
    if not (states := states - {""}):
        return None
    said = "Asked " + " or ".join(sorted(states)) + ". " + _FIRST_ASKS
    return Section("first-asks", "First asks", (Text(said), tables.asks(content.judgement)))


def warmup(content: Content) -> Section | None:
    """How each trial that is drawn came to a steady state, and which were steady too late.

    None where all were cold for each query.
    """
    every = [t for treatment in content.judgement.treatments for t in treatment.trials]
    if every and all(t.cold for t in every if t.figures) and any(t.cold for t in every):
        return None
    windows = {
        t.trial: (t.window.start / 1e9, t.window.end / 1e9)
        for t in content.record.trials
        if t.window is not None
    }
    blocks = figure(
        "warmup",
        "From the first request to the last",
        "A line for each trial, relative to its own mean over its measured window. What lies "
        "before the window is warm-up, and is not used. Shaded: where any of these trials was "
        "measured, since not all windows begin at one time. Triangles: at one level from here on.",
        partial(figures.warmup, replace(content.judgement, treatments=content.drawn), windows),
    )
    late = [
        f"{line(t.trial)} ({numbers.human(t.steady_from_s, 's')})"
        for treatment in content.drawn
        for t in treatment.trials
        if t.steady_from_s is not None
        and t.trial in windows
        and t.steady_from_s > windows[t.trial][0]
    ]
    few = [
        line(treatment.label)
        for treatment in content.drawn
        if treatment.trials and not any(t.warmup for t in treatment.trials)
    ]
    if late:
        blocks.append(
            Text("At one level only after the window had begun: " + ", ".join(late) + ".")
        )
    if not blocks:
        blocks = [Text("No trial has enough samples to draw its warm-up.")]
    elif few:
        blocks.append(Text("Too few requests to draw: " + ", ".join(few) + "."))
    if any(t.steadiness for treatment in content.judgement.treatments for t in treatment.trials):
        blocks += [Text(_STEADY), tables.steadiness(content.judgement)]
        blocks += [Text(_WARMUPS), tables.warmups(content.judgement)]
    blocks += _activity(content, windows)
    return Section("warmup", "Warm-up", tuple(blocks))


def _activity(content: Content, windows: Mapping[str, tuple[float, float]]) -> list[Block]:
    """What the machine did in the first valid trial of each treatment that is drawn."""
    trials = {t.trial: t for t in content.record.trials}
    seen = {}
    for treatment in content.drawn:
        used = next((t for t in treatment.trials if t.counts and t.trial in trials), None)
        if used is not None:
            probe = content.record.probe(used.trial)
            seen[treatment.treatment] = used, sampled.activity(trials[used.trial], probe)
    return figure(
        "machine",
        "What the machine did meanwhile",
        "One trial of each, on the time axis of the figure before: the share of the time that "
        "the server's cores were in use, that the busiest disk had requests, and that some task "
        "waited for a disk. What stays at zero is not drawn.",
        partial(
            figures.machine, replace(content.judgement, treatments=content.drawn), seen, windows
        ),
    )


def agreement(content: Content) -> Section | None:
    """Whether the systems return the same: all pairs, then of each what differs, and why."""
    found = content.judgement.agreement
    if not found:
        if content.stepped and len({t.system for t in content.judgement.treatments}) <= 1:
            return None
        text = "There is nothing to compare: at most one system's answers are on record."
        own = content.judgement.comparisons
        if any(c.not_read for c in own):
            text = (
                "The replies were not read, so it is not known whether the systems returned the "
                "same."
            )
        elif not content.stepped and any(c.queries_measured for c in own):
            text = "All treatments returned the same to every query, so there is no pair to show."
        return Section("agreement", "Agreement", (Text(text),))
    when = "Before the timing" if content.judgement.driven else "After the jobs"
    blocks: list[Block] = [
        Text(
            "Speed is worth comparing only between systems that answer the same. "
            f"{asked_alone(found, when, stepped=content.stepped)}"
        ),
        agreement_tables.agreement(found, content.labels),
    ]
    blocks += each_pair(found, content.labels)
    return Section("agreement", "Agreement", tuple(blocks))


def asked_alone(found: Iterable[Agreement], when: str, *, stepped: bool) -> str:
    """Whether all distinct queries were asked alone, so as to be compared, in sentences."""
    parts = [one for one in found if one.uncompared]
    if not parts:
        some = ", or its replies under load stand for it," if stepped else ""
        return f"{when}, every distinct query was asked once{some} and its reply kept."
    least = min(parts, key=lambda one: one.queries / (one.queries + one.uncompared))
    return (
        f"{when}, some of the distinct requests were asked once and their replies kept. For the "
        "others, a sweep or a capacity search compares the replies under load that were kept from "
        f"both sides. {'In the pair with the fewest, ' if len(parts) > 1 else ''}"
        f"{least.queries:,} of {least.queries + least.uncompared:,} distinct requests were "
        "compared. It is not known whether the others are answered alike."
    )


def answers(content: Content) -> Section | None:
    """As ``agreement``; nothing where nothing was asked."""
    asked = any(t.queries.digest for t in content.record.trials)
    return agreement(content) if asked else None


def each_pair(
    found: Sequence[Agreement], labels: Mapping[str, str], *, shown: bool = False
) -> list[Block]:
    """Of each pair the measures by document sets and groups, and queries that differ.

    ``shown``: the measures of a single pair stand open.
    """
    blocks: list[Block] = []
    # Ten systems are 45 pairs: fewer examples of each are shown, so that the page stays a page.
    examples = max(_FEWEST_EXAMPLES, _EXAMPLES // len(found))
    for pair in found:
        a = pair.label_a or labels.get(pair.a, pair.a)
        b = pair.label_b or labels.get(pair.b, pair.b)
        both = f"{short(a, 60)} and {short(b, 60)}"
        if pair.groups is not None:
            title = f"{both}, by document sets and groups"
            inner = Text(_MEASURES, "quiet"), agreement_tables.measures(pair.groups)
            blocks.append(
                Details(
                    title,
                    inner,
                    open=shown and len(found) == 1,
                    each="pairs, by document sets and groups",
                    source="agreement.csv",
                )
            )
        if pair.examples and examples:
            blocks.append(_differing(pair, a, b, f"{both}, side by side", examples))
    return blocks


_MEASURES = (
    "The measures of the Sphinx comparison study (2011), over all hits on record; the "
    "first is the reference. Ties are excused in the document groups only: documents of "
    "equal weight are a group, and the lowest group, which the end of the list may have "
    "cut, is left out. Queries with one group only are not counted there."
)


def _differing(pair: Agreement, a: str, b: str, title: str, most: int) -> Details:
    """At most so many of the queries that two systems answer differently."""
    blocks: list[Block] = []
    shown = pair.examples[:most]
    for difference in shown:
        query = f"{difference.query}: {short(difference.text, 600)}"
        blocks.append(Facts((("Query", query), ("Cause", line(difference.cause) or "not known"))))
        blocks.append(agreement_tables.side_by_side(difference, a, b))
    differing = sum(pair.causes.values())
    note = f"{len(shown)} of {numbers.counted(differing, 'query', 'queries')} that differ"
    return Details(title, tuple(blocks), note if differing else "", each="pairs, side by side")


def resources(content: Content) -> Section | None:
    """What each treatment cost, where the server's process was seen."""
    judged = content.judgement
    if content.stepped:
        left_out = (*_OF_CLIENT, *(_OF_INGEST if content.attached else ()))
        driven = {s.treatment for s in content.steps}
        judged = replace(
            judged,
            resources={
                treatment: {k: v for k, v in own.items() if k not in left_out}
                for treatment, own in judged.resources.items()
                if treatment in driven
            },
        )
    cores = content.record.host.get("cores_online")
    if any(trial.elsewhere for trial in content.record.trials):
        cores = None  # other machines have theirs
    if not isinstance(cores, int) or content.attached:
        cores = math.inf
    table = tables.resources(judged, content.labels, cores)
    # Of steps and searches they stand beside the load.
    cached = None if content.stepped else step_tables.cache(content.record.trials)
    if table is None:
        if content.stepped:
            return None
        return Section("resources", "Resources", (Text("No resources were recorded."),))
    text = "Over the measured window, by the operating system's own accounts"
    text += "." if content.attached else "; ingest apart."
    shown: Block = table
    if content.stepped and len(table.rows) > LONG:
        shown = Details(f"Every {content.step}", (table,))
    blocks: list[Block] = [Text(text, "quiet"), shown]
    judged_steps = [t for t in judged.treatments if t.treatment in judged.resources]
    if (limits := tables.bottlenecks(judged_steps)) is not None:
        note = "by the machine's own counters, over the measured window"
        blocks.append(
            Details("What held each back", (limits,), note, open=len(limits.rows) <= LONG)
        )
    if cached is not None:
        note = "by the server's own count, over the measured window"
        blocks.append(Details("Cache hits", (cached,), note, open=len(cached.rows) <= LONG))
    return Section("resources", "Resources", tuple(blocks))


def _not_watched(trials: Sequence[Trial]) -> str:
    """What of the machine is on record of no driven trial."""
    windows = [t.host_window for t in trials if t.status == "ok" and t.drive is not None]
    if not windows:
        return ""
    known = {
        "the frequency of the cores": any(c.mhz_most for w in windows for c in w.by_core),
        "pressure on cores, memory, and disks": any(
            value is not None
            for w in windows
            for value in (w.stalled_cpu_s, w.stalled_memory_s, w.stalled_io_s)
        ),
    }
    return " and ".join(what for what, there in known.items() if not there)


def machine(content: Content) -> Section:
    """The fingerprint of the machine as pairs; nested ones are named by their path. What was not
    watched in any trial stands there too: of that nothing can be found.
    """
    pairs = [*flat(content.record.host)]
    if pairs and (unseen := _not_watched(content.record.trials)):
        pairs.append(("not watched", f"{unseen}: could not be read here"))
    text = Text("The record holds nothing about the machine.")
    return Section("machine", "The machine", (Facts(tuple(pairs)) if pairs else text,), "Machine")
