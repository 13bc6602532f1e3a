"""Was what an engine acknowledged applied?

Once all is over and published, the engine's own count must be that of before plus the inserts and
less the deletes that it acknowledged; where nobody knows whether a request was taken, either will
do. Updates do not change that count: as many documents as were updated must have the word that each
update writes. Documents that were drawn are found by the word that each alone has; where nothing is
counted, that sample is all there is, and what it may have missed is said. (Whether every answer in
between was one of its time: ``meanwhile``.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from searchbench.analysis.judgement import Finding
from searchbench.analysis.roles import meanwhile
from searchbench.analysis.roles.accepted import Written, written
from searchbench.analysis.roles.model import Proof, Row
from searchbench.analysis.roles.visible import seen
from searchbench.analysis.stats.distributions import beta
from searchbench.analysis.stats.intervals import LEVEL
from searchbench.analysis.words import percent
from searchbench.record import Record, Trial
from searchbench.record.roles import Drawn, RoleRun

_DEAD_AT_LEAST = 10  # requests in a row without an answer, to the end
_LATE = 0.10  # of the response time, at p99
_ERRORS_INVALID = 0.01
_SHOWN = 3
_OF_FAULTS = (
    "the writer died", "writes refused", "writes lost", "writes not applied", "a write is missing",
    "deleted and still there",
)  # fmt: skip
TOGETHER = (
    "the count of documents shows only inserts minus deletes, so a lost insert and a delete that "
    "was not done cancel out"
)
_OTHER = "Look at the server's log beside this trial's samples."


def findings(record: Record, trial: Trial) -> Iterator[Finding]:
    """What of the roles of one trial is wrong, or must be known.

    What a fault takes of acknowledged writes is a result, and no reason not to believe the trial.
    """
    for kind, severity, number, meaning, remedy in _rows(record, trial):
        if trial.fault is not None and kind in _OF_FAULTS:
            severity = "warning"
        yield Finding(kind, severity, trial.trial, number, meaning, remedy)


def _rows(record: Record, trial: Trial) -> Iterator[Row]:
    watchers = [run for run in trial.beside if run.does == "watch" and run.drive is not None]
    for run in trial.beside:
        if run.failed:
            yield (
                "a role ended", "invalid", f"{run.name}: {run.failed}",
                f"The role {run.name} could not go on, so the readers were not measured beside "
                "what the study asks about.", _OTHER,
            )  # fmt: skip
        if run.drive is None or run.failed:
            continue
        if run.does != "read":  # which has an audit of its own: reading.py
            yield from _late(record, trial, run)
        if run.does == "write":
            made = written(record, trial, run)
            yield from died(run, made)
            yield from _refused(run, made)
            yield from _unanswered(run, made)
            yield from _unsent(run, made)
            yield from _ran_out(trial, run, made)
            yield from _counted(run, made)
            yield from _updates_counted(run, made)
            yield from _asked_for(run)
            yield from meanwhile.findings(record, trial, made)
            for watcher in watchers:
                lost = [s for s in seen(record, trial, watcher, made) if s.lost]
                if lost and not (made.kind == "delete").any():
                    yield (
                        "found and lost again", "warning",
                        f"{len(lost)} of the markers, as {lost[0].marker}",
                        "A document was found after it was written, and later it was not, though "
                        "nothing was deleted: " + (
                            "answers came from several states of the index." if trial.fault is None
                            else "the fault took it or a part that had it, or answers came from "
                            "several states of the index."
                        ),
                        "Look at how many copies of the index answer.",
                    )  # fmt: skip


def _late(record: Record, trial: Trial, run: RoleRun) -> Iterator[Row]:
    """The measuring loop of a role sent later than it could."""
    table = record.of_role(trial.trial, run.name)
    due, free, sent, done = (
        table[name].fill_null(-1).to_numpy() for name in ("due", "free", "sent", "done")
    )
    kept = (sent >= 0) & (done >= 0)
    if np.count_nonzero(kept) < _DEAD_AT_LEAST:
        return
    lag = np.maximum(0, sent[kept] - np.maximum(due, free)[kept])
    ours, theirs = np.quantile(lag, 0.99), np.quantile(done[kept] - sent[kept], 0.99)
    if ours > _LATE * theirs and ours > 1e6:
        yield (
            "a role's lag", "warning",
            f"{run.name}: p99 {ours / 1e6:.3g} ms, of a service p99 of {theirs / 1e6:.3g} ms",
            "The load generator sent requests of this role late, and not because of the server: it "
            "had no free core at that time.",
            "Give the load generator more cores; on two, server, readers and a writer disturb each "
            "other.",
        )  # fmt: skip


def died(run: RoleRun, made: Written) -> Iterator[Row]:
    """Were its last requests not answered, many in a row?"""
    order = np.argsort(made.due, kind="stable")
    order = order[~made.unsent[order]]
    bad = made.fatal[order]
    tail = len(bad) if bad.all() else int(np.argmin(bad[::-1]))
    if tail >= _DEAD_AT_LEAST or (len(bad) and bad.all()):
        at = (int(made.due[order][len(bad) - tail]) if tail < len(bad) else 0) / 1e9
        yield (
            "the writer died", "invalid",
            f"{run.name}: the last {tail:,} of {len(bad):,} requests it sent were not answered, "
            f"from {at:.1f} s on",
            "Nothing was written from then on, so the readers had the index to themselves.",
            _OTHER,
        )  # fmt: skip


def _refused(run: RoleRun, made: Written) -> Iterator[Row]:
    wrong = int(np.count_nonzero(~made.well & ~made.fatal & (made.done >= 0)))
    if not wrong:
        return
    words = [str(error) for error in made.error if error is not None]
    n = len(made.request)
    said = f" The engine said: {words[0]}" if words else ""
    yield (
        "writes refused", "invalid" if wrong > _ERRORS_INVALID * n else "warning",
        f"{wrong:,} of {n:,} requests of {run.name} ({percent(wrong / n)})",
        f"Documents that were to be written were not taken.{said}",
        "Fix what the engine complains about.",
    )  # fmt: skip


def _unanswered(run: RoleRun, made: Written) -> Iterator[Row]:
    """That nobody knows of many writes whether they were taken."""
    open_ = made.fatal | ((made.done < 0) & ~made.unsent)
    lost, n = int(np.count_nonzero(~made.well & open_)), len(made.request)
    if lost > _ERRORS_INVALID * n:
        yield (
            "writes unanswered", "warning",
            f"{lost:,} of {n:,} requests of {run.name} ({percent(lost / n)})",
            "They timed out, or their connection was lost, so it is not known whether these "
            "documents were taken. The times of the role count such a request as taking forever.",
            "That is a result. If it is not what you ask about, write more slowly.",
        )  # fmt: skip


def _unsent(run: RoleRun, made: Written) -> Iterator[Row]:
    """That many writes were due and had not been sent when the drive ended."""
    waiting, n = int(np.count_nonzero(made.unsent)), len(made.request)
    if waiting > _ERRORS_INVALID * n:
        yield (
            "writes never sent", "warning",
            f"{waiting:,} of {n:,} requests of {run.name} ({percent(waiting / n)})",
            "They were due but had not been sent when the drive ended, so these documents were not "
            "written. The response times of the role count such a request as taking forever; the "
            "service times leave it out.",
            "That is a result: less was written over these connections than was offered. If it is "
            "not what you ask about, write more slowly or over more connections.",
        )  # fmt: skip


def _ran_out(trial: Trial, run: RoleRun, made: Written) -> Iterator[Row]:
    """A writer without a clock that had nothing left before the window ended."""
    if run.keys.get("clients") is None or trial.window is None or len(made.request) < run.planned:
        return
    last = int(made.done.max(initial=-1))
    if 0 <= last < trial.window.end:
        yield (
            "documents ran out", "warning",
            f"{run.name} had sent all of its {run.planned:,} requests at {last / 1e9:.1f} s of "
            f"{trial.window.end / 1e9:.3g} s",
            "For the rest of the window nothing was written, and the readers had the index to "
            "themselves.",
            "Keep back more documents (`documents`, `share`), or take a shorter window.",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sums:
    """How many documents there must be, by what was acknowledged: ``low`` to ``high``."""

    plus: int
    minus: int
    expected: int
    low: int
    high: int


def reckoned(before: int, made: Written) -> Sums:
    """From the documents before, and what became of each request."""
    added, gone = ((made.kind == kind) for kind in ("insert", "delete"))
    plus, minus = int(made.taken[added].sum()), int(made.taken[gone].sum())
    open_plus = int(made.documents[added & made.doubt].sum())
    open_minus = int(made.documents[gone & made.doubt].sum())
    expected = before + plus - minus
    return Sums(plus, minus, expected, expected - open_minus, expected + open_plus)


def _counted(run: RoleRun, made: Written) -> Iterator[Row]:
    """Do the engine's own counts add up with what it acknowledged?"""
    applied = run.applied
    if applied is None:
        return
    if applied.before is None or applied.after is None:
        yield (
            "writes not counted", "note", run.name,
            "The engine does not say how many documents it has, so what it acknowledged was not "
            "counted. Only a sample of the written documents was asked for.", "",
        )  # fmt: skip
        return
    sums = reckoned(applied.before, made)
    low, high = sums.low, sums.high
    if low <= applied.after <= high:
        if sums.plus and sums.minus:
            yield (
                "changes counted together", "note",
                f"{sums.plus:,} inserted and {sums.minus:,} deleted by {run.name}",
                "The number of documents is right. A lost insert and a delete that was not done "
                "cancel out in it, so only the sampled documents show whether either happened.",
                "To count each, use two studies: one that only inserts, and one that only deletes.",
            )  # fmt: skip
        return
    words = f"{applied.before:,} before + {sums.plus:,} inserted − {sums.minus:,} deleted"
    doubt = f", give or take {high - low:,} that may have been taken" if high > low else ""
    counted = f"{words} = {sums.expected:,}{doubt}, and there are {applied.after:,}"
    remedy = (
        "Look at what the engine promises with an acknowledgement, and at its durability levers."
    )
    if applied.after < low:
        said = f"{low - applied.after:,} documents are missing: the engine acknowledged writes that"
        yield "writes lost", "invalid", counted, f"{said} it does not have.", remedy
    else:
        said = f"{applied.after - high:,} documents are too many: the engine acknowledged changes"
        yield "writes not applied", "invalid", counted, f"{said} that it did not make.", remedy


