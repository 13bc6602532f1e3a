"""What is PostgreSQL's own: levers, odd names and values, limits of vectors, refusals, crashes."""

from __future__ import annotations

import os
import random
import signal
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from engines.reference import Reference
from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.engines import defaults
from searchbench.engines.answer import Hits
from searchbench.engines.engine import Level
from searchbench.engines.postgresql import Postgresql
from searchbench.errors import LabError, Unsupported
from searchbench.lab.conduct.serve import serving
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.wire.exchange import Refused
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
from searchbench.workload.queries.analysis import terms

ENGINE = Postgresql()
T, K, KS = FieldType.TEXT, FieldType.KEYWORD, FieldType.KEYWORDS


class Given:
    """These documents."""

    name = "given"

    def __init__(self, fields: dict[str, FieldType], documents: Sequence[Document]) -> None:
        self.schema = Schema(tuple(Field(name, kind) for name, kind in fields.items()))
        self.given = documents

    def documents(self) -> Iterator[Document]:
        yield from self.given


BOOKS = Given(
    {"title": T, "body": T, "size": FieldType.INTEGER},
    [
        Document("1", {"title": "Red fox", "body": "of the wood", "size": 1}),
        Document("2", {"title": "A fox", "body": "fox/fox net-base e1e5 http://fox.org"}),
        Document("3", {"title": "wood", "body": "red", "size": 3}),
    ],
)


@pytest.fixture(autouse=True, scope="module")
def _here() -> None:
    if lacking := missing(ENGINE):
        pytest.skip(f"no postgresql here: {lacking}")


def levels(**levers: Level) -> dict[str, Level]:
    return {**defaults(ENGINE), **levers}


def ask(running: Deployment, query: Query) -> Hits:
    asked = ENGINE.compile(query, running.schema, running.params)
    hits = ENGINE.decode(running.ask(asked))
    assert hits.error is None, hits.error
    return hits


def ids(running: Deployment, query: Query) -> list[str]:
    return [h.id for h in ask(running, query).hits]


def everywhere(word: str, *fields: str) -> Query:
    return Query(Terms(Mode.ALL, (word,), fields))


@pytest.mark.parametrize(
    "levers",
    [
        {"rank": "ts_rank_cd", "index": "gist", "index_first": True},
        {"index": "none", "autovacuum": True, "fsync": False},
        {"gin_fastupdate": False, "index_first": True, "jit": True, "parallel_workers": 3},
        {"shared_buffers_mb": 3, "work_mem_mb": 1, "maintenance_mem_mb": 1, "max_connections": 9},
        {"random_page_cost": 4.0, "analysis": "simple", "door": "insert", "keys": True},
    ],
    ids=str,
)
def test_every_lever_takes_and_finds(tmp_path: Path, levers: dict[str, Level]) -> None:
    with serving(ENGINE, levels(**levers), BOOKS, tmp_path) as (running, _done):
        facts = ENGINE.facts(running.ask(ENGINE.facts_request()))
        assert facts.documents == 3
        assert facts.index_bytes
        unread = {"gin_fastupdate"} if levers.get("index", "gin") != "gin" else set()
        read = {k: v for k, v in running.params.items() if k not in {*ENGINE.can.unread, *unread}}
        assert dict(facts.parameters) == read
        assert sorted(ids(running, everywhere("fox"))) == ["1", "2"]
        assert ids(running, everywhere("wood", "title")) == ["3"]
        assert ids(running, Query(Terms(Mode.PHRASE, ("red", "fox")))) == ["1"]
        # One field does not go on in the next.
        assert ids(running, Query(Terms(Mode.PHRASE, ("fox", "of")))) == []


def test_every_level_of_every_lever_was_tried() -> None:
    (mark,) = (m for m in test_every_lever_takes_and_finds.pytestmark if m.name == "parametrize")
    tried = [{**defaults(ENGINE), **levers} for levers in mark.args[1]]
    for p in ENGINE.parameters:
        assert set(p.choices) <= {levers[p.name] for levers in tried}, p.name
        assert any(levers[p.name] != p.default for levers in tried), p.name


