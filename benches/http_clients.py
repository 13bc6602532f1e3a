"""What an HTTP request costs the client: ours with a full trace, and others', in turn.

All ask the same server for the same reply of 1 KB over 64 connections from one thread on one core.
A client's cost is the CPU time of its whole process, user and system, of a run less that of the
shortest run it can do, over the requests between them: what it costs to start counts for nobody.
Ratios are those within a round; the order of the clients moves on by one each round.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from benches.databases import MissingError
from benches.figure import Figure, Missing
from benches.peers.http import PEERS
from benches.peers.peer import Asked, Cost, Peer, PeerError, Said
from benches.peers.sniff import request_bytes
from benches.servers import RESPONDER, closed, serving
from benches.table import OURS, Table, spread
from benches.web_servers import groonga, nginx
from searchbench.engines.engine import Request

POOL = 64
SECONDS = 1.0
# Against the bare responder; against nginx, which takes more of a request itself, only wrk's.
AT_LEAST = {"wrk": 1.3, "oha": 1.9, "hey": 4.0, "k6": 8.0}
USER_US = 0.25

_RESPONDER: list[str | Path] = [RESPONDER, "--port", "0", "--bytes", "1024", "--keep-alive"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One client's run in one round; ``start`` is its shortest run."""

    long: Cost
    start: Cost

    def cost_us(self) -> float:
        """Microseconds of CPU each request."""
        count = self.long.said.answered - self.start.said.answered
        return (self.long.cpu_s - self.start.cpu_s) / count * 1e6


def tls(rounds: int = 5, seconds: float = SECONDS) -> Iterator[Figure | Table | Missing]:
    """The same to nginx over TLS 1.3: connections that stay open, and a handshake each request."""
    for server, keep_alive in (
        ("nginx, TLS", True),
        ("nginx, TLS, a connection each request", False),
    ):
        standing = nginx(keep_alive=keep_alive, tls=True)
        try:
            yield from _compared(
                server, standing, {"wrk": 1.0}, rounds, seconds, keep_alive=keep_alive
            )
        except MissingError as missing:
            yield Missing(f"{server}: {missing}")


