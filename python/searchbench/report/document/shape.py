"""A load with several rates: its stages, and the times over all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

from searchbench.analysis.judgement import OverloadResult, Shaped, StageSeen, TreatmentResult
from searchbench.analysis.overload import LATE, sentence
from searchbench.logs.curve import FAITHFUL
from searchbench.report.document.blocks import Block, Cell, Section, Table, Text
from searchbench.report.document.content import Content, figure
from searchbench.report.document.text import line
from searchbench.report.figures import shape as figures
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import (
    NONE,
    known,
    named,
    number,
    of_estimate,
    table,
    text,
)

_HOW = (
    "The load has several rates. One stage at one rate is judged: all other figures of this page "
    "are of that window. The other stages are shown: what a ramp does, or the seconds after a "
    "spike, is no steady state. A request counts for the stage in which it was due."
)
_OVERLOAD = (
    "An overload is a time at a greater rate between two stages at the same rate. After it, "
    "answers are normal again from the first good request of the first span of time that is like "
    "those before it. Requests for which no connection is free wait in the load generator, and "
    "their response times count from when they were due."
)
_TOGETHER = 3  # treatments in one figure: two lines each are as many as one picture holds


def section(content: Content) -> Section | None:
    """The stages of each treatment that is drawn; None where the loads have one rate."""
    found = [(t, shaped) for t in content.drawn if (shaped := _of(t))]
    if not found:
        return None
    rows = [
        (treatment, at, stages)
        for treatment, several in found
        for at, stages in enumerate(zip(*(each.stages for each in several), strict=True), 1)
    ]
    blocks: list[Block] = [*_curves(content), Text(_HOW, "quiet")]
    overloads = content.judgement.overloads
    blocks += [Text(line(sentence(each))) for each in overloads]
    drawn = [(t.label, several[0]) for t, several in found]
    size = _TOGETHER if overloads else len(drawn)
    below = "requests that were offered per second"
    if overloads:
        below = "requests a second that were answered in time, and dashed those that were offered"
    for at in range(0, len(drawn), size):
        some = drawn[at : at + size]
        blocks += figure(
            f"load-shape-{at // size + 1}" if at else "load-shape",
            "Response times and the offered load",
            "Of one trial of each treatment: solid 95 %, dashed half of the requests that were "
            f"due at that time. Below: the {below}.",
            partial(figures.over_time, some),
        )
    if overloads:
        blocks += [_overloads(overloads), Text(_OVERLOAD, "quiet")]
        blocks += [
            Text(f"Normal, for {line(each.label)}: {line(each.first.bounds)}.", "quiet")
            for each in overloads if each.first.bounds
        ]  # fmt: skip
        blocks += [
            Text(f"The load generator itself was late in the overload of {line(each.label)}, at "
                 f"p99 by {numbers.percent(each.late)} of the limit for answers in time. So it may "
                 "have made some of these answers late. Give it a core of its own.")
            for each in overloads if each.late > LATE
        ]  # fmt: skip
    blocks.append(
        table(
            rows,
            text("Treatment", lambda r: named(r[0].label), 2),
            text("Stage", lambda r: _stage(r[1], r[2][0]), 2),
            number("Offered", lambda r: _offered(r[2][0])),
            number("Answered", lambda r: _answered(r[2])),
            number("p50", lambda r: _time([s.p50_s for s in r[2]])),
            number("p99", lambda r: _time([s.p99_s for s in r[2]])),
            number("Not answered", lambda r: _lost(r[2])),
        )
    )
    said = "Each figure is the middle one of the treatment's valid trials"
    without = [line(t.label) for t, _ in found if not any(x.counts for x in t.trials)]
    if without:
        said += f"; of {', '.join(without)}, which has none, of those that are not valid"
    blocks.append(Text(f"{said}.", "quiet"))
    return Section("shape", "The load over time", tuple(blocks), "Load over time")


def _curves(content: Content) -> list[Block]:
    """From which log the stages were drawn, and how faithful they are to it."""
    found = {
        t.load.curve["log"]: t.load.curve for t in content.record.trials if t.load.curve is not None
    }
    return [Text(line(said)) for curve in found.values() for said in (_drawn(curve), _true(curve))]


def _drawn(curve: Mapping[str, Any]) -> str:
    return (
        f"The stages are a day of {curve['log']}: {numbers.counted(curve['minutes'], 'minute')} "
        f"from {curve['begins']} on, with {numbers.counted(curve['logged'], 'request')}, "
        f"{numbers.digits(curve['times'])} times as fast. A stage stands for "
        f"{numbers.digits(curve['stage_minutes'])} minutes of the log. Stage {curve['peak']} is "
        f"the busiest: in the log {numbers.digits(curve['peak_logged_per_s'])} requests a second, "
        f"here {numbers.digits(curve['rates'] * curve['peak_logged_per_s'])}."
    )


def _true(curve: Mapping[str, Any]) -> str:
    """Whether the load has what the log had, as far as its minutes tell."""
    dispersion, most = curve["dispersion"], numbers.digits(curve["busiest_minute"])
    if dispersion is None:
        return "A stage has one minute of the log, so all that its minutes show is in the load."
    if dispersion <= FAITHFUL:
        return (
            "Faithful to the minute: within a stage, the log's minutes vary as random arrivals do "
            f"(dispersion {numbers.digits(dispersion)}). What happens within a minute of the log "
            "is not known."
        )
    return (
        "Not faithful within a stage: the log's minutes vary there "
        f"{numbers.digits(dispersion)} times as much as random arrivals do, and the busiest one "
        f"had {most} times the requests of its stage's mean. The load has no such bursts: the real "
        "day is harder. More `stages` would show more of them."
    )


def _overloads(found: Sequence[OverloadResult]) -> Table:
    return table(
        found,
        text("Treatment", lambda r: named(r.label), 2),
        text("Overload", _greatest),
        number("Offered", lambda r: of_estimate(r.figures.get("offered_per_s"))),
        number("Answered", lambda r: of_estimate(r.figures.get("answered_per_s"))),
        number("In time", lambda r: of_estimate(r.figures.get("in_time_per_s"))),
        number("Failed", lambda r: of_estimate(r.figures.get("failed"))),
        number("Until normal", _until_normal),
    )


def _greatest(found: OverloadResult) -> Cell:
    first = found.first
    of = f"{numbers.digits(first.times)} times the capacity" if first.times is not None else ""
    return Cell(
        f"{numbers.digits(first.seconds)} s, {numbers.digits(first.most_per_s)}/s", below=of
    )


def _until_normal(found: OverloadResult) -> Cell:
    took = found.figures.get("normal_s")
    if took is None:
        return NONE
    if found.not_within:
        some = found.not_within < found.trials
        below = f"in {found.not_within} of {found.trials} trials" if some else ""
        return Cell(f"not within {numbers.digits(found.first.looked_s)} s", repr(took), below)
    return of_estimate(took)


def _of(treatment: TreatmentResult) -> list[Shaped]:
    """Of its valid trials; where there are none, of the others: the figures are no verdict."""
    found = [t for t in treatment.trials if t.shaped is not None]
    counting = [t for t in found if t.counts]
    return [t.shaped for t in counting or found if t.shaped is not None]


def _stage(number: int, seen: StageSeen) -> Cell:
    end = seen.start_s + seen.seconds
    what = "judged" if seen.judged else "shown"
    return Cell(f"{number}: {seen.start_s:g} to {end:g} s, {what}")


def _offered(seen: StageSeen) -> Cell:
    first, last = numbers.digits(seen.first_per_s), numbers.digits(seen.last_per_s)
    return Cell(f"{first}/s" if seen.first_per_s == seen.last_per_s else f"{first} to {last}/s")


def _answered(seen: tuple[StageSeen, ...]) -> Cell:
    return Cell(f"{numbers.digits(median(s.came / s.seconds for s in seen))}/s")


def _time(values: list[float | None]) -> Cell:
    there = [v for v in values if v is not None]
    middle = median(there) if len(there) == len(values) else None
    if middle is not None and math.isinf(middle):
        return Cell("not answered", repr(middle))
    return known(middle, lambda v: numbers.human(v, "s"))


def _lost(seen: tuple[StageSeen, ...]) -> Cell:
    if not any(s.requests for s in seen):
        return NONE
    return Cell(
        numbers.percent(median((s.requests - s.answered) / max(1, s.requests) for s in seen))
    )
