"""Whose processor time a load is charged with: who listens at the very address that is loaded."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from searchbench.lab.system.attach import listening_at


@contextmanager
def listening(address: str, port: int = 0) -> Iterator[int]:
    """A listener of this very process; its port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as one:
        one.bind((address, port))
        one.listen()
        yield one.getsockname()[1]


@contextmanager
def another_process(address: str, port: int) -> Iterator[int]:
    """A listener of a process beside this one; its id."""
    words = f"import socket,time; s=socket.create_server(({address!r},{port})); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", words])
    try:
        for _ in range(500):
            if any(c.laddr.port == port for c in psutil.Process(child.pid).net_connections("tcp")):
                break
            assert child.poll() is None
            time.sleep(0.02)
        yield child.pid
    finally:
        child.kill()
        child.wait()


def pids(address: str, port: int) -> list[int]:
    return [process.pid for process in listening_at((address, port))]


def test_who_listens_on_the_same_port_of_another_address_is_not_the_server() -> None:
    with listening("127.0.0.1") as port:
        assert pids("127.0.0.1", port) == [os.getpid()]
        assert pids("127.0.0.2", port) == []
        assert pids("::1", port) == []


@pytest.mark.parametrize("away", ["192.0.2.1", "2001:db8::1"])  # kept for documentation
@pytest.mark.parametrize("local", ["127.0.0.1", "0.0.0.0"])
def test_a_local_twin_of_a_remote_server_is_not_the_server(local: str, away: str) -> None:
    with listening(local) as port:
        assert pids(away, port) == []


def test_each_of_two_twins_is_found_by_its_own_address() -> None:
    with listening("127.0.0.1") as port, another_process("127.0.0.2", port) as other:
        assert pids("127.0.0.1", port) == [os.getpid()]
        assert pids("127.0.0.2", port) == [other]


def addresses() -> list[str]:
    """Those that this machine has now."""
    return [a.address for each in psutil.net_if_addrs().values() for a in each
            if a.family == socket.AF_INET]  # fmt: skip


def test_who_listens_on_every_address_is_found_by_each_of_this_machine() -> None:
    with listening("0.0.0.0") as port:
        for address in ("127.0.0.1", "127.0.0.2", *addresses()):
            found = pids(address, port)
            # Another test may have taken its interface away meanwhile.
            if not found and address not in ("127.0.0.1", "127.0.0.2", *addresses()):
                continue
            assert found == [os.getpid()]


def test_who_listens_on_every_address_of_both_protocols_is_found_by_both() -> None:
    try:
        with listening("::") as port:
            assert pids("127.0.0.1", port) == [os.getpid()]
            assert pids("::1", port) == [os.getpid()]
    except OSError as error:
        pytest.skip(f"kernel: no IPv6 here: {error}")
