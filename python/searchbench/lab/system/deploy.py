"""Service → deployment: processes of ours on loopback, ready, identified, and stopped for sure.

They have their cores, and their end is tied to ours. Longer than most files: to start, to start
again, to wait and to stop share the same table of processes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import psutil

from searchbench.corpora.corpus import Schema
from searchbench.engines.engine import Companion, Engine, Laid, Parameters
from searchbench.errors import LabError
from searchbench.lab.remote.deployed import Far, Side, free_everywhere, insist_programs
from searchbench.lab.remote.link import lost_of
from searchbench.lab.system.listening import listening, sockets
from searchbench.lab.system.logged import fallen, last_words, tail
from searchbench.lab.system.names import Places, free_port, program
from searchbench.lab.system.running import NO_FIELDS, Running
from searchbench.lab.system.seat import Seat, in_child, insist_inside, seated
from searchbench.lab.wire.exchange import Endpoint, Refused
from searchbench.places.model import PARTS, is_part

_STOP_TIMEOUT_S = 10.0
_LOOKS = 4
_PAUSE_S = 0.2  # at most, between two looks whether it serves
_LISTEN = "0A"  # the state of a socket in /proc/net/tcp
_COMMAND_TIMEOUT_S = 3600.0
_IDLE_S = 0.1  # of CPU time, since it was last seen to work
_WITHOUT_ROOM_S = 5.0  # some commands wait for room, and say nothing or only to a log
_KILLED_S = 5.0  # what SIGKILL may take to free ports and files
# An ordinary user in a user namespace: the files below, which are root's, are its own there.
_ORDINARY = ("unshare", "--user", "--map-user=65534", "--map-group=65534", "--")


class Deployment(Running):
    """A service that we started. ``data``: where its index is.

    ``laid``: by kind of file the folder where those lie that are not to be in ``data``. ``seat``:
    where it runs (None: on the cores ``cpus`` of this machine); ``agents``: where each of its
    agents does (empty: there too). ``process`` is the one that is asked; None: it is on a host
    that is reached by ssh.
    """

    process: psutil.Process | None = None

    def __init__(
        self,
        engine: Engine,
        params: Parameters,
        data: Path,
        run: Path,
        cpus: Sequence[int] = (),
        schema: Schema = NO_FIELDS,
        laid: Mapping[str, Path] | None = None,
        seat: Seat | None = None,
        agents: Sequence[Seat] = (),
        full: Callable[[], str] = lambda: "",
    ) -> None:
        super().__init__(engine, params, run, schema)
        self._full = full
        self.data = data
        self.laid = dict(laid or {})
        self.seat = seat or Seat(cpus)
        self.agents = agents
        self._children: dict[str, subprocess.Popen[bytes] | Far] = {}
        self._lines: dict[str, tuple[list[str], dict[str, str]]] = {}
        self._keeper: ThreadPoolExecutor | None = None
        self._sides: dict[str, Side] = {}
        self._strange = 0
        self._ready: dict[str, int] = {}  # by process, how long its log was then

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

    def exits(self) -> dict[str, int]:
        """By name the exit code of each process that has ended; below 0: by a signal."""
        codes = {name: child.poll() for name, child in self._children.items()}
        return {name: code for name, code in codes.items() if code is not None}

    def fallen(self) -> tuple[int, str] | None:
        """Since it was ready, the first of its processes that ended without the server."""
        if not self.service.fallen:
            return None
        return fallen(self.run / _log(""), self._ready.get("", 0), self.service.fallen)

    def log_tail(self, lines: int = 5) -> str:
        """The end of what the server printed, for an error message."""
        return tail(self.run / _log(""), lines)

    def last_words(self, of: str = "") -> str:
        """What a process that ended printed since it was ready: from its last errors on."""
        return last_words(self.run / _log(of), self._ready.get(of, 0))

    def stop(self) -> None:
        """The service's own signal, then SIGKILL; ends only what this deployment started."""
        started, self._children = list(self._children.values()), {}
        children = [child for child in started if isinstance(child, subprocess.Popen)]
        if children:
            how = signal.Signals[self.service.stop_signal]
            _stop(list(reversed(children)), how, _STOP_TIMEOUT_S)
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.shutdown()
        for side in self._sides.values() if started else ():
            # A host that is lost ends by itself whatever runs there.
            with contextlib.suppress(LabError):
                side.stop(self.service.stop_signal, _STOP_TIMEOUT_S)

    def fetch(self) -> None:
        """Once stopped: bring the index here if its server was on another machine.

        LabError where that is lost.
        """
        if (side := self._sides.get(self.seat.host)) is not None:
            side.fetch()

    def lost(self) -> str:
        """Which host was lost and why, as a sentence; "" if none was."""
        return lost_of([side.link for side in self._sides.values()])

    def lives(self) -> bool:
        """Are all its processes still there, as far as is known here and on its hosts?"""
        far = [child for child in self._children.values() if isinstance(child, Far)]
        return super().lives() and not self.lost() and all(c.poll() is None for c in far)

    def _start(self) -> None:
        service, seats = self.service, self._seats()
        links = {seat.host: seat.link for seat in seats.values() if seat.link is not None}
        free = free_everywhere(links.values()) if links else free_port
        port = free()
        self.places = Places(
            self.data, self.run, port, laid=self.laid, address=self.seat.address,
            addresses={name: seat.address for name, seat in seats.items()}, free=free,
        )  # fmt: skip
        laid = self._laid()
        fill = self.places.fill
        for name, remedy in service.needs.items() if self.seat.link is None else ():
            if program(fill(name)) is None:
                raise LabError(f"{self.engine.name}: there is no {fill(name)}; {remedy}", "deploy")
        if service.writing is not None and self.seat.link is not None:
            raise LabError(
                f"{self.engine.can.title} is written to through a process of ours beside its "
                f"server, which does not run on host {self.seat.host}, reached by ssh; put the "
                "server on this machine", "deploy",
            )  # fmt: skip
        insist_programs(self.engine.can.title, service, seats)
        self.data.mkdir(parents=True, exist_ok=True)
        self.run.mkdir(parents=True, exist_ok=True)
        self.places.write(service.files)
        (self.run / _log("")).write_bytes(b"")
        self._sides = {name: Side(link, self.places, self.run) for name, link in links.items()}
        for name, side in self._sides.items():
            side.lay(service.files, self._opened_on(name, seats))
        if service.first and not any(self.data.iterdir()):
            for step in service.first:
                self._first((*step, *(part for each in laid for part in each.first)))
        self.endpoint = self._endpoint(self.seat, port)
        # Last the one that is asked.
        argv = (*service.argv, *(part for each in laid for part in each.argv))
        for each in (*service.companions, Companion("", argv, service.env)):
            self._start_one(each, seats[each.name])
        near = {n: c for n, c in self._children.items() if isinstance(c, subprocess.Popen)}
        found = {name: psutil.Process(child.pid) for name, child in near.items()}
        self.process = found.pop("", None)
        self.processes = [*([self.process] if self.process else []), *found.values()]

    def _start_one(self, each: Companion, seat: Seat) -> None:
        """Start a process where its seat is."""
        if (side := self._sides.get(seat.host)) is not None:
            self.argv = [side.places.fill(part) for part in each.argv]
            self._children[each.name] = side.start(each.name, each.argv, each.env, _log(each.name))
            return
        self.argv = self._command(each.argv)
        env = {k: self.places.fill(v) for k, v in each.env.items()}
        self._lines[each.name] = (self.argv, env)
        child = _start(self.argv, env=env, run=self.run, log=_log(each.name), seat=seat)
        self._children[each.name] = child
        insist_inside(child.pid, seat)

    def _first(self, argv: Sequence[str]) -> None:
        """A command that makes the index before the first start, where the server will be."""
        if (side := self._sides.get(self.seat.host)) is not None:
            side.complete(argv, "first.log")
            return
        complete(
            self._command(argv), run=self.run, log="first.log", stage="deploy",
            joins=self.seat.joins, full=self._full,
        )  # fmt: skip

    def _opened_on(self, host: str, seats: Mapping[str, Seat]) -> list[str]:
        """Patterns of the files of the index that processes on a host open; none: all are."""
        there = [each.files for each in self.service.companions if seats[each.name].host == host]
        if seats[""].host == host or not all(there):
            return []
        return [pattern for files in there for pattern in files]

    def family(self, name: str) -> list[psutil.Process]:
        """A process of the service (a companion's name; "": the one that is asked), then all that
        it has started and that are there."""
        child = self._children[name]
        if isinstance(child, Far):
            raise LabError(
                f"{name or 'the server'} is on a host that is reached by ssh, where no fault can "
                "be made; name a process on this machine", "roles",
            )  # fmt: skip
        found: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(child.pid)
            found = [root, *root.children(recursive=True)]
        return [*found, *(p for p in _orphans(child.pid) if p not in found)]

    def ended(self, name: str) -> bool:
        """Has a process of the service ended? Whoever asks lets the kernel forget it."""
        return self._children[name].poll() is not None

    def start_again(self, name: str) -> None:
        """Start a process of the service that has ended once more, as it was started.

        LabError where it is not in its namespace, or a command that comes before it fails.
        """
        (argv, env), seat = self._lines[name], self._seats()[name]
        for step in self.service.again.get(name, ()):
            complete(
                self._command(step), run=self.run, log="again.log", stage="drive",
                joins=seat.joins, full=self._full,
            )  # fmt: skip
        # A server ends with the thread that started it, so that thread stays until ``stop``.
        self._keeper = self._keeper or ThreadPoolExecutor(1, "keeper")
        made = self._keeper.submit(
            _start, argv, env=env, run=self.run, log=_log(name), seat=seat
        ).result()
        insist_inside(made.pid, seat)
        was, self._children[name] = self._children[name], made
        fresh = psutil.Process(made.pid)
        if not name:
            self.process = fresh
        self.processes = [fresh if p.pid == was.pid else p for p in self.processes]

    def wait_until_ready(self, pause_s: float = _PAUSE_S) -> None:
        """Wait until it serves, asking every ``pause_s`` at most; LabError as in ``__enter__``."""
        self._strange = 0
        self._wait_until_ready(pause_s)

    def by_host(self) -> dict[str, list[int]]:
        """All processes, with what they started, by the name of the host where they should be.

        Those on a host that is reached by ssh have the ids that they have there.
        """
        seats, found = self._seats(), dict[str, list[int]]()
        for host, side in self._sides.items():
            found[host] = [pid for pids in side.processes().values() for pid in pids]
        for name, child in self._children.items():
            if isinstance(child, Far):
                continue
            with contextlib.suppress(psutil.NoSuchProcess):
                root = psutil.Process(child.pid)
                family = [p.pid for p in (root, *root.children(recursive=True))]
                found.setdefault(seats[name].host, []).extend(family)
        return found

    def alone(self) -> dict[str, Endpoint]:
        """Where each agent answers by itself what the service is asked, by its name."""
        seats = self._seats()
        return {
            each.name: self._endpoint(seats[each.name], self.places.further(each.asked))
            for each in self.service.companions
            if each.agent and each.asked
        }

    @property
    def writing(self) -> Endpoint:
        """Where it is written to: a companion beside the server, if the service says so."""
        if self.service.writing is None:
            return self.endpoint
        return self._endpoint(self.seat, self.places.further(self.service.writing.port))

    def _endpoint(self, seat: Seat, port: int) -> Endpoint:
        service = self.service
        # Namespaces are on this machine and not on its loopback; who may use ssh may ask.
        return Endpoint((seat.address, port), service.wire, service.login, service.whole,
                        remote=bool(seat.host))  # fmt: skip

    def _seats(self) -> Mapping[str, Seat]:
        """Where each process runs, by its name; LabError where hosts and agents do not match."""
        return seated(self.engine.name, self.service, self.seat, self.agents)

    def _laid(self) -> list[Laid]:
        """What makes the service lay files elsewhere; LabError where it cannot."""
        # The folders of parts stand in the configuration itself, as {part:N}.
        own = PARTS in self.engine.can.writes
        others = [kind for kind in self.laid if not (own and is_part(kind))]
        for kind in others:
            if kind not in self.service.laid:
                raise LabError(
                    f"{self.engine.name} lays no files of the kind {kind} elsewhere", "deploy"
                )
        for folder in self.laid.values():
            folder.mkdir(parents=True, exist_ok=True)
        return [self.service.laid[kind] for kind in others]

    def _command(self, argv: Sequence[str]) -> list[str]:
        filled = [self.places.fill(part) for part in argv]
        try:
            return command_line(filled, refuses_root=self.service.refuses_root)
        except LabError as error:
            raise LabError(f"{self.engine.name}: {error}", "deploy") from None

    def _insist_all_live(self) -> None:
        """LabError that says which process has ended and how, or which host was lost."""
        if why := self.lost():
            raise LabError(why, "deploy")
        for name, child in self._children.items():
            code = child.poll()
            if code is not None:
                words = tail(self.run / _log(name)) or "it printed nothing"
                ended = "ended while starting" + (f" (its {name})" if name else "")
                raise LabError(f"{self.engine.name} {ended}, exit code {code}: {words}", "deploy")

    def _wait_until_ready(self, most_s: float = _PAUSE_S) -> None:
        give_up = time.monotonic() + self.service.ready_timeout_s
        pause_s = 0.005
        trouble = "it never answered"
        while time.monotonic() < give_up:
            self._insist_all_live()
            if self._listens():
                try:
                    reply = self.ask(self.service.ready, timeout_s=2.0)
                    self.facts = self.engine.facts(reply)
                    if self.service.writing is not None:
                        self.tell(self.service.writing.ready, timeout_s=2.0)
                except (Refused, ValueError) as error:
                    trouble = str(error)
                else:
                    if not self.facts.version:
                        raise LabError(
                            f"{self.engine.name} does not report its version: no version, no "
                            "measurement",
                            "deploy",
                        )
                    logs = {name: self.run / _log(name) for name in self._children}
                    self._ready = {n: p.stat().st_size for n, p in logs.items() if p.exists()}
                    return
            time.sleep(pause_s)
            pause_s = min(most_s, pause_s * 1.5)
        raise LabError(
            f"{self.engine.name} was not ready after {self.service.ready_timeout_s:g} s "
            f"({trouble}); its log ends: {self.log_tail() or 'empty'}",
            "deploy",
        )

    def _listens(self) -> bool:
        """Does a process of ours listen on our port? A stranger's server gets no byte from us.

        Looked up in the kernel's tables, of sockets and of who holds them. A server hands its
        socket on while it starts, so only what is not ours on several looks is a stranger's.
        """
        port = self.target[1]
        if self.process is None:
            ours, there = self._sides[self.seat.host].listens("", port)
            if ours or not there:
                return ours
        else:
            there_are = listening(port, self.process.pid)
            if not there_are:
                return False
            try:
                family = [self.process, *self.process.children(recursive=True)]
            except psutil.NoSuchProcess:
                return False
            if any(there_are & sockets(process.pid) for process in family):
                return True
        self._strange += 1
        if self._strange >= _LOOKS:
            raise LabError(
                f"port {port} was taken by another program between choosing and starting; "
                "give the command again",
                "deploy",
            )
        return False


