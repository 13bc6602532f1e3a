"""What is asked, made ready for one system: portable queries, or verbatim requests.

Both give the same three things: what the record keeps of them, their bytes for a system, and the
order of the requests of one copy in which a load sends them. Of a system with several endpoints
the requests are laid out one copy for each, so that which endpoint a request goes to is a matter of
its number alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from searchbench.corpora.corpus import Corpus, Schema
from searchbench.engines import frames, mysql_form, postgres_form
from searchbench.engines.engine import Engine, Parameters, Request
from searchbench.engines.features import refuse
from searchbench.errors import LabError, Unsupported
from searchbench.lab.system.address import Target, resolve
from searchbench.lab.wire.order import I64, U32, Order
from searchbench.record.queries import Queries
from searchbench.record.trial import OperationAbout
from searchbench.workload.draw import CachePlan, draw
from searchbench.workload.loads import Load, Replay
from searchbench.workload.queries.algebra import Query
from searchbench.workload.queries.forms import to_json, to_text
from searchbench.workload.queries.orders import arrange, lines
from searchbench.workload.queries.sets import QuerySet
from searchbench.workload.verbatim.model import Ask, RequestSet, sequence

# A closed loop repeats its order: long enough that no cache sees the end of it soon.
_DRAWN = 200_000
Spread = Literal["keep", "round"]
_CLASSES = 100  # that each trial on record names
_BODY_KINDS = ((b"{", "application/json"), (b"[", "application/json"))


@dataclass(frozen=True, slots=True)
class Compiled:
    """``request_to_query``: uint32, the distinct query of each request, over all its copies.

    ``copies``: how many endpoints the requests are laid out for. ``several``: how many of them any
    request may go to; those beyond are named by single requests. ``own``: of each request of one
    copy the endpoint that it names, -1 where it names none. ``timeouts_ns``: of each of one copy.
    ``prelude``: what each connection begins with; ``operation``: of one, what it sends.
    """

    requests: tuple[Request, ...]
    request_to_query: U32
    unsupported: tuple[tuple[int, str], ...] = ()
    copies: int = 1
    several: int = 1
    own: I64 | None = None
    timeouts_ns: I64 | None = None
    prelude: tuple[bytes, ...] = ()
    operation: OperationAbout | None = None

    @property
    def single(self) -> int:
        """Requests of one copy."""
        return len(self.requests) // self.copies

    def routed(self, order: Order, spread: Spread = "keep") -> Order:
        """An order of the requests of one copy, each with the endpoint that it goes to.

        "keep": each client keeps to one endpoint, in turn. "round": requests go round. In an open
        loop they always go round.
        """
        if self.timeouts_ns is not None:
            order = replace(order, request_timeouts_ns=np.tile(self.timeouts_ns, self.copies))
        if self.copies == 1:
            return order
        sequence = order.sequence.astype(np.int64)
        if order.client_starts is not None and spread == "keep":
            starts = order.client_starts.astype(np.int64)
            runs = starts[1:] - starts[:-1]
            turn = np.repeat(np.arange(len(runs)) % self.several, runs)
            turn = np.resize(turn, len(sequence))
        else:
            turn = np.arange(len(sequence)) % self.several
        if self.own is not None:
            named = self.own[sequence]
            turn = np.where(named >= 0, named, turn)
        return replace(
            order,
            sequence=(turn * self.single + sequence).astype(np.uint32),
            request_targets=np.repeat(np.arange(self.copies, dtype=np.uint16), self.single),
        )

    def some(self, chosen: Sequence[int]) -> Compiled:
        """These requests of the first copy alone."""
        return Compiled(
            tuple(self.requests[i] for i in chosen),
            np.array([self.request_to_query[i] for i in chosen], np.uint32),
        )


def compile_all(
    engine: Engine, queries: Sequence[Query], schema: Schema, params: Parameters
) -> Compiled:
    """Every distinct query; those that the engine cannot express are kept with the reason.

    LabError where it can express none.
    """
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
    if not requests:
        raise LabError(
            f"{engine.name} can express none of the queries: {unsupported[0][1]}", "compile"
        )
    return Compiled(tuple(requests), np.array(index, np.uint32), tuple(unsupported))


class _Workload:
    """What both have in common."""

    asked: QuerySet | RequestSet

    def from_line(self, load: Load, seed: int) -> int | None:
        """The line of the log (from 1) that a drive begins with; None where no seed decides it."""
        drawn = isinstance(self.asked, RequestSet) and self.asked.groups
        if drawn or isinstance(load.loop, Replay) or load.order not in ("stretches", "logged"):
            return None
        return int(self._in_turn(load, seed)[0]) + 1

    def _in_turn(self, load: Load, seed: int) -> I64:
        """The lines of the log (from 0) in the order of the load; of a replay as they are."""
        if isinstance(load.loop, Replay):
            return np.arange(self.asked.logged)
        return lines(self.asked.logged, load.order, seed)

    @property
    def digest(self) -> str:
        """Names its file on record."""
        return self.asked.digest

    def about(self) -> Queries:
        """What trial.json keeps of it."""
        its = self.asked
        terms = its.mean_terms if isinstance(its, QuerySet) else None
        return Queries(
            name=its.name, digest=its.digest, distinct=its.distinct, logged=its.logged,
            mean_terms=terms, bad_lines=its.bad_count, classes=_logged(its),
        )  # fmt: skip


def _logged(asked: QuerySet | RequestSet) -> dict[str, int]:
    """By class, how many of the logged requests are of it; empty where there are no classes.

    Of more than ``_CLASSES`` those with most requests, and the rest together.
    """
    found: dict[str, int] = {}
    if asked.classes:
        counts = np.bincount(asked.log, minlength=len(asked.classes)).tolist()
        for name, n in zip(asked.classes, counts, strict=True):
            found[name] = found.get(name, 0) + n
    if len(found) > _CLASSES:
        most = sorted(found.items(), key=lambda item: -item[1])
        rest = sum(n for _, n in most[_CLASSES:])
        found = {**dict(most[:_CLASSES]), "all other classes": rest}
    return found


@dataclass(frozen=True)
class PortableQueries(_Workload):
    """Queries in the algebra, which each engine's translator turns into its own bytes."""

    asked: QuerySet
    corpus: Corpus

    def lines(self) -> Iterator[dict[str, Any]]:
        """The distinct queries as the record keeps them."""
        classes = self.asked.classes
        for number, query in enumerate(self.asked.queries):
            own = {"class": classes[number]} if classes else {}
            yield {"query": number, "text": to_text(query), "algebra": to_json(query), **own}

    def compiled(self, engine: Engine, params: Parameters, endpoints: int = 1) -> Compiled:
        """Its bytes for an engine, laid out for so many endpoints. LabError if there are none."""
        found = compile_all(engine, self.asked.queries, self.corpus.schema, params)
        if endpoints == 1:
            return found
        return replace(
            found,
            requests=found.requests * endpoints,
            request_to_query=np.tile(found.request_to_query, endpoints),
            copies=endpoints,
            several=endpoints,
        )

    def order(self, load: Load, compiled: Compiled, seed: int) -> Order:
        """The order for a drive. Logged queries that the engine cannot express are left out.

        The same seed gives the same order to every system, so within a block all are asked alike.
        """
        log, times_s = self.logged(load, compiled, seed)
        return in_order(load, log, load.due_ns(seed, times_s), seed)

    def logged(
        self, load: Load, compiled: Compiled, seed: int
    ) -> tuple[U32, NDArray[np.float64] | None]:
        """The requests of its log in the order of the load, and when the log says they were asked,
        where it does. Queries that the engine cannot express are left out.
        """
        request_of = np.full(self.asked.distinct, -1, np.int64)
        request_of[compiled.request_to_query[: compiled.single]] = np.arange(compiled.single)
        # Of the whole log, so that systems that express other queries are still asked alike.
        requests = request_of[self.asked.log[self._in_turn(load, seed)]]
        times = self.asked.times_s
        known = requests >= 0
        return requests[known].astype(np.uint32), None if times is None else times[known]


