"""The phases that make a system ready: compiled, ingested, deployed, identified, captured.

Each takes a session and leaves in it what the next needs; phases.py has their order.
"""

from __future__ import annotations

from dataclasses import replace

from searchbench import _core
from searchbench.corpora.corpus import Corpus
from searchbench.engines.engine import Engine, Facts
from searchbench.errors import LabError
from searchbench.lab.conduct.ingest import (
    Ingested,
    index_offline,
    ingest,
    ingest_if_empty,
    size_on_disk,
)
from searchbench.lab.conduct.session import Session
from searchbench.lab.conduct.shelf import Captured, Index, Shelf
from searchbench.lab.drive.drive import capture as ask_each
from searchbench.lab.drive.drive import terms_seen
from searchbench.lab.drive.workload import PortableQueries, VerbatimRequests
from searchbench.lab.place import host
from searchbench.lab.system.attach import Attached, Found, as_found, processes_at
from searchbench.lab.system.deploy import Deployment
from searchbench.places import Place
from searchbench.record.samples import REPLIES
from searchbench.record.trial import Captured as CapturedAbout
from searchbench.record.trial import Facts as FactsAbout
from searchbench.record.trial import Ingest, Note, Service, Unsupported

_NOT_COMPARED = Note(
    kind="answers not compared",
    severity="note",
    number="unknown engine",
    meaning="no engine that is known here answers, so its replies are not read, and whether it "
    "answers under load as it does alone is not known",
    remedy="name its engine if it is one that is known (--engine)",
)


def fit(session: Session) -> None:
    """Refuse to measure with a debug build."""
    refusal = host.require_release_build()
    if refusal:
        raise LabError(refusal)


def compile_queries(session: Session) -> None:
    """The queries in the engine's bytes; what it cannot express goes on record."""
    workload = _queries(session)
    endpoints = len(session.running.endpoint.addresses) if session.running else 1
    compiled = session.compiled = workload.compiled(_engine(session), session.params, endpoints)
    session.found["unsupported"] = [Unsupported(q, reason) for q, reason in compiled.unsupported]


def encode(session: Session) -> None:
    """Verbatim requests in the target's bytes, for each of its endpoints."""
    workload, target = session.opened.workload, session.opened.target
    assert isinstance(workload, VerbatimRequests)
    assert target is not None
    session.compiled, full = workload.compiled(
        target, remote=session.opened.remote, timeout_s=session.opened.role.load.timeout_s
    )
    session.opened = replace(session.opened, target=full)


def prepare(session: Session, shelf: Shelf) -> None:
    """The documents in the engine's bytes, and where the index is or will be."""
    opened, params = session.opened, session.opened.treatment.parameters
    digest = opened.corpus_about.digest
    engine = _engine(session)
    session.batches = shelf.batches(engine, _corpus(session), digest, params)
    session.index = shelf.index(engine, digest, params, session.scope)


def made_offline(session: Session) -> bool:
    """Is the index made by a program of the engine's own, before the server starts?"""
    params = session.opened.treatment.parameters
    return _engine(session).offline(_corpus(session).schema, params) is not None


def deploy(session: Session, place: Place) -> None:
    """Start the service on its index."""
    index = session.index
    assert index is not None
    deployment = Deployment(
        _engine(session), session.opened.treatment.parameters, index.path, session.run,
        place.server_cpus, _corpus(session).schema,
    )  # fmt: skip
    session.running = deployment.__enter__()


def stop(session: Session) -> None:
    """Stop it, so that the next deployment is of a process that has just started."""
    session.close()


def attach(session: Session) -> None:
    """Find the system that the study names."""
    opened = session.opened
    assert opened.target is not None
    running = Attached(
        _engine(session), opened.treatment.parameters, session.run, _corpus(session).schema,
        target=opened.target, remote=opened.remote,
    )  # fmt: skip
    session.running = running.__enter__()


def find(session: Session) -> None:
    """Find out who answers verbatim requests."""
    opened, workload = session.opened, session.opened.workload
    assert opened.target is not None
    assert isinstance(workload, VerbatimRequests)
    running = Found(
        session.run, target=opened.target, remote=opened.remote, named=opened.treatment.engine,
        first=workload.first(session.bytes()), timeout_s=opened.role.load.timeout_s,
    )  # fmt: skip
    session.running = running.__enter__()


def fill(session: Session) -> None:
    """Put the documents into an attached system that has none."""
    batches, running = session.batches, session.there()
    assert batches is not None
    done = ingest_if_empty(running, _corpus(session), batches)
    if done is None:
        session.found["ingest"] = Ingest(documents=batches.documents, reused="attached")
        return
    session.found["ingest"] = _figures(done, _facts(session).index_bytes)


def ingest_for_now(session: Session) -> None:
    """Put the documents into an engine that keeps no index."""
    assert session.batches is not None
    done = ingest(session.there(), _corpus(session), session.batches)
    session.found["ingest"] = _figures(done, _facts(session).index_bytes)


def ingest_to_keep(session: Session) -> None:
    """Put the documents in; the index outlives the process."""
    index, batches = _index(session), session.batches
    assert batches is not None
    index.done = ingest(session.there(), _corpus(session), batches)


def index_by_program(session: Session) -> None:
    """Have the engine's own program make the index."""
    offline = _engine(session).offline(_corpus(session).schema, session.opened.treatment.parameters)
    index, batches = _index(session), session.batches
    assert batches is not None
    assert offline is not None
    index.done = index_offline(offline, batches, index.path, session.run)


def count_documents(session: Session) -> None:
    """Has it as many documents as were put in?"""
    done, there = _index(session).done, _facts(session).documents
    assert done is not None
    if there is not None and there != done.documents:
        raise LabError(
            f"{done.documents} documents were put in, {_engine(session).name} has {there}",
            "ingest",
        )