def test_the_server_as_it_is_sees_urls_and_paths(tmp_path: Path) -> None:
    text = "fox/fox e1e5 net-base"
    asked = ENGINE.analyse(text)
    assert asked is not None
    with serving(ENGINE, levels(analysis="simple"), BOOKS, tmp_path) as (running, _done):
        seen = ENGINE.terms(running.ask(asked))
        assert seen == ("fox/fox", "e1e5", "net-base", "net", "base")
        assert ids(running, everywhere("org")) == []


ODD = (
    *("the title", "größe", "n", "id x", 'a"b', "it's", "a;--", "$$", "{x}", "%s", "words_0"),
    *("日本", "score", "\\", "x" * 61),
)
VALUES = (
    *("", " ", "\\N", "\\", "a\tb\nc\rd", "'", '"', "{a,b}", "NULL", "null", "$$", "\x1f", "\x7f"),
    *("日本 😀", "\u2028", "%s {0}", "a,b", "é", "e\u0301"),
)


def test_any_name_and_any_value_comes_back_as_it_went_in(tmp_path: Path) -> None:
    fields = dict.fromkeys(ODD, K) | {"t": T, "all": KS, "i": FieldType.INTEGER}
    fields |= {"f": FieldType.FLOAT, "d": FieldType.DATE, "b": FieldType.BOOLEAN}
    rng = random.Random(1)
    documents = [
        Document("greatest", {"i": 2**63 - 1, "f": 1.7e308, "all": [], "b": True, "t": ""}),
        Document("least", {"i": -(2**63), "f": 5e-324, "all": list(VALUES), "b": False}),
        Document("nothing", {}),
        Document("twice", {"all": ["b", "a", "b"], "f": 0.1, "i": 0, "d": -1}),
        *(
            Document(f"{i} {v}", {**dict.fromkeys(rng.sample(ODD, 5), v), "t": v})
            for i, v in enumerate(VALUES)
        ),
    ]
    corpus = Given(fields, documents)
    reference = Reference(corpus.schema, documents)
    with serving(ENGINE, levels(), corpus, tmp_path) as (running, done):
        assert (done.documents, done.refused) == (len(documents), 0)
        whole = Query(limit=100, fields=tuple(fields))
        assert [(h.id, dict(h.fields)) for h in ask(running, whole).hits] == documents
        for name in ODD:
            query = Query(
                filters=(In(name, VALUES[:7]), Range(name, "", "~\0")),
                sort=(Sort(name, descending=True),),
                facets=(Facet(name, 20),),
                limit=100,
            )
            hits = ask(running, query)
            assert [h.id for h in hits.hits] == reference.sorted_ids(query)
            assert list(hits.facets[name]) == reference.counts(query, name)
        every = Query(facets=(Facet("all", 40),))
        assert list(ask(running, every).facets["all"]) == reference.counts(every, "all")
        for part in (
            In("i", (2**63 - 1, 2**63, 0)),
            NotIn("i", (2**80,)),
            In("i", (2**80,)),
            NotIn("all", ("b", "\0")),
            In("all", ()),
            Range("i", -(2**80), 2.5),
            Range("i", 0.5, float("inf")),
            Range("f", 0, 0.1, include_high=False),
            Range("f", 5e-324, 1e308),
            Range("n", None, "a\0b"),
            Range("n", "\\\0", None, include_low=False),
            Range("d", None, 0),
            In("b", (False,)),
        ):
            query = Query(filters=(part,), limit=100)
            assert ids(running, query) == reference.ids(query), part


def test_a_name_that_no_column_can_have_is_refused_in_words() -> None:
    for name in ("x" * 62, "é" * 31, "a\0b"):
        schema = Schema((Field(name, T),))
        with pytest.raises(Unsupported, match=r"named .*upstream must: .* 63 bytes"):
            ENGINE.create(schema, levels())


def test_values_that_no_whole_number_has_are_compiled_at_once() -> None:
    schema = Schema((Field("i", FieldType.INTEGER),))
    odd: tuple[Any, ...] = ("x", 0.5, float("nan"), float("inf"), 2**63, 2.0, 3)
    (sent,) = ENGINE.compile(Query(filters=(In("i", odd),)), schema, levels()).exchanges
    assert b"""= ANY ('{"2","3"}'::bigint[])""" in sent


