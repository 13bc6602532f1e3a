"""The section on hosts: each asked alone, which of them governs the whole, and what machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from searchbench.analysis.judgement import Estimate, TreatmentResult
from searchbench.analysis.trial import alone, driven, elsewhere
from searchbench.analysis.trial.alone import Alone, governing
from searchbench.record import Trial
from searchbench.record.elsewhere import Elsewhere
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


_MACHINES = (
    "These hosts are machines reached by ssh. What the system used there is by the counters of "
    "each machine itself, over the measured windows; other processes there and its disks are "
    "watched less closely than here, and its single cores and threads not at all."
)


@dataclass(frozen=True, slots=True)
class _Machine:
    """A host that ssh reaches, in each valid trial of a treatment.

    ``others_s``: CPU seconds that were not the system's.
    """

    label: str
    seen: tuple[Elsewhere, ...]
    others_s: tuple[float | None, ...]


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
    """Each host alone beside the whole, and each that is another machine; None without either."""
    trials = driven.by_treatment(content.record)
    machines: list[_Machine] = []
    rows: list[_Row] = []
    said: list[str] = []
    unknown: list[str] = []
    for treatment in content.judgement.treatments:
        used = {t.trial for t in treatment.trials if t.counts}
        own = trials.get(treatment.treatment, [])
        # Where none is valid, what was seen is still shown.
        counted = [t for t in own if t.trial in used or not used]
        ones = alone.of_trials(counted)
        machines += _machines(treatment.label, counted)
        together = treatment.figures.get("throughput") if content.loads == {"closed"} else None
        shares = _shares(own)
        rows += [_Row(treatment.label, one, shares.get(one.host), together) for one in ones]
        if (first := governing(ones)) is not None:
            said.append(_governs(treatment, first, together))
        elif len(ones) > 1:
            unknown.append(short(treatment.label, 120))
    if not rows and not machines:
        return None
    if unknown:
        said.append(
            f"Which host governs is not resolved for {'; '.join(unknown)}: none is slower than the "
            "next by more than chance explains. More replicates resolve more."
        )
    blocks: list[Block] = []
    if rows:
        found = _table(rows)
        blocks += [Text(_ABOUT), *map(Text, said)]
        long = len(found.rows) > 2 * LONG
        blocks.append(Details("Every host alone", (found,)) if long else found)
    if machines:
        also = _of_machines(machines)
        blocks.append(Text(_MACHINES))
        blocks.append(Details("Every machine", (also,)) if len(also.rows) > 2 * LONG else also)
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


def _machines(label: str, trials: Sequence[Trial]) -> list[_Machine]:
    """Each host of these trials that ssh reaches, with what it did in each."""
    by_host: dict[str, list[tuple[Elsewhere, float | None]]] = {}
    for trial in trials:
        for one in trial.elsewhere:
            others_s = elsewhere.others_s(one, trial)
            by_host.setdefault(one.host, []).append((one, others_s))
    return [
        _Machine(label, tuple(one for one, _ in seen), tuple(others for _, others in seen))
        for seen in by_host.values()
    ]


def _of_machines(rows: list[_Machine]) -> Table:
    def machine(row: _Machine) -> Cell:
        one = row.seen[-1]
        same = " (this machine)" if one.this_machine else ""
        cpu = f"{one.cpu or 'processor not known'}, Linux {one.kernel}"
        return Cell(line(f"{one.hostname}{same}"), below=line(cpu))

    def mean(values: list[float | None], unit: str) -> Cell:
        """Over the trials; unknown where it is in one of them."""
        known = [value for value in values if value is not None]
        if len(known) < len(values) or not known:
            return Cell("unknown", tone="quiet")
        return Cell(numbers.human(sum(known) / len(known), unit))

    def used(row: _Machine) -> Cell:
        shares = [elsewhere.used_share(one) for one in row.seen]
        cores = [None if s is None else s * one.cores
                 for s, one in zip(shares, row.seen, strict=True)]  # fmt: skip
        return mean(cores, "cores")

    def others(row: _Machine) -> Cell:
        if row.seen[-1].this_machine:
            return NONE
        cores = [
            None if others_s is None or one.seconds <= 0 else others_s / one.seconds
            for one, others_s in zip(row.seen, row.others_s, strict=True)
        ]
        return mean(cores, "cores")

    return table(
        rows,
        text("Treatment", lambda row: named(row.label), 2),
        text("Host", lambda row: named(row.seen[-1].host)),
        text("Machine", machine, 1.6),
        number("Cores", lambda row: Cell(str(row.seen[-1].cores)), 0.6),
        number("Memory", lambda row: Cell(numbers.human(row.seen[-1].memory_bytes, "bytes"))),
        number("Cores in use", used),
        number("By others", others),
        number("Peak memory", lambda row: mean([one.peak_rss_bytes for one in row.seen], "bytes")),
    )
