"""The phases that make a system ready, and in which order which trial has them.

    started             compile → prepare → deploy → ingest → stop → deploy → identify → capture
                        → stop → deploy → identify | drive → totals → answers | stop
    in a place          compile → prepare → place → deploy → ingest → stop → place → deploy → ..
                        → place | drive → place → totals → ..
    keeps no index      compile → prepare → deploy → ingest → identify → capture | drive → ..
    attached            prepare → deploy → ingest → compile → identify → capture | drive → ..
    verbatim requests   compile → deploy → identify → capture | drive → totals → answers
    agents on hosts     .. capture → calibrate → stop → place → deploy → identify | drive → ..
    captures afterwards ..  deploy → identify | drive → totals → capture → answers | stop
    cold, each query    ..  deploy → identify | (stop → place → deploy → drive) for each query → ..
    roles               .. capture → stop → copy → deploy → identify | drive → totals → publish
                        → count → answers | stop
    jobs                compile → prepare → deploy → ingest → stop → (deploy → identify → job
                        → check → stop → weigh) for each → deploy → capture → ..
    a job that fills    .. → prepare → (deploy → job → check → stop → weigh) → ..

Where a study has jobs and no load, there is no drive; where it has no queries, no captures either.

What is before the first bar opens a session, and is done once for all trials driven on it. The
process that is measured has always just opened a finished index: it is neither the one that built
it nor the one that was asked for the captures, so that the first treatment on an index has nothing
over the others. (An engine that keeps no index is ingested into before it is driven.)

In a place, the storages of an index are made before it is. An index that trials of other places may
use too is built without the limits of any; a session's own deployments have them. Before those,
files are evicted where that is asked for.

A phase takes a session and leaves in it what the next needs. Longer than most files, because the
orders of phases and what each does are read side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

import pyarrow as pa
from msgspec import structs

from searchbench import _core
from searchbench.corpora.corpus import Corpus
from searchbench.engines.answer import Facts
from searchbench.engines.engine import Engine
from searchbench.errors import LabError, SearchbenchError
from searchbench.lab.conduct import beside, each, jobs, measuring, reading
from searchbench.lab.conduct.alone import calibrate
from searchbench.lab.conduct.asking import ask_operations, made_once, once
from searchbench.lab.conduct.ended import DYING_S, ends_of, has_ended, note
from searchbench.lab.conduct.ingest import index_offline, ingest, ingest_if_empty
from searchbench.lab.conduct.notes import NOT_COMPARED, SHARED_CORE, UNCHECKED
from searchbench.lab.conduct.session import Captured, Index, Run, Session
from searchbench.lab.drive.drive import capture as ask_each
from searchbench.lab.drive.drive import terms_seen
from searchbench.lab.drive.operations import Operations
from searchbench.lab.drive.workload import PortableQueries, VerbatimRequests
from searchbench.lab.place import host
from searchbench.lab.place.cold import files_below
from searchbench.lab.place.cores import numbers
from searchbench.lab.place.places import Confines
from searchbench.lab.system.address import Target
from searchbench.lab.system.attach import Attached, Found
from searchbench.lab.system.deploy import Deployment
from searchbench.places.model import EACH_QUERY
from searchbench.record.queries import Unsupported
from searchbench.record.samples import REPLIES
from searchbench.record.trial import Captured as CapturedAbout
from searchbench.record.trial import Facts as FactsAbout
from searchbench.record.trial import Ingest, Note, Service, Terms
from searchbench.spec import show
from searchbench.workload.queries.sets import QuerySet

_T = TypeVar("_T", Session, Run)
Phases = Sequence[tuple[str, Callable[[_T], object]]]
_Phase = tuple[str, Callable[[Session], object]]


def go(session: Session, phases: Phases[_T], it: _T) -> None:
    """Do them to ``it`` in their order, each timed; what one raises ends them."""
    for name, phase in phases:
        with session.phase(name):
            try:
                phase(it)
            except (SearchbenchError, OSError) as error:
                why = session.why()
                if why and why not in str(error):
                    raise LabError(f"{why} ({error})", _stage(session, name)) from error
                if (stage := _stage(session, name)) != name:
                    raise LabError(str(error), stage) from error
                raise


def _stage(session: Session, name: str) -> str:
    """Where a phase failed: a system that ended failed by itself, whatever was looked at then."""
    running = session.running
    if name != "place" or running is None:
        return name
    killed = session.confines.killed() if session.confines else ""
    return "deploy" if killed or has_ended(running) else name


def preparing(session: Session) -> Phases[Session]:
    """What comes before anything is deployed, where it is needed."""
    fit = ("host", lambda _: host.require_release_build())
    if isinstance(session.opened.workload, VerbatimRequests):
        return [fit, ("compile", _encode)]
    asks = isinstance(session.opened.workload, PortableQueries | Operations)
    compiling = [] if session.attached or not asks else [("compile", _compile)]
    as_found = session.sitting.rules.ingest == "as-found" and session.attached
    roles = [] if session.attached else _roles(session)
    return [fit, *compiling, *([] if as_found else [("prepare", _prepare)]), *roles]


def _roles(session: Session) -> list[_Phase]:
    """What the roles will send, made ready."""
    return [("prepare", beside.prepare)] if session.opened.treatment.roles else []


def opening_of(session: Session) -> Phases[Session]:
    """From a prepared workload to a system that can be driven."""
    timed = session.sitting.timed
    stop, identify = ("stop", Session.close), ("identify", _identify)
    placed = session.place is not None
    settle = [("place", _settle)] if placed else []
    look = [("place", _look)] if placed else []
    deploy = [*settle, ("deploy", _deploy), identify, *look]
    capture = [("capture", _capture)] if not session.captures_after else []
    if isinstance(session.opened.workload, VerbatimRequests):
        some = [("capture", _capture_some)] if capture else []
        return [("deploy", _find), ("identify", _know_again), *some]
    if session.attached:
        fill = [("ingest", _fill)] if session.index is not None else []
        compiling = [("compile", _compile), *_roles(session)]
        return [("deploy", _attach), *fill, *compiling, identify, *capture]
    if not _engine(session).can.keeps_index:
        filled = [("deploy", _deploy), ("ingest", _ingest_for_now), identify]
        return [*settle, *filled, *look, *capture]
    found: list[tuple[str, Callable[[Session], object]]] = []
    if session.opened.treatment.jobs:
        return _with_jobs(session, deploy, capture)
    if not _index(session).finished:
        # The storages, and the limits where this trial alone uses the index.
        found += [("place", _lay)] if placed else []
        if _engine(session).offline(_corpus(session).schema, session.levers) is not None:
            found += [("ingest", _index_by_program), ("deploy", _deploy)]
        else:
            found += [("deploy", _deploy), ("ingest", _ingest_to_keep)]
        if isinstance(session.opened.workload, Operations):
            found.append(("ingest", once))
        found += [("ingest", _count_documents), ("stop", _stop_and_fetch), ("ingest", _finish)]
    found.append(("ingest", _ingested))
    alone = [("calibrate", calibrate)] if timed and session.has_agents else []
    if capture and _take_captured(session):
        capture = []
    if capture or alone:
        found += [*deploy, *capture, *alone, stop]
    if beside.needs_its_own(session) and timed and not beside.made_anew(session):
        found.append(("copy", beside.copy_index))
    return [*found, *deploy] if timed else found


def _with_jobs(
    session: Session, deploy: Sequence[_Phase], capture: Sequence[_Phase]
) -> Phases[Session]:
    """The documents put in, by a job or as ever; the jobs; then what is asked, if anything is."""
    placed = session.place is not None
    stop = ("stop", Session.close)
    found: list[_Phase] = [("place", _lay)] if placed else []
    if not jobs.fills(session):
        offline = _engine(session).offline(_corpus(session).schema, session.levers)
        put_in: list[_Phase] = [("deploy", _deploy), ("ingest", _ingest_to_keep)]
        if offline is not None:
            put_in = [("ingest", _index_by_program), ("deploy", _deploy)]
        found += [*put_in, ("ingest", _count_documents), stop, ("ingest", _finish)]
        found += [("ingest", _ingested)]
    found += jobs.jobs_of(session, deploy, _deploy)
    if capture and isinstance(session.opened.workload, PortableQueries):
        found += [*deploy, *capture, stop]
    if session.sitting.rules.driven and session.sitting.timed:
        return [*found, *deploy]
    # The storages are verified with all that lies there.
    return [*found, *([("place", _verify), stop] if placed else [])]


def measuring_of(run: Run) -> Phases[Run]:
    """One drive and what is to be known of it; nothing where jobs are all that is measured."""
    if not run.session.sitting.rules.driven:
        return [("totals", _keep_captured)]
    place = run.session.place
    driving: Phases[Run] = [("drive", measuring.drive_it)]
    if place is not None and place.cold == EACH_QUERY:
        driving = each.phases_of(run, lambda run: _deploy(run.session))
    found: list[tuple[str, Callable[[Run], object]]] = [
        *driving,
        *([("place", _account)] if run.session.confines else []),
        ("totals", measuring.totals_of),
    ]
    if run.session.opened.treatment.roles:
        found += [("publish", beside.publish), ("count", beside.count)]
    if run.session.captures_after:
        verbatim = isinstance(run.opened.workload, VerbatimRequests)
        how = _capture_some if verbatim else _capture
        found.append(("capture", lambda run: how(run.session)))
    return [*found, ("totals", measuring.answers)]


def _keep_captured(run: Run) -> None:
    """The answers of a system that is not driven."""
    if run.session.captured is not None:
        run.replies = run.session.captured.replies


def _compile(session: Session) -> None:
    """The queries in the engine's bytes; what it cannot express goes on record.

    The levers are those that an attached system has, else as the study has them.
    """
    there = session.running
    levers = session.levers if there is None else there.params
    endpoints = 1 if there is None else len(there.endpoint.addresses)
    compiled = _asked(session).compiled(_engine(session), levers, endpoints)
    session.compiled = compiled
    session.found["operation"] = compiled.operation
    session.found["unsupported"] = [Unsupported(q, reason) for q, reason in compiled.unsupported]


def _encode(session: Session) -> None:
    """Verbatim requests in the target's bytes, for each of its endpoints."""
    requests, target = _requests(session)
    session.compiled, full = requests.compiled(target, session.opened.load.timeout_s)
    session.opened = replace(session.opened, target=full)


