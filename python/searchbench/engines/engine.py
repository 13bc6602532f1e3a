"""The engine seam: a translator, not a client. It does no I/O.

An engine declares what to start and turns schemas, documents and queries into bytes, and
replies into hits. ``lab`` starts it, and the measuring core sends the bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from searchbench.corpora.corpus import Document, Schema
from searchbench.queries.algebra import Query

Level = str | int | float | bool
Parameters = Mapping[str, Level]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One lever of an engine; any of them may be a factor of a study.

    ``index``: the index on disk depends on it, so a change means a new ingest.
    """

    name: str
    kind: type[str] | type[int] | type[float] | type[bool]
    default: Level
    doc: str
    choices: tuple[Level, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    index: bool = False


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Declared facts about an engine, for tables and for refusing early.

    ``cannot``: what of the query algebra it cannot express, by name ("fuzzy", "facets",
    "group_by", "sort", "prefix", ...), each with the reason, which is "we could" (nobody has
    written it here), "upstream must" (the engine lacks it) or "never" (against its nature).
    ``deviations``: where its answers differ from the declared analysis and algebra, and how.
    ``unread``: levers that cannot be read back from the running engine, each with the reason.
    ``keeps_index``: a new process on the same data directory serves the same index.
    ``packages``: Debian packages that bring it; none where it comes with searchbench.
    """

    title: str
    home: str
    keeps_index: bool = True
    cannot: Mapping[str, str] = field(default_factory=dict)
    deviations: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """One or more exchanges of prepared bytes, sent one after another on one connection."""

    exchanges: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Service:
    """What to start; declared, never started here.

    In ``argv``, ``files`` and ``env`` these are replaced by the deployment: ``{python}``,
    ``{port}``, ``{data}`` (private directory of the index), ``{run}`` (private directory of
    configuration and logs), ``{hosts}`` (where the library hosts of the JVM were built).
    ``files``: path below ``{run}`` to contents. ``ready``: a request that is answered ok once
    the engine serves; its reply decodes to facts. ``needs``: what must be on the machine, a
    program or a path, and the sentence that says how to get it.
    """

    argv: tuple[str, ...]
    wire: Literal["frames", "http"]
    ready: Request
    files: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    needs: Mapping[str, str] = field(default_factory=dict)
    ready_timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Hit:
    """One returned document. ``score`` None where the engine gives none (sorted by a field)."""

    id: str
    score: float | None
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hits:
    """A decoded reply.

    ``total``: matching documents; ``total_exact`` False where the engine only gives a bound.
    ``facets``: field to (value, count) pairs. ``groups``: (value, count) pairs.
    ``warnings``: what the engine itself said about the answer. ``error``: the engine's error
    text where it refused; then there are no hits.
    """

    total: int | None
    hits: tuple[Hit, ...] = ()
    total_exact: bool = True
    facets: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    groups: Sequence[tuple[str, int]] = ()
    warnings: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What an engine says of itself. ``version`` is never empty: no version, no measurement.

    ``parameters``: levers as the engine reads them back, to verify that they took.
    """

    version: str
    documents: int | None = None
    index_bytes: int | None = None
    parameters: Mapping[str, Level] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """One kind of system under test."""

    @property
    def name(self) -> str:
        """The word that study files use."""

    @property
    def can(self) -> Capabilities:
        """Declared facts."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its levers."""

    def service(self, params: Parameters) -> Service:
        """What to start for these parameters (complete: every parameter has its level)."""

    def create(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """Requests that make an empty index."""

    def batch(self, documents: Sequence[Document]) -> Request:
        """One request that puts these documents in."""

    def settle(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """Commit, refresh, merge: after these the index is as it will be measured."""

    def compile(self, query: Query, schema: Schema) -> Request:
        """The bytes that ask ``query``; Unsupported with the reason where it cannot."""

    def decode(self, reply: bytes) -> Hits:
        """The hits in a reply to a compiled query; ValueError where it is not one."""

    def facts_request(self) -> Request:
        """Asks the engine about itself."""

    def facts(self, reply: bytes) -> Facts:
        """The facts in a reply to ``facts_request`` or ``Service.ready``."""

    def analyse(self, text: str) -> Request | None:
        """Asks for the terms of ``text`` as the engine sees them; None where it cannot say."""

    def terms(self, reply: bytes) -> tuple[str, ...]:
        """The terms in a reply to ``analyse``."""

    def refused(self, reply: bytes) -> tuple[tuple[str, str], ...]:
        """Documents of a batch that the engine refused: (id, reason)."""

    def check(self, reply: bytes) -> str | None:
        """The error text in a reply to create, batch or settle; None where it succeeded."""
