"""What is MariaDB's own: three storage engines, their levers, odd values, faults."""

from __future__ import annotations

import random
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from engines.reference import Reference
from searchbench import _core
from searchbench.corpora.corpus import Document, Field, FieldType, Schema
from searchbench.engines import defaults
from searchbench.engines.answer import Hits
from searchbench.engines.engine import Level, Parameters, Service
from searchbench.engines.mariadb import MariaDB
from searchbench.engines.mariadb.query import VALUE, label, labelled
from searchbench.engines.mariadb.table import MOST_CHARACTERS, STORAGE, indexed, term, words
from searchbench.lab.conduct.serve import serving
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.lab.wire.exchange import prepare, samples_of
from searchbench.lab.wire.order import Manner, Order
from searchbench.workload.queries.algebra import (
    Boolean,
    Facet,
    In,
    Match,
    Mode,
    NotIn,
    Query,
    Range,
    Sort,
    Terms,
)
from searchbench.workload.queries.analysis import terms

ENGINE = MariaDB()


@cache
def letters() -> list[str]:
    """All that are terms by themselves."""
    return [
        c
        for c in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(c)[0] in "LN" and terms(c) == (c,)
    ]


VOCABULARY = (*"abcdefg", "fox", "foxes", "fo", "über", "straße", "検索", "𝟙𝟚", "x²", "ⅷ", "the")
STEM = "検" * (MOST_CHARACTERS - 1)
ODD_NAME = "The `size`; DROP"
STRINGS = (
    *("", " ", "a", "a ", "A", "ä", "'", '"', "\\", "\\'", "%", "_", "`", "\0", "\n", "\x1a"),
    *("'; DROP TABLE docs; -- ", "😀", "🏳️‍🌈", "\ufeff", "x" * 255),
)


class Odd:
    """Words of one letter, words that come twice, strings that SQL knows, three bad documents."""

    name = "odd"
    schema = Schema(
        (
            Field("title", FieldType.TEXT),
            Field("body", FieldType.TEXT),
            Field("script", FieldType.TEXT, stored=False),
            Field("word", FieldType.KEYWORD),
            Field("Word", FieldType.KEYWORDS),
            Field(ODD_NAME, FieldType.INTEGER),
            Field("price", FieldType.FLOAT),
            Field("free", FieldType.BOOLEAN),
            Field("when", FieldType.DATE),
        )
    )
    bad = ("too long", "too long in a list", "no number")

    def documents(self) -> Iterator[Document]:
        rng = random.Random(5)
        for number in range(150):
            values: dict[str, object] = {
                "title": "Common, " + "/".join(rng.choices(VOCABULARY, k=rng.randint(0, 4))),
                "body": " - ".join(rng.choices(VOCABULARY, k=rng.randint(1, 12))).title(),
                "word": rng.choice(STRINGS),
                "Word": rng.choices(STRINGS, k=rng.randint(0, 3)),
                ODD_NAME: rng.choice([0, 1, -1, 2**63 - 1, -(2**63)]),
                "price": rng.choice([0.0, 0.1, 5e-324, -1.7976931348623157e308, 1e22]),
                "free": rng.random() < 0.5,
                "when": rng.choice([0, -1, 2**53 + 1]),
            }
            if rng.random() < 0.5:
                values["script"] = " ".join(rng.choices(VOCABULARY, k=3))
            gone = rng.sample([k for k in values if k != "title"], rng.randint(0, 5))
            yield Document(
                f"{number}{STRINGS[number % 20]}",
                {k: v for k, v in values.items() if k not in gone},
            )
            if number == 75:
                yield Document(self.bad[0], {"title": "fox", "word": "x" * 256})
                yield Document(self.bad[1], {"title": "fox", "Word": ["a", "x" * 256]})
                yield Document(self.bad[2], {"title": "fox", ODD_NAME: "many"})
        for end in ("a", "b", "bc", "b" * 1000):
            yield Document(f"long {end[:3]}", {"title": "common", "body": f"x {STEM}{end} y"})
        for at in range(0, len(letters()), 1000):
            yield Document(
                f"letters {at}",
                {
                    "title": "common",
                    "script": ".".join(f"x{c}y" for c in letters()[at : at + 1000]),
                },
            )


REFERENCE = Reference(Odd.schema, [d for d in Odd().documents() if d.id not in Odd.bad])


@pytest.fixture(autouse=True, scope="module")
def _here() -> None:
    if lacking := missing(ENGINE):
        pytest.skip(f"no mariadb here: {lacking}")


