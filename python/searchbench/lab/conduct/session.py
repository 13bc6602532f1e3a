"""A session: one configuration made ready, for as many trials as are driven on it.

A trial of a study has a session of its own; the steps of a sweep share one, and so do the trials of
a search without roles. What its opening finds out is kept here and put into the record of each of
its trials.

On the shelf is what one trial makes and another may use: prepared batches, finished indexes,
captured replies. An index is used again only by trials that would have built the same one: same
engine, same corpus, same levels of every parameter that the index depends on, and (by the study's
choice) the same block. Everything lies in a private folder that goes when the study ends.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil
import pyarrow as pa
from msgspec import structs
from numpy.typing import NDArray

from searchbench.corpora.corpus import Corpus
from searchbench.engines.engine import Engine, Parameters, Request
from searchbench.errors import LabError
from searchbench.lab.conduct.ingest import Batches, laid_out, spool
from searchbench.lab.conduct.openings import Opened
from searchbench.lab.conduct.watch import Breach, Watch
from searchbench.lab.drive.drive import Samples
from searchbench.lab.drive.warming import IsWarm
from searchbench.lab.drive.workload import Compiled
from searchbench.lab.fleet.fleet import Fleet
from searchbench.lab.place import zfs
from searchbench.lab.place.cores import dealt
from searchbench.lab.place.ledger import Ledger
from searchbench.lab.place.places import Confines
from searchbench.lab.place.storage import size_words
from searchbench.lab.place.storages import Storages
from searchbench.lab.probe.probe import Probe
from searchbench.lab.probe.sizes import Tracer
from searchbench.lab.remote.hosts import Links
from searchbench.lab.system.running import Running
from searchbench.places import Cores, Place, place_of
from searchbench.places.model import of_files
from searchbench.record.ends import ServerEnd
from searchbench.record.trial import Captured as CapturedAbout
from searchbench.record.trial import Ingest, JobDone, Lever, Note, Terms, Trial
from searchbench.study.plan import Judging
from searchbench.workload.draw import CachePlan

if TYPE_CHECKING:
    from searchbench.lab.conduct.beside import Beside

# ENOSPC, in the words of the C library and of databases; its line, shortened.
_NO_ROOM = re.compile(
    rb"[^\n]{0,160}(?:No space left on device|errno:? 28\b|[Ee]rror:? 28\b|code:? 28\b)[^\n]{0,80}"
)
_LOG_BYTES = 1 << 20


@dataclass(frozen=True)
class Captured:
    """Decoded replies to every distinct query, and what the record keeps of them.

    ``terms``: what the engine makes of the queries' terms, as trial.json keeps it.
    """

    replies: pa.Table
    about: CapturedAbout
    terms: Terms | None = None


@dataclass
class Index:
    """Where an index is, and what goes into it, over how many connections. ``done``: its ingest.

    ``storages``: what is made for it, and goes with it.
    ``finished``: may it be measured? ``made_by``: the trial that made it. ``captured``: replies
    from it, by the key of ``Session.asked``.
    """

    storages: Storages
    batches: Batches
    connections: int = 1
    done: Ingest = field(default_factory=Ingest)
    finished: bool = False
    made_by: str = ""
    captured: dict[str, Captured] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.storages.data

    def discard(self) -> list[str]:
        """Remove it with its storages, as where an ingest failed; what could not be, and why."""
        self.finished = False
        return self.storages.remove()


@dataclass
class Shelf:
    """By key; ``root`` is the private folder, ``ledger`` where it is written what is made there."""

    root: Path
    ledger: Ledger = field(default_factory=Ledger)
    _batches: dict[str, Batches] = field(default_factory=dict)
    _streams: dict[str, Batches] = field(default_factory=dict)
    _indexes: dict[str, Index] = field(default_factory=dict)
    _zfs: zfs.Daemon | None = None
    _links: Links | None = None

    @property
    def links(self) -> Links:
        """Those to hosts that are reached by ssh; they are made as they are needed."""
        self._links = self._links or Links(self.ledger)
        return self._links

    def index(
        self,
        engine: Engine,
        corpus: Corpus,
        digest: str,
        params: Parameters,
        scope: str,
        place: Place | None = None,
        *,
        documents: int = 0,
        connections: int = 1,
        empty: bool = False,
    ) -> Index:
        """The index for these levels; ``scope`` is the block or the trial that may share it.

        ``place``: only those share one in whose places their files are the same.
        The corpus in the engine's bytes is made once for all levels that the index needs not;
        ``documents``: of a request; ``connections``: over which they are sent at once. ``empty``:
        it is not needed, as a job puts the documents in.
        """
        levels = {p.name: params[p.name] for p in engine.parameters if p.index}
        key = _key(engine.name, digest, levels, documents)
        own = _key(engine.name, digest, levels, scope, of_files(place), documents, connections)
        if key not in self._batches:
            path = self.root / "batches" / key
            self._batches[key] = (
                laid_out((), path) if empty else spool(engine, corpus, path, params, documents)
            )
        if own not in self._indexes:
            self._zfs = self._zfs or zfs.Daemon(self.ledger, self.root)
            home, work = self.root / "indexes" / own, self.root.parent
            storages = Storages(place, home, work, self.ledger, self._zfs)
            self._indexes[own] = Index(storages, self._batches[key], connections)
        return self._indexes[own]

    def stream(
        self, parts: object, requests: Callable[[], Iterable[tuple[Request, int]]]
    ) -> Batches:
        """What a job sends, made once for all trials for which these ``parts`` are the same."""
        key = _key(parts)
        if key not in self._streams:
            self._streams[key] = laid_out(requests(), self.root / "streams" / key)
        return self._streams[key]

    def drop_indexes(self) -> list[str]:
        """A block is over: its indexes will not be asked for again. What is left, and why."""
        left = [why for index in self._indexes.values() for why in index.discard()]
        self._indexes.clear()
        return left


@dataclass(frozen=True)
class Sitting:
    """What all sessions share. ``rules``: how the study is judged.

    ``is_warm``: says when a warm-up until steady is over; None: trials are captured and not driven.
    ``fleet``: several client machines; None: this one alone. ``breach``: who sees that a promise is
    surely broken.
    """

    rules: Judging
    watch: Watch
    cores: Cores
    shelf: Shelf
    is_warm: IsWarm | None = None
    fleet: Fleet | None = None
    breach: Breach | None = None

    @property
    def timed(self) -> bool:
        """Are trials driven?"""
        return self.is_warm is not None

    @property
    def captures_after(self) -> bool:
        """Are the distinct queries asked alone after the drive, so that it meets first asks?"""
        return self.rules.agreement.capture == "after"


@dataclass
class Doing:
    """A job as it was done, by Unix times in ns; ``about``: what the record keeps of it.

    ``still_unix_ns``: when all that it wrote was on its device, the server stopped; 0: not yet.
    """

    about: JobDone
    start_unix_ns: int = 0
    end_unix_ns: int = 0
    still_unix_ns: int = 0


@dataclass
class Session:
    """``made_by``: the trial that opened it, empty where that was before any trial.

    ``confines``: its place, while it is in one; ``left_place``: the levers of the last one.
    ``seconds`` spent in each phase; ``spans``: each time one was entered, its name and Unix times
    in ns; ``helpers``: programs that a job runs beside the server; ``jobs``: those
    that were done; ``mark``: has the probe take a sample at once. ``stage``
    says where a failure happened. ``found``: what opening it found out, as fields of
    ``record.trial.Trial``. ``tracer``: of reads and writes, where that is what the trial is for.
    ``beside``: its roles beside the readers; ``own_index``: the copy of the index for them.
    ``asked_queries``: by query, whether a warm-up asked it since. ``ends``: of servers, while it
    was opened; ``gone``: the one that runs ended in its drive.
    """

    opened: Opened
    sitting: Sitting
    made_by: str
    run: Path
    index: Index | None = None
    running: Running | None = None
    compiled: Compiled | None = None
    captured: Captured | None = None
    cache: CachePlan | None = None
    filled: bool = False
    asked_queries: NDArray[np.bool_] | None = None
    ready: bool = False
    stage: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    confines: Confines | None = None
    left_place: list[Lever] = field(default_factory=list)
    spans: list[tuple[str, int, int]] = field(default_factory=list)
    found: dict[str, object] = field(default_factory=dict)
    tracer: Tracer | None = None
    beside: Beside | None = None
    own_index: Path | None = None
    notes: list[Note] = field(default_factory=list)
    ends: list[ServerEnd] = field(default_factory=list)
    gone: bool = False
    jobs: list[Doing] = field(default_factory=list)
    mark: Callable[[], None] = lambda: None
    helpers: list[psutil.Process] = field(default_factory=list)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase; entering one twice adds up."""
        if name != self.stage:
            self.sitting.watch.stage(name)
        self.stage = name
        if self.tracer is not None:
            self.tracer.enters(name, self.index.storages.own if self.index else {})
        began, began_unix_ns = time.perf_counter(), time.time_ns()
        try:
            yield
        finally:
            self.spans.append((name, began_unix_ns, time.time_ns()))
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began

    def processes(self) -> list[psutil.Process]:
        """Those of the system that runs, as far as they are seen from here."""
        running = self.running
        # What file systems of ours take of the CPU, they take for the system.
        daemons = [] if self.index is None else self.index.storages.daemons
        return [] if running is None else [*running.processes, *daemons, *self.helpers]

    @property
    def levers(self) -> Parameters:
        """The levers as the study has them."""
        return self.opened.treatment.parameters

    @property
    def attached(self) -> bool:
        """Does it run already?"""
        return self.opened.target is not None

    @property
    def asked(self) -> str:
        """The key of what captures on one index depend on."""
        method = self.opened.treatment.operation.get("method", "")
        return self.asked_of(self.opened.workload.digest, method)

    def asked_of(self, digest: str, how: str) -> str:
        """The same of what has this digest, asked in this way."""
        return _key(dict(self.levers), digest, how)

    @property
    def place(self) -> Place | None:
        """Where it is started; None: on this machine as it is."""
        return None if self.attached else place_of(self.opened.treatment.settings)

    @property
    def has_agents(self) -> bool:
        """Has it agents on hosts of their own?"""
        return self.place is not None and bool(self.place.agents)

    @property
    def cpus(self) -> tuple[int, ...]:
        """The cores of this machine of what is started, on all its hosts.

        LabError where there are not so many.
        """
        place, cores = self.place, self.sitting.cores
        if place is None or not place.hosts:
            return dealt(place, cores)
        here = () if place.host else dealt(place, cores)
        near = [host for host in place.hosts.values() if not host.ssh]
        every = {cpu for host in near for cpu in dealt(host, cores)}
        return tuple(sorted(every | {*here}))

    @property
    def captures_after(self) -> bool:
        """Are the distinct queries asked alone after the drive? Else a cold system were warm."""
        cold = self.place is not None and self.place.cold != "no"
        return self.sitting.timed and (self.sitting.captures_after or cold)

    @property
    def placed(self) -> list[Lever]:
        """The levers of its place as they are known, also once it has left it."""
        return self.confines.levers if self.confines else self.left_place

    def why(self) -> str:
        """What its place says of a failure: a host that was lost, memory or a storage that was too
        small; "" if it was nothing of these.
        """
        lost = self.running.lost() if self.running else ""
        killed = lost or (self.confines.killed() if self.confines else "")
        full = self.index.storages.full() if self.index else ""
        below = self.index.storages.full_below() if self.index else ""
        return killed or full or below or self._refused_room()

    def _refused_room(self) -> str:
        """That what it started was refused room, which need not fill a storage; "" if it was not.

        Its words are in its logs. A server may take back what it could not make whole.
        """
        own = self.index.storages.own if self.index else {}
        if not own:
            return ""
        for log in self.run.glob("*.log"):
            if found := _NO_ROOM.search(log.read_bytes()[-_LOG_BYTES:]):
                line = found[0].decode(errors="replace").strip()
                sizes = " and ".join(
                    f"{name} (`size` = {size_words(made.asked.size_bytes)})"
                    for name, made in own.items()
                )
                which = "the storage" if len(own) == 1 else "one of the storages"
                return f"{which} {sizes} has too little room: {line}; make it larger"
        return ""

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
        confines, self.confines = self.confines, None
        self.ready = False
        if running is not None:
            running.stop()
        if confines is not None:
            self.left_place = confines.levers
            for why in confines.leave():
                self.sitting.watch.told(why)


