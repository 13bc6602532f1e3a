"""Groonga, a full-text search engine and column store in C, over the HTTP of its own server."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import orjson

from searchbench.corpora.corpus import Document, FieldType, Schema
from searchbench.engines.answer import CacheCounters, CacheState, Facts, Hits
from searchbench.engines.engine import Capabilities, Engine, Level, Parameters, Request, Service
from searchbench.engines.features import keys, refuse, scored
from searchbench.engines.groonga import script
from searchbench.engines.groonga.commands import column, columns, do, indexes, load, rows, short
from searchbench.engines.groonga.service import service
from searchbench.engines.http_form import HttpReply, get, split
from searchbench.engines.levers import choice, described, number, switch
from searchbench.engines.native import Native
from searchbench.engines.write import Placed, Publish
from searchbench.workload.queries.algebra import Query
from searchbench.workload.queries.analysis import lower
from searchbench.workload.roles import NOTHING

_TOKENIZERS = {"declared": 'TokenDelimit("pattern", "[^\\\\p{L}\\\\p{N}]+")'}
_NORMALIZERS = {"declared": 'NormalizerTable("normalized", "Lower.to")'}
# Snippets take no normalizer with options; this one folds all that ours does, and more.
_FOLDS = {"declared": "NormalizerNFKC150"}
_GROUPS = "groups"


class Groonga(Engine):
    """One database, one server; a lexicon for all text fields, one for each keyword field."""

    name = "groonga"
    can = Capabilities(
        title="Groonga",
        home="https://groonga.org",
        on_hosts=True,
        packages=("groonga-bin", "groonga-httpd"),
        cannot={
            "fuzzy": "we could: fuzzy_search() searches the keys of a table, so also a lexicon; we "
            "have not tested whether its distance is the same as ours",
            "refusal": "upstream must: `load` stores the document without the value that does not "
            "fit, and names the value but not the document; so the ingest fails",
        },
        unread={
            "httpd_workers": "upstream must: nginx does not report how many workers it has",
            "index_first": "never: nothing in the server shows which was made first",
            "clear_locks": "never: it is done before the server starts",
        },
        deviations={
            "scoring": "term frequency, added up over terms and fields; no document frequency, no "
            "field length; must beside should, and a prefix or NOT alone, add constants",
            "analysis": "letters and digits added to Unicode after version 9 separate words",
            "facets": "if a document has a value twice, it counts twice",
            "keyword": "an empty string counts as no value; a keyword has at most 4096 bytes",
        },
    )
    parameters = described(
        {
            choice("server", "groonga", "httpd"): "groonga: its own server, which closes the "
            "connection after each request; httpd: groonga-httpd, which keeps it open",
            number("threads", 2, (1, 256)): "threads of its own server (Groonga's own default: "
            "one a core)",
            number("httpd_workers", 2, (1, 256)): "worker processes of groonga-httpd, with one "
            "thread each",
            number("cache_limit", 0, (0, 1_000_000)): "how many answers the query cache keeps (in "
            "groonga-httpd, that of each worker); 0: off, so that we do not measure the cache",
            choice(
                "tokenizer",
                "declared",
                "TokenBigram",
                "TokenBigramSplitSymbolAlphaDigit",
                "TokenUnigram",
                "TokenTrigram",
                index=True,
            ): "how text is split; declared: at everything that is not a letter or a digit",
            choice(
                "normalizer", "declared", "NormalizerAuto", "NormalizerNFKC150", index=True
            ): "how characters are normalised; declared: each character to lower case, and nothing "
            "else",
            switch("index_first", False, index=True): "make the text indexes before the documents "
            "are put in, instead of after",
            switch("clear_locks", False): "when a process that writes is started again after a "
            "fault, `lock_clear` first removes the locks that it left in the database; otherwise "
            "`load` may wait for such a lock for ever",
        }
    )

    def service(self, params: Parameters, schema: Schema) -> Service:
        """Its own server, or groonga-httpd."""
        return service(params, self.facts_request())

    def create(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """Tables, columns, lexicons; the text indexes too if they are to be first."""
        table = [do("table_create", name="Docs", flags="TABLE_HASH_KEY", key_type="ShortText")]
        if params["normalizer"] == "declared":
            lexicon = {"flags": "TABLE_PAT_KEY", "key_type": "ShortText"}
            table += [
                do("table_create", name="Lower", **lexicon),
                column("Lower", "to", "COLUMN_SCALAR", "ShortText"),
                load("Lower", orjson.dumps([["_key", "to"], *_lowered()])),
            ]
        analysis = {
            "flags": "TABLE_PAT_KEY",
            "key_type": "ShortText",
            "default_tokenizer": _named(_TOKENIZERS, params["tokenizer"]),
            "normalizer": _named(_NORMALIZERS, params["normalizer"]),
        }
        # A text that is only to be analysed must not leave its terms in the index.
        table += [do("table_create", name=name, **analysis) for name in ("Terms", "Asked")]
        table += columns(schema)
        if params["index_first"]:
            table += indexes(schema)
        return [Request(tuple(table))]

    def batch(
        self, documents: Sequence[Document], start: int, schema: Schema, params: Parameters
    ) -> Request:
        """One ``load``; what a document has is marked."""
        return Request((load("Docs", rows(documents)),))

    def cannot_write(self, params: Parameters) -> Mapping[str, str]:
        """It can do all."""
        return {}

    def update(self, changed: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """The same ``load``: a key that is there gets the new values."""
        return Request((load("Docs", rows([each.document for each in changed])),))

    def delete(self, gone: Sequence[Placed], schema: Schema, params: Parameters) -> Request:
        """One ``delete`` of all these keys."""
        keyed = " || ".join(f"_key == {script.text_literal(each.document.id)}" for each in gone)
        return Request((do("delete", table="Docs", filter=keyed),))

    def publish(self, schema: Schema, params: Parameters) -> Publish:
        """What was loaded is found at once."""
        return Publish(NOTHING, (), "a document is found as soon as it was loaded")

    def settle(self, schema: Schema, params: Parameters) -> Iterable[Request]:
        """The text indexes, if they are to come after the documents; everything to disk."""
        text = [] if params["index_first"] else indexes(schema)
        return [Request((*text, do("io_flush")))]

    @property
    def native(self) -> Native:
        """Commands with their path: /d/select?table=Docs.., and `rows_at` by its version."""
        return Native(trouble=_refusal)

    def compile(self, query: Query, schema: Schema, params: Parameters) -> Request:
        """One ``select``."""
        refuse(self.can, query)
        text = [f.name for f in schema.of_type(FieldType.TEXT)]
        wanted = script.EVERY if query.match is None else script.match(query.match, text)
        pairs: list[tuple[str, str | int]] = [
            ("table", "Docs"),
            ("match_escalation", "no"),
            ("filter", wanted),
        ]
        score = "_score"
        if query.filters:
            pairs.append(("post_filter", script.filters(query.filters, schema)))
            if scored(query):  # filters add to the score, so what it was before them is kept
                score = script.RELEVANCE
                made = f"columns[{score}]"
                pairs += [(f"{made}.stage", "filtered"), (f"{made}.type", "Float")]
                pairs.append((f"{made}.value", "_score"))
        shown = ["_key", *([score] if scored(query) else ())]
        for name in query.fields:
            shown += [script.value(name), script.here(name)]
        for name in query.snippets:
            cut = script.snippet(name, query.match, _named(_FOLDS, params["normalizer"]))
            if cut is None:  # nothing is searched for, so there is nothing to cut around
                continue
            shown.append(script.pieces(name))
            made = f"columns[{script.pieces(name)}]"
            pairs += [(f"{made}.stage", "output"), (f"{made}.type", "ShortText")]
            pairs += [(f"{made}.flags", "COLUMN_VECTOR"), (f"{made}.value", cut)]
        pairs += [
            ("output_columns", ",".join(shown)),
            ("sort_keys", script.sort_keys(keys(query), schema, score)),
            ("offset", query.offset),
            ("limit", query.limit),
        ]
        for facet in query.facets:
            pairs += _counted("", script.value(facet.field), facet.field, facet.limit)
        if query.group_by is not None:
            pairs += [
                (f"slices[{_GROUPS}].filter", f"{script.here(query.group_by)} == 1"),
                (f"slices[{_GROUPS}].limit", 0),
                *_counted(f"slices[{_GROUPS}].", _GROUPS, query.group_by, query.limit),
            ]
        return Request((get("/d/select", [("command_version", 3), *pairs]),))

    def decode(self, reply: bytes) -> Hits:
        """Hits, facets, groups; Groonga's own error text where it refused."""
        (http,) = split(reply)
        answer = _answer(http)
        if (trouble := _trouble(http, answer)) is not None:
            return Hits(total=None, error=trouble)
        body = answer["body"]
        names = [c["name"] for c in body["columns"]]
        groups = body.get("slices", {}).get(_GROUPS, {}).get("drilldowns", {})
        return Hits(
            total=body["n_hits"],
            hits=tuple(script.hit(names, row) for row in body["records"]),
            facets={
                script.field(label): _pairs(found)
                for label, found in body.get("drilldowns", {}).items()
            },
            groups=_pairs(groups[_GROUPS]) if groups else (),
        )

    def facts_request(self) -> Request:
        """Version and cache, two levers, the tables with their analysis, the documents."""
        asked = map(do, ("status", "thread_limit", "cache_limit", "table_list"))
        return Request((*asked, do("object_inspect", name="Docs")))

    def facts(self, reply: bytes) -> Facts:
        """Before ``create`` there are no documents to count, and no analysis to read back."""
        replies = split(reply)
        if len(replies) != 5:
            raise ValueError(f"five replies were asked for, {len(replies)} came")
        answers: list[Any] = [_answer(http) for http in replies]
        for http, answer in zip(replies, answers, strict=True):
            trouble = _trouble(http, answer)
            no_table = http is replies[4] and http.status == 400
            if trouble is not None and not no_table:
                raise ValueError(trouble)
        status, threads, cached, tables, docs = (answer.get("body") for answer in answers)
        own = _is_own(replies[0])
        levers: dict[str, Level] = {"server": "groonga" if own else "httpd", "cache_limit": cached}
        if own:  # a worker of groonga-httpd always has one
            levers["threads"] = threads
        names = [c[0] for c in tables[0]]
        for row in tables[1:]:
            table = dict(zip(names, row, strict=True))
            if table["name"] == "Terms":
                levers["tokenizer"] = _read_back(_TOKENIZERS, table["default_tokenizer"])
                levers["normalizer"] = _read_back(_NORMALIZERS, table["normalizer"])
        return Facts(
            version=status["version"],
            documents=docs["n_records"] if docs else None,
            parameters=levers,
            extra={
                "cache_hit_rate_percent_since_start": status["cache_hit_rate"],
                "queries_since_start": status["n_queries"],
                "features": [k for k, v in status["features"].items() if v],
            },
        )

    def cache_request(self) -> Request:
        """The counters of its query cache, and how many answers it holds; neither is a lookup."""
        return Request((do("status"), do("cache_limit")))

    def cache_state(self, reply: bytes) -> CacheState:
        """Hits among the selects, and the size; ValueError where these are not the two replies.

        ``status`` counts every ``select`` since the start as a lookup (``n_queries``) and gives
        the hits among them in percent. Groonga takes nothing from its cache that it answered in
        the second in which its database last changed, or before: a warm-up begins a second after
        the last document came in. groonga-httpd counts in each of its workers by itself and does
        not say which one answers, so its counters are not taken; the size of its cache is.
        """
        replies = split(reply)
        if len(replies) != 2:
            raise ValueError(f"two replies were asked for, {len(replies)} came")
        status, limit = map(_body, replies)
        if not isinstance(limit, int):
            raise ValueError(f"the size of the cache is no number, but {limit!r}")
        if not _is_own(replies[0]):
            return CacheState(entries=limit)
        lookups = int(status["n_queries"])
        hits = round(float(status["cache_hit_rate"]) * lookups / 100)
        return CacheState(CacheCounters(hits, lookups, "Groonga's status"), limit)

    def analyse(self, text: str) -> Request | None:
        """The lexicon's own analysis, on a table beside it."""
        return Request((do("table_tokenize", table="Asked", string=text, mode="ADD"),))

    def terms(self, reply: bytes) -> tuple[str, ...]:
        """The terms in order."""
        (http,) = split(reply)
        answer = _answer(http)
        if (trouble := _trouble(http, answer)) is not None:
            raise ValueError(trouble)
        return tuple(token["value"] for token in answer["body"])

    def refused(self, reply: bytes) -> tuple[tuple[str, str], ...]:
        """By place in the batch: Groonga does not say the key of what it refused."""
        (http,) = split(reply)
        return tuple(
            (f"document {place} of its batch", message) for place, message in _errors(_answer(http))
        )

    def check(self, reply: bytes) -> str | None:
        """The first error of the exchanges; a refused document is not one of the batch.

        Where only a value was refused its document is in the index without it, and does not
        count as refused: that error stands in the header alone.
        """
        for http in split(reply):
            answer = _answer(http)
            trouble = _trouble(http, answer)
            if trouble is not None and trouble not in {message for _, message in _errors(answer)}:
                return trouble
        return None


