"""The roles beside the readers: made ready, driven on the readers' clock, and counted afterwards.

A trial that has roles is driven on an index of its own, a copy of the one that all share, also
where they are idle: what is compared differs in nothing but them. (Roles that only read leave the
shared one as it is.) Longer than most files: what a role sends, and what became of it, are read
side by side.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from searchbench import _core
from searchbench.corpora.corpus import Schema
from searchbench.corpora.kept_back import KeptBack
from searchbench.engines.engine import CountsTaken, Engine, Parameters, Request
from searchbench.engines.features import refuse
from searchbench.engines.job import Work
from searchbench.engines.write import FindsWords, TakesWrites
from searchbench.errors import LabError, SearchbenchError, Unsupported
from searchbench.lab.conduct import faults, reading
from searchbench.lab.conduct.ingest import must
from searchbench.lab.conduct.session import Run, Session
from searchbench.lab.drive import changes as drawn
from searchbench.lab.drive.changes import Changes
from searchbench.lab.drive.drive import Samples, capture
from searchbench.lab.drive.operations import Operations
from searchbench.lab.drive.together import Side, together
from searchbench.lab.drive.workload import PortableQueries
from searchbench.lab.system.deploy import Deployment, command_line, complete
from searchbench.lab.system.running import Running
from searchbench.lab.system.seat import Seat
from searchbench.lab.wire.exchange import Endpoint, samples_of
from searchbench.lab.wire.order import Manner, Order, one_by_one
from searchbench.record import samples_table
from searchbench.record.drive import Drive
from searchbench.record.roles import ASKS, WRITES, Applied, Drawn, Publishing, RoleRun
from searchbench.workload.changes import due_ns, span_ns
from searchbench.workload.queries.algebra import Query
from searchbench.workload.roles import WATCHER, is_idle, only_reads

_T = TypeVar("_T")
_TIMEOUT_S = 60.0
_JOB_TIMEOUT_S = 3600.0
_MOST_DRAWN = 100  # documents that are asked for once all is over
_PATIENCE_S, _AGAIN_S = 10.0, 0.1  # for those of them that are not found at once
WHILE_WRITTEN, AFTER = "while_written", "after"
"""Phases of replies: kept while documents changed, and asked alone once all was over."""


@dataclass
class Part:
    """A role that takes part in a drive: what it sends, and what is kept of it.

    ``reading``: of one that reads.
    """

    run: RoleRun
    side: Side
    reading: reading.Reading | None = None


@dataclass
class Beside:
    """The roles of one session. ``changes``: of its writer; None where that is idle. ``after``: the
    answers to the readers' queries once all was over.
    """

    parts: list[Part] = field(default_factory=list)
    changes: Changes | None = None
    tables: dict[str, pa.Table | Samples] = field(default_factory=dict)
    after: pa.Table | None = None

    @property
    def active(self) -> bool:
        """Does any role do anything by which answers may change? Readers do not."""
        return any(not part.run.idle and part.run.does != "read" for part in self.parts)

    @property
    def faulted(self) -> bool:
        """Did a fault come over the system?"""
        return any(part.run.fault is not None for part in self.parts)

    @property
    def gone(self) -> bool:
        """Did the service not come back from it?"""
        return any(
            part.run.fault
            and (part.run.fault.trouble or (part.run.fault.begun and part.run.failed))
            for part in self.parts
        )


def prepare(session: Session) -> None:
    """Everything that the roles will send, in the engine's bytes, before any clock runs."""
    beside = session.beside = Beside()
    for name, table in session.opened.treatment.roles.items():
        run = RoleRun(
            name=name, number=len(beside.parts) + 1, does=str(table["does"]),
            idle=is_idle(table), keys=dict(table),
        )  # fmt: skip
        side = Side(name, manner=_manner(session, len(beside.parts)))
        beside.parts.append(Part(run, side))
        _READY[run.does](session, beside, beside.parts[-1])


