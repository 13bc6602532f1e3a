"""An engine with a corpus in it; and the exact bytes that are sent and received for one query."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from searchbench.corpora.corpus import Corpus, Document, Field, FieldType, Schema
from searchbench.engines import defaults
from searchbench.engines.answer import Hits
from searchbench.engines.engine import Engine, Level, Parameters
from searchbench.engines.features import refuse
from searchbench.lab.conduct.ingest import index_offline, ingest, spool
from searchbench.lab.system.deploy import Deployment
from searchbench.record.trial import Ingest
from searchbench.workload.queries.algebra import Query


@contextmanager
def serving(
    engine: Engine, params: Parameters, corpus: Corpus, place: Path, cpus: Sequence[int] = ()
) -> Iterator[tuple[Deployment, Ingest]]:
    """Build the index below ``place`` (over the wire or offline) and serve it. LabError.

    For as long as the context lasts; nothing is measured on it.
    """
    place.mkdir(parents=True, exist_ok=True)
    batches = spool(engine, corpus, place / "batches", params)
    data, run = place / "data", place / "run"
    offline = engine.offline(corpus.schema, params)
    done = None if offline is None else index_offline(offline, batches, data, run)
    with Deployment(engine, params, data, run, cpus, corpus.schema) as deployment:
        yield deployment, done or ingest(deployment, corpus, batches)


@dataclass(frozen=True, slots=True)
class Wiretap:
    """One query on the wire. ``sent``: the exchanges; ``received``: the reply, whole."""

    version: str
    argv: list[str]
    sent: tuple[bytes, ...]
    received: bytes
    hits: Hits


class Sentences:
    """A corpus of four sentences, for when no corpus is at hand."""

    name = "four sentences"
    schema = Schema(
        (
            Field("text", FieldType.TEXT),
            Field("language", FieldType.KEYWORD),
            Field("year", FieldType.INTEGER),
        )
    )

    def documents(self) -> Iterator[Document]:
        """The same four each time."""
        sentences = (
            ("The quick brown fox jumps over the lazy dog", "en", 1885),
            ("A search engine is as good as its worst answer", "en", 2011),
            ("Der schnelle braune Fuchs", "de", 1900),
            ("Quick answers, quick fox", "en", 2024),
        )
        for number, (text, language, year) in enumerate(sentences, 1):
            yield Document(str(number), {"text": text, "language": language, "year": year})


def tap(
    engine: Engine,
    query: Query,
    params: dict[str, Level] | None = None,
    corpus: Corpus | None = None,
) -> Wiretap:
    """Start ``engine`` on ``corpus`` (None: four sentences), ask ``query``, keep the bytes."""
    documents = corpus or Sentences()
    levels = {**defaults(engine), **(params or {})}
    refuse(engine.can, query)
    request = engine.compile(query, documents.schema, levels)
    with (
        tempfile.TemporaryDirectory(prefix="searchbench-") as folder,
        serving(engine, levels, documents, Path(folder)) as (running, _done),
    ):
        reply = running.ask(request)
        return Wiretap(
            running.facts.version,
            running.argv,
            tuple(request.exchanges),
            reply,
            engine.decode(reply),
        )


def hexdump(data: bytes, limit: int = 4096) -> str:
    """Offset, bytes in hexadecimal, and the printable ones; ``limit`` bytes at most."""
    lines = []
    for at in range(0, min(len(data), limit), 16):
        row = data[at : at + 16]
        pairs = " ".join(f"{b:02x}" for b in row)
        shown = "".join(chr(b) if 32 <= b < 127 else "." for b in row)
        lines.append(f"{at:08x}  {pairs:<47}  |{shown}|")
    if len(data) > limit:
        lines.append(f"... and {len(data) - limit} bytes more")
    return "\n".join(lines)
