"""Trials of operations: a method that fails at a size is a result, and no invalid trial."""

from __future__ import annotations

from collections.abc import Mapping

from searchbench.analysis.judgement import Finding
from searchbench.analysis.trial.kinds import ENDED
from searchbench.record import Trial


def failure(trial: Trial, counts: Mapping[str, int]) -> str:
    """Why a method failed in a trial, in the server's words; "" where any operation succeeded."""
    if trial.operation is None or counts.get("ok") or not counts:
        return ""
    # What only a part of a system answered is an answer, but for one that says why it is none.
    if counts.get("partial") and "partial" not in trial.said:
        return ""
    if (ended := _ended(trial)) is not None:
        return f"the server ended{ended and f'; {ended}'}"
    worst = max(counts, key=lambda name: counts[name])
    if worst in trial.said:
        return trial.said[worst]
    if worst in ("timed_out", "unfinished"):
        limit = trial.load.timeout_s
        return f"it took longer than {limit:g} s (`timeout_s`)" if limit else "it timed out"
    return worst.replace("_", " ")


def failed(trial: Trial, counts: Mapping[str, int]) -> tuple[Finding, ...]:
    """The findings of a trial whose operations all failed; none of any other.

    Where it took its server with it, that is a finding too: whoever runs it is to hear of it.
    """
    why = failure(trial, counts)
    if not why:
        return ()
    about, total = trial.operation, sum(counts.values())
    assert about is not None
    said = f"{about.method} does not answer {about.rows:,} rows here: {why}."
    found = Finding("operation failed", "note", trial.trial, f"{total:,} of {total:,}", said, "")
    gone = tuple(
        Finding(note.kind, "note", trial.trial, note.number, note.meaning, note.remedy)
        for note in trial.notes
        if note.kind in ENDED
    )
    return (found, *gone)


def _ended(trial: Trial) -> str | None:
    """What the log of a server says last that ended in a trial; None where none did."""
    return next((note.number for note in trial.notes if note.kind in ENDED), None)
