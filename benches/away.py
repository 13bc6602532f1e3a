"""The collector while its upstream is away: its memory, and whether all that it kept arrives.

    python benches/away.py [SECONDS]

A client sends 2,000 messages a second to a collector with a buffer store. Nobody listens at its
upstream; after so many seconds somebody does. Each message has a number, so that what is lost, what
came twice and what came out of order are counted.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from benches.figure import Figure

SECONDS = 60.0
CALLS_PER_S, BATCH = 20, 100
MESSAGE_BYTES = 100
SETTLES_S = 5.0  # until then the collector's memory may still grow to what it needs
PATIENCE_S = 600.0
_DOWN = """host=127.0.0.1
port=0
check_interval=1
<store>
category=default
type=buffer
retry_interval=5
retry_interval_range=2
buffer_send_rate=8
<primary>
type=network
remote_host=127.0.0.1
remote_port={port}
</primary>
<secondary>
type=file
file_path={folder}/buffered
max_size=4000000
</secondary>
</store>
"""
_UP = """host=127.0.0.1
port={port}
fsync=yes
<store>
category=default
type=file
file_path={folder}/arrived
max_size=1000000000
</store>
"""


def figures(seconds: float = SECONDS) -> Iterator[Figure]:
    """Megabytes that the collector grew by while it was alone, and messages that did not arrive."""
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as name:
        folder = Path(name)
        port = _free_port()
        with _collector(folder, "down", _DOWN.format(port=port, folder=folder)) as (down, own):
            sent, sizes = _send(down, own, seconds)
            with _collector(folder, "up", _UP.format(port=port, folder=folder)):
                took_s, replaying = _arrived(folder, sent, down)
        numbers = [
            int(line[:10])
            for file in sorted(folder.glob("arrived/*/*_0*"))
            for line in file.read_bytes().splitlines()
        ]
    once = len(set(numbers))
    settled = [mb for at, mb in sizes if at >= min(SETTLES_S, seconds / 2)]
    yield Figure(
        f"collector: growth of its memory while its upstream is away for {seconds:g} s",
        max(settled) - settled[0], "MB", at_most=5,
        note=f"{sent:,} messages kept; {settled[-1]:.1f} MB, {replaying:.1f} MB as they are sent",
    )  # fmt: skip
    yield Figure(
        "collector: of these, lost, sent twice or out of order",
        (sent - once) + (len(numbers) - once) + (numbers != sorted(numbers)), "messages",
        at_most=0, note=f"all arrived {took_s:.0f} s after the upstream was there again",
    )  # fmt: skip


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def _collector(folder: Path, name: str, text: str) -> Iterator[tuple[psutil.Process, int]]:
    config = folder / f"{name}.conf"
    config.write_text(text)
    with psutil.Popen(
        [sys.executable, "-u", "-m", "searchbench", "collect", "-c", str(config)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            yield process, int(process.stdout.readline().decode().rpartition(":")[2])
        finally:
            process.terminate()
            process.wait(60)


def _send(
    server: psutil.Process, port: int, seconds: float
) -> tuple[int, list[tuple[float, float]]]:
    """How many messages were acknowledged, and the server's memory over time, in s and MB."""
    sent = calls = 0
    sizes: list[tuple[float, float]] = []
    with socket.create_connection(("127.0.0.1", port)) as client, client.makefile("rb") as replies:
        began = time.monotonic()
        while (at := time.monotonic() - began) < seconds:
            client.sendall(_call(sent))
            (size,) = struct.unpack(">i", replies.read(4))
            calls += 1
            if struct.unpack(">i", replies.read(size)[-5:-1])[0] == 0:
                sent += BATCH  # else it is TRY_LATER, and the same batch is sent again
            if not sizes or at - sizes[-1][0] >= 1:
                sizes.append((at, server.memory_info().rss / 1e6))
            time.sleep(max(0.0, began + calls / CALLS_PER_S - time.monotonic()))
    return sent, sizes


def _call(first: int) -> bytes:
    """A framed call of Log with a batch of messages, each a number and a newline at its end."""
    entries = b"".join(
        b"\x0b\x00\x01" + _string(b"away") + b"\x0b\x00\x02"
        + _string(b"%010d" % (first + i) + b"x" * (MESSAGE_BYTES - 11) + b"\n") + b"\x00"
        for i in range(BATCH)
    )  # fmt: skip
    call = b"\x80\x01\x00\x01" + _string(b"Log") + struct.pack(">i", 0)
    call += b"\x0f\x00\x01\x0c" + struct.pack(">i", BATCH) + entries + b"\x00"
    return _string(call)


def _string(text: bytes) -> bytes:
    return struct.pack(">i", len(text)) + text


def _arrived(folder: Path, sent: int, server: psutil.Process) -> tuple[float, float]:
    """Seconds until all was there, or nobody waits any longer; the server's greatest memory."""
    began, most = time.monotonic(), 0.0
    while (took := time.monotonic() - began) < PATIENCE_S:
        most = max(most, server.memory_info().rss / 1e6)
        if sum(f.stat().st_size for f in folder.glob("arrived/*/*_0*")) >= sent * MESSAGE_BYTES:
            break
        time.sleep(0.2)
    return took, most


if __name__ == "__main__":
    for found in figures(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS):
        print(found.line(), flush=True)
