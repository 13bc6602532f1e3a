"""What OpenSearch and Elasticsearch have in common on the wire: one index, asked over HTTP.

They differ in what is started and in a few names; each has a file of its own that fills in
this one. Longer than most files, because it is the whole of two engines' seam.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import orjson

from searchbench.corpora.corpus import Document, FieldType, Schema
from searchbench.engines.answer import CacheCounters, CacheState, Facts, Hit, Hits
from searchbench.engines.engine import (
    INGEST,
    Companion,
    Engine,
    Level,
    Parameters,
    Request,
    Service,
)
from searchbench.engines.http_form import HttpReply, Pairs, get, post, put, split
from searchbench.engines.job import MERGE, OPENING, Job, Proof, Work
from searchbench.engines.native import Native
from searchbench.engines.opensearch import query as dsl
from searchbench.engines.opensearch.levers import LOGGING, configuration
from searchbench.engines.write import Placed, Publish
from searchbench.errors import Unsupported
from searchbench.workload.queries.algebra import Query

INDEX = "/docs"
_KINDS: dict[FieldType, dict[str, Any]] = {
    FieldType.TEXT: {"type": "text", "analyzer": "declared"},
    FieldType.KEYWORD: {"type": "keyword"},
    FieldType.KEYWORDS: {"type": "keyword"},
    FieldType.INTEGER: {"type": "long", "coerce": False},
    FieldType.FLOAT: {"type": "double", "coerce": False},
    # A `date` in epoch_millis leaves a day before 1970 out of the range that ends with it.
    FieldType.DATE: {"type": "long", "coerce": False},
    FieldType.BOOLEAN: {"type": "boolean"},
}
_PREFERENCES = {"any": "", "local": "_local"}
_UNLIMITED = 2**31 - 1
_SETTLE_TIMEOUT = "540s"  # less than is waited for an answer
_OF_A_NODE = (
    *("name", "version", "settings", "os.allocated_processors"),
    *("jvm.version", "jvm.mem.heap_max_in_bytes", "jvm.input_arguments"),
)
_ABOUT = (
    get(
        "/_nodes/settings,jvm,os",
        [
            ("flat_settings", "true"),
            ("filter_path", ",".join(f"nodes.*.{key}" for key in _OF_A_NODE)),
        ],
    ),
    get(f"{INDEX}/_settings", [("flat_settings", "true")]),
    get(f"{INDEX}/_stats/docs,store,request_cache,query_cache,segments"),
)
_REFUSALS = range(400, 429)  # of one document, by HTTP status; 429 and 5xx are of the server


class RestSearch(Engine):
    """An index behind the REST interface; subclasses fill in the declarations.

    ``electing``: the setting that names the first electors; ``settings``: of a node, beside those
    that both have. ``alone_s``: how long to wait for a node that starts alone.
    """

    analysis: Mapping[str, Any]
    merge_policy: Mapping[str, Level]
    electing: str
    settings: Mapping[str, str]
    needs: Mapping[str, str]
    alone_s: float

    def service(self, params: Parameters, schema: Schema) -> Service:
        """A process a node. The first is asked; all share the cores while they start."""
        count = int(params["nodes"])
        if int(params["replicas"]) >= count:
            raise Unsupported(
                f"{self.can.title} cannot keep {params['replicas']} replicas on {count} node(s): a "
                "node holds at most one copy of a shard; set more `nodes` or fewer `replicas`"
            )
        names = [f"n{number}" for number in range(1, count + 1)]
        first, *others = (Companion(n, self.command(n, params), self.env(n)) for n in names)
        files: dict[str, str] = {}
        for name in names:
            settings = configuration(name, names, params, self.electing, self.settings)
            files[f"{name}/config/{self.name}.yml"] = settings
            files[f"{name}/config/log4j2.properties"] = LOGGING
            files |= {f"{name}/{path}": text for path, text in self.files(name, params).items()}
        return Service(
            argv=first.argv,
            wire="http",
            ready=self.ready(params),
            whole=whole(params),
            files=files,
            env=first.env,
            needs=self.needs,
            companions=tuple(others),
            refuses_root=True,
            ready_timeout_s=self.alone_s * count,
        )

    def command(self, name: str, params: Parameters) -> tuple[str, ...]:
        """What starts the node ``name``, which lives below ``{run}/NAME``."""
        raise NotImplementedError

    def env(self, name: str) -> dict[str, str]:
        """The environment of the node."""
        return {}

    def files(self, name: str, params: Parameters) -> dict[str, str]:
        """Files of the node below ``{run}/NAME``, beside its configuration."""
        raise NotImplementedError

    def create(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """The index: its shards, its analysis, a type for each field, and nothing guessed."""
        fields = {dsl.own(f.name): _KINDS[f.type] for f in schema.fields}
        if _numbered(params):
            fields[dsl.ORDER] = {"type": "long", "index": False}
        refresh_ms = int(params["refresh_ms"])
        unstored = [dsl.own(f.name) for f in schema.fields if not f.stored]
        made = {
            "settings": {
                "number_of_shards": params["shards"],
                "number_of_replicas": params["replicas"],
                "refresh_interval": f"{refresh_ms}ms" if refresh_ms else "-1",
                "queries.cache.enabled": params["query_cache"],
                "max_result_window": _UNLIMITED,
                "max_terms_count": _UNLIMITED,
                "analyze.max_token_count": _UNLIMITED,
                **self.merge_policy,
                "analysis": self.analysis,
            },
            "mappings": {
                "dynamic": "strict",
                "_source": {"excludes": [dsl.ORDER, *unstored]},
                "properties": fields,
            },
        }
        return [Request((put(INDEX, (), orjson.dumps(made)),))]

    def batch(
        self, documents: Sequence[Document], start: int, schema: Schema, params: Parameters
    ) -> Request:
        """One ``_bulk`` of creations; of the answer only what may have to be said."""
        return _bulk("create", map(Placed, documents, count(start)), params)

    def cannot_write(self, params: Parameters) -> Mapping[str, str]:
        """It can do all."""
        return {}

    def update(self, changed: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """One ``_bulk``, in which a document takes the place of the one with its id."""
        return _bulk("index", changed, params)

    def delete(self, gone: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """One ``_bulk`` of deletions by id."""
        return _bulk("delete", gone, params)

    def publish(self, schema: Schema, params: Parameters) -> Publish:
        """A refresh, after which all that was written is searched."""
        every = int(params["refresh_ms"])
        unasked = f"it refreshes every {every} ms" if every else "nothing is ever visible"
        refresh = Request((post(f"{INDEX}/_refresh", (), b""),))
        return Publish("refresh", (refresh,), f"{unasked} (refresh_ms = {every})")

    def settle(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """Everything searchable and on disk, merged if asked for, on all its nodes."""
        wanted = [
            post(f"{INDEX}/_flush", [("force", "true"), ("wait_if_ongoing", "true")], b""),
            post(f"{INDEX}/_refresh", (), b""),
            health(params, _SETTLE_TIMEOUT),
        ]
        if params["segments"] == "merged":
            wanted.insert(0, post(f"{INDEX}/_forcemerge", [("max_num_segments", 1)], b""))
        return [Request((exchange,)) for exchange in wanted]

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The documents; a forced merge; opening."""
        return (INGEST, MERGE, OPENING)

    def work(
        self,
        job: str,
        levels: Parameters,
        schema: Schema,
        params: Parameters,
        done: Sequence[str] = (),
    ) -> Work:
        """Every shard to one segment, which is proven by asking for its segments."""
        if job != MERGE.name:
            return super().work(job, levels, schema, params, done)
        if params["segments"] == "merged":
            raise Unsupported('with segments = "merged" the ingest itself ends with a merge, so '
                              'the job has nothing to do; set segments = "as-is"')  # fmt: skip
        merge = post(f"{INDEX}/_forcemerge", [("max_num_segments", 1)], b"")
        flush = post(f"{INDEX}/_flush", [("force", "true"), ("wait_if_ongoing", "true")], b"")
        pairs = [("filter_path", "indices.*.shards.*.num_search_segments")]
        return Work(
            requests=(Request((merge,)), Request((flush,))),
            proven=(Proof("segments of a shard", Request((get(f"{INDEX}/_segments", pairs),)), 1),),
        )

    def left(self, reply: bytes) -> object:
        """How many segments the shard with most of them has."""
        (http,) = split(reply)
        shards = orjson.loads(http.body)["indices"][INDEX.strip("/")]["shards"].values()
        return max(one["num_search_segments"] for copies in shards for one in copies)

    @property
    def native(self) -> Native:
        """A body of JSON to the index that we make; any other request with its path."""
        return Native(f"{INDEX}/_search", "hits.hits: _id", trouble=_incomplete)

    def compile(self, query: Query, schema: Schema, params: Parameters) -> Request:
        """One ``_search``. Over several shards ties need a sort key more; one shard keeps order."""
        ties = _numbered(params) and params["ties"] == "ingest"
        pairs: list[tuple[str, str | int]] = [
            ("request_cache", "true" if params["request_cache"] else "false")
        ]
        if params["statistics"] == "global":
            pairs.append(("search_type", "dfs_query_then_fetch"))
        if preference := _PREFERENCES[str(params["preference"])]:
            pairs.append(("preference", preference))
        asked = dsl.body(query, schema, ties=ties)
        return Request((post(f"{INDEX}/_search", pairs, orjson.dumps(asked)),))

    def decode(self, reply: bytes) -> Hits:
        """Hits, facets, groups; an answer of some of the shards says so."""
        (http,) = split(reply)
        answer = orjson.loads(http.body)
        if (trouble := _trouble(http, answer)) is not None:
            return Hits(total=None, error=trouble)
        found, shards, counts = answer["hits"], answer["_shards"], answer.get("aggregations", {})
        counted = {
            name: [(_key(b), b["doc_count"]) for b in of["buckets"]] for name, of in counts.items()
        }
        warnings = _failures(shards)
        warnings += [
            f"counts of {dsl.field(name)} may be too small by {of['doc_count_error_upper_bound']}"
            for name, of in counts.items()
            if of.get("doc_count_error_upper_bound")
        ]
        if answer["timed_out"]:
            warnings.append("the time for the search ran out on some of the shards")
        return Hits(
            total=found["total"]["value"],
            hits=tuple(_hit(hit) for hit in found["hits"]),
            total_exact=found["total"]["relation"] == "eq",
            facets={dsl.field(k): v for k, v in counted.items() if k != dsl.GROUPS},
            groups=counted.get(dsl.GROUPS, ()),
            warnings=tuple(warnings),
            partial=answer["timed_out"] or shards["successful"] < shards["total"],
        )

    def facts_request(self) -> Request:
        """Version, cluster, nodes, and of the index its settings and figures."""
        return Request((get("/_cluster/health"), *_ABOUT))

    def ready(self, params: Parameters) -> Request:
        """The same, but the cluster is waited for, before it is asked for figures."""
        return Request((health(params, "1s"), *_ABOUT))

    def facts(self, reply: bytes) -> Facts:
        """Before ``create`` there is no index to read back. ValueError while nodes are missing."""
        replies = split(reply)
        if len(replies) != 4:
            raise ValueError(f"four replies were asked for, {len(replies)} came")
        answers = [orjson.loads(http.body) for http in replies]
        health, nodes, settings, stats = answers
        for http, answer in zip(replies, answers, strict=True):
            if http.status not in (200, 404, 408):
                raise ValueError(_trouble(http, answer))
        if health["timed_out"]:
            raise ValueError(_unfinished(health))
        found = _of_nodes(health, nodes["nodes"].values())
        if (replies[2].status, replies[3].status) != (200, 200):
            return found
        if not stats["_all"]["primaries"]:
            raise ValueError(_unfinished(health))
        return _with_index(found, settings["docs"]["settings"], stats["_all"])

    def cache_request(self) -> Request:
        """The statistics of its two caches and of its searches, over all indexes."""
        return Request((get("/_stats/request_cache,query_cache,search"),))

    def cache_state(self, reply: bytes) -> CacheState:
        """Of whole requests first, and of filters beside.

        Both count once for each shard, and hold bytes, not a number of answers. A search that may
        not be cached is no lookup, but is in ``query_total``. Where requests are not cached whole,
        the query cache may still have their filters.
        """
        (http,) = split(reply)
        if http.status != 200:
            raise ValueError(f"HTTP status {http.status}")
        total: dict[str, Any] = orjson.loads(http.body)["_all"]["total"]
        whole = _counters(total, "request_cache", _counters(total, "query_cache"))
        return CacheState(
            replace(whole, whole=True, asked=total.get("search", {}).get("query_total"))
        )

    def analyse(self, text: str) -> Request | None:
        """The index's own analysis."""
        asked = orjson.dumps({"analyzer": "declared", "text": text})
        return Request((post(f"{INDEX}/_analyze", [("filter_path", "tokens.token,error")], asked),))

    def terms(self, reply: bytes) -> tuple[str, ...]:
        """The terms in order."""
        (http,) = split(reply)
        answer = orjson.loads(http.body)
        if (trouble := _trouble(http, answer)) is not None:
            raise ValueError(trouble)
        return tuple(token["token"] for token in answer.get("tokens", ()))

    def refused(self, reply: bytes) -> tuple[tuple[str, str], ...]:
        """Documents that did not fit, with the innermost reason."""
        (http,) = split(reply)
        return tuple(
            (each["_id"], _reason(each["error"]))
            for each in _items(orjson.loads(http.body))
            if "error" in each and each["status"] in _REFUSALS
        )

    def check(self, reply: bytes) -> str | None:
        """The first error; a document that does not fit is not one of the batch."""
        for http in split(reply):
            answer = orjson.loads(http.body)
            if answer.get("timed_out"):
                return _unfinished(answer)
            if (trouble := _trouble(http, answer)) is not None:
                return trouble
            shards = answer.get("_shards") or {}
            if shards.get("failed"):
                return _failures(shards)[0]
            for each in _items(answer):
                if "error" in each and each["status"] not in _REFUSALS:
                    return f"{_reason(each['error'])} (document {each['_id']!r})"
        return None


