"""The conductor: asks what is next, makes a session ready, does the phases, keeps the trial.

Studies, endpoints that run already, sweeps and searches all come this way; they differ in the list
of phases that a trial has, in which trials share a session, and in who decides what comes next.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from searchbench.errors import LabError, RecordError, SearchbenchError
from searchbench.lab.conduct import beside, caches, jobs, phases
from searchbench.lab.conduct.openings import Opened, Openings
from searchbench.lab.conduct.session import Run, Session, Sitting
from searchbench.lab.conduct.trials import Trials
from searchbench.lab.drive.operations import Operations
from searchbench.lab.place import host
from searchbench.lab.place.abilities import ability
from searchbench.lab.probe.probe import Probe
from searchbench.lab.probe.sizes import Tracer
from searchbench.lab.probe.totals import spent
from searchbench.record import Record, Writer
from searchbench.record import Trial as Kept
from searchbench.record.trial import Note, Span, Window
from searchbench.study.plan import Plan, Treatment, Trial
from searchbench.workload.roles import READERS

# Sees the record and a trial that was just put there; what makes it invalid, "" if nothing does.
Invalid = Callable[[Record, Kept], str]

_STARTED_ANEW = Note(
    kind="started anew",
    number="",
    meaning="a step before this one failed, so the system was made ready once more: it is "
    "less warm than the earlier steps had left it",
    remedy="find out why that step failed, and run it again",
)


@dataclass
class Conductor:
    """Conducts trials one after another, with what they share; to be closed.

    ``work``: a private folder for logs. ``invalid``: asked once for each trial, to be said at once;
    None: nobody judges.
    """

    openings: Openings
    sitting: Sitting
    work: Path
    plan: Plan
    invalid: Invalid | None = None
    _sessions: dict[tuple[int, str], Session] = field(default_factory=dict)
    _opened: set[tuple[int, str]] = field(default_factory=set)
    _block: int | None = None
    _driven: bool = False

    def close(self) -> None:
        """Stop what was started."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
        self._tell(self.sitting.shelf.drop_indexes())
        self._tell(self.sitting.shelf.links.close())

    def survey(self, treatments: Sequence[Treatment]) -> None:
        """Find every attached system before anything is driven; LabError where one is silent."""
        for treatment in treatments:
            opened = self.openings.opened(treatment, self.plan.seed)
            self._open(self._session(Trial("", 1, treatment.id), opened))

    @contextmanager
    def made_ready(self, treatment: Treatment) -> Iterator[Session]:
        """A session of a treatment that is no trial; its index is kept for the trials to come."""
        first = next((t for t in self.plan.trials), None)
        block = first.block if first is not None else 1
        self._stop_started()
        name, opened = f"rehearsal-{treatment.id}", self.openings.opened(treatment, self.plan.seed)
        session = Session(opened, self.sitting, name, self.work / name)
        try:
            self._open(session)
            yield session
        finally:
            session.close()
            beside.discard(session)
            self._block = block

    def conduct(self, trials: Trials, kept: Writer) -> None:
        """Every trial of ``trials``, each on record as soon as it has ended."""
        sitting, judging = self.sitting, self.plan.judging
        done = sum(kept.has(t.id) for t in self.plan.every)
        earlier = {t.treatment: t for t in kept.record.trials if t.status == "ok"}
        for plan, trial in trials:
            treatment = plan.treatment(trial.treatment)
            position = next(i for i, t in enumerate(plan.every) if t.id == trial.id)
            # What is traced begins from nothing: its index is made, and a storage's daemon started.
            anew = judging.ingest == "per-block" and trial.block != self._block
            if anew or trial.traced:
                self._stop_started()
                self._tell(sitting.shelf.drop_indexes())
            self._block = trial.block
            seed = _seed(plan, trial, position) if sitting.timed else plan.seed
            opened = self.openings.opened(treatment, seed)
            before = earlier.get(treatment.id) or _asked_alike(earlier, plan, treatment)
            _insist_on_same_workload(before, opened, kept.path)
            for asked in (opened.workload, *opened.reads.values()):
                kept.queries(asked.digest, asked.lines())
            of = 0 if judging.measure == "capacity" else len(plan.every)
            sitting.watch.begins(trial, treatment.label, done, of)
            run = self._trial(trial, opened, position, kept.path)
            kept.trial(
                run.about, samples=run.samples, replies=run.replies, probe=run.probe,
                sizes=run.sizes, statements=run.statements, logs=run.logs, roles=run.tables,
            )  # fmt: skip
            done += 1
            judged = self.invalid is not None and not trial.traced
            why = self.invalid(kept.record, run.about) if judged and self.invalid else ""
            sitting.watch.ends(trial, run.about, why)
            if judging.abort and run.about.drive is not None and run.about.drive.cut_short:
                sitting.watch.told(f"{treatment.label}: so many requests broke a promise that the "
                                   "run ends here")  # fmt: skip
                return

    def _trial(self, trial: Trial, opened: Opened, position: int, spill: Path) -> Run:
        """One trial, from start to end. A failure is an outcome with its phase and its reason."""
        session, began_unix_ns = self._session(trial, opened), time.time_ns()
        with Probe(session.processes, attached=session.attached) as machine:
            session.mark = machine.mark
            run = Run(session, opened, _heading(trial, opened, position), spill, machine)
            if trial.traced:
                session.tracer = Tracer(self.sitting.shelf.ledger, session.run)
            self._conducted(run)
        if machine.failure and run.about.status == "ok":
            run.about.status, run.about.stage = "failed", "probe"
            run.about.reason = (
                f"the probe ended early, so what the machine did is unknown: {machine.failure}"
            )
        drive = run.about.drive
        zero_unix_ns = began_unix_ns if drive is None else drive.started_unix_ns
        run.probe = machine.table(zero_unix_ns)
        run.about.spans = [
            _span(name, Window(start - zero_unix_ns, end - zero_unix_ns), run.probe, opened)
            for name, start, end in session.spans
        ]
        session.spans.clear()
        run.about.jobs = jobs.on_record(session, run.probe, zero_unix_ns)
        run.logs = {log.name: log.read_bytes()[-65536:] for log in session.run.glob("*.log")}
        return run

    def _conducted(self, run: Run) -> None:
        """All phases of a trial. Whatever fails is on its record."""
        session, opened = run.session, run.opened
        try:
            pause_s = float(opened.treatment.load.get("pause_s") or 0.0)
            if self._driven and pause_s:
                self.sitting.watch.stage("pause")
                time.sleep(pause_s)
            if session.tracer is not None:
                if (able := ability("io_sizes")).missing:
                    raise LabError(f"{able.missing}; {able.remedy}", "trace")
                session.tracer.start()
            with session.phase("host"):
                run.about.notes += host.notes()
            self._open(session)
            run.fill_in()
            if self.sitting.timed:
                phases.go(session, phases.measuring_of(run), run)
                self._driven = True
        except (SearchbenchError, OSError, ValueError, MemoryError) as error:
            run.fill_in()
            run.about.status = "failed"
            run.about.stage = getattr(error, "stage", "") or session.stage
            run.about.reason = _sentence(error)
            self._drop(session)
        if session.captured is not None and run.replies is None:
            run.replies = session.captured.replies
        run.about.place = session.placed
        run.about.ended = _now()
        run.about.phases = {k: round(v, 4) for k, v in session.seconds.items()}
        session.seconds.clear()
        died = isinstance(opened.workload, Operations) and bool(run.about.server_ends)
        if died:
            how, who = run.about.server_ends[0].how, run.about.server_ends[0].who
            ended = f"{who} ended{how and f' ({how})'}; the next trial has another server"
            self.sitting.watch.told(f"{opened.treatment.label}: {ended}")
        if died or self._alone(opened.treatment):
            self._drop(session)
        if session.tracer is not None:
            try:
                run.sizes = session.tracer.stop()
            except LabError as error:
                if run.about.status == "ok":
                    run.about.status, run.about.stage = "failed", error.stage
                    run.about.reason = str(error)
        beside.discard(session)
        alone = self.plan.judging.jobs or beside.made_anew(session)
        # A method that took its server with it may have left anything, such as a table.
        if (alone or died) and session.index is not None:
            self._tell(session.index.discard())

    def _tell(self, problems: Sequence[str]) -> None:
        """What could not be removed; it is in the ledger, and the next start tries again."""
        for why in problems:
            self.sitting.watch.told(why)

    def _alone(self, treatment: Treatment) -> bool:
        """Has each trial a session of its own? With roles also those of a search: what they changed
        in one must not be there in the next.
        """
        return self.plan.judging.measure == "trials" or bool(treatment.roles)

    def _session(self, trial: Trial, opened: Opened) -> Session:
        """The session that a trial is driven on: one that is there, or a new one.

        Each block has its own, also of an attached system: it may have been replaced meanwhile, so
        who answers, and what, is asked anew.
        """
        alone, subject = self._alone(opened.treatment), opened.treatment.subject
        key = trial.block, trial.id if alone else subject
        if key not in self._sessions:
            if opened.target is None:
                self._stop_started()
            for block, name in [*self._sessions]:
                if block != trial.block and self._sessions[block, name].attached:
                    self._drop(self._sessions[block, name])
            session = Session(opened, self.sitting, trial.id, self.work / (trial.id or subject))
            if key in self._opened:
                session.notes.append(_STARTED_ANEW)
            self._sessions[key] = session
            self._opened.add(key)
        return self._sessions[key]

    def _open(self, session: Session) -> None:
        if session.ready:
            return
        phases.go(session, phases.preparing(session), session)
        try:
            phases.go(session, phases.opening_of(session), session)
            session.cache = caches.plan_of(session, self._sessions.values())
        except BaseException:
            if session.index is not None and not session.index.finished:
                session.close()
                self._tell(session.index.discard())
            raise
        session.ready = True

    def _drop(self, session: Session) -> None:
        session.close()
        self._sessions = {k: s for k, s in self._sessions.items() if s is not session}

    def _stop_started(self) -> None:
        """Stop what was started; the sessions of attached systems stay for their block."""
        for session in list(self._sessions.values()):
            if not session.attached:
                self._drop(session)


