"""Sphinx 2.2: searchd over SphinxQL, and the same server over its native protocol."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from searchbench.corpora.corpus import Document, Schema
from searchbench.engines.engine import (
    Capabilities,
    Facts,
    Hits,
    Level,
    Offline,
    Parameter,
    Parameters,
    Request,
    Service,
    Wire,
)
from searchbench.engines.mysql_form import query as packet
from searchbench.engines.mysql_form import split
from searchbench.engines.sphinx import api, conf, ql, values
from searchbench.engines.sphinx.query import NO_FUZZY, RANKERS, plan
from searchbench.errors import Unsupported
from searchbench.workload.queries.algebra import Query

# What the program says of itself becomes an index of one row; then it becomes the server.
_START = (
    "searchd --help | sed -n '1s/^Sphinx \\(.*\\)$/1\\t.\\t\\1/p' > \"$1/about.tsv\" && "
    'indexer --quiet --config "$1/sphinx.conf" about >&2 && '
    'exec searchd --config "$1/sphinx.conf" --nodetach'
)
_BETWEEN = re.compile(rf"{conf.MIDDLE}\d+_(\d+)$")
_NEVER = "never: it is said in each query"
_SILENT = "upstream must: searchd does not tell how it is configured"
_UNDESCRIBED = "upstream must: the native protocol has no command that describes an index"
PARAMETERS = (
    Parameter(
        "workers",
        str,
        "threads",
        "how requests are served: one after another, by a process or a thread for each, or by "
        "processes forked beforehand; none and prefork serve a connection until it is closed",
        choices=("threads", "fork", "prefork", "none"),
    ),
    Parameter(
        "max_children",
        int,
        0,
        "connections served at once, those beyond are turned away; prefork: processes forked "
        "beforehand (0: no limit; prefork: 16)",
        minimum=0,
        maximum=10_000,
    ),
    Parameter(
        "dist_threads",
        int,
        0,
        "threads over which the local parts of one query are spread; 0: one after another",
        minimum=0,
        maximum=256,
    ),
    Parameter(
        "listen_backlog",
        int,
        128,
        "connections that may wait to be accepted (searchd's own default: 5)",
        minimum=1,
        maximum=65_535,
    ),
    Parameter(
        "parts", int, 1, "indexes that are searched as one", minimum=1, maximum=64, index=True
    ),
    Parameter(
        "part_kind",
        str,
        "local",
        "who searches a part: the server that is asked, an agent (a searchd of its own on this "
        "machine), or mixed: the first is local, the others are agents",
        choices=("local", "agent", "mixed"),
    ),
    Parameter(
        "levels",
        int,
        1,
        "merge the parts at once, or by a searchd in between and again by the one that is asked",
        choices=(1, 2),
    ),
    Parameter(
        "agent_query_timeout_ms",
        int,
        3000,
        "an agent that takes longer is left out, with a warning (searchd's own default)",
        minimum=1,
        maximum=3_600_000,
    ),
    Parameter(
        "match_mode",
        str,
        "algebra",
        "how plain terms are asked: in the extended syntax as the algebra has them, or by the "
        "match mode of old that means the same, with its own ranker",
        choices=("algebra", "any", "all", "phrase", "boolean"),
    ),
    Parameter(
        "ranker",
        str,
        "proximity_bm25",
        "how matches are weighted, where match_mode is algebra",
        choices=RANKERS,
    ),
    Parameter(
        "statistics",
        str,
        "local",
        "term statistics of each part, or of all local parts together",
        choices=("local", "global"),
    ),
    Parameter(
        "index",
        str,
        "offline",
        "made by indexer before the server starts, or put into real-time indexes",
        choices=("offline", "realtime"),
        index=True,
    ),
    Parameter(
        "rt_mem_limit_mb",
        int,
        128,
        "memory of a real-time index; what is beyond goes to disk",
        minimum=1,
        maximum=1_000_000,
        index=True,
    ),
)
_SILENT_LEVERS = (
    *("workers", "max_children", "dist_threads", "listen_backlog"),
    *("agent_query_timeout_ms", "rt_mem_limit_mb"),
)
_UNREAD = {
    **dict.fromkeys(_SILENT_LEVERS, _SILENT),
    **dict.fromkeys(("match_mode", "ranker", "statistics"), _NEVER),
    "part_kind": "never: a single part is local in two of three; of several it is read back",
}
CANNOT = {
    "fuzzy": NO_FUZZY,
    "refusal": "upstream must: indexer takes a number that is none for zero, without an error",
}
DEVIATIONS = {
    "scoring": "weights are whole numbers: proximity times 1000 and BM25 without field lengths; "
    "a prefix counts by the words it stands for; statistics are those of each part",
    "analysis": "what follows the 42nd character of a word is not seen",
    "facets": "of a field with several values, the last of those with equal counts may be others",
    "groups": "above 40,000 different values counts are estimates",
    "fields": "of a text the first 4 MiB come back",
    "sort": "with three keys, an integer of ±2⁶³ sorts with the missing ones",
}


class Sphinx:
    """searchd, with indexes made by indexer or in real time, asked over SphinxQL."""

    name = "sphinx"
    wire: Wire = "sphinxql"
    listen = ":mysql41"
    can = Capabilities(
        title="Sphinx",
        home="http://sphinxsearch.com",
        packages=("sphinxsearch",),
        cannot=CANNOT,
        deviations=DEVIATIONS,
        unread=_UNREAD,
    )
    parameters = PARAMETERS

    def service(self, params: Parameters, schema: Schema) -> Service:
        """The searchd that is asked, and those of agents and of the level in between."""
        self._sensible(params)
        get = f"searchbench engines install {self.name}"
        return Service(
            argv=("sh", "-c", _START, "start", "{run}"),
            wire=self.wire,
            ready=self.facts_request(),
            login=("root", "", "") if self.wire == "sphinxql" else None,
            files=conf.files(schema, params, self.listen),
            companions=conf.companions(params),
            needs={"searchd": get, "indexer": get},
        )

    def offline(self, schema: Schema, params: Parameters) -> Offline | None:
        """indexer reads the batches as rows of TSV; a real-time index is ingested into."""
        self._sensible(params)
        if params["index"] == "realtime":
            return None
        return Offline(
            commands=(("indexer", "--config", f"{{run}}/{conf.INDEXING}", "--all"),),
            files={conf.INDEXING: conf.indexing(schema, params)},
        )

    def _sensible(self, params: Parameters) -> None:
        if params["index"] == "realtime" and (
            params["part_kind"] != "local"
            or params["levels"] != 1
            or params["workers"] != "threads"
        ):
            raise Unsupported(
                f"{self.can.title} cannot ingest in real time with these levers: upstream must: "
                "real-time indexes need workers = threads, and take documents only where they are "
                "local (part_kind = local, levels = 1)"
            )

    def create(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """Nothing: real-time indexes stand in the configuration."""
        return []

    def batch(
        self, documents: Sequence[Document], start: int, schema: Schema, params: Parameters
    ) -> Request:
        """Rows of TSV, or an INSERT for each part; numbers count from 1."""
        numbered = list(enumerate(documents, start + 1))
        if params["index"] == "realtime":
            return Request(tuple(self._inserts(numbered, schema, int(params["parts"]))))
        lines = (
            "\t".join([str(n), values.coded(d.id), *map(_cell, values.row(d.values, schema))])
            for n, d in numbered
        )
        return Request(("".join(f"{line}\n" for line in lines).encode(),))

    def _inserts(
        self, numbered: Sequence[tuple[int, Document]], schema: Schema, parts: int
    ) -> Iterable[bytes]:
        for part in range(parts):
            mine = [(n, d) for n, d in numbered if (n - 1) % parts == part]
            if mine:
                yield packet(ql.insert(conf.part(part), mine, schema))

    def settle(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """Real-time indexes to disk."""
        if params["index"] == "offline":
            return []
        parts = range(int(params["parts"]))
        return [Request(tuple(packet(f"FLUSH RTINDEX {conf.part(n)}") for n in parts))]

    def compile(self, query: Query, schema: Schema, params: Parameters) -> Request:
        """SELECTs and SHOW META in one packet."""
        ask = plan(query, schema, params, self.can.title)
        options = ["local_df=1"] if params["statistics"] == "global" else []
        return Request((packet(ql.statements(ask, conf.ASKED, options)),))

    def decode(self, reply: bytes) -> Hits:
        """Hits, counts, warnings; a warning means that a part did not answer."""
        return ql.hits(reply)

    def facts_request(self) -> Request:
        """Version, documents, the parts and what kind they are."""
        return Request(
            (
                packet(f"SELECT version FROM {conf.ABOUT}"),
                packet(f"SELECT {values.KEY} FROM {conf.ASKED} LIMIT 0,1; SHOW META"),
                packet(f"DESCRIBE {conf.ASKED}"),
                packet("SHOW TABLES"),
                packet("SHOW STATUS"),
            )
        )

    def facts(self, reply: bytes) -> Facts:
        """What searchd tells, and the row that its own program wrote."""
        results = split(reply)
        refused = next((r.error for r in results if r.code), None)
        if refused is not None:
            raise ValueError(refused)
        about, _first, meta, members, tables, status = results
        told = ql.pairs(meta)
        if "warning" in told:
            raise ValueError(told["warning"])
        levers = _levers(ql.pairs(members), ql.pairs(tables))
        return Facts(
            version=_version(about.dicts()[0]["version"] or ""),
            documents=int(told["total_found"]),
            parameters=levers,
            extra={"build": about.dicts()[0]["version"], "status": ql.pairs(status)},
        )

    def analyse(self, text: str) -> Request | None:
        """CALL KEYWORDS; in a text an asterisk is no wildcard."""
        plain = values.searchable(text).replace("*", " ")
        return Request((packet(f"CALL KEYWORDS({ql.literal(plain)}, '{conf.ANALYSIS}')"),))

    def terms(self, reply: bytes) -> tuple[str, ...]:
        """The terms in order."""
        (result,) = split(reply)
        if result.error:
            raise ValueError(result.error)
        return tuple(str(row["tokenized"]) for row in result.dicts())

    def refused(self, reply: bytes) -> tuple[tuple[str, str], ...]:
        """A statement is taken whole or refused whole, which is an error of the batch."""
        return ()

    def check(self, reply: bytes) -> str | None:
        """The first error of the statements."""
        return next((r.error for r in split(reply) if r.code), None)


class SphinxApi(Sphinx):
    """The same server over its native protocol, where the match modes of old live."""

    name = "sphinx-api"
    wire: Wire = "sphinx"
    listen = ""
    can = Capabilities(
        title="Sphinx (API)",
        home="http://sphinxsearch.com",
        packages=("sphinxsearch",),
        cannot=CANNOT,
        deviations=DEVIATIONS,
        unread={
            **_UNREAD,
            **dict.fromkeys(("parts", "levels", "index"), _UNDESCRIBED),
        },
    )

    def _sensible(self, params: Parameters) -> None:
        if params["index"] == "realtime":
            raise Unsupported(
                f"{self.can.title} cannot ingest in real time: upstream must: the native protocol "
                "puts no documents in; use sphinx, over SphinxQL"
            )
        super()._sensible(params)

    def compile(self, query: Query, schema: Schema, params: Parameters) -> Request:
        """One command, with a search for each count and one for the hits."""
        ask = plan(query, schema, params, self.can.title)
        return Request((api.searches(ask, conf.ASKED, params["statistics"] == "global"),))

    def decode(self, reply: bytes) -> Hits:
        """Hits, counts, warnings; a warning means that a part did not answer."""
        return api.hits(reply)

    def facts_request(self) -> Request:
        """Version and documents."""
        return Request((api.search(conf.ABOUT, "version"), api.search(conf.ASKED, values.KEY)))

    def facts(self, reply: bytes) -> Facts:
        """What searchd tells, and the row that its own program wrote."""
        about, asked = (found for data in api.replies(reply) for found in api.results_of(*data))
        trouble = about.error or asked.error or asked.warning
        if trouble:
            raise ValueError(trouble)
        build = str(about.rows[0]["version"])
        return Facts(version=_version(build), documents=asked.total, extra={"build": build})

    def analyse(self, text: str) -> Request | None:
        """The command for keywords; in a text an asterisk is no wildcard."""
        return Request((api.keywords(values.searchable(text).replace("*", " "), conf.ANALYSIS),))

    def terms(self, reply: bytes) -> tuple[str, ...]:
        """The terms in order."""
        return api.terms(reply)

    def check(self, reply: bytes) -> str | None:
        """Nothing is created or put in over this protocol."""
        return None


def _cell(cell: values.Cell) -> str:
    return values.literals(cell) if isinstance(cell, list) else str(cell)


def _version(build: str) -> str:
    return build.split("-", 1)[0]


def _levers(members: Mapping[str, str], tables: Mapping[str, str]) -> dict[str, Level]:
    """Parts and their kind as searchd describes the index that is asked and those it holds.

    Over two levels it sees only those in between, whose names say which parts they hold.
    """
    levers: dict[str, Level] = {"index": "realtime" if "rt" in tables.values() else "offline"}
    between = [found for name in members if (found := _BETWEEN.search(name))]
    if between:
        levers |= {"levels": 2, "parts": 1 + max(int(found[1]) for found in between)}
        return levers
    agents = sum(kind != "local" for kind in members.values())
    levers |= {"levels": 1, "parts": len(members)}
    if len(members) > 1:
        levers["part_kind"] = (
            "local" if not agents else "agent" if agents == len(members) else "mixed"
        )
    return levers
