"""What a message costs the collector, and ten thousand connections: CPU of its process.

The client is a process of its own (`rust/collect/examples/load.rs`), and sends batches of 100
messages of 100 bytes to one category, four calls of a connection on their way.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import psutil

from benches.figure import Figure
from benches.servers import TARGET

LOAD = TARGET / "examples" / "load"
ROUNDS = 3
SECONDS = 2
MANY = 10_000


def figures() -> Iterator[Figure]:
    """Millions of messages a second and core of the server: into files, with fsync, of many."""
    for name, connections, fsync, least in (
        ("into a file, 16 connections", 16, "no", 1.0),
        ("into a file with fsync, 16 connections", 16, "yes", None),
        (f"into a file, {MANY:,} connections", MANY, "no", 1.0),
    ):
        rounds = [_round(connections, fsync) for _ in range(ROUNDS)]
        rates = [messages / cpu_s / 1e6 for messages, cpu_s, _ in rounds]
        walls = [messages / wall_s / 1e6 for messages, _, wall_s in rounds]
        yield Figure(
            f"collector: messages of 100 bytes {name}", median(rates), "M/s and core",
            at_least=least,
            note=f"{min(rates):.2f}..{max(rates):.2f}; altogether {median(walls):.2f} M/s",
        )  # fmt: skip


def _round(connections: int, fsync: str) -> tuple[int, float, float]:
    """Messages acknowledged, CPU seconds of the server, and the seconds that it took."""
    with (
        tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder,
        _collector(Path(folder), fsync) as (process, port),
    ):
        before = process.cpu_times()
        calls = 4 if connections < MANY else 1
        said = subprocess.run(
            [LOAD, *map(str, (port, connections, 100, 100, SECONDS, calls))],
            capture_output=True, text=True, check=True,
        ).stdout.split()  # fmt: skip
        after = process.cpu_times()
        cpu_s = after.user + after.system - before.user - before.system
        written = sum(file.stat().st_size for file in Path(folder).glob("load/load_0*"))
        messages = int(said[0])
        if fsync == "yes" and written < messages * 100:
            raise RuntimeError(f"{messages} messages were acknowledged, {written} bytes are there")
        return messages, cpu_s, float(said[2])


@contextmanager
def _collector(folder: Path, fsync: str) -> Iterator[tuple[psutil.Process, int]]:
    """The collector with one store of files, and its port."""
    config = folder / "scribe.conf"
    config.write_text(
        f"host=127.0.0.1\nport=0\nfsync={fsync}\nmax_queue_size=200000000\n"
        f"<store>\ncategory=default\ntype=file\nfile_path={folder}\n</store>\n"
    )
    with psutil.Popen(
        [sys.executable, "-u", "-m", "searchbench", "collect", "-c", str(config)],
        stdout=subprocess.PIPE,
    ) as process:
        try:
            line = process.stdout.readline().decode()
            yield process, int(line.rpartition(":")[2])
        finally:
            process.terminate()
            process.wait(30)
