"""drnbench's CSV and its lists of slow and fast requests, from a record.

The columns and their order are drnbench's; further ones follow. ``n_clients`` is how many clients
really asked (drnbench writes how many were asked for), times are service times in seconds over
the requests that were answered, percentages are of all requests that ended.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from searchbench.analysis.judgement import Judgement, Step
from searchbench.analysis.trial.measured import Trace, read_trace
from searchbench.record import Record, Trial

_OURS = ("p50_elapsed_time", "p90_elapsed_time", "p99_elapsed_time", "asked_n_clients", "valid")
_HEAD = (
    "n_clients",
    "total_n_requests",
    "queries_per_second",
    "min_elapsed_time",
    "max_elapsed_time",
    "average_elapsed_time",
)


def write_csv(path: Path, record: Record, judgement: Judgement) -> None:
    """One row for each trial on record."""
    steps = {step.trial: step for step in judgement.steps}
    rows = [
        _row(record, trial, steps[trial.trial]) for trial in record.trials if trial.status == "ok"
    ]
    statuses = sorted({status for _, shares, _ in rows for status in shares})
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*_HEAD, *statuses, *_OURS])
        for figures, shares, ours in rows:
            writer.writerow([*figures, *(shares.get(s, 0.0) for s in statuses), *ours])


def _row(record: Record, trial: Trial, step: Step) -> tuple[list[Any], dict[str, float], list[Any]]:
    trace = read_trace(record, trial)
    measured = trace.measured()
    ok = measured & (trace.outcome == 0)
    elapsed = (trace.done[ok] - trace.sent[ok]) / 1e9
    count = int(np.count_nonzero(measured))
    rate = np.count_nonzero(ok) / trace.window_s if trace.window_s else 0.0
    figures: list[Any] = [step.clients, count, rate]
    figures += [float(f(elapsed)) if elapsed.size else "" for f in (np.min, np.max, np.mean)]
    quantiles = np.quantile(elapsed, (0.5, 0.9, 0.99)).tolist() if elapsed.size else [""] * 3
    ours = [*quantiles, step.clients_asked, "yes" if step.status == "valid" else "no"]
    return figures, _shares(trial, trace), ours


def _shares(trial: Trial, trace: Trace) -> dict[str, float]:
    """Per cent of the requests by HTTP status; 0 where no status came, as drnbench has it.

    Statuses are counted over the whole drive, so with a warm-up they are those of both together.
    """
    outcome = trace.outcome[trace.measured()]
    if not outcome.size:
        return {}
    statuses = trial.drive.statuses if trial.drive else {}
    answered = sum(statuses.values())
    names = trial.outcomes
    without = [names.index(n) for n in names if n not in ("ok", "http_error", "partial")]
    lost = int(np.count_nonzero(np.isin(outcome, without)))
    shares = {"0": 100.0 * lost / outcome.size} if lost else {}
    for status, count in statuses.items():
        shares[str(status)] = 100.0 * count / answered * (outcome.size - lost) / outcome.size
    return shares


def listed(record: Record, slow: int, fast: int) -> str:
    """The slowest and the fastest distinct requests of the run, a line each, for a terminal."""
    took: dict[int, list[np.ndarray[Any, Any]]] = {}
    for trial in record.trials:
        if trial.status != "ok":
            continue
        trace = read_trace(record, trial)
        ok = trace.measured() & (trace.outcome == 0)
        query, elapsed = trace.query[ok], trace.done[ok] - trace.sent[ok]
        for number in np.unique(query):
            took.setdefault(int(number), []).append(elapsed[query == number])
    if not took:
        return "no request was answered\n"
    digest = next(t.queries.digest for t in record.trials)
    texts = {row["query"]: row["text"] for row in record.queries(digest)}
    by_median = sorted(
        (float(np.median(np.concatenate(parts))) / 1e9, n) for n, parts in took.items()
    )
    lines = []
    for title, chosen in (
        ("slowest requests, by their median", by_median[::-1][:slow]),
        ("fastest requests, by their median", by_median[:fast]),
    ):
        if chosen:
            lines.append(f"{title}:")
            lines += [f"  {seconds * 1e3:9.3f} ms  {texts[n][:160]}" for seconds, n in chosen]
    return "\n".join(lines) + "\n"
