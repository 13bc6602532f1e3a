"""PostgreSQL's own full-text search (tsvector, GIN), over its simple query protocol.

Longer than most files, because it is the whole of the engine's seam.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.engines import postgres_form as form
from searchbench.engines.answer import Facts, Hit, Hits
from searchbench.engines.engine import (
    INGEST,
    Capabilities,
    Engine,
    Laid,
    Level,
    Parameter,
    Parameters,
    Request,
    Service,
)
from searchbench.engines.features import refuse, scored
from searchbench.engines.job import OPENING, Job, Work
from searchbench.engines.levers import choice, described, number, switch
from searchbench.engines.postgresql.query import (
    BETWEEN_PIECES,
    Condition,
    Matcher,
    order,
    passed,
    where,
)
from searchbench.engines.postgresql.table import (
    Layout,
    indexes,
    ingestion,
    removed,
    tables,
    value,
    vector,
)
from searchbench.engines.write import Placed, Publish
from searchbench.errors import Unsupported
from searchbench.workload.queries.algebra import Query

_HOME = "/usr/lib/postgresql"
# Debian has a folder for each version, and none of them on the PATH.
_NEWEST = (
    f"for found in $(ls -d {_HOME}/*/bin/$0 2>/dev/null | sort -rV); "
    'do exec "$found" "$@"; done; '
    f'echo "there is no $0 below {_HOME}" >&2; exit 127'
)
# Each connection has a process. If one crashes, the server ends all of them and begins anew.
_FALLEN = (
    r"(?:server process|client backend) \(PID \d+\) "
    r"(?:was terminated by signal (?P<signal>\d+)|exited with exit code (?P<code>\d+))"
)
_USER, _DATABASE = "searchbench", "postgres"
_EVEN = "'{1,1,1,1}'"
_GROUPS = "groups"
_NO_TABLE = "42P01"
_INDEX = Job(
    "index",
    "make the text indexes, and those of all fields or those that a table declares, anew",
    (
        Parameter(
            "of", str, "", "make only the index on these columns, such as color or a,b; empty: all "
            "indexes"
        ),
    ),
)  # fmt: skip
_WORDS = "attrelid = to_regclass('docs') AND attname = 'words_0'"
_FACTS = f"""\
SELECT current_setting('server_version') AS version,
  pg_size_bytes(current_setting('shared_buffers')) / 1048576 AS shared_buffers_mb,
  pg_size_bytes(current_setting('work_mem')) / 1048576 AS work_mem_mb,
  pg_size_bytes(current_setting('maintenance_work_mem')) / 1048576 AS maintenance_mem_mb,
  current_setting('random_page_cost')::float8 AS random_page_cost,
  current_setting('max_parallel_workers_per_gather')::int AS parallel_workers,
  current_setting('max_connections')::int AS max_connections,
  current_setting('jit')::boolean AS jit,
  current_setting('fsync')::boolean AS fsync,
  current_setting('autovacuum')::boolean AS autovacuum,
  CASE words.attgenerated WHEN 's' THEN 'simple' WHEN '' THEN 'declared' END AS analysis,
  CASE WHEN words.attnum IS NOT NULL THEN coalesce(made.method, 'none') END AS index,
  CASE made.method WHEN 'gin' THEN coalesce(made.fastupdate, true) END AS gin_fastupdate,
  CASE WHEN words.attnum IS NOT NULL THEN to_regclass('docs_id_idx') IS NOT NULL END AS keys,
  pg_relation_size(made.relation) AS words_bytes,
  pg_table_size(to_regclass('docs')) AS table_bytes,
  pg_total_relation_size(to_regclass('docs')) AS index_bytes
