"""The jobs of a trial: each is done on a server that has just started, timed, and looked after.

    deploy → job NAME → check NAME → stop → weigh NAME

``check``: are all documents there, does what it made answer as the original does? ``weigh``: the
server has stopped and everything is on its device; how large are the files by kind?
A job that left nothing, lost documents, or made something that answers otherwise fails the trial.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from msgspec import structs

from searchbench.corpora.corpus import Corpus
from searchbench.engines.engine import Engine, Parameters, Request
from searchbench.engines.job import Job, Work
from searchbench.errors import LabError
from searchbench.lab.conduct.ingest import Batches, must, sent
from searchbench.lab.conduct.session import Doing, Index, Session
from searchbench.lab.drive.workload import DocumentsAlone, PortableQueries
from searchbench.lab.place.cold import files_below
from searchbench.lab.probe.totals import machine_totals, server_totals, spent
from searchbench.lab.system.deploy import Deployment, command_line, complete
from searchbench.lab.system.seat import Seat
from searchbench.lab.wire.exchange import samples_of
from searchbench.places.model import PARTS, is_part
from searchbench.record.trial import JobDone, Window

_TIMEOUT_S = 3600.0
_POINTS = 200

Phase = tuple[str, Callable[[Session], object]]


def jobs_of(
    session: Session, deploy: Sequence[Phase], start: Callable[[Session], object]
) -> list[Phase]:
    """The phases of all jobs. ``deploy``: from a stopped server to one that is known and in place.

    ``start``: starts it, and returns once it answers. Before a job that puts the documents in there
    is nothing that could be asked about itself, so the system is identified after it.
    """
    engine, found = _engine(session), list[Phase]()
    for at, (name, levels) in enumerate(session.opened.treatment.jobs.items()):
        done = list(session.opened.treatment.jobs)[:at]
        job = next(each for each in engine.jobs if each.name == name)
        schema = _workload(session).corpus.schema
        work = engine.work(name, levels, schema, session.levers, done)
        begin = partial(_begin, job=job, work=work)
        before = [each for each in deploy if each[0] == "deploy"] if job.fills else deploy
        known = [each for each in deploy if each[0] == "identify"] if job.fills else []
        if work.opens:
            # The phases of a deployment, the start of which is the job.
            opening = partial(_opened, start=start)
            found += [(f"job {name}", begin), *_in_place_of(before, f"job {name}", opening)]
        else:
            found += [*before, (f"job {name}", begin), (f"job {name}", partial(_do, work=work))]
        found += [
            (f"check {name}", partial(_check, work=work)),
            *known,
            ("stop", Session.close),
            (f"weigh {name}", partial(_weigh, job=job)),
        ]
    return found


def fills(session: Session) -> bool:
    """Whether a job puts the documents in."""
    names = [*session.opened.treatment.jobs][:1]
    return any(job.fills and job.name in names for job in _engine(session).jobs)


def to_be_written(session: Session) -> set[str]:
    """Kinds of files that nothing but a job writes."""
    return {"backup"} if session.opened.treatment.jobs else set()


def on_record(session: Session, probe: pa.Table, zero_unix_ns: int) -> list[JobDone]:
    """The jobs that were done, on the clock of the trial, with what the machine did meanwhile."""
    found = []
    for doing in session.jobs:
        if not doing.end_unix_ns:
            continue
        start, end = doing.start_unix_ns - zero_unix_ns, doing.end_unix_ns - zero_unix_ns
        still = doing.still_unix_ns - zero_unix_ns if doing.still_unix_ns else None
        window = Window(start, end)
        server = server_totals(probe, window)
        if doing.about.requests == 0:  # processes came within it
            server = structs.replace(
                spent(probe, window, started=True), busiest_thread=server.busiest_thread,
                busiest_thread_share=server.busiest_thread_share,
            )  # fmt: skip
        whole = machine_totals(probe, Window(start, still or end), {})
        found.append(
            structs.replace(
                doing.about, start=start, end=end, still=still, server=server,
                host=structs.replace(machine_totals(probe, window, {}), links=[]),
                devices=whole.devices,
                progress=[(at + start, n) for at, n in doing.about.progress],
            )
        )  # fmt: skip
    return found


def _begin(session: Session, job: Job, work: Work) -> None:
    """What comes before it: what it sends is made, what it needs is there; nothing is timed."""
    levels = session.opened.treatment.jobs[job.name]
    about = JobDone(name=job.name, levels=dict(levels), durable=work.durable)
    if session.jobs:
        about.documents = session.jobs[-1].about.documents
    elif session.index is not None:
        about.documents = session.index.done.documents
    session.jobs.append(Doing(about))
    if not work.opens:
        running = session.there()
        for request in work.before:
            must(
                running,
                running.ask(request, _TIMEOUT_S),
                f"what comes before {job.name}",
                f"job {job.name}",
            )
        if work.stream is not None:
            _streamed(session, work.stream)


def _do(session: Session, work: Work) -> None:
    """The job, timed: from the first byte sent to the last answer."""
    doing, running = session.jobs[-1], session.there()
    stage = f"job {doing.about.name}"
    if work.stream is not None:
        batches = _streamed(session, work.stream)
        with _timed(session):
            trace = sent(running, batches, stage, work.connections)
            _ask_each(session, work.requests)
        samples = samples_of(trace)
        for index, reply in trace.replies():
            number = int(samples[index]["request"]) + 1
            must(running, reply, f"request {number} of {doing.about.name}", stage)
        took_s = (samples["done"] - samples["sent"]) / 1e9
        doing.about.documents = batches.documents
        doing.about.requests += len(samples)
        doing.about.request_p50_s, doing.about.request_p99_s, doing.about.request_max_s = (
            float(q) for q in np.quantile(took_s, (0.5, 0.99, 1.0))
        )
        at = np.unique(np.linspace(0, len(samples) - 1, _POINTS).astype(int))
        doing.about.progress = [
            (int(samples["done"][i]), int(batches.document_ends[samples["request"][i]])) for i in at
        ]
        return
    if work.commands:
        _run(session, work, stage)
        return
    with _timed(session):
        _ask_each(session, work.requests)


def _ask_each(session: Session, requests: Sequence[Request]) -> None:
    doing, running = session.jobs[-1], session.there()
    for request in requests:
        reply = running.ask(request, _TIMEOUT_S)
        doing.about.requests += 1
        must(running, reply, doing.about.name, f"job {doing.about.name}")


def _run(session: Session, work: Work, stage: str) -> None:
    """Programs of the engine's own, in its place: what they use is on its account."""
    running, confines = session.there(), session.confines
    assert isinstance(running, Deployment)
    Path(running.places.fill("{backup}")).mkdir(parents=True, exist_ok=True)
    seat = confines.seat if confines else Seat(session.cpus)
    try:
        with _timed(session):
            for command in work.commands:
                argv = command_line([running.places.fill(part) for part in command],
                                    refuses_root=False)  # fmt: skip
                complete(argv, run=session.run, log="job.log", stage=stage, seat=seat,
                         seen=session.helpers.append)  # fmt: skip
    finally:
        session.helpers.clear()