def updates_reckoned(made: Written) -> tuple[int, int]:
    """How many documents must have the word of all updates: at least and at most."""
    own = made.kind == "update"
    low = int(made.taken[own].sum())
    return low, low + int(made.documents[own & made.doubt].sum())


def _updates_counted(run: RoleRun, made: Written) -> Iterator[Row]:
    """Do as many documents have the word of all updates as updates were acknowledged?"""
    applied = run.applied
    low, high = updates_reckoned(made)
    if applied is None or not low:
        return
    if applied.updated is None:
        (proof,) = (p for p in proofs([(run, made)]) if p.kind == "update")
        yield (
            "updates not counted", "note", run.name, f"{said_of(proof)[0].upper()}"
            f"{said_of(proof)[1:]}", "",
        )  # fmt: skip
        return
    if low <= applied.updated <= high:
        return
    doubt = f", give or take {high - low:,} that may have been taken" if high > low else ""
    counted = (f"{low:,} updates were acknowledged{doubt}, and {applied.updated:,} documents have "
               "the word that each of them writes")  # fmt: skip
    if applied.updated < low:
        yield (
            "writes lost", "invalid", counted,
            f"{low - applied.updated:,} updates are missing: the engine acknowledged writes that "
            "it does not have.",
            "Look at what the engine promises with an acknowledgement, and at its durability "
            "levers.",
        )  # fmt: skip
    else:
        yield (
            "a wrong row", "invalid", counted,
            f"{applied.updated - high:,} documents too many: what was written once is there twice.",
            "Look at how the engine finds the document that a change is for.",
        )  # fmt: skip