def _prepare(session: Session) -> None:
    """The documents in the engine's bytes, and where the index is or will be."""
    digest, corpus = session.opened.corpus_about.digest, _corpus(session)
    alone = session.sitting.rules.ingest == "per-trial" or beside.made_anew(session)
    scope = session.made_by if alone else ""
    scope += made_once(session)
    shelf, put_in = session.sitting.shelf, session.opened.treatment.ingest
    session.index = shelf.index(
        _engine(session), corpus, digest, session.levers, scope, session.place,
        documents=int(put_in.get("batch", 0)), connections=int(put_in.get("connections", 1)),
        empty=bool(session.opened.treatment.jobs) and jobs.fills(session),
    )  # fmt: skip


def _lay(session: Session) -> None:
    """Make the storages of an index that is going to be built.

    Where no other trial uses it, it is built in its place, with the limits: what that takes is
    measured too.
    """
    _index(session).storages.make()
    _index(session).storages.unwritten = jobs.to_be_written(session)
    if session.sitting.rules.ingest == "per-trial":
        session.confines = _confines(session)
        session.confines.confine()
        _noted(session)


def _settle(session: Session) -> None:
    """Verify the storages, evict the files, set the limits: what is deployed next has them."""
    session.confines = _confines(session)
    session.confines.settle()
    _noted(session)