def _opened(session: Session, start: Callable[[Session], object]) -> None:
    with _timed(session):
        start(session)


@contextlib.contextmanager
def _timed(session: Session) -> Iterator[None]:
    """The last job begins and ends here. The probe samples just outside of it."""
    doing = session.jobs[-1]
    session.mark()
    doing.start_unix_ns = time.time_ns()
    yield
    doing.end_unix_ns = time.time_ns()
    session.mark()


def _check(session: Session, work: Work) -> None:
    """Are the documents there, and is what it made the same? LabError with what is not."""
    doing, running, engine = session.jobs[-1], session.there(), _engine(session)
    doing.about.running = _running_lengths(session)
    name, stage = doing.about.name, f"check {doing.about.name}"
    if doing.about.documents is not None:
        there = (
            engine.facts(running.ask(engine.facts_request())).documents
            if work.counted is None
            else engine.left(running.ask(work.counted, _TIMEOUT_S))
        )
        if there is None:
            doing.about.documents = None
        elif there != doing.about.documents:
            raise LabError(f"after {name} there are {there} documents, and there should be "
                           f"{doing.about.documents}", stage)  # fmt: skip
    for proof in work.proven:
        found = engine.left(running.ask(proof.request, _TIMEOUT_S))
        if found != proof.wanted:
            raise LabError(f"after {name} {proof.what} is {found}, not {proof.wanted}", stage)
    for same in work.same:
        original, made = (
            engine.left(running.ask(request, _TIMEOUT_S)) for request in (same.original, same.made)
        )
        if _comparable(original) != _comparable(made):
            of = f": {made} and not {original}" if isinstance(original, int) else ""
            raise LabError(f"{same.what} is not the same in what {name} made{of}", stage)
        doing.about.compared.append(same.what)


