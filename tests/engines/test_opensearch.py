"""What is OpenSearch's and Elasticsearch's own: levers, field names, Unicode, shards, caches.

One server of one node each for all of it, because a start takes seconds: each test makes the index
anew. A cluster of three nodes and what goes wrong stand in test_opensearch_cluster.py.
"""

from __future__ import annotations

import base64
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from certificates import Authority
from engines.reference import Reference
from engines.test_conformance import SCHEMA, Shelf
from searchbench.corpora.corpus import Corpus, Document, Field, FieldType, Schema
from searchbench.engines import defaults
from searchbench.engines.answer import Hits
from searchbench.engines.engine import Engine, Level, Request
from searchbench.engines.http_form import post, split
from searchbench.engines.opensearch import Elasticsearch, OpenSearch
from searchbench.engines.opensearch.http import RestSearch, whole
from searchbench.engines.opensearch.levers import LEVERS
from searchbench.engines.opensearch.query import GROUPS, ORDER, field, own
from searchbench.errors import LabError, Unsupported
from searchbench.lab.conduct.caches import read
from searchbench.lab.conduct.ingest import ingest, spool
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.measure.load import load
from searchbench.record.trial import Ingest
from searchbench.workload.queries.algebra import Facet, In, Mode, Query, Range, Sort, Terms
from searchbench.workload.queries.analysis import terms
from web import nginx

ENGINES: tuple[RestSearch, ...] = (OpenSearch(), Elasticsearch())
DELETE = Request((b"DELETE /docs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",))
Rebuild = Callable[..., tuple[Deployment, Ingest]]


