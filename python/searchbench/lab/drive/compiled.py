"""A workload in the bytes of one system: its requests, and which endpoint each goes to.

Of a system with several endpoints the requests are laid out one copy for each, so that which
endpoint a request goes to is a matter of its number alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from searchbench.corpora.corpus import Schema
from searchbench.engines.engine import Engine, Parameters, Request
from searchbench.engines.features import refuse
from searchbench.errors import LabError, Unsupported
from searchbench.lab.wire.order import I64, U32, Order
from searchbench.workload.queries.algebra import Query

Spread = Literal["keep", "round"]


@dataclass(frozen=True, slots=True)
class Compiled:
    """``request_to_query``: uint32, the distinct query of each request, over all its copies.

    ``copies``: how many endpoints the requests are laid out for. ``several``: how many of them any
    request may go to; those beyond are named by single requests. ``own``: of each request of one
    copy the endpoint that it names, -1 where it names none. ``timeouts_ns``: of each of one copy.
    """

    requests: tuple[Request, ...]
    request_to_query: U32
    unsupported: tuple[tuple[int, str], ...] = ()
    copies: int = 1
    several: int = 1
    own: I64 | None = None
    timeouts_ns: I64 | None = None

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