def copy_index(session: Session) -> None:
    """A copy of the index for this trial alone; LabError where there is no room for it."""
    assert session.index is not None
    session.own_index = own = session.run / "index"
    # It is written outside of the place: what of it is in memory would be free of the cap.
    session.index.storages.copy = own
    if own.exists():
        return
    session.run.mkdir(parents=True, exist_ok=True)
    # cp keeps owners and holes, and shares blocks where the file system can.
    done = subprocess.run(
        ["cp", "-a", "--reflink=auto", str(session.index.path), str(own)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise LabError(f"the index cannot be copied for this trial: {done.stderr.strip()}", "copy")


def drive(run: Run, order: Order, main: Callable[[int], _T]) -> _T:
    """The readers, and whatever goes on beside them, on one clock."""
    beside, running = run.session.beside, run.session.there()
    assert beside is not None
    for part in beside.parts:
        if part.run.does in ("write", "publish"):
            part.side.endpoint = _own(running, running.writing)
    reading.begin(run)
    sides = [part.side for part in beside.parts if not part.run.idle]
    trace = together(main, order.connections, sides, _own(running, running.endpoint))
    for part in beside.parts:
        _keep(run, beside, part)
    return trace


def publish(run: Run) -> None:
    """All that was written made visible, so that it can be counted."""
    beside, running = run.session.beside, run.session.there()
    engine = _writable(run.session)
    if beside is None or beside.changes is None or engine is None or beside.gone:
        return
    began = time.perf_counter()
    for request in engine.publish(running.schema, running.params).requests:
        must(running, running.tell(request, _JOB_TIMEOUT_S), "publish", "publish")
    applied = Applied(publish_s=time.perf_counter() - began)
    _writer(beside).applied = applied


def count(run: Run) -> None:
    """What is there now: documents counted, some asked for, and every query once more."""
    session, beside = run.session, run.session.beside
    if beside is None or beside.gone or (beside.changes is None and not beside.faulted):
        return
    running, timeout_s = session.there(), max(_TIMEOUT_S, session.opened.load.timeout_s)
    if beside.faulted and _is_silent(session, timeout_s):
        # Each question would wait as long.
        why = session.there().service.silent
        for part in beside.parts:
            if part.run.fault is not None:
                part.run.fault.trouble = (
                    "it took connections again, and did not answer a query within "
                    f"{timeout_s:g} s once all was over" + (f"; {why}" if why else "")
                )
        return
    replies = capture(
        running.endpoint, running.decoder, session.bytes(), timeout_s, run.spill
    ).replies
    phase = pa.array([AFTER] * replies.num_rows)
    at = replies.schema.get_field_index("phase")
    beside.after = replies.set_column(at, "phase", phase)
    reading.again(run, AFTER)
    if beside.changes is None:  # the answers alone: nobody wrote
        return
    writer, before = _writer(beside), run.about.facts.documents
    facts = running.engine.facts(running.ask(running.engine.facts_request()))
    gone, looked = _still_there(run, beside, replies)
    updated, uncounted = _updated(session, beside)
    writer.applied = msgspec.structs.replace(
        writer.applied or Applied(), before=before, after=facts.documents,
        drawn=_asked_for(session, beside), gone=gone, looked=looked, updated=updated,
        uncounted=uncounted,
    )  # fmt: skip


def _is_silent(session: Session, timeout_s: float) -> bool:
    """Does it not answer a query at all? An error is an answer."""
    first = session.bytes().some([0])
    manner = Manner(timeout_s=timeout_s, capture_every=0)
    trace = session.there().endpoint.send(first.requests, one_by_one(1), manner)
    outcomes = samples_of(trace)["outcome"]
    return bool((outcomes == _core.OUTCOMES.index("timed_out")).all())


def after(run: Run) -> None:
    """Put the answers of afterwards beside those of before."""
    beside = run.session.beside
    if beside is not None and run.replies is not None and beside.after is not None:
        run.replies = pa.concat_tables([run.replies, beside.after])


def discard(session: Session) -> None:
    """Remove the copy of the index."""
    if session.own_index is not None:
        subprocess.run(["rm", "-rf", "--", str(session.own_index)], check=False)
        session.own_index = None
        if session.index is not None:
            session.index.storages.copy = None


def made_anew(session: Session) -> bool:
    """Is the index of a trial with roles built for it alone, as its storages are not copied?"""
    return needs_its_own(session) and bool(session.place and session.place.storages)


def needs_its_own(session: Session) -> bool:
    """Has the trial an index of its own, as its roles may change it?"""
    return not only_reads(session.opened.treatment.roles)


def _write(session: Session, beside: Beside, part: Part) -> None:
    """The changes of a writer, and whoever asks for its markers."""
    base = _asked(session).corpus
    kept = base if isinstance(base, KeptBack) else None
    part.run.kept_back = kept.count if kept else 0
    engine = _writable(session)
    if engine is None:
        raise LabError(f"{_engine(session).name} has not declared how documents are changed while "
                       "it is asked", "prepare")  # fmt: skip
    part.run.publishing = _publishing(session, engine)
    if part.run.idle:
        return
    begin_ns, stop_ns = _bounds(session)
    made = beside.changes = drawn.changes(
        part.run.keys, _engine(session), base, session.opened.corpus_about.documents or 0,
        kept.kept() if kept else (), session.levers,
        begin_ns=begin_ns, stop_ns=stop_ns, seed=session.opened.seed,
        base_folder=session.opened.base,
    )  # fmt: skip
    part.run.planned, part.run.marker_field = len(made.requests), made.text
    part.side.requests, part.side.order = made.requests, made.order
    if made.asked is not None:
        _watch(session, beside, part, made, stop_ns)


def _watch(session: Session, beside: Beside, writer: Part, made: Changes, stop_ns: int) -> None:
    """Who asks for the markers, over a connection of its own."""
    assert made.asked is not None
    engine, schema = _engine(session), _asked(session).corpus.schema
    try:
        refuse(engine.can, made.asked)
        request = _finding(engine, made.asked, schema, session.levers)
    except Unsupported as error:
        session.sitting.watch.told(f"no markers: {error}")
        return
    every_ns = round(float(writer.run.keys["ask_every_ms"]) * 1e6)
    # Markers are asked for while there are any, and a while longer: the last ones may come late.
    due = np.arange(0, stop_ns, every_ns, dtype=np.int64)
    sequence = np.zeros(len(due), np.uint32)
    order = Order(sequence, None, due, 1, repeat=False, stop_ns=stop_ns)
    name, number = writer.run.name + WATCHER, len(beside.parts) + 1
    run = RoleRun(name=name, number=number, does="watch", planned=len(due),
                  keys={"ask_every_ms": writer.run.keys["ask_every_ms"]})  # fmt: skip
    side = Side(name, (request,), order, _manner(session, number), asks=True)
    beside.parts.append(Part(run, side))


def _publish(session: Session, beside: Beside, part: Part) -> None:
    """One request, again and again."""
    engine = _writable(session)
    if engine is None:
        raise LabError(f"{_engine(session).name} has not declared what publishes", "prepare")
    part.run.publishing = _publishing(session, engine)
    schema = _asked(session).corpus.schema
    asked = engine.publish(schema, session.levers).requests
    if part.run.idle or not asked:
        part.run.idle = True
        return
    _again(session, part, [Request(tuple(e for r in asked for e in r.exchanges))])


def _read(session: Session, beside: Beside, part: Part) -> None:
    """Queries of its own, by a load of its own."""
    reading.prepare(session, part, *_bounds(session))


def _fault(session: Session, beside: Beside, part: Part) -> None:
    """Something that happens to the system, once."""
    faults.prepare(session, part, *_bounds(session))


def _job(session: Session, beside: Beside, part: Part) -> None:
    """A job of the engine, once or again and again: requests, or programs of its own."""
    if part.run.idle:
        return
    engine, name = _engine(session), str(part.run.keys["job"])
    job = next((each for each in engine.jobs if each.name == name), None)
    if job is None:
        raise LabError(f"{engine.name} has no job {name}", "prepare")
    levels = {each.name: each.default for each in job.parameters}
    schema = _asked(session).corpus.schema
    work = engine.work(name, levels, schema, session.levers)
    if work.stream is not None or work.opens or [*work.before]:
        raise LabError(f"the job {name} of {engine.name} cannot be done while it is asked: it "
                       "begins with an index that nobody uses", "prepare")  # fmt: skip
    if work.commands:
        part.run.planned = len(work.commands) * len(_begins(session, part))
        part.side.act = lambda start_unix_ns: _run(session, part, work, start_unix_ns)
        return
    _again(session, part, [Request(tuple(e for r in work.requests for e in r.exchanges))])


_READY: Mapping[str, Callable[[Session, Beside, Part], None]] = {
    "read": _read, "write": _write, "publish": _publish, "job": _job, "fault": _fault,
}  # fmt: skip


def _begins(session: Session, part: Part) -> NDArray[np.int64]:
    """When a role begins what it does: by its clock, or once, as a job without one."""
    begin_ns, stop_ns = _bounds(session)
    keys = part.run.keys
    if keys.get("every_s") is None:
        due = np.array([begin_ns + round(float(keys["after_s"]) * 1e9)], np.int64)
        if due[0] >= stop_ns:
            raise LabError(f"the role {part.run.name} begins after the drive has ended: make "
                           "`after_s` smaller, or the window longer", "prepare")  # fmt: skip
        return due
    found = due_ns(keys, begin_ns, stop_ns)
    assert found is not None
    return found


def _again(session: Session, part: Part, requests: Sequence[Request]) -> None:
    """A request by the clock of its role."""
    _, stop_ns = _bounds(session)
    due = _begins(session, part)
    part.run.planned = len(due)
    part.side.requests = tuple(requests)
    sequence = np.zeros(len(due), np.uint32)
    if len(due):
        part.side.order = Order(sequence, None, due, 1, repeat=False, stop_ns=stop_ns)
    part.side.manner = replace(part.side.manner, timeout_s=_JOB_TIMEOUT_S)


def _run(session: Session, part: Part, work: Work, start_unix_ns: int) -> None:
    """Programs of the engine's own, at their time."""
    running, confines = session.there(), session.confines
    assert isinstance(running, Deployment)
    if running.seat.link is not None:
        raise LabError(f"the role {part.run.name} runs a program of the engine beside its server, "
                       f"and that is on host {running.seat.host}, where roles run no program",
                       "drive")  # fmt: skip
    _, stop_ns = _bounds(session)
    Path(running.places.fill("{backup}")).mkdir(parents=True, exist_ok=True)
    seat = confines.seat if confines else Seat(session.cpus)
    for number, due in enumerate(_begins(session, part).tolist()):
        part.side.over.wait(max(0.0, (start_unix_ns + due - time.time_ns()) / 1e9))
        start = time.time_ns() - start_unix_ns
        if part.side.over.is_set() or (number and start >= stop_ns):
            return  # the one before took longer than until the end
        for command in work.commands:
            argv = command_line([running.places.fill(each) for each in command], refuses_root=False)
            complete(argv, run=session.run, log=f"{part.run.name}.log", stage="drive", seat=seat,
                     seen=session.helpers.append)  # fmt: skip
        end = time.time_ns() - start_unix_ns
        part.run.spans.append((start, end))
        part.run.start, part.run.end = part.run.spans[0][0], end


def _keep(run: Run, beside: Beside, part: Part) -> None:
    """What a role's drive recorded, and what the engine answered it."""
    name, trace = part.run.name, part.side.trace
    if part.side.error is not None:
        part.run.failed = str(part.side.error) or type(part.side.error).__name__
    if trace is None:
        return
    part.run.drive = msgspec.json.decode(trace.accounting(), type=Drive)
    if part.reading is not None:
        phase = WHILE_WRITTEN if beside.active else "under_load"
        beside.tables |= reading.kept(run, part, part.reading, trace, phase)
        return
    raw = samples_of(trace)
    numbers = np.arange(max(1, len(part.side.requests)), dtype=np.uint32)
    beside.tables[name] = samples_table(raw, numbers, part.run.number)
    replies = [(raw[index], reply) for index, reply in trace.replies()]
    engine = _engine(run.session)
    if part.run.does == "write":
        assert beside.changes is not None
        beside.tables[f"{name}.writes"] = _written(engine, beside.changes, replies)
    elif part.run.does == "watch":
        beside.tables[f"{name}.asks"] = _seen(engine, replies)
    else:
        for _, reply in replies:
            if (said := _trouble(engine, reply)) and not part.run.failed:
                part.run.failed = f"{engine.can.title} refused it: {said}"


def _written(engine: Engine, made: Changes, replies: Sequence[tuple[Any, bytes]]) -> pa.Table:
    """Each planned request with what the engine said of it."""
    rows = list(drawn.rows(made))
    for sample, reply in replies:
        row = rows[int(sample["request"])]
        row["error"] = _trouble(engine, reply)
        try:
            row["refused"] = len(engine.refused(reply))
            if isinstance(engine, CountsTaken) and row["kind"] != "delete":
                row["refused"] = row["documents"] - engine.taken(reply)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            row["error"] = row["error"] or f"the reply cannot be read: {error}"
    return pa.Table.from_pylist(rows, schema=WRITES)


def _seen(engine: Engine, replies: Sequence[tuple[Any, bytes]]) -> pa.Table:
    """What each ask found, in order of the asks."""
    rows = []
    for sample, reply in sorted(replies, key=lambda each: int(each[0]["sent"])):
        row: dict[str, Any] = {
            "sent": int(sample["sent"]), "done": int(sample["done"]),
            "total": None, "ids": [], "error": None,
        }  # fmt: skip
        try:
            hits = engine.decode(reply)
            row |= {"total": hits.total, "ids": [h.id for h in hits.hits], "error": hits.error}
        except (ValueError, KeyError, TypeError, IndexError) as error:
            row["error"] = f"the reply cannot be read: {error}"
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=ASKS)


def _trouble(engine: Engine, reply: bytes) -> str | None:
    try:
        return engine.check(reply)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        return f"the reply cannot be read: {error}"


def _asked_for(session: Session, beside: Beside) -> list[Drawn]:
    """Documents that were written, asked for by the word that each alone has.

    What is not found is asked for again for some seconds: where nobody can publish, a write may
    need a while by itself.
    """
    made = beside.changes
    assert made is not None
    well = _acknowledged(beside)
    words = [word for word in made.words if word.request in well]
    words = words[:: max(1, -(-len(words) // _MOST_DRAWN))]
    found: dict[str, Drawn] = {}
    until = time.monotonic() + _PATIENCE_S
    while missing := [w for w in words if w.word not in found or not found[w.word].found]:
        if found and time.monotonic() > until:
            break
        found |= {word.word: _looked_up(session, made.text, word) for word in missing}
        time.sleep(_AGAIN_S)
    return [found[word.word] for word in words]


def _updated(session: Session, beside: Beside) -> tuple[int | None, str]:
    """How many documents have the word of all updated ones; None with the reason if nobody says.

    It is asked for again for some seconds while there are fewer than were acknowledged.
    """
    made = beside.changes
    assert made is not None
    updates = [number for number, change in enumerate(made.each) if change.kind == "update"]
    if not updates:
        return None, ""
    if not made.text:
        return None, "the corpus has no text to which a word could be added"
    well = _acknowledged(beside)
    wanted = sum(len(made.each[number].placed) for number in updates if number in well)
    running, query = session.there(), drawn.lookup(drawn.UPDATED, made.text)
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            refuse(running.engine.can, query)
            asked = _finding(running.engine, query, running.schema, running.params)
            hits = running.engine.decode(running.ask(asked))
        except (SearchbenchError, ValueError, KeyError) as error:
            return None, str(error)
        if hits.error or hits.partial or hits.total is None or not hits.total_exact:
            return None, hits.error or "the engine gives no exact total"
        if hits.total >= wanted or time.monotonic() > until:
            return hits.total, ""
        time.sleep(_AGAIN_S)


def _looked_up(session: Session, text: str, word: drawn.Word) -> Drawn:
    running = session.there()
    engine, query = running.engine, drawn.lookup(word.word, text)
    ids: list[str] = []
    try:
        reply = running.ask(_finding(engine, query, running.schema, running.params))
        hits = engine.decode(reply)
        ids, why = [h.id for h in hits.hits], hits.error or ""
    except (SearchbenchError, ValueError, KeyError) as error:
        why = str(error)
    return Drawn(word=word.word, id=word.id, kind=word.kind, request=word.request, found=ids,
                 error=why)  # fmt: skip


def _acknowledged(beside: Beside) -> set[int]:
    """The requests of the writer whose documents the engine said it has taken, all of them."""
    name = _writer(beside).name
    samples, writes = beside.tables[name], beside.tables[f"{name}.writes"]
    assert isinstance(samples, pa.Table)
    assert isinstance(writes, pa.Table)
    ok = _core.OUTCOMES.index("ok")
    answered = samples["query"].to_numpy()[samples["outcome"].to_numpy() == ok]
    clean = {
        row["request"] for row in writes.to_pylist() if row["error"] is None and not row["refused"]
    }
    return clean & {int(number) for number in answered}


def _still_there(run: Run, beside: Beside, after: pa.Table) -> tuple[list[str], int]:
    """Deleted documents that answers still show; and how many of them an answer before showed."""
    made = beside.changes
    assert made is not None
    well = _acknowledged(beside)
    deleted = {
        placed.document.id
        for number, change in enumerate(made.each)
        if change.kind == "delete" and number in well
        for placed in change.placed
    }
    captured = run.session.captured
    # The rows of an operation are no ids; there the count alone shows that a delete was not made.
    if not deleted or captured is None or isinstance(_asked(run.session), Operations):
        return [], 0
    before, now = (
        {name for ids in table["ids"].to_pylist() for name in ids or ()}
        for table in (captured.replies, after)
    )
    return sorted(deleted & now), len(deleted & before)


def _bounds(session: Session) -> tuple[int, int]:
    """The beginning of the window and the end of the drive, in ns."""
    return span_ns(session.opened.load)


def _own(running: Running, endpoint: Endpoint) -> Endpoint:
    """Where roles send: connections without what those of an operation begin with, and answers
    with the marks of the engine's own.
    """
    return replace(endpoint, prelude=(), whole=running.service.whole)


def _finding(engine: Engine, query: Query, schema: Schema, levers: Parameters) -> Request:
    """What asks for documents by their words; Unsupported where it cannot be asked."""
    if isinstance(engine, FindsWords):
        return engine.find(query, schema, levers)
    return engine.compile(query, schema, levers)


def _manner(session: Session, number: int) -> Manner:
    """A thread on one of the load generator's cores, asleep while it waits."""
    cpus = session.opened.load.cpus or session.sitting.cores.client_cpus
    cpu = (cpus[number % len(cpus)],) if cpus else ()
    return Manner(timeout_s=_TIMEOUT_S, capture_every=1, cpus=cpu, idle="block")


def _writer(beside: Beside) -> RoleRun:
    return next(part.run for part in beside.parts if part.run.does == "write")


def _publishing(session: Session, engine: TakesWrites) -> Publishing:
    schema = _asked(session).corpus.schema
    found = engine.publish(schema, session.levers)
    return Publishing(how=found.how, unasked=found.unasked)


def _writable(session: Session) -> TakesWrites | None:
    engine = _engine(session)
    return engine if isinstance(engine, TakesWrites) else None


def _asked(session: Session) -> PortableQueries | Operations:
    """What the readers ask."""
    workload = session.opened.workload
    assert isinstance(workload, PortableQueries | Operations)
    return workload


def _engine(session: Session) -> Engine:
    assert session.opened.engine is not None
    return session.opened.engine
