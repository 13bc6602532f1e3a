"""SenseiDB, LinkedIn's search server over Lucene 4, Zoie and Bobo, over its own HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import orjson

from searchbench.corpora.corpus import Document, FieldType, Schema
from searchbench.engines.answer import Facts, Hit, Hits
from searchbench.engines.engine import Capabilities, Engine, Parameters, Request, Service
from searchbench.engines.features import refuse
from searchbench.engines.http_form import HttpReply, get, post, split
from searchbench.engines.jvm_form import JAVA_17, JVM_LEVERS, jvm
from searchbench.engines.levers import choice, described, number
from searchbench.engines.native import Native
from searchbench.engines.sensei import columns, plain
from searchbench.engines.sensei.languages import in_bql, in_json
from searchbench.engines.sensei.request import SCORE, SOURCE, asked, told
from searchbench.engines.write import Placed, Publish
from searchbench.errors import Unsupported
from searchbench.workload.queries.algebra import Query

_PLACE = "{hosts}/sensei/target"
# What is handed to the indexers of the partitions at once, and no limit on how many a minute:
# the limit that Sensei has by itself, 40,000, would be all that an ingest shows.
_HANDED = 1000
_EVENTS_PER_MINUTE = 10**12
_LOG = """\
log4j.rootLogger=WARN, log
log4j.appender.log=org.apache.log4j.ConsoleAppender
log4j.appender.log.target=System.err
log4j.appender.log.layout=org.apache.log4j.PatternLayout
log4j.appender.log.layout.ConversionPattern=%d %p %c %m%n
"""


class Sensei(Engine):
    """One node with all partitions and the broker, in one JVM."""

    name = "sensei"
    can = Capabilities(
        title="SenseiDB",
        home="https://github.com/senseidb/sensei",
        cannot={
            "fuzzy": "upstream must: Lucene 4's FuzzyQuery takes only the 50 nearest terms, and no "
            "term that is as short as the distance, so its totals would be too small",
            "snippets": "upstream must: it has no highlighting",
        },
        unread={
            "protocol": "never: it is part of each query, not a setting of the server",
            "columns": "never: the server knows its columns, but not why they have these names",
        },
        deviations={
            "scoring": "Lucene's TF-IDF with the share of terms found (coord), field lengths "
            "rounded to one byte, statistics of each partition alone; prefix counts 1 for each "
            "term and field",
            "analysis": "letters and digits as of Unicode 13 (Java 17); a word of more than "
            "32,766 bytes is not indexed",
            "keyword": "refused are keywords of more than 32,765 bytes, and more than 1,024 "
            "keywords in a field",
            "plain": "columns = plain: ranges that end among negative numbers, and keywords that "
            "begin with a hyphen, lose documents; a number is returned as its column pads it",
        },
    )
    parameters = described(
        {
            number("parts", 1, (1, 64), index=True): "partitions in the node; a query searches "
            "all of them at the same time",
            choice("protocol", "json", "bql"): "how a query is asked: JSON or BQL",
            choice("columns", *columns.KINDS, index=True): "encoded: columns that keep all values, "
            "orders and ranges of a corpus, for portable queries; plain: each field as a column of "
            "its own name and type, for operations",
            number("freshness_s", 10, (0, 3600)): "how many seconds documents may be invisible "
            "(sensei.index.freshness); 0: none",
            number("batch_delay_ms", 300_000, (1, 3_600_000), index=True): "the index in memory is "
            "written to disk at least this often (sensei.index.batchDelay)",
            number("batch_size", 10_000, (1, 10_000_000), index=True): "how many documents in "
            "memory are written to disk at once (sensei.index.batchSize)",
            choice("hop", "direct", "serialized"): "how the broker calls the node. direct: by a "
            "call; serialized: everything is written as bytes and read again, as over a network",
            **JVM_LEVERS,
        }
    )

    def service(self, params: Parameters, schema: Schema) -> Service:
        """A JVM of its own. What its defaults would take from the machine is spelled out."""
        return Service(
            argv=(
                *jvm(params),
                f"-Dsearchbench.hop={params['hop']}",
                *("--add-opens", "java.management/java.lang.management=ALL-UNNAMED"),
                *("--add-exports", "java.management/com.sun.jmx.mbeanserver=ALL-UNNAMED"),
                *("-cp", f"{_PLACE}/sensei-server.jar:{_PLACE}/lib/*"),
                *("searchbench.sensei.Main", "{run}/sensei"),
            ),
            wire="http",
            ready=self.facts_request(),
            whole=(b'"errorCode":0,',),
            files={
                "sensei/schema.xml": plain.schema_xml(schema)
                if params["columns"] == "plain"
                else columns.schema_xml(schema, ranges=params["protocol"] == "bql"),
                "sensei/sensei.properties": _properties(params, schema),
                "sensei/log4j.properties": _LOG,
            },
            needs={
                "java": JAVA_17,
                f"{_PLACE}/sensei-server.jar": "`make java` builds it",
            },
            ready_timeout_s=90.0,
        )

    @property
    def native(self) -> Native:
        """JSON and BQL at the same address; an error has a good status."""
        return Native("/sensei", "hits: _uid", lambda text: orjson.dumps({"bql": text}), _errors)

    def create(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """The schema came with the server's files; an index that is there already is refused."""
        return [Request((post("/searchbench/create", (), b""),))]

    def batch(
        self, documents: Sequence[Document], start: int, schema: Schema, params: Parameters
    ) -> Request:
        """One event a line, for the stream that Sensei indexes."""
        lines = _written(params).events(documents, start, schema)
        return Request((post("/searchbench/documents", (), lines),))

    def settle(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """Everything to disk, and visible."""
        return [Request((post("/searchbench/settle", (), b""),))]

    def cannot_write(self, params: Parameters) -> Mapping[str, str]:
        """Documents of all kinds; but not settle at the same time."""
        return {
            "publish": "sensei loses documents that come in while its index in memory is written "
            "to disk, and settling writes it: leave the publisher out; documents are seen within "
            "`freshness_s`"
        }

    def update(self, changed: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """An event whose uid is there already replaces what has it, which keeps its number."""
        lines = _written(params).replaced(changed, schema)
        return Request((post("/searchbench/documents", (), lines),))

    def delete(self, gone: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """Events of the type "delete"."""
        lines = _written(params).removed(gone, schema)
        return Request((post("/searchbench/documents", (), lines),))

    def publish(self, schema: Schema, params: Parameters) -> Publish:
        """What waits in the gateway is indexed and written to disk, and readers are opened anew."""
        seconds = int(params["freshness_s"])
        return Publish(
            "settle: what waits is indexed, written to disk and seen",
            tuple(self.settle(schema, params)),
            "readers see what was indexed at once" if not seconds else
            f"readers are at most {seconds} s old (freshness_s)",
        )  # fmt: skip

    def find(self, query: Query, schema: Schema, params: Parameters) -> Request:
        """Plain columns take no portable query, but their texts have words."""
        if params["columns"] != "plain":
            return self.compile(query, schema, params)
        return Request((post("/sensei", (), orjson.dumps(plain.words(query))),))

    def portable(self, params: Parameters) -> bool:
        """Plain columns lose values and orders."""
        return params["columns"] != "plain"

    def compile(self, query: Query, schema: Schema, params: Parameters) -> Request:
        """One request in the language that is asked for."""
        refuse(self.can, query)
        if params["columns"] == "plain":
            raise Unsupported(
                "SenseiDB cannot be asked portable queries of plain columns: never: they lose "
                'values and orders (columns = "encoded" has them)'
            )
        text = [f.name for f in schema.of_type(FieldType.TEXT)]
        language = in_bql if params["protocol"] == "bql" else in_json
        body = language(query, text, schema, asked(query, schema))
        return Request((post("/sensei", (), orjson.dumps(body)),))

    def decode(self, reply: bytes) -> Hits:
        """Hits, facets, groups. What only some partitions answered is partial."""
        (http,) = split(reply)
        answer = orjson.loads(http.body)
        errors = _each_error(answer)
        if http.status >= 400 or (errors and not answer["totaldocs"]):
            return Hits(total=None, error="; ".join(errors) or _trouble(http))
        about = told(answer.get("select_list", ()))
        counted = {
            column: _counts(column, found)
            for column, found in answer["facets"].items()
            if column in about["facet"] or column in about["group"]
        }
        return Hits(
            total=answer["numhits"],
            hits=tuple(_hit(row, about["field"]) for row in answer["hits"]),
            total_exact=not errors,
            facets={
                columns.field_name(column): counted[column][:limit]
                for column, limit in about["facet"].items()
            },
            groups=[
                pair for column, limit in about["group"].items() for pair in counted[column][:limit]
            ],
            warnings=errors,
            partial=bool(errors),
        )

    def facts_request(self) -> Request:
        """An endpoint of ours: Sensei's own /sensei/sysinfo does not tell its version."""
        return Request((get("/searchbench/facts"),))

    def facts(self, reply: bytes) -> Facts:
        """What the server says of itself; it is asked before it has any documents, too."""
        (http,) = split(reply)
        if (trouble := _trouble(http)) is not None:
            raise ValueError(trouble)
        answer = orjson.loads(http.body)
        levers = dict(answer["parameters"])
        levers["freshness_s"] = levers.pop("freshness_ms") // 1000
        known = ("errorCode", "version", "documents", "index_bytes", "parameters")
        return Facts(
            version=answer["version"],
            documents=answer["documents"],
            index_bytes=answer["index_bytes"],
            parameters=levers,
            extra={k: v for k, v in answer.items() if k not in known},
        )

    def analyse(self, text: str) -> Request | None:
        """The analyzer that Sensei is configured with."""
        body = text.encode()
        return Request((post("/searchbench/analyse", (), body, "text/plain; charset=utf-8"),))

    def terms(self, reply: bytes) -> tuple[str, ...]:
        """The terms in order."""
        (http,) = split(reply)
        if (trouble := _trouble(http)) is not None:
            raise ValueError(trouble)
        return tuple(orjson.loads(http.body)["terms"])

    def refused(self, reply: bytes) -> tuple[tuple[str, str], ...]:
        """Documents that the table cannot hold: (id, reason)."""
        (http,) = split(reply)
        found = orjson.loads(http.body).get("refused", ())
        return tuple((r["id"], r["reason"]) for r in found)

    def check(self, reply: bytes) -> str | None:
        """The server's own words where it failed."""
        (http,) = split(reply)
        return _trouble(http)


def _written(params: Parameters) -> ModuleType:
    """What writes events, by the form of the columns."""
    return plain if params["columns"] == "plain" else columns


def _properties(params: Parameters, schema: Schema) -> str:
    parts = int(params["parts"])
    batch = int(params["batch_size"])
    encoded = params["columns"] != "plain"
    numbers = schema.of_type(*columns.NUMBERS) if encoded else ()
    lines = {
        "sensei.node.id": 1,
        "sensei.node.partitions": ",".join(str(part) for part in range(parts)),
        "sensei.server.port": "{port}",
        "sensei.cluster.name": "searchbench",
        "sensei.cluster.url": "127.0.0.1:{port}",
        "sensei.search.cluster.name": "searchbench",
        "sensei.search.cluster.zookeeper.url": "127.0.0.1:{port}",
        "sensei.index.directory": "{data}",
        "sensei.index.batchSize": batch,
        "sensei.index.batchDelay": params["batch_delay_ms"],
        "sensei.index.maxBatchSize": 2 * batch,
        "sensei.index.realtime": "true",
        "sensei.index.freshness": params["freshness_s"],
        "sensei.index.analyzer.class": "searchbench.sensei.Analysis",
        "sensei.gateway.class": "searchbench.sensei.Gateway",
        "sensei.index.manager.default.maxpartition.id": parts - 1,
        "sensei.index.manager.default.eventsPerMin": _EVENTS_PER_MINUTE,
        "sensei.index.manager.default.batchSize": _HANDED,
        "sensei.broker.port": "{port}",
        "sensei.broker.minThread": 20,
        "sensei.broker.maxThread": 50,
        "sensei.broker.maxWaittime": 2000,
        "sensei.broker.webapp.path": "{run}/sensei",
        # For our own endpoint, which refuses what is no number there.
        "searchbench.numbers": ",".join(columns.column(f) for f in numbers),
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def _counts(column: str, found: list[dict[str, Any]]) -> list[tuple[Any, int]]:
    """(value, count): the most frequent first, ties by value as the corpus has it."""
    pairs = [(columns.value(column, f["value"]), f["count"]) for f in found if f["count"]]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


def _hit(row: dict[str, Any], wanted: dict[str, int]) -> Hit:
    source = orjson.loads(row[SOURCE])
    names = {columns.field_name(column) for column in wanted}
    return Hit(source["id"], row.get(SCORE), {k: v for k, v in source["v"].items() if k in names})


def _each_error(answer: dict[str, Any]) -> tuple[str, ...]:
    return tuple(
        f"{e['errorType']}: {e.get('message', 'no reason given')}" for e in answer.get("errors", ())
    )


def _errors(answer: Any) -> str | None:
    """Sensei's words; of a part of the index that did not answer, too."""
    return "; ".join(_each_error(answer)) or None if isinstance(answer, dict) else None


def _trouble(http: HttpReply) -> str | None:
    if http.status < 400:
        return None
    try:
        said = orjson.loads(http.body).get("error")
    except (orjson.JSONDecodeError, AttributeError):
        said = None
    return str(said or f"HTTP status {http.status}")