def _log(name: str) -> str:
    """The file of what a process of the service prints."""
    return f"{name or 'server'}.log"


def command_line(argv: Sequence[str], *, refuses_root: bool) -> list[str]:
    """``argv`` with its program found, as an ordinary user where it must not be root.

    LabError (stage ``deploy``) where there is no such program.
    """
    found = program(argv[0])
    if found is None:
        raise LabError(f"there is no program {argv[0]!r}; see `searchbench engines`", "deploy")
    whole = [found, *argv[1:]]
    return [*_ORDINARY, *whole] if refuses_root and os.geteuid() == 0 else whole


def _start(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    run: Path,
    log: str,
    seat: Seat,
) -> subprocess.Popen[bytes]:
    """Start a server in ``run``; what it prints goes to the file ``log`` there."""
    with (run / log).open("ab") as file:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **env},
            cwd=run,
            preexec_fn=in_child(seat.cpus, seat.joins, seat.namespace),
        )


def complete(
    argv: Sequence[str],
    *,
    run: Path,
    log: str,
    stage: str,
    joins: Sequence[Path] = (),
    seat: Seat | None = None,
    seen: Callable[[psutil.Process], object] = lambda _: None,
    full: Callable[[], str] = lambda: "",
) -> None:
    """Run a command to its end; LabError (``stage``) with the end of what it printed if it fails.

    Whatever ends the wait (Ctrl-C too) ends the command. ``seat``: where it runs, else it only
    ``joins``; ``seen`` is told of it. ``full`` says that there is no room for what it writes:
    after some seconds of that it is ended.
    """
    own = argv[len(_ORDINARY) :] if tuple(argv[: len(_ORDINARY)]) == _ORDINARY else argv
    # Of a shell that looks for a program, that program.
    what = own[3] if own[1:2] == ["-c"] and len(own) > 3 else " ".join(own[:3])
    child = _start(argv, env={}, run=run, log=log, seat=seat or Seat(joins=joins))
    try:
        with contextlib.suppress(psutil.NoSuchProcess):
            seen(psutil.Process(child.pid))
        code = _ended(child, what, stage, full)
    finally:
        if child.poll() is None:
            _stop([child], signal.SIGKILL, 1.0)
    if code:
        words = tail(run / log) or "it printed nothing"
        raise LabError(f"`{what}` ended with exit code {code}: {words}", stage)