def _weigh(session: Session, job: Job) -> None:
    """How large are the files by kind, now that the server has stopped? LabError if none grew.

    Storages are taken away and made available anew before: zfs counts what a file takes seconds
    after it was written, and does not say when. So the next job finds nothing of them in memory,
    on whatever file system they are.
    """
    doing, storages = session.jobs[-1], _index(session).storages
    os.sync()
    devices = storages.devices
    storages.forget()
    files, lengths = _by_kind(session)
    doing.still_unix_ns = time.time_ns()
    before = session.jobs[-2].about.lengths if len(session.jobs) > 1 else {}
    for kind in job.leaves:
        if lengths.get(kind, 0) <= (before.get(kind, 0) if kind != "index" else 0):
            raise LabError(f"{job.name} ended without an error and left no files of the kind "
                           f"{kind}", f"weigh {job.name}")  # fmt: skip
    storages.unwritten -= {*job.leaves}
    doing.about.files, doing.about.lengths = files, lengths
    doing.about.own_devices = list(dict.fromkeys([*devices, *storages.devices]))


def _by_kind(session: Session) -> tuple[dict[str, int], dict[str, int]]:
    storages = _index(session).storages
    allocated: dict[str, int] = {}
    lengths: dict[str, int] = {}
    for (laid, kind), files in _files(session).items():
        room = storages.room_of(laid, files)
        if room is not None:
            allocated[kind] = allocated.get(kind, 0) + room
        lengths[kind] = lengths.get(kind, 0) + sum(f.stat().st_size for f in files)
    return allocated, lengths


def _files(session: Session) -> dict[tuple[str, str], list[Path]]:
    """By where they are laid and by kind, all files."""
    storages, patterns = _index(session).storages, _engine(session).can.files
    folders = {"data": storages.data, "backup": storages.data.parent / "backup", **storages.laid}
    found: dict[tuple[str, str], list[Path]] = {}
    for laid, folder in folders.items():
        for path in files_below([folder]):
            name, kind = path.relative_to(folder).as_posix(), PARTS if is_part(laid) else laid
            if laid == "data":
                named = (k for k, own in patterns.items() if any(fnmatch(name, p) for p in own))
                kind = next(named, "data")
            # What is beside the data lies on its storage.
            on = laid if laid in storages.laid else "data"
            found.setdefault((on, kind), []).append(path)
    return found


def _running_lengths(session: Session) -> dict[str, int]:
    """By kind the lengths of the files while the server runs, which may come and go."""
    found: dict[str, int] = {}
    for (_, kind), files in _files(session).items():
        for path in files:
            with contextlib.suppress(FileNotFoundError):
                found[kind] = found.get(kind, 0) + path.stat().st_size
    return found


def _streamed(
    session: Session, stream: Callable[[Corpus], Iterator[tuple[Request, int]]]
) -> Batches:
    """What it sends, in a file."""
    corpus, job = _workload(session).corpus, session.jobs[-1].about
    digest = session.opened.corpus_about.digest
    parts = [digest, job.name, job.levels, written_for(_engine(session), session.levers)]
    return session.sitting.shelf.stream(parts, lambda: stream(corpus))


def written_for(engine: Engine, levers: Parameters) -> list[object]:
    """What documents in an engine's bytes depend on: the engine, and levers that its index does."""
    return [engine.name, {p.name: levers[p.name] for p in engine.parameters if p.index}]


def _in_place_of(
    deploy: Sequence[Phase], name: str, opening: Callable[[Session], object]
) -> list[Phase]:
    return [(name, opening) if phase == "deploy" else (phase, do) for phase, do in deploy]


def _comparable(rows: object) -> object:
    """Rows without what a database adds to them: names that begin with @."""
    if isinstance(rows, list):
        return [{k: v for k, v in row.items() if not k.startswith("@")} for row in rows]
    return rows


def _index(session: Session) -> Index:
    assert session.index is not None
    return session.index


def _engine(session: Session) -> Engine:
    assert session.opened.engine is not None
    return session.opened.engine


def _workload(session: Session) -> PortableQueries | DocumentsAlone:
    workload = session.opened.workload
    assert isinstance(workload, PortableQueries | DocumentsAlone)
    return workload