def _incomplete(answer: Any) -> str | None:
    """What went wrong: the error's own words, shards that failed, time that ran out."""
    if not isinstance(answer, dict):
        return None
    if error := answer.get("error"):
        return _reason(error)
    shards = answer.get("_shards")
    if isinstance(shards, dict) and shards.get("failed"):
        return "; ".join(_failures(shards))
    if answer.get("timed_out") is True:
        return "the time for the search ran out on some of the shards"
    return None


def whole(params: Parameters) -> tuple[bytes, ...]:
    """What stands at the head of every complete answer, before the hits.

    A shard without a node counts as neither successful nor failed, so the shards are counted.
    """
    shards = params["shards"]
    every = f'"_shards":{{"total":{shards},"successful":{shards},'
    return (b'"timed_out":false', every.encode(), b'"failed":0')


def health(params: Parameters, timeout: str) -> bytes:
    """Asks for a cluster of all nodes in which every shard that can be is in its place."""
    complete = int(params["replicas"]) < int(params["nodes"])
    pairs: Pairs = [
        ("wait_for_nodes", f"ge({params['nodes']})"),  # what runs already may have more
        ("wait_for_status", "green" if complete else "yellow"),
        ("wait_for_no_initializing_shards", "true"),
        ("wait_for_no_relocating_shards", "true"),
        ("timeout", timeout),
    ]
    return get("/_cluster/health", pairs)


