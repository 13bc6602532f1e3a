"""Whether requests leave when they are due: a constant 1,000/s, as the server sees them arrive.

The server spins on a core of its own and notes when it read each request, so that nothing of what
is measured is a client's own opinion. What counts is how far each interval between two arrivals is
off one millisecond. The first second is left out: connections are opened in it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np

from benches.figure import Figure, Missing
from benches.peers.http import PEERS
from benches.peers.peer import Asked, Peer, PeerError
from benches.servers import RESPONDER, drive, http_get, serving
from benches.table import Table

RATE = 1000
POOL = 16
WARM_S = 1.0
QUANTILES = (0.5, 0.99, 1.0)

# With and without real-time priority: microseconds at the median and at p99.
HELD = {"searchbench, real-time priority": (10.0, 100.0), "searchbench": (15.0, 1000.0)}

Client = Callable[[int, float], None]


def figures(rounds: int = 3, seconds: float = 2.0) -> Iterator[Figure | Table | Missing]:
    """How far intervals are off, median and p99 of each client; the median of the rounds."""
    clients: dict[str, Client] = {
        name: _ours(realtime="real-time" in name) for name in HELD
    }  # fmt: skip
    for peer in PEERS:
        if peer.program() is not None and peer.can(_asked(peer, 1, seconds)):
            clients[f"{peer.name} {peer.which_version()}"] = _theirs(peer)
    found: dict[str, list[list[float]]] = {name: [] for name in clients}
    rates: dict[str, list[float]] = {name: [] for name in clients}
    for number in range(rounds):
        order = list(clients)
        at = number % len(order)
        for name in order[at:] + order[:at]:
            if name not in found:
                continue
            try:
                arrivals = _arrivals(clients[name], seconds + WARM_S)
            except (PeerError, OSError) as error:
                yield Missing(f"constant {RATE:,}/s, {name}: {error}")
                del found[name]
                continue
            interval_ns = np.diff(arrivals)
            off_us = np.abs(interval_ns - 1e9 / RATE) / 1e3
            found[name].append([float(np.quantile(off_us, q)) for q in QUANTILES])
            rates[name].append(1e9 / float(np.mean(interval_ns)))
    rows = []
    for name, of_rounds in found.items():
        cells = (f"{median(r[at] for r in of_rounds):,.1f}" for at in range(len(QUANTILES)))
        rows.append((name, *cells, f"{median(rates[name]):,.1f}"))
    yield Table(
        f"Constant {RATE:,}/s: how far the server sees intervals off 1 ms, µs",
        ("client", "median", "p99", "max", "arrivals/s"),
        tuple(rows),
    )
    for name, (middle, high) in HELD.items():
        for at, (label, most) in enumerate((("median", middle), ("p99", high))):
            if name in found:
                values = [of_round[at] for of_round in found[name]]
                yield Figure(
                    f"constant {RATE:,}/s, {name}: {label} off by", median(values), "us",
                    at_most=most, note=f"rounds {min(values):.1f}..{max(values):.1f}",
                )  # fmt: skip


def _arrivals(client: Client, seconds: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Nanoseconds of each request's arrival after the warm-up."""
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        noted = Path(folder) / "arrivals"
        server: list[str | Path] = [RESPONDER, "--port", "0", "--bytes", "1024"]
        with serving([*server, "--keep-alive", "--spin", "--arrivals", noted]) as port:
            client(port, seconds)
        arrivals = np.sort(np.fromfile(noted, "<u8").astype(np.int64))
    if len(arrivals) < 2:
        raise PeerError("the server saw no requests")
    kept = arrivals[arrivals >= arrivals[0] + int(WARM_S * 1e9)]
    if len(kept) < 2:
        raise PeerError(f"the server saw {len(arrivals)} requests, none after the first second")
    return kept


def _ours(*, realtime: bool) -> Client:
    def run(port: int, seconds: float) -> None:
        due = (np.arange(int(RATE * seconds)) * (1e9 / RATE)).astype(np.int64)
        done = drive(
            port, "http", [http_get()], sequence=np.zeros(len(due), np.uint32), due_ns=due,
            connections=POOL, idle="hybrid", realtime=realtime,
        )  # fmt: skip
        granted = any(
            thread["priority"].startswith("fifo") for thread in done.accounting["threads"]
        )
        if realtime and not granted:
            raise PermissionError("the kernel refuses SCHED_FIFO (needs CAP_SYS_NICE)")

    return run


def _asked(peer: Peer, port: int, seconds: float) -> Asked:
    # A worker of hey has a clock of its own, so only one of them keeps a steady rate.
    pool = 1 if peer.name == "hey" else POOL
    return Asked(f"http://127.0.0.1:{port}/", pool, seconds, per_s=float(RATE))


def _theirs(peer: Peer) -> Client:
    def run(port: int, seconds: float) -> None:
        peer.run(_asked(peer, port, seconds))

    return run