@pytest.fixture(scope="module", params=ENGINES, ids=lambda engine: engine.name)
def node(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    engine: RestSearch = request.param
    if lacking := missing(engine):
        pytest.skip(f"no {engine.name} here: {lacking}")
    place: Path = tmp_path_factory.mktemp(engine.name)
    levels = {**defaults(engine), "request_cache": True, "heap_mb": 400}
    with Deployment(engine, levels, place / "data", place / "run") as running:
        yield running


@pytest.fixture
def rebuilt(node: Deployment, tmp_path: Path) -> Rebuild:
    """An index of ``corpus`` with these levels instead of the one that was there."""

    def build(corpus: Corpus, **levels: Level) -> tuple[Deployment, Ingest]:
        node.params = {**node.params, **_OF_THE_INDEX, **levels}
        node.ask(DELETE)
        batches = spool(node.engine, corpus, tmp_path / "batches", node.params)
        return node, ingest(node, corpus, batches)

    return build


_OF_THE_INDEX = {
    name: level
    for name, level in defaults(ENGINES[0]).items()
    if name not in ("nodes", "heap_mb", "request_cache")
}


class Books:
    """Odd field names, and numbers that are zero, not there, and the greatest there are."""

    name = "books"
    odd = ("a", "a.b", "*", "_id", "größe v", "x[0]>1", "%41;", " ", "日本", "_source", "-", "a ")
    schema = Schema(
        (
            Field("the title", FieldType.TEXT),
            *(Field(name, FieldType.INTEGER) for name in odd),
            Field("k?", FieldType.KEYWORDS),
            Field("when", FieldType.DATE),
            Field("hidden", FieldType.TEXT, stored=False),
        )
    )

    def documents(self) -> Iterator[Document]:
        numbers = {name: n for n, name in enumerate(self.odd)}
        yield Document("zero", {"the title": "fox", **numbers, "when": -1, "k?": ["", "b"]})
        yield Document("none", {"the title": "fox fox", "hidden": "secret"})
        yield Document("most", {"the title": "Fox", "a": 2**63 - 1, "when": 253402300799999})
        yield Document("least", {"the title": "FOX", "a": -(2**63), "when": -62135596800000})


def ask(running: Deployment, query: Query, schema: Schema = Books.schema) -> Hits:
    hits = running.engine.decode(running.ask(running.engine.compile(query, schema, running.params)))
    assert hits.error is None, hits.error
    return hits


def ids(running: Deployment, query: Query, schema: Schema = Books.schema) -> list[str]:
    return [h.id for h in ask(running, query, schema).hits]


def facts(running: Deployment) -> Any:
    return running.engine.facts(running.ask(running.engine.facts_request()))


def test_any_name_can_be_a_field_and_comes_back_as_it_was(rebuilt: Rebuild) -> None:
    running, _done = rebuilt(Books())
    wanted = {name: n for n, name in enumerate(Books.odd)}
    for name, number in wanted.items():
        assert ids(running, Query(filters=(In(name, (number,)),))) == ["zero"], name
    returned = ask(running, Query(filters=(In("a", (0,)),), fields=Books.odd)).hits
    assert [dict(h.fields) for h in returned] == [wanted]
    counted = ask(running, Query(facets=(Facet("k?"),), group_by="x[0]>1"))
    assert counted.facets == {"k?": [("", 1), ("b", 1)]}
    assert list(counted.groups) == [(5, 1)]


def test_zero_is_not_missing_and_the_greatest_numbers_are_kept(rebuilt: Rebuild) -> None:
    running, _done = rebuilt(Books())
    assert ids(running, Query(filters=(Range("a", -5, 5),))) == ["zero"]
    assert ids(running, Query(filters=(Range("a"),))) == ["zero", "most", "least"]
    assert ids(running, Query(filters=(In("a", (2**63 - 1, -(2**63))),))) == ["most", "least"]
    assert ids(running, Query(filters=(Range("when", None, -1),))) == ["zero", "least"]
    for down, order in ((False, "least zero most none"), (True, "most zero least none")):
        assert ids(running, Query(sort=(Sort("when", down),))) == order.split()
    # As declared: the extremes stand where the missing ones do, in order of ingest.
    assert ids(running, Query(sort=(Sort("a"),))) == ["least", "zero", "none", "most"]
    assert ids(running, Query(sort=(Sort("a", True),))) == ["most", "zero", "none", "least"]


def test_text_that_is_not_stored_is_found_and_not_returned(rebuilt: Rebuild) -> None:
    running, _done = rebuilt(Books())
    query = Query(Terms(Mode.ALL, ("secret",)), fields=("hidden", "the title"))
    assert [(h.id, dict(h.fields)) for h in ask(running, query).hits] == [
        ("none", {"the title": "fox fox"})
    ]


@pytest.mark.parametrize(
    "levels",
    [
        *({p.name: level} for p in LEVERS for level in p.choices),
        {"shards": 5, "statistics": "global", "preference": "local"},
        {"refresh_ms": 50, "segments": "as-is"},
        {"query_cache": False},
        {"heap_mb": 400, "request_cache": True, "nodes": 1},
    ],
    ids=str,
)
def test_every_level_takes_and_finds(rebuilt: Rebuild, levels: dict[str, Level]) -> None:
    running, done = rebuilt(Books(), **levels)
    read = facts(running)
    unread = running.engine.can.unread
    assert (done.documents, read.documents) == (4, 4)
    assert dict(read.parameters) == {k: v for k, v in running.params.items() if k not in unread}
    assert sorted(ids(running, Query(Terms(Mode.ALL, ("fox",))))) == sorted(
        d.id for d in Books().documents()
    )


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_more_copies_than_nodes_are_refused_before_anything_starts(engine: Engine) -> None:
    with pytest.raises(Unsupported, match="1 replicas on 1 node"):
        engine.service({**defaults(engine), "replicas": 1}, SCHEMA)


def test_shards_change_neither_totals_nor_counts_nor_the_order_of_ties(rebuilt: Rebuild) -> None:
    reference = Reference(SCHEMA, list(Shelf().documents()))
    running, _done = rebuilt(Shelf(), shards=4, statistics="global")
    for mode in Mode:
        query = Query(Terms(mode, ("fox", "net")), facets=(Facet("tags"),), limit=400)
        hits = ask(running, query, SCHEMA)
        assert sorted(h.id for h in hits.hits) == sorted(reference.ids(query))
        assert (hits.total, hits.partial, hits.warnings) == (len(hits.hits), False, ())
        assert list(hits.facets["tags"]) == reference.counts(query, "tags")
    for sort in ((Sort("section"),), (Sort("free", True), Sort("price")), (Sort("size", True),)):
        query = Query(Terms(Mode.ANY, ("search", "fox")), sort=sort, offset=3, limit=50)
        assert ids(running, query, SCHEMA) == reference.sorted_ids(query)
    # All prefixes score alike: nothing but ties, in order of ingest.
    query = Query(Terms(Mode.PREFIX, ("f",), ("body",)), limit=400)
    assert ids(running, query, SCHEMA) == reference.ids(query)
    running.params = {**running.params, "ties": "shard"}
    by_shard = ids(running, query, SCHEMA)
    assert by_shard != reference.ids(query)
    assert sorted(by_shard) == sorted(reference.ids(query))


def test_statistics_of_all_shards_give_the_scores_of_one_index(rebuilt: Rebuild) -> None:
    query = Query(Terms(Mode.ANY, ("fox", "net", "c3po"), ("body",)), limit=400)

    def scores(running: Deployment) -> dict[str, float | None]:
        return {h.id: h.score for h in ask(running, query, SCHEMA).hits}

    alone = scores(rebuilt(Shelf())[0])
    running, _done = rebuilt(Shelf(), shards=3, statistics="global")
    assert scores(running) == pytest.approx(alone, rel=1e-6)
    running.params = {**running.params, "statistics": "local"}
    assert scores(running) != pytest.approx(alone, rel=1e-3)


def test_scores_come_with_hits_that_are_sorted_by_them_too(rebuilt: Rebuild) -> None:
    running, _done = rebuilt(Shelf(), shards=2)
    query = Query(Terms(Mode.ANY, ("fox",)), sort=(Sort("free"), Sort("_score", True)), limit=400)
    hits = ask(running, query, SCHEMA).hits
    assert all(h.score is not None for h in hits)
    query = replace(query, sort=(Sort("free"),))
    assert {h.score for h in ask(running, query, SCHEMA).hits} == {None}


@pytest.mark.parametrize("shards", [1, 3])
def test_a_complete_answer_has_its_marks_at_the_head(rebuilt: Rebuild, shards: int) -> None:
    running, _done = rebuilt(Books(), shards=shards)
    marks = whole(running.params)
    for query in (
        Query(Terms(Mode.ALL, ("fox",)), fields=("the title",)),
        Query(Terms(Mode.ALL, ("nowhere",)), limit=0, group_by="k?"),
        Query(filters=(Range("a", 0, 5),), sort=(Sort("a"),)),
    ):
        (http,) = split(running.ask(running.engine.compile(query, Books.schema, running.params)))
        assert all(mark in http.body[:512] for mark in marks), http.body[:512]


def test_a_total_that_is_only_a_bound_is_not_exact(rebuilt: Rebuild) -> None:
    running, _done = rebuilt(Shelf())
    asked = {"query": {"match_all": {}}, "track_total_hits": 5, "size": 1}
    hits = running.engine.decode(
        running.ask(Request((post("/docs/_search", [], orjson.dumps(asked)),)))
    )
    assert (hits.total, hits.total_exact, hits.partial) == (5, False, False)


def test_answers_come_from_the_cache_only_if_that_is_asked_for(rebuilt: Rebuild) -> None:
    running, _done = rebuilt(Books())
    for cached, hits in ((False, 0), (True, 3)):
        running.params = {**running.params, "request_cache": cached}
        for _ in range(4):
            ids(running, Query(Terms(Mode.ALL, ("fox",))))
        extra = facts(running).extra
        assert extra["request_cache_hits"] == hits
        # What a load run reads, which does not know the index, is the same count.
        counters = read(running.endpoint, running.engine).counters
        assert counters is not None
        assert counters.hits == extra["request_cache_hits"]
        # Searches that may not be cached are no lookups, and are among those that were asked.
        assert counters.asked == counters.lookups + 4
        assert counters.lookups - counters.hits == extra["request_cache_misses"]
        assert counters.other is not None
        assert counters.other.hits == extra["query_cache_hits"]
    running.params = {**running.params, "request_cache": True}


def test_what_does_not_fit_is_refused_by_name_and_the_rest_is_taken(rebuilt: Rebuild) -> None:
    class Misfits:
        name = "misfits"
        schema = Schema(
            (
                Field("n", FieldType.INTEGER),
                Field("day", FieldType.DATE),
                Field("yes", FieldType.BOOLEAN),
                Field("word", FieldType.KEYWORD),
                Field("text", FieldType.TEXT),
            )
        )

        def documents(self) -> Iterator[Document]:
            yield Document("good", {"n": 1, "word": "w" * 32_766, "text": "x" * 40_000 + " fox"})
            yield Document("many", {"n": "many"})
            yield Document("digits", {"n": "12"})
            yield Document("half", {"n": 1.5})
            yield Document("beyond", {"n": 2**63})
            yield Document("maybe", {"yes": "maybe"})
            yield Document("someday", {"day": "someday"})
            yield Document("long", {"word": "w" * 32_767})
            yield Document("unknown", {"else": 1})
            yield Document("good", {"n": 2})

    running, done = rebuilt(Misfits())
    assert done.documents == 1
    assert done.refused == 9
    assert [each["id"] for each in done.refusals] == ["many", "digits", "half", "beyond", "maybe"]
    assert "failed to parse field [n] of type [long]" in done.refusals[0]["reason"]
    assert ids(running, Query(Terms(Mode.ALL, ("fox",))), Misfits.schema) == ["good"]
    assert ids(running, Query(filters=(In("n", (1,)),)), Misfits.schema) == ["good"]


def test_an_id_that_is_too_long_is_an_error_of_its_batch(rebuilt: Rebuild) -> None:
    class Long:
        name = "long"
        schema = Books.schema

        def documents(self) -> Iterator[Document]:
            yield Document("i" * 512, {"a": 1})
            yield Document("j" * 513, {"a": 2})

    with pytest.raises(LabError, match=r"refused batch 1 of 1: .*id .*too long.* 512 bytes"):
        rebuilt(Long())


def test_errors_are_in_the_words_of_the_server(rebuilt: Rebuild) -> None:
    running, _done = rebuilt(Books())
    wrong = post("/docs/_search", [], b'{"query":{"no such query":{}}}')
    hits = running.engine.decode(running.ask(Request((wrong,))))
    assert hits.total is None
    assert "unknown query [no such query]" in str(hits.error)
    running.ask(DELETE)
    query = running.engine.compile(Query(), Books.schema, running.params)
    assert "no such index [docs]" in str(running.engine.decode(running.ask(query)).error)


def test_the_analysis_is_the_declared_one_but_for_new_letters(rebuilt: Rebuild) -> None:
    """Every character between two letters that betray a split."""
    every = [
        chr(c)
        for c in range(1, sys.maxunicode + 1)
        if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")
    ]
    running, _done = rebuilt(Books())

    def differs(chars: Sequence[str]) -> bool:
        text = " ".join(f"x{c}y" for c in chars)
        asked = running.engine.analyse(text)
        assert asked is not None
        return running.engine.terms(running.ask(asked)) != terms(text)

    pages = [every[at : at + 2000] for at in range(0, len(every), 2000)]
    rows = [p[at : at + 50] for p in pages if differs(p) for at in range(0, len(p), 50)]
    wrong = [c for row in rows if differs(row) for c in row if differs([c])]
    # Java 17 knows Unicode 13: letters and digits that came later separate.
    assert {unicodedata.category(c)[0] for c in wrong} <= {"L", "N"}
    assert wrong
    assert min(wrong) == "\u0870"  # of Unicode 14


@pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is needed")
def test_behind_tls_with_a_client_certificate_a_password_and_gzip(
    rebuilt: Rebuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, _ = rebuilt(Books())
    authority = Authority(tmp_path / "ca")
    server, ours = authority.sign("server"), authority.sign("ours")
    basic = "Basic " + base64.b64encode(b"reader:s3cr3t").decode()
    door = (
        f"ssl_verify_client on; ssl_client_certificate {authority.cert}; "
        "gzip_types application/json; gzip_proxied any; "
        f'if ($http_authorization != "{basic}") {{ return 401; }} '
        f"location / {{ proxy_pass http://127.0.0.1:{running.target[1]}; }}"
    )
    requests = tmp_path / "paths.txt"
    requests.write_text("/docs/_search?q=fox\n/docs/_search?size=1\n")
    how: dict[str, Any] = {
        "requests": requests, "clients": 2, "seconds": 0.3, "warmup": 0.0, "captures": 2,
        "ca": authority.cert, "cert": ours.cert, "key": ours.key,
    }  # fmt: skip
    monkeypatch.setenv("SEARCHBENCH_USER", "reader")
    monkeypatch.setenv("SEARCHBENCH_PASSWORD", "s3cr3t")
    with nginx(tmp_path / "web", server, door) as web:
        url = f"https://localhost:{web.port}/"
        plain = load(url, record=tmp_path / "plain", **how)
        packed = load(url, record=tmp_path / "packed", compressed=True, **how)
        assert {line["authorization"] for line in web.seen()} == {basic}
    bytes_of = []
    for record in (plain, packed):
        (trial,) = record.trials
        samples = record.samples(trial.trial)
        assert set(samples.column("outcome").to_pylist()) == {0}
        assert trial.drive is not None
        assert trial.drive.tls.startswith("TLSv1_3")
        bytes_of.append(sum(samples.column("bytes").to_pylist()) / samples.num_rows)
        kept = [path.read_bytes() for path in record.path.rglob("*") if path.is_file()]
        assert not any(b"s3cr3t" in content or basic.encode() in content for content in kept)
    assert bytes_of[1] < 0.8 * bytes_of[0], "bytes are counted as they were sent"


@pytest.mark.parametrize(
    "name", [*Books.odd, "", "a_b", "x-1", "%", "%;", "a b", "..", "\x00", "_"]
)
def test_a_name_in_the_index_leads_back_to_its_field(name: str) -> None:
    inside = own(name)
    assert field(inside) == name
    assert inside.strip() == inside
    assert inside[:1] not in ("", "_", "-")
    assert not set(inside) & set(".*?[]>,\\")
    assert inside not in (ORDER, GROUPS)


def test_no_two_names_are_the_same_in_the_index() -> None:
    names = sorted({own(a + b) for a in Books.odd for b in ("", *Books.odd)})
    assert len(names) == len({a + b for a in Books.odd for b in ("", *Books.odd)})
    assert all(a != b for a, b in pairwise(names))
