"""Droonga, Groonga's replicated sibling, by its Groonga-compatible HTTP; only attached to.

Written from its documentation and sources, and corrected by what a real one answers (engine 1.1.2,
HTTP server 1.1.3, one node and three). No registry has it, so the tests hold the form of its
replies. Its `select` takes the parameters of Groonga's of 2015 alone and passes over all others, so
what needs the newer ones is refused.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from searchbench.corpora.corpus import Document, FieldType, Schema
from searchbench.engines.answer import CacheCounters, CacheState, Facts, Hits
from searchbench.engines.engine import Capabilities, Engine, Parameters, Request, Service
from searchbench.engines.features import keys, refuse, scored
from searchbench.engines.groonga import script
from searchbench.engines.groonga.commands import columns, do, indexes, load, rows
from searchbench.engines.http_form import HttpReply, Pairs, get, split
from searchbench.engines.levers import described, number, switch
from searchbench.workload.queries.algebra import Query

_LEXICON = {
    "flags": "TABLE_PAT_KEY",
    "key_type": "ShortText",
    "default_tokenizer": "TokenBigram",
    "normalizer": "NormalizerAuto",
}
_NOT_HERE = (
    "no registry has it; install droonga-engine and droonga-http-server as https://droonga.org "
    'says, and name where it answers: attach = "127.0.0.1:10042"'
)
_NO_TABLE = (400, 404)
_LONGEST = 200  # characters of an error's details
# What an error is, where the body has no words: it holds return code 0 then, with no count, or is
# null. A node that goes away under load gives 500 at once, then 504 and 503 for some 10 s, until
# the front has dropped it.
_MEANT = {
    400: "Droonga cannot make anything of it",
    404: "Droonga has no such table or command",
    500: "an engine node failed, or has just gone away",
    503: "the HTTP front reached no engine node",
    504: "an engine node did not answer in time",
}


class Droonga(Engine):
    """Engine nodes that each hold everything, behind an HTTP front that caches by URL."""

    name = "droonga"
    can = Capabilities(
        title="Droonga",
        home="https://droonga.org",
        unavailable=_NOT_HERE,
        cannot={
            "fuzzy": "upstream must: it has nothing that Groonga added after 2015",
            "facets": "we could: its drilldowns come without the names of their fields, and we saw "
            "them count differently from Groonga",
            "group_by": "we could: for the same reason as facets",
            "snippets": "we could: snippet_html() among the output columns; we saw it cut pieces "
            "differently from Groonga",
            "refusal": "upstream must: a value that does not fit its column is not reported",
        },
        deviations={
            "scoring": "term frequency, added up over terms, fields and filters",
            "analysis": "Groonga's own: TokenBigram, NormalizerAuto; if a field has a term "
            "nowhere, the term is searched for within words of that field",
            "sort": "each node breaks ties by its own order of ingest",
            "repetition": "its HTTP front end answers from a cache of 100 replies for 60 s, unless "
            "it was started with --cache-size 0",
        },
    )
    parameters = described(
        {
            number("nodes", 1, (1, 1000)): "how many engine nodes are alive, each with all "
            "documents; it is read, and cannot be set",
            switch("cache", True): "whether its HTTP front end answers from a cache; it is read, "
            "and cannot be set: `droonga-http-server --cache-size 0` turns the cache off",
        }
    )

    def service(self, params: Parameters, schema: Schema) -> Service:
        """What answers; it is not started by us."""
        return Service(
            argv=("droonga-engine",),
            wire="http",
            ready=self.facts_request(),
            needs={"droonga-engine": _NOT_HERE},
        )

    def create(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """All of it to one front, one after another: schema changes that cross break a cluster."""
        documents = do("table_create", name="Docs", flags="TABLE_HASH_KEY", key_type="ShortText")
        terms = do("table_create", name="Terms", **_LEXICON)
        return [Request((documents, terms, *columns(schema)))]

    def batch(
        self, documents: Sequence[Document], start: int, schema: Schema, params: Parameters
    ) -> Request:
        """One ``load``, which the front takes apart into a message for each document."""
        return Request((load("Docs", rows(documents)),))

    def settle(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """The text indexes."""
        text = indexes(schema)
        return [Request(tuple(text))] if text else []

    def compile(self, query: Query, schema: Schema, params: Parameters) -> Request:
        """One ``select`` with the parameters that Droonga knows."""
        refuse(self.can, query)
        text = [f.name for f in schema.of_type(FieldType.TEXT)]
        wanted = script.EVERY if query.match is None else script.match(query.match, text)
        if query.filters:
            wanted = f"{wanted} && {script.filters(query.filters, schema)}"
        shown = ["_key", *(["_score"] if scored(query) else [])]
        for name in query.fields:
            shown += [script.value(name), script.here(name)]
        pairs: list[tuple[str, str | int]] = [
            ("table", "Docs"),
            ("filter", wanted),
            ("output_columns", ",".join(shown)),
            ("sortby", script.sort_keys(keys(query), schema, "_score")),
            ("offset", query.offset),
            ("limit", query.limit),
        ]
        return Request((get("/d/select", pairs),))

    def decode(self, reply: bytes) -> Hits:
        """Hits; an HTTP status that is an error is one, whatever return code the body holds."""
        (http,) = split(reply)
        if (trouble := _trouble(http)) is not None:
            return Hits(total=None, error=trouble)
        (total,), names, *found = _body(http)[0]
        if not isinstance(total, int):
            raise ValueError(f"the answer has no count, but {total!r}")
        labels = [name for name, _type in names]
        return Hits(total=total, hits=tuple(script.hit(labels, row) for row in found))

    def facts_request(self) -> Request:
        """Nodes, the front's cache, the number of documents."""
        # The front answers the same URL from its cache, so this one never is the same.
        fresh = ("fresh", secrets.token_hex(4))
        counted: Pairs = [("table", "Docs"), ("limit", 0), ("output_columns", "_key"), fresh]
        status, cache = get("/droonga/system/status"), get("/statistics/cache")
        return Request((status, cache, get("/d/select", counted)))

    def facts(self, reply: bytes) -> Facts:
        """It does not tell its version; the form of its status tells it apart from before 1.1.1."""
        replies = split(reply)
        if len(replies) != 3:
            raise ValueError(f"three replies were asked for, {len(replies)} came")
        status, cache, counted = replies
        if status.status >= 400:
            raise ValueError(f"HTTP status {status.status}")
        nodes: dict[str, Any] = orjson.loads(status.body)["nodes"]
        statistics = _statistics(cache)
        named = any("status" in node for node in nodes.values())
        documents = None
        if counted.status not in _NO_TABLE:
            if (trouble := _trouble(counted)) is not None:
                raise ValueError(trouble)
            documents = _body(counted)[0][0][0]
        states = {k: "active" if _lives(n) else n.get("status", "dead") for k, n in nodes.items()}
        extra: dict[str, Any] = {"nodes": states}
        if statistics is not None:
            extra |= {
                "cache_hit_rate_percent_since_start": statistics["hitRatio"],
                "cache_hits": statistics.get("nHits"),
                "cache_gets": statistics.get("nGets"),
            }
        return Facts(
            version="1.1.1 or later" if named else "1.1.0 or before",
            documents=documents,
            parameters={
                "nodes": sum(map(_lives, nodes.values())),
                "cache": statistics is not None,
            },
            extra=extra,
        )

    def cache_request(self) -> Request:
        """The statistics of the front's cache."""
        return Request((get("/statistics/cache"),))

    def cache_state(self, reply: bytes) -> CacheState:
        """Its counters; how many replies it holds, it says only where it holds none."""
        (http,) = split(reply)
        if (found := _statistics(http)) is None:
            return CacheState(entries=0)
        return CacheState(
            CacheCounters(int(found["nHits"]), int(found["nGets"]), "Droonga's front")
        )

    def taken(self, reply: bytes) -> int:
        """How many documents of a batch it took; which others it drops, it does not say."""
        (http,) = split(reply)
        body = _body(http)
        count = body[0] if isinstance(body, list) and len(body) == 1 else body
        if not isinstance(count, int):
            raise ValueError(f"the answer to a load has no count, but {body!r}")
        return count

    def check(self, reply: bytes) -> str | None:
        """The first error of the exchanges."""
        return next((t for t in map(_trouble, split(reply)) if t is not None), None)


