"""The tables of a study: treatments, trials, comparisons, curves, resources."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from searchbench.analysis.compare import pairs, standing
from searchbench.analysis.judgement import (
    Bottleneck,
    Comparison,
    Estimate,
    Finding,
    Interval,
    Judgement,
    Scale,
    TreatmentResult,
    TrialResult,
)
from searchbench.analysis.trial.validity import gravest_first
from searchbench.analysis.words import of_job
from searchbench.report.document.blocks import Cell, Table
from searchbench.report.document.text import line, short
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import (
    NAME,
    NONE,
    bars,
    known,
    named,
    number,
    of_estimate,
    table,
    text,
    title_of,
)

RESOURCES = (
    "cpu_s_per_query",
    "server_cores",
    "peak_memory_bytes",
    "read_bytes",
    "write_bytes",
    "jvm_compilers_s",
    "jvm_collectors_s",
    "index_bytes",
    "ingest_documents_per_s",
    "ingest_s",
)
QUANTILES = (0.5, 0.9, 0.99, 0.999)
LESS_IS_BETTER = ("service", "response", "error", "backlog", "host")


def overview(judgement: Judgement, metric: str, *, open_loop: bool) -> Table:
    """Every treatment by the metric that decides, the best first."""
    order = ranked(judgement, metric)
    bar = bars([t.figures.get(metric) for t in order])
    others = ["throughput", "service_p50", "service_p99"]
    others += ["response_p99"] if open_loop else []
    others = [n for n in others if n != metric and any(n in t.figures for t in order)]
    failing = any((e := t.figures.get("error_share")) and e.value > 0 for t in order)
    others += ["error_share"] if failing else []

    def name(t: TreatmentResult) -> Cell:
        best = t.treatment == judgement.verdict.best
        return replace(named(t.label), tone="good", below="best") if best else named(t.label)

    return table(
        order,
        text("Treatment", name, 2.2),
        text(title_of(metric), lambda t: of_estimate(e := t.figures.get(metric), bar(e)), 2.2),
        *(number(title_of(n), partial(_figure, n), 1.3) for n in others),
        number("Valid trials", valid_trials, 0.9),
        source="treatments.csv",
    )


def ranked(judgement: Judgement, metric: str) -> list[TreatmentResult]:
    """The best first, then by one figure, those without it last.

    What is the best over the queries that agree need not have the best figure over all of them.
    """
    sign = 1 if metric.startswith(LESS_IS_BETTER) or of_job(metric) else -1

    def key(treatment: TreatmentResult) -> tuple[bool, bool, float]:
        estimate, best = treatment.figures.get(metric), judgement.verdict.best
        value = sign * estimate.value if estimate else 0.0
        return treatment.treatment != best, estimate is None, value

    return sorted(judgement.treatments, key=key)


def valid_trials(treatment: TreatmentResult) -> Cell:
    """How many of a treatment's trials count; fewer than all is marked. Twins are not counted."""
    trials = [t for t in treatment.trials if not t.control]
    valid = sum(t.status == "valid" for t in trials)
    return Cell(f"{valid} of {len(trials)}", tone="" if valid == len(trials) else "bad")


