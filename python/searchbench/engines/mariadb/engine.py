"""MariaDB's full-text search, in InnoDB, Aria or MyISAM, over the MySQL protocol.

Longer than most files, because it is the whole of the engine's seam.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from searchbench.corpora.corpus import Document, Schema
from searchbench.engines.answer import CacheCounters, CacheState, Facts, Hit, Hits
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
from searchbench.engines.job import OPENING, Job, Work
from searchbench.engines.levers import choice, described, number, switch
from searchbench.engines.mariadb import indexes, table
from searchbench.engines.mariadb import query as algebra
from searchbench.engines.mysql_form import Result, quoted, refusal, request, split
from searchbench.engines.write import Placed, Publish
from searchbench.spec import show
from searchbench.workload.queries.algebra import Query

_MIB = 1 << 20
# System tables are in Aria, so both are there whatever holds the documents.
_LOGS = ("--innodb-log-group-home-dir={wal}", "--aria-log-dir-path={wal}")
# The cache of each storage engine: the variable, and how the server's option is called.
_CACHE = {
    "innodb": "innodb_buffer_pool_size",
    "aria": "aria_pagecache_buffer_size",
    "myisam": "key_buffer_size",
}
_PROBE = "probe"
_READ_BACK = (
    "version",
    "thread_handling",
    "innodb_flush_log_at_trx_commit",
    "innodb_ft_enable_stopword",
    "ft_stopword_file",
    "innodb_ft_min_token_size",
    "ft_min_word_len",
    "innodb_ft_max_token_size",
    "ft_max_word_len",
    "query_cache_type",
    "sql_mode",
    *_CACHE.values(),
)
_CACHE_ASKED = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'query_cache_type', "
    "'query_cache_size')",
    "SHOW GLOBAL STATUS WHERE Variable_name IN ('Qcache_hits', 'Com_select')",
)
_LONGEST = 84  # characters of a term; no server takes more
_SQL_MODE = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"
_KINDS: dict[str, Callable[[str], Any]] = {
    "s": str,
    "i": int,
    "f": float,
    "b": lambda text: text != "0",
    "l": json.loads,
}


_DUMPS = (
    Job(
        "dump",
        "write the whole database as statements into one file, with mariadb-dump",
        leaves=("backup",),
    ),
    Job(
        "restore",
        "read that file into an empty database, with mariadb: each table with its indexes, then "
        "its rows",
        after=("dump",),
    ),
)


def _client(program: str) -> tuple[str, ...]:
    """A program that asks the server; it reads no file of the machine."""
    asked = ("--protocol=tcp", "--host=127.0.0.1", "--port={port}", "--user=root")
    return (program, "--no-defaults", "--max-allowed-packet=1G", *asked)


class MariaDB(Engine):
    """One server of its own, one table for the documents, one for each list of keywords."""

    name = "mariadb"
    can = Capabilities(
        title="MariaDB",
        home="https://mariadb.org",
        numbered=True,
        packages=("mariadb-server",),
        cannot={
            "fuzzy": "upstream must: the full-text search does not find similar terms; SOUNDS LIKE "
            "and wildcards are something else",
            "snippets": "upstream must: it does not report where in a text the words are",
        },
        unread={
            "mode": "never: it is part of each query, not a setting of the server",
            "index_first": "never: nothing in the server shows which was made first",
            "door": "never: nothing in the server shows which statement put the documents in",
        },
        writes={
            "data": "tables, indexes, and the rest of the data directory",
            "wal": "the redo log of InnoDB and the log of Aria; MyISAM has none",
            "backup": "what the job `dump` makes",
        },
        deviations={
            "scoring": "InnoDB: term frequency times the square of log10(documents / documents "
            "with the term), added up, no field length; Aria and MyISAM in boolean mode: a number "
            "for each term that matches, no frequencies",
            "analysis": "only the first 83 indexed characters of a term count (a letter outside "
            "Unicode 3.2 or the first plane takes 6)",
            "keyword": "at most 255 characters; a document with a longer one is refused",
            "natural": "mode = natural with Aria or MyISAM: a term that more than half of the "
            "documents contain counts as absent, so totals for any of several terms are too small",
        },
    )
    parameters = described(
        {
            choice("storage", *table.STORAGE, index=True): "the storage engine of all tables; each "
            "of the three has its own full-text search",
            choice("mode", "boolean", "natural"): "the mode in which queries for any of several "
            "terms are asked; all others are asked in boolean mode, because only it can express "
            "them",
            choice("analysis", *table.COLLATION, index=True): "what is indexed. declared: a copy "
            "of the text that consists of the declared terms; engine: the text itself, without "
            "regard to case and accents (utf8mb4_general_ci)",
            switch("stop_words", False, index=True): "leave out the built-in stop words of the "
            "storage engine",
            number("min_characters", 1, (1, 16), index=True): "shorter terms are not indexed "
            "(MariaDB's own default: 3 in InnoDB, else 4)",
            number("buffer_pool_mb", 128, (8, 1 << 20)): "memory for pages: InnoDB's buffer pool, "
            "Aria's page cache, MyISAM's key buffer",
            choice("flush", 0, 1, 2, default=1): "innodb_flush_log_at_trx_commit, when the log is "
            "written. 1: to disk at every commit; 2: to the kernel at every commit; 0: once a "
            "second. Aria and MyISAM ignore it",
            choice("threads", "one-thread-per-connection", "pool-of-threads"): "how connections "
            "are served (thread_handling)",
            switch("index_first", False, index=True): "make the text indexes, and those that a "
            "table declares, before the documents are put in, instead of after",
            choice("door", "insert", "load", index=True): "how documents are put in: by one INSERT "
            "for each request, or by LOAD DATA LOCAL INFILE",
        }
    )

    def service(self, params: Parameters, schema: Schema) -> Service:
        """One server, private to its directory and loopback; no file of the machine is read."""
        stop_words = bool(params["stop_words"])
        shortest = str(params["min_characters"])
        cache = _CACHE[str(params["storage"])]
        options = {
            "datadir": "{data}",
            "bind-address": "127.0.0.1",
            "port": "{port}",
            "socket": "mariadb.sock",  # in the data directory: a path may have 107 bytes
            "pid-file": "mariadb.pid",
            # A server that starts deletes temporary tables in here, whosever they are.
            "tmpdir": "{run}",
            "init-file": "{run}/init.sql",
            "secure-file-priv": "{run}",
            "local-infile": "1",
            "performance-schema": "OFF",
            # A cold start is to be cold.
            "innodb-buffer-pool-dump-at-shutdown": "OFF",
            "innodb-buffer-pool-load-at-startup": "OFF",
            "max-connections": "4096",
            "max-allowed-packet": "1G",
            "character-set-server": "utf8mb4",
            "sql-mode": _SQL_MODE,
            "max-sort-length": "4096",  # a keyword of 255 characters in full
            "query-cache-type": "OFF",
            "query-cache-size": "0",
            "thread-handling": params["threads"],
            cache.replace("_", "-"): int(params["buffer_pool_mb"]) * _MIB,
            "innodb-log-file-size": "96M",
            "innodb-sort-buffer-size": "16M",
            "innodb-flush-log-at-trx-commit": params["flush"],
            "innodb-ft-enable-stopword": int(stop_words),
            "innodb-ft-min-token-size": shortest,
            "innodb-ft-max-token-size": _LONGEST,
            "ft-min-word-len": shortest,
            "ft-max-word-len": _LONGEST,
            **({} if stop_words else {"ft-stopword-file": ""}),
        }
        return Service(
            argv=(
                *("mariadbd", "--no-defaults", "--skip-name-resolve", "--skip-log-bin"),
                *(f"--{name}={value}" for name, value in options.items()),
            ),
            wire="mysql",
            ready=self.facts_request(),
            login=("root", "", table.DATABASE),
            files={"init.sql": f"CREATE DATABASE IF NOT EXISTS {table.DATABASE};\n"},
            first=(
                (
                    *("mariadb-install-db", "--no-defaults", "--datadir={data}"),
                    *("--auth-root-authentication-method=normal", "--skip-test-db"),
                    *("--skip-name-resolve", "--tmpdir={run}"),
                ),
            ),
            laid={"wal": Laid(argv=_LOGS, first=_LOGS), "backup": Laid()},
            refuses_root=True,
        )

    def create(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """The tables; in InnoDB another one, whose index says what it made of a text."""
        made = table.create(schema, params)
        if params["storage"] == "innodb":
            made.append(
                f"CREATE TABLE {_PROBE} ({table.NUMBER} BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, "
                "declared LONGTEXT, engine LONGTEXT, "
                f"UNIQUE KEY FTS_DOC_ID_INDEX ({table.NUMBER}), "
                f"FULLTEXT KEY t ({params['analysis']})) ENGINE=InnoDB "
                "DEFAULT CHARACTER SET utf8mb4 COLLATE " + table.COLLATION[str(params["analysis"])]
            )
        return [request(*made)]

    def batch(
        self, documents: Sequence[Document], start: int, schema: Schema, params: Parameters
    ) -> Request:
        """One transaction in one exchange; one more for each document that may be refused.

        By LOAD DATA an exchange for each table.
        """
        if params["door"] == "load":
            return Request(tuple(table.load(documents, start, schema, params)))
        return request(*table.insert(documents, start, schema, params))

    def cannot_write(self, params: Parameters) -> Mapping[str, str]:
        """It can do all."""
        return {}

    def update(self, changed: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """One transaction: the rows deleted, and inserted with new numbers, as InnoDB wants."""
        documents = [each.document for each in changed]
        gone = table.removed(changed, schema)
        return request(*table.insert(documents, changed[0].at, schema, params, gone))

    def delete(self, gone: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """One transaction."""
        return request("; ".join(["START TRANSACTION", *table.removed(gone, schema), "COMMIT"]))

    def publish(self, schema: Schema, params: Parameters) -> Publish:
        """Each request is a transaction that commits itself."""
        return Publish("commit, with each request", (), "each request is committed at its end")

    def settle(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """The text indexes, if they are to come after the documents; statistics."""
        added = [] if params["index_first"] else [*indexes.made_after(schema, params).values()]
        named = table.table_of(schema)
        return [request(*indexes.altered(added, schema, params), f"ANALYZE TABLE {named}")]

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The documents; indexes; a dump, and its restoring; opening."""
        return (INGEST, indexes.JOB, *_DUMPS, OPENING)

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
            # Without locks, as InnoDB needs none; nobody writes meanwhile.
            how = ("--single-transaction", "--skip-lock-tables", "--result-file={backup}/dump.sql")
            return Work(commands=((*_client("mariadb-dump"), *how, table.DATABASE),))
        if job == "restore":
            database = table.DATABASE
            return Work(
                before=[request(f"DROP DATABASE {database}", f"CREATE DATABASE {database}")],
                commands=((*_client("mariadb"), f"--database={database}",
                           "--execute=source {backup}/dump.sql"),),
                counted=request(f"SELECT COUNT(*) FROM {table.TABLE}"),
            )  # fmt: skip
        if job != "index":
            return super().work(job, levels, schema, params, done)
        return indexes.work(str(levels["of"]), schema, params)

    def left(self, reply: bytes) -> object:
        """The number of a count; ValueError where there is nothing to count."""
        (result,) = split(reply)
        if result.error:
            raise ValueError(result.error)
        return int(result.rows[0][0] or 0)

    def compile(self, query: Query, schema: Schema, params: Parameters) -> Request:
        """One exchange of several statements: hits, total, each facet, groups."""
        refuse(self.can, query)
        return request("; ".join(algebra.statements(query, schema, params)))

    def decode(self, reply: bytes) -> Hits:
        """Hits, facets, groups; MariaDB's own words where it refused."""
        results = split(reply)
        if (trouble := refusal(results)) is not None:
            return Hits(total=None, error=trouble)
        if len(results) < 2 or results[1].columns != (algebra.TOTAL,):
            raise ValueError("this is no reply to a query: it has no total")
        page, total, *counts = results
        facets, groups = {}, []
        for counted in counts:
            what, kind, name = algebra.labelled(counted.columns[0])
            pairs = [(_value(kind, value), int(n or 0)) for value, n in counted.rows]
            if what == algebra.FACET:
                facets[name] = pairs
            else:
                groups = pairs
        noted = [f"{r.warnings} warnings" for r in results if r.warnings]
        return Hits(
            total=int(total.rows[0][0] or 0),
            hits=tuple(_hit(page.columns, row) for row in page.rows),
            facets=facets,
            groups=groups,
            warnings=tuple(noted),
        )

    def facts_request(self) -> Request:
        """Variables, tables, bytes, and last the documents, which there may be none of yet."""
        variables = ", ".join(f"@@GLOBAL.{name} AS {name}" for name in _READ_BACK)
        here = f"TABLE_SCHEMA = '{table.DATABASE}'"
        return request(
            f"SELECT {variables}",
            "SELECT LOWER(ENGINE) AS engine, DATA_LENGTH + INDEX_LENGTH AS bytes, "
            f"TABLE_COLLATION AS collation FROM information_schema.TABLES t WHERE {here} "
            # A study may have tables of its own beside the corpus's, which a view may stand for.
            f"ORDER BY TABLE_NAME = '{table.TABLE}' DESC, EXISTS (SELECT * FROM "
            f"information_schema.VIEWS v WHERE v.{here} AND v.TABLE_NAME = '{table.TABLE}' AND "
            "LOCATE(CONCAT('from `', t.TABLE_SCHEMA, '`.`', t.TABLE_NAME, '`'), "
            "v.VIEW_DEFINITION)) DESC",
            # The index of InnoDB is in tables of its own, which only this one lists.
            "SELECT SUM(FILE_SIZE) AS bytes FROM information_schema.INNODB_SYS_TABLESPACES "
            f"WHERE NAME LIKE '{table.DATABASE}/%'",
            "SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', 'Aborted_clients')",
            f"SELECT COUNT(*) AS documents FROM {table.TABLE}",
        )

    def facts(self, reply: bytes) -> Facts:
        """Before ``create`` there are no documents to count, and no storage to read back."""
        results = split(reply)
        if (trouble := refusal(results[:4])) is not None or len(results) != 5:
            raise ValueError(trouble or f"five results were asked for, {len(results)} came")
        (found,) = results[0].dicts()
        known = {name: value or "" for name, value in found.items()}
        levers: dict[str, Level] = {
            "threads": known["thread_handling"],
            "flush": int(known["innodb_flush_log_at_trx_commit"]),
        }
        shortest = int(known["innodb_ft_min_token_size"]), int(known["ft_min_word_len"])
        levers["min_characters"] = _of_both(*shortest)
        stopped = (known["innodb_ft_enable_stopword"] == "1", known["ft_stopword_file"] != "")
        levers["stop_words"] = _of_both(*stopped)
        documents = index_bytes = None
        tables = [row for row in results[1].dicts() if row["engine"] in _CACHE]
        if tables and not results[4].error:
            storage = str(tables[0]["engine"])
            collation = str(tables[0]["collation"])
            analyses = {c: a for a, c in table.COLLATION.items()}
            levers["storage"] = storage
            levers["buffer_pool_mb"] = int(known[_CACHE[storage]]) // _MIB
            levers["analysis"] = analyses.get(collation, collation)
            documents = int(results[4].rows[0][0] or 0)
            counted = results[2].dicts() if storage == "innodb" else tables
            index_bytes = sum(int(row["bytes"] or 0) for row in counted)
        return Facts(
            version=known["version"],
            documents=documents,
            index_bytes=index_bytes,
            parameters=levers,
            extra={
                "query_cache": known["query_cache_type"],
                "longest_term": int(known["innodb_ft_max_token_size"]),
                "sql_mode": known["sql_mode"],
                **{str(row["Variable_name"]): int(row["Value"] or 0) for row in results[3].dicts()},
            },
        )

    def cache_request(self) -> Request:
        """The counters of its query cache; SHOW is not a SELECT, so asking does not count."""
        return request(*_CACHE_ASKED)

    def cache_state(self, reply: bytes) -> CacheState:
        """The counters where the cache is on. It holds bytes, not a number of answers.

        MariaDB counts a hit as a SELECT too (``Com_select``); MySQL to 5.7 does not.
        """
        results = split(reply)
        if (trouble := refusal(results)) or len(results) != len(_CACHE_ASKED):
            raise ValueError(trouble or f"two results were asked for, {len(results)} came")
        known = {
            str(row["Variable_name"]): row["Value"] or "" for r in results for row in r.dicts()
        }
        # Servers without a query cache (MySQL 8) have no such variables.
        if known.get("query_cache_type", "OFF") == "OFF" or known.get("query_cache_size") == "0":
            return CacheState(entries=0)
        hits, selects = int(known["Qcache_hits"]), int(known["Com_select"])
        lookups = selects if "mariadb" in known["version"].lower() else selects + hits
        return CacheState(CacheCounters(hits, lookups, "Qcache_hits"))

    def analyse(self, text: str) -> Request | None:
        """What InnoDB's index holds of it: in its cache, or on disk if that was emptied since."""
        # One connection, so nobody comes between the insert and its number.
        held = "SELECT WORD, POSITION FROM information_schema.INNODB_FT_INDEX_{} WHERE DOC_ID = {}"
        return request(
            f"SET GLOBAL innodb_ft_aux_table = '{table.DATABASE}/{_PROBE}'",
            f"INSERT INTO {_PROBE} (declared, engine) "
            f"VALUES ({quoted(table.indexed(text))}, {quoted(text)})",
            held.format("CACHE", "LAST_INSERT_ID()"),
            held.format("TABLE", "LAST_INSERT_ID()"),
        )

    def terms(self, reply: bytes) -> tuple[str, ...]:
        """The terms in order; ValueError where the storage engine does not show its index."""
        results = split(reply)
        if (trouble := refusal(results)) is not None:
            raise ValueError(trouble)
        found: list[tuple[int, str]] = []
        at: dict[str, int] = {}
        for row in (row for result in results[2:] for row in result.dicts()):
            word = str(row["WORD"])
            # The first place of a word is its own, each further one counts from the one before.
            at[word] = at.get(word, 0) + int(row["POSITION"] or 0)
            found.append((at[word], table.term(word)))
        return tuple(word for _place, word in sorted(found))

    def refused(self, reply: bytes) -> tuple[tuple[str, str], ...]:
        """Those that came in a statement of their own, with the server's words."""
        return tuple(
            (str(before.dicts()[0][table.ASKED]), str(result.error))
            for before, result in _pairs(split(reply))
            if result.error and _announces(before)
        )

    def check(self, reply: bytes) -> str | None:
        """The first error that is not of one document alone; ANALYZE says its own in a row."""
        for before, result in _pairs(split(reply)):
            if result.error and not _announces(before):
                return result.error
            for row in result.dicts():
                if str(row.get("Msg_type")).lower() == "error":
                    return str(row["Msg_text"])
        return None


def _pairs(results: Sequence[Result]) -> Iterable[tuple[Result, Result]]:
    """Each result with the one before it."""
    return zip([Result(), *results], results, strict=False)


def _announces(result: Result) -> bool:
    return result.columns == (table.ASKED,)


def _hit(columns: Sequence[str], row: Sequence[bytes | None]) -> Hit:
    fields = {}
    for written, value in zip(columns[2:], row[2:], strict=True):
        if value is not None:
            _what, kind, name = algebra.labelled(written)
            fields[name] = _value(kind, value)
    return Hit((row[0] or b"").decode(), None if row[1] is None else float(row[1]), fields)


def _of_both(innodb: Level, others: Level) -> Level:
    """A lever that a server has twice: for InnoDB, and for the other storages."""
    alike = innodb == others
    return innodb if alike else f"{show(innodb)} in InnoDB, {show(others)} in Aria and MyISAM"


def _value(kind: str, value: bytes | None) -> Any:
    return _KINDS[kind]((value or b"").decode())
