"""Trials of operations: a method that fails at a size is a result, and no invalid trial.

Nor is one whose server ended while it answered: that is what the method does there, however well
it answered before. Who asked for nothing when the server ended did not end it; nor is it known who
did where others were at work too (a writer, a job, a fault). Such a trial is audited as any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from searchbench.analysis.judgement import Finding, TrialResult
from searchbench.analysis.trial.kinds import ENDED
from searchbench.analysis.words import plural
from searchbench.record import Trial
from searchbench.record.ends import ServerEnd

_CONNECTION = ("refused", "reset", "truncated")


def ended_by(trial: Trial) -> ServerEnd | None:
    """The end of a server that the method of a trial brought about; None where there is none."""
    if trial.operation is None or any(not run.idle for run in trial.beside):
        return None
    return next((end for end in trial.server_ends if end.under_way), None)


def failure(trial: Trial, counts: Mapping[str, int]) -> str:
    """Why a method failed in a trial, in the server's words; "" where it did not.

    ``counts``: its outcomes. Where some operations succeeded it has failed only if it ended its
    server.
    """
    if (end := ended_by(trial)) is not None:
        return "; ".join(filter(None, [in_short(trial, counts), end.last_words]))
    return _of_all(trial, counts)


def in_short(trial: Trial, counts: Mapping[str, int]) -> str:
    """The same without what the server's log says last."""
    if (end := ended_by(trial)) is None:
        return _of_all(trial, counts)
    how = f" ({end.how})" if end.how else ""
    if end.phase == "capture":
        return f"{end.who} ended{how} while it was asked alone, before anything was timed"
    ok = counts.get("ok", 0)
    return f"{end.who} ended{how}" + (
        f" after {ok:,} good {plural(ok, 'answer', 'answers')}" if ok else ""
    )


def _of_all(trial: Trial, counts: Mapping[str, int]) -> str:
    """Why all operations of a trial failed; "" where one did not, or others may be why."""
    if trial.operation is None or trial.server_ends or counts.get("ok") or not counts:
        return ""
    # What only a part of a system answered is an answer, but for one that says why it is none.
    if counts.get("partial") and "partial" not in trial.said:
        return ""
    if (ended := _ended(trial)) is not None:
        return f"the server ended{ended and f'; {ended}'}"
    worst = max(counts, key=lambda name: counts[name])
    if worst in _CONNECTION and trial.fault is not None:
        return ""  # nobody was there to answer
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
    bad = total - counts.get("ok", 0)
    said = f"{about.method} does not answer {about.rows:,} rows here: {why}."
    found = Finding("operation failed", "note", trial.trial, f"{bad:,} of {total:,}", said, "")
    gone = tuple(
        Finding(note.kind, "note", trial.trial, note.number, note.meaning, note.remedy)
        for note in trial.notes
        if note.kind in ENDED
    )
    return (found, *gone)


def set_aside(trial: Trial, others: Iterable[str]) -> Finding:
    """That a trial is not used, as its method ended the server in ``others``."""
    about = trial.operation
    assert about is not None
    said = (
        f"{about.method} counts as failed at {about.rows:,} rows, as it ended its server in "
        "another trial: the times of this one are those of a server that happened to live, and are "
        "not used."
    )
    return Finding("operation failed", "note", trial.trial, f"in {', '.join(others)}", said, "")


def over_trials(trials: Sequence[Trial], results: Sequence[TrialResult], *, log: bool) -> str:
    """Why a method failed at a size, of all its trials; "" where it did not.

    It has if it ended its server in any of them, or failed in each that counts. ``log``: with the
    last words of the server's log.
    """
    by_id = {trial.trial: trial for trial in trials}
    each = [(by_id[r.trial], r) for r in results if r.trial in by_id and r.status != "failed"]
    ends = [(t, r, end) for t, r in each if (end := ended_by(t)) is not None]
    if not ends:
        said = [(failure if log else in_short)(t, r.outcomes) for t, r in each if r.counts]
        return said[0] if said and all(said) else ""
    trial, result, end = ends[0]
    n, of = len(ends), len(each)
    how_often = f", in {'each' if n == of else n} of {of} trials" if of > 1 else ""
    last = end.last_words if log else ""
    return "; ".join(filter(None, [in_short(trial, result.outcomes) + how_often, last]))


def _ended(trial: Trial) -> str | None:
    """What an older record keeps of a server that ended: how its log ends; None where none did."""
    return next((note.number for note in trial.notes if note.kind in ENDED), None)
