"""Each agent asked by itself what the whole is asked: a short drive before the trial's own.

What a distributed query waits for is the slowest of its agents, each with the parts that it has. So
each is asked for these parts, by the same requests and as many clients, while the others are idle.
It is done on a deployment of its own, so that the one that is driven has just started.
"""

from __future__ import annotations

import numpy as np

from searchbench import _core
from searchbench.errors import LabError
from searchbench.lab.conduct.session import Session
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.wire.exchange import Endpoint, samples_of
from searchbench.lab.wire.order import Manner, Order
from searchbench.record.alone import HostAlone
from searchbench.workload.loads import ClosedLoop

WARMUP_S = 0.5
SECONDS = 1.0
_CLIENTS = 4  # at most, where the load does not say how many there are
_OK = _core.OUTCOMES.index("ok")


def calibrate(session: Session) -> None:
    """Drive each agent, one after another; LabError (stage ``calibrate``) where one is silent."""
    running, place = session.there(), session.place
    assert isinstance(running, Deployment)
    assert place is not None
    agents = [each for each in running.service.companions if each.agent]
    endpoints = running.alone()
    session.found["hosts"] = [
        _alone(session, endpoints[agent.name], agent.name, host.name, agent.holds)
        for agent, host in zip(agents, place.agents, strict=True)
        if agent.name in endpoints
    ]


def _alone(session: Session, endpoint: Endpoint, agent: str, host: str, parts: int) -> HostAlone:
    load, compiled = session.opened.load, session.bytes()
    clients = load.connections
    if not isinstance(load.loop, ClosedLoop):
        clients = min(clients, _CLIENTS)
    # The same requests in the same order for each agent.
    order = np.random.default_rng(session.opened.seed).permutation(compiled.single)
    starts = np.linspace(0, len(order), clients + 1).astype(int)
    if compiled.single < clients:  # each client asks all of them
        order = np.tile(order, clients)
        starts = np.arange(clients + 1) * compiled.single
    whole_ns = round((WARMUP_S + SECONDS) * 1e9)
    sent = Order(order.astype(np.uint32), starts.astype(np.uint32), None, clients, stop_ns=whole_ns)
    cpus = session.sitting.cores.client_cpus
    trace = endpoint.send(
        compiled.requests, sent, Manner(timeout_s=load.timeout_s, cpus=cpus[:clients])
    )
    raw = samples_of(trace)
    first_ns = round(WARMUP_S * 1e9)
    seen = raw[(raw["due"] >= first_ns) & (raw["due"] < whole_ns)]
    well = seen[seen["outcome"] == _OK]
    if not len(well):
        raise LabError(f"the agent {agent} on host {host} answered nothing by itself", "calibrate")
    service_s = np.sort(well["done"] - well["sent"]) / 1e9
    p50, p99 = np.quantile(service_s, [0.5, 0.99])
    return HostAlone(
        host=host, agent=agent, parts=parts, clients=clients, seconds=SECONDS,
        answered=len(well), failed=len(seen) - len(well),
        per_s=float(np.count_nonzero(well["done"] < whole_ns) / SECONDS),
        service_p50_s=float(p50), service_p99_s=float(p99),
    )  # fmt: skip
