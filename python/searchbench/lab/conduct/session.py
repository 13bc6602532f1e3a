"""A session: one configuration made ready, for as many trials as are driven on it.

A trial of a study has a session of its own; the steps of a sweep and the trials of a search share
one. What its opening finds out is kept here and put into the record of each of its trials.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from msgspec import structs

from searchbench.engines.engine import Parameters
from searchbench.errors import LabError
from searchbench.lab.conduct import shelf
from searchbench.lab.conduct.ingest import Batches
from searchbench.lab.conduct.openings import Opened
from searchbench.lab.conduct.shelf import Index
from searchbench.lab.drive.compiled import Compiled
from searchbench.lab.drive.drive import Driven, Samples
from searchbench.lab.system.running import Running
from searchbench.record.trial import Captured, Note, Trial
from searchbench.study.plan import Judging
from searchbench.workload.draw import CachePlan


@dataclass
class Phases:
    """Seconds spent in each phase; ``current`` says where a failure happened."""

    seconds: dict[str, float] = field(default_factory=dict)
    current: str = ""
    announce: Callable[[str], object] = lambda _phase: None

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Time a phase; entering one twice adds up."""
        if name != self.current:
            self.announce(name)
        self.current = name
        began = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began


@dataclass
class Session:
    """``rules``: how the study is judged. ``made_by``: the trial that opened it.

    ``made_by`` is empty where that was before any trial. ``scope``: trials of the same scope may
    share an index on the shelf.

    ``found``: what opening it found out, as fields of ``record.trial.Trial``.
    """

    opened: Opened
    rules: Judging
    made_by: str
    scope: str
    run: Path
    phases: Phases
    batches: Batches | None = None
    index: Index | None = None
    running: Running | None = None
    compiled: Compiled | None = None
    captured: shelf.Captured | None = None
    cache: CachePlan | None = None
    filled: bool = False
    ready: bool = False
    found: dict[str, object] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    @property
    def params(self) -> Parameters:
        """The levers: as they were read back of an attached system, else as the study has them."""
        running = self.running
        return running.params if running is not None else self.opened.treatment.parameters

    @property
    def attached(self) -> bool:
        """Does it run already?"""
        return self.opened.target is not None

    def there(self) -> Running:
        """The running system."""
        if self.running is None:
            raise LabError("the system is not running", "deploy")
        return self.running

    def bytes(self) -> Compiled:
        """The workload in the system's bytes."""
        if self.compiled is None:
            raise LabError("the workload is not compiled", "compile")
        return self.compiled

    def close(self) -> None:
        """Stop what it started."""
        running, self.running = self.running, None
        self.ready = False
        if running is not None:
            running.stop()


@dataclass
class Run:
    """One trial under way: its session, and what goes on record of it.

    ``spill``: a folder for samples that exceed memory, where the record is: there they must fit.
    """

    session: Session
    opened: Opened
    about: Trial
    spill: Path
    samples: Samples | None = None
    replies: pa.Table | None = None
    probe: pa.Table | None = None
    driven: Driven | None = None
    logs: dict[str, bytes] = field(default_factory=dict)

    def fill_in(self) -> None:
        """Put what the opening found out into the record of this trial."""
        session = self.session
        session.made_by = session.made_by or self.about.trial
        captured = session.found.get("captured")
        if isinstance(captured, Captured) and not captured.made_by:
            session.found["captured"] = structs.replace(captured, made_by=session.made_by)
        for name, value in session.found.items():
            setattr(self.about, name, value)
        for note in session.notes:
            if note not in self.about.notes:
                self.about.notes.append(note)

    def note(self, note: Note) -> None:
        """Something the lab noticed."""
        self.about.notes.append(note)
