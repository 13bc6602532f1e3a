"""Service → deployment: a process of ours on loopback, ready, identified, and stopped for sure."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import psutil

from searchbench.engines.engine import Engine, Facts, Parameters, Request, Service
from searchbench.errors import LabError
from searchbench.lab.exchange import Refused, ask

_PR_SET_PDEATHSIG = 1
_STOP_TIMEOUT_S = 10.0
_LOOKS = 4
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Deployment:
    """A running service. Use as a context: leaving it stops the process, whatever happened."""

    engine: Engine
    params: Parameters
    data: Path
    run: Path
    cpus: Sequence[int] = ()
    service: Service = field(init=False)
    argv: list[str] = field(init=False, default_factory=list)
    target: tuple[str, int] = field(init=False)
    facts: Facts = field(init=False)
    process: psutil.Process = field(init=False)
    _child: subprocess.Popen[bytes] | None = field(init=False, default=None)
    _strange: int = field(init=False, default=0)

    def __enter__(self) -> Deployment:
        """Start and wait until it serves; LabError (stage ``deploy``) with the log's end if not."""
        self.service = self.engine.service(self.params)
        try:
            self._start()
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop it."""
        self.stop()

    def ask(self, request: Request, timeout_s: float = 60.0) -> bytes:
        """One request and its reply, outside any measurement."""
        return ask(self.target, self.service.wire, [request], timeout_s=timeout_s)[0]

    def lives(self) -> bool:
        """Is the process still there?"""
        return self._child is not None and self._child.poll() is None

    def log_tail(self, lines: int = 5) -> str:
        """The end of what the server printed, for an error message."""
        try:
            text = (self.run / "server.log").read_text(errors="replace")
        except OSError:
            return ""
        return " | ".join(line.strip() for line in text.strip().splitlines()[-lines:])

    def stop(self) -> None:
        """SIGTERM, then SIGKILL; ends only processes that this deployment started."""
        child, self._child = self._child, None
        if child is None:
            return
        try:
            family = psutil.Process(child.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            family = []
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
        try:
            child.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        for orphan in family:
            if orphan.is_running():
                orphan.kill()

    def _start(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True)
        self.run.mkdir(parents=True, exist_ok=True)
        port = free_port()
        places = {
            "{python}": sys.executable,
            "{port}": str(port),
            "{data}": str(self.data),
            "{run}": str(self.run),
            "{hosts}": str(jvm_hosts()),
        }
        fill = _filler(places)
        self._insist({fill(name): remedy for name, remedy in self.service.needs.items()})
        for name, content in self.service.files.items():
            path = self.run / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(fill(content))
        self.argv = [fill(part) for part in self.service.argv]
        if shutil.which(self.argv[0]) is None:
            raise LabError(
                f"{self.engine.name}: there is no program {self.argv[0]!r}; "
                "see `searchbench engines`",
                "deploy",
            )
        env = {**os.environ, **{k: fill(v) for k, v in self.service.env.items()}}
        self.target = ("127.0.0.1", port)
        with (self.run / "server.log").open("wb") as log:
            self._child = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=self.run,
                preexec_fn=_in_child(self.cpus, os.getpid()),
            )
        self.process = psutil.Process(self._child.pid)

    def _insist(self, needs: dict[str, str]) -> None:
        """LabError with the remedy where something that the engine needs is not here."""
        for name, remedy in needs.items():
            here = Path(name).exists() if "/" in name else shutil.which(name) is not None
            if not here:
                raise LabError(f"{self.engine.name}: there is no {name}; {remedy}", "deploy")

    def _wait_until_ready(self) -> None:
        give_up = time.monotonic() + self.service.ready_timeout_s
        pause_s = 0.005
        trouble = "it never answered"
        while time.monotonic() < give_up:
            if not self.lives():
                code = self._child.returncode if self._child else None
                raise LabError(
                    f"{self.engine.name} ended while starting, exit code {code}: "
                    f"{self.log_tail() or 'it printed nothing'}",
                    "deploy",
                )
            if self._listens():
                try:
                    reply = self.ask(self.service.ready, timeout_s=2.0)
                    self.facts = self.engine.facts(reply)
                except (Refused, ValueError) as error:
                    trouble = str(error)
                else:
                    if not self.facts.version:
                        raise LabError(
                            f"{self.engine.name} does not tell its version: no version, "
                            "no measurement",
                            "deploy",
                        )
                    return
            time.sleep(pause_s)
            pause_s = min(0.2, pause_s * 1.5)
        raise LabError(
            f"{self.engine.name} was not ready after {self.service.ready_timeout_s:g} s "
            f"({trouble}); its log ends: {self.log_tail() or 'empty'}",
            "deploy",
        )

    def _listens(self) -> bool:
        """Does a process of ours listen on our port? A stranger's server gets no byte from us.

        Looked up in the kernel's tables, of sockets and of who holds them. These are read one after
        the other, so a server that begins to listen in between seems to be nobody's: only what
        is not ours on several looks in a row is a stranger's.
        """
        port = self.target[1]
        listening = [
            c.pid
            for c in psutil.net_connections("tcp")
            if c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == port
        ]
        if not listening:
            return False
        try:
            family = {self.process.pid, *(c.pid for c in self.process.children(recursive=True))}
        except psutil.NoSuchProcess:
            return False
        if family.intersection(listening):
            return True
        self._strange += 1
        if self._strange >= _LOOKS:
            raise LabError(
                f"port {port} was taken by another program between choosing and starting; "
                "give the command again",
                "deploy",
            )
        return False


def jvm_hosts() -> Path:
    """Where `make java` puts its hosts: in the checkout, or where SEARCHBENCH_JAVA_HOSTS says."""
    named = os.environ.get("SEARCHBENCH_JAVA_HOSTS")
    return Path(named) if named else Path(__file__).resolve().parents[3] / "java"


def free_port() -> int:
    """A port of loopback that nobody uses at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _filler(places: dict[str, str]) -> Callable[[str], str]:
    def fill(text: str) -> str:
        for name, value in places.items():
            text = text.replace(name, value)
        return text

    return fill


def _in_child(cpus: Sequence[int], parent: int) -> Callable[[], None]:
    """Between fork and exec: the server dies with us, even if we are killed; it has its cores."""

    def prepare() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
        os.setpgid(0, 0)  # so that Ctrl-C reaches us and not the server
        if cpus:
            os.sched_setaffinity(0, cpus)

    return prepare
