"""Sphinx 2.2 over SphinxQL, and Manticore.

A question is several statements in one packet. The counts come first, then the hits, then SHOW
META, which tells how many documents match and what the server warns of: a part that did not answer
is no error to it, only fewer hits.

Longer than most files, because it is the whole of two engines' seam.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from searchbench.corpora.corpus import Document, Schema
from searchbench.engines.answer import Facts, Hits
from searchbench.engines.engine import (
    Capabilities,
    Engine,
    Level,
    Offline,
    Parameter,
    Parameters,
    Request,
    Service,
    Wire,
)
from searchbench.engines.features import refuse
from searchbench.engines.levers import choice, described
from searchbench.engines.mysql_form import Result, refusal, request, split
from searchbench.engines.mysql_form import query as packet
from searchbench.engines.sphinx import conf, values
from searchbench.engines.sphinx.query import RANKERS, Ask, Condition, OneOf, answer, plan, selected
from searchbench.engines.write import Placed, Publish
from searchbench.errors import Unsupported
from searchbench.workload.queries.algebra import Query
from searchbench.workload.roles import NOTHING

# What the program says of itself becomes an index of one row; then it becomes the server.
_START = (
    "searchd --help | sed -n '1s/^Sphinx \\(.*\\)$/1\\t.\\t\\1/p' > \"$1/about.tsv\" && "
    'indexer --quiet --config "$1/sphinx.conf" about >&2 && '
    'exec searchd --config "$1/sphinx.conf" --nodetach'
)
_BETWEEN = re.compile(rf"{conf.MIDDLE}\d+_(\d+)$")
_ONE_AND_META = f"SELECT {values.KEY} FROM {conf.ASKED} LIMIT 0,1; SHOW META"
_NO_FUZZY = "upstream must: it finds whole words, prefixes and infixes"
_NEVER = "never: it is part of each query, not a setting of the server"
_SILENT = "upstream must: searchd does not report how it is configured"
_SILENT_LEVERS = (
    *("workers", "max_children", "dist_threads", "listen_backlog"),
    *("agent_query_timeout_ms", "rt_mem_limit_mb"),
)
_OF_THE_SOURCE = "never: it is the source of the delta that has it, not the server"
_MANTICORE_KINDS = {"field": "text indexed", "multi_64": "multi64"}
_MANTICORE = """searchd
{
  listen = 127.0.0.1:{port}:mysql
  log = {run}/searchd.log
  pid_file = {run}/searchd.pid
  data_dir = {data}
  collation_server = binary
  max_packet_size = 128M
}
"""


class Sphinx(Engine):
    """searchd, with indexes made by indexer or in real time, asked over SphinxQL."""

    name = "sphinx"
    wire: Wire = "sphinxql"
    listen = ":mysql41"
    can = Capabilities(
        title="Sphinx",
        home="http://sphinxsearch.com",
        on_hosts=True,
        numbered=True,
        writes={
            "data": "the index",
            "parts": "the index, each part on its own storage",
        },
        packages=("sphinxsearch",),
        cannot={
            "fuzzy": _NO_FUZZY,
            "refusal": "upstream must: indexer stores what is not a number as zero, without an "
            "error",
        },
        deviations={
            "scoring": "weights are whole numbers: proximity times 1000 and BM25 without field "
            "lengths; a prefix counts as the words that it stands for; statistics are those of "
            "each part",
            "analysis": "only the first 42 characters of a word count",
            "facets": "of a field with several values: if counts are equal, the last values listed "
            "may be others",
            "groups": "with more than 40,000 different values, counts are estimates",
            "fields": "only the first 4 MiB of a text are returned",
            "sort": "with three keys, an integer of ±2⁶³ sorts with the missing values",
        },
        unread={
            **dict.fromkeys(_SILENT_LEVERS, _SILENT),
            **dict.fromkeys(("match_mode", "ranker", "statistics"), _NEVER),
            **dict.fromkeys(("refresh_ms", "merge_every"), _OF_THE_SOURCE),
            "part_kind": "never: for a single part, local and mixed are the same; for several "
            "parts it is read back",
            "parts_by_agent": "never: an agent with one part is the same with and without it; "
            "several parts are read back",
        },
    )
    parameters: tuple[Parameter, ...] = conf.PARAMETERS
    analysed = conf.ANALYSIS  # the index whose terms are asked for

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
            writing=conf.writing(params),
            needs={"searchd": get, "indexer": get},
            says=("searchd", "--help"),
        )

    def offline(self, schema: Schema, params: Parameters) -> Offline | None:
        """indexer reads the batches as rows of TSV; a real-time index is ingested into."""
        self._sensible(params)
        made = params.get("index") in ("offline", conf.MAIN_DELTA)
        return conf.offline(schema, params) if made else None

    def _sensible(self, params: Parameters) -> None:
        if wrong := conf.wrong(params):
            raise Unsupported(wrong)
        asked = [params.get(name) for name in ("part_kind", "levels", "workers")]
        if params.get("index") == "realtime" and asked != ["local", 1, "threads"]:
            raise Unsupported(
                f"{self.can.title} cannot ingest in real time with these levers: upstream must: "
                "real-time indexes need workers = threads, and take documents only if they are "
                "local (part_kind = local, levels = 1)"
            )
        if params.get("index") == conf.MAIN_DELTA and [*asked, params["parts"]] != [
            *("local", 1, "threads", 1)
        ]:
            raise Unsupported(
                f"{self.can.title} cannot have main and delta with these levers: we could: there "
                "is one main and one delta, and searchd rotates them with threads (parts = 1, "
                "part_kind = local, levels = 1, workers = threads)"
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
            return self._of_parts(
                numbered, params, lambda p, own: _insert(conf.part(p), own, schema)
            )
        return Request((_rows(numbered, schema),))

    def cannot_write(self, params: Parameters) -> Mapping[str, str]:
        """What indexer made is made anew as a whole, unless it has a delta."""
        why = ""
        if params.get("index") not in ("realtime", conf.MAIN_DELTA):
            why = (
                f"an index that {self.can.title}'s indexer made takes no documents while it is "
                f'asked: say index = "realtime", or index = "{conf.MAIN_DELTA}"'
            )
        else:
            try:
                self._sensible(params)
            except Unsupported as error:
                why = str(error)
        return dict.fromkeys(("insert", "update", "delete"), why) if why else {}

    def insert(self, added: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """As an ingest, or rows for the source of the delta."""
        if params.get("index") == conf.MAIN_DELTA:
            return _put(((each.at + 1, each.document) for each in added), schema)
        return self.batch([each.document for each in added], added[0].at, schema, params)

    def update(self, changed: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """A REPLACE for each part that has any of them, or rows for the source of the delta.

        A document keeps its number.
        """
        numbered = [(each.was + 1, each.document) for each in changed]
        if params.get("index") == conf.MAIN_DELTA:
            return _put(numbered, schema)
        return self._of_parts(numbered, params, lambda p, own: _insert(
            conf.part(p), own, schema, "REPLACE"
        ))  # fmt: skip

    def delete(self, gone: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """A DELETE for each part that has any of them, or their numbers for the source."""
        numbered = [(each.was + 1, each.document) for each in gone]
        if params.get("index") == conf.MAIN_DELTA:
            return request("DROP " + ",".join(str(n) for n, _ in numbered))
        return self._of_parts(numbered, params, lambda p, own: (
            f"DELETE FROM {conf.part(p)} WHERE id IN ({','.join(str(n) for n, _ in own)})"
        ))  # fmt: skip

    def publish(self, schema: Schema, params: Parameters) -> Publish:
        """Nothing to do where a statement commits itself; or the delta is made and rotated in."""
        if params.get("index") == conf.MAIN_DELTA:
            every = int(params["refresh_ms"])
            unasked = f"every {every} ms, if something changed" if every else "never"
            return Publish(
                "indexer --rotate delta",
                (request("PUBLISH"),),
                f"the delta is made {unasked} (refresh_ms = {every})",
            )
        return Publish(NOTHING, (), "a document is found as soon as its statement ended")

    def _of_parts(
        self,
        numbered: Sequence[tuple[int, Document]],
        params: Parameters,
        statement: Callable[[int, list[tuple[int, Document]]], str],
    ) -> Request:
        parts = int(params["parts"])
        each = ([(n, d) for n, d in numbered if (n - 1) % parts == p] for p in range(parts))
        return request(*(statement(p, own) for p, own in enumerate(each) if own))

    def settle(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """Real-time indexes to disk."""
        if params["index"] != "realtime":
            return []
        parts = range(int(params["parts"]))
        return [request(*(f"FLUSH RTINDEX {conf.part(n)}" for n in parts))]

    def compile(self, query: Query, schema: Schema, params: Parameters) -> Request:
        """SELECTs and SHOW META in one packet."""
        refuse(self.can, query)
        ask = plan(query, schema, params, self.can.title)
        return request(_statements(ask, params.get("statistics") == "global"))

    def decode(self, reply: bytes) -> Hits:
        """Hits, counts, warnings; a warning means that a part did not answer."""
        results = split(reply)
        if (refused := refusal(results)) is not None:
            return Hits(total=None, error=refused)
        if len(results) < 2 or results[-1].columns[:1] != ("Variable_name",):
            raise ValueError(f"a reply ends in SHOW META, this one in {results[-1].columns!r}")
        *counts, page, meta = results
        told = _pairs(meta)
        return answer(
            total=int(told["total_found"]),
            page=page.dicts(),
            counts=[(r.columns[0], map(_count, r.rows)) for r in counts],
            warnings=(told["warning"],) if "warning" in told else (),
            partial=any(r.warnings for r in results),
        )

    def facts_request(self) -> Request:
        """Version, documents, the parts and what kind they are."""
        return request(
            f"SELECT version FROM {conf.ABOUT}",
            _ONE_AND_META,
            f"DESCRIBE {conf.ASKED}",
            "SHOW TABLES",
            "SHOW STATUS",
        )

    def facts(self, reply: bytes) -> Facts:
        """What searchd tells, and the row that its own program wrote."""
        results = split(reply)
        if refused := refusal(results):
            raise ValueError(refused)
        about, _first, meta, members, tables, status = results
        told = _pairs(meta)
        if "warning" in told:
            raise ValueError(told["warning"])
        build = about.dicts()[0]["version"] or ""
        return Facts(
            version=build.split("-", 1)[0],
            documents=int(told["total_found"]),
            parameters=_levers(_pairs(members), _pairs(tables)),
            extra={"build": build, "status": _pairs(status)},
        )

    def analyse(self, text: str) -> Request | None:
        """CALL KEYWORDS; in a text an asterisk is no wildcard."""
        plain = values.searchable(text).replace("*", " ")
        return request(f"CALL KEYWORDS({_literal(plain)}, '{self.analysed}')")

    def terms(self, reply: bytes) -> tuple[str, ...]:
        """The terms in order."""
        (result,) = split(reply)
        if result.error:
            raise ValueError(result.error)
        return tuple(str(row["tokenized"]) for row in result.dicts())

    def check(self, reply: bytes) -> str | None:
        """The first error of the statements."""
        return refusal(split(reply))


class Manticore(Sphinx):
    """Sphinx's successor: one real-time table over the same wire, attached to. Never run here.

    No Debian package and no Maven artifact brings it, so what stands here was written from its
    manual and from what Sphinx 2.2 does with the same statements; no server has answered it yet.
    """

    name = "manticore"
    can = Capabilities(
        title="Manticore",
        home="https://manticoresearch.com",
        unavailable="neither Debian nor Maven Central has it; attach to one that runs",
        cannot={
            "fuzzy": _NO_FUZZY,
            "parts": "we could: distributed tables work as in Sphinx, but we make one table",
        },
        deviations={
            "scoring": "weights are whole numbers: proximity times 1000 and BM25",
            "facets": "of a field with several values: if counts are equal, the last values listed "
            "may be others",
            "untried": "this translator has never been tried with a server",
        },
        unread=dict.fromkeys(("match_mode", "ranker"), _NEVER),
    )
    parameters = described(
        {
            choice(
                "match_mode", *conf.MATCH_MODES
            ): "how plain terms are asked for. algebra: in the extended syntax, as the query says; "
            "the others: in the way in which Sphinx rewrote the older match mode that means the "
            "same, with its own ranker",
            choice("ranker", *RANKERS): "how matches are weighted, if match_mode is algebra",
        }
    )
    analysed = conf.ASKED

    def service(self, params: Parameters, schema: Schema) -> Service:
        """One searchd that keeps its tables itself."""
        return Service(
            argv=("searchd", "--config", "{run}/manticore.conf", "--nodetach"),
            wire="sphinxql",
            ready=self.facts_request(),
            login=("root", "", ""),
            files={"manticore.conf": _MANTICORE},
        )

    def cannot_write(self, params: Parameters) -> Mapping[str, str]:
        """No server has answered it yet."""
        return dict.fromkeys(
            ("insert", "update", "delete"), "nobody has tried to change documents in Manticore"
        )

    def create(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """One table with the declared analysis."""
        columns = [(values.KEY, "string"), *values.columns(schema)]
        written = ", ".join(f"{name} {_MANTICORE_KINDS.get(kind, kind)}" for name, kind in columns)
        table = values.charset_table().replace("\\\n", " ")
        return [
            request(
                f"CREATE TABLE {conf.ASKED} ({written}) charset_table={_literal(table)} "
                "min_prefix_len='1' dict='keywords'"
            )
        ]

    def batch(
        self, documents: Sequence[Document], start: int, schema: Schema, params: Parameters
    ) -> Request:
        """One INSERT; numbers count from 1."""
        return request(_insert(conf.ASKED, enumerate(documents, start + 1), schema))

    def settle(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """Memory to disk, and the chunks of the disk to one."""
        return [
            request(
                f"FLUSH RAMCHUNK {conf.ASKED}",
                f"OPTIMIZE TABLE {conf.ASKED} OPTION sync=1, cutoff=1",
            )
        ]

    def facts_request(self) -> Request:
        """Version, and how many documents there are once there is a table."""
        return request("SHOW STATUS LIKE 'version'", _ONE_AND_META)

    def facts(self, reply: bytes) -> Facts:
        """Before ``create`` there are no documents to count."""
        status, *rest = split(reply)
        told = _pairs(status)
        if "version" not in told:
            raise ValueError(
                status.error or "SHOW STATUS reports no version, so this is not Manticore"
            )
        build = told["version"]
        found = _pairs(rest[-1]) if len(rest) == 2 and not rest[-1].error else {}
        return Facts(
            version=build.split(" ", 1)[0],
            documents=int(found["total_found"]) if "total_found" in found else None,
            extra={"build": build},
        )


def _literal(text: str) -> str:
    """``text`` as a string; Sphinx takes an escaped letter for the letter itself."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _statements(ask: Ask, all_parts: bool) -> str:
    """All statements of one question; ``all_parts``: with the statistics of all."""
    # A match mode of old as the server itself writes it in the extended syntax.
    old = {"any": f'"{ask.words}"/1', "phrase": f'"{ask.words}"'}
    text = ask.text if ask.mode is None else old.get(ask.mode, ask.words)
    every = f"ranker={ask.ranker}" + (", local_df=1" if all_parts else "")
    found = []
    for each in ask.listings:
        value, *others = each.columns
        columns = [value, ("COUNT(*)", "n"), *others] if each.by else each.columns
        grouped = f" GROUP BY {each.by}" if each.by else ""
        limit = each.limit if each.by else f"{each.offset},{each.limit}"
        found.append(
            f"SELECT {selected(columns)} FROM {conf.ASKED}{_where(text, each.conditions)}{grouped}"
            f"{_order(each.order)} LIMIT {limit} OPTION max_matches={each.matches}, {every}"
        )
    return "; ".join([*found, "SHOW META"])


