"""A peer: another client, how it is told what to do, and how what it says is read.

What a peer costs is the CPU time of its whole process, user and system, as the kernel counts it
when the process has ended; what it says of itself is read from its own output, never guessed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benches.servers import CLIENT_CPU

# Where `make bench-peers` puts what no package brings.
BUILT = Path(__file__).parents[2] / ".tools" / "peers" / "bin"
# No run of ours lasts longer; a peer that does hangs.
LONGEST_S = 90.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client is asked to do; ``per_s`` None is a closed loop, ``requests`` a count instead
    of a duration. ``pool`` is how many connections it may use.
    """

    url: str
    pool: int
    seconds: float
    keep_alive: bool = True
    per_s: float | None = None
    requests: int | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """Requests that were answered, others, and latencies in milliseconds by name, as it says."""

    answered: int
    failed: int = 0
    latency_ms: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds of a client and what it did."""

    user_s: float
    system_s: float
    said: Said

    @property
    def cpu_s(self) -> float:
        """User and system."""
        return self.user_s + self.system_s


class PeerError(Exception):
    """A peer ended with an error, or said what cannot be read."""


@dataclass(frozen=True, slots=True)
class Peer:
    """``argv`` gives None where the peer cannot do what is asked; ``lacks`` is for the reader."""

    name: str
    get: str
    argv: Callable[[Asked, Path], list[str] | None]
    said: Callable[[str, Asked], Said]
    version: tuple[str, ...]
    lacks: str

    def program(self) -> Path | None:
        """Where it is, or None."""
        built = BUILT / self.name
        found = built if built.is_file() else shutil.which(self.name)
        return Path(found) if found else None

    def can(self, asked: Asked) -> bool:
        """Is it here, and does it know how?"""
        with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
            return self.program() is not None and self.argv(asked, Path(folder)) is not None

    def run(self, asked: Asked) -> Cost:
        """Run it on the client's core, to its end."""
        with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
            place = Path(folder)
            arguments = self.argv(asked, place)
            if arguments is None:
                raise PeerError(f"{self.name} cannot do this")
            code, user_s, system_s = _ended([str(self.program()), *arguments], place)
            out = (place / "out").read_text(errors="replace")
            if code:
                told = (out + (place / "err").read_text(errors="replace")).strip()
                raise PeerError(f"{self.name} ended with {code}: {told[-300:]}")
            try:
                return Cost(user_s, system_s, self.said(out, asked))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise PeerError(
                    f"what {self.name} said cannot be read ({error}): {out[-300:]}"
                ) from error

    def which_version(self) -> str:
        """Its version as it says it, or Debian for it where it does not."""
        ask = [str(self.program()), *self.version]
        if not self.version:
            ask = ["dpkg-query", "-W", "-f", "${Version}", self.name]
        try:
            said = subprocess.run(ask, capture_output=True, text=True, check=False)
        except OSError:
            return "?"
        found = re.search(r"\d+\.\d+(\.\d+)?([-+.][\w.]+)?", said.stdout + said.stderr)
        return found[0] if found else "?"


def _ended(argv: list[str], place: Path) -> tuple[int, float, float]:
    """Exit code, user and system seconds of a program that was run to its end."""
    # One core, so one thread: those that count cores for themselves are told.
    environment = os.environ | {"GOMAXPROCS": "1", "TOKIO_WORKER_THREADS": "1"}
    argv = ["taskset", "-c", str(CLIENT_CPU), *argv]
    with (place / "out").open("wb") as out, (place / "err").open("wb") as err:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=place, env=environment
        )
        hanging = threading.Timer(LONGEST_S, process.kill)
        hanging.start()
        _, status, usage = os.wait4(process.pid, 0)
        hanging.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime, usage.ru_stime
