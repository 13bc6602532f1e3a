"""What the wire costs an engine: tantivy behind its host against tantivy called directly."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
import orjson

from benches.figure import Figure
from benches.servers import TARGET, closed
from searchbench.corpora import open_corpus
from searchbench.corpora.corpus import Corpus, FieldType
from searchbench.engines import ENGINES, defaults
from searchbench.engines.engine import Request
from searchbench.lab.conduct.ingest import ingest, spool
from searchbench.lab.system.deploy import Deployment
from searchbench.workload.queries.registry import open_queries

DIRECT = TARGET / "examples" / "direct"
DOCUMENTS = 60_000
ROUNDS = 3


def figures() -> Iterator[Figure]:
    """Ingest: documents a second, paired. Queries: the medians' difference."""
    corpus = open_corpus({"family": "generated", "documents": DOCUMENTS}, Path.cwd())
    engine = ENGINES["tantivy"]
    with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
        place = Path(folder)
        batches = spool(engine, corpus, place / "batches")
        lines = place / "documents.jsonl"
        with lines.open("wb") as file:
            for document in corpus.documents():
                file.write(orjson.dumps({"id": document.id, "v": document.values}) + b"\n")
        schema = place / "schema.json"
        fields = [
            {"name": f.name, "type": f.type, "stored": f.stored} for f in corpus.schema.fields
        ]
        schema.write_bytes(orjson.dumps({"fields": fields}))
        ratios = []
        for number in range(ROUNDS):
            direct = _direct_ingest(lines, schema, place / f"direct{number}")
            data = place / f"host{number}"
            with Deployment(engine, defaults(engine), data, place / f"run{number}") as running:
                done = ingest(running, corpus, batches)
            host = done.documents / (done.seconds + done.settle_seconds)
            ratios.append(host / direct)
        yield Figure(
            "tantivy host: ingest over tantivy called directly", median(ratios) * 100, "%",
            at_least=90, note=f"{host:,.0f} and {direct:,.0f} documents/s in the last pair",
        )  # fmt: skip
        yield from _queries(corpus, place)


def _direct_ingest(lines: Path, schema: Path, data: Path) -> float:
    said = subprocess.run(
        [DIRECT, "ingest", lines, "--schema", schema, "--data", data],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    done = json.loads(said)
    return float(done["documents"] / done["settled_s"])


def _queries(corpus: Corpus, place: Path) -> Iterator[Figure]:
    engine = ENGINES["tantivy"]
    queries = open_queries(
        {"distinct": 300, "match": "any"},
        Path.cwd(),
        lambda: (d.values for d in corpus.documents()),
        [f.name for f in corpus.schema.of_type(FieldType.TEXT)],
    )
    requests: list[Request] = [
        engine.compile(q, corpus.schema, defaults(engine)) for q in queries.queries
    ]
    file = place / "queries.jsonl"
    file.write_bytes(b"".join(r.exchanges[0][8:] + b"\n" for r in requests))
    data = place / "direct0"
    differences, direct_us = [], []
    for number in range(ROUNDS):
        said = subprocess.run(
            [DIRECT, "query", file, "--data", data], capture_output=True, text=True, check=True
        ).stdout
        direct = np.array([json.loads(line)["ns"] for line in said.splitlines()])
        cores = sorted(os.sched_getaffinity(0))[:-1]
        run = place / f"query{number}"
        with Deployment(engine, defaults(engine), data, run, cores) as running:
            closed(running.target[1], "frames", requests, 1, 1.0)  # warm-up
            ok = closed(running.target[1], "frames", requests, 1, 3.0, idle="hybrid").ok()
        wire = np.median(ok["done"] - ok["sent"])
        differences.append(float(wire - np.median(direct)) / 1000)
        direct_us.append(float(np.median(direct)) / 1000)
    yield Figure(
        "tantivy host: median query over the wire, more than direct", median(differences), "us",
        at_most=40, note=f"direct median {median(direct_us):.0f} us",
    )  # fmt: skip