def _ended(child: subprocess.Popen[bytes], name: str, stage: str, full: Callable[[], str]) -> int:
    """The exit code of a command; LabError if it takes too long, or waits for room.

    It waits if it does nothing: one that still works may need no more room.
    """
    began = room = time.monotonic()
    before = (-1.0, -1)
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(1.0)
        now, spent = time.monotonic(), _work(child.pid)
        if not full() or spent[0] - before[0] > _IDLE_S or spent[1] != before[1]:
            room, before = now, spent
        elif now - room > _WITHOUT_ROOM_S:
            raise LabError(f"`{name}` waits for room", stage)
        if now - began > _COMMAND_TIMEOUT_S:
            raise LabError(f"`{name}` did not end within {_COMMAND_TIMEOUT_S:.0f} s", stage)


def _work(pid: int) -> tuple[float, int]:
    """CPU seconds and reads and writes of a process and its children so far, as far as known."""
    cpu_s, calls = 0.0, 0
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(pid)
        for each in (parent, *parent.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                times = each.cpu_times()
                cpu_s += times.user + times.system
                io = each.io_counters()
                calls += io.read_count + io.write_count
    return cpu_s, calls


def _stop(children: Sequence[subprocess.Popen[bytes]], how: signal.Signals, wait_s: float) -> None:
    """``how``, then SIGKILL, for these and for what they started; ends nothing else."""
    family: list[psutil.Process] = []
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            family += psutil.Process(child.pid).children(recursive=True)
        family += _orphans(child.pid)
        if child.poll() is None:
            child.send_signal(how)
    give_up = time.monotonic() + wait_s
    for child in children:
        try:
            child.wait(max(0.0, give_up - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    for orphan in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            orphan.kill()
    give_up = time.monotonic() + _KILLED_S
    while any(map(_serves, family)) and time.monotonic() < give_up:
        time.sleep(0.005)


def _serves(process: psutil.Process) -> bool:
    """Is it more than an entry that its parent has not read yet?"""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _orphans(group: int) -> list[psutil.Process]:
    """What is left of the process group of a child of ours that may have died before its own.

    The workers of a master that was killed go on, and nothing but their group says whose they are.
    """
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError):
            ours = os.getsid(process.pid) == os.getsid(0)
            if ours and process.pid != group and os.getpgid(process.pid) == group:
                found.append(process)
    return found
