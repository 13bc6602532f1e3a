"""A record and its judgement as tables: pandas DataFrames, or pyarrow."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from searchbench.analysis.judge import judge
from searchbench.analysis.judgement import Comparison, Judgement, TreatmentResult, TrialResult
from searchbench.errors import NotInstalled
from searchbench.record import Record, open_record

if TYPE_CHECKING:
    import pandas as pd


def frames(record: Record | Path | str, judged: Judgement | None = None) -> dict[str, pd.DataFrame]:
    """Tables of a record, or of the folder of one, as pandas DataFrames; see ``tables``.

    NotInstalled without pandas; RecordError as ``judge`` raises it.
    """
    try:
        import pandas  # noqa: F401
    except ImportError:
        raise NotInstalled(
            "pandas is not installed: install it (pip install pandas), or take pyarrow tables "
            "from searchbench.analysis.frames.tables"
        ) from None
    return {name: table.to_pandas() for name, table in tables(record, judged).items()}


def tables(record: Record | Path | str, judged: Judgement | None = None) -> dict[str, pa.Table]:
    """Tables of a record, or of the folder of one, as pyarrow.

    ``samples``: every request of every trial with trial, treatment, block, control, measured and
    status as judged; ``trials``: a row a trial with its figures; ``treatments``: a row
    a treatment with each figure and its interval (``_low``, ``_high``); ``comparisons``.
    """
    record = record if isinstance(record, Record) else open_record(record)
    judged = judged or judge(record)
    return {
        "samples": _samples(record, judged),
        "trials": _table([_trial_row(of, t) for of in judged.treatments for t in of.trials]),
        "treatments": _table([_treatment_row(judged, of) for of in judged.treatments]),
        "comparisons": _table([_comparison_row(c) for c in judged.comparisons]),
    }


def _samples(record: Record, judged: Judgement) -> pa.Table:
    """Every request of every trial that was driven; instants in ns since its drive began."""
    windows = {t.trial: t.window for t in record.trials}
    tables = []
    for trial in (t for treatment in judged.treatments for t in treatment.trials):
        if trial.status == "failed":
            continue
        table = record.samples(trial.trial)
        n, window = table.num_rows, windows[trial.trial]
        due = table.column("due").fill_null(-1).to_numpy()
        measured = due >= 0
        if window is not None:
            measured = (due >= window.start) & (due < window.end)
        columns: dict[str, Any] = {
            "trial": _repeated(trial.trial, n),
            "treatment": _repeated(trial.treatment, n),
            "block": pa.array(np.full(n, trial.block, dtype=np.int32)),
            "control": pa.array(np.full(n, trial.control)),
            "status": _repeated(trial.status, n),
            "measured": pa.array(measured),
        }
        for name, column in columns.items():
            table = table.append_column(name, column)
        tables.append(table)
    return pa.concat_tables(tables, promote_options="default") if tables else pa.table({})


def _trial_row(treatment: TreatmentResult, trial: TrialResult) -> dict[str, Any]:
    """Where a trial belongs, its status and its figures (times in s)."""
    return {
        "trial": trial.trial,
        "treatment": trial.treatment,
        "label": treatment.label,
        "system": treatment.system,
        "block": trial.block,
        "control": trial.control,
        "status": trial.status,
        "reason": trial.reason,
        "steady_from_s": trial.steady_from_s,
        "steadiness": trial.steadiness.answer if trial.steadiness else None,
        **{f"level.{factor}": level for factor, level in treatment.levels.items()},
        **{name: figure.value for name, figure in trial.figures.items()},
    }


def _treatment_row(judged: Judgement, treatment: TreatmentResult) -> dict[str, Any]:
    """A treatment's levels, its figures, and their intervals."""
    row: dict[str, Any] = {
        "treatment": treatment.treatment,
        "label": treatment.label,
        "system": treatment.system,
        "valid_trials": sum(t.counts for t in treatment.trials),
        **{f"level.{factor}": level for factor, level in treatment.levels.items()},
    }
    figures = {**treatment.figures, **judged.resources.get(treatment.treatment, {})}
    for name, figure in figures.items():
        row[name] = figure.value
        if figure.interval is not None:
            row[f"{name}_low"], row[f"{name}_high"] = figure.interval.low, figure.interval.high
    return row


def _comparison_row(c: Comparison) -> dict[str, Any]:
    row = {f.name: getattr(c, f.name) for f in dataclasses.fields(c) if f.name != "ratio"}
    span = c.ratio.interval if c.ratio else None
    row["would_change"] = " ".join(c.would_change)
    row["blocks_needed"] = c.blocks_needed and c.blocks_needed[0]
    row["ratio"] = c.ratio.value if c.ratio else None
    row["ratio_low"], row["ratio_high"] = (span.low, span.high) if span else (None, None)
    return row


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows that need not have the same keys; a column of mixed kinds becomes text."""
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        kinds = {type(v) for v in values if v is not None}
        if len(kinds) > 1:
            one: type = float if kinds <= {int, float} else str
            values = [None if v is None else one(v) for v in values]
        columns[name] = pa.array(values)
    return pa.table(columns)


def _repeated(text: str, n: int) -> Any:
    return pa.DictionaryArray.from_arrays(np.zeros(n, dtype=np.int32), [text])
