"""One client machine, at the other end of an ssh; and how far its clock is from ours.

A ping leaves here at t1 by our clock, is there at t2 by theirs, its answer leaves at t3 by theirs
and is here at t4 by ours. With offset = their clock − ours (RFC 5905, section 8):

    offset = ((t2 − t1) + (t3 − t4)) / 2        round trip = (t4 − t1) − (t3 − t2)

The way there and the way back share the round trip in an unknown manner, so the true offset is
within half of it, whatever the network does. Of many pings that with the shortest round trip
says most. Only the start of the schedule depends on this: service and response times are
differences of instants that one machine took with one clock.
"""

from __future__ import annotations

import contextlib
import queue
import shlex
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, cast

from searchbench.errors import LabError
from searchbench.lab.fleet.frames import Blobs, Fields, Message, NotOurs, Receiver, Sender
from searchbench.record.trial import Note

COMMAND = "searchbench-client"
HERE = "localhost"
_OURSELVES = (sys.executable, "-m", "searchbench.lab.fleet.client")
# Never a question that nobody sees; a machine that is gone is noticed. What the user says in
# --ssh comes before these, and ssh takes the first value that it reads.
OPTIONS = (
    "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5",
    "-o", "ServerAliveCountMax=3",
)  # fmt: skip
# A start that is not common by more than this shifts one machine's part of an open loop against
# the others' by as much as a request takes that is worth measuring.
_UNCERTAIN_NS = 1_000_000
_ENDS_S = 5.0
_LAST_WORDS = 8
NOT_FOUND = 127  # of a shell: there is no such command
SSH_FAILED = 255


