"""The tables of the report, each from judgement data alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from searchbench.analysis.judgement import (
    Agreement,
    Comparison,
    Difference,
    Estimate,
    Finding,
    Interval,
    Judgement,
    Scale,
    TreatmentResult,
)
from searchbench.report.document.blocks import Cell, Column, Table
from searchbench.report.document.text import line, short
from searchbench.report.tables import numbers
from searchbench.report.tables.cells import (
    NAME,
    NONE,
    named,
    of_estimate,
    of_value,
    quantile_at,
    spans,
    title_of,
)

RESOURCES = (
    "cpu_s_per_query",
    "server_cores",
    "peak_rss_bytes",
    "read_bytes",
    "write_bytes",
    "index_bytes",
    "ingest_documents_per_s",
    "ingest_s",
)
QUANTILES = (0.5, 0.9, 0.99, 0.999)
LESS_IS_BETTER = ("service", "response", "error", "backlog", "host")


def overview(judgement: Judgement, metric: str, *, open_loop: bool) -> Table:
    """Every treatment by the metric that decides, the best first."""
    order = ranked(judgement, metric)
    bars = spans([t.figures.get(metric) for t in order])
    others = ["throughput", "service_p50", "service_p99"]
    others += ["response_p99"] if open_loop else []
    others = [name for name in others if name != metric]
    others = [name for name in others if any(name in t.figures for t in order)]
    failing = any((e := t.figures.get("error_share")) and e.value > 0 for t in order)
    others += ["error_share"] if failing else []
    columns = [Column("Treatment", weight=2.2), Column(title_of(metric), weight=2.2)]
    columns += [Column(title_of(name), number=True, weight=1.3) for name in others]
    columns += [Column("Valid trials", number=True, weight=0.9)]
    rows = []
    for treatment, bar in zip(order, bars, strict=True):
        best = treatment.treatment == judgement.verdict.best
        cells = [
            replace(
                named(treatment.label),
                tone="good" if best else "",
                below="best" if best else "",
            ),
            of_estimate(treatment.figures.get(metric), bar),
            *(of_estimate(treatment.figures.get(name)) for name in others),
            valid_trials(treatment),
        ]
        rows.append(tuple(cells))
    return Table(tuple(columns), tuple(rows))


def ranked(judgement: Judgement, metric: str) -> list[TreatmentResult]:
    """The treatments by one figure, the best first, those without it last."""
    rising = metric.startswith(LESS_IS_BETTER)

    def key(treatment: TreatmentResult) -> tuple[bool, float]:
        estimate = treatment.figures.get(metric)
        if estimate is None:
            return True, 0.0
        return False, estimate.value if rising else -estimate.value

    return sorted(judgement.treatments, key=key)


def valid_trials(treatment: TreatmentResult) -> Cell:
    """How many of a treatment's trials count; fewer than all is marked. Twins are not counted."""
    trials = [t for t in treatment.trials if not t.control]
    valid = sum(t.status == "valid" for t in trials)
    return Cell(f"{valid} of {len(trials)}", tone="" if valid == len(trials) else "bad")


def comparisons(found: Sequence[Comparison], labels: Mapping[str, str]) -> Table:
    """Each pair: the ratio and its interval, whether it is more than noise, on which queries."""
    columns = (
        Column("This", weight=2),
        Column("against", weight=2),
        Column("by", weight=1.3),
        Column("is", weight=1.5),
        Column("Ratio", number=True, weight=1.6),
        Column("p (Holm)", number=True),
        Column("Noise floor", number=True),
        Column("Queries", number=True, weight=1.2),
    )
    tones: dict[str, Literal["", "good", "bad", "quiet"]] = {"faster": "good", "slower": "bad"}
    rows = []
    for c in found:
        used = numbers.count(c.queries_used)
        left = f"{numbers.count(c.queries_left_out)} left out" if c.queries_left_out else ""
        rows.append(
            (
                named(labels.get(c.b, c.b)),
                named(labels.get(c.a, c.a)),
                Cell(title_of(c.metric)),
                Cell(c.verdict, below=line(c.reason), tone=tones.get(c.verdict, "quiet")),
                NONE if c.ratio is None else _ratio(c.ratio),
                NONE if c.p_value is None else _p_value(c.p_value),
                Cell(f"±{numbers.digits(100 * (c.floor - 1), 2)} %", repr(c.floor)),
                Cell(used, below=left),
            )
        )
    return Table(columns, tuple(rows))