@pytest.fixture(scope="module", params=list(STORAGE))
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    # The documents of one of them come in by the other door.
    door = "load" if request.param == "aria" else "insert"
    params = {**defaults(ENGINE), "storage": request.param, "door": door}
    place = tmp_path_factory.mktemp(request.param)
    with serving(ENGINE, params, Odd(), place) as (deployment, done):
        assert done.documents == len(REFERENCE.documents)
        # Each by its name, in the server's own words, and nothing else of the batch with it.
        assert [each["id"] for each in done.refusals] == list(Odd.bad)
        why = [each["reason"] for each in done.refusals]
        assert all("Data too long" in w for w in why[:2])
        assert "Incorrect integer value: 'many'" in why[2]
        yield deployment


def ask(running: Deployment, query: Query, **levers: Level) -> Hits:
    params: Parameters = {**running.params, **levers}
    hits = ENGINE.decode(running.ask(ENGINE.compile(query, Odd.schema, params)))
    assert hits.error is None, hits.error
    assert not hits.warnings
    return hits


def drawn(rng: random.Random) -> Terms:
    mode = rng.choice([Mode.ANY, Mode.ALL, Mode.PHRASE, Mode.PREFIX])
    found = rng.choices(VOCABULARY, k=rng.randint(1, 3))
    if mode is Mode.PREFIX:
        found = [w[: rng.randint(1, len(w))] for w in found]
    fields = rng.sample(["title", "body", "script"], rng.randint(0, 3))
    return Terms(mode, tuple(found), tuple(fields))


def tree(rng: random.Random, depth: int) -> Match:
    if not depth or rng.random() < 0.3:
        return drawn(rng)
    parts = [[tree(rng, depth - 1) for _ in range(rng.randint(0, 2))] for _ in range(3)]
    return Boolean(*(tuple(part) for part in parts))


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_every_storage_finds_what_the_reference_finds(running: Deployment, depth: int) -> None:
    rng = random.Random(depth)
    for _ in range(30):
        query = Query(tree(rng, depth), limit=400)
        hits = ask(running, query)
        assert sorted(h.id for h in hits.hits) == sorted(REFERENCE.ids(query)), query
        assert hits.total == len(hits.hits)


def test_plain_booleans_are_one_search_and_find_the_same(running: Deployment) -> None:
    rng = random.Random(9)
    for _ in range(60):
        must, should, must_not = (rng.choices(VOCABULARY, k=rng.randint(0, 2)) for _ in range(3))
        query = Query(
            Boolean(
                (Terms(Mode.ALL, tuple(must)),) if must else (),
                (Terms(Mode.ANY, (*should, "fox")),),
                tuple(Terms(Mode.ANY, (w,)) for w in must_not),
            ),
            limit=400,
        )
        (exchange,) = ENGINE.compile(query, Odd.schema, running.params).exchanges
        assert exchange.count(b" AS score") == 1
        assert b"NOT MATCH" not in exchange
        found = [h.id for h in ask(running, query).hits]
        assert sorted(found) == sorted(REFERENCE.ids(query)), query


def test_natural_mode_finds_the_same_but_for_frequent_words(running: Deployment) -> None:
    for word in ("fox", "b", "straße"):
        query = Query(Terms(Mode.ANY, (word, "no")), limit=400)
        found = sorted(h.id for h in ask(running, query, mode="natural").hits)
        assert found == sorted(REFERENCE.ids(query))
    every = ask(running, Query(Terms(Mode.ANY, ("common",))), mode="natural")
    innodb = running.params["storage"] == "innodb"
    assert every.total == (len(REFERENCE.documents) if innodb else 0)


