"""Databases for the benches: MariaDB and PostgreSQL of this machine, private, on loopback.

Each has a table ``t`` of ``ROWS`` rows (id, k, c of 120 characters), stands in a folder that goes
with it, and is pinned to the server's core.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benches.servers import SERVER_CPU

ROWS = 10_000
START_S = 60.0
# What the servers run as where we are root: MariaDB says so itself, PostgreSQL refuses root.
NOBODY = ("unshare", "-U", "--map-user=65534", "--map-group=65534")

_VALUES = "SELECT {0}, {0} % 100, {1}(md5({0}), 120, '0') FROM {2}"


class MissingError(Exception):
    """A server is not here; the text says how to get it."""


@contextmanager
def mariadb() -> Iterator[int]:
    """A MariaDB that lets root in without a password, with the database ``bench``; its port."""
    server, install, client = (
        _program(name, "mariadb-server") for name in ("mariadbd", "mariadb-install-db", "mariadb")
    )
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        place, port = Path(folder), free_port()
        user = ["--user=root"] if os.geteuid() == 0 else []
        where = ["--no-defaults", f"--datadir={place / 'data'}", *user]
        _run([install, *where, "--auth-root-authentication-method=normal", "--skip-test-db"])
        argv = [
            server, *where, f"--socket={place / 'socket'}", f"--port={port}",
            "--bind-address=127.0.0.1", "--skip-name-resolve", "--max-connections=300",
        ]  # fmt: skip
        ask = [client, "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot"]
        with _standing(argv, [*ask, "-e", "SELECT 1"], place, signal.SIGTERM):
            values = _VALUES.format("seq", "lpad", f"seq_1_to_{ROWS}")
            _run(
                ask,
                "CREATE DATABASE bench; USE bench; CREATE TABLE t (id INT PRIMARY KEY, k INT, "
                f"c CHAR(120)) ENGINE=InnoDB; INSERT INTO t {values}; ANALYZE TABLE t;",
            )
            yield port


@contextmanager
def postgresql() -> Iterator[int]:
    """A PostgreSQL that trusts the user ``bench``, with the table in ``postgres``; its port."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda f: int(f.parent.name))
    found = shutil.which("postgres")
    bins = folders[-1] if folders else Path(found).parent if found else None
    if bins is None or not (bins / "initdb").exists():
        raise MissingError("PostgreSQL (Debian: apt-get install postgresql)")
    nobody = NOBODY if os.geteuid() == 0 else ()
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        place, port = Path(folder), free_port()
        data = place / "data"
        _run([*nobody, bins / "initdb", "-D", data, "-U", "bench", "-A", "trust", "--no-sync"])
        argv = [
            *nobody, bins / "postgres", "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1",
            "-c", "unix_socket_directories=", "-c", "max_connections=300",
        ]  # fmt: skip
        ask = [bins / "psql", "-q", "-h", "127.0.0.1", "-p", port, "-U", "bench", "postgres"]
        with _standing(argv, [*ask, "-c", "SELECT 1"], place, signal.SIGINT):
            values = _VALUES.format("i", "lpad", f"generate_series(1, {ROWS}) i")
            values = values.replace("md5(i)", "md5(i::text)")
            _run(
                ask,
                "CREATE TABLE t (id INT PRIMARY KEY, k INT, c CHAR(120)); "
                f"INSERT INTO t {values}; VACUUM ANALYZE t;",
            )
            yield port


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _program(name: str, package: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if not found:
        raise MissingError(f"{name} (Debian: apt-get install {package})")
    return found


def _run(argv: Sequence[object], said: str = "") -> None:
    done = subprocess.run([str(a) for a in argv], input=said, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{argv[0]} failed: {(done.stderr or done.stdout)[-500:]}")


@contextmanager
def _standing(
    argv: Sequence[object], asked: Sequence[object], place: Path, end: signal.Signals
) -> Iterator[None]:
    """The server from when the program ``asked`` ends well; ``end`` is its way to stop at once.

    That it accepts connections is not enough: PostgreSQL does so while it is still starting.
    """
    log = place / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["taskset", "-c", str(SERVER_CPU), *map(str, argv)], stdout=out, stderr=out
        )
    try:
        until = time.monotonic() + START_S
        while subprocess.run([str(a) for a in asked], capture_output=True).returncode:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{argv[0]} did not start: {log.read_text()[-500:]}")
            time.sleep(0.1)
        yield
    finally:
        process.send_signal(end)
        process.wait(30)
