"""The roles of every treatment: their figures, the readers beside the idle ones, what happened."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from searchbench.analysis.judgement import Curve, Estimate, TreatmentResult
from searchbench.analysis.roles import faults, reading, stages
from searchbench.analysis.roles.accepted import Written, of_times, of_writer, spans_of, written
from searchbench.analysis.roles.meanwhile import hold, rule_of
from searchbench.analysis.roles.model import (
    AnswersHeld,
    Beside,
    Event,
    FaultResult,
    OverTime,
    RoleResult,
    RolesJudged,
    Visible,
    WriterStage,
)
from searchbench.analysis.roles.truth import proofs
from searchbench.analysis.roles.visible import Seen, seen, visible
from searchbench.analysis.stats.intervals import paired_ratio
from searchbench.analysis.trial import recovery_said
from searchbench.analysis.trial.measured import NEVER, Trace, read_trace
from searchbench.record import Record, Trial
from searchbench.record.roles import RoleRun
from searchbench.study.plan import Treatment
from searchbench.workload.roles import WATCHER, is_idle

_UNITS: Mapping[str, str] = {
    "offered_per_s": "documents/s", "accepted_per_s": "documents/s", "service_p50": "s",
    "service_p99": "s", "response_p50": "s", "response_p99": "s", "behind_s": "s", "times": "",
    "took_p50": "s", "took_max": "s",
}  # fmt: skip
_RATIOS = ("throughput", "service_p50", "service_p99", "response_p50", "response_p99")
_BINS = 80
_FEWEST = 20  # requests answered in a bin of the curves


def results(
    record: Record,
    treatments: Sequence[TreatmentResult],
    trials: Mapping[str, Sequence[Trial]],
) -> RolesJudged | None:
    """What is to be said of the roles of a study; None where it has none."""
    planned = {t.id: t for t in record.plan.treatments if t.roles}
    if not planned:
        return None
    roles, over = list[RoleResult](), dict[str, OverTime]()
    answers = list[AnswersHeld]()
    happened = list[FaultResult]()
    searched = record.plan.judging.measure == "capacity"  # whose rates differ: limits.py
    for t in treatments:
        if t.treatment not in planned:
            continue
        counting = {one.trial for one in t.trials if one.counts}
        valid = [one for one in trials.get(t.treatment, ()) if one.trial in counting]
        roles += [
            _role(record, t, name, table, valid)
            for name, table in planned[t.treatment].roles.items()
        ]
        if not searched:  # else a fault lasts for all of a trial
            happened += faults.results(record, t, valid)
        if valid and not searched:
            over[t.treatment] = _over_time(record, valid[0])
        if valid:
            answers += _answers(record, planned[t.treatment], valid)
    every = [trial for each in trials.values() for trial in each]
    return RolesJudged(
        answers=tuple(answers),
        faults=tuple(happened),
        results=tuple(roles),
        beside=() if searched else tuple(_beside(treatments, planned)),
        over_time=over,
        cores=next((t.host_window.cores for t in every if t.host_window.cores), None),
        loops=1 + max((sum(r.drive is not None for r in t.beside) for t in every), default=0),
    )


def idle(planned: Treatment) -> bool:
    """Does no role of a treatment do anything?"""
    return all(is_idle(table) for table in planned.roles.values())


def at_work(planned: Treatment) -> dict[str, str]:
    """The roles of a treatment that are not idle, by name, and what each does."""
    return {name: repr(sorted(table.items())) for name, table in planned.roles.items()
            if not is_idle(table)}  # fmt: skip


def _role(
    record: Record, t: TreatmentResult, name: str, table: Mapping[str, object],
    valid: Sequence[Trial],
) -> RoleResult:  # fmt: skip
    rows: list[dict[str, float]] = []
    markers: list[list[Seen]] = []
    asks: list[tuple[float, float]] = []
    wrote: list[tuple[RoleRun, Written]] = []
    shaped: list[tuple[WriterStage, ...]] = []
    reads: list[reading.Read] = []
    first: RoleRun | None = None
    for trial in valid:
        run = next((r for r in trial.beside if r.name == name), None)
        if run is None:
            continue
        first = first or run
        if run.idle or trial.window is None:
            continue
        if run.does == "read":
            if (read := reading.of_trial(record, trial, run)) is not None:
                reads.append(read)
            continue
        if run.does != "write":
            rows.append(of_times(record, trial, run))
            continue
        made = written(record, trial, run)
        wrote.append((run, made))
        if table.get("stages") is not None:
            beside = stages.readers(read_trace(record, trial))
            shaped.append(stages.of_trial(run, made, beside))
        rows.append(of_writer(made, (trial.window.start, trial.window.end), run))
        watcher = next((r for r in trial.beside if r.name == name + WATCHER), None)
        if watcher is not None and watcher.drive is not None:
            markers.append(seen(record, trial, watcher, made))
            asks.append(_asks(record, trial, watcher))
    publishing = first.publishing if first is not None else None
    return RoleResult(
        role=name,
        does=str(table["does"]),
        treatment=t.treatment,
        label=t.label,
        levels=t.levels,
        idle=is_idle(table),
        trials=len(valid),
        figures=reading.figures(reads) if table["does"] == "read" else _figures(rows),
        how=publishing.how if publishing else "",
        unasked=publishing.unasked if publishing else "",
        kept_back=first.kept_back if first else 0,
        visible=_visible(markers, asks),
        proofs=proofs(wrote),
        stages=stages.together(shaped),
        left_out=sum(read.late for read in reads),
        load=reading.load_in_words(table) if table["does"] == "read" else "",
        asks=first.queries.distinct if first is not None and first.queries else None,
    )


def _answers(record: Record, planned: Treatment, valid: Sequence[Trial]) -> list[AnswersHeld]:
    """How the answers of an operation were judged while documents changed, if any did."""
    sampled, some = 0, False
    for trial in valid:
        for run in trial.beside:
            if run.does == "write" and run.drive is not None:
                some = True
                sampled += hold(record, trial, written(record, trial, run)).sampled
    if not some or not planned.operation:
        return []
    rule = rule_of(record, valid[0])
    named = planned.operation
    return [AnswersHeld(named["name"], named["method"], planned.system, rule.kind, rule.why,
                        sampled)]  # fmt: skip


def _visible(
    markers: Sequence[Sequence[Seen]], asks: Sequence[tuple[float, float]]
) -> Visible | None:
    if not asks:
        return None
    per_s, p50 = (float(np.median([each[i] for each in asks])) for i in (0, 1))
    return visible(markers, per_s, p50)


def _asks(record: Record, trial: Trial, watcher: RoleRun) -> tuple[float, float]:
    """How many questions a second were answered until the last was sent, and how long the middle
    one took.
    """
    table = record.of_role(trial.trial, watcher.name)
    sent, done = (table[name].fill_null(-1).to_numpy() for name in ("sent", "done"))
    kept = (sent >= 0) & (done >= 0)
    if not kept.any():
        return 0.0, math.nan
    span_s = max(1e-9, float(max(done.max(), sent.max()) - sent[kept].min()) / 1e9)
    return float(kept.sum()) / span_s, float(np.median((done - sent)[kept])) / 1e9


def _figures(rows: Sequence[Mapping[str, float]]) -> dict[str, Estimate]:
    """Each figure that every trial has: with the interval of its mean over the trials; where they
    are unlike, the median and the range of them; of maxima the greatest.
    """
    found = {}
    for name, unit in _UNITS.items():
        values = [row[name] for row in rows if name in row]
        if not values or len(values) < len(rows):
            continue
        if name.endswith("_max"):
            found[name] = Estimate(max(values), unit, len(values))
        elif (known := recovery_said.over_trials(values, unit)) is not None:
            found[name] = known
    return found


def _beside(
    treatments: Sequence[TreatmentResult], planned: Mapping[str, Treatment]
) -> list[Beside]:
    """Each treatment in which something goes on, beside the one that differs in that alone: every
    role is idle there, or, where there is none such, as many as in any other, and what goes on
    there goes on here in the same way.
    """
    found = []
    for t in treatments:
        own = planned.get(t.treatment)
        if own is None or idle(own):
            continue
        mine = at_work(own)
        others = [
            (len(theirs), o)
            for o in treatments
            if o.treatment in planned and rest(planned[o.treatment]) == rest(own)
            and (theirs := at_work(planned[o.treatment])).items() < mine.items()
        ]  # fmt: skip
        fewest, other = min(others, key=lambda each: each[0], default=(0, None))
        named = _named(t, own)
        if other is None:
            found.append(Beside(t.treatment, t.label, "", "", {}, *named))
            continue
        ratios = {}
        for metric in (*_RATIOS, *(["service_mean"] if named else [])):
            if (ratio := of_figures(t, other, metric)) is not None:
                ratios[metric] = ratio
        pair = (t.treatment, t.label, other.treatment, other.label)
        found.append(Beside(*pair, ratios, *named, at_work=fewest))
    return found


def _named(t: TreatmentResult, planned: Treatment) -> tuple[str, ...]:
    """Of an operation its name, method, system and other levels; empty where queries are asked."""
    if not planned.operation:
        return ()
    left = ("system", "method", "operation")
    others = {path.rpartition(".")[2]: each for path, each in t.levels.items() if path not in left}
    at = ", ".join(f"{name}={str(v).lower() if isinstance(v, bool) else v}"
                   for name, v in others.items())  # fmt: skip
    system = str(t.levels.get("system", ""))
    return planned.operation["name"], planned.operation["method"], system, at


def rest(planned: Treatment) -> tuple[str, str, str]:
    """What of a treatment are not its roles, and how many documents these keep back: an index that
    lacks others is another index.
    """
    settings = {k: v for k, v in planned.settings.items() if k != "roles"}
    kept = [(table.get("documents"), table.get("share"))
            for table in planned.roles.values() if table["does"] == "write"]  # fmt: skip
    return planned.system, repr(sorted(settings.items())), repr(kept)


def of_figures(own: TreatmentResult, idle: TreatmentResult, metric: str) -> Estimate | None:
    """A figure over that of the idle ones, paired by block; None: not known."""
    return paired_ratio(_logs(own, idle, metric), None)[0]


def _logs(t: TreatmentResult, other: TreatmentResult, metric: str) -> list[float]:
    """The log of the ratio in each block in which both are valid."""
    own, theirs = (
        {one.block: one.figures[metric].value for one in each.trials
         if one.counts and metric in one.figures and one.figures[metric].value > 0}
        for each in (t, other)
    )  # fmt: skip
    return [math.log(own[b] / theirs[b]) for b in sorted(own.keys() & theirs.keys())]


def _over_time(record: Record, trial: Trial) -> OverTime:
    """The times of one trial over the whole drive, with what was done meanwhile."""
    trace = read_trace(record, trial)
    # What comes after the window is shown where there are stages.
    end_ns = trace.window[1]
    if trial.load.stages is not None:
        end_ns = max(end_ns, int(trace.due.max(initial=0)))
    median, tail = _curves(trace, end_ns)
    events = []
    for run in trial.beside:
        if run.does in ("publish", "job"):
            said = str(run.keys.get("job", "")) or (run.publishing.how if run.publishing else "")
            for start, end in spans_of(record, trial, run):
                events.append(Event(said or run.name, start / 1e9, end / 1e9))
    good = None
    if (fault := faults.event(trial)) is not None:
        events.append(fault)
        good = faults.good_answers(trace, _BINS)
    start, end = trace.window
    return OverTime(
        trial.trial, median, tail, (start / 1e9, end / 1e9), tuple(events), good,
        stages.over_time(record, trial, end_ns), end_ns / 1e9,
    )  # fmt: skip


def _curves(trace: Trace, end_ns: int) -> tuple[Curve, Curve]:
    """Half and 95 % of the response times, by when requests were due."""
    kept = (trace.outcome == 0) & (trace.done != NEVER)
    due_s, response_s = trace.due[kept] / 1e9, (trace.done - trace.due)[kept] / 1e9
    edges = np.linspace(0, max(1e-9, end_ns / 1e9), _BINS + 1)
    places = np.searchsorted(edges, due_s, side="right") - 1
    in_bins = [response_s[places == at] for at in range(_BINS)]
    full = [at for at, each in enumerate(in_bins) if len(each) >= _FEWEST]
    x = tuple(float(edges[at] + edges[at + 1]) / 2 for at in full)
    half, most = (tuple(float(np.quantile(in_bins[at], q)) for at in full) for q in (0.5, 0.95))
    return Curve("half", x, half), Curve("95 %", x, most)
