"""Trials of operations: a method that fails at a size is a result, and no invalid trial."""

from __future__ import annotations

from collections.abc import Mapping

from searchbench.analysis.judgement import Finding
from searchbench.record import Trial


def failure(trial: Trial, counts: Mapping[str, int]) -> str:
    """Why a method failed in a trial, in the server's words; "" where any operation succeeded."""
    if trial.operation is None or counts.get("ok") or not counts:
        return ""
    # What only a part of a system answered is an answer, but for one that says why it is none.
    if counts.get("partial") and "partial" not in trial.said:
        return ""
    worst = max(counts, key=lambda name: counts[name])
    if worst in trial.said:
        return trial.said[worst]
    if worst in ("timed_out", "unfinished"):
        limit = trial.load.timeout_s
        return f"it took longer than {limit:g} s (`timeout_s`)" if limit else "it timed out"
    return worst.replace("_", " ")


def failed(trial: Trial, counts: Mapping[str, int]) -> Finding | None:
    """The finding of a trial whose operations all failed; None of any other."""
    why = failure(trial, counts)
    if not why:
        return None
    about, total = trial.operation, sum(counts.values())
    assert about is not None
    return Finding(
        "operation failed",
        "note",
        trial.trial,
        f"{total:,} of {total:,}",
        f"{about.method} does not answer {about.rows:,} rows here: {why}.",
        "",
    )
