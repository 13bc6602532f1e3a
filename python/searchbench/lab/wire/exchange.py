"""Prepared requests and the core, outside measurements too: one wire boundary for everything.

``prepare`` lays requests into an arena; ``ask`` sends a few and returns their replies.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np

from searchbench import _core
from searchbench.engines.answer import Hits
from searchbench.engines.engine import Request, Wire
from searchbench.engines.packed import Packed
from searchbench.errors import LabError
from searchbench.lab.wire.order import Manner, Order, arguments, one_by_one
from searchbench.lab.wire.trace import Gathered

Target = tuple[str, int]
Headers = tuple[tuple[str, str], ...]
Trace = _core.Trace | Gathered


class Decoder(Protocol):
    """Reads replies; an engine is one."""

    def decode(self, reply: bytes) -> Hits:
        """The hits in a reply; ValueError where it is not one."""


@runtime_checkable
class Reader(Protocol):
    """A decoder that reads a reply in pieces, so that a long one need not be held as a whole."""

    def read(self, pieces: Iterable[bytes]) -> Hits:
        """As ``Decoder.decode``; the pieces are cut anywhere."""


@dataclass(frozen=True, slots=True)
class Tls:
    """How connections are secured; certificates and the key as texts of PEM.

    ``ca`` None: the system's authorities. ``identity``: our certificate and its key. ``insecure``:
    any certificate will do. ``name``: what the server's is for, where that is not the host;
    ``names``: the hosts as they were given, by address.
    """

    ca: str | None = None
    identity: tuple[str, str] | None = field(default=None, repr=False)
    insecure: bool = False
    name: str = ""
    names: Mapping[Target, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how a server is asked; ``login`` and ``whole`` as in ``Service``.

    ``others``: further endpoints of the same system. ``remote``: it need not be on loopback.
    ``tls`` None: in plain text. ``headers``: of every request over HTTP that has none of that name.
    ``prelude``: exchanges that each connection begins with.
    """

    target: Target
    wire: Wire
    login: tuple[str, str, str] | None = None
    whole: tuple[bytes, ...] = ()
    others: tuple[Target, ...] = ()
    remote: bool = False
    tls: Tls | None = None
    headers: Headers = field(default=(), repr=False)
    prelude: tuple[bytes, ...] = field(default=(), repr=False)

    def send(self, requests: Sequence[Request], order: Order, manner: Manner) -> Trace:
        """As ``drive``; what a ``FleetEndpoint`` does from several machines."""
        return self.drive(prepare(self.dressed(requests)), order, manner)

    def dressed(self, requests: Sequence[Request]) -> Sequence[Request]:
        """The requests with the headers and the login that go with each of them over HTTP."""
        lines = self.header_lines
        if not lines:
            return requests
        return [
            replace(r, exchanges=tuple(_dressed(e, lines) for e in r.exchanges)) for r in requests
        ]

    @property
    def header_lines(self) -> dict[bytes, bytes]:
        """The lines that every request over HTTP gets, by the name in lower case; of two the first.

        Empty over other wires.
        """
        headers = self.headers
        if self.wire == "http" and self.login is not None:
            word = base64.b64encode(":".join(self.login[:2]).encode()).decode("ascii")
            headers = (*headers, ("Authorization", f"Basic {word}"))
        if self.wire != "http":
            return {}
        return {n.lower().encode(): f"{n}: {v}\r\n".encode() for n, v in reversed(headers)}

    def drive(self, requests: _core.Requests, order: Order, manner: Manner) -> _core.Trace:
        """Drive prepared requests at this server from this machine."""
        return _core.drive(
            [self.target, *self.others] if self.others else self.target,
            self.wire,
            requests,
            login=self.wire_login,
            whole=self.whole,
            prelude=self.prelude,
            tls=self.wire_tls,
            remote=self.remote,
            **arguments(order, manner),
        )

    @property
    def wire_login(self) -> tuple[str, str, str] | None:
        """The login of the protocol; over HTTP each request carries its own."""
        return None if self.wire == "http" else self.login

    @property
    def wire_tls(self) -> tuple[list[str], str | None, tuple[str, str] | None, bool] | None:
        """TLS as the core takes it, for all addresses."""
        tls = self.tls
        if tls is None:
            return None
        names = [tls.name or tls.names.get(at, at[0]) for at in self.addresses]
        return names, tls.ca, tls.identity, tls.insecure

    @property
    def addresses(self) -> tuple[Target, ...]:
        """All its endpoints, the first one first."""
        return (self.target, *self.others)


class Refused(LabError):  # noqa: N818 -- what happened, not an error of ours
    """A request of ours was not answered; the message says how.

    ``words``: what the server said instead, in brackets; empty where it said nothing.
    """

    def __init__(self, target: Target, outcome: str, words: str) -> None:
        self.outcome, self.words = outcome, words
        super().__init__("{}:{} did not answer: {}{}".format(*target, outcome, words))


def samples_of(trace: Trace) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """The samples of a trace as a structured array, without copying."""
    if isinstance(trace, Gathered):
        return trace.samples
    return np.frombuffer(memoryview(trace), dtype=np.dtype(_core.SAMPLE_DTYPE))