def _verify(session: Session) -> None:
    """Verify the storages with all that the jobs left there."""
    _index(session).storages.unwritten.clear()
    _settle(session)


def _confines(session: Session) -> Confines:
    assert session.place is not None
    ours = session.sitting.cores
    shared = sorted({*session.cpus} & {*ours.client_cpus, *ours.beside_client})
    if shared:
        note = structs.replace(SHARED_CORE, number=numbers(shared))
        session.notes += [] if note in session.notes else [note]
    storages, shelf = _index(session).storages, session.sitting.shelf
    return Confines(session.place, session.sitting.cores, storages, shelf.ledger, shelf.links)


def _noted(session: Session) -> None:
    """What its hosts are known to be by now."""
    assert session.confines is not None
    found = session.confines.notes
    session.notes += [note for note in found if note not in session.notes]


def _look(session: Session) -> None:
    """Is every process, with each of its threads, where it should be?"""
    assert session.confines is not None
    running = session.there()
    assert isinstance(running, Deployment)
    session.confines.loaded(running.by_host())


def _account(run: Run) -> None:
    """What the kernel counted in its place while it was driven."""
    assert run.session.confines is not None
    if run.session.gone and isinstance(run.opened.workload, Operations) and not run.about.beside:
        return  # a method did what its limits do not allow: that is on record, as a result
    run.session.confines.driven()


def _deploy(session: Session) -> None:
    """Start the service on its index. Each deployment is of a process that has just started."""
    index, confines = _index(session), session.confines
    session.gone = False
    # The probe sees it while it starts, too.
    session.running = deployment = Deployment(
        _engine(session), session.levers, session.own_index or index.path, session.run,
        session.cpus,
        _corpus(session).schema, index.storages.laid,
        confines.seat if confines else None, confines.agents if confines else (),
        full=index.storages.full,
    )  # fmt: skip
    try:
        deployment.__enter__()
    except BaseException:
        session.running = None
        raise


