"""Tables that a corpus declares, in SQL databases: as declared, by every door, the same rows."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engines.reference import Reference
from searchbench.corpora.corpus import Document, Field, FieldType, Index, Schema, Table
from searchbench.engines import ENGINES, defaults, mysql_form
from searchbench.engines import postgres_form as form
from searchbench.engines.engine import Request
from searchbench.engines.mariadb import MariaDB
from searchbench.lab.conduct.serve import serving
from searchbench.lab.get.install import missing
from searchbench.lab.system.deploy import Deployment
from searchbench.workload.queries.algebra import (
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
KEY = (Field("account", FieldType.INTEGER), Field("code", FieldType.KEYWORD))
SCHEMA = Schema(
    (
        *KEY,
        Field("note", FieldType.TEXT),
        Field("state", FieldType.KEYWORD),
        Field("tags", FieldType.KEYWORDS),
        Field("size", FieldType.INTEGER),
        Field("price", FieldType.FLOAT),
        Field("made", FieldType.DATE),
        Field("paid", FieldType.BOOLEAN),
    ),
    Table(
        "orders",
        KEY,
        (Index(("state",)), Index(("state", "size")), Index(("size", "account", "code"), True)),
    ),
)
ODD = ("", " ", "\\", "\\N", "a\tb", "a\nb", "a\rb", "'", '"', "\\'", "`", "%", "ä", "😀", "NULL")
WORDS = ("red", "fox", "über", "search", "engine", "cool")
DOORS: dict[str, tuple[str, dict[str, Any]]] = {
    "mariadb": ("mariadb", {}),
    "mariadb load": ("mariadb", {"door": "load"}),
    "myisam load first": ("mariadb", {"door": "load", "storage": "myisam", "index_first": True}),
    "postgresql": ("postgresql", {}),
    "postgresql insert first": ("postgresql", {"door": "insert", "index_first": True}),
}


class Orders:
    """Rows whose key has two columns, with what SQL and files of values know among their values."""

    name = "orders"
    schema = SCHEMA

    def documents(self) -> Iterator[Document]:
        rng = random.Random(3)
        for place in range(200):
            values: dict[str, Any] = {
                "account": place // 20,
                "code": f"c{place % 20}",
                "note": " ".join(rng.choices(WORDS, k=4)),
                "state": rng.choice(ODD),
                "tags": rng.sample(ODD[1:], rng.randint(1, 3)),
                "size": place,
                "price": rng.choice([0.1, -2.5, 1e22]),
                "made": rng.randint(0, 3) * 86_400_000,
                "paid": rng.random() < 0.5,
            }
            for gone in rng.sample(["note", "state", "tags", "price", "made", "paid"], 1):
                if rng.random() < 0.3:
                    del values[gone]
            yield Document(f"{values['account']},{values['code']}", values)


@pytest.fixture(scope="module", params=DOORS)
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    name, levels = DOORS[request.param]
    engine = ENGINES[name]
    if lacking := missing(engine):
        pytest.skip(f"no {name} here: {lacking}")
    place: Path = tmp_path_factory.mktemp(name)
    with serving(engine, {**defaults(engine), **levels}, Orders(), place) as (server, done):
        assert (done.documents, done.refused) == (200, 0)
        yield server


@pytest.fixture(scope="module")
def reference() -> Reference:
    return Reference(SCHEMA, list(Orders().documents()))


def sql(server: Deployment, statement: str) -> list[tuple[Any, ...]]:
    """What the server's own language says; of MariaDB as text."""
    if isinstance(server.engine, MariaDB):
        reply = server.ask(Request((mysql_form.query(statement),)))
        (result,) = mysql_form.split(reply)
        assert result.error is None, result.error
        return [tuple(None if v is None else v.decode() for v in row) for row in result.rows]
    (answer,) = form.split(server.ask(Request((form.query(statement),))))
    assert not answer.errors, str(answer.errors[0])
    return list(answer.results[0].rows)


def test_the_rows_are_those_of_the_corpus_under_the_names_of_its_columns(
    running: Deployment,
) -> None:
    mysql = isinstance(running.engine, MariaDB)
    tags = "tags" if mysql else "array_to_json(tags)::text"
    found = sql(
        running,
        f"SELECT account, code, note, state, {tags}, size, price, made, paid FROM orders "
        "ORDER BY size",
    )
    names = [field.name for field in SCHEMA.fields]
    kinds = {FieldType.INTEGER: int, FieldType.DATE: int, FieldType.FLOAT: float}
    for document, row in zip(Orders().documents(), found, strict=True):
        held: dict[str, Any] = {}
        for field, value in zip(SCHEMA.fields, row, strict=True):
            if value is None:
                continue
            if field.type is FieldType.KEYWORDS:
                held[field.name] = json.loads(value)
            elif field.type is FieldType.BOOLEAN:
                held[field.name] = value in ("1", True)
            else:
                held[field.name] = kinds.get(field.type, str)(value)
        assert held == document.values
        assert list(held) == [name for name in names if name in document.values]