def _count(row: Sequence[bytes | None]) -> tuple[str | None, int]:
    value, number, *_rest = row
    return None if value is None else value.decode(), int(number or 0)


def _pairs(result: Result) -> dict[str, str]:
    """The rows of a SHOW statement: name and value."""
    return {str(k): str(v or "") for k, v in (list(row.values())[:2] for row in result.dicts())}


def _insert(
    index: str, documents: Iterable[tuple[int, Document]], schema: Schema, how: str = "INSERT"
) -> str:
    """INSERT, or REPLACE, of documents with their numbers."""
    names = ["id", values.KEY, *(name for name, _kind in values.columns(schema))]
    rows = []
    for number, document in documents:
        cells = map(_cell, (values.coded(document.id), *values.row(document.values, schema)))
        rows.append(f"({number},{','.join(cells)})")
    return f"{how} INTO {index} ({','.join(names)}) VALUES {','.join(rows)}"


def _cell(cell: values.Cell) -> str:
    if isinstance(cell, list):
        return f"({values.literals(cell)})"
    return _literal(cell) if isinstance(cell, str) else str(cell)


def _where(text: str | None, conditions: Iterable[Condition]) -> str:
    parts = [] if text is None else [f"MATCH({_literal(text)})"]
    parts += map(_condition, conditions)
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def _condition(part: Condition) -> str:
    if isinstance(part, OneOf):
        sign = "NOT IN" if part.exclude else "IN"
        return f"{part.attribute} {sign} ({values.literals(part.numbers)})"
    return f"{part.attribute} BETWEEN {part.low} AND {part.high}"


