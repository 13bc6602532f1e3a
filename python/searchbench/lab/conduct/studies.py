"""A study, from its value to its record; and its systems' agreement without any timing."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path

import psutil
from msgspec import structs

from searchbench import _core
from searchbench.errors import LabError, RecordError
from searchbench.lab.conduct.attached import ask_attached, left_of
from searchbench.lab.conduct.conductor import Conductor, Invalid
from searchbench.lab.conduct.openings import Openings
from searchbench.lab.conduct.rehearsal import rehearse
from searchbench.lab.conduct.session import Shelf, Sitting
from searchbench.lab.conduct.titles import keep_titles
from searchbench.lab.conduct.trials import Decide, planned, searched
from searchbench.lab.conduct.watch import Breach, Silence, Watch
from searchbench.lab.drive.warming import IsWarm
from searchbench.lab.drive.workload import VerbatimRequests
from searchbench.lab.fleet.fleet import Fleet
from searchbench.lab.place import host, ledger, mounts
from searchbench.lab.probe.others import processes, used
from searchbench.lab.remote.survey import Survey
from searchbench.record import Record, Writer, open_record
from searchbench.record.lock import alone
from searchbench.study import Study, read_study
from searchbench.study.plan import Plan, Treatment, Trial
from searchbench.study.planner import make_plan

_PREFIX = "searchbench-work-"
_PRIVATE = re.compile(rf"{_PREFIX}(\d+)-[a-z0-9_]{{8}}")  # as ``mkdtemp`` names it


def run(
    study: Study | Path | str,
    record: Path | str | None = None,
    *,
    decide: Decide,
    is_warm: IsWarm,
    breach: Breach | None = None,
    invalid: Invalid | None = None,
    plan: Plan | None = None,
    watch: Watch | None = None,
    work: Path | None = None,
    again: Collection[str] = (),
) -> Record:
    """Measure a study; its record. Called again on the same record it continues.

    ``record``: the folder, ``records/NAME`` if None. ``decide``: what a search for capacity asks
    next, from the record so far. ``is_warm``: whether a warm-up is over, from its samples so far.
    ``breach``: for a study that is to end once a promise is surely broken. ``invalid``: what makes
    a trial invalid, for the watch to say. ``plan``: the study's, if it was made already. ``work``:
    where indexes are built while measuring (default: the temporary directory). ``again``: trials
    on record that are set aside and measured once more. StudyError,
    CorpusError, QueryError, NotInstalled; RecordError, also where somebody else measures into the
    record; LabError where an attached system does not answer, which is asked before documents are
    read. A trial that fails is on record as failed and raises nothing. KeyboardInterrupt leaves a
    valid record.
    """
    study = study if isinstance(study, Study) else read_study(study)
    plan = plan or make_plan(study)
    host.require_release_build()
    openings = Openings(study.base, study.seed, watch or Silence(), study.promises)
    path = Path(record) if record else Path("records") / study.name
    with alone(path):
        left = left_of(plan, path, again)
        # To read documents may take minutes.
        ask_attached((t for t in left if not t.requests), openings)
        # Everything that a person can get wrong is opened before the first minute is spent.
        for treatment in plan.treatments:
            openings.opened(treatment, study.seed)
        ask_attached((t for t in left if t.requests), openings)
        with conducting(openings, plan, work, is_warm, breach, invalid) as conductor:
            if plan.judging.measure != "trials":
                conductor.survey([t for t in plan.treatments if t.attach])
            survey(study, left, openings, conductor)
            writer = _writer(study, plan, path)
            plan = structs.replace(plan, draw_seed=writer.record.plan.draw_seed)
            if left:
                _tell_busy(openings.watch)
                rehearse(conductor, plan, study.path)
            for trial in again:
                writer.set_aside(trial)
            search = plan.judging.measure == "capacity"
            conductor.conduct(
                searched(plan, writer, decide) if search else planned(plan, writer), writer
            )
        keep_titles(openings, writer)
    return open_record(path)


def survey(
    study: Study, treatments: Sequence[Treatment], openings: Openings, conductor: Conductor
) -> None:
    """StudyError with each host, reached by ssh, that is not as the study says, at its position."""
    found = Survey(study, conductor.sitting.shelf.links)
    for treatment in treatments:
        if (place := found.place(treatment)) is None:
            continue
        opened = openings.opened(treatment, study.seed)
        if opened.engine is not None and not isinstance(opened.workload, VerbatimRequests):
            found.programs(place, opened.engine, treatment, opened.workload.corpus.schema)
    found.finish()


def _tell_busy(watch: Watch) -> None:
    """Say that others use this machine before minutes are spent; each trial looks for itself.

    Nothing where the user knows it.
    """
    if host.shared():
        return
    before = processes()
    for note in (note for note in host.notes() if note.kind == "busy machine"):
        busiest = next(iter(used(before, processes(), {os.getpid()})), "")
        who = f" (most by {busiest})" if busiest else ""
        watch.told(f"{note.number}{who}: {note.meaning}; {note.remedy}")


def verify(
    study: Study | Path | str,
    record: Path | str,
    *,
    watch: Watch | None = None,
    work: Path | None = None,
) -> Record:
    """Ask every system every distinct query once, and keep the answers; nothing is timed.

    A record with one trial for each treatment that could answer differently (those that differ
    only in load answer the same), whose trials hold replies and no samples. RecordError where the
    folder holds a record already: its answers may be of other systems than those that run now.
    """
    if (Path(record) / "record.json").is_file():
        raise RecordError(
            f"{record}: holds a record already, and verify asks every system anew, also after an "
            "interruption; name another folder with --record, or remove this one"
        )
    study = study if isinstance(study, Study) else read_study(study)
    plan = make_plan(study)
    openings = Openings(study.base, study.seed, watch or Silence(), study.promises)
    judging = structs.replace(plan.judging, measure="trials", control=None, replicates=1)
    # Nothing is timed, so no time is estimated; by that `run` tells it from a plan of its own.
    trials = tuple(_answering(plan))
    plan = structs.replace(plan, trials=trials, traced=(), judging=judging, estimated_s=0.0)
    with alone(Path(record)):
        with conducting(openings, plan, work) as conductor:
            survey(study, plan.treatments, openings, conductor)
            writer = _writer(study, plan, Path(record))
            conductor.conduct(planned(plan, writer), writer)
        keep_titles(openings, writer)
    return open_record(record)


@contextmanager
def conducting(
    openings: Openings,
    plan: Plan,
    work: Path | None,
    is_warm: IsWarm | None = None,
    breach: Breach | None = None,
    invalid: Invalid | None = None,
) -> Iterator[Conductor]:
    """Who conducts the plan, logged in on the client machines, if there are any.

    ``is_warm`` None: nothing is timed.
    """
    machines = {
        (tuple(t.load.get("machines") or ()), t.load.get("ssh"), t.load.get("client_command"))
        for t in plan.treatments
    }
    (names, ssh, command) = next(iter(machines), ((), None, None))
    if len(machines) > 1:
        raise LabError("the treatments name different client machines; name the same for all")
    fleet = None
    if names and is_warm:
        fleet = Fleet(names, shlex.split(ssh or "ssh"), command or "searchbench-client")
    watch = openings.watch
    for left in ledger.clean().left:
        watch.told(left)
    with folder(work) as private, ledger.Ledger() as made, fleet or nullcontext():
        cores, shelf = host.placement(), Shelf(private / "shelf", made)
        sitting = Sitting(plan.judging, openings.watch, cores, shelf, is_warm, fleet, breach)
        with closing(Conductor(openings, sitting, private / "run", plan, invalid)) as found:
            yield found


def _writer(study: Study, plan: Plan, path: Path) -> Writer:
    return Writer(
        path,
        study_text=study.text,
        plan=plan,
        host=host.fingerprint(),
        version=_core.version,
        base=study.base,
    )


def _answering(plan: Plan) -> Iterator[Trial]:
    """A trial of every treatment that differs in more than its load."""
    seen: list[object] = []
    for treatment in plan.treatments:
        key = (
            treatment.system,
            {name: table for name, table in treatment.settings.items() if name != "load"},
        )
        if key not in seen:
            seen.append(key)
            yield Trial(f"b01-{treatment.id}", 1, treatment.id)


@contextmanager
def folder(work: Path | None) -> Iterator[Path]:
    """A private folder that is gone afterwards, with everything that was built in it.

    Its name has our process id, so that what a killed one left behind is known and removed; never
    across a mount.
    """
    place = work or Path(tempfile.gettempdir())
    try:
        place.mkdir(exist_ok=True)  # not its parents: a name with a mistake would make those too
    except FileNotFoundError:
        raise LabError(
            f"{place}: there is no folder {place.parent} to build indexes below; make it, or name "
            "another with --work"
        ) from None
    except OSError as error:
        raise LabError(f"{place}: indexes cannot be built there ({error.strerror})") from None
    for left in place.glob(f"{_PREFIX}*"):
        _remove_if_dead(left)
    name = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=place)).resolve()
    lock = os.open(name, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield name
    finally:
        os.close(lock)
        mounts.remove_tree(name)


def _remove_if_dead(left: Path) -> None:
    """Remove the private folder of a process that has ended; nothing that only has such a name.

    A process that runs where its id is not seen from here (in another container) has it locked.
    """
    named = _PRIVATE.fullmatch(left.name)
    try:
        ours = left.lstat().st_uid == os.geteuid() and not left.is_symlink() and left.is_dir()
    except OSError:  # another has just removed it
        return
    if named is None or not ours or psutil.pid_exists(int(named[1])):
        return
    try:
        lock = os.open(left, os.O_RDONLY)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return
    except OSError:  # a file system without locks
        pass
    mounts.remove_tree(left)
    os.close(lock)