def comparisons(found: Sequence[Comparison], labels: Mapping[str, str]) -> Table:
    """Each pair: the ratio and its interval, whether it is more than noise, on which queries.

    Every row is turned so that its ratio is not below 1: nobody has to take a reciprocal.
    """
    tones: dict[str, Literal["good", "bad"]] = {"faster": "good", "slower": "bad"}

    def verdict(c: Comparison) -> Cell:
        said = [c.reason] if c.reason else []
        if c.verdict in tones and c.state == "unknown":
            said = ["how large is not sure, as steadiness is unknown"]
        if c.verdict in tones and standing.other_hits(c):
            said.append("first hits never seen to be the same")
        if c.verdict in tones and standing.other_ranking(c):
            said.append("never seen to rank hits alike")
        return Cell(c.verdict, below=line("; ".join(said)), tone=tones.get(c.verdict, "quiet"))

    def floor(c: Comparison) -> Cell:
        if c.floor > 1:
            return known(c.floor, _floor)
        return Cell("unknown", "there is no valid A/A control", tone="quiet")

    def queries(c: Comparison) -> Cell:
        if of_job(c.metric):  # asked afterwards, and not what the ratio is over
            of = c.queries_used + c.queries_left_out
            return Cell(f"{c.queries_used} of {of}", below=line("alike afterwards")) if of else NONE
        said = [f"{numbers.count(c.queries_left_out)} left out"] if c.queries_left_out else []
        if c.queries_measured is not None and c.queries_measured < c.queries_used:
            said.append(f"{numbers.count(c.queries_measured)} measured on both sides")
        return Cell(numbers.count(c.queries_used), below="; ".join(said))

    def pair(c: Comparison) -> Cell:  # in one cell, which stays in view on a phone
        against = f"against {short(labels.get(c.a, c.a), NAME)}"
        return replace(named(labels.get(c.b, c.b)), below=against)

    return table(
        map(upright, found),
        text("This", pair, 2.6),
        text("by", lambda c: Cell(title_of(c.metric)), 1.3),
        text("is", verdict, 2.6),
        number("Ratio", lambda c: of_estimate(c.ratio and replace(c.ratio, unit="ratio")), 1.6),
        number("p (Holm)", lambda c: known(c.p_value, _p_value)),
        number("Noise floor", floor),
        number("Queries", queries, 1.2),
        source="comparisons.csv",
    )


def upright(c: Comparison) -> Comparison:
    """The comparison seen from the side from which its ratio is above 1, where it has one."""
    return pairs.of(c.a, c) if c.ratio is not None and c.ratio.value < 1 else c


def quantiles(judgement: Judgement, which: Literal["service", "response"]) -> Table:
    """Quantiles with their intervals; "–" where there are too few samples for one.

    The intervals are those that the table of treatments has, so that no figure has two.
    """

    def at(quantile: float, treatment: TreatmentResult) -> Cell:
        name = numbers.quantile_name(quantile).replace(".", "")
        if (estimate := treatment.figures.get(f"{which}_{name}")) is not None:
            return of_estimate(estimate)
        curve = getattr(treatment, which)
        i = next((i for i, x in enumerate(curve.x) if abs(x - quantile) < 1e-9), None)
        if i is None:
            return Cell("–", "too few samples for this quantile", tone="quiet")
        interval = None
        if curve.low and curve.high:
            interval = Interval(curve.low[i], curve.high[i], 0.95, "order statistics")
        return of_estimate(Estimate(curve.y[i], "s", _samples(treatment), interval))

    return table(
        judgement.treatments,
        text("Treatment", lambda t: named(t.label), 2),
        *(number(numbers.quantile_name(q), partial(at, q)) for q in QUANTILES),
        number("Requests", lambda t: Cell(numbers.count(_samples(t)))),
        source="quantiles.csv",
    )


def scales(found: Sequence[Scale]) -> Table:
    """Where each curve is best, what is not resolved from that, and what a model says of it."""

    def of(s: Scale) -> Cell:
        held = ", ".join(line(str(v)) for v in s.held.values())
        return Cell(line(s.curve.label) or held or "all")

    def others(s: Scale) -> Cell:
        levels = ", ".join(numbers.digits(v) for v in s.best_not_resolved_from)
        return Cell(levels) if levels else NONE

    def best(s: Scale) -> Cell:
        below = "leads" if s.best_not_resolved_from else ""
        return replace(known(s.best, numbers.digits), below=below)

    def model(s: Scale) -> Cell:
        if s.fit is None:
            return NONE
        said = [_fitted(line(k), v, s.fit.intervals.get(k)) for k, v in s.fit.parameters.items()]
        peak = s.fit.peak
        if peak is not None:
            said.append(_fitted("peak at", peak, s.fit.intervals.get("peak")))
        return Cell(line(s.fit.model), ", ".join(said), "; ".join(said))

    return table(
        found,
        text("Of", of, 2),
        text("by", lambda s: Cell(title_of(s.metric)), 1.3),
        number("Best at", best),
        number("Not resolved from", others, 1.3),
        text("Model", model, 2.4),
        number("R²", lambda s: known(s.fit and s.fit.r_squared, "{:.3f}".format), 0.7),
    )


