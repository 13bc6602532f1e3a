"""The engine seam: a translator, not a client. It does no I/O.

An engine declares what to start and turns schemas, documents and queries into bytes, and
replies into hits. ``lab`` starts it, and the measuring core sends the bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from searchbench.corpora.corpus import Document, Schema
from searchbench.engines.answer import CacheState, Facts, Hits
from searchbench.engines.bulk import BATCH_DOCUMENTS, requests_of
from searchbench.engines.job import OPENING, Job, Work
from searchbench.engines.native import Native
from searchbench.errors import Unsupported
from searchbench.workload.queries.algebra import Query

Level = str | int | float | bool
Parameters = Mapping[str, Level]
Wire = Literal["frames", "http", "mysql", "sphinxql", "sphinx", "postgres"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One lever of an engine; any of them may be a factor of a study.

    ``index``: the index on disk depends on it, so a change means a new ingest. ``counts``: a study
    gives a number or a list of them, and the level is a text: "4", "1,4".
    """

    name: str
    kind: type[str] | type[int] | type[float] | type[bool]
    default: Level
    doc: str
    choices: tuple[Level, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    index: bool = False
    counts: bool = False


INGEST = Job(
    "ingest",
    "put the documents in, as [ingest] does, and settle",
    (
        Parameter(
            "batch", int, BATCH_DOCUMENTS, "most documents in one request; 1: one by one",
            minimum=1, maximum=1_000_000,
        ),
        Parameter(
            "connections", int, 1, "connections that put documents in at the same time",
            minimum=1, maximum=256,
        ),
    ),
    fills=True,
)  # fmt: skip
"""What every engine has that takes documents over the wire."""

_ALL_FILES: Mapping[str, str] = {"data": "all that it writes"}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Declared facts about an engine, for tables and for refusing early.

    ``cannot``: what of the query algebra it cannot express, by name ("fuzzy", "facets",
    "group_by", "sort", "prefix", "snippets", ...), each with the reason, which is "we could"
    (nobody has written it here), "upstream must" (the engine lacks it) or "never" (against its
    nature).
    ``deviations``: where its answers differ from the declared analysis and algebra, and how.
    ``unread``: levers that cannot be read back from the running engine, each with the reason.
    ``keeps_index``: a new process on the same data directory serves the same index.
    ``writes``: the kinds of files that can be laid on a storage of their own (the names of
    ``places.keys.FILES``), and what each is; nothing where no index is kept.
    ``on_hosts``: it listens where ``{address}`` says, and so can be on a host of its own.
    ``files``: by kind the patterns of its files below ``{data}``, where they lie among others;
    what none of them names is "data".
    ``numbered``: ties go by a number that each document carries, not by the order of arrival.
    ``packages``: Debian packages that bring it; none where it comes with searchbench.
    ``artifacts``: Maven artifacts that bring it, ``group:artifact:version:type``, unpacked below
    ``{engines}``. ``unavailable``: why no registry gives it; then it must be brought along, or
    one that runs is attached to.
    """

    title: str
    home: str
    keeps_index: bool = True
    cannot: Mapping[str, str] = field(default_factory=dict)
    deviations: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    writes: Mapping[str, str] = field(default_factory=lambda: _ALL_FILES)
    on_hosts: bool = False
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    numbered: bool = False
    packages: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    unavailable: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One or more exchanges of prepared bytes, sent one after another on one connection.

    ``operation``: it stops at its first failure, but for its clean-up, and of its exchanges the
    first ``before`` are set-up and the last ``after`` are clean-up, which are not timed.
    """

    exchanges: Sequence[bytes]
    before: int = 0
    after: int = 0
    operation: bool = False


@dataclass(frozen=True, slots=True)
class Companion:
    """A further process of a service: an agent, a node. Its output goes to ``{run}/NAME.log``.

    ``agent``: it may run on another host than the one that is asked; a study gives hosts to those
    in their order. ``asked``: the name of a port of its own where it answers the same requests,
    about what it holds itself; "" where it does not. ``holds``: how many parts of the index.
    ``files``: patterns of the files below ``{data}`` that it opens, which are copied to its host if
    that is another machine; none: all.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    agent: bool = False
    asked: str = ""
    holds: int = 0
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Laid:
    """What makes a service lay a kind of file elsewhere than below ``{data}``.

    ``argv`` is added to its command line, ``first`` to each of the commands that come first.
    """

    argv: tuple[str, ...] = ()
    first: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Writing:
    """Where documents are written and published, if that is not where the service is asked.

    ``port``: the name of a port (``{port:NAME}``) at which a companion beside the one that is asked
    takes what ``engines.write`` declares, over the same protocol. ``ready``: what it answers as
    soon as it takes it.
    """

    port: str
    ready: Request


@dataclass(frozen=True, slots=True)
class Service:
    """What to start; declared, never started here.

    In ``argv``, ``files``, ``env``, ``needs`` and ``first`` these are replaced by the deployment:
    ``{python}``, ``{port}`` (where it is asked), ``{port:NAME}`` (a further free port, the same
    wherever NAME is), ``{address}`` (where the one that is asked listens, on loopback or on its
    host), ``{address:NAME}`` (that of the companion NAME), ``{data}`` (private directory of the
    index), ``{part:N}`` (that of its part N, the first being 0: ``{data}``, or where the place lays
    the part), ``{run}`` (private directory of configuration and logs), ``{hosts}`` (where the
    library hosts of the JVM were built), ``{engines}`` (where engines that come as archives are
    unpacked), ``{backup}`` (private directory of what the job of that name makes), and ``{KIND}``
    in ``laid``.

    ``ready``: a request that is answered ok once the engine serves; its reply decodes to facts.
    ``login``: user, password and database, where the wire has a login.
    ``whole``: over HTTP, byte strings that stand in the first 512 bytes of the body of every
    complete answer; an answer without one of them is a partial result.
    ``files``: path below ``{run}`` to contents. ``needs``: what must be on the machine, a
    program or a path, and the sentence that says how to get it. ``says``: the command whose first
    line of output says which version its programs are, for machines that have each their own.
    ``first``: commands that are run to their end before the start when ``{data}`` is empty.
    ``again``: by process (a companion's name; "": the one that is asked) the commands that are run
    to their end before it is started again after a fault.
    ``silent``: if it takes connections after such a start and answers nothing, what may be the
    reason and its remedy: a clause for after a semicolon.
    ``laid``: by kind of file (other than "data") what is added where the place lays it elsewhere;
    there ``{wal}`` and the like are private, empty directories.
    ``companions``: further processes of the same service, started before the one that is asked.
    ``writing``: where it is written to while it is asked; None: where it is asked.
    ``fallen``: a regular expression for what its log says of a process that answered one connection
    and ended, after which the server goes on; its group ``signal`` or ``code`` says how.
    ``refuses_root``: it will not run as root; where we are root it is given the identity of an
    ordinary user in a user namespace, in which our files are its own.
    """

    argv: tuple[str, ...]
    wire: Wire
    ready: Request
    login: tuple[str, str, str] | None = None
    whole: tuple[bytes, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    needs: Mapping[str, str] = field(default_factory=dict)
    says: tuple[str, ...] = ()
    ready_timeout_s: float = 30.0
    first: tuple[tuple[str, ...], ...] = ()
    again: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    silent: str = ""
    laid: Mapping[str, Laid] = field(default_factory=dict)
    companions: tuple[Companion, ...] = ()
    writing: Writing | None = None
    fallen: str = ""
    refuses_root: bool = False
    stop_signal: Literal["SIGTERM", "SIGINT", "SIGQUIT"] = "SIGTERM"


@dataclass(frozen=True, slots=True)
class Offline:
    """An index that a program of the engine's own makes before the server starts.

    ``commands`` are run to their end, in order; in them and in ``files`` (path below ``{run}``
    to contents) the names of ``Service`` are replaced, and ``{batches}``: the file in which all
    batches follow one another.
    """

    commands: tuple[tuple[str, ...], ...]
    files: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class CountsHits(Protocol):
    """What an engine has beside ``Engine`` if its server counts how often its cache was hit."""

    def cache_request(self) -> Request:
        """Asks for the counters. It must change none of them."""

    def cache_state(self, reply: bytes) -> CacheState:
        """What a reply to ``cache_request`` says; ValueError where it is not one."""


@runtime_checkable
class CountsTaken(Protocol):
    """What an engine has beside ``Engine`` if its server drops documents without an error."""

    def taken(self, reply: bytes) -> int:
        """How many documents of a batch the server took; ValueError where it does not say."""


class Engine(Protocol):
    """One kind of system under test. ``CountsHits`` and ``CountsTaken`` may come beside this.

    Adapters are derived from it: what has a body here is what most of them do.
    """

    @property
    def name(self) -> str:
        """The word that study files use."""

    @property
    def can(self) -> Capabilities:
        """Declared facts."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its levers."""

    def service(self, params: Parameters, schema: Schema) -> Service:
        """What to start for these parameters (complete: every parameter has its level)."""

    @property
    def jobs(self) -> tuple[Job, ...]:
        """What it does once and can be measured doing."""
        return (INGEST, OPENING) if self.can.keeps_index else (INGEST,)

    def work(
        self,
        job: str,
        levels: Parameters,
        schema: Schema,
        params: Parameters,
        done: Sequence[str] = (),
    ) -> Work:
        """What is sent or started for the job with these levers (complete), after those ``done``.

        Unsupported with the reason where the levels do not go together.
        """
        if job == OPENING.name:
            return Work(opens=True)
        if job == INGEST.name:
            return self._ingesting(levels, schema, params)
        raise Unsupported(f"{self.can.title} has no job {job}")

    def _ingesting(self, levels: Parameters, schema: Schema, params: Parameters) -> Work:
        if self.offline(schema, params) is not None:
            raise Unsupported(f"{self.can.title}'s own program makes this index, without requests")
        return Work(
            before=self.create(schema, params),
            stream=lambda corpus: requests_of(self, corpus, params, int(levels["batch"])),
            connections=int(levels["connections"]),
            requests=tuple(self.settle(schema, params)),
        )

    @property
    def native(self) -> Native | None:
        """How it is asked in words of its own over HTTP; None where it is not, or not yet."""
        return None

    def portable(self, params: Parameters) -> bool:
        """Can it be asked queries of the algebra with these levers?"""
        return True

    def left(self, reply: bytes) -> object:
        """What a reply to ``Work.counted`` or of ``Work.same`` says; of the former a number.

        ValueError where it says nothing.
        """
        raise ValueError(f"{self.can.title} does not say what a job left")

    def offline(self, schema: Schema, params: Parameters) -> Offline | None:
        """How the index is made before the server starts; None where it is ingested into."""
        return None

    def create(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """Requests that make an empty index."""

    def batch(
        self, documents: Sequence[Document], start: int, schema: Schema, params: Parameters
    ) -> Request:
        """One request that puts these documents in, the first of them the corpus's ``start``-th.

        ``start`` counts from 0. Of ``params`` only those that the index depends on may matter.
        """

    def settle(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """Commit, refresh, merge: after these the index is as it will be measured."""

    def compile(self, query: Query, schema: Schema, params: Parameters) -> Request:
        """The bytes that ask ``query``; Unsupported with the reason where it cannot."""

    def decode(self, reply: bytes) -> Hits:
        """The hits in a reply to a compiled query; ValueError where it is not one."""

    def facts_request(self) -> Request:
        """Asks the engine about itself."""

    def facts(self, reply: bytes) -> Facts:
        """The facts in a reply to ``facts_request`` or ``Service.ready``."""

    def analyse(self, text: str) -> Request | None:
        """Asks for the terms of ``text`` as the engine sees them; None where it cannot say."""
        return None

    def terms(self, reply: bytes) -> tuple[str, ...]:
        """The terms in a reply to ``analyse``."""
        raise ValueError(f"{self.can.title} does not tell its terms")

    def refused(self, reply: bytes) -> tuple[tuple[str, str], ...]:
        """Documents of a batch that the engine refused: (id, reason); none where it says none.

        One that takes a statement whole or refuses it whole says so in ``check``.
        """
        return ()

    def check(self, reply: bytes) -> str | None:
        """The error text in a reply to create, batch or settle; None where it succeeded."""