def _answer(http: HttpReply) -> dict[str, Any]:
    """Header and body; some errors come in the first form of replies, whatever was asked for."""
    if http.status >= 500:  # from nginx, in HTML
        return {"header": {"error": {"message": f"HTTP status {http.status}"}}}
    answer = orjson.loads(http.body)
    if isinstance(answer, dict):
        return answer
    (code, _start, _elapsed, *words), *body = answer
    error = {"error": {"message": words[0]}} if words else {}
    return {"header": {"return_code": code, **error}, "body": body[0] if body else None}


def _body(http: HttpReply) -> Any:
    if http.status != 200:
        raise ValueError(f"HTTP status {http.status}")
    answer = orjson.loads(http.body)
    return answer["body"] if isinstance(answer, dict) else answer[1]


def _is_own(http: HttpReply) -> bool:
    """Did its own server answer, and not groonga-httpd?"""
    return http.headers.get("server", "").startswith("Groonga")


def _errors(answer: dict[str, Any]) -> list[tuple[int, str]]:
    """Place in the batch, from 1, and message of the documents of a ``load`` that had errors."""
    body = answer.get("body")
    errors = body.get("errors", ()) if isinstance(body, dict) else ()
    return [
        (place, short(str(error["message"])))
        for place, error in enumerate(errors, 1)
        if error["return_code"]
    ]


