"""Servers for the benches, and ours driven against them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from searchbench import _core
from searchbench.engines.engine import Request
from searchbench.lab.wire.exchange import prepare

TARGET = Path(__file__).parent.parent / "target" / "release"
RESPONDER = TARGET / "examples" / "responder"
HOST = TARGET / "searchbench-host"
SERVER_CPU, CLIENT_CPU = 0, os.cpu_count() - 1 if (os.cpu_count() or 1) > 1 else 0


@contextmanager
def serving(argv: Sequence[str | Path]) -> Iterator[int]:
    """Start a server that prints ``listening on 127.0.0.1:PORT``; its port."""
    process = subprocess.Popen(
        ["taskset", "-c", str(SERVER_CPU), *map(str, argv)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        match = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
        if not match:
            raise RuntimeError(f"{argv[0]} did not say where it listens")
        yield int(match[1])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


@dataclass(frozen=True)
class Drive:
    """Samples of a drive (structured array), its accounting, CPU seconds of this process."""

    samples: np.ndarray[Any, Any]
    accounting: dict[str, Any]
    cpu_s: float

    def ok(self) -> np.ndarray[Any, Any]:
        """Samples that were answered."""
        return self.samples[self.samples["outcome"] == 0]


def drive(port: int, wire: Any, requests: Sequence[Request], **how: Any) -> Drive:
    """``_core.drive`` at loopback, on the client's core."""
    import json

    before = os.times()
    trace = _core.drive(("127.0.0.1", port), wire, prepare(requests), cpus=[CLIENT_CPU], **how)
    after = os.times()
    samples = np.frombuffer(trace, dtype=_core.SAMPLE_DTYPE)
    cpu_s = after.user + after.system - before.user - before.system
    return Drive(samples, json.loads(trace.accounting()), cpu_s)


def closed(
    port: int, wire: Any, requests: Sequence[Request], clients: int, seconds: float, **how: Any
) -> Drive:
    """A closed loop over all requests in order."""
    count = max(len(requests), clients)
    sequence = np.resize(np.arange(len(requests), dtype=np.uint32), count)
    starts = np.linspace(0, count, clients + 1).astype(np.uint32)
    return drive(
        port,
        wire,
        requests,
        sequence=sequence,
        client_starts=starts,
        connections=clients,
        repeat=True,
        stop_ns=int(seconds * 1e9),
        **how,
    )


def http_get() -> Request:
    """The request that wrk sends."""
    return Request((b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",))