@dataclass(frozen=True)
class VerbatimRequests(_Workload):
    """Requests that are sent as they are: paths, statements, a production log."""

    asked: RequestSet

    def lines(self) -> Iterator[dict[str, Any]]:
        """The distinct requests as the record keeps them."""
        return self.asked.lines()

    def compiled(self, target: Target, timeout_s: float) -> tuple[Compiled, Target]:
        """Its bytes for each endpoint, and the target with those that single requests name.

        LabError with the request where one cannot be sent there. ``timeout_s``: of those that name
        none.
        """
        places, named = list(target.resolved), list(target.addresses)
        asks = self.asked.asks
        own = np.full(len(asks), -1, np.int64)
        for number, ask in enumerate(asks):
            if ask.host is None and ask.port is None:
                continue
            address = (ask.host or target.addresses[0][0], ask.port or target.addresses[0][1])
            if address not in named:
                named.append(address)
                places.append(resolve(*address, remote=target.remote))
            own[number] = named.index(address)
        tls = target.tls
        if tls is not None:
            hosts = {at: host for at, (host, _) in zip(places, named, strict=True)}
            tls = replace(tls, names={**hosts, **tls.names})
        full = replace(target, addresses=tuple(named), resolved=tuple(places), tls=tls)
        encoded = [_encoded(ask, full, place) for place in range(len(places)) for ask in asks]
        timeouts_ns = None
        if any(ask.timeout_s is not None for ask in asks):
            each = [round((ask.timeout_s or timeout_s) * 1e9) for ask in asks]
            timeouts_ns = np.array(each, np.int64)
        return Compiled(
            tuple(encoded),
            np.tile(np.arange(len(asks), dtype=np.uint32), len(places)),
            copies=len(places),
            several=len(target.resolved),
            own=own,
            timeouts_ns=timeouts_ns,
        ), full

    def first(self, compiled: Compiled) -> Request:
        """The first request, at the endpoint that it goes to: to see who answers."""
        own = 0 if compiled.own is None else max(0, int(compiled.own[0]))
        return compiled.requests[own * compiled.single]

    def some(self, compiled: Compiled, most: int) -> Compiled | None:
        """At most so many distinct requests, evenly chosen; not those that name an endpoint."""
        free = np.arange(compiled.single)
        if compiled.own is not None:
            free = free[compiled.own < 0]
        if not free.size or not most:
            return None
        at = np.unique(np.linspace(0, free.size - 1, min(most, free.size)).astype(np.int64))
        return compiled.some([int(i) for i in free[at]])

    def order(self, load: Load, seed: int, cache: CachePlan | None) -> Order:
        """The order for a drive. ``cache``: drawn for a share of hits, in place of their own."""
        log, due = self.asked.log, load.due_ns(seed, self.asked.times_s)
        length = _DRAWN if due is None else max(1, len(due))
        if cache is not None:
            if due is None:
                length = max(length, 4 * cache.warmup_requests)
            log = draw(cache, length, seed)
        elif self.asked.groups:
            log = sequence(self.asked, seed, length)
        else:
            log = log[self._in_turn(load, seed)]
        return in_order(load, log, due, seed, repeated=_DRAWN)

    def filling(self, caches: int, cache: CachePlan, seed: int) -> Order:
        """An order that fills so many caches, those of all endpoints, before any measurement."""
        log = draw(cache, caches * cache.warmup_requests, seed)
        asked = arrange(log, "logged", clients=caches)
        return Order(asked.sequence, asked.client_starts, None, caches, repeat=False)