def finish(session: Session) -> None:
    """Weigh the index, now that its server has stopped; it may be measured from now on."""
    index = _index(session)
    assert index.done is not None
    index.figures = _figures(index.done, size_on_disk(index.path))
    index.made_by = session.made_by


def ingested(session: Session) -> None:
    """Whose index this is, for the record."""
    index = _index(session)
    assert index.figures is not None
    reused = None if index.made_by == session.made_by else index.made_by
    session.found["ingest"] = Ingest(
        **{name: getattr(index.figures, name) for name in Ingest.__struct_fields__}
        | {"reused": reused}
    )


def identify(session: Session, place: Place) -> None:
    """Which version it is and how it was started; did every lever take?"""
    running, facts = session.there(), _facts(session)
    if session.attached:
        assert session.opened.target is not None
        url = session.opened.target.url
        wanted = session.opened.treatment.parameters
        session.found["parameters"], note = as_found(url, wanted, facts)
        session.found["attached"] = url
        _endpoints(session)
        session.notes.append(note)
    else:
        for name, level in facts.parameters.items():
            asked = session.opened.treatment.parameters.get(name)
            if asked is not None and asked != level:
                # A lever that did not take is a failed trial, never a silent one.
                raise LabError(
                    f"the lever {name} did not take: {asked!r} was asked, it is {level!r}"
                )
    session.found |= {
        "version": facts.version,
        "service": Service(
            argv=list(running.argv),
            files=dict(running.service.files),
            env=dict(running.service.env),
            cpus=[] if session.attached else list(place.server_cpus),
        ),
        "facts": FactsAbout(documents=facts.documents, extra=dict(facts.extra)),
        "outcomes": list(_core.OUTCOMES),
    }


def know_again(session: Session) -> None:
    """Who answered, and where, for the record."""
    running, target = session.there(), session.opened.target
    assert target is not None
    session.found |= {
        "engine": running.known.name if running.known else str(target.wire),
        "version": running.facts.version,
        "facts": FactsAbout(extra=dict(running.facts.extra)),
        "attached": target.url,
        "outcomes": list(_core.OUTCOMES),
    }
    _endpoints(session)


def capture(session: Session, shelf: Shelf | None) -> None:
    """Ask each distinct query once, alone, and keep the replies."""
    running, workload, compiled = session.there(), _queries(session), session.bytes()
    replies, mean_s = ask_each(running.endpoint, running.decoder, compiled)
    terms = terms_seen(running.engine, running.endpoint, workload.queries.queries)
    session.captured = Captured(replies, mean_s, session.made_by, terms)
    if shelf is not None and session.index is not None and not session.attached:
        params = session.opened.treatment.parameters
        shelf.capture(session.index, params, workload.digest, session.captured)
    _captured(session, compiled.single)


def take_captured(session: Session, shelf: Shelf) -> bool:
    """Use the replies that an earlier trial captured on the same index, if there are any."""
    params = session.opened.treatment.parameters
    found = shelf.captured(_index(session), params, session.opened.workload.digest)
    if found is None:
        return False
    session.captured = found
    _captured(session, session.bytes().single)
    return True


def capture_some(session: Session) -> None:
    """Ask some verbatim requests once, alone, so that answers under load can be compared."""
    workload, running = session.opened.workload, session.there()
    assert isinstance(workload, VerbatimRequests)
    some = workload.some(session.bytes(), session.rules.agreement.captures)
    if some is None:
        session.captured = Captured(REPLIES.empty_table(), 0.001, session.made_by, None)
    else:
        alone = replace(running.endpoint, others=())
        replies, mean_s = ask_each(alone, running.decoder, some)
        kept = replies if running.known is not None else REPLIES.empty_table()
        if running.known is None:
            session.notes.append(_NOT_COMPARED)
        session.captured = Captured(kept, mean_s, session.made_by, None)
    _captured(session, session.captured.replies.num_rows)


def _captured(session: Session, distinct: int) -> None:
    captured = session.captured
    assert captured is not None
    session.found["terms"] = captured.terms
    session.found["captured"] = CapturedAbout(
        distinct=distinct, mean_s=captured.mean_s, made_by=captured.made_by
    )


def _endpoints(session: Session) -> None:
    running = session.there()
    target = session.opened.target
    if target is not None and isinstance(session.opened.workload, VerbatimRequests):
        first, *others = target.resolved
        running.endpoint = replace(running.endpoint, target=first, others=tuple(others))
        running.processes = processes_at(running.endpoint)
    session.found["endpoints"] = [f"{h}:{p}" for h, p in running.endpoint.addresses]


def _figures(done: Ingested, index_bytes: int | None) -> Ingest:
    return Ingest(
        documents=done.documents,
        bytes=done.bytes,
        refused=done.refused,
        refusals=[{"id": i, "reason": r} for i, r in done.refusals],
        seconds=done.seconds,
        settle_seconds=done.settle_seconds,
        index_bytes=index_bytes,
    )


def _facts(session: Session) -> Facts:
    running = session.there()
    return running.engine.facts(running.ask(running.engine.facts_request()))


def _queries(session: Session) -> PortableQueries:
    workload = session.opened.workload
    assert isinstance(workload, PortableQueries)
    return workload


def _engine(session: Session) -> Engine:
    engine = session.opened.engine
    if engine is None:
        raise LabError("the study names no engine for this system", "compile")
    return engine


def _corpus(session: Session) -> Corpus:
    corpus = session.opened.corpus
    assert corpus is not None
    return corpus


def _index(session: Session) -> Index:
    assert session.index is not None
    return session.index
