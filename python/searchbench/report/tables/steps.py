"""The tables of load steps: how they were answered and ended, and whether the client kept time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from searchbench.analysis.judgement import Estimate, Step
from searchbench.analysis.sweep.verdict import remark
from searchbench.record.trial import Trial
from searchbench.report.document.blocks import Cell, Column, Table
from searchbench.report.document.text import line
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import NONE, named, of_estimate, spans

_SHOWN = {"p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "p999": "p99.9", "max": "max",
          "mean": "mean"}  # fmt: skip
Steps = Sequence[Step]


def steps(found: Steps) -> Table:
    """A row a step: the load as it really was, what was answered, how fast, and what to know."""
    closed = all(s.kind == "closed" for s in found)
    failing = any(s.error_share is not None and s.error_share.value > 0 for s in found)
    opened = any(s.connect for s in found)
    columns = [
        Column("Step", weight=1.8),
        Column("Clients" if closed else "Offered", number=True, weight=0.9),
    ]
    columns += [Column("Answered", weight=1.9)]
    columns += [] if closed else [Column("Kept up", number=True)]
    columns += [Column(name, number=True) for name in ("Response p50", "Response p99")]
    columns += [Column(name, number=True) for name in ("Service p50", "Service p99")]
    columns += [Column("Connect p50", number=True)] if opened else []
    columns += [] if closed else [Column("Backlog p99", number=True)]
    columns += [Column("Errors", number=True, weight=0.8)] if failing else []
    bars = spans([s.answered if s.status == "valid" else None for s in found])
    rows = []
    for s, bar in zip(found, bars, strict=True):
        remarks = line(remark(s))
        cells = [replace(named(s.label), below=remarks, tone="bad" if remarks else "")]
        cells.append(_clients(s) if closed else _offered(s))
        cells.append(of_estimate(s.answered, bar))
        if not closed:
            cells.append(_kept(s))
        cells += [of_estimate(s.response.get(q)) for q in ("p50", "p99")]
        cells += [of_estimate(s.service.get(q)) for q in ("p50", "p99")]
        if opened:
            cells.append(of_estimate(s.connect.get("p50")))
        if not closed:
            cells.append(of_estimate(s.backlog.get("p99")))
        if failing:
            cells.append(_errors(s))
        rows.append(tuple(cells))
    return Table(tuple(columns), tuple(rows))


def outcomes(found: Steps) -> Table:
    """A row a step: how many of its requests ended how."""
    kinds = list(dict.fromkeys(kind for s in found for kind in s.outcomes))
    kinds.sort(key=lambda kind: kind != "ok")
    columns = (
        Column("Step", weight=2),
        Column("Requests", number=True),
        *(Column(line(kind).replace("_", " "), number=True) for kind in kinds),
    )
    rows = tuple(
        (
            named(s.label),
            Cell(numbers.count(s.requests)),
            *(_count(s.outcomes.get(kind, 0), bad=kind != "ok") for kind in kinds),
        )
        for s in found
    )
    return Table(columns, rows)


def quantiles(found: Steps, which: Literal["service", "response", "connect"]) -> Table:
    """A row a step: every quantile with its interval; "–" where there are too few samples."""
    columns = (
        Column("Step", weight=2),
        *(Column(title, number=True) for title in _SHOWN.values()),
        Column("Requests", number=True),
    )
    rows = []
    for s in found:
        own: Mapping[str, Estimate] = getattr(s, which)
        if own:
            n = next(iter(own.values())).n
            cells = (of_estimate(own.get(name)) for name in _SHOWN)
            rows.append((named(s.label), *cells, Cell(numbers.count(n))))
    return Table(columns, tuple(rows))


def client(found: Steps) -> Table:
    """A row a step: whether the client itself was on time, and what it cost."""
    queued = any(s.backlog for s in found)
    closed = any(s.littles_law_share is not None for s in found)
    columns = [Column("Step", weight=2)]
    columns += [Column("Little's law", number=True)] if closed else []
    columns += [Column(f"Late by, {q}", number=True) for q in ("p50", "p99", "max")]
    columns += (
        [Column(f"Backlog {q}", number=True) for q in ("p50", "p99", "max")] if queued else []
    )
    columns += [Column("Response grew", number=True)] if queued else []
    columns += [Column("CPU a request", number=True), Column("CPU", number=True)]
    columns += [Column("Waited for a core", number=True), Column("Steal", number=True)]
    rows = []
    for s in found:
        cells = [named(s.label)]
        if closed:
            cells.append(_share(s.littles_law_share))
        cells += [of_estimate(s.lag.get(q)) for q in ("p50", "p99", "max")]
        if queued:
            cells += [of_estimate(s.backlog.get(q)) for q in ("p50", "p99", "max")]
            grew = s.response_growth
            cells.append(
                NONE if grew is None else Cell(f"{numbers.digits(grew * 1e3, 2)} ms/s", repr(grew))
            )
        cost = s.client_cpu_s_per_request
        cells.append(NONE if cost is None else Cell(numbers.human(cost, "s"), repr(cost)))
        cells += [_share(v) for v in (s.client_cpu_share, s.run_wait_share, s.steal_share)]
        rows.append(tuple(cells))
    return Table(tuple(columns), tuple(rows))


def cache(trials: Sequence[Trial]) -> Table | None:
    """A row a step that had a wanted share of cache hits: expected, and as the server counted."""
    columns = (
        Column("Step", weight=2),
        Column("Wanted", number=True),
        Column("Expected", number=True),
        Column("Counted", number=True, weight=1.4),
        Column("Drawn from", number=True),
        Column("Cache holds", number=True),
    )
    rows = []
    for trial in trials:
        drawn = trial.cache
        if drawn is None:
            continue
        counted, cell = drawn.counted, Cell("not reported", tone="quiet")
        if counted is not None and counted.lookups:
            below = f"{counted.hits:,} of {counted.lookups:,}"
            share = counted.hits / counted.lookups
            cell = Cell(numbers.percent(share), line(counted.source), below)
        distinct, held = drawn.distinct, drawn.cache_entries
        rows.append((
            named(trial.label or trial.trial),
            _share(drawn.wanted_hit),
            _share(drawn.expected_hit),
            cell,
            NONE if distinct is None else Cell(numbers.counted(distinct, "request")),
            NONE if held is None else Cell(numbers.counted(held, "answer")),
        ))  # fmt: skip
    return Table(columns, tuple(rows)) if rows else None


def _clients(step: Step) -> Cell:
    asked, seen = step.clients_asked, step.clients
    if seen is None:
        return Cell("–", f"{asked} were asked for", tone="quiet")
    if asked is None or asked == seen:
        return Cell(numbers.count(seen), "counted in the trace")
    return Cell(numbers.count(seen), "counted in the trace", f"of {asked} asked for", tone="bad")


def _offered(step: Step) -> Cell:
    if step.offered is None:
        return NONE
    cell = of_estimate(step.offered)
    asked = step.rate_asked_per_s
    below = "" if asked is None else f"of {numbers.human(asked, '1/s')}"
    return Cell(cell.text, cell.exact, below)


def _kept(step: Step) -> Cell:
    if step.achieved is None:
        return NONE
    text = numbers.percent(min(1.0, step.achieved.value))
    words = {True: "yes", False: "no", None: "not clear"}[step.keeps_up]
    tone: Literal["", "bad"] = "bad" if step.keeps_up is False else ""
    return Cell(words, numbers.exact(step.achieved), text, tone=tone)


def _errors(step: Step) -> Cell:
    share = step.error_share
    if share is None:
        return NONE
    cell = of_estimate(share)
    return Cell(cell.text, cell.exact, tone="bad" if share.value > 0.01 else "")


def _count(n: int, *, bad: bool) -> Cell:
    return Cell(numbers.count(n), tone="bad" if bad and n else "") if n else NONE


def _share(share: float | None) -> Cell:
    return NONE if share is None else Cell(numbers.percent(share), repr(share))