def test_documents_that_it_cannot_hold_are_refused_by_id_and_the_others_are_in(
    tmp_path: Path,
) -> None:
    long = " ".join(f"{i:020}" for i in range(60_000))
    noise = "".join(random.Random(5).choices("abcdefghijklmnop0123456789", k=2601))
    documents = [
        Document("first", {"t": "fox"}),
        Document("nul\0id", {"t": "fox"}),
        Document("nul", {"t": "a\0b"}),
        Document("large", {"t": long}),
        Document("long", {"k": noise}),
        Document("long one", {"ks": ["a", noise]}),
        Document("not too long", {"k": noise[:2600], "ks": [noise[:2600]], "t": "fox"}),
        Document("large after all", {"t": "fox " * 300_000}),
    ]
    corpus = Given({"t": T, "k": K, "ks": KS}, documents)
    with serving(ENGINE, levels(), corpus, tmp_path) as (running, done):
        assert (done.documents, done.refused) == (3, 5)
        reasons = {each["id"]: each["reason"] for each in done.refusals}
        assert list(reasons) == ["nul\0id", "nul", "large", "long", "long one"]
        assert "cannot be converted to text" in reasons["nul"]
        assert "too long for tsvector" in reasons["large"]
        assert "more than 2600 bytes" in reasons["long one"]
        assert ids(running, Query()) == ["first", "not too long", "large after all"]
        assert sorted(ids(running, everywhere("fox"))) == sorted(ids(running, Query()))


def test_what_a_vector_cannot_hold_is_found_all_the_same_but_for_phrases(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(20_000)]
    often = "fox red " * 300
    longest, longer = "é" * 1023, "é" * 1024
    documents = [
        Document("long", {"a": " ".join(words), "b": "w19999 end stop"}),
        Document("often", {"a": often + "last dog", "b": "fox red"}),
        Document("word", {"a": f"{longest} {longer} after"}),
        Document("both", {"a": "x " * 16_374 + "one two three", "b": "one y two"}),
    ]
    corpus = Given({"a": T, "b": T}, documents)
    with serving(ENGINE, levels(), corpus, tmp_path) as (running, done):
        assert done.refused == 0

        def found(mode: Mode, text: str, *fields: str) -> list[str]:
            return ids(running, Query(Terms(mode, tuple(text.split()), fields)))

        assert found(Mode.ALL, "w0 w16375 w16376 w19999") == ["long"]
        assert found(Mode.ALL, "w19999", "b") == found(Mode.ALL, "w19998", "a") == ["long"]
        assert found(Mode.ALL, "w19998", "b") == found(Mode.ALL, "end", "a") == []
        assert found(Mode.ALL, "fox", "b") == found(Mode.ALL, "dog", "a") == ["often"]
        assert found(Mode.ALL, longest) == ["word"]
        assert found(Mode.ALL, longer) == []
        # What is given up: phrases far inside, and of words that come very often.
        assert found(Mode.PHRASE, "w16373 w16374") == ["long"]
        assert found(Mode.PHRASE, "w16374 w16375") == found(Mode.PHRASE, "end stop") == []
        assert found(Mode.PHRASE, "last dog") == found(Mode.PHRASE, "fox red") == ["often"]
        assert found(Mode.PHRASE, "red last") == []
        # Nothing is made up: places beyond the last are next to no other.
        assert found(Mode.PHRASE, "one three") == found(Mode.PHRASE, "one y") == []
        assert found(Mode.PHRASE, f"{longest} after") == []


