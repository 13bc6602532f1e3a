"""Service → deployment: processes of ours on loopback, ready, identified, and stopped for sure."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import psutil

from searchbench.corpora.corpus import Schema
from searchbench.engines.engine import Engine, Parameters
from searchbench.errors import LabError
from searchbench.lab.system.names import Places, free_port, program
from searchbench.lab.system.processes import command_line, complete, start, stop, tail
from searchbench.lab.system.running import NO_FIELDS, Running
from searchbench.lab.wire.exchange import Endpoint, Refused

_STOP_TIMEOUT_S = 10.0
_LOOKS = 4
_LOG = "server.log"


class Deployment(Running):
    """A service that we started. ``data``: where its index is; ``cpus``: its cores (none: any).

    ``process`` is the one that is asked.
    """

    process: psutil.Process

    def __init__(
        self,
        engine: Engine,
        params: Parameters,
        data: Path,
        run: Path,
        cpus: Sequence[int] = (),
        schema: Schema = NO_FIELDS,
    ) -> None:
        super().__init__(engine, params, run, schema)
        self.data = data
        self.cpus = cpus
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._strange = 0

    def __enter__(self) -> Self:
        """Start and wait until it serves; LabError (stage ``deploy``) with the log's end if not."""
        self.service = self.engine.service(self.params, self.schema)
        try:
            self._start()
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def log_tail(self, lines: int = 5) -> str:
        """The end of what the server printed, for an error message."""
        return tail(self.run / _LOG, lines)

    def stop(self) -> None:
        """The service's own signal, then SIGKILL; ends only what this deployment started."""
        children, self._children = list(self._children.values()), {}
        if children:
            how = signal.Signals[self.service.stop_signal]
            stop(list(reversed(children)), how, _STOP_TIMEOUT_S)

    def _start(self) -> None:
        port = free_port()
        places = Places(self.data, self.run, port)
        fill, service = places.fill, self.service
        self._insist({fill(name): remedy for name, remedy in service.needs.items()})
        self.data.mkdir(parents=True, exist_ok=True)
        self.run.mkdir(parents=True, exist_ok=True)
        write_files(service.files, self.run, places)
        (self.run / _LOG).write_bytes(b"")
        if service.first and not any(self.data.iterdir()):
            for step in service.first:
                argv = self._command([fill(part) for part in step])
                complete(argv, run=self.run, log="first.log", stage="deploy")
        self.argv = self._command([fill(part) for part in service.argv])
        endpoint = Endpoint(("127.0.0.1", port), service.wire, service.login, service.whole)
        self.endpoint = endpoint
        members = [
            (c.name, f"{c.name}.log", self._command([fill(part) for part in c.argv]), c.env)
            for c in service.companions
        ]
        for name, log, argv, env in [*members, ("", _LOG, self.argv, service.env)]:
            self._children[name] = start(
                argv,
                env={k: fill(v) for k, v in env.items()},
                run=self.run,
                log=log,
                cpus=self.cpus,
            )
        self.process = psutil.Process(self._children[""].pid)
        others = [psutil.Process(c.pid) for name, c in self._children.items() if name]
        self.processes = [self.process, *others]

    def _command(self, argv: Sequence[str]) -> list[str]:
        try:
            return command_line(argv, refuses_root=self.service.refuses_root)
        except LabError as error:
            raise LabError(f"{self.engine.name}: {error}", "deploy") from None

    def _insist(self, needs: dict[str, str]) -> None:
        """LabError with the remedy where something that the engine needs is not here."""
        for name, remedy in needs.items():
            if program(name) is None:
                raise LabError(f"{self.engine.name}: there is no {name}; {remedy}", "deploy")

    def _ended(self) -> str | None:
        """Which process has ended and how; None while all live."""
        if not self._children:
            return "it was not started"
        for name, child in self._children.items():
            code = child.poll()
            if code is not None:
                words = tail(self.run / (f"{name}.log" if name else _LOG))
                who = f" (its {name})" if name else ""
                return f"{who}, exit code {code}: {words or 'it printed nothing'}"
        return None

    def _wait_until_ready(self) -> None:
        give_up = time.monotonic() + self.service.ready_timeout_s
        pause_s = 0.005
        trouble = "it never answered"
        while time.monotonic() < give_up:
            ended = self._ended()
            if ended is not None:
                raise LabError(f"{self.engine.name} ended while starting{ended}", "deploy")
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


def write_files(files: Mapping[str, str], run: Path, places: Places) -> None:
    """Declared files below ``run``, names replaced."""
    for name, content in files.items():
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(places.fill(content))
