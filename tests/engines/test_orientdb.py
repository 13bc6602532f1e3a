"""What is OrientDB's own: levers and what they do to its files, field names, odd values, kills.

One server for most of it, because a start takes seconds: each test makes the database anew.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from engines.test_conformance import SCHEMA, Shelf
from searchbench.corpora.corpus import Corpus, Document, Field, FieldType, Schema
from searchbench.engines import defaults
from searchbench.engines.answer import Hits
from searchbench.engines.engine import Level, Parameters, Request, Service
from searchbench.engines.http_form import split
from searchbench.engines.orientdb import OrientDB
from searchbench.engines.orientdb.query import Asked, field, own
from searchbench.engines.orientdb.rest import script, trouble
from searchbench.errors import LabError, Unsupported
from searchbench.lab.conduct.ingest import ingest, spool
from searchbench.lab.conduct.serve import serving
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.record.trial import Ingest
from searchbench.workload.queries.algebra import (
    Boolean,
    Facet,
    In,
    Mode,
    NotIn,
    Query,
    Range,
    Sort,
    Terms,
)

pytestmark = pytest.mark.slow
ENGINE = OrientDB()
Rebuild = Callable[..., tuple[Deployment, Ingest]]


@pytest.fixture(autouse=True, scope="module")
def _here() -> None:
    if lacking := missing(ENGINE):
        pytest.skip(f"no orientdb here: {lacking}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    place: Path = tmp_path_factory.mktemp("orientdb")
    with Deployment(ENGINE, defaults(ENGINE), place / "data", place / "run") as running:
        yield running


@pytest.fixture
def rebuilt(server: Deployment, tmp_path: Path) -> Rebuild:
    """A database of ``corpus`` with these levels in place of the one that was there."""

    def build(corpus: Corpus, **levels: Level) -> tuple[Deployment, Ingest]:
        server.params = {**defaults(ENGINE), **levels}
        server.ask(_deleting())
        batches = spool(ENGINE, corpus, tmp_path / "batches", server.params)
        return server, ingest(server, corpus, batches)

    return build


def _deleting() -> Request:
    made = next(iter(ENGINE.create(Books.schema, defaults(ENGINE))))
    (asked,) = made.exchanges
    return Request((asked.replace(b"POST", b"DELETE", 1).replace(b"/plocal", b"", 1),))


class Books:
    """Odd field names; numbers that are zero, not there, and the greatest there are."""

    name = "books"
    odd = ("a", "A", "a.b", "*", "@rid", "größe v", "x[0]>1", "select", " ", "日本", "_id", "$x")
    schema = Schema(
        (
            Field("the title", FieldType.TEXT),
            Field("more", FieldType.TEXT),
            *(Field(name, FieldType.INTEGER) for name in odd),
            Field("k?", FieldType.KEYWORDS),
            Field("when", FieldType.DATE),
            Field("word", FieldType.KEYWORD),
        )
    )

    def documents(self) -> Iterator[Document]:
        numbers = {name: n for n, name in enumerate(self.odd)}
        yield Document("zero", {"the title": "fox", **numbers, "when": -1, "k?": ["", "b"]})
        yield Document("none", {"the title": "fox fox", "more": "secret"})
        yield Document("most", {"the title": "Fox", "a": 2**63 - 1, "when": 253402300799999})
        yield Document("least", {"the title": "FOX", "a": -(2**63), "when": -62135596800000})
        yield Document("other", {"more": "fox"})
        yield Document("empty", {"a": 7})


def ask(running: Deployment, query: Query, schema: Schema = Books.schema) -> Hits:
    hits = ENGINE.decode(running.ask(ENGINE.compile(query, schema, running.params)))
    assert hits.error is None, hits.error
    return hits


def ids(running: Deployment, query: Query, schema: Schema = Books.schema) -> list[str]:
    return [h.id for h in ask(running, query, schema).hits]


def test_any_name_can_be_a_field_and_comes_back_as_it_was(rebuilt: Rebuild) -> None:
    running, _done = rebuilt(Books())
    wanted = {name: n for n, name in enumerate(Books.odd)}
    for name, number in wanted.items():
        assert ids(running, Query(filters=(In(name, (number,)),)))[:1] == ["zero"], name
    returned = ask(running, Query(filters=(In("a", (0,)),), fields=Books.odd)).hits
    assert [dict(h.fields) for h in returned] == [wanted]
    counted = ask(running, Query(facets=(Facet("k?"),), group_by="x[0]>1"))
    assert counted.facets == {"k?": [("", 1), ("b", 1)]}
    assert list(counted.groups) == [(6, 1)]


def test_zero_is_not_missing_and_the_greatest_numbers_are_kept(rebuilt: Rebuild) -> None:
    running, _done = rebuilt(Books())
    assert ids(running, Query(filters=(Range("a", -5, 5),))) == ["zero"]
    assert ids(running, Query(filters=(Range("a"),))) == ["zero", "most", "least", "empty"]
    assert ids(running, Query(filters=(In("a", (2**63 - 1, -(2**63))),))) == ["most", "least"]
    assert ids(running, Query(filters=(Range("when", None, -1),))) == ["zero", "least"]
    for down, order in ((False, "least zero most"), (True, "most zero least")):
        wanted = [*order.split(), "none", "other", "empty"]
        assert ids(running, Query(sort=(Sort("when", down),))) == wanted


def test_texts_that_are_not_there_are_not_in_the_way(rebuilt: Rebuild) -> None:
    running, _done = rebuilt(Books())
    fox = ask(running, Query(Terms(Mode.ALL, ("fox",))))
    every = {d.id for d in Books().documents()}
    assert (fox.total, {h.id for h in fox.hits}) == (5, every - {"empty"})
    assert ids(running, Query(Terms(Mode.ALL, ("fox",), ("more",)))) == ["other"]
    nobody = Query(Boolean(must_not=(Terms(Mode.ANY, ("fox",)),)))
    assert ids(running, nobody) == ["empty"]


class Words:
    """Texts and keywords that OrientDB's reader of JSON could take for something else."""

    name = "words"
    odd = (
        *("#12:3", "#5:0", "2010-01-01", "2010-01-01 10:00:00", "12", "1.5", "true", "null", "12l"),
        *(
            "",
            " ",
            "a'b",
            'a"b',
            "a\\b",
            "a\\u0041",
            "\n\t\r",
            "{}",
            "[1]",
            "{'a':1}",
            "😀",
            "\u2028",
        ),
        *(":p0", "?", "$x", "-- x", "/* x", "a,b", "a;b", "@class", "NOT", "\x7f", "(b)"),
    )
    schema = Schema(
        (
            Field("title", FieldType.TEXT),
            Field("word", FieldType.KEYWORD),
            Field("tags", FieldType.KEYWORDS),
        )
    )

    def documents(self) -> Iterator[Document]:
        for number, word in enumerate(self.odd):
            yield Document(f"d{number}", {"title": word, "word": word, "tags": [word, "x"]})


