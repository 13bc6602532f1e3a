"""What is asked, made ready for one system: portable queries, or verbatim requests.

Both give the same three things: what the record keeps of them, their bytes for a system, and the
order in which a load sends them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from searchbench.corpora.corpus import Schema
from searchbench.engines.engine import Engine, Parameters, Request
from searchbench.errors import LabError
from searchbench.lab.drive.compiled import Compiled, Spread, compile_all
from searchbench.lab.drive.encode import encode
from searchbench.lab.system.address import Target, resolve
from searchbench.lab.wire.order import I64, U32, Order
from searchbench.record.trial import Queries
from searchbench.workload.draw import CachePlan, draw
from searchbench.workload.loads import Load
from searchbench.workload.queries.forms import to_json, to_text
from searchbench.workload.queries.orders import arrange
from searchbench.workload.queries.sets import QuerySet
from searchbench.workload.verbatim.model import Ask, RequestSet, sequence

# A closed loop repeats its order: long enough that no cache sees the end of it soon.
_DRAWN = 200_000


@dataclass(frozen=True)
class PortableQueries:
    """Queries in the algebra, which each engine's translator turns into its own bytes."""

    queries: QuerySet
    schema: Schema

    @property
    def digest(self) -> str:
        """Names its file on record."""
        return self.queries.digest

    def about(self) -> Queries:
        """What trial.json keeps of it."""
        q = self.queries
        return Queries(
            name=q.name, digest=q.digest, distinct=q.distinct, logged=q.logged,
            mean_terms=q.mean_terms, bad_lines=q.bad_count,
        )  # fmt: skip

    def lines(self) -> Iterator[dict[str, Any]]:
        """The distinct queries as the record keeps them."""
        for number, query in enumerate(self.queries.queries):
            yield {"query": number, "text": to_text(query), "algebra": to_json(query)}

    def compiled(self, engine: Engine, params: Parameters, endpoints: int = 1) -> Compiled:
        """Its bytes for an engine, laid out for so many endpoints. LabError if there are none."""
        found = compile_all(engine, self.queries.queries, self.schema, params)
        return found.for_endpoints(endpoints)

    def order(self, load: Load, compiled: Compiled, seed: int, spread: Spread = "keep") -> Order:
        """The order for a drive. Logged queries that the engine cannot express are left out.

        The same seed gives the same order to every system, so within a block all are asked alike.
        """
        requests = compiled.request_of(self.queries.distinct)[self.queries.log]
        asked = requests >= 0
        log = requests[asked].astype(np.uint32)
        times = self.queries.times_s
        due = load.due_ns(seed, None if times is None else times[asked])
        return compiled.routed(_order(load, log, due, seed), spread)


@dataclass(frozen=True)
class VerbatimRequests:
    """Requests that are sent as they are: paths, statements, a production log."""

    requests: RequestSet

    @property
    def digest(self) -> str:
        """Names its file on record."""
        return self.requests.digest

    def about(self) -> Queries:
        """What trial.json keeps of it."""
        r = self.requests
        return Queries(
            name=r.name, digest=r.digest, distinct=r.distinct, logged=r.logged,
            bad_lines=r.bad_count,
        )  # fmt: skip

    def lines(self) -> Iterator[dict[str, Any]]:
        """The distinct requests as the record keeps them."""
        return self.requests.lines()

    def compiled(
        self, target: Target, *, remote: bool, timeout_s: float
    ) -> tuple[Compiled, Target]:
        """Its bytes for each endpoint, and the target with those that single requests name.

        LabError with the request where one cannot be sent there.
        """
        places = list(target.resolved)
        named: list[tuple[str, int]] = list(target.addresses)
        asks = self.requests.asks
        own = np.full(len(asks), -1, np.int64)
        for number, ask in enumerate(asks):
            if ask.host is None and ask.port is None:
                continue
            address = (ask.host or target.addresses[0][0], ask.port or target.addresses[0][1])
            if address not in named:
                named.append(address)
                places.append(resolve(*address, remote=remote))
            own[number] = named.index(address)
        full = Target(
            target.name, target.url, target.wire, tuple(named), tuple(places), target.login,
            target.path,
        )  # fmt: skip
        encoded = [_encoded(ask, full, place) for place in range(len(places)) for ask in asks]
        numbers = np.tile(np.arange(len(asks), dtype=np.uint32), len(places))
        compiled = Compiled(
            tuple(encoded),
            numbers,
            copies=len(places),
            several=len(target.resolved),
            own=own,
            timeouts_ns=self._timeouts(timeout_s),
        )
        return compiled, full

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

    def order(
        self,
        load: Load,
        compiled: Compiled,
        seed: int,
        spread: Spread = "keep",
        cache: CachePlan | None = None,
    ) -> Order:
        """The order for a drive. ``cache``: drawn for a share of hits, in place of their own."""
        log, times = self.requests.log, self.requests.times_s
        due = load.due_ns(seed, times)
        length = _DRAWN if due is None else max(1, len(due))
        if cache is not None:
            if due is None:
                length = max(length, 4 * cache.warmup_requests)
            log = draw(cache, length, seed)
        elif self.requests.groups:
            log = sequence(self.requests, seed, length)
        return compiled.routed(_order(load, log, due, seed, repeated=_DRAWN), spread)

    def filling(self, compiled: Compiled, cache: CachePlan, seed: int) -> Order:
        """An order that fills the caches of all endpoints, before anything is measured."""
        caches = compiled.several
        log = draw(cache, caches * cache.warmup_requests, seed)
        asked = arrange(log, "logged", clients=caches)
        order = Order(asked.sequence, asked.client_starts, None, caches, repeat=False)
        return compiled.routed(order, "keep")

    def _timeouts(self, usual_s: float) -> I64 | None:
        asks = self.requests.asks
        if all(ask.timeout_s is None for ask in asks):
            return None
        return np.array([round((a.timeout_s or usual_s) * 1e9) for a in asks], dtype=np.int64)


Workload = PortableQueries | VerbatimRequests


@dataclass(frozen=True)
class Role:
    """A workload with its load: what one kind of client of a trial does, under its name."""

    name: str
    workload: Workload
    load: Load


def _order(load: Load, log: U32, due: I64 | None, seed: int, repeated: int | None = None) -> Order:
    """``log`` in the load's order. ``repeated``: a drawn or shuffled closed loop is so long."""
    if due is not None:
        if not len(due):
            raise LabError("no request is due within the window; make it longer or the rate higher")
        asked = arrange(log, load.order, seed=seed, length=len(due))
        return Order(asked.sequence, None, due, load.connections, repeat=False)
    length = None
    if repeated is not None and load.order != "logged":
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