def _numbered(params: Parameters) -> bool:
    """Do documents carry their place in the corpus? Within one shard they keep it anyway."""
    return int(params["shards"]) > 1


def _counters(
    total: dict[str, Any], name: str, other: CacheCounters | None = None
) -> CacheCounters:
    hits = int(total[name]["hit_count"])
    lookups = hits + int(total[name]["miss_count"])
    return CacheCounters(hits, lookups, f"the {name.replace('_', ' ')}", False, other, whole=False)


def _hit(hit: dict[str, Any]) -> Hit:
    return Hit(
        hit["_id"],
        hit["_score"],
        {dsl.field(k): v for k, v in hit.get("_source", {}).items()},
        {dsl.field(k): pieces for k, pieces in hit.get("highlight", {}).items()},
    )


def _key(bucket: dict[str, Any]) -> Any:
    named = bucket.get("key_as_string")
    return named == "true" if named in ("true", "false") else bucket["key"]


def _failures(shards: dict[str, Any]) -> list[str]:
    """A sentence for each shard that failed, and one for those that have no node."""
    total = shards.get("total", 0)
    said = [
        f"shard {f.get('shard')} of {total} failed: {_reason(f.get('reason'))}"
        for f in shards.get("failures", ())
    ]
    absent = total - shards.get("successful", total) - shards.get("failed", 0)
    return said + (
        [f"{absent} of {total} shards have no node and did not answer"] if absent else []
    )


