"""Answers on a terminal: a judgement as a table and a paragraph; a load run from its options on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchbench.terminal import classes, operations, out

if TYPE_CHECKING:
    from searchbench.analysis.judgement import Capacity, Finding, Judgement
    from searchbench.measure.load import Asked
    from searchbench.record import Record

# Findings of a step by which the server itself is gone.
_SERVER_GONE = {"server ended", "server died"}
# Of a study, what counts whatever it does to its trial: of an operation, that its server is gone is
# a result, and the trial valid.
_IN_ANY_CASE = {"client starved", *_SERVER_GONE}
# What the replies themselves say holds whatever else speaks against a trial.
_OF_ANSWERS = {"redirects", "errors", "no answers", "partial results", "other answers under load",
               "other sizes under load", "connections busy", *_SERVER_GONE}  # fmt: skip
# Notes of a sweep or a search that say what is not known of its replies.
_OF_REPLIES = {"answers not compared", "answers compared in part", "replies of one size"}
# What else went on at the machine: often why a trial is invalid for another reason.
_OF_MACHINE = {"foreign CPU", "busy machine", "steal"}
_NAMED = 3  # trials; more are counted
_READERS = 6  # roles that read, with their treatments; more are counted


def carry_out(
    asked: Asked,
    record: Path | None,
    *,
    report: bool = True,
    as_json: bool = False,
    prometheus: int | None = None,
    finish: Callable[[Record, Judgement], None] | None = None,
) -> int:
    """The whole run; the exit code. ``finish``: called with the record and its judgement.

    ``prometheus``: the port at which figures are served meanwhile.
    """
    from searchbench.analysis.judge import steps_json
    from searchbench.measure.kept import standing
    from searchbench.measure.load import study_of, usual_record
    from searchbench.measure.prometheus import exported
    from searchbench.measure.run import run
    from searchbench.record import open_record
    from searchbench.study.planner import make_plan
    from searchbench.terminal.progress import LiveLine, beginning

    out.outlast_readers()
    study = study_of(asked)
    plan = make_plan(study)
    place = record or usual_record()
    found = standing(plan, place)
    sys.stderr.write(f"{beginning(plan, place, found)}\n")
    interrupted = False
    try:
        if not (found and found.whole):  # else the systems are not even asked who they are
            with LiveLine(plan) as line, exported(line, prometheus) as watch:
                run(study, place, plan=plan, watch=watch)
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        interrupted = True
        if not any((place / "trials").glob("*/trial.json")):
            return 130
    kept = open_record(place)
    page = kept.path / "report" if report else None
    judgement = answer(kept, page, plain=steps_json if as_json else None)
    if finish is not None:
        finish(kept, judgement)
    sys.stderr.write(not_again(judgement))
    return 130 if interrupted else exit_code(kept, judgement)


def exit_code(kept: Record, judgement: Judgement) -> int:
    """1: a trial failed, a server is gone or answered nothing well in one, a promise is broken
    (that of a search at every rate), or a study has no valid trial; else 3: of a promise, it cannot
    be told; else 0.
    """
    # A sweep or a search without a valid trial is void, which its answer says.
    judged = [t.status for r in judgement.treatments for t in r.trials]
    void = judgement.measure == "trials" and "valid" not in judged
    kinds = [{f.kind for f in step.findings} for step in judgement.steps]
    if judgement.measure == "trials":  # which have no steps
        each = (t.findings for r in judgement.treatments for t in r.trials)
        kinds += [
            {f.kind for f in own if f.severity == "invalid" or f.kind in _IN_ANY_CASE}
            for own in each
        ]
        # A finding that most trials have is one of the record.
        kinds.append({f.kind for f in judgement.findings if not f.trial} & _SERVER_GONE)
    # A load generator that got no processor says nothing of the server.
    spoilt = any(found & _SERVER_GONE for found in kinds if "client starved" not in found)
    unanswered = any("no answers" in found for found in kinds)
    found: set[str] = {p.verdict for step in judgement.steps for p in step.promises}
    found |= {_of_search(one, judgement.first_look) for one in judgement.capacity}
    failed = any(t.status != "ok" for t in kept.trials)
    if void or spoilt or unanswered or failed or "broken" in found:
        return 1
    return 3 if "cannot tell" in found else 0


def _of_search(found: Capacity, first_look: bool) -> str:
    """Whether a promise is kept at any rate that a search drove, in the words of a step's promise.

    That it is broken at high rates is what a search looks for.
    """
    if first_look:
        return "cannot tell"
    if found.holds is not None:
        from searchbench.analysis.capacity.verdict import unsure

        return "cannot tell" if unsure(found) else "kept"
    told = [t for t in found.trials if t.verdict in ("holds", "fails", "unclear")]
    sure = found.fails is not None and any(t.verdict == "fails" for t in told)
    never = all(t.verdict == "fails" or (t.excess or 0.0) >= 1 for t in told)
    return "broken" if sure and never else "cannot tell"


def not_again(judgement: Judgement, *, again: bool = False) -> str:
    """A line where trials are invalid: the same command does not measure them again. ``again``: it
    can be told to, with --again.

    Nothing of a search: it asks again by itself as far as it needs to.
    """
    from searchbench.analysis.trial.validity import spoilt

    trials = [t for r in judgement.treatments for t in r.trials]
    n, others = sum(t.status == "invalid" for t in trials), sum(spoilt(t.findings) for t in trials)
    if not n or judgement.measure == "capacity":
        return ""
    are, they = ("is", "it is") if n == 1 else ("are", "they are")
    said = (
        f"{n} of {len(trials)} trials {are} invalid; {they} on record, and the same command does "
        "not measure again what is on record."
    )
    if others and judgement.measure == "trials" and again:
        which = "them" if others == n > 1 else f"{others:,} of them" if n > 1 else "it"
        return (
            f"{said} Only what others on the machine did spoilt {which}: once the machine is "
            "quiet, the same command with --again measures these once more.\n"
        )
    return f"{said} Remove the cause and name another --record.\n"


def answer(
    kept: Record, page: Path | None, *, plain: Callable[[Judgement], Any] | None = None
) -> Judgement:
    """Judge the record, print the answer, write the report into the folder ``page``.

    ``plain``: what is printed as JSON, in place of the answer.
    """
    from searchbench.analysis.judge import judge

    judgement = judge(kept)
    if plain is not None:
        out.as_json(plain(judgement))
    else:
        show(judgement)
    if page is not None:
        from searchbench.report import write_report

        written = write_report(kept, judgement, page)
        if plain is None:
            out.say(f"\nreport: {written.html}")
    return judgement


def show(judgement: Judgement) -> None:
    """The headline, a few points, the table, what speaks against it, what would change it."""
    verdict = judgement.verdict
    if judgement.void_first and judgement.void:
        out.say(judgement.void)
    out.say()
    if verdict.headline:
        out.say(verdict.headline)
    out.points(verdict.points)
    if judgement.void and not judgement.void_first:
        out.say(f"\n{judgement.void}")
    if verdict.lines:
        out.say()
        out.table(verdict.header, verdict.lines, less=("p99.9 ms", "service p99", "backlog p99"))
    if found := operations.said(judgement):
        by_rows = any(each.by_rows for each in judgement.operations)
        out.say(f"\n{'By the number of rows' if by_rows else 'Methods that fail'}:")
        out.points(found)
    for said in disturbed(judgement):
        out.say(f"\n{said}")
    if found := further_readers(judgement):
        out.say("\nBeside the readers:")
        out.points(found)
    header, rows = classes.table(judgement)
    if rows:
        out.say(f"\n{classes.said(judgement)}".rstrip())
        out.table(header, rows, less=("requests",))
    against = [*invalid(judgement), *warnings(judgement)]
    if against:
        out.say()
    for line in against:
        out.say(line)
    if verdict.would_change:
        out.say("\nWhat would change it:")
        out.points(verdict.would_change)


def disturbed(judgement: Judgement) -> list[str]:
    """What each fault and each overload did, and how long until answers were normal."""
    from searchbench.analysis import overload
    from searchbench.analysis.roles import faults

    found = judgement.roles.faults if judgement.roles is not None else ()
    return [
        *(" ".join(faults.sentences(each)) for each in found),
        *(overload.sentence(each) for each in judgement.overloads),
    ]


def further_readers(judgement: Judgement) -> list[str]:
    """What each role that reads met, a sentence for each treatment; of a search none, whose trials
    are many.
    """
    from searchbench.analysis.roles.reading import sentence

    found = judgement.roles.results if judgement.roles is not None else ()
    if judgement.measure != "trials":
        return []
    said = [sentence(r) for r in found if r.does == "read" and r.figures]
    more = len(said) - _READERS
    return [*said[:_READERS], *([f"{more} more are on the page."] if more > 0 else [])]


def invalid(judgement: Judgement) -> list[str]:
    """A line for each kind of finding that makes trials invalid, and how many it does."""
    trials = {t.trial for r in judgement.treatments for t in r.trials}
    found = [f for f in judgement.findings if f.severity == "invalid"]
    return [f"! {line}" for line in _by_kind(found, len(trials))]


def warnings(judgement: Judgement) -> list[str]:
    """A line for each kind of warning that the answer rests on, and how many trials have it.

    Of a sweep or a search also for what is not known of the replies.

    Of trials that the answer does not use, only what their replies say, and who else used the
    machine, which may be why; what else they lack is said as invalid. Of a run without a usable
    trial all.
    """
    every = {t.trial for r in judgement.treatments for t in r.trials}
    used = {t.trial for r in judgement.treatments for t in r.trials if t.status == "valid"}
    also = set() if judgement.measure == "trials" else _OF_REPLIES
    found = [f for f in judgement.findings if f.severity == "warning" or f.kind in also]
    of_answers = [f for f in found if f.kind in _OF_ANSWERS]
    machine = [f for f in found if f.kind in _OF_MACHINE]
    rest = [f for f in found if f.kind not in _OF_ANSWERS | _OF_MACHINE
            and (not (used and f.trial) or f.trial in used)]  # fmt: skip
    lines = [*_by_kind([*of_answers, *machine], len(every)),
             *_by_kind(rest, len(used) or len(every))]  # fmt: skip
    return [f"? {line}" for line in lines]


def _by_kind(findings: Iterable[Finding], of: int) -> Iterator[str]:
    """Each kind once: how many of the trials have it, which if few, and the first as an example."""
    from searchbench.analysis.words import upper

    by_kind: dict[str, list[Finding]] = {}
    for f in findings:
        by_kind.setdefault(f.kind, []).append(f)
    for kind, found in by_kind.items():
        first, trials = found[0], list(dict.fromkeys(f.trial for f in found if f.trial))
        names = ", ".join(trials) if len(trials) <= _NAMED and of > _NAMED else ""
        where = f" ({len(trials)} of {of} trials{names and f': {names}'})" if trials else ""
        eg = "e.g. " if len({f.number for f in found}) > 1 else ""
        said = (f"{eg}{first.number}", upper(first.meaning), upper(first.remedy))
        yield f"{kind}{where}: " + " ".join(f"{s.rstrip('.')}." for s in said if s)
