"""What is measured against what is true: a known delay, and a server that stalls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benches.figure import Figure
from benches.servers import HOST, closed, drive, serving
from searchbench.engines.frames import QUERY, frame

DELAY_S = 0.005
STALL_S, EVERY_S = 0.5, 2.0
RATE = 1000


def figures() -> Iterator[Figure]:
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


def _stalls() -> Iterator[Figure]:
    seconds = 20.0
    options = ["--delay_us", "5000", "--stall_every_ms", "2000", "--stall_ms", "500"]
    due = (np.arange(int(RATE * seconds)) * (1e9 / RATE)).astype(np.int64)
    with serving([HOST, "null", "--port", "0", "--data", "/tmp", *options]) as port:
        done = drive(
            port, "frames", [frame(QUERY, b"{}")],
            sequence=np.zeros(len(due), np.uint32), due_ns=due, connections=1000, idle="hybrid",
        )  # fmt: skip
    ok = done.ok()
    response = np.sort((ok["done"] - ok["due"]) / 1e9)
    service = np.sort((ok["done"] - ok["sent"]) / 1e9)
    for name, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)):
        at = min(len(response) - 1, int(np.ceil(q * len(response))) - 1)
        true = truth(q)
        off = abs(response[at] - true) / true * 100
        yield Figure(
            f"stalling server, open loop 1,000/s: response {name} off by", off, "%",
            at_most=None if name == "p50" else 2.0,
            note=f"response {response[at] * 1e3:.1f} ms, true {true * 1e3:.1f}, "
            f"service {service[at] * 1e3:.1f}",
        )  # fmt: skip
