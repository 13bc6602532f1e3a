"""An engine with a corpus in it, for as long as a context lasts; nothing is measured on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from searchbench.corpora.corpus import Corpus
from searchbench.engines.engine import Engine, Parameters
from searchbench.lab.conduct.ingest import Ingested, index_offline, ingest, spool
from searchbench.lab.system.deploy import Deployment


@contextmanager
def serving(
    engine: Engine, params: Parameters, corpus: Corpus, place: Path, cpus: Sequence[int] = ()
) -> Iterator[tuple[Deployment, Ingested]]:
    """Build the index below ``place`` (over the wire or offline) and serve it. LabError."""
    place.mkdir(parents=True, exist_ok=True)
    batches = spool(engine, corpus, place / "batches", params)
    data, run = place / "data", place / "run"
    offline = engine.offline(corpus.schema, params)
    deployment = Deployment(engine, params, data, run, cpus, corpus.schema)
    if offline is not None:
        done = index_offline(offline, batches, data, run)
        with deployment:
            yield deployment, done
        return
    with deployment:
        yield deployment, ingest(deployment, corpus, batches)
