"""What a request costs the client: ours with a full trace, wrk on the same responder, in turn."""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
from collections.abc import Iterator
from statistics import median

from benches.figure import Figure
from benches.servers import CLIENT_CPU, HOST, RESPONDER, TARGET, closed, http_get, serving
from searchbench.engines.frames import QUERY, frame

CONNECTIONS = 64
ROUNDS = 7
SECONDS = 2.0


def figures() -> Iterator[Figure]:
    """Microseconds of user and system time of the whole client process, per request."""
    with serving([RESPONDER, "--port", "0", "--bytes", "1024"]) as port:
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(_ours(port, "http"))
            if shutil.which("wrk"):
                theirs.append(_wrk(port))
    yield Figure("client CPU per request, bare responder, 64 connections", median(ours), "us")
    if theirs:
        yield Figure("wrk's on the same responder, in turn", median(theirs), "us")
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        yield Figure(
            "client CPU per request over wrk's (median of pairs)", median(ratios), "x", at_most=1.0,
            note=f"pairs {min(ratios):.2f}..{max(ratios):.2f}",
        )  # fmt: skip
    else:
        print("  wrk is not here (Debian: apt-get install wrk): no comparison")
    with serving([HOST, "null", "--port", "0", "--data", "/tmp"]) as port:
        null = [_ours(port, "frames") for _ in range(3)]
    yield Figure("client CPU per request, null host, 64 connections", median(null), "us")
    record_ns = _record_ns()
    yield Figure("a trace record", record_ns, "ns")
    yield Figure(
        "a trace record, share of a request",
        record_ns / 1000 / median(ours) * 100,
        "%",
        at_most=1.0,
    )


def _ours(port: int, wire: str) -> float:
    requests = [http_get()] if wire == "http" else [frame(QUERY, b"{}")]
    done = closed(port, wire, requests, CONNECTIONS, SECONDS, idle="block")
    return done.cpu_s / len(done.ok()) * 1e6


def _wrk(port: int) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run(
        ["taskset", "-c", str(CLIENT_CPU), "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS:g}s",
         f"http://127.0.0.1:{port}/"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    match = re.search(r"(\d+) requests in", said)
    assert match, said
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu_s / int(match[1]) * 1e6


def _record_ns() -> float:
    """Nanoseconds to record one sample, from the core's own example."""
    said = subprocess.run(
        [TARGET / "examples" / "record_cost"], capture_output=True, text=True, check=True
    )
    return float(said.stdout.split()[0])
