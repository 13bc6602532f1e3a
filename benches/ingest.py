"""Ingest through our adapters against each engine's own bulk tool, on the same documents.

One engine is one function of ``BULK``: it is given a place of its own and the corpus, and returns
the engine's name and seconds, ours and the tool's, both until the index can be searched; making
the empty schema is in neither. None where the tool is not here. Sphinx is not among them: its
adapter runs indexer, which is the tool.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

from benches.figure import Figure
from searchbench.corpora import open_corpus
from searchbench.corpora.corpus import Corpus, FieldType, Schema
from searchbench.engines import ENGINES, defaults, mysql_form
from searchbench.engines.bulk import batched
from searchbench.engines.engine import Engine, Level, Parameters, Request
from searchbench.engines.mariadb import table as table
from searchbench.lab.conduct.serve import serving
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment

DOCUMENTS = 30_000
ROUNDS = 3
AT_MOST = 1.2
_BULK_BYTES = 10_000_000
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


def mariadb(place: Path, corpus: Corpus) -> Pair | None:
    """``LOAD DATA INFILE``, one a table, into the same tables of the same server."""
    return _mariadb(place, corpus, "insert", "MariaDB")


def mariadb_load(place: Path, corpus: Corpus) -> Pair | None:
    """The same, where our files go over the wire, a batch in each."""
    return _mariadb(place, corpus, "load", "MariaDB, LOAD DATA LOCAL")


def _mariadb(place: Path, corpus: Corpus, door: str, title: str) -> Pair | None:
    engine = ENGINES["mariadb"]
    if missing(engine):
        return None
    ours = _ours(engine, corpus, place / "ours", door=door)
    schema, levels = corpus.schema, defaults(engine)
    with _empty(engine, corpus, place / "theirs") as server:
        loads = []
        for name, columns, rows in _mariadb_rows(corpus):
            file = server.run / f"{name}.tsv"  # the only place that the server reads files from
            file.write_bytes(
                b"".join("\t".join(map(_escaped, row)).encode() + b"\n" for row in rows)
            )
            loads.append(
                f"LOAD DATA INFILE '{file}' INTO TABLE {name} CHARACTER SET utf8mb4 ({columns})"
            )
        began = time.perf_counter()
        for load in loads:
            reply = server.ask(Request((mysql_form.query(load),)), timeout_s=600)
            if (trouble := engine.check(reply)) is not None:
                raise RuntimeError(f"LOAD DATA: {trouble}")
        _settle(server, schema, levels)
        theirs = time.perf_counter() - began
        _whole(server)
    return title, ours, theirs


def postgresql(place: Path, corpus: Corpus) -> Pair | None:
    """psql's ``\\copy`` of one file into the same table of the same server."""
    engine = ENGINES["postgresql"]
    if missing(engine):
        return None
    ours = _ours(engine, corpus, place / "ours")
    schema, levels = corpus.schema, defaults(engine)
    statement = ""
    with (place / "rows").open("wb") as file:
        start = 0
        for batch in batched(corpus.documents()):
            for kind, body in _messages(engine.batch(batch, start, schema, levels).exchanges[0]):
                if kind == b"Q":
                    statement = body.rstrip(b"\0").decode()
                elif kind == b"d":
                    file.write(body)
            start += len(batch)
    copy = "\\" + statement.replace("COPY", "copy", 1).replace("STDIN", f"'{place / 'rows'}'")
    with _empty(engine, corpus, place / "theirs") as server:
        host, port = server.target
        login = server.service.login
        assert login is not None
        psql = Path(server.process.exe()).parent / "psql"
        ask = [psql, "-q", "-h", host, "-p", str(port), "-U", login[0], "-d", login[2], "-c", copy]
        began = time.perf_counter()
        subprocess.run(ask, check=True, stdin=subprocess.DEVNULL)
        _settle(server, schema, levels)
        theirs = time.perf_counter() - began
        _whole(server)
    return "PostgreSQL", ours, theirs


