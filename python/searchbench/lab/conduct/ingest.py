"""Corpus → index: batches prepared ahead in a file, then driven through the core like queries.

Preparing (reading the user's files, turning documents into the engine's bytes) is outside the
timed span, so that ingest figures are the engine's and not Python's.
"""

from __future__ import annotations

import itertools
import time
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from searchbench import _core
from searchbench.corpora.corpus import Corpus
from searchbench.engines import defaults
from searchbench.engines.bulk import requests_of
from searchbench.engines.engine import CountsTaken, Engine, Offline, Parameters, Request
from searchbench.errors import LabError
from searchbench.lab.system.deploy import command_line, complete
from searchbench.lab.system.names import Places, free_port
from searchbench.lab.system.running import Running
from searchbench.lab.wire.exchange import ANSWERED, Endpoint, Trace, prepare, samples_of
from searchbench.lab.wire.order import Manner, Progress, each_once
from searchbench.lab.wire.words import UNREAD, words_of
from searchbench.record.trial import Ingest

_TIMEOUT_S = 600.0
_WITHOUT_ROOM_NS = 5_000_000_000
_SHOWN = 5
_INDEXER_LOG = "indexer.log"


@dataclass(frozen=True, slots=True)
class Batches:
    """All documents of a corpus as requests of one engine, in a file.

    ``document_ends``: after each request, how many documents there are.
    """

    path: Path
    exchange_ends: np.ndarray[tuple[int], np.dtype[np.uint64]]
    request_ends: np.ndarray[tuple[int], np.dtype[np.uint32]]
    documents: int
    document_ends: np.ndarray[tuple[int], np.dtype[np.int64]]


def spool(
    engine: Engine,
    corpus: Corpus,
    path: Path,
    params: Parameters | None = None,
    documents: int = 0,
) -> Batches:
    """Write the batches of ``corpus`` to ``path``; constant memory but for the offset table.

    ``params``: the engine's defaults if None. ``documents`` of a batch: as of ``requests_of``.
    """
    levels = defaults(engine) if params is None else params
    return laid_out(requests_of(engine, corpus, levels, documents), path)


def laid_out(requests: Iterable[tuple[Request, int]], path: Path) -> Batches:
    """Write requests to ``path``, each with how many documents it has."""
    # Packed: one by one, millions of documents are as many requests.
    exchange_ends, request_ends, ends = array("Q"), array("I"), array("q")
    documents = at = 0
    part = path.with_suffix(".part")
    part.parent.mkdir(parents=True, exist_ok=True)
    with part.open("wb") as file:
        for request, count in requests:
            for exchange in request.exchanges:
                file.write(exchange)
                at += len(exchange)
                exchange_ends.append(at)
            request_ends.append(len(exchange_ends))
            documents += count
            ends.append(documents)
    part.rename(path)
    return Batches(
        path,
        np.array(exchange_ends, np.uint64),
        np.array(request_ends, np.uint32),
        documents,
        np.array(ends, np.int64),
    )


def ingest(
    running: Running,
    corpus: Corpus,
    batches: Batches,
    connections: int = 1,
    full: Callable[[], str] = lambda: "",
) -> Ingest:
    """Create, put in, settle. LabError (stage ``ingest``) with the engine's own words if not.

    ``connections``: over how many at once. How large the index is, is not known yet. ``full``: says
    which storage has no room left.
    """
    engine = running.engine
    for request in engine.create(corpus.schema, running.params):
        must(running, running.ask(request), "create")
    began = time.perf_counter()
    refusals = _send(running, batches, connections, full) if batches.documents else []
    put_in = time.perf_counter()
    for request in engine.settle(corpus.schema, running.params):
        must(running, running.ask(request, _TIMEOUT_S), "settle")
    settled = time.perf_counter()
    return Ingest(
        documents=batches.documents - len(refusals),
        bytes=batches.path.stat().st_size,
        seconds=put_in - began,
        settle_seconds=settled - put_in,
        refused=len(refusals),
        refusals=refusals[:_SHOWN],
        requests=len(batches.request_ends),
        connections=connections,
    )


def ingest_if_empty(
    running: Running, corpus: Corpus, batches: Batches, connections: int = 1
) -> Ingest:
    """Put the corpus into a system that holds nothing; nothing is done if it holds it.

    LabError where it holds something else: what somebody put there is not ours to remove.
    """
    engine, address = running.engine, "{}:{}".format(*running.target)
    there = engine.facts(running.ask(engine.facts_request())).documents or 0
    if there == batches.documents:
        return Ingest(documents=there, reused="attached")
    if there:
        raise LabError(
            f"{address} holds {there:,} documents and the corpus has {batches.documents:,}; "
            "empty it, or name the corpus that it holds",
            "ingest",
        )
    if engine.offline(corpus.schema, running.params) is not None:
        raise LabError(
            f"{address} is empty, and an index that is made offline cannot be put into a running "
            f"{engine.can.title}; build it there, or choose another kind of index",
            "ingest",
        )
    return ingest(running, corpus, batches, connections)