def figures(rounds: int = 7, seconds: float = SECONDS) -> Iterator[Figure | Table | Missing]:
    """Connections that stay open, to a bare responder and to nginx; a connection a request."""
    for peer in PEERS:
        if peer.program() is None:
            yield Missing(f"{peer.name} ({peer.get})")
    fewer = max(1, rounds // 2)
    yield from _compared("bare responder", _bare(), AT_LEAST, rounds, seconds, user_us=USER_US)
    for server, standing, at_least, keep_alive, turns in (
        ("nginx", nginx(keep_alive=True), {"wrk": 1.08}, True, fewer + 2),
        ("nginx, a connection each request", nginx(keep_alive=False), {"wrk": 1.0}, False, fewer),
        ("groonga -s, a connection each request", groonga(), {"wrk": 1.0}, False, fewer),
    ):
        try:
            yield from _compared(server, standing, at_least, turns, seconds, keep_alive=keep_alive)
        except MissingError as missing:
            yield Missing(f"{server}: {missing}")


class _bare:  # noqa: N801 -- stands where a function with @contextmanager would
    """The bare responder, as a URL."""

    def __enter__(self) -> str:
        self._serving = serving(_RESPONDER)
        return f"http://127.0.0.1:{self._serving.__enter__()}/"

    def __exit__(self, *raised: object) -> None:
        self._serving.__exit__(None, None, None)


def _compared(
    server: str,
    standing: AbstractContextManager[str],
    at_least: Mapping[str, float],
    rounds: int,
    seconds: float,
    *,
    keep_alive: bool = True,
    user_us: float | None = None,
) -> Iterator[Figure | Table | Missing]:
    """A round is each client once."""
    with standing as url:
        asked = Asked(url, POOL, seconds, keep_alive)
        peers = [peer for peer in PEERS if peer.can(asked)]
        bytes_sent = {p.name: request_bytes(p, urlsplit(url).path, keep_alive) for p in peers}
        failed: dict[str, str] = {}
        starts: dict[str, Cost] = {}
        for peer in peers:
            try:
                starts[peer.name] = _start(peer, asked)
            except PeerError as error:
                failed[peer.name] = str(error)
        start = _ours(asked, shortest=True)
        ours: list[Turn] = []
        theirs: dict[str, list[Turn]] = {peer.name: [] for peer in peers}
        for number in range(rounds):
            order: list[Peer | None] = [None, *peers]
            at = number % len(order)
            for turn in order[at:] + order[:at]:
                if turn is None:
                    ours.append(Turn(_ours(asked), start))
                    continue
                if turn.name in failed:
                    continue
                try:
                    theirs[turn.name].append(Turn(turn.run(asked), starts[turn.name]))
                except PeerError as error:
                    failed[turn.name] = str(error)
    for name, why in failed.items():
        yield Missing(f"{server}, {name}: {why}")
    known = {n: turns for n, turns in theirs.items() if n not in failed}
    ratios = {
        name: [b.cost_us() / a.cost_us() for a, b in zip(ours, turns, strict=True)]
        for name, turns in known.items()
    }
    bytes_sent[OURS] = len(_request(asked).exchanges[0])
    yield _table(server, {OURS: ours, **known}, ratios, bytes_sent, seconds)
    for name, least in at_least.items():
        if name in ratios:
            low, high = min(ratios[name]), max(ratios[name])
            yield Figure(
                f"{server}: requests per CPU-second over {name}'s", median(ratios[name]), "x",
                at_least=least, note=f"rounds {low:.2f}..{high:.2f}",
            )  # fmt: skip
    if user_us is not None:
        yield Figure(f"{server}: user time each request", user_us_of(ours), "us", at_most=user_us)


def user_us_of(turns: Sequence[Turn]) -> float:
    """Of all rounds together: the kernel tells user from system time by sampling."""
    user_s = sum(turn.long.user_s - turn.start.user_s for turn in turns)
    return user_s / sum(turn.long.said.answered - turn.start.said.answered for turn in turns) * 1e6


def _table(
    server: str,
    turns: Mapping[str, Sequence[Turn]],
    ratios: Mapping[str, Sequence[float]],
    bytes_sent: Mapping[str, int],
    seconds: float,
) -> Table:
    versions = {peer.name: peer.which_version() for peer in PEERS if peer.name in turns}
    rows = []
    for name, of_client in sorted(turns.items(), key=lambda t: median(x.cost_us() for x in t[1])):
        cost = median(turn.cost_us() for turn in of_client)
        user = user_us_of(of_client)
        rate = median(turn.long.said.answered for turn in of_client) / seconds
        ratio = spread(ratios[name]) if name in ratios else "1"
        client = f"{name} {versions.get(name, '')}".strip()
        rows.append((client, f"{cost:.2f}", f"{user:.2f}", f"{1e6 / cost:,.0f}", ratio,
                     f"{rate:,.0f}", str(bytes_sent[name])))  # fmt: skip
    failed = {n: sum(t.long.said.failed for t in of_client) for n, of_client in turns.items()}
    notes = [f"{name}: {count} requests failed" for name, count in failed.items() if count]
    return Table(
        f"{server}, {POOL} connections, 1 KB"
        if "groonga" not in server
        else f"{server}, {POOL} at a time",
        ("client", "µs of CPU a request", "of it user", "requests per CPU-second",
         "its cost over ours, median of rounds (range)", "requests/s", "bytes of its request"),
        tuple(rows),
        tuple(notes),
    )  # fmt: skip


def _start(peer: Peer, asked: Asked) -> Cost:
    """One request a connection; or, of one that takes no count, a second of a slow server."""
    few = Asked(asked.url, asked.pool, asked.seconds, asked.keep_alive, requests=asked.pool)
    if peer.can(few):
        return peer.run(few)
    if urlsplit(asked.url).scheme == "https":  # its handshakes are part of what it costs to start
        return peer.run(Asked(f"{asked.url}slow", asked.pool, 1.0, asked.keep_alive))
    with serving([*_RESPONDER, "--delay-us", "900000"]) as port:
        return peer.run(Asked(f"http://127.0.0.1:{port}/", asked.pool, 1.0, asked.keep_alive))


def _request(asked: Asked) -> Request:
    """Byte for byte what wrk sends."""
    where = urlsplit(asked.url)
    close = "" if asked.keep_alive else "Connection: close\r\n"
    text = f"GET {where.path} HTTP/1.1\r\nHost: {where.netloc}\r\n{close}\r\n"
    return Request((text.encode(),))


def _ours(asked: Asked, *, shortest: bool = False) -> Cost:
    """A closed loop with the full trace; this whole process is the client."""
    port = urlsplit(asked.url).port
    assert port is not None
    how: dict[str, Any] = {"stop_after": asked.pool} if shortest else {}
    if urlsplit(asked.url).scheme == "https":  # as the others, without a look at the certificate
        how["tls"] = (["127.0.0.1"], None, None, True)
    before = resource.getrusage(resource.RUSAGE_SELF)
    done = closed(port, "http", [_request(asked)], asked.pool, asked.seconds, idle="block", **how)
    after = resource.getrusage(resource.RUSAGE_SELF)
    answered = len(done.ok())
    return Cost(
        after.ru_utime - before.ru_utime,
        after.ru_stime - before.ru_stime,
        Said(answered, len(done.samples) - answered),
    )