def test_no_text_is_taken_for_anything_else(rebuilt: Rebuild) -> None:
    running, done = rebuilt(Words())
    assert done.documents == len(Words.odd)
    every = ask(running, Query(limit=100, fields=("title", "word", "tags")), Words.schema).hits
    assert [dict(h.fields) for h in every] == [
        {"title": w, "word": w, "tags": [w, "x"]} for w in Words.odd
    ]
    for number, word in enumerate(Words.odd):
        for part in (In("word", (word,)), In("tags", (word,)), Range("word", word, word)):
            found = ids(running, Query(filters=(part,)), Words.schema)
            assert found == [f"d{number}"], (word, part)
        others = ask(running, Query(filters=(NotIn("word", (word,)),), limit=100), Words.schema)
        assert others.total == len(others.hits) == len(Words.odd) - 1, word


def test_groups_and_facets_of_odd_values_are_in_order(rebuilt: Rebuild) -> None:
    running, _done = rebuilt(Words())
    query = Query(facets=(Facet("tags", 100),), group_by="word", limit=100)
    hits = ask(running, query, Words.schema)
    assert hits.facets["tags"][0] == ("x", len(Words.odd))
    assert sorted(hits.facets["tags"][1:]) == sorted((word, 1) for word in Words.odd)
    assert sorted(hits.groups) == sorted((word, 1) for word in Words.odd)


@pytest.mark.parametrize(
    "query",
    [
        Query(Terms(Mode.ALL, ("nowhere",))),
        Query(Terms(Mode.ALL, ("fox",)), offset=100),
        Query(Terms(Mode.ALL, ("fox",)), limit=0),
        Query(Terms(Mode.ALL, ("fox", '"; drop'))),
        Query(Terms(Mode.PHRASE, ())),
        Query(Boolean()),
        Query(Terms(Mode.ANY, ("fox",)), (Range("size", 100, None),)),
    ],
    ids=str,
)
def test_totals_are_exact_without_a_hit_to_bring_them(
    rebuilt: Rebuild, server: Deployment, query: Query
) -> None:
    running, _done = rebuilt(Shelf())
    whole = ask(running, replace(query, offset=0, limit=400), SCHEMA)
    assert ask(running, query, SCHEMA).total == whole.total == len(whole.hits)


def test_one_search_gives_hits_and_total_where_lucene_alone_is_asked() -> None:
    plain = Query(Terms(Mode.ALL, ("fox",)))
    assert Asked(plain, SCHEMA).total_comes_with_hits
    for other in (
        replace(plain, offset=10),
        replace(plain, limit=0),
        replace(plain, filters=(Range("size", 1, 2),)),
        Query(),
    ):
        assert not Asked(other, SCHEMA).total_comes_with_hits


@pytest.mark.parametrize("name", [*Books.odd, "", "a_b", "v_", "__", "\x00", "."])
def test_a_property_leads_back_to_its_field(name: str) -> None:
    assert field(own(name)) == name
    assert own(name).isascii()
    assert own(name).replace("_", "").isalnum()
    assert own(name) == own(name).lower()


