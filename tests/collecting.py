"""Collectors as processes for tests, and a client that sees every byte."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "python"
OK, TRY_LATER = 0, 1
HEAD = "host=127.0.0.1\ncheck_interval=1\n"


def log_frame(
    entries: Iterable[tuple[str, bytes]], *, strict: bool = True, number: int = 1
) -> bytes:
    """A ``Log`` call in a frame."""
    listed = list(entries)
    body = b"\x0f\x00\x01\x0c" + struct.pack(">i", len(listed))
    for category, message in listed:
        name = category.encode()
        body += b"\x0b\x00\x01" + struct.pack(">i", len(name)) + name
        body += b"\x0b\x00\x02" + struct.pack(">i", len(message)) + message + b"\x00"
    return framed(b"Log", body + b"\x00", strict=strict, number=number)


def framed(name: bytes, body: bytes, *, strict: bool = True, number: int = 1) -> bytes:
    """Any call in a frame."""
    if strict:
        head = struct.pack(">Ii", 0x80010001, len(name)) + name + struct.pack(">i", number)
    else:
        head = struct.pack(">i", len(name)) + name + struct.pack(">bi", 1, number)
    return struct.pack(">i", len(head + body)) + head + body


class Client:
    """A connection; answers are read one by one."""

    def __init__(self, port: int, timeout: float = 20) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)

    def send(self, data: bytes) -> None:
        """Bytes as they are."""
        self.socket.sendall(data)

    def frame(self) -> bytes:
        """The next frame; ConnectionError at the end."""
        (length,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(length)

    def answer(self) -> int:
        """The result of the next answer to a ``Log``."""
        frame = self.frame()
        assert frame[-8:-5] == b"\x08\x00\x00", frame
        return int(struct.unpack(">i", frame[-5:-1])[0])

    def log(self, category: str, messages: Iterable[bytes]) -> int:
        """One ``Log``, and its answer."""
        self.send(log_frame([(category, message) for message in messages]))
        return self.answer()

    def rest(self) -> bytes:
        """All that comes until the server ends the connection."""
        got = b""
        while part := self.socket.recv(65536):
            got += part
        return got

    def _exactly(self, count: int) -> bytes:
        got = b""
        while len(got) < count:
            part = self.socket.recv(count - len(got))
            if not part:
                raise ConnectionError("closed")
            got += part
        return got


class Collector:
    """``searchbench collect`` as a process."""

    def __init__(self, place: Path, text: str, port: int = 0) -> None:
        self.config = place / "scribe.conf"
        self.config.write_text(HEAD + text)
        self.port = port
        self.errors = place / "errors"
        self.clients: list[Client] = []
        self.start()

    def start(self) -> None:
        """As it was started before: on the same port."""
        environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-u", "-m", "searchbench", "collect", "-c", str(self.config),
                 "-p", str(self.port)],
                stdout=subprocess.PIPE, stderr=errors, env=environment,
            )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        assert line.startswith("listening on "), self.said()
        self.port = int(line.rpartition(":")[2])

    def said(self) -> str:
        """Its standard error so far."""
        return self.errors.read_text()

    def client(self) -> Client:
        """A new connection, which is closed at the end."""
        self.clients.append(Client(self.port))
        return self.clients[-1]

    def end(self, how: int = signal.SIGTERM) -> int:
        """Its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(30)
        if self.process.stdout:
            self.process.stdout.close()
        return code

    def metrics(self) -> dict[str, float]:
        """Name with labels, and value."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    def counted(self, counter: str, category: str) -> float:
        """A counter of a category; 0 where it was never hit."""
        return self.metrics().get(f'scribe_{counter}_total{{category="{category}"}}', 0)


@contextmanager
def collecting(place: Path, text: str, port: int = 0) -> Iterator[Collector]:
    """A collector that is ended whatever happens."""
    place.mkdir(parents=True, exist_ok=True)
    collector = Collector(place, text, port)
    try:
        yield collector
    finally:
        collector.end(signal.SIGKILL)
        for client in collector.clients:
            client.socket.close()


def eventually(holds: Callable[[], bool], within: float = 30) -> None:
    """Wait until something holds."""
    until = time.monotonic() + within
    while not holds():
        assert time.monotonic() < until, "it never came to be"
        time.sleep(0.05)


def lines(folder: Path, base: str) -> list[bytes]:
    """All lines of the numbered files of a base name, in their order."""
    numbered = sorted(folder.glob(f"{base}_[0-9]*"))
    return b"".join(file.read_bytes() for file in numbered).splitlines()


def store(category: str, kind: str, *keys: str, inner: Sequence[str] = ()) -> str:
    """A store's block."""
    body = "\n".join([f"category={category}", f"type={kind}", *keys, *inner])
    return f"<store>\n{body}\n</store>\n"


def block(name: str, kind: str, *keys: str) -> str:
    """A block inside a store."""
    return "\n".join([f"<{name}>", f"type={kind}", *keys, f"</{name}>"])