def _counted(where: str, label: str, field: str, limit: int) -> list[tuple[str, str | int]]:
    """A drilldown: the most frequent values, ties by value."""
    at = f"{where}drilldowns[{label}]"
    return [
        (f"{at}.keys", script.value(field)),
        (f"{at}.output_columns", "_key,_nsubrecs"),
        (f"{at}.sort_keys", "-_nsubrecs,_key"),
        (f"{at}.limit", limit),
    ]


def _pairs(drilldown: dict[str, Any]) -> list[tuple[str, int]]:
    return [(value, count) for value, count in drilldown["records"]]


def _refusal(answer: Any) -> str | None:
    """Groonga's own words, in the first form of replies or the third."""
    if isinstance(answer, list) and answer and isinstance(answer[0], list):
        code, _start, _elapsed, *words = answer[0]
        return short(str(words[0] if words else code)) if code else None
    if isinstance(answer, dict) and (error := answer.get("header", {}).get("error")):
        return short(str(error["message"]))
    return None


def _trouble(http: HttpReply, answer: Any) -> str | None:
    """Groonga's own words where it refused."""
    if error := answer["header"].get("error"):
        return short(str(error["message"]))
    return f"HTTP status {http.status}" if http.status >= 400 else None


def _named(known: dict[str, str], level: Level) -> str:
    return known.get(str(level), str(level))


def _read_back(known: dict[str, str], found: str) -> str:
    return next((level for level, name in known.items() if name == found), found)


@cache
def _lowered() -> tuple[tuple[str, str], ...]:
    """Every character that the declared analysis changes, and what it becomes."""
    every = (chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000)
    return tuple((c, lower(c)) for c in every if unicodedata.category(c) != "Cn" and lower(c) != c)