@dataclass(frozen=True)
class DocumentsAlone:
    """The documents of a study that asks nothing: there are jobs, and no drive."""

    corpus: Corpus
    digest: str = ""

    def lines(self) -> Iterator[dict[str, Any]]:
        """No queries."""
        return iter(())

    def about(self) -> Queries:
        """No queries."""
        return Queries()


Workload = PortableQueries | VerbatimRequests | DocumentsAlone


def in_order(
    load: Load, log: U32, due: I64 | None, seed: int, repeated: int | None = None
) -> Order:
    """``log`` in the load's order. ``repeated``: a drawn or shuffled closed loop is so long."""
    if due is not None:
        if not len(due):
            raise LabError("no request is due within the window; make it longer or the rate higher")
        asked = arrange(log, load.order, seed=seed, length=len(due))
        return Order(asked.sequence, None, due, load.connections, repeat=False)
    length = None
    if repeated is not None and load.order in ("shuffled", "drawn"):
        length = max(repeated, len(log))
    asked = arrange(log, load.order, clients=load.connections, seed=seed, length=length)
    return Order(
        asked.sequence, asked.client_starts, None, load.connections,
        think_ns=load.think_ns, stop_ns=load.stop_ns, stop_after=load.stop_after,
    )  # fmt: skip


def _encoded(ask: Ask, target: Target, place: int) -> Request:
    try:
        return encode(ask, target, place)
    except ValueError as error:
        raise LabError(f"{ask.text[:80]!r} cannot be sent: {error}", "compile") from None


def encode(ask: Ask, target: Target, place: int = 0) -> Request:
    """The bytes that send ``ask`` to one endpoint of ``target``.

    ``place``: which of its addresses. LabError where they do not fit together.
    """
    if target.wire == "http":
        host, port = target.addresses[place]
        usual = 80 if target.tls is None else 443
        return Request((_http(ask, f"{host}:{port}" if port != usual else host),))
    if target.wire in ("mysql", "sphinxql"):
        return Request((mysql_form.query(_statement(ask, target)),))
    if target.wire == "postgres":
        return Request((postgres_form.query(_statement(ask, target)),))
    if target.wire == "frames":
        return frames.frame(frames.QUERY, ask.text.encode())
    raise LabError(
        f"{target.url}: requests of Sphinx's native API are made from queries: give --study FILE "
        "and --system NAME; for SQL statements, sphinxql://HOST:9306", "compile",
    )  # fmt: skip


def _http(ask: Ask, host: str) -> bytes:
    if not ask.is_path:
        raise LabError(
            f"{ask.text[:80]!r} is not a path, and this target speaks HTTP: a request begins with "
            "'/'; SQL statements go to mysql://, postgres:// or sphinxql://", "compile",
        )  # fmt: skip
    headers = {"Host": host}
    if ask.body is not None:
        kinds = (kind for mark, kind in _BODY_KINDS if ask.body.lstrip().startswith(mark))
        headers["Content-Type"] = next(kinds, "application/x-www-form-urlencoded")
        headers["Content-Length"] = str(len(ask.body))
    own = {name.lower() for name, _ in ask.headers}
    lines = [f"{n}: {v}" for n, v in headers.items() if n.lower() not in own]
    lines += [f"{n}: {v}" for n, v in ask.headers]
    head = "\r\n".join([f"{ask.method} {ask.text} HTTP/1.1", *lines, "", ""])
    return head.encode("utf-8") + (ask.body or b"")


def _statement(ask: Ask, target: Target) -> str:
    if ask.is_path:
        raise LabError(
            f"{ask.text[:80]!r} is a path, and {target.url} is asked in SQL; paths go to http://",
            "compile",
        )
    return ask.text