def _attach(session: Session) -> None:
    """Find the system that the study names."""
    assert session.opened.target is not None
    session.running = Attached(
        _engine(session), session.levers, session.run, session.opened.target,
        _corpus(session).schema,
    ).__enter__()  # fmt: skip


def _find(session: Session) -> None:
    """Find out who answers verbatim requests."""
    requests, target = _requests(session)
    session.running = Found(
        session.run, target, named=session.opened.treatment.engine,
        first=requests.first(session.bytes()), timeout_s=session.opened.load.timeout_s,
    ).__enter__()  # fmt: skip


def _fill(session: Session) -> None:
    """Put the documents into an attached system that has none."""
    corpus, index = _corpus(session), _index(session)
    done = ingest_if_empty(session.there(), corpus, index.batches, index.connections)
    session.found["ingest"] = done if done.reused else _sized(session, done)


def _ingest_for_now(session: Session) -> None:
    """Put the documents into an engine that keeps no index."""
    session.found["ingest"] = _sized(session, _ingest_it(session))


def _sized(session: Session, done: Ingest) -> Ingest:
    return structs.replace(done, index_bytes=_facts(session).index_bytes)


def _ingest_to_keep(session: Session) -> None:
    """Put the documents in; the index outlives the process."""
    _index(session).done = _ingest_it(session)


def _ingest_it(session: Session) -> Ingest:
    index = _index(session)
    full = index.storages.full
    return ingest(session.there(), _corpus(session), index.batches, index.connections, full)


def _index_by_program(session: Session) -> None:
    """Have the engine's own program make the index."""
    index = _index(session)
    offline = _engine(session).offline(_corpus(session).schema, session.levers)
    assert offline is not None
    joins = session.confines.joins if session.confines else ()
    laid = index.storages.laid
    index.done = index_offline(
        offline, index.batches, index.path, session.run, joins, laid, index.storages.full
    )


def _count_documents(session: Session) -> None:
    """Has it as many documents as were put in?"""
    done, there = _index(session).done, _facts(session).documents
    if there is not None and there != done.documents:
        raise LabError(
            f"{done.documents} documents were put in, {_engine(session).name} has {there}",
            "ingest",
        )


def _stop_and_fetch(session: Session) -> None:
    """Stop the server; where it was on another machine, its index comes here, for the next."""
    running = session.there()
    session.close()
    if isinstance(running, Deployment):
        running.fetch()


def _finish(session: Session) -> None:
    """Weigh the index, now that its server has stopped; it may be measured from now on.

    Its bytes are those allocated to its files, as the file system counts them.
    """
    index = _index(session)
    size = sum(f.stat().st_blocks * 512 for f in files_below(index.storages.folders))
    index.done = structs.replace(index.done, index_bytes=size)
    index.made_by, index.finished = session.made_by, True


def _ingested(session: Session) -> None:
    """Whose index this is, for the record."""
    index = _index(session)
    reused = None if index.made_by == session.made_by else index.made_by
    session.found["ingest"] = structs.replace(index.done, reused=reused)


def _identify(session: Session) -> None:
    """Which version it is and how it was started; did every lever take?"""
    running, facts, levers = session.there(), _facts(session), session.levers
    other = {k: v for k, v in facts.parameters.items() if k in levers and levers[k] != v}
    if session.attached:
        _endpoints(session)
        session.found["parameters"] = {**levers, **other}
        differ = ", ".join(f"{k} is {show(v)}, not {show(levers[k])}" for k, v in other.items())
        read = f"{len(facts.parameters)} levers read back as the study has them"
        note = Note(
            kind="attached",
            number=differ or f"{session.found['attached']}: {read}",
            meaning="this system ran before: what it did until now, and levers that cannot be "
            "read back, are not known",
            remedy="have it started by the study, or restart it before",
        )
        session.notes.append(note)
    elif other:
        # A lever that did not take is a failed trial, never a silent one.
        name, level = next(iter(other.items()))
        raise LabError(
            f"the lever {name} did not take effect: {show(levers[name])} was asked for, it is "
            f"{show(level)}"
        )
    ask_operations(session)
    session.found |= {
        "version": facts.version,
        "service": Service(
            argv=list(running.argv),
            files=dict(running.service.files),
            env=dict(running.service.env),
            cpus=[] if session.attached else list(session.cpus),
        ),
        "facts": FactsAbout(documents=facts.documents, extra=dict(facts.extra)),
        "outcomes": list(_core.OUTCOMES),
    }