def _order(order: Iterable[tuple[str, bool]]) -> str:
    keys = ", ".join(f"{name} {'DESC' if down else 'ASC'}" for name, down in order)
    return f" ORDER BY {keys}" if keys else ""


def _rows(numbered: Iterable[tuple[int, Document]], schema: Schema) -> bytes:
    """Rows of TSV, as indexer reads them."""
    lines = (
        "\t".join([str(n), values.coded(d.id), *map(_tabbed, values.row(d.values, schema))])
        for n, d in numbered
    )
    return "".join(f"{line}\n" for line in lines).encode()


def _put(numbered: Iterable[tuple[int, Document]], schema: Schema) -> Request:
    """Documents for the source of the delta, new or changed."""
    return Request((packet(b"PUT\n" + _rows(numbered, schema)),))


def _tabbed(cell: values.Cell) -> str:
    return values.literals(cell) if isinstance(cell, list) else str(cell)


def _levers(members: Mapping[str, str], tables: Mapping[str, str]) -> dict[str, Level]:
    """Parts and their kind as searchd describes the index that is asked and those it holds.

    Over two levels it sees only those in between, whose names say which parts they hold.
    """
    if set(members) == {conf.MAIN, conf.DELTA}:
        return {"index": conf.MAIN_DELTA, "levels": 1, "parts": 1}
    levers: dict[str, Level] = {"index": "realtime" if "rt" in tables.values() else "offline"}
    if between := [found for name in members if (found := _BETWEEN.search(name))]:
        levers |= {"levels": 2, "parts": 1 + max(int(found[1]) for found in between)}
        return levers
    sizes = [len(name.rpartition(":")[2].split(",")) for name in members]
    levers |= {"levels": 1, "parts": sum(sizes)}
    local = {kind == "local" for kind in members.values()}
    if max(sizes, default=0) > 1:
        agents = (n for n, kind in zip(sizes, members.values(), strict=True) if kind != "local")
        levers["parts_by_agent"] = ",".join(map(str, agents))
    if len(members) > 1:
        levers["part_kind"] = "mixed" if len(local) > 1 else "local" if local == {True} else "agent"
    return levers