def _trouble(http: HttpReply, answer: Any) -> str | None:
    """The server's own words where it refused."""
    if error := answer.get("error"):
        return _reason(error)
    return f"HTTP status {http.status}" if http.status >= 400 else None


def _reason(error: Any) -> str:
    """The innermost cause, after what was being done."""
    if not isinstance(error, dict):
        return str(error)
    outer = str(error.get("reason") or error.get("type"))
    causes = error.get("root_cause") or ()
    inner = error.get("caused_by") or next((c for c in causes if c != error), None)
    words = _reason(inner) if inner else ""
    return f"{outer}: {words}" if words and words not in outer else outer


def _bulk(action: str, placed: Iterable[Placed], params: Parameters) -> Request:
    """One ``_bulk`` of the same action for each document."""
    lines = []
    for document, at, _ in placed:
        lines.append(orjson.dumps({action: {"_id": document.id}}))
        if action == "delete":
            continue
        values = {dsl.own(k): v for k, v in document.values.items()}
        if _numbered(params):
            values[dsl.ORDER] = at
        lines.append(orjson.dumps(values))
    kept = ",".join(f"items.{action}.{part}" for part in ("_id", "status", "error"))
    pairs = [("filter_path", f"errors,error,status,{kept}")]
    body = b"\n".join([*lines, b""])
    return Request((post(f"{INDEX}/_bulk", pairs, body, "application/x-ndjson"),))