def _lives(node: Mapping[str, Any]) -> bool:
    """Both forms: ``{"live": true}`` until 1.1.0, ``{"status": "active"}`` since."""
    return node.get("status") == "active" or node.get("live") is True


def _statistics(http: HttpReply) -> dict[str, Any] | None:
    """Of the front's cache; None where it was started without one, and has no such page."""
    if http.status == 404:
        return None
    if http.status >= 400:
        raise ValueError(f"HTTP status {http.status}")
    found: dict[str, Any] = orjson.loads(http.body)
    return found


def _body(http: HttpReply) -> Any:
    _header, body = orjson.loads(http.body)
    return body


def _trouble(http: HttpReply) -> str | None:
    """The HTTP status first: the body of an error may hold return code 0."""
    try:
        answer = orjson.loads(http.body)
        code, _time, _elapsed, *said = answer[0]
    except (ValueError, TypeError, KeyError, IndexError):
        if http.status < 400:
            raise ValueError("the body is no answer of Groonga's form") from None
        words = _words(http.body)
    else:
        words = str(said[0]) if said else ""
        if code and http.status < 400:
            return words or f"return code {code}"
    if http.status < 400:
        return None
    words = words or _MEANT.get(http.status, "")
    return f"HTTP status {http.status}{f': {words}' if words else ''}"


def _words(body: bytes) -> str:
    """Of an error that is an object with a name, a message, and perhaps details."""
    try:
        error = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    if not isinstance(error, dict):
        return ""
    words = ": ".join(str(error[key]) for key in ("name", "message") if error.get(key))
    if error.get("detail"):
        words += f" ({orjson.dumps(error['detail']).decode()[:_LONGEST]})"
    return words
