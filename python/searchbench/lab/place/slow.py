"""A delay of each request to a device: nbdkit with its delay filter serves the file behind it, and
nbdfuse makes it a file again.
"""

from __future__ import annotations

import contextlib
import math
import random
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from searchbench.errors import LabError
from searchbench.lab.place import things
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.place.reads import Aligned
from searchbench.lab.system.names import program
from searchbench.places import Storage
from searchbench.record.trial import Lever

_STARTS_S = 10.0
_LOOKS = 15
_LATE = 1.25  # what a request may take more than was asked, as a factor,
_WAY_MS = 0.25
_LATE_MS = 1.0  # ... and on top of that: the way through two processes


class Slow:
    """``image``: what is served. ``home``: a folder of ours that is made for it."""

    def __init__(self, image: Path, home: Path, latency_ms: float, ledger: Ledger) -> None:
        self._image, self._home, self._ledger = image, home, ledger
        self._latency_ms = latency_ms
        self._numbers: list[int] = []
        self._children: list[subprocess.Popen[bytes]] = []

    @property
    def daemons(self) -> Sequence[psutil.Process]:
        """nbdfuse, while it runs; nbdkit is its child."""
        found = []
        for child in self._children:
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(child.pid))
        return found

    def start(self) -> Path:
        """Serve the image with the delay; the file that is it. LabError (stage ``place``)."""
        point = self._home / "file"
        point.mkdir(parents=True, exist_ok=True)
        served, delay = point / "disk.img", f"{self._delay_ms()}ms"
        name = self._ledger.unique()
        # nbdfuse starts nbdkit itself: a socket of ours might have too long a path.
        for thing in (
            things.Daemon("nbdkit", str(self._image)),
            things.Daemon("nbdfuse", str(served)),
            things.Mount(str(point), "fuse", name),
        ):
            self._numbers.append(self._ledger.note(thing))
        delays = [f"rdelay={delay}", f"wdelay={delay}"]
        server = ["nbdkit", "--foreground", "--filter=delay", "file", str(self._image), *delays]
        self._run(
            "nbdfuse", ["-o", f"fsname={name}", str(served), "[", *server, "]"], served.exists
        )
        return served

    def stop(self) -> list[str]:
        """End both; why not, if not."""
        problems = self._ledger.undo(*self._numbers)
        if not problems:
            self._numbers = []
        for child in self._children:
            child.poll()
        self._children = [c for c in self._children if c.returncode is None]
        return problems

    def lever(self, asked: Storage, device: str) -> Lever:
        """What single requests to the device take now."""
        took_ms = latency_ms(device)
        least, most = self._latency_ms, self._latency_ms * _LATE + _LATE_MS
        effect = f"a read of 4 KiB takes {took_ms:.2f} ms (median of {_LOOKS})"
        return Lever(
            name=f"storages.{asked.name}.latency_ms",
            asked=f"{self._latency_ms:g}",
            read_back=self._read_back(),
            effect=effect,
            problem="" if least * 0.97 <= took_ms <= most else effect,
            figures={"latency_ms": took_ms},
        )

    def _delay_ms(self) -> int:
        """Whole milliseconds, as nbdkit takes them; the way through takes some too."""
        return max(1, math.ceil(self._latency_ms - _WAY_MS))

    def _read_back(self) -> str:
        """The delay in the arguments of the nbdkit that runs."""
        running = things.Daemon("nbdkit", str(self._image)).processes()
        return " ".join(part for p in running for part in p.cmdline() if "delay=" in part)

    def _run(self, name: str, arguments: list[str], ready: Callable[[], bool]) -> None:
        found = program(name)
        if found is None:
            raise LabError(f"`latency_ms` needs {name}, which is not installed", "place")
        log = self._home / f"{name}.log"
        with log.open("wb") as file:
            child = subprocess.Popen(
                [found, *arguments], stdin=subprocess.DEVNULL, stdout=file,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self._children.append(child)
        give_up = time.monotonic() + _STARTS_S
        while not ready():
            if child.poll() is not None or time.monotonic() > give_up:
                words = " ".join(log.read_text(errors="replace").split())
                raise LabError(f"{name} did not start: {words or 'it printed nothing'}", "place")
            time.sleep(0.01)


def latency_ms(device: str) -> float:
    """Milliseconds of a single read of 4 KiB at a place of the device drawn by lot; the median."""
    with Aligned(device, 4096) as file:
        took = []
        for _ in range(_LOOKS):
            at = random.randrange(file.blocks)
            began = time.perf_counter()
            file.read(at)
            took.append(time.perf_counter() - began)
    return statistics.median(took) * 1e3


def missing() -> list[str]:
    """Programs that a delay needs and that are not here."""
    needed = ["nbdkit", "nbdfuse"]
    return [name for name in needed if program(name) is None] + (
        [] if Path("/dev/fuse").exists() else ["/dev/fuse"]
    )
