"""Several machines on one: network namespaces with a real sshd in each, for tests.

    hub      the controlling machine: a bridge that all others hang on
    north, south     client machines, each with its own sshd, host key and address
    target   where a server runs

Needs root, a kernel that lets us make namespaces, and Debian's openssh-server, openssh-client and
iproute2. Nothing of the machine's own network is touched. All files that make such machines share
their addresses, the directory of sshd and the cores, so only one has them at a time (``alone``).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

import pytest

T = TypeVar("T")
CLIENTS = {"north": "10.77.0.2", "south": "10.77.0.3"}
TARGET = "10.77.0.9"
PORT = 2222
_HUB = "10.77.0.1"
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET of sched.h
_STARTS_S = 20.0
_PATIENCE_S = 1200.0  # for the machines of other workers; the whole suite takes little longer
_SOURCES = Path(__file__).parent.parent / "python"


@dataclass(frozen=True)
class World:
    """Namespaces by name, the ssh that reaches the clients, what runs our client there."""

    folder: Path
    names: dict[str, str]

    @property
    def config(self) -> Path:
        """What ssh is to know of north and south."""
        return self.folder / "ssh_config"

    @property
    def ssh(self) -> tuple[str, ...]:
        """The ssh of the controlling machine."""
        return ("ip", "netns", "exec", self.names["hub"], "ssh", "-F", str(self.config))

    @property
    def command(self) -> str:
        """For the shell of a client machine."""
        return client_running("from searchbench.lab.fleet.client import main; sys.exit(main())")

    def within(self, name: str, work: Callable[[], T]) -> T:
        """What ``work`` gives, done by a thread of ours in that namespace."""
        found: list[T] = []

        def enter() -> None:
            libc = ctypes.CDLL(None, use_errno=True)
            with Path(f"/run/netns/{self.names[name]}").open() as namespace:
                if libc.setns(namespace.fileno(), _NEW_NETWORK):
                    raise OSError(ctypes.get_errno(), "setns")
            found.append(work())

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        return found[0]

    @contextlib.contextmanager
    def running(self, name: str, argv: Sequence[str], log: Path) -> Iterator[int]:
        """A server in that namespace; its process id."""
        with log.open("wb") as file:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self.names[name], *argv],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def answers(self, name: str, address: tuple[str, int]) -> None:
        """Wait until something listens there."""

        def connect() -> bool:
            give_up = time.monotonic() + _STARTS_S
            while time.monotonic() < give_up:
                with contextlib.suppress(OSError):
                    socket.create_connection(address, timeout=1.0).close()
                    return True
                time.sleep(0.02)
            return False

        assert self.within(name, connect), f"nothing listens at {address} of {name}"


def client_running(code: str) -> str:
    """A shell's command that runs this Python with our sources."""
    return f"PYTHONPATH={_SOURCES} {sys.executable} -c 'import sys; {code}'"


@contextlib.contextmanager
def alone(lock: Path | None = None) -> Iterator[None]:
    """Hold a lock of the machine (``lock``: its file), for which other workers wait meanwhile.

    The alarm of pytest-timeout stands still while we wait: it is for tests that hang, and the first
    test of a file would have to wait for all tests of another. Who has the lock has that alarm too,
    and the kernel releases the lock of a process that ends.
    """
    path = lock or Path(tempfile.gettempdir(), "searchbench-tests-machines.lock")
    with path.open("w") as held:
        alarm = signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            give_up = time.monotonic() + _PATIENCE_S
            while not _locked(held):
                assert time.monotonic() < give_up, f"another process holds {path}: see lslocks"
                time.sleep(0.1)
        finally:
            signal.setitimer(signal.ITIMER_REAL, *alarm)
        yield


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def world(folder: Path) -> Iterator[World]:
    """All of it; gone at the end. Skips, saying so, where the kernel does not let us."""
    for program, package in (
        ("ip", "iproute2"), ("ssh", "openssh-client"), ("ssh-keygen", "openssh-client"),
        ("/usr/sbin/sshd", "openssh-server"),
    ):  # fmt: skip
        if shutil.which(program) is None:
            pytest.skip(f"no {program} here: apt-get install {package}")
    if os.geteuid() != 0:
        pytest.skip("kernel: network namespaces are made by root only")
    names = {n: f"searchbench-{os.getpid()}-{n}" for n in ("hub", "target", *CLIENTS)}
    made = World(folder, names)
    with contextlib.ExitStack() as stack:
        stack.enter_context(alone())
        for name in names.values():
            done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"kernel: no network namespaces here: {done.stderr.strip()}")
            stack.callback(_run, "ip", "netns", "del", name)
        _wire(names)
        stack.enter_context(_room_for_sshd())
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key"))
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "other-key"))
        made.config.write_text(_told_to_ssh(folder))
        known = []
        for name, address in CLIENTS.items():
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / f"{name}-host"))
            kind, key, *_ = (folder / f"{name}-host.pub").read_text().split()
            known.append(f"[{address}]:{PORT} {kind} {key}")
            config = folder / f"{name}-sshd"
            config.write_text(_told_to_sshd(folder, name, address))
            sshd = ["/usr/sbin/sshd", "-D", "-e", "-f", str(config)]
            stack.enter_context(made.running(name, sshd, folder / f"{name}-sshd.log"))
        (folder / "known_hosts").write_text("\n".join(known) + "\n")
        for name, address in CLIENTS.items():
            made.answers(name, (address, PORT))
        yield made


def _wire(names: dict[str, str]) -> None:
    """A bridge in the hub and a cable from it to each of the others."""
    hub = names["hub"]
    _run("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
    _run("ip", "-n", hub, "addr", "add", f"{_HUB}/24", "dev", "bridge")
    for name, address in {**CLIENTS, "target": TARGET}.items():
        there = names[name]
        _run("ip", "-n", hub, "link", "add", name, "type", "veth", "peer", "name", "eth0",
             "netns", there)  # fmt: skip
        _run("ip", "-n", hub, "link", "set", name, "master", "bridge", "up")
        _run("ip", "-n", there, "addr", "add", f"{address}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            _run("ip", "-n", there, "link", "set", device, "up")
    for device in ("bridge", "lo"):
        _run("ip", "-n", hub, "link", "set", device, "up")


@contextlib.contextmanager
def _room_for_sshd() -> Iterator[None]:
    """The empty directory that Debian's sshd wants, which its service makes at its start."""
    place = Path("/run/sshd")
    was = place.exists()
    place.mkdir(mode=0o755, exist_ok=True)
    yield
    if not was:
        with contextlib.suppress(OSError):
            place.rmdir()


def _told_to_ssh(folder: Path) -> str:
    told = [f"Host {name}\n  HostName {address}\n" for name, address in CLIENTS.items()]
    told.append(
        f"Host *\n  Port {PORT}\n  User root\n  IdentityFile {folder}/key\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder}/known_hosts\n  GlobalKnownHostsFile none\n"
        "  StrictHostKeyChecking yes\n"
    )
    return "".join(told)


def _told_to_sshd(folder: Path, name: str, address: str) -> str:
    return (
        f"ListenAddress {address}:{PORT}\nHostKey {folder}/{name}-host\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/key.pub\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"
    )


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(argv)}: {done.stderr.strip()}"
