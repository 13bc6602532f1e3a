"""The section on hosts: each asked alone, and which of them governs the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from searchbench.analysis.judgement import Estimate, TreatmentResult
from searchbench.analysis.trial import alone, driven
from searchbench.analysis.trial.alone import Alone, governing
from searchbench.record import Trial
from searchbench.report.document.blocks import Block, Cell, Details, Section, Table, Text
from searchbench.report.document.content import LONG, Content
from searchbench.report.document.text import line, short
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import (
    NONE,
    known,
    named,
    number,
    of_estimate,
    share,
    table,
    text,
)

_ABOUT = (
    "Before each trial every agent was asked by itself, for the parts that it has: the same "
    "requests, as many clients, the others idle. A distributed query waits for the slowest of its "
    "agents, so that one governs the whole. If all together are slower than that agent alone, the "
    "rest went into merging, into the network, and into what hosts on the same cores take from "
    "each other. These drives are short: if all together are faster, that much they are off."
)


@dataclass(frozen=True, slots=True)
class _Row:
    """An agent of a treatment. ``share``: of the CPU that its host has; None: all of it.

    ``together``: the rate of the whole; None where the load sets it.
    """

    label: str
    one: Alone
    share: float | None
    together: Estimate | None


def section(content: Content) -> Section | None:
    """Each host alone beside the whole; None where no agent was on a host of its own."""
    trials = driven.by_treatment(content.record)
    rows: list[_Row] = []
    said: list[str] = []
    unknown: list[str] = []
    for treatment in content.judgement.treatments:
        used = {t.trial for t in treatment.trials if t.counts}
        own = trials.get(treatment.treatment, [])
        # Where none is valid, what was seen is still shown.
        ones = alone.of_trials([t for t in own if t.trial in used or not used])
        together = treatment.figures.get("throughput") if content.loads == {"closed"} else None
        shares = _shares(own)
        rows += [_Row(treatment.label, one, shares.get(one.host), together) for one in ones]
        if (first := governing(ones)) is not None:
            said.append(_governs(treatment, first, together))
        elif len(ones) > 1:
            unknown.append(short(treatment.label, 120))
    if not rows:
        return None
    if unknown:
        said.append(
            f"Which host governs is not resolved for {'; '.join(unknown)}: none is slower than the "
            "next by more than chance explains. More replicates resolve more."
        )
    found = _table(rows)
    blocks: list[Block] = [Text(_ABOUT), *map(Text, said)]
    long = len(found.rows) > 2 * LONG
    blocks.append(Details("Every host alone", (found,)) if long else found)
    return Section("hosts", "Hosts", tuple(blocks))


def _governs(treatment: TreatmentResult, first: Alone, together: Estimate | None) -> str:
    rate, whole = numbers.human(first.per_s.value, "queries/s"), ""
    if together is not None:
        part = numbers.percent(together.value / first.per_s.value)
        whole = f", and all together {numbers.human(together.value, 'queries/s')} ({part} of that)"
    label = short(treatment.label, 120)
    return f"{label}: {line(first.host)} governs. Alone it answers {rate}{whole}."


def _shares(trials: Sequence[Trial]) -> dict[str, float]:
    """The share of CPU of each host that has one, as asked."""
    begin, end = "hosts.", ".cpu_share"
    return {
        lever.name.removeprefix(begin).removesuffix(end): float(lever.asked)
        for trial in trials
        for lever in trial.place
        if lever.name.startswith(begin) and lever.name.endswith(end)
    }


def _table(rows: list[_Row]) -> Table:
    def seconds(value: float) -> Cell:
        return known(value, lambda s: numbers.human(s, "s"))

    def failed(row: _Row) -> Cell:
        return Cell(f"{row.one.failed:,}", tone="bad") if row.one.failed else NONE

    return table(
        rows,
        text("Treatment", lambda row: named(row.label), 2),
        text("Host", lambda row: named(row.one.host)),
        number("CPU", lambda row: share(row.share), 0.6, when=any(row.share for row in rows)),
        number("Parts", lambda row: Cell(str(row.one.parts)), 0.6),
        number("Alone", lambda row: of_estimate(row.one.per_s), 1.4),
        number("Service p50", lambda row: seconds(row.one.service_p50_s)),
        number("Service p99", lambda row: seconds(row.one.service_p99_s)),
        number("Failed", failed, 0.7, when=any(row.one.failed for row in rows)),
        number("Together", lambda row: of_estimate(row.together), 1.4),
    )
