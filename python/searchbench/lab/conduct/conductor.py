"""The conductor: asks what is next, makes a session ready, does the phases, keeps the trial.

Studies, endpoints that run already, sweeps and searches all come this way; they differ in the list
of phases that a trial has, in which trials share a session, and in who decides what comes next.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from shlex import split as words

from searchbench.errors import LabError, SearchbenchError
from searchbench.lab.conduct import caches, phases
from searchbench.lab.conduct.measuring import Hooks
from searchbench.lab.conduct.openings import Opened, Openings
from searchbench.lab.conduct.session import Phases, Run, Session
from searchbench.lab.conduct.shelf import Shelf
from searchbench.lab.conduct.trials import Trials
from searchbench.lab.conduct.watch import Watch
from searchbench.lab.fleet.fleet import Fleet
from searchbench.lab.place import host
from searchbench.places import Place
from searchbench.record import Trial as Kept
from searchbench.record import Writer
from searchbench.record.trial import Note
from searchbench.study.plan import Plan, Treatment, Trial

_STARTED_ANEW = Note(
    kind="started anew",
    number="",
    meaning="a step before this one failed, so the system was made ready once more: it is not as "
    "warm as the steps before it left it",
    remedy="see why that step failed, and run it again",
)


@dataclass
class Conductor:
    """Conducts trials one after another, with what they share. Use as a context.

    ``work``: a private folder for indexes and logs. ``timed`` False: trials are
    captured and not driven.
    """

    openings: Openings
    watch: Watch
    work: Path
    plan: Plan
    timed: bool = True
    place: Place = field(default_factory=host.placement)
    shelf: Shelf = field(init=False)
    fleet: Fleet | None = None
    _sessions: dict[str, Session] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)
    _opened: set[str] = field(default_factory=set)
    _block: int | None = None
    _driven: bool = False

    def __post_init__(self) -> None:
        self.shelf = Shelf(self.work / "shelf")

    def __enter__(self) -> Conductor:
        """Log in on the client machines, if there are any."""
        machines = {
            (tuple(t.load.get("machines") or ()), t.load.get("ssh"), t.load.get("client_command"))
            for t in self.plan.treatments
        }
        (names, ssh, command) = next(iter(machines), ((), None, None))
        if len(machines) > 1:
            raise LabError("the treatments name different client machines; name the same for all")
        if names and self.timed:
            fleet = Fleet(names, words(ssh or "ssh"), command or "searchbench-client")
            self.fleet = self._stack.enter_context(fleet)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop what was started."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
        self._stack.close()

    def survey(self, treatments: Sequence[Treatment]) -> None:
        """Find every attached system before anything is driven; LabError where one is silent."""
        for treatment in treatments:
            opened = self.openings.opened(treatment, self.plan.seed)
            session = self._session(Trial("", 1, treatment.id), opened)
            self._open(session)

    def conduct(self, trials: Trials, kept: Writer) -> None:
        """Every trial that ``trials`` asks for, each on record as soon as it has ended."""
        done = sum(kept.has(t.id) for t in trials.plan.trials)
        while (trial := trials.next(kept)) is not None:
            treatment = trials.plan.treatment(trial.treatment)
            if self.plan.judging.ingest == "per-block" and trial.block != self._block:
                self._stop_started()
                self.shelf.drop_indexes()
            self._block = trial.block
            seed = _seed(self.plan, trial, _position(trials.plan, trial))
            opened = self.openings.opened(treatment, seed if self.timed else self.plan.seed)
            kept.queries(opened.workload.digest, opened.workload.lines())
            searched = self.plan.judging.measure == "capacity"
            of = 0 if searched else len(trials.plan.trials)
            self.watch.begins(trial, treatment.label, done, of)
            run = self._trial(trial, opened, _position(trials.plan, trial), kept.path)
            kept.trial(
                run.about, samples=run.samples, replies=run.replies, probe=run.probe, logs=run.logs
            )
            done += 1
            self.watch.ends(trial, run.about)

    def _trial(self, trial: Trial, opened: Opened, position: int, spill: Path) -> Run:
        """One trial, from start to end. A failure is an outcome with its phase and its reason."""
        session = self._session(trial, opened)
        run = Run(session, opened, _heading(trial, opened, position), spill)
        try:
            self._pause(opened)
            with session.phases("host"):
                run.about.notes += host.notes()
            self._open(session)
            run.fill_in()
            if self.timed:
                hooks = Hooks(self.watch.tick, self.watch.stage, self.fleet)
                phases.go(session, phases.measuring_of(run, self.place, hooks))
                self._driven = True
            elif session.captured is not None:
                run.replies = session.captured.replies
        except (SearchbenchError, OSError, ValueError, MemoryError) as error:
            run.fill_in()
            run.about.status = "failed"
            run.about.stage = getattr(error, "stage", "") or session.phases.current
            run.about.reason = _sentence(error)
            if session.captured is not None and run.replies is None:
                run.replies = session.captured.replies
            self._drop(session)
        run.about.ended = _now()
        run.about.phases = {k: round(v, 4) for k, v in session.phases.seconds.items()}
        session.phases.seconds.clear()
        if self.plan.judging.measure == "trials":
            self._drop(session)
        for log in session.run.glob("*.log"):
            run.logs[log.name] = log.read_bytes()[-65536:]
        return run

    def _session(self, trial: Trial, opened: Opened) -> Session:
        """The session that a trial is driven on: one that is there, or a new one."""
        key = self._key(trial, opened)
        if key not in self._sessions:
            if opened.target is None:
                self._stop_started()
            scope = trial.id if self.plan.judging.ingest == "per-trial" else ""
            self._sessions[key] = Session(
                opened, self.plan.judging, trial.id, scope, self.work / "run" / (trial.id or key),
                Phases(announce=self.watch.stage),
            )  # fmt: skip
            if key in self._opened:
                self._sessions[key].notes.append(_STARTED_ANEW)
            self._opened.add(key)
        return self._sessions[key]

    def _key(self, trial: Trial, opened: Opened) -> str:
        if self.plan.judging.measure == "trials":
            return trial.id
        treatment = opened.treatment
        block = "" if opened.target is not None else f"block {trial.block} "
        return f"{block}{treatment.subject}"

    def _open(self, session: Session) -> None:
        if session.ready:
            return
        phases.go(session, phases.preparing(session, self.shelf))
        try:
            opening = phases.opening_of(session, self.shelf, self.place, timed=self.timed)
            phases.go(session, opening)
            session.cache = caches.plan_of(session, self._sessions.values())
        except BaseException:
            if session.index is not None and not session.index.finished:
                session.close()
                session.index.discard()
            raise
        session.ready = True

    def _drop(self, session: Session) -> None:
        session.close()
        self._sessions = {k: s for k, s in self._sessions.items() if s is not session}

    def _stop_started(self) -> None:
        """Stop what was started; the sessions of attached systems stay."""
        for session in list(self._sessions.values()):
            if not session.attached:
                self._drop(session)

    def _pause(self, opened: Opened) -> None:
        pause_s = float(opened.treatment.load.get("pause_s") or 0.0)
        if self._driven and pause_s:
            self.watch.stage("pause")
            time.sleep(pause_s)


def _seed(plan: Plan, trial: Trial, position: int) -> int:
    """Of the order in which requests are sent and of when they are due.

    Within a block all treatments are asked alike, so that they can be compared. The trials of a
    search are put together as independent ones, so each has arrivals of its own.
    """
    seed = plan.seed * 1000 + trial.block
    return seed + 1_000_003 * (position + 1) if plan.judging.measure == "capacity" else seed


def _position(plan: Plan, trial: Trial) -> int:
    return next((i for i, t in enumerate(plan.trials) if t.id == trial.id), len(plan.trials))


def _heading(trial: Trial, opened: Opened, position: int) -> Kept:
    treatment = opened.treatment
    return Kept(
        trial=trial.id,
        treatment=treatment.id,
        block=trial.block,
        position=position,
        control=trial.control,
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
        roles=[opened.role.name],
    )


def _sentence(error: BaseException) -> str:
    """What happened and, where it is the disk, what to do."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f" at {error.filename}" if error.filename else ""
        return f"the disk is full{where}; free some room, or name another folder with --work"
    return str(error) or type(error).__name__


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