def _items(answer: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """What became of each document, whatever was to be done with it."""
    return (each for item in answer.get("items", ()) for each in item.values())


def _unfinished(health: dict[str, Any]) -> str:
    return (
        f"the cluster is {health['status']}, with {health['number_of_nodes']} nodes, "
        f"{health['initializing_shards']} shards that are being made and "
        f"{health['unassigned_shards']} that have no node"
    )


def _of_nodes(health: dict[str, Any], nodes: Collection[dict[str, Any]]) -> Facts:
    """Before there is an index; of nodes that differ, what each of them says."""
    heaps = sorted({n["jvm"]["mem"]["heap_max_in_bytes"] >> 20 for n in nodes})
    caches = {n["settings"].get("indices.requests.cache.size") for n in nodes}
    of_each = {
        n["name"]: {
            "java": n["jvm"]["version"],
            "jvm_arguments": n["jvm"]["input_arguments"],
            "processors": n["os"]["allocated_processors"],
            "settings": n["settings"],
        }
        for n in nodes
    }
    return Facts(
        version=", ".join(sorted({n["version"] for n in nodes})),
        parameters={
            "nodes": health["number_of_nodes"],
            "heap_mb": heaps[0] if len(heaps) == 1 else str(heaps),
            "request_cache": caches != {"0%"},
        },
        extra={"status": health["status"], "nodes": of_each},
    )


def _with_index(found: Facts, settings: dict[str, str], figures: dict[str, Any]) -> Facts:
    refresh = settings["index.refresh_interval"]
    primaries, total = figures["primaries"], figures["total"]
    levers: dict[str, Level] = {
        "shards": int(settings["index.number_of_shards"]),
        "replicas": int(settings["index.number_of_replicas"]),
        "refresh_ms": 0 if refresh == "-1" else int(refresh.removesuffix("ms")),
        "query_cache": settings["index.queries.cache.enabled"] == "true",
    }
    extra = {
        "segments": total["segments"]["count"],
        "primaries_bytes": primaries["store"]["size_in_bytes"],
        "request_cache_hits": total["request_cache"]["hit_count"],
        "request_cache_misses": total["request_cache"]["miss_count"],
        "query_cache_hits": total["query_cache"]["hit_count"],
        "query_cache_misses": total["query_cache"]["miss_count"],
    }
    return replace(
        found,
        documents=primaries["docs"]["count"],
        index_bytes=total["store"]["size_in_bytes"],
        parameters={**found.parameters, **levers},
        extra={**found.extra, **extra},
    )