def test_a_version_of_files_that_does_not_compress_is_refused_before_anything_starts() -> None:
    with pytest.raises(Unsupported, match=r"cluster_version = 2.*set cluster_version = 1"):
        ENGINE.service({**defaults(ENGINE), "compression": "gzip"}, SCHEMA)


class Long:
    """Text that packs well, and more than a page of it."""

    name = "long"
    schema = Schema((Field("body", FieldType.TEXT),))

    def documents(self) -> Iterator[Document]:
        for number in range(400):
            yield Document(str(number), {"body": f"fox {number} " + "lazy brown dog " * 400})


def clusters_bytes(place: Path) -> int:
    """What the documents take on disk, once the server has ended."""
    return sum(p.stat().st_size for p in place.rglob("docs*.pcl"))


def built(place: Path, **levels: Level) -> int:
    params = {**defaults(ENGINE), **levels}
    with serving(ENGINE, params, Long(), place) as (running, _done):
        facts = ENGINE.facts(running.ask(ENGINE.facts_request()))
        assert {k: facts.parameters[k] for k in levels} == levels
        assert ask(running, Query(Terms(Mode.ALL, ("fox", "7"))), Long.schema).total == 1
    return clusters_bytes(place)


def test_gzip_makes_documents_smaller_only_with_the_files_it_works_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = built(tmp_path / "plain", cluster_version=1)
    packed = built(tmp_path / "packed", cluster_version=1, compression="gzip")
    assert packed < plain / 4
    # What is refused above would have taken as long, and done nothing.
    service = OrientDB.service

    def unrefused(engine: OrientDB, params: Parameters, schema: Schema) -> Service:
        made = service(engine, {**params, "compression": "nothing"}, schema)
        argv = [word.replace("Method=nothing", "Method=gzip") for word in made.argv]
        return replace(made, argv=tuple(argv))

    monkeypatch.setattr(OrientDB, "service", unrefused)
    silent = built(tmp_path / "silent", cluster_version=2, compression="gzip")
    assert silent > plain / 2


@pytest.mark.parametrize(
    "levels",
    [
        {"disk_cache_mb": 128, "heap_mb": 300, "gc": "g1", "commit_synch": True},
        {"cluster_version": 0, "index_first": True},
    ],
    ids=str,
)
def test_every_level_takes_and_outlives_the_process(
    levels: dict[str, Level], tmp_path: Path
) -> None:
    params = {**defaults(ENGINE), **levels}
    with serving(ENGINE, params, Shelf(), tmp_path) as (running, done):
        assert done.documents == 300
        running.stop()
        running.__enter__()
        facts = running.facts
        assert facts.documents == 300
        unread = ENGINE.can.unread
        assert dict(facts.parameters) == {k: v for k, v in params.items() if k not in unread}
        found = ask(running, Query(Terms(Mode.ANY, ("fox",)), limit=400), SCHEMA)
        assert found.total == len(found.hits) > 50


def survived(place: Path, count: int, **levels: Level) -> int:
    """Of ``count`` acknowledged commits of one document each, those left after a kill."""
    params = {**defaults(ENGINE), **levels}
    with Deployment(ENGINE, params, place / "data", place / "run", (), Long.schema) as running:
        for request in ENGINE.create(Long.schema, params):
            assert ENGINE.check(running.ask(request)) is None
        for number in range(count):
            one = [Document(str(number), {"body": "fox"})]
            assert ENGINE.check(running.ask(ENGINE.batch(one, 0, Long.schema, params))) is None
        family = [running.process, *running.process.children(recursive=True)]
        os.kill(running.process.pid, signal.SIGKILL)
        psutil.wait_procs(family, timeout=10)
    again = Deployment(ENGINE, params, place / "data", place / "run", (), Long.schema)
    try:
        with again as running:
            return running.facts.documents or 0
    except LabError:  # its system database was lost with the log, and it does not start
        return 0


def test_how_much_a_kill_takes_hangs_on_how_often_the_log_goes_to_disk(tmp_path: Path) -> None:
    often = survived(tmp_path / "often", 300, wal_commit_timeout_ms=50)
    seldom = survived(tmp_path / "seldom", 300, wal_commit_timeout_ms=600_000)
    assert often > 250
    assert seldom < often


def test_a_value_that_does_not_fit_fails_the_ingest_in_words(rebuilt: Rebuild) -> None:
    class Misfit(Books):
        def documents(self) -> Iterator[Document]:
            yield Document("good", {"a": 1})
            yield Document("bad", {"a": "many"})

    with pytest.raises(LabError, match="many"):
        rebuilt(Misfit())


def test_errors_are_in_the_words_of_the_server(rebuilt: Rebuild) -> None:
    running, _done = rebuilt(Books())
    (wrong,) = split(running.ask(Request((script(["SELECT FROM"], {}),))))
    assert "Error parsing query" in str(trouble(wrong))