def proofs(runs: Sequence[tuple[RoleRun, Written]]) -> tuple[Proof, ...]:
    """How inserts and updates of one writer were checked, over its trials."""
    found = []
    for kind in ("insert", "update"):
        acknowledged = asked = 0
        counted, why = True, ""
        for run, made in runs:
            taken = int(made.taken[made.kind == kind].sum())
            if not taken:
                continue
            acknowledged += taken
            applied = run.applied
            drawn = applied.drawn if applied is not None else []
            asked += sum(d.kind == kind and not d.error for d in drawn)
            if kind == "insert":
                own = applied is not None and None not in (applied.before, applied.after)
                own_why = "the engine does not say how many documents it has"
                if own and int(made.taken[made.kind == "delete"].sum()):
                    own, own_why = False, TOGETHER
            else:
                own = applied is not None and applied.updated is not None
                own_why = (applied.uncounted if applied is not None else "") or (
                    "this record does not have how many documents were updated"
                )
            if not own:
                counted, why = False, own_why
        if acknowledged:
            miss = beta(LEVEL, 1, asked) if asked else 1.0
            found.append(Proof(kind, acknowledged, counted, asked, miss, why))
    return tuple(found)


def said_of(proof: Proof) -> str:
    """What a sample that was asked for leaves open, in a sentence."""
    if not proof.asked:
        return (f"none of the {proof.acknowledged:,} {proof.kind}s was counted or asked for "
                f"({proof.why}): how many of them were lost is not known.")  # fmt: skip
    return (
        f"{proof.kind}s were not counted ({proof.why}): of {proof.acknowledged:,} that were "
        f"acknowledged, {proof.asked:,} were asked for. If up to {percent(proof.may_miss)} of all "
        "had been lost, such a sample could have missed it (exact binomial bound, 95 %)."
    )


