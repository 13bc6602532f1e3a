"""What a request costs the measuring core: over the framed protocol, and to write it down."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from statistics import median

from benches.figure import Figure
from benches.servers import HOST, RESPONDER, TARGET, closed, http_get, serving
from searchbench.engines.engine import Request
from searchbench.engines.frames import QUERY, frame

CONNECTIONS = 64
ROUNDS = 3
SECONDS = 2.0


def figures() -> Iterator[Figure]:
    """Microseconds of CPU a request against the null host, and a record's share of it."""
    with serving([HOST, "null", "--port", "0", "--data", "/tmp"]) as port:
        framed = [_cost_us(port, "frames", frame(QUERY, b"{}")) for _ in range(ROUNDS)]
    yield Figure(
        f"client CPU per request, null host, {CONNECTIONS} connections", median(framed), "us"
    )
    with serving([RESPONDER, "--port", "0", "--bytes", "1024"]) as port:
        http = [_cost_us(port, "http", http_get()) for _ in range(ROUNDS)]
    record_ns = _record_ns()
    yield Figure("a trace record", record_ns, "ns")
    yield Figure(
        "a trace record, share of an HTTP request",
        record_ns / 1000 / median(http) * 100,
        "%",
        at_most=1.0,
    )


def _cost_us(port: int, wire: str, request: Request) -> float:
    done = closed(port, wire, [request], CONNECTIONS, SECONDS, idle="block")
    return done.cpu_s / len(done.ok()) * 1e6


def _record_ns() -> float:
    """Nanoseconds to record one sample, from the core's own example."""
    said = subprocess.run(
        [TARGET / "examples" / "record_cost"], capture_output=True, text=True, check=True
    )
    return float(said.stdout.split()[0])