class Machine:
    """A process ``ssh HOST COMMAND``, heard by a thread that puts what it hears into ``events``.

    The host "localhost" is this machine, and is not reached by ssh.

    ``hello``: what it said of itself; ``notes``: what made it less fit for the last drive.
    ``lost``: why it says nothing more, which it says as a last message "lost".
    ``room``: where the blobs of the next messages go, by name (else they get memory of their own).
    """

    def __init__(
        self,
        host: str,
        ssh: Sequence[str],
        command: str,
        events: queue.SimpleQueue[tuple[Machine, Message]],
    ) -> None:
        if not host or host.startswith("-") or host.split() != [host]:
            raise LabError(f"{host!r} is not the name of a client machine", "clients")
        self.host = host
        self.hello: Fields = {}
        self.notes: list[Note] = []
        self.room: dict[str, memoryview] = {}
        self.lost = ""
        self._command = command
        self._greeted = False
        self._events = events
        self._words: deque[str] = deque(maxlen=_LAST_WORDS)
        argv = [*ssh, *OPTIONS, "--", host, command] if host != HERE else list(_OURSELVES)
        try:
            # A group of its own: Ctrl-C is for us, and we end it.
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
            )
        except OSError as error:
            raise LabError(
                f"`{shlex.join(argv[:1])}` cannot be started ({error.strerror}): client machines "
                "are reached by ssh (Debian: apt-get install openssh-client)",
                "clients",
            ) from None
        self._sender = Sender(cast("BinaryIO", self.process.stdin))
        self._receiver = Receiver(cast("BinaryIO", self.process.stdout), self._place)
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._errors, self._listen)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def heard(self) -> float:
        """time.monotonic() when the last bytes came from there."""
        return self._receiver.heard

    def send(self, kind: str, fields: Fields | None = None, blobs: Blobs | None = None) -> int:
        """Send a message; when it left, in ns since 1970. A machine that is gone says so itself."""
        try:
            return self._sender.send(kind, fields, blobs)
        except (OSError, ValueError):
            return 0

    def hang_up(self) -> None:
        """Close the pipe, which ends it there."""
        with contextlib.suppress(OSError, ValueError):
            cast("BinaryIO", self.process.stdin).close()

    def end(self) -> None:
        """Hang up, and wait for ssh to end, by force if it must be."""
        self.hang_up()
        wait_for(self.process, self._threads, _ENDS_S)

    def _place(self, name: str, size: int) -> memoryview:
        room = self.room.pop(name, None)
        if room is None:
            return memoryview(bytearray(size))
        if len(room) != size:
            raise NotOurs(f"{name} has {size} bytes where {len(room)} were announced")
        return room

    def _listen(self) -> None:
        words = ""
        try:
            self._receiver.greeting()
            self._greeted = True
            while (message := self._receiver.next()) is not None:
                self._events.put((self, message))
        except NotOurs as error:
            words = str(error)
        except (OSError, ValueError):
            pass
        self.lost = self._why(words)
        self._events.put((self, Message("lost", {"words": self.lost})))

    def _errors(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in cast("BinaryIO", self.process.stderr):
                text = line.decode(errors="replace").strip()
                if text:
                    self._words.append(text[:300])

    def _why(self, instead: str) -> str:
        """Why it is gone: ssh's and the machine's own words, and what to do."""
        try:
            code = self.process.wait(_ENDS_S)
        except subprocess.TimeoutExpired:
            said = instead or " | ".join(self._words)
            return f"what answers is not searchbench: {said!r}"
        self._threads[0].join(_ENDS_S)
        said = " | ".join(self._words) or instead or "it said nothing"
        if self._greeted:
            return (
                f"it was lost: the connection, or `{self._command}` there, ended (ssh's exit code "
                f"{code}): {said}"
            )
        if code == SSH_FAILED:
            return f"ssh failed: {said}; `ssh {self.host}` must work without a question"
        if code == NOT_FOUND:
            return (
                f"there is no `{self._command}`: {said}; install searchbench there, or name the "
                "command with --client-command (for example /opt/venv/bin/searchbench-client)"
            )
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return f"`{self._command}` ended {how}: {said}"


def wait_for(
    process: subprocess.Popen[bytes], threads: Sequence[threading.Thread], wait_s: float
) -> None:
    """Wait for an ssh that was hung up on to end, for ``wait_s`` before by force, and for the
    ``threads`` that read from it; then close what they read.
    """
    for some_s, by_force in ((wait_s, process.terminate), (1.0, process.kill)):
        try:
            process.wait(some_s)
            break
        except subprocess.TimeoutExpired:
            by_force()
    process.wait()
    for thread in threads:
        if thread.ident is not None:  # it may have ended before all were started
            thread.join(wait_s)
    for pipe in (process.stdout, process.stderr):
        cast("BinaryIO", pipe).close()


@dataclass(frozen=True, slots=True)
class Offset:
    """Their clock minus ours at ``at_unix_ns`` (ours); the truth is within ± uncertainty."""

    offset_ns: int
    uncertainty_ns: int
    round_trip_ns: int
    at_unix_ns: int


def offset(pings: Sequence[tuple[int, int, int, int]]) -> Offset:
    """What the ping with the shortest round trip says: t1, t2, t3, t4 in ns since 1970.

    ValueError for none.
    """
    t1, t2, t3, t4 = min(pings, key=_round_trip)
    # A clock that was set between t1 and t4 makes it negative: then nothing is known.
    round_trip = abs(_round_trip((t1, t2, t3, t4)))
    return Offset(((t2 - t1) + (t3 - t4)) // 2, -(-round_trip // 2), round_trip, t4)


def _round_trip(ping: tuple[int, int, int, int]) -> int:
    t1, t2, t3, t4 = ping
    return (t4 - t1) - (t3 - t2)


def drift_ppm(before: Offset, after: Offset) -> float:
    """By how much their clock ran faster than ours between two measurements, in millionths."""
    elapsed = after.at_unix_ns - before.at_unix_ns
    return (after.offset_ns - before.offset_ns) / elapsed * 1e6 if elapsed > 0 else 0.0


def about_clock(before: Offset, after: Offset | None) -> dict[str, int | float | None]:
    """As it stands in the accounting; what was not measured after the drive is null."""
    return {
        "offset_ns": before.offset_ns,
        "offset_uncertainty_ns": before.uncertainty_ns,
        "round_trip_ns": before.round_trip_ns,
        "offset_after_ns": after.offset_ns if after else None,
        "offset_after_uncertainty_ns": after.uncertainty_ns if after else None,
        "drift_ppm": round(drift_ppm(before, after), 3) if after else None,
    }


def findings(machine: str, before: Offset, after: Offset | None) -> list[Note]:
    """What makes the common start, or one schedule over all machines, less than it says."""
    found = []
    uncertainty = max(o.uncertainty_ns for o in (before, after) if o)
    if uncertainty > _UNCERTAIN_NS:
        found.append(
            Note(
                kind="clock offset uncertain",
                number=f"{machine}: ± {uncertainty / 1e6:.2f} ms",
                meaning="the machines' parts of the schedule may be shifted against each other "
                "by that much; service and response times are not affected: each is of one clock",
                remedy="use client machines on a shorter or quieter network",
            )
        )
    if after:
        moved = abs(after.offset_ns - before.offset_ns)
        if moved > before.uncertainty_ns + after.uncertainty_ns:
            found.append(
                Note(
                    kind="clock moved",
                    number=f"{machine}: its clock moved by {moved / 1e6:.3f} ms against ours "
                    f"during the drive ({drift_ppm(before, after):+.1f} ppm)",
                    meaning="its part of the schedule drifted against the others' by that much; if "
                    "its clock was set meanwhile, its instants may have jumped",
                    remedy="let all machines follow the same time server (chronyc tracking), and "
                    "wait until it has settled",
                )
            )
    return found