def quantiles(judgement: Judgement, which: Literal["service", "response"]) -> Table:
    """Quantiles with their intervals; "–" where there are too few samples for one."""
    columns = [Column("Treatment", weight=2)]
    columns += [Column(numbers.quantile_name(q), number=True) for q in QUANTILES]
    columns += [Column("Requests", number=True)]
    rows = []
    for treatment in judgement.treatments:
        curve = getattr(treatment, which)
        cells = [named(treatment.label)]
        for q in QUANTILES:
            at = quantile_at(curve.x, q)
            if at is None:
                cells.append(Cell("–", "too few samples for this quantile", tone="quiet"))
                continue
            interval = None
            if curve.low and curve.high:
                interval = Interval(curve.low[at], curve.high[at], 0.95, "order statistics")
            cells.append(of_estimate(Estimate(curve.y[at], "s", _samples(treatment), interval)))
        cells.append(Cell(numbers.count(_samples(treatment))))
        rows.append(tuple(cells))
    return Table(tuple(columns), tuple(rows))


def agreement(found: Sequence[Agreement], labels: Mapping[str, str]) -> Table:
    """A row a pair: the shares of queries on which both return the same."""
    k = max((a.k for a in found), default=10)
    columns = (
        Column("Pair", weight=2.6),
        Column("Queries", number=True),
        Column("Same total", number=True),
        Column(f"Same top {k}", number=True),
        Column("Same order", number=True),
        Column("RBO", number=True),
        Column("Cannot express", number=True, weight=1.2),
        Column("Errors", number=True),
        Column("Causes of difference", weight=2),
    )
    rows = []
    for a in found:
        causes = sorted(a.causes.items(), key=lambda item: -item[1])
        rows.append(
            (
                Cell(
                    short(a.label_a or labels.get(a.a, a.a), NAME),
                    below="and " + short(a.label_b or labels.get(a.b, a.b), NAME),
                ),
                Cell(numbers.count(a.queries)),
                *(_share(s) for s in (a.totals_match, a.top_k_set_match, a.top_k_order_match)),
                Cell(f"{a.rbo_mean:.3f}", repr(a.rbo_mean)),
                _both(a.unsupported_a, a.unsupported_b),
                _both(a.errors_a, a.errors_b),
                Cell(", ".join(f"{line(c)} {n:,}" for c, n in causes) or "none"),
            )
        )
    return Table(columns, tuple(rows))


def side_by_side(difference: Difference, a: str, b: str) -> Table:
    """The hits of one query from two systems, rank by rank; a hit the other lacks is marked."""
    ids_a = {hit for hit, _ in difference.hits_a}
    ids_b = {hit for hit, _ in difference.hits_b}
    columns = (
        Column("Rank", number=True, weight=0.4),
        Column(short(a, NAME), weight=2),
        Column("Score", number=True, weight=0.7),
        Column(short(b, NAME), weight=2),
        Column("Score", number=True, weight=0.7),
    )
    total = (
        Cell("total"),
        *_total(difference.total_a, difference.total_b),
        *_total(difference.total_b, difference.total_a),
    )
    rows = [total]
    for i in range(max(len(difference.hits_a), len(difference.hits_b))):
        left = _hit(difference.hits_a, i, ids_b)
        right = _hit(difference.hits_b, i, ids_a)
        rows.append((Cell(str(i + 1)), *left, *right))
    return Table(columns, tuple(rows))


def scales(found: Sequence[Scale]) -> Table:
    """Where each curve is best, what cannot be told from that, and where a model sees its peak."""
    columns = (
        Column("Of", weight=2),
        Column("by", weight=1.3),
        Column("Best at", number=True),
        Column("Not resolved from", number=True, weight=1.3),
        Column("Model", weight=2.4),
        Column("R²", number=True, weight=0.7),
    )
    rows = []
    for s in found:
        held = ", ".join(line(str(v)) for v in s.held.values())
        model, r_squared = NONE, NONE
        if s.fit:
            fitted = ", ".join(
                f"{line(k)} {numbers.digits(v)}" for k, v in s.fit.parameters.items()
            )
            peak = f"peak at {numbers.digits(s.fit.peak)}" if s.fit.peak is not None else ""
            below = f"{fitted}{'; ' if peak else ''}{peak}"
            model = Cell(line(s.fit.model), fitted, below=below)
            r_squared = Cell(f"{s.fit.r_squared:.3f}", repr(s.fit.r_squared))
        others = ", ".join(numbers.digits(v) for v in s.best_not_resolved_from)
        rows.append(
            (
                Cell(line(s.curve.label) or held or "all"),
                Cell(title_of(s.metric)),
                Cell(numbers.digits(s.best), repr(s.best)),
                Cell(others) if others else NONE,
                model,
                r_squared,
            )
        )
    return Table(columns, tuple(rows))


