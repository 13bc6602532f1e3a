"""What the wire costs a library: each host against a direct loop over the same index.

Both on one core, the host asked by so many clients that it does not wait for the next question.
Rates are by CPU second of the process, so that what else runs on the machine is in neither.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from benches.figure import Figure, Missing
from benches.servers import SERVER_CPU, TARGET, closed
from searchbench.corpora import open_corpus
from searchbench.corpora.corpus import FieldType
from searchbench.engines import ENGINES, defaults
from searchbench.engines.engine import Engine, Request
from searchbench.lab.conduct.serve import serving
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.system.names import Places
from searchbench.workload.queries.registry import open_queries

DOCUMENTS = 60_000
CLIENTS = 4
ROUNDS = 3
SECONDS = 4.0
# Until two compilers on one core with the server are done.
WARMUP_S = {"lucene": 35.0, "lucene10": 35.0, "sqlite": 1.0}
Command = Callable[[Engine, Path, Path, float], list[str]]


def figures() -> Iterator[Figure | Missing]:
    """For each library the rate of its host as a share of the direct one."""
    corpus = open_corpus({"family": "generated", "documents": DOCUMENTS}, Path.cwd())
    queries = open_queries(
        {"distinct": 300, "match": "any"},
        Path.cwd(),
        lambda: (d.values for d in corpus.documents()),
        [f.name for f in corpus.schema.of_type(FieldType.TEXT)],
    )
    for name, command in COMMANDS.items():
        engine = ENGINES[name]
        if lacking := missing(engine):
            yield Missing(f"{engine.can.title}: {lacking}")
            continue
        levels = defaults(engine)
        requests = [engine.compile(q, corpus.schema, levels) for q in queries.queries]
        with tempfile.TemporaryDirectory(prefix="searchbench-bench-") as folder:
            place = Path(folder)
            with serving(engine, levels, corpus, place):
                pass
            file = place / "queries.jsonl"
            file.write_bytes(b"".join(r.exchanges[0][8:] + b"\n" for r in requests))
            pairs = [
                (_host(engine, place, requests), _direct(engine, place, file, command))
                for _ in range(ROUNDS)
            ]
        host, direct = pairs[-1]
        yield Figure(
            f"{engine.can.title} host: queries a CPU second over the direct loop",
            median(host / direct for host, direct in pairs) * 100, "%",
            at_least=90, note=f"{host:,.0f} and {direct:,.0f} in the last pair",
        )  # fmt: skip


def _host(engine: Engine, place: Path, requests: list[Request]) -> float:
    with Deployment(
        engine, defaults(engine), place / "data", place / "run", [SERVER_CPU]
    ) as running:
        port = running.target[1]
        closed(port, "frames", requests, CLIENTS, WARMUP_S[engine.name])
        # When the first connections have ended, a JVM compiles some of what it has once more.
        closed(port, "frames", requests, CLIENTS, 2 * SECONDS)
        before = running.process.cpu_times()
        ok = closed(port, "frames", requests, CLIENTS, SECONDS).ok()
        after = running.process.cpu_times()
    return float(len(ok) / (after.user + after.system - before.user - before.system))


def _direct(engine: Engine, place: Path, file: Path, command: Command) -> float:
    argv = ["taskset", "-c", str(SERVER_CPU), *command(engine, place, file, WARMUP_S[engine.name])]
    said = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    return float(said["answered"] / said["cpu_s"])


def _java(engine: Engine, place: Path, file: Path, warmup_s: float) -> list[str]:
    """The command of the host's JVM, with another main class."""
    schema = open_corpus({"family": "generated", "documents": 1}, Path.cwd()).schema
    names = Places(place / "data", place / "run", 0)
    argv = [names.fill(part) for part in engine.service(defaults(engine), schema).argv]
    at = argv.index("searchbench.lucene.Host")
    own = ["searchbench.lucene.Direct", str(file), str(warmup_s), str(SECONDS)]
    return [*argv[:at], *own, *argv[at + 1 :]]


def _sqlite(engine: Engine, place: Path, file: Path, warmup_s: float) -> list[str]:
    program = str(TARGET / "examples" / "direct_sqlite")
    return [program, str(file), str(warmup_s), str(SECONDS), "--data", str(place / "data")]


COMMANDS: dict[str, Command] = {"sqlite": _sqlite, "lucene": _java, "lucene10": _java}
