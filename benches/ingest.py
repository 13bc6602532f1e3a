"""Ingest through our adapters against each engine's own bulk tool, on the same documents.

One engine is one function of ``BULK``: it is given a place of its own and the corpus, and returns
the engine's name and seconds, ours and the tool's, both until the index can be searched; making
the empty schema is in neither. None where the tool is not here.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median

from benches.figure import Figure
from searchbench.corpora import open_corpus
from searchbench.corpora.corpus import Corpus
from searchbench.engines import ENGINES, defaults
from searchbench.engines.engine import Engine, Request
from searchbench.lab.ingest import batched
from searchbench.lab.install import missing
from searchbench.lab.serve import serving

DOCUMENTS = 30_000
ROUNDS = 3
AT_MOST = 1.2
Pair = tuple[str, float, float]


def figures() -> Iterator[Figure]:
    """Our seconds over the tool's, the median of pairs."""
    corpus = open_corpus({"family": "generated", "documents": DOCUMENTS}, Path.cwd())
    for bulk in BULK:
        pairs: list[Pair] = []
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
                pair = bulk(Path(folder), corpus)
            if pair is None:
                print(f"  {bulk.__name__} is not here: no comparison")
                break
            pairs.append(pair)
        else:
            ratios = [ours / theirs for _name, ours, theirs in pairs]
            name, ours, theirs = pairs[-1]
            yield Figure(
                f"{name}: ingest over that of its own bulk tool", median(ratios), "x",
                at_most=AT_MOST,
                note=f"pairs {min(ratios):.2f}..{max(ratios):.2f}; the last: {ours:.2f} s and "
                f"{theirs:.2f} s for {DOCUMENTS:,} documents",
            )  # fmt: skip


def groonga(place: Path, corpus: Corpus) -> Pair | None:
    """``groonga DB < load.grn``: the same commands, read by the program itself, no server."""
    engine = ENGINES["groonga"]
    if missing(engine):
        return None
    ours = _ours(engine, corpus, place / "ours")
    levels, schema = defaults(engine), corpus.schema
    _commands(place / "schema.grn", engine.create(schema, levels))
    batches = (engine.batch(b, 0, schema, levels) for b in batched(corpus.documents()))
    _commands(place / "load.grn", batches)
    _commands(place / "settle.grn", engine.settle(schema, levels))
    database = place / "db"
    _groonga(["-n", str(database)], place / "schema.grn")
    began = time.perf_counter()
    for name in ("load.grn", "settle.grn"):
        _groonga([str(database)], place / name)
    theirs = time.perf_counter() - began
    documents, terms = (_count(database, table) for table in ("Docs", "Terms"))
    if documents != DOCUMENTS or not terms:
        raise RuntimeError(f"the tool made {documents} documents and {terms} terms")
    return "Groonga", ours, theirs


BULK: tuple[Callable[[Path, Corpus], Pair | None], ...] = (groonga,)


def _ours(engine: Engine, corpus: Corpus, place: Path) -> float:
    """Seconds from the first batch to the settled index, as a study has them on record."""
    with serving(engine, defaults(engine), corpus, place) as (_running, done):
        if done.documents != DOCUMENTS:
            raise RuntimeError(f"{done.refused} documents were refused: {done.refusals}")
        return done.seconds + done.settle_seconds


def _commands(path: Path, requests: Iterable[Request]) -> None:
    """HTTP requests as the program takes them from a file: the URL, then what is to be loaded."""
    with path.open("wb") as file:
        for request in requests:
            for exchange in request.exchanges:
                head, _, body = exchange.partition(b"\r\n\r\n")
                file.write(head.split(b" ", 2)[1] + b"\n" + (body + b"\n" if body else b""))


def _count(database: Path, table: str) -> int:
    """Records of a table."""
    said = subprocess.run(
        ["groonga", str(database), "select", table, "--limit", "0"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return int(json.loads(said)[1][0][0][0])


def _groonga(arguments: list[str], commands: Path) -> None:
    with commands.open("rb") as file:
        said = subprocess.run(
            ["groonga", "--config-path", "/dev/null", *arguments],
            stdin=file, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    wrong = [line[:200] for line in said.splitlines() if '"error"' in line or line[:3] == "[[-"]
    if wrong:
        raise RuntimeError(f"{commands.name}: {wrong[0]}")
