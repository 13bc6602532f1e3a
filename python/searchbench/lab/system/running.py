"""A system that runs: its endpoints, its processes, what it says of itself. Started or attached.

What drives and asks a system sees this alone; ``Deployment`` starts one, ``Attached`` finds one.
"""

from __future__ import annotations

from pathlib import Path

import psutil

from searchbench.corpora.corpus import Schema
from searchbench.engines.answer import Facts
from searchbench.engines.engine import Engine, Parameters, Request, Service
from searchbench.errors import LabError
from searchbench.lab.wire.exchange import Decoder, Endpoint, ask

NO_FIELDS = Schema(())


class Running:
    """A system under test that answers. Use as a context: leaving it ends what entering began.

    ``known``: its engine; None where nobody known to us answers (verbatim requests alone).
    ``params``: its levers, complete, as it was started with them or as they were read back.
    ``processes``: those that are seen from here, the one that is asked first. ``argv``: as started.
    """

    service: Service
    endpoint: Endpoint
    facts: Facts

    def __init__(
        self, known: Engine | None, params: Parameters, run: Path, schema: Schema = NO_FIELDS
    ) -> None:
        self.known = known
        self.params = params
        self.run = run
        self.schema = schema
        self.argv: list[str] = []
        self.processes: list[psutil.Process] = []
        self.reader: Decoder | None = None

    def __exit__(self, *_: object) -> None:
        """End what entering began."""
        self.stop()

    @property
    def engine(self) -> Engine:
        """Its engine; LabError where it is not known."""
        if self.known is None:
            raise LabError("what answers is not an engine that is known here", "identify")
        return self.known

    @property
    def decoder(self) -> Decoder:
        """What reads its replies: its engine, but for operations."""
        return self.reader or self.engine

    @property
    def target(self) -> tuple[str, int]:
        """Host and port that are asked first."""
        return self.endpoint.target

    @property
    def writing(self) -> Endpoint:
        """Where it is written to and published while it is asked."""
        return self.endpoint

    def ask(self, request: Request, timeout_s: float = 60.0) -> bytes:
        """One request and its reply, outside any measurement."""
        return ask(self.endpoint, [request], timeout_s=timeout_s)[0]

    def tell(self, request: Request, timeout_s: float = 60.0) -> bytes:
        """The same where it is written to."""
        return ask(self.writing, [request], timeout_s=timeout_s)[0]

    def lives(self) -> bool:
        """Are all its processes that are seen from here still there?"""
        try:
            return all(
                p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in self.processes
            )
        except psutil.NoSuchProcess:
            return False

    def lost(self) -> str:
        """Which host of it was lost and why, as a sentence; "" if none was."""
        return ""

    def exits(self) -> dict[str, int]:
        """By its name ("": the one that is asked) the exit code of each of its processes that is
        known to have ended; below 0: by a signal.
        """
        return {}

    def fallen(self) -> tuple[int, str] | None:
        """Of a process that answered one connection and ended, while the server goes on: its exit
        code (below 0: by a signal), and what the log says of it. None where that is not seen.
        """
        return None

    def log_tail(self, lines: int = 5) -> str:
        """The end of what it printed, for an error message; empty where that is not seen."""
        return ""

    def last_words(self, of: str = "") -> str:
        """What a process that ended says of it in its log, in one line; empty where that is not
        seen. ``of``: its name.
        """
        return ""

    def stop(self) -> None:
        """End what entering began."""