def _seed(plan: Plan, trial: Trial, position: int) -> int:
    """Of the order in which requests are sent and of when they are due.

    Within a block all treatments are asked alike, so that they can be compared. The trials of a
    search are put together as independent ones, so each has arrivals of its own.
    """
    seed = plan.draws * 1000 + trial.block
    return seed + 1_000_003 * (position + 1) if plan.judging.measure == "capacity" else seed


def _asked_alike(earlier: Mapping[str, Kept], plan: Plan, treatment: Treatment) -> Kept | None:
    """A trial on record of another treatment that asks its system the same, at another load."""

    def asked(of: Treatment) -> tuple[str, dict[str, Any]]:
        return of.system, {key: value for key, value in of.settings.items() if key != "load"}

    known = {other.id: other for other in plan.treatments}
    alike = (kept for key, kept in earlier.items()
             if key in known and asked(known[key]) == asked(treatment))  # fmt: skip
    found = next(alike, None)
    # What roles ask depends on more than this.
    return None if found is None else msgspec.structs.replace(found, beside=[])


def _insist_on_same_workload(before: Kept | None, opened: Opened, path: Path) -> None:
    """RecordError where this treatment's trials on record had other documents, or were asked other
    things.
    """
    if before is None:
        return
    label, had, has = before.label, before.corpus, opened.corpus_about
    if had.digest and has.digest and had.digest != has.digest:
        raise RecordError(
            f"{path}: the trials of {label} on record had other documents ({had.documents or 0:,}) "
            f"than [corpus] gives now ({has.documents or 0:,}), and one record cannot have both; "
            "put the old documents back, or name another folder with --record"
        )
    pairs = [("", before.queries, opened.workload.digest)]
    pairs += [
        (f" by the role {run.name}", run.queries, opened.reads[run.name].digest)
        for run in before.beside
        if run.queries is not None and run.name in opened.reads
    ]
    for whom, was, digest in pairs:
        if was.digest != digest:
            raise RecordError(
                f"{path}: the trials of {label} on record were asked other queries{whom} "
                f"({was.distinct or 0:,} distinct ones) than the query file holds now, and one "
                "record cannot have both; put the old query file back, or name another folder "
                "with --record"
            )


def _heading(trial: Trial, opened: Opened, position: int) -> Kept:
    treatment = opened.treatment
    return Kept(
        trial=trial.id,
        treatment=treatment.id,
        block=trial.block,
        position=position,
        control=trial.control,
        traced=trial.traced,
        label=treatment.label,
        subject=treatment.subject or treatment.label,
        levels=dict(treatment.levels),
        system=treatment.system,
        engine=treatment.engine,
        parameters=dict(treatment.parameters),
        started=_now(),
        notes=[],
        corpus=opened.corpus_about,
        queries=opened.workload.about(),
        load=opened.load_about,
        roles=[READERS],
    )


def _span(phase: str, window: Window, probe: pa.Table, opened: Opened) -> Span:
    server = spent(probe, window, started=opened.target is None)
    return Span(phase=phase, start=window.start, end=window.end, server=server)


def _sentence(error: BaseException) -> str:
    """What happened and, where it is the disk, what to do."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f" at {error.filename}" if error.filename else ""
        return f"the disk is full{where}; free some room, or name another folder with --work"
    return str(error) or type(error).__name__


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