def replies_of(trace: Trace) -> Iterator[tuple[int, Iterable[bytes]]]:
    """The index of the sample and the pieces of each kept reply, which are read when asked for."""
    if isinstance(trace, Gathered):
        yield from ((index, (reply,)) for index, reply in trace.replies())
        return
    for number, (index, pieces) in enumerate(trace.kept()):
        yield index, map(partial(trace.piece, number), range(pieces))


def exchanges_of(trace: Trace) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """The exchanges of a trace as a structured array; of client machines there are none."""
    found = b"" if isinstance(trace, Gathered) else trace.exchanges()
    return np.frombuffer(found, dtype=np.dtype(_core.EXCHANGE_DTYPE))


@dataclass(frozen=True, slots=True)
class Arena:
    """Requests as columns, for the core here or on another machine; as in ``_core.Requests``."""

    arena: bytes | bytearray
    exchange_ends: np.ndarray[tuple[int], np.dtype[np.uint64]]
    request_ends: np.ndarray[tuple[int], np.dtype[np.uint32]]

    def blobs(self) -> dict[str, memoryview]:
        """The columns by name, as bytes."""
        return {
            "arena": memoryview(self.arena),
            "exchange_ends": self.exchange_ends.data.cast("B"),
            "request_ends": self.request_ends.data.cast("B"),
        }


def prepare(requests: Sequence[Request]) -> _core.Requests:
    """All exchanges one after another in one arena, with their ends."""
    laid = lay_out(requests)
    untimed = None
    if any(r.operation for r in requests):
        before, after = (
            np.fromiter((getattr(r, name) for r in requests), np.uint32, len(requests))
            for name in ("before", "after")
        )
        untimed = (before, after)
    return _core.Requests(laid.arena, laid.exchange_ends, laid.request_ends, untimed)


def lay_out(requests: Sequence[Request]) -> Arena:
    """The columns that ``prepare`` makes requests of."""
    counts = np.fromiter((len(r.exchanges) for r in requests), np.uint32, len(requests))
    request_ends = np.cumsum(counts, dtype=np.uint32)
    if len(requests) == 1 and isinstance(packed := requests[0].exchanges, Packed):
        return Arena(packed.data, packed.ends, request_ends)
    exchanges = [exchange for request in requests for exchange in request.exchanges]
    lengths = np.fromiter((len(e) for e in exchanges), np.uint64, len(exchanges))
    return Arena(b"".join(exchanges), np.cumsum(lengths, dtype=np.uint64), request_ends)


def ask(endpoint: Endpoint, requests: Sequence[Request], *, timeout_s: float = 60.0) -> list[bytes]:
    """Send these one after another on one connection; their replies, whole.

    Refused where one was not answered; a reply that says "error" in its own protocol is a
    reply, and the engine's to decode.

    In HTTP nothing belongs to a connection, and some servers close it after every reply: there
    each exchange goes by itself, and the replies of a request are joined again: of an operation
    those of what is timed, or the one that refused its set-up.
    """
    requests = endpoint.dressed(requests)
    if endpoint.wire == "http" and any(len(r.exchanges) > 1 for r in requests):
        singles = [Request((exchange,)) for r in requests for exchange in r.exchanges]
        single = iter(ask(endpoint, singles, timeout_s=timeout_s))
        return [_joined(r, [next(single) for _ in r.exchanges]) for r in requests]
    manner = Manner(timeout_s=timeout_s, capture_every=1)
    trace = endpoint.drive(prepare(requests), one_by_one(len(requests)), manner)
    samples = samples_of(trace)
    answered = {_core.OUTCOMES.index(name) for name in ANSWERED}
    replies = dict(trace.replies())
    said = json.loads(trace.accounting()).get("greeting_failed")
    found: list[bytes] = [b""] * len(requests)
    for index, sample in enumerate(samples):
        outcome, reply = int(sample["outcome"]), replies.get(index, b"")
        # A login that is refused is an answer of its protocol, but not to what was asked.
        if outcome not in answered or (said and not reply):
            words = f" ({said})" if said else ""
            raise Refused(endpoint.target, _core.OUTCOMES[outcome], words)
        found[int(sample["request"])] = reply
    return found


def _joined(request: Request, replies: Sequence[bytes]) -> bytes:
    for reply in replies[: request.before]:
        if reply.split(b" ", 2)[1:2] >= [b"400"]:
            return reply
    return b"".join(replies[request.before : len(replies) - request.after])


# Outcomes that carry a whole reply.
ANSWERED = ("ok", "http_error", "engine_error", "unsupported", "partial")


def _dressed(exchange: bytes, lines: Mapping[bytes, bytes]) -> bytes:
    """The same with those lines, by their names, that it has not yet; its own ones stay.

    But for the host that an engine's translator writes, which knows no other.
    """
    first, _, rest = exchange.partition(b"\r\n")
    if b"host" in lines and rest.startswith(_NO_HOST):
        rest = rest.removeprefix(_NO_HOST)
    head = rest.partition(b"\r\n\r\n")[0].lower()
    own = {line.partition(b":")[0] for line in head.split(b"\r\n")}
    return b"".join([first, b"\r\n", *(v for k, v in lines.items() if k not in own), rest])


_NO_HOST = b"Host: 127.0.0.1\r\n"