@dataclass
class Run:
    """One trial under way: its session, and what goes on record of it.

    ``spill``: a folder for samples that exceed memory, where the record is: there they must fit.
    ``machine``: the probe, which samples through all phases.
    """

    session: Session
    opened: Opened
    about: Trial
    spill: Path
    machine: Probe
    samples: Samples | None = None
    replies: pa.Table | None = None
    probe: pa.Table | None = None
    sizes: pa.Table | None = None
    statements: pa.Table | None = None
    under_load: pa.Table | None = None
    logs: dict[str, bytes] = field(default_factory=dict)

    @property
    def tables(self) -> dict[str, pa.Table | Samples]:
        """Those of the roles beside the readers, by the name of their file."""
        return {} if self.session.beside is None else self.session.beside.tables

    def fill_in(self) -> None:
        """Put what the opening found out into the record of this trial."""
        session = self.session
        session.made_by = session.made_by or self.about.trial
        captured = session.found.get("captured")
        if isinstance(captured, CapturedAbout) and not captured.made_by:
            session.found["captured"] = structs.replace(captured, made_by=session.made_by)
        for name, value in session.found.items():
            setattr(self.about, name, value)
        if session.beside is not None:
            self.about.beside = [part.run for part in session.beside.parts]
            self.about.roles = self.about.roles[:1] + [each.name for each in self.about.beside]
        self.about.notes += [note for note in session.notes if note not in self.about.notes]
        ends = self.about.server_ends
        ends += [end for end in session.ends if end not in ends]


def _key(*parts: object) -> str:
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
