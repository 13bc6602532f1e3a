"""Trials of operations: a method that fails at a size is a result, and no invalid trial."""

from __future__ import annotations

from collections.abc import Mapping

from searchbench.analysis.judgement import Finding
from searchbench.analysis.trial.kinds import ENDED
from searchbench.record import Trial

_DRIVEN = "while it was driven"
"""How the lab's note on a server ends whose process was gone at the end of the drive."""
_WELL = ("ok", "partial")


def failure(trial: Trial, counts: Mapping[str, int]) -> str:
    """Why a method failed in a trial, in the server's words; "" where any operation succeeded.

    One that took its server with it has failed, however many of its operations succeeded before.
    """
    if trial.operation is None or not counts:
        return ""
    if ok := counts.get("ok"):
        if not _fell(trial, counts):
            return ""
        log = _ended(trial)
        answers = f"{ok:,} good answer{'' if ok == 1 else 's'}"
        return f"the server ended after {answers}{log and f'; {log}'}"
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
    """The findings of a trial whose method failed; none of any other.

    Where it took its server with it, that is a finding too: whoever runs it is to hear of it.
    """
    why = failure(trial, counts)
    if not why:
        return ()
    about, total = trial.operation, sum(counts.values())
    assert about is not None
    said = f"{about.method} does not answer {about.rows:,} rows here: {why}."
    bad = total - counts.get("ok", 0)
    found = Finding("operation failed", "note", trial.trial, f"{bad:,} of {total:,}", said, "")
    gone = tuple(
        Finding(note.kind, "note", trial.trial, note.number, note.meaning, note.remedy)
        for note in trial.notes
        if note.kind in ENDED
    )
    return (found, *gone)


def _fell(trial: Trial, counts: Mapping[str, int]) -> bool:
    """Whether a server that had answered ended in the drive, and operations failed with it.

    Beside a writer, a job or a fault nobody knows which of them ended it. One that ended before the
    drive, while it was asked alone, was not ended by what is measured here.
    """
    driven = any(n.kind in ENDED and n.meaning.endswith(_DRIVEN) for n in trial.notes)
    return driven and not trial.beside and any(n for name, n in counts.items() if name not in _WELL)


def _ended(trial: Trial) -> str | None:
    """What the log of a server says last that ended in a trial; None where none did."""
    return next((note.number for note in trial.notes if note.kind in ENDED), None)