FROM (VALUES (0)) AS here
LEFT JOIN pg_attribute words ON {_WORDS}
LEFT JOIN LATERAL (
  SELECT i.indexrelid AS relation, am.amname::text AS method,
    (SELECT option_value::boolean FROM pg_options_to_table(c.reloptions)
     WHERE option_name = 'fastupdate') AS fastupdate
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am am ON am.oid = c.relam
  WHERE i.indrelid = words.attrelid AND i.indkey[0] = words.attnum
) AS made ON true"""
_ANALYSED = f"""\
SELECT word, place
FROM unnest(CASE WHEN (SELECT attgenerated = 's' FROM pg_attribute WHERE {_WORDS})
  THEN to_tsvector('simple', {{plain}}) ELSE {{declared}}::tsvector END
) AS each(word, places), unnest(places) AS place
ORDER BY place, word"""


_FILE = "--file={backup}/dump"
_DUMPS = (
    Job(
        "dump",
        "write the whole database into one file, with pg_dump",
        described(
            {
                number("compression", 6, (0, 9)): "compression level; 0: none (6: pg_dump's own "
                "default)"
            }
        ),
        leaves=("backup",),
    ),
    Job(
        "restore",
        "read that file into an empty database, with pg_restore: documents, then indexes",
        described({number("workers", 1, (1, 64)): "how many connections restore at the same time"}),
        after=("dump",),
    ),
)


def _client(program: str) -> tuple[str, ...]:
    """A program that asks the server, as who it trusts."""
    asked = ("--host=127.0.0.1", "--port={port}", f"--username={_USER}", "--no-password")
    return ("sh", "-c", _NEWEST, program, *asked, f"--dbname={_DATABASE}")


class Postgresql(Engine):
    """One table, one server; the vectors of the text fields beside the fields themselves."""

    name = "postgresql"
    can = Capabilities(
        title="PostgreSQL",
        home="https://www.postgresql.org",
        numbered=True,
        packages=("postgresql",),
        cannot={
            "fuzzy": "we could: the module fuzzystrmatch computes distances, but nothing lists the "
            "words of an index, with which it could compare"
        },
        unread={
            "rank": "never: it is part of each query, not a setting of the server",
            "index_first": "never: nothing in the server shows which was made first",
            "door": "never: nothing in the server shows which statement put the documents in",
        },
        writes={
            "data": "tables, indexes, and the rest of the cluster",
            "wal": "the write-ahead log (pg_wal)",
            "backup": "what the job `dump` makes",
        },
        deviations={
            "scoring": "ts_rank: how often words occur and, if all of them are required, how close "
            "together; no document frequency, no field length; all fields count alike; NOT alone "
            "scores 0",
            "analysis": "a word of more than 2,046 bytes is not indexed",
            "phrase": "found only among the first 16,375 words of a document and the first 256 "
            "positions of each word",
            "document": "refused are texts and keywords with a NUL, keywords of more than 2,600 "
            "bytes, and documents whose words and positions take more than 1 MiB",
        },
    )
    parameters = described(
        {
            number("shared_buffers_mb", 128, (1, (1 << 23) - 1)): "memory for pages that all "
            "connections share (128: PostgreSQL's own default)",
            number("work_mem_mb", 4, (1, 1 << 20)): "memory for each sort, hash and bitmap (4: "
            "PostgreSQL's own default)",
            number(
                "random_page_cost", 1.1, (0.01, 1000)
            ): "the cost that the planner assumes for a page that is not read in sequence. "
            "PostgreSQL's own default is 4, for rotating disks; the planner then looks for "
            "frequent words by reading every document",
            number("parallel_workers", 0, (0, 64)): "how many more processes may work on one query "
            "(PostgreSQL's own default: 2)",
            switch("jit", False): "compile queries that the planner expects to be expensive "
            "(PostgreSQL's own default: true)",
            number("max_connections", 256, (4, 10_000)): "most connections; each is a process",
            choice("rank", "ts_rank", "ts_rank_cd"): "what the score depends on. ts_rank: how "
            "often the words occur; ts_rank_cd: how close together they are (cover density)",
            choice("analysis", "declared", "simple", index=True): "who splits texts into words. "
            "declared: we do, as for all engines; simple: the server's parser with the "
            "configuration simple, whose answers differ",
            choice("index", "gin", "gist", "none", index=True): "how words are indexed. gin: by an "
            "inverted index; gist: by signatures; none: not at all",
            switch("gin_fastupdate", True, index=True): "GIN keeps new entries in a separate list "
            "for a while",
            switch("index_first", False, index=True): "make the indexes before the documents are "
            "put in, instead of after",
            switch("keys", False, index=True): "index the ids; without that, rows can be "
            "inserted but not replaced or deleted",
            choice("door", "copy", "insert", index=True): "how documents are put in: by COPY, or "
            "by one INSERT for each request",
            number("maintenance_mem_mb", 64, (1, 1 << 20), index=True): "memory for building an "
            "index (64: PostgreSQL's own default)",
            switch("fsync", True, index=True): "wait until what is written is on the disk",
            switch("autovacuum", False): "let the server vacuum at times of its own choice; "
            "settling vacuums in any case",
        }
    )

    def service(self, params: Parameters, schema: Schema) -> Service:
        """One server on loopback that trusts whoever can reach it, its database made first."""
        settings: dict[str, Level] = {
            "listen_addresses": "127.0.0.1",
            "port": "{port}",
            "unix_socket_directories": "",  # their paths may have 107 bytes only
            "shared_buffers": f"{params['shared_buffers_mb']}MB",
            "work_mem": f"{params['work_mem_mb']}MB",
            "maintenance_work_mem": f"{params['maintenance_mem_mb']}MB",
            "random_page_cost": params["random_page_cost"],
            "max_parallel_workers_per_gather": params["parallel_workers"],
            "jit": params["jit"],
            "max_connections": params["max_connections"],
            "fsync": params["fsync"],
            "autovacuum": params["autovacuum"],
        }
        return Service(
            argv=(
                *("sh", "-c", _NEWEST, "postgres", "-D", "{data}"),
                *(part for k, v in settings.items() for part in ("-c", f"{k}={_setting(v)}")),
            ),
            wire="postgres",
            ready=self.facts_request(),
            login=(_USER, "", _DATABASE),
            needs={_HOME: "searchbench engines install postgresql"},
            ready_timeout_s=60.0,
            first=(
                (
                    *("sh", "-c", _NEWEST, "initdb", "-D", "{data}", "-U", _USER, "-A", "trust"),
                    # Order by code point, letters as of Unicode.
                    *("-E", "UTF8", "--locale=C", "--lc-ctype=C.UTF-8"),
                    # Settling writes everything to disk.
                    "--no-sync",
                ),
            ),
            laid={"wal": Laid(first=("--waldir={wal}",)), "backup": Laid()},
            fallen=_FALLEN,
            refuses_root=True,
            stop_signal="SIGINT",
        )

    def create(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """The table; its indexes too if they are to be first."""
        first = indexes(schema, params).values() if params["index_first"] else ()
        return [Request((form.query(*tables(schema, params), *first),))]

    def batch(
        self, documents: Sequence[Document], start: int, schema: Schema, params: Parameters
    ) -> Request:
        """One COPY or INSERT; then, one by one, what the server will perhaps refuse."""
        return Request(ingestion(documents, start, schema, params))

    def cannot_write(self, params: Parameters) -> Mapping[str, str]:
        """Rows are found by their ids only where these are indexed."""
        reason = "PostgreSQL's table has no index of ids, by which a row could be found: say "
        return {} if params["keys"] else dict.fromkeys(("update", "delete"), f"{reason}keys = true")

    def update(self, changed: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """One transaction: the rows deleted, and inserted with new numbers."""
        levels = {**params, "door": "insert"}
        documents = [each.document for each in changed]
        gone = (removed(changed),)
        return Request(ingestion(documents, changed[0].at, schema, levels, gone))

    def delete(self, gone: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """One statement."""
        return Request((form.query(removed(gone)),))

    def publish(self, schema: Schema, params: Parameters) -> Publish:
        """Each request is a transaction that commits itself."""
        return Publish("commit, with each request", (), "each request is committed at its end")

    def settle(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """The indexes, if they come after the documents; statistics; everything to disk."""
        last = () if params["index_first"] else indexes(schema, params).values()
        statements = (*last, "VACUUM (ANALYZE) docs", "CHECKPOINT")
        return [Request(tuple(form.query(statement) for statement in statements))]

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The documents; indexes; a dump, and its restoring; opening."""
        return (INGEST, _INDEX, *_DUMPS, OPENING)

    def work(
        self,
        job: str,
        levels: Parameters,
        schema: Schema,
        params: Parameters,
        done: Sequence[str] = (),
    ) -> Work:
        """The indexes are those of ``settle``, dropped before; so is all that is restored."""
        if job == "dump":
            level = f"--compress={levels['compression']}"
            return Work(commands=((*_client("pg_dump"), "--format=custom", level, _FILE),))
        if job == "restore":
            emptied = form.query("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
            return Work(
                before=[Request((emptied,))],
                commands=(
                    (*_client("pg_restore"), "--exit-on-error", f"--jobs={levels['workers']}",
                     "{backup}/dump"),
                ),
                counted=Request((form.query("SELECT count(*) FROM docs"),)),
            )  # fmt: skip
        if job != "index":
            return super().work(job, levels, schema, params, done)
        made = indexes(schema, params, str(levels["of"]))
        if not made:
            of = f" of {levels['of']}" if levels["of"] else ""
            raise Unsupported(f"this corpus has no index{of} to make")
        dropped = f"DROP INDEX {', '.join(map(form.name, made))}"
        return Work(
            before=[Request((form.query(dropped),))],
            requests=tuple(Request((form.query(statement),)) for statement in made.values()),
        )

    def left(self, reply: bytes) -> object:
        """The number of a count; ValueError where there is nothing to count."""
        (answer,) = form.split(reply)
        if answer.errors:
            raise ValueError(str(answer.errors[0]))
        return answer.results[0].rows[0][0]

    def compile(self, query: Query, schema: Schema, params: Parameters) -> Request:
        """A count and a page, then a statement for each facet, in one Query message."""
        refuse(self.can, query)
        matcher = Matcher(Layout.of(schema), params["analysis"] == "declared")
        conditions = [
            matcher.condition(query.match),
            *(passed(part, schema) for part in query.filters),
        ]
        found = where(conditions)
        columns = ["id"]
        if scored(query):
            counted = matcher.scored(query.match)
            ranks = [f"{params['rank']}({_EVEN}, {v}, {words})" for v, words in counted.items()]
            columns.append(f"{' + '.join(ranks) or '0::float4'} AS score")
        columns += [_returned(schema[name]) for name in query.fields if schema[name].stored]
        for name in query.snippets:
            cut = matcher.snippet(query.match, name) if schema[name].stored else None
            columns += [f"{cut} AS {value(name, 's')}"] if cut else []
        statements = [
            f"SELECT count(*) AS total FROM docs{found}",
            f"SELECT {', '.join(columns)} FROM docs{found} "
            f"ORDER BY {order(query)} LIMIT {query.limit} OFFSET {query.offset}",
        ]
        statements += [
            _counted(value(f.field), schema[f.field], conditions, f.limit) for f in query.facets
        ]
        if query.group_by is not None:
            group = schema[query.group_by]
            statements.append(_counted(_GROUPS, group, conditions, query.limit))
        return Request((form.query(*statements),))

    def decode(self, reply: bytes) -> Hits:
        """Hits, facets, groups; PostgreSQL's own error text where it refused."""
        (answer,) = form.split(reply)
        if answer.errors:
            return Hits(total=None, error=str(answer.errors[0]))
        if len(answer.results) < 2 or answer.results[0].columns != ("total",):
            raise ValueError("we asked for a count and a page, but the reply holds something else")
        total, page, *counted = answer.results
        groups = [result.rows for result in counted if result.columns[0] == _GROUPS]
        return Hits(
            total=total.rows[0][0],
            hits=tuple(_hit(dict(zip(page.columns, row, strict=True))) for row in page.rows),
            facets={r.columns[0][2:]: r.rows for r in counted if r.columns[0] != _GROUPS},
            groups=groups[0] if groups else (),
            warnings=tuple(map(str, answer.notices)),
        )

    def facts_request(self) -> Request:
        """The server and its levers; the documents, if there are any."""
        return Request((form.query(_FACTS), form.query("SELECT count(*) FROM docs")))

    def facts(self, reply: bytes) -> Facts:
        """Before ``create`` there are no documents to count, and no index to read back."""
        replies = form.split(reply)
        if len(replies) != 2:
            raise ValueError(f"two replies were asked for, {len(replies)} came")
        server, documents = replies
        missing = [error.fields.get("C") for error in documents.errors] == [_NO_TABLE]
        if errors := server.errors + ([] if missing else documents.errors):
            raise ValueError(str(errors[0]))
        (result,) = server.results
        read = dict(zip(result.columns, result.rows[0], strict=True))
        version, index_bytes = read.pop("version"), read.pop("index_bytes")
        extra = {name: read.pop(name) for name in ("words_bytes", "table_bytes")}
        return Facts(
            version=version,
            documents=None if missing else documents.results[0].rows[0][0],
            index_bytes=index_bytes,
            parameters={k: v for k, v in read.items() if v is not None},
            extra={k: v for k, v in extra.items() if v is not None},
        )

    def analyse(self, text: str) -> Request | None:
        """The words of a vector of this text, made as the table's are."""
        plain = form.literal(text.replace("\0", " "))
        declared = form.literal(vector(("text",), {"text": text}))
        return Request((form.query(_ANALYSED.format(plain=plain, declared=declared)),))

    def terms(self, reply: bytes) -> tuple[str, ...]:
        """The terms in order."""
        (answer,) = form.split(reply)
        if answer.errors:
            raise ValueError(str(answer.errors[0]))
        return tuple(word for word, _place in answer.results[0].rows)

    def refused(self, reply: bytes) -> tuple[tuple[str, str], ...]:
        """With its id: what may be refused goes in by itself."""
        return tuple(
            (str(key), reason)
            for answer in form.split(reply)
            for result in answer.results
            for key, reason in result.rows
            if reason is not None
        )

    def check(self, reply: bytes) -> str | None:
        """The first error of the exchanges; a refused document is not one."""
        errors = (error for answer in form.split(reply) for error in answer.errors)
        return next(map(str, errors), None)


def _setting(level: Level) -> str:
    return ("off", "on")[level] if isinstance(level, bool) else str(level)


def _returned(field: Field) -> str:
    held = value(field.name)
    if field.type is FieldType.KEYWORDS:
        return f"array_to_json(coalesce({value(field.name, 'r')}, {held})) AS {held}"
    return held


def _counted(alias: str, field: Field, conditions: Sequence[Condition], limit: int) -> str:
    """The most frequent values, ties by value."""
    held, source = value(field.name), "docs"
    if field.type is FieldType.KEYWORDS:
        held, source = "v", f"docs, unnest({held}) AS v"
    found = where([*conditions, f"{held} IS NOT NULL"])
    return (
        f"SELECT {held} AS {alias}, count(*) AS number FROM {source}{found} "
        f"GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {limit}"
    )


def _hit(row: dict[str, Any]) -> Hit:
    key, score = row.pop("id"), row.pop("score", None)
    found = {name: held for name, held in row.items() if held is not None}
    return Hit(
        key,
        score,
        {name[2:]: held for name, held in found.items() if name.startswith("v_")},
        {
            name[2:]: tuple(held.split(BETWEEN_PIECES))
            for name, held in found.items()
            if name.startswith("s_")
        },
    )