def resources(
    judgement: Judgement, labels: Mapping[str, str], cores: float = math.inf
) -> Table | None:
    """What each treatment cost: a column a resource, as the analysis names them.

    ``cores``: how many the machine of the servers has, where that is known.
    """
    held = judgement.resources
    names = dict.fromkeys([*RESOURCES, *(name for figures in held.values() for name in figures)])
    shown = [n for n in names if any(f.get(n) is not None for f in held.values())]
    if not shown:
        return None

    def cost(name: str, row: tuple[str, Mapping[str, Any]]) -> Cell:
        return of_estimate(row[1].get(name), most=cores if name == "server_cores" else math.inf)

    return table(
        held.items(),
        text("Treatment", lambda row: named(labels.get(row[0], row[0])), 2),
        *(number(title_of(n), partial(cost, n)) for n in shown),
    )


# What a bottleneck is called, and what more of it would mean.
_PARTS = {
    "processor": "the server's cores",
    "one thread": "one thread of the server",
    "waits": "a lock or a wait: cores were idle",
    "disk": "the disk",
    "memory": "memory: pages were read again",
    "client": "the load generator",
    "none": "nothing was used up",
    "unknown": "unknown",
}


def bottlenecks(treatments: Sequence[TreatmentResult]) -> Table | None:
    """What held each treatment back, with the figure that says so; None where nothing is known."""
    shown = [(t, t.bottleneck) for t in treatments if t.bottleneck is not None]
    if all(found.part == "unknown" for _, found in shown):
        return None

    def part(row: tuple[TreatmentResult, Bottleneck]) -> Cell:
        quiet = row[1].part in ("none", "unknown")
        tone: Literal["", "bad", "quiet"] = "bad" if row[1].part == "client" else ""
        return Cell(_PARTS[row[1].part], tone="quiet" if quiet else tone)

    return table(
        shown,
        text("Treatment", lambda row: named(row[0].label), 2),
        text("Held back by", part, 1.6),
        text("Evidence", lambda row: Cell(line(row[1].number)), 3),
        number("Trials", lambda row: Cell(f"{row[1].trials} of {row[1].of}"), 0.7),
    )


def trials(treatment: TreatmentResult, positions: Mapping[str, Any]) -> Table:
    """A row a trial, those not used with the reason why."""
    wanted = ("throughput", "service_p50", "service_p99", "response_p99", "error_share")
    names = [n for n in wanted if any(n in t.figures for t in treatment.trials)]

    def trial(t: TrialResult) -> Cell:
        position = positions.get(t.trial)
        below = "" if position is None else f"run as number {int(position) + 1}"
        return Cell(line(t.trial), below=below)

    def status(t: TrialResult) -> Cell:
        said = f"{t.status}, A/A twin" if t.control else t.status
        fails = f"the method fails: {t.failed}" if t.failed else ""
        good = t.status == "valid" and not fails
        return Cell(said, below=line(t.reason or fails), tone="" if good else "bad")

    def outcomes(t: TrialResult) -> Cell:
        return Cell(", ".join(f"{line(k)} {v:,}" for k, v in t.outcomes.items() if v) or "–")

    return table(
        treatment.trials,
        text("Trial", trial, 1.6),
        number("Block", lambda t: Cell(str(t.block)), 0.6),
        text("Status", status, 2.4),
        *(number(title_of(n), partial(_figure, n)) for n in names),
        text("Outcomes", outcomes, 1.6),
        source="trials.csv",
    )


