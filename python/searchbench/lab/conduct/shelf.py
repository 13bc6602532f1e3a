"""What one trial makes and another may use: prepared batches, finished indexes, captured replies.

An index is used again only by trials that would have built the same one: same engine, same
corpus, same levels of every parameter that the index depends on, and (by the study's choice) the
same block. Everything lies in a private folder that goes when the study ends.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from searchbench.corpora.corpus import Corpus
from searchbench.engines.engine import Engine, Level
from searchbench.lab.conduct.ingest import Batches, Ingested, spool
from searchbench.record.trial import Ingest, Terms


@dataclass
class Index:
    """Where an index is. ``done``: its ingest; ``figures`` is None until it is finished.

    ``made_by``: the trial that made it.
    """

    path: Path
    done: Ingested | None = None
    figures: Ingest | None = None
    made_by: str | None = None

    @property
    def finished(self) -> bool:
        """May it be measured?"""
        return self.figures is not None

    def discard(self) -> None:
        """Remove what a failed ingest left."""
        self.done = None
        shutil.rmtree(self.path, ignore_errors=True)


@dataclass
class Captured:
    """Decoded replies to every distinct query, and how long each took on average.

    ``terms``: what the engine makes of the queries' terms, as trial.json keeps it.
    """

    replies: pa.Table
    mean_s: float
    made_by: str
    terms: Terms | None


@dataclass
class Shelf:
    """By key; ``root`` is the private folder."""

    root: Path
    _batches: dict[str, Batches] = field(default_factory=dict)
    _indexes: dict[str, Index] = field(default_factory=dict)
    _captured: dict[str, Captured] = field(default_factory=dict)

    def batches(
        self, engine: Engine, corpus: Corpus, digest: str, params: Mapping[str, Level]
    ) -> Batches:
        """The corpus in the engine's bytes, made once for all levels that the index needs not."""
        key = _key(engine.name, digest, _of_index(engine, params))
        if key not in self._batches:
            self._batches[key] = spool(engine, corpus, self.root / "batches" / key, params)
        return self._batches[key]

    def index(self, engine: Engine, digest: str, params: Mapping[str, Level], scope: str) -> Index:
        """The index for these levels; ``scope`` is the block or the trial that may share it."""
        key = _key(engine.name, digest, _of_index(engine, params), scope)
        if key not in self._indexes:
            self._indexes[key] = Index(self.root / "indexes" / key / "data")
        return self._indexes[key]

    def captured(self, index: Index, params: Mapping[str, Level], queries: str) -> Captured | None:
        """Replies of an earlier trial on the same index, parameters and queries."""
        return self._captured.get(_key(str(index.path), dict(params), queries))

    def capture(
        self, index: Index, params: Mapping[str, Level], queries: str, captured: Captured
    ) -> None:
        """Keep them for the next."""
        self._captured[_key(str(index.path), dict(params), queries)] = captured

    def drop_indexes(self) -> None:
        """A block is over: its indexes will not be asked for again."""
        for index in self._indexes.values():
            shutil.rmtree(index.path.parent, ignore_errors=True)
        self._indexes.clear()
        self._captured.clear()

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.root, ignore_errors=True)


def _of_index(engine: Engine, params: Mapping[str, Level]) -> dict[str, Level]:
    return {p.name: params[p.name] for p in engine.parameters if p.index}


def _key(*parts: object) -> str:
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