def test_rows_are_found_by_a_key_of_two_columns_and_joined_with_a_temporary_table(
    running: Deployment,
) -> None:
    pairs = "((3, 'c7'), (9, 'c19'), (9, 'c20'))"
    by_key = sql(running, f"SELECT size FROM orders WHERE (account, code) IN {pairs} ORDER BY 1")
    assert [int(size) for (size,) in by_key] == [67, 199]
    if isinstance(running.engine, MariaDB):
        asked = mysql_form.request(
            "CREATE TEMPORARY TABLE tmp (account INT, code VARCHAR(20))",
            "INSERT INTO tmp VALUES (3, 'c7'), (9, 'c19')",
            "SELECT d.size FROM orders d JOIN tmp USING (account, code) ORDER BY 1",
        )
        results = mysql_form.split(running.ask(asked))
        assert [row for result in results for row in result.rows] == [(b"67",), (b"199",)]


def test_the_key_and_the_indexes_are_as_declared_and_there_are_no_others(
    running: Deployment,
) -> None:
    if isinstance(running.engine, MariaDB):
        rows = sql(
            running,
            "SELECT INDEX_NAME, MAX(NON_UNIQUE), GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX), "
            "MAX(INDEX_TYPE) FROM information_schema.STATISTICS WHERE TABLE_NAME = 'orders' "
            "GROUP BY INDEX_NAME ORDER BY 3",
        )
        found = [(columns, unique == "0", kind) for _, unique, columns, kind in rows]
        assert found == [
            ("account,code", True, "BTREE"),
            ("size,account,code", True, "BTREE"),
            ("state", False, "BTREE"),
            ("state,size", False, "BTREE"),
            ("w2_note", False, "FULLTEXT"),
        ]
        return
    rows = sql(running, "SELECT indexdef FROM pg_indexes WHERE tablename = 'docs' ORDER BY 1")
    made = [row[0].partition(" USING ")[::2] for row in rows]
    assert {how.partition(" WITH")[0] for _, how in made} == {
        "gin (words_0)",
        "btree (v_state)",
        "btree (v_state, v_size)",
        "btree (v_account, v_code)",
        "btree (v_size, v_account, v_code)",
    }
    assert len(made) == 5
    assert sum("UNIQUE" in kind for kind, _ in made) == 2


QUERIES = {
    "words": Query(Terms(Mode.ALL, ("red", "über"))),
    "any": Query(Terms(Mode.ANY, ("cool", "fox"), ("note",))),
    "range": Query(None, filters=(Range("size", 20, 40, include_low=False),)),
    "key": Query(None, filters=(In("account", (3, 4)),)),
    "odd keyword": Query(None, filters=(In("state", ODD),)),
    "keyword of a list": Query(None, filters=(In("tags", ("\\", "a\tb", '"')),)),
    "keyword not of a list": Query(None, filters=(NotIn("tags", ("'", "ä")),)),
    "boolean": Query(None, filters=(In("paid", (True,)),)),
}


@pytest.mark.parametrize("name", QUERIES)
def test_portable_queries_find_the_same_rows(
    running: Deployment, reference: Reference, name: str
) -> None:
    query = QUERIES[name]
    whole = Query(query.match, filters=query.filters, limit=500)
    hits = running.engine.decode(running.ask(running.engine.compile(whole, SCHEMA, running.params)))
    assert hits.error is None
    wanted = reference.ids(query)
    assert wanted
    assert hits.total == len(wanted)
    assert {hit.id for hit in hits.hits} == set(wanted)


def test_portable_queries_sort_count_and_return_fields(
    running: Deployment, reference: Reference
) -> None:
    query = Query(
        None,
        sort=(Sort("made"), Sort("size", descending=True)),
        facets=(Facet("state", 30), Facet("tags", 30)),
        group_by="account",
        fields=("tags", "state", "price", "code"),
        limit=300,
    )
    hits = running.engine.decode(running.ask(running.engine.compile(query, SCHEMA, running.params)))
    assert hits.error is None
    assert [hit.id for hit in hits.hits] == reference.sorted_ids(query)[:300]
    for facet in query.facets:
        counted = reference.counts(query, facet.field)[: facet.limit]
        assert list(hits.facets[facet.field]) == counted
    own = {d.id: d.values for d in Orders().documents()}
    for hit in hits.hits:
        held = own[hit.id]
        assert hit.fields == {n: held[n] for n in query.fields if n in held}


@pytest.mark.parametrize("of", ["", "state,size", "note"])
def test_an_index_is_made_anew_alone_or_with_the_others(running: Deployment, of: str) -> None:
    engine = running.engine
    work = engine.work("index", {"of": of}, SCHEMA, running.params)

    def count() -> int:
        if isinstance(engine, MariaDB):
            named = "COUNT(DISTINCT INDEX_NAME) FROM information_schema.STATISTICS"
            return int(sql(running, f"SELECT {named} WHERE TABLE_NAME = 'orders'")[0][0])
        return int(sql(running, "SELECT count(*) FROM pg_indexes WHERE tablename = 'docs'")[0][0])

    assert count() == 5
    for request in work.before:
        assert engine.check(running.ask(request)) is None
    assert count() == (4 if of else 1)
    for request in work.requests:
        assert engine.check(running.ask(request)) is None
    assert count() == 5
