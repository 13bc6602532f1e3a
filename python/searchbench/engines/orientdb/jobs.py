"""What OrientDB does once: import of triples, making an index, backup, restore, opening.

A triple is an edge between two vertices of different names:

    BEGIN;
    LET a = UPDATE Thing SET name = :a UPSERT RETURN AFTER WHERE name = :a;
    LET b = ..;
    LET e = CREATE EDGE Link FROM $a TO $b SET name = :p;
    COMMIT

so both ends are looked up, and made where they are not there, as an importer with a commit for each
triple does. Backup and restore are in ``java/orientdb``, as REST has neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Protocol, runtime_checkable

import orjson

from searchbench.corpora.corpus import Corpus
from searchbench.corpora.ntriples import Triple
from searchbench.engines.engine import Parameters, Request
from searchbench.engines.http_form import split
from searchbench.engines.job import OPENING, Job, Same, Work
from searchbench.engines.levers import described, number
from searchbench.engines.orientdb import query as algebra
from searchbench.engines.orientdb.rest import DATABASE, posted, script, sql, trouble
from searchbench.errors import Unsupported

THING, LINK, NAMES = "Thing", "Link", "things_text"
RESTORED = "restored"
_LONGEST = 10_000  # triples of one commit

JOBS = (
    Job(
        "import",
        "make a graph of the corpus's triples: both ends of each triple are looked up by name, and "
        "created if they do not exist",
        described(
            {
                number("triples", 1, (1, _LONGEST)): "how many triples are written in one "
                "transaction, which is one request",
            }
        ),
        fills=True,
        families=("triples",),
        leaves=("data",),
    ),
    Job(
        "index",
        "make the Lucene index anew, over the names of a graph or the texts of documents",
        leaves=("index",),
    ),
    Job(
        "backup",
        "write the whole database into one zip file; meanwhile the database takes no writes",
        described(
            {
                number("compression", 9, (0, 9)): "compression level of the zip file; 0: none (9: "
                "OrientDB's own default)",
                number("buffer_kb", 1024, (1, 1 << 20)): "size of each write, in kB (1024: "
                "OrientDB's own default)",
            }
        ),
        leaves=("backup",),
    ),
    Job(
        "restore", "read that zip file into a new database", after=("backup",), leaves=("restored",)
    ),
    OPENING,
)


@runtime_checkable
class _Triples(Protocol):
    def triples(self) -> Iterator[Triple]: ...


def create() -> list[bytes]:
    """Database and classes of a graph; names are looked up in a hash index."""
    return [
        posted(f"/database/{DATABASE}/plocal"),
        sql(f"CREATE CLASS {THING} EXTENDS V CLUSTERS 1"),
        sql(f"CREATE PROPERTY {THING}.name STRING"),
        sql(f"CREATE INDEX {THING}.name UNIQUE_HASH_INDEX"),
        sql(f"CREATE CLASS {LINK} EXTENDS E CLUSTERS 1"),
        sql(f"CREATE PROPERTY {LINK}.name STRING"),
    ]


def work(
    job: str, levels: Parameters, params: Parameters, graph: bool, index: Sequence[bytes]
) -> Work:
    """``graph``: there is one, of an import. ``index``: what makes the index of documents."""

    def each(*exchanges: bytes) -> tuple[Request, ...]:
        return tuple(Request((exchange,)) for exchange in exchanges)

    counted = Request((sql(_count(LINK if graph else algebra.CLASS)),))
    durable = _durable(params)
    if job == "import":
        return Work(
            before=each(*create()),
            stream=lambda corpus: _transactions(corpus, int(levels["triples"])),
            counted=counted,
            durable=durable,
        )
    if job == "index":
        if graph:
            metadata = orjson.dumps({"analyzer": _STANDARD}).decode()
            return Work(
                requests=each(
                    sql(
                        f"CREATE INDEX {NAMES} ON {THING} (name) FULLTEXT ENGINE LUCENE METADATA "
                        f"{metadata}"
                    )
                ),
                counted=counted,
            )
        if not index:
            raise Unsupported(
                "the corpus has no text field, so OrientDB has no Lucene index to make"
            )
        dropped = sql(f"DROP INDEX {algebra.INDEX}")
        return Work(before=each(dropped), requests=each(*index), counted=counted)
    if job == "backup":
        size = int(levels["buffer_kb"]) << 10
        path = f"/job/backup/{DATABASE}/{levels['compression']}/{size}"
        return Work(requests=each(posted(path)), counted=counted)
    if job == "restore":
        return Work(
            requests=each(posted(f"/job/restore/{DATABASE}/{RESTORED}")),
            counted=counted,
            same=tuple(
                Same(what, *each(sql(statement), sql(statement, database=RESTORED)))
                for what, statement in _looked_at(graph)
            ),
        )
    if job == "opening":
        return Work(opens=True, counted=counted)
    raise Unsupported(f"OrientDB has no job {job}")


def left(reply: bytes) -> Any:
    """The number of a count, or the rows."""
    (http,) = split(reply)
    if (words := trouble(http)) is not None:
        raise ValueError(words)
    rows = orjson.loads(http.body)["result"]
    counted = len(rows) == 1 and rows[0].keys() >= {algebra.COUNT}
    return rows[0][algebra.COUNT] if counted else rows


_STANDARD = "org.apache.lucene.analysis.standard.StandardAnalyzer"


def _count(name: str) -> str:
    return f"SELECT count(*) AS {algebra.COUNT} FROM {name}"


def _looked_at(graph: bool) -> Iterator[tuple[str, str]]:
    """What of a database is compared with what was restored, as statements."""
    classes = (THING, LINK) if graph else (algebra.CLASS,)
    for name in classes:
        yield f"the number of {name}", _count(name)
    if graph:
        # Names by their edges: every vertex and both ends of every edge are read.
        yield (
            "the names with most links",
            f"SELECT name, in('{LINK}').size() AS i, out('{LINK}').size() AS o FROM {THING} "
            "ORDER BY i DESC, name LIMIT 100",
        )
    else:
        yield (
            "every hundredth document",
            f"SELECT FROM {algebra.CLASS} WHERE {algebra.PLACE} % 100 = 0 "
            f"ORDER BY {algebra.PLACE} LIMIT 1000",
        )


def _transactions(corpus: Corpus, triples: int) -> Iterator[tuple[Request, int]]:
    """So many triples of a corpus in one request."""
    if not isinstance(corpus, _Triples):
        raise Unsupported('the job import needs triples: set [corpus] family = "triples"')
    every = corpus.triples()
    while batch := list(islice(every, triples)):
        yield Request((_transaction(batch),)), len(batch)


def _transaction(batch: Sequence[Triple]) -> bytes:
    lines, values = ["BEGIN"], {}
    known: dict[str, str] = {}
    for i, triple in enumerate(batch):
        for name in (triple.subject, triple.object):
            if name not in known:
                at = known[name] = f"n{len(known)}"
                values[at] = name
                lines.append(
                    f"LET {at} = UPDATE {THING} SET name = :{at} UPSERT RETURN AFTER "
                    f"WHERE name = :{at}"
                )
        values[f"p{i}"] = triple.predicate
        ends = f"FROM ${known[triple.subject]} TO ${known[triple.object]}"
        lines.append(f"LET e{i} = CREATE EDGE {LINK} {ends} SET name = :p{i}")
    return script([*lines, "COMMIT"], values)


def _durable(params: Parameters) -> str:
    """What a kill may take, by the levers that say when the log goes to the disk."""
    ms = params["wal_commit_timeout_ms"]
    synch = "on" if params["commit_synch"] else "off"
    return (
        f"a commit is acknowledged before its log is on disk. The log is written every {ms} ms, so "
        f"a kill may lose the commits of that time; tx.commit.synch is {synch}, and alone it "
        "saves nothing. ENGINES.md says how many commits were lost in our tests"
    )
