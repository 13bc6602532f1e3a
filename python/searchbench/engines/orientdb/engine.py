"""OrientDB 3.2, a database of documents and graphs, with its Lucene index, over its REST."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from searchbench.corpora.corpus import Document, FieldType, Schema
from searchbench.engines.answer import Facts, Hit, Hits
from searchbench.engines.engine import (
    INGEST,
    Capabilities,
    Engine,
    Laid,
    Level,
    Parameters,
    Request,
    Service,
)
from searchbench.engines.features import refuse
from searchbench.engines.http_form import HttpReply, split
from searchbench.engines.job import Job, Work
from searchbench.engines.jvm_form import JVM_LEVERS, jvm
from searchbench.engines.levers import choice, described, number, switch
from searchbench.engines.orientdb import jobs
from searchbench.engines.orientdb import query as algebra
from searchbench.engines.orientdb.rest import (
    DATABASE,
    PASSWORD,
    USER,
    asked,
    posted,
    script,
    sql,
    trouble,
)
from searchbench.errors import Unsupported
from searchbench.workload.queries.algebra import Query

_VERSION = "3.2.25"
_TREE = f"{{engines}}/orientdb-community-{_VERSION}"
_ANALYSIS = "{hosts}/orientdb/target/orientdb-analysis.jar"
_ANALYZER = "searchbench.orientdb.DeclaredAnalysis"
# What a place adds stands at the end, and must come before the class that is run.
_START = 'exec "$@" com.orientechnologies.orient.server.OServerMain'
_TYPES = {
    FieldType.TEXT: "STRING",
    FieldType.KEYWORD: "STRING",
    FieldType.KEYWORDS: "EMBEDDEDLIST STRING",
    FieldType.INTEGER: "LONG",
    FieldType.FLOAT: "DOUBLE",
    FieldType.DATE: "LONG",
    FieldType.BOOLEAN: "BOOLEAN",
}
_HTTP = "com.orientechnologies.orient.server.network.protocol.http.ONetworkProtocolHttpDb"
_CONFIG = f"""\
<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<orient-server>
  <handlers/>
  <network>
    <protocols>
      <protocol name="http" implementation="{_HTTP}"/>
    </protocols>
    <listeners>
      <listener protocol="http" ip-address="127.0.0.1" port-range="{{port}}">
        <commands>
          <command pattern="POST|job/*" implementation="searchbench.orientdb.Jobs"/>
        </commands>
      </listener>
    </listeners>
  </network>
  <storages/>
  <users>
    <user name="{USER}" password="{PASSWORD}" resources="*"/>
  </users>
  <properties>
    <entry name="server.database.path" value="{{data}}"/>
    <entry name="server.cache.staticResources" value="false"/>
  </properties>