def index_offline(
    offline: Offline,
    batches: Batches,
    data: Path,
    run: Path,
    joins: Sequence[Path] = (),
    laid: Mapping[str, Path] = MappingProxyType({}),
    full: Callable[[], str] = lambda: "",
) -> Ingest:
    """Have the engine's own program make the index; LabError (stage ``ingest``) with its words.

    How many documents it took is known once the server says so. ``joins``, ``laid``,
    ``full``: as of a deployment.
    """
    for folder in (data, *laid.values()):
        folder.mkdir(parents=True, exist_ok=True)
    run.mkdir(parents=True, exist_ok=True)
    places = Places(data, run, free_port(), batches.path, laid)
    places.write(offline.files)
    (run / _INDEXER_LOG).write_bytes(b"")
    began = time.perf_counter()
    for command in offline.commands:
        argv = command_line([places.fill(part) for part in command], refuses_root=False)
        complete(argv, run=run, log=_INDEXER_LOG, stage="ingest", joins=joins, full=full)
    return Ingest(
        documents=batches.documents,
        bytes=batches.path.stat().st_size,
        seconds=time.perf_counter() - began,
        settle_seconds=0.0,
    )


def sent(
    running: Running,
    batches: Batches,
    stage: str = "ingest",
    connections: int = 1,
    full: Callable[[], str] = lambda: "",
) -> Trace:
    """Drive the batches, over one connection in their order; over several they overtake each other.

    LabError (``stage``) where one was not answered. ``full``: some engines wait for room, and say
    nothing; where there is none left for seconds, nothing more is waited for.
    """
    count = len(batches.request_ends)
    requests = _prepared(running.endpoint, batches)
    tick = _while_there_is_room(full)
    manner = Manner(timeout_s=_TIMEOUT_S, capture_every=1, on_tick=tick)
    trace = running.endpoint.drive(requests, each_once(count, connections), manner)
    samples = samples_of(trace)
    if len(samples) != count:
        raise LabError(f"{count} batches were to be sent, {len(samples)} were", stage)
    answered = [_core.OUTCOMES.index(name) for name in ANSWERED]
    for sample in samples[~np.isin(samples["outcome"], answered)][:1]:
        raise LabError(
            f"batch {int(sample['request']) + 1} of {count} was not taken: "
            f"{_core.OUTCOMES[int(sample['outcome'])]}; the "
            f"server's log ends: {running.log_tail() or 'empty'}",
            stage,
        )
    return trace


def _while_there_is_room(full: Callable[[], str]) -> Progress:
    """Goes on until there was no room for some seconds in which no batch was answered."""
    since_ns, answered = 0, -1

    def goes_on(completed: int, elapsed_ns: int, recent: bytes) -> bool:
        nonlocal since_ns, answered
        if completed != answered or not full():
            since_ns, answered = elapsed_ns, completed
        return elapsed_ns - since_ns < _WITHOUT_ROOM_NS

    return goes_on


def _send(
    running: Running, batches: Batches, connections: int, full: Callable[[], str]
) -> list[dict[str, str]]:
    """Send the batches; what of them was refused."""
    count = len(batches.request_ends)
    trace = sent(running, batches, connections=connections, full=full)
    samples, engine = samples_of(trace), running.engine
    refusals: list[dict[str, str]] = []
    taken = 0
    for index, reply in trace.replies():
        which = f"batch {int(samples[index]['request']) + 1} of {count}"
        must(running, reply, which)
        for who, why in engine.refused(reply):
            refusals.append({"id": who, "reason": f"{why} ({which})"})
        if isinstance(engine, CountsTaken):
            taken += engine.taken(reply)
    if isinstance(engine, CountsTaken) and taken != batches.documents:
        raise LabError(
            f"{engine.can.title} took {taken:,} of {batches.documents:,} documents, and does not "
            "say which it dropped: a table or a column is missing there, or a value does not fit",
            "ingest",
        )
    return refusals


def _prepared(endpoint: Endpoint, batches: Batches) -> _core.Requests:
    """The batches as they lie in their file; in memory, where each needs headers of its own."""
    if not endpoint.header_lines:
        return _core.Requests(str(batches.path), batches.exchange_ends, batches.request_ends)
    arena = batches.path.read_bytes()
    starts = [0, *map(int, batches.exchange_ends)]
    exchanges = [arena[start:end] for start, end in itertools.pairwise(starts)]
    firsts = [0, *map(int, batches.request_ends)]
    whole = [Request(tuple(exchanges[first:last])) for first, last in itertools.pairwise(firsts)]
    return prepare(endpoint.dressed(whole))


def must(running: Running, reply: bytes, what: str, stage: str = "ingest") -> None:
    """LabError (``stage``) with the engine's own words where it refused ``what``."""
    engine, wire = running.engine, running.endpoint.wire
    try:
        trouble = engine.check(reply)
    except UNREAD as error:  # perhaps the words of a front, which are not in the engine's form
        trouble = words_of(reply, wire) or f"its answer cannot be read: {error}"
    if trouble is not None:
        trouble = words_of(reply, wire, lambda _: trouble) or trouble
        raise LabError(f"{engine.name} refused {what}: {trouble}", stage)
