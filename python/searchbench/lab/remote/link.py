"""One host that is reached by ssh: what is asked of the supervisor there, and what it reports.

    ssh HOST python3 -c ..   its source → hello → asked and answered; samples, logs and ends of
                             processes as they come → bye → gone

The supervisor ends with the pipe, and with 30 s in which we say nothing; so does all that it
started. ssh itself notices within 15 s that the other machine does not answer any more.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import secrets
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from searchbench.errors import LabError
from searchbench.lab.fleet.frames import Message, NotOurs, Receiver, Sender
from searchbench.lab.fleet.machine import HERE, NOT_FOUND, OPTIONS, SSH_FAILED, wait_for
from searchbench.places import Host

_SOURCE = Path(__file__).with_name("supervisor.py")
# Read by a shell of the other machine, whichever it is: nothing in it is special within quotes.
_BOOT = (
    "import sys;sys.version_info<(3,8)and sys.exit(sys.version);"
    "exec(compile(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())),sys.argv[1],sys.argv[2]))"
)
_HELLO_S = 60.0  # a login, and Python's start on a slow machine
_ANSWER_S = 60.0
_ALIVE_S = 1.0
_ENDS_S = 20.0
_LAST_WORDS = 8
_KNOCKS = 9
_DOOR_S = 5.0
_PIECE_BYTES = 1 << 20
_FILE_S = 3600.0


class HostError(LabError):
    """A host is not as a study says. ``host``: its name; ``key``: of its table, which says it."""

    def __init__(self, host: str, words: str, key: str = "ssh", stage: str = "") -> None:
        super().__init__(f"host {host}: {words}", stage)
        self.host, self.key = host, key


def command(ssh_command: str, name: str, *arguments: str) -> list[str]:
    """What runs the supervisor on a machine with these arguments; on this one without ssh."""
    own = ["-c", _BOOT, "searchbench", "exec", *arguments]
    if name == HERE:
        return [sys.executable, *own]
    there = shlex.join(["exec", "python3", *own])
    return [*shlex.split(ssh_command), *OPTIONS, "--", name, there]


def source() -> bytes:
    """What the supervisor is sent first: how long its source is, and the source."""
    text = _SOURCE.read_bytes() + b"\nmain(sys.argv[3:])\n"
    return b"%d\n%s" % (len(text), text)


def resolved(host: Host) -> str:
    """The address of a host in figures: the one that the study gives, or where ssh goes."""
    name, given = host.address, "address"
    if not name and host.ssh == HERE:
        name = "127.0.0.1"
    if not name:
        given = "ssh"
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            argv = [*shlex.split(host.ssh_command), "-G", host.ssh]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
            rows = (line.split(None, 1) for line in done.stdout.splitlines())
            name = next((row[1] for row in rows if row[:1] == ["hostname"]), "")
    try:
        found = socket.getaddrinfo(name or host.ssh, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise HostError(
            host.name, f"{name or host.ssh!r} is not known here as an address "
            f"({error.strerror}); give its address, as in address = \"10.0.0.9\"", given,
        ) from None  # fmt: skip
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return str(found[0][4][0])


class Link:
    """An ssh to one host, open until ``close``. HostError where it cannot be made.

    ``name``: of the folder of ours there, ``folder`` its path. ``about``: what machine it is.
    ``lost``: why it says nothing more, "" while it does. ``exits``: processes that have ended by
    themselves, with their code. ``samples``: (our Unix time in ns, counters) since ``begin``;
    ``says``: what its programs say of their version, by command; ``kept``: the names of the copies
    of indexes there, by the path of each here; ``numbers``: none of which is given twice.
    """

    def __init__(self, host: Host, name: str) -> None:
        self.host, self.name, self.folder = host, name, f"{host.folder.rstrip('/')}/{name}"
        self.address = ""
        self.about: dict[str, Any] = {}
        self.lost = ""
        self.greeted = False
        self.left: str | None = None
        self.exits: dict[str, int] = {}
        self.samples: list[tuple[int, dict[str, Any]]] = []
        self.says: dict[str, str] = {}
        self.kept: dict[str, str] = {}
        self._logs: Path | None = None
        self.numbers = itertools.count(1)
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._hello: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._getting: dict[str, BinaryIO] = {}
        self._words: deque[str] = deque(maxlen=_LAST_WORDS)
        self._closed = threading.Event()
        self._lock = threading.Lock()

    def open(self) -> None:
        """Log in, start the supervisor, and hear what machine that is."""
        host = self.host
        argv = command(host.ssh_command, host.ssh, "guard", host.folder, self.name)
        try:
            # A group of its own: Ctrl-C is for us, and we end it.
            self.process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                process_group=0,
            )  # fmt: skip
        except OSError as error:
            key = "ssh" if host.ssh_command == "ssh" else "ssh_command"
            raise HostError(
                host.name, f"`{argv[0]}` cannot be started ({error.strerror}); hosts are reached "
                "by ssh (Debian: apt-get install openssh-client)", key,
            ) from None  # fmt: skip
        pipe = cast("BinaryIO", self.process.stdin)
        self._sender = Sender(pipe)
        self._threads = [
            threading.Thread(target=target, name=f"host {host.name}", daemon=True)
            for target in (self._errors, self._listen, self._live)
        ]
        with contextlib.suppress(OSError):  # it says itself why it is gone
            pipe.write(source())
            pipe.flush()
        for thread in self._threads:
            thread.start()
        try:
            self.about = self._hello.get(timeout=_HELLO_S)
        except queue.Empty:
            self._lose(f"it did not answer within {_HELLO_S:.0f} s; `ssh {host.ssh}` must work "
                       "without a password or any other question")  # fmt: skip
        if wrong := self.about.get("wrong"):  # then it ends, which is no loss
            self.close()
            raise HostError(host.name, f"no folder can be made in {host.folder} there: {wrong}; "
                            "name another with `folder`", "folder")  # fmt: skip
        if self.lost:
            self.close()
            raise HostError(host.name, self.lost)
        try:
            self.address = resolved(host)
        except HostError:
            self.close()
            raise

    @property
    def machine(self) -> dict[str, Any]:
        """Its processor, kernel and so on, as ``supervisor.machine`` has them."""
        return dict(self.about.get("machine", {}))

    def ask(
        self, kind: str, timeout_s: float = _ANSWER_S, blob: bytes = b"", **fields: Any
    ) -> dict[str, Any]:
        """One question and its answer. HostError where it is refused, or the host is lost."""
        number = next(self.numbers)
        answer = self._waiting[number] = queue.SimpleQueue()
        try:
            self.say(kind, blob, ask=number, **fields)
            give_up = time.monotonic() + timeout_s
            while True:
                with contextlib.suppress(queue.Empty):
                    found = answer.get(timeout=0.2)
                    break
                if self.lost:
                    raise HostError(self.host.name, self.lost)
                if time.monotonic() > give_up:
                    raise HostError(
                        self.host.name, f"it did not answer within {timeout_s:.0f} s ({kind})"
                    )
        finally:
            del self._waiting[number]
        if "wrong" in found:
            raise HostError(self.host.name, found["wrong"], found.get("key") or "ssh")
        return found

    def say(self, kind: str, blob: bytes = b"", **fields: Any) -> None:
        """Send without waiting; HostError where the host is lost."""
        if self.lost:
            raise HostError(self.host.name, self.lost)
        with contextlib.suppress(OSError, ValueError):  # the listening thread says why
            self._sender.send(kind, fields, {"data": memoryview(blob)} if blob else None)

    def begin(self, run: Path) -> None:
        """A deployment begins: what is said from now on is of it; logs are appended in ``run``."""
        with self._lock:
            self.samples, self.exits, self._logs = [], {}, run

    def put(self, path: str, file: Path | bytes) -> None:
        """Lay a file into our folder there, with its mode and its time of change."""
        if isinstance(file, bytes):
            self.ask("put", blob=file, path=path, at=0, last=True, mode=0o600)
            return
        about = file.stat()
        fields = {"path": path, "mtime_ns": about.st_mtime_ns, "mode": about.st_mode & 0o777}
        at = 0
        with file.open("rb") as content:
            piece = content.read(_PIECE_BYTES)
            while more := content.read(_PIECE_BYTES):
                self.say("put", piece, at=at, last=False, **fields)
                at, piece = at + len(piece), more
        # The last is answered once all is there.
        self.ask("put", _FILE_S, piece, at=at, last=True, **fields)

    def get(self, path: str, file: Path) -> None:
        """Fetch a file of our folder there, with its mode and its time of change."""
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as target:
            self._getting[path] = target
            try:
                found = self.ask("get", _FILE_S, path=path)
            finally:
                del self._getting[path]
        if file.stat().st_size != found["size"]:
            raise HostError(self.host.name, f"{path} changed while it was fetched")
        file.chmod(found["mode"] & 0o777)
        os.utime(file, ns=(found["mtime_ns"], found["mtime_ns"]))

    def round_trip_s(self) -> float:
        """The shortest of several connections to its address; HostError if that is not its own."""
        word = secrets.token_hex(16)
        port = int(self.ask("door", address=self.address, word=word)["port"])
        took = []
        for _ in range(_KNOCKS):
            began = time.perf_counter()
            try:
                with socket.create_connection((self.address, port), timeout=_DOOR_S) as door:
                    took.append(time.perf_counter() - began)
                    said = b"".join(iter(lambda: door.recv(64), b"")).decode(errors="replace")
            except OSError as error:
                why = error.strerror or str(error)
                raise HostError(
                    self.host.name, f"{self.address} cannot be reached from here ({why}): it is "
                    "not the address of that machine, or a firewall is in the way; give another "
                    "one with `address`", "address",
                ) from None  # fmt: skip
            if said != word:
                raise HostError(
                    self.host.name, f"another machine answers at {self.address}; give this "
                    "host's own address with `address`", "address",
                )  # fmt: skip
        return min(took)

    def hang_up(self) -> None:
        """Break the pipe: what runs there ends by itself."""
        with contextlib.suppress(OSError, ValueError):
            cast("BinaryIO", self.process.stdin).close()

    def close(self) -> str:
        """End all that runs there and remove the folder; "" once the host says that it is gone.

        Else why that is not known.
        """
        if not hasattr(self, "process"):
            return ""
        with contextlib.suppress(LabError):
            self.say("bye")
        self._closed.set()
        self.hang_up()
        wait_for(self.process, self._threads, _ENDS_S)
        if self.left is None:
            return f"host {self.host.name}: {self.lost or 'it did not say that it has ended'}"
        return f"host {self.host.name}: {self.left}" if self.left else ""

    # What is heard.

    def _listen(self) -> None:
        receiver = Receiver(cast("BinaryIO", self.process.stdout))
        words = ""
        try:
            receiver.greeting()
            self.greeted = True
            while (message := receiver.next()) is not None:
                self._heard(message)
        except NotOurs as error:
            words = str(error)
        except (OSError, ValueError):
            pass
        self._lose(self._why(words))

    def _heard(self, message: Message) -> None:
        fields, blob = dict(message.fields), message.blobs.get("data", memoryview(b""))
        if message.kind == "done":
            if (waiting := self._waiting.get(fields["ask"])) is not None:
                waiting.put(fields)
        elif message.kind == "sample":
            self.samples.append((message.received_unix_ns, fields))
        elif message.kind == "log":
            self._log(str(fields["file"]), blob)
        elif message.kind == "piece":
            if (file := self._getting.get(fields["path"])) is not None:
                file.write(blob)
        elif message.kind == "ended":
            self.exits[str(fields["name"])] = int(fields["code"])
        elif message.kind == "hello":
            self._hello.put(fields)
        elif message.kind == "gone":
            self.left = str(fields["left"])

    def _log(self, name: str, blob: memoryview) -> None:
        """Append what a process there printed to the log of that name here."""
        with self._lock:
            if self._logs is not None and "/" not in name:
                with contextlib.suppress(OSError), (self._logs / name).open("ab") as log:
                    log.write(blob)

    def _errors(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in cast("BinaryIO", self.process.stderr):
                if text := line.decode(errors="replace").strip():
                    self._words.append(text[:300])

    def _live(self) -> None:
        """The supervisor ends with our silence."""
        while not self._closed.wait(_ALIVE_S) and not self.lost:
            with contextlib.suppress(OSError, ValueError, LabError):
                self.say("alive")

    def _lose(self, why: str) -> None:
        if not self.lost and not self._closed.is_set():
            self.lost = why
        self._hello.put({})

    def _why(self, instead: str) -> str:
        """Why it is gone: the words of ssh and of the machine, and what to do."""
        try:
            code = self.process.wait(5.0)
        except subprocess.TimeoutExpired:
            return (
                "something other than our supervisor answers there: "
                f"{instead or ' | '.join(self._words)!r}"
            )
        self._threads[0].join(5.0)
        said = " | ".join(self._words) or instead or "it said nothing"
        name = self.host.ssh
        if self.greeted:
            return f"the connection to it was lost (ssh's exit code {code}): {said}"
        if code == SSH_FAILED:
            return (
                f"ssh failed: {said}; `ssh {name}` must work without a password or any other "
                "question"
            )
        if code == NOT_FOUND:
            return (
                "there is no python3 there, with which searchbench watches what it starts: "
                f"{said}; install it"
            )
        return f"`ssh {name} python3` ended with exit code {code} (Python 3.8 or later?): {said}"


def lost_of(links: Sequence[Link] | Mapping[str, Link]) -> str:
    """Which host was lost and why, as a sentence; "" if none was."""
    every = links.values() if isinstance(links, Mapping) else links
    return next((f"host {link.host.name}: {link.lost}" for link in every if link.lost), "")