def resources(judgement: Judgement, labels: Mapping[str, str]) -> Table | None:
    """What each treatment cost: a column a resource, as the analysis names them."""
    names = list(RESOURCES)
    for figures in judgement.resources.values():
        names += [name for name in figures if name not in names]
    shown = [n for n in names if any(f.get(n) is not None for f in judgement.resources.values())]
    if not shown:
        return None
    columns = [Column("Treatment", weight=2)]
    columns += [Column(title_of(name), number=True) for name in shown]
    rows = []
    for treatment, figures in judgement.resources.items():
        cells = [named(labels.get(treatment, treatment))]
        cells += [of_value(name, figures.get(name)) for name in shown]
        rows.append(tuple(cells))
    return Table(tuple(columns), tuple(rows))


def trials(treatment: TreatmentResult, positions: Mapping[str, Any]) -> Table:
    """A row a trial, those not used with the reason why."""
    names: list[str] = []
    for trial in treatment.trials:
        names += [n for n in trial.figures if n not in names]
    wanted = ("throughput", "service_p50", "service_p99", "response_p99", "error_share")
    names = [n for n in wanted if n in names]
    columns = [Column("Trial", weight=1.6), Column("Block", number=True, weight=0.6)]
    columns += [Column("Status", weight=2.4)]
    columns += [Column(title_of(n), number=True) for n in names]
    columns += [Column("Outcomes", weight=1.6)]
    rows = []
    for t in treatment.trials:
        status = t.status if not t.control else f"{t.status}, A/A twin"
        outcomes = ", ".join(f"{line(k)} {v:,}" for k, v in t.outcomes.items() if v)
        rows.append(
            (
                Cell(line(t.trial), below=_position(positions.get(t.trial))),
                Cell(str(t.block)),
                Cell(status, below=line(t.reason), tone="" if t.status == "valid" else "bad"),
                *(of_estimate(t.figures.get(n)) for n in names),
                Cell(outcomes or "–"),
            )
        )
    return Table(tuple(columns), tuple(rows))


def excluded(found: Iterable[tuple[Mapping[str, Any], str]]) -> Table:
    """Crossings that were not run, each with the reason."""
    columns = (Column("Levels", weight=2), Column("Why it was not run", weight=3))
    rows = tuple(
        (Cell(", ".join(f"{line(k)} = {line(str(v))}" for k, v in levels.items())), Cell(line(why)))
        for levels, why in found
    )
    return Table(columns, rows)


def findings_of(judgement: Judgement) -> list[Finding]:
    """Every finding of the study and of its trials, once each, the most severe first."""
    found = list(judgement.findings)
    for treatment in judgement.treatments:
        for trial in treatment.trials:
            found += trial.findings
    order = {"invalid": 0, "warning": 1, "note": 2}
    return sorted(dict.fromkeys(found), key=lambda f: order[f.severity])


def _samples(treatment: TreatmentResult) -> int:
    used = [t for t in treatment.trials if t.status == "valid" and not t.control]
    return sum(t.outcomes.get("ok", 0) for t in used)


def _ratio(ratio: Estimate) -> Cell:
    cell = of_estimate(Estimate(ratio.value, "ratio", ratio.n, ratio.interval))
    return Cell(cell.text, cell.exact, cell.below)


def _p_value(p: float) -> Cell:
    return Cell("< 0.001" if p < 0.001 else f"{p:.3f}", repr(p))


def _share(share: float) -> Cell:
    return Cell(numbers.percent(share), repr(share), tone="" if share >= 1 else "bad")


def _both(a: int, b: int) -> Cell:
    return Cell("none") if not a and not b else Cell(f"{a:,} and {b:,}", tone="bad")


def _total(this: int | None, other: int | None) -> tuple[Cell, Cell]:
    text = "not reported" if this is None else numbers.counted(this, "match", "matches")
    return Cell(text, tone="" if this == other else "bad"), Cell("")


def _hit(
    hits: Sequence[tuple[str, float | None]], rank: int, others: set[str]
) -> tuple[Cell, Cell]:
    if rank >= len(hits):
        return Cell(""), Cell("")
    name, score = hits[rank]
    cell = Cell(short(name, 120), tone="" if name in others else "bad")
    return cell, NONE if score is None else Cell(f"{score:.4g}", repr(score))


def _position(position: Any) -> str:
    return "" if position is None else f"run as number {int(position) + 1}"