def test_filters_sorting_and_counts_know_every_value(running: Deployment) -> None:
    filters = [
        *(In("word", (s,)) for s in STRINGS),
        *(NotIn("Word", (s,)) for s in STRINGS[:8]),
        *(Range("word", low, high, False, True) for low, high in (("A", "a"), ("", "ä"))),
        *(Range(ODD_NAME, low, high) for low, high in ((0, 0), (-(2**63), 0), (1, 2**63 - 1))),
        *(Range("price", low, 0.1, False) for low in (0.0, 5e-324, None, -1.7976931348623157e308)),
        *(Range("when", low, None) for low in (2**53, 2**53 + 1, 2**53 + 2)),
        *(In("free", found) for found in ((True,), (False,), ())),
    ]
    for part in filters:
        query = Query(filters=(part,), limit=400)
        assert [h.id for h in ask(running, query).hits] == REFERENCE.ids(query), part
    for keys in (("word",), ("free", "word"), ("price", ODD_NAME), ("when", "word", ODD_NAME)):
        for down in (False, True):
            query = Query(sort=tuple(Sort(k, down) for k in keys), limit=400)
            assert [h.id for h in ask(running, query).hits] == REFERENCE.sorted_ids(query), keys
    counted = Query(
        Terms(Mode.ANY, ("common",)), facets=(Facet("word", 50), Facet("Word", 50)), group_by="Word"
    )
    hits = ask(running, counted)
    for name in ("word", "Word"):
        assert list(hits.facets[name]) == REFERENCE.counts(counted, name)
    assert list(hits.groups) == REFERENCE.counts(counted, "Word")[:10]


def test_values_come_back_as_they_went_in(running: Deployment) -> None:
    stored = tuple(f.name for f in Odd.schema.fields if f.stored)
    hits = ask(running, Query(limit=400, fields=stored)).hits
    assert [h.id for h in hits] == [d.id for d in REFERENCE.documents]
    for hit, document in zip(hits, REFERENCE.documents, strict=True):
        assert hit.fields == {k: v for k, v in document.values.items() if k in stored}


def test_no_letter_or_digit_of_unicode_separates(running: Deployment) -> None:
    split = ask(running, Query(Terms(Mode.ANY, ("x", "y"), ("script",))))
    assert split.total == 0
    for at in (0, 50_000, 131_000):
        found = tuple(f"x{c}y" for c in letters()[at : at + 1000])
        hits = ask(running, Query(Terms(Mode.ALL, found, ("script",)))).hits
        assert [h.id for h in hits] == [f"letters {at}"]


def test_innodb_shows_the_declared_terms_of_all_of_unicode(running: Deployment) -> None:
    """Every letter and digit between two that betray a split; the others cannot say."""
    request = ENGINE.analyse(text := " ".join(f"x{c}y" for c in letters()))
    assert request is not None
    reply = running.ask(request)
    if running.params["storage"] == "innodb":
        assert ENGINE.terms(reply) == terms(text)
        return
    with pytest.raises(ValueError, match=r"doesn't exist|can't be set"):
        ENGINE.terms(reply)


def test_what_a_server_has_otherwise_for_one_storage_is_said_as_people_write_it(
    tmp_path: Path,
) -> None:
    """As Debian sets up a server: terms of 3 characters in InnoDB and of 4 in the others."""

    class Debians(MariaDB):
        def service(self, params: Parameters, schema: Schema) -> Service:
            made = super().service(params, schema)
            more = ("--ft-min-word-len=4", "--innodb-ft-enable-stopword=1")
            return replace(made, argv=(*made.argv, *more))

    engine = Debians()
    params = {**defaults(engine), "min_characters": 3}
    deployed = Deployment(engine, params, tmp_path / "d", tmp_path / "r", (), Odd.schema)
    with deployed as running:
        facts = engine.facts(running.ask(engine.facts_request()))
    assert facts.parameters["min_characters"] == "3 in InnoDB, 4 in Aria and MyISAM"
    assert facts.parameters["stop_words"] == "true in InnoDB, false in Aria and MyISAM"


