"""The judgement as CSV: files with headers that stay, for spreadsheets and scripts.

Six files, a seventh (``steps``) of a sweep or a search for capacity, and of the latter an eighth;
two of operations; one more each for jobs, for classes of queries, for roles, for the stages of
writers, for readers beside them and their capacity, for faults and for overloads, where there are
any.
Numbers are written whole (``repr``), in seconds, bytes and shares 0..1; an absent number is an
empty cell. New columns are only ever added at the right.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

from searchbench.analysis.judgement import Estimate, GroupAgreement, Judgement
from searchbench.analysis.operations.model import Slope
from searchbench.report.tables.study import findings_of

# Counts of what matches (of documents: of what does not), each with "of how many" beside it.
MEASURES = (
    "total_results_match",
    "total_found_match",
    "top_10_match",
    "document_set_match",
    "document_groups_match",
    "document_mismatch",
)

_SCORES = ("score_difference_mean", "score_difference_max", "score_documents")
ORDERS = ("kendall_tau", "kendall_queries", *_SCORES)

HEADERS: dict[str, tuple[str, ...]] = {
    "treatments": (
        "treatment", "label", "system", "levels", "valid_trials", "trials",
        "figure", "unit", "value", "low", "high", "level", "n", "method",
    ),
    "trials": (
        "trial", "treatment", "block", "control", "status", "reason", "outcomes", "steady_from_s",
        "figure", "unit", "value", "low", "high", "level", "n", "method", "steadiness",
    ),
    "comparisons": (
        "a", "b", "metric", "verdict", "ratio", "low", "high", "level", "n", "method",
        "p_value", "floor", "queries_used", "queries_left_out", "queries_measured", "reason",
        "state", "state_floor", "build_floor", "would_change", "start_floor",
    ),
    "quantiles": ("treatment", "time", "quantile", "seconds", "low_s", "high_s"),
    "agreement": (
        "a", "b", "queries", "totals_match", "top_k_set_match", "top_k_order_match", "rbo_mean",
        "k", "unsupported_a", "unsupported_b", "errors_a", "errors_b", "cause", "differing",
        *(column for name in MEASURES for column in (name, f"{name}_of")),
        "max_mismatch", "median_mismatch", *(f"mismatch_{size}" for size in range(1, 11)),
        "mismatch_above_10", *ORDERS, "without_hits",
    ),
    "findings": ("severity", "kind", "trial", "number", "meaning", "remedy"),
}  # fmt: skip

# Of a sweep or a search for capacity: a row a load step. Times of quantiles are in seconds.
_STEP = (
    "system", "trial", "treatment", "block", "label", "kind", "status", "reason", "window_s",
    "clients_asked", "clients", "clients_by_littles_law", "littles_law_share", "rate_asked_per_s",
    "requests", "keeps_up", "backlog_growth", "response_growth", "client_cpu_s_per_request",
    "client_cpu_share", "run_wait_share", "steal_share", "server_cores",
)  # fmt: skip
_STEP_ESTIMATES = ("offered", "answered", "achieved", "error_share")
_STEP_TIMES = ("service", "response", "connect", "lag", "backlog")
_STEP_QUANTILES = ("p50", "p90", "p95", "p99", "p999", "max", "mean")
_STEP_ADDED = ("subject", "speed_asked", "steadiness")
STEPS = (
    *_STEP,
    "outcomes",
    *(column for name in _STEP_ESTIMATES for column in (name, f"{name}_low", f"{name}_high")),
    *(f"{time}_{quantile}" for time in _STEP_TIMES for quantile in _STEP_QUANTILES),
    *_STEP_ADDED,
)

# Of a search for capacity: a row for each configuration and promise. Rates are per second;
# ``trials``: how many were driven.
CAPACITY = (
    "subject", "promise", "holds", "fails", "chance_inside", "searches", "trials", "broken_up_to",
)  # fmt: skip


# A row for each figure of each job of a treatment: its costs, and the files after it by kind.
JOBS = (
    "job", "treatment", "label", "levels", "documents", "trials", "held_back_by", "figure", "unit",
    "value", "low", "high", "level", "n", "method",
)  # fmt: skip


# A row for each figure of each class of queries, of a treatment or of a step.
CLASSES = (
    "treatment", "trial", "label", "class", "requests", "figure", "unit", "value", "low", "high",
    "level", "n", "method",
)  # fmt: skip


# A row for each figure of each role beside the readers; times until visible are ``visible p50``, ..
_SEEN = ("markers", "unseen", "unseen_s", "resolution_s", "asks_per_s", "ask_p50_s")
_OF_READER = ("load", "asks", "left_out")
ROLES = (
    "role", "does", "treatment", "label", "levels", "idle", "trials", "how", "unasked",
    "kept_back", *_SEEN, "figure", "unit", "value", "low", "high", "level", "n", "method",
    *_OF_READER,
)  # fmt: skip

# A row for each stage of each writer with several.
_OF_STAGE = (
    "start_s", "seconds", "first_per_s", "last_per_s", "offered", "acknowledged", "service_p50_s",
    "behind_s", "readers_p50_s", "readers_p99_s",
)  # fmt: skip
ROLE_STAGES = ("role", "treatment", "label", "trials", "stage", *_OF_STAGE)

# A row for each ratio of the readers beside roles to those of the same treatment with none.
BESIDE = (
    "treatment", "label", "idle", "idle_label", "operation", "method_asked", "system", "at",
    "metric", "ratio", "low", "high", "level", "n", "method", "verdict",
)  # fmt: skip

# A row for each capacity of readers beside roles, and each of its writers.
CAPACITY_BESIDE = (
    "subject", "idle", "promise", "holds", "fails", "idle_holds", "idle_fails", "ratio", "low",
    "high", "level", "n", "method", "unresolved", "writer", "asked_per_s", "acknowledged_per_s",
    "trials", "from_per_s", "up_to_per_s", "behind_s", "short",
)  # fmt: skip

# A row for each figure of each fault of a treatment, with what became of acknowledged writes.
_LOST = (
    "acknowledged", "lost", "unapplied", "unknown", "asked", "missing", "counted", "cancels",
    "never_back", "unlooked", "uncounted", "unseen", "twice",
)  # fmt: skip
FAULTS = (
    "role", "fault", "of", "treatment", "label", "levels", "trials", "back", "requests",
    "not_within", "unknown", "why", "resolution_s", "looked_s", "trouble", "otherwise", "compared",
    *(f"writes_{name}" for name in _LOST),
    "figure", "unit", "value", "low", "high", "level", "n", "method",
)  # fmt: skip

# A row for each figure of each overload of a treatment; from ``seconds`` to ``promise`` of its
# first trial.
_OVERLOAD = ("seconds", "base_per_s", "most_per_s", "times", "limit_s", "in_time", "promise")
OVERLOADS = (
    "treatment", "label", "levels", "overload", "trials", *_OVERLOAD, "not_within", "unknown",
    "late", "figure", "unit", "value", "low", "high", "level", "n", "method",
)  # fmt: skip

# A row for each method of an operation at each number of rows, with what a further row costs.
_POINT_ESTIMATES = ("seconds", "cpu_s")
_SENT = ("received_bytes", "sent_bytes", "statements", "exchanges")
OPERATIONS = (
    "operation", "answer", "method_asked", "system", "at", "treatment", "rows", "failed",
    "failed_in",
    *(f"{name}{end}" for name in _POINT_ESTIMATES for end in ("", "_low", "_high", "_n")), *_SENT,
    "fixed_s", "per_row_s", "per_row_s_low", "per_row_s_high",
    "exponent", "exponent_low", "exponent_high",
    "worst_residual", "linear", "exponent_from_rows", "exponent_to_rows",
)  # fmt: skip

# A row for each crossing of the curves of two methods.
CROSSINGS = (
    "operation", "at", "below", "above", "by", "rows", "low", "high", "until", "but", "level",
    "method", "unresolved",
)  # fmt: skip


def write_sheets(judgement: Judgement, folder: Path) -> list[Path]:
    """Write all that the judgement has into ``folder``, replacing what was there."""
    made = [(name, HEADERS[name], make) for name, make in _MAKERS.items()]
    if judgement.measure != "trials":
        made.append(("steps", STEPS, _steps))
    if judgement.measure == "capacity":
        made.append(("capacity", CAPACITY, _capacity))
    if judgement.jobs:
        made.append(("jobs", JOBS, _jobs))
    if any(t.classes for t in judgement.treatments) or any(s.classes for s in judgement.steps):
        made.append(("classes", CLASSES, _classes))
    if judgement.roles is not None:
        of_roles = [
            ("roles", ROLES, judgement.roles.results, _roles),
            ("role_stages", ROLE_STAGES, any(r.stages for r in judgement.roles.results), _stages),
            ("beside", BESIDE, judgement.roles.beside, _beside),
            ("capacity_beside", CAPACITY_BESIDE, judgement.roles.capacity, _capacity_beside),
            ("faults", FAULTS, judgement.roles.faults, _faults),
        ]
        made += [(name, head, make) for name, head, found, make in of_roles if found]
    if judgement.overloads:
        made.append(("overloads", OVERLOADS, _overloads))
    if judgement.operations:
        made.append(("operations", OPERATIONS, _operations))
    if any(o.crossovers for o in judgement.operations):
        made.append(("crossings", CROSSINGS, _crossings))
    if judgement.first_look:  # each row says so, since a table is often all that is passed on
        return [
            _write(
                folder / f"{name}.csv",
                (*head, "first_look"),
                ((*row, "decides nothing") for row in make(judgement)),
            )
            for name, head, make in made
        ]
    return [_write(folder / f"{name}.csv", head, make(judgement)) for name, head, make in made]


def _treatments(judgement: Judgement) -> Iterable[Sequence[Any]]:
    for t in judgement.treatments:
        own = [trial for trial in t.trials if not trial.control]
        valid = sum(trial.status == "valid" for trial in own)
        head = (t.treatment, t.label, t.system, _json(t.levels), valid, len(own))
        for name, estimate in t.figures.items() or [("", None)]:
            yield (*head, name, *_estimate(estimate))


def _classes(judgement: Judgement) -> Iterable[Sequence[Any]]:
    found = [
        *((s.treatment, s.trial, s.label, s.classes) for s in judgement.steps),
        *((t.treatment, "", t.label, t.classes) for t in judgement.treatments),
    ]
    for treatment, trial, label, classes in found:
        for seen in classes:
            for name, estimate in seen.figures.items():
                head = (treatment, trial, label, seen.name, seen.requests)
                yield (*head, name, *_estimate(estimate))


def _trials(judgement: Judgement) -> Iterable[Sequence[Any]]:
    for treatment in judgement.treatments:
        for t in treatment.trials:
            head = (t.trial, t.treatment, t.block, t.control, t.status, t.reason)
            more = (_json(t.outcomes), t.steady_from_s)
            steadiness = t.steadiness.answer if t.steadiness else ""
            for name, estimate in t.figures.items() or [("", None)]:
                yield (*head, *more, name, *_estimate(estimate), steadiness)


def _comparisons(judgement: Judgement) -> Iterable[Sequence[Any]]:
    for c in judgement.comparisons:
        ratio = _estimate(c.ratio)[1:]
        used = (c.queries_used, c.queries_left_out, c.queries_measured)
        floors = (c.state, c.state_floor, c.build_floor, " ".join(c.would_change))
        row = (c.a, c.b, c.metric, c.verdict, *ratio, c.p_value, c.floor, *used, c.reason, *floors)
        yield (*row, c.start_floor)


def _quantiles(judgement: Judgement) -> Iterable[Sequence[Any]]:
    for t in judgement.treatments:
        for time, curve in (("service", t.service), ("response", t.response)):
            banded = bool(curve.low and curve.high)
            for i, (q, seconds) in enumerate(zip(curve.x, curve.y, strict=True)):
                ends = (curve.low[i], curve.high[i]) if banded else (None, None)
                yield (t.treatment, time, q, seconds, *ends)


def _agreement(judgement: Judgement) -> Iterable[Sequence[Any]]:
    for a in judgement.agreement:
        shares = (a.totals_match, a.top_k_set_match, a.top_k_order_match, a.rbo_mean, a.k)
        counts = (a.unsupported_a, a.unsupported_b, a.errors_a, a.errors_b)
        measures = _measures(a.groups)
        for cause, differing in a.causes.items() or [("", 0)]:
            row = (a.a, a.b, a.queries, *shares, *counts, cause, differing, *measures)
            yield (*row, a.without_hits)


def _measures(groups: GroupAgreement | None) -> tuple[Any, ...]:
    """From total_results_match to score_documents; empty cells where there are none."""
    if groups is None:
        header = HEADERS["agreement"]
        return (None,) * (header.index(ORDERS[-1]) + 1 - header.index(MEASURES[0]))
    return (
        *(number for name in MEASURES for number in getattr(groups, name)),
        groups.max_mismatch,
        groups.median_mismatch,
        *groups.distribution.values(),
        groups.above_10,
        *(getattr(groups, name) for name in ORDERS),
    )


def _steps(judgement: Judgement) -> Iterable[Sequence[Any]]:
    for s in judgement.steps:
        row: list[Any] = [getattr(s, name) for name in _STEP]
        row.append(_json(s.outcomes))
        for name in _STEP_ESTIMATES:
            row += _estimate(getattr(s, name))[1:4]
        for time in _STEP_TIMES:
            found = getattr(s, time)
            row += [found[q].value if q in found else None for q in _STEP_QUANTILES]
        yield row + [getattr(s, name) for name in _STEP_ADDED]


def _capacity(judgement: Judgement) -> Iterable[Sequence[Any]]:
    for c in judgement.capacity:
        *head, _, last = CAPACITY
        yield (*(getattr(c, name) for name in head), len(c.trials), getattr(c, last))


def _jobs(judgement: Judgement) -> Iterable[Sequence[Any]]:
    for r in judgement.jobs:
        held = r.bottleneck.part if r.bottleneck else ""
        head = (r.job, r.treatment, r.label, _json(r.levels), r.documents, r.trials, held)
        for name, estimate in r.figures.items():
            yield (*head, name, *_estimate(estimate))
        for what, kinds in (("files", r.files), ("lengths", r.lengths), ("running", r.running)):
            for kind, (least, most) in kinds.items():
                mean, method = (least + most) / 2, "least to greatest"
                yield (*head, f"{what} {kind}", "bytes", mean, least, most, 1.0, r.trials, method)


def _roles(judgement: Judgement) -> Iterable[Sequence[Any]]:
    for r in judgement.roles.results if judgement.roles is not None else ():
        told = ROLES[ROLES.index("idle") : ROLES.index("markers")]
        seen = [getattr(r.visible, name) if r.visible else None for name in _SEEN]
        head = (r.role, r.does, r.treatment, r.label, _json(r.levels))
        quantiles = r.visible.quantiles if r.visible else {}
        figures = {**r.figures, **{f"visible {name}": q for name, q in quantiles.items()}}
        for name, estimate in figures.items() or [("", None)]:
            row = (*head, *(getattr(r, key) for key in told), *seen, name, *_estimate(estimate))
            yield (*row, *(getattr(r, key) for key in _OF_READER))


def _stages(judgement: Judgement) -> Iterable[Sequence[Any]]:
    for r in judgement.roles.results if judgement.roles is not None else ():
        for at, stage in enumerate(r.stages, 1):
            head = (r.role, r.treatment, r.label, r.trials, at)
            yield (*head, *(getattr(stage, name) for name in _OF_STAGE))


def _beside(judgement: Judgement) -> Iterable[Sequence[Any]]:
    for b in judgement.roles.beside if judgement.roles is not None else ():
        head = (b.treatment, b.label, b.idle, b.idle_label, b.operation, b.method, b.system, b.at)
        for name in dict.fromkeys([*b.ratios, *b.judged]) or [""]:
            yield (*head, name, *_estimate(b.ratios.get(name))[1:], b.judged.get(name, ""))


def _capacity_beside(judgement: Judgement) -> Iterable[Sequence[Any]]:
    ends = CAPACITY_BESIDE[: CAPACITY_BESIDE.index("ratio")]
    kept = CAPACITY_BESIDE[CAPACITY_BESIDE.index("asked_per_s") :]
    for c in judgement.roles.capacity if judgement.roles is not None else ():
        head = (*(getattr(c, name) for name in ends), *_estimate(c.ratio)[1:], c.unresolved)
        for pace in c.paces:
            yield (*head, pace.role, *(getattr(pace, name) for name in kept))
        if not c.paces:
            yield (*head, "", *(None for _ in kept))


def _faults(judgement: Judgement) -> Iterable[Sequence[Any]]:
    for f in judgement.roles.faults if judgement.roles is not None else ():
        told = FAULTS[FAULTS.index("trials") : FAULTS.index("writes_acknowledged")]
        head = (f.role, f.fault, f.of, f.treatment, f.label, _json(f.levels))
        lost = [getattr(f.durable, name) if f.durable else None for name in _LOST]
        for name, estimate in f.figures.items() or [("", None)]:
            yield (*head, *(getattr(f, key) for key in told), *lost, name, *_estimate(estimate))


def _overloads(judgement: Judgement) -> Iterable[Sequence[Any]]:
    for o in judgement.overloads:
        head = (o.treatment, o.label, _json(o.levels), o.number, o.trials)
        more = (o.not_within, o.unknown, o.late)
        for name, estimate in o.figures.items() or [("", None)]:
            first = (getattr(o.first, key) for key in _OVERLOAD)
            yield (*head, *first, *more, name, *_estimate(estimate))


def _findings(judgement: Judgement) -> Iterable[Sequence[Any]]:
    return ([getattr(f, name) for name in HEADERS["findings"]] for f in findings_of(judgement))


_MAKERS = {
    "treatments": _treatments,
    "trials": _trials,
    "comparisons": _comparisons,
    "quantiles": _quantiles,
    "agreement": _agreement,
    "findings": _findings,
}


def _operations(judgement: Judgement) -> Iterable[Sequence[Any]]:
    for o in judgement.operations:
        for m in o.methods:
            slope = _slope(m.slope)
            for p in m.points:
                head = (o.name, o.answer, m.method, m.system, m.others if m.system else m.held)
                times = [x for e in (p.seconds, p.cpu_s) for x in (*_estimate(e)[1:4], e and e.n)]
                sent = (getattr(p, name) for name in _SENT)
                yield (
                    *head,
                    p.treatment,
                    p.rows if o.by_rows else None,
                    p.failed,
                    p.failed_in,
                    *times,
                    *sent,
                    *slope,
                )


def _slope(slope: Slope | None) -> tuple[Any, ...]:
    """From fixed_s on; empty cells where nothing is known."""
    if slope is None:
        return (None,) * (len(OPERATIONS) - OPERATIONS.index("fixed_s"))
    ends = (*_estimate(slope.per_row)[1:4], *_estimate(slope.exponent)[1:4])
    return (slope.fixed, *ends, slope.worst, slope.linear, *slope.between)


def _crossings(judgement: Judgement) -> Iterable[Sequence[Any]]:
    for o in judgement.operations:
        for c in o.crossovers:
            i = c.interval
            ends = (i.low, i.high) if i else (None, None)
            how = (i.level, i.method) if i else (None, "")
            known = (c.until or None, c.but.removeprefix("; "), *how, c.why)
            yield (o.name, c.held, c.below, c.above, c.by, c.rows, *ends, *known)


def _estimate(estimate: Estimate | None) -> tuple[Any, ...]:
    """Unit, value, low, high, level, n, method."""
    if estimate is None:
        return ("", None, None, None, None, None, "")
    i = estimate.interval
    ends = (i.low, i.high, i.level) if i else (None, None, None)
    return (estimate.unit, estimate.value, *ends, estimate.n, i.method if i else "")


def _json(value: Any) -> str:
    return orjson.dumps(dict(value), option=orjson.OPT_SORT_KEYS).decode()


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([_field(v) for v in row] for row in rows)
    return path


def _field(value: Any) -> Any:
    """One cell. A spreadsheet runs text that begins like a formula, so such text is quoted."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value
