"""Compiled queries → core → samples. The timed span is the core's alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from searchbench import _core
from searchbench.corpora.corpus import Schema
from searchbench.engines.engine import Engine, Hits, Parameters, Request
from searchbench.engines.features import refuse
from searchbench.errors import LabError, Unsupported
from searchbench.lab.drive.exchange import Endpoint, Trace, ask, prepare, samples_of
from searchbench.lab.system.deploy import Deployment
from searchbench.record import REPLIES, samples_table
from searchbench.workload.queries.algebra import Query, declared_terms

# Requests completed, nanoseconds since the start, and the samples finished last.
Progress = Callable[[int, int, bytes], object]
U32 = np.ndarray[tuple[int], np.dtype[np.uint32]]
I64 = np.ndarray[tuple[int], np.dtype[np.int64]]

_CAPTURE_TIMEOUT_S = 60.0
_SAMPLED_REPLIES = 200
# Samples of a drive held in memory before they are spilled: two million.
_SPILL_AFTER_BYTES = 128 << 20
_BATCH_ROWS = 250_000
_OK = _core.OUTCOMES.index("ok")
_PARTIAL = _core.OUTCOMES.index("partial")


class Decoder(Protocol):
    """Reads replies; an engine is one."""

    def decode(self, reply: bytes) -> Hits:
        """The hits in a reply; ValueError where it is not one."""


class Sender(Protocol):
    """Sends requests and records what becomes of each; an ``Endpoint`` is one."""

    def send(self, requests: Sequence[Request], **order: Any) -> Trace:
        """``order`` is what ``_core.drive`` takes by name."""


class Answering(Protocol):
    """What can be driven: a deployment, or a server that runs already."""

    @property
    def endpoint(self) -> Endpoint:
        """Where it is asked."""

    @property
    def sender(self) -> Sender:
        """What sends the load; its endpoint, or several machines."""

    @property
    def engine(self) -> Decoder:
        """What reads its replies."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A query set in an engine's bytes. ``request_to_query``: uint32, distinct query of each."""

    requests: tuple[Request, ...]
    request_to_query: U32
    unsupported: tuple[tuple[int, str], ...]

    def request_of(self, distinct: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """For each of ``distinct`` queries its request, -1 where the engine cannot express it."""
        index = np.full(distinct, -1, np.int64)
        index[self.request_to_query] = np.arange(len(self.request_to_query))
        return index


@dataclass(frozen=True, slots=True)
class Order:
    """What to send when. Closed loop: ``client_starts``. Open loop: ``due_ns``."""

    sequence: U32
    client_starts: U32 | None
    due_ns: I64 | None
    connections: int
    think_ns: int = 0
    repeat: bool = True
    stop_ns: int | None = None
    stop_after: int | None = None


@dataclass(frozen=True, slots=True)
class Samples:
    """What a drive recorded, in the core's own form; iterating gives the record's columns.

    Never all of them at once: there may be more than memory holds.
    """

    trace: Trace
    request_to_query: U32

    def __len__(self) -> int:
        return len(self.trace)

    def __iter__(self) -> Iterator[pa.Table]:
        """Tables of ``record.SAMPLES``, some 100,000 rows each."""
        for raw in self.raw():
            yield samples_table(raw, self.request_to_query)

    def raw(self) -> Iterator[np.ndarray[tuple[int], np.dtype[np.void]]]:
        """The samples as structured arrays, piece by piece."""
        whole = samples_of(self.trace)
        for start in range(0, len(whole), _BATCH_ROWS):
            yield whole[start : start + _BATCH_ROWS]
            self.trace.give_back(start + _BATCH_ROWS)

    def due_ns(self) -> I64:
        """When each was due, in the order of completion of each thread."""
        return np.concatenate([np.ascontiguousarray(raw["due"]) for raw in self.raw()])


@dataclass(frozen=True, slots=True)
class Driven:
    """A drive's samples, kept replies (decoded, and ``raw`` as received), the accounting."""

    samples: Samples
    replies: pa.Table
    accounting: dict[str, Any]
    raw: tuple[bytes, ...] = ()


def compile_all(
    engine: Engine, queries: Sequence[Query], schema: Schema, params: Parameters
) -> Compiled:
    """Every distinct query; those that the engine cannot express are kept with the reason."""
    requests: list[Request] = []
    index: list[int] = []
    unsupported: list[tuple[int, str]] = []
    for number, query in enumerate(queries):
        try:
            refuse(engine.can, query)
            requests.append(engine.compile(query, schema, params))
        except Unsupported as reason:
            unsupported.append((number, str(reason)))
        else:
            index.append(number)
    return Compiled(tuple(requests), np.array(index, np.uint32), tuple(unsupported))


def capture(deployment: Answering, compiled: Compiled) -> tuple[pa.Table, float]:
    """Each distinct query once; the replies decoded (phase ``captured``), seconds for each.

    The seconds are no measurement: they say about how many requests a drive will make.
    """
    count = len(compiled.requests)
    trace = deployment.endpoint.drive(
        prepare(compiled.requests),
        sequence=np.arange(count, dtype=np.uint32),
        client_starts=np.array([0, count], np.uint32),
        connections=1,
        timeout_ns=int(_CAPTURE_TIMEOUT_S * 1e9),
        capture_every=1,
        idle="block",
    )
    elapsed_s = json.loads(trace.accounting())["elapsed_ns"] / 1e9
    return _decoded(deployment.engine, trace, compiled, "captured"), elapsed_s / max(1, count)


def terms_seen(deployment: Deployment, queries: Sequence[Query]) -> dict[str, Any] | None:
    """``asked``: how many queries' terms the engine was asked for; ``other``: by query number,
    the terms it sees where they are not the query's own. None where it cannot say.
    """
    engine = deployment.engine
    words = [declared_terms(query.match) for query in queries]
    requests = [engine.analyse(" ".join(w)) for w in words if w]
    known = [r for r in requests if r is not None]
    if not known or len(known) < len(requests):
        return None
    numbers = [n for n, w in enumerate(words) if w]
    other = {}
    for number, reply in zip(numbers, ask(deployment.endpoint, known), strict=True):
        try:
            seen = engine.terms(reply)
        except (ValueError, KeyError):
            return None
        if seen != words[number]:
            other[str(number)] = list(seen)
    return {"asked": len(known), "other": other}


def drive(
    deployment: Answering,
    compiled: Compiled,
    order: Order,
    *,
    timeout_s: float,
    idle: Any,
    cpus: Sequence[int],
    expected: int,
    on_tick: Progress | None = None,
    spill: Path | None = None,
    **further: Any,
) -> Driven:
    """Drive the order and record every request. ``expected``: about how many there will be.

    ``spill``: an existing folder for samples that exceed memory. ``further``: what else
    ``_core.drive`` takes by name.
    """
    every = max(1, expected // _SAMPLED_REPLIES)
    trace = deployment.sender.send(
        compiled.requests,
        sequence=order.sequence,
        client_starts=order.client_starts,
        due_ns=order.due_ns,
        connections=order.connections,
        think_ns=order.think_ns,
        repeat=order.repeat,
        stop_ns=order.stop_ns,
        stop_after=order.stop_after,
        timeout_ns=int(timeout_s * 1e9),
        # Odd, so that it does not keep step with an even number of distinct queries.
        capture_every=every | 1,
        cpus=list(cpus),
        idle=idle,
        on_tick=on_tick,
        spill=None if spill is None else str(spill),
        spill_after_bytes=_SPILL_AFTER_BYTES,
        **further,
    )
    if not len(trace):
        raise LabError("nothing was sent: the order is empty", "drive")
    return Driven(
        samples=Samples(trace, compiled.request_to_query),
        replies=_decoded(deployment.engine, trace, compiled, "under_load"),
        accounting=json.loads(trace.accounting()),
        raw=tuple(reply for _, reply in trace.replies()),
    )


def _decoded(engine: Decoder, trace: Trace, compiled: Compiled, phase: str) -> pa.Table:
    """Kept replies as rows of replies.parquet; a reply that is none is an error, not a hit."""
    raw = samples_of(trace)
    replies = dict(trace.replies())
    indices = range(len(raw)) if phase == "captured" else sorted(replies)
    rows = []
    for index in indices:
        sample = raw[index]
        outcome = int(sample["outcome"])
        reply = replies.get(index)
        if reply is None:
            hits = Hits(total=None, error=f"no reply: {_core.OUTCOMES[outcome]}")
        else:
            try:
                hits = engine.decode(reply)
            except (ValueError, KeyError, TypeError, IndexError) as error:
                hits = Hits(total=None, error=f"the reply cannot be read: {error}")
            if hits.partial and outcome == _OK:
                outcome = _PARTIAL
        rows.append(_row(int(compiled.request_to_query[sample["request"]]), phase, outcome, hits))
    return pa.Table.from_pylist(rows, schema=REPLIES)


def _row(query: int, phase: str, outcome: int, hits: Hits) -> dict[str, Any]:
    return {
        "query": query,
        "phase": phase,
        "outcome": outcome,
        "total": hits.total,
        "total_exact": hits.total_exact,
        "ids": [h.id for h in hits.hits],
        "scores": [h.score for h in hits.hits],
        "facets": json.dumps(hits.facets, ensure_ascii=False),
        "groups": json.dumps(list(hits.groups), ensure_ascii=False),
        "warnings": list(hits.warnings),
        "error": hits.error,
    }