def _asked_for(run: RoleRun) -> Iterator[Row]:
    """Were the documents that were drawn found, each by its word?"""
    applied = run.applied
    if applied is None:
        return
    known = [drawn for drawn in applied.drawn if not drawn.error]
    missing = [drawn for drawn in known if not drawn.found]
    wrong = [drawn for drawn in known if drawn.found and drawn.found != [drawn.id]]
    if missing:
        yield (
            "a write is missing", "invalid",
            f"{len(missing):,} of {len(known):,} asked for: {_named(missing)}",
            "These documents were acknowledged, everything was published, and they are not found.",
            "Look at what the engine promises with an acknowledgement.",
        )  # fmt: skip
    if wrong:
        first = wrong[0]
        yield (
            "a wrong row", "invalid",
            f"{len(wrong):,} of {len(known):,} asked for: a word that only {first.id} has finds "
            f"{', '.join(first.found[:_SHOWN])}",
            "What was written to one document is found in another, or twice.",
            "Look at how the engine finds the document that a change is for.",
        )  # fmt: skip
    if applied.gone:
        yield (
            "deleted and still there", "invalid",
            f"{len(applied.gone):,} documents, as {', '.join(applied.gone[:_SHOWN])}",
            "Their deletion was acknowledged, everything was published, and answers show them.",
            "Look at what the engine promises with an acknowledgement.",
        )  # fmt: skip


def _named(drawn: list[Drawn]) -> str:
    more = "" if len(drawn) <= _SHOWN else ", .."
    return ", ".join(f"{d.id} ({d.kind})" for d in drawn[:_SHOWN]) + more