@pytest.mark.parametrize("storage", list(STORAGE))
def test_every_lever_takes_and_a_killed_server_comes_back(tmp_path: Path, storage: str) -> None:
    params = {
        **defaults(ENGINE),
        "storage": storage,
        "analysis": "engine",
        "stop_words": True,
        "min_characters": 3,
        "buffer_pool_mb": 24,
        "flush": 2 if storage == "innodb" else 0,
        "threads": "pool-of-threads",
        "index_first": True,
    }

    class Book:
        name = "book"
        schema = Schema((Field("title", FieldType.TEXT),))
        # A packet has 16 MiB at most, so both the INSERT and the row that comes back have several.
        long = "." * ((17 if storage == "innodb" else 1) << 20) + " Füchse"

        def documents(self) -> Iterator[Document]:
            yield Document("ü", {"title": "ÜBER the fox"})
            yield Document("u", {"title": "uber ox"})
            yield Document("long", {"title": self.long})

    def found(running: Deployment, *asked: str) -> list[str]:
        query = Query(Terms(Mode.ALL, asked), fields=("title",))
        hits = ENGINE.decode(running.ask(ENGINE.compile(query, Book.schema, params))).hits
        return [
            h.id for h in hits if h.fields == dict(zip(("title",), (texts[h.id],), strict=True))
        ]

    texts = {d.id: d.values["title"] for d in Book().documents()}
    expected = {"uber": ["ü", "u"], "the": [], "ox": [], "fuchse": ["long"]}
    with serving(ENGINE, params, Book(), tmp_path) as (running, done):
        assert done.documents == 3
        facts = ENGINE.facts(running.ask(ENGINE.facts_request()))
        assert facts.parameters == {k: v for k, v in params.items() if k not in ENGINE.can.unread}
        assert facts.index_bytes is not None
        assert facts.index_bytes > len(Book.long)
        assert facts.extra["query_cache"] == "OFF"
        assert {word: found(running, word) for word in expected} == expected
        outcomes = killed_while_asked(running)
        assert outcomes[0] == "ok"
        assert set(outcomes[-3:]) <= {"refused", "reset"}
    again = Deployment(ENGINE, params, tmp_path / "data", tmp_path / "run", (), Book.schema)
    with again as running:
        assert running.facts.documents == 3
        assert {word: found(running, word) for word in expected} == expected


def killed_while_asked(running: Deployment) -> list[str]:
    """The outcomes of requests one after another, the server killed after some."""

    def tick(done: int, _elapsed_ns: int, _recent: bytes) -> None:
        if done > 10 and running.lives():
            running.process.kill()

    count = 100_000
    trace = running.endpoint.drive(
        prepare([ENGINE.facts_request()]),
        Order(
            np.zeros(count, np.uint32),
            np.array([0, count], np.uint32),
            None,
            1,
            stop_ns=1_000_000_000,
        ),
        Manner(timeout_s=10.0, on_tick=tick),
    )
    assert not running.lives()
    return [_core.OUTCOMES[int(sample["outcome"])] for sample in samples_of(trace)]


def test_terms_are_told_apart_by_their_beginning(running: Deployment) -> None:
    """The declared deviation, to the character."""

    def found(mode: Mode, *asked: str) -> list[str]:
        return [h.id.removeprefix("long ") for h in ask(running, Query(Terms(mode, asked))).hits]

    assert found(Mode.ALL, f"{STEM}a") == ["a"]
    assert found(Mode.ALL, f"{STEM}bd") == ["b", "bc", "bbb"]
    assert found(Mode.PHRASE, "x", f"{STEM}a", "y") == ["a"]
    assert found(Mode.PREFIX, STEM) == ["a", "b", "bc", "bbb"]
    assert found(Mode.PREFIX, f"{STEM}bd") == ["b", "bc", "bbb"]


def test_the_copy_holds_only_what_the_parser_takes_for_words() -> None:
    assert indexed("Über-STRASSE x², 𝟙don't_stop") == "über strasse x² _1d7d9don t stop"
    assert [term(w) for w in words(("𝟙don", "検索"))] == ["𝟙don", "検索"]
    assert words(("𝟙" * 20,)) == [("_1d7d9" * 20)[:MOST_CHARACTERS]]
    every = [c for c in map(chr, range(sys.maxunicode + 1)) if not "\ud800" <= c <= "\udfff"]
    taken = set(indexed("-".join(every)))
    assert len("".join(taken).encode("utf-16-le")) == 2 * len(taken)  # of the first plane
    assert {unicodedata.ucd_3_2_0.category(c)[0] for c in taken - {" ", "_"}} == {"L", "N"}


def test_a_column_of_a_reply_leads_back_to_its_field() -> None:
    for field in Odd.schema.fields:
        what, _kind, name = labelled(label(VALUE, Odd.schema, field.name))
        assert (what, name) == (VALUE, field.name)


def test_an_error_is_not_zero_hits_and_half_a_reply_is_no_answer(running: Deployment) -> None:
    other = Schema((Field("nowhere", FieldType.TEXT),))
    request = ENGINE.compile(Query(Terms(Mode.ANY, ("fox",))), other, running.params)
    refused = ENGINE.decode(running.ask(request))
    assert refused.total is None
    assert "Unknown column 'w0_nowhere'" in str(refused.error)
    whole = running.ask(ENGINE.compile(Query(limit=2), Odd.schema, running.params))
    for cut in (0, 3, 40, len(whole) // 2, len(whole) - 1):
        with pytest.raises(ValueError, match=r"reply|packet|string|total"):
            ENGINE.decode(whole[:cut])