def test_six_text_fields_are_searched_as_two(tmp_path: Path) -> None:
    rng = random.Random(6)
    vocabulary = ("fox", "dog", "red", "net", "base")
    names = ("a", "b", "c", "d", "e", "f")
    documents = [
        Document(
            str(i),
            {
                n: " ".join(rng.choices(vocabulary, k=2))
                for n in rng.sample(names, rng.randint(0, 6))
            },
        )
        for i in range(80)
    ]
    corpus = Given(dict.fromkeys(names, T), documents)
    reference = Reference(corpus.schema, documents)

    def drawn() -> Terms:
        fields = rng.choice([(), ("a",), ("e",), ("d", "e"), ("a", "b", "c", "d")])
        mode = rng.choice([Mode.ANY, Mode.ALL, Mode.PHRASE, Mode.PREFIX])
        return Terms(
            mode, tuple(rng.choices((*vocabulary, "not one"), (9,) * 5 + (1,), k=2)), fields
        )

    with serving(ENGINE, levels(), corpus, tmp_path) as (running, _done):
        for _ in range(60):
            match = Boolean(
                tuple(drawn() for _ in range(rng.randint(0, 2))),
                tuple(drawn() for _ in range(rng.randint(0, 2))),
                tuple(drawn() for _ in range(rng.randint(0, 2))),
            )
            query = Query(match, limit=100)
            hits = ask(running, query)
            assert sorted(h.id for h in hits.hits) == sorted(reference.ids(query)), query
            assert hits.total == len(hits.hits)
            scores = [h.score or 0.0 for h in hits.hits]
            assert scores == sorted(scores, reverse=True)


def test_the_analysis_is_the_declared_one_over_all_of_unicode(tmp_path: Path) -> None:
    every = [
        chr(c)
        for c in range(sys.maxunicode + 1)
        if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")
    ]
    with serving(ENGINE, levels(), BOOKS, tmp_path) as (running, _done):
        for at in range(0, len(every), 5000):
            text = " ".join(f"{i}x{c}y{i}" for i, c in enumerate(every[at : at + 5000]))
            asked = ENGINE.analyse(text)
            assert asked is not None
            assert ENGINE.terms(running.ask(asked)) == terms(text)


def test_snippets_mark_words_where_the_servers_parser_would_see_none(tmp_path: Path) -> None:
    with serving(ENGINE, levels(), BOOKS, tmp_path) as (running, _done):

        def snippets(match: Terms | Boolean | None) -> list[dict[str, Sequence[str]]]:
            query = Query(match, sort=(Sort("_score"),), snippets=("title", "body"))
            return [dict(h.snippets) for h in ask(running, query).hits]

        fox = Terms(Mode.PREFIX, ("fo",), ("body",))
        (second,) = snippets(fox)
        assert second == {
            "body": ("<b>fox</b> <b>fox</b> net base e1e5 http <b>fox</b>",),
        }
        red = Boolean(must=(Terms(Mode.ALL, ("wood",)),), should=(Terms(Mode.ANY, ("red", '"')),))
        assert {"title": ("<b>wood</b>",), "body": ("<b>red</b>",)} in snippets(red)
        assert snippets(Boolean(must_not=(fox,))) == [{}, {}]


def test_a_server_killed_in_the_middle_is_named_and_starts_again_where_it_was(
    tmp_path: Path,
) -> None:
    params = levels()
    with serving(ENGINE, params, BOOKS, tmp_path) as (running, _done):
        family = [running.process, *running.process.children(recursive=True)]
        os.kill(running.process.pid, signal.SIGKILL)
        psutil.wait_procs(family, timeout=10)
        with pytest.raises(Refused, match="did not answer"):
            running.ask(ENGINE.facts_request(), timeout_s=1)
        assert not running.lives()
    assert (tmp_path / "data/postmaster.pid").exists()
    again = Deployment(ENGINE, params, tmp_path / "data", tmp_path / "run", (), BOOKS.schema)
    with again as running:
        assert running.facts.documents == 3
        assert sorted(ids(running, everywhere("fox"))) == ["1", "2"]
    assert not (tmp_path / "data/postmaster.pid").exists()


def test_more_memory_than_there_is_fails_in_words(tmp_path: Path) -> None:
    greedy = Deployment(
        ENGINE, levels(shared_buffers_mb=(1 << 23) - 1), tmp_path / "data", tmp_path / "run"
    )
    with pytest.raises(LabError, match=r"(?s)ended while starting.*shared memory"), greedy:
        pass
