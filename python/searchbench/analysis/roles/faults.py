"""What a fault did to the readers, how long until answers were normal, and what it took of writes.

The audit of a trial with a fault is of the window before it: what comes after is a result, not a
reason not to believe the trial. A request is of the time in which it was due. One that failed
without a reply has no instant of its end on record. In a closed loop, its error came before its
client went on; else when it was sent, or when the fault did if it was under way then, or after its
timeout. Longer than most files: what is seen of a fault and what is said of it share these rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from searchbench.analysis.agreement import agreement
from searchbench.analysis.judgement import Curve, Estimate, Finding, TreatmentResult
from searchbench.analysis.overload import LATE
from searchbench.analysis.roles import meanwhile
from searchbench.analysis.roles.accepted import written
from searchbench.analysis.roles.model import Durable, Event, FaultResult
from searchbench.analysis.roles.truth import reckoned, updates_reckoned
from searchbench.analysis.trial import recovery, recovery_said
from searchbench.analysis.trial.measured import NEVER, Trace, read_trace
from searchbench.analysis.trial.validity import ERRORS_INVALID
from searchbench.analysis.words import digits, percent, plural
from searchbench.record import Record, Trial
from searchbench.record.roles import FaultDone, RoleRun
from searchbench.workload.roles import SERVER

Ints = NDArray[np.int64]
WHAT: Mapping[str, str] = {"kill": "killed", "stop": "stopped", "freeze": "frozen"}
_SHOWN = 3
CUT = 0.5  # of the time before it, in which so much was still under way
FEW = 0.001  # of the requests before a fault, that may be under way for longer than the rest
_OTHERS = (
    f"more than {percent(ERRORS_INVALID)} of the answers after the drive differ from those before "
    "it, although nobody wrote"
)


def until_it(trial: Trial, trace: Trace) -> Trace:
    """All requests, with the window as it was before the fault; the same where there was none, or
    it came before the window, which then shows the system as the fault left it.

    It ends a little before, where the first request was due that was under way when the fault came.
    One in a thousand may be so for longer (``FEW``): a long request would hide all that came after
    it.
    """
    fault = trial.fault
    if fault is None or fault.begun is None or fault.begun <= trace.window[0]:
        return trace
    due = np.sort(trace.due[_under_way(trial, trace, fault.begun)])
    few = int(FEW * np.count_nonzero(trace.due < fault.begun))
    end = int(due[few]) if few < due.size else fault.begun
    start = trace.window[0]
    return replace(trace, window=(start, max(start, min(end, trace.window[1]))))


def _under_way(trial: Trial, trace: Trace, begun: int) -> NDArray[np.bool_]:
    """Which requests that were due before the fault had not ended when it came."""
    ended = np.where(trace.done != NEVER, trace.done, _without_reply(trial, trace, begun))
    found: NDArray[np.bool_] = (trace.due < begun) & (ended >= begun)
    return found


def undisturbed(trial: Trial, trace: Trace) -> Trace:
    """The same without the requests that were due later."""
    before = until_it(trial, trace)
    if before is trace:
        return trace
    kept = before.due < before.window[1]
    assert trial.fault is not None
    assert trial.fault.begun is not None
    kept &= ~_under_way(trial, trace, trial.fault.begun)
    columns = ("query", "outcome", "due", "free", "sent", "done")
    client = None if trace.client is None else trace.client[kept]
    return replace(before, client=client, **{name: getattr(trace, name)[kept] for name in columns})


def findings(record: Record, trial: Trial, before: Trace | None = None) -> Iterator[Finding]:
    """What must be known of a fault; that what it is about did not happen is a reason.

    ``before``: as of ``until_it``.
    """
    planned = [run for run in trial.beside if run.does == "fault" and not run.idle]
    fault = trial.fault
    if planned and fault is None and not any(run.failed for run in planned):
        yield Finding(
            "no fault", "invalid", trial.trial, planned[0].name,
            "The fault that the study asks about did not happen.",
            "Look at the trial's phases and at the server's log.",
        )  # fmt: skip
    if fault is None:
        return
    if before is not None and fault.begun is not None and before.window[0] < fault.begun:
        start, end = before.window
        if fault.begun - end > CUT * (fault.begun - start):
            yield Finding(
                "under way", "warning", trial.trial,
                f"{(end - start) / 1e9:.3g} of {(fault.begun - start) / 1e9:.3g} s",
                "Of the time before the fault, only so much was looked at. Some requests that were "
                "due later were still under way when it came, so what would have become of them is "
                "not known.",
                "Let the fault come later, or see why requests take so long.",
            )  # fmt: skip
    if fault.trouble:
        yield Finding(
            "did not come back", "warning", trial.trial, fault.trouble,
            f"The {_whose(fault)} was {WHAT[fault.fault]}, and the service did not answer again "
            "after the new start. So what it had then was not counted.",
            "Look at the log beside this trial's samples.",
        )  # fmt: skip
    same, compared = _answers(record, trial)
    if same < compared:
        yield Finding(
            "other answers after the fault", "warning", trial.trial,
            f"{compared - same:,} of {compared:,} queries",
            "When asked alone after the drive, these have another total or other hits than before "
            "the fault, though nobody wrote.",
            "Look at what the engine does with an index that was not closed.",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Seen:
    """One trial; None: not known, or did not happen."""

    figures: Mapping[str, float]
    requests: int
    normal: recovery.Normal | str
    looked_s: float
    back: bool


def results(record: Record, t: TreatmentResult, valid: Sequence[Trial]) -> Iterator[FaultResult]:
    """The fault of a treatment, if it has one; over its valid trials in which it happened."""
    trials = [trial for trial in valid if trial.fault is not None]
    if not trials:
        return
    each = [_checked(record, trial, _seen(trial, read_trace(record, trial))) for trial in trials]
    first = trials[0].fault
    assert first is not None
    name = next(run.name for run in trials[0].beside if run.fault is not None)
    figures: dict[str, Estimate] = {}
    for key in dict.fromkeys(key for one in each for key in one.figures):
        values = [one.figures[key] for one in each if key in one.figures]
        unit = "s" if key.endswith("_s") else "share"
        if (found := recovery_said.over_trials(values, unit)) is not None:
            figures[key] = found
    known = [one.normal for one in each if isinstance(one.normal, recovery.Normal)]
    reasons = [one.normal for one in each if isinstance(one.normal, str)]
    answers = [_answers(record, trial) for trial in trials]
    ends = [one.figures["normal_s"] for one in each if "normal_s" in one.figures]
    yield FaultResult(
        role=name,
        fault=first.fault,
        of=first.of,
        treatment=t.treatment,
        label=t.label,
        levels=t.levels,
        trials=len(trials),
        back=all(one.back for one in each),
        started=sum(one.back for one in each),
        figures=figures,
        requests=sum(one.requests for one in each),
        resolution_s=max((normal.step_s for normal in known), default=0.0),
        looked_s=min(one.looked_s for one in each),
        bounds=recovery_said.bounds(known[0]) if known else "",
        why=reasons[0] if reasons else "",
        not_within=sum(map(math.isinf, ends)),
        unknown=len(each) - len(ends),
        trouble=next((t.fault.trouble for t in trials if t.fault and t.fault.trouble), ""),
        otherwise=sum(compared - same for same, compared in answers),
        compared=sum(compared for _, compared in answers),
        durable=_durable(record, trials),
    )


def event(trial: Trial) -> Event | None:
    """When it was down, for a figure."""
    fault = trial.fault
    if fault is None or fault.begun is None:
        return None
    end = fault.again if fault.again is not None else _end(trial)
    return Event(f"{_whose(fault)} {WHAT[fault.fault]}", fault.begun / 1e9, end / 1e9)


def good_answers(trace: Trace, bins: int) -> Curve:
    """Requests answered well and as a whole, a second, by when they were due."""
    well = (trace.outcome == 0) & (trace.done != NEVER)
    edges = np.linspace(0, max(1e-9, trace.window[1] / 1e9), bins + 1)
    counts, _ = np.histogram(trace.due[well] / 1e9, edges)
    middles, width = (edges[:-1] + edges[1:]) / 2, float(edges[1] - edges[0])
    return Curve("good answers", tuple(middles.tolist()), tuple((counts / width).tolist()))


def sentences(found: FaultResult) -> list[str]:
    """What came of it, for a terminal and a page."""
    figures, said = found.figures, list[str]()
    what = f"{found.label}: the {found.of} was {WHAT[found.fault]}"
    if found.of != SERVER:
        what = f"{found.label}: {found.of} was {WHAT[found.fault]}"
    down = figures.get("down_s")
    if found.started and down is not None:
        again = "went on" if found.fault == "freeze" else "was started again"
        some = "" if found.back else f" in {found.started} of {found.trials} trials"
        what += f" and {again} after {digits(down.value)} s{recovery_said.range_of(down)}{some}"
    first, longest = figures.get("first_error_s"), figures["without_s"]
    without = f"{digits(longest.value)} s{recovery_said.range_of(longest)}"
    lost = figures.get("unanswered_share")
    if first is None and lost is not None and recovery_said.ever(lost):
        said.append(
            f"{what}. Of the requests from the signal on, {recovery_said.share(lost)} were not "
            f"answered before the drive ended. No good answer came for {without}."
        )
    elif first is None:
        said.append(f"{what}. All requests were answered well, but no answer came for {without}.")
    else:
        failed, part = (figures.get(key) for key in ("error_share", "partial_share"))
        shares = [
            f"{recovery_said.share(e)} {word}"
            for e, word in ((failed, "failed"), (part, "were answered in part"))
            if e is not None and recovery_said.ever(e)
        ]
        some = "The"
        if first.n < found.trials:
            some = f"In {first.n} of {found.trials} trials there were bad answers; the"
        meanwhile = f" Of the requests meanwhile, {' and '.join(shares)}." if shares else ""
        said.append(
            f"{what}. {some} first bad answer came {_seconds(first.value)}"
            f"{recovery_said.range_of(first, _seconds)} after the signal.{meanwhile} No good "
            f"answer came for {without}."
        )
    said.append(until(found))
    if (late := _latest(figures)) > LATE:
        said.append(
            f"Meanwhile the load generator itself sent requests late: its p99 was {percent(late)} "
            "of the limit for normal answers. So answers may have been normal sooner than stated. "
            "Give it a core of its own."
        )
    if found.durable is not None:
        said.append(durability(found.durable))
    if found.trouble:
        said.append(f"It did not come back: {found.trouble}.")
    if found.otherwise:
        said.append(f"{found.otherwise:,} of {found.compared:,} answers afterwards were not those "
                    "of before, though nobody wrote.")  # fmt: skip
    return said


def _latest(figures: Mapping[str, Estimate]) -> float:
    """By what share of the limit the load generator was late, in the trial with most of it."""
    late = figures.get("late")
    if late is None:
        return 0.0
    return late.interval.high if late.interval and late.interval.level == 1 else late.value


def until(found: FaultResult) -> str:
    """How long until answers were normal, in a sentence."""
    took = found.figures.get("normal_s")
    since = "after it had been started again"
    if found.fault == "freeze":
        since = "after it went on"
    if not found.started:
        since = f"after it was {WHAT[found.fault]}, without being started again"
    elif not found.back:
        since += f" (in trials without a new start: after it was {WHAT[found.fault]})"
    if took is None:
        return f"How long until answers were normal is not known: {found.why}."
    if found.not_within:
        who = "" if found.not_within == found.trials else (
            f" in {found.not_within} of {found.trials} trials"
        )  # fmt: skip
        return (f"Answers were not normal again within the window, {digits(found.looked_s)} s "
                f"{since}{who}.{'' if who else recovery_said.now_and_then(found.figures)}"
                f"{recovery_said.normal_is(found.bounds)}")  # fmt: skip
    more = recovery_said.later(found.figures)
    some = recovery_said.of_some(found.trials, found.unknown)
    normal = recovery_said.normal_is(found.bounds)
    return f"{recovery_said.took(took, since, found.resolution_s, some)}.{more}{normal}"


def durability(found: Durable) -> str:
    """What of acknowledged writes is gone, in a sentence or two."""
    if not found.never_back:
        return _of_counts(found)
    many = plural(found.never_back, "trial", "trials")
    said = (
        f"In {found.never_back} {many} the server did not come back, so what is gone of the "
        f"{found.unlooked:,} documents acknowledged there is unknown: it may be all of them."
    )
    if not (found.counted or found.asked):
        return said
    return f"{said} In the other trials: {_of_counts(found)}"


def _of_counts(found: Durable) -> str:
    """The same of the trials in which somebody could be asked."""
    asked = f"{found.missing:,} of {found.asked:,} written documents asked for are missing"
    if not found.counted:
        return f"The engine does not count its documents; {asked}."
    unknown = (
        f"of {found.uncounted:,} acknowledged documents that were not counted, it is not known how "
        "many are gone"
    )  # fmt: skip
    if not found.acknowledged and found.uncounted:
        return f"{unknown[0].upper()}{unknown[1:]}; {asked}."
    known = plural(found.acknowledged, "document that was", "documents that were")
    counted = " and counted at its end" if found.uncounted else ""
    said = f"Of {found.acknowledged:,} {known} acknowledged in the drive{counted}, "
    at_least = "at least " if found.hides else ""
    said += f"{at_least}{found.lost:,} are gone" if found.lost else "none is gone"
    if found.cancels:
        said += " by the count, in which a delete that is undone hides an insert that is gone"
    elif found.unknown or not found.lost:
        said += " by the count"
    if found.unapplied:
        said += f", and {found.unapplied:,} acknowledged deletes are undone"
    if found.twice:
        said += f", and there are {found.twice:,} too many, as if written twice"
    if found.unknown:
        said += (f" (whether {found.unknown:,} more were taken is not known, and each that was may "
                 "hide one that is gone)")  # fmt: skip
    if found.uncounted:
        said += f"; {unknown}"
    return f"{said}; {asked}."


def _seen(trial: Trial, trace: Trace) -> _Seen:
    fault = trial.fault
    assert fault is not None
    assert fault.begun is not None
    begun, end = fault.begun, trace.window[1]
    back = fault.again is not None and fault.again < end
    again = fault.again if back and fault.again is not None else end
    well = (trace.outcome == 0) & (trace.done != NEVER)
    in_part = trace.outcome == _code(trial, "partial")
    failed = ~well & ~in_part
    down = (trace.due >= begun) & (trace.due < again)
    n = int(np.count_nonzero(down))
    figures: dict[str, float] = {}
    if back:
        figures["down_s"] = (again - begun) / 1e9
        if fault.ready is not None:
            figures["ready_s"] = (fault.ready - again) / 1e9
    wrong = _errors_ns(trial, trace, ~well, begun)
    if wrong.size:
        figures["first_error_s"] = (int(wrong.min()) - begun) / 1e9
    if n:
        figures["error_share"] = int(np.count_nonzero(failed & down)) / n
        figures["partial_share"] = int(np.count_nonzero(in_part & down)) / n
    figures["without_s"] = _without_s(trace.done[well], begun, end)
    then = (trace.due >= begun) & (trace.due < end)
    if then.any():
        figures["unanswered_share"] = float((~well[then]).mean())
    since = again if back else begun
    normal = recovery.normal_before(
        trace, trace.window[0], until_it(trial, trace).window[1],
        closed=trial.load.kind == "closed", until_ns=begun,
    )  # fmt: skip
    if isinstance(normal, recovery.Normal):
        found = recovery.again(trace, normal, since, end)
        if isinstance(found, str):
            return _Seen(figures, n, found, (end - since) / 1e9, back)
        figures |= {"normal_s": found.after_s, "later": found.later}
        took_s = found.after_s if math.isfinite(found.after_s) else found.looked_s
        until = since + round((took_s + normal.span_s) * 1e9)
        figures["late"] = _late(trace, since, min(end, until)) / normal.limit_s
    return _Seen(figures, n, normal, (end - since) / 1e9, back)


def _late(trace: Trace, since: int, end: int) -> float:
    """How late the load generator itself sent what was due then, p99 in seconds."""
    sent = (trace.due >= since) & (trace.due < end) & (trace.sent != NEVER)
    lag = np.maximum(0, trace.sent - np.maximum(trace.due, trace.free))[sent]
    return float(np.quantile(lag, 0.99)) / 1e9 if lag.size else 0.0


def _checked(record: Record, trial: Trial, seen: _Seen) -> _Seen:
    """The same; not known, where sampled answers after the fault found far too little, or those
    that were asked for alone after the drive are others than before.
    """
    fault = trial.fault
    assert fault is not None
    since = fault.again if seen.back else fault.begun
    if since is None or isinstance(seen.normal, str):
        return seen
    same, compared = _answers(record, trial)
    never = math.isinf(seen.figures.get("normal_s", 0.0))  # whatever it answered, it was not normal
    if compared - same > ERRORS_INVALID * compared and not never:
        return _unknown(seen, _OTHERS)
    if trial.operation is not None:
        return seen
    lacking, sampled = meanwhile.lacking(record, trial, since)
    if lacking <= ERRORS_INVALID * sampled:
        return seen
    why = (
        f"{lacking:,} of {sampled:,} sampled answers after it found less than half of what their "
        "queries find before the fault and at the end"
    )
    return _unknown(seen, why)


def _unknown(seen: _Seen, why: str) -> _Seen:
    """The same, of which it is not known when answers were normal."""
    unknown = ("normal_s", "later", "late")
    figures = {key: value for key, value in seen.figures.items() if key not in unknown}
    return replace(seen, normal=why, figures=figures)


def other_answers(record: Record, trial: Trial) -> tuple[int, int]:
    """How many answers were others after a fault than before, though nobody wrote, and of how many;
    of none in a trial without a fault.
    """
    same, compared = _answers(record, trial) if trial.fault is not None else (0, 0)
    return compared - same, compared


def _errors_ns(trial: Trial, trace: Trace, wrong: NDArray[np.bool_], begun: int) -> Ints:
    """When each request that was not answered well ended so, of those from the fault on."""
    at = np.where(trace.done != NEVER, trace.done, _without_reply(trial, trace, begun))
    ended = (at < np.iinfo(np.int64).max) & (trace.outcome != _code(trial, "unfinished"))
    found: Ints = at[wrong & (at >= begun) & ended]
    return found


def _without_reply(trial: Trial, trace: Trace, begun: int) -> Ints:
    """When requests that had no reply ended. In a closed loop, that is when its client went on: it
    asked again, after its time to think. Else it is their timeout; or else when they were sent, but
    the fault if they may have been under way then. Unfinished ones never end.
    """
    sent = np.where(trace.sent != NEVER, trace.sent, trace.due)
    never = np.iinfo(np.int64).max
    if trace.client is not None:
        again = recovery.asks_again(trace)
        think_ns = round((trial.load.think_s or 0.0) * 1e9)
        asked: Ints = np.where(again == never, never, np.maximum(sent, again - think_ns))
        return asked
    timeout_ns = round((trial.load.timeout_s or 0.0) * 1e9)
    late = trace.outcome == _code(trial, "timed_out")
    # One that lost its connection was under way if it began no longer before than twice what any
    # request took until then: those under way at an instant are the long ones.
    well = (trace.outcome == 0) & (trace.done != NEVER) & (trace.done < begun)
    usual = 2 * int((trace.done - trace.due)[well].max(initial=0))
    ended = np.where((sent < begun) & (sent >= begun - usual), begun, sent)
    ended = np.where(late, sent + timeout_ns, ended)
    found: Ints = np.where(trace.outcome == _code(trial, "unfinished"), never, ended)
    return found


def _without_s(good_done: Ints, begun: int, end: int) -> float:
    """The longest time from the signal to the end of the window without a good answer."""
    inside = np.sort(good_done[(good_done >= begun) & (good_done < end)])
    return float(np.diff(np.concatenate([[begun], inside, [end]])).max()) / 1e9


def _durable(record: Record, trials: Sequence[Trial]) -> Durable | None:
    """Over all trials; None where nobody wrote, or nothing could be counted."""
    sums = dict.fromkeys(Durable.__dataclass_fields__, 0)
    looked = False
    for trial in trials:
        run, fault = _writer(trial), trial.fault
        if run is None or fault is None or fault.begun is None:
            continue
        if run.applied is None and not fault.trouble:
            continue
        looked, made, applied = True, written(record, trial, run), run.applied
        if applied is None:  # it did not come back, so there was nobody to ask
            sums["never_back"] += 1
            sums["unlooked"] += int(made.taken[made.done != NEVER].sum())
            continue
        known = [drawn for drawn in applied.drawn if not drawn.error]
        missing = sum(not drawn.found for drawn in known)
        sums["asked"] += len(known)
        sums["missing"] += missing
        updates = updates_reckoned(made)[0]
        lacking = max(0, updates - applied.updated) if applied.updated is not None else 0
        acknowledged = int(made.taken[made.done != NEVER].sum())
        if applied.before is None or applied.after is None:
            counted = updates if applied.updated is not None else 0
            sums["acknowledged"] += counted
            sums["uncounted"] += acknowledged - counted
            sums["counted"] += bool(counted)
            sums["lost"] += lacking
            continue
        reckon = reckoned(applied.before, made)
        sums["counted"] += 1
        blind = updates if applied.updated is None else 0
        sums["acknowledged"] += acknowledged - blind
        sums["uncounted"] += blind
        # A document that was updated and is gone lacks in both counts.
        fewer = max(0, reckon.low - applied.after)
        gone = max(lacking, fewer)
        sums["unseen"] += missing > gone or bool(lacking and fewer)
        sums["lost"] += max(gone, missing)
        sums["cancels"] += bool(reckon.plus and reckon.minus)
        deleted = bool(reckon.minus or reckon.low < reckon.expected)
        sums["unapplied" if deleted else "twice"] += max(0, applied.after - reckon.high)
        sums["unknown"] += reckon.high - reckon.low
    return Durable(**sums) if looked else None


def _writer(trial: Trial) -> RoleRun | None:
    return next((r for r in trial.beside if r.does == "write" and not r.idle), None)


def _answers(record: Record, trial: Trial) -> tuple[int, int]:
    """Of how many queries, asked alone before and after, the answer is the same; of how many. Hits
    of equal score may swap.
    """
    if _writer(trial) is not None:
        return 0, 0
    found = [agreement.under_load(record, trial, phase="after")]
    found += [
        agreement.under_load(record, trial, phase="after", role=run.name)
        for run in trial.beside
        if run.does == "read" and run.drive is not None
    ]
    of = sum(each[2] for each in found)
    return of - sum(each[0] for each in found), of


def _code(trial: Trial, name: str) -> int:
    """The number of an outcome in this trial's samples; one that none has, where it is unknown."""
    return trial.outcomes.index(name) if name in trial.outcomes else 255


def _end(trial: Trial) -> int:
    return trial.window.end if trial.window is not None else 0


def _whose(fault: FaultDone) -> str:
    return "server" if fault.of == SERVER else fault.of


def _seconds(seconds: float) -> str:
    return f"{digits(seconds)} s" if seconds >= 1 else f"{digits(1e3 * seconds)} ms"