def _know_again(session: Session) -> None:
    """Who answered, and where, for the record."""
    running, (_, target) = session.there(), _requests(session)
    _endpoints(session)
    session.found |= {
        "engine": running.known.name if running.known else str(target.wire),
        "version": running.facts.version,
        "facts": FactsAbout(extra=dict(running.facts.extra)),
        "outcomes": list(_core.OUTCOMES),
    }


def _capture(session: Session) -> None:
    """Ask each distinct query once, alone, and keep the replies, also for the next trial.

    Those of the readers, and those of every role that reads beside them.
    """
    if session.captured is None or session.captures_after:
        _capture_readers(session)
    reading.capture(session)


def _capture_readers(session: Session) -> None:
    running, compiled = session.there(), session.bytes()
    asked, own_s = _asked(session).asked, session.opened.load.timeout_s
    # An operation takes as long as it does; a query that takes a minute is given up.
    timeout_s = {} if isinstance(asked, QuerySet) else {"timeout_s": own_s}
    room = session.sitting.shelf.root.parent
    alone = ask_each(running.endpoint, running.decoder, compiled, spill=room, **timeout_s)
    lost = alone.broken.lost and isinstance(session.opened.workload, Operations)
    ended = has_ended(running, DYING_S if alone.broken.lost else 0.0, lost=lost)
    if ended and not session.gone:
        ends = ends_of(running, "capture", alone.broken, session.why())
        session.ends += ends
        session.notes.append(note(ends))
    terms = (
        terms_seen(running.engine, running.endpoint, asked.queries)
        if isinstance(asked, QuerySet)
        else None
    )
    captured = _keep(session, alone.replies, alone.mean_s, compiled.single, terms)
    # What a server that ended did not answer is no answer of the next one.
    if not session.attached and not ended:
        _index(session).captured[session.asked] = captured


def _take_captured(session: Session) -> bool:
    """Use the replies that an earlier trial captured on the same index, if there are any."""
    found = _index(session).captured.get(session.asked)
    if found is not None:
        session.captured = found
        session.found |= {"terms": found.terms, "captured": found.about}
    return reading.take_captured(session) and found is not None


def _capture_some(session: Session) -> None:
    """Ask some verbatim requests once, alone, so that answers under load can be compared."""
    running, (requests, _) = session.there(), _requests(session)
    some = requests.some(session.bytes(), session.sitting.rules.agreement.captures)
    replies, mean_s = REPLIES.empty_table(), 0.001
    sizes: Mapping[str, int] = {}
    if some is not None:
        alone = replace(running.endpoint, others=())
        asked = ask_each(alone, running.decoder, some)
        replies, mean_s = asked.replies, asked.mean_s
        if running.known is None:
            replies, sizes = REPLIES.empty_table(), asked.sizes
            session.notes.append(NOT_COMPARED)
    _keep(session, replies, mean_s, replies.num_rows, sizes=sizes)


def _keep(
    session: Session,
    replies: pa.Table,
    mean_s: float,
    distinct: int,
    terms: Terms | None = None,
    sizes: Mapping[str, int] = MappingProxyType({}),
) -> Captured:
    about = CapturedAbout(
        distinct=distinct, mean_s=mean_s, made_by=session.made_by, sizes=dict(sizes)
    )
    session.captured = Captured(replies, about, terms)
    session.found |= {"terms": terms, "captured": about}
    return session.captured


def _endpoints(session: Session) -> None:
    """All that are asked, and how the user named them."""
    assert session.opened.target is not None
    session.found["attached"] = session.opened.target.url
    endpoint = session.there().endpoint
    session.found["endpoints"] = [f"{h}:{p}" for h, p in endpoint.addresses]
    if endpoint.tls is not None and endpoint.tls.insecure:
        session.notes.append(UNCHECKED)
        session.sitting.watch.told(f"{UNCHECKED.kind}: {UNCHECKED.meaning}")


def _facts(session: Session) -> Facts:
    running = session.there()
    return running.engine.facts(running.ask(running.engine.facts_request()))


def _asked(session: Session) -> PortableQueries | Operations:
    workload = session.opened.workload
    assert isinstance(workload, PortableQueries | Operations)
    return workload


def _corpus(session: Session) -> Corpus:
    workload = session.opened.workload
    assert not isinstance(workload, VerbatimRequests)
    return workload.corpus


def _requests(session: Session) -> tuple[VerbatimRequests, Target]:
    workload, target = session.opened.workload, session.opened.target
    assert isinstance(workload, VerbatimRequests)
    assert target is not None
    return workload, target


def _engine(session: Session) -> Engine:
    engine = session.opened.engine
    if engine is None:
        raise LabError("the study names no engine for this system", "compile")
    return engine


def _index(session: Session) -> Index:
    assert session.index is not None
    return session.index
