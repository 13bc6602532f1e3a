"""Systems under load, made ready: found, identified, their requests in bytes, asked once.

A ``System`` is a target with everything that its load steps share. Its requests are laid out one
copy for each endpoint, so that which endpoint a request goes to is a matter of its number alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import psutil
import pyarrow as pa
from numpy.typing import NDArray

from searchbench.engines.engine import Request
from searchbench.errors import LabError
from searchbench.lab.drive.drive import Compiled, Decoder, Order, Sender, capture
from searchbench.lab.drive.exchange import Endpoint
from searchbench.lab.fleet.fleet import Fleet, FleetEndpoint
from searchbench.lab.system.address import Target, encode, resolve
from searchbench.lab.system.attach import listening_at
from searchbench.lab.system.identify import Identity, Tolerant, identify
from searchbench.record import REPLIES
from searchbench.workload.verbatim.model import Ask, RequestSet

Spread = Literal["keep", "round"]
Encode = Callable[[Ask, Target, int], Request]


@dataclass
class System:
    """``places``: all endpoints, those that single requests name after the target's own.

    ``own_place``: of each ask the endpoint that it names, -1 where any of the target's will do.
    ``captured``: replies of the distinct requests, each asked once and alone; ``mean_s`` how long
    one took, for an estimate.
    """

    target: Target
    identity: Identity
    endpoint: Endpoint
    places: tuple[tuple[str, int], ...]
    own_place: NDArray[np.int64]
    compiled: Compiled
    timeouts_ns: NDArray[np.int64] | None
    processes: list[psutil.Process]
    captured: pa.Table = field(default_factory=lambda: REPLIES.empty_table())
    mean_s: float = 0.001
    fleet: Fleet | None = None

    @property
    def name(self) -> str:
        """Its name in tables."""
        return self.target.name

    @property
    def engine(self) -> Decoder:
        """What reads its replies."""
        return Tolerant(self.identity.engine)

    @property
    def sender(self) -> Sender:
        """What sends the load: this machine, or the fleet."""
        return self.endpoint if self.fleet is None else FleetEndpoint(self.fleet, self.endpoint)

    def lives(self) -> bool:
        """Are all its processes that are seen from here still running?"""
        return all(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in self.processes)

    def routed(self, order: Order, spread: Spread) -> Order:
        """An order of asks as an order of requests: each with the endpoint that it goes to.

        "keep": each client keeps to one of the target's endpoints, in turn. "round": requests go
        round. In an open loop they always go round.
        """
        if len(self.places) == 1:
            return order
        asks = len(self.own_place)
        sequence = order.sequence.astype(np.int64)
        several = len(self.target.resolved)
        if order.client_starts is not None and spread == "keep":
            starts = order.client_starts.astype(np.int64)
            runs = starts[1:] - starts[:-1]
            turn = np.repeat(np.arange(len(runs)) % several, runs)
            turn = np.resize(turn, len(sequence))
        else:
            turn = np.arange(len(sequence)) % several
        own = self.own_place[sequence]
        place = np.where(own >= 0, own, turn)
        routed = (place * asks + sequence).astype(np.uint32)
        return Order(
            routed, order.client_starts, order.due_ns, order.connections, order.think_ns,
            order.repeat, order.stop_ns, order.stop_after,
        )  # fmt: skip

    def further(self) -> dict[str, Any]:
        """What the core is told beyond an order: endpoints and timeouts of single requests."""
        told: dict[str, Any] = {}
        asks, places = len(self.own_place), len(self.places)
        if places > 1:
            told["request_targets"] = np.repeat(np.arange(places, dtype=np.uint16), asks)
        if self.timeouts_ns is not None:
            told["request_timeouts_ns"] = np.tile(self.timeouts_ns, places)
        return told


def make_ready(
    target: Target,
    requests: RequestSet,
    *,
    engine: str | None = None,
    remote: bool = False,
    timeout_s: float = 10.0,
    captures: int = 200,
    to_bytes: Encode = encode,
    whole: tuple[bytes, ...] = (),
) -> System:
    """Find out who answers, encode all requests, and ask some of them once.

    ``captures``: how many distinct requests are asked once before any load, evenly chosen, so
    that answers under load can be compared with them; 0 for none. LabError with the place.
    """
    places = list(target.resolved)
    named: list[tuple[str, int]] = list(target.addresses)
    own = np.full(len(requests.asks), -1, np.int64)
    for number, ask in enumerate(requests.asks):
        if ask.host is None and ask.port is None:
            continue
        address = (ask.host or target.addresses[0][0], ask.port or target.addresses[0][1])
        if address not in named:
            named.append(address)
            places.append(resolve(*address, remote=remote))
        own[number] = named.index(address)
    full = Target(target.name, target.url, target.wire, tuple(named), tuple(places), target.login,
                   target.path)  # fmt: skip
    encoded: list[Request] = []
    for place in range(len(places)):
        for ask in requests.asks:
            try:
                encoded.append(to_bytes(ask, full, place))
            except ValueError as error:
                raise LabError(f"{ask.text[:80]!r} cannot be sent: {error}", "compile") from None
    count = len(requests.asks)
    compiled = Compiled(tuple(encoded), np.tile(np.arange(count, dtype=np.uint32), len(places)), ())
    endpoint = Endpoint(places[0], target.wire, target.login, whole, tuple(places[1:]), remote)
    first = Endpoint(places[0], target.wire, target.login, whole, (), remote)
    identity = identify(target, first, engine, encoded[max(0, int(own[0])) * count], timeout_s)
    processes = [p for place in dict.fromkeys(places) for p in listening_at(place)]
    system = System(
        target, identity, endpoint, tuple(places), own, compiled, _timeouts(requests, timeout_s),
        processes,
    )  # fmt: skip
    if captures:
        _capture(system, first, captures)
    return system


def _timeouts(requests: RequestSet, usual_s: float) -> NDArray[np.int64] | None:
    if all(ask.timeout_s is None for ask in requests.asks):
        return None
    return np.array(
        [round((ask.timeout_s or usual_s) * 1e9) for ask in requests.asks], dtype=np.int64
    )


@dataclass(frozen=True, slots=True)
class _Alone:
    endpoint: Endpoint
    engine: Decoder

    @property
    def sender(self) -> Endpoint:
        return self.endpoint


def _capture(system: System, endpoint: Endpoint, most: int) -> None:
    """Ask some distinct requests once, alone; those that name an endpoint of their own are not."""
    asks = np.flatnonzero(system.own_place < 0)
    if not asks.size:
        return
    chosen = asks[np.unique(np.linspace(0, asks.size - 1, min(most, asks.size)).astype(np.int64))]
    some = Compiled(
        tuple(system.compiled.requests[int(i)] for i in chosen), chosen.astype(np.uint32), ()
    )
    table, system.mean_s = capture(_Alone(endpoint, system.engine), some)
    if system.identity.engine is not None:
        system.captured = table


def names_are_apart(targets: Sequence[Target]) -> None:
    """LabError where two systems have one name: their lines could not be told apart."""
    seen: dict[str, str] = {}
    for target in targets:
        if target.name in seen:
            raise LabError(
                f"two systems are called {target.name}; name them, as in "
                f"before={seen[target.name]} after={target.url}"
            )
        seen[target.name] = target.url
