"""What is measured against what is true: a known delay, and a server that stalls.

Others are asked about the same stalling server, and what they say stands beside the truth. None of
them is held to it: some say service time, and say so. The table shows what a reader would believe.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from benches.figure import Figure, Missing
from benches.peers.http import CORRECTED, PEERS
from benches.peers.peer import Asked, Peer, PeerError
from benches.servers import HOST, RESPONDER, closed, drive, http_get, serving
from benches.table import Table
from searchbench.engines.frames import QUERY, frame

DELAY_S = 0.005
STALL_S, EVERY_S = 0.5, 2.0
RATE = 1000
# As many connections as people take; and too few for the requests that a stall holds up.
POOL, SMALL_POOL = 64, 16
QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))

Values: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]


def figures() -> Iterator[Figure | Table | Missing]:
    """Errors against the truth."""
    yield from _known_delay()
    yield from _stalls()


def _known_delay() -> Iterator[Figure]:
    query = [frame(QUERY, b"{}")]
    with serving([HOST, "null", "--port", "0", "--data", "/tmp", "--delay_us", "1000"]) as port:
        for idle, target in (("hybrid", 60.0), ("block", None), ("spin", None)):
            ok = closed(port, "frames", query, 1, 4.0, idle=idle).ok()
            error_us = (np.median(ok["done"] - ok["sent"]) - 1_000_000) / 1000
            yield Figure(
                f"1 ms delay, closed loop, {idle}: median service time off by", error_us, "us",
                at_most=target, note=f"n = {len(ok)}",
            )  # fmt: skip


def truth(q: float) -> float:
    """Response time at quantile ``q``, seconds, at any steady arrival rate.

    A reply due in a stall leaves at its end, so a share STALL / EVERY of the arrivals waits
    uniformly between DELAY and DELAY + STALL, and the others take DELAY.
    """
    above = 1 - q
    share = STALL_S / EVERY_S
    return DELAY_S if above >= share else DELAY_S + STALL_S * (1 - above / share)


def figures_of(values_s: Values) -> list[float]:
    """p50, p90, p99 and the maximum, milliseconds, of seconds."""
    ordered = np.sort(values_s) * 1e3
    return [float(ordered[max(0, int(np.ceil(q * len(ordered))) - 1)]) for _, q in QUANTILES]


@contextmanager
def stalling() -> Iterator[int]:
    """The port of a server that stalls; from now on any whole number of periods has as many stalls.

    The first period has none, so what is measured begins in its second half.
    """
    options = [f"--delay-us={DELAY_S * 1e6:.0f}", f"--stall-every-ms={EVERY_S * 1e3:.0f}",
               f"--stall-ms={STALL_S * 1e3:.0f}"]  # fmt: skip
    words = [word for option in options for word in option.split("=")]
    with serving([RESPONDER, "--port", "0", "--bytes", "1024", "--keep-alive", *words]) as port:
        time.sleep(EVERY_S / 2)
        yield port


def _stalls(seconds: float = 16.0, theirs_s: float = 4.0) -> Iterator[Figure | Table | Missing]:
    """Ours through a pool that is large enough, through one that is not; and what others say."""
    true_ms = [truth(q) * 1e3 for _, q in QUANTILES]
    rows = [("the truth, at any steady rate", *_cells(true_ms))]

    large = _open(1000, seconds)
    response_ms = figures_of((large["done"] - large["due"]) / 1e9)
    service_ms = figures_of((large["done"] - large["sent"]) / 1e9)
    for (name, _), said, true, service in zip(
        QUANTILES, response_ms, true_ms, service_ms, strict=True
    ):
        yield Figure(
            f"stalling server, open loop {RATE:,}/s: response {name} off by",
            abs(said - true) / true * 100, "%", at_most=1.0,
            note=f"response {said:.2f} ms, true {true:.2f}, service {service:.2f}",
        )  # fmt: skip
    rows.append((f"searchbench, open loop {RATE:,}/s, 1,000 connections", *_cells(response_ms)))

    small = _open(SMALL_POOL, seconds / 2)
    pool = f"searchbench, open loop {RATE:,}/s, {SMALL_POOL} connections"
    response, service, backlog = (
        (small[end] - small[begin]) / 1e9
        for end, begin in (("done", "due"), ("done", "sent"), ("free", "due"))
    )
    backlog = np.maximum(backlog, 0)
    for what, values in (("response", response), ("service", service), ("backlog", backlog)):
        rows.append((f"{pool}: {what} time".replace("backlog time", "backlog"),
                     *_cells(figures_of(values))))  # fmt: skip
    yield from _queueing(response, service, backlog)

    with stalling() as port:
        closed_loop = closed(port, "http", [http_get()], POOL, theirs_s, idle="hybrid").ok()
    service_ms = figures_of((closed_loop["done"] - closed_loop["sent"]) / 1e9)
    rows.append((f"searchbench, closed loop, {POOL} clients: service time", *_cells(service_ms)))
    for peer, asked, how in _asked_of_peers(theirs_s):
        try:
            with stalling() as port:
                url = f"http://127.0.0.1:{port}/"
                answer = peer.run(replace(asked, url=url)).said
        except PeerError as error:
            yield Missing(f"stalling server, {peer.name}: {error}")
            continue
        told = [answer.latency_ms.get(name) for name, _ in QUANTILES]
        lost = f"; {answer.failed:,} failed or dropped" if answer.failed else ""
        rows.append((f"{peer.name}, {how}{lost}", *_cells(told)))
    yield Table(
        f"A server that answers in {DELAY_S * 1e3:g} ms and stalls {STALL_S * 1e3:g} ms "
        f"every {EVERY_S:g} s: what each says, ms",
        ("client", *(name for name, _ in QUANTILES)),
        tuple(rows),
    )


def _queueing(response: Values, service: Values, backlog: Values) -> Iterator[Figure]:
    """Through a pool that is too small: what waits for a connection is backlog, not service."""
    # Service time is what the server took: outside stalls its delay, in one at most its rest.
    honest = np.mean(service <= truth(1.0) * 1.01) * 100
    yield Figure(
        f"pool of {SMALL_POOL}: service times that the server can have taken",
        float(honest), "%", at_least=99.9,
    )  # fmt: skip
    yield Figure(
        f"pool of {SMALL_POOL}: neither service nor backlog of a response, p99",
        float(np.quantile(np.abs(response - service - backlog), 0.99)) * 1e3, "ms", at_most=1.0,
        note=f"p90: response {np.quantile(response, 0.9) * 1e3:.0f} ms, "
        f"service {np.quantile(service, 0.9) * 1e3:.0f}, "
        f"backlog {np.quantile(backlog, 0.9) * 1e3:.0f}",
    )  # fmt: skip


def _open(connections: int, seconds: float) -> np.ndarray[Any, Any]:
    """Samples of an open loop of whole periods; every request is in them."""
    due = (np.arange(int(RATE * seconds)) * (1e9 / RATE)).astype(np.int64)
    with stalling() as port:
        done = drive(
            port, "http", [http_get()], sequence=np.zeros(len(due), np.uint32), due_ns=due,
            connections=connections, idle="hybrid",
        )  # fmt: skip
    if len(done.ok()) != len(due):
        raise RuntimeError(f"{len(due) - len(done.ok())} requests were not answered")
    return done.ok()


def _asked_of_peers(seconds: float) -> Iterator[tuple[Peer, Asked, str]]:
    """Each peer that is here, as its users do and as it does best."""
    for peer in (*PEERS, CORRECTED):
        if peer.program() is None:
            continue
        for pool in (POOL, 1000):
            asked = Asked("http://127.0.0.1:1/", pool, seconds, per_s=float(RATE))
            if peer.can(asked):
                corrected = ", --latency-correction" if peer is CORRECTED else ""
                yield peer, asked, f"{RATE:,}/s{corrected}, {pool:,} connections"
            elif pool == POOL and peer.can(asked := replace(asked, per_s=None)):
                yield peer, asked, f"closed loop, {pool} connections"


def _cells(values_ms: Sequence[float | None]) -> list[str]:
    return ["" if value is None else f"{value:.1f}" for value in values_ms]