def steadiness(judgement: Judgement) -> Table:
    """Of each treatment how many trials were steady, and how often each query was asked."""

    def trials(answer: str, t: TreatmentResult) -> Cell:
        each = [trial.steadiness.answer == answer for trial in t.trials if trial.steadiness]
        return Cell(f"{sum(each)} of {len(each)}") if each else NONE

    return table(
        judgement.treatments,
        text("Treatment", lambda t: named(t.label), 2),
        *(number(a.capitalize(), partial(trials, a)) for a in ("steady", "not steady", "unknown")),
        number("First asks", partial(_figure, "first_asks")),
        number(title_of("requests_per_query"), partial(_figure, "requests_per_query"), 1.3),
        source="trials.csv",
    )


def asks(judgement: Judgement) -> Table:
    """Of each treatment how long a first ask took, and those that followed it."""
    every = {name for t in judgement.treatments for name in t.figures}
    later = [n for n in range(2, 101) if f"ask_{n}_mean" in every]
    return table(
        judgement.treatments,
        text("Treatment", lambda t: named(t.label), 2),
        number("First ask, median", partial(_figure, "service_p50"), 1.2),
        number("mean", partial(_figure, "service_mean"), 1.2),
        *(number(f"Ask {n}, mean", partial(_figure, f"ask_{n}_mean"), 1.2) for n in later),
        source="trials.csv",
    )


def warmups(judgement: Judgement) -> Table:
    """Of each treatment how long it took to become fast, and how long it was warmed up."""

    def reached(name: str, t: TreatmentResult) -> Cell:
        cell, of = _figure(name, t), sum(trial.counts for trial in t.trials)
        n = sum(trial.counts and name in trial.figures for trial in t.trials)
        some = f"in {n} of {of} trials{f': {cell.below}' if cell.below else ''}"
        return cell if n == of or not n else replace(cell, below=some)

    return table(
        judgement.treatments,
        text("Treatment", lambda t: named(t.label), 2),
        number("Two thirds of the peak after", partial(reached, "two_thirds_s"), 1.5),
        number("requests", partial(_figure, "two_thirds_requests"), 1.2),
        number("Steady after", partial(reached, "steady_s"), 1.2),
        number("requests", partial(_figure, "steady_requests"), 1.2),
        number("Warm-up", partial(_figure, "warmup_s")),
    )


def excluded(found: Iterable[tuple[Mapping[str, Any], str]]) -> Table:
    """Crossings that were not run, each with the reason."""
    return table(
        (
            (", ".join(f"{line(k)} = {line(str(v))}" for k, v in held.items()), why)
            for held, why in found
        ),
        text("Levels", lambda row: Cell(row[0]), 2),
        text("Why it was not run", lambda row: Cell(line(row[1])), 3),
    )


def findings_of(judgement: Judgement) -> tuple[Finding, ...]:
    """Every finding of the study and of its trials, once each, the most severe first."""
    own = [f for t in judgement.treatments for trial in t.trials for f in trial.findings]
    return gravest_first(dict.fromkeys([*judgement.findings, *own]))


def _figure(name: str, of: TreatmentResult | TrialResult) -> Cell:
    return of_estimate(of.figures.get(name))


def _samples(treatment: TreatmentResult) -> int:
    return sum(t.outcomes.get("ok", 0) for t in treatment.trials if t.counts)


def _p_value(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _floor(ratio: float) -> str:
    return f"±{numbers.digits(100 * (ratio - 1), 2)} %"


def _fitted(name: str, value: float, span: Interval | None) -> str:
    ends = f" ({numbers.digits(span.low)} to {numbers.digits(span.high)})" if span else ""
    return f"{name} {numbers.digits(value)}{ends}"
