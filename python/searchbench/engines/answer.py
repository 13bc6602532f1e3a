"""What an engine's replies are read as: hits, facts of the engine, the state of its cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Hit:
    """One returned document. ``score`` None where the engine gives none (sorted by a field).

    ``snippets``: for each text field that they were asked of, pieces of it around found words,
    which are marked as the engine marks them. How pieces are cut is each engine's own.
    """

    id: str
    score: float | None
    fields: Mapping[str, Any] = field(default_factory=dict)
    snippets: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hits:
    """A decoded reply.

    ``total``: matching documents; ``total_exact`` False where the engine only gives a bound.
    ``facets``: field to (value, count) pairs. ``groups``: (value, count) pairs.
    ``warnings``: what the engine itself said about the answer. ``partial``: it answered from a
    part of the index only. ``error``: the engine's error text where it refused; then there are
    no hits.
    """

    total: int | None
    hits: tuple[Hit, ...] = ()
    total_exact: bool = True
    facets: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    groups: Sequence[tuple[str, int]] = ()
    warnings: tuple[str, ...] = ()
    partial: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What an engine says of itself. ``version`` is never empty: no version, no measurement.

    ``parameters``: levers as the engine reads them back, to verify that they took.
    """

    version: str
    documents: int | None = None
    index_bytes: int | None = None
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CacheCounters:
    """How often a server's cache was hit, by its own count: since its start, or over one drive.

    ``hits`` of ``lookups``. ``source``: who counted, as it stands in a sentence.
    ``single``: a request is one lookup, not one for each shard. ``whole``: of whole answers, not of
    parts of them such as filters. ``asked``: all that could have been looked up, where some is not.
    ``other``: another cache of the same server, which counts where the first is not asked.
    """

    hits: int
    lookups: int
    source: str
    single: bool = True
    other: CacheCounters | None = None
    whole: bool = True
    asked: int | None = None


@dataclass(frozen=True, slots=True)
class CacheState:
    """What a server says of its cache of answers.

    ``counters``: None where it does not count, or counts only a part of its requests.
    ``entries``: how many answers the cache holds, 0 where it is off; None where it does not say.
    """

    counters: CacheCounters | None = None
    entries: int | None = None