</orient-server>
"""
_BACKUP = "-Dsearchbench.backup={backup}"
_NOT_TOLD = "upstream must: its REST interface reports nothing about its JVM"
# What a lever is called in the server: the key of its configuration, as it takes and tells it.
_KEYS = {
    "disk_cache_mb": "storage.diskCache.bufferSize",
    "commit_synch": "tx.commit.synch",
    "wal_commit_timeout_ms": "storage.wal.commitTimeout",
    "compression": "storage.compressionMethod",
    "cluster_version": "storage.cluster.version",
}
_SETTINGS = {
    # Connections of a load may be idle; a batch may be long.
    "network.socketTimeout": "3600000",
    "network.http.maxLength": "1000000000",
    "profiler.enabled": "false",
}


class OrientDB(Engine):
    """One server, one database, one class of documents with one Lucene index over its texts."""

    name = "orientdb"
    can = Capabilities(
        title="OrientDB",
        home="https://orientdb.org",
        artifacts=(f"com.orientechnologies:orientdb-community:{_VERSION}:tar.gz",),
        cannot={
            "fuzzy": "upstream must: its Lucene syntax takes only the 50 nearest terms, so totals "
            "would be too small",
            "snippets": "we could: SEARCH_CLASS takes `highlight` in its metadata",
            "refusal": "upstream must: a value that does not fit rolls back its whole batch, and "
            "OrientDB does not say which document had it; so the ingest fails",
        },
        unread={
            "heap_mb": _NOT_TOLD,
            "gc": _NOT_TOLD,
            "index_first": "never: nothing in the server shows which was made first",
        },
        deviations={
            "scoring": "BM25 (k1 1.2, b 0.75), field lengths rounded to one byte; several fields "
            "add up; a prefix counts 1 for each field, NOT alone 0",
            "analysis": "letters and digits as of Unicode 13 (Java 17); a word of more than "
            "10,922 UTF-16 units is not indexed",
            "tie": "equal scores are in the order of Lucene's documents, which merges may change",
            "terms": "a query of more than 1,024 terms is refused; a term counts once for each "
            "field",
        },
        writes={
            "data": "documents, indexes (Lucene's among them), and the rest of the databases",
            "wal": "the write-ahead log (*.wal)",
            "backup": "what the job `backup` makes",
        },
        files={
            "system": ("OSystem/*",),
            "restored": (f"{jobs.RESTORED}/*",),
            "wal": ("*.wal",),
            "index": ("*/luceneIndexes/*",),
        },
    )
    parameters = described(
        {
            number("disk_cache_mb", 256, (64, 1048576)): "memory for pages of the database, in "
            "addition to the heap (storage.diskCache.bufferSize; OrientDB's own default: much of "
            "the machine's memory)",
            switch(
                "commit_synch", False
            ): "synchronize after a commit (tx.commit.synch); in our tests this alone saved "
            "nothing from a kill",
            number("wal_commit_timeout_ms", 1000, (1, 3_600_000)): "the log is written to disk at "
            "least this often (storage.wal.commitTimeout); a kill loses what was committed since",
            choice("compression", "nothing", "gzip", index=True): "compression of the documents' "
            "pages (storage.compressionMethod); gzip needs cluster_version 0 or 1",
            choice("cluster_version", 2, 1, 0, index=True): "format of the documents' files "
            "(storage.cluster.version); only 0 and 1 compress",
            switch("index_first", False, index=True): "make the Lucene index before the documents "
            "are put in, instead of after",
            **JVM_LEVERS,
        }
    )

    def service(self, params: Parameters, schema: Schema) -> Service:
        """A JVM. What its own launcher would take from the machine is spelled out."""
        if params["compression"] != "nothing" and params["cluster_version"] == 2:
            raise Unsupported(
                "with cluster_version = 2 OrientDB silently compresses nothing; set "
                'cluster_version = 1, or compression = "nothing"'
            )
        settings = {key: _spelt(params[lever]) for lever, key in _KEYS.items()} | _SETTINGS
        return Service(
            argv=(
                *("sh", "-c", _START, "orientdb", *jvm(params)),
                *("-Djna.nosys=true", "-Djava.awt.headless=true", "-Dfile.encoding=UTF-8"),
                *(f"-D{key}={value}" for key, value in settings.items()),
                "-Dorientdb.config.file={run}/orientdb-server-config.xml",
                *("-DORIENTDB_HOME={run}", _BACKUP),
                *("-cp", f"{_ANALYSIS}:{_TREE}/lib/*"),
            ),
            wire="http",
            ready=self.facts_request(),
            files={"orientdb-server-config.xml": _CONFIG},
            env={"ORIENTDB_HOME": "{run}", "ORIENTDB_ROOT_PASSWORD": PASSWORD},
            needs={
                "java": "install Java 17 (Debian: apt-get install openjdk-17-jdk-headless maven)",
                f"{_TREE}/lib": "`searchbench engines install orientdb` gets it from Maven Central",
                _ANALYSIS: "`make java` builds it",
            },
            ready_timeout_s=90.0,
            laid={
                "wal": Laid(argv=("-Dstorage.wal.path={wal}",)),
                "backup": Laid(argv=(_BACKUP,)),
            },
        )

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Import of triples, index, backup, restore, opening."""
        return (INGEST, *jobs.JOBS)

    def work(
        self,
        job: str,
        levels: Parameters,
        schema: Schema,
        params: Parameters,
        done: Sequence[str] = (),
    ) -> Work:
        """As ``jobs`` has it; after an import there is a graph, and else documents."""
        if job == INGEST.name:
            return super().work(job, levels, schema, params, done)
        return jobs.work(job, levels, params, "import" in done or job == "import", _index(schema))

    def left(self, reply: bytes) -> object:
        """A count, or rows."""
        return jobs.left(reply)

    def create(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """Database, class, properties; one file of documents, so that they keep their order."""
        made = [
            posted(f"/database/{DATABASE}/plocal"),
            sql(f"CREATE CLASS {algebra.CLASS} CLUSTERS 1"),
            sql(f"CREATE PROPERTY {algebra.CLASS}.{algebra.ID} STRING"),
            sql(f"CREATE PROPERTY {algebra.CLASS}.{algebra.PLACE} LONG"),
        ]
        made += [
            sql(f"CREATE PROPERTY {algebra.CLASS}.{algebra.own(f.name)} {_TYPES[f.type]}")
            for f in schema.fields
        ]
        if params["index_first"]:
            made += _index(schema)
        return [Request((exchange,)) for exchange in made]

    def batch(
        self, documents: Sequence[Document], start: int, schema: Schema, params: Parameters
    ) -> Request:
        """One transaction of creations; the last is first, since a commit turns them round."""
        operations = [
            {
                "type": "c",
                "record": {
                    "@class": algebra.CLASS,
                    algebra.ID: document.id,
                    algebra.PLACE: place,
                    **{algebra.own(name): value for name, value in document.values.items()},
                },
            }
            for place, document in reversed(list(enumerate(documents, start)))
        ]
        body = {"transaction": True, "operations": operations}
        return Request((posted(f"/batch/{DATABASE}", orjson.dumps(body)),))

    def settle(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """The Lucene index, if it is to come after the documents."""
        made = [] if params["index_first"] else _index(schema)
        return [Request((exchange,)) for exchange in made]

    def compile(self, query: Query, schema: Schema, params: Parameters) -> Request:
        """One script, whose answer is one row; or one statement, where that tells the total."""
        refuse(self.can, query)
        wanted = algebra.Asked(query, schema)
        if wanted.total_comes_with_hits and not query.facets and query.group_by is None:
            return Request((sql(wanted.hits(), wanted.parameters),))
        lines, parts = [f"LET hits = {wanted.hits()}"], ['"hits": $hits']
        if not wanted.total_comes_with_hits:
            lines.append(f"LET total = {wanted.total()}")
            parts.append('"total": $total')
        counted = [(f"f_{algebra.own(f.field)}", f.field, f.limit) for f in query.facets]
        if query.group_by is not None:
            counted.append(("g", query.group_by, query.limit))
        for label, name, limit in counted:
            lines.append(f"LET {label} = {wanted.counted(name, limit)}")
            parts.append(f'"{label}": ${label}')
        lines.append(f"RETURN {{{', '.join(parts)}}}")
        return Request((script(lines, wanted.parameters),))

    def decode(self, reply: bytes) -> Hits:
        """Hits, facets, groups; the server's own words where it refused."""
        (http,) = split(reply)
        if (words := trouble(http)) is not None:
            return Hits(total=None, error=words)
        result = orjson.loads(http.body)["result"]
        # A row of a script holds everything, a row of a statement is a hit.
        answer = result[0]["value"] if result and "value" in result[0] else {"hits": result}
        rows = answer["hits"]
        counted = {name: _pairs(found) for name, found in answer.items() if name[0] in "fg"}
        if "total" in answer:
            total = answer["total"][0][algebra.COUNT]
        else:
            total = rows[0][algebra.TOTAL] if rows else 0
        return Hits(
            total=total,
            hits=tuple(map(_hit, rows)),
            facets={algebra.field(k[2:]): pairs for k, pairs in counted.items() if k != "g"},
            groups=counted.get("g", ()),
        )

    def facts_request(self) -> Request:
        """The server with its settings, and the database."""
        return Request((asked("/server/version"), asked("/server"), asked(f"/database/{DATABASE}")))

    def facts(self, reply: bytes) -> Facts:
        """Before ``create`` there is no database to count in. ValueError where these are not it."""
        replies = split(reply)
        if len(replies) != 3:
            raise ValueError(f"three replies were asked for, {len(replies)} came")
        version, server, database = replies
        if (words := trouble(version) or trouble(server)) is not None:
            raise ValueError(words)
        answer = orjson.loads(server.body)
        settings = {each["key"]: each.get("value") for each in answer["globalProperties"]}
        return Facts(
            version=version.body.decode().strip('"'),
            documents=_documents(database),
            parameters={lever: _level(lever, settings[key]) for lever, key in _KEYS.items()},
        )

    def check(self, reply: bytes) -> str | None:
        """The first error of the exchanges."""
        return next((t for t in map(trouble, split(reply)) if t is not None), None)


def _index(schema: Schema) -> list[bytes]:
    """The Lucene index over all text fields; none where there is no text."""
    columns = [algebra.own(f.name) for f in schema.of_type(FieldType.TEXT)]
    if not columns:
        return []
    # By default texts are kept a second time for sorting, of which Lucene takes 32,766 bytes.
    about = {"default": _ANALYZER, "index": _ANALYZER, "query": _ANALYZER, "*_index_sorted": False}
    metadata = orjson.dumps(about).decode()
    return [
        sql(
            f"CREATE INDEX {algebra.INDEX} ON {algebra.CLASS} ({', '.join(columns)}) FULLTEXT "
            f"ENGINE LUCENE METADATA {metadata}"
        )
    ]


def _spelt(level: Level) -> str:
    return str(level).lower() if isinstance(level, bool) else str(level)


def _hit(row: Mapping[str, Any]) -> Hit:
    fields = {
        algebra.field(name): value
        for name, value in row.items()
        if name.startswith("v_") and value is not None
    }
    return Hit(row[algebra.ID], row.get(algebra.SCORE), fields)


def _pairs(rows: Iterable[Mapping[str, Any]]) -> list[tuple[Any, int]]:
    return [(row[algebra.VALUE], row[algebra.COUNT]) for row in rows]


def _documents(http: HttpReply) -> int | None:
    if http.status != 200:
        return None
    classes = orjson.loads(http.body)["classes"]
    return next((int(c["records"]) for c in classes if c["name"] == algebra.CLASS), None)


def _level(lever: str, told: Any) -> Level:
    """A lever as the server tells it, in its own type."""
    if lever == "commit_synch":
        return str(told).lower() == "true"
    return str(told) if lever == "compression" else int(told)
