"""Droonga, Groonga's replicated sibling, by its Groonga-compatible HTTP; only attached to.

Written from its documentation, its sources and a description of its replies: nothing of it is in a
registry, so it was never run here. Its `select` takes the parameters of Groonga's of 2015 alone and
passes over all others, so what needs the newer ones is refused.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from searchbench.corpora.corpus import Document, FieldType, Schema
from searchbench.engines.engine import (
    Capabilities,
    Facts,
    Hit,
    Hits,
    Level,
    Offline,
    Parameter,
    Parameters,
    Request,
    Service,
)
from searchbench.engines.features import refuse
from searchbench.engines.groonga import script as script
from searchbench.engines.groonga.commands import columns, do, indexes, load, rows
from searchbench.engines.http_form import HttpReply, get, split
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
# What an error is, where the body has no words: it holds return code 0 then, with no count.
_MEANT = {
    400: "Droonga cannot make anything of it",
    404: "Droonga has no such table or command",
    504: "an engine node did not answer in time",
}


class Droonga:
    """Engine nodes that each hold everything, behind an HTTP front that caches by URL."""

    name = "droonga"
    can = Capabilities(
        title="Droonga",
        home="https://droonga.org",
        unavailable=_NOT_HERE,
        cannot={
            "fuzzy": "upstream must: it passes over all that Groonga learned after 2015",
            "facets": "we could: its drilldowns come without the names of their fields, and were "
            "seen to count otherwise than Groonga's",
            "group_by": "we could: as facets",
            "snippets": "we could: snippet_html() among the output columns; pieces were seen to be "
            "cut otherwise than by Groonga",
            "refusal": "upstream must: a value that does not fit its column is not told",
        },
        deviations={
            "scoring": "term frequency, added up over terms, fields and filters",
            "analysis": "Groonga's own: TokenBigram, NormalizerAuto; a term that no document has "
            "is looked for more loosely, within words",
            "sort": "each node breaks ties by its own order of ingest",
            "repetition": "its HTTP front answers from a cache of 100 replies for 60 s, which "
            "cannot be turned off from here",
        },
    )
    parameters = (
        Parameter(
            "nodes",
            int,
            1,
            "engine nodes that live, each with all documents; read back, not set",
            minimum=1,
            maximum=1000,
        ),
    )

    def service(self, params: Parameters, schema: Schema) -> Service:
        """What answers; it is not started by us."""
        return Service(
            argv=("droonga-engine",),
            wire="http",
            ready=self.facts_request(),
            needs={"droonga-engine": _NOT_HERE},
        )

    def offline(self, schema: Schema, params: Parameters) -> Offline | None:
        """Ingested into over the wire."""
        return None

    def create(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """All of it to one front, one after another: schema changes that cross break a cluster."""
        tables = [
            do("table_create", name="Docs", flags="TABLE_HASH_KEY", key_type="ShortText"),
            do("table_create", name="Terms", **_LEXICON),
        ]
        return [Request((*tables, *columns(schema)))]

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
        scored = not query.sort or any(s.field == "_score" for s in query.sort)
        shown = ["_key", *(["_score"] if scored else [])]
        for name in query.fields:
            shown += [script.value(name), script.here(name)]
        pairs: list[tuple[str, str | int]] = [
            ("table", "Docs"),
            ("filter", wanted),
            ("output_columns", ",".join(shown)),
            ("sortby", script.sort_keys(query.sort, schema, "_score")),
            ("offset", query.offset),
            ("limit", query.limit),
        ]
        return Request((get("/d/select", pairs),))

    def decode(self, reply: bytes) -> Hits:
        """Hits; an HTTP status that is an error is one, whatever return code the body holds."""
        (http,) = split(reply)
        trouble = _trouble(http)
        if trouble is not None:
            return Hits(total=None, error=trouble)
        (total,), names, *found = _body(http)[0]
        if not isinstance(total, int):
            raise ValueError(f"the answer has no count, but {total!r}")
        labels = [name for name, _type in names]
        return Hits(
            total=total, hits=tuple(_hit(dict(zip(labels, row, strict=True))) for row in found)
        )

    def facts_request(self) -> Request:
        """Nodes, the front's cache, the number of documents."""
        # The front answers the same URL from its cache, so this one never is the same.
        counted: list[tuple[str, str | int]] = [
            ("table", "Docs"),
            ("limit", 0),
            ("output_columns", "_key"),
            ("fresh", secrets.token_hex(4)),
        ]
        return Request(
            (
                get("/droonga/system/status"),
                get("/statistics/cache"),
                get("/d/select", counted),
            )
        )

    def facts(self, reply: bytes) -> Facts:
        """It does not tell its version; the form of its status tells it apart from before 1.1.1."""
        replies = split(reply)
        if len(replies) != 3:
            raise ValueError(f"three replies were asked for, {len(replies)} came")
        status, cache, counted = replies
        for http in (status, cache):
            if http.status >= 400:
                raise ValueError(f"HTTP status {http.status}")
        nodes: dict[str, Any] = orjson.loads(status.body)["nodes"]
        statistics = orjson.loads(cache.body)
        levers: dict[str, Level] = {"nodes": sum(map(_lives, nodes.values()))}
        named = any("status" in node for node in nodes.values())
        documents = None
        if counted.status not in _NO_TABLE:
            trouble = _trouble(counted)
            if trouble is not None:
                raise ValueError(trouble)
            documents = _body(counted)[0][0][0]
        return Facts(
            version="1.1.1 or later" if named else "1.1.0 or before",
            documents=documents,
            parameters=levers,
            extra={
                "nodes": {name: "active" if _lives(n) else _state(n) for name, n in nodes.items()},
                "cache_hit_rate_percent": statistics["hitRatio"],
                "cache_hits": statistics.get("nHits"),
                "cache_gets": statistics.get("nGets"),
            },
        )

    def analyse(self, text: str) -> Request | None:
        """It passes no such command on."""
        return None

    def terms(self, reply: bytes) -> tuple[str, ...]:
        """Never asked."""
        raise ValueError("Droonga does not tell its terms")

    def refused(self, reply: bytes) -> tuple[tuple[str, str], ...]:
        """``load`` tells how many documents it took, not which it did not."""
        return ()

    def check(self, reply: bytes) -> str | None:
        """The first error of the exchanges."""
        return next((t for t in map(_trouble, split(reply)) if t is not None), None)


def _lives(node: Mapping[str, Any]) -> bool:
    """Both forms: ``{"live": true}`` until 1.1.0, ``{"status": "active"}`` since."""
    return node.get("status") == "active" or node.get("live") is True


def _state(node: Mapping[str, Any]) -> str:
    return str(node.get("status", "dead"))


def _body(http: HttpReply) -> Any:
    _header, body = orjson.loads(http.body)
    return body


def _hit(row: dict[str, Any]) -> Hit:
    held = [c for c in row if c.startswith("v_") and row["h_" + c[2:]]]
    return Hit(row["_key"], row.get("_score"), {script.field(c): row[c] for c in held})


def _trouble(http: HttpReply) -> str | None:
    """The HTTP status first: the body of an error may hold return code 0."""
    words = ""
    try:
        code, _time, _elapsed, *said = orjson.loads(http.body)[0]
    except (ValueError, TypeError, KeyError, IndexError):
        if http.status < 400:
            raise ValueError("the body is no answer of Groonga's form") from None
    else:
        words = str(said[0]) if said else ""
        if code and http.status < 400:
            return words or f"return code {code}"
    if http.status < 400:
        return None
    words = words or _MEANT.get(http.status, "")
    return f"HTTP status {http.status}{f': {words}' if words else ''}"
