"""What the core gives back: samples, and kept replies, decoded after the timed span."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from searchbench import _core
from searchbench.engines.answer import Hits
from searchbench.engines.engine import Engine
from searchbench.lab.drive.left_behind import clean_up
from searchbench.lab.drive.workload import Compiled
from searchbench.lab.wire.exchange import (
    Decoder,
    Endpoint,
    Reader,
    Trace,
    ask,
    replies_of,
    samples_of,
)
from searchbench.lab.wire.order import I64, U32, Manner, one_by_one
from searchbench.record import REPLIES, samples_table
from searchbench.record.trial import Terms
from searchbench.workload.queries.algebra import Query, declared_terms

_CAPTURE_TIMEOUT_S = 60.0
_BATCH_ROWS = 250_000
_HELD_BYTES = 16 << 20  # of one reply
_OK = _core.OUTCOMES.index("ok")
_PARTIAL = _core.OUTCOMES.index("partial")
_LOST = [_core.OUTCOMES.index(name) for name in ("refused", "reset", "truncated")]
# What is given up may still be worked on: it is no less under way than what was cut off.
_NEVER = [*_LOST, *(_core.OUTCOMES.index(name) for name in ("timed_out", "unfinished"))]


@dataclass(frozen=True, slots=True)
class Broken:
    """Of requests: whether a connection was ``lost`` or refused, and how many were sent and never
    answered (``under_way``).
    """

    lost: bool
    under_way: int


@dataclass(frozen=True, slots=True)
class Samples:
    """What a drive recorded, in the core's own form; iterating gives the record's columns.

    Never all of them at once: there may be more than memory holds. ``role``: its number.
    """

    trace: Trace
    request_to_query: U32
    role: int = 0

    def __len__(self) -> int:
        return len(self.trace)

    def __iter__(self) -> Iterator[pa.Table]:
        """Tables of ``record.SAMPLES``, some 100,000 rows each."""
        for raw in self.raw():
            yield samples_table(raw, self.request_to_query, self.role)

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
class Alone:
    """Each distinct query asked once, alone.

    ``replies``: decoded, of the phase ``captured``. ``mean_s``: seconds for each, which are no
    measurement: they say about how many requests a drive will make. ``sizes``: by query the bytes
    of what was answered well. ``broken``: what became of those that were not answered.
    """

    replies: pa.Table
    mean_s: float
    sizes: dict[str, int]
    broken: Broken


def capture(
    endpoint: Endpoint,
    decoder: Decoder,
    compiled: Compiled,
    timeout_s: float = _CAPTURE_TIMEOUT_S,
    spill: Path | None = None,
) -> Alone:
    """Ask each distinct query once. ``spill``: a folder for replies that exceed memory."""
    alone = compiled.some(range(compiled.single)) if compiled.copies > 1 else compiled
    count = len(alone.requests)
    manner = Manner(timeout_s=timeout_s, capture_every=1, spill=spill)
    trace = endpoint.send(alone.requests, one_by_one(count), manner)
    clean_up(endpoint, alone.requests, trace, timeout_s)
    elapsed_s = json.loads(trace.accounting())["elapsed_ns"] / 1e9
    raw = samples_of(trace)
    well = raw[raw["outcome"] == _OK]
    queries = alone.request_to_query[well["request"]]
    sizes = dict(zip(map(str, queries.tolist()), well["bytes"].tolist(), strict=True))
    replies = decoded(decoder, trace, alone, "captured")
    return Alone(replies, elapsed_s / max(1, count), sizes, broken_in([raw]))


def broken_in(raw: Iterable[np.ndarray[tuple[int], np.dtype[np.void]]]) -> Broken:
    """Of samples as structured arrays, in pieces, those whose connection broke or never was."""
    lost, under_way = False, 0
    for piece in raw:
        lost = lost or bool(np.isin(piece["outcome"], _LOST).any())
        never = np.isin(piece["outcome"], _NEVER) & (piece["sent"] >= 0)
        under_way += int(np.count_nonzero(never))
    return Broken(lost, under_way)


def terms_seen(engine: Engine, endpoint: Endpoint, queries: Sequence[Query]) -> Terms | None:
    """What the engine makes of the queries' terms. None where it cannot say."""
    words = [declared_terms(query.match) for query in queries]
    requests = [engine.analyse(" ".join(w)) for w in words if w]
    known = [r for r in requests if r is not None]
    if not known or len(known) < len(requests):
        return None
    numbers = [n for n, w in enumerate(words) if w]
    other = {}
    for number, reply in zip(numbers, ask(endpoint, known), strict=True):
        try:
            seen = engine.terms(reply)
        except (ValueError, KeyError):
            return None
        if seen != words[number]:
            other[str(number)] = list(seen)
    return Terms(asked=len(known), other=other)


def _read(decoder: Reader, reply: Iterable[bytes], known: dict[bytes, Hits]) -> Hits:
    """The answer in a reply; ``known``: by the digest of a reply's bytes, what it was.

    Rows take far longer to read than to receive, and replies to one question are mostly the same
    bytes. A reply that should not be held as a whole is read on its way.
    """
    begun, size, rest = list[bytes](), 0, iter(reply)
    for piece in rest:
        begun.append(piece)
        size += len(piece)
        if size > _HELD_BYTES:
            return decoder.read(itertools.chain(begun, rest))
    digest = hashlib.blake2b(digest_size=16)
    for piece in begun:
        digest.update(piece)
    if digest.digest() not in known:
        known[digest.digest()] = decoder.read(begun)
    return known[digest.digest()]


def decoded(decoder: Decoder, trace: Trace, compiled: Compiled, phase: str) -> pa.Table:
    """Kept replies as rows of replies.parquet; a reply that is none is an error, not a hit."""
    raw = samples_of(trace)
    replies = dict(replies_of(trace))
    indices = range(len(raw)) if phase == "captured" else sorted(replies)
    rows, known = [], dict[bytes, Hits]()
    for index in indices:
        sample = raw[index]
        outcome = int(sample["outcome"])
        reply = replies.get(index)
        if reply is None:
            hits = Hits(total=None, error=f"no reply: {_core.OUTCOMES[outcome]}")
        else:
            try:
                if isinstance(decoder, Reader):
                    hits = _read(decoder, reply, known)
                else:
                    hits = decoder.decode(b"".join(reply))
            except (ValueError, KeyError, TypeError, IndexError) as error:
                hits = Hits(total=None, error=f"the reply cannot be read: {error}")
            if hits.partial and outcome == _OK:
                outcome = _PARTIAL
        rows.append(
            {
                "query": int(compiled.request_to_query[sample["request"]]),
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
                "asked": None if phase == "captured" else int(sample["sent"]),
                "answered": None if phase == "captured" else int(sample["done"]),
            }
        )
    return pa.Table.from_pylist(rows, schema=REPLIES)
