"""From a record and its judged treatments to operations: curves, costs, crossings, rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.judgement import Estimate, Interval, TreatmentResult, TrialResult
from searchbench.analysis.operations import rows as of_rows
from searchbench.analysis.operations.model import MethodCurve, OperationResult, Point, Slope
from searchbench.analysis.operations.statements import statement_times
from searchbench.analysis.stats.distributions import student
from searchbench.analysis.stats.intervals import LEVEL, geometric_estimate
from searchbench.analysis.trial.by_system import not_measured
from searchbench.analysis.trial.operations import failure, over_trials
from searchbench.record import Record, Trial
from searchbench.study.plan import Treatment

Floats = NDArray[np.float64]
LEAST_LEVELS = 3
LEAST_NOISE = 1e-3  # relative; a time is not known better than that


def results(
    record: Record, treatments: Sequence[TreatmentResult], trials: Mapping[str, Sequence[Trial]]
) -> tuple[OperationResult, ...]:
    """One for each operation of the study, in its order; nothing where there is none.

    What crosses follows from the comparisons: ``crossing.judged``.
    """
    planned = {t.id: t for t in record.plan.treatments}
    names = dict.fromkeys(t.operation["name"] for t in planned.values() if t.operation)
    found = []
    for name in names:
        own = [t for t in treatments if planned[t.treatment].operation.get("name") == name]
        for_rows = _for_rows(own, planned)
        curves = _curves(record, own, planned, trials, for_rows)
        returned: dict[str, list[of_rows.Returned]] = {}
        compared = 0
        for t in own:
            captured = [x for x in trials.get(t.treatment, ()) if x.captured is not None]
            if captured:
                first = captured[0]
                plan = planned[t.treatment]
                method, held = _method(plan), _held(t, name, for_rows)
                label = f"{method}, {held}" if held else method
                answers = of_rows.every_way(record, captured, label, held)
                compared += any(one.answers for one in answers)
                returned.setdefault(f"{first.corpus.digest} {first.queries.digest}", []).extend(
                    answers
                )
        answer = str(planned[own[0].treatment].operation.get("answer", "set"))
        ordered = answer == "order"
        found.append(
            OperationResult(
                name=name,
                answer=answer,
                methods=tuple(curves),
                differing=tuple(
                    d
                    for each in returned.values()
                    for d in of_rows.differing(each, ordered=ordered)
                ),
                compared=compared,
                by_rows=bool(planned[own[0].treatment].operation.get("key", True)),
            )
        )
    return tuple(found)


def _curves(
    record: Record,
    treatments: Sequence[TreatmentResult],
    planned: Mapping[str, Treatment],
    trials: Mapping[str, Sequence[Trial]],
    for_rows: AbstractSet[str],
) -> list[MethodCurve]:
    groups: dict[tuple[str, str, str, str], list[Point]] = {}
    for t in treatments:
        plan = planned[t.treatment]
        name = plan.operation["name"]
        own = trials.get(t.treatment, ())
        point = _point(record, t, _rows(plan), own)
        if point is not None:
            system = str(t.levels.get("system", ""))
            held = _held(t, name, for_rows)
            others = _held(t, name, for_rows | {"system"})
            key = (_method(plan), held, system, others)
            groups.setdefault(key, []).append(point)
    found = []
    for (method, held, system, others), points in groups.items():
        ordered = tuple(sorted(points, key=lambda p: p.rows))
        found.append(MethodCurve(method, held, ordered, _slope(ordered), system, others))
    return found


def _method(planned: Treatment) -> str:
    return str(planned.operation["method"])


def _rows(planned: Treatment) -> int:
    return int(planned.operation.get("rows", 1))


def _for_rows(
    treatments: Sequence[TreatmentResult], planned: Mapping[str, Treatment]
) -> frozenset[str]:
    """The linked factors that stand for the number of rows: each level is called as it is.

    One level that happens to be called so is not enough: 10 clients beside 10 rows are no rows.
    """
    called: dict[str, bool] = {}
    for t in treatments:
        for path, level in t.levels.items():
            as_rows = "." not in path and str(level) == str(_rows(planned[t.treatment]))
            called[path] = called.get(path, True) and as_rows
    return frozenset(path for path, all_of in called.items() if all_of)


def _held(t: TreatmentResult, name: str, but: AbstractSet[str]) -> str:
    """The levels that are neither the method nor the rows, as a label; ``but``: nor these."""
    left = {"method", "operation", f"operations.{name}.rows", *but}
    return ", ".join(
        str(level) if path == "system" else f"{path.rpartition('.')[2]}={_plain(level)}"
        for path, level in t.levels.items()
        if path not in left
    )


def _plain(level: object) -> str:
    """A level as the labels of treatments have it."""
    return str(level).lower() if isinstance(level, bool) else str(level)


def _point(record: Record, t: TreatmentResult, rows: int, trials: Sequence[Trial]) -> Point | None:
    own = [(x, r) for x in trials for r in t.trials if r.trial == x.trial and not x.control]
    if not own:
        return None
    median = all("service_p50" in r.figures for _, r in own if r.counts)
    name = "service_p50" if median else "service_mean"
    values = {x.block: r.figures[name].value for x, r in own if r.counts and name in r.figures}
    about = next((x.operation for x, _ in own if x.operation is not None), None)
    failed = over_trials(trials, t.trials, log=True)
    failed = failed or next((said for x, r in own if (said := failure(x, r.outcomes))), "")
    if not values and not failed:
        bad = (x for x, _ in own if x.status == "failed" and not not_measured(x))
        failed = next((f"{x.stage}: {x.reason}" for x in bad), "")
    # The server's CPU is of the whole window: of set-up and clean-up, and of roles beside it, too.
    shared = any(not run.idle for x, _ in own for run in x.beside)
    only = not shared and not (about and about.untimed)
    cpu = [
        r.figures["cpu_s_per_query"].value
        for _, r in own
        if only and r.counts and "cpu_s_per_query" in r.figures
    ]
    received = [_received(record, x) for x, r in own if r.counts and values]
    return Point(
        treatment=t.treatment,
        rows=rows,
        seconds=geometric_estimate([*values.values()], "s") if values else None,
        by_block=values,
        median=median,
        cpu_s=geometric_estimate(cpu, "s") if cpu and min(cpu) > 0 else None,
        received_bytes=float(np.mean(received)) if received else None,
        sent_bytes=about.sent_bytes if about else 0,
        statements=about.statements if about else 0,
        exchanges=about.exchanges if about else 0,
        failed="" if values else failed,
        failed_in=_failed_in([r for _, r in own if r.counts]) if values else "",
        parts=statement_times(record, [x for x, r in own if r.counts]) if values else (),
        untimed=about.untimed if about else 0,
    )


def _failed_in(trials: Sequence[TrialResult]) -> str:
    """In how many of these the method failed, and why it did first; "" where it did in none."""
    said = [r.failed for r in trials if r.failed]
    return f"in {len(said)} of {len(trials)} trials: {said[0]}" if said else ""


def _received(record: Record, trial: Trial) -> float:
    """Bytes of an answer, on average, of those that came whole."""
    table = record.samples(trial.trial, ["bytes", "outcome"])
    well = table.column("outcome").to_numpy() == 0
    return float(table.column("bytes").to_numpy()[well].mean()) if well.any() else 0.0


def _slope(points: Sequence[Point]) -> Slope | None:
    """What a row costs; None below three numbers of rows, or where some times are medians and
    others means: of times that scatter these differ, whatever the rows cost.
    """
    if len({p.median for p in points if p.seconds is not None}) > 1:
        return None
    known = [(p.rows, p.seconds.value, p.by_block) for p in points if p.seconds is not None]
    if len(known) < LEAST_LEVELS:
        return None
    n = np.array([rows for rows, _, _ in known], dtype=np.float64)
    t = np.array([seconds for _, seconds, _ in known])
    solution, terms = _line(n, t)
    errors = terms @ solution - 1
    df = n.size - 2
    noise = max(float(np.sum(errors**2)) / df, LEAST_NOISE**2)
    covariance = noise * np.linalg.pinv(terms.T @ terms)
    half = student(0.5 + LEVEL / 2, df) * math.sqrt(float(covariance[1, 1]))
    span = Interval(float(solution[1]) - half, float(solution[1]) + half, LEVEL, "t over levels")
    # What all levels of a block share, no level shows.
    blocks = set.intersection(*(set(by_block) for _, _, by_block in known))
    over = _mean_interval([
        float(_line(n, np.array([by_block[k] for _, _, by_block in known]))[0][1])
        for k in sorted(blocks)
    ])  # fmt: skip
    if over is not None:
        span = Interval(min(span.low, over.low), max(span.high, over.high), LEVEL,
                        "the wider of t over levels and t over blocks")  # fmt: skip
    per_row = Estimate(float(solution[1]), "s", n.size, span)
    (a, _, blocks_a), (b, _, blocks_b) = known[-2:]
    shared = sorted(set(blocks_a) & set(blocks_b))
    steps = [math.log(blocks_b[k] / blocks_a[k]) / math.log(b / a) for k in shared]
    exponent = None
    if steps:
        mean = float(np.mean(steps))
        exponent = Estimate(mean, "", len(steps), _mean_interval(steps))
    worst = float(np.max(np.abs(errors)))
    return Slope(float(solution[0]), per_row, worst, exponent, (a, b))


def _line(n: Floats, t: Floats) -> tuple[Floats, Floats]:
    """Fixed and for each row, by least squares of the relative errors; and the terms."""
    terms = np.column_stack([np.ones_like(n), n]) / t[:, None]
    solution, *_ = np.linalg.lstsq(terms, np.ones_like(t), rcond=None)
    return np.asarray(solution, np.float64), terms


def _mean_interval(values: Sequence[float]) -> Interval | None:
    if len(values) < 2:
        return None
    x = np.asarray(values)
    half = student(0.5 + LEVEL / 2, x.size - 1) * float(x.std(ddof=1)) / math.sqrt(x.size)
    return Interval(float(x.mean()) - half, float(x.mean()) + half, LEVEL, "t over blocks")