def opensearch(place: Path, corpus: Corpus) -> Pair | None:
    """``_bulk`` as its documentation recommends, bodies of 5 to 15 MB, one after another."""
    engine = ENGINES["opensearch"]
    if missing(engine):
        return None
    ours = _ours(engine, corpus, place / "ours")
    schema, levels = corpus.schema, defaults(engine)
    bodies, body, start, path = [], b"", 0, ""
    for batch in batched(corpus.documents()):
        head, _, part = (
            engine.batch(batch, start, schema, levels).exchanges[0].partition(b"\r\n\r\n")
        )
        path = head.split(b" ", 2)[1].decode()
        body, start = body + part, start + len(batch)
        if len(body) > _BULK_BYTES:
            bodies.append(body)
            body = b""
    bodies += [body] if body else []
    with _empty(engine, corpus, place / "theirs") as server:
        client = HTTPConnection(*server.target)
        began = time.perf_counter()
        for each in bodies:
            client.request("POST", path, each, {"Content-Type": "application/x-ndjson"})
            answer = json.loads(client.getresponse().read())
            if answer.get("errors"):
                raise RuntimeError("_bulk refused a document")
        _settle(server, schema, levels)
        theirs = time.perf_counter() - began
        _whole(server)
        client.close()
    return "OpenSearch", ours, theirs


BULK: tuple[Callable[[Path, Corpus], Pair | None], ...] = (
    groonga,
    mariadb,
    mariadb_load,
    postgresql,
    opensearch,
)


@contextmanager
def _empty(engine: Engine, corpus: Corpus, place: Path) -> Iterator[Deployment]:
    """A server with the tables of the corpus and nothing in them."""
    levels = defaults(engine)
    where = (place / "data", place / "run")
    with Deployment(engine, levels, *where, schema=corpus.schema) as server:
        for request in engine.create(corpus.schema, levels):
            if (trouble := engine.check(server.ask(request))) is not None:
                raise RuntimeError(f"create: {trouble}")
        yield server


def _settle(server: Deployment, schema: Schema, levels: Parameters) -> None:
    for request in server.engine.settle(schema, levels):
        if (trouble := server.engine.check(server.ask(request, timeout_s=600))) is not None:
            raise RuntimeError(f"settle: {trouble}")


def _whole(server: Deployment) -> None:
    documents = server.engine.facts(server.ask(server.engine.facts_request())).documents
    if documents != DOCUMENTS:
        raise RuntimeError(f"the tool made {documents} documents")


def _messages(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kind and body of PostgreSQL's messages."""
    at = 0
    while at < len(data):
        length = int.from_bytes(data[at + 1 : at + 5], "big")
        yield data[at : at + 1], data[at + 5 : at + 1 + length]
        at += 1 + length


def _mariadb_rows(corpus: Corpus) -> Iterator[tuple[str, str, list[list[str | None]]]]:
    """Table, columns, and rows as LOAD DATA takes them: what the adapter's statements hold."""
    schema = corpus.schema
    names = [table.NUMBER, "id"]
    for field in schema.fields:
        if field.type is FieldType.TEXT:
            names.append(table.text_column(schema, field.name, "declared"))
        if field.type is not FieldType.TEXT or field.stored:
            names.append(table.column(schema, field.name))
    rows: list[list[str | None]] = []
    lists: dict[str, list[list[str | None]]] = {}
    for number, document in enumerate(corpus.documents(), 1):
        row: list[str | None] = [str(number), document.id]
        for field in schema.fields:
            value = document.values.get(field.name)
            if field.type is FieldType.TEXT:
                row.append(None if value is None else table.indexed(value))
            if field.type is FieldType.KEYWORDS and value is not None:
                held = lists.setdefault(table.list_table(schema, field.name), [])
                held += [[str(number), str(i), v] for i, v in enumerate(dict.fromkeys(value))]
                value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            if field.type is not FieldType.TEXT or field.stored:
                row.append(
                    None
                    if value is None
                    else str(int(value) if value is True or value is False else value)
                )
        rows.append(row)
    yield table.TABLE, ",".join(names), rows
    for name, held in lists.items():
        yield name, f"{table.NUMBER},place,value", held


def _escaped(cell: str | None) -> str:
    if cell is None:
        return "\\N"
    return cell.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\0", "\\0")


def _ours(engine: Engine, corpus: Corpus, place: Path, **levels: Level) -> float:
    """Seconds from the first batch to the settled index, as a study has them on record."""
    with serving(engine, {**defaults(engine), **levels}, corpus, place) as (_running, done):
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
