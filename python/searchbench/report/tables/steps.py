"""The tables of load steps, and of a search for capacity: its intervals, and their trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Literal

from searchbench.analysis.judgement import Capacity, CapacityTrial, Step
from searchbench.analysis.sweep.verdict import remark
from searchbench.record.trial import Cache, Trial
from searchbench.report.document.blocks import Cell, Table
from searchbench.report.document.text import line
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import (
    NONE,
    Made,
    bars,
    known,
    named,
    number,
    of_estimate,
    share,
    table,
    text,
)

Steps = Sequence[Step]


def steps(found: Steps) -> Table:
    """A row a step: the load as it really was, what was answered, how fast, and what to know."""
    closed = all(s.kind == "closed" for s in found)
    failing = any(s.error_share is not None and s.error_share.value > 0 for s in found)
    bar = bars([s.answered for s in found if s.status == "valid"])

    def answered(s: Step) -> Cell:
        return of_estimate(s.answered, bar(s.answered) if s.status == "valid" else None)

    return _of_steps(
        found,
        text("Step", _remarked, 1.8),
        number("Clients", _clients, 0.9, when=closed),
        number("Offered", _offered, 0.9, when=not closed),
        text("Answered", answered, 1.9),
        number("Kept up", _kept, when=not closed),
        _times("response", "p50", "p99"),
        _times("service", "p50", "p99"),
        _times("connect", "p50") if any(s.connect for s in found) else [],
        [] if closed else _times("backlog", "p99"),
        number("Errors", _errors, 0.8, when=failing),
    )


def outcomes(found: Steps) -> Table:
    """A row a step: how many of its requests ended how."""
    kinds = list(dict.fromkeys(kind for s in found for kind in s.outcomes))
    kinds.sort(key=lambda kind: kind != "ok")
    return _of_steps(
        found,
        text("Step", lambda s: named(s.label), 2),
        number("Requests", lambda s: Cell(numbers.count(s.requests))),
        *(number(line(kind).replace("_", " "), partial(_ended, kind)) for kind in kinds),
    )


def quantiles(found: Steps, which: Literal["service", "response", "connect"]) -> Table:
    """A row a step: every quantile with its interval; "–" where there are too few samples."""
    return _of_steps(
        [s for s in found if getattr(s, which)],
        text("Step", lambda s: named(s.label), 2),
        _times(which, "p50", "p90", "p95", "p99", "p999", "max", "mean", title=""),
        number("Requests", lambda s: Cell(numbers.count(next(iter(getattr(s, which).values())).n))),
    )


def client(found: Steps) -> Table:
    """A row a step: whether the client itself was on time, and what it cost."""
    queued = any(s.backlog for s in found)
    closed = any(s.littles_law_share is not None for s in found)
    return _of_steps(
        found,
        text("Step", lambda s: named(s.label), 2),
        number("Little's law", lambda s: share(s.littles_law_share), when=closed),
        _times("lag", "p50", "p99", "max", title="Late by, "),
        _times("backlog", "p50", "p99", "max") if queued else [],
        number("Response grew", lambda s: known(s.response_growth, _growth), when=queued),
        number("CPU a request", lambda s: known(s.client_cpu_s_per_request, _seconds)),
        number("CPU", lambda s: share(s.client_cpu_share)),
        number("Waited for a core", lambda s: share(s.run_wait_share)),
        number("Steal", lambda s: share(s.steal_share)),
    )


def cache(trials: Sequence[Trial]) -> Table | None:
    """A row a trial whose hits of a cache of answers were counted: expected, and counted.

    None where no share was wanted and no cache was hit.
    """
    found = [(trial, trial.cache) for trial in trials if trial.cache is not None]
    drawn = any(cache.wanted_hit is not None for _, cache in found)
    if not drawn and not any(cache.counted and cache.counted.hits for _, cache in found):
        return None
    return table(
        found,
        text("Trial", lambda row: named(row[0].label or row[0].trial), 2),
        number("Wanted", lambda row: share(row[1].wanted_hit), when=drawn),
        number("Expected", lambda row: share(row[1].expected_hit), when=drawn),
        number("Counted", lambda row: _hits(row[1]), 1.4),
        number("Drawn from", lambda row: _counted(row[1].distinct, "request"), when=drawn),
        number("Cache holds", lambda row: _counted(row[1].cache_entries, "answer")),
    )


def intervals(found: Sequence[Capacity]) -> Table:
    """A row for each configuration, a column for each promise."""
    by_place = {(c.subject, c.promise): c for c in found}

    def interval(promise: str, subject: str) -> Cell:
        return _interval(by_place.get((subject, promise)))

    return table(
        dict.fromkeys(c.subject for c in found),
        text("Configuration", named, 1.4),
        *(
            number(line(p), partial(interval, p), 1.6)
            for p in dict.fromkeys(c.promise for c in found)
        ),
        source="capacity.csv",
    )


def trials(found: Capacity) -> Table:
    """A row for each trial of a search, in the order they were driven."""
    tones: dict[str, Literal["good", "bad"]] = {"holds": "good", "fails": "bad"}
    return table(
        found.trials,
        number("Rate", _driven),
        number("Window", lambda t: Cell(_seconds(t.seconds))),
        text("Verdict", lambda t: Cell(line(t.verdict), tone=tones.get(t.verdict, "quiet")), 1.2),
        number("Of what is allowed", _used, 1.4),
        text("Condition", lambda t: Cell(line(t.condition) or "–"), 1.4),
        number("Achieved", lambda t: share(t.achieved)),
    )


def between(found: Capacity) -> str:
    """The interval in short: "755–839/s", "≥ 755/s", "< 839/s", "not found"."""
    if found.holds is not None and found.fails is not None:
        return f"{_rate(found.holds)}–{_rate(found.fails)}/s"
    if found.holds is not None:
        return f"≥ {_rate(found.holds)}/s"
    if found.fails is not None:
        return f"< {_rate(found.fails)}/s"
    return "not found"


def _of_steps(rows: Sequence[Any], *columns: list[Made]) -> Table:
    """A row a step; where not all are printed, those that are go from the least to the greatest."""
    # By the mirrored digits of their numbers, any first few of the rows are spread over all.
    order = sorted(range(len(rows)), key=lambda i: f"{i:032b}"[::-1])
    made = table(rows, *columns, source="steps.csv")
    return replace(made, telling=tuple(order), printed_first="spread over all loads")


def _times(which: str, *names: str, title: str | None = None) -> list[Made]:
    """A column for each quantile of a time, named by ``title`` and the quantile."""
    before = f"{which.capitalize()} " if title is None else title

    def at(name: str, step: Step) -> Cell:
        return of_estimate(getattr(step, which).get(name))

    named = [number(before + n.replace("p999", "p99.9"), partial(at, n)) for n in names]
    return list(chain.from_iterable(named))


def _remarked(step: Step) -> Cell:
    remarks = line(remark(step))
    return replace(named(step.label), below=remarks, tone="bad" if remarks else "")


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
    asked = step.rate_asked_per_s
    below = "" if asked is None else f"of {numbers.human(asked, '1/s')}"
    return replace(of_estimate(step.offered), below=below)


def _kept(step: Step) -> Cell:
    if step.achieved is None:
        return NONE
    text = numbers.percent(min(1.0, step.achieved.value))
    words = {True: "yes", False: "no", None: "not clear"}[step.keeps_up]
    tone: Literal["", "bad"] = "bad" if step.keeps_up is False else ""
    return Cell(words, numbers.exact(step.achieved), text, tone=tone)


def _errors(step: Step) -> Cell:
    errors = step.error_share
    if errors is None:
        return NONE
    return replace(of_estimate(errors), below="", tone="bad" if errors.value > 0.01 else "")


def _ended(kind: str, step: Step) -> Cell:
    n = step.outcomes.get(kind, 0)
    return Cell(numbers.count(n), tone="" if kind == "ok" else "bad") if n else NONE


def _growth(seconds_per_s: float) -> str:
    return f"{numbers.digits(seconds_per_s * 1e3, 2)} ms/s"


def _seconds(value: float) -> str:
    return numbers.human(value, "s")


def _hits(drawn: Cache) -> Cell:
    """The share of lookups that the server answered from its cache."""
    counted = drawn.counted
    of = (counted.asked or counted.lookups) if counted is not None else 0
    if counted is None or not of:
        return Cell("not reported", tone="quiet")
    below = f"{counted.hits:,} of {of:,}" + ("" if counted.since else ", with the warm-up")
    return Cell(numbers.percent(counted.hits / of), line(counted.source), below)


def _counted(n: int | None, what: str) -> Cell:
    return NONE if n is None else Cell(numbers.counted(n, what))


def _interval(found: Capacity | None) -> Cell:
    if found is None:
        return Cell("–", "not searched for", tone="quiet")
    odds = [] if found.chance_inside is None else [numbers.percent(found.chance_inside)]
    count = numbers.counted(len(found.trials), "trial")
    if found.searches > 1:
        count += f" in {found.searches} searches"
    ends = f"holds at {found.holds!r}, fails at {found.fails!r} requests per second"
    exact = ends.replace("None", "a rate that is not known")
    missing = found.holds is None and found.fails is None
    return Cell(between(found), exact, " · ".join([*odds, count]), tone="quiet" if missing else "")


def _driven(trial: CapacityTrial) -> Cell:
    return Cell(f"{_rate(trial.rate_per_s)}/s", f"{trial.rate_per_s!r} per second, {trial.trial}")


def _rate(rate: float) -> str:
    """Four digits: the two ends of an interval may be less than one part in a hundred apart."""
    return numbers.digits(rate, 4)


def _used(trial: CapacityTrial) -> Cell:
    """How much of what the promise allows was used up, and the ends of its interval."""
    cell = known(trial.excess, lambda excess: f"{_allowance(excess)}×")
    if trial.excess is None or trial.excess_low is None or trial.excess_high is None:
        return cell
    low, high = _allowance(trial.excess_low), _allowance(trial.excess_high)
    below = f"{high}×" if low == high else f"{low.removeprefix('< ')}–{high}×"
    return replace(cell, below="" if below == cell.text else below)


def _allowance(share: float) -> str:
    """How much of what is allowed was used up; below a thousandth nobody needs the digits."""
    return "< 0.001" if 0 < share < 0.001 else numbers.digits(share)
