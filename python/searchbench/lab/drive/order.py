"""A load and a query set → what the core is to send when, fixed before the first request."""

from __future__ import annotations

import numpy as np

from searchbench.errors import LabError
from searchbench.lab.drive.drive import Compiled, Order
from searchbench.workload.loads import Load
from searchbench.workload.queries.orders import arrange
from searchbench.workload.queries.sets import QuerySet


def order_of(load: Load, queries: QuerySet, compiled: Compiled, seed: int) -> Order:
    """The order for a drive. Logged queries that the engine cannot express are left out.

    The same seed gives the same order to every system, so within a block all are asked alike.
    """
    requests = compiled.request_of(queries.distinct)[queries.log]
    asked = requests >= 0
    log = requests[asked].astype(np.uint32)
    times = None if queries.times_s is None else queries.times_s[asked]
    due = load.due_ns(seed, times)
    if due is None:
        sequence = arrange(log, load.order, clients=load.connections, seed=seed)
        return Order(
            sequence.sequence,
            sequence.client_starts,
            None,
            load.connections,
            think_ns=load.think_ns,
            stop_ns=load.stop_ns,
            stop_after=load.stop_after,
        )
    if not len(due):
        raise LabError("no request is due within the window; make it longer or the rate higher")
    sequence = arrange(log, load.order, seed=seed, length=len(due))
    return Order(sequence.sequence, None, due, load.connections, repeat=False)


def expected_requests(order: Order, mean_service_s: float) -> int:
    """About how many requests an order comes to, for choosing how many replies to keep."""
    if order.due_ns is not None:
        return len(order.due_ns)
    if order.stop_after is not None:
        return order.stop_after
    cycle_s = max(mean_service_s + order.think_ns / 1e9, 1e-6)
    return int(order.connections * (order.stop_ns or 0) / 1e9 / cycle_s)
